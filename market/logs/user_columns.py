"""States and measures of a user's own: the tables ``states`` and ``measures``.

**States** are what a user's agents show of themselves, of the cohorts whose class declares
``columns``, as it stands after a logged round. **Measures** are registered functions of the model
that a scenario names (``@register.measure("gini")``): what one returns says of whom it speaks. A
number is of the round, a dictionary by cohort has a number for each, an array (N,) one for every
agent, in the order of the agents' numbers (of these the logged ones get rows).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regretless.market import register
from regretless.market.core.errors import UserError, closest
from regretless.market.game.protocols import Cohort
from regretless.market.game.seats import attending, present
from regretless.market.logs.sampling import Logged
from regretless.market.records import Round

Columns = dict[str, NDArray[Any]]
ROUNDING = 1e-9


def joined(parts: Sequence[Columns]) -> Columns:
    """Put parts of a table together, column by column; none of none."""
    return {name: np.concatenate([p[name] for p in parts]) for name in (parts[0] if parts else ())}


def states(cohorts: Sequence[Cohort], logged: Sequence[Logged], played: Round) -> Columns:
    """Return what the logged agents show after a round; none where nobody shows anything."""
    names, parts = dict.fromkeys(name for cohort in cohorts for name in cohort.columns), []
    for place, cohort, decision, _ in present(cohorts, played):
        if not cohort.columns:
            continue
        agents = logged[place].agents
        here = attending(decision, cohort)[agents]
        columns: Columns = {"agent": logged[place].ids[here]}
        for name in names:
            known = name in cohort.columns
            columns[name] = (
                cohort.column(name)[agents][here] if known else np.full(here.sum(), np.nan)
            )
        parts.append(columns)
    return joined(parts)


def measures(model: Any, taken: Mapping[str, Callable[..., Any]]) -> Columns:
    """Take measures of a model, by name; of every agent the logged ones get rows.

    UserError if one returns something else, or leaves the range that it is registered with.
    """
    parts = list[Columns]()
    for name, measure in taken.items():
        ids = np.concatenate([own.ids for own in model.journal.logged])
        names = [cohort.name for cohort in model.game.cohorts]
        count = sum(len(cohort.row_of) for cohort in model.game.cohorts)
        where, found = f"measure '{name}'", measure(model)
        told: Any = np.asarray(found, dtype=object)
        if isinstance(found, Mapping):
            for cohort in found:
                if cohort not in names:
                    raise UserError(f"{where}: no cohort '{cohort}'; {closest(str(cohort), names)}")
            cohorts, agents, told = list(found), np.full(len(found), np.nan), list(found.values())
        elif told.ndim == 0:
            cohorts, agents, told = [""], np.array([np.nan]), [found]
        elif told.shape == (count,):
            cohorts, agents, told = [""] * len(ids), ids.astype(np.float64), told[ids - 1]
        else:
            wanted = f"a number, one for each cohort by name, or {count}, one per agent"
            raise UserError(f"{where} returned shape {told.shape}; return {wanted}")
        values = np.array([_number(where, value) for value in told], dtype=np.float64)
        low, high = register.measure.within.get(name, (-np.inf, np.inf))
        for outside in values[(values < low - ROUNDING) | (values > high + ROUNDING)][:1]:
            reason = f"{where} returned {outside:g}, not within {low:g} and {high:g}"
            raise UserError(f"{reason}; correct it, or `within` where it is registered")
        said = np.array([name] * len(values), dtype=object), np.array(cohorts, dtype=object)
        parts.append({"measure": said[0], "cohort": said[1], "agent": agents, "value": values})
    return joined(parts)


def _number(where: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise UserError(f"{where} returned {value!r:.60}, no number; return one") from error
