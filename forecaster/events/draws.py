"""What is known of the draws of all protected losses: their variances so far.

``forecaster.guarantees.draws`` says what they add to an expected regret, and defines the two parts
of V: ``near``, of rounds in which the draw is close to certain, and the sums U_{a,c} of others.
"""

from typing import ClassVar

import numpy as np

from regretless.forecaster.events.loss_table import LossTable, ProtectedLosses
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable

ROUNDING = 1e-12  # of what is 0 or 1 but for the order of a sum: atoms weigh more


class GroupDraws:
    """The draws of one group's K losses so far.

    Attributes
    ----------
    ends : array (2, K)
        ``near``, and the most that the martingale can surely be.
    far : array (K, A)
        Sums of probability times the greatest squared gap to another action's loss.
    pairs : array (K, A, A)
        U_{a,c}.
    """

    def __init__(self, losses: int, actions: int) -> None:
        self.ends = np.zeros((2, losses))
        self.far = np.zeros((losses, actions))
        self.pairs = np.zeros((losses, actions, actions))

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        """All sums."""
        return self.ends, self.far, self.pairs

    def add(self, probabilities: Array, losses: Array) -> None:
        """Add a round: probabilities and losses of actions (K, A)."""
        low = losses.min(1, keepdims=True)
        high = losses.max(1, keepdims=True)
        width = (high - low)[:, 0]
        least_probability = np.where(probabilities > ROUNDING, probabilities, 1.0).min(1)
        spread = (probabilities * (1 - probabilities)).sum(1)
        greatest_gaps = np.maximum(high - losses, losses - low)  # to another action's loss
        moments = probabilities * greatest_gaps**2
        near_certain_variance = 2 * width**2 * spread
        is_random = spread > ROUNDING
        is_near = near_certain_variance < moments.sum(1)
        greatest_step = 2 * width * (1 - least_probability)  # of the martingale, for sure
        self.ends += is_random * np.stack([is_near * near_certain_variance, greatest_step])
        is_far = (is_random & ~is_near)[:, None]
        self.far += is_far * moments
        squared_gaps = (losses[:, :, None] - losses[:, None]) ** 2
        self.pairs += (is_far * probabilities)[:, :, None] * squared_gaps


class Draws(Checkpointable):
    """What is known of the draws of all protected losses so far."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_of_anybody", "_arrays")
    IN_PLACE = True

    def __init__(self, rows: LossTable) -> None:
        self._rows = rows
        self._of_anybody = np.zeros(2)
        self.groups = [GroupDraws(*group.offset.shape) for group in rows.groups]
        self._arrays = [group.arrays for group in self.groups]

    def add(self, occupancy: Array, statistics: Array, mass: Array) -> None:
        """Add a round: probabilities of rows (R,), s(y) (n,), probabilities of the draw (m,)."""
        losses = self._rows.offset + self._rows.times(statistics)
        for draws, group in zip(self.groups, self._rows.groups, strict=True):
            rows = self._rows.slice(group)
            shape = group.offset.shape
            draws.add(occupancy[rows].reshape(shape), losses[rows].reshape(shape))
        variance = min(2 * float(mass @ (1 - mass)), 1.0)
        greatest_step = 2 * (1 - float(mass.min()))
        self._of_anybody += variance, greatest_step

    def of_anybody(self, width: Array) -> Array:
        """Return V and what is sure, of losses of any ranges (K,): each atom has its own action."""
        return np.outer(self._of_anybody, width) * np.stack([width, np.ones_like(width)])

    def of(self, group: ProtectedLosses, *, fixed: bool) -> Array:
        """Return V and what is sure, of a group's losses (2, K); ``fixed``: against actions."""
        draws = self.groups[self._rows.group_index(group)]
        near, greatest_steps = draws.ends
        far_of_action = draws.pairs.max(2) if fixed else draws.far
        return np.stack([near + far_of_action.sum(1), greatest_steps])
