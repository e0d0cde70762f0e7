"""The stage game behind a market, and its profiles up to an exchange of equal agents.

``stage_game_of(market)`` or ``stage_game_of(normal_form)`` makes a ``StageGame``. All solutions
work on its ``Configurations``: agents of one type are alike, so that a profile is described by how
many of each type take each action. A game without equal agents has a configuration for each
profile.

Mathematics
-----------
Of type t there are n_t agents with A_t actions. A configuration c says how many, n_ta(c), take
each action; there are prod_t binom(n_t + A_t - 1, n_t) of them. l_t(a, c) is what an agent of type
t loses who plays a at c, and c - a + b is c with one such agent at b in place of a:

    gain_t(a, b; c) = l_t(a, c) - l_t(b, c - a + b).

A distribution x over configurations stands for the distribution over profiles that is the same for
all profiles of a configuration. Where types are exchangeable, equilibria of this kind reach every
welfare that some equilibrium has: the mean of an equilibrium over exchanges is one, too.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from math import comb, floor, log10, prod

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.game.market import Market
from regretless.market.losses.base import unique_losses
from regretless.market.solutions.normal_form import NormalForm

MAX_CONFIGURATIONS = 60_000  # of which tables are made
MAX_TABLE_NUMBERS = 10_000_000  # actions of all agents at all configurations: 80 MB, several times
MAX_SWEEP_NUMBERS = 50_000_000  # losses that a search reads until each agent has moved once
MAX_AGENTS = 10_000  # of a game whose types are told apart


@dataclass(frozen=True, eq=False)
class StageGame:
    """A game of N agents who choose at once.

    Attributes
    ----------
    sizes : tuple of int
        How many actions each agent has (N,).
    losses_at : callable
        From profiles (P, N) to what each agent loses (P, N), in units of its utility.
    type_of : array (N,)
        Agents with the same number are alike; numbers from 0 in order of first appearance.
    cohorts : tuple of (str, slice)
        The names of the cohorts and their agents.
    unit_scale, unit_offset : array (N,)
        A loss in units is ``unit_offset + unit_scale`` times the normalised one.
    market : Market, optional
        Whose stage game it is.
    """

    sizes: tuple[int, ...]
    losses_at: Callable[[Indices], Array]
    type_of: Indices
    cohorts: tuple[tuple[str, slice], ...]
    unit_scale: Array
    unit_offset: Array
    market: Market | None = None

    @property
    def agents(self) -> int:
        """How many agents there are, N."""
        return len(self.sizes)

    @cached_property
    def members(self) -> list[Indices]:
        """The agents of each type, in order."""
        return [np.flatnonzero(self.type_of == kind) for kind in range(self.type_of.max() + 1)]

    @property
    def size_of_type(self) -> list[int]:
        """How many actions the agents of each type have."""
        return [self.sizes[agents[0]] for agents in self.members]

    @property
    def n_profiles(self) -> int:
        """How many profiles of actions there are."""
        return prod(self.sizes)

    @property
    def n_configurations(self) -> int:
        """How many profiles there are up to an exchange of equal agents."""
        counts = []
        for agents, size in zip(self.members, self.size_of_type, strict=True):
            counts.append(comb(len(agents) + size - 1, len(agents)))
        return prod(counts)

    @property
    def is_enumerable(self) -> bool:
        """Whether there are few enough configurations for tables."""
        return not self.why_too_large

    @cached_property
    def configurations(self) -> "Configurations":
        """All configurations with their losses; UserError if there are too many."""
        if not self.is_enumerable:
            raise UserError(self.why_too_large)
        return Configurations(self)

    @cached_property
    def why_too_large(self) -> str:
        """Why there are no tables of all configurations; empty where there are."""
        number = self.n_configurations
        if number <= MAX_CONFIGURATIONS:
            n_numbers = number * self.agents
            if n_numbers <= MAX_TABLE_NUMBERS:
                return ""
            table = f"{number:,} profiles by counts of actions of {self.agents:,} agents"
            return f"{table} are {n_numbers:,} numbers, more than {MAX_TABLE_NUMBERS:,}"
        written = f"{number:,}"
        if number >= 10**12:  # it may have more digits than a float's exponent, or a text, can hold
            written = f"about 10^{floor(log10(number))}"
        return f"{written} profiles by counts of actions are more than {MAX_CONFIGURATIONS:,}"

    @property
    def why_too_slow(self) -> str:
        """Why no search goes from agent to agent; empty where one may."""
        n_losses = sum(self.sizes) * self.agents
        if n_losses <= MAX_SWEEP_NUMBERS:
            return ""
        return (
            f"a search agent by agent reads {n_losses:,} losses before each has moved once, more "
            f"than {MAX_SWEEP_NUMBERS:,}"
        )

    def greatest_gain(self, profile: Indices) -> float:
        """Return the most that an agent can gain by another action at a profile (N,), in units."""
        profiles = [np.array(profile)]
        deviators: list[int] = []
        for agent in self._one_of_each(profile):
            for action in range(self.sizes[agent]):
                deviation = np.array(profile)
                deviation[agent] = action
                profiles.append(deviation)
                deviators.append(agent)
        losses = self.losses_at(np.array(profiles))
        before = losses[0, deviators]
        after = losses[1:][np.arange(len(deviators)), deviators]
        return float(max((before - after).max(), 0.0))

    def _one_of_each(self, profile: Indices) -> Iterator[int]:
        """Yield an agent of each type and action that is taken."""
        for agents in self.members:
            for action in np.unique(profile[agents]):
                yield int(agents[profile[agents] == action][0])


@dataclass(frozen=True, eq=False)
class Deviations:
    """What agents of a type gain by another action than one of theirs, where they take it."""

    kind: int  # the type
    action: int
    other: int
    rows: Indices  # the configurations (c,)
    gains: Array  # in units, at each of them (c,)


class Configurations:
    """All configurations of a game, and what each type loses there by each action.

    Attributes
    ----------
    profiles : int array (C, N)
        A profile of each configuration, in which actions of one type ascend.
    counts : list of int array (C, A_t)
        How many agents of each type take each action.
    losses : list of array (C, A_t)
        What an agent of each type loses who takes an action there; NaN where nobody does.
    total_loss : array (C,)
        The sum of all agents' losses.
    """

    def __init__(self, game: StageGame) -> None:
        self.game = game
        of_types = []
        for agents, size in zip(game.members, game.size_of_type, strict=True):
            combinations = combinations_with_replacement(range(size), len(agents))
            of_types.append(np.array(list(combinations), dtype=np.intp))
        self.shape = tuple(len(profiles) for profiles in of_types)
        self._places = np.indices(self.shape).reshape(len(self.shape), -1)
        self.profiles = np.empty((len(self), game.agents), dtype=np.intp)
        self.counts: list[Indices] = []
        self._neighbours: list[Indices] = []
        self._strides = [prod(self.shape[kind + 1 :]) for kind in range(len(self.shape))]
        for kind, profiles in enumerate(of_types):
            place = self._places[kind]
            size = game.size_of_type[kind]
            self.profiles[:, game.members[kind]] = profiles[place]
            counts = np.stack([(profiles == action).sum(1) for action in range(size)], axis=1)
            self.counts.append(counts[place])
            self._neighbours.append(_neighbours(counts))
        losses = game.losses_at(self.profiles)
        self.total_loss = losses.sum(1)
        self.losses: list[Array] = []
        for kind, counts in enumerate(self.counts):
            own_losses = losses[:, game.members[kind]]
            first_place = np.cumsum(counts, axis=1) - counts  # of an action among those of its type
            table = np.take_along_axis(
                own_losses, np.minimum(first_place, own_losses.shape[1] - 1), 1
            )
            self.losses.append(np.where(counts > 0, table, np.nan))

    def __len__(self) -> int:
        return prod(self.shape)

    @property
    def n_types(self) -> int:
        """How many types of agents there are."""
        return len(self.shape)

    def rows_playing(self, kind: int, action: int) -> Indices:
        """Return the configurations in which somebody of a type takes an action."""
        return np.flatnonzero(self.counts[kind][:, action])

    def moved(self, kind: int, action: int, other: int, rows: Indices) -> Indices:
        """Return where configurations lead if one agent of a type changes its action there."""
        place = self._places[kind][rows]
        target = self._neighbours[kind][place, action, other]
        return np.asarray(rows + (target - place) * self._strides[kind])

    def gains(self, kind: int, action: int, other: int, rows: Indices) -> Array:
        """Return what an agent of a type gains by another action, at ``rows_playing`` its own."""
        loss_of_action = self.losses[kind][rows, action]
        loss_of_other = self.losses[kind][self.moved(kind, action, other, rows), other]
        return np.asarray(loss_of_action - loss_of_other)

    def deviations(self) -> Iterator["Deviations"]:
        """Yield every change of an action for another one, by type."""
        for kind, size in enumerate(self.game.size_of_type):
            for action in range(size):
                rows = self.rows_playing(kind, action)
                for other in range(size):
                    if action != other:
                        gains = self.gains(kind, action, other, rows)
                        yield Deviations(kind, action, other, rows=rows, gains=gains)

    @cached_property
    def greatest_gains(self) -> Array:
        """The most that anybody gains by another action at each configuration (C,)."""
        greatest = np.zeros(len(self))
        for deviation in self.deviations():
            rows = deviation.rows
            greatest[rows] = np.maximum(greatest[rows], deviation.gains)
        return greatest

    def mean_losses(self, weights: Array) -> Array:
        """Return what each agent loses on average (N,) under a distribution (C,)."""
        losses = np.empty(self.game.agents)
        for kind, (counts, table) in enumerate(zip(self.counts, self.losses, strict=True)):
            members = self.game.members[kind]
            losses[members] = weights @ (np.nan_to_num(table) * counts).sum(1) / len(members)
        return losses

    def losses_at(self, index: int) -> Array:
        """Return what each agent loses on average (N,) over the profiles of a configuration."""
        weights = np.zeros(len(self))
        weights[index] = 1.0
        return self.mean_losses(weights)

    def index_of(self, counts: Sequence[Indices]) -> int:
        """Return the index of a configuration with these numbers of each type by action."""
        index = 0
        for kind, of_type in enumerate(counts):
            profile = np.repeat(np.arange(len(of_type)), of_type)
            place = _rank(profile, self.game.size_of_type[kind])
            index += place * self._strides[kind]
        return index


def _rank(profile: Indices, size: int) -> int:
    """Return the place of an ascending profile among those that itertools lists."""
    rank = 0
    least = 0
    for position, action in enumerate(profile):
        left = len(profile) - position - 1
        for smaller in range(least, int(action)):
            rank += comb(size - smaller + left - 1, left)
        least = int(action)
    return rank


def _neighbours(counts: Indices) -> Indices:
    """Return the row of ``counts`` (M, A) with one agent moved from a to b: (M, A, A); -1 if none.

    Rows are found by sum_a n_a r_a modulo 2^64 with random odd r_a, which tells them apart.
    """
    n_rows, size = counts.shape
    rng = stream(0, "configurations")
    factors = np.asarray(rng.integers(1 << 63, size=(size,), dtype=np.uint64) * np.uint64(2)) + 1
    keys = (counts.astype(np.uint64) * factors).sum(1, dtype=np.uint64)
    order = np.argsort(keys)
    sorted_keys = keys[order]
    if n_rows > 1 and (sorted_keys[1:] == sorted_keys[:-1]).any():
        raise ArithmeticError("two configurations have the same key; choose other factors")
    targets = np.full((n_rows, size, size), -1, dtype=np.intp)
    for action in range(size):
        rows = np.flatnonzero(counts[:, action])
        for other in range(size):
            moved_keys = keys[rows] - factors[action] + factors[other]
            targets[rows, action, other] = order[np.searchsorted(sorted_keys, moved_keys)]
    return targets


def stage_game_of(source: Market | NormalForm) -> StageGame:
    """Return the stage game of a market or of a game in normal form.

    UserError if the market does not say what profiles lose.
    """
    if isinstance(source, NormalForm):
        agents = len(source.players)
        cohorts = [(name, slice(index, index + 1)) for index, name in enumerate(source.players)]
        return StageGame(
            sizes=source.sizes,
            losses_at=source.profile_losses,
            type_of=np.arange(agents),
            cohorts=tuple(cohorts),
            unit_scale=np.ones(agents),
            unit_offset=np.zeros(agents),
        )
    return _of_market(source)


def _of_market(market: Market) -> StageGame:
    """Return the stage game of a market."""
    if not market.has_profile_losses:
        reason = f"market {type(market).__name__} does not say what profiles lose (profile_losses)"
        raise UserError(f"{reason}, as where a loss depends on the past")
    if market.agents > MAX_AGENTS:
        raise UserError(f"{market.agents:,} agents are more than {MAX_AGENTS:,}; play fewer")
    sizes: list[int] = []
    types: list[Indices] = []
    scales: list[Array] = []
    offsets: list[Array] = []
    cohorts = []
    n_types = 0
    for cohort, (columns, rows) in zip(market.cohorts, market.agent_columns(), strict=True):
        loss = cohort.loss
        if market.is_anonymous:
            _, type_of_row = unique_losses(loss)
            own_types = type_of_row[rows]
        else:
            own_types = np.arange(len(rows))
        types.append(n_types + own_types)
        n_types += int(own_types.max()) + 1
        sizes += [loss.actions] * len(rows)
        scales.append(loss.unit_scale[rows])
        offsets.append(loss.unit_offset[rows])
        cohorts.append((cohort.name, columns))
    unit_scale = np.concatenate(scales)
    unit_offset = np.concatenate(offsets)
    _, type_of = np.unique(np.concatenate(types), return_inverse=True)
    return StageGame(
        sizes=tuple(sizes),
        losses_at=lambda profiles: unit_offset + unit_scale * market.profile_losses(profiles),
        type_of=type_of,
        cohorts=tuple(cohorts),
        unit_scale=unit_scale,
        unit_offset=unit_offset,
        market=market,
    )
