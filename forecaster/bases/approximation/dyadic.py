r"""Dyadic boxes, and few functions that nearly separate the boxes of one shape.

A dyadic interval is {a 2^h, ..., (a + 1) 2^h - 1}; a dyadic box is a product of them. Source: Lu,
Roth and Shi, the section on Leontief functions, after Gopalan et al.

Cover. Every interval of {1..2m} is a disjoint union of at most 2 log2(2m) dyadic intervals. The
printed 2 log2(m) is too few: {1..4} needs the three pieces {1}, {2, 3}, {4}. The printed lengths
2^h, h <= ln(2m), do not suffice either: {16..31} at m = 16 is one piece with h = 4 > ln 32. It is
log2(2m), rounded up, that h must be allowed to reach. An interval without an upper end, the only
kind that steps of MReLUs need, takes at most one piece of each length, and each piece is a right
half (a is odd) unless it is the whole axis.

Near-identity (Alon). There is an N x K matrix V with K = O(ln N / mu^2) such that V V^T is 1 on
the diagonal and at most mu in absolute value elsewhere: random signs over sqrt(K). So the N
indicators of the boxes of one shape are nearly spanned by the K functions nu_k(w) = V_{i k} for
w in box i, with

    1[w in box i] = sum_k V_{i k} nu_k(w)    up to mu,  without error where V is the identity.

The functions that are stored are (1 + sqrt(K) nu_k) / 2, which fill [0, 1]. The coefficients of
one box then sum to 2 in absolute value, not 2 sqrt(K) as for the printed (1 + nu_k) / 2.

Union bound: K > 4 ln N / mu^2 signs do with positive probability. Where as many as N would be
needed, V is the identity; at every practical size that is the case.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.randomness import stream

Signs = NDArray[np.float32]

CHECKED_ROWS = 256


def dyadic_pieces(low: int, high: int) -> list[tuple[int, int]]:
    """Split {low..high}, low >= 0, into the fewest disjoint dyadic intervals.

    Returns
    -------
    list of (h, a)
        From left to right; the interval (h, a) is {a 2^h .. (a + 1) 2^h - 1}.
    """
    pieces = []
    while low <= high:
        fits = (high - low + 1).bit_length() - 1
        aligned = (low & -low).bit_length() - 1 if low else fits
        h = min(fits, aligned)
        pieces.append((h, low >> h))
        low += 1 << h
    return pieces


def dyadic_boxes(low: Sequence[int], high: Sequence[int]) -> list[tuple[tuple[int, int], ...]]:
    """Split a box into disjoint dyadic boxes: all products of the pieces of its sides."""
    return list(itertools.product(*map(dyadic_pieces, low, high)))


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
        code = cell_code(cells, self.dims)
        row = np.searchsorted(self.codes, code)
        row = np.minimum(row, len(self.codes) - 1)
        return np.where((cells >= 0).all(-1) & (self.codes[row] == code), row, -1)


def cell_code(cells: Indices, dims: Sequence[int]) -> Indices:
    """Flat positions of boxes (..., d) in an array of the given shape."""
    weights = np.array([math.prod(dims[k + 1 :]) for k in range(len(dims))])
    return np.asarray(cells @ weights)


def used_shapes(points: Indices, heights: Sequence[int]) -> list[Shape]:
    """List the boxes that intervals without upper ends can use, where points reach them.

    Parameters
    ----------
    points : array (T, d)
        All points that occur.
    heights : sequence of int
        Axis j is {0 .. 2^heights_j - 1}.

    Returns
    -------
    list of Shape
        Without the box that holds all points, and without shapes that have no boxes.
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
        codes = np.unique(cell_code(cells[right], dims))
        if len(codes):
            shapes.append(Shape(sides, dims, codes, start))
            start += len(codes)
    return shapes


def only(shapes: Sequence[Shape], kept: Mask) -> list[Shape]:
    """Keep the boxes where the mask over the boxes of all shapes is true."""
    result, start = [], 0
    for shape in shapes:
        codes = shape.codes[kept[shape.start : shape.start + len(shape.codes)]]
        if len(codes):
            result.append(replace(shape, codes=codes, start=start))
            start += len(codes)
    return result


@dataclass(frozen=True, eq=False)
class NearIdentity:
    """A matrix V with unit rows that are nearly orthogonal.

    Attributes
    ----------
    rows, columns : int
        N and K.
    signs : array (N, K) or None
        V sqrt(K); None for the identity.
    mu : float
        The greatest absolute entry of V V^T off the diagonal, 0 for the identity.
    """

    rows: int
    columns: int
    signs: Signs | None
    mu: float

    def matrix(self) -> Array:
        """Return V, (N, K)."""
        if self.signs is None:
            return np.eye(self.rows)
        return self.signs.astype(np.float64) / math.sqrt(self.columns)


def coherence(signs: Signs, most: float = math.inf) -> float:
    """Return the greatest absolute entry of V V^T off the diagonal, exactly.

    Rows are checked in blocks, and the check stops at the first value above ``most``.
    """
    worst = 0.0
    for start in range(0, len(signs), CHECKED_ROWS):
        products = np.abs(signs[start : start + CHECKED_ROWS] @ signs[start:].T)
        np.fill_diagonal(products, 0.0)  # integers below 2^24: exact in 32 bits
        worst = max(worst, float(products.max(initial=0.0)) / signs.shape[1])
        if worst > most:
            break
    return worst


def fewest_columns(rows: int, mu: float) -> int:
    """Columns below which the search does not look, ln N / mu^2: N where it finds nothing."""
    return min(rows, math.ceil(math.log(rows) / mu**2)) if mu > 0 and rows > 1 else rows


def enough_columns(rows: int, mu: float) -> float:
    """Columns that do by the union bound, 4 ln N / mu^2, or N if that is less."""
    return min(rows, 4 * math.log(rows) / mu**2 + 1) if mu > 0 and rows > 1 else rows


@lru_cache(maxsize=256)
def near_identity(rows: int, mu: float, seed: int = 0) -> NearIdentity:
    """Find few columns K such that N x K random signs are a near-identity, each trial checked.

    K is doubled from where success begins to be conceivable, then bisected. Equal arguments give
    the same matrix.

    Parameters
    ----------
    rows : int
        N.
    mu : float
        Greatest absolute product of two rows that is allowed.
    """

    def attempt(columns: int) -> NearIdentity | None:
        if columns >= rows:
            return NearIdentity(rows, rows, None, 0.0)
        rng = stream(seed, "near-identity", str(rows), str(columns))
        signs = rng.choice(np.array([-1, 1], dtype=np.float32), (rows, columns))
        worst = coherence(signs, mu)
        return NearIdentity(rows, columns, signs, worst) if worst <= mu else None

    low, high = 0, fewest_columns(rows, mu)
    best = attempt(high)
    while best is None:
        low, high = high, min(2 * high, max(rows - 1, high + 1))
        best = attempt(high)
    while best.signs is not None and high - low > 1:
        middle = (low + high) // 2
        trial = attempt(middle)
        low, high = (middle, high) if trial is None else (low, middle)
        best = trial or best
    return best
