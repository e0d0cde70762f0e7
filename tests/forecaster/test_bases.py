"""What a basis declares is measured: size, range, Lipschitz constant, error and inverse."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from regretless.agents.utilities.forms import CES, LinearUtility
from regretless.forecaster.bases import DirectSumBasis, LinearBasis, PowerBasis

if TYPE_CHECKING:
    from collections.abc import Callable

    from regretless.market.losses import SeparablePower
    from regretless.market.losses.basis import Basis

Array = NDArray[np.float64]

CHECKED = settings(deadline=None, max_examples=60, derandomize=True)
STACK, ACTIONS = 40, 3
LISTED = [0.3, 0.5, 2.0]
# low, high, wanted error
RANGES = [
    (0.3, 0.9, 0.01),
    (0.2, 0.6, 0.05),
    (0.5, 2.0, 0.01),
    (1.0, 4.0, 0.02),
    (0.4, 0.6, 1e-6),
    (0.7, 0.7, 0.01),
]


@dataclass(frozen=True)
class Case:
    """A basis, the exponents that it serves, and normalised losses drawn from them."""

    basis: Basis
    exponents: Array

    def losses(self, seed: int = 0) -> SeparablePower:
        """Draw a stack of normalised losses with weights of both signs."""
        rng = np.random.default_rng(seed)
        weights = rng.normal(size=(STACK, ACTIONS, self.basis.outcomes))
        if (self.exponents == 1).all():
            return LinearUtility(weights)
        return CES(weights, rng.choice(self.exponents, STACK))

    def steepest(self) -> SeparablePower:
        """Return one loss per exponent that spends its whole range on a single power."""
        weights = np.zeros((len(self.exponents), 1, self.basis.outcomes))
        weights[..., 0] = 1.0
        return CES(weights, self.exponents)


def dense(low: float, high: float) -> Array:
    """Exponents of a range, its ends among them, on a grid that is nobody's round number."""
    return np.linspace(low, high, 7411)


def covering(low: float, high: float, error: float, outcomes: int = 2) -> Case:
    """Build the case of an interpolating basis over a range of exponents."""
    basis = PowerBasis.covering(low, high, outcomes, error=error)
    return Case(basis, dense(low, high))


def direct_sum() -> DirectSumBasis:
    """Linear functions, listed powers and interpolated powers of two coordinates."""
    parts = (LinearBasis(2), PowerBasis(LISTED, 2), PowerBasis.covering(1.2, 1.6, 2, error=0.01))
    return DirectSumBasis(parts)


MAKERS: dict[str, Callable[[], Case]] = {
    "linear 1": lambda: Case(LinearBasis(1), np.ones(1)),
    "linear 3": lambda: Case(LinearBasis(3), np.ones(1)),
    "one power": lambda: Case(PowerBasis([0.5], 2), np.array([0.5])),
    "powers": lambda: Case(PowerBasis(LISTED, 2), np.array(LISTED)),
    "powers 1": lambda: Case(PowerBasis(LISTED, 1), np.array(LISTED)),
    "interpolated": lambda: Case(PowerBasis([0.5, 1, 2], 2, exact=False), dense(0.5, 2)),
    "sum, linear": lambda: Case(direct_sum(), np.ones(1)),
    "sum, powers": lambda: Case(direct_sum(), np.array(LISTED)),
    "sum, covering": lambda: Case(direct_sum(), dense(1.2, 1.6)),
    "sum of one": lambda: Case(DirectSumBasis([LinearBasis(2)]), np.ones(1)),
    **{
        f"covering {low} to {high}": functools.partial(covering, low, high, error)
        for low, high, error in RANGES
    },
}


@pytest.fixture(params=MAKERS)
def case(request: pytest.FixtureRequest) -> Case:
    """Every basis in turn, with losses that it serves."""
    return MAKERS[request.param]()


def grid(outcomes: int) -> Array:
    """Outcomes (T, d) on a grid that is fine near 0, where low powers are steep."""
    ticks = 41 if outcomes < 3 else 6
    even = np.linspace(0, 1, ticks)
    return np.array(list(itertools.product([*even, *np.exp(-20 * even)], repeat=outcomes)))


def corners(outcomes: int) -> Array:
    """All corners of the cube (2**d, d)."""
    return np.array(list(itertools.product([0.0, 1.0], repeat=outcomes)))


def test_the_declared_size_is_the_length_of_the_transform(case: Case) -> None:
    """One outcome gives (n,), many give (T, n) row by row."""
    basis, outcomes = case.basis, np.random.default_rng(1).random((5, case.basis.outcomes))
    table = basis.transform(outcomes)
    assert table.shape == (5, basis.size)
    for row, y in zip(table, outcomes, strict=True):
        assert basis.transform(y).shape == (basis.size,)
        assert np.array_equal(basis.transform(y), row)


def test_the_functions_have_range_zero_to_one(case: Case) -> None:
    """The range is kept on a grid and at random, and filled at the corners of the cube."""
    basis = case.basis
    rng = np.random.default_rng(2)
    for outcomes in (grid(basis.outcomes), rng.random((500, basis.outcomes))):
        table = basis.transform(outcomes)
        assert table.min() >= 0
        assert table.max() <= 1
    extremes = basis.transform(corners(basis.outcomes))
    assert np.array_equal(extremes.min(0), np.zeros(basis.size))
    assert np.array_equal(extremes.max(0), np.ones(basis.size))


@pytest.mark.parametrize("seed", range(2))
def test_the_measured_error_is_within_the_declared_error(case: Case, seed: int) -> None:
    """The linear form of every loss is as close to the loss as declared, near 0 too."""
    limit = max(case.basis.error, 1e-12)
    assert case.basis.audit(case.losses(seed), grid(case.basis.outcomes)) <= limit


def test_the_error_holds_for_every_exponent_of_the_range(case: Case) -> None:
    """So does that of a loss that spends its whole range on one interpolated power."""
    limit = max(case.basis.error, 1e-12)
    outcomes = grid(case.basis.outcomes)
    few = case.steepest()[:: max(len(case.exponents) // 50, 1)]
    assert case.basis.audit(few, outcomes) <= limit


def test_the_audit_is_the_greatest_distance() -> None:
    """The audit finds the error of a single loss at a single outcome."""
    basis = PowerBasis([0.5, 2.0], 1, exact=False)
    loss = CES([[1.0]], 1.0)
    # at exponent 1 the Lagrange weights of 0.5 and 2 are 2/3 and 1/3
    miss = 0.25 - (2 / 3 * 0.25**0.5 + 1 / 3 * 0.25**2)
    assert basis.audit(loss, [[0.25]]) == pytest.approx(abs(miss), abs=1e-14)
    assert basis.audit(loss, [[0.0], [0.25], [1.0]]) == pytest.approx(abs(miss), abs=1e-14)


@pytest.mark.parametrize("seed", range(2))
def test_coefficients_are_within_the_declared_lipschitz_constant(case: Case, seed: int) -> None:
    """The absolute coefficients of a normalised loss sum to at most lambda."""
    offset, weights = case.basis.coefficients(case.losses(seed))
    assert offset.shape == (STACK, ACTIONS)
    assert weights.shape == (STACK, ACTIONS, case.basis.size)
    assert np.abs(weights).sum(-1).max() <= case.basis.lipschitz + 1e-9


def test_the_lipschitz_constant_holds_for_every_exponent_of_the_range(case: Case) -> None:
    """It is a bound and tight: some exponent of a dense list needs nearly as much."""
    _, weights = case.basis.coefficients(case.steepest())
    most = np.abs(weights).sum(-1).max()
    assert most <= case.basis.lipschitz + 1e-9
    if not isinstance(case.basis, DirectSumBasis):
        assert most >= case.basis.lipschitz - 1e-3


def test_a_single_loss_has_the_coefficients_of_its_row_in_a_stack(case: Case) -> None:
    """Offset (A,) and weights (A, n) without the leading axis."""
    losses = case.losses()
    offset, weights = case.basis.coefficients(losses)
    for k in range(3):
        single = case.basis.coefficients(losses[k])
        assert single[1].shape == (ACTIONS, case.basis.size)
        assert np.array_equal(single[0], offset[k])
        assert single[1] == pytest.approx(weights[k], abs=1e-14)


CONVEX = ["linear 1", "linear 3", "one power", "sum of one", "covering 0.7 to 0.7"]


def test_convex_images_are_those_of_one_function_per_coordinate() -> None:
    """Two powers of a coordinate trace a curve."""
    assert [name for name, make in MAKERS.items() if make().basis.convex_image] == CONVEX


@pytest.mark.parametrize("name", CONVEX)
def test_the_inverse_is_exact_where_the_image_is_convex(name: str) -> None:
    """Every outcome comes back, and every prediction of the box is some s(y)."""
    basis = MAKERS[name]().basis
    box = np.random.default_rng(3).random((50, basis.size))
    for points in (box, corners(basis.size)):
        assert basis.transform(basis.inverse(points)) == pytest.approx(points, abs=1e-12)
    outcomes = grid(basis.outcomes)
    assert basis.inverse(basis.transform(outcomes)) == pytest.approx(outcomes, abs=1e-12)
    assert basis.inverse(basis.transform(outcomes[7])) == pytest.approx(outcomes[7], abs=1e-12)


@given(y=st.lists(st.floats(0, 1), min_size=2, max_size=2))
@CHECKED
def test_the_label_of_a_true_transform_is_the_outcome(y: list[float]) -> None:
    """Curved images invert exactly on themselves, though not between."""
    for basis in (PowerBasis([0.5, 2.0], 2), DirectSumBasis([LinearBasis(2), PowerBasis([2], 2)])):
        assert basis.inverse(basis.transform(y)) == pytest.approx(y, abs=1e-6)


def test_labels_of_slightly_negative_predictions_are_numbers() -> None:
    """Rounding may push a prediction below 0, where a root does not exist."""
    label = PowerBasis([0.5, 2.0], 1).inverse(np.array([-1e-17, 0.25]))
    assert label == pytest.approx([0.25])


UNSERVED: dict[str, tuple[Callable[[], Basis], Any, str]] = {
    "power in linear": (lambda: LinearBasis(2), 0.5, "not linear"),
    "one of a stack in linear": (lambda: LinearBasis(2), [1.0, 1.0, 2.0], "not linear"),
    "unlisted": (lambda: PowerBasis(LISTED, 2), 0.4, "not among"),
    "nearly listed": (lambda: PowerBasis(LISTED, 2), 0.5 + 1e-9, "not among"),
    "one of a stack unlisted": (lambda: PowerBasis(LISTED, 2), [0.3, 0.5, 0.6], "not among"),
    "below": (lambda: PowerBasis.covering(0.3, 0.9, 2), 0.29, "outside the basis's range"),
    "above": (lambda: PowerBasis.covering(0.3, 0.9, 2), 0.91, "outside the basis's range"),
    "beyond the list": (lambda: PowerBasis([0.5, 1], 2, exact=False), 1.1, "outside"),
    "no part": (direct_sum, 3.0, "not linear.*not among.*outside"),
    "two parts at once": (direct_sum, [0.3, 1.0, 1.5], "not linear.*not among.*outside"),
}


@pytest.mark.parametrize("name", UNSERVED)
def test_losses_that_a_basis_cannot_represent_are_refused(name: str) -> None:
    """No silent approximation beyond the declared range, and the error says why."""
    make, rho, says = UNSERVED[name]
    with pytest.raises(ValueError, match=says):
        make().coefficients(CES(np.ones((3, 2, 2)) * [1.0, 2.0], rho))


@pytest.mark.parametrize("name", MAKERS)
def test_losses_over_other_outcomes_are_refused(name: str) -> None:
    """A loss of one coordinate more than the basis has no coefficients."""
    case = MAKERS[name]()
    weights = np.ones((2, case.basis.outcomes + 1))
    with pytest.raises(ValueError, match=r"shape|outcome|coordinate"):
        case.basis.coefficients(CES(weights, case.exponents[0]))


@pytest.mark.parametrize(("low", "high", "error"), RANGES)
def test_covering_keeps_the_error_that_was_asked_for(low: float, high: float, error: float) -> None:
    """The declared error is the promise, with as few powers as the declaration allows."""
    basis = PowerBasis.covering(low, high, 2, error=error)
    assert 0 <= basis.error <= error
    assert basis.size == 2 * len(basis.exponents)
    assert (basis.exponents >= low).all()
    assert (basis.exponents <= high).all()


def test_covering_grows_with_the_promise_and_refuses_the_impossible() -> None:
    """Smaller errors take more powers, until too many."""
    sizes = [PowerBasis.covering(0.3, 0.9, 1, error=error).size for error in (0.1, 0.01, 0.001)]
    assert sizes == sorted(set(sizes))
    with pytest.raises(ValueError, match="more than 24 powers"):
        PowerBasis.covering(0.05, 3.0, 1, error=0.001)


@pytest.mark.parametrize("exponents", [[0.0, 0.5], [-0.5], [0.5, float("nan")]])
def test_powers_need_positive_exponents(exponents: list[float]) -> None:
    """A power of 0 or below does not map into [0, 1]."""
    with pytest.raises(ValueError, match="exponents must be positive"):
        PowerBasis(exponents, 2)


@pytest.mark.parametrize(("low", "high"), [(-0.01, 1.0), (0.0, 1.0), (0.9, 0.3)])
def test_covering_needs_a_range_of_positive_exponents(low: float, high: float) -> None:
    """A range that reaches 0, or is empty, has no basis."""
    with pytest.raises(ValueError, match="exponent"):
        PowerBasis.covering(low, high, 1, error=0.5)


def test_exponents_are_kept_once_in_ascending_order() -> None:
    """The functions of a coordinate stand side by side, in the order of the exponents."""
    basis = PowerBasis([2.0, 0.5, 2.0], 2)
    assert np.array_equal(basis.exponents, [0.5, 2.0])
    assert basis.transform([0.25, 0.81]) == pytest.approx([0.5, 0.0625, 0.9, 0.6561])


def test_a_listed_exponent_uses_its_own_power_alone() -> None:
    """At a node the coefficients are the weights, exactly, interpolated or not."""
    for exact in (True, False):
        basis = PowerBasis([0.5, 1.0, 2.0], 2, exact=exact)
        loss = CES([[[0.25, 0.75], [0.5, 0.5]]], [1.0])
        _, weights = basis.coefficients(loss)
        by_power = weights.reshape(2, 2, 3)
        assert np.array_equal(by_power[..., 1], loss.weights[0])
        assert np.array_equal(by_power[..., [0, 2]], np.zeros((2, 2, 2)))


def test_a_direct_sum_lays_its_parts_side_by_side() -> None:
    """Blocks tile the columns, each with its part's functions; constants are the worst part's."""
    basis = direct_sum()
    blocks = [basis.block(i) for i in range(len(basis.parts))]
    columns = [i for block in blocks for i in range(basis.size)[block]]
    assert columns == list(range(basis.size))
    y = np.random.default_rng(4).random((5, 2))
    for block, part in zip(blocks, basis.parts, strict=True):
        assert np.array_equal(basis.transform(y)[:, block], part.transform(y))
    assert basis.size == sum(part.size for part in basis.parts)
    assert basis.lipschitz == max(part.lipschitz for part in basis.parts)
    assert basis.error == max(part.error for part in basis.parts)


@pytest.mark.parametrize(("rho", "index"), [(1.0, 0), (0.5, 1), ([0.3, 2.0], 1), (1.35, 2)])
def test_a_loss_lives_in_one_part_of_a_direct_sum(rho: Any, index: int) -> None:
    """Its own block holds the part's coefficients; every other column is zero."""
    basis = direct_sum()
    loss = CES(np.random.default_rng(5).normal(size=(2, 3, 2)), rho)
    assert basis.part_of(loss) == index
    offset, weights = basis.coefficients(loss)
    own_offset, own = basis.parts[index].coefficients(loss)
    assert np.array_equal(offset, own_offset)
    assert np.array_equal(weights[..., basis.block(index)], own)
    outside = np.delete(weights, range(basis.size)[basis.block(index)], axis=-1)
    assert np.array_equal(outside, np.zeros_like(outside))


def test_a_direct_sum_asks_its_parts_in_order() -> None:
    """A loss that two parts accept is served by the first."""
    loss = CES([[1.0, 2.0]], 1.0)
    assert DirectSumBasis([PowerBasis([1.0], 2), LinearBasis(2)]).part_of(loss) == 0
    assert DirectSumBasis([PowerBasis([2.0], 2), LinearBasis(2)]).part_of(loss) == 1


@pytest.mark.parametrize("parts", [[], [LinearBasis(2), LinearBasis(3)]])
def test_parts_need_a_common_outcome(parts: list[Basis]) -> None:
    """Parts over different outcomes cannot stand side by side."""
    with pytest.raises(ValueError, match="same number of outcomes"):
        DirectSumBasis(parts)
