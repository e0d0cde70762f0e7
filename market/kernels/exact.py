r"""Sums that do not depend on the order in which they are added, nor on who adds which part.

Doubles add without error what are multiples of one power of 2, while sums stay below 2^53 of it.
Numbers that are to be added in parts (``scenarios.shards``) are therefore taken as two each,

    v  ->  c + f,    c a multiple of 2^-20, f the rest as a multiple of 2^-48,

whose sums are exact below 2^33 and over 2^26 values, and closer than those of plain addition.
"""

import numba
import numpy as np

from regretless.market.core.arrays import Array, Indices

COARSE, FINE = 2.0**-20, 2.0**-48


@numba.njit(cache=True, nogil=True)
def _add(sums: Array, g: int, value: float, weight: float) -> None:
    """Add a value that some have to the two numbers of a column."""
    coarse = np.rint(value / COARSE) * COARSE
    sums[0, g] += weight * coarse
    sums[1, g] += weight * (np.rint((value - coarse) / FINE) * FINE)


@numba.njit(cache=True, nogil=True)
def total(values: Array, weights: Array) -> Array:
    """Return the weighted sum of rows as two numbers each, which add up to it.

    Parameters
    ----------
    values : array (n, c)
    weights : array (n,)
        Whole numbers.

    Returns
    -------
    array (2, c)
        Over parts of the rows they add up to what they are over all, to the last bit.
    """
    sums = np.zeros((2, values.shape[1]))
    for i in range(len(values)):
        for g in range(values.shape[1]):
            _add(sums, g, values[i, g], weights[i])
    return sums


@numba.njit(cache=True, nogil=True)
def total_taken(table: Array, rows: Indices, actions: Indices, heads: Array) -> Array:
    """Return the same of what agents have in a table by their rows and actions.

    Parameters
    ----------
    table : array (K, A, c)
    rows, actions : int array (n,)
    heads : array (n,) or (0,)
        How many agents each stands for; none where it is one.
    """
    sums = np.zeros((2, table.shape[2]))
    for i in range(len(rows)):
        head = heads[i] if len(heads) else 1.0
        for g in range(table.shape[2]):
            _add(sums, g, table[rows[i], actions[i], g], head)
    return sums
