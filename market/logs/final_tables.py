"""The tables that close a run, one row per agent, played action or event (docs/columns.md).

``scenarios.logs.run_directory`` writes them, and ``MarketModel`` returns them as data frames. They
are read from ledgers, guarantees and the tracker, and change nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.game.guarantee import Guarantee
from regretless.market.game.network import Network
from regretless.market.game.protocols import Cohort, numbered
from regretless.market.game.round import Game
from regretless.market.game.seats import Seat
from regretless.market.logs.counted import COUNT_COLUMN
from regretless.market.records import policy_name
from regretless.market.regret.ledger import MEASURES

# By cohort, a function from agents (M,) and their actions (M,) to the actions' names.
Namers = Mapping[str, Callable[[Indices, Indices], Any]]
# By cohort, a table with a row per agent: the parameters that were drawn or given for each.
Traits = Mapping[str, pd.DataFrame]

TEXTS_OF_SWAPS = ("best_policy", "action_name", "best_replacement_name")
MIN_OCCUPANCY = 0.01  # share of the rounds, below which an event is left out of the bias table

# Every column that ``agents_table`` may have, beside those of traits and of a user's own.
AGENT_COLUMNS = (
    *("agent", "cohort", "kind", "utility", "response", "actions", "unit"),
    *("mean_loss", "loss_scale", "loss_offset", *(f"{name}_regret" for name in MEASURES)),
    *("bound_from_bias", "bound_from_variation", "bound", "contextual_swap_bound", "guarantee"),
    *("first_correction", "trusted", "exploitability", "exploitability_exact", "leader_surplus"),
    *("surplus_cap", COUNT_COLUMN, "regret_to_models", "regret_to_models_bound", "distance"),
    *("entered", "left", "logged"),
)


def agents_table(
    game: Game,
    guarantees: Sequence[Guarantee],
    exploitability: Sequence[Mapping[str, Array]],
    *,
    rounds: int,
) -> pd.DataFrame:
    """Make a row per agent: who it is, its regrets, and what it was promised.

    Agents who are there for a part of the ``rounds`` of the run are measured over their own
    rounds, and not before the first. ``exploitability`` has each cohort's rows by column. Agents
    with multiplicity who share a row have one here, and ``count`` says how many it stands for.
    """
    has_multiplicity = any(cohort.multiplicity is not None for cohort in game.cohorts)
    has_models = any(seat.comparison.names for seat in game.seats)
    somebody_moves = not all(seat.attendance.throughout for seat in game.seats)
    parts = []
    for cohort_index, (first_number, cohort) in enumerate(numbered(game.cohorts)):
        seat = game.seats[cohort_index]
        guarantee = guarantees[cohort_index]
        has_come = ~game.rows_yet_to_enter(cohort_index)
        table = _measured_agents(
            first_number,
            cohort,
            guarantee,
            has_come,
            first_correction=_first_correction(game, cohort),
            states_bounds=not game.outcomes_are_estimates,
        )
        for name, value_of_row in exploitability[cohort_index].items():
            table[name] = value_of_row[cohort.row_of]
        if has_multiplicity:
            table[COUNT_COLUMN] = 1 if cohort.multiplicity is None else cohort.multiplicity
        if has_models:
            _add_regret_to_models(table, seat, guarantee, has_come)
        if game.network is not None:
            table["distance"] = _distance_of_agents(game.network, first_number, cohort)
        if somebody_moves:
            _add_stays(table, seat, rounds)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)


def _add_regret_to_models(
    table: pd.DataFrame, seat: Seat, guarantee: Guarantee, has_come: Mask
) -> None:
    """Add each agent's regret to the best model, and its bound, to its cohort's table in place."""
    cohort = seat.cohort
    mean_loss_of_models = seat.comparison.mean_loss(cohort.ledger.rounds)  # (rows, models)
    regret = None
    if mean_loss_of_models.shape[1]:
        regret = cohort.ledger.mean_loss() - mean_loss_of_models.min(1)
    table["regret_to_models"] = _per_agent(cohort, regret, has_come)
    bound = _bound_per_agent(guarantee.to_models, cohort, guarantee)
    table["regret_to_models_bound"] = bound


def _distance_of_agents(network: Network, first_number: int, cohort: Cohort) -> "pd.Series[Any]":
    """Return how many edges each agent of a cohort is away from the forecaster.

    Empty for who is not connected to it, and for learners, who listen to no forecast.
    """
    first_index = first_number - 1  # agents are numbered from 1
    distance = network.distance[first_index : first_index + len(cohort.row_of)]
    hears_forecast = (distance >= 0) & (cohort.kind != "learner")
    return pd.Series(distance, dtype="Int64").where(hears_forecast)


def _add_stays(table: pd.DataFrame, seat: Seat, rounds: int) -> None:
    """Add the round before which each agent entered and left; empty for who never came."""
    stay = seat.attendance.span(seat.rows)
    row_of = seat.cohort.row_of
    entered = stay.entered[row_of]
    left = np.minimum(stay.left, rounds)[row_of]
    was_present = entered < left
    table["entered"] = pd.Series(entered, dtype="Int64").where(was_present)
    table["left"] = pd.Series(left, dtype="Int64").where(was_present)


def _first_correction(game: Game, cohort: Cohort) -> int | None:
    """Return the round in which a cohort's forecast was first corrected; None if it never was.

    Rounds are counted from 0.
    """
    if cohort.unguided:
        return None
    described = game.blocks[cohort.block].forecaster.described()
    first_correction: Any = described.get("first_correction")
    if first_correction is None or first_correction >= game.history.rounds:
        return None
    return int(first_correction)


def _trusted(cohort: Cohort, guarantee: Guarantee, from_variation: Array) -> "pd.Series[bool]":
    """Say of which agents ``from_variation`` (N,) is the regret itself; NA where it is not known.

    It is so while a reference is trusted, whose forecast is broadcast as it is.
    """
    rows = cohort.ledger.shape[0]
    is_trusted = np.zeros(rows, dtype=np.bool_)
    if guarantee.trusted is not None:
        is_trusted = guarantee.trusted()
    has_bound = ~np.isnan(from_variation)
    return pd.Series(is_trusted[cohort.row_of], dtype="boolean").where(has_bound)


def _measured_agents(
    first_number: int,
    cohort: Cohort,
    guarantee: Guarantee,
    has_come: Mask,
    *,
    first_correction: int | None,
    states_bounds: bool,
) -> pd.DataFrame:
    """Say who the agents are, and what is measured or promised of the rows that have come (K,).

    Without ``states_bounds`` not even the bound from the biases is stated: it is of the outcomes
    that were learned.
    """
    loss = cohort.loss
    ledger = cohort.ledger
    row_of = cohort.row_of
    gap = cohort.gap()
    bias_bound = ledger.bound_from_bias()
    bound_from_bias = None
    if gap is not None and bias_bound is not None and states_bounds:
        bound_from_bias = bias_bound + gap
    regrets = {
        f"{name}_regret": _per_agent(cohort, ledger.regret(name), has_come) for name in MEASURES
    }
    from_variation = _bound_per_agent(guarantee.from_variation, cohort, guarantee, has_come)
    contextual = _bound_per_agent(guarantee.contextual, cohort, guarantee, has_come)
    label = guarantee.label if guarantee.covers is None else guarantee.labels(row_of)
    columns = {
        "agent": np.arange(first_number, first_number + len(row_of)),
        "cohort": cohort.name,
        "kind": cohort.kind,
        "utility": cohort.utility,
        "response": cohort.rule,
        "actions": loss.actions,
        "mean_loss": _per_agent(cohort, ledger.mean_loss(), has_come),
        "loss_scale": loss.unit_scale[row_of],
        "loss_offset": loss.unit_offset[row_of],
        **regrets,
        "bound_from_bias": _per_agent(cohort, bound_from_bias, has_come),
        "bound_from_variation": from_variation,
        "bound": _bound_per_agent(guarantee.bound, cohort, guarantee, has_come),
        "contextual_swap_bound": contextual,
        "guarantee": label,
        "first_correction": pd.array([first_correction] * len(row_of), dtype="Int64"),
        "trusted": _trusted(cohort, guarantee, from_variation),
    }
    return pd.DataFrame(columns)


def _per_agent(cohort: Cohort, values: Array | None, is_known: Any) -> Array:
    """Return each agent's value (N,) from that of its row (K,); NaN where it is not known (K,)."""
    if values is None:
        return np.full(len(cohort.row_of), np.nan)
    return np.where(is_known, values, np.nan)[cohort.row_of]


def _bound_per_agent(
    bound: Callable[[], Array] | None,
    cohort: Cohort,
    guarantee: Guarantee,
    has_come: Mask | None = None,
) -> Array:
    """Return a bound of each agent (N,); NaN without a theorem, and before the first round.

    It is of the rows that the guarantee covers and that have come (K,), None for all.
    """
    masks = [mask for mask in (guarantee.covers, has_come) if mask is not None]
    is_known = np.all(masks, axis=0)
    has_bound = bound is not None and bool(np.any(cohort.ledger.rounds))
    return _per_agent(cohort, bound() if bound is not None and has_bound else None, is_known)


def with_traits(agents: pd.DataFrame, traits: Traits) -> pd.DataFrame:
    """Return a table of all agents with their traits, and the ``unit`` of their losses.

    Traits stand behind the column ``actions``, the unit behind ``loss_offset``. Losses are given in
    the unit of the data, where they are in the utility's own.
    """
    groups = [(str(name), group) for name, group in agents.groupby("cohort", sort=False)]
    if not any(name in traits for name, _ in groups):
        return agents
    parts = [traits.get(name, pd.DataFrame(index=group.index)) for name, group in groups]
    trait_table = pd.concat(parts, ignore_index=True)
    if "scale" in trait_table:
        scale = trait_table.pop("scale").fillna(1.0)
        shift = trait_table.pop("shift").fillna(0.0)
        agents = agents.assign(
            loss_scale=scale * agents["loss_scale"],
            loss_offset=shift + scale * agents["loss_offset"],
        )
    names = [str(name) for name in trait_table]
    columns: list[str] = []
    for column in agents:
        columns.append(str(column))
        if column == "actions":
            columns += [name for name in names if name != "unit"]
        elif column == "loss_offset":
            columns.append("unit")
    return agents.assign(**{name: trait_table[name] for name in names})[columns]


def swaps_table(game: Game, namers: Namers) -> pd.DataFrame:
    """Make a row per agent and action it played: the best replacement and what it would have saved.

    ``best_policy`` is empty where a fixed action is the best comparator; then and always
    ``best_replacement`` is the best fixed action. ``contribution`` is per round; an agent's
    add up to its decision swap regret (to its swap regret without comparators). Where agents have
    names for actions the table says them as well.
    """
    parts = []
    for first_number, cohort in numbered(game.cohorts):
        swaps_of_rows = _swaps_of_rows(cohort)
        agents = pd.DataFrame({"agent_index": np.arange(len(cohort.row_of)), "row": cohort.row_of})
        table = agents.merge(swaps_of_rows, on="row").drop(columns="row")
        agent_indices = table.pop("agent_index").to_numpy()
        table.insert(0, "agent", agent_indices + first_number)
        if namers:
            namer = namers.get(cohort.name)
            for key in ("action", "best_replacement"):
                names = None
                if namer is not None and len(table):
                    names = namer(agent_indices, table[key].to_numpy())
                table[f"{key}_name"] = names
        parts.append(table)
    parts_with_rows = [part for part in parts if len(part)]
    if not parts_with_rows:  # pandas cannot tell that these columns would have been text
        texts = [name for name in parts[0] if name in TEXTS_OF_SWAPS]
        return parts[0].astype(dict.fromkeys(texts, "str"))
    return pd.concat(parts_with_rows, ignore_index=True)


def _swaps_of_rows(cohort: Cohort) -> pd.DataFrame:
    """Return a line per row of the ledger and action it played, by ``row``."""
    ledger = cohort.ledger
    comparators = ledger.comparators()  # (K, A, fixed actions and policies)
    if not comparators.shape[2]:
        comparators = ledger.fixed
    row, action = np.nonzero(ledger.count > 0)
    best = comparators[row, action].argmin(1)
    n_fixed_actions = ledger.fixed.shape[2] if ledger.constants else 0
    best_policy = np.maximum(best - n_fixed_actions, -1)  # below 0 for a fixed action
    policy_names = [policy_name(policy, f"policy {j}") for j, policy in enumerate(cohort.policies)]
    names = np.array([*policy_names, ""], dtype=object)  # the last, at -1, of no policy
    saved = ledger.played_losses[row, action] - comparators[row, action].min(1)
    columns = {
        "row": row,
        "action": action,
        "count": ledger.count[row, action],
        "best_replacement": ledger.fixed[row, action].argmin(1),
        "best_policy": names[best_policy],
        "contribution": saved / ledger.rounds_of_rows[row],
    }
    return pd.DataFrame(columns)


def biases_table(game: Game) -> pd.DataFrame:
    """Make a row per event with at least one per cent of the rounds, in expectation over mixtures.

    Of a calibrated forecaster loss 0 is its grid, ``action`` counts the cells (in the order of its
    grid points), and later losses stand for the groups' policies. With scalar events ``bias_i`` is
    the gain of comparator i: fixed actions, then policies, then models.
    """
    min_rounds = MIN_OCCUPANCY * game.history.rounds
    rows: list[list[Any]] = []  # of unequal lengths
    widest = max(block.basis.size for block in game.blocks)
    for block in game.blocks:
        for *event, occupancy, bias in block.forecaster.event_table():
            if occupancy >= min_rounds and occupancy > 0:
                rows.append([block.name, *event, occupancy, *bias])
                widest = max(widest, len(bias))
    columns = ["block", "loss", "action", "policy", "suggestion", "occupancy"]
    columns += [f"bias_{i}" for i in range(widest)]
    padded = [[*row, *[np.nan] * (len(columns) - len(row))] for row in rows]
    table = pd.DataFrame(padded, columns=columns).assign(bound=np.nan, bound_drawn=np.nan)
    for block in game.blocks:
        is_of_block = table["block"] == block.name
        occupancies = table.loc[is_of_block, "occupancy"].to_numpy(dtype=np.float64)
        bounds = block.forecaster.event_bounds(occupancies) if len(occupancies) else None
        if bounds is not None:
            table.loc[is_of_block, ["bound", "bound_drawn"]] = np.stack(bounds, axis=1)
    types = {"policy": "Int64", "suggestion": "Int64"}
    if not rows:  # which tell no types; a study reads this table beside those of other runs
        types |= {"block": "str", "loss": "int64", "action": "int64"}
        types |= dict.fromkeys(columns[5:], "float64")
    return table.astype(types)
