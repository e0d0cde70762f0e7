r"""What the columns of a table are: dates, numbers or words, and what each of them could be.

    index      dates, or other text, that differ from row to row: names of rounds
    outcome    numbers that take many values and do not just count rows: what is forecast
    context    few values, numbers or words: what may be known before a round
    series     a column that tells several series apart that stand in one file
    censored   two values of a column that says that all was sold: by its name, or as it says yes
               where one column of numbers equals another, which it never exceeds; known after the
               round
    nothing    the rest, with the reason

A proposal is read off the values alone. Where no column has many values, the outcome is one of few,
as counts and yes or no, that the calendar does not tell. Of several series the first is described,
and rows are described in the order of time. The **season** of a column is the lag of the highest
peak of its autocorrelation, if that is above twice what noise would have, 2 / sqrt(T), and above
0.2.
"""

import json
import math
import re
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
from regretless.scenarios.assembly.data import TRUTHS as TRUTH_OF_WORD
from regretless.scenarios.config.files import CONTROL_CHARACTER, DATA
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
    find_sentinel,
    find_style,
    is_ambiguous,
    may_be_thousands,
    without_sign,
)
from regretless.scenarios.sold_out_columns import find_cut_off
from regretless.scenarios.table_endings import CSV_ENDINGS, ending_of
from regretless.scenarios.table_files import TRUTHS
from regretless.scenarios.time_order import order_of

SAME = "always the same"
NAMELESS = "its name cannot stand in a scenario file: give it another one in the header"
TWICE = "another column has its name: rename one"
INFINITE = "numbers that are not finite: mend these cells"
BEYOND = "numbers above 1e100: mend these cells"
BELOW = "no number above 1e-100: give them in a smaller unit"
COUNTER = "a counter: it only grows or only falls"
MOSTLY_EMPTY = "empty cells are a value of their own"
MOSTLY_MISSING = "missing in more than half of the rows"
NUMBER_KINDS = ("numbers", "whole numbers")
LARGEST_NUMBER = 1e100  # that is taken for one; squares and sums of such numbers are finite
# The names of days and of months, each in their order.
CALENDAR_NAMES = [[name.lower() for name in names if name] for names in (day_name, month_name)]
MAX_NUMBERS = 31  # different ones of a context
MAX_WORDS = 12  # different ones of a context
MAX_GAPS = 0.5  # share of missing values from which they are no accident
MAX_LAG = 400  # rows of a season
MIN_SEASONAL_CORRELATION = 0.2  # of the autocorrelation at a season
INDEX_KINDS = ("dates", "words")  # that name rounds if they all differ, dates before others
SAMPLED_LINES = 1000  # from which the separator is told
MAX_SERIES = 1000  # in one file
MIN_SERIES_ROWS = 2  # of each
MIN_SERIES_SHARE = 0.8  # of all pairs of a time and a series that are there
SPOKEN_SEPARATORS = {"\t": "tabs"}  # others are shown
N_TRUTHS = 2  # different values of a column of yes and no
SOLD_OUT = re.compile(
    r"sold.?out|stock.?out|out.?of.?stock|censored|ausverkauft|uitverkocht|épuisé|agotado|esaurito",
    re.IGNORECASE,
)
PARTS_OF_A_DAY = (24, 48, 96, 144, 288, 1440)  # hours down to minutes


@dataclass(frozen=True)
class Column:
    """A column and what is in it.

    ``kind``: "numbers", "whole numbers", "yes or no", "dates", "marked numbers", "words", "nothing"
    or "unknown"; ``role``: "index", "outcome", "context", "series", "censored" or "". ``low`` and
    ``high`` are of numbers, ``season`` the rows after which they come again, ``unit`` the sign that
    all of them carry, as "%"; ``values`` the different words of a context, in the order of the
    calendar or the alphabet.
    """

    name: str
    kind: str
    role: str = ""
    missing: int = 0
    distinct: int = 0
    low: float = np.nan
    high: float = np.nan
    season: int | None = None
    unit: str = ""
    values: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Description:
    """A table, how it is written, and its columns.

    ``frame`` has the rows of the first series, in the order of time; ``is_sorted`` says whether
    they stand so in the file, and ``series`` are the names of all series, if there are several.
    """

    file: Path
    frame: pd.DataFrame
    form: table_files.Form
    columns: tuple[Column, ...]
    n_rows: int
    is_sorted: bool = True
    series_column: str = ""
    series: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def numbers(self, column: Column) -> Array:
        """Return the numbers of a column that are there (t,); codes of words."""
        form = self.form
        codes = codes_of(column)
        if codes:
            form = replace(form, codes={column.name: codes})
        values = table_files.numeric(self.frame, [column.name], "the table", form)[:, 0]
        return np.asarray(values[np.isfinite(values)])

    def named(self, role: str) -> list[Column]:
        """Return the columns that are proposed for a role."""
        return [column for column in self.columns if column.role == role]


def described(
    file: Path, *, decimal: str | None = None, thousands: str | None = None
) -> Description:
    """Look at a table, which may be one that comes with the package, by its name.

    ``decimal`` and ``thousands`` are the marks of its numbers, as [data] has them, where the user
    says so; they count in all columns that can be read with them.
    """
    path = file if file.is_file() else DATA / file
    if not path.is_file():
        fault = "is a folder" if path.is_dir() or file.is_dir() else "does not exist"
        raise UserError(f"data file '{file}' {fault}; give a CSV or Parquet file")
    where = f"data file {path.name}"
    form = table_files.Form()
    notes = []
    if ending_of(path) in CSV_ENDINGS:
        form = replace(form, separator=_separator_of(path, where))
    frame = table_files.read_frame(path, where, form)
    if table_files.header_is_data(frame):
        names = tuple(f"column_{i + 1}" for i in range(frame.shape[1]))
        form = replace(form, columns=names)
        frame = table_files.read_frame(path, where, form)
        notes.append("The first line holds data: the file has no header. Name the columns.")
    n_rows = len(frame)
    series_column, series = _find_series(frame)
    if series:
        names_of_rows = table_files.series_names(frame, series_column, "the table")
        n_nameless = int((names_of_rows == "").sum())
        frame = frame[(names_of_rows == series[0]).to_numpy()]
        notes.append(
            f"'{series_column}' tells {len(series):,} series apart; described is the first, "
            f"'{series[0]}', of {len(frame):,} rows."
        )
        if n_nameless:
            notes.append(
                f"{n_nameless:,} rows have no value in '{series_column}': name them there."
            )
    frame, is_sorted, time_notes = _in_order_of_time(frame)
    form = _with_number_marks(frame, form, decimal=decimal, thousands=thousands)
    notes += _notes_on_form(frame, form)
    columns = _describe_columns(frame, form, series_column)
    form = replace(form, missing_values=_find_sentinels(frame, form, columns))
    if form.missing_values:
        columns = _describe_columns(frame, form, series_column)
        listed = ", ".join(f"{value:g}" for value in form.missing_values)
        notes.append(f"{listed}: far from all other numbers, and taken for missing values.")
    columns, notes_on_censored = _with_censored(_with_index(columns, len(frame)), frame, form)
    notes += notes_on_censored
    return Description(
        file=path,
        frame=frame,
        form=form,
        columns=tuple(_with_outcome(columns, frame, form)),
        n_rows=n_rows,
        is_sorted=is_sorted,
        series_column=series_column,
        series=series,
        notes=(*notes, *time_notes),
    )


def _with_censored(
    columns: list[Column], frame: pd.DataFrame, form: table_files.Form
) -> tuple[list[Column], list[str]]:
    """Return columns in which one that says where all was sold is no context, and notes on them."""
    numbers: dict[str, Array] = {}
    for column in columns:
        if column.kind in NUMBER_KINDS and column.note not in (INFINITE, BEYOND, BELOW):
            numbers[column.name] = table_files.numeric(frame, [column.name], "the table", form)[
                :, 0
            ]
    outcomes = [column.name for column in columns if column.role == "outcome"]
    possible_sales = [name for name in outcomes if name in numbers] or None
    with_censored = []
    notes = []
    for column in columns:
        finding = ""
        if column.role == "context" and column.distinct == N_TRUTHS:
            finding = _how_it_says_sold_out(column, frame, numbers, possible_sales)
        if finding:
            column = replace(column, role="censored")  # noqa: PLW2901
            key = f"censored = {json.dumps(column.name, ensure_ascii=False)}"
            notes.append(
                f"'{column.name}' {finding}, which is known after the round only; sales then are "
                f"not demand: see {key} in [data]."
            )
        with_censored.append(column)
    return with_censored, notes


def _how_it_says_sold_out(
    column: Column,
    frame: pd.DataFrame,
    numbers: dict[str, Array],
    possible_sales: list[str] | None,
) -> str:
    """Say why a column of two values seems to say when all was sold; empty if it does not.

    ``possible_sales`` are names of columns; None if any column of numbers may be sales.
    """
    if SOLD_OUT.search(column.name):
        return "seems to say when all was sold"
    words = _texts_of(frame, column.name).str.casefold()
    is_known = words.isin(list(TRUTH_OF_WORD)).to_numpy()
    is_sold_out = words.map(TRUTH_OF_WORD).to_numpy() == True  # noqa: E712 - None where unknown
    others = {name: values for name, values in numbers.items() if name != column.name}
    cut_off = find_cut_off(is_sold_out, is_known, others, possible_sales=possible_sales)
    if cut_off is None:
        return ""
    are = f"'{cut_off.sales}' equals '{cut_off.stock}', and never exceeds it"
    return f"says yes where {are}: it seems to say when all was sold"


def _separator_of(path: Path, where: str) -> str | None:
    """Return the separator that cuts the first rows into most columns, alike.

    None where the file says it itself.
    """
    text = table_files.read_text(path, where)
    if table_files.EXCEL_SEPARATOR.match(text):
        return None
    lines = [line for line in text.splitlines()[:SAMPLED_LINES] if line.strip()]
    n_separators = []
    for mark in table_files.SEPARATORS:
        counts = {line.count(mark) for line in lines}
        n_separators.append(max(counts) if len(counts) == 1 else 0)
    if not any(n_separators) and "tsv" in ending_of(path):
        return "\t"
    return table_files.SEPARATORS[int(np.argmax(n_separators))]


def _find_series(frame: pd.DataFrame) -> tuple[str, tuple[str, ...]]:
    """Return the column that tells series apart, and their names; empty if there is one series.

    There are several if dates come again, in no series twice, and most series have most dates: the
    column with the fewest different values of which that is so. The hours of a day are no series.
    """
    names = [str(name) for name in frame]
    usable = [name for name in names if name.strip() and names.count(name) == 1]
    for dates in usable:
        order = order_of(_texts_of(frame, dates))
        if order is None or not order.repeats:
            continue
        n_times = len(np.unique(order.times))
        candidates = []
        for name in usable:
            words = _texts_of(frame, name)
            if name == dates or _has_fractions(words) or _counts_parts_of_a_day(words):
                continue
            names_of_rows = table_files.series_names(frame, name, "the table")
            is_named = (names_of_rows != "").to_numpy()
            n_series = int(names_of_rows[is_named].nunique())
            pairs = pd.DataFrame({"time": order.times, "series": names_of_rows})
            is_apart = not pairs[is_named].duplicated().any()
            is_several = 1 < n_series <= MAX_SERIES
            is_balanced = is_named.sum() >= MIN_SERIES_SHARE * n_times * n_series
            has_rows = is_named.sum() >= MIN_SERIES_ROWS * n_series
            if is_several and is_apart and is_balanced and has_rows:
                candidates.append((n_series, usable.index(name), name))
        if candidates:
            _, _, name = min(candidates)
            names_of_rows = table_files.series_names(frame, name, "the table")
            return name, tuple(dict.fromkeys(names_of_rows[names_of_rows != ""]))
    return "", ()


def _counts_parts_of_a_day(words: "pd.Series[str]") -> bool:
    """Whether a column numbers the hours of a day, or shorter parts of it, from 0 or 1."""
    numbers = np.unique([PLAIN.read(word) for word in words.unique()])
    if len(numbers) not in PARTS_OF_A_DAY or numbers[0] not in (0, 1):
        return False
    return bool((np.diff(numbers) == 1).all())


def _has_fractions(words: "pd.Series[str]") -> bool:
    """Whether a column holds numbers that are not whole, which name no series."""
    numbers = np.array([PLAIN.read(word) for word in words.unique()])
    return bool(np.isfinite(numbers).all() and (numbers != np.round(numbers)).any())


def _texts_of(frame: pd.DataFrame, name: str) -> "pd.Series[str]":
    """Return the cells of a column as text."""
    return written_cells(frame, name)[0]


def _in_order_of_time(frame: pd.DataFrame) -> tuple[pd.DataFrame, bool, list[str]]:
    """Return the rows in the order of their dates, whether they were so, and what is strange."""
    names = [str(name) for name in frame]
    for name in names:
        order = order_of(_texts_of(frame, name)) if names.count(name) == 1 else None
        if order is None:
            continue
        fault = order.fault()
        notes = [f"{name}: {fault}."] if fault else []
        if order.is_ascending or order.doubt:  # nothing is sorted in doubt
            return frame, True, notes
        return frame.iloc[order.sorted_rows()], False, notes
    return frame, True, []


def _with_number_marks(
    frame: pd.DataFrame, form: table_files.Form, *, decimal: str | None, thousands: str | None
) -> table_files.Form:
    """Return a form with the marks of the numbers of all columns, as far as they can be told.

    ``decimal`` and ``thousands`` are marks that the user stated, None if it is left open.
    """
    stated_style = None
    if decimal is not None or thousands is not None:
        stated_style = replace(form, decimal=decimal, thousands=thousands).style_of("")
    styles: dict[str, NumberStyle] = {}
    ambiguous = []
    names = [str(name) for name in frame]
    for name in names:
        if names.count(name) == 1:
            distinct_texts = table_files.present_texts(frame, name, replace(form, gaps=True))
            sign = common_sign(distinct_texts)
            unsigned_texts = [without_sign(text)[0] if sign else text for text in distinct_texts]
            style = find_style(unsigned_texts) if unsigned_texts else None
            if (
                stated_style is not None
                and unsigned_texts
                and stated_style.reads_all(unsigned_texts)
            ):
                style = stated_style
            if style is not None:
                is_whole = style == PLAIN and not any("." in text for text in unsigned_texts)
                if not is_whole:  # whole numbers are written alike with all marks
                    styles[name] = style
            elif is_ambiguous(unsigned_texts):
                ambiguous.append(name)
    if any(style == PLAIN for style in styles.values()):  # the table's fractions have a point
        styles |= dict.fromkeys(ambiguous, NumberStyle(thousands=","))
    decimals = {name: style.decimal for name, style in styles.items()}
    thousands_of = {name: style.thousands for name, style in styles.items() if style.thousands}
    if thousands == NO_THOUSANDS:
        without_thousands = [name for name, style in styles.items() if not style.thousands]
        thousands_of |= dict.fromkeys(without_thousands, NO_THOUSANDS)
    thousands_key: str | dict[str, str] | None = None
    if thousands_of:
        are_alike = len(set(thousands_of.values())) == 1 and len(thousands_of) == len(styles)
        thousands_key = next(iter(thousands_of.values())) if are_alike else thousands_of
    decimal_key: str | dict[str, str] | None = None
    if "," in decimals.values():
        commas = {name: mark for name, mark in decimals.items() if mark == ","}
        decimal_key = "," if len(commas) == len(decimals) else commas
    return replace(form, gaps=True, decimal=decimal_key, thousands=thousands_key)


def _notes_on_form(frame: pd.DataFrame, form: table_files.Form) -> list[str]:
    """Say how a table is read that has other marks than commas between columns and points."""
    findings = []
    keys = []
    if form.separator not in (None, ","):
        mark = SPOKEN_SEPARATORS.get(form.separator, f"'{form.separator}'")
        findings.append(f"columns are separated by {mark}")
        keys.append(f"separator = {json.dumps(form.separator)}")
    example = _example_with_a_comma(frame, form)
    if example:
        number = form.style_of(example.column).read(without_sign(example.text)[0])
        findings.append(f"'{example.text}' in '{example.column}' is {number:.10g}")
    if form.decimal is not None:
        keys.append(f"decimal = {table_files.toml_value(form.decimal)}")
    if form.thousands is not None:
        keys.append(f"thousands = {table_files.toml_value(form.thousands)}")
    if not findings:
        return []
    sentence = "; ".join(findings)
    return [f"{sentence[0].upper()}{sentence[1:]}. A scenario's [data] says so: {', '.join(keys)}."]


@dataclass(frozen=True)
class _WrittenNumber:
    """A number as it stands in a column."""

    column: str
    text: str


def _example_with_a_comma(frame: pd.DataFrame, form: table_files.Form) -> _WrittenNumber | None:
    """Return the first number with a decimal comma; None if there is none."""
    names = [str(name) for name in frame]
    for name in names:
        if names.count(name) > 1 or form.style_of(name).decimal != ",":
            continue
        for text in table_files.present_texts(frame, name, form):
            is_number = math.isfinite(form.style_of(name).read(without_sign(text)[0]))
            if "," in text and is_number:
                return _WrittenNumber(name, text)
    return None


def _describe_columns(frame: pd.DataFrame, form: table_files.Form, series: str) -> list[Column]:
    names = [str(name) for name in frame]
    columns = []
    for position, name in enumerate(names, 1):
        if not name.strip() or CONTROL_CHARACTER.search(name):
            columns.append(Column(f"(column {position})", "unknown", note=NAMELESS))
        elif names.count(name) > 1:
            columns.append(Column(f"{name} (column {position})", "unknown", note=TWICE))
        elif name == series:
            columns.append(Column(name, "words", role="series", distinct=1))
        else:
            columns.append(_describe_column(frame, name, form))
    return columns


def _find_sentinels(
    frame: pd.DataFrame, form: table_files.Form, columns: list[Column]
) -> tuple[float, ...]:
    """Return the numbers that seem to stand for missing values in some column."""
    sentinels: dict[float, None] = {}
    for column in columns:
        if "numbers" in column.kind and column.note in {"", SAME, COUNTER}:
            values = table_files.numeric(frame, [column.name], "the table", form)[:, 0]
            sentinel = find_sentinel(values)
            if sentinel is not None:
                sentinels[sentinel] = None
    return tuple(sentinels)


def _describe_column(frame: pd.DataFrame, name: str, form: table_files.Form) -> Column:
    cell_texts, is_missing = written_cells(frame, name)
    is_missing |= cell_texts.isin([str(value) for value in form.missing_values])
    present_texts = cell_texts[~is_missing]
    column = Column(
        name, "words", missing=int(is_missing.sum()), distinct=int(present_texts.nunique())
    )
    if not len(present_texts):
        return replace(column, kind="nothing", note="every value is missing")
    if present_texts.map(lambda word: table_files.DATE.fullmatch(word) is not None).all():
        return replace(column, kind="dates", note=_describe_steps(present_texts))
    distinct_texts = list(present_texts.unique())
    with suppress(UserError):
        values = table_files.numeric(frame, [name], name, form)[:, 0]
        described_column = _describe_numbers(column, values)
        sign = common_sign(distinct_texts)
        return replace(
            described_column,
            unit=sign,
            note=described_column.note or _note_on_marks(distinct_texts, form, name),
        )
    is_infinite = cell_texts.map(table_files.is_infinite)
    if is_infinite.any() and not (is_infinite | is_missing).all():
        finite_column = _describe_column(frame[~is_infinite.to_numpy()], name, form)
        if "numbers" in finite_column.kind:
            return replace(finite_column, role="", season=None, note=INFINITE)
    if all(NUMBER_LIKE.fullmatch(word) or HEXADECIMAL.fullmatch(word) for word in distinct_texts):
        return replace(column, kind="marked numbers", note=_fault_of_marks(distinct_texts))
    if present_texts.str.casefold().isin(table_files.TRUTHS).all():
        column = replace(column, kind="yes or no")
    n_empty = int((cell_texts == "").sum())
    if n_empty > MAX_GAPS * len(cell_texts) and column.distinct < MAX_WORDS:
        # As a column of holidays, empty on all other days.
        column = replace(column, values=("", *_ordered_words(present_texts)))
        return replace(column, role="context", note=MOSTLY_EMPTY)
    if column.distinct == 1:
        return replace(column, values=_ordered_words(present_texts), note=SAME)
    if column.distinct > MAX_WORDS:
        return replace(column, note="too many different words for a context")
    return replace(column, role="context", values=_ordered_words(present_texts))


def _note_on_marks(distinct_texts: list[str], form: table_files.Form, name: str) -> str:
    """Say how numbers with marks were read, where that may be in doubt; empty otherwise."""
    style = form.style_of(name)
    grouped = [
        text for text in distinct_texts if re.search(r"\d[., \u00a0\u2009\u202f'\u2019]\d{3}", text)
    ]
    if style.thousands and grouped:
        example = grouped[0]
        value = style.read(without_sign(example)[0])
        mark = {" ": "a blank", "'": "an apostrophe"}.get(style.thousands, f"'{style.thousands}'")
        return f"{mark} stands between thousands: '{example}' is {value:g}"
    if style == PLAIN and not form.says_thousands(name) and may_be_thousands(distinct_texts):
        example = distinct_texts[0]
        value = PLAIN.read(example)
        return (
            f"'{example}' is read as {value:g}: if the point stands between thousands, add "
            f'--thousands=., or thousands = "." to [data]; if it does not, '
            f'--thousands={NO_THOUSANDS} or thousands = "{NO_THOUSANDS}"'
        )
    return ""


def _fault_of_marks(distinct_texts: list[str]) -> str:
    """Say why texts that look like numbers cannot be read as such."""
    signs = {without_sign(text)[1] for text in distinct_texts}
    if len(signs) > 1:
        named = " and ".join(f"'{sign}'" if sign else "no sign" for sign in sorted(signs))
        return f"numbers with {named}: write all in one unit"
    for text in distinct_texts:
        if IN_PARENTHESES.fullmatch(text):
            return f"'{text}': write numbers below zero with a minus, not in parentheses"
        if HEXADECIMAL.fullmatch(text):
            return f"'{text}': write hexadecimal numbers with decimal digits"
    unsigned_texts = [without_sign(text)[0] for text in distinct_texts]
    if is_ambiguous(unsigned_texts):
        example = next(text for text in unsigned_texts if "," in text)
        number = NumberStyle(thousands=",").read(example)
        small = NumberStyle(decimal=",").read(example)
        options = "--thousands=, or --decimal=,"
        keys = 'thousands = "," or decimal = "," in [data]'
        return f"'{example}' is {number:g} or {small:g}: say which by {options} ({keys})"
    return "numbers with marks that do not go together: write all alike, without thousands marks"


def written_cells(frame: pd.DataFrame, name: str) -> "tuple[pd.Series[str], pd.Series[bool]]":
    """Return a column's cells as text, and which of them say that nothing is there."""
    cells = table_files.column_of(frame, name, "the table").astype(object)
    cell_texts = cells.map(lambda cell: str(cell).strip())
    return cell_texts, cell_texts.str.casefold().isin(MISSING | MISSING_MARKS) | cells.isna()


def _ordered_words(words: "pd.Series[Any]") -> tuple[str, ...]:
    """Return the different words, if they are few, by the calendar or the alphabet."""
    if words.nunique() > MAX_WORDS:
        return ()
    distinct_texts = sorted(words.unique())
    for names in CALENDAR_NAMES:
        place_of_word: dict[str, int] = {}
        for word in distinct_texts:  # a name, or the beginning of one
            start = word.casefold().rstrip(".")
            places = [i for i, name in enumerate(names) if name.startswith(start)]
            is_one_name = len(places) == 1 and len(start) > 1  # one letter may be anything
            if is_one_name:
                place_of_word[word] = places[0]
        if len(place_of_word) == len(distinct_texts):
            return tuple(sorted(distinct_texts, key=place_of_word.__getitem__))
    return tuple(distinct_texts)


def _describe_numbers(column: Column, numbers: Array) -> Column:
    present = numbers[np.isfinite(numbers)]
    are_whole = bool((present == np.round(present)).all())
    n_distinct = len(np.unique(present))
    steps = np.diff(present)
    low = float(present.min())
    high = float(present.max())
    largest = max(abs(low), abs(high))
    is_monotone = (steps >= 0).all() or (steps <= 0).all()
    faults = {
        BEYOND: largest > LARGEST_NUMBER,
        BELOW: 0 < largest < 1 / LARGEST_NUMBER,
        SAME: n_distinct == 1,
        COUNTER: are_whole and len(steps) and is_monotone,
    }
    note = next((fault for fault, is_so in faults.items() if is_so), "")
    role = "context" if are_whole and n_distinct <= MAX_NUMBERS else "outcome"
    n_missing = len(numbers) - len(present)
    if not note and role == "context" and n_missing > MAX_GAPS * len(numbers):
        note = MOSTLY_MISSING
    return replace(
        column,
        kind="whole numbers" if are_whole else "numbers",
        role="" if note else role,
        missing=n_missing,
        distinct=n_distinct,
        low=low,
        high=high,
        season=None if note in (BEYOND, BELOW) else _season(numbers),
        note=note,
    )


def _with_index(columns: list[Column], n_rows: int) -> list[Column]:
    """Return columns of which the first whose values all differ, rather dates, is the index."""
    unique = [
        column for column in columns if column.distinct == n_rows and column.kind in INDEX_KINDS
    ]
    if not unique:
        return columns
    index = min(unique, key=lambda column: INDEX_KINDS.index(column.kind))
    note = index.note if index.kind == "dates" else ""
    with_index = list(columns)
    with_index[columns.index(index)] = replace(index, role="index", note=note)
    return with_index


def _with_outcome(
    columns: list[Column], frame: pd.DataFrame, form: table_files.Form
) -> list[Column]:
    """Return columns with an outcome of few values, as counts have, where no other is one.

    It is the one with the most values, of several the last, that is no function of the calendar.
    """
    if any(column.role == "outcome" for column in columns):
        return columns
    order = next((column for column in columns if column.kind == "dates"), None)
    dates = None if order is None else table_files.calendar(_texts_of(frame, order.name))
    candidates = []
    for i, column in enumerate(columns):
        is_number = column.kind in {"whole numbers", "yes or no"}
        if column.role == "context" and is_number:
            form_of_column = replace(form, codes={column.name: codes_of(column)})
            values = table_files.numeric(frame, [column.name], "the table", form_of_column)[:, 0]
            if not _follows_calendar(values, dates):
                candidates.append((column.distinct, i))
    if not candidates:
        return columns
    _, position = max(candidates)
    with_outcome = list(columns)
    with_outcome[position] = replace(columns[position], role="outcome")
    return with_outcome


def _follows_calendar(values: Array, dates: "pd.Series[pd.Timestamp] | None") -> bool:
    """Whether a column (T,) repeats itself exactly, or is a function of parts of the date."""
    for lag in range(2, min(len(values) // 2, MAX_LAG) + 1):
        if np.array_equal(values[lag:], values[:-lag], equal_nan=True):
            return True
    if dates is None or dates.isna().any():
        return False
    days = dates.dt
    for part in (days.day_of_week, days.month, days.day, days.hour, days.year):
        n_parts = int(part.nunique())
        spread = pd.Series(values).groupby(part.to_numpy()).nunique(dropna=False)
        if 1 < n_parts < len(part) and (spread <= 1).all():
            return True
    return False


def _describe_steps(words: "pd.Series[Any]") -> str:
    """Say how far apart dates are, and how often they are not."""
    as_read = table_files.read_dates(words)
    if as_read.doubt:
        return as_read.doubt
    dates = as_read.readings[0]
    steps = dates.diff().dropna()
    if not len(steps):
        return "no calendar that is known"
    if (dates.dt.day == dates.dt.day.iloc[0]).all() and steps.dt.days.between(28, 31).all():
        return "a month apart"
    usual_step = steps.mode()[0]
    n_other_steps = int((steps != usual_step).sum())
    further_gaps = ""
    if n_other_steps:
        further_gaps = (
            f", but for {n_other_steps} step{'s' if n_other_steps > 1 else ''} of another length"
        )
    seconds = usual_step.total_seconds()
    units = {"day": 86_400, "hour": 3600, "minute": 60}
    unit = next((name for name, length in units.items() if seconds >= length), "second")
    count = seconds / units.get(unit, 1)
    step = f"{count:g} {unit}s"
    if count == 1:
        step = "an hour" if unit == "hour" else f"a {unit}"
    return f"{step} apart{further_gaps}"


def _season(numbers: Array) -> int | None:
    """Return the lag of the highest peak of the autocorrelation, if it stands out."""
    values = pd.Series(numbers).interpolate(limit_direction="both").to_numpy()
    max_lag = min(len(values) // 3, MAX_LAG)
    deviations = values - values.mean()
    if max_lag < 3 or not deviations.any():
        return None
    deviations = deviations / np.abs(deviations).max()
    covariances = correlate(deviations, deviations, method="fft")[len(deviations) - 1 :]
    correlations = covariances[: max_lag + 1] / covariances[0]
    peaks, _ = find_peaks(correlations, prominence=MIN_SEASONAL_CORRELATION / 2)
    threshold = max(MIN_SEASONAL_CORRELATION, 2 / math.sqrt(len(values)))
    peaks = peaks[(peaks > 1) & (correlations[peaks] > threshold)]
    return int(peaks[correlations[peaks].argmax()]) if len(peaks) else None


def codes_of(column: Column) -> dict[str, int]:
    """Return numbers that stand for the words of a column: 1 and 0 for yes and no."""
    words = column.values  # noqa: PD011 - of a Column
    truths = {word: TRUTH_OF_WORD.get(word.casefold()) for word in words}
    if len(truths) == N_TRUTHS and set(truths.values()) == {True, False}:
        return {word: int(truth is True) for word, truth in truths.items()}
    return {word: TRUTHS.get(word.casefold(), i) for i, word in enumerate(words)}
