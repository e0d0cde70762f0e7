"""Columns of the table of rounds under the names of the data, in the units of the data.

Outcomes and contexts have numbers in the table: ``y_0``, ``x_1``. Where they have names in the
data, the table has each of them again, behind all other columns: ``demand`` beside ``y_0``.
``MarketModel.rounds_frame`` adds them in memory, and ``scenarios.logs.column_notes`` in files.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import pandas as pd

UNIT_SCALE = (0.0, 1.0)
TAKEN = "run"  # the column that tells runs of a study apart, which is in no file


@dataclass(frozen=True)
class NamedColumn:
    """An outcome or a feature of the data."""

    name: str
    scale: tuple[float, float] = UNIT_SCALE  # the values that 0 and 1 stand for


Named = TypeVar("Named", bound=NamedColumn)


def columns_to_name(
    present_columns: Iterable[str], named_columns: Mapping[str, Named]
) -> dict[str, Named]:
    """Return the columns that get a second one under their name, of those that are present.

    A name that the table has already stays with the column that has it, and of two equal ones the
    first counts.
    """
    present = set(present_columns)
    taken_names = present | {TAKEN}
    chosen = {}
    for column, named in named_columns.items():
        if column in present and named.name not in taken_names:
            chosen[column] = named
            taken_names.add(named.name)
    return chosen


def with_named_columns(
    rounds: pd.DataFrame, named_columns: Mapping[str, NamedColumn]
) -> pd.DataFrame:
    """Return a table of rounds with named columns behind all others.

    Examples
    --------
    >>> rounds = pd.DataFrame({"round": [0, 1], "y_0": [0.25, 0.5]})
    >>> with_named_columns(rounds, {"y_0": NamedColumn("demand", (0.0, 80.0))})
       round   y_0  demand
    0      0  0.25    20.0
    1      1  0.50    40.0
    """
    additions = {}
    for column, named in columns_to_name(rounds.columns, named_columns).items():
        values = rounds[column]
        if named.scale != UNIT_SCALE:
            low, high = named.scale
            values = values * (high - low) + low
        additions[named.name] = values
    return rounds.assign(**additions)
