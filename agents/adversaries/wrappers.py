"""Adversaries made of others: a coalition, and one kept to a space.

**A coalition** is several adversaries, each in charge of its own coordinates of the outcome. A
member plays as if its coordinates were the whole outcome: the history and the labels of the
forecast that it is shown are those of its coordinates, and of the rest it sees what it declares by
itself. Members commit independently of each other, so the coalition's distribution is the product
of theirs.

Where a member needs whole outcomes, to know the followers' losses or to rehearse, the coordinates
of the others stand at one half. That is exact for the member's choice where losses are sums over
coordinates (linear, separable), as its part does not depend on theirs. A linear payoff concerns the
member's own coordinates alone.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regretless.agents.adversaries.leader import MOST, JointPayoff
from regretless.agents.parameters import check_int
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError, brief
from regretless.market.core.randomness import stream
from regretless.market.game.adversary_view import sight_of
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

ELSEWHERE = 0.5  # where the others' coordinates stand for a member


@dataclass(frozen=True, eq=False)
class Member:
    """An adversary and its coordinates, of d ``outcomes`` in all."""

    player: Any
    own: list[int]
    outcomes: int

    def filled(self, part: ArrayLike) -> Array:
        """Fill the own coordinates (..., own) up to whole outcomes (..., d)."""
        given = np.asarray(part, dtype=np.float64)
        outcomes = np.full((*given.shape[:-1], self.outcomes), ELSEWHERE)
        outcomes[..., self.own] = given
        return outcomes

    def shown(self, announced: AdversaryView) -> AdversaryView:
        """Show what the member declares, and of labels its own coordinates."""
        sees = sight_of(self.player)
        told: dict[str, Callable[[], Any]] = {}
        if "play" in sees:
            rollout = announced.rollout
            told["play"] = lambda: announced.play
            told["rollout"] = lambda: (
                lambda y, rounds, *, seed: rollout(self.filled(y), rounds, seed=seed)
            )
        if "draw" in sees:
            told["drawn"], told["induced"] = lambda: announced.drawn, lambda: announced.induced
        if "mixture" not in sees:
            return AdversaryView(None, **told)
        labels = [None if b.labels is None else b.labels[:, self.own] for b in announced.blocks]
        pairs = zip(announced.blocks, labels, strict=True)
        return AdversaryView(tuple(replace(b, labels=own) for b, own in pairs), **told)

    def met(self, follower: Follower) -> Follower:
        """Show a follower whose losses depend on the own coordinates."""
        loss = follower.loss
        low, high = loss.range()
        partial = LipschitzLoss(
            lambda y: loss.losses(self.filled(y)),
            constant=loss.lipschitz(),
            shape=loss.offset.shape,
            dimension=len(self.own),
            low=low,
            high=high,
        )
        return replace(follower, loss=partial)


class PartialHistory(History):
    """The past as a member sees it: its own coordinates."""

    def __init__(self, whole: History, own: list[int]) -> None:
        self._whole, self._own = whole, own
        self.rounds = whole.rounds

    @property
    def mean(self) -> Array:
        return self._whole.mean[self._own]

    def last(self, count: int = 1) -> Array:
        return self._whole.last(count)[:, self._own]


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
        seed, given = int(rng.integers(2**63)), {} if rounds is None else {"rounds": rounds}
        streams = (stream(seed, "member", str(i)) for i in range(len(members)))
        self.members = [
            _member(table, outcomes, own, given)
            for table, own in zip(members, streams, strict=True)
        ]
        taken = sorted(i for member in self.members for i in member.own)
        if taken != list(range(outcomes)):
            told = ", ".join(map(str, taken))
            raise ValueError(f"the members' coordinates are {told}; name 0 to {outcomes - 1} once")
        self.sees = frozenset().union(*map(sight_of, self._players))
        paid = [(m.player.payoff, m.own) for m in self.members if m.player.payoff is not None]
        self.payoff = JointPayoff(paid) if paid else None
        listed = [player.support for player in self._players if player.support is not None]
        self.support = self._product(listed) if len(listed) == len(self.members) else None

    @property
    def _players(self) -> list[Any]:
        return [member.player for member in self.members]

    def meet(self, followers: Sequence[Follower]) -> None:
        for member in self.members:
            if "losses" in sight_of(member.player):
                member.player.meet(tuple(member.met(who) for who in followers))

    @property
    def observes_play(self) -> bool:
        return any(player.observes_play for player in self._players)

    def learn(self, payoff: float, observation: Observation) -> None:
        """Tell all members what all are paid together, and each its own coordinates."""
        for member in self.members:
            own = replace(observation, outcome=observation.outcome[member.own])
            member.player.learn(payoff, own)

    def context(self, history: History) -> Context:
        parts = [m.player.context(PartialHistory(history, m.own)) for m in self.members]
        names = tuple(name for part in parts for name in part.names)
        return Context(names, np.concatenate([part.values for part in parts]))

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        parts = [
            m.player.commit(context, PartialHistory(history, m.own), m.shown(announced))
            for m in self.members
        ]
        points = self._product([part.points for part in parts])
        weights = np.array([np.prod(one) for one in product(*(part.weights for part in parts))])
        return OutcomeDistribution(points, weights / weights.sum())

    def _product(self, parts: Sequence[Array]) -> Array:
        """Every combination (m, d) of the members' outcomes; UserError if they are too many."""
        sizes = [len(part) for part in parts]
        if np.prod(sizes, dtype=np.float64) > MOST:
            raise UserError(f"members have {sizes} outcomes each; together at most {MOST}")
        places = np.array(list(product(*map(range, sizes))))
        found = np.empty((len(places), self.outcomes))
        for member, part, place in zip(self.members, parts, places.T, strict=True):
            found[:, member.own] = part[place]
        return found


def _member(table: Any, outcomes: int, rng: np.random.Generator, given: dict[str, Any]) -> Member:
    if not isinstance(table, dict) or not {"kind", "coordinates"} <= set(table):
        raise ValueError(f"members: {brief(table)}; give each a kind and coordinates")
    parameters = dict(table)
    kind, listed = parameters.pop("kind"), parameters.pop("coordinates")
    coordinates = np.atleast_1d(listed).tolist()
    own = [check_int("coordinates", i, least=0, below=outcomes) for i in coordinates]
    if not own:
        raise ValueError(f"coordinates = {brief(listed)}: give each member at least one")
    maker = register.adversary[kind]
    takes = inspect.signature(maker).parameters
    parameters = {key: value for key, value in given.items() if key in takes} | parameters
    try:
        return Member(maker(len(own), rng, **parameters), own, outcomes)
    except TypeError as error:
        raise UserError(f"members: '{kind}': {error}") from error


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
        self.adversary, self.space, self._support = adversary, space, support
        self.outcomes = adversary.outcomes
        self.sees = sight_of(adversary)
        self.payoff = payoff if adversary.payoff is None else adversary.payoff
        if adversary.support is not None:
            adversary.support = space.confined(adversary.support)

    @property
    def support(self) -> Array | None:  # type: ignore[override]
        """The outcomes that the adversary chooses among, where there is such a list."""
        own = self.adversary.support
        return self._support if own is None else own

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

    def reachable(self, outcomes: Array) -> Array:
        return self.space.confined(outcomes)

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        distribution = self.adversary.commit(context, history, announced)
        points = distribution.points
        inside = np.zeros(len(points), dtype=bool)  # those of the support, to the last bit
        if self.support is not None:
            inside = (points[:, None] == self.support).all(2).any(1)
        moved = np.where(inside[:, None], points, self.space.confined(points))
        return OutcomeDistribution(moved, distribution.weights)
