"""The paper's Leontief basis, every lemma by exhaustion, then the basis, and the grid."""

import itertools
import math

import numpy as np
import pytest
from families import ratios, waves
from numpy.typing import NDArray

from regretless.forecaster.bases import LeontiefBasis, LipschitzGridBasis
from regretless.forecaster.bases.leontief import (
    MReLUCover,
    lattice_points,
    mixed_differences,
    mrelu,
    orthants,
    rounded,
    turned,
)
from regretless.market.core.arrays import Array
from regretless.market.losses import LipschitzLoss, MinimumOfRatios, SeparablePower
from regretless.market.regret.definitions import swap_regret

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


@pytest.mark.parametrize("bottom", [0, 1])
@pytest.mark.parametrize(("dimension", "top"), SMALL)
def test_adjacent_mrelus_differ_by_a_box(dimension: int, top: int, bottom: int) -> None:
    """The printed box, and the same box in shifted coordinates without upper ends."""
    z = lattice_points(bottom, top, dimension)
    for axis, i in itertools.product(range(dimension), lattice_points(0, top, dimension)):
        step = np.eye(dimension, dtype=int)[axis]
        difference = mrelu(z, i) - mrelu(z, i + step)
        own, rest = z[:, axis], np.delete(z, axis, 1)
        gap = i[axis] - np.delete(i, axis)
        printed = (own >= i[axis] + 1) & ((own[:, None] - rest) >= gap + 1).all(-1)
        w = turned(z, axis, bottom, top)
        shifted = (w >= turned(i, axis, bottom, top) + 1).all(-1)
        assert w.min() == 0
        assert np.array_equal(difference, printed)
        assert np.array_equal(difference, shifted)


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
