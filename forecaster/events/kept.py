"""Weights that stand until their events are touched: for tables too large to weigh every round.

A round moves the biases of the rows that somebody plays, a fifth of them where eight actions are to
choose from; all others keep bias and variation, and with them their weights. These are kept as
they are, not relative to the greatest exponent, which moves every round: by the theorem no exponent
is above Lambda (``unbiased``), some tens. Where one is above ``HIGHEST`` all the same, nothing that
is kept is used, and all weights are found anew.

The sum of all weights is one of the rows' sums: as exact as the sum in order, but not the same to
the last bit. What is kept is a function of biases and variations alone, so that a run that is
resumed goes on with the same bytes.
"""

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled

MANY = 1 << 16  # numbers of a table from which on weights are kept; all weights take 1 ms there
HIGHEST = 500.0  # e^709 is the greatest number


@compiled
def _spread(bias: Array, halves: Array, lines: Indices, signed: Array, sums: Array) -> None:
    """Write the signed weights and the sums of some lines; halves are (2, lines, n)."""
    for k in range(lines.shape[0]):
        total = 0.0
        for i in range(bias.shape[1]):
            weight = halves[0, k, i] - halves[1, k, i]
            signed[lines[k], i] = weight if bias[k, i] >= 0 else -weight
            total += halves[0, k, i] + halves[1, k, i]
        sums[lines[k]] = total


@compiled
def add_scaled(table: Array, scale: float, signed: Array) -> None:
    """Add signed weights (rows, n), scaled, to a table."""
    for r in range(table.shape[0]):
        for i in range(table.shape[1]):
            table[r, i] += scale * signed[r, i]


class Kept:
    """The weights of one view's events.

    Attributes
    ----------
    signed : array (rows, n)
    sums : array (rows,)
        Of both signs' weights.
    stale : bool array (rows,)
        Which rows have other biases by now.
    """

    def __init__(self, rows: int, size: int) -> None:
        self.signed, self.sums = np.empty((rows, size)), np.empty(rows)
        self.stale, self.zone = np.ones(rows, dtype=bool), np.nan

    def forget(self) -> None:
        """Take all rows for stale."""
        self.stale[:] = True

    def stale_lines(self, zone: float) -> Indices:
        """Return which rows are to be weighed with a dead zone."""
        if zone != self.zone:
            self.forget()
            self.zone = zone
        return np.flatnonzero(self.stale)

    def keep(self, lines: Indices, bias: Array, halves: Array) -> None:
        """Keep the weights (2, lines, n) of some lines with biases (lines, n)."""
        _spread(bias, halves, lines, self.signed, self.sums)
        self.stale[lines] = False
