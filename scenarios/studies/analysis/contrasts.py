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
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError, closest
from regretless.market.logs.alternatives import EVERYBODY
from regretless.market.logs.counted import means_of
from regretless.market.regret.inference import CONFIDENCE_LEVEL, critical, holm
from regretless.scenarios.studies.analysis.measures import (
    INTERVAL,
    MEASURES,
    NORMALISED,
    OF_MARKET,
    SEEDS,
    WITHIN,
    IntervalRule,
    Range,
    interval,
    keys_of,
    own_measures,
    replicates,
    text_of,
    typed_table,
)

GAINS = ("gain", "loss_gain")  # of branches
MAX_ROUNDING = 1e-12  # of a difference: below, it is none
MIN_SEEDS_FOR_MAX_T = 40
TESTED = dict.fromkeys(
    ["p_adjusted", "simultaneous_low", "simultaneous_high", "margin", "p_equivalence"], "float64"
)
TESTED_MEAN = SEEDS | {"same_scale": "bool"} | TESTED  # columns of a difference beside its words
AGENTS = ["branch", "cohort", "agent"]
GAINS_OF_AGENTS = {"branch": "str", "cohort": "str", "agent": "int64"} | SEEDS
STEP_COLUMNS = ("key", "value", "against")
OTHER_STEP_COLUMNS = ("other_key", "other_value", "other_against")
CONTRAST = dict.fromkeys([*STEP_COLUMNS, "cohort", "measure"], "str")
INTERACTION = dict.fromkeys([*STEP_COLUMNS, *OTHER_STEP_COLUMNS, "cohort", "measure"], "str")


@dataclass(frozen=True)
class Rules:
    """How a study's differences are tested: its intervals, ranges, controls and margins.

    ``margin`` is up to what a difference counts as none: of all measures in [0, 1], or by measure.
    """

    interval_rule: Callable[..., tuple[float, float, float]] = interval
    within: Mapping[str, Range] = field(default_factory=lambda: WITHIN)
    controls: Mapping[str, Any] = field(default_factory=dict)
    margin: float | Mapping[str, float] | None = None

    def margin_of(self, measure: str) -> float:
        """Return up to what a difference of a measure counts as none; NaN if nothing says so."""
        if self.margin is None:
            return np.nan
        if isinstance(self.margin, Mapping):
            return self.margin.get(measure, np.nan)
        return self.margin if self.within.get(measure) == (0.0, 1.0) else np.nan


@dataclass(frozen=True, eq=False)
class Difference:
    """What a step in one key, or in two together, makes to a measure of a cohort.

    Attributes
    ----------
    words : dict
        The text columns of its row, among them ``cohort`` and ``measure``.
    by_seed : Series
        The difference at each seed; NaN where a pair is missing.
    has_same_scale : bool
        Whether losses are normalised alike on both sides.
    """

    words: dict[str, str]
    by_seed: "pd.Series[float]"
    has_same_scale: bool


def family(
    differences: Sequence[Difference], columns: Mapping[str, str], rules: Rules
) -> pd.DataFrame:
    """Lay out differences as a table with intervals and tests; ``columns`` are of their words."""
    rows = []
    for difference in differences:
        measure = difference.words["measure"]
        values = difference.by_seed.dropna().to_numpy()
        mean_low_high = rules.interval_rule(values, range_of_difference(rules.within.get(measure)))
        row = {"seeds": len(values)} | dict(zip(INTERVAL, mean_low_high, strict=True))
        row |= {"same_scale": difference.has_same_scale, "margin": rules.margin_of(measure)}
        rows.append(difference.words | row)
    types = dict(columns) | TESTED_MEAN
    table = pd.DataFrame(rows, columns=list(types)).astype(types)
    tested_rows = np.flatnonzero(table["seeds"] >= 2)
    if not len(tested_rows):
        return table

    tested = table.iloc[tested_rows]
    by_seed = [differences[int(row)].by_seed for row in tested_rows]
    mean = tested["mean"].to_numpy()
    n_seeds = tested["seeds"].to_numpy()
    deviation = np.array([values.std(ddof=1) for values in by_seed])
    seeds_are_replicates = rules.interval_rule is replicates  # of one history, and not of a mean
    error = deviation / np.sqrt(1 if seeds_are_replicates else n_seeds)
    common_seeds = pd.concat(by_seed, axis=1).dropna()
    if len(common_seeds) >= MIN_SEEDS_FOR_MAX_T:
        half = critical(common_seeds.to_numpy()) * error
    else:
        bonferroni_level = 1 - (1 - CONFIDENCE_LEVEL) / (2 * len(tested_rows))
        half = stdtrit(n_seeds - 1, bonferroni_level) * error
    least_possible, greatest_possible = _extreme_differences(tested["measure"], rules)
    table.loc[tested_rows, "simultaneous_low"] = np.maximum(mean - half, least_possible)
    table.loc[tested_rows, "simultaneous_high"] = np.minimum(mean + half, greatest_possible)
    p_values = 2 * _p_value_above_zero(np.abs(mean), error, n_seeds)
    table.loc[tested_rows, "p_adjusted"] = holm(p_values)

    margin = tested["margin"].to_numpy()
    has_margin = ~np.isnan(margin)
    distance_to_margin = margin - np.abs(mean)
    p_values = _p_value_above_zero(
        distance_to_margin[has_margin], error[has_margin], n_seeds[has_margin]
    )
    table.loc[tested_rows[has_margin], "p_equivalence"] = holm(p_values)
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
    least_values = [-np.inf if possible is None else possible[0] for possible in ranges]
    greatest_values = [np.inf if possible is None else possible[1] for possible in ranges]
    return np.array(least_values), np.array(greatest_values)


def _p_value_above_zero(distance: Array, error: Array, n_seeds: Array) -> Array:
    """Return the p-values of means (J,) so far above 0: 1/2 at 0, without an error 0 or 1."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(np.abs(distance) < MAX_ROUNDING, 0.0, distance / error)
    return np.asarray(stdtr(n_seeds - 1, -t))


def equivalent(row: Mapping[Any, Any]) -> str:
    """Say of a row that its difference is shown to lie within its margin; nothing if it is not."""
    is_shown = row["p_equivalence"] < 1 - CONFIDENCE_LEVEL
    return f"equivalent within {row['margin']:g}" if is_shown else ""


def controls_of(control: Any, levels: Mapping[str, Iterable[Any]]) -> dict[str, Any]:
    """Return the value of each key that a study's ``control`` says the others are compared with.

    A value, or a label, stands for the key of ``levels`` that has it; ValueError if none has, or
    several have.
    """
    if control is None:
        return {}
    varying_keys = ", ".join(levels) or "none varies"
    if isinstance(control, Mapping):
        for key, value in control.items():
            if not any(alike(value, level) for level in levels.get(key, ())):
                raise ValueError(
                    f"control: {key} = {value!r} is no value that varies ({varying_keys})"
                )
        return dict(control)
    keys = [key for key in levels if any(alike(control, level) for level in levels[key])]
    if len(keys) == 1:
        return {keys[0]: control}
    if keys:
        where = f"of {', '.join(keys)}"
        hint = "write control = { KEY = VALUE }"
    else:
        where = f"of no key ({varying_keys})"
        hint = "give a value or label that varies"
    raise ValueError(f"control = {control!r} is a value {where}; {hint}")


def alike(first: Any, second: Any) -> bool:
    """Whether a value of a study file is one of a table, where lists are text."""
    return bool(text_of(first) == text_of(second) or first == second)


def check_margin(margin: float | Mapping[str, float] | None, own_measures: Sequence[str]) -> None:
    """Raise UserError for a margin of a measure that there is not; ``own`` are the user's."""
    if not isinstance(margin, Mapping):
        return
    measures = {*MEASURES, *GAINS, *own_measures}
    for name in margin:
        if name not in measures and not name.endswith(OF_MARKET):
            raise UserError(f"margin.{name}: no such measure; {closest(name, measures)}")


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
    differences = _differences(cohorts, parameters, n_keys=1, rules=rules)
    if branches is not None and not branches.empty:
        differences += _differences_of_branches(branches, parameters)
    return family(differences, CONTRAST, rules)


def _differences_of_branches(
    branches: pd.DataFrame, parameters: pd.DataFrame
) -> Iterator[Difference]:
    """Yield what each branch makes of ``GAINS``, of each cohort and, of losses, of everybody."""
    runs = branches.merge(parameters[["run", "seed"]], on="run")
    has_several_cohorts = len(runs["cohort"].unique()) > 1
    if has_several_cohorts:
        runs = pd.concat([runs, runs.assign(cohort=EVERYBODY)])
    rows_of = dict(iter(runs.groupby(["branch", "cohort"], sort=False)))
    labels = list(runs["branch"].unique())
    for label, cohort in sorted(rows_of, key=lambda branch: labels.index(branch[0])):
        means, _ = _by_seed(means_of(rows_of[label, cohort], ["seed", "run"], GAINS))
        is_everybody = has_several_cohorts and cohort == EVERYBODY  # whose units differ
        for measure in GAINS[1:] if is_everybody else GAINS:
            row_texts = {"key": "branch", "value": text_of(label), "against": text_of("trunk")}
            row_texts |= {"cohort": str(cohort), "measure": measure}
            yield Difference(row_texts, means[measure], has_same_scale=True)


def interactions_table(
    cohorts: pd.DataFrame, parameters: pd.DataFrame, *, rules: Rules = Rules()
) -> pd.DataFrame:
    """Say of each two keys how contrasts of the first depend on the second (``INTERACTION``)."""
    differences = _differences(cohorts, parameters, n_keys=2, rules=rules)
    return family(differences, INTERACTION, rules)


def gains_table(
    branches: pd.DataFrame, parameters: pd.DataFrame, *, interval_rule: IntervalRule = interval
) -> pd.DataFrame:
    """Say what each branch did to each agent, one by one: one in twenty intervals errs by chance.

    Returns frame: ``AGENTS`` and ``SEEDS``, of ``gain`` in the utility's own units.
    """
    runs = branches.merge(parameters[["run", "seed"]], on="run")
    means = runs.groupby([*AGENTS, "seed"], sort=False)["gain"].mean()
    groups = means.groupby(AGENTS, sort=False)
    rows = []
    for labels, gains_by_seed in groups:
        # Without limits: a gain has no range.
        mean_low_high = interval_rule(gains_by_seed.to_numpy(), None)
        rows.append([*labels, len(gains_by_seed), *mean_low_high])
    return typed_table(rows, GAINS_OF_AGENTS)


class Step(NamedTuple):
    """A key that goes from its control to another value."""

    key: str
    value: Any
    control: Any


def _differences(
    cohorts: pd.DataFrame, parameters: pd.DataFrame, *, n_keys: int, rules: Rules
) -> list[Difference]:
    """Return the differences that steps in one key, or in two together, make to each measure."""
    keys = keys_of(parameters)
    runs = parameters.merge(cohorts, on="run")
    measures = [*MEASURES, *own_measures(cohorts)]
    steps = {key: _steps(key, runs, rules.controls) for key in keys}
    rows_by_cohort = list(runs.groupby("cohort", sort=False))
    differences = []
    for chosen_keys in itertools.combinations(keys, n_keys):
        other_keys = [key for key in keys if key not in chosen_keys]
        for move in itertools.product(*(steps[key] for key in chosen_keys)):
            row_texts = _words(move)
            for cohort, rows in rows_by_cohort:
                cells = [cell.set_index(["seed", *other_keys]) for cell in _cells(rows, move)]
                has_same_scale = all(_is_scaled_alike(cells[0], cell) for cell in cells[1:])
                means, counts = _by_seed(_alternating_sum(cells, measures))
                for measure in measures:
                    if counts[measure].any():
                        own_words = row_texts | {"cohort": str(cohort), "measure": measure}
                        differences.append(
                            Difference(own_words, means[measure], has_same_scale=has_same_scale)
                        )
    return differences


def _steps(key: str, runs: pd.DataFrame, controls: Mapping[str, Any]) -> list[Step]:
    """Return the steps of a key from its control, by default its first value, to each other."""
    values = list(runs[key].drop_duplicates())
    if not values:
        return []
    control = values[0]
    if key in controls:
        equal_values = [value for value in values if alike(controls[key], value)]
        if equal_values:
            control = equal_values[0]
    return [Step(key, value, control) for value in values if value != control]


def _words(move: Sequence[Step]) -> dict[str, str]:
    """Return the words of one or two steps, by their columns."""
    row_texts: dict[str, str] = {}
    for columns, step in zip((STEP_COLUMNS, OTHER_STEP_COLUMNS), move, strict=False):
        texts = (step.key, text_of(step.value), text_of(step.control))
        row_texts |= dict(zip(columns, texts, strict=True))
    return row_texts


def _cells(rows: pd.DataFrame, move: Sequence[Step]) -> list[pd.DataFrame]:
    """Return the rows at each choice of value or control of each step's key.

    Those at the first key's value and at its control follow one another.
    """
    cells = [rows]
    for step in move:
        at_value = [cell[cell[step.key] == step.value] for cell in cells]
        at_control = [cell[cell[step.key] == step.control] for cell in cells]
        cells = [*at_value, *at_control]
    return cells


def _alternating_sum(cells: Sequence[pd.DataFrame], measures: list[str]) -> pd.DataFrame:
    """Return the difference of two cells, or the difference of differences of four."""
    differences = [cell[measures].astype(float) for cell in cells]
    while len(differences) > 1:
        pairs = zip(differences[::2], differences[1::2], strict=True)
        differences = [at_value - at_control for at_value, at_control in pairs]
    return differences[0]


def _by_seed(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return means and counts by seed; the mean is NaN of a seed that lacks what another has."""
    by_seed = rows.groupby("seed")
    counts = by_seed.count()
    return by_seed.mean().where(counts == counts.max()), counts


def _is_scaled_alike(first: pd.DataFrame, second: pd.DataFrame) -> bool:
    """Whether losses are normalised alike in all pairs of as many agents."""
    pairs = first.index.intersection(second.index)
    left = first.loc[pairs]
    right = second.loc[pairs]
    are_same_people = left["agents"] == right["agents"]
    return np.allclose(
        left.loc[are_same_people, NORMALISED].astype(float),
        right.loc[are_same_people, NORMALISED].astype(float),
        rtol=1e-9,
        atol=1e-12,
        equal_nan=True,
    )


def unit_notes(contrasts: pd.DataFrame) -> Iterator[str]:
    """Say of each key that changes how losses are normalised that it changes their unit."""
    is_scaled_otherwise = ~contrasts["same_scale"] & (contrasts["cohort"] != EVERYBODY)
    for key, rows in contrasts[is_scaled_otherwise].groupby("key", sort=False):
        cohorts = ", ".join(rows["cohort"].unique())
        yield (
            f"{key} changes loss_scale or loss_offset of {cohorts}: "
            "losses and regrets under its values are in different units. Compare welfare."
        )
