r"""Regrets, and other measures of agents, by their parameters: among who is alike, and regressed.

**Regression.** Least squares, y = X b + u over the agents of a cohort in all runs, an agent that
stands for many weighted by them. X has a constant, every parameter of the utility that differs
between agents, and every key that varies: numbers as they are, anything else as a column per value
but the first (or the control). Errors are clustered by seed, over G seeds, by statsmodels (the
extra ``stats``):

    V = G / (G - 1) (N - 1) / (N - K)  (X'X)^-1 (sum_g X_g' u_g u_g' X_g) (X'X)^-1,

and b_k / sqrt(V_kk) is a t variable with G - 1 degrees of freedom (Cameron and Miller 2015, Journal
of Human Resources 50(2), doi:10.3368/jhr.50.2.317). With few clusters the intervals are too narrow.
"""

import importlib.util
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError, closest
from regretless.market.logs.counted import COUNT_COLUMN
from regretless.market.regret.inference import CONFIDENCE_LEVEL
from regretless.scenarios.studies.analysis.contrasts import CONTRAST, TESTED_MEAN, alike
from regretless.scenarios.studies.analysis.measures import (
    COHORT_TYPES,
    EFFECTS,
    REGRETS,
    cohorts_of,
    keys_of,
    text_of,
    typed_table,
)

PREFIX = "param_"  # of a column of agents that holds a parameter
SEPARATOR = "\0"  # between cohort, parameter and range, while the three are one name
N_PARTS = 3  # by quantiles, of a parameter with many values
MAX_VALUES_AS_PARTS = 5  # of a parameter each of whose values is a part of its own
PARTED = ["cohort", "parameter", "range"]
EFFECTS_BY_PARAMETER = EFFECTS | dict.fromkeys(PARTED, "str")
CONTRASTS_BY_PARAMETER = CONTRAST | dict.fromkeys(PARTED, "str") | TESTED_MEAN
CONSTANT = "constant"
MEASURED = ("mean_loss", *REGRETS)
REGRESSION = {
    **dict.fromkeys(["cohort", "measure", "term"], "str"),
    **dict.fromkeys(["coefficient", "low", "high", "p"], "float64"),
    **dict.fromkeys(["agents", "clusters"], "int64"),
}
RELATIVE_ROUNDING = 1e-9  # what is left of a column that others combine to
NOT_INSTALLED = (
    "the table 'regression' needs statsmodels, which is not installed; "
    "run pip install 'regretless[stats]'"
)


@dataclass(frozen=True, eq=False)
class Parts:
    """The agents of a cohort, parted by a parameter of their utility.

    Attributes
    ----------
    cohort, parameter : str
        Whose, and by which.
    ranges : Series
        The range of each agent that has the parameter, in the order of its values; its index is
        that of the agents.
    """

    cohort: str
    parameter: str
    ranges: "pd.Series[str]"


def parts_by_parameter(agents: pd.DataFrame) -> Iterator[Parts]:
    """Yield, of each cohort, its parts by each parameter in which its agents differ.

    A parameter with few values has a part for each. One with many has thirds, if it is a number.
    """
    for cohort, own_agents in agents.groupby("cohort", sort=False):
        for column in map(str, own_agents.filter(regex=f"^{PREFIX}")):
            values = own_agents[column].dropna().sort_values(kind="stable")
            n_values = values.nunique()
            is_number = pd.api.types.is_numeric_dtype(values)
            if n_values < 2 or (n_values > MAX_VALUES_AS_PARTS and not is_number):
                continue
            if n_values <= MAX_VALUES_AS_PARTS:
                ranges = values.map(lambda v: f"{v:.6g}" if isinstance(v, float) else str(v))
            else:
                ranges = _thirds(values)
            yield Parts(str(cohort), column.removeprefix(PREFIX), ranges)


def _thirds(values: "pd.Series[float]") -> "pd.Series[str]":
    """Name of each value the third in which it lies, by the ends of that third."""
    part_limits = np.unique(np.quantile(values, np.linspace(0, 1, N_PARTS + 1)))
    names = [f"{low:.3g} to {high:.3g}" for low, high in itertools.pairwise(part_limits)]
    third_of_value = np.searchsorted(part_limits, values, side="right") - 1
    # The greatest value lies in the last third.
    third_of_value = np.clip(third_of_value, 0, len(names) - 1)
    return pd.Series(np.array(names, dtype=object)[third_of_value], index=values.index)


def parted(agents: pd.DataFrame) -> pd.DataFrame:
    """Sum up (``COHORT_TYPES``) the agents of each cohort that are alike in a parameter.

    ``agents``: of all runs, with their ``run``; ``cohort`` becomes cohort, parameter and range, for
    ``named``. Runs with the same seed have the same agents: each part is compared with itself.
    """
    tables: list[pd.DataFrame] = []
    for parts in parts_by_parameter(agents):
        labels = SEPARATOR.join([parts.cohort, parts.parameter, ""]) + parts.ranges
        labelled = agents.loc[parts.ranges.index].assign(cohort=labels)
        rows_of_runs = []
        for run, agents_of_run in labelled.groupby("run"):
            rows_of_runs.append(cohorts_of(agents_of_run, int(str(run))))
        rows = pd.concat(rows_of_runs)
        tables += [rows[rows["cohort"] == label] for label in labels.unique()]
    if not tables:
        return typed_table([], COHORT_TYPES)
    return pd.concat(tables, ignore_index=True)


def named(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of parts with ``cohort``, ``parameter`` and ``range`` in place of one name."""
    parts = table["cohort"].str.split(SEPARATOR, expand=True, regex=False)
    parts = parts.reindex(columns=range(len(PARTED))).set_axis(PARTED, axis=1).astype("str")
    column_index = list(table).index("cohort")
    other_columns = table.drop(columns="cohort")
    return pd.concat(
        [other_columns.iloc[:, :column_index], parts, other_columns.iloc[:, column_index:]], axis=1
    )


def regression_table(
    agents: pd.DataFrame,
    parameters: pd.DataFrame,
    measures: Sequence[str] = MEASURED,
    *,
    on: Sequence[str] | None = None,
    controls: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Regress measures of agents on parameters and keys, cohort by cohort.

    ``agents`` are of all runs, with their ``run``; ``measures`` are columns of it, and those that
    were not kept are left out; ``on`` names parameters and keys, by default all that differ;
    ``controls`` has, by key, the value without a column. Returns frame: the columns ``REGRESSION``.
    UserError if a name is unknown, or statsmodels is not installed.
    """
    if not is_statsmodels_installed():
        raise UserError(NOT_INSTALLED)
    keys = keys_of(parameters)
    column_of = {}  # of each parameter and key, by its name
    for column in map(str, agents):
        if column.startswith(PREFIX):
            column_of[column.removeprefix(PREFIX)] = column
    column_of |= {key: key for key in keys}
    for name in on or ():
        if name not in column_of:
            raise UserError(f"regression on '{name}': {closest(name, column_of)}")
    regressors = {name: column_of[name] for name in on or column_of}

    doubled = [key for key in keys if key in agents]
    runs = agents.drop(columns=doubled).merge(parameters, on="run")
    rows = []
    for cohort, own_rows in runs.groupby("cohort", sort=False):
        for measure in measures:
            complete = own_rows.dropna(subset=measure)
            if len(complete):
                terms = _terms(complete, regressors, controls or {})
                rows += [[cohort, measure, *row] for row in _fitted(complete, measure, terms)]
    return typed_table(rows, REGRESSION)


def _terms(
    rows: pd.DataFrame, columns: Mapping[str, str], controls: Mapping[str, Any]
) -> dict[str, Array]:
    """Return the columns of X (N,) by name: a constant and what is no combination of others."""
    candidates: dict[str, Array] = {}
    for name, column in columns.items():
        values = rows[column]
        if values.isna().any():  # of another cohort, or of some runs alone
            continue
        if pd.api.types.is_numeric_dtype(values) and values.dtype != bool:
            candidates[name] = values.to_numpy(dtype=np.float64)
            continue
        control = controls.get(name, next(iter(values)))
        for value in values.drop_duplicates():
            if not alike(control, value):
                is_value = (values == value).to_numpy(dtype=np.float64)
                candidates[f"{name} = {text_of(value)}"] = is_value
    terms = {CONSTANT: np.ones(len(rows))}
    for name, candidate in candidates.items():
        all_terms = np.stack(list(terms.values()), axis=1)
        remainder = candidate - all_terms @ np.linalg.lstsq(all_terms, candidate, rcond=None)[0]
        size = max(np.abs(candidate).max(), np.finfo(np.float64).tiny)
        if np.abs(remainder).max() > RELATIVE_ROUNDING * size:
            terms[name] = candidate
    return terms


def _fitted(rows: pd.DataFrame, measure: str, terms: Mapping[str, Array]) -> list[list[Any]]:
    """Return of each term its name, coefficient, ends, p-value, and how many agents and seeds.

    Ends and p-value are NaN with one seed, or with no more rows than terms.
    """
    from statsmodels.regression.linear_model import WLS  # noqa: PLC0415 - an extra, and slow

    design = np.stack(list(terms.values()), axis=1)
    n_rows, n_terms = design.shape
    unit = np.abs(design).max(axis=0)  # of each column: all are solved for on one scale
    weights = np.ones(n_rows)
    if COUNT_COLUMN in rows:
        weights = rows[COUNT_COLUMN].to_numpy(dtype=np.float64)
    _, seed_of_row = np.unique(rows["seed"], return_inverse=True)
    n_seeds = int(seed_of_row.max()) + 1

    model = WLS(rows[measure].to_numpy(dtype=np.float64), design / unit, weights=weights)
    if n_seeds > 1 and n_rows > n_terms:
        fit = model.fit(cov_type="cluster", cov_kwds={"groups": seed_of_row}, use_t=True)
        variance = np.diag(fit.cov_params())
        standard_error = np.sqrt(np.maximum(variance, 0.0))  # rounding may be below
    else:
        fit = model.fit()
        standard_error = np.full(n_terms, np.nan)

    degrees_of_freedom = max(n_seeds - 1, 1)
    coefficients = fit.params
    half = stdtrit(degrees_of_freedom, (1 + CONFIDENCE_LEVEL) / 2) * standard_error
    with np.errstate(divide="ignore", invalid="ignore"):
        p_values = 2 * stdtr(degrees_of_freedom, -np.abs(coefficients / standard_error))
    estimates = np.stack([coefficients, coefficients - half, coefficients + half]) / unit
    n_agents = int(weights.sum())
    return [
        [name, *map(float, estimates[:, k]), float(p_values[k]), n_agents, n_seeds]
        for k, name in enumerate(terms)
    ]


def is_statsmodels_installed() -> bool:
    """Whether the library of the regression is there, which is an extra."""
    return importlib.util.find_spec("statsmodels") is not None
