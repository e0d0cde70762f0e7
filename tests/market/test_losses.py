"""One suite that every loss form passes: formula, ranges, slopes, stacks; spaces of outcomes."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from small_scenarios import TomlTable, cohort_table, make_scenario, play_to_end

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
    Trade,
    base,
    unique_losses,
)
from regretless.market.losses.outcome_spaces import Box, Polytope
from regretless.market.markets.price_impact import exposure

LOSSES_OF_A_FORM = 60
# Multiples of 1/8: a range of numbers of one size is no smaller than 1/8, so rounding stays small.
EIGHTHS = np.arange(-40, 41) / 8
FEW_EIGHTHS = np.arange(-12, 13) / 8
SHARES = np.arange(0, 17) / 8
UNIT = np.arange(0, 9) / 8
EXPONENTS = np.arange(1, 33) / 8


@dataclass(frozen=True)
class Distance:
    """A function with constant ``rise``: ``rise`` times the sup distance to each action's point."""

    points: Array
    rise: float

    def __call__(self, y: Array) -> Array:
        spread = y.reshape(len(y), *(1,) * (self.points.ndim - 1), y.shape[-1])
        return np.asarray(self.rise * np.abs(spread - self.points).max(-1))


class Draw:
    """Draws the numbers of a stack of losses (..., actions, outcomes).

    A share ``zeros`` of the numbers is the one nearest to 0.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        stack: tuple[int, ...],
        actions: int,
        outcomes: int,
        zeros: float,
    ) -> None:
        self.rng = rng
        self.stack = stack
        self.actions = actions
        self.outcomes = outcomes
        self.zeros = zeros

    def _drawn(self, elements: Array, *axes: int) -> Array:
        values = self.rng.choice(elements, (*self.stack, *axes))
        nearest_to_zero = elements[np.abs(elements).argmin()]
        is_zero = self.rng.random(values.shape) < self.zeros
        return np.asarray(np.where(is_zero, nearest_to_zero, values))

    def per_loss(self, *elements: float) -> Array:
        return self._drawn(np.array(elements))

    def per_action(self, elements: Array) -> Array:
        return self._drawn(elements, self.actions)

    def table(self, elements: Array) -> Array:
        return self._drawn(elements, self.actions, self.outcomes)


class Inner(NamedTuple):
    """The sum inside a power or an exponential: what defines it, and its ends."""

    keys: TomlTable
    low: Array
    high: Array


def draw_inner(draw: Draw) -> Inner:
    power = draw.per_loss(-1.0, 0.0, 0.5, 1.0, 2.0)
    floor = draw.per_loss(0.0, 0.125, 0.5)
    floor = np.where((power <= 0) & (floor == 0), 0.25, floor)
    keys = {"weights": draw.table(FEW_EIGHTHS), "power": power, "floor": floor}
    low, high = ExponentialOfSum(**keys).range_of_sum()
    return Inner(keys, low, high)


def draw_outer(draw: Draw) -> TomlTable:
    """Draw what a form multiplies its function by, and adds to it."""
    return {"amplitude": draw.per_action(EIGHTHS), "offset": draw.per_action(EIGHTHS)}


def draw_linear(draw: Draw) -> Loss:
    return Linear(draw.table(EIGHTHS), offset=draw.per_action(EIGHTHS))


def draw_separable(draw: Draw) -> Loss:
    exponent = draw.per_loss(*EXPONENTS)
    return SeparablePower(draw.table(EIGHTHS), exponent, offset=draw.per_action(EIGHTHS))


def draw_centred(draw: Draw) -> Loss:
    exponent = draw.per_loss(0.5, 1.0, 1.5, 2.0, 3.0)
    centre = draw.table(FEW_EIGHTHS)
    return SeparablePower(draw.table(EIGHTHS), exponent, centre, offset=draw.per_action(EIGHTHS))


def draw_whole_power(draw: Draw) -> Loss:
    exponent = draw.per_loss(1.0, 2.0, 3.0, 4.0)
    intercept = draw.per_action(FEW_EIGHTHS)
    inner = draw_inner(draw)
    return PowerOfSum(exponent=exponent, intercept=intercept, **inner.keys, **draw_outer(draw))


def draw_fractional_power(draw: Draw) -> Loss:
    """Draw sums from 0 on; without a floor those at corners are without rounding."""
    exponent = draw.per_loss(0.25, 0.5, 1.5, 2.5)
    inner = draw_inner(draw)
    rounding = np.where(inner.keys["floor"] == 0, 0.0, 0.125)[..., None]
    intercept = draw.per_action(SHARES) + rounding - inner.low
    return PowerOfSum(exponent=exponent, intercept=intercept, **inner.keys, **draw_outer(draw))


def draw_negative_power(draw: Draw) -> Loss:
    """Draw sums that are all above 0, or all below it, where only whole exponents are defined."""
    inner = draw_inner(draw)
    margin = 0.5 + draw.per_action(SHARES)
    if draw.rng.random() < 0.5:
        exponent = draw.per_loss(-1.0, -2.0)
        intercept = -margin - inner.high
    else:
        exponent = draw.per_loss(-0.5, -1.0, -2.0)
        intercept = margin - inner.low
    return PowerOfSum(exponent=exponent, intercept=intercept, **inner.keys, **draw_outer(draw))


def draw_exponential(draw: Draw) -> Loss:
    return ExponentialOfSum(**draw_inner(draw).keys, **draw_outer(draw))


def draw_minimum(draw: Draw) -> Loss:
    requirements = draw.table(SHARES)
    requirements[..., 0] += 0.125 * (requirements.max(-1) == 0)
    return MinimumOfRatios(requirements, **draw_outer(draw))


def draw_convex(draw: Draw) -> Loss:
    """Draw as many kinks as outcomes, for the variety."""
    return Convex1D(
        draw.table(SHARES),
        draw.table(FEW_EIGHTHS),
        draw.per_action(EIGHTHS),
        offset=draw.per_action(EIGHTHS),
        coordinate=int(draw.rng.integers(draw.outcomes)),
        dimension=draw.outcomes,
    )


def draw_trade(draw: Draw) -> Loss:
    return Trade(draw.table(EIGHTHS), draw.table(UNIT), offset=draw.per_action(EIGHTHS))


def draw_lipschitz(draw: Draw) -> Loss:
    rise = float(draw.rng.choice([0.5, 2.0]))
    return LipschitzLoss(
        Distance(draw.table(UNIT), rise),
        np.array(rise),
        (*draw.stack, draw.actions),
        draw.outcomes,
        high=np.array(rise),
        amplitude=draw.per_loss(*EIGHTHS),
        offset=draw.per_action(EIGHTHS),
    )


FORMS: dict[str, Callable[[Draw], Loss]] = {
    "linear": draw_linear,
    "separable": draw_separable,
    "centred": draw_centred,
    "whole power": draw_whole_power,
    "fractional power": draw_fractional_power,
    "negative power": draw_negative_power,
    "exponential": draw_exponential,
    "minimum": draw_minimum,
    "convex": draw_convex,
    "trade": draw_trade,
    "lipschitz": draw_lipschitz,
}
every_form = pytest.mark.parametrize("form", FORMS)
# Of a user's function only a constant is known, so that its range is an enclosure, no more.
every_form_of_known_range = pytest.mark.parametrize("form", [f for f in FORMS if f != "lipschitz"])


@cache
def losses_of_form(form: str) -> list[Loss]:
    """Draw single losses, stacks, and stacks of stacks, some of them constant."""
    losses = []
    for seed in range(LOSSES_OF_A_FORM):
        rng = np.random.default_rng([7, seed])
        stacks: list[tuple[int, ...]] = [(), (3,), (2, 2)]
        stack = stacks[seed % 3]
        if form == "lipschitz":
            stack = stack[-1:]  # stacks of stacks are not its own
        actions, outcomes = rng.integers(1, 4, 2).tolist()
        zeros = 1.0 if seed % 20 == 0 else 0.1
        losses.append(FORMS[form](Draw(rng, stack, actions, outcomes, zeros)))
    return losses


def random_outcomes(outcomes: int, count: int = 50) -> Array:
    return np.random.default_rng(outcomes).random((count, outcomes))


def size(loss: Loss) -> float:
    """Return the size of the numbers that a loss adds up, for tolerances."""
    low, high = loss.range()
    greatest = max(np.abs(loss.offset).max(), np.abs(low).max(), np.abs(high).max())
    return 1 + float(greatest)


def losses_in_own_units(loss: Loss, outcomes: Array) -> Array:
    """Return losses in the utility's own units (T, ..., A)."""
    scale = loss.unit_scale[..., None]
    offset = loss.unit_offset[..., None]
    return np.asarray(offset + scale * loss.losses(outcomes))


Index = tuple[int, ...]  # of a loss in its stack, and of its action


def plain_sum(loss: PowerOfSum | ExponentialOfSum, index: Index, y: Array) -> float:
    """Return the sum inside a power or an exponential, one action at one outcome."""
    power = loss.power[index[:-1]]
    floor = loss.floor[index[:-1]]
    total = float(loss.intercept[index]) if isinstance(loss, PowerOfSum) else 0.0
    for weight, level in zip(loss.weights[index], y, strict=True):
        high = max(level, floor)
        total += weight * (math.log(high) if power == 0 else high**power)
    return total


def plain_loss(loss: Loss, index: Index, y: Array) -> float:
    """Compute one action's loss at one outcome from the formula, a number at a time."""
    offset = float(loss.offset[index])
    match loss:
        case SeparablePower():
            exponent = loss.exponent[index[:-1]]
            terms = zip(loss.weights[index], y, loss.centre[index], strict=True)
            return offset + sum(w * abs(v - centre) ** exponent for w, v, centre in terms)
        case PowerOfSum():
            power = plain_sum(loss, index, y) ** loss.exponent[index[:-1]]
            return offset + loss.amplitude[index] * power
        case ExponentialOfSum():
            return offset + loss.amplitude[index] * math.exp(plain_sum(loss, index, y))
        case MinimumOfRatios():
            needs = zip(y, loss.requirements[index], strict=True)
            least_ratio = min(v / need for v, need in needs if need > 0)
            return offset + loss.amplitude[index] * least_ratio
        case Convex1D():
            v = y[loss.coordinate]
            bends = zip(loss.kinks[index], loss.knots[index], strict=True)
            rise = sum(kink * max(v - knot, 0) for kink, knot in bends)
            return offset + loss.slope[index] * v + rise
        case Trade():
            orders = zip(loss.quantity[index], loss.limit[index], y, strict=True)
            return offset - sum(max(0.0, q * (limit - price)) for q, limit, price in orders)
        case LipschitzLoss(function=Distance() as function):
            distances = zip(y, function.points[index], strict=True)
            farthest = max(abs(v - point) for v, point in distances)
            return offset + loss.amplitude[index[:-1]] * function.rise * farthest
    raise NotImplementedError(type(loss))


def turning_points(loss: Loss, low: Array, high: Array) -> Array:
    """Return points (P, d) of a box among which every action's extremes are, by the formula."""
    axes = [[low[j], high[j]] for j in range(loss.outcomes)]
    if isinstance(loss, SeparablePower):
        for j, axis in enumerate(axes):
            axis.extend(np.clip(np.unique(loss.centre[..., j]), low[j], high[j]))
    if isinstance(loss, Convex1D):
        j = loss.coordinate
        axes[j].extend(np.clip(np.unique(loss.knots), low[j], high[j]))
    grid = list(itertools.product(*(sorted(set(axis)) for axis in axes)))
    if isinstance(loss, PowerOfSum):
        grid += [tuple(root(loss, index, low, high)) for index in np.ndindex(loss.offset.shape)]
    return np.array(grid)


def root(loss: PowerOfSum, index: Index, low: Array, high: Array) -> Array:
    """Find where the sum is nearest to 0, between its least and its greatest corner."""
    direction = np.where(loss.power[index[:-1]] < 0, -1, 1)
    is_rising = loss.weights[index] * direction >= 0
    start = np.where(is_rising, low, high)
    end = np.where(is_rising, high, low)
    left = 0.0
    right = 1.0
    for _ in range(60):
        middle = (left + right) / 2
        if plain_sum(loss, index, start + middle * (end - start)) < 0:
            left = middle
        else:
            right = middle
    return np.asarray(start + left * (end - start))


@every_form_of_known_range
def test_losses_of_one_action_each_are_those_of_that_action_of_the_stack(form: str) -> None:
    for loss in losses_of_form(form):
        if len(loss.stack) != 1:
            continue
        actions = np.arange(len(loss)) % loss.actions
        outcomes = random_outcomes(loss.outcomes, 4)
        lone = loss.one_action_each(actions)
        assert lone is not None
        assert lone.actions == 1
        losses = loss.losses(outcomes)[:, np.arange(len(loss)), actions]
        np.testing.assert_allclose(lone.losses(outcomes)[..., 0], losses, rtol=1e-13, atol=1e-13)


def test_a_form_that_does_not_say_that_its_actions_are_separate_keeps_them_together() -> None:
    class Shares(Linear):
        """Each action's share of the sum, which depends on all actions."""

    assert Linear([[[1.0], [2.0]]]).one_action_each(np.array([1])) is not None
    assert Shares([[[1.0], [2.0]]]).one_action_each(np.array([1])) is None


@every_form
def test_a_loss_is_its_formula(form: str) -> None:
    for loss in losses_of_form(form):
        outcomes = random_outcomes(loss.outcomes, 3)
        losses = loss.losses(outcomes)
        expected = np.zeros(losses.shape)
        for t, *index in np.ndindex(losses.shape):
            expected[(t, *index)] = plain_loss(loss, tuple(index), outcomes[t])
        assert losses == pytest.approx(expected, abs=1e-12 * size(loss))


@every_form
def test_losses_of_many_outcomes_are_those_of_each_to_the_last_bit(form: str) -> None:
    for loss in losses_of_form(form):
        outcomes = random_outcomes(loss.outcomes, 3)
        losses = loss.losses(outcomes)
        assert losses.shape == (3, *loss.offset.shape)
        assert loss.actions == loss.offset.shape[-1]
        assert (losses == [loss.losses(y) for y in outcomes]).all()


class Boxed(NamedTuple):
    """A loss, a box of outcomes, and the losses at points of it, extremes among them."""

    loss: Loss
    points: Array
    losses: Array
    least: Array  # as the loss says of the box
    greatest: Array
    tolerance: float


@cache
def boxed_losses(form: str) -> list[Boxed]:
    """Enclose each loss of a form in the unit cube and in two boxes."""
    boxed = []
    for seed, loss in enumerate(losses_of_form(form)):
        corners = np.random.default_rng([8, seed]).random((2, 3, loss.outcomes))
        corners[:, 0] = [[0.0], [1.0]]
        low = corners.min(0)
        high = corners.max(0)
        least, greatest = loss.enclosure(low, high)
        assert least.shape == (3, *loss.offset.shape)
        assert greatest.shape == (3, *loss.offset.shape)
        for box in range(3):
            inside = low[box] + (high[box] - low[box]) * random_outcomes(loss.outcomes, 30)
            points = np.concatenate([inside, turning_points(loss, low[box], high[box])])
            tolerance = 1e-12 * size(loss)
            losses = loss.losses(points)
            boxed.append(Boxed(loss, points, losses, least[box], greatest[box], tolerance))
    return boxed


@every_form
def test_an_enclosure_holds_every_loss_over_a_box(form: str) -> None:
    for box in boxed_losses(form):
        assert (box.losses >= box.least - box.tolerance).all()
        assert (box.losses <= box.greatest + box.tolerance).all()


@every_form_of_known_range
def test_the_ends_of_an_enclosure_are_losses_over_the_box(form: str) -> None:
    for box in boxed_losses(form):
        assert box.losses.min(0) == pytest.approx(box.least, abs=box.tolerance)
        assert box.losses.max(0) == pytest.approx(box.greatest, abs=box.tolerance)


@every_form_of_known_range
def test_the_range_of_a_loss_is_its_enclosure_over_the_cube(form: str) -> None:
    for box in boxed_losses(form)[::3]:
        low, high = box.loss.range()
        assert np.array_equal(low, box.least.min(-1))
        assert np.array_equal(high, box.greatest.max(-1))


@every_form
def test_a_normalised_loss_lies_between_0_and_1(form: str) -> None:
    for box in boxed_losses(form):
        losses = box.loss.normalised().losses(box.points)
        assert (losses >= -box.tolerance).all()
        assert (losses <= 1 + box.tolerance).all()


@every_form
def test_a_normalised_loss_is_the_loss_in_its_own_units(form: str) -> None:
    for box in boxed_losses(form):
        in_own_units = losses_in_own_units(box.loss.normalised(), box.points)
        assert in_own_units == pytest.approx(box.losses, abs=box.tolerance)


@every_form
def test_a_normalised_loss_fills_the_unit_interval_unless_it_is_constant(form: str) -> None:
    for loss in losses_of_form(form):
        low, high = loss.range()
        normalised_low, normalised_high = loss.normalised().range()
        tolerance = 1e-12 * size(loss)
        assert normalised_low == pytest.approx(np.zeros_like(low), abs=tolerance)
        is_constant = high <= low
        assert normalised_high == pytest.approx(np.where(is_constant, 0.0, 1.0), abs=tolerance)


def assert_lipschitz_between(loss: Loss, first: Array, second: Array) -> None:
    """Check that |l(a, y) - l(a, z)| <= L max_j |y_j - z_j| of outcomes y and z (T, d)."""
    change = np.abs(loss.losses(first) - loss.losses(second)).max(-1)
    distance = np.abs(first - second).max(-1).reshape(-1, *(1,) * len(loss.stack))
    greatest_change = loss.lipschitz() * distance * (1 + 1e-9)
    assert (change <= greatest_change + 1e-12 * size(loss)).all()


@every_form
def test_a_loss_is_no_steeper_than_its_lipschitz_constant(form: str) -> None:
    """Near, far, and in the corner at 0."""
    for seed, loss in enumerate(losses_of_form(form)):
        constant = loss.lipschitz()
        assert constant.shape == loss.stack
        assert not np.isnan(constant).any()
        y = random_outcomes(loss.outcomes)
        far = np.random.default_rng([9, seed]).random(y.shape)
        near = np.clip(y + 1e-3 * (far - 0.5), 0, 1)
        for z in (far, near, np.zeros_like(y)):
            assert_lipschitz_between(loss, y, z)
            assert_lipschitz_between(loss, y / 100, z / 100)


def test_a_sum_that_cancels_to_0_has_a_fractional_power_of_0() -> None:
    """A rounding error below 0 would have none."""
    loss = PowerOfSum([[-0.1, -0.7]], np.array(0.5), intercept=np.array([0.8]))
    assert 0 <= float(loss.losses([1.0, 1.0])[0]) < 1e-7


@pytest.mark.parametrize("outcomes", range(2, 12))
def test_sums_that_are_0_but_for_rounding_have_a_fractional_power(outcomes: int) -> None:
    rng = np.random.default_rng(outcomes)
    weights = -rng.random((20, 1, outcomes))
    barely_above = np.nextafter(-weights.sum(-1), 2) + 1e-15
    loss = PowerOfSum(weights, np.array(0.5), intercept=barely_above)
    assert (loss.losses(np.ones(outcomes)) < 1e-6).all()


OUTCOMES = random_outcomes(2)


@cache
def stack_of_form(form: str) -> Loss:
    """Return four normalised losses of three actions and two outcomes."""
    draw = Draw(np.random.default_rng(1), stack=(4,), actions=3, outcomes=2, zeros=0.1)
    return FORMS[form](draw).normalised()


@every_form
@pytest.mark.parametrize(
    "index", [0, -1, slice(1, 3), slice(None, None, 2), np.array([3, 0, 3])], ids=str
)
def test_what_is_picked_from_a_stack_is_part_of_it(
    form: str, index: int | slice | np.ndarray
) -> None:
    stack = stack_of_form(form)
    picked = stack[index]
    assert type(picked) is type(stack)
    assert picked.losses(OUTCOMES) == pytest.approx(stack.losses(OUTCOMES)[:, index], abs=1e-14)
    assert np.array_equal(picked.unit_scale, stack.unit_scale[index])
    assert np.array_equal(picked.unit_offset, stack.unit_offset[index])
    assert np.array_equal(picked.lipschitz(), stack.lipschitz()[index])
    assert picked.actions == 3
    assert picked.outcomes == 2
    if picked.stack:
        assert len(picked) == len(np.arange(4)[index])


@every_form
@pytest.mark.parametrize("seed", range(20))
def test_unique_losses_are_one_of_each_in_order(form: str, seed: int) -> None:
    picks = np.random.default_rng(seed).integers(4, size=1 + seed)
    repeated_losses = stack_of_form(form)[picks]
    types, type_of = unique_losses(repeated_losses)
    expected_types, _ = pd.factorize(picks)
    assert type_of.tolist() == expected_types.tolist()
    assert len(types) == len(set(picks.tolist()))
    assert np.array_equal(types[type_of].losses(OUTCOMES), repeated_losses.losses(OUTCOMES))
    assert np.array_equal(types[type_of].unit_scale, repeated_losses.unit_scale)


def test_minus_zero_is_the_same_loss_as_zero() -> None:
    _, type_of = unique_losses(Linear([[[0.0]], [[-0.0]], [[0.0]]]))
    assert type_of.tolist() == [0, 0, 0]


def test_different_losses_of_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Factors that are all alike do not see which of two weights is which."""
    factors_alike = SimpleNamespace(integers=lambda _, size, dtype: np.zeros(size, dtype))
    monkeypatch.setattr(base, "stream", lambda *_: factors_alike)
    loss = Linear([[[1.0, 2.0]], [[2.0, 1.0]]])
    types, type_of = unique_losses(loss)
    assert types is loss
    assert type_of.tolist() == [0, 1]


BOX = Box([0.1, 0.3], [0.6, 1.0])
LONGEST_SIDE = 0.7
CORNERS_AND_OUTCOMES = np.vstack([np.zeros(2), np.ones(2), OUTCOMES])
PULLED_BACK: dict[str, Callable[[], Loss]] = {
    "linear": lambda: stack_of_form("linear"),
    "separable": lambda: stack_of_form("separable"),
    "centred": lambda: stack_of_form("centred"),
    "minimum": lambda: stack_of_form("minimum"),
    "convex": lambda: stack_of_form("convex"),
    "lipschitz": lambda: stack_of_form("lipschitz"),
    "power": lambda: PowerOfSum(
        [[[1.0, 2.0], [0.5, 0.0]]], [3.0], intercept=[[0.5, 0.25]]
    ).normalised(),
    "exponential": lambda: ExponentialOfSum([[[1.0, -2.0], [0.5, 0.0]]]).normalised(),
}
every_pulled_back = pytest.mark.parametrize("name", PULLED_BACK)


@every_pulled_back
def test_a_loss_pulled_back_to_the_unit_cube_is_the_loss_over_the_box(name: str) -> None:
    loss = PULLED_BACK[name]()
    losses = BOX.pulled_back(loss).losses(CORNERS_AND_OUTCOMES)
    assert losses == pytest.approx(loss.losses(BOX.from_unit(CORNERS_AND_OUTCOMES)), abs=1e-9)


@every_pulled_back
def test_a_loss_pulled_back_and_normalised_keeps_its_own_units(name: str) -> None:
    loss = PULLED_BACK[name]()
    normalised = BOX.pulled_back(loss).normalised()
    losses = normalised.losses(CORNERS_AND_OUTCOMES)
    assert losses.min() >= -1e-9
    assert losses.max() <= 1 + 1e-9
    expected = losses_in_own_units(loss, BOX.from_unit(CORNERS_AND_OUTCOMES))
    in_own_units = losses_in_own_units(normalised, CORNERS_AND_OUTCOMES)
    assert in_own_units == pytest.approx(expected, abs=1e-9)


@every_pulled_back
def test_a_loss_pulled_back_is_less_steep_by_the_longest_side(name: str) -> None:
    loss = PULLED_BACK[name]()
    constant = BOX.pulled_back(loss).lipschitz()
    assert (constant <= LONGEST_SIDE * loss.lipschitz() + 1e-9).all()


def test_outcomes_go_from_the_unit_cube_to_a_box_and_back() -> None:
    outcomes_in_box = BOX.from_unit(CORNERS_AND_OUTCOMES)
    assert BOX.to_unit(outcomes_in_box) == pytest.approx(CORNERS_AND_OUTCOMES)


@every_form
def test_exposure_is_the_fall_of_the_loss_good_by_good(form: str) -> None:
    """Each good rises from 0 to 1 while the other is at 1/2."""
    loss = stack_of_form(form)
    losses_at_low = np.moveaxis(loss.losses(np.array([[0.0, 0.5], [0.5, 0.0]])), 0, -1)
    losses_at_high = np.moveaxis(loss.losses(np.array([[1.0, 0.5], [0.5, 1.0]])), 0, -1)
    gains = np.maximum(losses_at_low - losses_at_high, 0.0)
    budget = gains.sum(2).max(1)[:, None, None]
    expected = np.divide(gains, budget, out=np.zeros_like(gains), where=budget > 1e-9)
    assert exposure(loss) == pytest.approx(expected, abs=1e-9)


@every_form
def test_every_array_of_a_form_must_be_finite(form: str) -> None:
    stack = stack_of_form(form)
    for field in stack.AXES:
        broken = np.full_like(getattr(stack, field), np.nan)
        with pytest.raises(ValueError, match=rf"{field}|exponent 1|centre 0"):
            replace(stack, **{field: broken})


@every_form
@pytest.mark.parametrize("outcome", [[0.5], [0.5, 0.5, 0.5], [[0.5, 0.5, 0.5]], 0.5], ids=str)
def test_outcomes_of_another_number_of_coordinates_are_refused(
    form: str, outcome: list[float]
) -> None:
    stack = stack_of_form(form)
    for loss in (stack, stack[0]):
        with pytest.raises(ValueError, match="an outcome has 2 coordinates"):
            loss.losses(outcome)
        with pytest.raises(ValueError, match="an outcome has 2 coordinates"):
            loss.enclosure(outcome, outcome)


class Refusal(NamedTuple):
    """Arguments that make no loss or no space, and what the error says."""

    make: type
    arguments: TomlTable
    message: str


TWO_BY_TWO = [[1.0, 2.0], [3.0, 4.0]]
INF = float("inf")
SEPARABLE: TomlTable = {"weights": TWO_BY_TWO, "exponent": 0.5}
POWER: TomlTable = {"weights": TWO_BY_TWO, "exponent": np.array(2.0)}
LIPSCHITZ: TomlTable = {
    "function": np.abs,
    "constant": np.array(1.0),
    "shape": (1,),
    "dimension": 1,
}
LIPSCHITZ_OF_ONE_ROW: TomlTable = LIPSCHITZ | {"offset": np.zeros(1)}
REFUSALS = [
    Refusal(
        SeparablePower, SEPARABLE | {"weights": [[1.0, INF], [0.0, 0.0]]}, "weights holds a number"
    ),
    Refusal(SeparablePower, SEPARABLE | {"exponent": 0.0}, "exponent must be positive"),
    Refusal(SeparablePower, SEPARABLE | {"exponent": -0.5}, "exponent must be positive"),
    Refusal(
        SeparablePower,
        SEPARABLE | {"unit_offset": -INF},
        "unit_offset holds a number that is not finite",
    ),
    Refusal(SeparablePower, SEPARABLE | {"weights": [1.0, 2.0]}, r"shape \(2,\); give \(actions"),
    Refusal(SeparablePower, SEPARABLE | {"weights": np.empty((2, 0))}, r"have shape \(2, 0\)"),
    Refusal(SeparablePower, SEPARABLE | {"offset": [0.0, 0.0, 0.0]}, "broadcast"),
    Refusal(SeparablePower, SEPARABLE | {"exponent": [0.5, 0.5]}, "broadcast"),
    Refusal(
        Linear,
        {"weights": TWO_BY_TWO, "exponent": np.array(2.0)},
        "exponent 1; use SeparablePower",
    ),
    Refusal(
        Linear, {"weights": TWO_BY_TWO, "centre": np.array(0.5)}, "centre 0; use SeparablePower"
    ),
    Refusal(
        PowerOfSum, {"weights": [[-1.0]], "exponent": 0.5}, "only an integer exponent is defined"
    ),
    Refusal(
        PowerOfSum,
        {"weights": [[1.0]], "exponent": 1.5, "intercept": np.array(-0.1)},
        "only an integer",
    ),
    Refusal(
        PowerOfSum,
        {"weights": [[2.0]], "exponent": -2.0, "intercept": np.array(-1.0)},
        "0, where the exponent",
    ),
    Refusal(
        PowerOfSum,
        {"weights": [[1.0]], "exponent": -1.0},
        "0, where the exponent must be positive",
    ),
    Refusal(
        PowerOfSum, {"weights": [[0.0]], "exponent": 0.0}, "0, where the exponent must be positive"
    ),
    Refusal(PowerOfSum, POWER | {"floor": 1.0}, r"floor must lie in \[0, 1\)"),
    Refusal(PowerOfSum, POWER | {"power": 0.0}, "logarithm .* needs a floor"),
    Refusal(PowerOfSum, POWER | {"power": -1.0}, "negative power needs a floor"),
    Refusal(
        ExponentialOfSum,
        {"weights": [TWO_BY_TWO, TWO_BY_TWO], "power": [1.0, -0.5]},
        "negative power needs a",
    ),
    Refusal(
        ExponentialOfSum, {"weights": TWO_BY_TWO, "floor": -0.1}, r"floor must lie in \[0, 1\)"
    ),
    Refusal(
        MinimumOfRatios,
        {"requirements": [[1.0, 2.0], [0.0, 0.0]]},
        "one of each action positive",
    ),
    Refusal(MinimumOfRatios, {"requirements": [[1.0, -2.0]]}, "requirements must be at least 0"),
    Refusal(Convex1D, {"kinks": [[1.0, -1.0]], "knots": [[0.2, 0.4]]}, "kinks must be at least 0"),
    Refusal(
        Convex1D, {"kinks": [1.0], "knots": [0.5]}, r"have shape \(1,\); give \(actions, terms\)"
    ),
    Refusal(
        Convex1D,
        {"kinks": [[1.0]], "knots": [[0.5]], "coordinate": 1},
        "coordinate 1 is not one",
    ),
    Refusal(
        Convex1D, {"kinks": [[1.0]], "knots": [[0.5]], "coordinate": -1}, "coordinate -1 is not"
    ),
    Refusal(LipschitzLoss, LIPSCHITZ | {"constant": np.array(-1.0)}, "constant must be at least 0"),
    Refusal(LipschitzLoss, LIPSCHITZ | {"low": np.array(2.0)}, "must ascend"),
    Refusal(LipschitzLoss, LIPSCHITZ | {"shape": ()}, r"give \(actions,\) or \(losses, actions"),
    Refusal(LipschitzLoss, LIPSCHITZ | {"shape": (1, 1, 1)}, r"give \(actions,\) or"),
    Refusal(
        LipschitzLoss,
        LIPSCHITZ_OF_ONE_ROW | {"row": np.array(1.0)},
        "row 1: give whole .* from 0 to 0",
    ),
    Refusal(
        LipschitzLoss, LIPSCHITZ_OF_ONE_ROW | {"row": np.array(-1.0)}, "row -1: give whole numbers"
    ),
    Refusal(
        LipschitzLoss, LIPSCHITZ_OF_ONE_ROW | {"row": np.array(0.5)}, "row 0.5: give whole numbers"
    ),
    Refusal(Box, {"low": [0.0], "high": [0.0]}, "above its low"),
    Refusal(Box, {"low": [0.0], "high": [INF]}, "finite"),
    Refusal(Box, {"low": [0.0, 1.0], "high": [1.0]}, "one number per coordinate"),
    Refusal(Polytope, {"vertices": [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]}, "span all dimensions"),
]


@pytest.mark.parametrize(("make", "arguments", "message"), REFUSALS)
def test_what_is_no_loss_or_no_space_is_refused(
    make: type, arguments: TomlTable, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make(**arguments)


def test_a_users_function_that_returns_another_shape_is_refused() -> None:
    loss = LipschitzLoss(**LIPSCHITZ | {"shape": (2,)})
    with pytest.raises(ValueError, match=r"return \(1, 2\)"):
        loss.losses([0.5])


def test_a_users_function_that_leaves_its_range_is_refused() -> None:
    loss = LipschitzLoss(**LIPSCHITZ | {"function": np.exp})
    with pytest.raises(ValueError, match="left its declared range; widen low and high"):
        loss.losses([0.5])


TALL_BOX = Box([-1.0, 2.0, 0.5], [1.0, 5.0, 0.75])


def test_a_loss_that_is_defined_over_the_unit_cube_alone_is_not_pulled_back() -> None:
    loss = ExponentialOfSum(np.ones((1, 3)), power=0.0, floor=0.1)
    with pytest.raises(ValueError, match="unit cube"):
        TALL_BOX.pulled_back(loss)


def test_a_loss_of_another_number_of_outcomes_is_not_pulled_back() -> None:
    with pytest.raises(ValueError, match="2 outcomes in 3"):
        TALL_BOX.pulled_back(Linear(np.ones((1, 2))))


TRIANGLE = [[0.0, 0.0], [4.0, 0.0], [0.0, 2.0]]


def test_a_polytope_keeps_what_is_inside() -> None:
    space = Polytope(TRIANGLE)
    shares_of_vertices = np.random.default_rng(3).dirichlet(np.ones(3), 100)
    inside = space.to_unit(shares_of_vertices @ np.array(TRIANGLE))
    assert space.move_inside(inside) == pytest.approx(inside, abs=1e-12)


def test_a_polytope_draws_what_is_outside_to_its_border() -> None:
    """The long side of the triangle is where the coordinates in units of the cube sum to 1."""
    points = np.random.default_rng(3).random((400, 2))
    is_outside = points.sum(1) > 1
    assert 0.3 < is_outside.mean() < 0.7
    confined = Polytope(TRIANGLE).move_inside(points)
    assert confined[is_outside].sum(1) == pytest.approx(1.0)
    assert confined[~is_outside] == pytest.approx(points[~is_outside], abs=1e-12)


def test_a_polytope_of_one_dimension_is_an_interval() -> None:
    interval = Polytope([[1.0], [3.0], [2.0]])
    assert interval.move_inside([[0.3]]) == pytest.approx(np.array([[0.3]]))


def test_the_simplex_draws_what_is_outside_to_the_nearest_of_its_points() -> None:
    simplex = Polytope(np.vstack([np.zeros(3), np.eye(3)]))
    assert simplex.move_inside([0.2, 0.3, 0.4]) == pytest.approx([0.2, 0.3, 0.4])
    assert simplex.move_inside([0.5, 0.5, 0.5]) == pytest.approx([1 / 3] * 3)


def test_a_market_in_a_polytope_keeps_its_guarantee() -> None:
    traders = cohort_table("traders", 5, 3)
    scenario = make_scenario(traders, rounds=200, space={"vertices": TRIANGLE})
    model = play_to_end(scenario)
    outcomes = model.rounds_frame()[["y_0", "y_1"]].to_numpy()
    assert (outcomes.sum(1) <= 1 + 1e-9).all()
    agents = model.agents_frame()
    assert (agents["guarantee"] == "decision-swap").all()
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()
