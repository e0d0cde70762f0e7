"""The tables that close a run, one row per agent, played action or event."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.game.guarantees import Guarantee
from regretless.market.game.protocols import Cohort, numbered
from regretless.market.game.round import Game
from regretless.market.logs.comparisons import regret_to_models
from regretless.market.logs.journal import spread
from regretless.market.logs.welfare import COUNT
from regretless.market.records import policy_name
from regretless.market.regret.ledger import MEASURES

# By cohort, what names the actions (M,) of its agents with these numbers (M,).
Namers = Mapping[str, Callable[[Indices, Indices], Any]]
Traits = Mapping[str, pd.DataFrame]  # by cohort, a row per entry: what is known of each agent

MEASURED = ["mean_loss", *(f"{measure}_regret" for measure in MEASURES), "bound_from_bias"]
PROMISED = ["bound", "bound_from_variation", "contextual_swap_bound"]
RARE = 0.01  # events below this share of the rounds are left out of the bias table


def agents_table(
    game: Game,
    guarantees: Sequence[Guarantee],
    exploited: Sequence[Mapping[str, Array]],
    *,
    rounds: int,
) -> pd.DataFrame:
    """One row per agent: who it is, its regrets, and what it was promised (docs/columns.md).

    Agents who are there for a part of the ``rounds`` of the run are measured over their own
    rounds, and not before the first. ``exploited`` has each cohort's rows by column. Agents with
    multiplicity who share a row have one here, and ``count`` says how many it stands for.
    """
    parts, members = [], zip(numbered(game.cohorts), guarantees, strict=True)
    counted = any(cohort.multiplicity is not None for cohort in game.cohorts)
    for place, ((first, cohort), guarantee) in enumerate(members):
        rows = _cohort_rows(cohort, guarantee, first)
        if guarantee.covers is not None:
            rows["guarantee"] = guarantee.labels(cohort.row_of)
        for name, values in exploited[place].items():
            rows[name] = values[cohort.row_of]
        awaited = game.awaited(place)[cohort.row_of]
        if awaited.any():
            rows.loc[awaited, [*MEASURED, *PROMISED]] = np.nan
        if counted:
            rows[COUNT] = 1 if (multiplicity := cohort.multiplicity) is None else multiplicity
        parts.append(rows)
    table = pd.concat(parts, ignore_index=True)
    if any(seat.comparison.names for seat in game.seats):
        table = table.assign(**_beside_models(game, guarantees))
    if game.network is not None:
        heard = game.network.distance >= 0
        heard &= (table["kind"] != "learner").to_numpy()
        table["distance"] = pd.Series(game.network.distance, dtype="Int64").where(heard)
    if not all(seat.attendance.throughout for seat in game.seats):
        table = table.assign(**_whereabouts(game, rounds))
    return table


def with_traits(agents: pd.DataFrame, traits: Traits) -> pd.DataFrame:
    """Add to a table of all agents what is known of each, and the ``unit`` of its loss."""
    groups = [(str(name), own) for name, own in agents.groupby("cohort", sort=False)]
    if not any(name in traits for name, _ in groups):
        return agents
    parts = [traits.get(name, pd.DataFrame(index=own.index)) for name, own in groups]
    found = pd.concat(parts, ignore_index=True)
    if "scale" in found:  # losses in the unit of the data, where they are in the utility's own
        scale, shift = found.pop("scale").fillna(1.0), found.pop("shift").fillna(0.0)
        own = {"loss_scale": scale * agents["loss_scale"]}
        agents = agents.assign(**own, loss_offset=shift + scale * agents["loss_offset"])
    names = [str(name) for name in found]
    places = {"actions": [name for name in names if name != "unit"], "loss_offset": ["unit"]}
    columns = [own for name in map(str, agents) for own in [name, *places.get(name, [])]]
    return agents.assign(**{name: found[name] for name in names})[columns]


def _beside_models(game: Game, guarantees: Sequence[Guarantee]) -> dict[str, Array]:
    """Return each agent's regret to the best model for it, and what was promised of that."""
    parts = []
    for place, (seat, promise) in enumerate(zip(game.seats, guarantees, strict=True)):
        cohort = seat.cohort
        regret = np.where(game.awaited(place), np.nan, regret_to_models(cohort, seat.comparison))
        parts.append((regret[cohort.row_of], promised(promise.to_models, cohort, promise)))
    names = "regret_to_models", "regret_to_models_bound"
    return dict(zip(names, map(np.concatenate, zip(*parts, strict=True)), strict=True))


def _whereabouts(game: Game, rounds: int) -> dict[str, "pd.Series[int]"]:
    """Return the round before which each agent entered and left; empty for who never came."""
    entered, left = [], []
    for seat in game.seats:
        cohort, stay = seat.cohort, seat.attendance.span(seat.rows)
        entered.append(stay.entered[cohort.row_of])
        left.append(np.minimum(stay.left, rounds)[cohort.row_of])
    first, last = np.concatenate(entered), np.concatenate(left)
    columns = {"entered": pd.Series(first, dtype="Int64"), "left": pd.Series(last, dtype="Int64")}
    return {name: column.where(first < last) for name, column in columns.items()}


def _cohort_rows(cohort: Cohort, guarantee: Guarantee, first: int) -> pd.DataFrame:
    count = len(cohort.row_of)
    loss, ledger = cohort.loss, cohort.ledger
    gap, bias = cohort.gap(), cohort.ledger.bound_from_bias()
    from_bias = None if gap is None or bias is None else bias + gap
    return pd.DataFrame(
        {
            "agent": np.arange(first, first + count),
            "cohort": cohort.name,
            "kind": cohort.kind,
            "utility": cohort.utility,
            "response": cohort.rule,
            "actions": loss.actions,
            "mean_loss": ledger.mean_loss()[cohort.row_of],
            "loss_scale": loss.unit_scale[cohort.row_of],
            "loss_offset": loss.unit_offset[cohort.row_of],
            **{f"{measure}_regret": spread(ledger, cohort.row_of, measure) for measure in MEASURES},
            "bound_from_bias": _spread_out(from_bias, cohort),
            "bound_from_variation": promised(guarantee.from_variation, cohort, guarantee),
            "bound": promised(guarantee.bound, cohort, guarantee),
            "contextual_swap_bound": promised(guarantee.contextual, cohort, guarantee),
            "guarantee": guarantee.label,
        }
    )


def promised(bound: Callable[[], Array] | None, cohort: Cohort, guarantee: Guarantee) -> Array:
    """Return a bound of each agent (N,); NaN without a theorem, and before the first round."""
    known = bound is not None and np.any(cohort.ledger.rounds)
    return _spread_out(bound() if bound and known else None, cohort, guarantee.covers)


def _spread_out(rows: Array | None, cohort: Cohort, covers: Mask | None = None) -> Array:
    if rows is None:
        return np.full(len(cohort.row_of), np.nan)
    return np.where(True if covers is None else covers, rows, np.nan)[cohort.row_of]


def graph_tables(game: Game) -> dict[str, pd.DataFrame]:
    """Return the table of edges by its name; nothing where there is no graph."""
    network = game.network
    return {} if network is None or network.edges is None else {"edges": network.frame()}


def swaps_table(game: Game, namers: Namers) -> pd.DataFrame:
    """One row per agent and action it played: the best replacement and what it would have saved.

    ``best_policy`` is empty where a fixed action is the best comparator; then and always
    ``best_replacement`` is the best fixed action. ``contribution`` is per round; an agent's
    contributions add up to its decision swap regret (to its swap regret without comparators).
    Where agents have names for actions the table says them as well.
    """
    keys, parts = ("action", "best_replacement"), []
    for first, cohort in numbered(game.cohorts):
        places = pd.DataFrame({"place": np.arange(len(cohort.row_of)), "row": cohort.row_of})
        own = places.merge(_swap_rows(cohort), on="row", sort=False).drop(columns="row")
        namer, agents = namers.get(cohort.name), own.pop("place").to_numpy()
        own.insert(0, "agent", agents + first)
        for key in keys if namers else ():
            own[f"{key}_name"] = namer(agents, own[key].to_numpy()) if namer and len(own) else None
        if len(own):
            parts.append(own)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def _swap_rows(cohort: Cohort) -> pd.DataFrame:
    ledger = cohort.ledger
    comparators = ledger.comparators()
    if not comparators.shape[2]:
        comparators = ledger.fixed
    row, action = np.nonzero(ledger.count > 0)
    named = (policy_name(policy, f"policy {j}") for j, policy in enumerate(cohort.policies))
    names = np.array([*named, ""], dtype=object)
    best = comparators[row, action].argmin(1)
    saved = ledger.own[row, action] - comparators[row, action].min(1)
    policy = best - (ledger.fixed.shape[2] if ledger.constants else 0)
    return pd.DataFrame(
        {
            "row": row,
            "action": action,
            "count": ledger.count[row, action],
            "best_replacement": ledger.fixed[row, action].argmin(1),
            "best_policy": names[np.where(policy >= 0, policy, -1)],
            "contribution": saved / ledger.each_rounds[row],
        }
    )


def biases_table(game: Game) -> pd.DataFrame:
    """One row per event with at least one per cent of the rounds, in expectation over the mixtures.

    The columns are those of docs/columns.md. Of a calibrated forecaster loss 0 is its grid,
    ``action`` counts the cells (in the order of its grid points), and later losses stand for the
    groups' policies. With scalar events ``bias_i`` is the gain of comparator i: fixed actions, then
    policies, then models.
    """
    least = RARE * game.history.rounds
    found = [
        (block.name, row)
        for block in game.blocks
        for row in block.forecaster.event_table()
        if row[4] >= least and row[4] > 0
    ]
    widest = max([*(b.basis.size for b in game.blocks), *(len(row[5]) for _, row in found)])
    columns = ["block", "loss", "action", "policy", "suggestion", "occupancy"]
    rows = [
        [name, *event, *bias, *[np.nan] * (widest - len(bias))] for name, (*event, bias) in found
    ]
    frame = pd.DataFrame(rows, columns=[*columns, *(f"bias_{i}" for i in range(widest))])
    frame = frame.assign(bound=np.nan, bound_drawn=np.nan)
    for block in game.blocks:
        own = frame["block"] == block.name
        occupancy = frame.loc[own, "occupancy"].to_numpy(dtype=np.float64)
        known = block.forecaster.event_bounds(occupancy) if len(occupancy) else None
        if known is not None:
            frame.loc[own, ["bound", "bound_drawn"]] = np.stack(known, axis=1)
    return frame.astype({"policy": "Int64", "suggestion": "Int64"})
