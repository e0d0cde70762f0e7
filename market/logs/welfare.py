r"""Welfare and its inequality, and agents by distance.

A run writes ``welfare_record`` into its manifest; reports and studies call the other functions on
an agents table. Figures are in the utility's own units, over the agents who have played, and a row
that stands for many agents counts for all of them.

Mathematics
-----------
**Welfare** is the mean utility per round in own units. Losses are normalised and the log
keeps the map back, so that with m an agent's mean loss per round W = -(loss_offset + loss_scale m).

The **Gini coefficient** is half the mean absolute difference over the mean,

    G = sum_ij |x_i - x_j| / (2 n^2 mean(x)),

0 where all are equal and (n - 1)/n where one has everything (Gini, *Variabilita e mutabilita*,
1912; Sen, *On Economic Inequality*, 1973, chapter 2). It has a meaning for quantities that are not
negative and do not all vanish. Otherwise, as for CARA utilities, it is undefined: NaN, never
shifted, since a shift changes it. The **mean difference** sum_ij |x_i - x_j| / n^2, in the
utility's own units, is defined for all.
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.logs.counted import COUNT_COLUMN

ROUNDING = 1e-12  # of the largest value: a utility of zero comes back from its loss as about -1e-17


def gini(values: ArrayLike, multiplicity: ArrayLike = 1) -> float:
    """Return the Gini coefficient of values (n,), in [0, 1).

    ``multiplicity`` is how many have each value, (n,) or the same for all. NaN where a value is
    negative, all are zero, or there is none.

    >>> gini([0.0, 0.0, 0.0, 8.0])
    0.75
    """
    amounts = np.asarray(values, dtype=np.float64)
    if not len(amounts) or not amounts.sum() > 0 or amounts.min() < -ROUNDING * amounts.max():
        return float("nan")
    counts = np.broadcast_to(np.asarray(multiplicity, dtype=np.float64), amounts.shape)
    mean = float((counts * amounts).sum() / counts.sum())
    return mean_difference(amounts, counts) / (2 * mean)


def mean_difference(values: ArrayLike, multiplicity: ArrayLike = 1) -> float:
    """Return Gini's mean difference of values (n,), in their units; NaN of none.

    ``multiplicity`` is how many have each value, (n,) or the same for all.
    """
    amounts = np.asarray(values, dtype=np.float64)
    if not len(amounts):
        return float("nan")
    order = np.argsort(amounts, kind="stable")
    counts = np.broadcast_to(np.asarray(multiplicity, dtype=np.float64), amounts.shape)[order]
    amounts = amounts[order]
    n = float(counts.sum())
    # Of sum_ij |x_i - x_j| each x_i is added once for each below and taken off for each above.
    below_minus_above = 2 * np.cumsum(counts) - counts - n
    half_sum = float((counts * below_minus_above) @ (amounts - amounts[0]))
    return max(half_sum * 2 / n**2, 0.0)


def welfare(agents: pd.DataFrame) -> Array:
    """Return each agent's mean utility per round (n,), in own units; NaN if it has not played."""
    loss = agents["loss_offset"] + agents["loss_scale"] * agents["mean_loss"]
    return -loss.to_numpy(dtype=np.float64)


def cohort_welfare(agents: pd.DataFrame) -> pd.DataFrame:
    """Return welfare per round and its inequality, of those who played: a row per cohort."""
    multiplicity = agents[COUNT_COLUMN].to_numpy() if COUNT_COLUMN in agents else 1
    table = pd.DataFrame({"welfare": welfare(agents), "multiplicity": multiplicity})
    rows = []
    for cohort, agents_of_cohort in table.groupby(agents["cohort"].to_numpy(), sort=False):
        who_played = agents_of_cohort.dropna()
        utilities = who_played["welfare"].to_numpy(dtype=np.float64)
        counts = who_played["multiplicity"].to_numpy(dtype=np.float64)
        row = {
            "cohort": cohort,
            "welfare_mean": np.average(utilities, weights=counts) if len(utilities) else np.nan,
            "welfare_gini": gini(utilities, counts),
            "welfare_mean_difference": mean_difference(utilities, counts),
        }
        rows.append(row)
    columns = ["cohort", "welfare_mean", "welfare_gini", "welfare_mean_difference"]
    return pd.DataFrame(rows, columns=columns)


def welfare_record(agents: pd.DataFrame) -> dict[str, dict[str, float | None]]:
    """Return ``cohort_welfare`` by cohort and figure, None where one is undefined."""
    record = {}
    for cohort, figures in cohort_welfare(agents).set_index("cohort").iterrows():
        record[str(cohort)] = {
            str(name): None if np.isnan(figure) else float(figure)
            for name, figure in figures.items()
        }
    return record


def by_distance(agents: pd.DataFrame) -> pd.DataFrame:
    """Summarise an agents table by cohort and distance from the forecaster.

    A row per cohort and distance, nearest first and those who never hear last (empty distance):
    ``agents`` who played, mean and worst decision swap regret (swap regret where that was not
    kept), mean exploitability. Learners listen to nobody and have no rows.
    """
    frame = agents.assign(regret=agents["decision_swap_regret"].fillna(agents["swap_regret"]))
    frame = frame[(frame["kind"] == "follower") & frame["mean_loss"].notna()]
    groups = frame.groupby(["cohort", "distance"], sort=False, dropna=False)
    table = groups.agg(
        agents=("agent", "size"),
        regret_mean=("regret", "mean"),
        regret_worst=("regret", "max"),
        exploitability_mean=("exploitability", "mean"),
    ).reset_index()
    return table.sort_values(["cohort", "distance"], key=_sort_key, ignore_index=True)


def _sort_key(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return what a column is sorted by: cohorts by first appearance, distances as they are."""
    if column.name == "cohort":
        return pd.Series(column.factorize()[0])
    return column
