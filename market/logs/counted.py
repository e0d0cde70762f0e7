"""Means over agents where a row of the agents table may stand for many.

Verdicts, reports and studies call these functions instead of pandas' own. The column ``count`` of
the agents table says for how many agents a row stands. Where there is no such column, or nothing in
it, a row is an agent, and the functions do what pandas does.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

COUNT_COLUMN = "count"  # of the agents table: how many agents a row stands for


def agents_in(rows: pd.DataFrame) -> int:
    """Return how many agents the rows of an agents table stand for."""
    return int(rows[COUNT_COLUMN].fillna(1).sum()) if COUNT_COLUMN in rows else len(rows)


def mean_of(rows: pd.DataFrame, column: str) -> float:
    """Return the mean of a column over the agents that have a value; NaN if none has."""
    with_value = rows.dropna(subset=column)
    if COUNT_COLUMN not in rows or with_value.empty:
        return float(rows[column].mean())
    return float(np.average(with_value[column], weights=with_value[COUNT_COLUMN].fillna(1)))


def means_of(rows: pd.DataFrame, by: Sequence[Any], columns: Sequence[str]) -> pd.DataFrame:
    """Return the means of several columns over the agents of each group that have a value.

    Groups are of rows that agree in all of ``by``, names of columns or arrays with a value per row;
    they have a row each, in the order in which they appear.
    """
    values = rows[list(columns)]
    keys = [rows[key] if isinstance(key, str) else key for key in by]
    if COUNT_COLUMN not in rows:
        return values.groupby(keys, sort=False).mean()
    counts = rows[COUNT_COLUMN].fillna(1)
    sums = values.mul(counts, axis=0).groupby(keys, sort=False).sum()
    agents_with_value = values.notna().mul(counts, axis=0).groupby(keys, sort=False).sum()
    return sums / agents_with_value


def with_counts(rows: pd.DataFrame, agents: pd.DataFrame) -> pd.DataFrame:
    """Return a table that has a column ``agent`` with the counts of the agents table, if any."""
    if COUNT_COLUMN not in agents:
        return rows
    count_of_agent = agents.set_index("agent")[COUNT_COLUMN]
    return rows.assign(**{COUNT_COLUMN: rows["agent"].map(count_of_agent)})
