"""What is learned from a table's columns: numbers as they are, words and dates as what they tell.

A column of **words** is as many features as it has words: feature w is 1 in the rows that hold w. A
word that was not there when the model learned is 0 in all of them. Columns of many words are names
rather than kinds, and are no features.

Of **dates** a model learns what comes again: the month, the day of the week (Monday is 0) and the
hour, those of them that differ between rows. When it was is no feature: rows that are neighbours in
time are alike, and a model that is tried on rows among those it knows would seem to know tomorrow.

A **gap** says something, too. Of words it is one of them. A column of numbers with gaps is two
features: the number, which is the median of those that are there where it is missing, and a mark
that is 1 there. A column that had no gap when the model learned may have none later.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.scenarios.frames import (
    DATE,
    Form,
    column_of,
    dates_in,
    numeric,
    ordered_dates,
    place,
    texts,
)

MOST_WORDS = 30  # of a column
OFTEN = 5  # rows for each word, on average, that there must be
UNNAMED = "a column without a name"


@dataclass(frozen=True)
class Feature:
    """A column of a table."""

    kind: ClassVar[str]
    column: str

    def read(self, frame: pd.DataFrame, key: str) -> Array:
        """Return a column's features (m, f); UserError, under ``key``, for what is not known."""
        raise NotImplementedError

    def note(self) -> dict[str, Any]:
        """Return what a model's file keeps."""
        return {"kind": self.kind} | asdict(self)


@dataclass(frozen=True)
class Numbers(Feature):
    """A column of numbers.

    Parameters
    ----------
    fill : float or None
        What a missing one is taken for; None where none may be missing.
    """

    kind = "numbers"
    fill: float | None = None

    def __str__(self) -> str:
        filled = "" if self.fill is None else f" (gaps are marked, and {self.fill:g})"
        return self.column + filled

    @classmethod
    def of(cls, frame: pd.DataFrame, column: str, key: str) -> "Numbers":
        """Look at a column; UserError, under ``key``, if a value is no number or all are one."""
        numbers = numeric(frame, [column], key, Form(gaps=True))[:, 0]
        known = numbers[~np.isnan(numbers)]
        if len(known) == len(numbers) and (known == known[0]).all():
            raise _same(f"{known[0]:g}", column, key)
        return cls(column, fill=None if len(known) == len(numbers) else float(np.median(known)))

    def read(self, frame: pd.DataFrame, key: str) -> Array:
        """Return the numbers (m, 1), and beside them (m, 2) which are missing, if some may be."""
        numbers = numeric(frame, [self.column], key, Form(gaps=self.fill is not None))
        if self.fill is None:
            return numbers
        missing = np.isnan(numbers)
        return np.hstack([np.where(missing, self.fill, numbers), missing])


@dataclass(frozen=True)
class Words(Feature):
    """A column of words.

    Parameters
    ----------
    words : tuple of str
        What it may hold, "" for a gap.
    """

    kind = "words"
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.column} ({len(self.words)} words)"

    @classmethod
    def of(cls, frame: pd.DataFrame, column: str, key: str) -> "Words":
        """Look at a column; UserError, under ``key``, if it holds one word or too many."""
        words = tuple(sorted(set(texts(frame, column, key))))
        if len(words) == 1:
            raise _same(words[0] or "empty", column, key)
        most = min(MOST_WORDS, len(frame) // OFTEN)
        if len(words) > most:
            told = f"column '{column}' holds {len(words)} words in {len(frame)} rows"
            raise UserError(f"{key}: {told}; leave it out, or give it at most {most}")
        return cls(column, words)

    def read(self, frame: pd.DataFrame, key: str) -> Array:
        """Return 0 and 1 (m, words)."""
        held = np.asarray(texts(frame, self.column, key))
        if "" not in self.words:
            _check_there(held != "", self.column, frame, key)
        return np.asarray(held[:, None] == np.asarray(self.words), dtype=np.float64)


PARTS: dict[str, Callable[[Any], Any]] = {  # what of a date comes again
    "month": lambda dates: dates.dt.month,
    "weekday": lambda dates: dates.dt.day_of_week,
    "hour": lambda dates: dates.dt.hour + dates.dt.minute / 60,
}


@dataclass(frozen=True)
class Dates(Feature):
    """A column of dates.

    Parameters
    ----------
    order : str
        How they are written, of ``scenarios.frames.ORDERS``.
    parts : tuple of str
        Of ``PARTS``.
    """

    kind = "dates"
    order: str
    parts: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.column} ({', '.join(self.parts)})"

    @classmethod
    def of(cls, frame: pd.DataFrame, column: str, key: str) -> "Dates | None":
        """Look at a column; None if it holds no dates, or of all of them the same comes again."""
        if DATE.fullmatch(str(column_of(frame, column, key).iloc[0]).strip()) is None:
            return None
        dates, order = ordered_dates(_stripped(frame, column, key))
        if dates.isna().any():
            return None
        parts = tuple(name for name, part in PARTS.items() if np.ptp(part(dates).to_numpy()) > 0)
        return cls(column, order, parts) if parts else None

    def read(self, frame: pd.DataFrame, key: str) -> Array:
        """Return the parts (m, p)."""
        dates = self.dates(frame, key)
        return np.stack([np.asarray(PARTS[part](dates), np.float64) for part in self.parts], axis=1)

    def dates(self, frame: pd.DataFrame, key: str) -> "pd.Series[pd.Timestamp]":
        """Return the dates themselves; UserError, under ``key``, for what is none."""
        words = _stripped(frame, self.column, key)
        _check_there((words != "").to_numpy(), self.column, frame, key)
        found = dates_in(words, self.order)
        for row in np.flatnonzero(found.isna())[:1]:
            told = f"column '{self.column}' holds '{words.iloc[row]}' in {place(frame, row)}"
            raise UserError(f"{key}: {told}; write a date, as in the table that was learned from")
        return found


def _stripped(frame: pd.DataFrame, column: str, key: str) -> "pd.Series[str]":
    return pd.Series(texts(frame, column, key), dtype=object).str.strip()


def _same(shown: str, column: str, key: str) -> UserError:
    return UserError(f"{key}: '{column}' is {shown} in every row; leave it out")


def _check_there(there: Any, column: str, frame: pd.DataFrame, key: str) -> None:
    for row in np.flatnonzero(~there)[:1]:
        told = f"column '{column}' has no value in {place(frame, row)}"
        raise UserError(f"{key}: {told}; fill it")


def feature_of(frame: pd.DataFrame, column: str, key: str) -> Feature:
    """Look at a column; UserError, under ``key``, if nothing can be learned from it."""
    cells = column_of(frame, column, key)
    if (found := Dates.of(frame, column, key)) is not None:
        return found
    numbers = pd.to_numeric(cells, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    return (Numbers if np.isfinite(numbers).any() else Words).of(frame, column, key)


def feature_from(note: Mapping[str, Any]) -> Feature:
    """Return the feature that a model's file tells of; what it is made of, as in ``note``."""
    kinds: dict[str, Any] = {kind.kind: kind for kind in (Numbers, Words, Dates)}
    given = {key: tuple(own) if isinstance(own, list) else own for key, own in note.items()}
    made: Feature = kinds[str(given.pop("kind"))](**given)
    return made


def learnable(frame: pd.DataFrame, but: Sequence[str | None]) -> tuple[list[Feature], list[str]]:
    """Return all columns that something can be learned from, and the names of the others.

    A column without a name is what pandas writes of an index, and left out.
    """
    found, left = [], [UNNAMED for name in frame if not str(name)]
    for name in (str(name) for name in frame if str(name) not in {*but, ""}):
        try:
            found.append(feature_of(frame, name, "--features"))
        except UserError:
            left.append(name)
    return found, left


def in_order_of(frame: pd.DataFrame, features: Sequence[Feature]) -> str | None:
    """Return the column of dates in whose order the rows are; None if there is none."""
    for own in (own for own in features if isinstance(own, Dates)):
        if own.dates(frame, own.column).is_monotonic_increasing:
            return own.column
    return None


def strange(frame: pd.DataFrame, features: Sequence[Feature]) -> list[str]:
    """Say, column by column, which words were not there when the model learned."""
    told = []
    for own in (own for own in features if isinstance(own, Words)):
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
