"""One suite that every basis passes: what it declares is measured, and every reader agrees."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pytest
from small_scenarios import built_in_names

from regretless.agents.utilities.forms import CES, CobbDouglas, Leontief
from regretless.forecaster import bases
from regretless.forecaster.bases.default import default_basis
from regretless.market import losses as forms
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.losses import Linear, Loss
from regretless.market.losses.basis import Basis

Rng = np.random.Generator
Draw = Callable[..., Loss]  # so many losses; with raw=True of the family that lambda is for
STACK = 24
ACTIONS = 4
EXACT = 1e-10  # what rounding may add


def drawn(make: Callable[..., Loss]) -> Callable[..., Draw]:
    """Take the family's parameters first, the generator and the number of losses later."""

    def of(*parameters: Any, **keys: Any) -> Draw:
        return lambda rng, stack, **more: make(rng, stack, *parameters, **keys, **more)

    return of


def signed(rng: Rng, stack: int, outcomes: int) -> Array:
    """Weights of both signs; some rows put all on one coordinate, one row is 0."""
    weights = rng.normal(size=(stack, ACTIONS, outcomes))
    lone = np.eye(outcomes)[rng.integers(outcomes, size=(stack, ACTIONS))]
    weights = np.where(rng.random((stack, ACTIONS, 1)) < 0.3, lone, weights)
    weights[-1, -1] = 0.0
    return weights


def within(rng: Rng, stack: int, outcomes: int, reach: float) -> Array:
    """Weights whose absolute values add up to at most the reach; many reach it."""
    weights = signed(rng, stack, outcomes)
    total = np.abs(weights).sum(-1, keepdims=True)
    share = np.where(rng.random(total.shape) < 0.5, 1.0, rng.random(total.shape))
    return reach * share * weights / np.where(total > 0, total, 1.0)


@drawn
def linear(rng: Rng, stack: int, outcomes: int) -> Loss:
    """Draw linear losses."""
    return Linear(signed(rng, stack, outcomes)).normalised()


@drawn
def powers(rng: Rng, stack: int, exponents: list[float], outcomes: int) -> Loss:
    """Powers about 0."""
    chosen = rng.choice(exponents, stack)
    return forms.SeparablePower(signed(rng, stack, outcomes), chosen).normalised()


@drawn
def targets(rng: Rng, stack: int, degree: int, outcomes: int, *, raw: bool = False) -> Loss:
    """Even powers about any point and odd ones about points outside, up to a degree.

    With ``raw`` ``sum_j (a_j - y_j)^p`` for an even p, as it stands, a anywhere in the cube.
    """
    chosen = rng.integers(1, degree + 1, stack).astype(float)
    chosen[0] = degree
    shape = stack, ACTIONS, outcomes
    inner = np.where(rng.random(shape) < 0.3, rng.integers(2, size=shape), rng.random(shape))
    if raw:
        inner[0, 0] = 1.0
        return forms.SeparablePower(np.ones(shape), np.array(float(degree)), centre=inner)
    outer = rng.choice([-0.3, 0.0, 1.0, 1.2], shape)
    centre = np.where(chosen[:, None, None] % 2 == 0, inner, outer)
    return forms.SeparablePower(signed(rng, stack, outcomes), chosen, centre=centre).normalised()


@drawn
def sums(
    rng: Rng,
    stack: int,
    degree: int,
    outcomes: int,
    *,
    min_degree: int = 1,
    raw: bool = False,
    **g: Any,
) -> Loss:
    """Integer powers of a sum, with intercepts unless all have one degree.

    With ``raw`` A = 1, there is no intercept and absolute weights add up to at most 1.
    """
    exponent = rng.integers(min_degree, degree + 1, stack)
    if raw:
        return forms.PowerOfSum(within(rng, stack, outcomes, 1.0), exponent, **g)
    intercept = rng.normal(size=(stack, ACTIONS)) * (min_degree < degree)
    stack_of_sums = forms.PowerOfSum(
        signed(rng, stack, outcomes), exponent, intercept=intercept, **g
    )
    return stack_of_sums.normalised()


@drawn
def exponentials(
    rng: Rng, stack: int, reach: float, outcomes: int, *, raw: bool = False, **g: float
) -> Loss:
    """Exponentials of a sum with amplitudes of both signs; with A = 1 if ``raw``."""
    parameters = {"power": 0.0, "floor": 0.01} | g
    stack_of_exponentials = forms.ExponentialOfSum(
        within(rng, stack, outcomes, reach), **parameters
    )
    amplitude = rng.choice([-1.0, 1.0], (stack, ACTIONS)) * (0.1 + rng.random((stack, ACTIONS)))
    return (
        stack_of_exponentials
        if raw
        else replace(stack_of_exponentials, amplitude=amplitude).normalised()
    )


@drawn
def convex(rng: Rng, stack: int, constant: float, outcomes: int = 1, coordinate: int = 0) -> Loss:
    """Broken lines with slopes up to the constant: one tent, a line, knots outside the cube."""
    knots = rng.uniform(-0.2, 1.2, (stack, ACTIONS, 5))
    kinks = rng.dirichlet(np.full(5, 0.3), (stack, ACTIONS))
    start = -rng.random((stack, ACTIONS))
    knots[0] = 0.5
    kinks[0] = 0.0
    start[0] = 0.5  # a line
    tents = slice(1, stack // 2)
    knots[tents, :, 0] = rng.random(knots[tents, :, 0].shape)
    kinks[tents] = np.eye(5)[0]
    start[tents] = -0.5
    scale = constant / forms.Convex1D(kinks, knots, start).lipschitz().max()
    coordinate_and_dimension = {"coordinate": coordinate, "dimension": outcomes}
    return forms.Convex1D(scale * kinks, knots, scale * start, **coordinate_and_dimension)


@drawn
def ratios(rng: Rng, stack: int, constant: float, outcomes: int) -> Loss:
    """Minima of ratios, some with every requirement at its least."""
    amplitude = rng.choice([-1.0, 1.0], (stack, ACTIONS)) * rng.uniform(0.5, 1, (stack, 1))
    min_needs = np.abs(amplitude)[..., None] / constant
    needs = min_needs * np.exp(rng.exponential(0.7, (stack, ACTIONS, outcomes)))
    needs[0] = min_needs[0]
    needs[1, :, 0] = min_needs[1, :, 0]
    needs[1, :, 1:] = 50.0
    return forms.MinimumOfRatios(needs, amplitude, offset=(amplitude < 0) * 1.0)


@drawn
def waves(rng: Rng, stack: int, constant: float, outcomes: int) -> Loss:
    """Losses of any form with a Lipschitz constant: triangle waves in the greatest coordinate."""
    shifts = rng.random((stack, ACTIONS))

    def function(y: Array) -> Array:
        return np.abs((constant * y.max(-1)[:, None, None] + 2 * shifts) % 2 - 1)

    return forms.LipschitzLoss(function, np.array(constant), shifts.shape, outcomes)


def three_families() -> tuple[Loss, ...]:
    """Draw eight losses of each of three utilities, some with equal parameters."""
    rng = np.random.default_rng(7)
    shares = rng.dirichlet(np.ones(2), (8, ACTIONS))
    shares[1] = shares[0]
    shares[2] = shares[2, 0]
    needs = rng.uniform(0.25, 1, (8, ACTIONS, 2))
    return CES(shares, rng.uniform(0.3, 0.9, 8), 1.0), CobbDouglas(shares), Leontief(needs)


CROWD = three_families()


def losses_of_crowd(rng: Rng, stack: int) -> Loss:
    """Draw losses of one of the three families."""
    family = CROWD[int(rng.integers(3))]
    return family[rng.integers(len(family), size=stack)]


def constant_losses(_: Rng, stack: int) -> Loss:
    """Return losses that depend on no outcome."""
    return Linear(np.ones((stack, ACTIONS, 1)))


def other_forms(outcomes: int) -> list[Loss]:
    """One loss of every form, each steep and curved: no case serves them."""
    table = np.random.default_rng(0).random((2, ACTIONS, outcomes)) + 0.2
    kink = np.ones((2, 4, 1))

    def squares(y: Array) -> Array:
        return np.stack([y.max(-1) ** 2, 1 - y.min(-1) ** 2], axis=-1)

    return [
        Linear(9 * table),
        forms.SeparablePower(9 * table, np.array(2.51), centre=np.array(0.4)),
        forms.PowerOfSum(table, np.array(2.5), np.array(0.7), np.array(0.17)),
        forms.ExponentialOfSum(9 * table, np.array(1.3), np.array(0.17)),
        forms.MinimumOfRatios(table / 50),
        forms.Convex1D(90.0 * kink, 0.4 * kink, dimension=outcomes),
        forms.LipschitzLoss(squares, np.array(200.0), (2,), outcomes),
    ]


EVERY_FORM = tuple(loss.form for loss in other_forms(1))
ANY = ()  # any loss has coefficients, for which nothing is claimed
UNLESS_LINEAR = EVERY_FORM[1:]


class Case(NamedTuple):
    """A basis with the losses that it serves."""

    basis: Basis
    draw: Draw  # of its family
    refused: tuple[str, ...] = EVERY_FORM  # forms of ``other_forms``
    floor: float = 0.0  # outcomes below it are one outcome
    raw: bool = False  # whether lambda is for losses as they stand

    def losses(self, seed: int = 0, **more: bool) -> Loss:
        return self.draw(np.random.default_rng(seed), STACK, **more)

    def measured(self, seed: int = 0) -> Loss:
        """Return losses for which lambda is declared."""
        return self.losses(seed, raw=True) if self.raw else self.losses(seed)


WEALTH = {"power": 1.0, "floor": 0.0}
LINE = bases.LinearBasis(2)
ROOT = bases.PowerBasis([0.5], 2)
monomials = bases.MonomialBasis
grids = bases.LipschitzGridBasis
both = bases.DirectSumBasis
between = bases.PowerBasis.covering
covering = bases.LeontiefBasis.covering
FLAT = [Linear(np.ones((STACK, ACTIONS, 1)))]
TAYLOR = bases.TaylorExponentialBasis(2, reach=2.0, error=0.01, **WEALTH)
SERIES = bases.ChebyshevExponentialBasis(2, reach=1.0, error=0.05)
CASES: dict[str, Case] = {
    "linear": Case(bases.LinearBasis(3), linear(3), refused=UNLESS_LINEAR),
    "powers": Case(bases.PowerBasis([0.3, 0.5, 2.0], 2), powers([0.3, 0.5, 2.0], 2)),
    "steep powers": Case(bases.PowerBasis([0.05, 1.2], 2), powers([0.05], 2)),
    "one power": Case(ROOT, powers([0.5], 2)),
    "powers between": Case(between(0.3, 0.9, 2, error=0.01), powers(np.linspace(0.3, 0.9, 13), 2)),
    "binomial": Case(bases.PowerBasis.binomial(4, 2), targets(4, 2), UNLESS_LINEAR, raw=True),
    "bernstein": Case(bases.BernsteinBasis(2, 4), targets(4, 2), UNLESS_LINEAR, raw=True),
    "monomials": Case(bases.MonomialBasis(3, 3, power=0.5), sums(3, 3, power=0.5), raw=True),
    "homogeneous monomials": Case(
        monomials(2, 3, homogeneous=True), sums(3, 2, min_degree=3), raw=True
    ),
    "floored sums": Case(monomials(2, 2, floor=0.1), sums(2, 2, floor=0.1), floor=0.1, raw=True),
    "taylor of wealth": Case(TAYLOR, exponentials(2.0, 2, **WEALTH), raw=True),
    "chebyshev": Case(
        bases.ChebyshevExponentialBasis(2, reach=1.0, error=0.02), exponentials(1.0, 2), floor=0.01
    ),
    "relu": Case(bases.ReLUBasis(error=0.03), convex(1.0)),
    "relu of one coordinate": Case(
        bases.ReLUBasis(error=0.1, outcomes=3, coordinate=1, constant=4.0), convex(4.0, 3, 1)
    ),
    "convex rank": Case(bases.ConvexRankBasis(error=0.06), convex(1.0)),
    "optimised": Case(bases.OptimisedConvexBasis(error=0.04), convex(1.0)),
    "grid": Case(bases.LipschitzGridBasis(2, constant=2.0, error=0.2), waves(2.0, 2)),
    "grid as printed": Case(grids(1, constant=2.0, error=0.23, centred=False), waves(2.0, 1)),
    "leontief": Case(bases.LeontiefBasis(2, 9, constant=2.0), ratios(2.0, 2)),
    "nearest leontief": Case(covering(2, constant=1.5, error=0.2, nearest=True), ratios(1.5, 2)),
    "exact": Case(bases.ExactLossesBasis(CROWD), losses_of_crowd),
    "reduced": Case(bases.ReducedBasis(CROWD, error=0.06), losses_of_crowd, refused=ANY),
    "ramps": Case(bases.RampBasis(CROWD, knots=5), losses_of_crowd, refused=ANY),
    "one ramp": Case(bases.RampBasis(FLAT, knots=2), constant_losses, refused=ANY),
    "indicators beside": Case(
        bases.WithIndicators(bases.ReLUBasis(error=0.1), steps=7), convex(1.0)
    ),
    "sum, first part": Case(both([LINE, ROOT]), linear(2), UNLESS_LINEAR),
    "sum, last part": Case(both([LINE, SERIES]), exponentials(1.0, 2), UNLESS_LINEAR, floor=0.01),
}
# the greatest gap of a support's bound per unit of |h|_1, where it is not rounding
GAPS = {"steep powers": 1e-4, "exact": 2e-3, "reduced": 2e-3, "floored sums": 2e-4}
GAPS |= dict.fromkeys(["monomials", "homogeneous monomials", "taylor of wealth"], 5e-4)
GAPS |= dict.fromkeys(["powers", "one power", "powers between", "binomial", "bernstein"], 1e-5)
GAPS |= {"chebyshev": 5e-4}
# whose lambda some loss of the family needs, and whose error some loss nearly has
NEEDED = {"linear", "powers", "one power", "binomial", "bernstein", "exact"}
NEEDED |= {"monomials", "homogeneous monomials"}
COVERED = [(0.3, 0.9, 0.1, 3), (0.3, 0.9, 0.01, 6), (0.3, 0.9, 0.001, 9), (0.5, 2.0, 0.01, 12)]
COVERED += [(0.4, 0.6, 1e-6, 7), (0.6, 0.7, 0.01, 2), (0.7, 0.7, 0.01, 1)]
REACHED = {"grid", "grid as printed"}
EVERY = pytest.mark.parametrize("name", CASES)


def points(outcomes: int) -> Array:
    """Outcomes on a lattice, its corners, next to the ends, and at random."""
    ticks = np.linspace(0, 1, {1: 203, 2: 24}.get(outcomes, 7))
    near_corners = [5e-324, 1e-12, 1e-3, 1 - 1e-9, np.nextafter(1, 0)]
    even = np.array(list(itertools.product([*ticks, *near_corners], repeat=outcomes)))
    return np.concatenate([even, np.random.default_rng(5).random((400, outcomes))])


def points_of_the_box(basis: Basis) -> Array:
    """Return predictions in the unit cube: inside, at corners, and both ends."""
    rng = np.random.default_rng(6)
    inner = rng.random((60, basis.size))
    corners = [[[0.0] * basis.size], [[1.0] * basis.size]]
    return np.concatenate([inner, rng.integers(0, 2, inner.shape), *corners])


def test_every_exported_basis_has_a_case() -> None:
    assert {*bases.__all__} <= {type(case.basis).__name__ for case in CASES.values()}


@pytest.mark.parametrize("kind", built_in_names(register.basis))
def test_a_registered_basis_serves_a_family_as_it_declares(kind: str) -> None:
    """Made from the losses, for the families that it accepts; whoever registers one is tested."""
    served = 0
    for draw in FAMILIES:
        losses = draw(np.random.default_rng(0), 3)
        try:
            basis = register.basis[kind]([losses])
            basis.coefficients(losses)
        except ValueError:
            continue
        served += 1
        assert basis.audit(losses, points(2)) <= basis.certified_error(losses) + EXACT
    assert served


FAMILIES = [
    linear(2), targets(2, 2), exponentials(1.0, 2, floor=0.1), convex(1.0, 2, 1),
    powers([0.3, 2.0], 2), sums(2, 2), ratios(2.0, 2), waves(2.0, 2),
]  # fmt: skip


def test_losses_of_several_forms_get_the_sum_of_their_default_bases() -> None:
    """One part for each family, exact or within the wanted error."""
    rng = np.random.default_rng(0)
    losses = [draw(rng, 3) for draw in FAMILIES[:4]]
    basis = default_basis(losses, error=0.05)
    assert isinstance(basis, bases.DirectSumBasis)
    assert len(basis.parts) >= 3
    assert max(basis.audit(loss, points(2)) for loss in losses) <= 0.05
    basis_of_listed = default_basis([ratios(2.0, 2)(rng, 2)], listed=8)
    assert isinstance(basis_of_listed, bases.ExactLossesBasis)


@EVERY
def test_the_transform_has_the_declared_size_and_range(name: str) -> None:
    """One outcome is a row of many; a list will do; the outcomes are left as they were."""
    basis = CASES[name].basis
    outcomes = points(basis.outcomes)
    table = basis.transform(outcomes)
    assert table.shape == (len(outcomes), basis.size)
    assert table.dtype == np.float64
    assert 0 <= table.min() <= table.max() <= 1
    assert (np.ptp(table, axis=0) > 0).all()  # no function is idle
    for k in (0, 7, -1):
        row = basis.transform(outcomes[k].tolist())
        assert row.shape == (basis.size,)
        assert row == pytest.approx(table[k], abs=1e-14)
    assert np.array_equal(outcomes, points(basis.outcomes))


@EVERY
def test_coefficients_have_their_layout_and_are_the_same_alone_and_in_a_stack(name: str) -> None:
    """In index order, as the kernels read them; the same in another order, and asked again."""
    case = CASES[name]
    order = np.random.default_rng(1).permutation(STACK)
    for losses in (case.measured(), case.losses()):
        offset, weights = case.basis.coefficients(losses)
        assert offset.shape == (STACK, ACTIONS)
        assert weights.shape == (STACK, ACTIONS, case.basis.size)
        for array in (offset, weights):
            assert array.dtype == np.float64
            assert array.flags.c_contiguous
            assert np.isfinite(array).all()
    for selection in (STACK - 1, 0, slice(3, 4), order):
        coefficients = case.basis.coefficients(losses[selection])
        assert coefficients[0].shape == offset[selection].shape
        assert coefficients[0] == pytest.approx(offset[selection], abs=1e-12)
        assert coefficients[1] == pytest.approx(weights[selection], rel=1e-12, abs=1e-12)


@EVERY
def test_no_loss_is_further_than_declared_and_coefficients_stay_within_lambda(name: str) -> None:
    """On unseen outcomes; a reduced basis has measured its error, and proves its certificate."""
    case = CASES[name]
    basis = CASES[name].basis
    errors = []
    totals = []
    for seed in range(2):
        losses = case.losses(seed)
        errors.append(basis.audit(losses, points(basis.outcomes)))
        assert errors[-1] <= basis.certified_error(losses) + EXACT
        _, weights = basis.coefficients(case.measured(seed))
        totals.append(np.abs(weights).sum(-1).max())
    assert max(errors) <= basis.error + (EXACT if basis.error == 0 else 1e-12) or not basis.proved
    assert max(totals) <= basis.lipschitz * (1 + 1e-9)
    assert name not in NEEDED or max(totals) == pytest.approx(basis.lipschitz)
    assert name not in REACHED or max(errors) >= 0.9 * basis.error


@EVERY
def test_losses_outside_the_family_are_refused(name: str) -> None:
    """Another form, or one loss over outcomes of another length, with a ValueError that says so."""
    case = CASES[name]
    for outcomes, loss in ((d, loss) for d in (1, 2, 3, 4) for loss in other_forms(d)):
        if outcomes != case.basis.outcomes or loss.form in case.refused:
            says = r"\w+ " if outcomes == case.basis.outcomes else "outcomes|span|coordinate"
            with pytest.raises(ValueError, match=says):
                case.basis.coefficients(loss)


# every stack of linear losses is one of the family
@pytest.mark.parametrize(
    "name", [n for n in CASES if CASES[n].refused and n not in ("linear", "sum, first part")]
)
def test_one_bad_loss_of_a_stack_is_refused(name: str) -> None:
    """It takes the others with it: no silent approximation."""
    losses: Any = CASES[name].losses()
    field, value = {
        "separable-power": ("exponent", 17.3),
        "power-of-sum": ("exponent", 17.0),
        "exponential-of-sum": ("weights", 50.0),
        "convex-1d": ("slope", -99.0),
        "minimum-of-ratios": ("requirements", 0.2499),  # 1/L is 1/4 of |A| 1/2
        "lipschitz": ("constant", 99.0),
    }[losses.form]
    table = np.array(getattr(losses, field))
    table[3] = value
    with pytest.raises(ValueError, match=r"\w+ "):
        CASES[name].basis.coefficients(replace(losses, **{field: table}))


@EVERY
def test_labels_are_outcomes_with_the_promised_losses(name: str) -> None:
    """Where the image is convex transforms come back, and labels have the promised losses."""
    case = CASES[name]
    basis = CASES[name].basis
    predictions = points_of_the_box(basis)
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
        losses_of_labels = weights @ basis.transform(labels).T
        assert losses_of_labels == pytest.approx(weights @ predictions.T, abs=1e-9)


ROWWISE = [name for name, case in CASES.items() if case.basis.inverse_is_rowwise]


@pytest.mark.parametrize("name", ROWWISE)
def test_labels_of_many_predictions_are_bit_for_bit_those_of_each(name: str) -> None:
    basis = CASES[name].basis
    predictions = points_of_the_box(basis)
    one_by_one = [basis.inverse(prediction[np.newaxis]) for prediction in predictions]
    for predictions_in_some_layout in (predictions, np.asfortranarray(predictions)):
        together = basis.inverse(predictions_in_some_layout)
        assert together.tobytes() == np.concatenate(one_by_one).tobytes()


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("sum")])
def test_a_support_bounds_every_outcome_and_closely(name: str) -> None:
    """In directions with |h|_1 = 1, some of them sparse."""
    basis = CASES[name].basis
    rng = np.random.default_rng(2)
    support = basis.support()
    images = basis.transform(points(basis.outcomes))
    rows = rng.standard_normal((12, basis.size))
    rows[::2] *= rng.random((6, basis.size)) < 0.4
    for row in rows[np.abs(rows).sum(1) > 0]:
        direction = row / np.abs(row).sum()
        vertex = support.best(direction)
        bound = support.bound(direction)
        assert ((vertex.outcome >= 0) & (vertex.outcome <= 1)).all()
        assert basis.transform(vertex.outcome) == pytest.approx(vertex.image, abs=1e-12)
        brute = max(float((images @ direction).max()), float(vertex.image @ direction))
        assert brute <= bound + 1e-15
        assert bound <= support.bound(direction, enough=bound + 0.01) <= bound + 0.01
        assert bound <= brute + GAPS.get(name, 1e-9)


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("sum")])
def test_the_bound_of_a_support_grows_with_the_length_of_the_direction(name: str) -> None:
    """From 0 for no direction; twice the direction has twice the bound."""
    basis = CASES[name].basis
    support = basis.support()
    direction = np.random.default_rng(3).standard_normal(basis.size)
    direction /= np.abs(direction).sum()
    assert support.bound(np.zeros(basis.size)) == pytest.approx(0.0, abs=1e-12)
    slack = 2 * GAPS.get(name, 1e-9)
    assert support.bound(2 * direction) == pytest.approx(2 * support.bound(direction), abs=slack)


def test_a_direct_sum_proves_what_its_parts_prove() -> None:
    """The certificate of the part that serves the loss, not the error that it has measured."""
    part = CASES["reduced"].basis
    direct_sum = bases.DirectSumBasis([LINE, part])
    for losses in CROWD:
        assert direct_sum.certified_error(losses) == pytest.approx(part.certified_error(losses))
    assert direct_sum.certified_error(Linear([[0.3, 0.7]])) == 0


def test_the_audit_is_the_greatest_distance() -> None:
    basis = bases.PowerBasis([0.5, 2.0], 1, exact=False)
    # at exponent 1 the Lagrange weights of 0.5 and 2 are 2/3 and 1/3
    miss = abs(0.25 - (2 / 3 * 0.25**0.5 + 1 / 3 * 0.25**2))
    for outcomes in ([[0.25]], [[0.0], [0.25], [1.0]]):
        assert basis.audit(CES([[1.0]], 1.0), outcomes) == pytest.approx(miss, abs=1e-14)


@pytest.mark.parametrize(("low", "high", "error", "powers"), COVERED)
def test_powers_that_cover_an_interval_are_few(
    low: float, high: float, error: float, powers: int
) -> None:
    basis = bases.PowerBasis.covering(low, high, 2, error=error)
    assert 0 <= basis.error <= error
    assert basis.size == 2 * len(basis.exponents) == 2 * powers
    assert ((basis.exponents >= low) & (basis.exponents <= high)).all()


@pytest.mark.parametrize("exact", [True, False])
def test_a_listed_exponent_uses_its_own_power_alone(*, exact: bool) -> None:
    """At a node the coefficients are the weights, exactly, interpolated or not."""
    loss = CES([[[0.25, 0.75], [0.5, 0.5]]], [1.0])
    _, weights = bases.PowerBasis([0.5, 1.0, 2.0], 2, exact=exact).coefficients(loss)
    assert np.array_equal(weights.reshape(2, 2, 3), loss.weights[0][..., None] * [0, 1, 0])


@pytest.mark.parametrize("degree", [1, 2, 4, 7, 16])
def test_normalised_targets_need_at_most_the_degree(degree: int) -> None:
    """In Bernstein polynomials; an even power about 1/2 needs all of it."""
    basis = bases.BernsteinBasis(2, degree)
    for seed in range(12):
        losses = targets(degree, 2)(np.random.default_rng(seed), 30)
        assert np.abs(basis.coefficients(losses)[1]).sum(-1).max() <= degree + 1e-9
    if degree % 2 == 0:
        centred = forms.SeparablePower([[1.0, 0.0]], np.array(float(degree)), centre=np.array(0.5))
        total = np.abs(basis.coefficients(centred.normalised())[1]).sum()
        assert total == pytest.approx(degree)


@pytest.mark.parametrize("nearest", [False, True])
@pytest.mark.parametrize(("constant", "error"), [(1.0, 0.2), (2.0, 0.3), (0.1, 5.0)])
def test_cells_that_cover_a_constant_keep_the_error(
    *, constant: float, error: float, nearest: bool
) -> None:
    """Rounding to {0..m} needs half as many cells."""
    basis = bases.LeontiefBasis.covering(2, constant=constant, error=error, nearest=nearest)
    assert basis.error <= error
    assert basis.cells == max(3, math.ceil(round((2 - nearest) * constant / error, 9)))
    losses = ratios(constant, 2)(np.random.default_rng(0), 30)
    assert basis.audit(losses, points(2)) <= error


NAN = float("nan")
STEEP = [Leontief(np.random.default_rng(5).uniform(0.5, 1.5, (1, 1, 3)))]
IMPOSSIBLE: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("PowerBasis", ([0.0, 0.5], 2), {}, "exponents must be positive"),
    ("PowerBasis", ([0.5, NAN], 2), {}, "exponents must be positive"),
    ("PowerBasis.covering", (0.05, 3.0, 1), {"error": 0.001}, "more than 24 powers"),
    ("DirectSumBasis", ([],), {}, "same number of outcomes"),
    ("DirectSumBasis", ([LINE, bases.LinearBasis(3)],), {}, "same number of outcomes"),
    ("BernsteinBasis", (2, 0), {}, "degree of 0"),
    ("MonomialBasis", (2, 0), {}, "degree of 0"),
    ("MonomialBasis", (2, 2), {"power": 0.0}, "leaves"),
    ("MonomialBasis", (2, 2), {"power": -1.0, "floor": 0.1}, "leaves"),
    ("MonomialBasis", (10, 10), {}, "184755 monomials.*smaller degree"),
    ("TaylorExponentialBasis", (1,), {"reach": 0.0, "error": 0.1}, "reach"),
    ("ChebyshevExponentialBasis", (9,), {"reach": 4.0, "error": 1e-4}, "exceed 50000; allow a gre"),
    ("ChebyshevExponentialBasis", (1,), {"reach": 30.0, "error": 1e-8}, "rounding; allow a great"),
    ("ChebyshevExponentialBasis", (1,), {"reach": 1e6, "error": 0.1}, "too wide for a series; all"),
    ("ChebyshevExponentialBasis", (1,), {"reach": 1, "error": 0.1, "floor": 0.0}, "needs a floor"),
    ("OptimisedConvexBasis", (), {"error": 0.1, "cap": 0.9}, "below 1"),
    ("OptimisedConvexBasis", (), {"error": 0.1, "cap": NAN}, "below 1"),
    ("OptimisedConvexBasis", (), {"error": 1e-4}, "that of the finest table; use ReLUBasis"),
    ("ConvexRankBasis", (), {"error": 0.0}, "not positive"),
    ("ConvexRankBasis", (), {"error": 1e-7}, "more than 100000 cells"),
    ("LeontiefBasis", (2, 2), {}, "at least 3"),
    ("LeontiefBasis", (2, 5), {"constant": 0.0}, "above 0"),
    ("LeontiefBasis", (4, 20), {}, "too many"),
    ("LipschitzGridBasis", (2,), {"constant": 9.0, "error": 0.01}, "cells exceed 200000; allow"),
    ("RampBasis", (CROWD,), {"knots": 1}, "at least 2"),
    ("RampBasis", (CROWD,), {"floor": 1.0}, "not in"),
    ("RampBasis", (CROWD,), {"error": 0.0}, "not positive"),
    ("RampBasis", (STEEP,), {"error": 0.001, "budget": 10**6}, "no 12 knots or fewer have an err"),
    ("RampBasis", (STEEP,), {"error": 0.1, "budget": 1}, "no 12 knots or fewer have an error of"),
]


@pytest.mark.parametrize(("name", "arguments", "options", "message"), IMPOSSIBLE)
def test_impossible_bases_are_refused(
    name: str, arguments: Any, options: Any, message: str
) -> None:
    """Senseless parameters and immense sizes, with the cure."""
    with pytest.raises(ValueError, match=f"^.*{message}.*$") as refused:
        attrgetter(name)(bases)(*arguments, **options)
    assert "\n" not in str(refused.value)
