r"""Leontief losses: l(a, y) = offset_a + A_a min_j y_j / a_aj, A < 0 for a production function.

Inputs come in fixed proportions and the scarcest decides: a_j of input j makes one unit of output,
and an input with a_j = 0 is not needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.losses.base import UNITS, Loss, Range, default, product
from regretless.market.losses.lipschitz import wrapped


@dataclass(frozen=True, eq=False)
class MinimumOfRatios(Loss):
    """Loss ``offset + amplitude * min_j y_j / requirements_j``.

    ValueError if a requirement is negative or an action needs no input.

    Parameters
    ----------
    requirements : array (..., A, d)
        a_j, at least 0, some positive in every row.
    amplitude : array (..., A) or float
        Negative for a utility.

    Examples
    --------
    >>> bicycles = MinimumOfRatios([[0.5, 1.0]], -1.0)  # half a frame for each wheel
    >>> bicycles.losses([0.25, 0.25])  # in the utility's own units: wheels are short
    array([-0.25])
    """

    form: ClassVar[str] = "minimum-of-ratios"
    AXES: ClassVar[Mapping[str, str]] = {"requirements": "ad", "amplitude": "a", **UNITS}
    PROPORTIONAL: ClassVar[tuple[str, ...]] = ("amplitude",)

    requirements: Array
    amplitude: Array = default(-1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.requirements < 0).any() or (self.requirements.max(-1) == 0).any():
            raise ValueError("requirements must be at least 0, and one of each action positive")

    def lipschitz(self) -> Array:
        with np.errstate(divide="ignore"):
            rates = np.where(self.requirements > 0, 1 / self.requirements, 0.0)
        return np.asarray((np.abs(self.amplitude) * rates.max(-1)).max(-1))

    def in_unit_cube(self, low: Array, side: Array) -> Loss:
        return wrapped(self, low, side)

    def _at(self, y: Array) -> Array:
        least = np.asarray(np.inf)
        for j in range(self.outcomes):  # over whole planes: the last axis is short
            column = self.requirements[..., j]
            ratio = y[..., None, j] / np.where(column > 0, column, 1.0)
            least = np.minimum(least, np.where(column > 0, ratio, np.inf))
        return np.asarray(self.offset + self.amplitude * least)

    def _between(self, low: Array, high: Array) -> Range:
        ends = self._at(low), self._at(high)
        return np.minimum(*ends), np.maximum(*ends)

    def _slopes(self, low: Array, high: Array) -> Range:
        """Return A / a_j where input j is scarcest, 0 elsewhere."""
        needed = self.requirements > 0
        rates = 1 / np.where(needed, self.requirements, np.inf)
        under, over = (np.where(needed, end * rates, np.inf) for end in (low, high))
        possible = under <= over.min(-1, keepdims=True)
        rivals = np.where(np.eye(self.outcomes, dtype=bool), np.inf, under[..., None, :]).min(-1)
        scale = self.amplitude[..., None] * rates
        sole, among = (chance.astype(np.float64) for chance in (over < rivals, possible))
        return product((scale, scale), (sole, among))
