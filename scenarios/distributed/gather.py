"""What the shares of a run have told, put together to the bytes of a run on one machine.

The conductor's own tables have rows for everybody: those of agents who are elsewhere are filled
with what their shares told. What the forecaster knows of an agent, its bounds, is known here alone.
So is exploitability, of a sample: its programs' last digits depend on which losses are computed
together.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array
from regretless.market.exploitability.tracker import COLUMNS, LEADER_COLUMNS
from regretless.market.logs import comparisons
from regretless.market.logs.final_tables import PROMISED
from regretless.market.logs.forecast_scores import scores_table
from regretless.market.logs.welfare import COUNT
from regretless.market.model import MarketModel
from regretless.scenarios.distributed.worker import Closing

Frames = dict[str, pd.DataFrame]
KNOWN = {*COLUMNS, *LEADER_COLUMNS, *PROMISED, "regret_to_models_bound", COUNT, "logged"}


def stacked(parts: Sequence[pd.DataFrame], keys: Sequence[str]) -> pd.DataFrame:
    """Put the rows of all shares in one table in the order of a run on one machine.

    ``keys`` (sequence of str): by which rows are ordered, the last one first; equal ones stay as
    they are.
    """
    parts = [part for part in parts if len(part)]
    if not parts:
        return pd.DataFrame()
    table = pd.concat(parts, ignore_index=True)
    order = np.lexsort([table[key].to_numpy() for key in keys])
    return table.take(order).reset_index(drop=True)


def finish_windows(
    market: MarketModel, rows: pd.DataFrame, bounds: Mapping[int, Array], places: Sequence[int]
) -> None:
    """Add what bounds each row of a windows table, and note the worst of every cohort.

    ``rows`` are of all agents, in order; ``bounds``, by a window's first round, of all logged
    agents of the cohorts in these ``places``.
    """
    windows, logged = market.journal.windows, market.journal.logged
    assert windows is not None  # noqa: S101 - it has rows
    ids = np.concatenate([logged[place].ids for place in places])
    theirs = rows["agent"].isin(ids).to_numpy()
    for first in np.unique(rows["first"]).tolist():
        here = (rows["first"] == first).to_numpy()
        if windows.bounded:
            which = rows.loc[here & theirs, "agent"].to_numpy()
            rows.loc[here & theirs, "bound"] = bounds[first][np.searchsorted(ids, which)]
        for cohort, own in zip(market.game.cohorts, logged, strict=True):
            mine = rows[here & rows["agent"].isin(own.ids)]
            if len(mine):
                columns = {str(name): mine[name].to_numpy() for name in mine}
                windows.note(cohort.name, columns)


def filled(
    market: MarketModel, ends: Sequence[Closing], places: Sequence[int], tables: Frames
) -> Frames:
    """Return the tables that close a run.

    The agents of the cohorts in these ``places`` have decided nothing in the whole market;
    ``tables`` are as it has them once it knows what was followed (``follow``); ``ends`` are one per
    share.
    """
    away = [market.game.cohorts[place].name for place in places]
    here = tables["agents"].loc[~tables["agents"]["cohort"].isin(away), "agent"]
    whole = {"agents": _agents(tables["agents"], ends)}
    for name in {"swaps", "models"} & set(tables):
        own = tables[name]
        parts = [own[own["agent"].isin(here)] if len(own) else own]
        whole[name] = stacked([*parts, *(end.tables[name] for end in ends)], ("agent",))
    if "swaps" in whole:
        names = [f"{key}_name" for key in ("action", "best_replacement")]
        plain = whole["swaps"].drop(columns=names, errors="ignore")
        whole["swaps"] = market.with_action_names(plain)
    if "bounds" in tables:
        keys, own = ["round", "cohort"], tables["bounds"]  # bounds are known here, regrets there
        found = pd.concat([end.tables["bounds"] for end in ends]).groupby(keys)
        order, theirs = pd.MultiIndex.from_frame(own[keys]), own["cohort"].isin(away)
        for name in ("decision_swap_regret", "bound_from_bias"):
            worst = found[name].max().reindex(order).to_numpy()
            own[name] = np.where(theirs, worst, own[name])
    compared = list(_compared(market, ends, places))
    whole["verdict"] = comparisons.verdict_table(compared)
    records = {block.name: block.record for block in market.game.blocks}
    whole["forecast_scores"] = scores_table(records, compared)
    return tables | whole


def _agents(whole: pd.DataFrame, ends: Sequence[Closing]) -> pd.DataFrame:
    """Fill in what shares told of their agents, but for what only the whole market knows."""
    agents = stacked([end.tables["agents"] for end in ends], ("agent",))
    at = agents["agent"].to_numpy() - 1
    for name in [name for name in agents if name not in KNOWN]:
        column = whole[name].array.copy()
        column[at] = agents[name].array
        whole[name] = column
    return whole


def follow(market: MarketModel, ends: Sequence[Closing]) -> None:
    """Tell the whole market's tracker what the rows of its sample did that are elsewhere."""
    tracker = market.tracker
    if tracker is None or not market.played or not any(end.followed for end in ends):
        return
    state = tracker.state()
    played = dict(state["bins"]["played"])
    for own, (place, rows) in enumerate(tracker.rows.items()):
        fixed, counts = market.game.cohorts[place].ledger.fixed, np.array(played[str(own)])
        for places, known, sums in (end.followed[place] for end in ends if place in end.followed):
            counts[:, places], fixed[rows[places]] = np.moveaxis(known, 2, 0), sums
        played[str(own)] = counts
    tracker.restore(state | {"bins": state["bins"] | {"played": played}})


def _compared(
    market: MarketModel, ends: Sequence[Closing], places: Sequence[int]
) -> Iterator[comparisons.Compared]:
    """Put together what the agents of each cohort could have done."""
    own = {found.cohort: found for found in comparisons.comparisons(market.game)}
    for place, cohort in enumerate(market.game.cohorts):
        if place not in places:
            if cohort.name in own:
                yield own[cohort.name]
            continue
        parts = [found for end in ends for found in end.compared if found.cohort == cohort.name]
        followed = market.game.seats[place].comparison
        followed.join([end.gaps[place] for end in ends if place in end.gaps])
        if parts:
            yield comparisons.joined(parts, followed)
