"""Changes between rounds, from Python: agents come and go, players are replaced, promises are cut.

An agent that leaves ends its stay (``market.game.seats``): it decides nothing more, and its
measures are over its own rounds. One that is added begins its stay, in a row that was kept for it.
A forecaster, an adversary or a market may be replaced by another of its kind.

Regret goes on and stays exact, since it is counted from what was played. Promises are cut:

    an agent that is added or goes    none for it: when may depend on what was drawn
    another forecaster                none for who hears it: its biases begin anew
    another adversary or market       as before, unless the new one sees the draw or answers it
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from regretless.market.core.errors import UserError
from regretless.market.game.adversary_view import introduce
from regretless.market.game.guarantees import Guarantee, unpromised
from regretless.market.game.market import check_leader
from regretless.market.game.protocols import as_forecaster
from regretless.market.game.round import Game
from regretless.market.game.seats import FOREVER, Attendance
from regretless.market.regret.model_comparison import NOT_COMPARED


def dismiss(game: Game, place: int, agent: int, *, before: int) -> int:
    """End the stay of one agent of a cohort.

    UserError if it shares its row with others, learns with them, or is the last of all. Returns an
    int: its row.

    Parameters
    ----------
    agent : int
        Its place among the cohort's N agents.
    before : int
        The first round in which it is not there.
    """
    cohort = game.cohorts[place]
    row = int(cohort.row_of[agent])
    if not cohort.listens:
        raise UserError(f"cohort.{cohort.name} learns together; let it leave by the key exits")
    if (cohort.row_of == row).sum() > 1 or cohort.multiplicity is not None:
        cure = "build(apart=True) gives each a row of its own, where multiplicity = false"
        raise UserError(f"cohort.{cohort.name}: some agents have one loss and are one row; {cure}")
    stay = game.seats[place].attendance.span(len(cohort.ledger.count))
    left = stay.left.copy()
    left[row] = min(left[row], before)
    changed = Attendance(np.minimum(stay.entered, left), left)
    spans = [seat.attendance.span(seat.rows) for seat in game.seats]
    spans[place] = changed
    if not any((other.left > before).any() for other in spans):
        raise UserError(f"agent {agent + 1} of cohort.{cohort.name} is the last of all; keep one")
    game.seats[place].attendance = changed
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
    """Replace players, and return what is promised from then on.

    UserError if there is no such block, or the new player does not fit. ``**players``:
    ``adversary``, ``market``, or a block's forecaster under the name of the block.
    """
    adversary = players.pop("adversary", game.adversary)
    market = players.pop("market", game.market)
    _check(game, adversary, market, blocks=players)
    game.market = market
    if adversary is not game.adversary:
        game.adversary = adversary
        introduce(adversary, game.cohorts)
    promises = list(guarantees)
    for name, forecaster in players.items():
        promises = _with_forecaster(game, promises, name, forecaster)
    return unpromised(game.cohorts, game.flaw) if game.flaw else tuple(promises)


def _check(game: Game, adversary: Any, market: Any, *, blocks: Iterable[str]) -> None:
    """Raise UserError at the first player that does not fit, before anything is changed."""
    wanted, given = game.adversary.outcomes, adversary.outcomes
    if given != wanted:
        raise UserError(f"the new adversary has {given} outcomes; give one of {wanted}")
    if market is not None:
        check_leader(adversary, market)
    names = [block.name for block in game.blocks]
    for name in blocks:
        if name not in names:
            raise UserError(f"there is no block '{name}'; there are {', '.join(names)}")


def _with_forecaster(
    game: Game, promises: list[Guarantee], name: str, forecaster: Any
) -> list[Guarantee]:
    """Let another forecaster make a block, and take back what was promised to who hears it."""
    at, blocks = [block.name for block in game.blocks].index(name), list(game.blocks)
    blocks[at] = replace(blocks[at], forecaster=as_forecaster(forecaster))
    game.blocks = tuple(blocks)
    for seat in game.seats:
        if seat.cohort.block == at:
            seat.comparison = NOT_COMPARED
    why = f"no guarantee, since the forecaster was replaced before round {game.history.rounds}"
    return [
        Guarantee(note=f"{cohort.name}: {why}") if cohort.block == at else promise
        for cohort, promise in zip(game.cohorts, promises, strict=True)
    ]
