"""Who can be shared out, and a share of a market: parts of its cohorts, who play by themselves.

Shared out are agents who meet nobody but in what they come to together. All others are played where
the game is, by the process that conducts, which says so in a line. So are crowds that are counted,
which have a row for each type.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.agents.responses import BUILT_IN
from regretless.market import register
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.own_code import is_ours
from regretless.market.game.adversary_view import sight_of, summed
from regretless.market.game.budget import UNLIMITED
from regretless.market.game.guarantees import Guarantee
from regretless.market.game.protocols import Cohort
from regretless.market.game.round import Block, Game
from regretless.market.game.seats import PUBLIC, Seat
from regretless.market.logs.journal import Journal
from regretless.market.logs.windows import Windows
from regretless.market.markets.aggregate import Settling
from regretless.market.model import MarketModel
from regretless.market.records import Round
from regretless.market.regret.model_comparison import NOT_COMPARED
from regretless.scenarios.config.cohort import CohortSpec
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.distributed.record import Echo, Recorded, Tape, Tree


def divisible(spec: ScenarioSpec, game: Game | None = None) -> tuple[list[int], dict[str, str]]:
    """Return which cohorts can be shared out, by place, and why others, not counted, cannot.

    The reasons are by key. ``spec``: without empty cohorts; ``game``: as it is built, where that is
    known; without it more may be in the list.
    """
    alone = dict(_whole(spec, game))
    if alone:
        return [], alone
    places = []
    for place, cohort in enumerate(spec.cohort):
        why = _alone(cohort, spec, None if game is None else game.seats[place])
        if why:
            alone[f"cohort.{cohort.name}"] = why
        elif not cohort.multiplicity:
            places.append(place)
    return places, alone


def _whole(spec: ScenarioSpec, game: Game | None) -> Iterator[tuple[str, str]]:
    """Yield what takes all agents in one place."""
    if spec.measures:
        yield "measures", "a measure of your own may look at all agents"
    if game is None:
        return
    for sight in sorted(sight_of(game.adversary) & {"play", "draw"}):
        yield "adversary", f"it sees '{sight}', which takes all agents in every round"
    market = game.market
    adds_up = market is None or type(market).clear is Settling.clear
    if market is not None and (market.personal or market.accounts is not None or not adds_up):
        yield "market", f"{type(market).__name__} clears agent by agent"


def _alone(cohort: CohortSpec, spec: ScenarioSpec, seat: Seat | None) -> str:
    """Say why agents of a cohort do not answer one by one; nothing if they do."""
    if cohort.learns:
        if spec.forecaster.objective != "none":
            return "the forecaster's objective asks learners what they are about to play"
        one_by_one = is_ours(register.learner[cohort.response])
    else:
        one_by_one = any(rule.name == cohort.response and rule.row_by_row for rule in BUILT_IN)
    if not one_by_one:
        return f"response '{cohort.response}' does not answer agent by agent"
    if seat is not None and (seat.signal is not PUBLIC or seat.budget is not UNLIMITED):
        return "its agents have signals or means of their own"
    return ""


@dataclass(frozen=True, eq=False)
class Share:
    """A share of a market, which plays from a tape.

    ``rows`` has by the place of a cohort in the whole market which of its rows are here (k,),
    ascending. ``adversary`` is the whole's, which is elsewhere, and ``market`` reads what the
    share's agents come to.
    """

    model: MarketModel
    tape: Tape
    rows: dict[int, Indices]
    adversary: Any
    market: Any

    def load(self, begun: Round) -> Array:
        """Return what the agents' decisions come to in the market."""
        return np.asarray(self.market.aggregate(begun.decisions))

    def sums(self, played: Round) -> dict[str, Array] | None:
        """Return what the adversary is to be told of a round; None for nothing."""
        if not self.adversary.observes_play:
            return None
        return summed(self.adversary.payoff, self.model.game.cohorts, played)

    def closing(self) -> Tree:
        """Return what the whole market takes over from its agents at the end (``join``)."""
        model, cohorts = self.model, {}
        for own, (place, seat) in enumerate(zip(self.rows, model.game.seats, strict=True)):
            rows, mine = self.rows[place], np.unique(seat.cohort.row_of)
            ledger = {
                name: part[mine] if isinstance(part, np.ndarray) and len(part) else part
                for name, part in seat.cohort.ledger.state().items()
            }
            found = {"rows": rows[mine], "ledger": ledger, "followed": None}
            found["compared"] = seat.comparison.part_state(rows)
            if model.tracker is not None:
                followed = rows[model.tracker.rows[own]]
                found["followed"] = followed, model.tracker.bins.counts(own)
            cohorts[place] = found
        return {"cohorts": cohorts, "bounds": model.bounds.state()["kept"]}


def join(market: MarketModel, ends: Sequence[Tree]) -> None:
    """Let a market take over what became of the agents of all shares."""
    for place, seat in enumerate(market.game.seats):
        parts = [end["cohorts"][place] for end in ends if place in end["cohorts"]]
        for part in parts:
            seat.cohort.ledger.join(part["rows"], part["ledger"])
            if market.tracker is not None and len(part["followed"][0]):
                market.tracker.join(place, *part["followed"])
        if parts:
            seat.comparison.join([part["compared"] for part in parts])
    market.bounds.join([(list(end["cohorts"]), end["bounds"]) for end in ends])


def share_of(market: MarketModel, places: Sequence[int], place: int, of: int) -> Share:
    """Cut a share out of a market that has played no round yet.

    ``places`` (sequence of int): of the cohorts that are shared out; ``place``, ``of``: which
    share, of how many. UserError if a cohort's losses do not come out the same for a part of its
    agents.
    """
    whole, tape = market.game, Tape(market.game.adversary.outcomes)
    blocks = [
        Echo(block.name, block.basis, Recorded(tape, i), block.relay)
        for i, block in enumerate(whole.blocks)
    ]
    parts = dict(_parts(whole, places, place, of))
    rows = {at: own for at, (own, _) in parts.items()}
    seats = [_seat(whole.seats[at], own, agents, blocks) for at, (own, agents) in parts.items()]
    game, cohorts = Game(blocks, seats, adversary=tape, seed=0), [seat.cohort for seat in seats]
    model = MarketModel(
        game,
        [_empty(market.guarantees[at], own) for at, own in rows.items()],
        seed=0,
        rounds=market.rounds,
        tracker=market.tracker and market.tracker.part(cohorts, rows),
    )
    model.journal = _journal(market, game, {at: agents for at, (_, agents) in parts.items()})
    load = None if whole.market is None else whole.market.part(cohorts, rows)
    return Share(model, tape, rows, whole.adversary, load)


def _parts(
    game: Game, places: Sequence[int], place: int, of: int
) -> Iterator[tuple[int, tuple[Indices, slice]]]:
    """Yield of each cohort, by place, the rows and the agents of a share."""
    for at in places:
        seat, count = game.seats[at], len(game.seats[at].cohort.row_of)
        agents = slice(count * place // of, count * (place + 1) // of)
        if agents.start < agents.stop:
            company = seat.cohort.company(), seat.attendance.watch(), seat.cohort.row_of[agents]
            yield at, (np.unique(np.concatenate(company)), agents)


def _seat(seat: Seat, rows: Indices, agents: slice, blocks: Sequence[Block]) -> Seat:
    """Seat a part as its cohort is in the whole market; what is settled there is on the tape."""
    cohort: Cohort = seat.cohort.part(rows, agents)
    comparison: Any = seat.comparison
    if comparison is not NOT_COMPARED:
        forecaster, suggest = blocks[cohort.block].forecaster, comparison.suggest.at(rows)
        comparison = comparison.part(rows, cohort.counts, lambda: suggest(forecaster.points))
    return Seat(cohort, seat.attendance.of(rows), comparison=comparison)


def _empty(promise: Guarantee, rows: Indices) -> Guarantee:
    """Promise the same to the same rows, and say nothing of what the whole market bounds."""
    bound = None if promise.bound is None else lambda: np.full(len(rows), np.nan)
    covers = None if promise.covers is None else promise.covers[rows]
    return Guarantee(promise.label, bound, covers=covers)


def _journal(market: MarketModel, game: Game, agents: dict[int, slice]) -> Journal:
    """Log parts of cohorts, in chunks and windows as their market does."""
    whole = market.journal
    pairs = zip(agents.items(), game.cohorts, strict=True)
    logged = [whole.logged[at].part(mine, own.row_of) for (at, mine), own in pairs]
    windows = whole.windows and Windows(game.cohorts, logged, whole.windows.spans)
    names, every = [block.name for block in game.blocks], whole.log_every
    journal = Journal(game.cohorts, names, log_every=every, logged=logged, windows=windows)
    journal.chunk_rounds = whole.chunk_rounds
    return journal
