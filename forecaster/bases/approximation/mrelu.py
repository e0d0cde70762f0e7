r"""All MReLUs of a lattice in few functions: a coarse grid of them, and dyadic boxes between.

Cover. R_s holds the MReLUs whose thresholds are multiples of s (0 among them: the printed indices
1..m/s do not reach the thresholds below s). Any other threshold i is reached from the multiples
below it by at most d (s - 1) unit steps, coordinate by coordinate:

    MReLU_i = MReLU_{s floor(i / s)} - sum over the steps of 1[box of the step],

and each box is a disjoint union of dyadic boxes in one of the d turned spaces.

Span. The boxes of one shape in one space are replaced by the columns of a near-identity V. A
function whose boxes of that shape have weights u is then off by at most mu sum |u|.

Boxes that no point reaches or no step takes get no function (a zero row of V), and what is the
same everywhere goes into the constant.
"""

from typing import Any

import numpy as np
from scipy import sparse

from regretless.forecaster.bases.approximation import dyadic, lattice
from regretless.market.core.arrays import Array, Indices

Entries = list[tuple[Indices, Indices]]


class MReLUCover:
    """MReLUs with thresholds {0..top}^d as sums of coarse ones and dyadic boxes.

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
    base : sparse array (thresholds, R)
        Weights of the coarse MReLUs, each scaled to [0, 1].
    usage : sparse array (thresholds, boxes)
        Weights of the dyadic boxes, space by space and shape by shape.
    constant : array (thresholds,)
        What is left.
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
        self.base, fixed = self._start()
        path, steps, everywhere = self._path(), *self._steps()
        taken = path @ steps
        used = np.diff(sparse.csc_array(taken).indptr) > 0
        self.usage = sparse.csr_array(-taken[:, np.flatnonzero(used)])
        self.spaces = [dyadic.only(self._shapes, mask) for mask in np.split(used, dimension)]
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
        self._shapes = dyadic.used_shapes(lattice.turned(points, 0, self.bottom, self.top), heights)
        boxes = sum(len(shape.codes) for shape in self._shapes)
        place: Entries = []
        everywhere = np.zeros(self.dimension * count)
        for axis in range(self.dimension):
            lows = lattice.step_lows(self.thresholds, axis, self.bottom, self.top)
            everywhere[axis * count :][:count] = (lows == 0).all(-1)
            for shape in self._shapes:
                sides = zip(lows.T, heights, shape.sides, strict=True)
                box = shape.locate(np.stack([dyadic.suffix_piece(*side) for side in sides], -1))
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

    def load(self, mixtures: Any) -> float:
        """Greatest sum of |weights of boxes| of the given mixtures of MReLUs (rows)."""
        return float(abs(mixtures @ self.usage).sum(-1).max(initial=0.0))


def _marks(place: Entries, shape: tuple[int, int]) -> sparse.csr_array:
    """Sparse array of ones at the given rows and columns."""
    rows = np.concatenate([row for row, _ in place] or [np.zeros(0, dtype=np.intp)])
    columns = np.concatenate([column for _, column in place] or [np.zeros(0, dtype=np.intp)])
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


class MReLUSpan:
    """Functions with range [0, 1] that nearly span the MReLUs of a lattice.

    Parameters
    ----------
    mu : float
        Greatest error of a dyadic box; 0 keeps every box.
    seed : int
        Root seed of the random signs.

    Attributes
    ----------
    size : int
        Number of functions.
    factors : list of NearIdentity
        One for each shape of each space.
    table : sparse array (thresholds, size)
        Coefficients of the MReLUs.
    constant : array (thresholds,)
        Their constants.
    """

    def __init__(self, cover: MReLUCover, mu: float, seed: int = 0) -> None:
        self.cover = cover
        shapes = [shape for space in cover.spaces for shape in space]
        self.factors = [dyadic.near_identity(len(shape.codes), mu, seed) for shape in shapes]
        self._counts = np.array([factor.rows for factor in self.factors], dtype=np.intp)
        self.size = len(cover.coarse) + sum(factor.columns for factor in self.factors)
        encoders = [_encoder(factor) for factor in self.factors]
        parts = [cover.base]
        self.constant = cover.constant
        if encoders:
            blocks = sparse.csr_array(sparse.block_diag([block for block, _ in encoders]))
            parts.append(cover.usage @ blocks)
            shifts = np.concatenate([shift for _, shift in encoders])
            self.constant = cover.constant + cover.usage @ shifts
        self.table = sparse.csr_array(sparse.hstack(parts))

    def transform(self, z: Indices) -> Array:
        """Values (T, size) of all functions at lattice points (T, d)."""
        cover = self.cover
        values = np.zeros((len(z), self.size))
        start = len(cover.coarse)
        reach = cover.high - cover.low
        values[:, :start] = (lattice.mrelu(z[:, None, :], cover.coarse) - cover.low) / reach
        factors = iter(self.factors)
        for axis, shapes in enumerate(cover.spaces):
            w = lattice.turned(z, axis, cover.bottom, cover.top)
            for shape, factor in zip(shapes, factors, strict=False):
                _fill(values[:, start : start + factor.columns], shape, factor, w)
                start += factor.columns
        return values

    def weight(self, mixtures: Any) -> float:
        """Greatest sum of |coefficients| of the given mixtures of MReLUs (rows)."""
        return float(abs(mixtures @ self.table).sum(-1).max(initial=0.0))

    def slack(self, mixtures: Any) -> float:
        """Bound the error of the given mixtures: mu of each shape times the weights in it."""
        each = np.repeat([factor.mu for factor in self.factors], self._counts)
        return float((abs(mixtures @ self.cover.usage) @ each).max(initial=0.0))


def _fill(values: Array, shape: dyadic.Shape, factor: dyadic.NearIdentity, w: Indices) -> None:
    """Write the functions of one shape at points (T, d) of its space."""
    row = shape.locate(w >> np.array(shape.sides))
    inside = np.flatnonzero(row >= 0)
    if factor.signs is None:
        values[inside, row[inside]] = 1.0
    else:
        values[:] = 0.5  # a zero row of V
        values[inside] += factor.signs[row[inside]] / 2


def _encoder(factor: dyadic.NearIdentity) -> tuple[Any, Array]:
    """Box indicators (N) in the functions (1 + sqrt(K) nu) / 2: weights (N, K) and constants."""
    if factor.signs is None:
        return sparse.eye_array(factor.rows), np.zeros(factor.rows)
    weights = factor.signs.astype(np.float64) / factor.columns
    return sparse.csr_array(2 * weights), -weights.sum(-1)
