"""Ramps: multilinear interpolation in cumulative form, its weights, constants and certificate."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
from numpy.typing import NDArray

from regretless.forecaster.bases.grid import RampBasis
from regretless.market.losses import ExponentialOfSum, Loss, MinimumOfRatios, PowerOfSum

if TYPE_CHECKING:
    from collections.abc import Callable

Array = NDArray[np.float64]

ROUNDING = 1e-11
STACK, ACTIONS = 8, 3
LEAST = 0.1


def shares(outcomes: int, stack: int = STACK) -> Array:
    """Share parameters that sum to 1, always the same."""
    return np.random.default_rng(outcomes).dirichlet(np.ones(outcomes), (stack, ACTIONS))


def ces(outcomes: int, low: float, high: float) -> PowerOfSum:
    """CES utility above ``LEAST`` as a loss."""
    rho = np.linspace(low, high, STACK)
    return PowerOfSum(
        shares(outcomes),
        1 / rho,
        power=rho,
        floor=np.full(STACK, LEAST),
        amplitude=-np.ones((STACK, ACTIONS)),
    ).normalised()


def cobb_douglas(outcomes: int) -> ExponentialOfSum:
    """Cobb-Douglas utility above ``LEAST`` as a loss."""
    floor = np.full(STACK, LEAST)
    return ExponentialOfSum(shares(outcomes), power=np.zeros(STACK), floor=floor).normalised()


def leontief(outcomes: int) -> MinimumOfRatios:
    """Leontief utility with requirements from 1/2 to 3/2."""
    needs = np.random.default_rng(5).uniform(0.5, 1.5, (STACK, ACTIONS, outcomes))
    return MinimumOfRatios(needs).normalised()


# losses, knots, floor; the first are minus distribution functions of positive measures
MEASURES: dict[str, Callable[[], tuple[Loss, int, float]]] = {
    "ces, complements": lambda: (ces(3, -2.0, -0.2), 4, LEAST),
    "ces, substitutes": lambda: (ces(3, 0.1, 0.5), 4, LEAST),
    "ces of two goods": lambda: (ces(2, 0.3, 0.9), 6, LEAST),
    "cobb-douglas": lambda: (cobb_douglas(3), 4, LEAST),
    "leontief": lambda: (leontief(3), 4, 0.0),
    "leontief of two goods": lambda: (leontief(2), 7, 0.0),
}


@functools.cache
def built(name: str) -> tuple[RampBasis, Loss]:
    """Each basis is built and certified once."""
    loss, knots, floor = MEASURES[name]()
    return RampBasis([loss], knots=knots, floor=floor, budget=1_000_000), loss


def grid(outcomes: int) -> Array:
    """Outcomes (T, d), denser towards 0, off the knots."""
    ticks = {1: 4001, 2: 73, 3: 23}[outcomes]
    return np.array(list(itertools.product(np.linspace(0, 1, ticks) ** 1.7, repeat=outcomes)))


@pytest.mark.parametrize("name", MEASURES)
def test_weights_are_a_measure_where_the_loss_is_one(name: str) -> None:
    """Of one sign, so that their sum is at most the range of the loss: lambda is at most 1."""
    basis, loss = built(name)
    weights = basis.coefficients(loss)[1]
    assert weights.max() <= ROUNDING
    assert basis.lipschitz <= 1 + ROUNDING


# error of plain interpolation as published for some population, d = 3, y_min = 0.1
PUBLISHED = {
    4: {"ces": 0.065, "cobb-douglas": 0.021, "leontief": 0.236},
    8: {"ces": 0.017, "cobb-douglas": 0.005, "leontief": 0.101},
}


@pytest.mark.parametrize("form", ["ces", "cobb-douglas", "leontief"])
@pytest.mark.parametrize("knots", [4, 8])
def test_errors_are_those_of_interpolation_halved(knots: int, form: str) -> None:
    """Of the published size, with 63 and 511 functions; taking off half the excess halves it."""
    losses = {
        "ces": lambda: ces(3, -1.2, -0.2),
        "cobb-douglas": lambda: cobb_douglas(3),
        "leontief": lambda: leontief(3),
    }
    loss = losses[form]()
    floor = 0.0 if form == "leontief" else LEAST
    basis = RampBasis([loss], knots=knots, floor=floor, budget=1)
    assert basis.size == knots**3 - 1
    halved = basis.audit(loss, grid(3))
    assert halved == pytest.approx(PUBLISHED[knots][form] / 2, rel=0.7)


@pytest.mark.parametrize("wish", [0.1, 0.05])
def test_the_fewest_knots_for_a_wish(wish: float) -> None:
    """The certified error is within the wish; with one knot fewer it would not be."""
    losses = [ces(2, -2.0, -0.2), cobb_douglas(2), leontief(2)]
    basis = RampBasis(losses, error=wish, budget=1_000_000)
    assert basis.error <= wish
    assert max(basis.audit(loss, grid(2)) for loss in losses) <= wish
    fewer = RampBasis(losses, knots=len(basis.knots) - 1, budget=1_000_000)
    assert fewer.error > 0.95 * wish


@pytest.mark.slow
def test_a_wish_that_no_knots_fulfil_is_refused() -> None:
    """The message names the best that was reached."""
    with pytest.raises(ValueError, match=r"no 12 knots or fewer have an error of 0\.001"):
        RampBasis([leontief(3)], error=0.001)
    with pytest.raises(ValueError, match="knots have"):
        RampBasis([leontief(3)], error=0.1, budget=1)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"knots": 1}, "at least 2"),
        ({"floor": 1.0}, "not in"),
        ({"floor": -0.1}, "not in"),
        ({"error": 0.0}, "not positive"),
    ],
)
def test_parameters_out_of_range_are_refused(wrong: dict[str, float], says: str) -> None:
    """Knots, floor and error."""
    with pytest.raises(ValueError, match=says):
        RampBasis([leontief(2)], **wrong)  # type: ignore[arg-type]
