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
(``analysis.with_everybody``).

Losses are normalised into [0, 1] cohort by cohort. A key that changes how (``loss_scale`` or
``loss_offset``) changes the unit of losses and regrets: ``same_scale`` is then False, and it is
welfare, in the utility's own units, that can be compared.

**Tests.** The differences of a table are a family. With D_s a difference at seed s of n, its mean
has the error e = sd(D) / sqrt(n), and mean / e is a t variable with n - 1 degrees of freedom if it
is 0 in truth.

- **p-values** are adjusted by Holm's method (``market.regret.inference.holm``),
- **simultaneous intervals** are mean +- c e, c the 95 % quantile of the greatest |t| of all, whose
  differences are as dependent as they are over the seeds (max-t, ``inference.critical``). With
  fewer than 10 seeds that are common to all, c is Bonferroni's.
- **Equivalence** within a margin m is shown where both one-sided tests, of mean <= -m and of
  mean >= m, are significant at 5 % (Schuirmann 1987, Journal of Pharmacokinetics and
  Biopharmaceutics 15(6), doi:10.1007/BF01068419): the greater of their p-values, adjusted by Holm's
  method for all that have a margin.

Where seeds are replicates of one history, e is sd(D): more of them do not make it smaller.
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
from regretless.market.logs.comparisons import EVERYBODY
from regretless.market.logs.welfare import means_of
from regretless.market.regret.inference import LEVEL, critical, holm
from regretless.scenarios.studies.analysis.measures import (
    INTERVAL,
    MEASURES,
    NORMALISED,
    OF_MARKET,
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
TESTED = dict.fromkeys(
    ["p_adjusted", "simultaneous_low", "simultaneous_high", "margin", "p_equivalence"], "float64"
)
EQUIVALENT = 1 - LEVEL  # the greatest p_equivalence that shows it


@dataclass(frozen=True)
class Rules:
    """How a study's differences are tested.

    ``ends`` gives the interval of a mean over seeds; ``within`` the ranges of the measures that
    have one; ``controls``, by key, the value that its others are compared with, the first where
    none is given; ``margin`` up to what a difference counts as none: of all measures in [0, 1], or
    by measure.
    """

    ends: Callable[..., tuple[float, float, float]] = interval
    within: Mapping[str, Range] = field(default_factory=lambda: WITHIN)
    controls: Mapping[str, Any] = field(default_factory=dict)
    margin: float | Mapping[str, float] | None = None

    def margin_of(self, measure: str) -> float:
        """Return the margin of a measure; NaN where it has none."""
        if isinstance(self.margin, Mapping):
            return float(self.margin.get(measure, np.nan))
        known = self.margin is not None and self.within.get(measure) == (0.0, 1.0)
        return float(self.margin or 0.0) if known else float("nan")


@dataclass(frozen=True)
class Difference:
    """A row of a table to come.

    ``words`` are the columns of the row that say what differs, ``measure`` among them; ``by_seed``
    is NaN where a seed lacks one of its pairs; ``same_scale`` whether losses are normalised alike.
    """

    words: dict[str, str]
    by_seed: "pd.Series[float]"
    same_scale: bool = True


def family(found: Sequence[Difference], columns: Mapping[str, Any], rules: Rules) -> pd.DataFrame:
    """Lay out differences as a table, with intervals and tests.

    ``columns``: types of the columns that ``words`` fill. Returns frame: these columns, ``seeds``,
    ``mean``, ``low``, ``high``, ``same_scale``, and those of ``TESTED``.
    """
    rows = []
    for one in found:
        measure, values = one.words["measure"], one.by_seed.dropna().to_numpy()
        within = rules.within.get(measure)
        ends = rules.ends(values, within and (within[0] - within[1], within[1] - within[0]))
        numbers = dict(zip(INTERVAL, ends, strict=True)) | {"margin": rules.margin_of(measure)}
        rows.append(one.words | numbers | {"seeds": len(values), "same_scale": one.same_scale})
    types = dict(columns) | {"seeds": "int64"} | dict.fromkeys(INTERVAL, "float64")
    types |= {"same_scale": "bool"} | TESTED
    table = laid_out(rows, types)
    return _tested(table, [one.by_seed for one in found], rules) if rows else table


def _tested(
    table: pd.DataFrame, samples: Sequence["pd.Series[float]"], rules: Rules
) -> pd.DataFrame:
    seeds, mean = table["seeds"].to_numpy(), table["mean"].to_numpy()
    known = [int(i) for i in np.flatnonzero(seeds >= 2)]
    if not known:
        return table
    own = [samples[i] for i in known]
    freedom, count = seeds[known] - 1, 1 if rules.ends is replicates else seeds[known]
    error = np.array([one.std(ddof=1) for one in own]) / np.sqrt(count)
    common = pd.concat(own, axis=1).dropna()
    few = np.asarray(stdtrit(freedom, 1 - (1 - LEVEL) / (2 * len(own))))
    half = (critical(common.to_numpy()) if len(common) >= 2 else few) * error
    margin = table["margin"].to_numpy()[known]
    size = np.abs(mean[known])
    table.loc[known, "p_adjusted"] = holm(2 * stdtr(freedom, -_t(size, error)))
    table.loc[known, "simultaneous_low"] = mean[known] - half
    table.loc[known, "simultaneous_high"] = mean[known] + half
    shown = ~np.isnan(margin)
    one_sided = stdtr(freedom[shown], -_t((margin - size)[shown], error[shown]))
    table.loc[np.array(known)[shown], "p_equivalence"] = holm(one_sided)
    return table


def _t(distance: Array, error: Array) -> Array:
    """Return distances over their errors; of none at all 0, and without an error infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(distance) < NOTHING, 0.0, distance / error)


def equivalent(row: Mapping[Any, Any]) -> str:
    """Say of a row that its difference is shown to lie within its margin; nothing if it is not."""
    shown = row["p_equivalence"] < EQUIVALENT
    return f"equivalent within {row['margin']:g}" if shown else ""


def controls_of(control: Any, levels: Mapping[str, Iterable[Any]]) -> dict[str, Any]:
    """Return the value of each key that a study's ``control`` says the others are compared with.

    ``control`` (value, or mapping of keys to values, or None): a value, or a label, stands for the
    key that has it; ``levels`` (mapping): the values of each key. ValueError if no key has it, or
    several have.
    """
    if control is None:
        return {}
    if isinstance(control, Mapping):
        for key, value in control.items():
            if key not in levels or not _among(value, levels[key]):
                known = ", ".join(levels) or "none varies"
                raise ValueError(f"control: {key} = {value!r} is no value that varies ({known})")
        return dict(control)
    keys = [key for key, values in levels.items() if _among(control, values)]
    if len(keys) == 1:
        return {keys[0]: control}
    where = f"of {', '.join(keys)}" if keys else f"of no key ({', '.join(levels) or 'none varies'})"
    cure = "write control = { KEY = VALUE }" if keys else "give a value or label that varies"
    raise ValueError(f"control = {control!r} is a value {where}; {cure}")


def _among(value: Any, values: Iterable[Any]) -> bool:
    return any(alike(value, other) for other in values)


def alike(one: Any, two: Any) -> bool:
    """Whether a value of a study file is one of a table, where lists are text."""
    return bool(text_of(one) == text_of(two) or one == two)


def check_margin(margin: float | Mapping[str, float] | None, own: Sequence[str]) -> None:
    """Raise UserError for a margin of a measure that there is not; ``own`` are the user's."""
    known = {*MEASURES, *GAINS, *own}
    for name in margin if isinstance(margin, Mapping) else ():
        if name not in known and not name.endswith(OF_MARKET):
            raise UserError(f"margin.{name}: no such measure; {closest(name, known)}")


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
    rules: Rules = Rules(),
) -> pd.DataFrame:
    """Compare each value of each key with its control, and each branch with its trunk.

    ``cohorts`` has ``COHORTS`` and measures of one's own, ``parameters`` has ``run``, ``seed`` and
    the keys, ``branches`` are the runs' tables of branches, with their ``run``. Returns frame:
    ``key``, ``value`` and ``against`` (text), ``cohort``, ``measure``, and the columns of
    ``family``.
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
    cohorts: pd.DataFrame, parameters: pd.DataFrame, *, rules: Rules = Rules()
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
