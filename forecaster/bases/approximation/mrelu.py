r"""All MReLUs of a lattice in few functions: a coarse grid of them, and dyadic boxes between.

Cover. R_s holds the MReLUs whose thresholds are multiples of s (0 among them: the printed indices
1..m/s do not reach the thresholds below s). Any other threshold i is reached from the multiples
below it by at most d (s - 1) unit steps, coordinate by coordinate:

    MReLU_i = MReLU_{s floor(i / s)} - sum over the steps of 1[box of the step],

and each box is a disjoint union of dyadic boxes in one of the d turned spaces (Lu, Roth and Shi,
the section on Leontief functions, after Gopalan et al.).

Dyadic boxes. A dyadic interval is {a 2^h, ..., (a + 1) 2^h - 1}; a dyadic box is a product of
them. Every interval of {1..2m} is a disjoint union of at most 2 log2(2m) dyadic intervals. The
printed 2 log2(m) is too few: {1..4} needs the three pieces {1}, {2, 3}, {4}. The printed lengths
2^h, h <= ln(2m), do not suffice either: {16..31} at m = 16 is one piece with h = 4 > ln 32. It is
log2(2m), rounded up, that h must be allowed to reach. An interval without an upper end, the only
kind that steps of MReLUs need, takes at most one piece of each length, and each piece is a right
half (a is odd) unless it is the whole axis.

Boxes that no point reaches or no step takes get no function, and what is the same everywhere goes
into the constant. The paper replaces the N boxes of one shape by the columns of a near-identity
(Alon: random signs, 4 ln N / mu^2 of them for an error mu). Within the errors that its bases allow
these are as many as the boxes at every practical size, so that the boxes themselves are kept.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from regretless.forecaster.bases.approximation import lattice
from regretless.market.core.arrays import Array, Indices, Mask

Entries = list[tuple[Indices, Indices]]


def suffix_piece(low: Indices, height: int, h: int) -> Indices:
    """Piece with length 2^h of the intervals {low .. 2^height - 1}.

    Returns
    -------
    array like low
        a, or -1 where the interval has no piece of this length.
    """
    length = (1 << height) - low
    start = low + (length & ((1 << h) - 1))  # shorter pieces stand to the left of longer ones
    return np.where((length >> h) & 1, start >> h, -1)


@dataclass(frozen=True, eq=False)
class Shape:
    """The dyadic boxes with sides 2^h_1, ..., 2^h_d that steps use and points reach.

    Attributes
    ----------
    sides : tuple of int
        h_1, ..., h_d.
    dims : tuple of int
        Boxes along each axis.
    codes : array
        Flat positions of the boxes that are kept, ascending.
    start : int
        Number of boxes kept in the shapes before this one.
    """

    sides: tuple[int, ...]
    dims: tuple[int, ...]
    codes: Indices
    start: int

    def locate(self, cells: Indices) -> Indices:
        """Row of each box (..., d) among those kept; -1 where it is not kept."""
        code = _cell_code(cells, self.dims)
        row = np.searchsorted(self.codes, code)
        row = np.minimum(row, len(self.codes) - 1)
        return np.where((cells >= 0).all(-1) & (self.codes[row] == code), row, -1)


def _cell_code(cells: Indices, dims: Sequence[int]) -> Indices:
    """Flat positions of boxes (..., d) in an array of the given shape."""
    weights = np.array([math.prod(dims[k + 1 :]) for k in range(len(dims))])
    return np.asarray(cells @ weights)


def _used_shapes(points: Indices, heights: Sequence[int]) -> list[Shape]:
    """List the boxes that intervals without upper ends can use, where points reach them.

    Axis j is {0 .. 2^heights_j - 1}. The box that holds all points is left out, and so are shapes
    without boxes.
    """
    shapes, start = [], 0
    ends = np.array(heights)
    for sides in itertools.product(*[range(height + 1) for height in heights]):
        whole = np.array(sides) == ends
        if whole.all():
            continue
        dims = tuple(1 << (height - h) for height, h in zip(heights, sides, strict=True))
        cells = points >> np.array(sides)
        right = ((cells & 1 == 1) | whole).all(-1)
        codes = np.unique(_cell_code(cells[right], dims))
        if len(codes):
            shapes.append(Shape(sides, dims, codes, start))
            start += len(codes)
    return shapes


def _only(shapes: Sequence[Shape], kept: Mask) -> list[Shape]:
    """Keep the boxes where the mask over the boxes of all shapes is true."""
    result, start = [], 0
    for shape in shapes:
        codes = shape.codes[kept[shape.start : shape.start + len(shape.codes)]]
        if len(codes):
            result.append(replace(shape, codes=codes, start=start))
            start += len(codes)
    return result


class MReLUCover:
    """MReLUs with thresholds {0..top}^d as sums of functions with range [0, 1].

    Parameters
    ----------
    dimension : int
        d.
    bottom, top : int
        The lattice is {bottom..top}^d.
    stride : int
        s.

    Attributes
    ----------
    coarse : array (R, d)
        Thresholds of the coarse MReLUs, those that are constant left out.
    low, high : array (R,)
        Their least and greatest values on the lattice.
    spaces : list of lists of Shape
        The dyadic boxes in use, one list for each turned space.
    size : int
        Number of functions: coarse MReLUs, scaled to [0, 1], then boxes, space by space and shape
        by shape.
    table : sparse array (thresholds, size)
        Coefficients of the MReLUs.
    constant : array (thresholds,)
        Their constants.
    """

    def __init__(self, dimension: int, bottom: int, top: int, stride: int) -> None:
        self.dimension, self.bottom, self.top, self.stride = dimension, bottom, top, stride
        self.thresholds = lattice.lattice_points(0, top, dimension)
        # The last threshold, (top..top), is zero on the lattice: it needs no base and no steps.
        self._moving = self.thresholds[:-1]
        self._bases = self._moving // stride * stride
        coarse = np.unique(self._bases, axis=0)
        low, high = self._extremes(coarse)
        varies = high > low
        self.coarse, self.low, self.high = coarse[varies], low[varies], high[varies]
        base, fixed = self._start()
        path, steps, everywhere = self._path(), *self._steps()
        taken = path @ steps
        used = np.diff(sparse.csc_array(taken).indptr) > 0
        self.table = sparse.csr_array(sparse.hstack([base, -taken[:, np.flatnonzero(used)]]))
        self.size = self.table.shape[1]
        self.spaces = [_only(self._shapes, mask) for mask in np.split(used, dimension)]
        self.constant = fixed - path @ everywhere

    def _extremes(self, thresholds: Indices) -> tuple[Indices, Indices]:
        """Least and greatest value on the lattice of MReLUs (..., d)."""
        ones = np.ones(self.dimension, dtype=np.intp)
        return lattice.mrelu(self.bottom * ones, thresholds), lattice.mrelu(
            self.top * ones, thresholds
        )

    def _start(self) -> tuple[sparse.csr_array, Array]:
        """Weights of coarse functions, scaled to [0, 1], and constants, for each threshold."""
        low, high = self._extremes(self._bases)
        moves = np.flatnonzero(high > low)
        positions = lattice.threshold_index(self.coarse, self.top)
        columns = np.searchsorted(positions, lattice.threshold_index(self._bases[moves], self.top))
        shape = len(self.thresholds), len(self.coarse)
        base = sparse.csr_array(((high - low)[moves].astype(float), (moves, columns)), shape=shape)
        return base, np.append(low.astype(float), 0.0)

    def _steps(self) -> tuple[sparse.csr_array, Array]:
        """Dyadic boxes of each unit step (d * thresholds, d * boxes); 1 where it is everywhere."""
        span, count = self.top - self.bottom, len(self.thresholds)
        heights = (span.bit_length(), *[(2 * span).bit_length()] * (self.dimension - 1))
        # The turned coordinates of all points are the same set in each of the d spaces.
        points = lattice.lattice_points(self.bottom, self.top, self.dimension)
        turned = lattice.turned(points, 0, self.bottom, self.top)
        self._shapes = _used_shapes(turned, heights)
        boxes = sum(len(shape.codes) for shape in self._shapes)
        place: Entries = []
        everywhere = np.zeros(self.dimension * count)
        for axis in range(self.dimension):
            lows = lattice.step_lows(self.thresholds, axis, self.bottom, self.top)
            everywhere[axis * count :][:count] = (lows == 0).all(-1)
            for shape in self._shapes:
                sides = zip(lows.T, heights, shape.sides, strict=True)
                box = shape.locate(np.stack([suffix_piece(*side) for side in sides], -1))
                step = np.flatnonzero(box >= 0)
                place.append((axis * count + step, axis * boxes + shape.start + box[step]))
        return _marks(place, (self.dimension * count, self.dimension * boxes)), everywhere

    def _path(self) -> sparse.csr_array:
        """Which unit steps lead to each threshold, (thresholds, d * thresholds)."""
        count = len(self.thresholds)
        place: Entries = []
        for axis in range(self.dimension):
            # coordinates before this one have arrived, those behind it still stand at the base
            here = np.concatenate([self._moving[:, :axis], self._bases[:, axis:]], -1)
            for offset in range(self.stride - 1):
                walks = np.flatnonzero(here[:, axis] + offset < self._moving[:, axis])
                step = here[walks]
                step[:, axis] += offset
                place.append((walks, axis * count + lattice.threshold_index(step, self.top)))
        return _marks(place, (count, self.dimension * count))

    def transform(self, z: Indices) -> Array:
        """Values (T, size) of all functions at lattice points (T, d)."""
        values = np.zeros((len(z), self.size))
        start = len(self.coarse)
        reach = self.high - self.low
        values[:, :start] = (lattice.mrelu(z[:, None, :], self.coarse) - self.low) / reach
        for axis, shapes in enumerate(self.spaces):
            w = lattice.turned(z, axis, self.bottom, self.top)
            for shape in shapes:
                row = shape.locate(w >> np.array(shape.sides))
                inside = np.flatnonzero(row >= 0)
                values[inside, start + row[inside]] = 1.0
                start += len(shape.codes)
        return values

    def weight(self, mixtures: Any) -> float:
        """Greatest sum of |coefficients| of the given mixtures of MReLUs (rows)."""
        return float(abs(mixtures @ self.table).sum(-1).max(initial=0.0))


def _marks(place: Entries, shape: tuple[int, int]) -> sparse.csr_array:
    """Sparse array of ones at the given rows and columns."""
    rows = np.concatenate([row for row, _ in place] or [np.zeros(0, dtype=np.intp)])
    columns = np.concatenate([column for _, column in place] or [np.zeros(0, dtype=np.intp)])
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
