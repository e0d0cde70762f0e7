"""What is known of the draws of all protected losses: their variances so far.

``forecaster.guarantees.draws`` says what they add to an expected regret, and defines the two parts
of V: ``near``, of rounds in which the draw is close to certain, and the sums U_{a,c} of others.
"""

from copy import copy
from typing import ClassVar

import numpy as np

from regretless.forecaster.events.loss_table import LossTable, ProtectedLosses
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled
from regretless.market.numerics.greatest import sums_of_greatest

ROUNDING = 1e-12  # of what is 0 or 1 but for the order of a sum: atoms weigh more


@compiled()
def _add_draw(
    probabilities: Array, losses: Array, first: int, ends: Array, far: Array, pairs: Array
) -> None:
    """Add a round's draw to the sums of K losses, in place (compiled).

    With p the probabilities and l the losses of a loss's actions, w the range of l, and g(a) the
    greatest gap of l(a) to another action's loss, the draw is close to certain where
    2 w^2 sum_a p(a) (1 - p(a)) < sum_a p(a) g(a)^2.

    Parameters
    ----------
    probabilities, losses : array (R,)
        With which each row's action is played, and what it loses at the outcome. The K losses own
        the rows from ``first`` on, A rows each.
    first : int
        The first of these rows.
    ends : array (2, K)
        Added to: that variance where the draw is close to certain; in every round the most that the
        martingale can move, 2 w (1 - the least probability).
    far : array (K, A)
        Added to where it is not: p(a) g(a)^2.
    pairs : array (K, A, A)
        Added to where it is not: p(a) (l(a) - l(c))^2.
    """
    n_losses, n_actions = far.shape
    for k in range(n_losses):
        start = first + k * n_actions
        end = start + n_actions
        low = losses[start]
        high = losses[start]
        least_probability = 1.0
        spread = 0.0
        for r in range(start, end):
            low = min(low, losses[r])
            high = max(high, losses[r])
            spread += probabilities[r] * (1.0 - probabilities[r])
            if probabilities[r] > ROUNDING:
                least_probability = min(least_probability, probabilities[r])
        if spread <= ROUNDING:
            continue
        width = high - low
        ends[1, k] += 2.0 * width * (1.0 - least_probability)
        sum_of_moments = 0.0
        for r in range(start, end):
            greatest_gap = max(high - losses[r], losses[r] - low)
            sum_of_moments += probabilities[r] * (greatest_gap * greatest_gap)
        near_certain_variance = 2.0 * (width * width) * spread
        if near_certain_variance < sum_of_moments:
            ends[0, k] += near_certain_variance
            continue
        for a in range(n_actions):
            r = start + a
            greatest_gap = max(high - losses[r], losses[r] - low)
            far[k, a] += probabilities[r] * (greatest_gap * greatest_gap)
            for c in range(n_actions):
                gap = losses[r] - losses[start + c]
                pairs[k, a, c] += probabilities[r] * (gap * gap)


@compiled()
def _add_draw_of_anybody(mass: Array, sums: Array) -> None:
    """Add a round's draw to what holds for any loss of width 1 (compiled).

    Parameters
    ----------
    mass : array (m,)
        p, the probabilities of the predictions of a mixture.
    sums : array (2,)
        Added to: min(2 sum_j p_j (1 - p_j), 1), a variance; and 2 (1 - min_j p_j), the greatest
        step.
    """
    variance = 0.0
    least_probability = 1.0
    for j in range(mass.shape[0]):
        variance += mass[j] * (1.0 - mass[j])
        least_probability = min(least_probability, mass[j])
    sums[0] += min(2.0 * variance, 1.0)
    sums[1] += 2.0 * (1.0 - least_probability)


@compiled()
def _add_draw_of_group_and_anybody(
    probabilities: Array,
    losses: Array,
    mass: Array,
    ends: Array,
    far: Array,
    pairs: Array,
    of_anybody: Array,
) -> None:
    """Add a round's draw to the sums of the first group's losses and of any loss (compiled).

    Most tables have one group. ``of_anybody`` (2,) are the ``sums`` of ``_add_draw_of_anybody``;
    the other arguments are those of ``_add_draw``.
    """
    _add_draw(probabilities, losses, 0, ends, far, pairs)
    _add_draw_of_anybody(mass, of_anybody)


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

    def excerpt(self) -> "GroupDraws":
        """Return a copy."""
        excerpt = GroupDraws(*self.far.shape)
        excerpt.ends = self.ends.copy()
        excerpt.far = self.far.copy()
        excerpt.pairs = self.pairs.copy()
        return excerpt

    def add(self, probabilities: Array, losses: Array, first: int = 0) -> None:
        """Add a round: probabilities and losses of rows (R,), the group's from ``first`` on."""
        _add_draw(probabilities, losses, first, self.ends, self.far, self.pairs)


class Draws(Checkpointable):
    """What is known of the draws of all protected losses so far."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_of_anybody", "_arrays")
    IN_PLACE = True

    def __init__(self, rows: LossTable) -> None:
        self._rows = rows
        self._of_anybody = np.zeros(2)
        self.groups = [GroupDraws(*group.offset.shape) for group in rows.groups]
        first_rows = [rows.slice(group).start for group in rows.groups]
        self._other_groups = list(zip(self.groups, first_rows, strict=True))[1:]
        self._arrays = [group.arrays for group in self.groups]

    def add(self, occupancy: Array, losses: Array, mass: Array) -> None:
        """Add a round: probabilities and losses of rows (R,), probabilities of the draw (m,)."""
        first_group = self.groups[0]
        _add_draw_of_group_and_anybody(
            occupancy,
            losses,
            mass,
            first_group.ends,
            first_group.far,
            first_group.pairs,
            self._of_anybody,
        )
        for draws, first_row in self._other_groups:
            draws.add(occupancy, losses, first_row)

    def excerpt(self) -> "Draws":
        """Return a copy of what is known of the losses' own draws, to be read and not added to."""
        excerpt = copy(self)
        excerpt.groups = [group.excerpt() for group in self.groups]
        return excerpt

    def of_anybody(self, width: Array) -> Array:
        """Return V and what is sure, of losses of any ranges (K,): each atom has its own action."""
        return np.outer(self._of_anybody, width) * np.stack([width, np.ones_like(width)])

    def of(self, group: ProtectedLosses, *, fixed: bool) -> Array:
        """Return V and what is sure, of a group's losses (2, K); ``fixed``: against actions."""
        draws = self.groups[self._rows.group_index(group)]
        near, greatest_steps = draws.ends
        far = sums_of_greatest(draws.pairs) if fixed else draws.far.sum(1)
        return np.stack([near + far, greatest_steps])
