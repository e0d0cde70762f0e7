"""The read-only past that players may see: outcomes of earlier rounds, in bounded memory."""

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Remembering

WINDOW = 4096


class History(Remembering):
    """The last outcomes and the running mean of all.

    Parameters
    ----------
    outcomes : int
        Coordinates of an outcome, d.
    """

    REMEMBERED = ("rounds", "_sum", "_ring")

    def __init__(self, outcomes: int) -> None:
        self.rounds = 0
        self._sum = np.zeros(outcomes)
        self._ring = np.zeros((WINDOW, outcomes))

    @property
    def mean(self) -> Array:
        """Mean outcome so far (d,); one half before the first round."""
        return self._sum / self.rounds if self.rounds else np.full_like(self._sum, 0.5)

    def last(self, count: int = 1) -> Array:
        """Return the last outcomes, oldest first, at most ``WINDOW``: an array (<= count, d)."""
        count = min(count, self.rounds, WINDOW)
        return self._ring[np.arange(self.rounds - count, self.rounds) % WINDOW]

    def add(self, outcome: Array) -> None:
        """Append an outcome; for the referee only."""
        self._ring[self.rounds % WINDOW] = outcome
        self._sum += outcome
        self.rounds += 1
