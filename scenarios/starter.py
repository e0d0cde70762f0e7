"""A scenario file for a table that was described, which plays as it stands.

The starter forecasts up to three outcomes, scaled by the range of 98 % of their values, for two
cohorts with different wants; the first context column cuts a policy to compare with. Where the
costs of an order are known, it forecasts one outcome for one agent, a newsvendor with these costs.
"""

import math
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined

from regretless.market.core.arrays import Array, Mask
from regretless.market.core.errors import UserError, closest
from regretless.scenarios.config.files import DATA
from regretless.scenarios.table_description import (
    BELOW,
    BEYOND,
    INFINITE,
    SAME,
    Column,
    Description,
    codes_of,
    written_cells,
)
from regretless.scenarios.table_endings import ending_of
from regretless.scenarios.table_files import numeric, spelled, toml_value

TEMPLATE = Path(__file__).with_name("starter.toml.jinja")
MAX_OUTCOMES = 3
MAX_CONTEXT = 6
MAX_REASONS = 4  # in a message
INNER = (0.01, 0.99)
UNUSABLE = (SAME, INFINITE, BEYOND, BELOW)  # notes on columns of numbers that have no scale
ROOM_ABOVE_SALES = 1.5  # upper end of a scale, in ratio to the largest sales, if some were cut off
ORDER_STEPS = range(20, 41)  # between the ends of the scale, where the costs of an order are known


@dataclass(frozen=True, kw_only=True)
class OrderCosts:
    """What a unit too few and a unit too many of an order cost, in ``currency`` where it is named.

    Not both costs are 0.
    """

    underage: float
    overage: float
    currency: str | None = None


def starter(
    table: Description, home: Path, *, costs: OrderCosts | None = None, outcome: str | None = None
) -> str:
    """Write a scenario file for a table that was described.

    Parameters
    ----------
    table : Description
    home : Path
        The folder in which the file will lie.
    costs : OrderCosts, optional
        The costs of one newsvendor, who orders the outcome; without them two cohorts of twenty.
    outcome : str, optional
        The column that is forecast; without it the table's proposals are, with costs the first
        that can be ordered.

    Returns
    -------
    str
        TOML.

    Raises
    ------
    UserError
        If no column can be an outcome, or the one that was named cannot.
    """
    if outcome is None:
        proposed = table.named("outcome")
        outcomes = proposed[:MAX_OUTCOMES] if costs is None else _what_is_ordered(proposed)
    else:
        outcomes = [_outcome_named(table, outcome)]
    if not outcomes:
        raise _no_outcome(table)
    context = [column for column in table.named("context") if column not in outcomes]
    further_context = context[MAX_CONTEXT:]
    context = context[:MAX_CONTEXT]
    is_whole = _whole_rows(table, [*outcomes, *context])
    missing = ""
    if not is_whole.all():
        missing = "previous" if is_whole[0] else "drop"  # there is no row before the first
    values: dict[str, Any] = {
        "table": table,
        "name": (re.sub(r"[^\w-]+", "-", _stem(table)).strip("-_") or "mine").lower(),
        "rounds": int(is_whole.sum()) if missing == "drop" else len(is_whole),
        "file": _path_from(home, table.file),
        "outcomes": outcomes,
        "further_outcomes": [
            outcome for outcome in table.named("outcome") if outcome not in outcomes
        ],
        "context": context,
        "further_context": further_context,
        "keys": _keys_of_form(table, outcomes, context),
        "missing": missing,
        "costs": costs,
        "has_rule": bool(context) and costs is None,
    }
    if costs is not None:
        values["orders"] = _number_of_orders(*_scale_of(table, outcomes[0])[:2])
    if values["has_rule"]:
        values |= _rule_on(table.numbers(context[0]))
    pages = Environment(trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)  # noqa: S701 - no HTML
    pages.filters |= {
        "key": spelled,
        "scale": partial(_scale_of, table),
        "code": codes_of,
        "toml": toml_value,
    }
    return pages.from_string(TEMPLATE.read_text(encoding="utf-8")).render(values)


def _what_is_ordered(proposed: Sequence[Column]) -> list[Column]:
    """Return the column that an order is of: the first of pieces, else of amounts, else the first.

    Pieces are whole numbers, and neither they nor amounts are ever below zero.
    """
    amounts = [column for column in proposed if column.low >= 0]
    pieces = [column for column in amounts if column.kind == "whole numbers"]
    return list((pieces or amounts or proposed)[:1])


def _outcome_named(table: Description, name: str) -> Column:
    """Return the column of numbers that a user named as the outcome; UserError if it is none."""
    columns = {column.name: column for column in table.columns}
    if name not in columns:
        raise UserError(f"--outcome {name}: no such column; {closest(name, columns)}")
    column = columns[name]
    if column.kind not in {"numbers", "whole numbers"} or column.note in UNUSABLE:
        says_why = column.note in UNUSABLE or column.kind == "marked numbers"
        reason = column.note if says_why else f"{column.kind}, no numbers"
        raise UserError(f"--outcome {name}: {reason}; give a column of numbers that differ")
    return column


def _number_of_orders(low: float, high: float) -> int:
    """Return how many orders lie in equal steps between the ends of a scale.

    The step is the one that is written with the fewest digits, and of these the smallest.
    """

    def digits(steps: int) -> int:
        return len(f"{(high - low) / steps:.10g}")

    return min(reversed(ORDER_STEPS), key=digits) + 1


def _no_outcome(table: Description) -> UserError:
    """Return the refusal of a table without an outcome, with the reason of each column."""
    columns = sorted(table.columns, key=lambda column: "numbers" not in column.kind)
    reasons = []
    for column in columns[:MAX_REASONS]:
        reason = column.note or f"{column.kind}, {column.distinct} different"
        reasons.append(f"'{column.name}': {reason}")
    if len(columns) > MAX_REASONS:
        reasons.append(f"and {len(columns) - MAX_REASONS} more")
    wanted_columns = "numbers that neither stay the same nor only count rows"
    cure = f"add a column of {wanted_columns}, or write the scenario by hand"
    none = f"{table.file.name} has no column that can be an outcome"
    return UserError(f"{none}; {'; '.join(reasons)}; {cure}")


def _whole_rows(table: Description, columns: list[Column]) -> Mask:
    """Return for each row (T,) whether it has a value in all of these columns."""
    is_whole = np.ones(len(table.frame), dtype=np.bool_)
    for column in columns:
        if "" in column.values:
            continue
        is_whole &= ~written_cells(table.frame, column.name)[1].to_numpy()
        if table.form.missing_values and not column.values:
            values = numeric(table.frame, [column.name], "the table", table.form)[:, 0]
            is_whole &= np.isfinite(values)
    return is_whole


def _stem(table: Description) -> str:
    """Return the name of a table's file without its endings."""
    return table.file.name[: -len(ending_of(table.file))]


def _path_from(home: Path, file: Path) -> str:
    """Return the path of a data file from a folder; the name of one that comes with the package."""
    path = file.resolve()
    if path.parent == DATA:
        return file.name
    with suppress(ValueError):  # on another drive
        path = Path(os.path.relpath(path, home.resolve()))
    return path.as_posix()


def _rule_on(feature: Array) -> dict[str, Any]:
    """Return a rule of thumb on a feature (t,): another action in each third of the rows."""
    different, counts = np.unique(feature, return_counts=True)
    shares_below = counts.cumsum()[:-1] / counts.sum()
    cuts = np.unique([np.abs(shares_below - third).argmin() for third in (1 / 3, 2 / 3)])
    edges = ((different[cuts] + different[cuts + 1]) / 2).tolist()
    actions = [0, 2, 4] if len(edges) > 1 else [0, 4]
    return {"edges": edges, "actions": actions}


def _keys_of_form(
    table: Description, outcomes: list[Column], context: list[Column]
) -> dict[str, Any]:
    """Return keys of [data] that say how the file is written and which of its rows are rounds."""
    form = table.form
    is_tsv = "tsv" in ending_of(table.file)
    keys: dict[str, Any] = {}
    if form.separator not in {None, "\t" if is_tsv else ","}:
        keys["separator"] = form.separator
    if form.columns:
        keys["columns"] = list(form.columns)
    used = [column.name for column in (*outcomes, *context)]
    for name, marks in {"decimal": form.decimal, "thousands": form.thousands}.items():
        used_marks = marks
        if isinstance(marks, Mapping):
            used_marks = {column: mark for column, mark in marks.items() if column in used}
        if used_marks:
            keys[name] = used_marks
    if form.missing_values:
        keys["missing_values"] = [_whole_if_so(value) for value in form.missing_values]
    units = {column.name: column.unit for column in outcomes if column.unit}
    if units:
        keys["units"] = units
    if not table.is_sorted and table.named("index"):
        keys["sort"] = True
    if table.series:
        keys["series"] = table.series_column
        keys["series_value"] = table.series[0]
    return keys


def _whole_if_so(value: str | float) -> str | float:
    """Return a whole number as an integer, which is written without a point."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _scale_of(table: Description, outcome: Column) -> tuple[float, float, float]:
    """Return round ends for an outcome, and the share of its values beyond them.

    Where a column says that all was sold, there is room above the largest sales, since demand was
    more.
    """
    values = table.numbers(outcome)
    low, high = _ends(values)
    if table.named("censored"):
        largest = float(values.max())
        low, high = _ends(np.array([low, max(largest, ROOM_ABOVE_SALES * largest)]))
    return low, high, float(((values < low) | (values > high)).mean())


def _ends(values: Array) -> tuple[float, float]:
    """Return round ends for values, without the outermost where they lie far from all others."""
    lowest = float(values.min())
    highest = float(values.max())
    low, high = map(float, np.quantile(values, INNER))
    spread = high - low
    low = lowest if low - lowest <= 0.5 * spread else low
    high = highest if highest - high <= 0.5 * spread else high
    if low >= high:
        low = lowest
        high = highest
    unit = 10.0 ** math.floor(math.log10(high - low) - 1)
    first = math.floor(low / unit) * unit
    last = math.ceil(high / unit) * unit
    if lowest >= 0 and first <= 0.2 * last:
        first = 0.0
    first = float(f"{first:.10g}")
    last = float(f"{last:.10g}")
    if first < last:
        low = first
        high = last
    return low, high
