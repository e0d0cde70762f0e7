"""What a user's own agents show of themselves: the table ``states``.

A row per logged agent and logged round, of the cohorts whose class declares ``columns``: ``round``,
``agent`` and a column for each name, as it stands after the round; empty for agents of a class that
has no such column.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regretless.market.game.protocols import Cohort
from regretless.market.logs.sample import Logged


class States:
    """Reads the columns of all cohorts that have any.

    Parameters
    ----------
    logged : sequence of Logged
        Which of each cohort's agents get rows.
    """

    def __init__(self, cohorts: Sequence[Cohort], logged: Sequence[Logged]) -> None:
        self._seats: list[tuple[Any, Logged]] = [
            (cohort, own)
            for cohort, own in zip(cohorts, logged, strict=True)
            if getattr(cohort, "columns", ())
        ]
        names = (name for cohort, _ in self._seats for name in cohort.columns)
        self.names = tuple(dict.fromkeys(names))

    def rows(self, number: int) -> dict[str, NDArray[Any]]:
        """Return the columns of a round; none where no cohort shows anything."""
        if not self._seats:
            return {}
        ids = np.concatenate([own.ids for _, own in self._seats])
        table: dict[str, NDArray[Any]] = {"round": np.full(len(ids), number), "agent": ids}
        for name in self.names:
            table[name] = np.concatenate([_shown(cohort, own, name) for cohort, own in self._seats])
        return table


def _shown(cohort: Any, own: Logged, name: str) -> NDArray[np.float64]:
    """Return a column of a cohort's logged agents; NaN where it has none of that name."""
    if name not in cohort.columns:
        return np.full(len(own.ids), np.nan)
    shown: NDArray[np.float64] = cohort.column(name)[own.agents]
    return shown
