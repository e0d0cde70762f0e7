r"""Keys that are sampled from ranges: the designs, and what follows from the runs.

``latin-hypercube`` cuts every range into as many strata as there are points and gives each stratum
one point (McKay, Beckman and Conover, Technometrics 21, 1979), with seeds of its own. ``sobol`` is
the design of Saltelli et al. (Computer Physics Communications 181, 2010): two blocks A and B of a
Sobol sequence in twice as many dimensions, and for each key the block A with that key's column
taken from B; all with the same seeds.

**Sensitivity.** Of a measure f of independent keys x_1..x_d, a ``sobol`` design gives the first
order Var(E[f | x_i]) / Var(f) and the total order E[Var(f | all but x_i)] / Var(f), as in
``scipy.stats.sobol_indices``, with 95 % bootstrap intervals over the points. A Latin hypercube
gives Spearman's rank correlation of key and measure over all runs, with Fisher's 95 % interval.

**Calibration.** Run r of a Latin hypercube has keys theta_r, drawn evenly from their ranges, and
moments m_r, with noise of its own. Given observed moments m*, the posterior of theta under the even
prior is approximated by regression adjustment (Beaumont, Zhang and Balding, Genetics 162, 2002):
with phi the logit of theta's share of its range, and weights w_r = 1 - (|m_r - m*| / h)^2 for runs
within h, the distance of the nearest half (each moment in units of its median deviation),

    phi_r = alpha + beta (m_r - m*) + error,       phi_r* = phi_r - beta (m_r - m*),

and estimate and 95 % interval are the weighted quantiles 0.5, 0.025 and 0.975 of phi_r*. The
interval holds the noise of one observation. Where an observed moment lies outside what all runs
gave, nothing is estimated.
"""

import warnings
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field, field_validator, model_validator
from scipy import stats
from scipy.special import expit, logit
from scipy.stats import qmc

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError, closest
from regretless.market.logs.alternatives import EVERYBODY
from regretless.scenarios.config.files import shown
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.tables import Count, Name, Strict
from regretless.scenarios.studies.analysis.measures import (
    MEASURES,
    laid_out,
    own_measures,
    with_everybody,
)

FEWEST = 8  # points from which anything is estimated
RESAMPLES, SEED = 999, 0  # of the bootstrap
NEAREST = 0.5
QUANTILES = (0.5, 0.025, 0.975)
SENSITIVITY = {
    **dict.fromkeys(["key", "value", "cohort", "measure"], "str"),
    "runs": "int64",
    **dict.fromkeys(["mean", "low", "high"], "float64"),
}
CALIBRATION = {"key": "str", "runs": "int64"} | dict.fromkeys(
    ["estimate", "low", "high", "prior_low", "prior_high"], "float64"
)


class Span(Strict):
    """The range of a key."""

    low: float | int
    """Its lower end."""
    high: float | int
    """Its upper end."""
    log: bool = False
    """Whether its logarithm is sampled evenly."""

    @model_validator(mode="after")
    def _ordered(self) -> "Span":
        if not self.low < self.high:
            raise ValueError(f"from {self.low} to {self.high}: give the lower end first")
        if self.log and self.low <= 0:
            raise ValueError(f"from {self.low} with log = true: give a lower end above 0")
        return self

    @property
    def whole(self) -> bool:
        """Whether it holds whole numbers: both ends are."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def ends(self) -> Array:
        """The ends on the scale that is sampled; whole numbers reach half a unit beyond."""
        half = 0.5 if self.whole else 0.0
        ends = np.array([self.low - half, self.high + half])
        return np.log(ends) if self.log else ends

    def values(self, share: Array) -> list[float | int]:
        """Return the values at shares of the range, from 0 to 1."""
        low, high = self.ends
        found = low + share * (high - low)
        found = np.clip(np.exp(found) if self.log else found, self.low, self.high)
        return list(map(int, np.rint(found)) if self.whole else map(float, found))

    def shares(self, values: Array) -> Array:
        """Return which shares of the range values are, strictly between 0 and 1."""
        low, high = self.ends
        found = (np.log(values) if self.log else values) - low
        return np.asarray(np.clip(found / (high - low), 1e-6, 1 - 1e-6))


class SampleSpec(Strict):
    """Keys that are sampled."""

    method: Literal["latin-hypercube", "sobol"] = "latin-hypercube"
    """How points are spread over the ranges."""
    points: Count
    """Points of the hypercube; for ``sobol`` those of one block, a power of 2."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Of the points."""
    keys: Annotated[dict[Name, Span], Field(min_length=1)]
    """Dotted keys with their ranges, [low, high] or a table."""
    targets: dict[Name, float] = Field(default_factory=dict)
    """Measures, as "COHORT.MEASURE", with what was observed: the keys are calibrated to them."""

    @field_validator("keys", mode="before")
    @classmethod
    def _pairs(cls, keys: Any) -> Any:
        spans = dict(keys) if isinstance(keys, dict) else {}
        for key, span in spans.items():
            numbers = isinstance(span, list) and all(type(end) in {int, float} for end in span)
            if numbers and len(span) == 2:
                spans[key] = {"low": span[0], "high": span[1]}
            elif not isinstance(span, dict):
                raise ValueError(f"{key} = {shown(span)}: give [low, high], or low, high and log")
        return spans or keys

    @model_validator(mode="after")
    def _enough(self) -> "SampleSpec":
        if self.points < FEWEST:
            raise ValueError(f"points = {self.points}: give at least {FEWEST}")
        if self.method == "sobol" and self.points & (self.points - 1):
            raise ValueError(f"points = {self.points}: give a power of 2 to method 'sobol'")
        if self.method == "sobol" and self.targets:
            raise ValueError("targets need method 'latin-hypercube'; change it")
        return self

    @property
    def own_seeds(self) -> bool:
        """Whether every point has seeds of its own."""
        return self.method == "latin-hypercube"

    def __len__(self) -> int:
        """Count the settings."""
        return self.points * (1 if self.own_seeds else len(self.keys) + 2)

    def settings(self) -> list[dict[str, Any]]:
        """Return the keys of every setting; of ``sobol`` A, then B, then A with one column of B."""
        d = len(self.keys)
        if self.own_seeds:
            shares = qmc.LatinHypercube(d, rng=self.seed).random(self.points)
        else:
            first, second = np.split(qmc.Sobol(2 * d, rng=self.seed).random(self.points), 2, 1)
            mixed = [np.where(np.arange(d) == key, second, first) for key in range(d)]
            shares = np.concatenate([first, second, *mixed])
        pairs = zip(self.keys.values(), shares.T, strict=True)
        columns = [span.values(share) for span, share in pairs]
        return [dict(zip(self.keys, row, strict=True)) for row in zip(*columns, strict=True)]


def measured(cohorts: pd.DataFrame) -> pd.DataFrame:
    """Return a row per run and a column per (cohort, measure) that every run has a number of."""
    everybody = with_everybody(cohorts)
    values = [*MEASURES, *own_measures(cohorts)]
    wide = everybody.pivot_table(index="run", columns="cohort", values=values, dropna=False)
    return wide.swaplevel(axis=1).astype(np.float64).dropna(axis=1)


def sensitivity_table(
    cohorts: pd.DataFrame, parameters: pd.DataFrame, sample: SampleSpec
) -> pd.DataFrame:
    """Return the indices of every key and measure: the columns ``SENSITIVITY``.

    ``cohorts`` has the columns ``COHORTS`` and measures of one's own, ``parameters`` ``run``,
    ``seed`` and the keys. Measures that do not vary are left out, and where a run of a ``sobol``
    design is missing, everything is.
    """
    table = measured(cohorts)
    moving = table.loc[:, table.max() - table.min() > 1e-12]
    if sample.own_seeds:
        rows = list(_ranked(moving, parameters, sample))
    else:
        rows = list(_sobol(moving, sample)) if len(table) == len(parameters) else []
    return laid_out(rows, SENSITIVITY)


def _ranked(
    table: pd.DataFrame, parameters: pd.DataFrame, sample: SampleSpec
) -> Iterator[list[Any]]:
    keys = parameters.set_index("run").loc[table.index]
    reach = 1.96 / np.sqrt(max(len(table) - 3, 1))
    for where in table.columns:
        for key in sample.keys:
            found = float(stats.spearmanr(keys[key], table[where]).statistic)
            middle = np.arctanh(np.clip(found, -1 + 1e-12, 1 - 1e-12))
            ends = np.tanh([middle - reach, middle + reach])
            yield [key, "rank correlation", *where, len(table), found, *ends]


def _sobol(table: pd.DataFrame, sample: SampleSpec) -> Iterator[list[Any]]:
    every = np.arange(sample.points)
    for where in table.columns:
        blocks = table[where].to_numpy().reshape(len(sample), -1).mean(1).reshape(-1, len(every))
        centred = blocks - blocks[:2].mean()

        def indices(rows: Indices, blocks: Array = centred) -> Array:
            a, b, ab = blocks[0, rows], blocks[1, rows], blocks[2:, rows]
            found = np.stack([(b * (ab - a)).mean(-1), ((a - ab) ** 2).mean(-1) / 2])
            return np.asarray(found / np.var([a, b]))  # (2, d)

        rng = np.random.default_rng(SEED)
        with warnings.catch_warnings(), np.errstate(all="ignore"):  # ends may be empty
            warnings.simplefilter("ignore", RuntimeWarning)
            found = np.nan_to_num(indices(every), posinf=0, neginf=0)
            again = stats.bootstrap(
                (every,), indices, n_resamples=RESAMPLES, vectorized=False, rng=rng
            ).confidence_interval
        for order, index in enumerate(("first order", "total order")):
            for place, key in enumerate(sample.keys):
                ends = (float(own[order, place]) for own in (found, again.low, again.high))
                yield [key, index, *where, len(table), *ends]


def calibration_table(
    cohorts: pd.DataFrame, parameters: pd.DataFrame, sample: SampleSpec
) -> pd.DataFrame:
    """Estimate every sampled key from ``sample.targets``: the columns ``CALIBRATION``.

    ``runs`` were near enough to count; NaN where the runs do not reach what was observed. UserError
    if some run has no number of a target.
    """
    table, observed = measured(cohorts), np.array(list(sample.targets.values()))
    columns = sorted(table.columns.to_list(), key=lambda where: where[0] == EVERYBODY)
    known: dict[str, Any] = {where[1]: where for where in columns}  # everybody's, if several are
    known |= {".".join(where): where for where in columns}
    for target in sample.targets:
        if target not in known:
            cure = "choose one that every run has"
            raise UserError(f"sample.targets.{target}: not every run measured it; {cure}")
    moments = table[[known[target] for target in sample.targets]].to_numpy()
    spread = np.median(np.abs(moments - np.median(moments, axis=0)), axis=0)
    apart = (moments - observed) / np.where(spread > 0, spread, 1.0)
    distance, weights = np.linalg.norm(apart, axis=1), np.zeros(len(moments))
    inside = (moments.min(0) <= observed) & (observed <= moments.max(0))
    if inside.all() and len(moments) >= FEWEST:
        width = max(float(np.quantile(distance, NEAREST)), np.finfo(np.float64).tiny)
        weights = np.maximum(1 - (distance / width) ** 2, 0.0)
    keys, rows = parameters.set_index("run").loc[table.index], []
    for key, span in sample.keys.items():
        found = _estimate(span, keys[key].to_numpy(), weights, apart)
        rows.append([key, int((weights > 0).sum()), *found, float(span.low), float(span.high)])
    return laid_out(rows, CALIBRATION)


def _estimate(span: Span, values: Array, weights: Array, apart: Array) -> list[float]:
    """Return the weighted quantiles of a key, adjusted by regression on how far moments are."""
    if not weights.any():
        return [np.nan] * 3
    phi = logit(span.shares(values))
    design = np.column_stack([np.ones(len(phi)), apart])
    root = np.sqrt(weights)
    beta = np.linalg.lstsq(design * root[:, None], phi * root, rcond=None)[0][1:]
    adjusted = phi - apart @ beta
    order = np.argsort(adjusted, kind="stable")
    levels = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    quantiles = expit(np.interp(QUANTILES, levels, adjusted[order]))
    return list(map(float, span.values(quantiles)))


def check_targets(sample: SampleSpec, scenario: ScenarioSpec) -> None:
    """Raise UserError for a target that no run of a scenario can have."""
    known = {*scenario.measures} | {
        f"{cohort}.{measure}"
        for cohort in (*(own.name for own in scenario.cohort), EVERYBODY)
        for measure in (*MEASURES, *scenario.measures)
    }
    for target in sample.targets:
        if target not in known:
            raise UserError(f"sample.targets.{target}: no such measure; {closest(target, known)}")
