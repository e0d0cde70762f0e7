"""Sums over the coordinates of an outcome, for many losses, in one order: coordinate by coordinate.

``weighted_sum`` broadcasts over outcomes, ``weighted_sums`` is compiled for one outcome; both give
the same to the last bit.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from market.lanes import over_rows
from market.memory import LINE, SHORT, empty, fetch, following

Array = NDArray[np.float64]


@numba.njit(cache=True, inline="always")
def _eight(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    offset: Array, weights: Array, values: Array, k: int, a: int, out: Array
) -> None:
    """Compute the sums of eight actions from ``a`` on, which need not wait for each other."""
    v = values[0]
    t0, t1 = weights[k, a, 0] * v, weights[k, a + 1, 0] * v
    t2, t3 = weights[k, a + 2, 0] * v, weights[k, a + 3, 0] * v
    t4, t5 = weights[k, a + 4, 0] * v, weights[k, a + 5, 0] * v
    t6, t7 = weights[k, a + 6, 0] * v, weights[k, a + 7, 0] * v
    long, (row, column), place = weights.shape[2] > SHORT, following(weights, k, a), 0
    for j in range(1, weights.shape[2]):
        if long:
            fetch(weights, row, column, place)
            place += LINE
            if place >= weights.shape[2]:
                place, column = 0, column + 1
        v = values[j]
        t0 += weights[k, a, j] * v
        t1 += weights[k, a + 1, j] * v
        t2 += weights[k, a + 2, j] * v
        t3 += weights[k, a + 3, j] * v
        t4 += weights[k, a + 4, j] * v
        t5 += weights[k, a + 5, j] * v
        t6 += weights[k, a + 6, j] * v
        t7 += weights[k, a + 7, j] * v
    out[k, a], out[k, a + 1] = offset[k, a] + t0, offset[k, a + 1] + t1
    out[k, a + 2], out[k, a + 3] = offset[k, a + 2] + t2, offset[k, a + 3] + t3
    out[k, a + 4], out[k, a + 5] = offset[k, a + 4] + t4, offset[k, a + 5] + t5
    out[k, a + 6], out[k, a + 7] = offset[k, a + 6] + t6, offset[k, a + 7] + t7


@numba.njit(cache=True, nogil=True)
def weighted_rows(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    offset: Array, weights: Array, values: Array, out: Array, first: int, last: int
) -> None:
    """Write the sums of some rows (compiled)."""
    eights = weights.shape[1] // 8 * 8
    for k in range(first, last):
        own = values[min(k, values.shape[0] - 1)]
        for a in range(0, eights, 8):
            _eight(offset, weights, own, k, a, out)
        for a in range(eights, weights.shape[1]):
            total = weights[k, a, 0] * own[0]
            for j in range(1, weights.shape[2]):
                total += weights[k, a, j] * own[j]
            out[k, a] = offset[k, a] + total


def weighted_sums(offset: Array, weights: Array, values: Array) -> Array:
    """Compute offset + ``weighted_sum`` for a stack at one outcome, to the same last bit.

    Many losses are bound by memory: this reads each weight once and writes nothing between.

    Parameters
    ----------
    offset : array (K, A)
    weights : array (K, A, d)
    values : array (1, d) or (K, d)

    Returns
    -------
    array (K, A)
    """
    out = empty(*offset.shape)
    over_rows(weighted_rows, len(out), offset, weights, values, out)
    return out


def weighted_sum(weights: Array, values: Array) -> Array:
    """Compute sum_j weights[..., a, j] values[..., j], coordinate by coordinate.

    A few coordinates and many losses: adding up whole planes beats a product over the short axis.

    Parameters
    ----------
    weights : array (..., A, d)
    values : array (T, ..., d)

    Returns
    -------
    array (T, ..., A)
    """
    total = weights[..., 0] * values[..., None, 0]
    for j in range(1, weights.shape[-1]):
        total += weights[..., j] * values[..., None, j]
    return np.asarray(total)
