"""What a leader is paid: u(a, y), for the follower's action a and the outcome y.

    ZeroSum         the follower's own loss, normalised into [0, 1]
    LinearPayoff    offset_a + w_a . y

Over one-hot outcomes a linear payoff is any bimatrix game: ``weights[a][i]`` is what outcome i
yields against action a. Revenue is one too: the price of the arm that is bought.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from regretless.agents.parameters import numbers, table
from regretless.market.core.arrays import Array
from regretless.market.game.protocols import Payoff
from regretless.market.losses import Loss


class ZeroSum:
    """Paid the follower's normalised loss."""

    def values(self, loss: Loss, outcomes: Array) -> Array:
        """Return the losses (m, K, A)."""
        return loss.losses(outcomes)

    def range(self) -> tuple[float, float]:
        """Return 0 and 1."""
        return 0.0, 1.0


class LinearPayoff:
    """Paid ``offset_a + w_a . y``, whoever the follower is.

    Parameters
    ----------
    weights : array (A, d)
    offset : array (A,), optional
        0 by default.

    Raises
    ------
    ValueError
        If the shapes do not fit or a number is not finite.
    """

    def __init__(self, weights: ArrayLike, offset: ArrayLike | None = None) -> None:
        self.weights = table("weights", weights, axes="actions x outcomes")
        if self.weights.ndim != 2:
            raise ValueError(f"weights have shape {self.weights.shape}; give actions x outcomes")
        wanted = self.weights.shape[:1]
        self.offset = np.zeros(wanted) if offset is None else numbers("offset", offset)
        if self.offset.shape != wanted:
            raise ValueError(f"offset has shape {self.offset.shape}; give {wanted[0]} numbers")

    def values(self, loss: Loss, outcomes: Array) -> Array:
        """Return the payoffs (m, K, A), equal for all rows; ValueError if the sizes do not fit."""
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


class JointPayoff:
    """What several leaders are paid together.

    Parameters
    ----------
    members : sequence of (Payoff, sequence of int)
        Each payoff with the coordinates that it depends on; a ``ZeroSum`` depends on all of them.
    """

    def __init__(self, members: Sequence[tuple[Payoff, Sequence[int]]]) -> None:
        self.members = tuple((payoff, list(own)) for payoff, own in members)

    def values(self, loss: Loss, outcomes: Array) -> Array:
        """Return the sum of the payoffs (m, K, A)."""
        total = np.zeros((len(outcomes), len(loss), loss.actions))
        for payoff, own in self.members:
            seen = outcomes if isinstance(payoff, ZeroSum) else outcomes[:, own]
            total = total + payoff.values(loss, seen)
        return total
