"""Tables that a user brings: a CSV or Parquet file, every number of which is checked; and exports.

Nothing is guessed. A CSV's values stay text until a column is asked for; what is no number then, is
missing, or stands in a row that does not fit the header, is refused in a line that says what was
found, where, and what would cure it (``number_texts`` says how numbers are written). Data rows are
counted from 1, lines of a file too. Dates name rounds, and are text; whether the day stands before
the month is read off all dates of a column, or is left open (``read_dates``).
"""

import csv
import gzip
import io
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError, closest
from regretless.scenarios.latex_tables import latex_table
from regretless.scenarios.number_texts import (
    HEXADECIMAL,
    IN_PARENTHESES,
    MISSING,
    MISSING_MARKS,
    NO_THOUSANDS,
    NUMBER_LIKE,
    PLAIN,
    NumberStyle,
    common_sign,
    find_style,
    has_marked_thousands,
    is_ambiguous,
    without_sign,
)
from regretless.scenarios.table_endings import (
    CSV_ENDINGS,
    ENDINGS,
    PARQUET_ENDINGS,
    ending_of,
)

ROW = "row"  # name of the level of a frame's index that counts its rows from 1
LINE = "line"  # name of the level of a CSV's index that holds the lines of its rows
TRUTHS = {"true": 1, "false": 0}
SEPARATORS = (",", ";", "\t", "|")
EXCEL_SEPARATOR = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}([ T].*)?")
OFFSET = re.compile(r"([T ]\d\d?(?::?\d\d)*(?:[.,]\d+)?) ?(?:Z|[+-]\d\d(?::?\d\d)?)$")
YEAR_FIRST = re.compile(
    r"(?P<year>\d{4})([-/.])(?P<month>\d{1,2})\2(?P<day>\d{1,2})(?P<time>[ T].*)?"
)
YEAR_LAST = re.compile(
    r"(?P<first>\d{1,2})(?P<mark>[-/.])(?P<second>\d{1,2})(?P=mark)"
    r"(?P<year>\d{4}|\d{2})(?P<time>[ T].*)?"
)
DAY_FIRST = "day first"
MONTH_FIRST = "month first"
FIRST_YEAR = 69  # of two digits that is in the 20th century, as POSIX has it
COMMA = re.compile(r"[+-]?\d[\d.]*,\d+([eE][+-]?\d+)?")
POINT = re.compile(r"[+-]?\d[\d,]*\.\d+([eE][+-]?\d+)?")
INFINITE = re.compile(r"[+-]?(inf|infinity|[\d.]+e\+?\d+)", re.IGNORECASE)
SHOWN = 40  # characters of a value
WORDS = 12  # of a column that has words for numbers, that a message lists
HEADER_ROWS = 1000  # that tell whether the first line of a file is data


@dataclass(frozen=True, eq=False)
class DatesAsRead:
    """The ways in which a column of dates can be read, and why there is more than one, or none.

    ``readings`` are points in time (T,), NaT for what is no date; ``doubt`` has the reason and the
    cure, and is empty where a single way fits all dates.
    """

    readings: "tuple[pd.Series[pd.Timestamp], ...]"
    doubt: str = ""


def read_dates(date_texts: "pd.Series[Any]", order: str | None = None) -> DatesAsRead:
    """Read dates as they are written: ISO 8601, or with the day or the month first.

    All dates of a column are read alike. ``order``, "day first" or "month first", says how; else a
    field above 12 is a day, points have the day first, and at last the only way in which the rows
    are in order counts. Where all that leaves two ways, both are returned. Times are local: an
    offset from Greenwich, which changes in summer, is passed over.
    """
    local = date_texts.astype(str).str.strip().str.replace(OFFSET, r"\1", regex=True)
    year_first = local.str.extract(rf"^{YEAR_FIRST.pattern}$")
    year_last = local.str.extract(rf"^{YEAR_LAST.pattern}$")
    is_year_last = year_last["year"].notna()
    dates_in_words = local.mask(is_year_last | year_first["year"].notna())
    dated = _points_in_time(_as_iso(year_first, month="month", day="day").fillna(dates_in_words))
    if not is_year_last.any():
        return DatesAsRead((dated,))
    fields = {DAY_FIRST: ("second", "first"), MONTH_FIRST: ("first", "second")}
    ways = {}
    for name, (month, day) in fields.items():
        read = _points_in_time(_as_iso(year_last, month=month, day=day))
        ways[name] = dated.where(~is_year_last, read)
    if order is not None:
        return DatesAsRead((ways[order],))
    months = {name: year_last[month].astype(float) for name, (month, _) in fields.items()}
    fitting = [name for name in ways if not (months[name] > 12).any()]
    examples = local[is_year_last]
    if not fitting:
        first = local[months[MONTH_FIRST] > 12].iloc[0]
        second = local[months[DAY_FIRST] > 12].iloc[0]
        contradiction = f"'{_shown(first)}' has the day first, '{_shown(second)}' the month"
        return DatesAsRead((), f"{contradiction}; write all dates alike")
    if len(fitting) == 1:
        return DatesAsRead((ways[fitting[0]],))
    if (year_last["mark"][is_year_last] == ".").all():
        return DatesAsRead((ways[DAY_FIRST],))
    ordered = [way for way in ways.values() if _is_in_order(way)]
    if len(ordered) == 1:
        return DatesAsRead((ordered[0],))
    if (examples == examples.iloc[0]).all() and year_last["first"].equals(year_last["second"]):
        return DatesAsRead((ways[DAY_FIRST],))
    either = f"'{_shown(examples.iloc[0])}' can have the day first or the month"
    return DatesAsRead(
        tuple(ways.values()), f'{either}; add dates = "{DAY_FIRST}" or dates = "{MONTH_FIRST}"'
    )


def calendar(date_texts: "pd.Series[Any]", order: str | None = None) -> "pd.Series[pd.Timestamp]":
    """Return points in time (T,) as ``read_dates`` has them; NaT if there are two readings."""
    readings = read_dates(date_texts, order).readings
    if len(readings) == 1:
        return readings[0]
    return pd.Series(pd.NaT, index=date_texts.index, dtype="datetime64[us]")


def _as_iso(fields: pd.DataFrame, *, month: str, day: str) -> "pd.Series[str]":
    """Write fields of dates (T,) as ISO 8601; missing where there is none, or no such month."""
    century = np.where(fields["year"].astype(float) < FIRST_YEAR, "20", "19")
    year = fields["year"].where(fields["year"].str.len() == 4, century + fields["year"])
    days = year + "-" + fields[month].str.zfill(2) + "-" + fields[day].str.zfill(2)
    written = days + fields["time"].fillna("")
    return written.where(fields[month].astype(float) <= 12)


def _points_in_time(written: "pd.Series[str]") -> "pd.Series[pd.Timestamp]":
    """Parse dates (T,) with the year first, or in words; NaT for what is none."""
    dates = pd.to_datetime(written, errors="coerce", format="ISO8601")
    unread = written[dates.isna()]
    if unread.notna().any():
        dates = dates.fillna(pd.to_datetime(unread, errors="coerce", format="mixed"))
    return dates


def _is_in_order(dates: "pd.Series[pd.Timestamp]") -> bool:
    """Whether all dates are there, and ascend or descend."""
    is_monotone = dates.is_monotonic_increasing or dates.is_monotonic_decreasing
    return bool(dates.notna().all() and is_monotone)


@dataclass(frozen=True)
class Form:
    """How a table is written, and what may be in it.

    ``separator`` stands between the values of a CSV, by default a comma, in a .tsv a tab;
    ``columns`` are their names where it has no header. ``decimal`` is the decimal mark of numbers
    that are text and ``thousands`` the mark between their thousands, of all columns or by column.
    ``codes`` are numbers that stand for a column's texts, ``missing_values`` texts and numbers that
    stand for no value. With ``gaps`` missing values are NaN, else they are refused; ``keyed`` says
    whether what is refused can be cured by a key of [data], ``has_options`` whether by an option
    ``separator`` or ``decimal``.
    """

    separator: str | None = None
    decimal: str | Mapping[str, str] | None = None
    thousands: str | Mapping[str, str] | None = None
    columns: tuple[str, ...] = ()
    codes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    missing_values: tuple[str | float, ...] = ()
    gaps: bool = False
    keyed: bool = False
    has_options: bool = False

    def style_of(self, column: str) -> NumberStyle:
        """Return how the numbers of a column are written, as far as that was said."""
        decimal = self._mark(self.decimal, column)
        thousands = self._mark(self.thousands, column)
        if thousands == NO_THOUSANDS:
            thousands = None
        if decimal is None:
            decimal = "," if thousands == "." else "."
        return NumberStyle(decimal=decimal, thousands=thousands or "")

    def says_thousands(self, column: str) -> bool:
        """Whether it was said what stands between thousands of a column, or that nothing does."""
        return self._mark(self.thousands, column) is not None

    def is_missing(self, text: str) -> bool:
        """Whether a text says that there is no value."""
        if text.casefold() in MISSING or text in self._missing_texts:
            return True
        return self.gaps and text.casefold() in MISSING_MARKS

    def is_sentinel(self, number: float) -> bool:
        """Whether a number stands for no value."""
        return number in self.missing_numbers

    @cached_property
    def _missing_texts(self) -> set[str]:
        return {str(value) for value in self.missing_values}

    @cached_property
    def missing_numbers(self) -> set[float]:
        """Numbers that stand for no value."""
        return {PLAIN.read(str(value)) for value in self.missing_values} - {math.inf}

    @staticmethod
    def _mark(mark: str | Mapping[str, str] | None, column: str) -> str | None:
        return mark.get(column) if isinstance(mark, Mapping) else mark


def read_frame(path: Path, where: str, form: Form | None = None) -> pd.DataFrame:
    """Read an existing CSV or Parquet file with at least one row.

    Returns DataFrame: its index counts the rows and, of a CSV, holds their lines; all values of a
    CSV are text. UserError, which calls the file ``where``, if it cannot be read.
    """
    form = form or Form()
    ending = ending_of(path)
    if ending in CSV_ENDINGS:
        frame = _csv(read_text(path, where), where, form, usual="\t" if "tsv" in ending else ",")
    elif ending in PARQUET_ENDINGS:
        if form.columns:
            fault = f"{where} is a Parquet file, which names its columns"
            raise UserError(f"{fault}; leave columns out")
        frame = _parquet(path, where)
    else:
        raise UserError(f"{where} has the ending '{path.suffix}'; use {ENDINGS}")
    if not len(frame):
        raise UserError(f"{where} has no rows; give it at least one")
    return frame


def read_text(path: Path, where: str) -> str:
    """Return the text of a CSV, which may be compressed; UserError if it is none."""
    try:
        content = path.read_bytes()
        if ending_of(path).endswith(".gz"):
            content = gzip.decompress(content)
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        fault = f"{where} is not UTF-8: byte 0x{error.object[error.start]:02x} in line {line}"
        cure = "save it as UTF-8, in a spreadsheet as 'CSV UTF-8'"
        raise UserError(f"{fault}; {cure}") from error
    except Exception as error:  # of the disk, or of what gzip finds
        raise _unreadable(where, error) from error
    if "\0" in text:
        raise UserError(f"{where} holds zero bytes, which are no text; write it as UTF-8")
    return text


def _parquet(path: Path, where: str) -> pd.DataFrame:
    try:
        frame: pd.DataFrame = pq.ParquetFile(path).read().to_pandas(ignore_metadata=True)
    except Exception as error:  # whatever Arrow finds
        raise _unreadable(where, error) from error
    frame.index = pd.RangeIndex(1, len(frame) + 1, name=ROW)
    return frame


def _unreadable(where: str, error: Exception) -> UserError:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return UserError(f"{where} cannot be read: {reason}; mend the file")


def _csv(text: str, where: str, form: Form, *, usual: str) -> pd.DataFrame:
    """Read a CSV; blank lines are left out unless there is a single column.

    ``usual`` separates its values unless the form, or a first line as Excel writes it, says what
    does.
    """
    separator = form.separator or usual
    first_line = 1
    by_excel = EXCEL_SEPARATOR.match(text)
    if by_excel is not None:
        if form.separator not in {None, by_excel[1]}:
            fault = f"{where}: line 1 says that {json.dumps(by_excel[1])} separates its values"
            raise UserError(f"{fault}, not {json.dumps(form.separator)}; leave separator out")
        separator = by_excel[1]
        first_line = 2
        text = text[by_excel.end() :]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    header: list[str] = list(form.columns)
    rows: list[list[str]] = []
    lines: list[int] = []
    start = first_line
    try:
        for row in reader:
            if not header:
                header = row
                _check_separator(header, separator, where, form)
            elif row or len(header) == 1:
                rows.append(row or [""])
                lines.append(start)
                if len(rows[-1]) != len(header):
                    fault = f"data row {len(rows)} (line {start}) is of length {len(row)}"
                    names = "names in columns" if form.columns else "header"
                    cure = "give all rows as many values, quoted where they hold the separator"
                    raise UserError(f"{where}: {fault}, the {names} of {len(header)}; {cure}")
            start = reader.line_num + first_line
    except csv.Error as error:
        raise UserError(f"{where}: line {start} is no CSV: {error}; mend it") from error
    if not header:
        raise UserError(f"{where} is empty; give it a line of names and at least one row")
    while rows and rows[-1] == [""]:  # blank lines at the end of a single column
        rows.pop()
    counted = [np.arange(1, len(rows) + 1), np.array(lines[: len(rows)], dtype=np.intp)]
    index = pd.MultiIndex.from_arrays(counted, names=[ROW, LINE])
    return pd.DataFrame(rows, index=index, columns=pd.Index(header, dtype=object), dtype=object)


def _check_separator(header: Sequence[str], separator: str, where: str, form: Form) -> None:
    """Raise UserError if a header of one name seems to hold several, separated otherwise."""
    for other in SEPARATORS:
        if len(header) == 1 and other != separator and other in header[0]:
            cure = "commas"
            if form.keyed:
                cure = f"separator = {json.dumps(other)}"
            elif form.has_options:
                cure = f"the separator {json.dumps(other)}"
            fault = f"{where} has one column, '{_shown(header[0])}'"
            raise UserError(f"{fault}; is it separated by {json.dumps(other)}? give it {cure}")


def header_is_data(frame: pd.DataFrame) -> bool:
    """Whether the names of a CSV's columns look like its first row: the file has no header.

    Numbers and dates are data; words are, if they come again in their columns, or if the numbers
    beside them are no years or other ascending whole ones, as headers of wide tables have them.
    """
    names = [str(name).strip() for name in frame]
    if LINE not in frame.index.names or not any(names):
        return False
    is_number = [is_number_or_date(name) for name in names]
    if not any(is_number):
        return False
    if all(is_number):
        return not _are_counted(names)
    words_recur = True
    for i, name in enumerate(names):
        if not is_number[i] and name:
            cells = {str(cell).strip() for cell in frame.iloc[:HEADER_ROWS, i]}
            words_recur = words_recur and name in cells
    numbers = [name for name, is_so in zip(names, is_number, strict=True) if is_so]
    if len(numbers) == 1:
        return words_recur or not numbers[0].isdigit()
    return words_recur or not _are_counted(numbers)


def _are_counted(names: Sequence[str]) -> bool:
    """Whether names are whole numbers that ascend by one, as years and numbers of columns do."""
    if len(names) < 3 or not all(name.isdigit() for name in names):
        return False
    return bool((np.diff([int(name) for name in names]) == 1).all())


def is_number_or_date(text: str) -> bool:
    """Whether a text is a date, or a number in some style, with or without a unit's sign."""
    number, _ = without_sign(text)
    return DATE.fullmatch(text) is not None or find_style([number]) is not None


def column_of(frame: pd.DataFrame, column: str, key: str) -> "pd.Series[Any]":
    """Return a column; UserError, under ``key``, if it is not there or there twice."""
    names = [str(name) for name in frame]
    if column not in names:
        if header_is_data(frame):
            first = ",".join(names)
            reason = f"the first line, '{_shown(first)}', holds data: is there no header?"
            cure = 'name the columns, as columns = ["day", "sold"] in [data], or in that line'
            raise UserError(f"{key}: no column '{column}': {reason} {cure}")
        raise UserError(f"{key}: no column '{column}'; {closest(column, names)}")
    if names.count(column) > 1:
        positions = " and ".join(str(i + 1) for i, name in enumerate(names) if name == column)
        raise UserError(f"{key}: column '{column}' is there twice, as {positions}; rename one")
    return frame.iloc[:, names.index(column)]


def texts(frame: pd.DataFrame, column: str, key: str) -> tuple[str, ...]:
    """Return a column (T,) as it is written, empty where it is missing."""
    cells = column_of(frame, column, key)
    for row, cell in enumerate(cells.astype(object)):
        if isinstance(cell, bytes):
            fault = f"column '{column}' holds bytes in {place(frame, row)}"
            raise UserError(f"{key}: {fault}; write them as text")
    return tuple(cells.astype(str).mask(cells.isna(), ""))


def series_names(frame: pd.DataFrame, column: str, key: str) -> "pd.Series[str]":
    """Return the name of the series of each row (T,), without blanks around it."""
    names = [name.strip() for name in texts(frame, column, key)]
    return pd.Series(names, index=frame.index, dtype=object)


def numeric(
    frame: pd.DataFrame, columns: Sequence[str], key: str, form: Form | None = None
) -> Array:
    """Return columns (T, k) as numbers, NaN where one is missing and may be.

    A sign of percent or of a currency that all values of a column carry is left out. UserError,
    under ``key``, where a value is no number, or could be two.
    """
    form = form or Form()
    numbers = np.empty((len(frame), len(columns)))
    for i, column in enumerate(columns):
        numbers[:, i] = _numbers_of(frame, column, key, form)
    return numbers


def _numbers_of(frame: pd.DataFrame, column: str, key: str, form: Form) -> Array:
    """Return a column (T,) as numbers; see ``numeric``."""
    cells = column_of(frame, column, key)
    codes = form.codes.get(column, {})
    if cells.dtype.kind in "iuf" and not codes:
        numbers = cells.to_numpy(dtype=np.float64)
        if form.missing_values:
            is_gap = np.isin(numbers, list(form.missing_numbers))
            numbers = np.where(is_gap, np.nan, numbers)
        problem = ""
    else:
        numbers, problem = _read_cells(cells, column, form)
    if problem:
        raise UserError(f"{key}: column '{column}' {problem}")
    is_refused = np.isinf(numbers) | (np.isnan(numbers) & (not form.gaps))
    for row in np.flatnonzero(is_refused)[:1]:
        text = str(cells.iloc[row]).strip()
        finding = f"holds '{_shown(text)}'"
        if form.is_missing(text) and text.casefold() in MISSING:
            finding = "has no value"
        cure = _cure(text, cells, column, form)
        raise UserError(f"{key}: column '{column}' {finding} in {place(frame, row)}; {cure}")
    return numbers


def _read_cells(cells: "pd.Series[Any]", column: str, form: Form) -> tuple[Array, str]:
    """Read cells of any kind (T,): infinite where one is no number, NaN where it is missing.

    Also returns what makes the column another than it seems, with the cure; empty if nothing does.
    """
    style = form.style_of(column)
    codes = form.codes.get(column, {})
    present = _number_texts(cells, column, form)
    sign = common_sign(present)
    numbers = np.empty(len(cells))
    for row, cell in enumerate(cells.astype(object)):
        text = str(cell).strip()
        if text in codes:
            numbers[row] = codes[text]
        elif form.is_missing(text):
            numbers[row] = np.nan
        else:
            number = without_sign(text)[0] if sign else text
            numbers[row] = (style if isinstance(cell, str) else PLAIN).read(number)
            if form.is_sentinel(numbers[row]):
                numbers[row] = np.nan
    mark = style.decimal
    unsigned = [without_sign(text)[0] for text in present] if sign else present
    if form.says_thousands(column) or not has_marked_thousands(unsigned, mark):
        return numbers, ""
    marked = next(text for text in present if mark in text)
    unmarked = next((text for text in present if mark not in text), present[-1])
    other = "." if mark == "," else ","
    held = f"'{_shown(marked)}' beside '{_shown(unmarked)}'"
    problem = f"holds {held}: does '{mark}' stand between thousands?"
    cure = "write them without it"
    if form.keyed:
        keys = f'thousands = "{mark}" and decimal = "{other}"'
        cure = f'if so, add {keys} to [data], else thousands = "{NO_THOUSANDS}"'
    return numbers, f"{problem} {cure}"


def present_texts(frame: pd.DataFrame, column: str, form: Form) -> list[str]:
    """Return the different texts of a column that are neither missing nor coded, none twice."""
    return _number_texts(column_of(frame, column, "the table"), column, form)


def _number_texts(cells: "pd.Series[Any]", column: str, form: Form) -> list[str]:
    """Return the different texts of a column that are neither missing nor coded."""
    codes = form.codes.get(column, {})
    if cells.dtype.kind in "iufb":
        return []
    stripped_texts = (cell.strip() for cell in cells.astype(object) if isinstance(cell, str))
    different = dict.fromkeys(stripped_texts)
    return [text for text in different if text not in codes and not form.is_missing(text)]


def is_infinite(text: str) -> bool:
    """Whether a text is a number that is not finite, such as inf, or too large for one."""
    try:
        return math.isinf(float(text))
    except ValueError:
        return False


def _cure(text: str, cells: "pd.Series[Any]", column: str, form: Form) -> str:
    """Say what would cure a value of a column that cannot be read."""
    finite = "every value must be a finite number"
    is_mark = text.casefold() in MISSING_MARKS
    if is_mark or text.casefold() in MISSING:
        fill = f"'{text}' stands for a missing value: fill it" if is_mark else "fill it"
        if form.keyed:
            return f'{fill}, or add missing = "previous" or missing = "drop"'
        return f"{fill}, or leave the row out"
    if text.casefold() in TRUTHS:
        style = next((do for do in (str.lower, str.upper) if do(text) == text), str.title)
        truths = ", ".join(f"{style(truth)} = {number}" for truth, number in TRUTHS.items())
        codes = f"add codes = {{ {spelled(column)} = {{ {truths} }} }}"
        return codes if form.keyed else "write 1 and 0"
    if DATE.fullmatch(text):
        index = f"index = {json.dumps(column, ensure_ascii=False)}"
        cure = f"give it as {index}" if form.keyed else "name another column, or leave it out"
        return f"a date is no number; {cure}"
    if without_sign(text)[1]:
        sign = without_sign(text)[1]
        return f"{finite}: give all values of the column in '{sign}', or none"
    if IN_PARENTHESES.fullmatch(text):
        return f"{finite}: write one below zero with a minus, not in parentheses"
    if HEXADECIMAL.fullmatch(text):
        return f"{finite}: write hexadecimal ones with decimal digits"
    if NUMBER_LIKE.fullmatch(text):
        return _cure_of_marks(text, cells, column, form)
    if INFINITE.fullmatch(text) or len(text) > SHOWN or not form.keyed:
        return finite
    texts_without_number = []
    n_numbers = 0
    for other in _number_texts(cells, column, form) or [text]:
        if math.isinf(form.style_of(column).read(other)):
            texts_without_number.append(other)
        else:
            n_numbers += 1
    if n_numbers > len(texts_without_number) or any(
        NUMBER_LIKE.fullmatch(label) for label in texts_without_number
    ):
        gap = f"missing_values = [{json.dumps(text, ensure_ascii=False)}] and missing"
        return f"{finite}; mend it or, if it stands for a missing value, add {gap}"
    coded = ", ".join(
        f"{spelled(label)} = {i}" for i, label in enumerate(texts_without_number[:WORDS])
    )
    return f"{finite}, or add codes = {{ {spelled(column)} = {{ {coded} }} }}"


def _cure_of_marks(text: str, cells: "pd.Series[Any]", column: str, form: Form) -> str:
    """Say what would cure a number whose marks are others than the column's style has."""
    finite = "every value must be a finite number"
    current = form.style_of(column)
    column_texts = [without_sign(other)[0] for other in _number_texts(cells, column, form)]
    if is_ambiguous(column_texts) and current.decimal == ".":
        if form.has_options:
            return 'if that is a decimal comma, give the decimal ","; else write no thousands'
        if not form.keyed:
            return f"{finite}: '{text}' has a decimal comma or a mark between thousands"
        return (
            'if that is a decimal comma, add decimal = "," to [data]; if the comma stands between '
            'thousands, add thousands = ","'
        )
    style = find_style(column_texts)
    if style is not None and style.thousands:
        if not form.keyed:
            return "write numbers without the mark between thousands"
        keys = [f"thousands = {json.dumps(style.thousands)}"]
        has_fraction = any(style.decimal in other for other in column_texts)
        if style.decimal != current.decimal and (
            has_fraction or style.thousands == current.decimal
        ):
            keys.append(f"decimal = {json.dumps(style.decimal)}")
        return f"add {' and '.join(keys)} to [data]"
    if current.decimal == "." and COMMA.fullmatch(text):
        if form.has_options:
            return 'if that is a decimal comma, give the decimal ","'
        return (
            'if that is a decimal comma, add decimal = "," to [data]'
            if form.keyed
            else "write decimal points"
        )
    if current.decimal == "," and POINT.fullmatch(text):
        if form.has_options:
            return 'the decimal is ",": write all numbers with it, or leave the option out'
        by_column = f'decimal = {{ {spelled(column)} = "." }}'
        cure = f"leave that key out or mend the value, or write {by_column}"
        return f'numbers have decimal = ","; {cure}'
    return finite


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 3]}..."


def spelled(key: str) -> str:
    """Spell a key as TOML has it."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


def toml_value(value: Any) -> str:
    """Write a text, a number, a list or a table of texts as TOML has it."""
    if isinstance(value, Mapping):
        entries = [f"{spelled(key)} = {toml_value(entry)}" for key, entry in value.items()]
        return f"{{ {', '.join(entries)} }}"
    return json.dumps(value, ensure_ascii=False)


def place(frame: pd.DataFrame, row: int) -> str:
    """Say where a row of a frame stands in its file; ``row`` counts the frame's rows from 0.

    A frame that was read has the number of each data row, from 1, as its index, and of a CSV the
    line beside it. Any other frame is taken to have all rows.
    """
    if frame.index.names == [ROW, LINE]:
        number, line = frame.index[row]
        return f"data row {number} (line {line})"
    number = frame.index[row] if frame.index.name == ROW else row + 1
    return f"data row {number}"


def export(tables: Mapping[str, pd.DataFrame], folder: Path) -> list[Path]:
    """Write ``NAME.csv`` and ``NAME.tex`` of each table; return the files.

    The CSV has all columns, the LaTeX at most seven (``latex_tables``). UserError if the folder
    holds anything, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UserError(f"{folder} is not empty; give the tables a folder of their own")
        files = []
        for name, table in tables.items():
            latex = latex_table(name, table)
            for ending, text in ((".csv", table.to_csv(index=False)), (".tex", latex)):
                files.append(folder / f"{name}{ending}")
                with replacing(files[-1]) as draft:
                    draft.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = f"{folder} cannot be written: {error.strerror}"
        raise UserError(f"{reason}; give another folder") from error
    return files
