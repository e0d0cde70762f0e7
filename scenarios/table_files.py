"""Tables that a user brings: a CSV or Parquet file, every number of which is checked; and exports.

Nothing is guessed. A CSV's values stay text until a column is asked for; what is no number then, is
missing, or stands in a row that does not fit the header, is refused in a line that says what was
found, where, and what would cure it. Data rows are counted from 1, lines of a file too. Dates name
rounds, and are text; whether the day stands before the month is read off their order.
"""

import csv
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError, closest

LINE = "line"  # name of a frame's index where rows have lines of a file
MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "nat", "null", "none"}
TRUTHS = {"true": 1, "false": 0}
SEPARATORS = (",", ";", "\t", "|")
DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T].*)?")
OFFSET = re.compile(r"([T ]\d\d?(?::?\d\d)*(?:[.,]\d+)?) ?(?:Z|[+-]\d\d(?::?\d\d)?)$")
COMMA = re.compile(r"[+-]?\d[\d.]*,\d+([eE][+-]?\d+)?")
POINT = re.compile(r"[+-]?\d[\d,]*\.\d+([eE][+-]?\d+)?")
INFINITE = re.compile(r"[+-]?(inf|infinity|[\d.]+e\+?\d+)", re.IGNORECASE)
SHOWN = 40  # characters of a value
WORDS = 12  # of a column that has words for numbers, that a message lists


def calendar(words: "pd.Series[Any]") -> "pd.Series[pd.Timestamp]":
    """Read dates as they are written: ISO 8601, or with the day or the month first.

    Day or month first is what is in order, rather upwards than down; NaT for what is no date. Times
    are local: an offset from Greenwich, which changes in summer, is passed over.
    """
    local = words.astype(str).str.replace(OFFSET, r"\1", regex=True)
    found = pd.to_datetime(local, errors="coerce", format="ISO8601")
    if found.notna().all():
        return found
    ways = [
        pd.to_datetime(local, errors="coerce", format="mixed", dayfirst=first)
        for first in (True, False)
    ]
    whole = [way for way in ways if way.notna().all()]
    rising = [way for way in whole if way.is_monotonic_increasing]
    falling = [way for way in whole if way.is_monotonic_decreasing]
    return (rising + falling + ways[-1:])[0]


@dataclass(frozen=True)
class Form:
    """How a table is written, and what may be in it.

    ``separator`` stands between the values of a CSV, ``decimal`` within its numbers; ``codes`` are
    numbers that stand for a column's texts. With ``gaps`` missing values are NaN, else they are
    refused; ``keyed`` says whether what is refused can be cured by a key of [data].
    """

    separator: str = ","
    decimal: str = "."
    codes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    gaps: bool = False
    keyed: bool = False


def read_frame(path: Path, where: str, form: Form | None = None) -> pd.DataFrame:
    """Read an existing .csv or .parquet file with at least one row.

    Returns DataFrame: of a CSV all values are text, and the index holds the line of each row.
    """
    if path.suffix not in {".csv", ".parquet"}:
        raise UserError(f"{where} has the ending '{path.suffix}'; use .csv or .parquet")
    frame = pd.DataFrame()
    try:
        if path.suffix == ".csv":
            text = path.read_bytes().decode("utf-8-sig")
        else:
            frame = pq.ParquetFile(path).read().to_pandas(ignore_metadata=True)
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        there = f"{where} is not UTF-8: byte 0x{error.object[error.start]:02x} in line {line}"
        raise UserError(f"{there}; write it as UTF-8") from error
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{where} cannot be read: {reason}; mend the file") from error
    if path.suffix == ".csv":
        if "\0" in text:
            raise UserError(f"{where} holds zero bytes, which are no text; write it as UTF-8")
        frame = _csv(text, where, form or Form())
    if not len(frame):
        raise UserError(f"{where} has no rows; give it at least one")
    return frame


def _csv(text: str, where: str, form: Form) -> pd.DataFrame:
    """Read a CSV; blank lines are left out unless there is a single column."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=form.separator, strict=True)
    header: list[str] = []
    rows: list[list[str]] = []
    lines, start = [], 1
    try:
        for row in reader:
            if not header:
                header = row
                for other in SEPARATORS:  # which seem to separate the values in its place
                    if len(header) == 1 and other != form.separator and other in header[0]:
                        cure = f"separator = {json.dumps(other)}" if form.keyed else "commas"
                        there = f"{where} has one column, '{_shown(header[0])}'"
                        cut = f"is it separated by {json.dumps(other)}"
                        raise UserError(f"{there}; {cut}? give it {cure}")
            elif row or len(header) == 1:
                rows.append(row or [""])
                lines.append(start)
                if len(rows[-1]) != len(header):
                    there = f"data row {len(rows)} (line {start}) is of length {len(row)}"
                    cure = "give all rows as many values, quoted where they hold the separator"
                    raise UserError(f"{where}: {there}, the header of {len(header)}; {cure}")
            start = reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"{where}: line {start} is no CSV: {error}; mend it") from error
    if not header:
        raise UserError(f"{where} is empty; give it a line of names and at least one row")
    while rows and rows[-1] == [""]:  # blank lines at the end of a single column
        rows.pop()
    index = pd.Index(lines[: len(rows)], name=LINE)
    return pd.DataFrame(rows, index=index, columns=pd.Index(header, dtype=object), dtype=object)


def column_of(frame: pd.DataFrame, column: str, key: str) -> "pd.Series[Any]":
    """Return a column; UserError, under ``key``, if it is not there or there twice."""
    names = [str(name) for name in frame]
    if column not in names:
        raise UserError(f"{key}: no column '{column}'; {closest(column, names)}")
    if names.count(column) > 1:
        at = " and ".join(str(i + 1) for i, name in enumerate(names) if name == column)
        raise UserError(f"{key}: column '{column}' is there twice, as {at}; rename one")
    return frame.iloc[:, names.index(column)]


def texts(frame: pd.DataFrame, column: str, key: str) -> tuple[str, ...]:
    """Return a column (T,) as it is written, empty where it is missing."""
    cells = column_of(frame, column, key)
    for row, cell in enumerate(cells.astype(object)):
        if isinstance(cell, bytes):
            found = f"column '{column}' holds bytes in {place(frame, row)}"
            raise UserError(f"{key}: {found}; write them as text")
    return tuple(cells.astype(str).mask(cells.isna(), ""))


def numeric(
    frame: pd.DataFrame, columns: Sequence[str], key: str, form: Form | None = None
) -> Array:
    """Return columns (T, k) as numbers, NaN where one is missing and may be.

    UserError, under ``key``, where a value is none.
    """
    form, found = form or Form(), np.empty((len(frame), len(columns)))
    for place_of, column in enumerate(columns):
        cells, codes = column_of(frame, column, key), form.codes.get(column, {})
        if cells.dtype.kind in "iuf" and not codes:
            numbers = cells.to_numpy(dtype=np.float64)
        else:
            read = (_number(cell, codes, form.decimal) for cell in cells.astype(object))
            numbers = np.fromiter(read, np.float64, len(cells))
        for row in np.flatnonzero(np.isinf(numbers) | (np.isnan(numbers) & (not form.gaps)))[:1]:
            texts = dict.fromkeys(str(cell).strip() for cell in cells)
            words = [text for text in texts if np.isinf(_number(text, codes, form.decimal))]
            coded = ", ".join(f"{spelled(text)} = {i}" for i, text in enumerate(words[:WORDS]))
            text = str(cells.iloc[row]).strip()
            finding = "has no value" if text.casefold() in MISSING else f"holds '{_shown(text)}'"
            cure = _cure(text, column, form, coded)
            raise UserError(f"{key}: column '{column}' {finding} in {place(frame, row)}; {cure}")
        found[:, place_of] = numbers
    return found


def _number(cell: Any, codes: Mapping[str, float], decimal: str) -> float:
    """Read a cell; NaN where it is missing, infinite where it is no finite number."""
    text = str(cell).strip()
    if text in codes:
        return codes[text]
    if text.casefold() in MISSING:
        return np.nan
    if isinstance(cell, str) and decimal != ".":
        text = text.replace(".", "_").replace(decimal, ".")
    try:
        return np.inf if "_" in text else float(text)
    except ValueError:
        return np.inf


def is_infinite(text: str) -> bool:
    """Whether a text is a number that is not finite, such as inf, or too large for one."""
    try:
        return math.isinf(float(text))
    except ValueError:
        return False


def _cure(text: str, column: str, form: Form, coded: str) -> str:
    """Say what would cure a value that cannot be read; ``coded``: codes of all such words."""
    name, finite = spelled(column), "every value must be a finite number"
    style = next((do for do in (str.lower, str.upper) if do(text) == text), str.title)
    truths = ", ".join(f"{style(word)} = {number}" for word, number in TRUTHS.items())
    index = f"index = {json.dumps(column, ensure_ascii=False)}"
    gap, missing = text.casefold() in MISSING, 'missing = "previous" or missing = "drop"'
    comma, is_comma = form.decimal == ",", 'that is a decimal comma, add decimal = ","'
    has_comma = 'decimal = ","; leave that key out or mend the value'
    for so, plain, keyed in (  # what it looks like, and the cures without and with keys
        (gap, "fill it", f"fill it, or add {missing}"),
        (text.casefold() in TRUTHS, "write 1 and 0", f"add codes = {{ {name} = {{ {truths} }} }}"),
        (DATE.fullmatch(text), "leave it out", f"a date is no number; give it as {index}"),
        (not comma and COMMA.fullmatch(text), "write decimal points", f"if {is_comma}"),
        (comma and POINT.fullmatch(text), "", f"numbers have {has_comma}"),
        (INFINITE.fullmatch(text) or len(text) > SHOWN, finite, finite),
    ):
        if so:
            return keyed if form.keyed else plain
    return f"{finite}, or add codes = {{ {name} = {{ {coded} }} }}" if form.keyed else finite


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 3]}..."


def spelled(key: str) -> str:
    """Spell a key as TOML has it."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


def place(frame: pd.DataFrame, row: int) -> str:
    """Say where a row of a frame stands, ``row`` counted from 0."""
    line = f" (line {frame.index[row]})" if frame.index.name == LINE else ""
    return f"data row {row + 1}{line}"


def export(tables: Mapping[str, pd.DataFrame], folder: Path) -> list[Path]:
    """Write ``NAME.csv`` and ``NAME.tex`` of each table; return the files.

    The LaTeX is a ``longtable`` with the rules of ``booktabs`` and the label ``tab:NAME``, numbers
    with four digits. UserError if the folder holds anything, or cannot be written.
    """
    style: dict[str, Any] = {"longtable": True, "na_rep": "", "float_format": "%.4g"}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UserError(f"{folder} is not empty; give the tables a folder of their own")
        files = []
        for name, table in tables.items():
            latex = table.to_latex(index=False, escape=True, label=f"tab:{name}", **style)
            for ending, text in ((".csv", table.to_csv(index=False)), (".tex", latex)):
                files.append(folder / f"{name}{ending}")
                with replacing(files[-1]) as draft:
                    draft.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = f"{folder} cannot be written: {error.strerror}"
        raise UserError(f"{reason}; give another folder") from error
    return files
