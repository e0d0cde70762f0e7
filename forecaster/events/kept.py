"""Weights that stand until their events are touched: for tables too large to weigh every round.

A round moves the biases of the rows that somebody plays, a fifth of them where eight actions are to
choose from; all others keep their weights. These are kept as they are, not relative to the greatest
exponent, which moves every round: by the theorem no exponent is above Lambda (``weights``), some
tens. Where one is too great all the same, all weights are found anew. What is kept is a function of
biases and variations alone, so that a run that is resumed goes on with the same bytes.
"""

import math

import numpy as np

from regretless.forecaster.events.weights import Moment, WeightRule, Weights
from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled

MANY = 1 << 16  # numbers of a table from which on weights are kept; all weights take 1 ms there


@compiled()
def _add_scaled(table: Array, scale: float, signed: Array) -> None:
    for r in range(table.shape[0]):
        for i in range(table.shape[1]):
            table[r, i] += scale * signed[r, i]


class Kept:
    """The weights of one table of events: signed (rows, n), and sums (rows,) of both signs'.

    ``stale`` (rows,) says which rows have other biases by now.
    """

    def __init__(self, rows: int, size: int) -> None:
        self.signed, self.sums = np.empty((rows, size)), np.empty(rows)
        self.stale, self._zone = np.ones(rows, dtype=bool), np.nan

    def forget(self) -> None:
        """Take all rows for stale."""
        self.stale[:] = True

    def refresh(self, rule: WeightRule, bias: Array, variation: Array, moment: Moment) -> bool:
        """Weigh the rows whose biases have changed; False where that cannot be kept."""
        if moment.band.zone != self._zone:
            self.forget()
            self._zone = moment.band.zone
        lines = np.flatnonzero(self.stale)
        if not len(lines):
            return True
        fresh = rule.absolute(bias[lines], variation[lines], moment)
        if fresh is None:
            return False
        self.signed[lines], self.sums[lines] = fresh
        self.stale[lines] = False
        return True

    def add(self, weights: Weights, rows: slice, share: float) -> None:
        """Add what is kept."""
        scale = share * math.exp(-weights.top)
        _add_scaled(weights.table[rows], scale, self.signed)
        weights.total += scale * float(self.sums.sum())
