"""Certificates of a basis's error: never below the truth, close to it, and honest about effort."""

import functools
import itertools
from collections.abc import Callable

import numpy as np
import pytest

from regretless.forecaster.bases.certify import ROUNDING, certify
from regretless.market.core.arrays import Array
from regretless.market.losses import (
    Convex1D,
    ExponentialOfSum,
    Linear,
    LipschitzLoss,
    Loss,
    MinimumOfRatios,
    PowerOfSum,
    SeparablePower,
)
from regretless.market.losses.base import STEEPEST

STACK, ACTIONS = 5, 3
GRID = np.array(list(itertools.product(np.linspace(0, 1, 83) ** 2, repeat=2)))


def draw(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).uniform(0.2, 1.0, (STACK, ACTIONS, *shape))


def waves() -> LipschitzLoss:
    """Losses of no form, with the slopes that they declare."""
    centres = draw(2)

    def function(y: Array) -> Array:
        return np.asarray(np.abs(y[:, None, None, :] - centres).sum(-1) / 2)

    return LipschitzLoss(function, np.ones(STACK), (STACK, ACTIONS), 2)


MAKERS: dict[str, Callable[[], Loss]] = {
    "linear": lambda: Linear(draw(2) - 0.5),
    "steep powers": lambda: SeparablePower(-draw(2), np.full(STACK, 0.3)),
    "distances": lambda: SeparablePower(draw(2), np.full(STACK, 1.7), centre=draw(2)),
    "ces": lambda: PowerOfSum(draw(2), np.full(STACK, 2.0), power=np.full(STACK, 0.5)),
    "ces, negative": lambda: PowerOfSum(
        draw(2), np.full(STACK, -0.7), power=np.full(STACK, -1.4), floor=np.full(STACK, 0.1)
    ),
    "square": lambda: PowerOfSum(draw(2) - 0.5, np.full(STACK, 2.0), intercept=np.array(-0.2)),
    "cube": lambda: PowerOfSum(draw(2) - 0.5, np.full(STACK, 3.0), intercept=np.array(-0.1)),
    "cobb-douglas": lambda: ExponentialOfSum(
        draw(2) / 2, power=np.zeros(STACK), floor=np.full(STACK, 0.1)
    ),
    "cara": lambda: ExponentialOfSum(-draw(2)),
    "leontief": lambda: MinimumOfRatios(draw(2)),
    "leontief, one input": lambda: MinimumOfRatios(draw(2) * [1.0, 0.0]),
    "convex": lambda: Convex1D(draw(4), draw(4), slope=np.array(-1.0), coordinate=1, dimension=2),
    "any": waves,
}


def functions(y: Array) -> Array:
    """Five functions with range [0, 1], all ascending in both coordinates."""
    first, second = y[..., 0], y[..., 1]
    curved = first * second, np.sqrt(first)
    return np.stack([first, second, *curved, np.minimum(first, second)], axis=-1)


def enclose(low: Array, high: Array) -> tuple[Array, Array]:
    return functions(low), functions(high)


def derivatives(low: Array, high: Array) -> tuple[Array, Array]:
    """Ranges of their partial derivatives; that of the least is 1 where it is the coordinate's."""
    one, zero = np.ones(len(low)), np.zeros(len(low))
    ends = []
    for at, other, least in ((low, high, high < low[:, ::-1]), (high, low, low < high[:, ::-1])):
        root = 0.5 / np.sqrt(np.maximum(other[:, 0], 1e-12))
        first, second = [one, zero, at[:, 1], root], [zero, one, at[:, 0], zero]
        rows = [*first, least[:, 0]], [*second, least[:, 1]]
        ends.append(np.stack([np.stack(row, axis=-1) for row in rows], axis=1))
    return ends[0], ends[1]


@functools.cache
def fitted(name: str) -> tuple[Loss, Array, Array, float]:
    """Normalised losses, their least-squares forms, and the greatest error on a fine grid."""
    loss = MAKERS[name]().normalised()
    design = np.column_stack([np.ones(len(GRID)), functions(GRID)])
    values = loss.losses(GRID).reshape(len(GRID), -1)
    table = np.linalg.lstsq(design, values, rcond=None)[0]
    error = float(np.abs(design @ table - values).max())
    offset = table[0].reshape(loss.offset.shape)
    return loss, offset, table[1:].T.reshape(*loss.offset.shape, 5), error


@pytest.mark.parametrize("name", MAKERS)
def test_a_certificate_encloses_the_error(name: str) -> None:
    """It is above what a fine grid finds, close to it, and what was met is below."""
    loss, offset, weights, error = fitted(name)
    target = 1e-9 if name == "linear" else 0.02  # it has no error, and slopes cancel
    wish = {"target": target, "tolerance": 0.1, "budget": 3_000_000}
    found = certify(loss, offset, weights, enclose, derivatives, **wish)  # type: ignore[arg-type]
    assert found.lower <= found.upper
    assert error <= found.upper
    assert found.upper <= max(1.1 * found.lower, target) + ROUNDING
    # the grid misses less than its modulus of continuity allows
    assert found.lower <= error + 0.02


@pytest.mark.parametrize("budget", [1, 20_000, 100_000])
def test_a_certificate_holds_whatever_the_budget(budget: int) -> None:
    """Less effort makes it larger, never wrong, and is kept to after the first grid."""
    loss, offset, weights, error = fitted("leontief")
    found = certify(
        loss, offset, weights, enclose, derivatives, cells=np.linspace(0, 1, 5) ** 2, budget=budget
    )
    assert found.upper >= error
    assert found.evaluations <= max(budget, 16 * STACK * ACTIONS)


@pytest.mark.parametrize("name", MAKERS)
def test_slopes_of_a_loss_hold_all_its_difference_quotients(name: str) -> None:
    """Between two points of a box that differ in one coordinate, by the mean value theorem."""
    loss, rng = MAKERS[name](), np.random.default_rng(1)
    low, high = np.sort(rng.random((2, 60, 2)), axis=0)
    high[::3] = low[::3] + (high[::3] - low[::3]) / 50
    low[1::4] = 0.0
    least, most = loss.slopes(low, high)
    assert least.shape == most.shape == (60, STACK, ACTIONS, 2)
    assert (least <= most).all()
    for j in range(2):
        first = low + (high - low) * rng.random((60, 2))
        second = first.copy()
        second[:, j] = low[:, j] + (high - low)[:, j] * rng.random(60)
        step = (second - first)[:, j, None, None]
        quotient = (loss.losses(second) - loss.losses(first)) / step
        assert (quotient >= least[..., j] - 1e-6).all()
        assert (quotient <= most[..., j] + 1e-6).all()


class Unknown(Loss):
    """A constant in a form of its own, which knows no slopes."""

    form, AXES, PROPORTIONAL, outcomes = "unknown", {"offset": "a"}, (), 2  # type: ignore[assignment,misc]

    def _at(self, y: Array) -> Array:
        return np.zeros((len(y), 1))

    def _between(self, low: Array, high: Array) -> tuple[Array, Array]:
        return self._at(low), self._at(high)

    def lipschitz(self) -> Array:
        return np.zeros(())


def test_nothing_is_claimed_without_a_bound() -> None:
    """For a power below 1 about a centre in the box, and for a form that is not known."""
    steep = SeparablePower(np.ones((1, 2)), np.array(0.3))
    for loss in (steep, Unknown(offset=np.zeros(1))):
        least, most = loss.slopes(np.zeros((4, 2)), np.ones((4, 2)))
        assert least.shape == (4, 1, 2)
        assert (least <= -STEEPEST).all()
        assert (most >= STEEPEST).all()
