r"""Another basis with indicators beside: whether an outcome is at most each of some thresholds.

Announced quantiles need them (``events.quantile_grid``). With ``steps`` = m the thresholds of every
coordinate are 0, 1 / m, ..., (m - 1) / m, and after the other basis's functions come

    s_(j, i)(y) = 1[y_j <= i / m],        i = 0..m - 1, coordinate by coordinate.

A loss of the other basis keeps its coefficients. An outcome counts as at most a threshold up to
``ROUNDING``, so that an outcome on the grid is not above itself in other units.
"""

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.bases.convex import ConvexBasis
from regretless.forecaster.bases.polynomial import LinearBasis
from regretless.forecaster.minimax.support import ListedSupport
from regretless.market.core.arrays import Array
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis, Support

ROUNDING = 1e-9  # of an outcome, up to which it is at most a threshold


class WithIndicators(Basis):
    """The functions of ``other``, and after them ``steps`` indicators of every coordinate.

    It declares the lambda and the error of the other basis, for the other basis's losses.

    Examples
    --------
    >>> from regretless.forecaster.bases import LinearBasis
    >>> WithIndicators(LinearBasis(1), steps=4).transform([0.5])
    array([0.5, 0. , 0. , 1. , 1. ])
    """

    def __init__(self, other: Basis, *, steps: int) -> None:
        self.other = other
        self.steps = steps
        self.outcomes = other.outcomes
        self.size = other.size + other.outcomes * steps
        self.lipschitz = other.lipschitz
        self.error = other.error
        self.thresholds = np.arange(steps) / steps

    def first_indicator(self, coordinate: int) -> int:
        """Return where among all functions the indicators of a coordinate begin."""
        return self.other.size + coordinate * self.steps

    def transform(self, y: ArrayLike) -> Array:
        outcomes = np.asarray(y, dtype=np.float64)
        is_at_most = outcomes[..., np.newaxis] <= self.thresholds + ROUNDING
        indicators = is_at_most.astype(np.float64).reshape(*outcomes.shape[:-1], -1)
        return np.concatenate([self.other.transform(outcomes), indicators], axis=-1)

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Return the coefficients that the other basis has; those of indicators are 0."""
        offset, weights_of_other = self.other.coefficients(loss)
        weights = np.zeros((*weights_of_other.shape[:-1], self.size))
        weights[..., : self.other.size] = weights_of_other
        return self.contiguous(offset, weights)

    def certified_error(self, losses: Loss) -> float:
        return self.other.certified_error(losses)

    def inverse(self, points: Array) -> Array:
        return self.other.inverse(points[..., : self.other.size])

    def support(self) -> Support:
        """List the outcomes between which all functions are linear or constant.

        They are the knots of the other basis, and the ends of the intervals on which the indicators
        are constant. ValueError unless the other basis is piecewise linear in a single outcome.
        """
        if self.outcomes != 1 or not isinstance(self.other, ConvexBasis | LinearBasis):
            return super().support()
        knots = np.array([0.0, 1.0])
        if isinstance(self.other, ConvexBasis):
            knots = self.other.knots
        last_at_most = self.thresholds + ROUNDING
        first_above = np.nextafter(last_at_most, 1.0)
        levels = np.unique(np.concatenate([knots, last_at_most, first_above]))
        return ListedSupport(self, levels[:, np.newaxis])
