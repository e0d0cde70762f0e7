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
from regretless.market.game.round import Game
from regretless.market.game.seats import Seat, Stay
from regretless.market.logs.journal import Journal
from regretless.market.logs.sampling import Logged
from regretless.market.logs.windows import Windows
from regretless.market.losses import Loss
from regretless.market.model import MarketModel
from regretless.market.numerics.storage import side_by_side
from regretless.market.records import Round
from regretless.market.regret.ledger import Ledger
from regretless.market.regret.model_comparison import NOT_COMPARED, Followed, NotCompared
from regretless.scenarios.build.models import Nothing, Suggestions
from regretless.scenarios.shards.broadcast import Charged, Echo, Tape

PROBES = 3  # outcomes at which a share's losses are compared with the whole's


@dataclass(frozen=True, eq=False)
class CohortShare:
    """What a share has of a cohort.

    Parameters
    ----------
    agents : slice
        Their places in the cohort. One of fewer agents than shares, or counted, is whole in every
        share.
    rows : int array (k,)
        The cohort's rows that are kept, ascending.
    first : int
        Number of the cohort's first agent in the tables.
    told : bool
        Whether these agents' results are this share's to tell.
    """

    cohort: RespondingCohort
    agents: slice
    rows: Indices
    first: int
    told: bool

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
        What it has of the whole's sample for exploitability, by cohort: places in the sample, and
        rows of its own.
    adversary : Adversary
        The whole's, which is elsewhere.
    market : Settling or None
        Reads what the share's agents come to.
    """

    model: MarketModel
    tape: Tape
    members: tuple[CohortShare, ...]
    followed: dict[int, tuple[Indices, Indices]]
    adversary: Any
    market: Any

    def told(self, played: Round) -> Round:
        """Return a round without the agents that are another share's to tell."""
        own = zip(self.members, played.decisions, strict=True)
        return replace(played, decisions=tuple(d if m.told else None for m, d in own))

    def load(self, begun: Round) -> Array:
        """Return what the agents' decisions come to in the market."""
        return np.asarray(self.market.aggregate(self.told(begun).decisions))

    def sums(self, played: Round) -> dict[str, Array] | None:
        """Return what the adversary is to be told of a round; None for nothing."""
        if not self.adversary.observes_play:
            return None
        return summed(self.adversary.payoff, self.model.game.cohorts, self.told(played))


def share_of(market: MarketModel, place: int, of: int) -> Share:
    """Cut a share out of a market that has played no round yet.

    Parameters
    ----------
    place, of : int
        Which share, of how many.

    Raises
    ------
    UserError
        If a cohort's losses do not come out the same for a part of its agents.
    """
    tape = Tape(market.game.adversary.outcomes)
    members = tuple(_members(market, place, of))
    cohorts = [member.cohort for member in members]
    blocks = [
        Echo(block.name, block.basis, tape, block.relay, place=i)  # type: ignore[arg-type]  # never asked
        for i, block in enumerate(market.game.blocks)
    ]
    followed, clears = dict(_followed(market, members)), market.game.market
    charged = None if clears is None else Charged(cohorts, tape)
    pairs = zip(market.guarantees, members, strict=True)
    promises = [_empty(promise, member.rows) for promise, member in pairs]
    model = MarketModel(
        Game(
            blocks,
            [_seat(market, place, member, tape) for place, member in enumerate(members)],
            adversary=tape,
            seed=0,
            market=charged,
            network=_network(market.game.network, members),
        ),
        promises,
        seed=0,
        rounds=market.rounds,
        tracker=_tracker(market, cohorts, followed),
        action_names=market.action_names,
    )
    whole = market.journal
    logged = [_logged(own, member) for own, member in zip(whole.logged, members, strict=True)]
    spans = whole.windows.spans if whole.windows is not None else ()
    model.journal = Journal(
        cohorts,
        [block.name for block in blocks],
        log_every=whole.log_every,
        logged=logged,
        windows=Windows(cohorts, logged, spans) if spans else None,
    )
    model.journal.chunk_rounds = whole.chunk_rounds
    part = None if clears is None else clears.part(cohorts, [own.rows for own in members])  # type: ignore[attr-defined]
    return Share(model, tape, members, followed, market.game.adversary, part)


def _seat(market: MarketModel, place: int, member: CohortShare, tape: Tape) -> Seat:
    """Seat a member as its cohort is in the whole market; what is settled there is on the tape."""
    attendance = market.game.seats[place].attendance.of(member.rows)
    return Seat(member.cohort, attendance, comparison=_comparing(market, place, member, tape))


def _comparing(market: MarketModel, place: int, member: CohortShare, tape: Tape) -> NotCompared:
    """Return what compares a member with the models whose predictions are on the tape."""
    followed, block = market.game.seats[place].comparison, member.cohort.block
    if not isinstance(followed, Followed):
        return NOT_COMPARED
    assert isinstance(followed.suggest, Suggestions | Nothing)  # noqa: S101 - as it was built
    told = followed.suggest.at(member.rows)

    def suggest() -> Indices:
        points = tape.mixtures[block].models
        return told(np.zeros((0, 0)) if points is None else points)

    return followed.part(member.rows, member.cohort.counts, suggest)


def _empty(promise: Guarantee, rows: Indices) -> Guarantee:
    """Promise the same to the same rows, and say nothing of what the whole market bounds."""
    bound = None if promise.bound is None else lambda: np.full(len(rows), np.nan)
    covers = None if promise.covers is None else promise.covers[rows]
    return Guarantee(promise.label, bound, covers=covers)


def _members(market: MarketModel, place: int, of: int) -> Iterator[CohortShare]:
    first = 1
    for seat in market.game.seats:
        cohort: Any = seat.cohort
        count = len(cohort.row_of)
        few = count < of or cohort.heads is not None
        agents = slice(0, count) if few else slice(count * place // of, count * (place + 1) // of)
        company = [_company(cohort)]
        if isinstance(seat.attendance, Stay):
            company.append(_watch(seat.attendance))
        rows = np.union1d(cohort.row_of[agents], np.concatenate(company))
        yield _member(cohort, rows, agents, first=first, told=not few or place == 0)
        first += count


def _member(cohort: Any, rows: Indices, agents: slice, *, first: int, told: bool) -> CohortShare:
    loss = cohort.loss[rows]
    _check(cohort.name, cohort.loss, loss, rows)
    ledger, everybody = cohort.ledger, np.arange(len(cohort.row_of))
    by_row = cohort.private or cohort.bandit
    learns = isinstance(cohort, LearnerCohort)
    own = replace(
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
    return CohortShare(own, agents, rows, first, told)


def _network(network: Network | None, members: Sequence[CohortShare]) -> Network | None:
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


def _logged(own: Logged, member: CohortShare) -> Logged:
    """Return which agents of a member are logged, of those of its cohort."""
    row_of, agents = member.cohort.row_of, member.agents
    if not member.told:
        return Logged(own.ids[:0], slice(0, 0), slice(0, 0), row_of[:0])
    if isinstance(own.agents, slice):
        return Logged(own.ids[agents], slice(None), slice(None), row_of)
    here = (agents.start <= own.agents) & (own.agents < agents.stop)
    places = own.agents[here] - agents.start
    rows, place_of = np.unique(row_of[places], return_inverse=True)
    return Logged(own.ids[here], places, rows, place_of)


def _followed(market: MarketModel, members: Sequence[CohortShare]) -> Iterator[Any]:
    for place, sample in market.tracker.rows.items() if market.tracker is not None else ():
        rows = members[place].rows
        here = np.flatnonzero(np.isin(sample, rows))
        yield place, (here, np.searchsorted(rows, sample[here]))


def _tracker(
    market: MarketModel,
    cohorts: Sequence[RespondingCohort],
    followed: dict[int, tuple[Indices, Indices]],
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
