"""The indicator grid: declared error and Lipschitz constant, and why that constant is not 1."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from regretless.forecaster.bases.grid import LipschitzGridBasis
from regretless.market.losses import LipschitzLoss, SeparablePower
from regretless.market.regret.definitions import swap_regret

Array = NDArray[np.float64]

STACK, ACTIONS = 6, 3


def waves(outcomes: int, constant: float) -> LipschitzLoss:
    """Triangle waves of full slope in the greatest coordinate, one shift per loss and action."""
    shifts = np.random.default_rng(1).random((STACK, ACTIONS))

    def function(y: Array) -> Array:
        phase = (constant * y.max(-1)[:, None, None] + 2 * shifts) % 2
        return np.abs(phase - 1)

    return LipschitzLoss(function, np.array(constant), (STACK, ACTIONS), outcomes)


def lattice(outcomes: int) -> Array:
    """Outcomes on a lattice that fits no cell boundary, and at random."""
    ticks = np.linspace(0, 1, 1009 if outcomes == 1 else 38)
    axes = np.meshgrid(*[ticks] * outcomes, indexing="ij")
    even = np.stack([axis.ravel() for axis in axes], -1)
    return np.concatenate([even, np.random.default_rng(5).random((500, outcomes))])


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("outcomes", [1, 2])
def test_the_declared_error_is_true_and_reached(outcomes: int, *, centred: bool) -> None:
    """A loss of full slope is as far from its values on the cells as declared, no farther."""
    basis = LipschitzGridBasis(outcomes, constant=2.0, error=0.23, centred=centred)
    measured = basis.audit(waves(outcomes, 2.0), lattice(outcomes))
    assert 0.9 * basis.error <= measured <= basis.error + 1e-12


def test_the_median_makes_the_coefficients_least() -> None:
    """No other constant in the offset gives a smaller sum; half ones and half zeros need n/2."""
    basis = LipschitzGridBasis(1, constant=10.0, error=0.5)
    loss = LipschitzLoss(
        lambda y: np.abs((10 * y + 0.5) % 2 - 1), np.array(10.0), shape=(1,), dimension=1
    )
    offset, weights = basis.coefficients(loss)
    assert np.abs(weights).sum() == pytest.approx(basis.lipschitz)
    skewed, rest = basis.coefficients(SeparablePower([[1.0]], np.array(2.0)))
    values = rest[0] + skewed[0]
    for constant in np.linspace(-0.2, 1.2, 57):
        assert np.abs(rest).sum() <= np.abs(values - constant).sum() + 1e-12
    assert values == pytest.approx(basis.points[:, 0] ** 2)
    assert offset == pytest.approx([0.5])


@pytest.mark.parametrize(("constant", "least"), [(1.0, 0.5), (20.0, 0.95)])
def test_a_constant_of_one_would_not_bound_swap_regret(constant: float, least: float) -> None:
    """Biases of 2/n beside a swap regret of a half and more: the paper's 1 cannot be lambda.

    Predictions are uniform on the cells below 1/2, outcomes cycle through those above. The
    declared n/2 does bound the regret.
    """
    basis = LipschitzGridBasis(1, constant=constant, error=constant / 200)
    half = basis.size // 2
    assert basis.size == 100

    def rising(y: Array) -> Array:
        up = np.clip(0.5 + constant * (y - 0.5), 0, 1)
        return np.concatenate([up, 1 - up], axis=-1)

    loss = LipschitzLoss(rising, np.array(constant), shape=(2,), dimension=1)
    prediction = np.where(np.arange(basis.size) < half, 1 / half, 0.0)
    outcomes = basis.points[half + np.arange(600) % half]
    offset, weights = basis.coefficients(loss)
    played = np.full(600, int((offset + weights @ prediction).argmin()))
    bias = np.abs((prediction - basis.transform(outcomes)).mean(0))
    regret = swap_regret(loss.losses(outcomes), played)
    assert bias == pytest.approx(np.full(basis.size, 2 / basis.size))
    assert regret >= least - 1e-9
    assert regret > 10 * 2 * 1 * bias.max()  # lambda = 1 on both sides of the comparison
    assert regret <= 2 * basis.lipschitz * bias.max() + 2 * basis.error
