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
    keys_of,
    laid_out,
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

    ``cohorts`` has ``COHORTS`` and measures of one's own, ``parameters`` has ``run``, ``seed`` and
    the keys, ``branches`` are the runs' tables of branches, with their ``run``. Returns frame:
    ``key``, ``value`` and ``against`` (text), ``cohort``, ``measure``, and the columns of
    ``families.family``.
    """
    keys, runs = keys_of(parameters), parameters.merge(cohorts, on="run")
    found = [
        one
        for key in keys
        for step in _steps(runs, key, rules)
        for one in _differences(runs, keys, [step])
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

    ``cohorts``, ``parameters``: as of ``contrasts_table``. Returns frame: as of
    ``contrasts_table``, with ``other_key``, ``other_value`` and ``other_against``.
    """
    keys, runs = keys_of(parameters), parameters.merge(cohorts, on="run")
    found: list[Difference] = []
    for one, two in itertools.combinations(keys, 2):
        for steps in itertools.product(_steps(runs, one, rules), _steps(runs, two, rules)):
            found += _differences(runs, keys, steps)
    return family(found, INTERACTION, rules)


def gains_table(
    branches: pd.DataFrame, parameters: pd.DataFrame, *, ends: Ends = interval
) -> pd.DataFrame:
    """Say what each branch did to each agent.

    ``branches``, ``parameters``: as of ``contrasts_table``. Returns frame: ``branch``, ``cohort``,
    ``agent``, ``seeds``, and ``mean``, ``low``, ``high`` of ``gain`` in the utility's own units.
    One agent's interval: of many, one in twenty leaves 0 by chance.
    """
    runs = branches.merge(parameters[["run", "seed"]], on="run")
    means = runs.groupby([*AGENTS, "seed"], sort=False)["gain"].mean()
    groups = means.groupby(AGENTS, sort=False)
    rows = [[*words, len(values), *ends(values.to_numpy(), None)] for words, values in groups]
    types = {"branch": "str", "cohort": "str", "agent": "int64", "seeds": "int64"}
    return laid_out(rows, types | dict.fromkeys(INTERVAL, "float64"))


def _steps(runs: pd.DataFrame, key: str, rules: Rules) -> Iterator[Step]:
    """Yield each value of a key, with the one that it is compared with."""
    values = list(runs[key].drop_duplicates())
    known = [v for v in values if key in rules.controls and alike(rules.controls[key], v)]
    control = next(iter(known or values), None)
    for value in values:
        if value != control:
            yield key, value, control


def _differences(
    runs: pd.DataFrame, keys: Sequence[str], steps: Sequence[Step]
) -> Iterator[Difference]:
    """Yield the differences of every cohort and measure, of steps in one key or several."""
    moved = [key for key, _, _ in steps]
    measures = [*MEASURES, *own_measures(runs.drop(columns=["seed", *keys]))]
    place = ["seed", *(key for key in keys if key not in moved)]
    texts = [word for key, *sides in steps for word in (key, *map(text_of, sides))]
    words = dict(zip([*[*CONTRAST][:3], *OTHER], texts, strict=False))
    for cohort, group in runs.groupby("cohort", sort=False):
        cells = [group]
        for key, *sides in steps:
            cells = [cell[cell[key] == side] for side in sides for cell in cells]
        indexed = [cell.set_index(place) for cell in cells]
        same = all(_alike(indexed[0], other) for other in indexed[1:])
        signed = [cell[measures].astype(float) for cell in indexed]
        while len(signed) > 1:
            signed = [one - two for one, two in zip(signed[::2], signed[1::2], strict=True)]
        by_seed = signed[0].groupby("seed")
        counted = by_seed.count()
        means = by_seed.mean().where(counted == counted.max())
        for measure in measures:
            if counted[measure].any():
                named = words | {"cohort": str(cohort), "measure": measure}
                yield Difference(named, means[measure], same)


def _alike(one: pd.DataFrame, two: pd.DataFrame) -> bool:
    """Whether losses are normalised alike in all pairs of as many agents."""
    both = one.index.intersection(two.index)
    left, right = one.loc[both], two.loc[both]
    same = left["agents"] == right["agents"]  # others are other people
    one, two = (own.loc[same, NORMALISED].astype(float) for own in (left, right))
    return np.allclose(one, two, rtol=1e-9, atol=1e-12, equal_nan=True)


def unit_notes(contrasts: pd.DataFrame) -> Iterator[str]:
    """Say of each key that changes how losses are normalised that it changes their unit."""
    other = contrasts[~contrasts["same_scale"] & (contrasts["cohort"] != EVERYBODY)]
    for key, rows in other.groupby("key", sort=False):
        yield (
            f"{key} changes loss_scale or loss_offset of {', '.join(rows['cohort'].unique())}: "
            "losses and regrets under its values are in different units. Compare welfare."
        )


def _of_branches(branches: pd.DataFrame, parameters: pd.DataFrame) -> Iterator[Difference]:
    """Yield what each branch changes, for each cohort and, where they are several, for all."""
    runs = branches.merge(parameters[["run", "seed"]], on="run")
    several = len(runs["cohort"].unique()) > 1
    parts = pd.concat([runs, runs.assign(cohort=EVERYBODY)] if several else [runs])
    groups = dict(iter(parts.groupby(["branch", "cohort"], sort=False)))
    order = list(parts["branch"].unique())
    for label, cohort in sorted(groups, key=lambda where: order.index(where[0])):
        by_seed = means_of(groups[label, cohort], ["seed", "run"], GAINS).groupby("seed")
        for measure in GAINS[1:] if several and cohort == EVERYBODY else GAINS:
            words = ["branch", text_of(label), text_of("trunk"), str(cohort), measure]
            counted = by_seed[measure].count()
            complete = by_seed[measure].mean().where(counted == counted.max())
            yield Difference(dict(zip(CONTRAST, words, strict=True)), complete)
