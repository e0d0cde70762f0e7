"""What the shares of a run have told, put together to the bytes of a run on one machine.

What the forecaster knows of an agent, its bounds, is added here. So is exploitability, of a sample:
its programs' last digits depend on which losses are computed together.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array
from regretless.market.exploitability.tracker import COLUMNS
from regretless.market.logs import comparisons
from regretless.market.logs.final_tables import graph_tables, promised, promises
from regretless.market.model import MarketModel
from regretless.market.regret.model_comparison import Followed
from regretless.scenarios.shards.shard import Closing


def stacked(parts: Sequence[pd.DataFrame], keys: Sequence[str]) -> pd.DataFrame:
    """Put the rows of all shares in one table in the order of a run on one machine.

    Parameters
    ----------
    keys : sequence of str
        By which rows are ordered, the last one first; equal ones stay as they are.
    """
    parts = [part for part in parts if len(part)]
    if not parts:
        return pd.DataFrame()
    table = pd.concat(parts, ignore_index=True)
    order = np.lexsort([table[key].to_numpy() for key in keys])
    return table.take(order).reset_index(drop=True)


def finish_windows(market: MarketModel, rows: pd.DataFrame, bounds: Mapping[int, Array]) -> None:
    """Add what bounds each row of a windows table, and note the worst of every cohort.

    Parameters
    ----------
    market : MarketModel
        The whole one.
    rows : DataFrame
        Of all shares, in order.
    bounds : dict of int to array
        By a window's first round, of all logged agents.
    """
    windows, logged = market.journal.windows, market.journal.logged
    assert windows is not None  # noqa: S101 - it has rows
    ids = np.concatenate([own.ids for own in logged])
    for first in np.unique(rows["first"]).tolist():
        here = (rows["first"] == first).to_numpy()
        if windows.bounded:
            rows.loc[here, "bound"] = bounds[first][np.searchsorted(ids, rows["agent"][here])]
        for cohort, own in zip(market.game.cohorts, logged, strict=True):
            mine = rows[here & rows["agent"].isin(own.ids)]
            if len(mine):
                columns = {str(name): mine[name].to_numpy() for name in mine}
                windows.note(cohort.name, columns)


def closing_tables(market: MarketModel, ends: Sequence[Closing]) -> dict[str, pd.DataFrame]:
    """Return the tables that close a run.

    Parameters
    ----------
    market : MarketModel
        The whole one, which has played the rounds without agents.
    ends : sequence of Closing
        One per share, in order.
    """
    tables = {
        "agents": _agents(market, ends),
        "swaps": stacked([end.swaps for end in ends], ("agent",)),
        "biases": market.biases_frame(),
    }
    if len(bounds := _bounds(market, ends)):
        tables["bounds"] = bounds
    tables["verdict"] = comparisons.verdict_table(list(_compared(market, ends)))
    if any(seat.comparison.names for seat in market.game.seats):
        tables["models"] = stacked([end.models for end in ends], ("agent",))
    return tables | graph_tables(market.game)


def _compared(market: MarketModel, ends: Sequence[Closing]) -> Iterator[comparisons.Compared]:
    """Put together what the agents of each cohort could have done."""
    for place, cohort in enumerate(market.game.cohorts):
        parts = [own for end in ends for own in end.compared if own.cohort == cohort.name]
        followed = market.game.seats[place].comparison
        if isinstance(followed, Followed):
            followed.join([end.gaps[place] for end in ends if place in end.gaps])
        if parts:
            yield comparisons.joined(parts, followed)


def _agents(market: MarketModel, ends: Sequence[Closing]) -> pd.DataFrame:
    """Put the agents together, and add what only the whole market knows of them."""
    table = stacked([end.agents for end in ends], ("agent",))
    _follow(market, ends)
    known = []
    for place, cohort in enumerate(market.game.cohorts):
        found = market.exploited(place).items()
        exploited = {name: values[cohort.row_of] for name, values in found}
        promise = market.guarantees[place]
        awaited = market.game.awaited(place)[cohort.row_of]
        told = promises(cohort, promise).items()
        known.append({name: np.where(awaited, np.nan, own) for name, own in told} | exploited)
        if any(seat.comparison.names for seat in market.game.seats):
            known[-1]["regret_to_models_bound"] = promised(promise.to_models, cohort, promise)
    added = {name: np.concatenate([own[name] for own in known]) for name in known[0]}
    names = [str(name) for name in table]
    after = names.index(COLUMNS[-1]) + 1  # where a leader's come, of whom shares know nothing
    names[after:after] = [name for name in added if name not in names]
    return market.journal.marked(table.assign(**added)[names])


def _follow(market: MarketModel, ends: Sequence[Closing]) -> None:
    """Tell the whole market's tracker what the rows of its sample did."""
    tracker = market.tracker
    if tracker is None or not market.played:
        return
    bins, played = ends[0].bins, dict[str, Array]()
    for own, (place, rows) in enumerate(tracker.rows.items()):
        fixed = market.game.cohorts[place].ledger.fixed
        counts = np.zeros((len(bins["rounds"]), *tracker.bins.sizes[own]))
        for end in ends:
            places, known, sums = end.followed[place]
            counts[:, places], fixed[rows[places]] = np.moveaxis(known, 2, 0), sums
        played[str(own)] = counts
    tracker.restore({"bins": bins | {"played": played}})


def _bounds(market: MarketModel, ends: Sequence[Closing]) -> pd.DataFrame:
    """Put the greatest regrets of all shares beside the bounds, which are known here."""
    table = market.bounds_frame()
    if table.empty:
        return table
    keys, told = ["round", "cohort"], ["decision_swap_regret", "bound_from_bias"]
    found = pd.concat([end.bounds for end in ends]).groupby(keys)[told].max()
    order = pd.MultiIndex.from_frame(table[keys])
    return table.assign(**{name: found[name].reindex(order).to_numpy() for name in told})
