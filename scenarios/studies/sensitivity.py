r"""How strongly each sampled key moves a measure.

Of a study with ``method = "sobol"`` (``scenarios.studies.sampling``), f a measure as a function of
independent keys x_1..x_d, its mean over the seeds:

    first order   Var(E[f | x_i]) / Var(f)             what x_i explains by itself
    total order   E[Var(f | all but x_i)] / Var(f)     with everything that it does together with
                                                       others

estimated as in ``scipy.stats.sobol_indices`` (Saltelli et al., Computer Physics Communications 181,
2010), with 95 % bootstrap intervals over the points. Of a Latin hypercube: Spearman's rank
correlation of key and measure over all runs, with Fisher's 95 % interval.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from regretless.market.core.arrays import Array
from regretless.scenarios.studies.analysis.measures import MEASURES, own_measures, with_everybody
from regretless.scenarios.studies.sampling import SampleSpec

RESAMPLES = 999
SEED = 0  # of the bootstrap
SENSITIVITY = {
    **dict.fromkeys(["key", "value", "cohort", "measure"], "str"),
    "runs": "int64",
    **dict.fromkeys(["mean", "low", "high"], "float64"),
}


def measured(cohorts: pd.DataFrame) -> pd.DataFrame:
    """Return a row per run and a column per (cohort, measure) that every run has a number of."""
    everybody = with_everybody(cohorts)
    values = [*MEASURES, *own_measures(cohorts)]
    wide = everybody.pivot_table(index="run", columns="cohort", values=values, dropna=False)
    return wide.swaplevel(axis=1).astype(np.float64).dropna(axis=1)


def sensitivity_table(
    cohorts: pd.DataFrame, parameters: pd.DataFrame, sample: SampleSpec
) -> pd.DataFrame:
    """Return the indices of every key and measure.

    Parameters
    ----------
    cohorts : frame
        With the columns ``COHORTS`` and measures of one's own.
    parameters : frame
        ``run``, ``seed`` and the keys.

    Returns
    -------
    frame
        ``key``, ``value`` (which index), ``cohort``, ``measure``, ``runs``, ``mean`` (the index),
        ``low``, ``high``. Measures that do not vary are left out, and where a run of a ``sobol``
        design is missing, everything is.
    """
    table = measured(cohorts)
    moving = table.loc[:, table.max() - table.min() > 1e-12]
    rows = list((_ranked if sample.own_seeds else _sobol)(moving, parameters, sample))
    return pd.DataFrame(rows, columns=list(SENSITIVITY)).astype(SENSITIVITY)


def _ranked(
    table: pd.DataFrame, parameters: pd.DataFrame, sample: SampleSpec
) -> Iterator[list[Any]]:
    keys = parameters.set_index("run").loc[table.index]
    reach = 1.96 / np.sqrt(max(len(table) - 3, 1))
    for where in table.columns:
        values = table[where]
        for key in sample.keys:
            found = float(stats.spearmanr(keys[key], values).statistic)
            middle = np.arctanh(np.clip(found, -1 + 1e-12, 1 - 1e-12))
            ends = np.tanh([middle - reach, middle + reach])
            yield [key, "rank correlation", *where, len(table), found, *ends]


def _sobol(
    table: pd.DataFrame, parameters: pd.DataFrame, sample: SampleSpec
) -> Iterator[list[Any]]:
    if len(table) < len(parameters):
        return
    seeds = len(table) // len(sample)
    for where in table.columns:
        of_setting = table[where].to_numpy().reshape(len(sample), seeds).mean(1)
        for index, key, found in _indices(of_setting, sample):
            yield [key, index, *where, len(table), *found]


def _indices(values: Array, sample: SampleSpec) -> Iterator[tuple[str, str, tuple[float, ...]]]:
    """Yield index, key, and estimate with the ends of its interval."""
    blocks = values.reshape(-1, 1, sample.points)
    parts = {"f_A": blocks[0], "f_B": blocks[1], "f_AB": blocks[2:]}
    rng = np.random.default_rng(SEED)
    found = stats.sobol_indices(func=parts, n=sample.points, rng=rng)
    again = found.bootstrap(confidence_level=0.95, n_resamples=RESAMPLES)
    for index, estimate, ends in (
        ("first order", found.first_order, again.first_order.confidence_interval),
        ("total order", found.total_order, again.total_order.confidence_interval),
    ):
        for place, key in enumerate(sample.keys):
            yield index, key, tuple(float(np.ravel(a)[place]) for a in (estimate, *ends))
