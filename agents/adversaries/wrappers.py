"""Adversaries made of others: a coalition, and one kept to a space.

A scenario makes a ``Coalition`` where ``[adversary]`` lists members, and wraps an adversary in
``Confined`` where the outcomes of its market lie in a space smaller than the cube.

**A coalition** is several adversaries, each in charge of its own coordinates of the outcome. A
member plays as if its coordinates were the whole outcome: the history and the labels of the
forecast that it is shown are those of its coordinates, and of the rest it sees what it declares by
itself. Members commit independently of each other, so the coalition's distribution is the product
of theirs.

Where a member needs full outcomes, to know the followers' losses or to rehearse, the coordinates
of the others stand at one half, or at the row of the round where the coalition moves rows of a
table (``agents.adversaries.moved_rows``). That is exact for the member's choice where losses are
sums over coordinates (linear, separable), as its part does not depend on theirs. A linear payoff
concerns the member's own coordinates alone.

Shapes: d coordinates of an outcome, c of them a member's own.
"""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regretless.agents.adversaries.leader import (
    MAX_SUPPORT_SIZE,
    JointPayoff,
    PaidCoordinates,
    place_in_support,
)
from regretless.agents.parameters import check_int
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import UserError, brief
from regretless.market.core.randomness import stream
from regretless.market.game.adversary_view import sight_of, translated_view
from regretless.market.game.protocols import Adversary, Follower, Payoff
from regretless.market.losses import LipschitzLoss
from regretless.market.losses.outcome_spaces import Box
from regretless.market.records import (
    AdversaryView,
    Context,
    History,
    Observation,
    OutcomeDistribution,
)

NEUTRAL_COORDINATE = 0.5  # where the others' coordinates stand for a member


@dataclass(frozen=True, eq=False)
class CoalitionMember:
    """An adversary, its coordinates, and where those of the others stand for it.

    ``others`` (d,) is changed in place where that depends on the round.
    """

    adversary: Any
    coordinates: list[int]
    others: Array

    def fill_outcomes(self, own_values: ArrayLike) -> Array:
        """Fill values of its own coordinates (..., c) up to full outcomes (..., d)."""
        values = np.asarray(own_values, dtype=np.float64)
        outcomes = np.empty((*values.shape[:-1], len(self.others)))
        outcomes[...] = self.others
        outcomes[..., self.coordinates] = values
        return outcomes

    def view_for_member(self, announced: AdversaryView) -> AdversaryView:
        """Return what the member declares that it sees, with labels of its own coordinates."""
        return translated_view(
            announced,
            sight_of(self.adversary),
            labels_for_it=lambda labels: labels[:, self.coordinates],
            outcome_of=self.fill_outcomes,
        )

    def follower_for_member(self, follower: Follower) -> Follower:
        """Return a follower whose losses are functions of the member's own coordinates."""
        loss = follower.loss
        low, high = loss.range()
        # A loss may be infinitely steep at 0, as additive CES; nothing that a member reads is.
        finite_constant = np.minimum(loss.lipschitz(), np.finfo(np.float64).max)
        loss_of_own_coordinates = LipschitzLoss(
            lambda own_values: loss.losses(self.fill_outcomes(own_values)),
            constant=finite_constant,
            shape=loss.offset.shape,
            dimension=len(self.coordinates),
            low=low,
            high=high,
        )
        return replace(follower, loss=loss_of_own_coordinates)


class PartialHistory(History):
    """The past as a member sees it: its own coordinates."""

    def __init__(self, full_history: History, coordinates: list[int]) -> None:
        self._full_history = full_history
        self._coordinates = coordinates
        self.rounds = full_history.rounds

    @property
    def mean(self) -> Array:
        return self._full_history.mean[self._coordinates]

    def last(self, count: int = 1) -> Array:
        return self._full_history.last(count)[:, self._coordinates]


@register.adversary("coalition")
class Coalition(Checkpointable, Adversary):
    """Several adversaries, each with coordinates of its own.

    ``members`` are tables, each with ``kind``, ``coordinates`` and the kind's own parameters;
    ``rounds`` is handed to those that take it. ``payoff`` is what the members with one are paid
    together, ``support`` all combinations (m, d) where every member has one.
    """

    REMEMBERED = ("_players",)

    def __init__(
        self,
        outcomes: int,
        rng: np.random.Generator,
        *,
        members: Sequence[dict[str, Any]],
        rounds: int | None = None,
    ) -> None:
        super().__init__(outcomes, rng)
        if not isinstance(members, list | tuple) or not members:
            raise ValueError(f"members = {brief(members)}: give at least one table")
        seed = int(rng.integers(2**63))
        shared_parameters = {} if rounds is None else {"rounds": rounds}
        self.members = []
        for i, table in enumerate(members):
            member_rng = stream(seed, "member", str(i))
            self.members.append(_make_member(table, outcomes, member_rng, shared_parameters))
        self._check_coordinates()
        self.sees = frozenset().union(*map(sight_of, self._players))
        self.learns = any(player.learns for player in self._players)
        self.payoff = self._joint_payoff()
        supports = [player.support for player in self._players if player.support is not None]
        self.support = None
        if len(supports) == len(self.members):
            self.support = self._all_combinations(supports)

    @property
    def _players(self) -> list[Any]:
        return [member.adversary for member in self.members]

    def _check_coordinates(self) -> None:
        """ValueError unless each coordinate belongs to one member."""
        covered: list[int] = []
        for member in self.members:
            covered += member.coordinates
        covered.sort()
        if covered != list(range(self.outcomes)):
            listed = ", ".join(map(str, covered))
            raise ValueError(
                f"the members' coordinates are {listed}; name 0 to {self.outcomes - 1} once"
            )

    def _joint_payoff(self) -> JointPayoff | None:
        paid = [
            PaidCoordinates(member.adversary.payoff, member.coordinates)
            for member in self.members
            if member.adversary.payoff is not None
        ]
        return JointPayoff(paid) if paid else None

    def place_others(self, outcome: Array) -> None:
        """Let the coordinates of the others stand for each member where those of (d,) are."""
        for member in self.members:
            member.others[:] = outcome

    def meet(self, followers: Sequence[Follower]) -> None:
        for member in self.members:
            if "losses" in sight_of(member.adversary):
                member.adversary.meet(
                    tuple(member.follower_for_member(follower) for follower in followers)
                )

    @property
    def observes_play(self) -> bool:
        return any(player.observes_play for player in self._players)

    def learn(self, payoff: float, observation: Observation) -> None:
        """Tell all members what all are paid together, and each its own coordinates."""
        for member in self.members:
            if not member.adversary.learns:
                continue
            own_outcome = observation.outcome[member.coordinates]
            member.adversary.learn(payoff, replace(observation, outcome=own_outcome))

    def context(self, history: History) -> Context:
        contexts = []
        for member in self.members:
            own_history = PartialHistory(history, member.coordinates)
            contexts.append(member.adversary.context(own_history))
        return _side_by_side(contexts)

    def context_for_tables(self) -> Context:
        return _side_by_side([member.adversary.context_for_tables() for member in self.members])

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        """Return the product of what the members commit to."""
        distributions = []
        for member in self.members:
            own_history = PartialHistory(history, member.coordinates)
            own_view = member.view_for_member(announced)
            distributions.append(member.adversary.commit(context, own_history, own_view))
        if all(len(distribution.points) == 1 for distribution in distributions):
            return self._certain(distributions)
        points = self._all_combinations([distribution.points for distribution in distributions])
        combinations_of_weights = product(*(distribution.weights for distribution in distributions))
        weights = np.array([np.prod(combination) for combination in combinations_of_weights])
        return OutcomeDistribution(points, weights / weights.sum())

    def _certain(self, distributions: Sequence[OutcomeDistribution]) -> OutcomeDistribution:
        """Return the product of distributions that are each certain of one outcome (c,)."""
        outcome = np.empty(self.outcomes)
        for member, distribution in zip(self.members, distributions, strict=True):
            outcome[member.coordinates] = distribution.points[0]
        return OutcomeDistribution.pure(outcome)

    def _all_combinations(self, outcomes_of_members: Sequence[Array]) -> Array:
        """Return every combination (m, d) of the members' outcomes; UserError if too many.

        Each member has an array (m_i, c) over its own coordinates. The last member's vary fastest.
        """
        sizes = [len(outcomes) for outcomes in outcomes_of_members]
        if np.prod(sizes, dtype=np.float64) > MAX_SUPPORT_SIZE:
            raise UserError(
                f"members have {sizes} outcomes each; together at most {MAX_SUPPORT_SIZE}"
            )
        index_table = np.array(list(product(*map(range, sizes))))  # (m, members)
        combinations = np.empty((len(index_table), self.outcomes))
        for member, outcomes, indices in zip(
            self.members, outcomes_of_members, index_table.T, strict=True
        ):
            combinations[:, member.coordinates] = outcomes[indices]
        return combinations


def _make_member(
    table: Any, outcomes: int, rng: np.random.Generator, shared_parameters: dict[str, Any]
) -> CoalitionMember:
    """Make the member that a table of a scenario file describes.

    ``outcomes`` is d; the kind takes those of the ``shared_parameters`` that its signature names
    and the table does not. ValueError or UserError, with the cure, if the table is no member.
    """
    if not isinstance(table, dict) or not {"kind", "coordinates"} <= set(table):
        raise ValueError(f"members: {brief(table)}; give each a kind and coordinates")
    parameters = dict(table)
    kind = parameters.pop("kind")
    raw_coordinates = parameters.pop("coordinates")
    coordinates = [
        check_int("coordinates", coordinate, least=0, below=outcomes)
        for coordinate in np.atleast_1d(raw_coordinates).tolist()
    ]
    if not coordinates:
        raise ValueError(f"coordinates = {brief(raw_coordinates)}: give each member at least one")
    make_adversary = register.adversary[kind]
    accepted = inspect.signature(make_adversary).parameters
    for name, value in shared_parameters.items():
        if name in accepted:
            parameters.setdefault(name, value)
    try:
        adversary = make_adversary(len(coordinates), rng, **parameters)
    except TypeError as error:
        raise UserError(f"members: '{kind}': {error}") from error
    return CoalitionMember(adversary, coordinates, np.full(outcomes, NEUTRAL_COORDINATE))


def _side_by_side(contexts: Sequence[Context]) -> Context:
    """Return one context with the features of several."""
    names = [name for context in contexts for name in context.names]
    return Context(tuple(names), np.concatenate([context.values for context in contexts]))


class Confined(Checkpointable, Adversary):
    """Plays another adversary's outcomes, moved from the whole cube into a space.

    It sees what the other one declares, and one with a support chooses within the space.
    ``payoff`` and ``support`` (m, d) are for an adversary that has none of its own.
    """

    REMEMBERED = ("adversary",)

    def __init__(
        self,
        adversary: Adversary,
        space: Box,
        *,
        payoff: Payoff | None = None,
        support: Array | None = None,
    ) -> None:
        self.adversary = adversary
        self.space = space
        self._support_without_own = support  # for an adversary that has none
        self.outcomes = adversary.outcomes
        self.sees = sight_of(adversary)
        self.learns = adversary.learns
        self.payoff = payoff if adversary.payoff is None else adversary.payoff
        if adversary.support is not None:
            adversary.support = space.move_inside(adversary.support)

    @property
    def support(self) -> Array | None:  # type: ignore[override]
        """The outcomes that the adversary chooses among, where there is such a list."""
        if self.adversary.support is None:
            return self._support_without_own
        return self.adversary.support

    @property
    def observes_play(self) -> bool:
        return self.payoff is not None or self.adversary.observes_play

    @property
    def innermost(self) -> Adversary:
        return self.adversary.innermost

    def learn(self, payoff: float, observation: Observation) -> None:
        self.adversary.learn(payoff, observation)

    def meet(self, followers: Sequence[Follower]) -> None:
        self.adversary.meet(followers)

    def context(self, history: History) -> Context:
        return self.adversary.context(history)

    def context_for_tables(self) -> Context:
        return self.adversary.context_for_tables()

    def reachable(self, outcomes: Array) -> Array:
        return self.space.move_inside(outcomes)

    def fixed_distribution(self) -> OutcomeDistribution | None:
        distribution = self.adversary.fixed_distribution()
        return None if distribution is None else self._moved_inside(distribution)

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        return self._moved_inside(self.adversary.commit(context, history, announced))

    def _moved_inside(self, distribution: OutcomeDistribution) -> OutcomeDistribution:
        """Return a distribution with its outcomes moved into the space."""
        committed_outcomes = distribution.points  # (m, d)
        support = self.support
        # The support lies in the space; moving it again could change the last bit of a number.
        if support is not None:
            listed_outcomes = np.asarray(support, dtype=np.float64)
            if _are_in_support(committed_outcomes, listed_outcomes):
                return distribution
        outcomes_in_space = self.space.move_inside(committed_outcomes)
        if support is not None:
            is_in_support = (committed_outcomes[:, None] == support).all(2).any(1)
            outcomes_in_space = np.where(
                is_in_support[:, None], committed_outcomes, outcomes_in_space
            )
        return OutcomeDistribution(outcomes_in_space, distribution.weights)


@compiled()
def _are_in_support(outcomes: Array, support: Array) -> bool:
    """Whether each of ``outcomes`` (m, d) is a row of ``support`` (n, d) (compiled)."""
    for outcome in outcomes:  # noqa: SIM110 - the compiler takes no generator
        if place_in_support(outcome, support) < 0:
            return False
    return True
