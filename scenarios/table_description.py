r"""What the columns of a table are: dates, numbers or words, and what each of them could be.

    index      dates, or other text, that differ from row to row: names of rounds
    outcome    numbers that take many values and do not just count rows: what is forecast
    context    few values, numbers or words: what may be known before a round
    nothing    the rest, with the reason

A proposal is read off the values alone. The **season** of a column is the lag of the highest peak
of its autocorrelation, if that is above twice what noise would have, 2 / sqrt(T), and above 0.2.
"""

from calendar import day_name, month_name
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.signal import correlate, find_peaks

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.scenarios import table_files
from regretless.scenarios.config.files import CONTROL, DATA
from regretless.scenarios.table_files import TRUTHS

SAME = "always the same"
NAMELESS = "its name cannot stand in a scenario file: give it another one in the header"
TWICE = "another column has its name: rename one"
INFINITE = "numbers that are not finite: mend these cells"
BEYOND = "numbers above 1e100: mend these cells"
BELOW = "no number above 1e-100: give them in a smaller unit"
LARGEST = 1e100  # of a number that is taken for one; squares and sums of such numbers are finite
CALENDARS = [[name.lower() for name in names if name] for names in (day_name, month_name)]
FEW_NUMBERS, FEW_WORDS = 31, 12  # different values of a context
LONGEST_SEASON, LEAST_PEAK = 400, 0.2
GROUPED = r"[+-]?\d{1,3}([., ']?\d{3})*([.,]\d+)?"  # digits in threes
MARKED = "numbers with a mark between thousands: write them without it"
INDEX = ("dates", "words")  # that name rounds if they all differ, dates before others
LOOKED_AT = 1000  # rows from which separator and decimal mark are told


@dataclass(frozen=True)
class Column:
    """A column and what is in it.

    ``kind``: "numbers", "whole numbers", "yes or no", "dates", "marked numbers", "words", "nothing"
    or "unknown"; ``role``: "index", "outcome", "context" or "". ``low`` and ``high`` are of
    numbers, ``season`` the rows after which they come again; ``values`` the different words of a
    context, in the order of the calendar or the alphabet.
    """

    name: str
    kind: str
    role: str = ""
    missing: int = 0
    distinct: int = 0
    low: float = np.nan
    high: float = np.nan
    season: int | None = None
    values: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Description:
    """A table, how it is written, and its columns."""

    file: Path
    frame: pd.DataFrame
    form: table_files.Form
    columns: tuple[Column, ...]

    def numbers(self, column: Column) -> Array:
        """Return the numbers of a column that are there (t,); codes of words."""
        form = self.form
        if code := codes_of(column):
            form = replace(form, codes={column.name: code})
        found = table_files.numeric(self.frame, [column.name], "the table", form)[:, 0]
        return np.asarray(found[np.isfinite(found)])

    def named(self, role: str) -> list[Column]:
        """Return the columns that are proposed for a role."""
        return [column for column in self.columns if column.role == role]


def described(file: Path) -> Description:
    """Look at a table, which may be one that comes with the package, by its name."""
    if not file.is_file() and not (file := DATA / (given := file)).is_file():
        raise UserError(f"data file '{given}' does not exist; give a CSV or Parquet file")
    form = table_files.Form()
    if file.suffix == ".csv":  # whose separator cuts the first rows into most columns, alike
        text = file.read_bytes().decode("utf-8-sig", "replace").splitlines()[:LOOKED_AT]
        cuts = [
            {line.count(mark) for line in text if line.strip()} for mark in table_files.SEPARATORS
        ]
        alike = [max(found) if len(found) == 1 else 0 for found in cuts]
        form = replace(form, separator=table_files.SEPARATORS[int(np.argmax(alike))])
    frame = table_files.read_frame(file, f"data file {file.name}", form)
    if file.suffix == ".csv":
        cells = [str(cell).strip() for cell in frame.head(LOOKED_AT).to_numpy().ravel()]
        marks = table_files.COMMA, table_files.POINT
        commas, points = (sum(map(bool, map(mark.fullmatch, cells))) for mark in marks)
        form = replace(form, decimal="," if commas > points else ".")
    form = replace(form, gaps=True)
    names, columns = [str(name) for name in frame], list[Column]()
    for place, name in enumerate(names, 1):
        if not name.strip() or CONTROL.search(name):
            columns.append(Column(f"(column {place})", "unknown", note=NAMELESS))
        elif names.count(name) > 1:
            columns.append(Column(f"{name} (column {place})", "unknown", note=TWICE))
        else:
            columns.append(_column(frame, name, form))
    apart = [own for own in columns if own.distinct == len(frame) and own.kind in INDEX]
    for first in sorted(apart, key=lambda own: INDEX.index(own.kind))[:1]:
        note = first.note if first.kind == "dates" else ""
        columns[columns.index(first)] = replace(first, role="index", note=note)
    return Description(file, frame, form, tuple(columns))


def _column(frame: pd.DataFrame, name: str, form: table_files.Form) -> Column:
    written, gone = written_cells(frame, name)
    words, infinite = written[~gone], written.map(table_files.is_infinite)
    own = Column(name, "words", missing=int(gone.sum()), distinct=int(words.nunique()))
    if not len(words):
        return replace(own, kind="nothing", note="every value is missing")
    if words.map(lambda word: table_files.DATE.fullmatch(word) is not None).all():
        return replace(own, kind="dates", note=_gaps(words))
    with suppress(UserError):
        return _of_numbers(own, table_files.numeric(frame, [name], name, form)[:, 0])
    if words.str.fullmatch(GROUPED).all():
        return replace(own, kind="marked numbers", note=MARKED)
    if infinite.any() and not (infinite | gone).all():
        rest = _column(frame[~infinite.to_numpy()], name, form)
        if "numbers" in rest.kind:
            return replace(rest, role="", season=None, note=INFINITE)
    if words.str.casefold().isin(table_files.TRUTHS).all():
        own = replace(own, kind="yes or no")
    many = "too many different words for a context" if own.distinct > FEW_WORDS else ""
    note = SAME if own.distinct == 1 else many
    return replace(own, role="" if note else "context", values=_words(words), note=note)


def written_cells(frame: pd.DataFrame, name: str) -> "tuple[pd.Series[str], pd.Series[bool]]":
    """Return a column's cells as text, and which of them say that nothing is there."""
    cells = table_files.column_of(frame, name, "the table").astype(object)
    written = cells.map(lambda cell: str(cell).strip())
    return written, written.str.casefold().isin(table_files.MISSING) | cells.isna()


def _words(words: "pd.Series[Any]") -> tuple[str, ...]:
    """Return the different words, if they are few, by the calendar or the alphabet."""
    found = sorted(words.unique()) if words.nunique() <= FEW_WORDS else []
    for names in CALENDARS:
        places: dict[str, int] = {}
        for word in found:  # a name, or the beginning of one
            start = word.casefold().rstrip(".")
            near = [i for i, name in enumerate(names) if name.startswith(start)]
            if len(near) == 1 and len(start) > 1:
                places[word] = near[0]
        if len(places) == len(found):
            return tuple(sorted(found, key=places.__getitem__))
    return tuple(found)


def _of_numbers(own: Column, numbers: Array) -> Column:
    known = numbers[np.isfinite(numbers)]
    whole = bool((known == np.round(known)).all())
    distinct, steps = len(np.unique(known)), np.diff(known)
    ends = float(known.min()), float(known.max())
    largest = max(map(abs, ends))
    counts = whole and len(steps) and ((steps >= 0).all() or (steps <= 0).all())
    faults = {
        BEYOND: largest > LARGEST,
        BELOW: 0 < largest < 1 / LARGEST,
        SAME: distinct == 1,
        "a counter: it only grows or only falls": counts,
    }
    note = next((fault for fault, is_so in faults.items() if is_so), "")
    return replace(
        own,
        kind="whole numbers" if whole else "numbers",
        role="" if note else "context" if whole and distinct <= FEW_NUMBERS else "outcome",
        missing=len(numbers) - len(known),
        distinct=distinct,
        low=ends[0],
        high=ends[1],
        season=None if note in (BEYOND, BELOW) else _season(numbers),
        note=note,
    )


def _gaps(words: "pd.Series[Any]") -> str:
    """Say how far apart dates are, and how often they are not."""
    dates = table_files.calendar(words)
    steps = dates.diff().dropna()
    if not len(steps):
        return "no calendar that is known"
    if (dates.dt.day == dates.dt.day.iloc[0]).all() and steps.dt.days.between(28, 31).all():
        return "a month apart"
    usual = steps.mode()[0]
    odd = int((steps != usual).sum())
    rest = f", but for {odd} step{'s' if odd > 1 else ''} of another length" if odd else ""
    seconds, units = usual.total_seconds(), {"day": 86_400, "hour": 3600, "minute": 60}
    unit = next((name for name, long in units.items() if seconds >= long), "second")
    many = seconds / units.get(unit, 1)
    step = f"a{'n' * (unit == 'hour')} {unit}" if many == 1 else f"{many:g} {unit}s"
    return f"{step} apart{rest}"


def _season(numbers: Array) -> int | None:
    """Return the lag of the highest peak of the autocorrelation, if it stands out."""
    values = pd.Series(numbers).interpolate(limit_direction="both").to_numpy()
    last = min(len(values) // 3, LONGEST_SEASON)
    away = values - values.mean()
    if last < 3 or not away.any():
        return None
    away = away / np.abs(away).max()
    lags = correlate(away, away, method="fft")[len(away) - 1 :][: last + 1]
    lags = lags / lags[0]
    peaks, _ = find_peaks(lags, prominence=LEAST_PEAK / 2)
    peaks = peaks[(peaks > 1) & (lags[peaks] > max(LEAST_PEAK, 2 / np.sqrt(len(values))))]
    return int(peaks[lags[peaks].argmax()]) if len(peaks) else None


def codes_of(column: Column) -> dict[str, int]:
    return {word: TRUTHS.get(word.casefold(), i) for i, word in enumerate(column.values)}
