r"""What a study says: cohorts run by run, the value of a forecast, and the effect of every key.

**Value of a forecast.** Two runs that differ in ``forecaster.kind`` alone and have the same seed
share their random streams (common random numbers): the same population, the same draws of nature.
With D_s the welfare of a cohort (mean utility per agent and round, in the utility's own units) with
Decision-Swap minus that with another forecast, at seed s of n, the value is the mean of D_s with
the 95 % Student interval

    mean(D) +- t_{n-1, 0.975} sd(D) / sqrt(n)

over seeds as independent repetitions (Distribution, *Simulation Modeling and Analysis*, 5th ed.,
10.2). It has no interval with one seed. Against an adversary that reacts the outcomes may differ:
that is part of the value.

**Effects.** For each value of a key, a measure is averaged over the settings of all other keys,
seed by seed, and the interval is over seeds. A seed counts if it has a run for every setting with
that value. In a full grid these are main effects; in a list, keys that vary together are not told
apart. Where an interval would leave the range of a measure, as of a share, it is taken on the logit
scale (``interval``).

Where seeds resample the data of one history (``data.bootstrap``), each is a replicate of what might
have been measured: the ends are then quantiles of the replicates, and more of them do not bring
them closer together (Efron and Tibshirani, *An Introduction to the Bootstrap*, ch. 13).

**Windows.** Where the runs of a study take regret over windows of rounds (``market.logs.windows``),
as after each change of regime, a measure of a window is the mean or the maximum over a cohort's
logged agents, and over the seeds of a setting it has the same interval. A window that a cohort did
not play in a run is missing there.

**Market.** Mean and standard deviation over the rounds of what a run recorded (outcomes, prices,
quantities, a leader's payoff) are numbers of the run, under the name ``MARKET``.
"""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

from regretless.market.logs.comparisons import EVERYBODY
from regretless.market.logs.welfare import COUNT, cohort_welfare, means_of, with_counts

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
NORMALISED = ["loss_scale", "loss_offset"]  # how a utility becomes a loss in [0, 1]
COHORTS = [
    "run",
    "cohort",
    "agents",
    *LOSSES,
    "exploitability_worst",
    "welfare_mean",
    "welfare_gini",
    "welfare_mean_difference",
    *NORMALISED,
]
INTERVAL = ["mean", "low", "high"]
OF_MARKET = ("_mean", "_deviation")  # how measures of the whole market end
Range = tuple[float, float]
Ends = Callable[[Any, Range | None], tuple[float, float, float]]  # by seed: mean, low, high
UNBOUNDED = {"welfare_mean", "external_regret_mean", "external_regret_worst"}
WITHIN: dict[str, Range] = {
    name: (0.0, 1.0) for name in (*MEASURES, *LOSSES) if name not in UNBOUNDED
}

POOLED = ("mean_loss", *(f"{regret}_mean" for regret in REGRETS), *NORMALISED)
WORST = ("exploitability_worst", *(f"{regret}_worst" for regret in REGRETS))
WINDOW = ["cohort", "first", "last"]
EFFECTS = {
    **dict.fromkeys(["key", "value", "cohort", "measure"], "str"),
    "seeds": "int64",
    **dict.fromkeys(INTERVAL, "float64"),
}
VALUE = {"baseline": "str", "pairs": "int64"} | dict.fromkeys(INTERVAL, "float64")


def keys_of(parameters: pd.DataFrame, *, beside: Sequence[str] = ("run", "seed")) -> list[str]:
    """Return the columns of a parameters table that are keys."""
    return [str(key) for key in parameters if key not in beside]


def laid_out(rows: Sequence[Any], types: Mapping[str, Any]) -> pd.DataFrame:
    """Return rows as a table with typed columns."""
    return pd.DataFrame(rows, columns=list(types)).astype(dict(types))


def cohorts_of(agents: pd.DataFrame, run: int) -> pd.DataFrame:
    """Sum up a run's agents table, one row per cohort.

    Returns frame: the columns ``COHORTS``: regrets per round with losses in [0, 1], welfare per
    round in the utility's own units, and the means of the agents' ``loss_scale`` and
    ``loss_offset``. What was not measured is NaN.
    """
    groups = agents.groupby("cohort", sort=False)
    sizes = groups[COUNT].sum() if COUNT in agents else groups.size()
    table = losses_of(agents, ["cohort"]).assign(agents=sizes)
    table["exploitability_worst"] = groups["exploitability"].max()
    table[NORMALISED] = means_of(agents, ["cohort"], NORMALISED)
    welfare = cohort_welfare(agents)
    return table.reset_index().merge(welfare, on="cohort", sort=False).assign(run=run)[COHORTS]


def own_of(measures: pd.DataFrame, agents: pd.DataFrame) -> pd.DataFrame:
    """Sum up a run's own measures: means over logged rounds and agents, one row per cohort.

    What a measure says of the whole round holds for every cohort.

    ``measures``, ``agents``: the run's tables. Returns frame: by cohort, a column per measure; NaN
    for a cohort of which it says nothing.
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


def with_everybody(cohorts: pd.DataFrame) -> pd.DataFrame:
    """Add a row per run that pools its cohorts, where runs have several between them.

    A mean, also of a measure of one's own, is over all agents; a worst is the worst of all. A
    number of the whole round, which all cohorts share, is that number. What some cohort of a run
    did not keep, and what is in a utility's own units, is NaN.
    """
    names = set(cohorts["cohort"])
    if len(names) < 2 or EVERYBODY in names:
        return cohorts
    by_run, means = cohorts.groupby("run", sort=False), (*POOLED, *own_measures(cohorts))
    pooled = pd.DataFrame({"agents": by_run["agents"].sum()})
    for name in (*means, *WORST):
        weighted = cohorts[name] * cohorts["agents"] if name in means else cohorts[name]
        parts = weighted.groupby(cohorts["run"], sort=False)
        found = parts.sum() / pooled["agents"] if name in means else parts.max()
        pooled[name] = found.where(parts.count() == parts.size())  # if all cohorts kept it
    return pd.concat([cohorts, pooled.reset_index().assign(cohort=EVERYBODY)], ignore_index=True)


def own_measures(cohorts: pd.DataFrame) -> list[str]:
    """Name the measures of one's own in a table of cohorts."""
    return [str(name) for name in cohorts if name not in COHORTS]


def losses_of(rows: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Mean loss, and mean and worst of each regret, of groups of agents or windows."""
    means, worst = means_of(rows, by, ["mean_loss", *REGRETS]), rows.groupby(list(by), sort=False)
    table = means[["mean_loss"]].copy()
    for regret in REGRETS:
        table[f"{regret}_mean"] = means[regret]
        table[f"{regret}_worst"] = worst[regret].max()
    return table


def interval(
    values: Sequence[float] | NDArray[np.float64], within: Range | None = None
) -> tuple[float, float, float]:
    """Mean and 95 % Student interval of independent repetitions.

    Parameters
    ----------
    values : array (n,)
    within : pair of float, optional
        What the values cannot leave: (0, 1) of a share. An interval that would is taken on the
        logit scale instead, by the delta method, and stays inside: with u = (mean - a) / (b - a),
        its ends are a + (b - a) expit(logit(u) +- half / ((b - a) u (1 - u))), where half is that
        of Student's interval.

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
    if not len(sample):
        return float("nan"), float("nan"), float("nan")
    mean = float(sample.mean())
    if len(sample) < 2:
        return mean, float("nan"), float("nan")
    reach = special.stdtrit(len(sample) - 1, (1 + LEVEL) / 2) * sample.std(ddof=1)
    half = float(reach / np.sqrt(len(sample)))
    low, high = mean - half, mean + half
    if within is not None and (low < within[0] or high > within[1]):
        low, high = _inside(mean, half, within)
    return mean, low, high


def _inside(mean: float, half: float, within: Range) -> Range:
    """Return the ends of an interval that is taken on the logit scale; see ``interval``."""
    least, span = within[0], within[1] - within[0]
    share = (mean - least) / span
    if not 0 < share < 1:  # all values are at one end
        return mean, mean
    ends = special.logit(share) + np.array([-1.0, 1.0]) * half / (span * share * (1 - share))
    low, high = least + span * special.expit(ends)
    return float(low), float(high)


def replicates(
    values: Sequence[float] | NDArray[np.float64],
    within: Range | None = None,  # noqa: ARG001 - quantiles of values stay where these are
) -> tuple[float, float, float]:
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

    ``cohorts``, ``parameters``: the columns ``COHORTS``; and ``run``, ``seed`` and the keys.
    Returns frame: ``cohort``, the other keys, ``baseline``, ``pairs``, and ``mean``, ``low``,
    ``high`` of the difference. Empty where the study does not vary the forecaster.
    """
    others = [key for key in keys_of(parameters) if key != FORECASTER]
    types: dict[str, Any] = {"cohort": "str"} | {key: parameters[key].dtype for key in others}
    rows = []
    if FORECASTER in parameters:
        runs = parameters.merge(cohorts[["run", "cohort", "welfare_mean"]], on="run")
        for place, group in runs.groupby(["cohort", *others], sort=False):
            wide = group.pivot_table(index="seed", columns=FORECASTER, values="welfare_mean")
            for baseline in wide.columns.drop(OURS) if OURS in wide else ():
                pairs = (wide[OURS] - wide[baseline]).dropna().to_numpy()
                rows.append([*place, baseline, len(pairs), *ends(pairs, None)])
    return laid_out(rows, types | VALUE)


def effects_table(
    cohorts: pd.DataFrame,
    parameters: pd.DataFrame,
    ends: Ends = interval,
    within: Mapping[str, Range] = WITHIN,
    *,
    pairs: bool = False,
) -> pd.DataFrame:
    """Mean of every measure for each value of each key, with intervals over seeds.

    Parameters as of ``value_table``, with rows for everybody where they are wanted; ``within`` are
    the ranges of measures that have one; ``pairs`` asks for each values of two keys, in place of
    one. Returns frame: ``key``, ``value`` (text), of pairs ``other_key`` and ``other_value``,
    ``cohort``, ``measure`` (one of ``MEASURES`` or a study's own), ``seeds``, ``mean``, ``low``,
    ``high``. Measures that no run has are left out.
    """
    columns = ["key", "value", "other_key", "other_value"][: 2 + 2 * pairs]
    rows = [
        [*words, *found]
        for names in itertools.combinations(keys_of(parameters), 1 + pairs)
        for words, found in _at_levels(cohorts, parameters, names, (ends, within))
    ]
    return laid_out(rows, dict.fromkeys(columns, "str") | EFFECTS)


def _at_levels(
    cohorts: pd.DataFrame,
    parameters: pd.DataFrame,
    names: Sequence[str],
    rules: tuple[Ends, Mapping[str, Range]],
) -> Iterator[tuple[list[str], list[Any]]]:
    """Yield keys and values, and cohort, measure, seeds and interval, of each choice of values.

    A seed needs a number for every setting, but for those in which a cohort has nobody.
    """
    places = parameters.groupby(keys_of(parameters), sort=False).ngroup()
    measures, (ends, within) = [*MEASURES, *own_measures(cohorts)], rules
    for values, chosen in parameters.assign(setting=places).groupby(list(names), sort=False):
        runs = chosen[["run", "seed", "setting"]].merge(cohorts, on="run")
        words = [word for pair in zip(names, map(text_of, values), strict=True) for word in pair]
        empty = chosen["setting"].nunique() - runs["setting"].nunique()
        for cohort, group in runs.groupby("cohort", sort=False):
            by_seed, wanted = group.groupby("seed"), empty + group["setting"].nunique()
            for measure in measures:
                counted = by_seed[measure].count()
                means = by_seed[measure].mean()[counted == wanted].to_numpy()
                if counted.any():
                    found = ends(means, within.get(measure))
                    yield words, [cohort, measure, len(means), *found]


def text_of(value: Any) -> str:
    """Write a key's value: text as it is, numbers and booleans as in JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value.item() if isinstance(value, np.generic) else value)


def windows_of(windows: pd.DataFrame, agents: pd.DataFrame) -> pd.DataFrame:
    """Sum up a run's windows table, one row per cohort and window.

    Returns frame: ``cohort``, ``first``, ``last`` and ``LOSSES``: per round of the window, losses
    in [0, 1]. What was not measured is NaN.
    """
    cohort = windows["agent"].map(agents.set_index("agent")["cohort"])
    rows = with_counts(windows.assign(cohort=cohort), agents)
    return losses_of(rows, WINDOW).reset_index()


def windows_table(
    windows: pd.DataFrame, parameters: pd.DataFrame, ends: Ends = interval
) -> pd.DataFrame:
    """Mean and interval over seeds of every window's measures, per setting and cohort.

    ``windows`` has ``run`` and the columns of ``windows_of``, of all runs; ``parameters`` ``run``,
    ``seed`` and the keys. Returns frame: the keys, ``cohort``, ``first``, ``last``, ``measure``
    (one of ``LOSSES``), ``seeds``, ``mean``, ``low``, ``high``. Measures that no run of a setting
    has are left out.
    """
    keys = keys_of(parameters)
    rows = []
    for place, group in parameters.merge(windows, on="run").groupby([*keys, *WINDOW], sort=False):
        for measure in LOSSES:
            values = group[measure].dropna().to_numpy()
            if len(values):
                found = ends(values, WITHIN.get(measure))
                rows.append([*place, measure, len(values), *found])
    types: dict[str, Any] = {key: parameters[key].dtype for key in keys}
    types |= {"cohort": "str", "first": "int64", "last": "int64", "measure": "str"}
    return laid_out(rows, types | {"seeds": "int64"} | dict.fromkeys(INTERVAL, "float64"))


MARKET = "whole market"
LEFT_OUT = r"^(round|atoms|certificate|x_\d+)$"  # columns of rounds that are no outcome


def market_of(rounds: pd.DataFrame, run: int) -> pd.DataFrame:
    """Sum up a run's table of rounds.

    Returns frame: one row: ``run``, ``cohort``, and ``NAME_mean`` and ``NAME_deviation`` for every
    column of numbers; the deviation is the standard deviation over rounds.
    """
    numbers = rounds.select_dtypes("number")
    numbers = numbers.drop(columns=list(numbers.filter(regex=LEFT_OUT)))
    both = zip((numbers.mean(), numbers.std(ddof=0)), OF_MARKET, strict=True)
    found = pd.concat([own.add_suffix(ending) for own, ending in both])
    return pd.DataFrame([found]).assign(run=run, cohort=MARKET)


def with_market(cohorts: pd.DataFrame, market: pd.DataFrame) -> pd.DataFrame:
    """Add rows of the whole market to those of the cohorts, of what differs between runs."""
    names = [str(name) for name in market if name not in {"run", "cohort"}]
    spread = market[names].max() - market[names].min()
    moving = [name for name in names if spread[name] > 1e-12]
    if not moving or MARKET in set(cohorts["cohort"]):
        return cohorts
    return pd.concat([cohorts, market[["run", "cohort", *moving]]], ignore_index=True)
