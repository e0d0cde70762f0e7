"""What all leaders share: a payoff u(a, y), the outcomes to choose among, what each is worth.

A leader is an adversary with a payoff. Subclass ``Leader`` and write ``commit``, or ``Pure`` and
``Leader`` and write ``outcome``; ``self.best(self.worth(announced.play))`` is the outcome that pays
most against the announced play (``docs/adversaries.md``). ``fixed_plans`` has those who commit
(Stackelberg), ``reactive`` and ``learned`` those who adapt.

**Payoffs.** Over one-hot outcomes a linear payoff is any bimatrix game: ``weights[a][i]`` is what
outcome i yields against action a. Outcomes to choose among are a finite list, a grid where outcomes
are a continuum. A list and a payoff make the commitment value and the leader's surplus computable
after the run (``market.exploitability``).

**Worth.** A population's reaction is its mixed strategy q (K, A) per cohort. An outcome y is worth

    sum over agents of  sum_a q(a) u(a, y)  /  number of agents,

over those whose mixed strategy is known, which is what myopic leaders maximise; of several best
outcomes they take the first in their list.

Shapes: m outcomes in the list, d coordinates of an outcome, K rows and A actions of a cohort.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regretless.agents.parameters import check_int, numbers, require, table
from regretless.market.core.arrays import Array, grid_points, repeated
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import UserError, brief
from regretless.market.game.protocols import (
    Adversary,
    Follower,
    Payoff,
    depends_on_losses_alone,
)
from regretless.market.losses import Loss
from regretless.market.records import AdversaryView, Context, History, OutcomeDistribution

MAX_SUPPORT_SIZE = 4096  # outcomes in a list
RELATIVE_TIE = 1e-12  # by which outcomes of equal worth may differ: rounding


class ZeroSum(Payoff):
    """Paid the follower's loss, normalised into [0, 1]."""

    of_losses = True
    is_loss = True

    def values(self, loss: Loss, outcomes: Array) -> Array:
        return loss.losses(outcomes)

    def range(self) -> tuple[float, float]:
        """Return 0 and 1."""
        return 0.0, 1.0

    def keys(self) -> dict[str, object]:
        return {}


class LinearPayoff(Payoff):
    """Paid ``offset_a + w_a . y``, by weights (A, d) and offset (A,), whoever the follower is."""

    def __init__(self, weights: ArrayLike, offset: ArrayLike | None = None) -> None:
        self.weights = table("weights", weights, axes="actions x outcomes")
        if self.weights.ndim != 2:
            raise ValueError(f"weights have shape {self.weights.shape}; give actions x outcomes")
        n_actions = len(self.weights)
        self.offset = np.zeros(n_actions) if offset is None else numbers("offset", offset)
        if self.offset.shape != (n_actions,):
            raise ValueError(f"offset has shape {self.offset.shape}; give {n_actions} numbers")

    def values(self, loss: Loss, outcomes: Array) -> Array:
        """Return what it is paid (m, K, A); ValueError if the game has another size."""
        expected_shape = (loss.actions, outcomes.shape[1])
        if self.weights.shape != expected_shape:
            raise ValueError(
                f"weights have shape {self.weights.shape}; "
                f"the followers' actions and outcomes need {expected_shape}"
            )
        payoff_per_action = outcomes @ self.weights.T + self.offset  # (m, A)
        return repeated(payoff_per_action, len(loss))

    def values_of_all(self, outcome: Array) -> Array:
        payoff_per_action: Array = outcome @ self.weights.T + self.offset
        return payoff_per_action

    def range(self) -> tuple[float, float]:
        """Return the least and the most that it is at a corner of the cube."""
        lowest = self.offset + np.minimum(self.weights, 0).sum(1)
        highest = self.offset + np.maximum(self.weights, 0).sum(1)
        return float(lowest.min()), float(highest.max())

    def keys(self) -> dict[str, object]:
        return {"weights": self.weights.tolist(), "offset": self.offset.tolist()}


@dataclass(frozen=True, eq=False)
class PaidCoordinates:
    """A payoff, and the coordinates of the outcome that it is a function of."""

    payoff: Payoff
    coordinates: list[int]


class JointPayoff(Payoff):
    """What several leaders are paid together, each with the coordinates that it depends on.

    A payoff that is read off the followers' losses depends on all coordinates.
    """

    def __init__(self, members: Sequence[PaidCoordinates]) -> None:
        self.members = tuple(members)

    def values(self, loss: Loss, outcomes: Array) -> Array:
        total = np.zeros((len(outcomes), len(loss), loss.actions))
        for member in self.members:
            if depends_on_losses_alone(member.payoff):
                relevant_outcomes = outcomes
            else:
                relevant_outcomes = outcomes[:, member.coordinates]
            total = total + member.payoff.values(loss, relevant_outcomes)
        return total


class Pure(Adversary):
    """Commits to one outcome for certain; subclasses say which."""

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        return OutcomeDistribution.pure(self.outcome(history, announced))

    @abstractmethod
    def outcome(self, history: History, announced: AdversaryView) -> Array:
        """Return the outcome (d,) of this round."""


@dataclass(eq=False, repr=False)
class Leader(Checkpointable, Adversary):
    """Base of the adversaries with a payoff.

    Attributes
    ----------
    outcomes : int
        d, the coordinates of an outcome.
    rng : Generator
        The leader's own stream.
    weights, offset : (A, d) and (A,), or None
        Of a linear payoff; without weights the leader is paid the follower's loss.
    support : (m, d)
        The outcomes to choose among: by default the unit vectors, for one coordinate its ends.
    grid : int or None
        The support is a grid of so many evenly spaced values of each coordinate.
    payoff : Payoff
        Made of weights and offset.
    followers : tuple of Follower
        Whom it has met.

    ValueError where weights, offset, support or grid do not fit.
    """

    outcomes: int
    rng: np.random.Generator
    _: KW_ONLY
    weights: Any = None
    offset: Any = None
    support: Any = None
    grid: int | None = None
    sees = frozenset({"history", "mixture", "play", "losses"})

    def __post_init__(self) -> None:
        self.payoff: Any = ZeroSum()
        if self.weights is not None:
            self.payoff = LinearPayoff(self.weights, self.offset)
        elif self.offset is not None:
            raise ValueError(
                f"offset = {brief(self.offset)} is of a linear payoff; give weights too"
            )
        self.support = support_of(self.outcomes, self.support, self.grid)
        self.followers: tuple[Follower, ...] = ()
        self._payoff_tables: list[Array] = []  # (m, K, A) of each follower

    def meet(self, followers: Sequence[Follower]) -> None:
        """Work out what every outcome of the support pays against every action of every row."""
        self.followers = tuple(followers)
        try:
            self._payoff_tables = self._pay_at(self.support)
        except ValueError as error:
            raise UserError(f"the adversary's payoff: {error}") from error

    def choose_among(self, support: Array) -> None:
        """Take another list of outcomes (m, d), as long as the first, with what each pays."""
        self.support = support
        self._payoff_tables = self._pay_at(support)

    def _pay_at(self, outcomes: Array) -> list[Array]:
        """Return what outcomes (m, d) pay (m, K, A), against each of the followers."""
        payoff_tables = []
        for follower in self.followers:
            payoffs = np.asarray(self.payoff.values(follower.loss, outcomes), dtype=np.float64)
            shape = (len(outcomes), *follower.loss.offset.shape)
            if payoffs.shape != shape:  # the kernel that reads them checks no index
                payoffs = np.broadcast_to(payoffs, shape)
            payoff_tables.append(payoffs)
        return payoff_tables

    def worth(self, play: Sequence[Array | None], outcomes: Array | None = None) -> Array:
        """Return the payoff per agent (m,) of each outcome of the support against mixed strategies.

        ``play`` has arrays (K, A), one per cohort, None for one that is left out; ``outcomes``
        (m, d) are what a market makes of the support. UserError if no cohort has a strategy, or
        the leader has met nobody, since it does not declare that it sees losses.
        """
        if not self.followers:
            raise UserError(
                f"adversary {type(self).__name__} has met no followers; add 'losses' to its sees"
            )
        payoff_tables = self._payoff_tables
        if outcomes is not None and outcomes is not self.support:
            payoff_tables = self._pay_at(outcomes)
        total_payoff = np.zeros(len(self.support))  # ``outcomes`` are as many
        n_agents = 0.0
        for strategy, payoffs, follower in zip(play, payoff_tables, self.followers, strict=True):
            if strategy is None:
                continue
            probabilities = np.asarray(strategy, dtype=np.float64)
            if probabilities.shape != payoffs.shape[1:]:
                probabilities = np.broadcast_to(probabilities, payoffs.shape[1:])
            _add_worth(payoffs, probabilities, follower.counts, total_payoff)
            n_agents += follower.agents
        if n_agents == 0.0:
            raise UserError(
                "no agent's play can be foreseen; scripted agents have no announced strategy"
            )
        return total_payoff / n_agents

    def best(self, worth: Array) -> Array:
        """Return the first outcome (d,) of the support whose worth (m,) is the greatest."""
        return np.asarray(self.support[first_best(worth)])


@compiled()
def _add_worth(payoffs: Array, strategy: Array, counts: Array, worth: Array) -> None:
    """Add to the worth of each outcome what the agents of a cohort pay there (compiled).

        worth_i += sum_k n_k sum_a q_ka u_ika

    Parameters
    ----------
    payoffs : array (m, K, A)
        u, of each outcome i against each action a of each row k.
    strategy : array (K, A)
        q, the mixed strategy of each row.
    counts : array (K,)
        n, how many agents each row stands for.
    worth : array (m,)
        Added to in place.
    """
    for i in range(len(payoffs)):
        paid = 0.0
        for k in range(len(strategy)):
            for a in range(strategy.shape[1]):
                paid += payoffs[i, k, a] * (strategy[k, a] * counts[k])
        worth[i] += paid


@compiled()
def place_in_support(outcome: Array, support: Array) -> int:
    """Return the first row of ``support`` (m, d) that is an outcome (d,), -1 if none (compiled)."""
    n_coordinates = len(outcome)
    if support.shape[1] != n_coordinates:
        return -1
    for i in range(len(support)):
        n_equal = 0
        while n_equal < n_coordinates and outcome[n_equal] == support[i, n_equal]:
            n_equal += 1
        if n_equal == n_coordinates:
            return i
    return -1


@compiled()
def first_best(worth: Array) -> int:
    """Return the first index at which ``worth`` (m,) is the greatest, up to rounding (compiled).

    It is 0 where a number is NaN: nothing is known then.
    """
    greatest = -np.inf
    largest_size = 1.0
    for number in worth:
        if np.isnan(number):
            return 0
        greatest = max(greatest, number)
        largest_size = max(largest_size, abs(number))
    least_tied = greatest - RELATIVE_TIE * largest_size
    for index in range(len(worth)):
        if worth[index] >= least_tied:
            return index
    return 0


def support_of(outcomes: int, support: ArrayLike | None, grid: int | None) -> Array:
    """Return the list of outcomes (m, d) that a file describes.

    ``outcomes`` is d; ``support`` lists rows of d numbers, ``grid`` counts the evenly spaced values
    of each coordinate. Without both these are the unit vectors, or for one coordinate 0 and 1.
    ValueError if both are given, or one does not fit.
    """
    if support is not None and grid is not None:
        raise ValueError(f"support and grid = {grid} exclude each other; drop one")
    if grid is not None:
        if check_int("grid", grid, least=2) ** outcomes > MAX_SUPPORT_SIZE:
            raise ValueError(
                f"grid = {grid} makes {grid}^{outcomes} outcomes; at most {MAX_SUPPORT_SIZE}"
            )
        return grid_points(np.linspace(0, 1, grid), outcomes)
    if support is None:
        return np.eye(outcomes) if outcomes > 1 else np.array([[0.0], [1.0]])
    listed = numbers("support", support)
    if listed.ndim != 2 or listed.shape[1] != outcomes or not len(listed):
        raise ValueError(f"support has shape {listed.shape}; give rows of {outcomes} numbers")
    require("support", listed, (listed >= 0) & (listed <= 1), "give numbers in [0, 1]")
    return listed
