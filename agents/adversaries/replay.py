"""Replayed data: outcomes and contexts row by row, from the start again when they run out."""

from collections.abc import Sequence

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Remembering
from regretless.market.game.protocols import Adversary
from regretless.market.records import Announcement, Context, History, OutcomeLaw


class Replay(Remembering, Adversary):
    """Plays the rows of a table.

    Parameters
    ----------
    outcomes : array (T, d)
        In [0, 1].
    contexts : array (T, f), optional
        What everybody sees before each row.
    names : tuple of str
        The features' names.
    logged : int, optional
        How many of the features tables show, from the first; all by default.
    index : (str, sequence of str), optional
        What names the rows, such as "date", and each row's name.
    """

    sees = frozenset({"history"})

    def __init__(
        self,
        outcomes: Array,
        contexts: Array | None = None,
        names: tuple[str, ...] = (),
        *,
        logged: int | None = None,
        index: tuple[str, Sequence[str]] | None = None,
    ) -> None:
        self._rows = np.asarray(outcomes, dtype=np.float64)
        self.outcomes = int(self._rows.shape[1])
        self._names, self._logged, self._index = names, logged, index
        self._contexts = np.zeros((len(self._rows), 0)) if contexts is None else contexts

    def context(self, history: History) -> Context:
        """Return this row's features."""
        row = history.rounds % len(self._rows)
        index = None if self._index is None else (self._index[0], self._index[1][row])
        return Context(self._names, self._contexts[row], self._logged, index)

    def commit(self, context: Context, history: History, announced: Announcement) -> OutcomeLaw:
        """Seal this row's outcome."""
        return OutcomeLaw.pure(self._rows[history.rounds % len(self._rows)])
