"""Sums over the coordinates of an outcome, for many losses, in one order: coordinate by coordinate.

``weighted_sum`` broadcasts over outcomes, ``weighted_sums`` is compiled for one outcome; both give
the same to the last bit, and ``offset_sum`` takes whichever fits.
"""

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled
from regretless.market.numerics.threads import over_rows


@compiled(nogil=True)
def weighted_rows(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    offset: Array, table: Array, values: Array, out: Array, first: int, last: int
) -> None:
    """Write the sums of some rows; ``table`` is (K, d, A) (compiled)."""
    for k in range(first, last):
        own = values[min(k, values.shape[0] - 1)]
        for a in range(out.shape[1]):
            out[k, a] = -0.0  # changes no sum, not even the sign of a zero
        for i in range(own.shape[0]):
            for a in range(out.shape[1]):
                out[k, a] += table[k, i, a] * own[i]
        for a in range(out.shape[1]):
            out[k, a] += offset[k, a]


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
    out = np.empty(offset.shape)
    over_rows(weighted_rows, len(out), offset, weights.swapaxes(1, 2), values, out)
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


def offset_sum(offset: Array | float, weights: Array, values: Array) -> Array:
    """Compute offset + ``weighted_sum``, compiled where many losses meet one outcome.

    Parameters
    ----------
    offset : array (..., A) or float
    weights : array (..., A, d)
    values : array (T, ..., d), or one outcome's without T

    Returns
    -------
    array (T, ..., A) or (..., A)
    """
    if weights.ndim == 3 and values.ndim == 2:
        return weighted_sums(np.broadcast_to(offset, weights.shape[:2]), weights, values)
    return np.asarray(offset + weighted_sum(weights, values))
