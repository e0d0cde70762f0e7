"""One suite that every basis passes: what it declares is measured, and every reader agrees."""

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from families import (
    ACTIONS,
    Draw,
    Rng,
    convex,
    exponentials,
    powers,
    ratios,
    raw_targets,
    signed,
    sums,
    targets,
    waves,
    within,
)
from registered import built_in

from regretless.agents.utilities.forms import CES, CobbDouglas, Leontief
from regretless.forecaster import bases
from regretless.forecaster.bases import LinearBasis, PowerBasis
from regretless.forecaster.bases.default import default_basis
from regretless.forecaster.events.loss_table import LossTable, ProtectedLosses, responses_at
from regretless.market import register
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
from regretless.market.losses.basis import Basis
from regretless.market.response import best_response, expected_losses

STACK = 24
EXACT = 1e-10  # what rounding may add


def linear(outcomes: int) -> Draw:
    return lambda rng, stack: Linear(signed(rng, stack, outcomes)).normalised()


@functools.cache
def crowd() -> tuple[Loss, ...]:
    rng = np.random.default_rng(7)
    shares = rng.dirichlet(np.ones(2), (8, ACTIONS))
    shares[1], shares[2] = shares[0], shares[2, 0]
    needs = rng.uniform(0.25, 1, (8, ACTIONS, 2))
    return CES(shares, rng.uniform(0.3, 0.9, 8), 1.0), CobbDouglas(shares), Leontief(needs)


def members(rng: Rng, stack: int) -> Loss:
    own = crowd()[int(rng.integers(3))]
    return own[rng.integers(len(own), size=stack)]


def other_forms(outcomes: int) -> list[Loss]:
    """One loss of every form, each steep and curved: no case serves them."""
    rng = np.random.default_rng(0)
    table = rng.random((2, ACTIONS, outcomes)) + 0.2

    def squares(y: Array) -> Array:
        return np.stack([y.max(-1) ** 2, 1 - y.min(-1) ** 2], axis=-1)

    return [
        Linear(9 * table),
        SeparablePower(9 * table, np.array(2.51), centre=np.array(0.4)),
        PowerOfSum(table, np.array(2.5), np.array(0.7), np.array(0.17)),
        ExponentialOfSum(9 * table, np.array(1.3), np.array(0.17)),
        MinimumOfRatios(table / 50),
        Convex1D(np.full((2, ACTIONS, 1), 90.0), np.full((2, ACTIONS, 1), 0.4), dimension=outcomes),
        LipschitzLoss(squares, np.array(200.0), (2,), outcomes),
    ]


EVERY_FORM = tuple(loss.form for loss in other_forms(1))


@dataclass(frozen=True)
class Case:
    """A basis with the losses that it serves."""

    make: Callable[[], Basis]  # every call must make the same
    draw: Draw  # of its family
    raw: Draw | None = None  # of the family of the declared lambda, where that is another
    refused: tuple[str, ...] = EVERY_FORM  # forms of ``other_forms``
    floor: float = 0.0  # outcomes below it are one outcome

    @functools.cached_property
    def basis(self) -> Basis:
        return self.make()

    def losses(self, seed: int = 0, stack: int = STACK) -> Loss:
        return self.draw(np.random.default_rng(seed), stack)


ANY = ()  # any loss has coefficients, for which nothing is claimed
UNLESS_LINEAR = EVERY_FORM[1:]
WEALTH = {"power": 1.0, "floor": 0.0}
ROOT = bases.PowerBasis([0.5], 2)

CASES: dict[str, Case] = {
    "linear": Case(
        lambda: bases.LinearBasis(3),
        linear(3),
        lambda rng, stack: Linear(within(rng, stack, 3, 1.0), 0.5),
        UNLESS_LINEAR,
    ),
    "powers": Case(lambda: bases.PowerBasis([0.3, 0.5, 2.0], 2), powers([0.3, 0.5, 2.0], 2)),
    "steep powers": Case(lambda: bases.PowerBasis([0.05, 1.2], 2), powers([0.05], 2)),
    "one power": Case(
        lambda: bases.PowerBasis([0.5], 2),
        powers([0.5], 2),
        lambda rng, stack: SeparablePower(within(rng, stack, 2, 1.0), np.array(0.5)),
    ),
    "powers between": Case(
        lambda: bases.PowerBasis.covering(0.3, 0.9, 2, error=0.01),
        powers([0.3, 0.9], 2, between=True),
    ),
    "binomial": Case(
        lambda: bases.PowerBasis.binomial(4, 2), targets(4, 2), raw_targets(4, 2), UNLESS_LINEAR
    ),
    "bernstein": Case(
        lambda: bases.BernsteinBasis(2, 4), targets(4, 2), raw_targets(4, 2), UNLESS_LINEAR
    ),
    "monomials": Case(
        lambda: bases.MonomialBasis(3, 3, power=0.5),
        sums(3, 3, power=0.5),
        sums(3, 3, raw=True, power=0.5),
    ),
    "monomials of one degree": Case(
        lambda: bases.MonomialBasis(2, 3, homogeneous=True),
        sums(3, 2, same=True),
        sums(3, 2, same=True, raw=True),
    ),
    "monomials above a floor": Case(
        lambda: bases.MonomialBasis(2, 2, floor=0.1),
        sums(2, 2, floor=0.1),
        sums(2, 2, raw=True, floor=0.1),
        floor=0.1,
    ),
    "taylor of wealth": Case(
        lambda: bases.TaylorExponentialBasis(2, reach=2.0, error=0.01, **WEALTH),
        exponentials(2.0, 2, **WEALTH),
        exponentials(2.0, 2, **WEALTH, raw=True),
    ),
    "chebyshev": Case(
        lambda: bases.ChebyshevExponentialBasis(2, reach=1.0, error=0.02),
        exponentials(1.0, 2),
        floor=0.01,
    ),
    "relu": Case(lambda: bases.ReLUBasis(error=0.03), convex(1.0)),
    "relu of one coordinate": Case(
        lambda: bases.ReLUBasis(error=0.1, outcomes=3, coordinate=1, constant=4.0),
        convex(4.0, 3, 1),
    ),
    "convex rank": Case(lambda: bases.ConvexRankBasis(error=0.06), convex(1.0)),
    "grid": Case(lambda: bases.LipschitzGridBasis(2, constant=2.0, error=0.2), waves(2.0, 2)),
    "leontief": Case(lambda: bases.LeontiefBasis(2, 9, constant=2.0), ratios(2.0, 2)),
    "leontief to the nearest": Case(
        lambda: bases.LeontiefBasis.covering(2, constant=1.5, error=0.2, nearest=True),
        ratios(1.5, 2),
    ),
    "exact": Case(lambda: bases.ExactLossesBasis(crowd()), members),
    "reduced": Case(lambda: bases.ReducedBasis(crowd(), error=0.06), members, refused=ANY),
    "sum, its first part": Case(
        lambda: bases.DirectSumBasis([bases.LinearBasis(2), ROOT]), linear(2), refused=UNLESS_LINEAR
    ),
    "sum, its last part": Case(
        lambda: bases.DirectSumBasis(
            [bases.LinearBasis(2), bases.ChebyshevExponentialBasis(2, reach=1.0, error=0.05)]
        ),
        exponentials(1.0, 2),
        refused=UNLESS_LINEAR,
        floor=0.01,
    ),
    "optimised": Case(lambda: bases.OptimisedConvexBasis(error=0.04), convex(1.0)),
    "ramps": Case(lambda: bases.RampBasis(crowd(), knots=5), members, refused=ANY),
    "one ramp": Case(
        lambda: bases.RampBasis([Linear(np.ones((STACK, ACTIONS, 1)))], knots=2),
        lambda _, stack: Linear(np.ones((stack, ACTIONS, 1))),
        refused=ANY,
    ),
}
# the greatest gap of a support's bound per unit of |h|_1, where it is not rounding
GAPS = {"steep powers": 1e-4, "exact": 2e-3, "reduced": 2e-3}
GAPS |= dict.fromkeys(["powers", "one power", "powers between", "binomial", "bernstein"], 1e-5)
GAPS |= {name: 5e-4 for name in CASES if name.startswith(("mono", "taylor", "chebyshev"))}
GAPS["monomials above a floor"] = 2e-4

EVERY = pytest.mark.parametrize("name", CASES)


def points(outcomes: int) -> Array:
    """Outcomes on a lattice, its corners, next to the ends, and at random."""
    ticks = np.linspace(0, 1, {1: 203, 2: 24}.get(outcomes, 7))
    ends = [5e-324, 1e-12, 1e-3, 1 - 1e-9, np.nextafter(1, 0)]
    even = np.array(list(itertools.product([*ticks, *ends], repeat=outcomes)))
    return np.concatenate([even, np.random.default_rng(5).random((400, outcomes))])


def box(basis: Basis, count: int = 60) -> Array:
    rng = np.random.default_rng(6)
    inner = rng.random((count, basis.size))
    corners = inner[:1] * 0, inner[:1] * 0 + 1
    return np.concatenate([inner, rng.integers(0, 2, inner.shape), *corners])


def test_every_exported_basis_has_a_case() -> None:
    tested = {type(case.basis).__name__ for case in CASES.values()}
    assert set(bases.__all__) - tested == set()


FAMILIES: dict[str, Draw] = {
    "linear": linear(2),
    "powers": powers([0.3, 2.0], 2),
    "targets": lambda rng, stack: targets(2, 2)(rng, stack)[:1],
    "sums": sums(2, 2),
    "exponentials": exponentials(1.0, 2),
    "convex": convex(1.0, 2, 1),
    "ratios": ratios(2.0, 2),
    "waves": waves(2.0, 2),
}


@pytest.mark.parametrize("kind", built_in(register.basis))
def test_a_registered_basis_serves_a_family_as_it_declares(kind: str) -> None:
    """Made from the losses, for the families that it accepts; whoever registers one is tested."""
    served = 0
    for draw in FAMILIES.values():
        losses = draw(np.random.default_rng(0), 3)
        try:
            basis = register.basis[kind]([losses])
            basis.coefficients(losses)
        except ValueError:
            continue
        served += 1
        assert basis.audit(losses, points(2)) <= basis.certified_error(losses) + EXACT
    assert served


def test_losses_of_several_forms_get_the_sum_of_their_default_bases() -> None:
    """One part for each family, exact or within the wanted error."""
    rng = np.random.default_rng(0)
    losses = [FAMILIES[name](rng, 3) for name in ("linear", "targets", "exponentials", "convex")]
    basis = default_basis(losses, error=0.05)
    assert isinstance(basis, bases.DirectSumBasis)
    assert len(basis.parts) >= 3
    assert max(basis.audit(loss, points(2)) for loss in losses) <= 0.05
    few = default_basis([ratios(2.0, 2)(rng, 2)], listed=8)
    assert isinstance(few, bases.ExactLossesBasis)


@EVERY
def test_the_transform_has_the_declared_size_and_range(name: str) -> None:
    """One outcome is a row of many; a list will do; the outcomes are left as they were."""
    basis = CASES[name].basis
    outcomes = points(basis.outcomes)
    before = outcomes.copy()
    table = basis.transform(outcomes)
    assert table.shape == (len(outcomes), basis.size)
    assert table.dtype == np.float64
    assert 0 <= table.min() <= table.max() <= 1
    assert (np.ptp(table, axis=0) > 0).all()  # no function is idle
    for k in (0, 7, len(outcomes) - 1):
        row = basis.transform(outcomes[k].tolist())
        assert row.shape == (basis.size,)
        assert row == pytest.approx(table[k], abs=1e-14)
    assert np.array_equal(outcomes, before)


@EVERY
def test_coefficients_have_their_layout_and_are_the_same_alone_and_in_a_stack(name: str) -> None:
    """In index order, as the kernels read them; the same in another order, and asked again."""
    case = CASES[name]
    for draw in (case.draw, case.raw or case.draw):
        offset, weights = case.basis.coefficients(draw(np.random.default_rng(0), STACK))
        assert offset.shape == (STACK, ACTIONS)
        assert weights.shape == (STACK, ACTIONS, case.basis.size)
        for array in (offset, weights):
            assert array.dtype == np.float64
            assert array.flags.c_contiguous
            assert np.isfinite(array).all()
    losses = case.losses()
    offset, weights = case.basis.coefficients(losses)
    order = np.random.default_rng(1).permutation(STACK)
    for own in (STACK - 1, 0, slice(3, 4), order):
        alone = case.basis.coefficients(losses[own])
        assert alone[0].shape == offset[own].shape
        assert alone[0] == pytest.approx(offset[own], abs=1e-12)
        assert alone[1] == pytest.approx(weights[own], rel=1e-12, abs=1e-12)


@EVERY
def test_no_loss_is_further_than_declared_and_coefficients_stay_within_lambda(name: str) -> None:
    """On outcomes that no construction has seen; exactly where the error is 0.

    The error of a reduced basis is measured, and the certificate is its bound.
    """
    case = CASES[name]
    for seed in range(2):
        losses = case.losses(seed)
        measured = case.basis.audit(losses, points(case.basis.outcomes))
        if case.basis.proved:
            assert measured <= case.basis.error + (EXACT if case.basis.error == 0 else 1e-12)
        assert measured <= case.basis.certified_error(losses) + EXACT
        raw = (case.raw or case.draw)(np.random.default_rng(seed), STACK)
        _, weights = case.basis.coefficients(raw)
        assert np.abs(weights).sum(-1).max() <= case.basis.lipschitz * (1 + 1e-9)


@EVERY
def test_losses_outside_the_family_are_refused(name: str) -> None:
    """Another form, or one loss over outcomes of another length, with a ValueError that says so."""
    case = CASES[name]
    for loss in other_forms(case.basis.outcomes):
        if loss.form in case.refused:
            with pytest.raises(ValueError, match=r"\w+ "):
                case.basis.coefficients(loss)
    for outcomes in {1, 2, 3, 4} - {case.basis.outcomes}:
        for loss in other_forms(outcomes):
            with pytest.raises(ValueError, match=r"outcomes|span|coordinate"):
                case.basis.coefficients(loss)


# every stack of linear losses is one of the family
@pytest.mark.parametrize(
    "name", [n for n in CASES if CASES[n].refused and n not in ("linear", "sum, its first part")]
)
def test_one_bad_loss_of_a_stack_is_refused(name: str) -> None:
    """It takes the others with it: no silent approximation."""
    losses: Any = CASES[name].losses()
    field, value = {
        "separable-power": ("exponent", 17.3),
        "power-of-sum": ("exponent", 17.0),
        "exponential-of-sum": ("weights", 50.0),
        "convex-1d": ("slope", -99.0),
        "minimum-of-ratios": ("requirements", 1e-3),
        "lipschitz": ("constant", 99.0),
    }[losses.form]
    table = np.array(getattr(losses, field))
    table[3] = value
    with pytest.raises(ValueError, match=r"\w+ "):
        CASES[name].basis.coefficients(replace(losses, **{field: table}))


@EVERY
def test_labels_are_outcomes(name: str) -> None:
    """For any prediction of the box, one or many.

    Where the image is convex true transforms come back, and every label has the losses that its
    prediction promises.
    """
    case = CASES[name]
    basis = case.basis
    predictions = box(basis)
    labels = basis.inverse(predictions)
    assert labels.shape == (len(predictions), basis.outcomes)
    assert 0 <= labels.min() <= labels.max() <= 1
    for k in (0, -1):
        assert basis.inverse(predictions[k]) == pytest.approx(labels[k], abs=1e-12)
    if basis.convex_image:
        outcomes = points(basis.outcomes)
        back = basis.inverse(basis.transform(outcomes))
        assert back == pytest.approx(np.maximum(outcomes, case.floor), abs=1e-9)
        _, weights = basis.coefficients(case.losses())
        kept = weights @ basis.transform(labels).T
        assert kept == pytest.approx(weights @ predictions.T, abs=1e-9)


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("sum")])
def test_a_support_bounds_every_outcome_and_closely(name: str) -> None:
    """In directions with |h|_1 = 1, some of them sparse."""
    basis, rng = CASES[name].basis, np.random.default_rng(2)
    support, images = basis.support(), basis.transform(points(basis.outcomes))
    rows = rng.standard_normal((12, basis.size))
    rows[::2] *= rng.random((6, basis.size)) < 0.4
    for row in rows[np.abs(rows).sum(1) > 0]:
        direction = row / np.abs(row).sum()
        vertex, bound = support.best(direction), support.bound(direction)
        assert ((vertex.outcome >= 0) & (vertex.outcome <= 1)).all()
        assert basis.transform(vertex.outcome) == pytest.approx(vertex.image, abs=1e-12)
        brute = float((images @ direction).max())
        assert brute <= bound + 1e-15
        assert bound <= support.bound(direction, enough=bound + 0.01) <= bound + 0.01
        assert bound <= max(brute, float(vertex.image @ direction)) + GAPS.get(name, 1e-9)


@pytest.mark.parametrize("name", ["linear", "relu", "grid", "exact"])
def test_the_forecaster_and_the_agents_see_the_same_action(name: str) -> None:
    """Bit by bit and at ties too: the first and the last action of each loss are equal here."""
    case = CASES[name]
    offset, weights = case.basis.coefficients(case.losses())
    offset = np.concatenate([offset, offset[:, :1]], axis=1)
    weights = np.concatenate([weights, weights[:, :1]], axis=1)
    rows = LossTable([ProtectedLosses(offset, weights)])
    seen = np.concatenate([box(case.basis, 20), case.basis.transform(points(case.basis.outcomes))])
    for point in seen[:: max(len(seen) // 40, 1)]:
        own = best_response(expected_losses(offset, weights, point))
        assert np.array_equal(responses_at(rows, point).reshape(STACK, -1).argmax(1), own)
        assert (own < ACTIONS).all()  # the twin comes last


def test_a_direct_sum_proves_what_its_parts_prove() -> None:
    """The certificate of the part that serves the loss, not the error that it has measured."""
    part = CASES["reduced"].basis
    whole = bases.DirectSumBasis([bases.LinearBasis(2), part])
    for losses in crowd():
        assert whole.certified_error(losses) == pytest.approx(part.certified_error(losses))
    assert whole.certified_error(Linear([[0.3, 0.7]])) == 0


def test_the_audit_is_the_greatest_distance() -> None:
    """The audit finds the error of a single loss at a single outcome."""
    basis = PowerBasis([0.5, 2.0], 1, exact=False)
    # at exponent 1 the Lagrange weights of 0.5 and 2 are 2/3 and 1/3
    miss = 0.25 - (2 / 3 * 0.25**0.5 + 1 / 3 * 0.25**2)
    for outcomes in ([[0.25]], [[0.0], [0.25], [1.0]]):
        assert basis.audit(CES([[1.0]], 1.0), outcomes) == pytest.approx(abs(miss), abs=1e-14)


@pytest.mark.parametrize(
    ("low", "high", "error", "powers"),
    [
        (0.3, 0.9, 0.1, 3),
        (0.3, 0.9, 0.01, 6),
        (0.3, 0.9, 0.001, 9),
        (0.5, 2.0, 0.01, 12),
        (0.4, 0.6, 1e-6, 7),
        (0.6, 0.7, 0.01, 2),
        (0.7, 0.7, 0.01, 1),
    ],
)
def test_covering_keeps_the_error_with_the_fewest_powers(
    low: float, high: float, error: float, powers: int
) -> None:
    basis = PowerBasis.covering(low, high, 2, error=error)
    assert 0 <= basis.error <= error
    assert basis.size == 2 * len(basis.exponents) == 2 * powers
    assert ((basis.exponents >= low) & (basis.exponents <= high)).all()


@pytest.mark.parametrize("exact", [True, False])
def test_a_listed_exponent_uses_its_own_power_alone(*, exact: bool) -> None:
    """At a node the coefficients are the weights, exactly, interpolated or not."""
    loss = CES([[[0.25, 0.75], [0.5, 0.5]]], [1.0])
    _, weights = PowerBasis([0.5, 1.0, 2.0], 2, exact=exact).coefficients(loss)
    by_power = weights.reshape(2, 2, 3)
    assert np.array_equal(by_power[..., 1], loss.weights[0])
    assert not by_power[..., [0, 2]].any()


NAN = float("nan")
FLAT = {"reach": 1.0, "error": 0.1, "floor": 0.0}
IMPOSSIBLE: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("PowerBasis", ([0.0, 0.5], 2), {}, "exponents must be positive"),
    ("PowerBasis", ([0.5, NAN], 2), {}, "exponents must be positive"),
    ("DirectSumBasis", ([],), {}, "same number of outcomes"),
    ("DirectSumBasis", ([LinearBasis(2), LinearBasis(3)],), {}, "same number of outcomes"),
    ("BernsteinBasis", (2, 0), {}, "degree of 0"),
    ("MonomialBasis", (2, 0), {}, "degree of 0"),
    ("MonomialBasis", (2, 2), {"power": 0.0}, "leaves"),
    ("MonomialBasis", (2, 2), {"power": -1.0, "floor": 0.1}, "leaves"),
    ("MonomialBasis", (10, 10), {}, "184755 monomials.*smaller degree"),
    ("TaylorExponentialBasis", (1,), {"reach": 0.0, "error": 0.1}, "reach"),
    ("ChebyshevExponentialBasis", (9,), {"reach": 4.0, "error": 1e-4}, "exceed 50000; allow a gre"),
    ("ChebyshevExponentialBasis", (1,), {"reach": 30.0, "error": 1e-8}, "rounding; allow a great"),
    ("ChebyshevExponentialBasis", (1,), {"reach": 1e6, "error": 0.1}, "too wide for a series; all"),
    ("ChebyshevExponentialBasis", (1,), FLAT, "needs a floor"),
    ("OptimisedConvexBasis", (), {"error": 0.1, "cap": 0.9}, "below 1"),
    ("OptimisedConvexBasis", (), {"error": 0.1, "cap": NAN}, "below 1"),
    ("OptimisedConvexBasis", (), {"error": 1e-4}, "that of the finest table; use ReLUBasis"),
    ("ConvexRankBasis", (), {"error": 0.0}, "not positive"),
    ("ConvexRankBasis", (), {"error": 1e-7}, "more than 100000 cells"),
    ("LeontiefBasis", (2, 2), {}, "at least 3"),
    ("LeontiefBasis", (2, 5), {"constant": 0.0}, "above 0"),
    ("LeontiefBasis", (4, 20), {}, "too many"),
    ("RampBasis", (crowd(),), {"knots": 1}, "at least 2"),
    ("RampBasis", (crowd(),), {"floor": 1.0}, "not in"),
    ("RampBasis", (crowd(),), {"error": 0.0}, "not positive"),
]


@pytest.mark.parametrize(("name", "given", "options", "says"), IMPOSSIBLE)
def test_impossible_bases_are_refused(name: str, given: Any, options: Any, says: str) -> None:
    """Senseless parameters and immense sizes, with the cure."""
    with pytest.raises(ValueError, match=f"^.*{says}.*$") as refused:
        getattr(bases, name)(*given, **options)
    assert "\n" not in str(refused.value)


def test_what_a_basis_cannot_serve_names_the_least_or_the_count() -> None:
    with pytest.raises(ValueError, match="more than 24 powers"):
        PowerBasis.covering(0.05, 3.0, 1, error=0.001)
    steep = MinimumOfRatios([[[1.0, 0.5]], [[1.0, 0.49]]])
    with pytest.raises(ValueError, match=r"a requirement is below \|amplitude\| / 2 \(1/L\)"):
        bases.LeontiefBasis(2, 5, constant=2.0).coefficients(steep)
    with pytest.raises(ValueError, match="a requirement is below"):
        bases.LeontiefBasis(1, 5).coefficients(MinimumOfRatios([[1.5]], np.array([-2.0])))
