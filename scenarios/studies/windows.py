"""Regret over windows of rounds, run by run and averaged over seeds.

Where the runs of a study take regret over windows (``market.logs.windows``), as after each change
of regime, a measure of a window is the mean or the maximum over a cohort's logged agents. Over the
seeds of a setting, independent repetitions, it has the mean and the 95 % Student interval of
``analysis.interval``. A window that a cohort did not play in a run is missing there.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from regretless.market.logs.heads import with_counts
from regretless.scenarios.studies.analysis import INTERVAL, REGRETS, interval, losses_of

WINDOW = ["cohort", "first", "last"]
MEASURES = (
    "mean_loss",
    *(f"{regret}_{which}" for regret in REGRETS for which in ("mean", "worst")),
)


def windows_of(windows: pd.DataFrame, agents: pd.DataFrame) -> pd.DataFrame:
    """Sum up a run's windows table, one row per cohort and window.

    Returns
    -------
    frame
        ``cohort``, ``first``, ``last`` and ``MEASURES``: per round of the window, losses in [0, 1].
        What was not measured is NaN.
    """
    cohort = windows["agent"].map(agents.set_index("agent")["cohort"])
    rows = with_counts(windows.assign(cohort=cohort), agents)
    return losses_of(rows, WINDOW).reset_index()


def windows_table(windows: pd.DataFrame, parameters: pd.DataFrame) -> pd.DataFrame:
    """Mean and interval over seeds of every window's measures, per setting and cohort.

    Parameters
    ----------
    windows : frame
        ``run`` and the columns of ``windows_of``, of all runs.
    parameters : frame
        ``run``, ``seed`` and the keys.

    Returns
    -------
    frame
        The keys, ``cohort``, ``first``, ``last``, ``measure`` (one of ``MEASURES``), ``seeds``,
        ``mean``, ``low``, ``high``. Measures that no run of a setting has are left out.
    """
    keys = [str(key) for key in parameters if key not in {"run", "seed"}]
    runs = parameters.merge(windows, on="run")
    rows = [
        [*place, *found]
        for place, group in runs.groupby([*keys, *WINDOW], sort=False)
        for found in _measured(group)
    ]
    types: dict[str, Any] = {key: parameters[key].dtype for key in keys}
    types |= {"cohort": "str", "first": "int64", "last": "int64", "measure": "str"}
    types |= {"seeds": "int64"} | dict.fromkeys(INTERVAL, "float64")
    return pd.DataFrame(rows, columns=list(types)).astype(types)


def _measured(group: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """Yield measure, seeds and interval of one window."""
    for measure in MEASURES:
        values = group[measure].dropna().to_numpy()
        if len(values):
            yield measure, len(values), *interval(values)
