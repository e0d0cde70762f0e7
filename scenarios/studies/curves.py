"""Regret over time by setting: the runs' regret logs, averaged over agents and then over seeds.

Each run is one repetition: the mean over a cohort's logged agents at a round. Over the seeds of a
setting these have a mean and a 95 % Student interval (``analysis.interval``). Logs are read run by
run in bounded memory, and not at all where they are larger than ``MOST_BYTES`` in all.
"""

from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from regretless.scenarios.logs.curves import log_parts, regret_curves, thinned
from regretless.scenarios.studies.analysis.measures import LEVEL
from regretless.scenarios.studies.results import Study, run_table

MOST_BYTES = 400_000_000
FEWEST, POINTS = 20, 120  # of a curve
TOGETHER = 12_000  # points of all settings, so that a page of many stays small
COLUMNS = ["setting", "cohort", "round", "seeds", "mean", "low", "high"]


def setting_curves(study: Study, settings: "pd.Series[str]") -> pd.DataFrame | None:
    """Average the regret logs of a study.

    Parameters
    ----------
    settings : series
        The name of each run's setting, indexed by run.

    Returns
    -------
    frame or None
        ``COLUMNS``, a row per setting, cohort and round; None where the logs are too large. Without
        logs of at least two rounds it is empty.
    """
    homes = study.homes()
    logs = (home / "regret_log.parquet" for home in homes.values())
    if sum(log.stat().st_size for log in logs if log.exists()) > MOST_BYTES:
        return None
    points = int(np.clip(TOGETHER // max(settings.nunique(), 1), FEWEST, POINTS))
    parts = []
    for run, home in homes.items():
        agents = run_table(home, "agents")
        curve = regret_curves(log_parts(home), agents)
        if len(curve):
            parts.append(_thinned(curve, points).assign(setting=settings[run]))
    if not parts or max(part["round"].nunique() for part in parts) < 2:
        return pd.DataFrame(columns=COLUMNS)
    return _averaged(pd.concat(parts, ignore_index=True))


def _thinned(curve: pd.DataFrame, points: int) -> pd.DataFrame:
    """Keep at most ``points`` rounds, the same in all runs of as many rounds, with both ends."""
    rounds = thinned(curve.index.unique("round").to_numpy(), points)
    kept = curve[curve.index.isin(rounds, level="round")]
    return kept["mean"].dropna().reset_index()


def _averaged(curves: pd.DataFrame) -> pd.DataFrame:
    """Return mean and interval over the runs of each setting, cohort and round."""
    groups = curves.groupby(["setting", "cohort", "round"], sort=False)["mean"]
    table = groups.agg(["count", "mean", "std"]).reset_index()
    count = table["count"].to_numpy()
    with np.errstate(invalid="ignore"):
        quantile: Any = stats.t.ppf((1 + LEVEL) / 2, np.where(count > 1, count - 1, np.nan))
        half = quantile * table["std"] / np.sqrt(count)
    table = table.assign(seeds=count, low=table["mean"] - half, high=table["mean"] + half)
    return table[COLUMNS]
