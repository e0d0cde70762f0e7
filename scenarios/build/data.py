"""Reading a table of outcomes: columns by name, a stated scaling into [0, 1]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from regretless.market.core.errors import UserError, closest
from regretless.scenarios.spec.data import DataSpec, ForecastColumnsSpec
from regretless.scenarios.spec.files import DATA

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Table:
    """Outcomes and contexts of a data file.

    Parameters
    ----------
    outcomes : array (T, d)
        Scaled and clipped into [0, 1].
    contexts : array (T, f)
        Features as they stand in the file, then forecasts, scaled and clipped as their outcomes.
    clipped : float
        Share of rows in which some outcome was clipped.
    names : tuple of str
        Of the features, the forecasts' as ``DataSpec.features_of`` has them.
    """

    outcomes: Array
    contexts: Array
    clipped: float
    names: tuple[str, ...] = ()


def read_table(spec: DataSpec) -> Table:
    """Read and scale a data file.

    Parameters
    ----------
    spec : DataSpec
        A file that is not found is looked up among the bundled data sets.

    Raises
    ------
    UserError
        If the file cannot be read, a column is missing, not numeric or has gaps, or an outcome
        without a scale leaves [0, 1].
    """
    path = DATA / spec.file  # an absolute path stays itself
    if not path.is_file():
        name = path.name
        raise UserError(f"data.file '{name}' does not exist; give a path from the scenario file")
    frame = read_frame(path, f"data.file {spec.file}")
    raw = numeric(frame, spec.outcomes, "data.outcomes")
    for column in spec.scale:
        if column not in spec.outcomes:
            raise UserError(
                f"data.scale: '{column}' is no outcome; {closest(column, spec.outcomes)}"
            )
    ends = np.array([spec.scale.get(column, [0.0, 1.0]) for column in spec.outcomes])
    scaled = (raw - ends[:, 0]) / (ends[:, 1] - ends[:, 0])
    outside = (scaled < 0) | (scaled > 1)
    for i, column in enumerate(spec.outcomes):
        if column not in spec.scale and outside[:, i].any():
            low, high = raw[:, i].min(), raw[:, i].max()
            raise UserError(
                f"data.outcomes: '{column}' runs from {low:g} to {high:g}, outside [0, 1]; "
                f"add scale = {{ {column} = [{low:g}, {high:g}] }}"
            )
    contexts = [numeric(frame, spec.context, "data.context")]
    contexts += [
        part
        for name, own in spec.forecasts.items()
        for part in _forecasts(frame, own, ends, f"data.forecasts.{name}")
    ]
    return Table(
        np.clip(scaled, 0, 1) + 0.0,
        np.concatenate(contexts, axis=1),
        float(outside.any(1).mean()),
        spec.features,
    )


def _forecasts(
    frame: pd.DataFrame, spec: ForecastColumnsSpec, ends: Array, key: str
) -> Iterator[Array]:
    """Read a forecast of each outcome (T, k), scaled and clipped as the outcome is.

    Quantiles ascend before and after: a reversed scale reverses their columns, too.
    """
    for columns, (low, high) in zip(spec.columns, ends, strict=True):
        raw = numeric(frame, columns, key)
        if spec.kind == "quantiles":
            for row, i in np.argwhere(np.diff(raw, axis=1) < 0)[:1]:
                there = f"'{columns[i + 1]}' is below '{columns[i]}' in data row {row + 1}"
                raise UserError(f"{key}: {there}; order the columns as the levels are")
            raw = raw[:, ::-1] if low > high else raw
        yield np.clip((raw - low) / (high - low), 0, 1) + 0.0


def read_frame(path: Path, where: str) -> pd.DataFrame:
    """Read an existing .csv or .parquet file with at least one row; UserError, under ``where``."""
    readers: dict[str, Any] = {".csv": pd.read_csv, ".parquet": pd.read_parquet}
    if path.suffix not in readers:
        raise UserError(f"{where} has the ending '{path.suffix}'; use .csv or .parquet")
    try:
        frame: pd.DataFrame = readers[path.suffix](path)
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{where} cannot be read: {reason}; mend the file") from error
    if frame.empty:
        raise UserError(f"{where} has no rows; give it at least one")
    return frame


def numeric(frame: pd.DataFrame, columns: list[str], key: str) -> Array:
    """Return columns (T, k) as numbers; UserError, under ``key``, where a value is none."""
    for column in columns:
        if column not in frame:
            raise UserError(f"{key}: no column '{column}'; {closest(column, map(str, frame))}")
        if frame[column].dtype.kind in "mM":
            raise UserError(f"{key}: column '{column}' holds dates; every value must be a number")
        numbers = pd.to_numeric(frame[column], errors="coerce")
        bad = np.flatnonzero(~np.isfinite(numbers.to_numpy(dtype=np.float64)))
        if len(bad):
            value = frame[column].iloc[bad[0]]
            raise UserError(
                f"{key}: column '{column}' holds '{value}' in data row {bad[0] + 1}; "
                "every value must be a finite number"
            )
    return frame[columns].to_numpy(dtype=np.float64)
