"""Bases of polynomials, of convex losses and of lattices: what each declares is measured."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from families import ratios, targets, waves
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from regretless.forecaster.bases import (
    LeontiefBasis,
    LipschitzGridBasis,
    OptimisedConvexBasis,
    RampBasis,
    ReLUBasis,
)
from regretless.forecaster.bases.convex import ConvexBasis, ConvexTable, distances, relu, tables
from regretless.forecaster.bases.leontief import (
    MReLUCover,
    lattice_points,
    mixed_differences,
    mrelu,
    orthants,
    rounded,
)
from regretless.forecaster.bases.multisets import (
    ChebyshevExponentialBasis,
    MonomialBasis,
    TaylorExponentialBasis,
)
from regretless.forecaster.bases.polynomial import BernsteinBasis, PowerBasis
from regretless.market.core.arrays import Array
from regretless.market.losses import (
    Convex1D,
    ExponentialOfSum,
    LipschitzLoss,
    Loss,
    MinimumOfRatios,
    PowerOfSum,
    SeparablePower,
)
from regretless.market.regret.definitions import swap_regret


@pytest.mark.parametrize(("outcomes", "degree"), [(1, 1), (3, 2), (3, 4), (2, 5), (5, 16)])
def test_lambda_of_the_papers_targets(outcomes: int, degree: int) -> None:
    """Of sum_j (a_j - y_j)^p: d in Bernstein polynomials, d (2^p - 1) in powers, met at a = 1."""
    inner = np.random.default_rng(7).random((200, outcomes))
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=outcomes)))
    centre = corners if degree % 2 else np.concatenate([inner, corners])
    sign = np.where(centre == 0, (-1.0) ** degree, 1.0)
    losses = SeparablePower(sign, np.array(float(degree)), centre=centre)
    for basis in (BernsteinBasis(outcomes, degree), PowerBasis.binomial(degree, outcomes)):
        sums_of_each = np.abs(basis.coefficients(losses)[1]).sum(-1)
        assert sums_of_each.max() == pytest.approx(basis.lipschitz, rel=1e-12)
        assert basis.error == 0
    assert BernsteinBasis(outcomes, degree).lipschitz == outcomes


@pytest.mark.parametrize("degree", [1, 2, 4, 7, 16])
@settings(max_examples=12)
@given(seed=st.integers(0, 2**32 - 1))
def test_normalised_targets_need_at_most_the_degree(degree: int, seed: int) -> None:
    """In Bernstein polynomials; an even power about 1/2 needs all of it."""
    basis = BernsteinBasis(2, degree)
    losses = targets(degree, 2)(np.random.default_rng(seed), 30)
    assert np.abs(basis.coefficients(losses)[1]).sum(-1).max() <= degree + 1e-9
    if degree % 2 == 0:
        centred = SeparablePower([[1.0, 0.0]], np.array(float(degree)), centre=np.array(0.5))
        most = np.abs(basis.coefficients(centred.normalised())[1]).sum()
        assert most == pytest.approx(degree)


@pytest.mark.parametrize(("outcomes", "degree", "homogeneous"), [(3, 2, True), (2, 5, False)])
def test_lambda_of_the_papers_sums(outcomes: int, degree: int, *, homogeneous: bool) -> None:
    """1 for A = 1 and absolute weights that add up to 1: bound and reached."""
    basis = MonomialBasis(outcomes, degree, power=0.5, homogeneous=homogeneous)
    weights = np.random.default_rng(3).normal(size=(50, 4, outcomes))
    weights /= np.abs(weights).sum(-1, keepdims=True)
    losses = PowerOfSum(weights, np.array(degree), np.array(0.5))
    assert np.abs(basis.coefficients(losses)[1]).sum(-1) == pytest.approx(np.ones((50, 4)))
    assert basis.lipschitz == 1


def test_published_figures_of_the_exponential() -> None:
    """Sizes and constants at reach 1 and floor 0.01, for three and five outcomes."""
    three, five = (TaylorExponentialBasis(d, reach=1, error=0.1) for d in (3, 5))
    assert (three.size, five.size, three.degree) == (454, 6187, 12)
    assert three.lipschitz == pytest.approx(98.9, abs=0.05)
    kinds = TaylorExponentialBasis, ChebyshevExponentialBasis
    assert [kind(1, reach=1, error=0.01).degree for kind in kinds] == [14, 4]
    rough = [ChebyshevExponentialBasis(d, reach=1, error=0.1) for d in (3, 5)]
    fine = [ChebyshevExponentialBasis(d, reach=1, error=0.01) for d in (3, 5)]
    assert [basis.size for basis in (*rough, *fine)] == [9, 20, 34, 125]
    assert [basis.lipschitz for basis in rough] == pytest.approx([1.529, 1.583], abs=1e-3)


@pytest.mark.parametrize(
    ("outcomes", "given"),
    [
        (3, {"reach": 1.0, "error": 0.1}),
        (2, {"reach": 3.0, "error": 1e-6}),
        (2, {"reach": 4.0, "error": 0.01, "power": 1.0, "floor": 0.0}),
        (2, {"reach": 1.0, "error": 0.01, "power": -1.0, "floor": 0.1}),
        (2, {"reach": 0.1, "error": 0.1}),
    ],
)
def test_chebyshevs_declarations_are_the_worst(outcomes: int, given: dict[str, float]) -> None:
    """Equal weights of every size: error and lambda are bounds on another grid, and reached."""
    basis = ChebyshevExponentialBasis(outcomes, **given)
    sizes = np.linspace(1e-3, 1, 1777)[:, None, None] * basis.reach / basis.outcomes
    weights = np.ones((1777, 1, basis.outcomes)) * sizes
    function = np.full(1777, basis.power), np.full(1777, basis.floor)
    equal = ExponentialOfSum(weights, *function).normalised()
    totals = np.abs(basis.coefficients(equal)[1]).sum(-1)
    assert basis.lipschitz - 1e-5 <= totals.max() <= basis.lipschitz * (1 + 1e-9)
    ends = np.stack([np.zeros(basis.outcomes), np.ones(basis.outcomes)])
    assert basis.audit(equal, ends) == pytest.approx(basis.error, rel=1e-6)


ROUNDING = 1e-11
FINE = np.linspace(0, 1, 1999)

THIRD = {"outcomes": 3, "coordinate": 2}
WISHES: list[tuple[type[ConvexBasis], dict[str, Any]]] = [
    *((ReLUBasis, {"error": error}) for error in (0.25, 0.1, 0.005)),
    *((OptimisedConvexBasis, {"error": error}) for error in (0.26, 0.1, 0.02, 0.01)),
    (OptimisedConvexBasis, {"error": 0.02, "cap": 3.0}),
    *((kind, {"error": 0.1} | THIRD) for kind in (ReLUBasis, OptimisedConvexBasis)),
    *((kind, {"error": 0.4, "constant": 4.0}) for kind in (ReLUBasis, OptimisedConvexBasis)),
]


@pytest.mark.parametrize(("kind", "wish"), WISHES)
def test_hinges_are_the_extreme_members(kind: type[ConvexBasis], wish: dict[str, Any]) -> None:
    """L |y - t|, L max(y - t, 0) and L max(t - y, 0), for every t of a fine grid.

    They need nearly the declared error, and with a line nearly the declared lambda.
    """
    basis: ConvexBasis = kind(**wish)
    knots = np.broadcast_to(np.linspace(0, 1, 1301)[:, None, None], (1301, 3, 1))
    kinks = np.broadcast_to(basis.constant * np.array([[2.0], [1.0], [1.0]]), knots.shape)
    slope = np.broadcast_to(basis.constant * np.array([-1.0, 0.0, -1.0]), (1301, 3))
    place = {"coordinate": basis.coordinate, "dimension": basis.outcomes}
    hinges = Convex1D(kinks, knots, slope=slope, offset=np.array(0.3), **place)
    outcomes = np.random.default_rng(0).random((len(FINE), basis.outcomes))
    outcomes[:, basis.coordinate] = FINE
    assert 0.9 * basis.error <= basis.audit(hinges, outcomes) <= basis.error + ROUNDING
    line = replace(hinges[0], kinks=np.zeros((3, 1)), slope=np.full(3, basis.constant))
    sums = [np.abs(basis.coefficients(x)[1]).sum(-1).max() for x in (hinges, line)]
    assert 0.98 * basis.lipschitz <= max(sums) <= basis.lipschitz + ROUNDING


@pytest.mark.parametrize(("error", "sizes"), [(0.05, (3, 5)), (0.02, (7, 13)), (0.01, (11, 25))])
def test_an_optimised_basis_is_smaller(error: float, sizes: tuple[int, int]) -> None:
    """Than the broken line, at the same error and lambda."""
    optimised, line = OptimisedConvexBasis(error=error), ReLUBasis(error=error)
    assert optimised.error <= error
    assert (optimised.size, line.size) == sizes
    assert optimised.lipschitz <= line.lipschitz + ROUNDING


def test_kinks_are_knots_where_that_takes_fewer_functions() -> None:
    shop = Convex1D(kinks=[[4.0]], knots=[[0.5]], slope=-1.0, offset=0.5)
    assert relu([shop]).knots.tolist() == [0.0, 0.5, 1.0]  # type: ignore[attr-defined]
    assert relu([shop]).error == 0
    assert relu([shop], error=0.3).error > 0


def test_every_shipped_table_is_what_it_declares() -> None:
    """Functions in [0, 1] that fill it, the outcome first, fewer for a greater error."""
    for table in tables():
        assert table.functions[:, 0] == pytest.approx(np.linspace(0, 1, len(table.rows)))
        assert table.functions.min(0) == pytest.approx(0, abs=1e-6)
        assert table.functions.max(0) == pytest.approx(1, abs=1e-6)
        assert table.lipschitz <= 3
    tight = [table.error for table in tables() if table.lipschitz <= 1 + ROUNDING]
    assert tight == sorted(tight, reverse=True)


def test_the_certificate_covers_what_lies_between_the_grid_points() -> None:
    """A table that is exact at every grid point still errs between them, on the diagonal."""
    exact = ConvexTable(distances(5), np.column_stack([np.zeros(5), np.eye(5)]))
    # |y - t| at y = t = 1/8 is 0, the mean of its four neighbours 1/8
    assert 0.125 <= exact.error <= 0.25 + ROUNDING


STACK, ACTIONS = 8, 3
LEAST = 0.1


def ces(outcomes: int, low: float, high: float) -> PowerOfSum:
    rho, minus = np.linspace(low, high, STACK), -np.ones((STACK, ACTIONS))
    weights, floor = shares(outcomes), np.full(STACK, LEAST)
    return PowerOfSum(weights, 1 / rho, power=rho, floor=floor, amplitude=minus).normalised()


def shares(outcomes: int) -> Array:
    return np.random.default_rng(outcomes).dirichlet(np.ones(outcomes), (STACK, ACTIONS))


def cobb_douglas(outcomes: int) -> ExponentialOfSum:
    floor = np.full(STACK, LEAST)
    return ExponentialOfSum(shares(outcomes), power=np.zeros(STACK), floor=floor).normalised()


def leontief(outcomes: int) -> MinimumOfRatios:
    needs = np.random.default_rng(5).uniform(0.5, 1.5, (STACK, ACTIONS, outcomes))
    return MinimumOfRatios(needs).normalised()


def grid(outcomes: int) -> Array:
    """Outcomes (T, d), denser towards 0, off the knots."""
    ticks = {2: 73, 3: 23}[outcomes]
    return np.array(list(itertools.product(np.linspace(0, 1, ticks) ** 1.7, repeat=outcomes)))


@pytest.mark.parametrize(
    "loss", [ces(3, -2.0, -0.2), ces(3, 0.1, 0.5), cobb_douglas(3), leontief(3)]
)
def test_weights_are_a_measure_where_the_loss_is_one(loss: Loss) -> None:
    """Of one sign, so that their sum is at most the range of the loss: lambda is at most 1.

    The losses are minus distribution functions of positive measures.
    """
    floor = 0.0 if isinstance(loss, MinimumOfRatios) else LEAST
    basis = RampBasis([loss], knots=4, floor=floor, budget=1)
    assert basis.coefficients(loss)[1].max() <= ROUNDING
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
    losses = {"ces": ces(3, -1.2, -0.2), "cobb-douglas": cobb_douglas(3), "leontief": leontief(3)}
    loss: Loss = losses[form]
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


def test_a_wish_that_no_knots_fulfil_is_refused() -> None:
    """Whether a sample or only the certificate says so."""
    for wish, budget in ((0.001, 1_000_000), (0.1, 1)):
        with pytest.raises(ValueError, match=f"no 12 knots or fewer have an error of {wish}"):
            RampBasis([leontief(3)[:1]], error=wish, budget=budget)


Ints = NDArray[np.intp]

SMALL = [(1, 7), (2, 6), (3, 4)]  # d, top


def printed(values: Ints) -> Ints:
    """Compute the corollary's double sum on {0..top+1}^d, of terms with arguments in {1..top}."""
    d, wide = values.ndim, np.pad(values, 2)
    places = lattice_points(0, len(values) + 1, d) + 1
    total = np.zeros(len(places), dtype=int)
    for sigma in map(np.array, itertools.product([0, 1], repeat=d)):
        total += (-1) ** (sigma.sum() + d) * wide[tuple((places - sigma).T)]
        total -= (-1) ** sigma.sum() * wide[tuple((places + sigma).T)]
    return total


@pytest.mark.parametrize(("nearest", "sharp"), [(False, 2.0), (True, 1.0)])
@pytest.mark.parametrize("cells", [3, 10, 37])
def test_rounding_attains_its_bound(*, nearest: bool, sharp: float, cells: int) -> None:
    """|x y - b z / m^2| <= (2 m - 1) / m^2, and half of that for {0..m}; minima inherit it."""
    bottom, top = (0, cells) if nearest else (1, cells - 1)
    bound = (sharp * cells - (0.25 if nearest else 1)) / cells**2
    rng = np.random.default_rng(1)
    x, y = rng.random((2, 20_000, 3))
    x[:5], y[:5] = (1.0, 1.0) if not nearest else ((cells - 0.5) / cells, 1 - 0.5 / cells)
    b, z = rounded(cells * x, bottom, top), rounded(cells * y, bottom, top)
    assert bottom <= b.min() <= b.max() <= top
    errors = np.abs((x * y).min(-1) - (b * z).min(-1) / cells**2)
    assert errors.max() <= bound + 1e-12
    assert bound <= sharp / cells  # the lemma has 2 L delta
    if not nearest:
        assert errors.max() == pytest.approx(bound)
    even = rounded([1.5 - 1e-9, 1.5 + 1e-9, -3.0, 99.0], bottom, top)
    assert even.tolist() == [1, 2, bottom, top]


def minima(top: int, dimension: int) -> tuple[Ints, Array]:
    """All b (count, d), and D of z -> min_j b_j z_j for each of them (count, top^d)."""
    every = lattice_points(1, top, dimension)
    tables = (every[:, None] * every).min(-1).reshape(-1, *[top] * dimension)
    return every, mixed_differences(tables)


@pytest.mark.parametrize(("dimension", "top"), SMALL)
def test_coefficients_are_the_printed_double_sum(dimension: int, top: int) -> None:
    """The mixture of orthants is the corollary's formula, for an arbitrary g.

    With that of a point for g it is the lemma. Thresholds top + 1 count as top.
    """
    values = np.random.default_rng(2).integers(-9, 9, (top,) * dimension)
    kept = np.minimum(lattice_points(0, top + 1, dimension), top)
    place = np.ravel_multi_index(tuple(kept.T), (top + 1,) * dimension)
    found = mixed_differences(values[None]) @ orthants(top, dimension)
    assert np.array_equal(found[0], np.bincount(place, printed(values)))


@pytest.mark.parametrize(("dimension", "top"), SMALL)
def test_every_minimum_is_its_sum_of_mrelus_and_of_orthants(dimension: int, top: int) -> None:
    """For all b, at points with a coordinate 0 too; the orthants' total is top min b."""
    z = lattice_points(0, top, dimension)
    values = mrelu(z[:, None], z[None])
    assert not values[:, -1].any()
    every, mixtures = minima(top, dimension)
    assert mixtures.min() >= 0
    assert np.array_equal(mixtures.sum(1), top * every.min(1))
    wanted = (every[:, None] * z).min(-1)
    assert np.array_equal(mixtures @ orthants(top, dimension) @ values.T, wanted)


@pytest.mark.parametrize(("dimension", "top"), [(2, 6), (3, 4)])
def test_distant_thresholds_have_no_coefficient(dimension: int, top: int) -> None:
    """The statement of the zero-coefficient lemma, for all b, i and pairs of coordinates."""
    i = lattice_points(0, top, dimension)
    inner = (i >= 2) & (i <= top - 1)
    every, mixtures = minima(top, dimension)
    met = 0
    for b, table in zip(every, mixtures @ orthants(top, dimension), strict=True):
        for j, k in itertools.combinations(range(dimension), 2):
            apart = np.abs(b[j] * i[:, j] - b[k] * i[:, k]) >= max(b[j], b[k])
            zero = inner[:, j] & inner[:, k] & apart
            met += zero.sum()
            assert not table[zero].any()
    assert met > 0


COVERS = [(1, 0, 9, 3), (1, 1, 9, 1), (2, 1, 9, 4), (2, 0, 6, 3), (2, 1, 5, 9), (3, 1, 4, 2)]


@pytest.mark.parametrize(("dimension", "bottom", "top", "stride"), COVERS)
def test_the_cover_has_every_mrelu(dimension: int, bottom: int, top: int, stride: int) -> None:
    """The linear forms of all thresholds are the MReLUs themselves."""
    span = MReLUCover(dimension, bottom, top, stride)
    z = lattice_points(bottom, top, dimension)
    thresholds = lattice_points(0, top, dimension)
    values = span.transform(z)
    assert values.shape == (len(z), span.size)
    linear = values @ span.table.toarray().T + span.constant
    assert linear == pytest.approx(mrelu(z[:, None], thresholds[None]), abs=1e-9)


def even(outcomes: int) -> Array:
    """Outcomes on a grid that shares few points with any lattice, beside cell ends and corners."""
    ticks = np.linspace(0, 1, {1: 4001, 2: 53, 3: 17}[outcomes])
    ends = np.array([0.05, 0.15, 0.1, 0.95, 0.25, 0.125])
    axis = np.concatenate([ticks, ends - 1e-9, ends + 1e-9][: 3 if outcomes < 3 else 1])
    return np.array(list(itertools.product(axis, repeat=outcomes)))


SIZES = [(1, 10, 10), (2, 5, 30), (2, 10, 133), (3, 4, 88)]  # outcomes, cells, size


@pytest.mark.parametrize(("outcomes", "cells", "size"), SIZES)
def test_the_basis_is_larger_than_the_lattice(outcomes: int, cells: int, size: int) -> None:
    basis = LeontiefBasis(outcomes, cells)
    assert basis.size == size > (cells - 1) ** outcomes
    assert basis.error == pytest.approx((2 * cells - 1) / cells**2)


def test_the_declared_constants_hold_for_all_of_the_family() -> None:
    """All b at once: lambda is attained, and orthants bound it from above."""
    basis = LeontiefBasis(2, 8)
    b = np.array(list(itertools.product(range(1, 8), repeat=2)))
    every = MinimumOfRatios(8 / b[:, None, :])
    _, weights = basis.coefficients(every)
    assert np.abs(weights).sum(-1).max() == pytest.approx(basis.lipschitz)
    assert basis.audit(every, even(2)) <= basis.error + 1e-12


@pytest.mark.parametrize("nearest", [False, True])
@pytest.mark.parametrize(("constant", "error"), [(1.0, 0.2), (2.0, 0.3), (0.1, 5.0)])
def test_covering_keeps_the_error(*, constant: float, error: float, nearest: bool) -> None:
    """Rounding to {0..m} needs half as many cells."""
    basis = LeontiefBasis.covering(2, constant=constant, error=error, nearest=nearest)
    assert basis.error <= error
    assert basis.cells == max(3, math.ceil(round((2 - nearest) * constant / error, 9)))
    losses = ratios(constant, 2)(np.random.default_rng(0), 30)
    assert basis.audit(losses, even(2)) <= error


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("outcomes", [1, 2])
def test_the_declared_error_is_true_and_reached(outcomes: int, *, centred: bool) -> None:
    """A loss of full slope is as far from its values on the cells as declared, no farther."""
    basis = LipschitzGridBasis(outcomes, constant=2.0, error=0.23, centred=centred)
    losses = waves(2.0, outcomes)(np.random.default_rng(1), 6)
    measured = basis.audit(losses, even(outcomes))
    assert 0.9 * basis.error <= measured <= basis.error + 1e-12


def test_the_median_makes_the_coefficients_least() -> None:
    """No other constant in the offset gives a smaller sum; half ones and half zeros need n/2."""
    basis = LipschitzGridBasis(1, constant=10.0, error=0.5)
    loss = LipschitzLoss(
        lambda y: np.abs((10 * y + 0.5) % 2 - 1), np.array(10.0), shape=(1,), dimension=1
    )
    offset, weights = basis.coefficients(loss)
    assert np.abs(weights).sum() == pytest.approx(basis.lipschitz)
    skewed, rest = basis.coefficients(SeparablePower([[1.0]], np.array(2.0)))
    values = rest[0] + skewed[0]
    for constant in np.linspace(-0.2, 1.2, 57):
        assert np.abs(rest).sum() <= np.abs(values - constant).sum() + 1e-12
    assert values == pytest.approx(basis.points[:, 0] ** 2)
    assert offset == pytest.approx([0.5])


@pytest.mark.parametrize(("constant", "least"), [(1.0, 0.5), (20.0, 0.95)])
def test_a_constant_of_one_would_not_bound_swap_regret(constant: float, least: float) -> None:
    """Biases of 2/n beside a swap regret of a half and more: the paper's 1 cannot be lambda.

    Predictions are uniform on the cells below 1/2, outcomes cycle through those above. The
    declared n/2 does bound the regret.
    """
    basis = LipschitzGridBasis(1, constant=constant, error=constant / 200)
    half = basis.size // 2

    def rising(y: Array) -> Array:
        up = np.clip(0.5 + constant * (y - 0.5), 0, 1)
        return np.concatenate([up, 1 - up], axis=-1)

    loss = LipschitzLoss(rising, np.array(constant), shape=(2,), dimension=1)
    prediction = np.where(np.arange(basis.size) < half, 1 / half, 0.0)
    outcomes = basis.points[half + np.arange(600) % half]
    offset, weights = basis.coefficients(loss)
    played = np.full(600, int((offset + weights @ prediction).argmin()))
    bias = np.abs((prediction - basis.transform(outcomes)).mean(0))
    regret = swap_regret(loss.losses(outcomes), played)
    assert bias == pytest.approx(np.full(100, 2 / 100))
    assert regret >= least - 1e-9
    assert regret > 10 * 2 * 1 * bias.max()  # lambda = 1 on both sides of the comparison
    assert regret <= 2 * basis.lipschitz * bias.max() + 2 * basis.error
