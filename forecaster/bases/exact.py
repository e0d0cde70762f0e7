"""The exact basis of a finite population: its own losses, one function per distinct action.

Error 0 and sum |r_i| <= 1 for every member. The size K x A enters regret only through a
logarithm, so for a finite population nothing is statistically better; a reduced basis buys
computing time and serves agents that were not listed.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.bases.approximation.functions import LossFunctions, stacked
from regretless.market.core.arrays import Array
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis


class ExactLossesBasis(Basis):
    """Every action of every listed loss is a function.

    Parameters
    ----------
    losses : sequence of Loss
        Stacks or single losses with values in [0, 1]. They are the family.
    """

    lipschitz = 1.0
    error = 0.0

    def __init__(self, losses: Sequence[Loss]) -> None:
        self.functions = LossFunctions(losses)
        self.outcomes, self.size = self.functions.outcomes, self.functions.size

    def transform(self, y: ArrayLike) -> Array:
        """Compute the losses at outcomes (..., d), each stretched onto [0, 1]: (..., n)."""
        return self.functions.values(y)

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Point at each action's own function; ValueError for a loss that was not listed."""
        self.check_outcomes(loss)
        many = stacked(loss)
        corner = many.losses(np.zeros(self.outcomes))
        least, greatest = many.enclosure(np.zeros(self.outcomes), np.ones(self.outcomes))
        index = self.functions.index(many)
        if ((index < 0) & (greatest > least)).any():
            raise ValueError("a loss is not among those that this basis lists")
        offset = np.where(index < 0, corner, self.functions.low[index])
        weights = np.zeros((*index.shape, self.size))
        rows, actions = np.nonzero(index >= 0)
        found = index[rows, actions]
        weights[rows, actions, found] = self.functions.scale[found]
        return offset.reshape(loss.offset.shape), weights.reshape(*loss.offset.shape, self.size)
