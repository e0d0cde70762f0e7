r"""Sums that do not depend on the order in which they are added, nor on who adds which part.

Comparisons and markets call ``total`` for what is summed over agents: agents may then be shared out
among workers, and the sum of the parts is that of the whole to the last bit.

Doubles add without error what are multiples of one power of 2, while sums stay below 2^53 of it.
Numbers that are to be added in parts (``scenarios.distributed``) are therefore taken as two each,

    v  ->  c + f,    c a multiple of 2^-20, f the rest as a multiple of 2^-48,

whose sums are exact below 2^33 and over 2^26 values, and closer than those of plain addition.
"""

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled

COARSE_UNIT = 2.0**-20
FINE_UNIT = 2.0**-48


def total(values: Array, weights: Array) -> Array:
    """Return the sum of rows (n, c) with whole weights (n,), as two numbers each: (2, c).

    These add up to it; over parts of the rows they add up to what they are over all, to the last
    bit.
    """
    sums = np.zeros((2, values.shape[1]))
    _add_weighted_rows(
        np.ascontiguousarray(values, dtype=np.float64),
        np.ascontiguousarray(weights, dtype=np.float64),
        sums,
    )
    return sums


@compiled(inline="always")
def split(value: float) -> tuple[float, float]:
    """Return the two numbers c and f that stand for a value: what ``total`` adds up."""
    coarse = np.rint(value / COARSE_UNIT) * COARSE_UNIT
    fine = np.rint((value - coarse) / FINE_UNIT) * FINE_UNIT
    return coarse, fine


@compiled()
def _add_weighted_rows(values: Array, weights: Array, sums: Array) -> None:
    """Add sum_r w_r c(v_ri) and sum_r w_r f(v_ri) to ``sums``, v = c + f (compiled).

    Parameters
    ----------
    values : array (n, c)
        v.
    weights : array (n,)
        w, whole numbers.
    sums : array (2, c)
        Of coarse and of fine parts; added to in place.
    """
    for r in range(values.shape[0]):
        for i in range(values.shape[1]):
            coarse, fine = split(values[r, i])
            sums[0, i] += weights[r] * coarse
            sums[1, i] += weights[r] * fine
