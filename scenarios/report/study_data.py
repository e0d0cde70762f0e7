"""What the page of a study is drawn from: its tables, and curves by setting, each read once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from regretless.scenarios.logs.reading import log_parts, regret_curves, thinned
from regretless.scenarios.studies.analysis.measures import (
    REGRETS,
    interval,
    keys_of,
)
from regretless.scenarios.studies.results import Study
from regretless.scenarios.studies.study_runs import run_table

COLUMNS_BESIDE_KEYS = {  # of tables that have a column per key
    "value": ("cohort", "baseline", "pairs", "mean", "low", "high"),
    "impulse_response": ("offset", "cohort", "agent", "measure", "seeds", "mean", "low", "high"),
    "windows": ("cohort", "first", "last", "measure", "seeds", "mean", "low", "high"),
}


@dataclass(frozen=True, eq=False)
class StudyData:
    """What the figures of a study are drawn from, each table read once."""

    study: Study
    _tables: dict[str, pd.DataFrame] = field(default_factory=dict)

    @cached_property
    def lists_settings(self) -> bool:
        """Whether settings are listed: a line or a row for each sampled point shows nothing."""
        return self.study.sample is None

    def table(self, name: str) -> pd.DataFrame:
        """Return a table of the study, by the name of the method that returns it."""
        if name not in self._tables:
            self._tables[name] = getattr(self.study, name)()
        return self._tables[name]

    @cached_property
    def curves(self) -> pd.DataFrame | None:
        """Regret over time by setting; None where the logs are too large."""
        if not self.lists_settings:
            return pd.DataFrame()
        return setting_curves(self.study, setting_names(self.table("parameters")))

    @cached_property
    def impulse(self) -> pd.DataFrame:
        """Mean actions around an impulse, with it and without, by setting."""
        if not self.lists_settings or not self.study.has_impulse:
            return pd.DataFrame()
        table = self.table("impulse_response")
        rows = table[table["measure"].isin(["action", "action_without"])]
        return rows.assign(
            setting=setting_names(rows, beside=COLUMNS_BESIDE_KEYS["impulse_response"])
        )

    @cached_property
    def windows(self) -> pd.DataFrame:
        """Mean regret by window and setting, of the finest regret that was kept."""
        if not self.lists_settings or not self.study.has_windows:
            return pd.DataFrame()
        table = self.table("windows")
        for regret in reversed(REGRETS):
            rows = table[table["measure"] == f"{regret}_mean"]
            if len(rows):
                names = setting_names(rows, beside=COLUMNS_BESIDE_KEYS["windows"])
                return rows.assign(setting=names)
        return pd.DataFrame()


def setting_names(frame: pd.DataFrame, *, beside: tuple[str, ...] = ("run", "seed")) -> pd.Series:
    """Name the setting of each row by the values of its keys."""
    keys = keys_of(frame, beside=beside)
    names_of_rows: Any = "the scenario as it is"
    if frame.empty:
        names_of_rows = ""
    elif keys:
        names_of_rows = frame[keys].astype(str).agg(", ".join, axis=1)
    names = pd.Series(names_of_rows, index=frame.index, dtype="str")
    return names.set_axis(frame["run"]) if "run" in frame else names


MAX_LOG_BYTES = 400_000_000  # of all regret logs, that are read for a page
MIN_POINTS = 20  # of a curve
MAX_POINTS = 120
MAX_POINTS_OF_ALL_SETTINGS = 12_000  # so that a page of many stays small
CURVES = ["setting", "cohort", "round", "seeds", "mean", "low", "high"]


def setting_curves(study: Study, settings: pd.Series[str]) -> pd.DataFrame | None:
    """Average the regret logs of a study: ``CURVES``, a row per setting, cohort and round.

    ``settings`` names each run's setting, by run. None where the logs are too large.
    """
    folders = study.folders()
    n_bytes = 0
    for folder in folders.values():
        log = folder / "regret_log.parquet"
        n_bytes += log.stat().st_size if log.exists() else 0
    if n_bytes > MAX_LOG_BYTES:
        return None
    n_settings = max(settings.nunique(), 1)
    n_points = int(np.clip(MAX_POINTS_OF_ALL_SETTINGS // n_settings, MIN_POINTS, MAX_POINTS))
    parts = []
    for run, folder in folders.items():
        curve = regret_curves(log_parts(folder), run_table(folder, "agents"))
        if len(curve):
            rounds = thinned(curve.index.unique("round").to_numpy(), n_points)
            is_shown = curve.index.isin(rounds, level="round")
            mean = curve["mean"][is_shown].dropna().reset_index()
            parts.append(mean.assign(setting=settings[run]))
    if not parts or max(part["round"].nunique() for part in parts) < 2:
        return pd.DataFrame(columns=CURVES)
    groups = pd.concat(parts).groupby(["setting", "cohort", "round"], sort=False)["mean"]
    rows = [[*keys, len(means), *interval(means.to_numpy())] for keys, means in groups]
    return pd.DataFrame(rows, columns=CURVES)
