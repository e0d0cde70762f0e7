r"""Reading a table of outcomes: columns by name, a stated scaling into [0, 1].

``resolved`` calls ``read_table`` once for a scenario with data; ``world`` replays the ``Table``.

``Table.resampled`` is the stationary bootstrap (Politis and Romano, Journal of the American
Statistical Association 89, 1994): rows follow one another as in the table, the first after the
last, and after each a new block begins with probability 1 / block at any row alike.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array, Mask
from regretless.market.core.errors import UserError, closest
from regretless.scenarios.config.data import DataSpec
from regretless.scenarios.config.files import DATA
from regretless.scenarios.number_texts import (
    MISSING,
    MISSING_MARKS,
    PLAIN,
    find_sentinel,
    may_be_thousands,
)
from regretless.scenarios.table_files import (
    Form,
    column_of,
    numeric,
    place,
    present_texts,
    read_frame,
    series_names,
    spelled,
    texts,
)
from regretless.scenarios.time_order import TimeOrder, order_of, sortable_order_of

MAX_LISTED = 8  # values in a message
MAX_NAMED_COLUMNS = 4  # in a sentence on clipped values
MIN_WRITTEN_SHARE = 0.0005  # of rows; a smaller one would be written as 0.0 %
UNIT_SCALE = (0.0, 1.0)  # of an outcome of which the file says nothing
# How a column says yes or no, in small letters; of other words ``codes`` makes 1 and 0.
YES = ("true", "1", "1.0", "yes", "y", "t", "ja", "oui", "si", "sí", "sì", "sim")
NO = ("false", "0", "0.0", "no", "n", "f", "nein", "nee", "nej", "non", "não")
TRUTHS = dict.fromkeys(YES, True) | dict.fromkeys(NO, False)
CODES_OF_TRUTH = (0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Table:
    """Outcomes and contexts of a data file.

    The features of ``contexts`` are as they stand in the file, then forecasts, scaled and clipped
    as their outcomes.
    """

    outcomes: Array  # (T, d), scaled and clipped into [0, 1]
    contexts: Array  # (T, f)
    shares: Mapping[str, float]  # of rows that were clipped, by forecast; of outcomes under ""
    names: tuple[str, ...] = ()  # of the features, as ``DataSpec.features_of`` has them
    index: tuple[str, ...] = ()  # what the data call each row; empty where they say nothing
    notes: tuple[str, ...] = ()  # what was done to the data, in sentences
    # Which outcomes (T, d) are known to be at least so much only; None where the file says nothing.
    is_censored: Mask | None = None

    @property
    def clipped(self) -> float:
        """Share of rows in which some outcome was clipped."""
        return self.shares[""]

    def resampled(self, block: int, rounds: int, rng: np.random.Generator) -> "Table":
        """Return so many rows, drawn in blocks of this mean length."""
        begins = rng.random(rounds) < 1 / block
        begins[0] = True
        first = np.maximum.accumulate(np.where(begins, np.arange(rounds), 0))
        starts = rng.integers(len(self.outcomes), size=rounds)
        rows = (starts[first] + np.arange(rounds) - first) % len(self.outcomes)
        return replace(
            self,
            outcomes=self.outcomes[rows],
            contexts=self.contexts[rows],
            index=tuple(self.index[row] for row in rows) if self.index else (),
            is_censored=None if self.is_censored is None else self.is_censored[rows],
        )


def read_table(spec: DataSpec) -> Table:
    """Read and scale a data file.

    ``spec``: a file that is not found is looked up among the bundled data sets. UserError if a
    column is missing, or has a value that the file does not allow for.
    """
    path = DATA / spec.file  # an absolute path stays itself
    if not path.is_file():
        fault = "is a folder" if path.is_dir() else "does not exist"
        raise UserError(f"data.file '{path.name}' {fault}; give a path from the scenario file")
    form = form_of(spec)
    frame = read_frame(path, f"data.file {spec.file}", form)
    key_of_column = _check_columns(spec, frame)
    frame = _one_series(frame, spec)
    index: tuple[str, ...] = ()
    time_notes: list[str] = []
    if spec.index is not None:
        frame, time_notes = _in_order(frame, spec.index, spec.dates, sort=spec.sort)
        index = texts(frame, spec.index, "data.index")
    numbers = {}
    for column, key in key_of_column.items():
        numbers[column] = numeric(frame, [column], key, form)[:, 0]
    raw_values = pd.DataFrame(numbers)
    columns_of_truths = list(dict.fromkeys(spec.censored_columns.values()))
    raw_truths = pd.DataFrame(
        {column: _truths_of(frame, column, spec, form) for column in columns_of_truths},
        index=raw_values.index,
    )
    has_gap = raw_values.isna().any(axis=1) | raw_truths.isna().any(axis=1)
    n_rows_with_gaps = int(has_gap.sum())
    values = _fill_or_drop_gaps(raw_values, has_gap, frame, spec)
    truths = _fill_or_drop_gaps(raw_truths, has_gap, frame, spec)
    outcomes, clipping = _scale_outcomes(values[spec.outcomes].to_numpy(), spec)
    clipping_of_forecast = {"": clipping}  # "" stands for the outcomes themselves
    features = [values[spec.context].to_numpy()]
    for name in spec.forecasts:
        forecast, clipping = _read_forecast(values, spec, name, frame)
        features.append(forecast)
        clipping_of_forecast[name] = clipping
    notes = time_notes
    shares = {name: clipping.share_of_rows for name, clipping in clipping_of_forecast.items()}
    for name, clipping in clipping_of_forecast.items():
        if clipping:
            notes.append(clipping.sentence(name, is_meant=spec.clip))
    notes += _notes_on_codes(spec)
    notes += _notes_on_groups(frame, list(key_of_column), form)
    if n_rows_with_gaps:
        done = "filled from the row before" if spec.missing == "previous" else "dropped"
        were = "rows lacked a value and were"
        if n_rows_with_gaps == 1:
            were = "row lacked a value and was"
        marks = _marks_of_gaps(frame, [*key_of_column, *columns_of_truths], form)
        notes.append(f"{n_rows_with_gaps} {were} {done}{marks}.")
    return Table(
        outcomes=outcomes,
        contexts=np.concatenate(features, axis=1),
        shares=shares,
        names=spec.features,
        index=tuple(index[row] for row in values.index) if index else (),
        notes=tuple(notes),
        is_censored=_censored_outcomes(truths, raw_values.loc[values.index], spec),
    )


def _censored_outcomes(
    truths: pd.DataFrame, raw_values: pd.DataFrame, spec: DataSpec
) -> Mask | None:
    """Return which outcomes (T, d) are censored; None without ``censored``.

    Parameters
    ----------
    truths : DataFrame
        By the columns that ``censored`` names, 1.0 where they say yes and 0.0 where they say no.
    raw_values : DataFrame
        The same rows as they stand in the file. An outcome that is missing there is not censored:
        what fills the gap is no lower limit.
    """
    if not spec.censored_columns:
        return None
    is_censored = np.zeros((len(truths), len(spec.outcomes)), dtype=np.bool_)
    for i, outcome in enumerate(spec.outcomes):
        if outcome in spec.censored_columns:
            says_yes = truths[spec.censored_columns[outcome]] == 1.0
            is_censored[:, i] = says_yes & raw_values[outcome].notna()
    return is_censored


def _truths_of(frame: pd.DataFrame, column: str, spec: DataSpec, form: Form) -> Array:
    """Return a column (T,) as 1.0 where it says yes, 0.0 where no, and NaN where it has a gap.

    UserError where it says neither yes nor no, and at a gap unless ``missing`` says what to do.
    """
    truths = np.full(len(frame), np.nan)
    codes = spec.codes.get(column, {})
    for row, written in enumerate(texts(frame, column, "data.censored")):
        text = written.strip()
        if codes.get(text) in CODES_OF_TRUTH:
            truths[row] = codes[text]
        elif text.casefold() in TRUTHS:
            truths[row] = TRUTHS[text.casefold()]
        elif not (form.gaps and form.is_missing(text)):
            finding = f"holds '{text}'" if text else "has no value"
            fault = f"column '{column}' {finding} in {place(frame, row)}"
            cure = "write true where the outcome is known to be at least so much, else false"
            if text:
                cure += f", or give each of its words 1 or 0 in data.codes.{column}"
            else:
                cure += ', or add missing = "drop"'
            raise UserError(f"data.censored: {fault}; {cure}")
    return truths


def form_of(spec: DataSpec) -> Form:
    """Return how the file of a specification is written."""
    return Form(
        separator=spec.separator,
        decimal=spec.decimal,
        thousands=spec.thousands,
        columns=tuple(spec.columns or ()),
        codes=spec.codes,
        missing_values=tuple(spec.missing_values),
        gaps=spec.missing is not None,
        keyed=True,
    )


def _one_series(frame: pd.DataFrame, spec: DataSpec) -> pd.DataFrame:
    """Return the rows of the series that is played; all where the file has one series only.

    UserError if it is not said which, or there is none of that name.
    """
    if spec.series is None:
        return frame
    names = series_names(frame, spec.series, "data.series")
    different = list(dict.fromkeys(names))
    chosen = spec.series_value
    if chosen is not None:
        chosen = chosen.strip()
    if chosen is None and len(different) > 1:
        listed = ", ".join(json.dumps(name, ensure_ascii=False) for name in different[:MAX_LISTED])
        if len(different) > MAX_LISTED:
            listed += f" and {len(different) - MAX_LISTED} more"
        fault = f"data.series: column '{spec.series}' tells {len(different)} series apart: {listed}"
        example = f"series_value = {json.dumps(different[0], ensure_ascii=False)}"
        study = 'a study with "data.series_value" in its [grid] plays several'
        raise UserError(f"{fault}; add {example}; {study}")
    if chosen is None:
        return frame
    if chosen not in different:
        fault = f"data.series_value: '{chosen}' is no value of column '{spec.series}'"
        raise UserError(f"{fault}; {closest(chosen, different)}")
    return frame.iloc[np.flatnonzero((names == chosen).to_numpy())]


def _in_order(
    frame: pd.DataFrame, index: str, dates: str | None, *, sort: bool
) -> tuple[pd.DataFrame, list[str]]:
    """Put rows in the order of the index if asked; also say what is strange in it otherwise."""
    index_texts = pd.Series(texts(frame, index, "data.index"), dtype=object)
    order = order_of(index_texts, dates)
    if sort:
        order = sortable_order_of(index_texts, "data.sort", dates)
        if not order.is_ascending:
            rows = order.sorted_rows()
            frame = frame.iloc[rows]
            order = TimeOrder(order.times[rows])
    fault = order.fault() if order is not None else ""
    return frame, [f"Column '{index}': {fault}."] if fault else []


def _notes_on_groups(frame: pd.DataFrame, columns: Sequence[str], form: Form) -> list[str]:
    """Return a note for each column whose decimal points may stand between thousands."""
    notes = []
    for column in columns:
        different = present_texts(frame, column, form)
        is_plain = form.style_of(column) == PLAIN and not form.says_thousands(column)
        if is_plain and may_be_thousands(different):
            value = PLAIN.read(different[0])
            read = f"column '{column}': '{different[0]}' was read as {value:g}"
            cure = 'if the point stands between thousands, add thousands = "." to [data]'
            notes.append(f"{read}; {cure}.")
    return notes


def _notes_on_codes(spec: DataSpec) -> list[str]:
    """Return a note for each outcome in which a mark for missing values was given a number."""
    notes = []
    for column in spec.outcomes:
        for text, number in spec.codes.get(column, {}).items():
            if text.casefold() in MISSING | MISSING_MARKS:
                usual = "which often stands for a missing value"
                notes.append(f"Outcome '{column}': codes make {number:g} of '{text}', {usual}.")
    return notes


def _marks_of_gaps(frame: pd.DataFrame, columns: Sequence[str], form: Form) -> str:
    """Name the marks, beside empty cells and NA, that were taken for missing values."""
    marks: set[str] = set()
    for column in columns:
        cells = column_of(frame, column, "data")
        different = {str(cell).strip() for cell in cells.unique()}
        codes = form.codes.get(column, {})
        for text in different:
            is_number = form.is_sentinel(PLAIN.read(text))
            is_gap = is_number or form.is_missing(text)
            if is_gap and text not in codes and text.casefold() not in MISSING:
                marks.add(text)
    named = ", ".join(f"'{mark}'" for mark in sorted(marks)[:MAX_LISTED])
    return f" ({named} counted as missing)" if marks else ""


def _check_columns(spec: DataSpec, frame: pd.DataFrame) -> dict[str, str]:
    """Return under which key each column is read first.

    UserError if the file lacks a column, or a key speaks of one that is not read.
    """
    key_of_column: dict[str, str] = {}
    for key, columns in spec.read.items():
        for column in columns:
            column_of(frame, column, key)
            key_of_column.setdefault(column, key)
    _check_known("scale", spec.scale, spec.outcomes, "outcome")
    _check_known("units", spec.units, spec.outcomes, "outcome")
    _check_known("censored", spec.censored_columns, spec.outcomes, "outcome")
    columns_of_truths = list(spec.censored_columns.values())
    for column in columns_of_truths:
        column_of(frame, column, "data.censored")
    # Codes of a column that is not read change nothing: somebody took it out of the context.
    _check_known("codes", spec.codes, [str(name) for name in frame], "column of the table")
    for key, marks in {"decimal": spec.decimal, "thousands": spec.thousands}.items():
        if isinstance(marks, dict):
            _check_known(key, marks, list(key_of_column), "column that is read")
    return key_of_column


def _check_known(key: str, columns: Iterable[str], known_columns: Sequence[str], what: str) -> None:
    """Raise UserError if a table under [data] speaks of a column that is none of the known."""
    for column in columns:
        if column not in known_columns:
            raise UserError(
                f"data.{key}: '{column}' is no {what}; {closest(column, known_columns)}"
            )


def _fill_or_drop_gaps(
    values: pd.DataFrame, has_gap: "pd.Series[bool]", frame: pd.DataFrame, spec: DataSpec
) -> pd.DataFrame:
    """Fill what is missing, or drop the rows that have a gap; rows keep their numbers.

    ``has_gap`` says of each row whether it lacks a value, here or in another column.
    """
    if spec.missing == "drop":
        values = values[~has_gap]
        if not len(values):
            raise UserError('data.missing = "drop" leaves no row: each lacks a value; fill some')
    for column in values.columns[values.iloc[0].isna()]:
        fault = f"'{column}' has no value in {place(frame, 0)}, which none precedes"
        raise UserError(f'data.missing = "previous": {fault}; fill it, or write "drop"')
    return values.ffill()


@dataclass(frozen=True)
class Clipping:
    """How much of a table was outside its scale and was clipped; false if nothing was."""

    share_of_rows: float  # in which some column was clipped
    share_by_column: Mapping[str, float]  # of the rows, of each column that was clipped at all

    def __bool__(self) -> bool:
        return self.share_of_rows > 0

    def sentence(self, forecast: str, *, is_meant: bool) -> str:
        """Say which columns were clipped, the most often clipped first.

        ``forecast`` names the forecast whose columns they are; it is empty for outcomes.
        ``is_meant`` says whether the scenario asks for it, with ``data.clip``.
        """
        rows = f"rows of forecast {forecast}" if forecast else "rows"
        ranked = sorted(self.share_by_column.items(), key=lambda item: -item[1])
        columns = [f"{column} {_percent(share)}" for column, share in ranked[:MAX_NAMED_COLUMNS]]
        if len(ranked) > MAX_NAMED_COLUMNS:
            columns.append(f"and {len(ranked) - MAX_NAMED_COLUMNS} more columns")
        share = _percent(self.share_of_rows)
        intention = ", as data.clip = true says" if is_meant else ""
        shares_of_columns = ", ".join(columns)
        return (
            f"{share} of all {rows} were outside their scale and were clipped{intention}: "
            f"{shares_of_columns}."
        )


def _percent(share: float) -> str:
    """Write a share above 0 in per cent, never as 0."""
    if share < MIN_WRITTEN_SHARE:
        return f"below {100 * MIN_WRITTEN_SHARE:.1f} %"
    return f"{100 * share:.1f} %"


def _clip(scaled: Array, columns: Sequence[str]) -> tuple[Array, Clipping]:
    """Clip scaled values (T, k) of these columns; say how much of each was outside [0, 1]."""
    clipped = np.clip(scaled, 0, 1)
    outside = clipped != scaled
    shares = dict(zip(columns, outside.mean(axis=0).tolist(), strict=True))
    share_by_column = {column: share for column, share in shares.items() if share}
    return clipped + 0.0, Clipping(float(outside.any(axis=1).mean()), share_by_column)


def _scale_outcomes(raw: Array, spec: DataSpec) -> tuple[Array, Clipping]:
    """Scale and clip outcomes (T, d); also say what was clipped.

    UserError if an outcome without a scale has values outside [0, 1].
    """
    low, high = np.array([spec.scale.get(column, UNIT_SCALE) for column in spec.outcomes]).T
    scaled = (raw - low) / (high - low)
    is_outside = ((scaled < 0) | (scaled > 1)).any(0)
    ranges = []
    scales = []
    for i, column in enumerate(spec.outcomes):
        if column not in spec.scale and is_outside[i]:
            values = raw[:, i]
            sentinel = find_sentinel(values)
            if sentinel is not None:
                count = int((values == sentinel).sum())
                fault = f"data.outcomes: '{column}' is {sentinel:g} in {count} rows"
                reason = "far from all others, as a mark for missing values is"
                cure = f"add missing_values = [{sentinel:g}] and missing, or a scale if it is meant"
                raise UserError(f"{fault}, {reason}; {cure}")
            smallest = f"{values.min():g}"
            greatest = f"{values.max():g}"
            ranges.append(f"'{column}' runs from {smallest} to {greatest}")
            scales.append(f"{spelled(column)} = [{smallest}, {greatest}]")
    if ranges:
        fault = f"data.outcomes: {', '.join(ranges)}, outside [0, 1]"
        raise UserError(f"{fault}; add scale = {{ {', '.join(scales)} }}")
    return _clip(scaled, spec.outcomes)


def _read_forecast(
    values: pd.DataFrame, spec: DataSpec, name: str, frame: pd.DataFrame
) -> tuple[Array, Clipping]:
    """Read a forecast (T, k), scaled and clipped as outcomes are; also say what was clipped.

    Quantiles ascend before and after: a reversed scale reverses their columns, too. UserError if
    they do not ascend.
    """
    forecast = spec.forecasts[name]
    has_quantiles = forecast.kind == "quantiles"
    scaled_parts = []
    column_names: list[str] = []
    for outcome, columns in zip(spec.outcomes, forecast.columns, strict=True):
        raw = values[columns].to_numpy()
        if has_quantiles:
            _check_ascending(raw, columns, values, frame, where=f"data.forecasts.{name}")
        low, high = spec.scale.get(outcome, UNIT_SCALE)
        if has_quantiles and low > high:
            raw = raw[:, ::-1]
            columns = columns[::-1]  # noqa: PLW2901 - names follow their values
        column_names += columns
        scaled_parts.append((raw - low) / (high - low))
    return _clip(np.concatenate(scaled_parts, axis=1), column_names)


def _check_ascending(
    quantiles: Array,
    columns: Sequence[str],
    values: pd.DataFrame,
    frame: pd.DataFrame,
    *,
    where: str,
) -> None:
    """Raise UserError at the first row in which a quantile (T, k) is below the one before it.

    ``values`` are numbered as the rows of the file, ``frame``.
    """
    for row, i in np.argwhere(np.diff(quantiles, axis=1) < 0)[:1]:
        location = place(frame, values.index[row])
        fault = f"'{columns[i + 1]}' is below '{columns[i]}' in {location}"
        raise UserError(f"{where}: {fault}; order the columns as the levels are")
