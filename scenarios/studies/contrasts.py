r"""Paired contrasts: what a key's values, or a study's branches, change, each with its interval.

The first value of a key is what its others are compared with. Two runs that differ in that key
alone and have the same seed share their random streams (common random numbers), so that they are
compared with one another: with D_s the mean over all settings of the other keys of a measure at
the value less that at the first, at seed s of n,

    mean(D) +- t_{n-1, 0.975} sd(D) / sqrt(n).

Branches share their past with the run itself, the trunk; their measures are ``gain`` (in the
utility's own units) and ``loss_gain`` (in [0, 1]), above 0 for who is better off in the branch
(``market.logs.branches``). Where there are several cohorts, ``everybody`` pools them: means are
over all agents, the worst is the worst of all; what is in a utility's own units is not pooled.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from regretless.market.logs.heads import means_of
from regretless.scenarios.studies.analysis import (
    COHORTS,
    EFFECTS,
    INTERVAL,
    MEASURES,
    REGRETS,
    Ends,
    interval,
    text_of,
)

EVERYBODY = "everybody"
GAINS = ("gain", "loss_gain")
POOLED = ("mean_loss", *(f"{regret}_mean" for regret in REGRETS))
WORST = ("exploitability_worst", *(f"{regret}_worst" for regret in REGRETS))
Compared = tuple[list[Any], "pd.Series[float]"]  # what differs, and by how much, by seed
AGENTS = ["branch", "cohort", "agent"]
CONTRASTS = {"key": "str", "value": "str", "against": "str"} | EFFECTS


def contrasts_table(
    cohorts: pd.DataFrame,
    parameters: pd.DataFrame,
    branches: pd.DataFrame | None = None,
    *,
    ends: Ends = interval,
) -> pd.DataFrame:
    """Compare each value of each key with its first, and each branch with its trunk.

    Parameters
    ----------
    cohorts : frame
        With the columns ``COHORTS`` and measures of one's own.
    parameters : frame
        ``run``, ``seed`` and the keys.
    branches : frame, optional
        The runs' tables of branches, with their ``run``.

    Returns
    -------
    frame
        ``key``, ``value`` and ``against`` (JSON text), ``cohort``, ``measure``, ``seeds``,
        ``mean``, ``low``, ``high``.
    """
    keys = [str(key) for key in parameters if key not in {"run", "seed"}]
    runs = parameters.merge(with_everybody(cohorts), on="run")
    measures = (*MEASURES, *(str(name) for name in cohorts if name not in COHORTS))
    found = [pair for key in keys for pair in _of_key(runs, key, keys, measures)]
    if branches is not None and len(branches):
        found += _of_branches(branches, parameters)
    rows = [[*words, *_over_seeds(pairs, ends)] for words, pairs in found]
    return pd.DataFrame(rows, columns=list(CONTRASTS)).astype(CONTRASTS)


def gains_table(
    branches: pd.DataFrame, parameters: pd.DataFrame, *, ends: Ends = interval
) -> pd.DataFrame:
    """Say what each branch did to each agent.

    Parameters
    ----------
    branches, parameters : frame
        As of ``contrasts_table``.

    Returns
    -------
    frame
        ``branch``, ``cohort``, ``agent``, ``seeds``, and ``mean``, ``low``, ``high`` of ``gain`` in
        the utility's own units. One agent's interval: of many, one in twenty leaves 0 by chance.
    """
    runs = branches.merge(parameters[["run", "seed"]], on="run")
    means = runs.groupby([*AGENTS, "seed"], sort=False)["gain"].mean()
    groups = means.groupby(AGENTS, sort=False)
    rows = [[*words, len(values), *ends(values.to_numpy())] for words, values in groups]
    types = {"branch": "str", "cohort": "str", "agent": "int64", "seeds": "int64"}
    types |= dict.fromkeys(INTERVAL, "float64")
    return pd.DataFrame(rows, columns=list(types)).astype(types)


def with_everybody(cohorts: pd.DataFrame) -> pd.DataFrame:
    """Add a row per run of several cohorts that pools them."""
    names = set(cohorts["cohort"])
    if len(names) < 2 or EVERYBODY in names:
        return cohorts
    by_run = cohorts.groupby("run", sort=False)
    pooled = pd.DataFrame({"agents": by_run["agents"].sum()})
    for name in (*POOLED, *WORST):
        weighted = cohorts[name] * cohorts["agents"] if name in POOLED else cohorts[name]
        parts = weighted.groupby(cohorts["run"], sort=False)
        found = parts.sum() / pooled["agents"] if name in POOLED else parts.max()
        pooled[name] = found.where(parts.count() == parts.size())  # if all cohorts kept it
    return pd.concat([cohorts, pooled.reset_index().assign(cohort=EVERYBODY)], ignore_index=True)


def _of_key(
    runs: pd.DataFrame, key: str, keys: list[str], measures: tuple[str, ...]
) -> Iterator[Compared]:
    place = ["seed", *(other for other in keys if other != key)]
    first, *others = runs[key].drop_duplicates()
    for value in others:
        for cohort, group in runs.groupby("cohort", sort=False):
            one = group[group[key] == value].set_index(place)
            two = group[group[key] == first].set_index(place)
            for measure in measures:
                pairs = (one[measure] - two[measure]).dropna()
                if len(pairs):
                    words = [key, text_of(value), text_of(first), cohort, measure]
                    yield words, pairs


def _of_branches(branches: pd.DataFrame, parameters: pd.DataFrame) -> Iterator[Compared]:
    runs = branches.merge(parameters[["run", "seed"]], on="run")
    several = len(runs["cohort"].unique()) > 1
    parts = [runs, runs.assign(cohort=EVERYBODY)] if several else [runs]
    for label, branch in pd.concat(parts).groupby("branch", sort=False):
        for cohort, group in branch.groupby("cohort", sort=False):
            means = means_of(group, ["seed", "run"], GAINS)
            for measure in GAINS[1:] if several and cohort == EVERYBODY else GAINS:
                words = ["branch", text_of(label), text_of("trunk"), cohort, measure]
                yield words, means[measure]


def _over_seeds(pairs: "pd.Series[float]", ends: Ends) -> tuple[Any, ...]:
    """Count seeds that have all of their pairs, and return the interval of their means."""
    by_seed = pairs.groupby("seed")
    counted = by_seed.count()
    means = by_seed.mean()[counted == counted.max()].tolist()
    return len(means), *ends(means)
