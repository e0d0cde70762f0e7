r"""Convex losses of one coordinate, piecewise linear.

Newsvendor, pinball and hinge losses are of this form, with kinks >= 0 and one coordinate j
(``coordinate``) for a whole stack; any convex function of one coordinate is a limit of these.

    l(a, y) = offset_a + slope_a y_j + sum_k kinks_ak max(y_j - knots_ak, 0)
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.losses.base import UNIT_AXES, Loss, Range, default


@dataclass(frozen=True, eq=False)
class Convex1D(Loss):
    """Loss ``offset + slope * y_j + sum_k kinks_k * max(y_j - knots_k, 0)``.

    ValueError if a kink is negative or the coordinate does not exist.

    Parameters
    ----------
    kinks, knots : array (..., A, m)
        By how much the slope rises, at least 0, and where.
    slope : array (..., A) or float
        The slope left of all knots.
    coordinate, dimension : int
        j, and the coordinates of an outcome, d.

    Examples
    --------
    >>> shop = Convex1D([[4.0]], [[0.5]], -1.0, offset=0.5)  # stocks 0.5; left over 1, short 3
    >>> shop.losses([[0.25], [0.75]])  # (outcomes, actions)
    array([[0.25],
           [0.75]])
    """

    form: ClassVar[str] = "convex-1d"
    AXES: ClassVar[Mapping[str, str]] = {"kinks": "am", "knots": "am", "slope": "a", **UNIT_AXES}
    PROPORTIONAL: ClassVar[tuple[str, ...]] = ("kinks", "slope")
    actions_are_separate: ClassVar[bool] = True

    kinks: Array
    knots: Array
    slope: Array = default(0.0)
    coordinate: int = 0
    dimension: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.kinks < 0).any():
            raise ValueError("kinks must be at least 0: the loss is convex")
        if not 0 <= self.coordinate < self.dimension:
            raise ValueError(f"coordinate {self.coordinate} is not one of {self.dimension}")

    @property
    def outcomes(self) -> int:
        return self.dimension

    @property
    def identity(self) -> tuple[object, ...]:
        return (self.form, self.coordinate)

    @property
    def family(self) -> tuple[float, ...]:
        return (self.coordinate,)

    def lipschitz(self) -> Array:
        first_slope = self.slope + np.where(self.knots <= 0, self.kinks, 0.0).sum(-1)
        last_slope = self.slope + np.where(self.knots < 1, self.kinks, 0.0).sum(-1)
        return np.asarray(np.maximum(np.abs(first_slope), np.abs(last_slope)).max(-1))

    def in_unit_cube(self, low: Array, side: Array) -> Loss:
        start = low[self.coordinate]
        length = side[self.coordinate]
        return replace(
            self,
            kinks=self.kinks * length,
            knots=(self.knots - start) / length,
            slope=self.slope * length,
            offset=self.offset + self.slope * start,
        )

    def _along(self, y: Array) -> Array:
        """Losses (T, ..., A) where the coordinate has values that broadcast against (..., A)."""
        rises = self.kinks * np.maximum(y[..., None] - self.knots, 0)
        return np.asarray(self.offset + self.slope * y + rises.sum(-1))

    def _at(self, y: Array) -> Array:
        return self._along(y[..., self.coordinate, None])

    def _between(self, low: Array, high: Array) -> Range:
        start = low[..., self.coordinate, None]
        end = high[..., self.coordinate, None]
        at_start = self._along(start)
        at_end = self._along(end)
        least = np.minimum(at_start, at_end)
        for k in range(self.knots.shape[-1]):  # a convex broken line is least at an end or a knot
            at_knot = self._along(np.clip(self.knots[..., k], start, end))
            least = np.minimum(least, at_knot)
        return least, np.maximum(at_start, at_end)

    def _slopes(self, low: Array, high: Array) -> Range:
        start = low[..., self.coordinate, None]
        end = high[..., self.coordinate, None]
        least_slope = self.slope + np.where(self.knots <= start, self.kinks, 0.0).sum(-1)
        greatest_slope = self.slope + np.where(self.knots < end, self.kinks, 0.0).sum(-1)
        is_own_coordinate = np.arange(self.outcomes) == self.coordinate
        least = least_slope[..., None] * is_own_coordinate
        return least, greatest_slope[..., None] * is_own_coordinate
