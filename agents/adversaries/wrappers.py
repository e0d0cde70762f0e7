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

from regretless.agents.adversaries.leader import MAX_SUPPORT_SIZE, JointPayoff
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

NEUTRAL_COORDINATE = 0.5  # where the others' coordinates stand for a member


@dataclass(frozen=True, eq=False)
class CoalitionMember:
    """An adversary and its coordinates, of d ``outcomes`` in all."""

    adversary: Any
    coordinates: list[int]
    outcomes: int

    def fill_outcomes(self, own_values: ArrayLike) -> Array:
        """Fill the own coordinates (..., own) up to whole outcomes (..., d)."""
        values = np.asarray(own_values, dtype=np.float64)
        outcomes = np.full((*values.shape[:-1], self.outcomes), NEUTRAL_COORDINATE)
        outcomes[..., self.coordinates] = values
        return outcomes

    def view_for_member(self, announced: AdversaryView) -> AdversaryView:
        """Show what the member declares, and of labels its own coordinates."""
        sees = sight_of(self.adversary)
        shown_quantities: dict[str, Callable[[], Any]] = {}
        if "play" in sees:
            rollout = announced.rollout
            shown_quantities["play"] = lambda: announced.play
            shown_quantities["rollout"] = lambda: (
                lambda y, rounds, *, seed: rollout(self.fill_outcomes(y), rounds, seed=seed)
            )
        if "draw" in sees:
            shown_quantities["drawn"], shown_quantities["induced"] = (
                lambda: announced.drawn,
                lambda: announced.induced,
            )
        if "mixture" not in sees:
            return AdversaryView(None, **shown_quantities)
        labels = [
            None if b.labels is None else b.labels[:, self.coordinates] for b in announced.blocks
        ]
        blocks_with_labels = zip(announced.blocks, labels, strict=True)
        return AdversaryView(
            tuple(replace(b, labels=coordinates) for b, coordinates in blocks_with_labels),
            **shown_quantities,
        )

    def follower_for_member(self, follower: Follower) -> Follower:
        """Show a follower whose losses depend on the own coordinates."""
        loss = follower.loss
        low, high = loss.range()
        partial_loss = LipschitzLoss(
            lambda y: loss.losses(self.fill_outcomes(y)),
            constant=loss.lipschitz(),
            shape=loss.offset.shape,
            dimension=len(self.coordinates),
            low=low,
            high=high,
        )
        return replace(follower, loss=partial_loss)


class PartialHistory(History):
    """The past as a member sees it: its own coordinates."""

    def __init__(self, full_history: History, coordinates: list[int]) -> None:
        self._full_history, self._coordinates = full_history, coordinates
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
        seed, shared_parameters = (
            int(rng.integers(2**63)),
            {} if rounds is None else {"rounds": rounds},
        )
        streams = (stream(seed, "member", str(i)) for i in range(len(members)))
        self.members = [
            _make_member(table, outcomes, member_rng, shared_parameters)
            for table, member_rng in zip(members, streams, strict=True)
        ]
        covered_coordinates = sorted(i for member in self.members for i in member.coordinates)
        if covered_coordinates != list(range(outcomes)):
            listed = ", ".join(map(str, covered_coordinates))
            raise ValueError(
                f"the members' coordinates are {listed}; name 0 to {outcomes - 1} once"
            )
        self.sees = frozenset().union(*map(sight_of, self._players))
        payoffs = [
            (member.adversary.payoff, member.coordinates)
            for member in self.members
            if member.adversary.payoff is not None
        ]
        self.payoff = JointPayoff(payoffs) if payoffs else None
        supports = [player.support for player in self._players if player.support is not None]
        self.support = (
            self._all_combinations(supports) if len(supports) == len(self.members) else None
        )

    @property
    def _players(self) -> list[Any]:
        return [member.adversary for member in self.members]

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
            own_observation = replace(observation, outcome=observation.outcome[member.coordinates])
            member.adversary.learn(payoff, own_observation)

    def context(self, history: History) -> Context:
        parts = [
            member.adversary.context(PartialHistory(history, member.coordinates))
            for member in self.members
        ]
        names = tuple(name for part in parts for name in part.names)
        return Context(names, np.concatenate([part.values for part in parts]))

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        parts = [
            member.adversary.commit(
                context,
                PartialHistory(history, member.coordinates),
                member.view_for_member(announced),
            )
            for member in self.members
        ]
        points = self._all_combinations([part.points for part in parts])
        weights = np.array(
            [
                np.prod(weight_combination)
                for weight_combination in product(*(part.weights for part in parts))
            ]
        )
        return OutcomeDistribution(points, weights / weights.sum())

    def _all_combinations(self, parts: Sequence[Array]) -> Array:
        """Every combination (m, d) of the members' outcomes; UserError if they are too many."""
        sizes = [len(part) for part in parts]
        if np.prod(sizes, dtype=np.float64) > MAX_SUPPORT_SIZE:
            raise UserError(
                f"members have {sizes} outcomes each; together at most {MAX_SUPPORT_SIZE}"
            )
        index_table = np.array(list(product(*map(range, sizes))))
        combinations = np.empty((len(index_table), self.outcomes))
        for member, part, indices in zip(self.members, parts, index_table.T, strict=True):
            combinations[:, member.coordinates] = part[indices]
        return combinations


def _make_member(
    table: Any, outcomes: int, rng: np.random.Generator, shared_parameters: dict[str, Any]
) -> CoalitionMember:
    if not isinstance(table, dict) or not {"kind", "coordinates"} <= set(table):
        raise ValueError(f"members: {brief(table)}; give each a kind and coordinates")
    parameters = dict(table)
    kind, raw_coordinates = parameters.pop("kind"), parameters.pop("coordinates")
    coordinate_list = np.atleast_1d(raw_coordinates).tolist()
    checked_coordinates = [
        check_int("coordinates", coordinate, least=0, below=outcomes)
        for coordinate in coordinate_list
    ]
    if not checked_coordinates:
        raise ValueError(f"coordinates = {brief(raw_coordinates)}: give each member at least one")
    make_adversary = register.adversary[kind]
    accepted_parameters = inspect.signature(make_adversary).parameters
    parameters = {
        key: value for key, value in shared_parameters.items() if key in accepted_parameters
    } | parameters
    try:
        return CoalitionMember(
            make_adversary(len(checked_coordinates), rng, **parameters),
            checked_coordinates,
            outcomes,
        )
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
        own_support = self.adversary.support
        return self._support if own_support is None else own_support

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
