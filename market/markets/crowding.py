r"""Crowding: what agents' demand and the forecast did to each other, read from the logs of a run.

    concentration  sum_g (D_g / sum_h D_h)^2, the Herfindahl index of a round's demand D: 1/d where
                   it is spread evenly over d goods, 1 where all of it goes to one
    churn          1/2 sum_g |D_g(t) - D_g(t-1)|: the share of all budgets that moved from one good
                   to another since the round before; large in cobweb cycles (Ezekiel 1938)
    miss           mean over the goods of |label_g - y_g|: the drawn label forecast's distance to
                   the outcome
    miss_before    the same distance to the fundamental, the outcome before the market moved it
    confirmed      miss_before - miss: by how much the market brought the outcome nearer to what had
                   been said. Above 0 the forecast fulfilled itself, below 0 it defeated itself
                   (Merton 1948; "performative" in Perdomo et al. 2020)

The functions are pure: they read the tables ``rounds`` and ``forecasts`` of a run with a market.
Rounds in which nobody demands anything have no concentration (NaN). Where several blocks are
broadcast their drawn labels are averaged; without labels the last three are NaN. ``Tally`` keeps
the means of the first two while a run goes on.
"""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Remembering

MEASURES = ("concentration", "churn", "miss", "miss_before", "confirmed")


def concentration(demand: ArrayLike) -> Array:
    """Compute the Herfindahl index of each round's demand.

    Parameters
    ----------
    demand : array (T, d)
        At least 0.

    Returns
    -------
    array (T,)
        From 1/d to 1; NaN where nothing is demanded.
    """
    table = np.asarray(demand, dtype=np.float64)
    total = table.sum(1, keepdims=True)
    shares = np.divide(table, total, out=np.full(table.shape, np.nan), where=total > 0)
    return np.asarray((shares**2).sum(1))


def churn(demand: ArrayLike) -> Array:
    """Compute the share of all budgets that changed goods since the round before.

    Parameters
    ----------
    demand : array (T, d)

    Returns
    -------
    array (T,)
        From 0 to 1; NaN in the first round.
    """
    table = np.asarray(demand, dtype=np.float64)
    moved = np.abs(np.diff(table, axis=0)).sum(1) / 2
    return np.concatenate([np.full(min(1, len(table)), np.nan), moved])


class Tally(Remembering):
    """Running means of concentration and churn, in bounded memory.

    Parameters
    ----------
    goods : int
        d.
    """

    REMEMBERED = ("_demand", "_sums", "_counts")

    def __init__(self, goods: int) -> None:
        self._demand = np.full(goods, np.nan)
        self._sums, self._counts = np.zeros(2), np.zeros(2)

    def add(self, demand: Array) -> None:
        """Add a round's demand (d,)."""
        table = np.stack([self._demand, demand])
        found = np.array([concentration(table)[1], churn(table)[1]])
        self._sums += np.nan_to_num(found)
        self._counts += ~np.isnan(found)
        self._demand = demand

    def means(self) -> dict[str, float]:
        """Return ``concentration`` and ``churn``; 0 where no round had one."""
        means = self._sums / np.maximum(self._counts, 1)
        return dict(zip(MEASURES, means.tolist(), strict=False))


def crowding(rounds: pd.DataFrame, forecasts: pd.DataFrame) -> pd.DataFrame:
    """Measure every round.

    Parameters
    ----------
    rounds, forecasts : DataFrame
        Tables of a run with a market; all its rounds, in order.

    Returns
    -------
    DataFrame
        A row per round: ``round`` and ``MEASURES``.

    Raises
    ------
    ValueError
        If the run had no market.
    """
    demand, outcome = columns(rounds, "demand"), columns(rounds, "y")
    if not demand.shape[1]:
        raise ValueError("the rounds have no demand; give the tables of a run with a market")
    label = drawn_labels(forecasts, len(rounds), demand.shape[1])
    miss = np.abs(label - outcome).mean(1)
    before = np.abs(label - columns(rounds, "fundamental")).mean(1)
    values = concentration(demand), churn(demand), miss, before, before - miss
    frame = {"round": rounds["round"].to_numpy()} | dict(zip(MEASURES, values, strict=True))
    return pd.DataFrame(frame)


def columns(table: pd.DataFrame, name: str) -> Array:
    """Return the numbered columns of a table, ``name_0`` and so on, as an array (rows, count)."""
    count = sum(column.rpartition("_")[0] == name for column in table.columns)
    return table[[f"{name}_{i}" for i in range(count)]].to_numpy(dtype=np.float64)


def drawn_labels(forecasts: pd.DataFrame, rounds: int, goods: int) -> Array:
    """Return the label forecast that was broadcast each round (T, d), mean over the blocks."""
    drawn = forecasts[forecasts["drawn"].astype(bool)]
    labels = columns(drawn, "label")
    if not labels.shape[1]:
        return np.full((rounds, goods), np.nan)
    return np.asarray(labels.reshape(rounds, -1, goods).mean(1))
