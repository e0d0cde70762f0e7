"""Sums over the coordinates of an outcome, for many losses, in one order: coordinate by coordinate.

``weighted_sum`` broadcasts over outcomes, ``weighted_sums`` is compiled for one outcome; both give
the same to the last bit.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from market.lanes import over_rows
from market.memory import empty
from market.response import eight_sums

Array = NDArray[np.float64]


@numba.njit(cache=True, inline="always")
def _eight(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    offset: Array, weights: Array, values: Array, k: int, a: int, out: Array
) -> None:
    """Compute the sums of eight actions from ``a`` on; the offset comes last."""
    v = values[0]
    begun = (
        weights[k, a, 0] * v,
        weights[k, a + 1, 0] * v,
        weights[k, a + 2, 0] * v,
        weights[k, a + 3, 0] * v,
        weights[k, a + 4, 0] * v,
        weights[k, a + 5, 0] * v,
        weights[k, a + 6, 0] * v,
        weights[k, a + 7, 0] * v,
    )
    sums = eight_sums(begun, weights, values, k, a, 1)
    for b in range(8):
        out[k, a + b] = offset[k, a + b] + sums[b]


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
