"""Loss forms against plain formulas, their normalisation, and the utilities that make them."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from agents.utilities import CES, LinearUtility, Population, ces_population, linear_population
from market.losses import Linear, SeparablePower, unique_losses

Array = NDArray[np.float64]

CHECKED = settings(deadline=None, max_examples=60, derandomize=True)
# multiples of 1/8: a range of numbers of one size is no smaller than 1/8, so rounding stays small
EIGHTHS = st.integers(-40, 40).map(lambda k: k / 8)
NAN = float("nan")


@st.composite
def power_losses(draw: st.DrawFn) -> SeparablePower:
    """Draw a single loss, a stack, or a stack of stacks, of one of the two forms."""
    leading = draw(st.sampled_from([(), (3,), (2, 2)]))
    actions, outcomes = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    weights = draw(hnp.arrays(np.float64, (*leading, actions, outcomes), elements=EIGHTHS))
    offset = draw(hnp.arrays(np.float64, (*leading, actions), elements=EIGHTHS))
    if draw(st.booleans()):
        return Linear(weights, offset)
    exponent = draw(hnp.arrays(np.float64, leading, elements=st.floats(0.125, 4)))
    return SeparablePower(weights, exponent, offset)


def corners(outcomes: int) -> Array:
    """All corners of the cube (2**d, d)."""
    return np.array(list(itertools.product([0.0, 1.0], repeat=outcomes)))


def random_outcomes(outcomes: int, count: int = 50) -> Array:
    """Outcomes (count, d), uniform in the cube."""
    return np.random.default_rng(outcomes).random((count, outcomes))


def own_units(loss: SeparablePower, outcomes: Array) -> Array:
    """Losses in the utility's own units (T, ..., A)."""
    scale, offset = loss.unit_scale[..., None], loss.unit_offset[..., None]
    back: Array = offset + scale * loss.losses(outcomes)
    return back


@given(loss=power_losses())
@CHECKED
def test_losses_are_the_formula_in_plain_python(loss: SeparablePower) -> None:
    """Every entry is offset_a + sum_j weights_aj * y_j ** exponent."""
    outcomes = random_outcomes(loss.outcomes, 3)
    table = loss.losses(outcomes)
    assert table.shape == (3, *loss.offset.shape)
    for t, *index in np.ndindex(table.shape):
        at, stacked = tuple(index), tuple(index[:-1])
        total = float(loss.offset[at])
        for j in range(loss.outcomes):
            total += loss.weights[(*at, j)] * outcomes[t, j] ** loss.exponent[stacked]
        assert table[(t, *at)] == pytest.approx(total, abs=1e-12)


@given(loss=power_losses())
@CHECKED
def test_one_outcome_is_a_row_of_many(loss: SeparablePower) -> None:
    """An outcome (d,) gives (..., A), outcomes (T, d) give (T, ..., A)."""
    outcomes = random_outcomes(loss.outcomes, 4)
    table = loss.losses(outcomes)
    for row, y in zip(table, outcomes, strict=True):
        assert loss.losses(y).shape == loss.offset.shape
        assert loss.losses(y) == pytest.approx(row, abs=1e-14)


@given(loss=power_losses())
@CHECKED
def test_the_range_is_reached_and_never_left(loss: SeparablePower) -> None:
    """Least and greatest loss are attained at corners of the cube and bound it elsewhere."""
    low, high = loss.range()
    extremes = loss.losses(corners(loss.outcomes))
    assert extremes.min((0, -1)) == pytest.approx(low, abs=1e-12)
    assert extremes.max((0, -1)) == pytest.approx(high, abs=1e-12)
    inside = loss.losses(random_outcomes(loss.outcomes))
    assert (inside >= low[..., None] - 1e-12).all()
    assert (inside <= high[..., None] + 1e-12).all()


@given(loss=power_losses())
@CHECKED
def test_normalised_fills_the_unit_interval_exactly(loss: SeparablePower) -> None:
    """Corners reach 0 and 1 unless the loss is constant, and no outcome leaves [0, 1]."""
    normalised = loss.normalised()
    low, high = loss.range()
    extremes = normalised.losses(corners(loss.outcomes))
    assert extremes.min((0, -1)) == pytest.approx(np.zeros_like(low), abs=1e-12)
    assert extremes.max((0, -1)) == pytest.approx(np.where(high > low, 1.0, 0.0), abs=1e-12)
    inside = normalised.losses(random_outcomes(loss.outcomes))
    assert inside.min() >= -1e-12
    assert inside.max() <= 1 + 1e-12


@given(loss=power_losses())
@CHECKED
def test_the_units_are_recovered(loss: SeparablePower) -> None:
    """``unit_offset + unit_scale * l`` undoes the normalisation, of a scaled loss too."""
    outcomes = random_outcomes(loss.outcomes)
    scaled = replace(loss, unit_scale=np.array(3.0), unit_offset=np.array(-2.0))
    for before, expected in ((loss, loss.losses), (scaled, lambda y: 3 * loss.losses(y) - 2)):
        after = before.normalised()
        assert own_units(after, outcomes) == pytest.approx(expected(outcomes), abs=1e-11)
        assert type(after) is type(loss)
        assert np.array_equal(after.exponent, loss.exponent)


@pytest.mark.parametrize(("offset", "low"), [([2.0, 2.0], 2.0), ([-1.0, -1.0], -1.0)])
def test_a_constant_loss_normalises_to_zero(offset: list[float], low: float) -> None:
    """Where nothing can be regretted the scale stays 1."""
    loss = Linear(np.zeros((2, 3)), offset).normalised()
    assert np.array_equal(loss.losses([0.3, 0.5, 0.7]), [0.0, 0.0])
    assert (float(loss.unit_scale), float(loss.unit_offset)) == (1.0, low)


def test_linear_is_offset_plus_weights_times_outcome() -> None:
    """The linear form is a matrix product, single and stacked."""
    rng = np.random.default_rng(3)
    weights, offset, y = rng.normal(size=(4, 3, 2)), rng.normal(size=(4, 3)), rng.random(2)
    assert Linear(weights, offset).losses(y) == pytest.approx(offset + weights @ y, abs=1e-14)
    assert Linear(weights[0]).losses(y) == pytest.approx(weights[0] @ y, abs=1e-14)
    assert (Linear(weights).exponent == 1).all()


STACKS = {
    "linear": Linear(np.arange(24.0).reshape(4, 3, 2), np.arange(12.0).reshape(4, 3)).normalised(),
    "power": CES(np.arange(24.0).reshape(4, 3, 2) % 7, [0.5, 1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("index", [0, -1, slice(1, 3), slice(None, None, 2), np.array([3, 0, 3])])
def test_indexing_a_stack_picks_losses(name: str, index: Any) -> None:
    """Losses and units of a pick are the pick of losses and units."""
    stack, outcomes = STACKS[name], random_outcomes(2)
    picked = stack[index]
    assert type(picked) is type(stack)
    assert picked.losses(outcomes) == pytest.approx(stack.losses(outcomes)[:, index], abs=1e-14)
    assert np.array_equal(picked.unit_scale, stack.unit_scale[index])
    assert np.array_equal(picked.unit_offset, stack.unit_offset[index])
    if np.ndim(picked.exponent):
        assert len(picked) == len(stack.exponent[index])


def test_sizes_and_iteration_of_a_stack() -> None:
    """A stack has a length; a single loss has neither length nor items."""
    stack = STACKS["power"]
    assert (len(stack), stack.actions, stack.outcomes) == (4, 3, 2)
    with pytest.raises(TypeError, match="single loss"):
        len(stack[0])
    with pytest.raises(TypeError, match="single loss"):
        stack[0][0]


@pytest.mark.parametrize("name", STACKS)
def test_unique_losses_keeps_one_of_each_in_order(name: str) -> None:
    """Types are distinct, in order of first appearance, and give every loss back."""
    stack = STACKS[name][np.array([2, 0, 2, 3, 0, 0])]
    types, type_of = unique_losses(stack)
    assert np.array_equal(type_of, [0, 1, 0, 2, 1, 1])
    assert len(types) == 3
    outcomes = random_outcomes(2)
    assert np.array_equal(types[type_of].losses(outcomes), stack.losses(outcomes))
    assert np.array_equal(types[type_of].unit_scale, stack.unit_scale)


def test_losses_that_differ_in_any_part_are_distinct() -> None:
    """Weights, offset, exponent and units all tell losses apart."""
    weights = np.ones((6, 2, 2))
    weights[1, 0, 0] = 2
    parts = {name: np.ones(6) for name in ("exponent", "unit_scale", "unit_offset")}
    parts["exponent"][2] = parts["unit_scale"][3] = parts["unit_offset"][4] = 2
    offset = np.zeros((6, 2))
    offset[5, 1] = 2
    types, type_of = unique_losses(SeparablePower(weights, offset=offset, **parts))
    assert len(types) == 6
    assert np.array_equal(type_of, np.arange(6))


def power(**changed: Any) -> SeparablePower:
    """Build a small loss with some of its parts changed."""
    parts: dict[str, Any] = {"weights": [[1.0, 2.0], [3.0, 4.0]], "exponent": 0.5}
    return SeparablePower(**parts | changed)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"weights": [[1.0, NAN], [0.0, 0.0]]}, "weights holds a number that is not finite"),
        ({"weights": [[1.0, np.inf], [0.0, 0.0]]}, "weights holds a number that is not finite"),
        ({"exponent": NAN}, "exponent holds a number that is not finite"),
        ({"exponent": np.inf}, "exponent holds a number that is not finite"),
        ({"exponent": 0.0}, "exponent must be positive"),
        ({"exponent": -0.5}, "exponent must be positive"),
        ({"offset": [0.0, NAN]}, "offset holds a number that is not finite"),
        ({"unit_scale": NAN}, "unit_scale holds a number that is not finite"),
        ({"unit_offset": -np.inf}, "unit_offset holds a number that is not finite"),
        ({"weights": [1.0, 2.0]}, r"weights have shape \(2,\)"),
        ({"weights": np.empty((2, 0))}, r"weights have shape \(2, 0\)"),
        ({"offset": [0.0, 0.0, 0.0]}, "broadcast"),
        ({"exponent": [0.5, 0.5]}, "broadcast"),
    ],
)
def test_bad_numbers_and_shapes_are_refused(changed: dict[str, Any], says: str) -> None:
    """A loss that cannot be computed cannot be made, and the error says why."""
    with pytest.raises(ValueError, match=says):
        power(**changed)


@pytest.mark.parametrize("y", [[0.5], [0.5, 0.5, 0.5], [[0.5, 0.5, 0.5]], 0.5])
def test_outcomes_of_a_wrong_length_are_refused(y: Any) -> None:
    """The error names the number of coordinates."""
    with pytest.raises(ValueError, match="an outcome has 2 coordinates"):
        power().losses(y)


def test_a_loss_keeps_its_own_numbers() -> None:
    """Changing the caller's arrays later changes nothing."""
    weights, offset = np.ones((2, 2)), np.zeros(2)
    loss = SeparablePower(weights, np.array(0.5), offset)
    weights[0, 0], offset[0] = 9.0, 9.0
    assert np.array_equal(loss.losses([1.0, 1.0]), [2.0, 2.0])


@given(
    weights=hnp.arrays(np.float64, (3, 2, 2), elements=EIGHTHS),
    rho=hnp.arrays(np.float64, 3, elements=st.floats(0.125, 4)),
)
@CHECKED
def test_ces_in_its_own_units_is_minus_the_utility(weights: Array, rho: Array) -> None:
    """u(a, y) = sum_j w_aj y_j^rho, one exponent per agent, or one for all."""
    outcomes = random_outcomes(2)
    for exponent in (rho, float(rho[0])):
        loss, each = CES(weights, exponent), np.broadcast_to(exponent, 3)
        utility = np.einsum("kaj,tkj->tka", weights, outcomes[:, None] ** each[:, None])
        assert own_units(loss, outcomes) == pytest.approx(-utility, abs=1e-11)
        assert loss.losses(outcomes).min() >= -1e-12
        assert loss.losses(outcomes).max() <= 1 + 1e-12


@given(weights=hnp.arrays(np.float64, (3, 2, 2), elements=EIGHTHS))
@CHECKED
def test_linear_utility_is_ces_with_exponent_one(weights: Array) -> None:
    """The linear constructor gives a linear form with the same losses and units."""
    loss, ces, outcomes = LinearUtility(weights), CES(weights, 1.0), random_outcomes(2)
    assert isinstance(loss, Linear)
    assert loss.losses(outcomes) == pytest.approx(ces.losses(outcomes), abs=1e-13)
    assert np.array_equal(loss.unit_scale, ces.unit_scale)
    assert np.array_equal(loss.unit_offset, ces.unit_offset)


def test_a_better_good_is_a_smaller_loss() -> None:
    """A utility becomes a loss by a change of sign."""
    loss = CES([[1.0, 0.0], [0.0, 1.0]], 0.5)
    assert loss.losses([0.81, 0.25]) == pytest.approx([0.1, 0.5])
    assert (float(loss.unit_scale), float(loss.unit_offset)) == (1.0, -1.0)


@pytest.mark.parametrize("rho", [0.0, -1.0, NAN, [0.5, -0.5]])
def test_utilities_refuse_exponents_that_are_not_positive(rho: Any) -> None:
    """The additive form has no exponent of 0 or below."""
    with pytest.raises(ValueError, match="exponent"):
        CES(np.ones((2, 2, 2)), rho)


COMMON = [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]


def population(seed: int = 7, count: int = 400) -> Population:
    """Two actions, three goods."""
    return Population(np.random.default_rng(seed), count, 2, 3)


@pytest.mark.parametrize(
    ("weights", "concentration"), [(None, None), (COMMON, None), (COMMON, 5.0), (COMMON, 5000.0)]
)
def test_shares_are_rows_of_the_simplex_from_the_cohorts_stream(
    weights: Any, concentration: float | None
) -> None:
    """Shares (N, A, d) are at least 0, sum to 1, and repeat with the seed."""
    shares = population().shares(weights, concentration)
    assert shares.shape == (400, 2, 3)
    assert (shares >= 0).all()
    assert shares.sum(-1) == pytest.approx(np.ones((400, 2)))
    assert np.array_equal(shares, population().shares(weights, concentration))
    other = population(seed=8).shares(weights, concentration)
    assert np.array_equal(shares, other) == (weights is not None and concentration is None)


def test_concentration_draws_the_shares_around_the_common_ones() -> None:
    """The mean is the common share; the spread falls with the concentration."""
    assert np.array_equal(population().shares(COMMON, None), np.broadcast_to(COMMON, (400, 2, 3)))
    loose, tight = (population().shares(COMMON, around) for around in (5.0, 5000.0))
    assert loose.mean(0) == pytest.approx(np.array(COMMON), abs=0.05)
    assert tight.mean(0) == pytest.approx(np.array(COMMON), abs=0.005)
    assert (tight.std(0) < 0.1 * loose.std(0)).all()


@pytest.mark.parametrize(
    ("weights", "concentration", "says"),
    [
        ([[0.5, 0.5]], None, r"weights have shape \(1, 2\); give \(2, 3\)"),
        ([[0.5, 0.3, 0.1], [0.1, 0.1, 0.8]], 5.0, "weights must sum to 1"),
        ([[0.5, 0.7, -0.2], [0.1, 0.1, 0.8]], 5.0, "weights must sum to 1"),
    ],
)
def test_bad_shares_are_refused(weights: Any, concentration: float | None, says: str) -> None:
    """Shapes must fit, and only shares can be drawn around."""
    with pytest.raises(ValueError, match=says):
        population().shares(weights, concentration)


def test_a_drawn_population_is_the_stack_of_its_agents() -> None:
    """Agent k's loss is the utility of agent k's shares and exponent."""
    rho, outcomes = np.array([0.3, 0.7, 1.0, 2.0]), random_outcomes(3)
    shares = population(count=4).shares(COMMON, 5.0)
    powers = ces_population(population(count=4), rho=rho, weights=COMMON, concentration=5.0)
    linear = linear_population(population(count=4), weights=COMMON, concentration=5.0)
    for k in range(4):
        one = CES(shares[k], rho[k])
        assert powers[k].losses(outcomes) == pytest.approx(one.losses(outcomes), abs=1e-14)
        straight = LinearUtility(shares[k])
        assert linear[k].losses(outcomes) == pytest.approx(straight.losses(outcomes), abs=1e-14)
