"""Means over counted agents.

Where a row of the agents table stands for many agents, its column ``count`` says for how many.
Where there is no such column, or nothing in it, a row is an agent, and the functions do what pandas
does.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

COUNT = "count"


def agents_in(rows: pd.DataFrame) -> int:
    """Return how many agents the rows of an agents table stand for."""
    return int(rows[COUNT].fillna(1).sum()) if COUNT in rows else len(rows)


def mean_of(rows: pd.DataFrame, column: str) -> float:
    """Return the mean of a column over the agents that have a value; NaN if none has."""
    known = rows.dropna(subset=column)
    if COUNT not in rows or known.empty:
        return float(rows[column].mean())
    return float(np.average(known[column], weights=known[COUNT].fillna(1)))


def means_of(rows: pd.DataFrame, by: Sequence[Any], columns: Sequence[str]) -> pd.DataFrame:
    """Return the same of several columns, by groups of rows that agree ``by``, as they come."""
    values, keys = rows[list(columns)], [rows[k] if isinstance(k, str) else k for k in by]
    if COUNT not in rows:
        return values.groupby(keys, sort=False).mean()
    many = rows[COUNT].fillna(1)
    parts = values.mul(many, axis=0), values.notna().mul(many, axis=0)
    total, multiplicity = (part.groupby(keys, sort=False).sum() for part in parts)
    return total / multiplicity


def with_counts(rows: pd.DataFrame, agents: pd.DataFrame) -> pd.DataFrame:
    """Give a table with a column ``agent`` the counts of the agents table, if there are any."""
    if COUNT not in agents:
        return rows
    return rows.assign(**{COUNT: rows["agent"].map(agents.set_index("agent")[COUNT])})
