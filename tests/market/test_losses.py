"""One suite that every loss form passes: formula, ranges, slopes, stacks; spaces of outcomes."""

import itertools
import math
from dataclasses import dataclass, replace
from types import SimpleNamespace
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
    base,
    unique_losses,
)
from regretless.market.losses.outcome_spaces import Box, Polytope
from regretless.market.markets.price_impact import exposure

DRAWS = 60  # losses of each form
INF = float("inf")
# multiples of 1/8: a range of numbers of one size is no smaller than 1/8, so rounding stays small
EIGHTHS, FEW_EIGHTHS, SHARES, UNIT = (
    np.arange(low, high + 1) / 8 for low, high in ((-40, 40), (-12, 12), (0, 16), (0, 8))
)
FORMS = ["linear", "separable", "centred", "whole power", "fractional power", "negative power"]
FORMS += ["exponential", "minimum", "convex", "trade", "lipschitz"]
every_form = pytest.mark.parametrize("form", FORMS)
TRIANGLE = [[0.0, 0.0], [4.0, 0.0], [0.0, 2.0]]


@dataclass(frozen=True)
class Distance:
    """A function with constant ``rise``: ``rise`` times the sup distance to each action's point."""

    points: Array
    rise: float

    def __call__(self, y: Array) -> Array:
        spread = y.reshape(len(y), *(1,) * (self.points.ndim - 1), y.shape[-1])
        return np.asarray(self.rise * np.abs(spread - self.points).max(-1))


def made(form: str, rng: Any, *shape: int, zeros: float = 0.1) -> Loss:
    """Draw losses (..., actions, outcomes); a share of their numbers is the one nearest to 0."""
    *leading, actions, outcomes = shape

    def drawn(elements: Any, *axes: int) -> Array:
        found = rng.choice(elements, (*leading, *axes))
        least = np.asarray(elements)[np.abs(elements).argmin()]
        return np.asarray(np.where(rng.random(found.shape) < zeros, least, found))

    def table(elements: Array) -> Array:
        return drawn(elements, actions, outcomes)

    offset = {"offset": drawn(EIGHTHS, actions)}
    around = {"amplitude": drawn(EIGHTHS, actions)} | offset
    power, floor = drawn([-1.0, 0.0, 0.5, 1.0, 2.0]), drawn([0.0, 0.125, 0.5])
    floor = np.where((power <= 0) & (floor == 0), 0.25, floor)
    inside = {"weights": table(FEW_EIGHTHS), "power": power, "floor": floor}
    (low, high), margin = ExponentialOfSum(**inside).range_of_sum(), drawn(SHARES, actions)
    match form:
        case "linear":
            return Linear(table(EIGHTHS), **offset)
        case "separable":
            return SeparablePower(table(EIGHTHS), drawn(np.arange(1, 33) / 8), **offset)
        case "centred":
            exponent = drawn([0.5, 1.0, 1.5, 2.0, 3.0])
            return SeparablePower(table(EIGHTHS), exponent, table(FEW_EIGHTHS), **offset)
        case "whole power":
            exponent, intercept = drawn([1.0, 2.0, 3.0, 4.0]), drawn(FEW_EIGHTHS, actions)
        case "fractional power":  # without a floor corners give sums without rounding
            exponent = drawn([0.25, 0.5, 1.5, 2.5])
            intercept = margin + np.where(floor == 0, 0.0, 0.125)[..., None] - low
        case "negative power":
            below = rng.random() < 0.5
            exponent = drawn([-1.0, -2.0] if below else [-0.5, -1.0, -2.0])
            intercept = -0.5 - margin - high if below else 0.5 + margin - low
        case "exponential":
            return ExponentialOfSum(**inside, **around)
        case "minimum":
            needs = table(SHARES)
            needs[..., 0] += 0.125 * (needs.max(-1) == 0)
            return MinimumOfRatios(needs, **around)
        case "convex":
            place = {"coordinate": int(rng.integers(outcomes)), "dimension": outcomes}
            slope = drawn(EIGHTHS, actions)  # as many kinks as outcomes, for the variety
            return Convex1D(table(SHARES), table(FEW_EIGHTHS), slope, **offset, **place)
        case "trade":
            return Trade(table(EIGHTHS), table(UNIT), **offset)
        case _:
            rise = float(rng.choice([0.5, 2.0]))
            function, own = Distance(table(UNIT), rise), {"amplitude": drawn(EIGHTHS)} | offset
            size = (*leading, actions), outcomes
            return LipschitzLoss(function, np.array(rise), *size, high=np.array(rise), **own)
    return PowerOfSum(exponent=exponent, intercept=intercept, **inside, **around)


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


def plain(loss: Any, at: tuple[int, ...], y: Array) -> float:
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
def test_a_form_is_its_formula_and_knows_its_range_and_its_slope(form: str) -> None:
    """Of single losses, stacks, and stacks of stacks, some of them constant."""
    for seed in range(DRAWS):
        rng, leading = np.random.default_rng([7, seed]), [(), (3,), (2, 2)][seed % 3]
        leading = leading[-1:] if form == "lipschitz" else leading
        shape, zeros = rng.integers(1, 4, 2).tolist(), 1.0 if seed % 20 == 0 else 0.1
        loss = made(form, rng, *leading, *shape, zeros=zeros)
        check_formula(loss)
        check_enclosure(loss, rng, exact=form != "lipschitz")
        check_slope(loss, rng)


def check_formula(loss: Loss) -> None:
    outcomes = random_outcomes(loss.outcomes, 3)
    table = loss.losses(outcomes)
    assert table.shape == (3, *loss.offset.shape)
    assert loss.actions == loss.offset.shape[-1]
    assert (table == [loss.losses(y) for y in outcomes]).all()  # one by one, to the last bit
    expected = [plain(loss, tuple(index), outcomes[t]) for t, *index in np.ndindex(table.shape)]
    assert table.ravel() == pytest.approx(np.array(expected), abs=1e-12 * size(loss))


def check_enclosure(loss: Loss, rng: np.random.Generator, *, exact: bool) -> None:
    """Least and greatest loss bound it over a box and are losses of it; over the cube to [0, 1]."""
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


def check_slope(loss: Loss, rng: np.random.Generator) -> None:
    """|l(a, y) - l(a, z)| <= L max_j |y_j - z_j|, near, far, and in the corner at 0."""
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


BOX = Box([0.1, 0.3], [0.6, 1.0])
SUMS: list[Loss] = [
    PowerOfSum([[[1.0, 2.0], [0.5, 0.0]]], [3.0], intercept=[[0.5, 0.25]]).normalised(),
    ExponentialOfSum([[[1.0, -2.0], [0.5, 0.0]]]).normalised(),
]
OUTCOMES = random_outcomes(2)
STACKS = {form: made(form, np.random.default_rng(1), 4, 3, 2).normalised() for form in FORMS}


@every_form
def test_a_stack_is_picked_from_and_keeps_one_of_each_in_order(form: str) -> None:
    stack = STACKS[form]
    for index in (0, -1, slice(1, 3), slice(None, None, 2), np.array([3, 0, 3])):
        picked = stack[index]
        assert type(picked) is type(stack)
        assert picked.losses(OUTCOMES) == pytest.approx(stack.losses(OUTCOMES)[:, index], abs=1e-14)
        for name in ("unit_scale", "unit_offset"):
            assert np.array_equal(getattr(picked, name), getattr(stack, name)[index])
        assert np.array_equal(picked.lipschitz(), stack.lipschitz()[index])
        assert (picked.actions, picked.outcomes) == (3, 2)
        assert not picked.stack or len(picked) == len(np.arange(4)[index])
    for seed in range(20):
        picks = np.random.default_rng(seed).integers(4, size=1 + seed)
        many, first = stack[picks], list(dict.fromkeys(picks.tolist()))
        types, type_of = unique_losses(many)
        assert type_of.tolist() == [first.index(pick) for pick in picks]
        assert len(types) == len(first)
    assert np.array_equal(types[type_of].losses(OUTCOMES), many.losses(OUTCOMES))
    assert np.array_equal(types[type_of].unit_scale, many.unit_scale)


def test_zeros_are_equal_and_losses_of_one_hash_are_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Factors that are all alike do not see which of two weights is which."""
    assert unique_losses(Linear([[[0.0]], [[-0.0]], [[0.0]]]))[1].tolist() == [0, 0, 0]
    alike = SimpleNamespace(integers=lambda _, size, dtype: np.zeros(size, dtype))
    monkeypatch.setattr(base, "stream", lambda *_: alike)
    loss = Linear([[[1.0, 2.0]], [[2.0, 1.0]]])
    types, type_of = unique_losses(loss)
    assert types is loss
    assert type_of.tolist() == [0, 1]


@pytest.mark.parametrize("loss", [*map(STACKS.get, FORMS[:3] + FORMS[7:9] + FORMS[10:]), *SUMS])
def test_a_pulled_back_loss_is_the_loss_in_own_units(loss: Loss) -> None:
    unit = np.vstack([np.zeros(2), np.ones(2), OUTCOMES])
    pulled = BOX.pulled_back(loss)
    assert pulled.losses(unit) == pytest.approx(loss.losses(BOX.from_unit(unit)), abs=1e-9)
    table = pulled.normalised().losses(unit)
    assert -1e-9 <= table.min() <= table.max() <= 1 + 1e-9
    own = own_units(loss, BOX.from_unit(unit))
    assert own_units(pulled.normalised(), unit) == pytest.approx(own, abs=1e-9)
    assert (pulled.lipschitz() <= 0.7 * loss.lipschitz() + 1e-9).all()
    assert BOX.to_unit(BOX.from_unit(unit)) == pytest.approx(unit)


@every_form
def test_exposure_is_the_fall_of_the_loss_good_by_good(form: str) -> None:
    loss = STACKS[form]
    ends = [[0.0, 0.5], [0.5, 0.0]], [[1.0, 0.5], [0.5, 1.0]]  # of each good, the other at 1/2
    low, high = (np.moveaxis(loss.losses(np.array(end)), 0, -1) for end in ends)
    gains = np.maximum(low - high, 0.0)
    budget = gains.sum(2).max(1)[:, None, None]
    expected = np.divide(gains, budget, out=np.zeros_like(gains), where=budget > 1e-9)
    assert exposure(loss) == pytest.approx(expected, abs=1e-9)


@every_form
def test_what_a_form_is_made_of_and_asked_about_must_fit(form: str) -> None:
    """Every array finite, by its name, and outcomes of as many numbers."""
    stack: Any = STACKS[form]
    for field in stack.AXES:
        broken = np.full_like(getattr(stack, field), np.nan)
        with pytest.raises(ValueError, match=rf"{field}|exponent 1|centre 0"):
            replace(stack, **{field: broken})
    wrong: list[Any] = [[0.5], [0.5, 0.5, 0.5], [[0.5, 0.5, 0.5]], 0.5]
    for loss, y in itertools.product((stack, stack[0]), wrong):
        for asked, given in ((loss.losses, (y,)), (loss.enclosure, (y, y))):
            with pytest.raises(ValueError, match="an outcome has 2 coordinates"):
                asked(*given)


TWO, MINUS = [[1.0, 2.0], [3.0, 4.0]], np.array(-1.0)
HALF: Any = {"weights": TWO, "exponent": 0.5}
SUM: Any = {"weights": TWO, "exponent": np.array(2.0)}
ANY: Any = {"function": np.abs, "constant": np.array(1.0), "shape": (1,), "dimension": 1}
REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (SeparablePower, HALF | {"weights": [[1.0, INF], [0.0, 0.0]]}, "weights holds a number that"),
    (SeparablePower, HALF | {"exponent": 0.0}, "exponent must be positive"),
    (SeparablePower, HALF | {"exponent": -0.5}, "exponent must be positive"),
    (SeparablePower, HALF | {"unit_offset": -INF}, "unit_offset holds a number that is not finite"),
    (SeparablePower, HALF | {"weights": [1.0, 2.0]}, r"shape \(2,\); give \(actions, out"),
    (SeparablePower, HALF | {"weights": np.empty((2, 0))}, r"weights have shape \(2, 0\)"),
    (SeparablePower, HALF | {"offset": [0.0, 0.0, 0.0]}, "broadcast"),
    (SeparablePower, HALF | {"exponent": [0.5, 0.5]}, "broadcast"),
    (Linear, {"weights": TWO, "exponent": np.array(2.0)}, "exponent 1; use SeparablePower"),
    (Linear, {"weights": TWO, "centre": np.array(0.5)}, "centre 0; use SeparablePower"),
    (PowerOfSum, {"weights": [[-1.0]], "exponent": 0.5}, "only an integer exponent is defined"),
    (PowerOfSum, {"weights": [[1.0]], "exponent": 1.5, "intercept": MINUS / 10}, "only an integer"),
    (PowerOfSum, {"weights": [[2.0]], "exponent": -2.0, "intercept": MINUS}, "0, where the expo"),
    (PowerOfSum, {"weights": [[1.0]], "exponent": -1.0}, "0, where the exponent must be positive"),
    (PowerOfSum, {"weights": [[0.0]], "exponent": 0.0}, "0, where the exponent must be positive"),
    (PowerOfSum, SUM | {"floor": 1.0}, r"floor must lie in \[0, 1\)"),
    (PowerOfSum, SUM | {"power": 0.0}, "logarithm .* needs a floor"),
    (PowerOfSum, SUM | {"power": -1.0}, "negative power needs a floor"),
    (ExponentialOfSum, {"weights": [TWO, TWO], "power": [1.0, -0.5]}, "negative power needs a"),
    (ExponentialOfSum, {"weights": TWO, "floor": -0.1}, r"floor must lie in \[0, 1\)"),
    (MinimumOfRatios, {"requirements": [[1.0, 2.0], [0.0, 0.0]]}, "one of each action positive"),
    (MinimumOfRatios, {"requirements": [[1.0, -2.0]]}, "requirements must be at least 0"),
    (Convex1D, {"kinks": [[1.0, -1.0]], "knots": [[0.2, 0.4]]}, "kinks must be at least 0"),
    (Convex1D, {"kinks": [1.0], "knots": [0.5]}, r"have shape \(1,\); give \(actions, terms\)"),
    (Convex1D, {"kinks": [[1.0]], "knots": [[0.5]], "coordinate": 1}, "coordinate 1 is not one"),
    (Convex1D, {"kinks": [[1.0]], "knots": [[0.5]], "coordinate": -1}, "coordinate -1 is not"),
    (LipschitzLoss, ANY | {"constant": MINUS}, "constant must be at least 0"),
    (LipschitzLoss, ANY | {"low": np.array(2.0)}, "must ascend"),
    (LipschitzLoss, ANY | {"shape": ()}, r"give \(actions,\) or \(losses, actions"),
    (LipschitzLoss, ANY | {"shape": (1, 1, 1)}, r"give \(actions,\) or"),
    (Box, {"low": [0.0], "high": [0.0]}, "above its low"),
    (Box, {"low": [0.0], "high": [INF]}, "finite"),
    (Box, {"low": [0.0, 1.0], "high": [1.0]}, "one number per coordinate"),
    (Polytope, {"vertices": [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]}, "span all dimensions"),
]


def test_what_is_no_loss_or_no_space_is_refused() -> None:
    for make, given, says in REFUSED:
        with pytest.raises(ValueError, match=says):
            make(**given)
    with pytest.raises(ValueError, match=r"return \(1, 2\)"):
        LipschitzLoss(**ANY | {"shape": (2,)}).losses([0.5])
    with pytest.raises(ValueError, match="left its declared range; widen low and high"):
        LipschitzLoss(**ANY | {"function": np.exp}).losses([0.5])
    tall = Box([-1.0, 2.0, 0.5], [1.0, 5.0, 0.75])
    with pytest.raises(ValueError, match="unit cube"):
        tall.pulled_back(ExponentialOfSum(np.ones((1, 3)), power=0.0, floor=0.1))
    with pytest.raises(ValueError, match="2 outcomes in 3"):
        tall.pulled_back(Linear(np.ones((1, 2))))


def test_a_polytope_keeps_what_is_inside_and_draws_the_rest_to_its_border() -> None:
    space, rng = Polytope(TRIANGLE), np.random.default_rng(3)
    inside = space.to_unit(rng.dirichlet(np.ones(3), 100) @ np.array(TRIANGLE))
    assert space.move_inside(inside) == pytest.approx(inside, abs=1e-12)
    cube = rng.random((400, 2))
    moved, outside = space.move_inside(cube), cube.sum(1) > 1
    assert 0.3 < outside.mean() < 0.7
    assert moved[outside].sum(1) == pytest.approx(1.0)  # the long side, in units of the cube
    assert moved[~outside] == pytest.approx(cube[~outside], abs=1e-12)
    assert Polytope([[1.0], [3.0], [2.0]]).move_inside([[0.3]]) == pytest.approx(np.array([[0.3]]))
    simplex = Polytope(np.vstack([np.zeros(3), np.eye(3)]))
    assert simplex.move_inside([0.2, 0.3, 0.4]) == pytest.approx([0.2, 0.3, 0.4])
    assert simplex.move_inside([0.5, 0.5, 0.5]) == pytest.approx([1 / 3] * 3)


def test_a_market_in_a_polytope_keeps_its_guarantee() -> None:
    traders, space = worlds.cohort("traders", 5, 3), {"vertices": TRIANGLE}
    model = worlds.played(worlds.scenario(traders, rounds=200, space=space))
    outcomes = model.rounds_frame()[["y_0", "y_1"]].to_numpy()
    assert (outcomes.sum(1) <= 1 + 1e-9).all()
    agents = model.agents_frame()
    assert (agents["guarantee"] == "decision-swap").all()
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()
