"""What all leaders share: a payoff u(a, y), the outcomes to choose among, what each is worth.

``fixed_plans`` has those who commit (Stackelberg), ``reactive`` and ``learned`` those who adapt.

Over one-hot outcomes a linear payoff is any bimatrix game: ``weights[a][i]`` is what outcome i
yields against action a. Outcomes to choose among are a finite list, a grid where outcomes are a
continuum. A list and a payoff make the commitment value and the leader's surplus computable after
the run (``market.exploitability``).

A population's reaction is its mixed strategy (K, A) per cohort. An outcome y is worth

    sum over agents of  sum_a q(a) u(a, y)  /  number of agents,

over those whose mixed strategy is known, which is what myopic leaders maximise; of several best
outcomes they take the first in their list.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regretless.agents.parameters import check_int, numbers, require, table
from regretless.market.core.arrays import Array, grid_points
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError, brief
from regretless.market.game.protocols import Adversary, Follower, Payoff
from regretless.market.losses import Loss
from regretless.market.records import AdversaryView, Context, History, OutcomeDistribution

MOST = 4096  # outcomes in a support
TIE = 1e-12  # relative difference of worth that is rounding


class ZeroSum(Payoff):
    """Paid the follower's loss, normalised into [0, 1]."""

    of_losses = True

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
        wanted = self.weights.shape[:1]
        self.offset = np.zeros(wanted) if offset is None else numbers("offset", offset)
        if self.offset.shape != wanted:
            raise ValueError(f"offset has shape {self.offset.shape}; give {wanted[0]} numbers")

    def values(self, loss: Loss, outcomes: Array) -> Array:
        wanted = loss.actions, outcomes.shape[1]
        if self.weights.shape != wanted:
            got = f"weights have shape {self.weights.shape}"
            raise ValueError(f"{got}; the followers' actions and outcomes need {wanted}")
        single = outcomes @ self.weights.T + self.offset
        return np.broadcast_to(single[:, None], (len(outcomes), len(loss), loss.actions))

    def range(self) -> tuple[float, float]:
        """Return the least and the most that it is at a corner of the cube."""
        low, high = np.minimum(self.weights, 0).sum(1), np.maximum(self.weights, 0).sum(1)
        return float((self.offset + low).min()), float((self.offset + high).max())

    def keys(self) -> dict[str, object]:
        return {"weights": self.weights.tolist(), "offset": self.offset.tolist()}


class JointPayoff(Payoff):
    """What several leaders are paid together, each with the coordinates that it depends on.

    One of losses depends on all of them.
    """

    def __init__(self, members: Sequence[tuple[Payoff, Sequence[int]]]) -> None:
        self.members = tuple((payoff, list(own)) for payoff, own in members)

    def values(self, loss: Loss, outcomes: Array) -> Array:
        total = np.zeros((len(outcomes), len(loss), loss.actions))
        for payoff, own in self.members:
            seen = outcomes if payoff.of_losses else outcomes[:, own]
            total = total + payoff.values(loss, seen)
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

    This is linear with ``weights`` (A, d) and ``offset`` (A,), else the follower's loss. Outcomes
    are those of the ``support`` (m, d), by default the unit vectors (for one coordinate its ends),
    or ``grid`` evenly spaced values of each coordinate.
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
        if self.weights is None and self.offset is not None:
            told = f"offset = {brief(self.offset)} is of a linear payoff"
            raise ValueError(f"{told}; give weights too")
        linear = self.weights is not None
        self.payoff: Any = LinearPayoff(self.weights, self.offset) if linear else ZeroSum()
        self.support = support_of(self.outcomes, self.support, self.grid)
        self.followers: tuple[Follower, ...] = ()
        self._values: list[Array] = []

    def meet(self, followers: Sequence[Follower]) -> None:
        """Work out what every outcome of the support pays against every action of every row."""
        self.followers = tuple(followers)
        try:
            self._values = [self.payoff.values(who.loss, self.support) for who in followers]
        except ValueError as error:
            raise UserError(f"the adversary's payoff: {error}") from error

    def worth(self, play: Sequence[Array | None], outcomes: Array | None = None) -> Array:
        """Return the payoff per agent (m,) of each outcome of the support against mixed strategies.

        ``play`` has arrays (K, A), one per cohort, None for one that is left out; ``outcomes``
        (m, d) are what a market makes of the support. UserError if no cohort has a strategy.
        """
        if all(strategy is None for strategy in play):
            raise UserError(
                "no agent's play can be foreseen; scripted agents have no announced strategy"
            )
        tables = self._values
        if outcomes is not None and outcomes is not self.support:
            tables = [self.payoff.values(who.loss, outcomes) for who in self.followers]
        total, agents = np.zeros(len(self.support)), 0.0
        for strategy, values, follower in zip(play, tables, self.followers, strict=True):
            if strategy is not None:
                counts = follower.counts
                total += np.einsum("mka,ka->m", values, strategy * counts[:, None])
                agents += counts.sum()
        return total / agents

    def best(self, worth: Array) -> Array:
        """Return the first outcome (d,) of the support whose worth (m,) is the greatest."""
        near = worth.max() - TIE * max(1.0, float(np.abs(worth).max()))
        return np.asarray(self.support[int((worth >= near).argmax())])


def support_of(outcomes: int, support: ArrayLike | None, grid: int | None) -> Array:
    """Return the list of outcomes (m, d) that a file describes."""
    if support is not None and grid is not None:
        raise ValueError(f"support and grid = {grid} exclude each other; drop one")
    if grid is not None:
        if check_int("grid", grid, least=2) ** outcomes > MOST:
            raise ValueError(f"grid = {grid} makes {grid}^{outcomes} outcomes; at most {MOST}")
        return grid_points(np.linspace(0, 1, grid), outcomes)
    if support is None:
        return np.eye(outcomes) if outcomes > 1 else np.array([[0.0], [1.0]])
    found = numbers("support", support)
    if found.ndim != 2 or found.shape[1] != outcomes or not len(found):
        raise ValueError(f"support has shape {found.shape}; give rows of {outcomes} numbers")
    require("support", found, (found >= 0) & (found <= 1), "give numbers in [0, 1]")
    return found
