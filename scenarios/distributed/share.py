"""A share of a market: a range of each cohort's agents, who play by themselves as they would in it.

All that is random about agents is drawn from streams of the whole cohort, of which a share takes
its own numbers (``market.core.randomness.Some``). Losses are computed row by row, and come out the
same to the last bit if NumPy takes the same path for a part of the rows as for all. It asks whether
there is one row, and a loss form whether all rows have one exponent: therefore a share keeps,
beside its agents' rows, a few that answer such questions as the whole does, and it is checked that
they do.
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from regretless.agents.cohorts.learning import LearnerCohort
from regretless.agents.cohorts.responding import RespondingCohort
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import Some, stream
from regretless.market.exploitability.empirical_joint import OutcomeBins
from regretless.market.exploitability.tracker import Tracker
from regretless.market.game.adversary_view import summed
from regretless.market.game.guarantees import Guarantee
from regretless.market.game.network import Network
from regretless.market.game.round import Block, Game
from regretless.market.game.seats import Seat, Stay
from regretless.market.logs.journal import Journal
from regretless.market.logs.sampling import Logged
from regretless.market.logs.windows import Windows
from regretless.market.losses import Loss
from regretless.market.model import MarketModel
from regretless.market.numerics.storage import side_by_side
from regretless.market.records import Round
from regretless.market.regret.ledger import Ledger
from regretless.market.regret.model_comparison import NOT_COMPARED
from regretless.scenarios.distributed.record import Echo, Recorded, Tape

PROBES = 3  # outcomes at which a share's losses are compared with the whole's


@dataclass(frozen=True, eq=False)
class Member:
    """What a share has of a cohort.

    Parameters
    ----------
    place : int
        Of the cohort, in the whole market.
    agents : slice
        Their places in it.
    rows : int array (k,)
        The cohort's rows that are kept, ascending.
    first : int
        Number of the cohort's first agent in the tables.
    """

    place: int
    cohort: Any
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

    Parameters
    ----------
    followed : dict of int to (int array, int array)
        What it has of the whole's sample for exploitability, by its own cohorts' places: places in
        the sample, and rows of its own.
    adversary : Adversary
        The whole's, which is elsewhere.
    market : Settling or None
        Reads what the share's agents come to.
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

    Parameters
    ----------
    places : sequence of int
        Of the cohorts that are shared out.
    place, of : int
        Which share, of how many.

    Raises
    ------
    UserError
        If a cohort's losses do not come out the same for a part of its agents.
    """
    game, tape = market.game, Tape(market.game.adversary.outcomes)
    members = tuple(_members(market, places, place, of))
    cohorts = [member.cohort for member in members]
    blocks = [
        Echo(block.name, block.basis, Recorded(tape, i), block.relay)
        for i, block in enumerate(game.blocks)
    ]
    followed, part = dict(_followed(market, members)), game.market
    model = MarketModel(
        Game(
            blocks,
            [_seat(market.game.seats[member.place], member, blocks) for member in members],
            adversary=tape,
            seed=0,
            network=_network(game.network, members),
        ),
        [_empty(market.guarantees[member.place], member.rows) for member in members],
        seed=0,
        rounds=market.rounds,
        tracker=_tracker(market, cohorts, followed),
        action_names=market.action_names,
    )
    model.journal = _journal(market, members, blocks)
    if part is not None:
        part = part.part(cohorts, {member.place: member.rows for member in members})
    return Share(model, tape, members, followed, game.adversary, part)


def _journal(market: MarketModel, members: Sequence[Member], blocks: Sequence[Echo]) -> Journal:
    """Log the members' agents, in chunks as the whole market's."""
    whole, cohorts = market.journal, [member.cohort for member in members]
    logged = [_logged(whole.logged[member.place], member) for member in members]
    spans = whole.windows.spans if whole.windows is not None else ()
    journal = Journal(
        cohorts,
        [block.name for block in blocks],
        log_every=whole.log_every,
        logged=logged,
        windows=Windows(cohorts, logged, spans) if spans else None,
    )
    journal.chunk_rounds = whole.chunk_rounds
    return journal


def _seat(seat: Seat, member: Member, blocks: Sequence[Block]) -> Seat:
    """Seat a member as its cohort is in the whole market; what is settled there is on the tape."""
    comparison: Any = seat.comparison
    if comparison is not NOT_COMPARED:
        forecaster = blocks[member.cohort.block].forecaster
        told, counts = comparison.suggest.at(member.rows), member.cohort.counts
        comparison = comparison.part(member.rows, counts, lambda: told(forecaster.points))
    return Seat(member.cohort, seat.attendance.of(member.rows), comparison=comparison)


def _empty(promise: Guarantee, rows: Indices) -> Guarantee:
    """Promise the same to the same rows, and say nothing of what the whole market bounds."""
    bound = None if promise.bound is None else lambda: np.full(len(rows), np.nan)
    covers = None if promise.covers is None else promise.covers[rows]
    return Guarantee(promise.label, bound, covers=covers)


def _members(market: MarketModel, places: Sequence[int], place: int, of: int) -> Iterator[Member]:
    first = 1
    for at, seat in enumerate(market.game.seats):
        cohort: Any = seat.cohort
        count = len(cohort.row_of)
        agents = slice(count * place // of, count * (place + 1) // of)
        if at in places and agents.start < agents.stop:
            company = [_company(cohort)]
            if isinstance(seat.attendance, Stay):
                company.append(_watch(seat.attendance))
            rows = np.union1d(cohort.row_of[agents], np.concatenate(company))
            yield Member(at, _part(cohort, rows, agents), agents, rows, first)
        first += count


def _part(cohort: Any, rows: Indices, agents: slice) -> Any:
    """Return a cohort of some rows and agents, who draw the numbers that they do in the whole."""
    loss = cohort.loss[rows]
    _check(cohort.name, cohort.loss, loss, rows)
    ledger, everybody = cohort.ledger, np.arange(len(cohort.row_of))
    by_row = cohort.private or cohort.bandit
    learns = isinstance(cohort, LearnerCohort)
    return replace(
        cohort,
        loss=loss,
        row_of=np.searchsorted(rows, cohort.row_of[agents]),
        ledger=Ledger(
            len(rows),
            loss.actions,
            policies=len(cohort.policies),
            measures=ledger.measures,
            constants=ledger.constants,
        ),
        rng=Some(cohort.rng, rows if by_row else everybody[agents], len(everybody)),
        **({"learner": deepcopy(cohort.learner)} if learns else _heard(cohort, loss, rows)),
    )


def _network(network: Network | None, members: Sequence[Member]) -> Network | None:
    """Return how far the members' agents are from the forecaster; their neighbours are not told."""
    if network is None:
        return None
    return Network(network.distance[np.concatenate([member.ids for member in members]) - 1])


def _heard(cohort: RespondingCohort, loss: Loss, rows: Indices) -> dict[str, Any]:
    """Return how some rows of agents who listen respond."""
    acts_on: Loss | None = loss
    if cohort.acts_on is not cohort.loss:
        acts_on = None if cohort.acts_on is None else cohort.acts_on[rows]
        _check(cohort.name, cohort.acts_on, acts_on, rows)
    served = None if cohort.served is None else cohort.served[rows]
    by_proxy = None if cohort.by_proxy is None else cohort.by_proxy[rows]
    distance = None if cohort.distance is None else cohort.distance[rows]
    parts = {"acts_on": acts_on, "served": served, "by_proxy": by_proxy, "distance": distance}
    return parts | {"coefficients": _coefficients(cohort, loss, rows)}


def _coefficients(cohort: RespondingCohort, loss: Loss, rows: Indices) -> tuple[Array, Array]:
    """Return the coefficients of some rows; one table where they are the loss's own weights."""
    offset, weights = cohort.coefficients
    if cohort.served is not None:
        return offset, weights
    shared = getattr(cohort.loss, "weights", None) is weights
    return offset[rows], loss.weights if shared else side_by_side(weights[rows])  # type: ignore[attr-defined]


def _company(cohort: Any) -> Indices:
    """Return rows that tell whether all who hear alike are alike in any field."""
    distance = cohort.distance
    if distance is None:
        return np.array(sorted(_telling(cohort.loss)))
    parties = (np.flatnonzero(distance == hops) for hops in np.unique(distance))
    return np.sort(np.concatenate([own[sorted(_telling(cohort.loss[own]))] for own in parties]))


def _telling(loss: Loss) -> set[int]:
    """Return the first row, the last, and one that differs from the first in each field."""
    found = {0, len(loss) - 1}
    for name in loss.AXES:
        value = getattr(loss, name)
        if value.strides[0]:
            found.add(int((value != value[0]).reshape(len(value), -1).any(1).argmax()))
    return found


def _watch(stay: Stay) -> Indices:
    """Return rows of whom one is there whenever anybody is: while nobody is, nobody draws."""
    rows, now = list[int](), 0
    while (later := stay.left > np.maximum(now, stay.entered)).any():
        now = max(now, int(stay.entered[later].min()))
        rows.append(int(np.where(stay.entered <= now, stay.left, -1).argmax()))
        now = int(stay.left[rows[-1]])
    return np.array(rows, dtype=np.intp)


def _check(name: str, whole: Loss | None, part: Loss | None, rows: Indices) -> None:
    """Raise UserError unless rows lose the same in a part as in the whole, at some outcomes."""
    if whole is None or part is None:
        return
    for outcome in stream(0, "shares").random((PROBES, whole.outcomes)):
        if not np.array_equal(whole.losses(outcome)[rows], part.losses(outcome)):
            why = "come out otherwise in the last digit for a part of its agents"
            raise UserError(f"cohort.{name}: {whole.form} losses {why}; run it on one machine")


def _logged(own: Logged, member: Member) -> Logged:
    """Return which agents of a member are logged, of those of its cohort."""
    row_of, agents = member.cohort.row_of, member.agents
    if isinstance(own.agents, slice):
        return Logged(own.ids[agents], slice(None), slice(None), row_of)
    here = (agents.start <= own.agents) & (own.agents < agents.stop)
    places = own.agents[here] - agents.start
    rows, place_of = np.unique(row_of[places], return_inverse=True)
    return Logged(own.ids[here], places, rows, place_of)


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
