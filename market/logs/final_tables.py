"""The tables that close a run, one row per agent, played action or event (docs/columns.md).

``scenarios.logs.run_directory`` writes them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.game.guarantee import Guarantee
from regretless.market.game.protocols import Cohort, numbered
from regretless.market.game.round import Game
from regretless.market.logs.counted import COUNT
from regretless.market.records import policy_name
from regretless.market.regret.ledger import MEASURES

# By cohort, what names the actions (M,) of its agents with these numbers (M,).
Namers = Mapping[str, Callable[[Indices, Indices], Any]]
Traits = Mapping[str, pd.DataFrame]  # by cohort, a row per entry: what is known of each agent

RARE = 0.01  # events below this share of the rounds are left out of the bias table

# Every column that ``agents_table`` may have, beside those of traits and of a user's own.
AGENT_COLUMNS = (
    *("agent", "cohort", "kind", "utility", "response", "actions", "unit"),
    *("mean_loss", "loss_scale", "loss_offset", *(f"{name}_regret" for name in MEASURES)),
    *("bound_from_bias", "bound_from_variation", "bound", "contextual_swap_bound", "guarantee"),
    *("first_correction", "exploitability", "exploitability_exact", "leader_surplus"),
    *("surplus_cap", COUNT, "regret_to_models", "regret_to_models_bound", "distance"),
    *("entered", "left", "logged"),
)


def agents_table(
    game: Game,
    guarantees: Sequence[Guarantee],
    exploited: Sequence[Mapping[str, Array]],
    *,
    rounds: int,
) -> pd.DataFrame:
    """One row per agent: who it is, its regrets, and what it was promised.

    Agents who are there for a part of the ``rounds`` of the run are measured over their own
    rounds, and not before the first. ``exploited`` has each cohort's rows by column. Agents with
    multiplicity who share a row have one here, and ``count`` says how many it stands for.
    """
    counted = any(cohort.multiplicity is not None for cohort in game.cohorts)
    modelled = any(seat.comparison.names for seat in game.seats)
    moving = not all(seat.attendance.throughout for seat in game.seats)
    parts = []
    for place, (first, cohort) in enumerate(numbered(game.cohorts)):
        seat, promise, row_of = game.seats[place], guarantees[place], cohort.row_of
        here = ~game.awaited(place)
        correction = _first_correction(game, cohort)
        rows = _measured(first, cohort, promise, here, first_correction=correction)
        for name, values in exploited[place].items():
            rows[name] = values[row_of]
        if counted:
            rows[COUNT] = 1 if (multiplicity := cohort.multiplicity) is None else multiplicity
        if modelled:
            lost = seat.comparison.mean_loss(cohort.ledger.rounds)
            regret = cohort.ledger.mean_loss() - lost.min(1) if lost.shape[1] else None
            rows["regret_to_models"] = _each(cohort, regret, here)
            rows["regret_to_models_bound"] = _promised(promise.to_models, cohort, promise)
        if game.network is not None:
            hops = game.network.distance[first - 1 : first - 1 + len(row_of)]
            heard = (hops >= 0) & (cohort.kind != "learner")
            rows["distance"] = pd.Series(hops, dtype="Int64").where(heard)
        if moving:  # the round before which each entered and left; empty for who never came
            stay = seat.attendance.span(seat.rows)
            ends = {"entered": stay.entered[row_of], "left": np.minimum(stay.left, rounds)[row_of]}
            came = ends["entered"] < ends["left"]
            for name, end in ends.items():
                rows[name] = pd.Series(end, dtype="Int64").where(came)
        parts.append(rows)
    return pd.concat(parts, ignore_index=True)


def _first_correction(game: Game, cohort: Cohort) -> int | None:
    """Return the round in which a cohort's forecast was first corrected; None if it never was.

    A reference that is disproved after so many rounds is corrected from the round of this number
    on, as rounds are counted from 0.
    """
    if cohort.unguided:
        return None
    disproved_at: Any = game.blocks[cohort.block].forecaster.described().get("disproved_at")
    if disproved_at is None or disproved_at >= game.history.rounds:
        return None
    return int(disproved_at)


def _measured(
    first: int,
    cohort: Cohort,
    promise: Guarantee,
    here: Mask,
    *,
    first_correction: int | None,
) -> pd.DataFrame:
    """Say who the agents are, and what is measured or promised of the rows that came."""
    loss, ledger, row_of = cohort.loss, cohort.ledger, cohort.row_of
    gap, bias = cohort.gap(), ledger.bound_from_bias()
    from_bias = None if gap is None or bias is None else bias + gap
    columns = {
        "agent": np.arange(first, first + len(row_of)),
        "cohort": cohort.name,
        "kind": cohort.kind,
        "utility": cohort.utility,
        "response": cohort.rule,
        "actions": loss.actions,
        "mean_loss": _each(cohort, ledger.mean_loss(), here),
        "loss_scale": loss.unit_scale[row_of],
        "loss_offset": loss.unit_offset[row_of],
        **{f"{name}_regret": _each(cohort, ledger.regret(name), here) for name in MEASURES},
        "bound_from_bias": _each(cohort, from_bias, here),
        "bound_from_variation": _promised(promise.from_variation, cohort, promise, here),
        "bound": _promised(promise.bound, cohort, promise, here),
        "contextual_swap_bound": _promised(promise.contextual, cohort, promise, here),
        "guarantee": promise.label if promise.covers is None else promise.labels(row_of),
        "first_correction": pd.array([first_correction] * len(row_of), dtype="Int64"),
    }
    return pd.DataFrame(columns)


def _each(cohort: Cohort, rows: Array | None, known: Any) -> Array:
    """Return what each agent has of its row's (K,) where that is known (N,); NaN elsewhere."""
    if rows is None:
        return np.full(len(cohort.row_of), np.nan)
    return np.where(known, rows, np.nan)[cohort.row_of]


def _promised(
    bound: Callable[[], Array] | None, cohort: Cohort, promise: Guarantee, here: Mask | None = None
) -> Array:
    """Return a bound of each agent (N,); NaN without a theorem, and before the first round."""
    known = np.all([own for own in (promise.covers, here) if own is not None], axis=0)
    return _each(cohort, bound() if bound and np.any(cohort.ledger.rounds) else None, known)


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


def swaps_table(game: Game, namers: Namers) -> pd.DataFrame:
    """One row per agent and action it played: the best replacement and what it would have saved.

    ``best_policy`` is empty where a fixed action is the best comparator; then and always
    ``best_replacement`` is the best fixed action. ``contribution`` is per round; an agent's
    add up to its decision swap regret (to its swap regret without comparators). Where agents have
    names for actions the table says them as well.
    """
    parts = []
    for first, cohort in numbered(game.cohorts):
        ledger = cohort.ledger
        comparators = ledger.comparators()
        if not comparators.shape[2]:
            comparators = ledger.fixed
        row, action = np.nonzero(ledger.count > 0)
        named = (policy_name(policy, f"policy {j}") for j, policy in enumerate(cohort.policies))
        best, names = comparators[row, action].argmin(1), np.array([*named, ""], dtype=object)
        policy = best - (ledger.fixed.shape[2] if ledger.constants else 0)
        saved = ledger.own[row, action] - comparators[row, action].min(1)
        columns = {
            "action": action,
            "count": ledger.count[row, action],
            "best_replacement": ledger.fixed[row, action].argmin(1),
            "best_policy": names[np.where(policy >= 0, policy, -1)],
            "contribution": saved / ledger.each_rounds[row],
        }
        places = pd.DataFrame({"place": np.arange(len(cohort.row_of)), "row": cohort.row_of})
        own = places.merge(pd.DataFrame({"row": row} | columns), on="row").drop(columns="row")
        namer, agents = namers.get(cohort.name), own.pop("place").to_numpy()
        own.insert(0, "agent", agents + first)
        for key in ("action", "best_replacement") if namers else ():
            own[f"{key}_name"] = namer(agents, own[key].to_numpy()) if namer and len(own) else None
        if len(own):
            parts.append(own)
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def biases_table(game: Game) -> pd.DataFrame:
    """One row per event with at least one per cent of the rounds, in expectation over the mixtures.

    Of a calibrated forecaster loss 0 is its grid, ``action`` counts the cells (in the order of its
    grid points), and later losses stand for the groups' policies. With scalar events ``bias_i`` is
    the gain of comparator i: fixed actions, then policies, then models.
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
