r"""Welfare and its inequality, and agents by distance.

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

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.logs.counted import COUNT

ROUNDING = 1e-12  # of the largest value: a utility of zero comes back from its loss as about -1e-17


def gini(values: ArrayLike, multiplicity: ArrayLike = 1) -> float:
    """Gini coefficient of values (n,), in [0, 1), each of which so many have.

    NaN where a value is negative, all are zero, or there is none.

    >>> gini([0.0, 0.0, 0.0, 8.0])
    0.75
    """
    held = np.asarray(values, dtype=np.float64)
    if not len(held) or not held.sum() > 0 or held.min() < -ROUNDING * held.max():
        return float("nan")
    many = np.broadcast_to(np.asarray(multiplicity, dtype=np.float64), held.shape)
    return mean_difference(held, many) / (2 * float((many * held).sum() / many.sum()))


def mean_difference(values: ArrayLike, multiplicity: ArrayLike = 1) -> float:
    """Gini's mean difference of values (n,), each of which so many have; NaN of none."""
    held = np.asarray(values, dtype=np.float64)
    if not len(held):
        return float("nan")
    order = np.argsort(held, kind="stable")
    many = np.broadcast_to(np.asarray(multiplicity, dtype=np.float64), held.shape)[order]
    held = held[order]
    count = float(many.sum())
    rank = 2 * np.cumsum(many) - many - count  # one is added for each below, taken off above
    return max(float((many * rank) @ (held - held[0])) * 2 / count**2, 0.0)


def welfare(agents: pd.DataFrame) -> Array:
    """Mean utility per round of each agent (n,), in own units; NaN for one that has not played."""
    loss = agents["loss_offset"] + agents["loss_scale"] * agents["mean_loss"]
    return -loss.to_numpy(dtype=np.float64)


def cohort_welfare(agents: pd.DataFrame) -> pd.DataFrame:
    """Welfare per round and its inequality, of those who played: one row per cohort, in order."""
    rows = []
    multiplicity = agents[COUNT].to_numpy() if COUNT in agents else 1
    table = pd.DataFrame({"earned": welfare(agents), COUNT: multiplicity})
    for cohort, members in table.groupby(agents["cohort"].to_numpy(), sort=False):
        own, many = members.dropna().to_numpy(dtype=np.float64).T
        mean = np.average(own, weights=many) if len(own) else np.nan
        rows.append((cohort, mean, gini(own, many), mean_difference(own, many)))
    columns = ["cohort", "welfare_mean", "welfare_gini", "welfare_mean_difference"]
    return pd.DataFrame(rows, columns=columns)


def welfare_record(agents: pd.DataFrame) -> dict[str, dict[str, float | None]]:
    """Return ``cohort_welfare`` by cohort and figure, None where one is undefined."""
    table = cohort_welfare(agents).set_index("cohort")
    return {
        str(cohort): {
            str(key): None if np.isnan(held) else float(held) for key, held in row.items()
        }
        for cohort, row in table.iterrows()
    }


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
    return table.sort_values(
        ["cohort", "distance"],
        key=lambda own: pd.Series(own.factorize()[0]) if own.name == "cohort" else own,
        ignore_index=True,
    )
