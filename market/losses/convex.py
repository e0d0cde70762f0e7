r"""Convex, piecewise linear losses of one coordinate: newsvendor, pinball, hinge.

    l(a, y) = offset_a + slope_a y_j + sum_k kinks_ak max(y_j - knots_ak, 0),        kinks >= 0.

j is the coordinate that matters, the same for a whole stack; the others are there for a market
in which other agents care for them. Any convex function of one coordinate is a limit of these.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.losses.base import UNITS, Loss


@dataclass(frozen=True, eq=False)
class Convex1D(Loss):
    """Loss ``offset + slope * y_j + sum_k kinks_k * max(y_j - knots_k, 0)``.

    Parameters
    ----------
    kinks : array (..., A, m)
        By how much the slope rises at each knot, at least 0.
    knots : array (..., A, m)
        Where it does.
    slope : array (..., A) or float
        The slope left of all knots.
    offset, unit_scale, unit_offset : as in ``Loss``
    coordinate : int
        j.
    dimension : int
        Coordinates of an outcome, d.

    Raises
    ------
    ValueError
        If a kink is negative or the coordinate does not exist.
    """

    form: ClassVar[str] = "convex-1d"
    AXES: ClassVar[Mapping[str, str]] = {"kinks": "am", "knots": "am", "slope": "a", **UNITS}
    PROPORTIONAL: ClassVar[tuple[str, ...]] = ("kinks", "slope")

    kinks: Array
    knots: Array
    slope: Array = field(default_factory=lambda: np.zeros(()))
    offset: Array = field(default_factory=lambda: np.zeros(()))
    unit_scale: Array = field(default_factory=lambda: np.ones(()))
    unit_offset: Array = field(default_factory=lambda: np.zeros(()))
    coordinate: int = 0
    dimension: int = 1

    def __post_init__(self) -> None:
        self._settle()
        if (self.kinks < 0).any():
            raise ValueError("kinks must be at least 0: the loss is convex")
        if not 0 <= self.coordinate < self.dimension:
            raise ValueError(f"coordinate {self.coordinate} is not one of {self.dimension}")

    @property
    def outcomes(self) -> int:
        """Number of coordinates of an outcome, d."""
        return self.dimension

    @property
    def identity(self) -> tuple[object, ...]:
        """Return the form and the coordinate that matters."""
        return (self.form, self.coordinate)

    def lipschitz(self) -> Array:
        """Bound the slope: it is steepest at one of the ends."""
        rise = np.where(self.knots < 1, self.kinks, 0.0)
        first = self.slope + np.where(self.knots <= 0, self.kinks, 0.0).sum(-1)
        last = self.slope + rise.sum(-1)
        return np.asarray(np.maximum(np.abs(first), np.abs(last)).max(-1))

    def _along(self, y: Array) -> Array:
        """Losses (T, ..., A) where the coordinate has values that broadcast against (..., A)."""
        rises = self.kinks * np.maximum(y[..., None] - self.knots, 0)
        return np.asarray(self.offset + self.slope * y + rises.sum(-1))

    def _at(self, y: Array) -> Array:
        return self._along(y[..., self.coordinate, None])

    def _between(self, low: Array, high: Array) -> tuple[Array, Array]:
        left, right = (end[..., self.coordinate, None] for end in (low, high))
        ends = self._along(left), self._along(right)
        least = np.minimum(*ends)
        for k in range(self.knots.shape[-1]):  # a convex broken line is least at an end or a knot
            least = np.minimum(least, self._along(np.clip(self.knots[..., k], left, right)))
        return least, np.maximum(*ends)
