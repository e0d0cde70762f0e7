r"""The paper's basis for Leontief losses: rounding, multivariate ReLUs, dyadic boxes.

Family. ``offset + A min_j y_j / a_j`` with a_j / |A| >= 1/L for all j, in other words L-Lipschitz
in every input (A = -1 is the paper's; the amplitude of a normalised loss goes into a).

Construction (Lu, Roth and Shi, the section on Leontief functions, after Gopalan et al. at d = 1),
with delta = 1/m. Outcomes are rounded to z in {bottom..top}^d, and MReLU_i(z) = max(z_1 - i_1, ...,
z_d - i_d, 0) for a threshold i.

**Rounding.** b_j = Round(m / (a_j L)), z_j = Round(m y_j), both in {1..m-1}, and g(z) = min_j b_j
z_j. Then |f - L delta^2 g| <= L delta^2 (2 m - 1), below the printed 2 L delta. Rounding to {0..m},
the option ``nearest``, halves it: L delta^2 (m - 1/4). Both are attained.

**Lattice functions in MReLUs** (corollary of the lemma "indicator to MReLU"). With the mixed
difference D g(i) = sum_sigma (-1)^{|sigma|} g(i - sigma) over sigma in {0,1}^d, any g on
{1..top}^d, taken as 0 elsewhere, has the coefficients c_i = (-1)^d (D g(i) - D g(i + (1..1))) on
{0..top+1}^d. Thresholds top and top + 1 act alike on the lattice and are merged.

Orthants. D of the indicator of {z >= q} is a product over j of (1 at q_j, -1 at top + 1), so its
coefficients sum to 2^{d+1} in absolute value. And g is the mixture of all orthants with weights
D g, which for min_j b_j z_j are at least 0 and sum to top min_j b_j. Hence sum_i |c_i| <= 2^{d+1}
top min_j b_j.

**Cover.** R_s holds the MReLUs whose thresholds are multiples of s = ceil(m^(d/(d+2))) (0 among
them: the printed indices 1..m/s do not reach the thresholds below s). Any other is reached from
the multiples below it by at most d (s - 1) unit steps, and one step is the indicator of a box,

    MReLU_i - MReLU_{i + e_j} = 1[z_j >= i_j + 1] prod_{k != j} 1[z_j - z_k >= i_j - i_k + 1],

in the turned coordinates (z_j, z_j - z_k), shifted so that the least value is 0 (the printed shift
is m). Such a box is a disjoint union of dyadic boxes, products of {a 2^h, ..., (a + 1) 2^h - 1}.

An interval without an upper end, the only kind that steps need, takes at most one dyadic piece of
each length. Boxes that no point reaches or no step takes get no function, and what is the same
everywhere goes into the constant. The paper replaces the N boxes of one shape by the columns of a
near-identity (Alon: 4 ln N / mu^2 of them for an error mu): at practical sizes as many.

**Lambda.** The family of g is finite, and its worst member decides. Where it has more than
``LISTED`` members the worst orthant bounds them all, 10 to 60 times less tightly. The basis is
larger than the lattice that it replaces: 133 functions at d = 2, m = 10 for 81 points.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from regretless.forecaster.minimax.support import ListedSupport
from regretless.market import register
from regretless.market.core.arrays import Array, Indices, grid_points
from regretless.market.losses import Loss, MinimumOfRatios
from regretless.market.losses.basis import Basis, Support, of_form, steepest

MOST_POINTS = 20_000
LISTED = 2500


class LeontiefBasis(Basis):
    """Functions of the rounded outcome in which Leontief losses are nearly linear.

    ``cells`` is m = 1/delta, at least 3, ``constant`` L: requirements are at least |amplitude| / L.
    ``nearest`` rounds to {0..m}, not to the paper's {1..m-1}.
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
        self.outcomes = outcomes
        self.cells = cells
        self.constant = constant
        self.bottom, self.top = (0, cells) if nearest else (1, cells - 1)
        stride = math.ceil(round(cells ** (outcomes / (outcomes + 2)), 9))
        self.cover = MReLUCover(outcomes, self.bottom, self.top, stride)
        self._orthants = orthants(self.top, outcomes)
        self._unit = constant / cells**2
        every = lattice_points(1, self.top, outcomes)
        short = len(every) <= LISTED
        worst = self._in_mrelus(every) if short else self._orthants * float(self.top**2)
        self.size, self.lipschitz = self.cover.size, self._unit * self.cover.weight(worst)
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
        in_mrelus = self._in_mrelus(distinct)
        row = row.reshape(factors.shape[:-1])
        scale = np.sign(ratios.amplitude) * self._unit
        offset = ratios.offset + scale * (in_mrelus @ self.cover.constant)[row]
        return offset, scale[..., None] * (in_mrelus @ self.cover.table)[row]

    def support(self) -> Support:
        """List the lattice: the functions are constant around its points."""
        return ListedSupport(
            self, lattice_points(self.bottom, self.top, self.outcomes) / self.cells
        )

    def _in_mrelus(self, factors: Indices) -> Array:
        """Return the coefficients of g of every b (count, d) over the thresholds {0..top}^d."""
        z = lattice_points(1, self.top, self.outcomes)
        sides = [self.top] * self.outcomes
        tables = np.stack([(b * z).min(-1) for b in factors]).reshape(-1, *sides)
        return np.asarray(mixed_differences(tables) @ self._orthants)


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


def mixed_differences(tables: Indices) -> Indices:
    """Return D of functions (count, top, ..., top) on {1..top}^d, 0 below: (count, top^d)."""
    for axis in range(1, tables.ndim):
        tables = np.diff(tables, axis=axis, prepend=0)
    return tables.reshape(len(tables), -1)


def orthants(top: int, dimension: int) -> sparse.csr_array:
    """Tabulate the merged coefficients of the indicators of {z >= q}: (top^d, (top + 1)^d)."""
    total = 0
    for shift, sign in ((1, 1), (0, -1)):  # D at i, and at i + (1..1)
        axis = sparse.lil_array(sparse.eye_array(top, top + 1, k=shift))
        axis[:, [top]] -= np.ones((top, 1))
        product = sparse.csr_array([[float(sign * (-1) ** dimension)]])
        for _ in range(dimension):
            product = sparse.kron(product, axis, format="csr")
        total = product + total
    return total


def turned(z: Indices, axis: int, bottom: int, top: int) -> Indices:
    """Coordinates (z_j, z_j - z_k for k != j) of z (..., d), shifted so that the least is 0."""
    own = z[..., axis, None]
    return np.concatenate([own - bottom, own - np.delete(z, axis, -1) + (top - bottom)], -1)


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

    def __init__(self, dimension: int, bottom: int, top: int, stride: int) -> None:
        self.dimension = dimension
        self.bottom = bottom
        self.top = top
        thresholds = lattice_points(0, top, dimension)
        bases = thresholds // stride * stride
        bases[-1] = thresholds[-1]  # zero on the lattice: it needs no base and no steps
        coarse, which = np.unique(bases, axis=0, return_inverse=True)
        low, high = (mrelu(np.full(dimension, end), coarse) for end in (bottom, top))
        varies = high > low
        which = which.ravel()
        self.coarse = coarse[varies]
        self.low = low[varies]
        self.reach = (high - low)[varies]
        start = _marks(np.arange(len(bases)), which, (len(bases), len(coarse)))[:, varies]
        path, (steps, everywhere) = self._path(thresholds, bases), self._steps(thresholds)
        taken = sparse.csc_array(path @ steps)
        used = np.diff(taken.indptr) > 0
        # of every box its space, and of every side of it the length 2^h and the place a
        self._axes, self._sides, self._places = (own[used] for own in self._boxes)
        self.table = sparse.csr_array(sparse.hstack([start * self.reach, -taken[:, used]]))
        self.size = self.table.shape[1]
        self.constant = low[which] - path @ everywhere

    def _steps(self, thresholds: Indices) -> tuple[sparse.csr_array, Array]:
        """Dyadic boxes of each unit step (d * thresholds, boxes); 1 where it is everywhere."""
        count = len(thresholds)
        span = self.top - self.bottom
        heights = np.array([span.bit_length(), *[(2 * span).bit_length()] * (self.dimension - 1)])
        # all shapes of boxes but that of all points
        sides = np.array(list(itertools.product(*(range(h + 1) for h in heights)))[:-1])
        dims = self.dimension, len(sides) + 1, *(1 << heights)
        rows = []
        numbers = []
        everywhere = []
        for axis in range(self.dimension):
            lows = turned(thresholds, axis, self.bottom, self.top) + 1
            everywhere.append((lows == 0).all(-1))
            place = suffix_piece(lows[:, None], heights, sides)
            first = place << sides
            last = ((place + 1) << sides) - 1
            # a point with z_j = bottom + u has the other coordinates in u..u + span
            least = np.maximum(first[..., 0], first[..., 1:].max(-1, initial=span) - span)
            most = np.minimum(last[..., 0], last[..., 1:].min(-1, initial=span))
            step, shape = np.nonzero((place >= 0).all(-1) & (least <= most))
            rows.append(axis * count + step)
            numbers.append(np.ravel_multi_index((axis, shape, *place[step, shape].T), dims))
        boxes, column = np.unique(np.concatenate(numbers), return_inverse=True)
        axes, shapes, *places = np.unravel_index(boxes, dims)
        self._boxes = axes, sides[shapes], np.array(places).T
        marks = _marks(np.concatenate(rows), column, (self.dimension * count, len(boxes)))
        return marks, np.concatenate(everywhere)

    def _path(self, thresholds: Indices, bases: Indices) -> sparse.csr_array:
        """Which unit steps lead to each threshold, (thresholds, d * thresholds).

        The first coordinate goes first, so that the last step is along the last that has moved.
        """
        count = len(thresholds)
        moved = thresholds - bases
        rows = np.flatnonzero(moved.any(-1))
        axis = self.dimension - 1 - (moved[rows, ::-1] > 0).argmax(-1)
        before = rows - (self.top + 1) ** (self.dimension - 1 - axis)
        last = _marks(rows, axis * count + before, (count, self.dimension * count))
        back = _marks(rows, before, (count, count))
        path = last
        for _ in range(moved.sum(-1).max() - 1):
            path = last + back @ path
        return path

    def transform(self, z: Indices) -> Array:
        """Values (T, size) of all functions at lattice points (T, d)."""
        values = np.empty((len(z), self.size))
        start = len(self.coarse)
        values[:, :start] = (mrelu(z[:, None, :], self.coarse) - self.low) / self.reach
        for axis in range(self.dimension):
            own = np.flatnonzero(self._axes == axis)
            inside = np.ones((len(z), len(own)), dtype=np.bool_)
            for k, w in enumerate(turned(z, axis, self.bottom, self.top).T):
                inside &= w[:, None] >> self._sides[own, k] == self._places[own, k]
            values[:, start + own] = inside
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
