r"""What a study says: cohorts run by run, the value of a forecast, and the effect of every key.

**Value of a forecast.** Two runs that differ in ``forecaster.kind`` alone and have the same seed
share their random streams (common random numbers): the same population, the same draws of nature.
With D_s the welfare of a cohort (mean utility per agent and round, in the utility's own units) with
Decision-Swap minus that with another forecast, at seed s of n, the value is the mean of D_s with
the 95 % Student interval

    mean(D) +- t_{n-1, 0.975} sd(D) / sqrt(n)

over seeds as independent repetitions (Law, *Simulation Modeling and Analysis*, 5th ed., 10.2). It
has no interval with one seed. Against an adversary that reacts the outcomes may differ: that is
part of the value.

**Effects.** For each value of a key, a measure is averaged over the settings of all other keys,
seed by seed, and the interval is over seeds. A seed counts if it has a run for every setting with
that value. In a full grid these are main effects; in a list, keys that vary together are not told
apart.

Where seeds resample the data of one history (``data.bootstrap``), each is a replicate of what might
have been measured: the ends are then quantiles of the replicates, and more of them do not bring
them closer together (Efron and Tibshirani, *An Introduction to the Bootstrap*, ch. 13).

**Windows.** Where the runs of a study take regret over windows of rounds (``market.logs.windows``),
as after each change of regime, a measure of a window is the mean or the maximum over a cohort's
logged agents, and over the seeds of a setting it has the same interval. A window that a cohort did
not play in a run is missing there.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from regretless.market.logs.heads import COUNT, means_of, with_counts
from regretless.market.logs.welfare import cohort_welfare

FORECASTER, OURS = "forecaster.kind", "decision-swap"
LEVEL = 0.95
REGRETS = ("external_regret", "swap_regret", "decision_swap_regret")
MEASURES = (
    "mean_loss",
    "swap_regret_mean",
    "swap_regret_worst",
    "decision_swap_regret_mean",
    "decision_swap_regret_worst",
    "exploitability_worst",
    "welfare_mean",
    "welfare_gini",
)
LOSSES = ("mean_loss", *(f"{regret}_{which}" for regret in REGRETS for which in ("mean", "worst")))
COHORTS = [
    "run",
    "cohort",
    "agents",
    *LOSSES,
    "exploitability_worst",
    "welfare_mean",
    "welfare_gini",
    "welfare_mean_difference",
]
INTERVAL = ["mean", "low", "high"]
Ends = Callable[[Any], tuple[float, float, float]]  # of values by seed: mean, low, high
WINDOW = ["cohort", "first", "last"]
EFFECTS = {
    **dict.fromkeys(["key", "value", "cohort", "measure"], "str"),
    "seeds": "int64",
    **dict.fromkeys(INTERVAL, "float64"),
}
VALUE = {"cohort": "str", "baseline": "str", "pairs": "int64"} | dict.fromkeys(INTERVAL, "float64")


def cohorts_of(agents: pd.DataFrame, run: int) -> pd.DataFrame:
    """Sum up a run's agents table, one row per cohort.

    Returns
    -------
    frame
        The columns ``COHORTS``: regrets per round with losses in [0, 1], welfare per round in the
        utility's own units. What was not measured is NaN.
    """
    groups = agents.groupby("cohort", sort=False)
    sizes = groups[COUNT].sum() if COUNT in agents else groups.size()
    table = losses_of(agents, ["cohort"]).assign(agents=sizes)
    table["exploitability_worst"] = groups["exploitability"].max()
    welfare = cohort_welfare(agents)
    return table.reset_index().merge(welfare, on="cohort", sort=False).assign(run=run)[COHORTS]


def own_of(measures: pd.DataFrame, agents: pd.DataFrame) -> pd.DataFrame:
    """Sum up a run's own measures: means over logged rounds and agents, one row per cohort.

    What a measure says of the whole round holds for every cohort.

    Parameters
    ----------
    measures, agents : frame
        The run's tables.

    Returns
    -------
    frame
        By cohort, a column per measure; NaN for a cohort of which it says nothing.
    """
    homes = agents.set_index("agent")["cohort"]
    cohort = measures["cohort"].where(measures["cohort"] != "", measures["agent"].map(homes))
    found = with_counts(measures.assign(cohort=cohort), agents)
    means = means_of(found, ["cohort", "measure"], ["value"]).reset_index()
    table = means.pivot_table(index="cohort", columns="measure", values="value")
    table = table.reindex(pd.Index(homes.unique(), name="cohort"))
    for name, value in found[found["cohort"].isna()].groupby("measure")["value"].mean().items():
        table[name] = value
    return table.rename_axis(columns=None)


def losses_of(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Mean loss, and mean and worst of each regret, of groups of agents or windows."""
    means, worst = means_of(rows, by, ["mean_loss", *REGRETS]), rows.groupby(list(by), sort=False)
    table = means[["mean_loss"]].copy()
    for regret in REGRETS:
        table[f"{regret}_mean"] = means[regret]
        table[f"{regret}_worst"] = worst[regret].max()
    return table


def interval(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float, float]:
    """Mean and 95 % Student interval of independent repetitions.

    Parameters
    ----------
    values : array (n,)

    Returns
    -------
    mean, low, high : float
        The ends are NaN with fewer than two values, and so is the mean with none.
    """
    sample = np.asarray(values, dtype=np.float64)
    if not len(sample):
        return float("nan"), float("nan"), float("nan")
    mean = float(sample.mean())
    if len(sample) < 2:
        return mean, float("nan"), float("nan")
    reach = special.stdtrit(len(sample) - 1, (1 + LEVEL) / 2) * sample.std(ddof=1)
    half = float(reach / np.sqrt(len(sample)))
    return mean, mean - half, mean + half


def replicates(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float, float]:
    """Mean and 95 % percentile interval of bootstrap replicates: of one history, not of a mean."""
    mean, _, _ = interval(values)
    if len(values) < 2:
        return mean, float("nan"), float("nan")
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return mean, float(low), float(high)


def value_table(
    cohorts: pd.DataFrame, parameters: pd.DataFrame, ends: Ends = interval
) -> pd.DataFrame:
    """Value of Decision-Swap against each other forecast, per cohort and setting of the other keys.

    Parameters
    ----------
    cohorts : frame
        With the columns ``COHORTS``.
    parameters : frame
        ``run``, ``seed`` and the keys.

    Returns
    -------
    frame
        ``cohort``, the other keys, ``baseline``, ``pairs``, and ``mean``, ``low``, ``high`` of the
        difference. Empty where the study does not vary the forecaster.
    """
    others = [key for key in parameters if key not in {"run", "seed", FORECASTER}]
    columns = ["cohort", *others, "baseline", "pairs", *INTERVAL]
    rows = []
    if FORECASTER in parameters:
        runs = parameters.merge(cohorts[["run", "cohort", "welfare_mean"]], on="run")
        for place, group in runs.groupby(["cohort", *others], sort=False):
            wide = group.pivot_table(index="seed", columns=FORECASTER, values="welfare_mean")
            rows += [[*place, *found] for found in _differences(wide, ends)]
    types = VALUE | {key: parameters[key].dtype for key in others}
    return pd.DataFrame(rows, columns=columns).astype(types)


def _differences(wide: pd.DataFrame, ends: Ends) -> Iterator[tuple[Any, ...]]:
    """Yield baseline, pairs and interval from a table of seeds by forecasters."""
    for baseline in wide.columns if OURS in wide else ():
        if baseline != OURS:
            pairs = (wide[OURS] - wide[baseline]).dropna().to_numpy()
            yield baseline, len(pairs), *ends(pairs)


def effects_table(
    cohorts: pd.DataFrame, parameters: pd.DataFrame, ends: Ends = interval
) -> pd.DataFrame:
    """Mean of every measure for each value of each key, with intervals over seeds.

    Returns
    -------
    frame
        ``key``, ``value`` (JSON text), ``cohort``, ``measure`` (one of ``MEASURES`` or a study's
        own), ``seeds``, ``mean``, ``low``, ``high``. Measures that no run has are left out.
    """
    keys = [str(key) for key in parameters if key not in {"run", "seed"}]
    settings = parameters.groupby(keys, sort=False).ngroup() if keys else 0
    placed = parameters.assign(setting=settings)
    rows = []
    for key in keys:
        for value, chosen in placed.groupby(key, sort=False):
            needed = chosen["setting"].nunique()
            runs = chosen[["run", "seed", "setting"]].merge(cohorts, on="run")
            found = _averages(runs, needed, ends)
            rows += [[key, text_of(value), *row] for row in found]
    return pd.DataFrame(rows, columns=list(EFFECTS)).astype(EFFECTS)


def _averages(runs: pd.DataFrame, needed: int, ends: Ends) -> Iterator[tuple[Any, ...]]:
    """Yield cohort, measure, seeds and interval; a seed needs a number for every setting.

    Of ``needed`` settings those do not count in which a cohort has nobody (``count = 0``).
    """
    own = [str(column) for column in runs if column not in {"seed", "setting", *COHORTS}]
    settings = runs["setting"].nunique()
    for cohort, group in runs.groupby("cohort", sort=False):
        by_seed, wanted = group.groupby("seed"), needed - settings + group["setting"].nunique()
        for measure in (*MEASURES, *own):
            counted = by_seed[measure].count()
            means = by_seed[measure].mean()[counted == wanted].to_numpy()
            if counted.any():
                yield cohort, measure, len(means), *ends(means)


def text_of(value: Any) -> str:
    """Write a key's value as JSON."""
    return json.dumps(value.item() if isinstance(value, np.generic) else value)


def windows_of(windows: pd.DataFrame, agents: pd.DataFrame) -> pd.DataFrame:
    """Sum up a run's windows table, one row per cohort and window.

    Returns
    -------
    frame
        ``cohort``, ``first``, ``last`` and ``LOSSES``: per round of the window, losses in [0, 1].
        What was not measured is NaN.
    """
    cohort = windows["agent"].map(agents.set_index("agent")["cohort"])
    rows = with_counts(windows.assign(cohort=cohort), agents)
    return losses_of(rows, WINDOW).reset_index()


def windows_table(
    windows: pd.DataFrame, parameters: pd.DataFrame, ends: Ends = interval
) -> pd.DataFrame:
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
        The keys, ``cohort``, ``first``, ``last``, ``measure`` (one of ``LOSSES``), ``seeds``,
        ``mean``, ``low``, ``high``. Measures that no run of a setting has are left out.
    """
    keys = [str(key) for key in parameters if key not in {"run", "seed"}]
    runs = parameters.merge(windows, on="run")
    rows = [
        [*place, *found]
        for place, group in runs.groupby([*keys, *WINDOW], sort=False)
        for found in _of_window(group, ends)
    ]
    types: dict[str, Any] = {key: parameters[key].dtype for key in keys}
    types |= {"cohort": "str", "first": "int64", "last": "int64", "measure": "str"}
    types |= {"seeds": "int64"} | dict.fromkeys(INTERVAL, "float64")
    return pd.DataFrame(rows, columns=list(types)).astype(types)


def _of_window(group: pd.DataFrame, ends: Ends) -> Iterator[tuple[Any, ...]]:
    """Yield measure, seeds and interval of one window."""
    for measure in LOSSES:
        values = group[measure].dropna().to_numpy()
        if len(values):
            yield measure, len(values), *ends(values)
