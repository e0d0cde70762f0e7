"""Published figures and lemmas of bases of polynomials, of convex losses and of lattices."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from regretless.agents.utilities.forms import CES, CobbDouglas, Leontief
from regretless.forecaster import bases
from regretless.forecaster.bases import convex
from regretless.forecaster.bases import leontief as lattice
from regretless.forecaster.bases.convex import ConvexBasis, ConvexTable, distances, relu, tables
from regretless.forecaster.bases.multisets import monomials
from regretless.market import losses as forms
from regretless.market.core.arrays import Array
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis
from regretless.market.regret.definitions import swap_regret

THIRD = {"outcomes": 3, "coordinate": 2}
WISHES: list[tuple[type[ConvexBasis], dict[str, Any]]] = [
    *((bases.ReLUBasis, {"error": error}) for error in (0.25, 0.1, 0.005)),
    *((bases.OptimisedConvexBasis, {"error": error}) for error in (0.26, 0.1, 0.02, 0.01)),
    (bases.ConvexRankBasis, {"error": 0.05}),
    (bases.OptimisedConvexBasis, {"error": 0.02, "cap": 3.0}),
    *((kind, more)
      for kind in (bases.ReLUBasis, bases.OptimisedConvexBasis)
      for more in ({"error": 0.1} | THIRD, {"error": 0.4, "constant": 4.0})),
]  # fmt: skip
ROUNDING = 1e-11
COVERS = [(1, 0, 9, 3), (1, 1, 9, 1), (2, 1, 9, 4), (2, 0, 6, 3), (2, 1, 5, 9), (3, 1, 4, 2)]
SIZES = [(1, 10, 10), (2, 5, 30), (2, 10, 133), (3, 4, 88)]  # outcomes, cells, size
STACK = 8
ACTIONS = 3
LEAST = 0.1
Ints = NDArray[np.intp]
# outcomes, reach, error, power and floor of exponentials
SERIES = [(3, 1.0, 0.1, 0.0, 0.01), (2, 3.0, 1e-6, 0.0, 0.01), (2, 0.1, 0.1, 0.0, 0.01)]
SERIES += [(2, 4.0, 0.01, 1.0, 0.0), (2, 1.0, 0.01, -1.0, 0.1)]


def needed(basis: Basis, losses: Loss) -> float:
    """Return the greatest sum of absolute coefficients."""
    return float(np.abs(basis.coefficients(losses)[1]).sum(-1).max())


@pytest.mark.parametrize(("outcomes", "degree"), [(1, 1), (3, 2), (3, 4), (2, 5), (5, 16)])
def test_lambda_of_the_papers_targets(outcomes: int, degree: int) -> None:
    """Of sum_j (a_j - y_j)^p: d in Bernstein polynomials, d (2^p - 1) in powers, met at a = 1."""
    inner = np.random.default_rng(7).random((200, outcomes))
    corners = np.array(list(itertools.product([0.0, 1.0], repeat=outcomes)))
    centre = corners if degree % 2 else np.concatenate([inner, corners])
    sign = np.where(centre == 0, (-1.0) ** degree, 1.0)
    losses = forms.SeparablePower(sign, np.array(float(degree)), centre=centre)
    bernstein = bases.BernsteinBasis(outcomes, degree)
    powers = bases.PowerBasis.binomial(degree, outcomes)
    assert (bernstein.lipschitz, powers.lipschitz) == (outcomes, outcomes * (2**degree - 1))
    for basis in (bernstein, powers):
        assert needed(basis, losses) == pytest.approx(basis.lipschitz, rel=1e-12)
        assert basis.error == 0


def test_published_figures_of_the_exponential() -> None:
    """Sizes and constants at reach 1 and floor 0.01, for three and five outcomes."""
    taylor = bases.TaylorExponentialBasis
    chebyshev = bases.ChebyshevExponentialBasis
    three, five = (taylor(d, reach=1, error=0.1) for d in (3, 5))
    assert (three.size, five.size, three.degree) == (454, 6187, 12)
    assert three.lipschitz == pytest.approx(98.9, abs=0.05)
    assert [kind(1, reach=1, error=0.01).degree for kind in (taylor, chebyshev)] == [14, 4]
    four_bases = [chebyshev(d, reach=1, error=error) for error in (0.1, 0.01) for d in (3, 5)]
    assert [basis.size for basis in four_bases] == [9, 20, 34, 125]
    assert [basis.lipschitz for basis in four_bases[:2]] == pytest.approx([1.529, 1.583], abs=1e-3)


@pytest.mark.parametrize("row", SERIES)
def test_chebyshevs_declarations_are_the_worst(row: tuple[int, float, float, float, float]) -> None:
    """Equal weights of every size: error and lambda are bounds on another grid, and reached."""
    outcomes, reach, error, power, floor = row
    parameters = {"reach": reach, "error": error, "power": power, "floor": floor}
    basis = bases.ChebyshevExponentialBasis(outcomes, **parameters)
    sizes = np.linspace(1e-3, 1, 1777)[:, None, None] * basis.reach / outcomes
    weights = sizes * np.ones((1, outcomes))
    g = np.ones((2, 1777, 1))[..., 0]
    equal = forms.ExponentialOfSum(weights, g[0] * basis.power, g[1] * basis.floor).normalised()
    assert basis.lipschitz - 1e-5 <= needed(basis, equal) <= basis.lipschitz * (1 + 1e-9)
    corners = np.stack([np.zeros(outcomes), np.ones(outcomes)])
    assert basis.audit(equal, corners) == pytest.approx(basis.error, rel=1e-6)


@pytest.mark.parametrize(("kind", "wish"), WISHES)
def test_hinges_are_the_extreme_members(kind: type[ConvexBasis], wish: dict[str, Any]) -> None:
    """L |y - t| and its halves need nearly the declared error, and with a line nearly lambda."""
    basis: ConvexBasis = kind(**wish)
    knots = np.broadcast_to(np.linspace(0, 1, 1301)[:, None, None], (1301, 3, 1))
    kinks = np.broadcast_to(basis.constant * np.array([[2.0], [1.0], [1.0]]), knots.shape)
    slope = np.broadcast_to(basis.constant * np.array([-1.0, 0.0, -1.0]), (1301, 3))
    coordinate_and_dimension = {"coordinate": basis.coordinate, "dimension": basis.outcomes}
    hinges = forms.Convex1D(
        kinks, knots, slope=slope, offset=np.array(0.3), **coordinate_and_dimension
    )
    outcomes = np.random.default_rng(0).random((1999, basis.outcomes))
    outcomes[:, basis.coordinate] = np.linspace(0, 1, 1999)
    assert 0.9 * basis.error <= basis.audit(hinges, outcomes) <= basis.error + ROUNDING
    line = replace(hinges[0], kinks=np.zeros((3, 1)), slope=np.full(3, basis.constant))
    needed_lipschitz = max(needed(basis, hinges), needed(basis, line))
    nearly = 0.75 if kind is bases.ConvexRankBasis else 0.98
    assert nearly * basis.lipschitz <= needed_lipschitz <= basis.lipschitz + ROUNDING


@pytest.mark.parametrize(("error", "sizes"), [(0.05, (3, 5)), (0.02, (7, 13)), (0.01, (11, 25))])
def test_an_optimised_basis_is_smaller(error: float, sizes: tuple[int, int]) -> None:
    """Than the broken line, at the same error and lambda."""
    optimised = bases.OptimisedConvexBasis(error=error)
    line = bases.ReLUBasis(error=error)
    assert optimised.error <= error
    assert (optimised.size, line.size) == sizes
    assert optimised.lipschitz <= line.lipschitz + ROUNDING


def test_kinks_are_knots_where_that_takes_fewer_functions() -> None:
    shop = forms.Convex1D(kinks=[[4.0]], knots=[[0.5]], slope=-1.0, offset=0.5)
    assert relu([shop]).knots.tolist() == [0.0, 0.5, 1.0]  # type: ignore[attr-defined]
    assert relu([shop]).error == 0 < relu([shop], error=0.3).error


def test_every_shipped_table_is_what_it_declares() -> None:
    """Functions that fill [0, 1], the outcome first; exact at grid points they err between them."""
    for table in tables():
        assert table.functions[:, 0] == pytest.approx(np.linspace(0, 1, len(table.rows)))
        assert table.functions.min(0) == pytest.approx(0, abs=1e-6)
        assert table.functions.max(0) == pytest.approx(1, abs=1e-6)
        assert table.lipschitz <= 3
    tight = [table.error for table in tables() if table.lipschitz <= 1 + ROUNDING]
    assert tight == sorted(tight, reverse=True)
    exact = ConvexTable(distances(5), np.column_stack([np.zeros(5), np.eye(5)]))
    # |y - t| at y = t = 1/8 is 0, the mean of its four neighbours 1/8
    assert 0.125 <= exact.error <= 0.25 + ROUNDING


def ces(outcomes: int, low: float, high: float) -> Loss:
    return CES(shares(outcomes), np.linspace(low, high, STACK), 1.0, LEAST)


def shares(outcomes: int) -> Array:
    return np.random.default_rng(outcomes).dirichlet(np.ones(outcomes), (STACK, ACTIONS))


def cobb_douglas(outcomes: int) -> Loss:
    return CobbDouglas(shares(outcomes), y_min=LEAST)


def leontief(outcomes: int) -> Loss:
    return Leontief(np.random.default_rng(5).uniform(0.5, 1.5, (STACK, ACTIONS, outcomes)))


def grid(outcomes: int) -> Array:
    """Outcomes (T, d), denser towards 0, off the knots."""
    ticks = {2: 73, 3: 23}[outcomes]
    return np.array(list(itertools.product(np.linspace(0, 1, ticks) ** 1.7, repeat=outcomes)))


# errors of plain interpolation by knots, as published for some population in d = 3
PUBLISHED: list[tuple[Loss, float, dict[int, float | None]]] = [
    (ces(3, -1.2, -0.2), LEAST, {4: 0.065, 8: 0.017}),
    (cobb_douglas(3), LEAST, {4: 0.021, 8: 0.005}),
    (leontief(3), 0.0, {4: 0.236, 8: 0.101}),
    (ces(3, -2.0, -0.2), LEAST, {4: None}),
    (ces(3, 0.1, 0.5), LEAST, {4: None}),
]


@pytest.mark.parametrize(("loss", "floor", "published"), PUBLISHED)
def test_errors_are_those_of_interpolation_halved(loss: Loss, floor: float, published: Any) -> None:
    """Losses are minus distribution functions of positive measures: weights are of one sign."""
    for knots, error in published.items():
        basis = bases.RampBasis([loss], knots=knots, floor=floor, budget=1)
        assert basis.size == knots**3 - 1
        assert basis.coefficients(loss)[1].max() <= ROUNDING
        assert basis.lipschitz <= 1 + ROUNDING
        assert not error or basis.audit(loss, grid(3)) == pytest.approx(error / 2, rel=0.7)


@pytest.mark.parametrize("wish", [0.1, 0.05])
def test_the_fewest_knots_for_a_wish(wish: float) -> None:
    """The certified error is within the wish; with one knot fewer it would not be."""
    losses = [ces(2, -2.0, -0.2), cobb_douglas(2), leontief(2)]
    basis = bases.RampBasis(losses, error=wish, budget=1_000_000)
    assert max(basis.audit(loss, grid(2)) for loss in losses) <= basis.error <= wish
    fewer = bases.RampBasis(losses, knots=len(basis.knots) - 1, budget=1_000_000)
    assert fewer.error > 0.95 * wish


def printed(values: Ints) -> Ints:
    """Compute the corollary's double sum on {0..top+1}^d, of terms with arguments in {1..top}."""
    d = values.ndim
    wide = np.pad(values, 2)
    places = lattice.lattice_points(0, len(values) + 1, d) + 1
    total = np.zeros(len(places), dtype=int)
    for sigma in map(np.array, itertools.product([0, 1], repeat=d)):
        total += (-1) ** (sigma.sum() + d) * wide[tuple((places - sigma).T)]
        total -= (-1) ** sigma.sum() * wide[tuple((places + sigma).T)]
    return total


@pytest.mark.parametrize(("nearest", "sharp"), [(False, 2.0), (True, 1.0)])
@pytest.mark.parametrize("cells", [3, 10, 37])
def test_rounding_to_a_lattice_attains_its_bound_and_no_more(
    *, nearest: bool, sharp: float, cells: int
) -> None:
    """|x y - b z / m^2| <= (2 m - 1) / m^2, and half of that for {0..m}; minima inherit it."""
    bottom, top = (0, cells) if nearest else (1, cells - 1)
    bound = (sharp * cells - (0.25 if nearest else 1)) / cells**2
    x, y = np.random.default_rng(1).random((2, 20_000, 3))
    x[:5], y[:5] = (1.0, 1.0) if not nearest else ((cells - 0.5) / cells, 1 - 0.5 / cells)
    b = lattice.rounded(cells * x, bottom, top)
    z = lattice.rounded(cells * y, bottom, top)
    assert bottom <= b.min() <= b.max() <= top
    errors = np.abs((x * y).min(-1) - (b * z).min(-1) / cells**2)
    assert errors.max() <= bound + 1e-12
    assert bound <= sharp / cells  # the lemma has 2 L delta
    if not nearest:
        assert errors.max() == pytest.approx(bound)
    even = lattice.rounded([1.5 - 1e-9, 1.5 + 1e-9, -3.0, 99.0], bottom, top)
    assert even.tolist() == [1, 2, bottom, top]


@pytest.mark.parametrize(("dimension", "top"), [(1, 7), (2, 6), (3, 4)])
def test_lattice_functions_are_mixtures_of_orthants_and_of_mrelus(dimension: int, top: int) -> None:
    """Coefficients are the printed double sum, top + 1 as top; the zero-coefficient lemma."""
    table = lattice.orthants(top, dimension)
    shape = (top,) * dimension
    g = np.random.default_rng(2).integers(-9, 9, shape)
    clipped_points = np.minimum(lattice.lattice_points(0, top + 1, dimension), top)
    flat_index = np.ravel_multi_index(tuple(clipped_points.T), (top + 1,) * dimension)
    orthant_values = lattice.mixed_differences(g[None]) @ table
    assert np.array_equal(orthant_values[0], np.bincount(flat_index, printed(g)))

    z, every = (lattice.lattice_points(first, top, dimension) for first in (0, 1))
    mixtures = lattice.mixed_differences((every[:, None] * every).min(-1).reshape(-1, *shape))
    values = lattice.mrelu(z[:, None], z[None])
    assert not values[:, -1].any()
    assert mixtures.min() >= 0
    assert np.array_equal(mixtures.sum(1), top * every.min(1))
    coefficients = mixtures @ table
    assert np.array_equal(coefficients @ values.T, (every[:, None] * z).min(-1))

    inner = (z >= 2) & (z <= top - 1)
    met = 0
    for b, mrelu_coefficients in zip(every, coefficients, strict=True):
        for j, k in itertools.combinations(range(dimension), 2):
            is_no_tie = np.abs(b[j] * z[:, j] - b[k] * z[:, k]) >= max(b[j], b[k])
            zero = inner[:, j] & inner[:, k] & is_no_tie
            met += zero.sum()
            assert not mrelu_coefficients[zero].any()
    assert met > 0 or dimension == 1


@pytest.mark.parametrize(("dimension", "bottom", "top", "stride"), COVERS)
def test_the_cover_has_every_mrelu(dimension: int, bottom: int, top: int, stride: int) -> None:
    """The linear forms of all thresholds are the MReLUs themselves."""
    span = lattice.MReLUCover(dimension, bottom, top, stride)
    z, thresholds = (lattice.lattice_points(first, top, dimension) for first in (bottom, 0))
    values = span.transform(z)
    assert values.shape == (len(z), span.size)
    linear = values @ span.coefficients.toarray().T + span.constant
    assert linear == pytest.approx(lattice.mrelu(z[:, None], thresholds[None]), abs=1e-9)


@pytest.mark.parametrize(("outcomes", "cells", "size"), SIZES)
def test_the_basis_is_larger_than_the_lattice(outcomes: int, cells: int, size: int) -> None:
    """All b of the family at once: lambda is attained, the error is a bound."""
    basis = bases.LeontiefBasis(outcomes, cells)
    assert basis.size == size > (cells - 1) ** outcomes
    assert basis.error == pytest.approx((2 * cells - 1) / cells**2)
    b = lattice.lattice_points(1, cells - 1, outcomes)
    every = forms.MinimumOfRatios(cells / b[:, None])
    assert needed(basis, every) == pytest.approx(basis.lipschitz)
    outcome = np.random.default_rng(0).random((2000, outcomes))
    assert basis.audit(every, outcome) <= basis.error + 1e-12


def test_the_median_makes_the_coefficients_least() -> None:
    """No other constant in the offset gives a smaller sum; half ones and half zeros need n/2."""
    basis = bases.LipschitzGridBasis(1, constant=10.0, error=0.5)
    square = forms.LipschitzLoss(
        lambda y: np.abs((10 * y + 0.5) % 2 - 1), np.array(10.0), shape=(1,), dimension=1
    )
    assert basis.coefficients(square)[0] == pytest.approx([0.5])
    assert needed(basis, square) == pytest.approx(basis.lipschitz)
    offset, weights = basis.coefficients(forms.SeparablePower([[1.0]], np.array(2.0)))
    values = weights[0] + offset[0]
    for constant in np.linspace(-0.2, 1.2, 57):
        assert np.abs(weights).sum() <= np.abs(values - constant).sum() + 1e-12
    assert values == pytest.approx(basis.points[:, 0] ** 2)


def test_interpolation_of_powers_misses_no_more_than_is_said_on_either_side_of_zero() -> None:
    """An odd power is concave below zero: there it rises over lines through two of its points."""
    basis = bases.ChebyshevExponentialBasis(1, reach=1.0, error=0.01)
    starts = np.array([[-1.0], [-0.75], [-0.25], [0.0], [0.5]])  # levels, -1 to 1
    above, below = basis.errors(starts, starts + 0.5)
    shares = np.linspace(0, 1, 101)[:, None]
    for start, largest_rise, largest_fall in zip(starts, above, below, strict=True):
        powers = basis.transform(basis.outcomes_at(start + 0.5 * shares))
        line = (1 - shares) * powers[0] + shares * powers[-1]
        assert ((powers - line).max(0) <= largest_rise + ROUNDING).all()
        assert ((line - powers).max(0) <= largest_fall + ROUNDING).all()


@pytest.mark.parametrize(("constant", "min_ratio"), [(1.0, 0.5), (20.0, 0.95)])
def test_a_constant_of_one_would_not_bound_swap_regret(constant: float, min_ratio: float) -> None:
    """Biases are 2/n where regret is a half and more: the paper's 1 cannot be lambda, n/2 can."""
    basis = bases.LipschitzGridBasis(1, constant=constant, error=constant / 200)
    half = basis.size // 2

    def rising(y: Array) -> Array:
        up = np.clip(0.5 + constant * (y - 0.5), 0, 1)
        return np.concatenate([up, 1 - up], axis=-1)

    loss = forms.LipschitzLoss(rising, np.array(constant), shape=(2,), dimension=1)
    prediction = np.where(np.arange(basis.size) < half, 1 / half, 0.0)
    outcomes = basis.points[half + np.arange(600) % half]
    offset, weights = basis.coefficients(loss)
    played = np.full(600, int((offset + weights @ prediction).argmin()))
    bias = np.abs((prediction - basis.transform(outcomes)).mean(0))
    regret = swap_regret(loss.losses(outcomes), played)
    assert bias == pytest.approx(np.full(100, 2 / 100))
    assert regret >= max(min_ratio - 1e-9, 10 * 2 * 1 * bias.max())  # lambda = 1 on both sides
    assert regret <= 2 * basis.lipschitz * bias.max() + 2 * basis.error


def test_values_that_are_looked_up_are_those_that_are_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    levels = np.linspace(0.0, 1.0, 101)[:, np.newaxis]
    looked_up = bases.ConvexRankBasis(error=0.01).transform(levels)
    monkeypatch.setattr(convex, "MAX_TABULATED_CELLS", 0)
    computed = bases.ConvexRankBasis(error=0.01).transform(levels)
    np.testing.assert_array_equal(looked_up, computed)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("outcomes", [1, 2, 3])
def test_the_indicator_of_a_grid_is_that_of_the_nearest_point(
    outcomes: int, *, centred: bool
) -> None:
    """On the border of two cells the outcome is in the upper one; none lies beyond the grid."""
    grid = bases.LipschitzGridBasis(outcomes, constant=1.0, error=0.13, centred=centred)
    points = np.random.default_rng(3).random((2, 40, outcomes))
    points[0, :2] = [[0.0], [1.0]]
    distances_to_points = np.abs(points[..., None, :] - grid.points).max(-1)
    nearest_along_axes = np.abs(points[..., None, :] - grid.points).sum(-1).argmin(-1)
    indicators = grid.transform(points)
    assert (indicators.sum(-1) == 1).all()
    assert (indicators.argmax(-1) == nearest_along_axes).all()
    assert (indicators * distances_to_points).sum(-1).max() <= grid.error + ROUNDING


def test_outcomes_with_too_few_coordinates_are_no_points_of_a_grid() -> None:
    grid = bases.LipschitzGridBasis(2, constant=1.0, error=0.2)
    with pytest.raises(ValueError, match="reshape"):
        grid.transform(np.zeros((4, 1)))


def test_monomials_are_products_of_powers() -> None:
    rng = np.random.default_rng(0)
    values = rng.uniform(-1.0, 1.0, (4, 3, 2))  # (..., d)
    counts = np.array([[1, 0], [0, 1], [2, 0], [1, 1], [0, 5]], dtype=np.intp)
    expected = (values[..., np.newaxis, :] ** counts).prod(axis=-1)
    assert monomials(values, counts) == pytest.approx(expected, abs=1e-15)
