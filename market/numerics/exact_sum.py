r"""Sums that do not depend on the order in which they are added, nor on who adds which part.

Doubles add without error what are multiples of one power of 2, while sums stay below 2^53 of it.
Numbers that are to be added in parts (``scenarios.distributed``) are therefore taken as two each,

    v  ->  c + f,    c a multiple of 2^-20, f the rest as a multiple of 2^-48,

whose sums are exact below 2^33 and over 2^26 values, and closer than those of plain addition.
"""

import numba
import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled

COARSE, FINE = 2.0**-20, 2.0**-48
BLOCK = 512  # rows that are parted before they are added


@numba.njit(inline="always")
def _parted(value: float) -> tuple[float, float]:
    """Take a value as two numbers."""
    coarse = np.rint(value / COARSE) * COARSE
    return coarse, np.rint((value - coarse) / FINE) * FINE


@compiled(nogil=True)
def total(values: Array, weights: Array) -> Array:
    """Return the weighted sum of rows as two numbers each, which add up to it.

    Returns array (2, c): over parts of the rows they add up to what they are over all, to the last
    bit.

    Parameters
    ----------
    values : array (n, c)
    weights : array (n,)
        Whole numbers.
    """
    columns = values.shape[1]
    sums, parts = np.zeros((2, columns)), np.empty((2, BLOCK * columns))
    for first in range(0, len(values), BLOCK):
        own = values[first : first + BLOCK].ravel()
        for i in range(len(own)):  # without a sum, so that it goes in vectors
            parts[0, i], parts[1, i] = _parted(own[i])
        _add_block(parts, weights[first : first + BLOCK], sums)
    return sums


@compiled(nogil=True)
def _add_block(parts: Array, weights: Array, sums: Array) -> None:
    """Add the weighted parts of some rows, which lie one after the other, to the sums (2, c)."""
    columns = sums.shape[1]
    for g in range(columns):
        coarse = fine = 0.0
        for i in range(len(weights)):
            coarse += weights[i] * parts[0, i * columns + g]
            fine += weights[i] * parts[1, i * columns + g]
        sums[0, g] += coarse
        sums[1, g] += fine


@compiled(nogil=True)
def total_taken(table: Array, rows: Indices, actions: Indices, multiplicity: Array) -> Array:
    """Return the same of what agents have in a table by their rows and actions.

    Parameters
    ----------
    table : array (K, A, c)
    rows, actions : int array (n,)
    multiplicity : array (n,) or (0,)
        How many agents each stands for; none where it is one.
    """
    sums = np.zeros((2, table.shape[2]))
    for i in range(len(rows)):
        head = multiplicity[i] if len(multiplicity) else 1.0
        for g in range(table.shape[2]):
            coarse, fine = _parted(table[rows[i], actions[i], g])
            sums[0, g] += head * coarse
            sums[1, g] += head * fine
    return sums
