r"""Tests of a family of differences: of one table, each a sample over seeds.

With D_s a difference at seed s of n, its mean has the error e = sd(D) / sqrt(n), and mean / e is a
t variable with n - 1 degrees of freedom if it is 0 in truth. Of all differences of a table:

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

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError, closest
from regretless.market.regret.inference import LEVEL, critical, holm
from regretless.scenarios.studies.analysis.measures import (
    INTERVAL,
    MEASURES,
    OF_MARKET,
    WITHIN,
    Range,
    interval,
    laid_out,
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
    """Fill in the columns of ``TESTED``."""
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
