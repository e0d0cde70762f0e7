r"""The paper's basis for Leontief losses: rounding, multivariate ReLUs, dyadic boxes.

Family. ``offset + A min_j y_j / a_j`` with a_j / |A| >= 1/L for all j, in other words L-Lipschitz
in every input (A = -1 is the paper's; the amplitude of a normalised loss goes into a).

Construction (Lu, Roth and Shi, the section on Leontief functions, after Gopalan et al. at d = 1),
with delta = 1/m. Outcomes are rounded to z in {bottom..top}^d, and MReLU_i(z) = max(z_1 - i_1, ...,
z_d - i_d, 0) for a threshold i.

**Rounding.** b_j = Round(m / (a_j L)), z_j = Round(m y_j), both in {1..m-1}, and g(z) = min_j b_j
z_j. Then |f - L delta^2 g| <= L delta^2 (2 m - 1), below the printed 2 L delta. Rounding to {0..m},
the option ``nearest``, halves it: L delta^2 (m - 1/4). Both are attained.

**Lattice functions in MReLUs** (corollary of the lemma "indicator to MReLU"). Any g on {1..top}^d,
taken as 0 elsewhere, has coefficients on {0..top+1}^d: with the mixed difference D g(i) = sum_sigma
(-1)^{|sigma|} g(i - sigma) over sigma in {0,1}^d, the printed double sum is c_i = (-1)^d (D g(i) -
D g(i + (1..1))). Thresholds top and top + 1 act alike on the lattice.

Orthants. D of the indicator of {z >= q} is a product over j of (1 at q_j, -1 at top + 1), so its
coefficients sum to 2^{d+1} in absolute value. And g(z) = min_j b_j z_j is a mixture of orthants
whose weights are at least 0 and sum to top min_j b_j. Hence sum_i |c_i| <= 2^{d+1} top min_j b_j.

**Cover.** R_s holds the MReLUs whose thresholds are multiples of s = ceil(m^(d/(d+2))) (0 among
them: the printed indices 1..m/s do not reach the thresholds below s). Any other is reached from
the multiples below it by at most d (s - 1) unit steps, and one step is the indicator of a box,

    MReLU_i - MReLU_{i + e_j} = 1[z_j >= i_j + 1] prod_{k != j} 1[z_j - z_k >= i_j - i_k + 1],

in the turned coordinates (z_j, z_j - z_k), shifted so that the least value is 0 (the printed shift
is m). Such a box is a disjoint union of dyadic boxes, products of {a 2^h, ..., (a + 1) 2^h - 1}.

An interval without an upper end, the only kind that steps need, takes at most one dyadic piece of
each length, and each piece is a right half (a is odd) unless it is the whole axis.

Boxes that no point reaches or no step takes get no function, and what is the same everywhere goes
into the constant. The paper replaces the N boxes of one shape by the columns of a near-identity
(Alon: random signs, 4 ln N / mu^2 of them for an error mu) and has 3 L delta in all. These are as
many as the boxes at every practical size, so the boxes themselves are kept.

**Lambda.** The family of g is finite, and its worst member decides. Where it has more than
``LISTED`` members the worst orthant bounds them all, 10 to 60 times less tightly.

The basis is larger than the lattice whose points it replaces: 133 functions at d = 2, m = 10, where
the lattice has 81 points. What of the printed statements does not hold is on the page of
deviations.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from regretless.forecaster.minimax.support import listed
from regretless.market import register
from regretless.market.core.arrays import Array, Indices, grid_points
from regretless.market.losses import Loss, MinimumOfRatios
from regretless.market.losses.basis import Basis, Support, of_form, steepest

MOST_POINTS = 20_000
LISTED = 2500


class LeontiefBasis(Basis):
    """Functions of the rounded outcome in which Leontief losses are nearly linear.

    Parameters
    ----------
    outcomes : int
        Coordinates of an outcome, d.
    cells : int
        m = 1/delta, at least 3.
    constant : float
        L: requirements are at least |amplitude| / L.
    nearest : bool
        Round to {0..m}, not to the paper's {1..m-1}.
    """

    def __init__(
        self, outcomes: int, cells: int, *, constant: float = 1.0, nearest: bool = False
    ) -> None:
        if not constant > 0:
            raise ValueError(f"the constant {constant} must be above 0")
        if cells < 3:
            raise ValueError(f"a lattice of {cells} cells has no two points; give at least 3")
        if cells**outcomes > MOST_POINTS:
            raise ValueError(f"{cells}^{outcomes} cells are too many; at most {MOST_POINTS}")
        self.outcomes, self.cells, self.constant = outcomes, cells, constant
        self.bottom, self.top = (0, cells) if nearest else (1, cells - 1)
        self._unit = constant / cells**2
        stride = paper_stride(cells, outcomes)
        self.cover = MReLUCover(outcomes, self.bottom, self.top, stride)
        self.size = self.cover.size
        self.lipschitz = self._unit * self.cover.weight(worst_cases(self.top, outcomes))
        self.error = self._unit * (cells - 0.25 if nearest else 2 * cells - 1)

    @classmethod
    def covering(
        cls, outcomes: int, *, constant: float = 1.0, error: float = 0.1, nearest: bool = False
    ) -> Self:
        """Coarsest basis with the error that is asked for."""
        cells = max(math.ceil(round((1 if nearest else 2) * constant / error, 9)), 3)
        return cls(outcomes, cells, constant=constant, nearest=nearest)

    def transform(self, y: ArrayLike) -> Array:
        outcomes = np.asarray(y, dtype=np.float64)
        z = rounded(self.cells * outcomes, self.bottom, self.top).reshape(-1, self.outcomes)
        return self.cover.transform(z).reshape(*outcomes.shape[:-1], self.size)

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Write every row's g in MReLUs and these in the functions."""
        ratios = self.accept(loss, MinimumOfRatios)
        rates = np.abs(ratios.amplitude)[..., None] * self.cells / self.constant
        if (ratios.requirements * self.cells < rates * (1 - 1e-9)).any():
            raise ValueError(f"a requirement is below |amplitude| / {self.constant:.6g} (1/L)")
        needed = np.where(rates > 0, ratios.requirements, 1.0)
        factors = rounded(rates / needed, self.bottom, self.top)
        distinct, row = np.unique(factors.reshape(-1, self.outcomes), axis=0, return_inverse=True)
        in_mrelus = np.stack([min_coefficients(b, self.top) for b in distinct])
        row = row.reshape(factors.shape[:-1])
        scale = np.sign(ratios.amplitude) * self._unit
        offset = ratios.offset + scale * (in_mrelus @ self.cover.constant)[row]
        weights = (in_mrelus @ self.cover.table)[row]
        weights *= scale[..., None]
        return offset, weights

    def support(self) -> Support:
        """List the lattice: the functions are constant around its points."""
        return listed(self, lattice_points(self.bottom, self.top, self.outcomes) / self.cells)


def worst_cases(top: int, dimension: int) -> sparse.csr_array:
    """Mixtures of MReLUs, one of which is as bad as any g: all g, or orthants times top^2."""
    if top**dimension > LISTED:
        return orthant_coefficients(top, dimension) * float(top**2)
    members = lattice_points(1, top, dimension)
    return sparse.csr_array(np.stack([min_coefficients(b, top) for b in members]))


def min_coefficients(b: Indices, top: int) -> Array:
    """Coefficients of g(z) = min_j b_j z_j over the thresholds {0..top}^d, flat."""
    return merged(mrelu_coefficients(least_products(b, top))).ravel()


def paper_stride(cells: int, dimension: int) -> int:
    """Spacing of the coarse thresholds, s = ceil(m^(d/(d+2)))."""
    return math.ceil(round(math.pow(cells, dimension / (dimension + 2)), 9))


def rounded(x: ArrayLike, bottom: int, top: int) -> Indices:
    """Round to the nearest integer of {bottom..top}."""
    nearest = np.rint(np.asarray(x, dtype=np.float64))
    return np.asarray(np.clip(nearest, bottom, top), dtype=np.intp)


def lattice_points(bottom: int, top: int, dimension: int) -> Indices:
    """List {bottom..top}^d in lexicographic order, (count, d)."""
    return grid_points(np.arange(bottom, top + 1), dimension)


def mrelu(z: Indices, threshold: Indices) -> Indices:
    """MReLU of lattice points (..., d) at thresholds (..., d), broadcast."""
    return np.asarray(np.maximum((z - threshold).max(-1), 0))


def least_products(b: Sequence[int] | Indices, top: int) -> Indices:
    """Tabulate g(z) = min_j b_j z_j over {1..top}^d, an array of d axes."""
    ticks = np.arange(1, top + 1)
    table = b[0] * ticks
    for factor in b[1:]:
        table = np.minimum.outer(table, factor * ticks)
    return np.asarray(table)


def mrelu_coefficients(values: ArrayLike) -> Array:
    """Coefficients over {0..top+1}^d of a function on {1..top}^d, with d axes each."""
    table = np.pad(np.asarray(values, dtype=np.float64), 1)
    for axis in range(table.ndim):
        table = np.diff(table, axis=axis)
    sign = (-1) ** table.ndim
    return np.asarray(sign * (np.pad(table, (1, 0)) - np.pad(table, (0, 1))))


def merged(coefficients: Array) -> Array:
    """Add the last threshold of every axis to the one before: on the lattice they act alike."""
    for axis in range(coefficients.ndim):
        along = np.moveaxis(coefficients, axis, 0)
        joined = np.concatenate([along[:-2], along[-2:].sum(0, keepdims=True)])
        coefficients = np.moveaxis(joined, 0, axis)
    return coefficients


def orthant_coefficients(top: int, dimension: int) -> sparse.csr_array:
    """Tabulate the merged coefficients of all orthants {z >= q}: (top^d, (top + 1)^d)."""
    corners = lattice_points(1, top, dimension)
    rows, columns, entries = [], [], []
    for sigma in itertools.product([False, True], repeat=dimension):
        sign = (-1.0) ** (dimension + sum(sigma))
        ends = np.where(sigma, top + 1, corners)
        for threshold, entry in ((ends, sign), (ends - 1, -sign)):
            rows.append(np.arange(len(corners)))
            columns.append(threshold_index(np.minimum(threshold, top), top))
            entries.append(np.full(len(corners), entry))
    place = (np.concatenate(rows), np.concatenate(columns))
    shape = (len(corners), (top + 1) ** dimension)
    return sparse.csr_array((np.concatenate(entries), place), shape=shape)


def threshold_index(threshold: Indices, top: int) -> Indices:
    """Position of thresholds (..., d) in ``lattice_points(0, top, d)``."""
    weights = (top + 1) ** np.arange(threshold.shape[-1])[::-1]
    return np.asarray(threshold @ weights)


def turned(z: Indices, axis: int, bottom: int, top: int) -> Indices:
    """Coordinates (z_j, z_j - z_k for k != j) of z (..., d), shifted so that the least is 0."""
    own = z[..., axis, None]
    return np.concatenate([own - bottom, own - np.delete(z, axis, -1) + (top - bottom)], -1)


def step_lows(threshold: Indices, axis: int, bottom: int, top: int) -> Indices:
    """Lower ends of the box where MReLU_i - MReLU_{i + e_j} is 1, in turned coordinates."""
    return turned(threshold, axis, bottom, top) + 1


def suffix_piece(low: Indices, height: int | Indices, h: int | Indices) -> Indices:
    """Return a of the piece {a 2^h, ...} of {low .. 2^height - 1}; -1 if none is so long."""
    length = (1 << height) - low
    start = low + (length & ((1 << h) - 1))  # shorter pieces stand to the left of longer ones
    return np.where((length >> h) & 1, start >> h, -1)


class MReLUCover:
    """MReLUs on {bottom..top}^d with thresholds {0..top}^d as sums of functions in [0, 1].

    Functions are coarse MReLUs, scaled to [0, 1], then boxes, space by space; ``table``
    (thresholds, size) and ``constant`` (thresholds,) are the MReLUs' coefficients.
    """

    boxes: Indices  # numbers of the dyadic boxes in use, ascending

    def __init__(self, dimension: int, bottom: int, top: int, stride: int) -> None:
        self.dimension, self.bottom, self.top = dimension, bottom, top
        thresholds = lattice_points(0, top, dimension)
        bases = thresholds // stride * stride
        bases[-1] = thresholds[-1]  # zero on the lattice: it needs no base and no steps
        coarse, which = np.unique(bases, axis=0, return_inverse=True)
        ends = np.full(dimension, bottom), np.full(dimension, top)
        low, high = (mrelu(end, coarse) for end in ends)
        varies, which = high > low, which.ravel()
        self.coarse, self.low, self.reach = coarse[varies], low[varies], (high - low)[varies]
        start = _marks(np.arange(len(bases)), which, (len(bases), len(coarse)))[:, varies]
        span = top - bottom
        heights = [span.bit_length(), *[(2 * span).bit_length()] * (dimension - 1)]
        sides = list(itertools.product(*[range(height + 1) for height in heights]))
        # of dyadic boxes, 2^h long, less that of all points; a number says axis, shape and place
        self._sides = np.array(sides[:-1]).reshape(-1, dimension)
        self._shapes, self._heights = np.arange(len(self._sides)), np.array(heights)
        self._dims = (dimension, len(sides), *(1 << self._heights))
        path = self._path(thresholds, bases, stride)
        steps, everywhere = self._steps(thresholds)
        taken = sparse.csc_array(path @ steps)
        used = np.flatnonzero(np.diff(taken.indptr))
        self.boxes = self.boxes[used]
        self._shapes = np.unique(np.unravel_index(self.boxes, self._dims)[1])
        self.table = sparse.csr_array(sparse.hstack([start * self.reach, -taken[:, used]]))
        self.size = self.table.shape[1]
        self.constant = low[which] - path @ everywhere

    def _numbers(self, cells: Indices, axis: int) -> Indices:
        """Return numbers for boxes (T, shapes, d) of a turned space; -1 where there is none."""
        place = np.moveaxis(np.maximum(cells, 0), -1, 0)
        number = np.ravel_multi_index((np.array(axis), self._shapes, *place), self._dims)
        return np.where((cells >= 0).all(-1), number, -1)

    def _around(self, z: Indices, axis: int) -> Indices:
        """Return the numbers of the boxes in which lattice points (T, d) lie, one of each shape."""
        w = turned(z, axis, self.bottom, self.top)
        return self._numbers(w[:, None] >> self._sides[self._shapes], axis)

    def _steps(self, thresholds: Indices) -> tuple[sparse.csr_array, Array]:
        """Dyadic boxes of each unit step (d * thresholds, boxes); 1 where it is everywhere."""
        points = lattice_points(self.bottom, self.top, self.dimension)
        parts, everywhere = [], []
        for axis in range(self.dimension):
            lows = step_lows(thresholds, axis, self.bottom, self.top)
            everywhere.append((lows == 0).all(-1))
            number = self._numbers(suffix_piece(lows[:, None], self._heights, self._sides), axis)
            parts.append(np.where(np.isin(number, self._around(points, axis)), number, -1))
        every = np.concatenate(parts)
        self.boxes = np.unique(every[every >= 0])
        step, shape = np.nonzero(every >= 0)
        column = np.searchsorted(self.boxes, every[step, shape])
        return _marks(step, column, (len(every), len(self.boxes))), np.concatenate(everywhere)

    def _path(self, thresholds: Indices, bases: Indices, stride: int) -> sparse.csr_array:
        """Which unit steps lead to each threshold, (thresholds, d * thresholds)."""
        count = len(thresholds)
        rows, columns = [np.zeros(0, np.intp)], [np.zeros(0, np.intp)]
        for axis in range(self.dimension):
            # coordinates before this one have arrived, those behind it still stand at the base
            here = np.concatenate([thresholds[:, :axis], bases[:, axis:]], -1)
            for offset in range(stride - 1):
                walks = np.flatnonzero(here[:, axis] + offset < thresholds[:, axis])
                step = here[walks]
                step[:, axis] += offset
                rows.append(walks)
                columns.append(axis * count + threshold_index(step, self.top))
        shape = count, self.dimension * count
        return _marks(np.concatenate(rows), np.concatenate(columns), shape)

    def transform(self, z: Indices) -> Array:
        """Values (T, size) of all functions at lattice points (T, d)."""
        values, start = np.zeros((len(z), self.size)), len(self.coarse)
        values[:, :start] = (mrelu(z[:, None, :], self.coarse) - self.low) / self.reach
        for axis in range(self.dimension if len(self.boxes) else 0):
            numbers = self._around(z, axis)
            column = np.minimum(np.searchsorted(self.boxes, numbers), len(self.boxes) - 1)
            rows, shape = np.nonzero(self.boxes[column] == numbers)
            values[rows, start + column[rows, shape]] = 1.0
        return values

    def weight(self, mixtures: Any) -> float:
        """Greatest sum of |coefficients| of the given mixtures of MReLUs (rows)."""
        return float(abs(mixtures @ self.table).sum(-1).max(initial=0.0))


def _marks(rows: Indices, columns: Indices, shape: tuple[int, int]) -> sparse.csr_array:
    """Sparse array of ones at the given rows and columns."""
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


@register.basis("leontief")
def leontief(losses: Sequence[Loss], *, error: float = 0.2, nearest: bool = True) -> Basis:
    """Take the losses' steepest slope as constant."""
    constant = steepest(of_form(losses, MinimumOfRatios))
    return LeontiefBasis.covering(
        losses[0].outcomes, constant=constant, error=error, nearest=nearest
    )
