"""States and measures of a user's own: the tables ``states`` and ``measures``.

**States** are what a user's agents show of themselves, of the cohorts whose class declares
``columns``, as it stands after a logged round. **Measures** are registered functions of the model
that a scenario names (``@register.measure("gini")``): what one returns says of whom it speaks. A
number is of the round, a dictionary by cohort has a number for each, an array (N,) one for every
agent, in the order of the agents' numbers (of these the logged ones get rows).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regretless.market import register
from regretless.market.core.errors import UserError, closest
from regretless.market.game.protocols import Cohort
from regretless.market.game.seats import attending, present
from regretless.market.logs.sampling import Logged
from regretless.market.records import Round


class States:
    """Reads what the logged agents show, of the cohorts that show anything."""

    def __init__(self, cohorts: Sequence[Cohort], logged: Sequence[Logged]) -> None:
        self._cohorts, self._logged = tuple(cohorts), tuple(logged)
        names = (name for cohort in cohorts for name in cohort.columns)
        self.names = tuple(dict.fromkeys(names))

    def rows(self, played: Round) -> dict[str, NDArray[Any]]:
        """Return the columns of a round; none where nobody shows anything."""
        parts = list[dict[str, NDArray[Any]]]()
        for place, cohort, decision, _ in present(self._cohorts, played):
            if not cohort.columns:
                continue
            own = self._logged[place]
            here = attending(decision, cohort)[own.agents]
            columns: dict[str, NDArray[Any]] = {"agent": own.ids[here]}
            for name in self.names:
                known = name in cohort.columns
                values = cohort.column(name)[own.agents] if known else np.full(len(here), np.nan)
                columns[name] = values[here]
            parts.append(columns)
        return _joined(parts, played)


def _joined(parts: Sequence[dict[str, NDArray[Any]]], played: Round) -> dict[str, NDArray[Any]]:
    """Put columns of a round together; none of none."""
    if not parts:
        return {}
    table = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {"round": np.full(len(next(iter(table.values()))), played.number)} | table


ROUNDING = 1e-9


class OwnMeasures:
    """Takes measures of a model by their registered names; UserError if a name is unknown.

    Where a measure is of every agent the logged ones get rows.
    """

    def __init__(self, names: Sequence[str], model: Any, logged: Sequence[Logged]) -> None:
        self._taken = {name: register.measure[name] for name in names}
        self._model, self._ids = model, np.concatenate([own.ids for own in logged])
        self._cohorts = [cohort.name for cohort in model.game.cohorts]
        self._agents = sum(len(cohort.row_of) for cohort in model.game.cohorts)

    def rows(self, played: Round) -> dict[str, NDArray[Any]]:
        """Return the columns of a round; none where nothing is measured."""
        return _joined([self._table(name) for name in self._taken], played)

    def _table(self, name: str) -> dict[str, NDArray[Any]]:
        cohorts, agents, values = self._rows(name)
        low, high = register.measure.within.get(name, (-np.inf, np.inf))
        found = np.array(values, dtype=np.float64)
        outside = found[(found < low - ROUNDING) | (found > high + ROUNDING)]
        if len(outside):
            reason = f"measure '{name}' returned {outside[0]:g}, not within {low:g} and {high:g}"
            raise UserError(f"{reason}; correct it, or `within` where it is registered")
        return {
            "measure": np.array([name] * len(values), dtype=object),
            "cohort": np.array(cohorts, dtype=object),
            "agent": np.array(agents, dtype=np.float64),
            "value": found,
        }

    def _rows(self, name: str) -> tuple[list[str], list[float], list[float]]:
        """Take a measure, and spell out of whom it speaks: cohorts, agents and values."""
        found, where = self._taken[name](self._model), f"measure '{name}'"
        if isinstance(found, Mapping):
            for cohort in found:
                if cohort not in self._cohorts:
                    known = closest(str(cohort), self._cohorts)
                    raise UserError(f"{where}: no cohort '{cohort}'; {known}")
            each = [_number(where, value) for value in found.values()]
            return list(found), [np.nan] * len(each), each
        values: Any = np.asarray(found, dtype=object)
        if values.ndim == 0:
            return [""], [np.nan], [_number(where, found)]
        if values.shape != (self._agents,):
            wanted = f"a number, one for each cohort by name, or {self._agents}, one per agent"
            raise UserError(f"{where} returned shape {values.shape}; return {wanted}")
        own = [_number(where, value) for value in values[self._ids - 1]]
        return [""] * len(own), list(self._ids), own


def _number(where: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise UserError(f"{where} returned {value!r:.60}, no number; return one") from error
