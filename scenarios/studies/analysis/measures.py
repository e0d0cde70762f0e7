r"""What a study says: cohorts run by run, the value of a forecast, the effect of every key.

Two runs that differ in one key and have the same seed share their random streams (common random
numbers). The **value of a forecast** is the mean over seeds of a cohort's welfare (mean utility per
agent and round) with Decision-Swap minus that with another forecast; against an adversary that
reacts the outcomes may differ, which is part of the value. An **effect** is a measure averaged over
the settings of all other keys, seed by seed; a seed counts if it has a run for every setting.

What is **described** has means in ``effects`` and is not tested: the round of the first correction,
which a run has only if its forecast was corrected, and the share of agents of whom
``bound_from_variation`` is the regret itself.

In tables of ``cohorts`` are the columns ``COHORT_COLUMNS`` and measures of one's own, in those of
``parameters`` ``run``, ``seed`` and the keys.

Intervals are Student's over seeds as independent repetitions (Law, *Simulation Modeling and
Analysis*, 5th ed., 10.2). Where seeds resample the data of one history (``data.bootstrap``), the
ends are quantiles of these replicates (Efron and Tibshirani, *An Introduction to the Bootstrap*,
ch. 13).
"""

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from regretless.market.logs.alternatives import EVERYBODY
from regretless.market.logs.counted import COUNT_COLUMN, means_of, with_counts
from regretless.market.logs.welfare import cohort_welfare

Range = tuple[float, float]
IntervalRule = Callable[[Any, Range | None], tuple[float, float, float]]  # by seed: mean, low, high

FORECASTER = "forecaster.kind"
OURS = "decision-swap"
LEVEL = 0.95
IMPULSE_PLACE = ("offset", "cohort", "agent")
IMPULSE_MEASURES = (
    *("action", "action_without", "action_difference"),
    *("loss", "loss_without", "loss_difference"),
)
REGRETS = ("external_regret", "swap_regret", "decision_swap_regret")
LOSSES = ("mean_loss", *(f"{regret}_{which}" for regret in REGRETS for which in ("mean", "worst")))
WELFARE = ("welfare_mean", "welfare_gini")
MEASURES = (LOSSES[0], *LOSSES[3:], "exploitability_worst", *WELFARE)
NORMALISED = ["loss_scale", "loss_offset"]  # how a utility becomes a loss in [0, 1]
DESCRIBED = ("first_correction", "trusted")
COHORT_TYPES = {"run": "int64", "cohort": "str", "agents": "int64"} | dict.fromkeys(
    [*LOSSES, "exploitability_worst", *WELFARE, "welfare_mean_difference", *NORMALISED, *DESCRIBED],
    "float64",
)
COHORT_COLUMNS = list(COHORT_TYPES)
DISTANCES = ("distance_ce", "distance_cce")  # of play, from the table ``solutions``
INDEX = "index_nash_optimum"  # where play is on the way from the worst Nash to the optimum
UNBOUNDED = {"welfare_mean", "external_regret_mean", "external_regret_worst"}
WITHIN: dict[str, Range] = {
    name: (0.0, 1.0)
    for name in (*MEASURES, *LOSSES, *DISTANCES, "trusted")
    if name not in UNBOUNDED
}
POOLED = ("mean_loss", *(f"{regret}_mean" for regret in REGRETS), *NORMALISED)
WORST = ("exploitability_worst", *(f"{regret}_worst" for regret in REGRETS))
WINDOW = ["cohort", "first", "last"]
WINDOW_LOSSES_TYPES = {
    "run": "int64",
    "cohort": "str",
    "first": "int64",
    "last": "int64",
} | dict.fromkeys(LOSSES, "float64")
MARKET = "whole market"
MAX_ROUNDING = 1e-12  # between runs that have the same number
OF_MARKET = ("_mean", "_deviation")  # how measures of the whole market end
LEFT_OUT = r"^(round|atoms|certificate|x_\d+)$"  # columns of rounds that are no outcome

INTERVAL = ["mean", "low", "high"]
SEEDS = {"seeds": "int64"} | dict.fromkeys(INTERVAL, "float64")
EFFECTS = dict.fromkeys(["key", "value", "cohort", "measure"], "str") | SEEDS
PAIR_EFFECTS = dict.fromkeys(["key", "value", "other_key", "other_value"], "str") | EFFECTS
VALUE = {"baseline": "str", "pairs": "int64"} | dict.fromkeys(INTERVAL, "float64")
VALUE_TYPES = {"cohort": "str"} | VALUE  # between them the keys
IMPULSE_TYPES = {"offset": "int64", "cohort": "str", "agent": "int64", "measure": "str"} | SEEDS
WINDOW_TYPES = {"cohort": "str", "first": "int64", "last": "int64", "measure": "str"} | SEEDS


def keys_of(parameters: pd.DataFrame, *, beside: Sequence[str] = ("run", "seed")) -> list[str]:
    """Return the columns of a parameters table that are keys."""
    return [str(key) for key in parameters if key not in beside]


def own_measures(cohorts: pd.DataFrame) -> list[str]:
    """Name the measures of one's own in a table of cohorts."""
    return [str(name) for name in cohorts if name not in COHORT_COLUMNS]


def typed_table(rows: Sequence[Any], types: Mapping[str, Any]) -> pd.DataFrame:
    """Return rows as a table with typed columns."""
    return pd.DataFrame(rows, columns=list(types)).astype(dict(types))


def text_of(value: Any) -> str:
    """Write a key's value: text and dates as they are, numbers and booleans as in JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value.item() if isinstance(value, np.generic) else value, default=str)


def cohorts_of(agents: pd.DataFrame, run: int) -> pd.DataFrame:
    """Sum up a run's agents table, one row per cohort with the columns ``COHORT_COLUMNS``.

    NaN where nothing was measured.
    """
    groups = agents.groupby("cohort", sort=False)
    sizes = groups[COUNT_COLUMN].sum() if COUNT_COLUMN in agents else groups.size()
    table = losses_of(agents, ["cohort"]).assign(agents=sizes)
    table["exploitability_worst"] = groups["exploitability"].max()
    table[NORMALISED] = means_of(agents, ["cohort"], NORMALISED)
    # The round of a cohort's first correction of a trusted reference; a float, NaN without one.
    table["first_correction"] = groups["first_correction"].min().astype("float64")
    table["trusted"] = _share_of_trusted(agents)
    welfare = cohort_welfare(agents)
    return (
        table.reset_index().merge(welfare, on="cohort", sort=False).assign(run=run)[COHORT_COLUMNS]
    )


def _share_of_trusted(agents: pd.DataFrame) -> "pd.Series[float]":
    """Return by cohort the share of agents whose bound given the variation is the regret itself.

    Of those who have that bound; NaN where nobody has.
    """
    is_trusted = agents["trusted"].astype("boolean")
    shares = is_trusted.to_numpy(dtype=np.float64, na_value=np.nan)
    return means_of(agents.assign(trusted=shares), ["cohort"], ["trusted"])["trusted"]


def own_of(measures: pd.DataFrame, agents: pd.DataFrame) -> pd.DataFrame:
    """Average a run's own measures over logged rounds and agents: a row per cohort, NaN if none.

    What a measure says of the whole round holds for every cohort.
    """
    cohort_of_agent = agents.set_index("agent")["cohort"]
    cohort = measures["cohort"].where(
        measures["cohort"] != "", measures["agent"].map(cohort_of_agent)
    )
    with_cohort = with_counts(measures.assign(cohort=cohort), agents)
    means = means_of(with_cohort, ["cohort", "measure"], ["value"]).reset_index()
    table = means.pivot_table(index="cohort", columns="measure", values="value")
    table = table.reindex(pd.Index(cohort_of_agent.unique(), name="cohort"))
    for name, value in (
        with_cohort[with_cohort["cohort"].isna()].groupby("measure")["value"].mean().items()
    ):
        table[name] = value
    return table.rename_axis(columns=None)


def of_solutions(solutions: pd.DataFrame) -> dict[str, float]:
    """Return where a run's play is among the solutions of its stage game, by measure.

    From the table ``solutions`` of the run: how far it is from the correlated and the coarse
    correlated equilibria, and how far on the way from the worst Nash equilibrium to the optimum, by
    welfare of all agents. What the table does not have is left out.
    """
    of_everybody = solutions[solutions["cohort"] == solutions["cohort"].iloc[-1]]
    rows = {row["name"]: row for row in of_everybody.to_dict("records")}
    play = rows.get("play")
    if play is None:
        return {}
    distances = {name: float(play[name]) for name in DISTANCES if pd.notna(play[name])}
    nash = rows.get("worst nash", rows.get("nash"))
    optimum = rows.get("optimum")
    if nash is not None and optimum is not None:
        way = optimum["welfare"] - nash["welfare"]
        if way > 0:  # neither equal nor unknown
            distances[INDEX] = float((play["welfare"] - nash["welfare"]) / way)
    return distances


def losses_of(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Mean loss, and mean and worst of each regret, of groups of agents or windows."""
    regrets = list(REGRETS)
    means = means_of(rows, by, ["mean_loss", *regrets])
    worst = rows.groupby(list(by), sort=False)[regrets].max().add_suffix("_worst")
    table = means.rename(columns={name: f"{name}_mean" for name in regrets}).join(worst)
    return table[list(LOSSES)]


def with_everybody(cohorts: pd.DataFrame) -> pd.DataFrame:
    """Add a row per run that pools its cohorts, where runs have several between them.

    A mean, also of a measure of one's own, is over all agents; a worst is the worst of all. What
    some cohort of a run did not keep, and what is in a utility's own units, is NaN.
    """
    names = set(cohorts["cohort"])
    if len(names) < 2 or EVERYBODY in names:
        return cohorts
    means = [*POOLED, *own_measures(cohorts)]
    worst = list(WORST)
    weighted = cohorts[means].mul(cohorts["agents"], axis=0)
    groups = weighted.join(cohorts[worst]).groupby(cohorts["run"], sort=False)
    agents = cohorts.groupby("run", sort=False)["agents"].sum()
    pooled = groups[means].sum().div(agents, axis=0).join(groups[worst].max())
    pooled = pooled.where(groups.count().eq(groups.size(), axis=0))  # if all cohorts kept it
    pooled = pooled.assign(agents=agents, cohort=EVERYBODY).reset_index()
    return pd.concat([cohorts, pooled], ignore_index=True)


def interval(
    values: Sequence[float] | NDArray[np.float64], within: Range | None = None
) -> tuple[float, float, float]:
    """Mean and 95 % Student interval of independent repetitions.

    Parameters
    ----------
    values : array (n,)
    within : pair of float, optional
        What the values cannot leave: (0, 1) of a share. An interval that would is taken on the
        logit scale instead, by the delta method: with u = (mean - a) / (b - a), its ends are
        a + (b - a) expit(logit(u) +- half / ((b - a) u (1 - u))).

    Returns
    -------
    mean, low, high : float
        The ends are NaN with fewer than two values, and so is the mean with none.

    Examples
    --------
    >>> low, high = interval([0.98, 0.99, 1.0])[1:]
    >>> round(low, 3), round(high, 3)
    (0.965, 1.015)
    >>> low, high = interval([0.98, 0.99, 1.0], (0.0, 1.0))[1:]
    >>> round(low, 2), round(high, 3)
    (0.89, 0.999)
    """
    sample = np.asarray(values, dtype=np.float64)
    if len(sample) == 0:
        return np.nan, np.nan, np.nan
    mean = float(sample.mean())
    if len(sample) == 1:
        return mean, np.nan, np.nan
    reach = special.stdtrit(len(sample) - 1, (1 + LEVEL) / 2) * sample.std(ddof=1)
    half = float(reach / np.sqrt(len(sample)))
    low = mean - half
    high = mean + half
    if within is None or (low >= within[0] and high <= within[1]):
        return mean, low, high
    least_possible, greatest_possible = within
    span = greatest_possible - least_possible
    share = (mean - least_possible) / span
    if not 0 < share < 1:  # all values are at one end
        return mean, mean, mean
    log_odds = special.logit(share) + np.array([-1.0, 1.0]) * half / (span * share * (1 - share))
    low, high = least_possible + span * special.expit(log_odds)
    return mean, float(low), float(high)


def replicates(
    values: Sequence[float] | NDArray[np.float64],
    within: Range | None = None,  # noqa: ARG001 - quantiles of values stay where these are
) -> tuple[float, float, float]:
    """Mean and 95 % percentile interval of bootstrap replicates: of one history, not of a mean."""
    mean, _, _ = interval(values)
    if len(values) < 2:
        return mean, np.nan, np.nan
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return mean, float(low), float(high)


def value_table(
    cohorts: pd.DataFrame, parameters: pd.DataFrame, interval_rule: IntervalRule = interval
) -> pd.DataFrame:
    """Value of Decision-Swap against each other forecast, per cohort and setting of other keys.

    Returns frame: ``cohort``, the other keys and ``VALUE``; empty where the forecaster is the same.
    """
    other_keys = [key for key in keys_of(parameters) if key != FORECASTER]
    types: dict[str, Any] = {"cohort": "str"} | {key: parameters[key].dtype for key in other_keys}
    rows = []
    if FORECASTER in parameters:
        runs = parameters.merge(cohorts[["run", "cohort", "welfare_mean"]], on="run")
        for labels, group in runs.groupby(["cohort", *other_keys], sort=False):
            wide = group.pivot_table(index="seed", columns=FORECASTER, values="welfare_mean")
            if OURS not in wide:
                continue
            for baseline in wide.columns.drop(OURS):
                differences = (wide[OURS] - wide[baseline]).dropna().to_numpy()
                rows.append(
                    [*labels, baseline, len(differences), *interval_rule(differences, None)]
                )
    return typed_table(rows, types | VALUE)


def effects_table(
    cohorts: pd.DataFrame,
    parameters: pd.DataFrame,
    interval_rule: IntervalRule = interval,
    within: Mapping[str, Range] = WITHIN,
    *,
    pairs: bool = False,
) -> pd.DataFrame:
    """Mean of every measure for each value of each key, or with ``pairs`` for those of two keys.

    ``within`` are the ranges of measures that have one. Returns frame: ``EFFECTS``, of pairs with
    ``other_key`` and ``other_value``; measures that no run has are left out.
    """
    keys = keys_of(parameters)
    measures = [*MEASURES, *DESCRIBED, *own_measures(cohorts)]
    word_columns = ["key", "value", "other_key", "other_value"] if pairs else ["key", "value"]
    n_keys = len(word_columns) // 2
    rows = []
    for chosen_keys in itertools.combinations(keys, n_keys):
        settings = parameters.assign(setting=parameters.groupby(keys, sort=False).ngroup())
        for values, chosen in settings.groupby(list(chosen_keys), sort=False):
            texts: list[str] = []
            for key, value in zip(chosen_keys, values, strict=True):
                texts += [key, text_of(value)]
            runs = chosen[["run", "seed", "setting"]].merge(cohorts, on="run")
            n_empty = chosen["setting"].nunique() - runs["setting"].nunique()  # nobody is there
            for cohort, group in runs.groupby("cohort", sort=False):
                by_seed = group[measures].astype(float).groupby(group["seed"])
                means = by_seed.mean()
                counts = by_seed.count()
                is_whole = counts == n_empty + group["setting"].nunique()
                for measure in measures:
                    if counts[measure].any():
                        sample = means.loc[is_whole[measure], measure].to_numpy()
                        interval_of_mean = interval_rule(sample, within.get(measure))
                        rows.append([*texts, cohort, measure, len(sample), *interval_of_mean])
    return typed_table(rows, dict.fromkeys(word_columns, "str") | EFFECTS)


def windows_table(
    windows: pd.DataFrame, parameters: pd.DataFrame, interval_rule: IntervalRule = interval
) -> pd.DataFrame:
    """Mean over seeds of ``LOSSES`` in every window, per setting and cohort.

    ``windows``: of all runs, with ``run`` and ``WINDOW``. Returns frame: the keys, ``WINDOW``,
    ``measure`` and ``SEEDS``; what no run of a setting has is left out.
    """
    keys = keys_of(parameters)
    groups = parameters.merge(windows, on="run").groupby([*keys, *WINDOW], sort=False)
    rows = []
    for labels, group in groups:
        for measure in LOSSES:
            sample = group[measure].dropna().to_numpy()
            if len(sample):
                interval_of_mean = interval_rule(sample, WITHIN.get(measure))
                rows.append([*labels, measure, len(sample), *interval_of_mean])
    types: dict[str, Any] = {key: parameters[key].dtype for key in keys}
    return typed_table(rows, types | WINDOW_TYPES)


def impulse_table(
    impulses: pd.DataFrame, parameters: pd.DataFrame, interval_rule: IntervalRule = interval
) -> pd.DataFrame:
    """Mean over seeds of what agents did around an impulse, with it and without it.

    ``impulses``: of all runs, with ``run``. Returns frame: the keys, ``offset``, ``cohort``,
    ``agent``, ``measure`` (``IMPULSE_MEASURES``) and ``SEEDS``.
    """
    keys = keys_of(parameters)
    rows_of_runs = parameters.merge(impulses, on="run")
    for name in ("action", "loss"):
        present = rows_of_runs[[name, f"{name}_without"]].where(rows_of_runs["action"] >= 0)
        rows_of_runs[name] = present[name]
        rows_of_runs[f"{name}_difference"] = present[name] - present[f"{name}_without"]
    rows = []
    for place, group in rows_of_runs.groupby([*keys, *IMPULSE_PLACE], sort=False):
        for measure in IMPULSE_MEASURES:
            sample = group[measure].dropna().to_numpy(dtype=np.float64)
            if len(sample):
                rows.append([*place, measure, len(sample), *interval_rule(sample, None)])
    types: dict[str, Any] = {key: parameters[key].dtype for key in keys}
    return typed_table(rows, types | IMPULSE_TYPES)


def with_market(cohorts: pd.DataFrame, rounds: Iterable[tuple[int, pd.DataFrame]]) -> pd.DataFrame:
    """Add a row per run: mean and deviation over its rounds of every number that runs differ in."""
    rows = []
    for run, table in rounds:
        numbers = table.select_dtypes("number")
        numbers = numbers.drop(columns=list(numbers.filter(regex=LEFT_OUT)))
        ending_of_mean, ending_of_deviation = OF_MARKET
        means = numbers.mean().add_suffix(ending_of_mean)
        deviations = numbers.std(ddof=0).add_suffix(ending_of_deviation)
        rows.append(pd.concat([means, deviations]).rename(run))
    market = pd.DataFrame(rows)
    spread = market.max() - market.min()
    moving = list(spread.index[spread > MAX_ROUNDING])
    if not moving or MARKET in set(cohorts["cohort"]):
        return cohorts
    of_market = market[moving].rename_axis("run").reset_index().assign(cohort=MARKET)
    return pd.concat([cohorts, of_market], ignore_index=True)
