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
from regretless.market.game.market import check_leader, tell_followers
from regretless.market.game.protocols import as_forecaster
from regretless.market.game.round import Game
from regretless.market.regret.model_comparison import NOT_COMPARED


def dismiss(game: Game, place: int, agent: int, *, before: int) -> int:
    """End an agent's stay, by its place in a cohort, before a round; return its row."""
    cohort = game.cohorts[place]
    row = int(cohort.row_of[agent])
    if not cohort.listens:
        raise UserError(f"cohort.{cohort.name} learns together; let it leave by the key exits")
    if (cohort.row_of == row).sum() > 1 or cohort.multiplicity is not None:
        cure = "build(apart=True) gives each a row of its own, where multiplicity = false"
        raise UserError(f"cohort.{cohort.name}: some agents have one loss and are one row; {cure}")
    spans = [seat.attendance.span(seat.rows) for seat in game.seats]
    left = spans[place].left.copy()
    left[row] = min(left[row], before)
    spans[place] = Attendance(np.minimum(spans[place].entered, left), left)
    if not any((other.left > before).any() for other in spans):
        raise UserError(f"agent {agent + 1} of cohort.{cohort.name} is the last of all; keep one")
    game.seats[place].attendance = spans[place]
    return row


def admit(game: Game, place: int, row: int, *, at: int) -> None:
    """Let a row that is spare take part from round ``at`` on."""
    seat = game.seats[place]
    stay = seat.attendance.span(seat.rows)
    entered, left = stay.entered.copy(), stay.left.copy()
    entered[row], left[row] = at, FOREVER
    seat.attendance = Attendance(entered, left)


def uncovered(promise: Guarantee, row: int, rows: int) -> Guarantee:
    """Return a guarantee that leaves one of so many rows out."""
    covers = np.ones(rows, dtype=np.bool_) if promise.covers is None else promise.covers.copy()
    covers[row] = False
    return replace(promise, covers=covers)


def replace_players(
    game: Game, guarantees: Sequence[Guarantee], **players: Any
) -> tuple[Guarantee, ...]:
    """Replace ``adversary``, ``market``, or a forecaster by its block; return what is promised.

    UserError, before anything is changed, if there is no such block, or a player does not fit.
    """
    adversary = players.pop("adversary", game.adversary)
    market = players.pop("market", game.market)
    wanted, given = game.adversary.outcomes, adversary.outcomes
    if given != wanted:
        raise UserError(f"the new adversary has {given} outcomes; give one of {wanted}")
    if market is not None:
        check_leader(adversary, market)
    names = [block.name for block in game.blocks]
    for name in players:
        if name not in names:
            raise UserError(f"there is no block '{name}'; there are {', '.join(names)}")
    tell_followers(market, game.cohorts)
    game.market = market
    if adversary is not game.adversary:
        game.adversary = adversary
        introduce(adversary, game.cohorts)
    promises = list(guarantees)
    why = f"no guarantee, since the forecaster was replaced before round {game.history.rounds}"
    new = {names.index(name): as_forecaster(player) for name, player in players.items()}
    game.blocks = tuple(
        replace(block, forecaster=new.get(at, block.forecaster))
        for at, block in enumerate(game.blocks)
    )
    for place, seat in enumerate(game.seats):
        if seat.cohort.block in new:
            seat.comparison = NOT_COMPARED
            promises[place] = Guarantee(note=f"{seat.cohort.name}: {why}")
    return unpromised(game.cohorts, game.flaw) if game.flaw else tuple(promises)
