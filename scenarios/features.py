"""What is learned from a table's columns: numbers as they are, and words, each 0 or 1.

A column of words is as many features as it has words: feature w is 1 in the rows that hold w. A
word that was not there when the model learned is 0 in all of them. Columns of many words are names
rather than kinds, and are no features.

A gap says something, too. Of words it is one of them. A column of numbers with gaps is two
features: the number, which is the median of those that are there where it is missing, and a mark
that is 1 there. A column that had no gap when the model learned may have none later.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.scenarios.frames import Form, column_of, numeric, place, texts

MOST_WORDS = 30  # of a column
UNNAMED = "a column without a name"
OFTEN = 5  # rows for each word, on average, that there must be


@dataclass(frozen=True)
class Feature:
    """A column of a table.

    Parameters
    ----------
    words : tuple of str
        What it may hold, "" for a gap; none if it holds numbers.
    fill : float or None
        What a missing number is taken for; None where none may be missing.
    """

    column: str
    words: tuple[str, ...] = ()
    fill: float | None = None

    def __str__(self) -> str:
        filled = "" if self.fill is None else f" (gaps are marked, and {self.fill:g})"
        return f"{self.column} ({len(self.words)} words)" if self.words else self.column + filled

    @classmethod
    def of(cls, frame: pd.DataFrame, column: str, key: str) -> "Feature":
        """Look at a column; UserError, under ``key``, if nothing can be learned from it."""
        cells = pd.to_numeric(column_of(frame, column, key), errors="coerce")
        if not np.isfinite(cells.to_numpy(np.float64, na_value=np.nan)).any():
            return cls(column, _kinds(frame, column, key))
        numbers = numeric(frame, [column], key, Form(gaps=True))[:, 0]
        known = numbers[~np.isnan(numbers)]
        if len(known) == len(numbers) and (known == known[0]).all():
            raise _same(f"{known[0]:g}", column, key)
        return cls(column, fill=None if len(known) == len(numbers) else float(np.median(known)))

    def read(self, frame: pd.DataFrame, key: str) -> Array:
        """Return a column's features (m, f); UserError, under ``key``, for a gap that is new."""
        if self.words:
            held = np.asarray(texts(frame, self.column, key))
            for row in np.flatnonzero(held == "")[:1] if "" not in self.words else ():
                told = f"column '{self.column}' has no value in {place(frame, row)}"
                raise UserError(f"{key}: {told}; fill it")
            return np.asarray(held[:, None] == np.asarray(self.words), dtype=np.float64)
        numbers = numeric(frame, [self.column], key, Form(gaps=self.fill is not None))
        missing = np.isnan(numbers)
        filled = np.where(missing, self.fill, numbers) if self.fill is not None else numbers
        return filled if self.fill is None else np.hstack([filled, missing])


def _kinds(frame: pd.DataFrame, column: str, key: str) -> tuple[str, ...]:
    """Return the words of a column, which are few; UserError if they are not."""
    words = tuple(sorted(set(texts(frame, column, key))))
    if len(words) == 1:
        raise _same(words[0] or "empty", column, key)
    most = min(MOST_WORDS, len(frame) // OFTEN)
    if len(words) > most:
        told = f"column '{column}' holds {len(words)} words in {len(frame)} rows"
        raise UserError(f"{key}: {told}; leave it out, or give it at most {most}")
    return words


def _same(shown: str, column: str, key: str) -> UserError:
    return UserError(f"{key}: '{column}' is {shown} in every row; leave it out")


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
