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
from regretless.scenarios.config.files import format_value
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.tables import Count, Name, Strict
from regretless.scenarios.studies.analysis.measures import (
    MEASURES,
    own_measures,
    typed_table,
    with_everybody,
)

MIN_POINTS = 8  # from which anything is estimated
N_RESAMPLES = 999  # of the bootstrap
BOOTSTRAP_SEED = 0
NEAREST_SHARE = 0.5  # of the runs, which count for the calibration
QUANTILES = (0.5, 0.025, 0.975)  # of which the first is the estimate
MAX_ROUNDING = 1e-12  # of a measure that does not vary
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
    def sampled_limits(self) -> Array:
        """Both ends on the scale that is sampled: logarithms of the range, if ``log``.

        Those of whole numbers reach half a unit beyond.
        """
        half_unit = 0.5 if self.whole else 0.0
        limits = np.array([self.low - half_unit, self.high + half_unit])
        return np.log(limits) if self.log else limits

    def values(self, share: Array) -> list[float | int]:
        """Return the values at shares of the range, from 0 to 1."""
        sampled_low, sampled_high = self.sampled_limits
        scaled = sampled_low + share * (sampled_high - sampled_low)
        values = np.exp(scaled) if self.log else scaled
        values_in_range = np.clip(values, self.low, self.high)
        if self.whole:
            return [int(value) for value in np.rint(values_in_range)]
        return [float(value) for value in values_in_range]

    def shares(self, values: Array) -> Array:
        """Return which shares of the range values are, strictly between 0 and 1."""
        sampled_low, sampled_high = self.sampled_limits
        scaled = np.log(values) if self.log else values
        shares = (scaled - sampled_low) / (sampled_high - sampled_low)
        return np.asarray(np.clip(shares, 1e-6, 1 - 1e-6))


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
                raise ValueError(
                    f"{key} = {format_value(span)}: give [low, high], or low, high and log"
                )
        return spans or keys

    @model_validator(mode="after")
    def _enough(self) -> "SampleSpec":
        if self.points < MIN_POINTS:
            raise ValueError(f"points = {self.points}: give at least {MIN_POINTS}")
        if self.method == "sobol" and self.points & (self.points - 1):
            raise ValueError(f"points = {self.points}: give a power of 2 to method 'sobol'")
        if self.method == "sobol" and self.targets:
            raise ValueError("targets need method 'latin-hypercube'; change it")
        return self

    @property
    def is_latin_hypercube(self) -> bool:
        """Whether it is of this design, whose points have seeds of their own."""
        return self.method == "latin-hypercube"

    def __len__(self) -> int:
        """Count the settings."""
        return self.points * (1 if self.is_latin_hypercube else len(self.keys) + 2)

    def settings(self) -> list[dict[str, Any]]:
        """Return the keys of every setting; of ``sobol`` A, then B, then A with one column of B."""
        shares = self._shares()
        settings: list[dict[str, Any]] = [{} for _ in shares]
        for key_index, (key_name, span) in enumerate(self.keys.items()):
            for setting, value in zip(settings, span.values(shares[:, key_index]), strict=True):
                setting[key_name] = value
        return settings

    def _shares(self) -> Array:
        """Return where every setting is in the range of every key, from 0 to 1: (len(self), d)."""
        n_keys = len(self.keys)
        n_points = self.points
        if self.is_latin_hypercube:
            return np.asarray(qmc.LatinHypercube(n_keys, rng=self.seed).random(n_points))
        # Saltelli's design: the blocks A and B, then for each key A with that key's column of B.
        sobol_points = qmc.Sobol(2 * n_keys, rng=self.seed).random(n_points)
        block_a, block_b = np.split(sobol_points, 2, axis=1)
        blocks = [block_a, block_b]
        for key_index in range(n_keys):
            mixed_block = block_a.copy()
            mixed_block[:, key_index] = block_b[:, key_index]
            blocks.append(mixed_block)
        return np.concatenate(blocks)


def measured(cohorts: pd.DataFrame) -> pd.DataFrame:
    """Return a row per run and a column per (cohort, measure) that every run has a number of."""
    cohorts_and_everybody = with_everybody(cohorts)
    values = [*MEASURES, *own_measures(cohorts)]
    wide = cohorts_and_everybody.pivot_table(
        index="run", columns="cohort", values=values, dropna=False
    )
    return wide.swaplevel(axis=1).astype(np.float64).dropna(axis=1)


def sensitivity_table(
    cohorts: pd.DataFrame, parameters: pd.DataFrame, sample: SampleSpec
) -> pd.DataFrame:
    """Return the indices of every key and measure: the columns ``SENSITIVITY``.

    ``cohorts`` has the columns ``COHORT_COLUMNS`` and measures of one's own, ``parameters`` has
    ``run``, ``seed`` and the keys. Measures that do not vary are left out, and where a run of a
    ``sobol`` design is missing, everything is.
    """
    if cohorts.empty:
        return typed_table([], SENSITIVITY)
    table = measured(cohorts)
    varying = table.loc[:, table.max() - table.min() > MAX_ROUNDING]
    rows: list[list[Any]] = []
    if sample.is_latin_hypercube:
        rows += _rank_correlations(varying, parameters, sample)
    elif len(table) == len(parameters):
        rows += _sobol_indices(varying, sample)
    return typed_table(rows, SENSITIVITY)


def _rank_correlations(
    table: pd.DataFrame, parameters: pd.DataFrame, sample: SampleSpec
) -> Iterator[list[Any]]:
    """Yield a row per measure and key: Spearman's correlation, with Fisher's 95 % interval."""
    keys = parameters.set_index("run").loc[table.index]
    half = 1.96 / np.sqrt(max(len(table) - 3, 1))  # of the interval, on Fisher's scale
    for where in table.columns:
        for key in sample.keys:
            correlation = float(stats.spearmanr(keys[key], table[where]).statistic)
            middle = np.arctanh(np.clip(correlation, -1 + 1e-12, 1 - 1e-12))
            limits = np.tanh([middle - half, middle + half])
            yield [key, "rank correlation", *where, len(table), correlation, *limits]


def _sobol_indices(table: pd.DataFrame, sample: SampleSpec) -> Iterator[list[Any]]:
    """Yield a row per measure, order and key: Sobol's index with its 95 % bootstrap interval.

    The indices are those of ``scipy.stats.sobol_indices``. Its own bootstrap takes no generator,
    so that no two of its intervals are the same, and it fails where there is one key.
    """
    points = np.arange(sample.points)
    for where in table.columns:
        # Means over the seeds of each setting: a row per block (A, B, then A with a column of B).
        by_setting = table[where].to_numpy().reshape(len(sample), -1).mean(axis=1)
        blocks = by_setting.reshape(-1, len(points))
        centred = blocks - blocks[:2].mean()

        def indices(chosen: Indices, blocks: Array = centred) -> Array:
            """Return first and total orders (2, d) from some of the points."""
            a = blocks[0, chosen]
            b = blocks[1, chosen]
            mixed = blocks[2:, chosen]
            first_order = (b * (mixed - a)).mean(axis=-1)
            total_order = ((a - mixed) ** 2).mean(axis=-1) / 2
            return np.asarray(np.stack([first_order, total_order]) / np.var([a, b]))

        rng = np.random.default_rng(BOOTSTRAP_SEED)
        with warnings.catch_warnings(), np.errstate(all="ignore"):  # ends may be empty
            warnings.simplefilter("ignore", RuntimeWarning)
            estimates = np.nan_to_num(indices(points), posinf=0, neginf=0)
            resampled = stats.bootstrap(
                (points,), indices, n_resamples=N_RESAMPLES, vectorized=False, rng=rng
            )
        low, high = resampled.confidence_interval
        for order, name in enumerate(("first order", "total order")):
            for key_index, key in enumerate(sample.keys):
                figures = (float(array[order, key_index]) for array in (estimates, low, high))
                yield [key, name, *where, len(table), *figures]


def calibration_table(
    cohorts: pd.DataFrame, parameters: pd.DataFrame, sample: SampleSpec
) -> pd.DataFrame:
    """Estimate every sampled key from ``sample.targets``: the columns ``CALIBRATION``.

    ``runs`` were near enough to count; NaN where the runs do not reach what was observed. UserError
    if some run has no number of a target.
    """
    if cohorts.empty:
        return typed_table([], CALIBRATION)
    table = measured(cohorts)
    observed = np.array(list(sample.targets.values()))
    everybody_last = sorted(table.columns.to_list(), key=lambda where: where[0] == EVERYBODY)
    column_of: dict[str, Any] = {}
    for where in everybody_last:  # without a cohort: everybody's, if several have it
        column_of[where[1]] = where
    for where in everybody_last:
        column_of[".".join(where)] = where
    for target in sample.targets:
        if target not in column_of:
            hint = "choose one that every run has"
            raise UserError(f"sample.targets.{target}: not every run measured it; {hint}")
    moments = table[[column_of[target] for target in sample.targets]].to_numpy()
    weights = _weights(moments, observed)
    scaled_distances = (moments - observed) / _median_deviations(moments)
    keys = parameters.set_index("run").loc[table.index]
    n_counted = int((weights > 0).sum())
    rows = []
    for key, span in sample.keys.items():
        estimate = _estimate(span, keys[key].to_numpy(), weights, scaled_distances)
        rows.append([key, n_counted, *estimate, float(span.low), float(span.high)])
    return typed_table(rows, CALIBRATION)


def _median_deviations(moments: Array) -> Array:
    """Return the unit of each moment of all runs (N, m): its median deviation, 1 of none."""
    spread = np.median(np.abs(moments - np.median(moments, axis=0)), axis=0)
    return np.asarray(np.where(spread > 0, spread, 1.0))


def _weights(moments: Array, observed: Array) -> Array:
    """Return how much each run (N,) counts; nothing where runs do not reach what was observed."""
    is_reached = (moments.min(axis=0) <= observed) & (observed <= moments.max(axis=0))
    if not is_reached.all() or len(moments) < MIN_POINTS:
        return np.zeros(len(moments))
    distance = np.linalg.norm((moments - observed) / _median_deviations(moments), axis=1)
    width = max(float(np.quantile(distance, NEAREST_SHARE)), np.finfo(np.float64).tiny)
    return np.asarray(np.maximum(1 - (distance / width) ** 2, 0.0))


def _estimate(span: Span, values: Array, weights: Array, scaled_distances: Array) -> list[float]:
    """Return the weighted quantiles of a key, adjusted by regression on how far moments are."""
    if not weights.any():
        return [np.nan] * len(QUANTILES)
    phi = logit(span.shares(values))
    design = np.column_stack([np.ones(len(phi)), scaled_distances])
    root = np.sqrt(weights)
    beta = np.linalg.lstsq(design * root[:, np.newaxis], phi * root, rcond=None)[0][1:]
    adjusted = phi - scaled_distances @ beta
    order = np.argsort(adjusted, kind="stable")
    levels = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    quantiles = expit(np.interp(QUANTILES, levels, adjusted[order]))
    return [float(value) for value in span.values(quantiles)]


def check_targets(sample: SampleSpec, scenario: ScenarioSpec) -> None:
    """Raise UserError for a target that no run of a scenario can have."""
    measures = [*MEASURES, *scenario.measures]
    known_names = set(scenario.measures)
    for cohort in (*(cohort.name for cohort in scenario.cohort), EVERYBODY):
        known_names.update(f"{cohort}.{measure}" for measure in measures)
    for target in sample.targets:
        if target not in known_names:
            raise UserError(
                f"sample.targets.{target}: no such measure; {closest(target, known_names)}"
            )
