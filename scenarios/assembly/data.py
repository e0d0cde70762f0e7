r"""Reading a table of outcomes: columns by name, a stated scaling into [0, 1].

``Table.resampled`` is the stationary bootstrap (Politis and Romano, Journal of the American
Statistical Association 89, 1994): rows follow one another as in the table, the first after the
last, and after each a new block begins with probability 1 / block at any row alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError, closest
from regretless.scenarios.config.data import DataSpec
from regretless.scenarios.config.files import DATA
from regretless.scenarios.table_files import (
    Form,
    column_of,
    numeric,
    place,
    read_frame,
    spelled,
    texts,
)

MOST_COLUMNS = 4  # that a sentence on clipped values names
LEAST_SHARE = 0.0005  # of rows; a smaller one would be written as 0.0 %


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
        index = tuple(self.index[row] for row in rows) if self.index else ()
        outcomes, contexts = self.outcomes[rows], self.contexts[rows]
        return replace(self, outcomes=outcomes, contexts=contexts, index=index)


def read_table(spec: DataSpec) -> Table:
    """Read and scale a data file.

    ``spec``: a file that is not found is looked up among the bundled data sets.
    """
    path = DATA / spec.file  # an absolute path stays itself
    if not path.is_file():
        there = f"data.file '{path.name}' does not exist"
        raise UserError(f"{there}; give a path from the scenario file")
    form = Form(spec.separator, spec.decimal, spec.codes, spec.missing is not None, keyed=True)
    frame = read_frame(path, f"data.file {spec.file}", form)
    key_of: dict[str, str] = {}
    for key, columns in spec.read.items():
        for column in columns:
            column_of(frame, column, key)
            key_of.setdefault(column, key)
    for key, given, known, what in (
        ("scale", spec.scale, spec.outcomes, "outcome"),
        ("units", spec.units, spec.outcomes, "outcome"),
        ("codes", spec.codes, list(key_of), "column that is read"),
    ):
        for column in given:
            if column not in known:
                raise UserError(f"data.{key}: '{column}' is no {what}; {closest(column, known)}")
    index = () if spec.index is None else texts(frame, spec.index, "data.index")
    read = pd.DataFrame({c: numeric(frame, [c], key, form)[:, 0] for c, key in key_of.items()})
    values, gaps = _mended(read, frame, spec), int(read.isna().any(axis=1).sum())
    outcomes, clipping = _scaled(values[spec.outcomes].to_numpy(), spec)
    clippings = {"": clipping}
    parts = [values[spec.context].to_numpy()]
    for name in spec.forecasts:
        part, clippings[name] = _forecast(values, spec, name, frame)
        parts.append(part)
    shares = {name: clipping.share_of_rows for name, clipping in clippings.items()}
    notes = [clipping.sentence(name) for name, clipping in clippings.items() if clipping]
    if gaps:
        done = "filled from the row before" if spec.missing == "previous" else "dropped"
        were = "rows lacked a value and were" if gaps > 1 else "row lacked a value and was"
        notes.append(f"{gaps} {were} {done}.")
    called = tuple(index[row] for row in values.index) if index else ()
    contexts = np.concatenate(parts, axis=1)
    return Table(outcomes, contexts, shares, spec.features, called, tuple(notes))


def _mended(values: pd.DataFrame, frame: pd.DataFrame, spec: DataSpec) -> pd.DataFrame:
    """Fill or drop what is missing; rows keep their numbers."""
    if spec.missing == "drop":
        values = values.dropna()
        if not len(values):
            raise UserError('data.missing = "drop" leaves no row: each lacks a value; fill some')
    for column in values.columns[values.iloc[0].isna()]:
        there = f"'{column}' has no value in {place(frame, 0)}, which none precedes"
        raise UserError(f'data.missing = "previous": {there}; fill it, or write "drop"')
    return values.ffill()


@dataclass(frozen=True)
class Clipping:
    """How much of a table was outside its scale and was clipped; false if nothing was."""

    share_of_rows: float  # in which some column was clipped
    share_by_column: Mapping[str, float]  # of the rows, of each column that was clipped at all

    def __bool__(self) -> bool:
        return self.share_of_rows > 0

    def sentence(self, forecast: str) -> str:
        """Say which columns were clipped, the most often clipped first.

        ``forecast`` names the forecast whose columns they are; it is empty for outcomes.
        """
        rows = f"rows of forecast {forecast}" if forecast else "rows"
        ranked = sorted(self.share_by_column.items(), key=lambda item: -item[1])
        columns = [f"{column} {_percent(share)}" for column, share in ranked[:MOST_COLUMNS]]
        if len(ranked) > MOST_COLUMNS:
            columns.append(f"and {len(ranked) - MOST_COLUMNS} more columns")
        share = _percent(self.share_of_rows)
        return f"{share} of all {rows} were outside their scale and were clipped: " + (
            ", ".join(columns) + "."
        )


def _percent(share: float) -> str:
    """Write a share above 0 in per cent, never as 0."""
    return f"{100 * share:.1f} %" if share >= LEAST_SHARE else f"below {100 * LEAST_SHARE:.1f} %"


def _clipped(scaled: Array, columns: Sequence[str]) -> tuple[Array, Clipping]:
    """Clip scaled values (T, k) of these columns; say how much of each was outside [0, 1]."""
    clipped = np.clip(scaled, 0, 1)
    outside = clipped != scaled
    shares = dict(zip(columns, outside.mean(axis=0).tolist(), strict=True))
    share_by_column = {column: share for column, share in shares.items() if share}
    return clipped + 0.0, Clipping(float(outside.any(axis=1).mean()), share_by_column)


def _scaled(raw: Array, spec: DataSpec) -> tuple[Array, Clipping]:
    """Scale and clip outcomes (T, d); also say what was clipped."""
    low, high = np.array([spec.scale.get(column, (0.0, 1.0)) for column in spec.outcomes]).T
    scaled = (raw - low) / (high - low)
    outside = ((scaled < 0) | (scaled > 1)).any(0)
    ranges = {
        column: f"{raw[:, i].min():g}, {raw[:, i].max():g}"
        for i, column in enumerate(spec.outcomes)
        if column not in spec.scale and outside[i]
    }
    if ranges:
        found = (f"'{c}' runs from {ends.replace(',', ' to')}" for c, ends in ranges.items())
        scale = (f"{spelled(c)} = [{ends}]" for c, ends in ranges.items())
        there = f"data.outcomes: {', '.join(found)}, outside [0, 1]"
        raise UserError(f"{there}; add scale = {{ {', '.join(scale)} }}")
    return _clipped(scaled, spec.outcomes)


def _forecast(
    values: pd.DataFrame, spec: DataSpec, name: str, frame: pd.DataFrame
) -> tuple[Array, Clipping]:
    """Read a forecast (T, k), scaled and clipped as outcomes are; also say what was clipped.

    Quantiles ascend before and after: a reversed scale reverses their columns, too.
    """
    own, parts, names = spec.forecasts[name], [], list[str]()
    for outcome, columns in zip(spec.outcomes, own.columns, strict=True):
        raw, (low, high) = values[columns].to_numpy(), spec.scale.get(outcome, (0.0, 1.0))
        if own.kind == "quantiles":
            for row, i in np.argwhere(np.diff(raw, axis=1) < 0)[:1]:
                at = place(frame, values.index[row])
                there = f"'{columns[i + 1]}' is below '{columns[i]}' in {at}"
                cure = "order the columns as the levels are"
                raise UserError(f"data.forecasts.{name}: {there}; {cure}")
            raw = raw[:, ::-1] if low > high else raw
        names += columns[::-1] if own.kind == "quantiles" and low > high else columns
        parts.append((raw - low) / (high - low))
    return _clipped(np.concatenate(parts, axis=1), names)
