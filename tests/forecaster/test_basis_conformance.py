"""One suite that every basis passes: what it declares is measured, and every reader agrees."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from registered import built_in

from regretless.agents.utilities.forms import CES, CobbDouglas, Leontief
from regretless.forecaster import bases
from regretless.forecaster.bases import DirectSumBasis, LinearBasis, PowerBasis, default_basis
from regretless.forecaster.events.protected import LossTable, ProtectedLosses, arrays_of, respond
from regretless.market import register
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

Array = NDArray[np.float64]
Rng = np.random.Generator
Draw = Callable[[Rng, int], Loss]

STACK, ACTIONS = 24, 4
EXACT = 1e-10  # what rounding may add


# Families: stacks of losses that a basis claims to serve, extreme ones first.


def signed(rng: Rng, stack: int, outcomes: int, *, actions: int = ACTIONS) -> Array:
    """Weights of both signs; some rows put all on one coordinate, one row is 0."""
    weights = rng.normal(size=(stack, actions, outcomes))
    lone = np.eye(outcomes)[rng.integers(outcomes, size=(stack, actions))]
    weights = np.where(rng.random((stack, actions, 1)) < 0.3, lone, weights)
    weights[-1, -1] = 0.0
    return weights


def within(rng: Rng, stack: int, outcomes: int, reach: float) -> Array:
    """Weights whose absolute values add up to at most the reach; many reach it."""
    weights = signed(rng, stack, outcomes)
    total = np.abs(weights).sum(-1, keepdims=True)
    share = np.where(rng.random(total.shape) < 0.5, 1.0, rng.random(total.shape))
    return reach * share * weights / np.where(total > 0, total, 1.0)


def linear(outcomes: int) -> Draw:
    """Linear losses."""
    return lambda rng, stack: Linear(signed(rng, stack, outcomes)).normalised()


def raw_linear(outcomes: int) -> Draw:
    """Absolute weights that add up to at most 1, and one offset for all."""
    return lambda rng, stack: Linear(within(rng, stack, outcomes, 1.0), 0.5)


def powers(exponents: list[float], outcomes: int, *, between: bool = False) -> Draw:
    """Powers about 0 with one of these exponents, or with any in their range, ends included."""

    def draw(rng: Rng, stack: int) -> Loss:
        chosen = rng.choice(exponents, stack)
        if between:
            chosen = rng.uniform(exponents[0], exponents[-1], stack)
            chosen[:2] = exponents[0], exponents[-1]
        return SeparablePower(signed(rng, stack, outcomes), chosen).normalised()

    return draw


def targets(degree: int, outcomes: int) -> Draw:
    """Even powers about any point and odd ones about points outside, up to a degree."""

    def draw(rng: Rng, stack: int) -> Loss:
        chosen = rng.integers(1, degree + 1, stack).astype(float)
        chosen[0] = degree
        shape = stack, ACTIONS, outcomes
        inner = np.where(rng.random(shape) < 0.3, rng.integers(2, size=shape), rng.random(shape))
        outer = rng.choice([-0.3, 0.0, 1.0, 1.2], shape)
        centre = np.where(chosen[:, None, None] % 2 == 0, inner, outer)
        return SeparablePower(signed(rng, stack, outcomes), chosen, centre=centre).normalised()

    return draw


def raw_targets(degree: int, outcomes: int) -> Draw:
    """``sum_j (a_j - y_j)^p`` for an even p, as it stands, a anywhere in the cube."""

    def draw(rng: Rng, stack: int) -> Loss:
        shape = stack, ACTIONS, outcomes
        centre = np.where(rng.random(shape) < 0.3, rng.integers(2, size=shape), rng.random(shape))
        return SeparablePower(np.ones(shape), np.array(float(degree)), centre=centre)

    return draw


def sums(
    degree: int, outcomes: int, *, same: bool = False, raw: bool = False, **inner: float
) -> Draw:
    """Integer powers of a sum; of one degree and without intercepts if ``same``.

    With ``raw`` A = 1, there is no intercept and absolute weights add up to at most 1.
    """
    arrays = {name: np.array(value) for name, value in inner.items()}

    def draw(rng: Rng, stack: int) -> Loss:
        exponent = np.full(stack, degree) if same else rng.integers(1, degree + 1, stack)
        if raw:
            return PowerOfSum(within(rng, stack, outcomes, 1.0), exponent, **arrays)
        intercept = rng.normal(size=(stack, ACTIONS)) * (not same)
        weights = signed(rng, stack, outcomes)
        return PowerOfSum(weights, exponent, intercept=intercept, **arrays).normalised()

    return draw


def exponentials(
    reach: float, outcomes: int, *, power: float = 0.0, floor: float = 0.01, raw: bool = False
) -> Draw:
    """Exponentials of a sum with amplitudes of both signs; with A = 1 if ``raw``."""
    inner = np.array(power), np.array(floor)

    def draw(rng: Rng, stack: int) -> Loss:
        if raw:
            return ExponentialOfSum(within(rng, stack, outcomes, reach), *inner)
        amplitude = rng.choice([-1.0, 1.0], (stack, ACTIONS)) * (0.1 + rng.random((stack, ACTIONS)))
        weights = within(rng, stack, outcomes, reach)
        return ExponentialOfSum(weights, *inner, amplitude=amplitude).normalised()

    return draw


def convex(constant: float, outcomes: int = 1, coordinate: int = 0) -> Draw:
    """Broken lines with slopes up to the constant: one tent, a line, knots outside the cube."""

    def draw(rng: Rng, stack: int) -> Loss:
        knots = rng.uniform(-0.2, 1.2, (stack, ACTIONS, 5))
        kinks = rng.dirichlet(np.full(5, 0.3), (stack, ACTIONS))
        start = -rng.random((stack, ACTIONS))
        knots[0], kinks[0], start[0] = 0.5, 0.0, 0.5  # a line
        tents = slice(1, stack // 2)
        knots[tents, :, 0] = rng.random(knots[tents, :, 0].shape)
        kinks[tents], start[tents] = np.eye(5)[0], -0.5
        top = float(Convex1D(kinks, knots, start).lipschitz().max())
        return Convex1D(
            constant / top * kinks,
            knots,
            constant / top * start,
            coordinate=coordinate,
            dimension=outcomes,
        )

    return draw


def ratios(constant: float, outcomes: int) -> Draw:
    """Minima of ratios, some with every requirement at its least."""

    def draw(rng: Rng, stack: int) -> Loss:
        amplitude = rng.choice([-1.0, 1.0], (stack, ACTIONS)) * rng.uniform(0.5, 1, (stack, 1))
        least = np.abs(amplitude)[..., None] / constant
        needs = least * np.exp(rng.exponential(0.7, (stack, ACTIONS, outcomes)))
        needs[0] = least[0]
        needs[1, :, 0] = least[1, :, 0]
        needs[1, :, 1:] = 50.0
        return MinimumOfRatios(needs, amplitude, offset=(amplitude < 0) * 1.0)

    return draw


def waves(constant: float, outcomes: int) -> Draw:
    """Losses of any form with a Lipschitz constant: triangle waves in the greatest coordinate."""

    def draw(rng: Rng, stack: int) -> Loss:
        shifts = rng.random((stack, ACTIONS))

        def function(y: Array) -> Array:
            return np.abs((constant * y.max(-1)[:, None, None] + 2 * shifts) % 2 - 1)

        return LipschitzLoss(function, np.array(constant), (stack, ACTIONS), outcomes)

    return draw


@functools.cache
def crowd() -> tuple[Loss, ...]:
    """Three forms over two outcomes, with twins and a loss of equal actions."""
    rng = np.random.default_rng(7)
    shares = rng.dirichlet(np.ones(2), (8, ACTIONS))
    shares[1], shares[2] = shares[0], shares[2, 0]
    needs = rng.uniform(0.25, 1, (8, ACTIONS, 2))
    return CES(shares, rng.uniform(0.3, 0.9, 8), 1.0), CobbDouglas(shares), Leontief(needs)


def members(rng: Rng, stack: int) -> Loss:
    """Pick losses of the population."""
    own = crowd()[int(rng.integers(3))]
    return own[rng.integers(len(own), size=stack)]


# Losses that no case serves.


def other_forms(outcomes: int) -> list[Loss]:
    """One loss of every form, each steep and curved."""
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


EVERY_FORM = [
    "linear",
    "separable-power",
    "power-of-sum",
    "exponential-of-sum",
    "minimum-of-ratios",
    "convex-1d",
    "lipschitz",
]


@dataclass(frozen=True)
class Case:
    """A basis with the losses that it serves.

    Parameters
    ----------
    make : callable
        Makes the basis; every call must make the same.
    draw : callable
        Draws a stack of losses of its family.
    raw : callable or None
        Draws from the family of the declared lambda, where that is not ``draw``.
    refused : list of str
        Forms of ``other_forms`` that it must refuse.
    floor : float
        Outcomes below it are one outcome.
    """

    make: Callable[[], Basis]
    draw: Draw
    raw: Draw | None = None
    refused: tuple[str, ...] = tuple(EVERY_FORM)
    floor: float = 0.0

    @functools.cached_property
    def basis(self) -> Basis:
        """The basis, made once."""
        return self.make()

    def losses(self, seed: int = 0, stack: int = STACK) -> Loss:
        """Draw a stack of losses."""
        return self.draw(np.random.default_rng(seed), stack)


ANY = ()  # any loss has coefficients, for which nothing is claimed
FINITE = tuple(EVERY_FORM)  # steeper than the constant
UNLESS_LINEAR = tuple(form for form in EVERY_FORM if form != "linear")

CASES: dict[str, Case] = {
    "linear": Case(lambda: bases.LinearBasis(3), linear(3), raw_linear(3), refused=UNLESS_LINEAR),
    "powers": Case(
        lambda: bases.PowerBasis([0.3, 0.5, 2.0], 2), powers([0.3, 0.5, 2.0], 2), refused=FINITE
    ),
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
        lambda: bases.PowerBasis.binomial(4, 2),
        targets(4, 2),
        raw=raw_targets(4, 2),
        refused=UNLESS_LINEAR,
    ),
    "bernstein": Case(
        lambda: bases.BernsteinBasis(2, 4),
        targets(4, 2),
        raw=raw_targets(4, 2),
        refused=UNLESS_LINEAR,
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
    "taylor": Case(
        lambda: bases.TaylorExponentialBasis(2, reach=1.0, error=0.05),
        exponentials(1.0, 2),
        exponentials(1.0, 2, raw=True),
        floor=0.01,
    ),
    "taylor of wealth": Case(
        lambda: bases.TaylorExponentialBasis(2, reach=2.0, error=0.01, power=1.0, floor=0.0),
        exponentials(2.0, 2, power=1.0, floor=0.0),
        exponentials(2.0, 2, power=1.0, floor=0.0, raw=True),
    ),
    "chebyshev": Case(
        lambda: bases.ChebyshevExponentialBasis(3, reach=1.0, error=0.02),
        exponentials(1.0, 3),
        floor=0.01,
    ),
    "chebyshev of wealth": Case(
        lambda: bases.ChebyshevExponentialBasis(2, reach=4.0, error=0.02, power=1.0, floor=0.0),
        exponentials(4.0, 2, power=1.0, floor=0.0),
    ),
    "relu": Case(lambda: bases.ReLUBasis(error=0.03), convex(1.0)),
    "relu of one coordinate": Case(
        lambda: bases.ReLUBasis(error=0.1, outcomes=3, coordinate=1, constant=4.0),
        convex(4.0, 3, 1),
    ),
    "one relu": Case(lambda: bases.ReLUBasis(error=0.5), convex(1.0)),
    "convex rank": Case(lambda: bases.ConvexRankBasis(error=0.06), convex(1.0)),
    "convex rank of one coordinate": Case(
        lambda: bases.ConvexRankBasis(error=0.3, outcomes=2, coordinate=1, constant=3.0, stride=3),
        convex(3.0, 2, 1),
    ),
    "grid": Case(
        lambda: bases.LipschitzGridBasis(2, constant=2.0, error=0.2), waves(2.0, 2), refused=FINITE
    ),
    "grid as printed": Case(
        lambda: bases.LipschitzGridBasis(1, constant=3.0, error=0.1, centred=False),
        waves(3.0, 1),
        refused=FINITE,
    ),
    "leontief": Case(lambda: bases.LeontiefBasis(2, 9, constant=2.0), ratios(2.0, 2)),
    "leontief to the nearest": Case(
        lambda: bases.LeontiefBasis.covering(2, constant=1.5, error=0.2, nearest=True),
        ratios(1.5, 2),
    ),
    "exact": Case(lambda: bases.ExactLossesBasis(crowd()), members),
    "reduced": Case(lambda: bases.ReducedBasis(crowd(), error=0.06), members, refused=ANY),
    "sum, its first part": Case(
        lambda: bases.DirectSumBasis([bases.LinearBasis(2), bases.PowerBasis([0.5], 2)]),
        linear(2),
        refused=UNLESS_LINEAR,
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
    "optimised of one coordinate": Case(
        lambda: bases.OptimisedConvexBasis(error=0.3, outcomes=2, coordinate=1, constant=4.0),
        convex(4.0, 2, 1),
    ),
    "optimised with a cap": Case(
        lambda: bases.OptimisedConvexBasis(error=0.05, cap=3.0), convex(1.0)
    ),
    "ramps": Case(lambda: bases.RampBasis(crowd(), knots=5), members, refused=ANY),
    "one ramp": Case(
        lambda: bases.RampBasis([Linear(np.ones((STACK, ACTIONS, 1)))], knots=2),
        lambda _, stack: Linear(np.ones((stack, ACTIONS, 1))),
        refused=ANY,
    ),
}

EVERY = pytest.mark.parametrize("name", CASES)


def points(outcomes: int) -> Array:
    """Outcomes on a lattice, its corners, next to the ends, and at random."""
    ticks = np.linspace(0, 1, {1: 203, 2: 24}.get(outcomes, 7))
    ends = [5e-324, 1e-12, 1e-3, 1 - 1e-9, np.nextafter(1, 0)]
    even = np.array(list(itertools.product([*ticks, *ends], repeat=outcomes)))
    return np.concatenate([even, np.random.default_rng(5).random((400, outcomes))])


def box(basis: Basis, count: int = 60) -> Array:
    """Predictions in the box, corners among them."""
    rng = np.random.default_rng(6)
    inner = rng.random((count, basis.size))
    return np.concatenate(
        [inner, rng.integers(0, 2, inner.shape), inner[:1] * 0, inner[:1] * 0 + 1]
    )


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
            offset, weights = basis.coefficients(losses)
        except ValueError:
            continue
        served += 1
        table = basis.transform(points(2))
        assert table.shape == (len(points(2)), basis.size)
        assert (table.min(), table.max()) == (0, 1) or 0 <= table.min() < table.max() <= 1
        assert offset.shape == losses.offset.shape
        assert weights.shape == (*losses.offset.shape, basis.size)
        assert basis.audit(losses, points(2)) <= basis.certified_error(losses) + EXACT
        support, direction = basis.support(), np.random.default_rng(1).normal(size=basis.size)
        best = (table @ direction).max()
        assert best <= support.bound(direction) + EXACT
        outcome, image = support.best(direction)
        assert basis.transform(outcome) == pytest.approx(image, abs=1e-12)
    assert served


def test_losses_of_several_forms_get_the_sum_of_their_default_bases() -> None:
    """One part for each family, exact or within the wanted error."""
    rng = np.random.default_rng(0)
    losses = [FAMILIES[name](rng, 3) for name in ("linear", "targets", "exponentials", "convex")]
    basis = default_basis(losses, error=0.05)
    assert isinstance(basis, bases.DirectSumBasis)
    assert len(basis.parts) >= 3
    for loss in losses:
        assert basis.audit(loss, points(2)) <= 0.05
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
    assert table.min() >= 0
    assert table.max() <= 1
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
    for k in (STACK - 1, 0, 3):
        for one in (losses[k], losses[k : k + 1]):
            alone = case.basis.coefficients(one)
            assert alone[0].shape == one.offset.shape
            assert alone[1].shape == (*one.offset.shape, case.basis.size)
            assert alone[0].reshape(-1) == pytest.approx(offset[k], abs=1e-12)
            assert alone[1].reshape(ACTIONS, -1) == pytest.approx(weights[k], rel=1e-12, abs=1e-12)
    order = np.random.default_rng(1).permutation(STACK)
    shuffled = case.basis.coefficients(losses[order])
    assert shuffled[0] == pytest.approx(offset[order], abs=1e-12)
    assert shuffled[1] == pytest.approx(weights[order], rel=1e-12, abs=1e-12)


@EVERY
def test_no_loss_is_further_than_declared_and_coefficients_stay_within_lambda(name: str) -> None:
    """On outcomes that no construction has seen; exactly where the error is 0.

    The error of a reduced basis is measured, and the certificate is its bound.
    """
    case = CASES[name]
    for seed in range(2):
        losses = case.losses(seed)
        measured = case.basis.audit(losses, points(case.basis.outcomes))
        if case.basis.error == 0:
            assert measured <= EXACT
        elif not isinstance(case.basis, bases.ReducedBasis):
            assert measured <= case.basis.error + 1e-12
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


def spoiled(losses: Any) -> Loss:
    """Take one loss of a stack out of its family."""
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
    return replace(losses, **{field: table})


@pytest.mark.parametrize(
    "name", [n for n, case in CASES.items() if case.refused and case.losses().form != "linear"]
)
def test_one_bad_loss_of_a_stack_is_refused(name: str) -> None:
    """It takes the others with it: no silent approximation."""
    case = CASES[name]
    losses = case.losses()
    assert case.basis.coefficients(losses)[0].shape == (STACK, ACTIONS)
    with pytest.raises(ValueError, match=r"\w+ "):
        case.basis.coefficients(spoiled(losses))


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
    assert labels.min() >= 0
    assert labels.max() <= 1
    for k in (0, -1):
        assert basis.inverse(predictions[k]) == pytest.approx(labels[k], abs=1e-12)
    if basis.convex_image:
        outcomes = points(basis.outcomes)
        back = basis.inverse(basis.transform(outcomes))
        assert back == pytest.approx(np.maximum(outcomes, case.floor), abs=1e-9)
        offset, weights = basis.coefficients(case.losses())
        promised = offset[..., None] + weights @ predictions.T
        kept = offset[..., None] + weights @ basis.transform(labels).T
        assert kept == pytest.approx(promised, abs=1e-9)


def forget() -> None:
    """Empty what the bases keep of earlier constructions."""
    for name, module in list(sys.modules.items()):
        if name.startswith("regretless.forecaster."):
            for entry in vars(module).values():
                if hasattr(entry, "cache_clear"):
                    entry.cache_clear()


@EVERY
def test_two_constructions_are_identical(name: str) -> None:
    case = CASES[name]
    one = case.basis
    forget()
    two = case.make()
    assert (one.size, one.error, one.lipschitz) == (two.size, two.error, two.lipschitz)
    outcomes = points(one.outcomes)[::7]
    assert np.array_equal(one.transform(outcomes), two.transform(outcomes))
    assert np.array_equal(one.inverse(box(one)), two.inverse(box(two)))
    for mine, theirs in zip(
        one.coefficients(case.losses()), two.coefficients(case.losses()), strict=True
    ):
        assert np.array_equal(mine, theirs)


@EVERY
def test_the_forecaster_and_the_agents_see_the_same_action(name: str) -> None:
    """Bit by bit and at ties too: two actions of each loss are equal here."""
    case = CASES[name]
    losses = case.losses()
    offset, weights = case.basis.coefficients(losses)
    twins = np.concatenate([offset, offset[:, :1]], axis=1)
    tables = np.concatenate([weights, weights[:, :1]], axis=1)
    rows = LossTable.of([ProtectedLosses(offset, weights), ProtectedLosses(twins, tables)])
    seen = np.concatenate([box(case.basis, 20), case.basis.transform(points(case.basis.outcomes))])
    out = np.empty(len(rows.offset))
    for point in seen[:: max(len(seen) // 40, 1)]:
        respond(arrays_of(rows), point, out)
        first, second = np.split(out, [offset.size])
        own = best_response(expected_losses(offset, weights, point))
        with_twins = best_response(expected_losses(twins, tables, point))
        assert np.array_equal(first.reshape(STACK, -1).argmax(1), own)
        assert np.array_equal(second.reshape(STACK, -1).argmax(1), with_twins)
        assert (with_twins < ACTIONS).all()  # the twin comes last


@EVERY
def test_the_linear_form_is_what_the_agents_expect(name: str) -> None:
    """At a true transform the expected losses are the losses, up to the error."""
    case = CASES[name]
    losses = case.losses()
    offset, weights = case.basis.coefficients(losses)
    outcomes = points(case.basis.outcomes)[::23]
    limit = case.basis.audit(losses, outcomes) + 1e-9
    for y in outcomes[:20]:
        expected = expected_losses(offset, weights, case.basis.transform(y))
        assert np.abs(expected - losses.losses(y)).max() <= limit


def test_a_direct_sum_proves_what_its_parts_prove() -> None:
    """The certificate of the part that serves the loss, not the error that it has measured."""
    part = CASES["reduced"].basis
    whole = bases.DirectSumBasis([bases.LinearBasis(2), part])
    for losses in crowd():
        assert whole.certified_error(losses) == pytest.approx(part.certified_error(losses))
    straight = Linear([[0.3, 0.7]])
    assert whole.certified_error(straight) == 0


# Of some kinds alone.


# low, high, wanted error
RANGES = [
    (0.3, 0.9, 0.01),
    (0.2, 0.6, 0.05),
    (0.5, 2.0, 0.01),
    (1.0, 4.0, 0.02),
    (0.4, 0.6, 1e-6),
    (0.7, 0.7, 0.01),
]


def test_the_audit_is_the_greatest_distance() -> None:
    """The audit finds the error of a single loss at a single outcome."""
    basis = PowerBasis([0.5, 2.0], 1, exact=False)
    loss = CES([[1.0]], 1.0)
    # at exponent 1 the Lagrange weights of 0.5 and 2 are 2/3 and 1/3
    miss = 0.25 - (2 / 3 * 0.25**0.5 + 1 / 3 * 0.25**2)
    assert basis.audit(loss, [[0.25]]) == pytest.approx(abs(miss), abs=1e-14)
    assert basis.audit(loss, [[0.0], [0.25], [1.0]]) == pytest.approx(abs(miss), abs=1e-14)


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


def test_a_listed_exponent_uses_its_own_power_alone() -> None:
    """At a node the coefficients are the weights, exactly, interpolated or not."""
    for exact in (True, False):
        basis = PowerBasis([0.5, 1.0, 2.0], 2, exact=exact)
        loss = CES([[[0.25, 0.75], [0.5, 0.5]]], [1.0])
        _, weights = basis.coefficients(loss)
        by_power = weights.reshape(2, 2, 3)
        assert np.array_equal(by_power[..., 1], loss.weights[0])
        assert np.array_equal(by_power[..., [0, 2]], np.zeros((2, 2, 2)))


@pytest.mark.parametrize("parts", [[], [LinearBasis(2), LinearBasis(3)]])
def test_parts_need_a_common_outcome(parts: list[Basis]) -> None:
    """Parts over different outcomes cannot stand side by side."""
    with pytest.raises(ValueError, match="same number of outcomes"):
        DirectSumBasis(parts)
