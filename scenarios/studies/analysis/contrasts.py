r"""Paired contrasts: what a key's values, two keys together, or a study's branches, change.

The first value of a key, or its ``control``, is what its others are compared with, over pairs of
runs that differ in that key alone and have the same seed: D_s is the mean over all settings of the
other keys of a measure at the value less that at the control, at seed s of n. An **interaction** of
two keys is a difference of differences, [m(a, b) - m(a_0, b)] - [m(a, b_0) - m(a_0, b_0)].
Measures of branches are ``gain`` and ``loss_gain`` (``market.logs.branch_gains``).

**Tests.** The differences of a table are a family. The mean of D_s has the error e = sd(D) /
sqrt(n), and mean / e is a t variable with n - 1 degrees of freedom if it is 0 in truth; where seeds
are replicates of one history e is sd(D). p-values are adjusted by Holm's method. Simultaneous
intervals are mean +- c e. From 40 seeds that are common to all on, c is the 95 % quantile of the
greatest |t| of all (max-t, ``market.regret.inference.critical``); fewer seeds say too little about
how the differences depend on one another, and c is Student's value at Bonferroni's level. An
interval ends where the difference cannot go further: within -1 and 1 for a measure in [0, 1].
Equivalence within a margin m is shown where both one-sided tests, of mean <= -m and of mean >= m,
are significant at 5 % (Schuirmann 1987, Journal of Pharmacokinetics and Biopharmaceutics 15(6),
doi:10.1007/BF01068419): the greater of their p-values, by Holm's method for all with a margin.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError, closest
from regretless.market.logs.alternatives import EVERYBODY
from regretless.market.logs.counted import means_of
from regretless.market.regret.inference import CONFIDENCE_LEVEL, critical, holm
from regretless.scenarios.studies.analysis.measures import (
    MEASURES,
    NORMALISED,
    OF_MARKET,
    SEEDS,
    WITHIN,
    Ends,
    Range,
    interval,
    keys_of,
    laid_out,
    own_measures,
    replicates,
    text_of,
)

GAINS = ("gain", "loss_gain")  # of branches
NOTHING = 1e-12  # a difference that is rounding
FEWEST_SEEDS_FOR_MAX_T = 40
TESTED = dict.fromkeys(
    ["p_adjusted", "simultaneous_low", "simultaneous_high", "margin", "p_equivalence"], "float64"
)
AGENTS = ["branch", "cohort", "agent"]
STEP, OTHER = ("key", "value", "against"), ("other_key", "other_value", "other_against")
CONTRAST = dict.fromkeys([*STEP, "cohort", "measure"], "str")
INTERACTION = dict.fromkeys([*STEP, *OTHER, "cohort", "measure"], "str")


@dataclass(frozen=True)
class Rules:
    """How a study's differences are tested: its intervals, ranges, controls and margins.

    ``margin`` is up to what a difference counts as none: of all measures in [0, 1], or by measure.
    """

    ends: Callable[..., tuple[float, float, float]] = interval
    within: Mapping[str, Range] = field(default_factory=lambda: WITHIN)
    controls: Mapping[str, Any] = field(default_factory=dict)
    margin: float | Mapping[str, float] | None = None


# The words of a row's columns, a difference by seed (NaN where a pair is missing), and whether
# losses are normalised alike on both sides.
Difference = tuple[dict[str, str], "pd.Series[float]", bool]


def family(found: Sequence[Difference], columns: Mapping[str, Any], rules: Rules) -> pd.DataFrame:
    """Lay out differences as a table with intervals and tests; ``columns`` are of their words."""
    rows = []
    for words, by_seed, same in found:
        values, within = by_seed.dropna().to_numpy(), rules.within.get(words["measure"])
        ends = rules.ends(values, range_of_difference(within))
        own = rules.margin if within == (0.0, 1.0) else None
        if isinstance(rules.margin, Mapping):
            own = rules.margin.get(words["measure"])
        rows.append([*words.values(), len(values), *ends, same, *[np.nan] * 3, own, np.nan])
    table = laid_out(rows, dict(columns) | SEEDS | {"same_scale": "bool"} | TESTED)
    known = np.flatnonzero(table["seeds"] >= 2)
    if not len(known):
        return table
    differences, tested = [found[int(i)][1] for i in known], table.iloc[known]
    mean, seeds = tested["mean"].to_numpy(), tested["seeds"].to_numpy()
    count = 1 if rules.ends is replicates else seeds
    error = np.array([one.std(ddof=1) for one in differences]) / np.sqrt(count)
    common = pd.concat(differences, axis=1).dropna()
    if len(common) >= FEWEST_SEEDS_FOR_MAX_T:
        half = critical(common.to_numpy()) * error
    else:
        half = (
            stdtrit(seeds - 1, 1 - (1 - CONFIDENCE_LEVEL) / (2 * len(known))) * error
        )  # Bonferroni
    least, most = _extreme_differences(tested["measure"], rules)
    table.loc[known, "p_adjusted"] = holm(2 * _above(np.abs(mean), error, seeds))
    table.loc[known, "simultaneous_low"] = np.maximum(mean - half, least)
    table.loc[known, "simultaneous_high"] = np.minimum(mean + half, most)
    margin = tested["margin"].to_numpy()
    some = ~np.isnan(margin)
    one_sided = _above((margin - np.abs(mean))[some], error[some], seeds[some])
    table.loc[known[some], "p_equivalence"] = holm(one_sided)
    return table


def range_of_difference(within: Range | None) -> Range | None:
    """Return between what a difference of two values of a measure lies; None if it has no range."""
    if within is None:
        return None
    width = within[1] - within[0]
    return -width, width


def _extreme_differences(measures: "pd.Series[str]", rules: Rules) -> tuple[Array, Array]:
    """Return the least and the greatest possible difference of each row's measure."""
    ranges = [range_of_difference(rules.within.get(measure)) for measure in measures]
    least = [-np.inf if possible is None else possible[0] for possible in ranges]
    most = [np.inf if possible is None else possible[1] for possible in ranges]
    return np.array(least), np.array(most)


def _above(distance: Array, error: Array, seeds: Array) -> Array:
    """Return the p-value of means so far above 0: 1/2 of none at all, without an error 0 or 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(np.abs(distance) < NOTHING, 0.0, distance / error)
    return np.asarray(stdtr(seeds - 1, -t))


def equivalent(row: Mapping[Any, Any]) -> str:
    """Say of a row that its difference is shown to lie within its margin; nothing if it is not."""
    shown = row["p_equivalence"] < 1 - CONFIDENCE_LEVEL
    return f"equivalent within {row['margin']:g}" if shown else ""


def controls_of(control: Any, levels: Mapping[str, Iterable[Any]]) -> dict[str, Any]:
    """Return the value of each key that a study's ``control`` says the others are compared with.

    A value, or a label, stands for the key of ``levels`` that has it; ValueError if none has, or
    several have.
    """
    if control is None:
        return {}
    if isinstance(control, Mapping):
        for key, value in control.items():
            if not any(alike(value, other) for other in levels.get(key, ())):
                known = ", ".join(levels) or "none varies"
                raise ValueError(f"control: {key} = {value!r} is no value that varies ({known})")
        return dict(control)
    keys = [key for key in levels if any(alike(control, other) for other in levels[key])]
    if len(keys) == 1:
        return {keys[0]: control}
    where = f"of {', '.join(keys)}" if keys else f"of no key ({', '.join(levels) or 'none varies'})"
    cure = "write control = { KEY = VALUE }" if keys else "give a value or label that varies"
    raise ValueError(f"control = {control!r} is a value {where}; {cure}")


def alike(one: Any, two: Any) -> bool:
    """Whether a value of a study file is one of a table, where lists are text."""
    return bool(text_of(one) == text_of(two) or one == two)


def check_margin(margin: float | Mapping[str, float] | None, own: Sequence[str]) -> None:
    """Raise UserError for a margin of a measure that there is not; ``own`` are the user's."""
    known = {*MEASURES, *GAINS, *own}
    for name in margin if isinstance(margin, Mapping) else ():
        if name not in known and not name.endswith(OF_MARKET):
            raise UserError(f"margin.{name}: no such measure; {closest(name, known)}")


def contrasts_table(
    cohorts: pd.DataFrame,
    parameters: pd.DataFrame,
    branches: pd.DataFrame | None = None,
    *,
    rules: Rules = Rules(),
) -> pd.DataFrame:
    """Compare each value of each key with its control, and each branch with its trunk.

    ``branches`` are the runs' tables of branches, with their ``run``. Returns frame: the columns of
    ``CONTRAST`` and ``family``.
    """
    found = _differences(cohorts, parameters, 1, rules)
    if branches is None or branches.empty:
        return family(found, CONTRAST, rules)
    runs = branches.merge(parameters[["run", "seed"]], on="run")
    several = len(runs["cohort"].unique()) > 1
    parts = pd.concat([runs, runs.assign(cohort=EVERYBODY)] if several else [runs])
    groups = dict(iter(parts.groupby(["branch", "cohort"], sort=False)))
    order = list(parts["branch"].unique())
    for label, cohort in sorted(groups, key=lambda where: order.index(where[0])):
        means, _ = _by_seed(means_of(groups[label, cohort], ["seed", "run"], GAINS))
        for measure in GAINS[1:] if several and cohort == EVERYBODY else GAINS:
            words = ["branch", text_of(label), text_of("trunk"), str(cohort), measure]
            found.append((dict(zip(CONTRAST, words, strict=True)), means[measure], True))
    return family(found, CONTRAST, rules)


def interactions_table(
    cohorts: pd.DataFrame, parameters: pd.DataFrame, *, rules: Rules = Rules()
) -> pd.DataFrame:
    """Say of each two keys how contrasts of the first depend on the second (``INTERACTION``)."""
    return family(_differences(cohorts, parameters, 2, rules), INTERACTION, rules)


def gains_table(
    branches: pd.DataFrame, parameters: pd.DataFrame, *, ends: Ends = interval
) -> pd.DataFrame:
    """Say what each branch did to each agent, one by one: one in twenty intervals errs by chance.

    Returns frame: ``AGENTS`` and ``SEEDS``, of ``gain`` in the utility's own units.
    """
    runs = branches.merge(parameters[["run", "seed"]], on="run")
    means = runs.groupby([*AGENTS, "seed"], sort=False)["gain"].mean()
    groups = means.groupby(AGENTS, sort=False)
    rows = [[*words, len(values), *ends(values.to_numpy(), None)] for words, values in groups]
    return laid_out(rows, {"branch": "str", "cohort": "str", "agent": "int64"} | SEEDS)


def _differences(
    cohorts: pd.DataFrame, parameters: pd.DataFrame, together: int, rules: Rules
) -> list[Difference]:
    """Return the differences that steps in one key, or in two together, make to each measure."""
    keys, runs = keys_of(parameters), parameters.merge(cohorts, on="run")
    measures, steps = [*MEASURES, *own_measures(cohorts)], {}
    for key in keys:
        values = list(runs[key].drop_duplicates())
        known = [v for v in values if key in rules.controls and alike(rules.controls[key], v)]
        control = next(iter(known or values), None)
        steps[key] = [(key, value, control) for value in values if value != control]
    groups, found = list(runs.groupby("cohort", sort=False)), []
    for names in itertools.combinations(keys, together):
        place = ["seed", *(key for key in keys if key not in names)]
        for move in itertools.product(*(steps[name] for name in names)):
            texts = [word for key, *sides in move for word in (key, *map(text_of, sides))]
            words = dict(zip((*STEP, *OTHER), texts, strict=False))
            for cohort, group in groups:
                cells = [group]
                for key, *sides in move:
                    cells = [cell[cell[key] == side] for side in sides for cell in cells]
                cells = [cell.set_index(place) for cell in cells]
                same = all(_alike(cells[0], other) for other in cells[1:])
                signed = [cell[measures].astype(float) for cell in cells]
                while len(signed) > 1:
                    signed = [one - two for one, two in zip(signed[::2], signed[1::2], strict=True)]
                means, counted = _by_seed(signed[0])
                for measure in (name for name in measures if counted[name].any()):
                    named = words | {"cohort": str(cohort), "measure": measure}
                    found.append((named, means[measure], same))
    return found


def _by_seed(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return means and counts by seed; NaN of a seed that lacks what another has."""
    groups = rows.groupby("seed")
    counted = groups.count()
    return groups.mean().where(counted == counted.max()), counted


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
