"""The linear basis: the outcome itself, s(y) = y. Exact for linear losses, size d.

A linear loss with values in [0, 1] on the cube has sum |r_i| <= 1, its range: lambda is 1.
"""

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.losses import Loss, SeparablePower
from regretless.market.losses.basis import Basis
from regretless.market.numerics.storage import side_by_side


class LinearBasis(Basis):
    """The coordinates of the outcome.

    Parameters
    ----------
    outcomes : int
        Coordinates of an outcome, d.
    """

    lipschitz = 1.0
    error = 0.0
    convex_image = True

    def __init__(self, outcomes: int) -> None:
        self.outcomes = self.size = outcomes

    def transform(self, y: ArrayLike) -> Array:
        """Return the outcomes as they are."""
        return np.asarray(y, dtype=np.float64)

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Return the loss's own offset and weights; ValueError if it is not linear."""
        power = self.accept(loss, SeparablePower)
        if power.centred or (power.exponent != 1).any():
            raise ValueError("a loss with an exponent other than 1 is not linear; use PowerBasis")
        return np.ascontiguousarray(power.offset), side_by_side(power.weights)

    def inverse(self, points: Array) -> Array:
        """Return the predictions: they are label forecasts."""
        return points
