"""States and measures of a user's own: the tables ``states`` and ``measures``.

**States** are what a user's agents show of themselves: the columns that a cohort's class declares
in ``columns``, as they stand after a logged round.

**Measures** are registered functions of the model that a scenario names
(``@register.measure("gini")``). What a measure returns says of whom it speaks: a number is of the
round, a dictionary by cohort has a number for each, an array (N,) has one for every agent, in the
order of the agents' numbers. Of these only the logged agents get rows.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regretless.market import register
from regretless.market.core.errors import UserError, closest
from regretless.market.game.protocols import Cohort
from regretless.market.game.seats import is_taking_part, present_cohorts
from regretless.market.logs.sampling import Logged
from regretless.market.records import Round

Columns = dict[str, NDArray[Any]]
RANGE_TOLERANCE = 1e-9  # by which rounding may take a measure out of the range it declares


def concatenate_columns(parts: Sequence[Mapping[str, NDArray[Any]]]) -> Columns:
    """Put parts of a table below one another, column by column; no columns if there are no parts.

    Every part has the columns of the first.
    """
    if not parts:
        return {}
    if len(parts) == 1:
        return dict(parts[0])
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def states(cohorts: Sequence[Cohort], logged: Sequence[Logged], played: Round) -> Columns:
    """Return what the logged agents show after a round; no columns where nobody shows anything."""
    names: dict[str, None] = {}  # in the order of their first cohort
    for cohort in cohorts:
        if cohort.columns:
            names |= dict.fromkeys(cohort.columns)
    if not names:
        return {}
    parts = []
    for cohort_index, cohort, decision, _ in present_cohorts(cohorts, played):
        if not cohort.columns:
            continue
        agents = logged[cohort_index].agents
        is_present = is_taking_part(decision, cohort)[agents]
        columns: Columns = {"agent": logged[cohort_index].ids[is_present]}
        for name in names:
            if name in cohort.columns:
                columns[name] = cohort.column(name)[agents][is_present]
            else:
                columns[name] = np.full(is_present.sum(), np.nan)
        parts.append(columns)
    return concatenate_columns(parts)


def measures(model: Any, functions: Mapping[str, Callable[..., Any]]) -> Columns:
    """Take measures of a model: ``measure``, ``cohort``, ``agent`` and ``value``.

    UserError if a function returns something else, or leaves the range that it is registered with.
    """
    parts = []
    for name, function in functions.items():
        columns = _rows_of_answer(model, name, function(model))
        _check_range(name, columns["value"])
        columns["measure"] = np.array([name] * len(columns["value"]), dtype=object)
        parts.append({key: columns[key] for key in ("measure", "cohort", "agent", "value")})
    return concatenate_columns(parts)


def _rows_of_answer(model: Any, name: str, answer: Any) -> Columns:
    """Make ``cohort``, ``agent`` and ``value`` of what a measure returned.

    ``cohort`` is empty and ``agent`` NaN where the measure does not speak of one.
    """
    if isinstance(answer, Mapping):
        known_cohorts = [cohort.name for cohort in model.game.cohorts]
        for cohort in answer:
            if cohort not in known_cohorts:
                hint = closest(str(cohort), known_cohorts)
                raise UserError(f"measure '{name}': no cohort '{cohort}'; {hint}")
        cohorts = list(answer)
        agents = np.full(len(answer), np.nan)
        values = list(answer.values())
        return _rows(name, cohorts=cohorts, agents=agents, values=values)

    array: NDArray[Any] = np.asarray(answer, dtype=object)
    population = sum(len(cohort.row_of) for cohort in model.game.cohorts)
    if array.ndim == 0:
        return _rows(name, cohorts=[""], agents=np.array([np.nan]), values=[answer])
    if array.shape == (population,):
        logged_ids = np.concatenate([logged.ids for logged in model.journal.logged])
        return _rows(
            name,
            cohorts=[""] * len(logged_ids),
            agents=logged_ids.astype(np.float64),
            values=list(array[logged_ids - 1]),
        )
    expected = f"a number, one for each cohort by name, or {population}, one per agent"
    raise UserError(f"measure '{name}' returned shape {array.shape}; return {expected}")


def _rows(name: str, *, cohorts: list[str], agents: NDArray[Any], values: Sequence[Any]) -> Columns:
    numbers = np.array([_as_number(name, value) for value in values], dtype=np.float64)
    return {"cohort": np.array(cohorts, dtype=object), "agent": agents, "value": numbers}


def _as_number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"measure '{name}' returned {value!r:.60}, no number; return one"
        ) from error


def _check_range(name: str, values: NDArray[Any]) -> None:
    """Refuse a value outside the range that the measure is registered with."""
    low, high = register.measure.within.get(name, (-np.inf, np.inf))
    is_outside = (values < low - RANGE_TOLERANCE) | (values > high + RANGE_TOLERANCE)
    if not is_outside.any():
        return
    first = values[is_outside][0]
    reason = f"measure '{name}' returned {first:g}, not within {low:g} and {high:g}"
    raise UserError(f"{reason}; correct it, or `within` where it is registered")
