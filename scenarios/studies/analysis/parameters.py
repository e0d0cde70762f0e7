r"""Regrets, and other measures of agents, by their parameters: among who is alike, and regressed.

**Regression.** Least squares, y = X b + u over the agents of a cohort in all runs, an agent that
stands for many weighted by them. X has a constant, every parameter of the utility that differs
between agents, and every key that varies: numbers as they are, anything else as a column per value
but the first (or the control). Errors are clustered by seed, over G seeds,

    V = G / (G - 1) (N - 1) / (N - K)  (X'X)^-1 (sum_g X_g' u_g u_g' X_g) (X'X)^-1,

and b_k / sqrt(V_kk) is a t variable with G - 1 degrees of freedom (Cameron and Miller 2015, Journal
of Human Resources 50(2), doi:10.3368/jhr.50.2.317). With few clusters the intervals are too narrow.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError, closest
from regretless.market.logs.counted import COUNT_COLUMN
from regretless.market.regret.inference import CONFIDENCE_LEVEL
from regretless.scenarios.studies.analysis.contrasts import alike
from regretless.scenarios.studies.analysis.measures import (
    COHORTS,
    REGRETS,
    cohorts_of,
    keys_of,
    laid_out,
    text_of,
)

PREFIX, BETWEEN = "param_", "\0"
PARTS, FEW = 3, 5  # parts by quantiles; values that are parts of their own
PARTED = ["cohort", "parameter", "range"]
CONSTANT = "constant"
MEASURED = ("mean_loss", *REGRETS)
REGRESSION = {
    **dict.fromkeys(["cohort", "measure", "term"], "str"),
    **dict.fromkeys(["coefficient", "low", "high", "p"], "float64"),
    **dict.fromkeys(["agents", "clusters"], "int64"),
}


def varied(agents: pd.DataFrame) -> Iterator[tuple[str, str, "pd.Series[str]"]]:
    """Yield cohort, parameter, and the range of each of its agents, in the order of its values."""
    for cohort, own in agents.groupby("cohort", sort=False):
        for column in map(str, own.filter(regex=f"^{PREFIX}")):
            values = own[column].dropna().sort_values(kind="stable")
            distinct = values.nunique()
            if distinct < 2 or (distinct > FEW and not pd.api.types.is_numeric_dtype(values)):
                continue
            if distinct <= FEW:
                texts = values.map(lambda v: f"{v:.6g}" if isinstance(v, float) else str(v))
            else:  # thirds, named by their ends
                ends = np.unique(np.quantile(values, np.linspace(0, 1, PARTS + 1)))
                place = np.clip(np.searchsorted(ends, values, side="right") - 1, 0, len(ends) - 2)
                names = [f"{low:.3g} to {high:.3g}" for low, high in itertools.pairwise(ends)]
                texts = pd.Series(np.array(names, dtype=object)[place], index=values.index)
            yield str(cohort), column.removeprefix(PREFIX), texts


def parted(agents: pd.DataFrame) -> pd.DataFrame:
    """Sum up (``COHORTS``) each third of each cohort by a parameter, or value where it has few.

    ``agents``: of all runs, with their ``run``; ``cohort`` becomes cohort, parameter and range, for
    ``named``. Runs with the same seed have the same agents: each part is compared with itself.
    """
    found = []
    for cohort, parameter, ranges in varied(agents):
        labels = BETWEEN.join([cohort, parameter, ""]) + ranges
        own = agents.loc[ranges.index].assign(cohort=labels)
        parts = pd.concat([cohorts_of(part, int(str(run))) for run, part in own.groupby("run")])
        found += [parts[parts["cohort"] == label] for label in labels.unique()]
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame(columns=COHORTS)


def named(table: pd.DataFrame) -> pd.DataFrame:
    """Give a table of parts their ``cohort``, ``parameter`` and ``range``."""
    parts = table["cohort"].str.split(BETWEEN, expand=True, regex=False)
    parts = parts.reindex(columns=range(len(PARTED))).set_axis(PARTED, axis=1).astype("str")
    rest, place = table.drop(columns="cohort"), list(table).index("cohort")
    return pd.concat([rest.iloc[:, :place], parts, rest.iloc[:, place:]], axis=1)


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
    UserError if a name is unknown.
    """
    keys = keys_of(parameters)
    drawn = {str(column).removeprefix(PREFIX): str(column) for column in agents}
    known = {name: column for name, column in drawn.items() if name != column}
    known |= {key: key for key in keys}
    for name in on or ():
        if name not in known:
            raise UserError(f"regression on '{name}': {closest(name, known)}")
    runs = agents.drop(columns=[k for k in keys if k in agents]).merge(parameters, on="run")
    rows = []
    for cohort, own in runs.groupby("cohort", sort=False):
        for measure in measures:
            complete = own.dropna(subset=measure)
            if len(complete):
                terms = _terms(complete, {n: known[n] for n in on or known}, controls or {})
                rows += [[cohort, measure, *found] for found in _fitted(complete, measure, terms)]
    return laid_out(rows, REGRESSION)


def _terms(
    rows: pd.DataFrame, columns: Mapping[str, str], controls: Mapping[str, Any]
) -> dict[str, Array]:
    """Return the columns of X (N,) by name: a constant and what is no combination of others."""
    found: dict[str, Any] = {}
    for name, column in columns.items():
        values = rows[column]
        if values.isna().any():  # of another cohort, or of some runs alone
            continue
        if pd.api.types.is_numeric_dtype(values) and values.dtype != bool:
            found[name] = values
            continue
        control = controls.get(name, next(iter(values)))
        others = (value for value in values.drop_duplicates() if not alike(control, value))
        found |= {f"{name} = {text_of(value)}": values == value for value in others}
    terms = {CONSTANT: np.ones(len(rows))}
    for name, values in found.items():
        own, known = values.to_numpy(dtype=np.float64), np.stack(list(terms.values()), axis=1)
        left = own - known @ np.linalg.lstsq(known, own, rcond=None)[0]
        if np.abs(left).max() > 1e-9 * max(np.abs(own).max(), 1e-300):
            terms[name] = own
    return terms


def _fitted(rows: pd.DataFrame, measure: str, terms: Mapping[str, Array]) -> list[list[Any]]:
    design = np.stack(list(terms.values()), axis=1)
    weight = np.ones(len(rows))
    if COUNT_COLUMN in rows:
        weight = rows[COUNT_COLUMN].to_numpy(dtype=np.float64)
    target = rows[measure].to_numpy(dtype=np.float64)
    _, cluster = np.unique(rows["seed"], return_inverse=True)
    size = np.abs(design).max(0)
    design, many = design / size, int(cluster.max()) + 1
    bread = np.linalg.inv(design.T @ (weight[:, None] * design))
    found = bread @ (design.T @ (weight * target))
    scores = np.zeros((many, design.shape[1]))
    np.add.at(scores, cluster, (weight * (target - design @ found))[:, None] * design)
    error = np.full(len(found), np.nan)
    if many > 1 and len(rows) > len(found):
        small = many / (many - 1) * (len(rows) - 1) / (len(rows) - len(found))
        variance = np.diag(bread @ scores.T @ scores @ bread)
        error = np.sqrt(small * np.maximum(variance, 0.0))  # rounding may be below
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * stdtr(max(many - 1, 1), -np.abs(found / error))
    half = stdtrit(max(many - 1, 1), (1 + CONFIDENCE_LEVEL) / 2) * error
    columns = found / size, (found - half) / size, (found + half) / size, p
    sizes = int(weight.sum()), many
    return [[name, *(float(c[k]) for c in columns), *sizes] for k, name in enumerate(terms)]
