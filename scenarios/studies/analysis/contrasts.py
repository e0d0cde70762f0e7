r"""Paired contrasts: what a key's values, two keys together, or a study's branches, change.

The first value of a key, or the one that the study names as its ``control``, is what its others are
compared with. Two runs that differ in that key alone and have the same seed share their random
streams (common random numbers), so that they are compared with one another: D_s is the mean over
all settings of the other keys of a measure at the value less that at the control, at seed s.

An **interaction** of two keys is by how much the contrast of one is another under a value of the
other key than under that key's control, a difference of differences:

    [m(a, b) - m(a_0, b)] - [m(a, b_0) - m(a_0, b_0)].

Branches share their past with the run itself, the trunk; their measures are ``gain`` (in the
utility's own units) and ``loss_gain`` (in [0, 1]), above 0 for who is better off in the branch
(``market.logs.comparisons``). Where there are several cohorts, ``everybody`` pools them
(``analysis.with_everybody``). ``families`` has the intervals and tests.

Losses are normalised into [0, 1] cohort by cohort. A key that changes how (``loss_scale`` or
``loss_offset``) changes the unit of losses and regrets: ``same_scale`` is then False, and it is
welfare, in the utility's own units, that can be compared.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.logs.comparisons import EVERYBODY
from regretless.market.logs.welfare import means_of
from regretless.scenarios.studies.analysis.families import GAINS, Difference, Rules, alike, family
from regretless.scenarios.studies.analysis.measures import (
    INTERVAL,
    MEASURES,
    NORMALISED,
    Ends,
    interval,
    own_measures,
    text_of,
)

AGENTS = ["branch", "cohort", "agent"]
CONTRAST = dict.fromkeys(["key", "value", "against", "cohort", "measure"], "str")
OTHER = ("other_key", "other_value", "other_against")
INTERACTION = dict.fromkeys([*("key", "value", "against"), *OTHER, "cohort", "measure"], "str")
Step = tuple[str, Any, Any]  # a key, a value of it, and what that is compared with


def contrasts_table(
    cohorts: pd.DataFrame,
    parameters: pd.DataFrame,
    branches: pd.DataFrame | None = None,
    *,
    rules: Rules = Rules(),  # noqa: B008 - frozen
) -> pd.DataFrame:
    """Compare each value of each key with its control, and each branch with its trunk.

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
        ``key``, ``value`` and ``against`` (text), ``cohort``, ``measure``, and the columns of
        ``families.family``.
    """
    keys, runs, measures = _laid_out(cohorts, parameters)
    found = [
        one
        for key in keys
        for step in _steps(runs, key, rules)
        for one in _differences(runs, keys, [step], measures)
    ]
    if branches is not None and len(branches):
        found += _of_branches(branches, parameters)
    return family(found, CONTRAST, rules)


def interactions_table(
    cohorts: pd.DataFrame,
    parameters: pd.DataFrame,
    *,
    rules: Rules = Rules(),  # noqa: B008 - frozen
) -> pd.DataFrame:
    """Say of each two keys how the contrasts of the first depend on the second.

    Parameters
    ----------
    cohorts, parameters : frame
        As of ``contrasts_table``.

    Returns
    -------
    frame
        As of ``contrasts_table``, with ``other_key``, ``other_value`` and ``other_against``.
    """
    keys, runs, measures = _laid_out(cohorts, parameters)
    found: list[Difference] = []
    for one, two in itertools.combinations(keys, 2):
        for steps in itertools.product(_steps(runs, one, rules), _steps(runs, two, rules)):
            found += _differences(runs, keys, steps, measures)
    return family(found, INTERACTION, rules)


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


def _laid_out(
    cohorts: pd.DataFrame, parameters: pd.DataFrame
) -> tuple[list[str], pd.DataFrame, list[str]]:
    """Return the keys, the measures of every run with its keys, and the measures' names."""
    keys = [str(key) for key in parameters if key not in {"run", "seed"}]
    runs = parameters.merge(cohorts, on="run")
    return keys, runs, [*MEASURES, *own_measures(cohorts)]


def _steps(runs: pd.DataFrame, key: str, rules: Rules) -> Iterator[Step]:
    """Yield each value of a key, with the one that it is compared with."""
    values = list(runs[key].drop_duplicates())
    known = [v for v in values if key in rules.controls and alike(rules.controls[key], v)]
    control = next(iter(known or values), None)
    for value in values:
        if value != control:
            yield key, value, control


def _differences(
    runs: pd.DataFrame, keys: Sequence[str], steps: Sequence[Step], measures: Sequence[str]
) -> Iterator[Difference]:
    """Yield the differences of every cohort and measure, of steps in one key or several."""
    moved = [key for key, _, _ in steps]
    place = ["seed", *(key for key in keys if key not in moved)]
    for cohort, group in runs.groupby("cohort", sort=False):
        cells = _cells(group, steps)
        indexed = [cell.set_index(place) for cell in cells]
        same = all(_alike(indexed[0], other) for other in indexed[1:])
        signed = [cell[list(measures)].astype(float) for cell in indexed]
        while len(signed) > 1:
            signed = [one - two for one, two in zip(signed[::2], signed[1::2], strict=True)]
        by_seed = signed[0].groupby("seed")
        counted = by_seed.count()
        means = by_seed.mean().where(counted == counted.max())
        words = _words(steps) | {"cohort": str(cohort)}
        for measure in measures:
            if counted[measure].any():
                yield Difference(words | {"measure": measure}, means[measure], same)


def _cells(group: pd.DataFrame, steps: Sequence[Step]) -> list[pd.DataFrame]:
    """Return the runs at each combination of values, each before what it is compared with."""
    if not steps:
        return [group]
    key, *sides = steps[-1]
    return [cell for side in sides for cell in _cells(group[group[key] == side], steps[:-1])]


def _words(steps: Sequence[Step]) -> dict[str, str]:
    columns = [*CONTRAST][:3], OTHER
    told = [(key, text_of(value), text_of(against)) for key, value, against in steps]
    return {
        column: word
        for names, words in zip(columns, told, strict=False)
        for column, word in zip(names, words, strict=True)
    }


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


def _of_branches(branches: pd.DataFrame, parameters: pd.DataFrame) -> Iterator[Difference]:
    runs = branches.merge(parameters[["run", "seed"]], on="run")
    several = len(runs["cohort"].unique()) > 1
    parts = [runs, runs.assign(cohort=EVERYBODY)] if several else [runs]
    for label, branch in pd.concat(parts).groupby("branch", sort=False):
        for cohort, group in branch.groupby("cohort", sort=False):
            means = means_of(group, ["seed", "run"], GAINS)
            by_seed = means.groupby("seed")
            for measure in GAINS[1:] if several and cohort == EVERYBODY else GAINS:
                words = ["branch", text_of(label), text_of("trunk"), str(cohort), measure]
                told = dict(zip(CONTRAST, words, strict=True))
                counted = by_seed[measure].count()
                complete = by_seed[measure].mean().where(counted == counted.max())
                yield Difference(told, complete)
