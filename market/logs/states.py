"""What a user's own agents show of themselves: the table ``states``.

A row per logged agent that took part in a logged round, of the cohorts whose class declares
``columns``: ``round``, ``agent`` and a column for each name, as it stands after it; empty for
agents of a class that has no such column.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.arrays import Mask
from regretless.market.game.presence import attending, present
from regretless.market.game.protocols import Cohort
from regretless.market.logs.sample import Logged
from regretless.market.records import Round


class States:
    """Reads what agents show, of the cohorts that show anything.

    Parameters
    ----------
    logged : sequence of Logged
        Which of each cohort's agents get rows.
    """

    def __init__(self, cohorts: Sequence[Cohort], logged: Sequence[Logged]) -> None:
        self._cohorts, self._logged = tuple(cohorts), tuple(logged)
        names = (name for cohort in cohorts for name in cohort.columns)
        self.names = tuple(dict.fromkeys(names))

    def rows(self, played: Round) -> dict[str, NDArray[Any]]:
        """Return the columns of a round; none where nobody shows anything."""
        parts = [
            self._shown(cohort, self._logged[place], attending(decision, cohort))
            for place, cohort, decision, _ in present(self._cohorts, played)
            if cohort.columns
        ]
        if not parts:
            return {}
        table = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return {"round": np.full(len(table["agent"]), played.number)} | table

    def _shown(self, cohort: Any, own: Logged, here: Mask) -> dict[str, NDArray[Any]]:
        """Return the columns of a cohort's logged agents that took part."""
        here = here[own.agents]
        columns: dict[str, NDArray[Any]] = {"agent": own.ids[here]}
        for name in self.names:
            known = name in cohort.columns
            values = cohort.column(name)[own.agents] if known else np.full(len(here), np.nan)
            columns[name] = values[here]
        return columns
