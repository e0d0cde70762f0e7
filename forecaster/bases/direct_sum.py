"""The direct sum of several bases, for a population of several loss forms.

s(y) is the concatenation of the parts' functions. A loss uses one part's functions and has
coefficient 0 on all others, so a forecaster may treat each part as an independent instance.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis


class DirectSumBasis(Basis):
    """Several bases side by side.

    Parameters
    ----------
    parts : sequence of Basis
        All over the same outcomes. A loss is served by the first part that accepts it.
    """

    def __init__(self, parts: Sequence[Basis]) -> None:
        if len({part.outcomes for part in parts}) != 1:
            raise ValueError("the parts of a direct sum need the same number of outcomes")
        self.parts = tuple(parts)
        self.outcomes = parts[0].outcomes
        self.size = sum(part.size for part in parts)
        self.lipschitz = max(part.lipschitz for part in parts)
        self.error = max(part.error for part in parts)
        self.convex_image = len(parts) == 1 and parts[0].convex_image
        self._starts = np.cumsum([0, *(part.size for part in parts)])

    def block(self, index: int) -> slice:
        """Columns of the part with this index."""
        return slice(int(self._starts[index]), int(self._starts[index + 1]))

    def part_of(self, loss: Loss) -> int:
        """Index of the first part in which the loss is representable; ValueError if none is."""
        reasons = []
        for index, part in enumerate(self.parts):
            try:
                part.coefficients(loss)
            except ValueError as reason:
                reasons.append(str(reason))
            else:
                return index
        raise ValueError("; ".join(reasons))

    def transform(self, y: ArrayLike) -> Array:
        """Concatenate the parts' functions along the last axis."""
        return np.concatenate([part.transform(y) for part in self.parts], axis=-1)

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Return the loss's coefficients in its own part, zero elsewhere."""
        index = self.part_of(loss)
        offset, own = self.parts[index].coefficients(loss)
        weights = np.zeros((*own.shape[:-1], self.size))
        weights[..., self.block(index)] = own
        return offset, weights

    def certified_error(self, losses: Loss) -> float:
        """Return what the losses' own part proves."""
        return self.parts[self.part_of(losses)].certified_error(losses)

    def inverse(self, points: Array) -> Array:
        """Average of the parts' label forecasts."""
        labels = [part.inverse(points[..., self.block(i)]) for i, part in enumerate(self.parts)]
        return np.asarray(np.mean(labels, axis=0))
