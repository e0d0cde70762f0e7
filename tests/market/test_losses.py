"""One suite that every loss form passes: formula, ranges, slopes, stacks; spaces of outcomes."""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import worlds

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
    unique_losses,
)
from regretless.market.losses.outcome_spaces import Box, Polytope
from regretless.market.markets.price_impact import exposure

DRAWS = 60  # losses of each form
NAN, INF = float("nan"), float("inf")
# multiples of 1/8: a range of numbers of one size is no smaller than 1/8, so rounding stays small
EIGHTHS, FEW_EIGHTHS, SHARES, UNIT = (
    np.arange(low, high + 1) / 8 for low, high in ((-40, 40), (-12, 12), (0, 16), (0, 8))
)


@dataclass(frozen=True)
class Distance:
    """A function with constant ``rise``: ``rise`` times the sup distance to each action's point."""

    points: Array
    rise: float

    def __call__(self, y: Array) -> Array:
        """Tables of values at outcomes (T, d)."""
        spread = y.reshape(len(y), *(1,) * (self.points.ndim - 1), y.shape[-1])
        return np.asarray(self.rise * np.abs(spread - self.points).max(-1))


@dataclass(frozen=True)
class Shape:
    """Sizes of a drawn loss, and arrays that fit them."""

    rng: np.random.Generator
    leading: tuple[int, ...]
    actions: int
    outcomes: int
    zeros: float

    def per_loss(self, elements: Any, *axes: int) -> Array:
        """Draw numbers (...), with further axes; a share are the one nearest to 0."""
        drawn = self.rng.choice(elements, (*self.leading, *axes))
        least = np.asarray(elements)[np.abs(elements).argmin()]
        return np.asarray(np.where(self.rng.random(drawn.shape) < self.zeros, least, drawn))

    def per_action(self, elements: Any) -> Array:
        return self.per_loss(elements, self.actions)

    def table(self, elements: Any) -> Array:
        return self.per_loss(elements, self.actions, self.outcomes)


def linear(shape: Shape) -> Loss:
    return Linear(shape.table(EIGHTHS), shape.per_action(EIGHTHS))


def separable(shape: Shape) -> Loss:
    exponent = shape.per_loss(np.arange(1, 33) / 8)
    return SeparablePower(shape.table(EIGHTHS), exponent, offset=shape.per_action(EIGHTHS))


def centred(shape: Shape) -> Loss:
    exponent = shape.per_loss([0.5, 1.0, 1.5, 2.0, 3.0])
    centre = shape.table(FEW_EIGHTHS)
    return SeparablePower(shape.table(EIGHTHS), exponent, centre, offset=shape.per_action(EIGHTHS))


def inside(shape: Shape) -> dict[str, Array]:
    power = shape.per_loss([-1.0, 0.0, 0.5, 1.0, 2.0])
    floor = shape.per_loss([0.0, 0.125, 0.5])
    floor = np.where((power <= 0) & (floor == 0), 0.25, floor)
    return {"weights": shape.table(FEW_EIGHTHS), "power": power, "floor": floor}


def around(shape: Shape) -> dict[str, Array]:
    return {"amplitude": shape.per_action(EIGHTHS), "offset": shape.per_action(EIGHTHS)}


def whole_power(shape: Shape) -> Loss:
    exponent = shape.per_loss([1.0, 2.0, 3.0, 4.0])
    intercept = shape.per_action(FEW_EIGHTHS)
    return PowerOfSum(exponent=exponent, intercept=intercept, **inside(shape), **around(shape))


def fractional_power(shape: Shape) -> Loss:
    exponent = shape.per_loss([0.25, 0.5, 1.5, 2.5])
    parts = inside(shape)
    exact = (parts["floor"] == 0)[..., None]  # corners give sums without rounding
    margin = np.where(exact, shape.per_action(SHARES), 0.125 + shape.per_action(SHARES))
    intercept = margin - ExponentialOfSum(**parts).sum_range()[0]
    return PowerOfSum(exponent=exponent, intercept=intercept, **parts, **around(shape))


def negative_power(shape: Shape) -> Loss:
    below = shape.rng.random() < 0.5
    exponent = shape.per_loss([-1.0, -2.0] if below else [-0.5, -1.0, -2.0])
    parts = inside(shape)
    low, high = ExponentialOfSum(**parts).sum_range()
    margin = 0.5 + shape.per_action(SHARES)
    intercept = -margin - high if below else margin - low
    return PowerOfSum(exponent=exponent, intercept=intercept, **parts, **around(shape))


def exponential(shape: Shape) -> Loss:
    return ExponentialOfSum(**inside(shape), **around(shape))


def minimum(shape: Shape) -> Loss:
    needs = shape.table(SHARES)
    needs[..., 0] += 0.125 * (needs.max(-1) == 0)
    return MinimumOfRatios(needs, **around(shape))


def convex(shape: Shape) -> Loss:
    return Convex1D(
        shape.table(SHARES),  # as many kinks as there are outcomes, for the variety
        shape.table(FEW_EIGHTHS),
        shape.per_action(EIGHTHS),
        offset=shape.per_action(EIGHTHS),
        coordinate=int(shape.rng.integers(shape.outcomes)),
        dimension=shape.outcomes,
    )


def trade(shape: Shape) -> Loss:
    return Trade(shape.table(EIGHTHS), shape.table(UNIT), offset=shape.per_action(EIGHTHS))


def lipschitz(shape: Shape) -> Loss:
    leading = shape.leading[-1:]  # a single loss or a stack, no stacks of stacks
    shape = replace(shape, leading=leading)
    rise = float(shape.rng.choice([0.5, 2.0]))
    return LipschitzLoss(
        Distance(shape.table(UNIT), rise),
        np.array(rise),
        (*leading, shape.actions),
        shape.outcomes,
        high=np.array(rise),
        amplitude=shape.per_loss(EIGHTHS),
        offset=shape.per_action(EIGHTHS),
    )


FORMS: dict[str, Callable[[Shape], Loss]] = {
    make.__name__: make
    for make in (
        linear, separable, centred, whole_power, fractional_power, negative_power, exponential,
        minimum, convex, trade, lipschitz,
    )
}  # fmt: skip
EXACT = [name for name in FORMS if name != "lipschitz"]
every_form = pytest.mark.parametrize("form", FORMS)


def drawn(form: str) -> Iterator[tuple[Loss, np.random.Generator]]:
    """Draw single losses, stacks, and stacks of stacks of one form, some constant."""
    for seed in range(DRAWS):
        rng, zeros = np.random.default_rng([7, seed]), 1.0 if seed % 20 == 0 else 0.1
        leading = [(), (3,), (2, 2)][seed % 3]
        yield FORMS[form](Shape(rng, leading, *rng.integers(1, 4, 2).tolist(), zeros)), rng


def random_outcomes(outcomes: int, count: int = 50) -> Array:
    return np.random.default_rng(outcomes).random((count, outcomes))


def size(loss: Loss) -> float:
    """Return the size of the numbers that a loss adds up, for tolerances."""
    return 1 + float(max(np.abs(loss.offset).max(), *(np.abs(end).max() for end in loss.range())))


def own_units(loss: Loss, outcomes: Array) -> Array:
    """Losses in the utility's own units (T, ..., A)."""
    scale, offset = loss.unit_scale[..., None], loss.unit_offset[..., None]
    return np.asarray(offset + scale * loss.losses(outcomes))


def plain_sum(loss: Any, at: tuple[int, ...], y: Array) -> float:
    """Return the sum inside a power or an exponential, one action at one outcome."""
    power, floor = loss.power[at[:-1]], loss.floor[at[:-1]]
    total = float(loss.intercept[at]) if isinstance(loss, PowerOfSum) else 0.0
    for weight, level in zip(loss.weights[at], y, strict=True):
        high = max(level, floor)
        total += weight * (math.log(high) if power == 0 else high**power)
    return total


def plain(loss: Any, at: tuple[int, ...], y: Array) -> float:  # noqa: PLR0911 - one per form
    """Compute one action's loss at one outcome from the formula, a number at a time."""
    offset, amplitude = float(loss.offset[at]), getattr(loss, "amplitude", None)
    match loss:
        case SeparablePower():
            terms = zip(loss.weights[at], y, loss.centre[at], strict=True)
            return offset + sum(w * abs(v - c) ** loss.exponent[at[:-1]] for w, v, c in terms)
        case PowerOfSum():
            return offset + amplitude[at] * plain_sum(loss, at, y) ** loss.exponent[at[:-1]]
        case ExponentialOfSum():
            return offset + amplitude[at] * math.exp(plain_sum(loss, at, y))
        case MinimumOfRatios():
            needs = zip(y, loss.requirements[at], strict=True)
            return offset + amplitude[at] * min(v / a for v, a in needs if a > 0)
        case Convex1D():
            v = y[loss.coordinate]
            bends = zip(loss.kinks[at], loss.knots[at], strict=True)
            return offset + loss.slope[at] * v + sum(k * max(v - knot, 0) for k, knot in bends)
        case Trade():
            orders = zip(loss.quantity[at], loss.limit[at], y, strict=True)
            return offset - sum(max(0.0, q * (limit - v)) for q, limit, v in orders)
        case _:
            far = max(abs(v - c) for v, c in zip(y, loss.function.points[at], strict=True))
            return offset + amplitude[at[:-1]] * loss.function.rise * far


@every_form
def test_losses_are_the_formula_in_plain_python(form: str) -> None:
    for loss, _ in drawn(form):
        outcomes = random_outcomes(loss.outcomes, 3)
        table = loss.losses(outcomes)
        assert table.shape == (3, *loss.offset.shape)
        assert loss.actions == loss.offset.shape[-1]
        assert (table == [loss.losses(y) for y in outcomes]).all()  # one by one, to the last bit
        expected = [plain(loss, tuple(index), outcomes[t]) for t, *index in np.ndindex(table.shape)]
        assert table.ravel() == pytest.approx(np.array(expected), abs=1e-12 * size(loss))


def turning_points(loss: Any, low: Array, high: Array) -> Array:
    """Points (P, d) of a box among which every action's extremes are, by the formula."""
    axes = [[low[j], high[j]] for j in range(loss.outcomes)]
    if isinstance(loss, SeparablePower):
        for j, axis in enumerate(axes):
            axis.extend(np.clip(np.unique(loss.centre[..., j]), low[j], high[j]))
    if isinstance(loss, Convex1D):
        ends = low[loss.coordinate], high[loss.coordinate]
        axes[loss.coordinate].extend(np.clip(np.unique(loss.knots), *ends))
    grid = list(itertools.product(*(sorted(set(axis)) for axis in axes)))
    if isinstance(loss, PowerOfSum):
        grid += [tuple(root(loss, at, low, high)) for at in np.ndindex(loss.offset.shape)]
    return np.array(grid)


def root(loss: PowerOfSum, at: tuple[int, ...], low: Array, high: Array) -> Array:
    """Find where the sum is nearest to 0, between its least and its greatest corner."""
    rising = loss.weights[at] * np.where(loss.power[at[:-1]] < 0, -1, 1) >= 0
    start, end = np.where(rising, low, high), np.where(rising, high, low)
    left, right = 0.0, 1.0
    for _ in range(60):
        middle = (left + right) / 2
        negative = plain_sum(loss, at, start + middle * (end - start)) < 0
        left, right = (middle, right) if negative else (left, middle)
    return np.asarray(start + left * (end - start))


@every_form
def test_boxes_are_enclosed_and_the_enclosure_is_attained(form: str) -> None:
    """Least and greatest loss bound it over a box and are losses of it; over the cube to [0, 1]."""
    for loss, rng in drawn(form):
        check_enclosure(loss, rng, exact=form in EXACT)


def check_enclosure(loss: Loss, rng: np.random.Generator, *, exact: bool) -> None:
    pairs = rng.random((2, 3, loss.outcomes))
    pairs[:, 0] = [[0.0], [1.0]]
    low, high = pairs.min(0), pairs.max(0)
    least, greatest = loss.enclosure(low, high)
    assert least.shape == greatest.shape == (3, *loss.offset.shape)
    slack = 1e-12 * size(loss)
    for t in range(3):
        points = low[t] + (high[t] - low[t]) * random_outcomes(loss.outcomes, 30)
        points = np.concatenate([points, turning_points(loss, low[t], high[t])])
        values = loss.losses(points)
        assert (values >= least[t] - slack).all()
        assert (values <= greatest[t] + slack).all()
        if exact:
            assert values.min(0) == pytest.approx(least[t], abs=slack)
            assert values.max(0) == pytest.approx(greatest[t], abs=slack)
    (low, high), normalised = loss.range(), loss.normalised()
    if exact:
        assert np.array_equal(low, least[0].min(-1))
        assert np.array_equal(high, greatest[0].max(-1))
    assert own_units(normalised, points) == pytest.approx(values, abs=slack)
    table = normalised.losses(points)
    assert ((table >= -slack) & (table <= 1 + slack)).all()
    assert normalised.range()[0] == pytest.approx(np.zeros_like(low), abs=slack)
    assert normalised.range()[1] == pytest.approx(np.where(high > low, 1.0, 0.0), abs=slack)


@every_form
def test_the_lipschitz_constant_bounds_every_slope(form: str) -> None:
    """|l(a, y) - l(a, z)| <= L max_j |y_j - z_j|, near, far, and in the corner at 0."""
    for loss, rng in drawn(form):
        constant = loss.lipschitz()
        assert constant.shape == loss.stack
        assert not np.isnan(constant).any()
        y = random_outcomes(loss.outcomes)
        step = rng.random(y.shape)
        for z in (step, np.clip(y + 1e-3 * (step - 0.5), 0, 1), np.zeros_like(y)):
            for first, second in ((y, z), (y / 100, z / 100)):
                moved = np.abs(loss.losses(first) - loss.losses(second)).max(-1)
                far = np.abs(first - second).max(-1).reshape(-1, *(1,) * len(loss.stack))
                assert (moved <= constant * far * (1 + 1e-9) + 1e-12 * size(loss)).all()


def test_a_rounding_error_below_zero_is_no_fractional_power() -> None:
    """A sum that cancels to 0 stays 0 where only a non-negative sum has a power."""
    loss = PowerOfSum([[-0.1, -0.7]], np.array(0.5), intercept=np.array([0.8]))
    rng = np.random.default_rng(0)
    assert 0 <= float(loss.losses([1.0, 1.0])[0]) < 1e-7
    for outcomes in range(2, 12):
        weights = -rng.random((20, 1, outcomes))
        sums = np.nextafter(-weights.sum(-1), 2) + 1e-15
        loss = PowerOfSum(weights, np.array(0.5), intercept=sums)
        assert (loss.losses(np.ones(outcomes)) < 1e-6).all()


WEIGHTS = np.arange(24.0).reshape(4, 3, 2) % 7
EACH = np.array([0.5, 1.0, 2.0, 3.0])
STACKS: dict[str, Any] = {
    "linear": Linear(WEIGHTS, np.arange(12.0).reshape(4, 3)),
    "separable": SeparablePower(-WEIGHTS, EACH),
    "centred": SeparablePower(WEIGHTS, EACH, centre=np.arange(24.0).reshape(4, 3, 2) / 24),
    "power of a sum": PowerOfSum(WEIGHTS, EACH, intercept=np.arange(12.0).reshape(4, 3)),
    "exponential of a sum": ExponentialOfSum(WEIGHTS / 7, EACH - 0.5, EACH / 9),
    "minimum of ratios": MinimumOfRatios(np.arange(24.0).reshape(4, 3, 2)),
    "trade": Trade(WEIGHTS - 3, WEIGHTS / 7, offset=EACH[:, None]),
    "convex": Convex1D(WEIGHTS, WEIGHTS / 7, slope=-EACH[:, None], coordinate=1, dimension=2),
    "lipschitz": LipschitzLoss(Distance(WEIGHTS / 24, 1.0), EACH * 2, (4, 3), 2),
}
STACKS = {name: stack.normalised() for name, stack in STACKS.items()}


@pytest.mark.parametrize("name", STACKS)
def test_indexing_a_stack_picks_losses(name: str) -> None:
    stack, outcomes = STACKS[name], random_outcomes(2)
    for index in (0, -1, slice(1, 3), slice(None, None, 2), np.array([3, 0, 3])):
        picked = stack[index]
        assert type(picked) is type(stack)
        assert picked.losses(outcomes) == pytest.approx(stack.losses(outcomes)[:, index], abs=1e-14)
        assert np.array_equal(picked.lipschitz(), stack.lipschitz()[index])
        assert np.array_equal(picked.unit_scale, stack.unit_scale[index])
        assert np.array_equal(picked.unit_offset, stack.unit_offset[index])
        assert (picked.actions, picked.outcomes) == (3, 2)
        if picked.stack:
            assert len(picked) == len(np.arange(4)[index])


@pytest.mark.parametrize("name", STACKS)
def test_unique_losses_keeps_one_of_each_in_order(name: str) -> None:
    stack = STACKS[name][np.array([2, 0, 2, 3, 0, 0])]
    types, type_of = unique_losses(stack)
    assert np.array_equal(type_of, [0, 1, 0, 2, 1, 1])
    assert len(types) == 3
    outcomes = random_outcomes(2)
    assert np.array_equal(types[type_of].losses(outcomes), stack.losses(outcomes))
    assert np.array_equal(types[type_of].unit_scale, stack.unit_scale)


BOX = Box([0.1, 0.3], [0.6, 1.0])


@pytest.mark.parametrize("name", sorted({*STACKS} - {"exponential of a sum", "trade"}))
def test_a_pulled_back_loss_is_the_loss_in_own_units(name: str) -> None:
    loss, unit = STACKS[name], np.vstack([np.zeros(2), np.ones(2), random_outcomes(2)])
    pulled = BOX.pulled_back(loss)
    assert pulled.losses(unit) == pytest.approx(loss.losses(BOX.from_unit(unit)), abs=1e-9)
    table = pulled.normalised().losses(unit)
    assert -1e-9 <= table.min() <= table.max() <= 1 + 1e-9
    own = own_units(loss, BOX.from_unit(unit))
    assert own_units(pulled.normalised(), unit) == pytest.approx(own, abs=1e-9)
    assert (pulled.lipschitz() <= 0.7 * loss.lipschitz() + 1e-9).all()
    assert BOX.to_unit(BOX.from_unit(unit)) == pytest.approx(unit)


@pytest.mark.parametrize("name", STACKS)
def test_exposure_is_the_fall_of_the_loss_good_by_good(name: str) -> None:
    loss = STACKS[name]
    gains = np.zeros((4, 3, 2))
    for good in range(2):
        low, high = np.full(2, 0.5), np.full(2, 0.5)
        low[good], high[good] = 0.0, 1.0
        gains[..., good] = np.maximum(loss.losses(low) - loss.losses(high), 0.0)
    budget = gains.sum(2).max(1)[:, None, None]
    expected = np.divide(gains, budget, out=np.zeros_like(gains), where=budget > 1e-9)
    assert exposure(loss) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", STACKS)
def test_every_array_of_every_form_must_be_finite(name: str) -> None:
    """The error names the array."""
    for field in STACKS[name].AXES:
        broken = np.full_like(getattr(STACKS[name], field), NAN)
        with pytest.raises(ValueError, match=rf"{field}|exponent 1|centre 0"):
            replace(STACKS[name], **{field: broken})


TWO, MINUS = [[1.0, 2.0], [3.0, 4.0]], np.array(-1.0)
HALF: Any = partial(SeparablePower, weights=TWO, exponent=0.5)
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: HALF(weights=[[1.0, INF], [0.0, 0.0]]), "weights holds a number that is not finite"),
    (lambda: HALF(exponent=INF), "exponent holds a number that is not finite"),
    (lambda: HALF(exponent=0.0), "exponent must be positive"),
    (lambda: HALF(exponent=-0.5), "exponent must be positive"),
    (lambda: HALF(unit_offset=-INF), "unit_offset holds a number that is not finite"),
    (lambda: HALF(weights=[1.0, 2.0]), r"weights have shape \(2,\)"),
    (lambda: HALF(weights=np.empty((2, 0))), r"weights have shape \(2, 0\)"),
    (lambda: HALF(offset=[0.0, 0.0, 0.0]), "broadcast"),
    (lambda: HALF(exponent=[0.5, 0.5]), "broadcast"),
    (lambda: HALF(centre=np.zeros((3, 2))), "broadcast"),
    (lambda: Linear(TWO, exponent=np.array(2.0)), "exponent 1; use SeparablePower"),
    (lambda: Linear(TWO, centre=np.array(0.5)), "centre 0; use SeparablePower"),
    (lambda: PowerOfSum([[-1.0]], np.array(0.5)), "only an integer exponent is defined"),
    (lambda: PowerOfSum([[1.0]], np.array(1.5), intercept=MINUS / 10), "only an integer exponent"),
    (lambda: PowerOfSum([[2.0]], MINUS - 1, intercept=MINUS), "0, where the exponent must be pos"),
    (lambda: PowerOfSum([1.0], np.array(2.0)), r"weights have shape \(1,\); give \(actions, outc"),
    (lambda: PowerOfSum(TWO, np.array(1.0), floor=-MINUS), r"floor must lie in \[0, 1\)"),
    (lambda: MinimumOfRatios([1.0, 2.0]), r"requirements have shape \(2,\); give \(actions, outc"),
    (lambda: PowerOfSum([[1.0]], np.array(-1.0)), "0, where the exponent must be positive"),
    (lambda: PowerOfSum([[0.0]], np.array(0.0)), "0, where the exponent must be positive"),
    (lambda: PowerOfSum(TWO, np.array(2.0), np.array(0.0)), "logarithm .* needs a floor"),
    (lambda: PowerOfSum(TWO, np.array(2.0), np.array(-1.0)), "negative power needs a floor"),
    (lambda: ExponentialOfSum(TWO, np.array(0.0)), "logarithm .* needs a floor"),
    (lambda: ExponentialOfSum([TWO, TWO], np.array([1.0, -0.5])), "negative power needs a floor"),
    (lambda: ExponentialOfSum(TWO, np.array(1.0), np.array(-0.1)), r"floor must lie in \[0, 1\)"),
    (lambda: MinimumOfRatios([[1.0, 2.0], [0.0, 0.0]]), "one of each action positive"),
    (lambda: MinimumOfRatios([[1.0, -2.0]]), "requirements must be at least 0"),
    (lambda: Convex1D([[1.0, -1.0]], [[0.2, 0.4]]), "kinks must be at least 0"),
    (lambda: Convex1D([1.0], [0.5]), r"kinks have shape \(1,\); give \(actions, terms\)"),
    (lambda: Convex1D([[1.0]], [[0.5]], coordinate=1), "coordinate 1 is not one of 1"),
    (lambda: Convex1D([[1.0]], [[0.5]], coordinate=-1, dimension=2), "coordinate -1 is not"),
    (lambda: LipschitzLoss(np.abs, np.array(-1.0), (1,), 1), "constant must be at least 0"),
    (lambda: LipschitzLoss(np.abs, np.array(1.0), (1,), 1, low=np.array(2.0)), "must ascend"),
    (lambda: LipschitzLoss(np.abs, np.array(1.0), (), 1), r"give \(actions,\) or \(losses, act"),
    (lambda: LipschitzLoss(np.abs, np.array(1.0), (1, 1, 1), 1), r"give \(actions,\) or"),
    (lambda: LipschitzLoss(np.abs, np.array(1.0), (2,), 1).losses([0.5]), r"return \(1, 2\)"),
    (
        lambda: LipschitzLoss(np.exp, np.array(3.0), (1,), 1).losses([0.5]),
        "left its declared range; widen low and high",
    ),
]


def test_losses_outside_their_domain_are_refused() -> None:
    for make, says in REFUSED:
        with pytest.raises(ValueError, match=says):
            make()


def test_outcomes_of_a_wrong_length_are_refused() -> None:
    wrong: list[Any] = [[0.5], [0.5, 0.5, 0.5], [[0.5, 0.5, 0.5]], 0.5]
    stacks = [one for stack in STACKS.values() for one in (stack, stack[0])]
    for loss, y in itertools.product(stacks, wrong):
        for asked in (loss.losses, lambda y, own=loss: own.enclosure(y, y)):
            with pytest.raises(ValueError, match="an outcome has 2 coordinates"):
                asked(y)


# Boxes and polytopes of outcomes.

TALL = Box([-1.0, 2.0, 0.5], [1.0, 5.0, 0.75])
TRIANGLE = [[0.0, 0.0], [4.0, 0.0], [0.0, 2.0]]


def test_a_transformed_sum_has_no_other_space() -> None:
    loss = ExponentialOfSum(np.ones((1, 3)), power=0.0, floor=0.1)
    with pytest.raises(ValueError, match="unit cube"):
        TALL.pulled_back(loss)
    with pytest.raises(ValueError, match="2 outcomes in 3"):
        TALL.pulled_back(Linear(np.ones((1, 2))))


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        ([0.0], [0.0], "above its low"),
        ([0.0], [np.inf], "finite"),
        ([0.0, 1.0], [1.0], "one number per coordinate"),
    ],
)
def test_a_box_needs_sides(low: Any, high: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Box(low, high)


def test_a_polytope_keeps_what_is_inside_and_draws_the_rest_to_its_border() -> None:
    space = Polytope(TRIANGLE)
    mixes = np.random.default_rng(3).dirichlet(np.ones(3), 100)
    inside = space.to_unit(mixes @ np.array(TRIANGLE))
    assert space.confined(inside) == pytest.approx(inside, abs=1e-12)
    cube = np.random.default_rng(3).random((400, 2))
    moved = space.confined(cube)
    assert (moved.sum(1) <= 1 + 1e-9).all()
    outside = cube.sum(1) > 1
    assert 0.3 < outside.mean() < 0.7
    assert moved[outside].sum(1) == pytest.approx(1.0)  # the long side, in units of the cube
    assert moved[~outside] == pytest.approx(cube[~outside], abs=1e-12)


def test_polytopes_of_one_and_three_dimensions() -> None:
    line = Polytope([[1.0], [3.0], [2.0]])
    assert line.confined([[0.3]]) == pytest.approx(np.array([[0.3]]))
    simplex = Polytope(np.vstack([np.zeros(3), np.eye(3)]))
    assert simplex.confined([0.2, 0.3, 0.4]) == pytest.approx([0.2, 0.3, 0.4])
    assert simplex.confined([0.5, 0.5, 0.5]) == pytest.approx([1 / 3] * 3)
    with pytest.raises(ValueError, match="span all dimensions"):
        Polytope([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])


def test_a_market_in_a_polytope_keeps_its_guarantee() -> None:
    traders, space = worlds.cohort("traders", 5, 3), {"vertices": TRIANGLE}
    model = worlds.played(worlds.scenario(traders, rounds=200, space=space))
    outcomes = model.rounds_frame()[["y_0", "y_1"]].to_numpy()
    assert (outcomes.sum(1) <= 1 + 1e-9).all()
    agents = model.agents_frame()
    assert (agents["guarantee"] == "decision-swap").all()
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()
