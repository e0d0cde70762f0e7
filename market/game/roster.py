"""Changes between rounds, from Python: agents come and go, players are replaced, promises are cut.

An agent that leaves ends its stay (``market.game.attendance``). One that is added begins its stay,
in a row that was kept for it. Regret goes on and stays exact, since it is counted from what was
played.
Promises are cut:

    an agent that is added or goes    none for it: when may depend on what was drawn
    another forecaster                none for who hears it: its biases begin anew
    another adversary or market       as before, unless the new one sees the draw or answers it
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from regretless.market.core.errors import UserError
from regretless.market.game.adversary_view import introduce
from regretless.market.game.attendance import FOREVER, Attendance
from regretless.market.game.guarantee import Guarantee, unpromised
from regretless.market.game.market import check_leader, tell_followers, tell_fundamentals
from regretless.market.game.protocols import as_forecaster
from regretless.market.game.round import Game
from regretless.market.regret.model_comparison import NOT_COMPARED


def dismiss(game: Game, cohort_index: int, agent: int, *, before: int) -> int:
    """End an agent's stay before a round, and return its row in the ledger.

    UserError if the agent shares a row, if its cohort learns together, or if it is the last of all.
    """
    cohort = game.cohorts[cohort_index]
    row = int(cohort.row_of[agent])
    if not cohort.listens:
        raise UserError(f"cohort.{cohort.name} learns together; let it leave by the key exits")
    if (cohort.row_of == row).sum() > 1 or cohort.multiplicity is not None:
        hint = "build(apart=True) gives each a row of its own, where multiplicity = false"
        raise UserError(f"cohort.{cohort.name}: some agents have one loss and are one row; {hint}")
    stays = [seat.attendance.span(seat.rows) for seat in game.seats]
    left = stays[cohort_index].left.copy()
    left[row] = min(left[row], before)
    stays[cohort_index] = Attendance(np.minimum(stays[cohort_index].entered, left), left)
    if not any((stay.left > before).any() for stay in stays):
        raise UserError(f"agent {agent + 1} of cohort.{cohort.name} is the last of all; keep one")
    game.seats[cohort_index].attendance = stays[cohort_index]
    return row


def admit(game: Game, cohort_index: int, row: int, *, round_index: int) -> None:
    """Let a spare row of a cohort take part from a round on."""
    seat = game.seats[cohort_index]
    stay = seat.attendance.span(seat.rows)
    entered = stay.entered.copy()
    left = stay.left.copy()
    entered[row] = round_index
    left[row] = FOREVER
    seat.attendance = Attendance(entered, left)


def uncovered(guarantee: Guarantee, row: int, rows: int) -> Guarantee:
    """Return a guarantee that no longer covers one of a cohort's rows."""
    all_rows = np.ones(rows, dtype=np.bool_)
    covers = all_rows if guarantee.covers is None else guarantee.covers.copy()
    covers[row] = False
    return replace(guarantee, covers=covers)


def replace_players(
    game: Game, guarantees: Sequence[Guarantee], **players: Any
) -> tuple[Guarantee, ...]:
    """Replace ``adversary``, ``market``, or a forecaster by its block; return what is promised.

    UserError, before anything is changed, if there is no such block, or a player does not fit.
    """
    adversary = players.pop("adversary", game.adversary)
    market = players.pop("market", game.market)
    expected_outcomes = game.adversary.outcomes
    new_outcomes = adversary.outcomes
    if new_outcomes != expected_outcomes:
        raise UserError(
            f"the new adversary has {new_outcomes} outcomes; give one of {expected_outcomes}"
        )
    if market is not None:
        check_leader(adversary, market)
    block_names = [block.name for block in game.blocks]
    for name in players:
        if name not in block_names:
            raise UserError(f"there is no block '{name}'; there are {', '.join(block_names)}")
    tell_followers(market, game.cohorts)
    if market is not None:
        tell_fundamentals(market, adversary)
    game.market = market
    if adversary is not game.adversary:
        game.adversary = adversary
        introduce(adversary, game.cohorts)
    promises = list(guarantees)
    reason = f"no guarantee, since the forecaster was replaced before round {game.history.rounds}"
    new_forecasters = {
        block_names.index(name): as_forecaster(player) for name, player in players.items()
    }
    game.blocks = tuple(
        replace(block, forecaster=new_forecasters.get(block_index, block.forecaster))
        for block_index, block in enumerate(game.blocks)
    )
    for cohort_index, seat in enumerate(game.seats):
        if seat.cohort.block in new_forecasters:
            seat.comparison = NOT_COMPARED
            promises[cohort_index] = Guarantee(note=f"{seat.cohort.name}: {reason}")
    if game.why_no_guarantee:
        return unpromised(game.cohorts, game.why_no_guarantee)
    return tuple(promises)
