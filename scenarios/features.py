"""What is learned from a table's columns: numbers as they are, and words, each 0 or 1.

A column of words is as many features as it has words: feature w is 1 in the rows that hold w. A
word that was not there when the model learned is 0 in all of them. Columns of many words are names
rather than kinds, and are no features.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.scenarios.frames import column_of, numeric, place, texts

MOST_WORDS = 30  # of a column
UNNAMED = "a column without a name"
OFTEN = 5  # rows for each word, on average, that there must be


@dataclass(frozen=True)
class Feature:
    """A column of a table.

    Parameters
    ----------
    words : tuple of str
        What it may hold; none if it holds numbers.
    """

    column: str
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.column} ({len(self.words)} words)" if self.words else self.column

    @classmethod
    def of(cls, frame: pd.DataFrame, column: str, key: str) -> "Feature":
        """Look at a column; UserError, under ``key``, if nothing can be learned from it."""
        cells = pd.to_numeric(column_of(frame, column, key), errors="coerce")
        numbers = np.isfinite(cells.to_numpy(np.float64, na_value=np.nan)).any()
        held: Any = numeric(frame, [column], key)[:, 0] if numbers else _words(frame, column, key)
        values = sorted(set(held))
        if len(values) == 1:
            shown = f"{values[0]:g}" if numbers else values[0]
            raise UserError(f"{key}: '{column}' is {shown} in every row; leave it out")
        most = min(MOST_WORDS, len(frame) // OFTEN)
        if not numbers and len(values) > most:
            told = f"column '{column}' holds {len(values)} words in {len(frame)} rows"
            raise UserError(f"{key}: {told}; leave it out, or give it at most {most}")
        return cls(column, () if numbers else tuple(values))

    def read(self, frame: pd.DataFrame, key: str) -> Array:
        """Return numbers (m, 1), or 0 and 1 (m, words); UserError, under ``key``, for a gap."""
        if not self.words:
            return numeric(frame, [self.column], key)
        held = np.asarray(_words(frame, self.column, key))
        return np.asarray(held[:, None] == np.asarray(self.words), dtype=np.float64)


def _words(frame: pd.DataFrame, column: str, key: str) -> tuple[str, ...]:
    """Return a column of words, all of which are there."""
    held = texts(frame, column, key)
    for row in [i for i, word in enumerate(held) if not word.strip()][:1]:
        raise UserError(f"{key}: column '{column}' has no value in {place(frame, row)}; fill it")
    return held


def learnable(frame: pd.DataFrame, but: Sequence[str | None]) -> tuple[list[Feature], list[str]]:
    """Return all columns that something can be learned from, and the names of the others.

    A column without a name is what pandas writes of an index, and left out.
    """
    found, left = [], [UNNAMED for name in frame if not str(name)]
    for name in (str(name) for name in frame if str(name) not in {*but, ""}):
        try:
            found.append(Feature.of(frame, name, "--features"))
        except UserError:
            left.append(name)
    return found, left


def strange(frame: pd.DataFrame, features: Sequence[Feature]) -> list[str]:
    """Say, column by column, which words were not there when the model learned."""
    told = []
    for own in (own for own in features if own.words):
        held = pd.Series(texts(frame, own.column, own.column))
        new = held[~held.isin(own.words)]
        if len(new):
            first = ", ".join(sorted(set(new))[:3]) + (" ..." if new.nunique() > 3 else "")
            told.append(f"{own.column}: {first} in {len(new)} of {len(held)} rows, never learned")
    return told


def table(frame: pd.DataFrame, features: Sequence[Feature], key: str) -> Array:
    """Return the features (m, f) of a table's rows; UserError, under ``key``, for a gap."""
    blank = np.empty((len(frame), 0))
    return np.concatenate([blank, *(own.read(frame, key) for own in features)], axis=1)
