"""A share of a market: parts of its cohorts, who play by themselves as they would in it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.exploitability.empirical_joint import OutcomeBins
from regretless.market.exploitability.tracker import Tracker
from regretless.market.game.adversary_view import summed
from regretless.market.game.guarantees import Guarantee
from regretless.market.game.network import Network
from regretless.market.game.protocols import Cohort
from regretless.market.game.round import Block, Game
from regretless.market.game.seats import Seat
from regretless.market.model import MarketModel
from regretless.market.records import Round
from regretless.market.regret.model_comparison import NOT_COMPARED
from regretless.scenarios.distributed.away import journal_like
from regretless.scenarios.distributed.record import Echo, Recorded, Tape


@dataclass(frozen=True, eq=False)
class Member:
    """What a share has of a cohort: ``agents`` of it, and their ``rows`` (k,), ascending.

    ``place`` is the cohort's in the whole market, ``first`` the number of its first agent there.
    """

    place: int
    cohort: Cohort
    agents: slice
    rows: Indices
    first: int

    @property
    def ids(self) -> Indices:
        """Numbers of the agents in the tables (n,)."""
        return np.arange(self.first + self.agents.start, self.first + self.agents.stop)


@dataclass(frozen=True, eq=False)
class Share:
    """A share of a market, which plays from a tape.

    ``followed`` is what it has of the whole's sample for exploitability, by its own cohorts'
    places: places in the sample, and rows of its own. ``adversary`` is the whole's, which is
    elsewhere, and ``market`` reads what the share's agents come to.
    """

    model: MarketModel
    tape: Tape
    members: tuple[Member, ...]
    followed: dict[int, tuple[Indices, Indices]]
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


def share_of(market: MarketModel, places: Sequence[int], place: int, of: int) -> Share:
    """Cut a share out of a market that has played no round yet.

    ``places`` (sequence of int): of the cohorts that are shared out; ``place``, ``of``: which
    share, of how many. UserError if a cohort's losses do not come out the same for a part of its
    agents.
    """
    game, tape = market.game, Tape(market.game.adversary.outcomes)
    members = tuple(_members(market, places, place, of))
    cohorts = [member.cohort for member in members]
    blocks = [
        Echo(block.name, block.basis, Recorded(tape, i), block.relay)
        for i, block in enumerate(game.blocks)
    ]
    followed, part, network = dict(_followed(market, members)), game.market, game.network
    if network is not None:  # their neighbours are not told
        ids = np.concatenate([member.ids for member in members])
        network = Network(network.distance[ids - 1])
    model = MarketModel(
        Game(
            blocks,
            [_seat(market.game.seats[member.place], member, blocks) for member in members],
            adversary=tape,
            seed=0,
            network=network,
        ),
        [_empty(market.guarantees[member.place], member.rows) for member in members],
        seed=0,
        rounds=market.rounds,
        tracker=_tracker(market, cohorts, followed),
    )
    logged = [market.journal.logged[m.place].part(m.agents, m.cohort.row_of) for m in members]
    model.journal = journal_like(market, cohorts, logged)
    if part is not None:
        part = part.part(cohorts, {member.place: member.rows for member in members})
    return Share(model, tape, members, followed, game.adversary, part)


def _seat(seat: Seat, member: Member, blocks: Sequence[Block]) -> Seat:
    """Seat a member as its cohort is in the whole market; what is settled there is on the tape."""
    comparison: Any = seat.comparison
    if comparison is not NOT_COMPARED:
        forecaster = blocks[member.cohort.block].forecaster
        suggest, counts = comparison.suggest.at(member.rows), member.cohort.counts
        comparison = comparison.part(member.rows, counts, lambda: suggest(forecaster.points))
    return Seat(member.cohort, seat.attendance.of(member.rows), comparison=comparison)


def _empty(promise: Guarantee, rows: Indices) -> Guarantee:
    """Promise the same to the same rows, and say nothing of what the whole market bounds."""
    bound = None if promise.bound is None else lambda: np.full(len(rows), np.nan)
    covers = None if promise.covers is None else promise.covers[rows]
    return Guarantee(promise.label, bound, covers=covers)


def _members(market: MarketModel, places: Sequence[int], place: int, of: int) -> Iterator[Member]:
    first = 1
    for at, seat in enumerate(market.game.seats):
        cohort = seat.cohort
        count = len(cohort.row_of)
        agents = slice(count * place // of, count * (place + 1) // of)
        if at in places and agents.start < agents.stop:
            company = cohort.company(), seat.attendance.watch(), cohort.row_of[agents]
            rows = np.unique(np.concatenate(company))
            yield Member(at, cohort.part(rows, agents), agents, rows, first)
        first += count


def _followed(market: MarketModel, members: Sequence[Member]) -> Iterator[Any]:
    sample = {} if market.tracker is None else market.tracker.rows
    for own, member in enumerate(members):
        if member.place in sample:
            here = np.flatnonzero(np.isin(sample[member.place], member.rows))
            yield own, (here, np.searchsorted(member.rows, sample[member.place][here]))


def _tracker(
    market: MarketModel, cohorts: Sequence[Any], followed: dict[int, tuple[Indices, Indices]]
) -> Tracker | None:
    """Follow the share's part of the whole's sample."""
    if market.tracker is None:
        return None
    tracker = Tracker(cohorts, market.game.adversary, [False] * len(cohorts), seed=0)
    tracker.rows = {place: own for place, (_, own) in followed.items()}
    sizes = [(len(rows), cohorts[place].loss.actions) for place, rows in tracker.rows.items()]
    whole = market.tracker.bins
    tracker.bins = OutcomeBins(sizes, whole.outcomes, most=whole.most)
    return tracker
