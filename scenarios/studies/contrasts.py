r"""Paired contrasts: what a key's values, or a study's branches, change, each with its interval.

The first value of a key is what its others are compared with. Two runs that differ in that key
alone and have the same seed share their random streams (common random numbers), so that they are
compared with one another: with D_s the mean over all settings of the other keys of a measure at
the value less that at the first, at seed s of n,

    mean(D) +- t_{n-1, 0.975} sd(D) / sqrt(n).

Branches share their past with the run itself, the trunk; their measures are ``gain`` (in the
utility's own units) and ``loss_gain`` (in [0, 1]), above 0 for who is better off in the branch
(``market.logs.comparisons``). Where there are several cohorts, ``everybody`` pools them
(``analysis.with_everybody``).

Losses are normalised into [0, 1] cohort by cohort. A key that changes how (``loss_scale`` or
``loss_offset``) changes the unit of losses and regrets: ``same_scale`` is then False, and it is
welfare, in the utility's own units, that can be compared.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.logs.comparisons import EVERYBODY
from regretless.market.logs.welfare import means_of
from regretless.scenarios.studies.analysis import (
    EFFECTS,
    INTERVAL,
    MEASURES,
    NORMALISED,
    WITHIN,
    Ends,
    Range,
    interval,
    own_measures,
    text_of,
    with_everybody,
)

GAINS = ("gain", "loss_gain")
# what differs, by how much, by seed, and whether losses are normalised alike
Compared = tuple[list[Any], "pd.Series[float]", bool]
AGENTS = ["branch", "cohort", "agent"]
CONTRASTS = {"key": "str", "value": "str", "against": "str"} | EFFECTS | {"same_scale": "bool"}


def contrasts_table(
    cohorts: pd.DataFrame,
    parameters: pd.DataFrame,
    branches: pd.DataFrame | None = None,
    *,
    ends: Ends = interval,
    within: Mapping[str, Range] = WITHIN,
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
    within : dict
        The ranges of measures that have one.

    Returns
    -------
    frame
        ``key``, ``value`` and ``against`` (text), ``cohort``, ``measure``, ``seeds``, ``mean``,
        ``low``, ``high``, ``same_scale``.
    """
    keys = [str(key) for key in parameters if key not in {"run", "seed"}]
    runs = parameters.merge(with_everybody(cohorts), on="run")
    measures = (*MEASURES, *own_measures(cohorts))
    found = [pair for key in keys for pair in _of_key(runs, key, keys, measures)]
    if branches is not None and len(branches):
        found += _of_branches(branches, parameters)
    rows = []
    for words, pairs, same in found:
        reach = within.get(words[-1])
        apart = None if reach is None else (reach[0] - reach[1], reach[1] - reach[0])
        rows.append([*words, *_over_seeds(pairs, ends, apart), same])
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
    rows = [[*words, len(values), *ends(values.to_numpy(), None)] for words, values in groups]
    types = {"branch": "str", "cohort": "str", "agent": "int64", "seeds": "int64"}
    types |= dict.fromkeys(INTERVAL, "float64")
    return pd.DataFrame(rows, columns=list(types)).astype(types)


def _of_key(
    runs: pd.DataFrame, key: str, keys: list[str], measures: tuple[str, ...]
) -> Iterator[Compared]:
    place = ["seed", *(other for other in keys if other != key)]
    first, *others = runs[key].drop_duplicates()
    for value in others:
        for cohort, group in runs.groupby("cohort", sort=False):
            one = group[group[key] == value].set_index(place)
            two = group[group[key] == first].set_index(place)
            same = _alike(one, two)
            for measure in measures:
                pairs = (one[measure] - two[measure]).dropna()
                if len(pairs):
                    words = [key, text_of(value), text_of(first), cohort, measure]
                    yield words, pairs, same


def _alike(one: pd.DataFrame, two: pd.DataFrame) -> bool:
    """Whether losses are normalised alike in all pairs of as many agents."""
    both = one.index.intersection(two.index)
    left, right = one.loc[both], two.loc[both]
    same = left["agents"] == right["agents"]  # others are other people
    return np.allclose(
        left.loc[same, NORMALISED].astype(float),
        right.loc[same, NORMALISED].astype(float),
        rtol=1e-9,
        atol=1e-12,
        equal_nan=True,
    )


def unit_notes(contrasts: pd.DataFrame) -> Iterator[str]:
    """Say of each key that changes how losses are normalised that it changes their unit."""
    other = contrasts[~contrasts["same_scale"] & (contrasts["cohort"] != EVERYBODY)]
    for key, rows in other.groupby("key", sort=False):
        yield (
            f"{key} changes loss_scale or loss_offset of {', '.join(rows['cohort'].unique())}: "
            "losses and regrets under its values are in different units. Compare welfare."
        )


def _of_branches(branches: pd.DataFrame, parameters: pd.DataFrame) -> Iterator[Compared]:
    runs = branches.merge(parameters[["run", "seed"]], on="run")
    several = len(runs["cohort"].unique()) > 1
    parts = [runs, runs.assign(cohort=EVERYBODY)] if several else [runs]
    for label, branch in pd.concat(parts).groupby("branch", sort=False):
        for cohort, group in branch.groupby("cohort", sort=False):
            means = means_of(group, ["seed", "run"], GAINS)
            for measure in GAINS[1:] if several and cohort == EVERYBODY else GAINS:
                words = ["branch", text_of(label), text_of("trunk"), cohort, measure]
                yield words, means[measure], True


def _over_seeds(pairs: "pd.Series[float]", ends: Ends, within: Range | None) -> tuple[Any, ...]:
    """Count seeds that have all of their pairs, and return the interval of their means."""
    by_seed = pairs.groupby("seed")
    counted = by_seed.count()
    means = by_seed.mean()[counted == counted.max()].tolist()
    return len(means), *ends(means, within)
