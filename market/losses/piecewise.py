r"""Piecewise linear losses: convex ones of one coordinate, what orders gain at a price, Leontief.

    convex in y_j   l(a, y) = offset_a + slope_a y_j + sum_k kinks_ak max(y_j - knots_ak, 0)
    trade           l(a, y) = offset_a - sum_g max(0, quantity_ag (limit_ag - y_g))
    Leontief        l(a, y) = offset_a + A_a min_j y_j / a_aj,     A < 0 for a production function

Newsvendor, pinball and hinge losses are of the first form, with kinks >= 0 and one coordinate j for
a whole stack; any convex function of one coordinate is a limit of these. In the second y_g is the
price of good g. A quantity above 0 is bought wherever the price is below the limit, one below 0
sold wherever it is above. With the limit at what a unit is worth to the agent this is minus its
gain from trade (the consumer's or producer's surplus, Marshall 1890). In the third inputs come in
fixed proportions and the scarcest decides: a_j of input j makes one unit of output, and an input
with a_j = 0 is not needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.losses.base import UNITS, Loss, Range, default, product
from regretless.market.losses.lipschitz import wrapped


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
    AXES: ClassVar[Mapping[str, str]] = {"kinks": "am", "knots": "am", "slope": "a", **UNITS}
    PROPORTIONAL: ClassVar[tuple[str, ...]] = ("kinks", "slope")

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
        first = self.slope + np.where(self.knots <= 0, self.kinks, 0.0).sum(-1)
        last = self.slope + np.where(self.knots < 1, self.kinks, 0.0).sum(-1)
        return np.asarray(np.maximum(np.abs(first), np.abs(last)).max(-1))

    def in_unit_cube(self, low: Array, side: Array) -> Loss:
        start, length = low[self.coordinate], side[self.coordinate]
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
        left, right = (end[..., self.coordinate, None] for end in (low, high))
        ends = self._along(left), self._along(right)
        least = np.minimum(*ends)
        for k in range(self.knots.shape[-1]):  # a convex broken line is least at an end or a knot
            least = np.minimum(least, self._along(np.clip(self.knots[..., k], left, right)))
        return least, np.maximum(*ends)

    def _slopes(self, low: Array, high: Array) -> Range:
        own = np.arange(self.outcomes) == self.coordinate
        left, right = (end[..., self.coordinate, None] for end in (low, high))
        least = self.slope + np.where(self.knots <= left, self.kinks, 0.0).sum(-1)
        most = self.slope + np.where(self.knots < right, self.kinks, 0.0).sum(-1)
        return least[..., None] * own, most[..., None] * own


@dataclass(frozen=True, eq=False)
class Trade(Loss):
    """Loss ``offset - sum_g max(0, quantity_g * (limit_g - y_g))``.

    Parameters
    ----------
    quantity : array (..., A, d)
        Units of each good, below 0 for a sale.
    limit : array (..., A, d) or float
        The price from which on an order does not trade.

    Examples
    --------
    >>> Trade([[1.0], [-1.0]], 0.6).losses([0.5])  # buys for less than 0.6, sells for more
    array([-0.1,  0. ])
    """

    form: ClassVar[str] = "trade"
    AXES: ClassVar[Mapping[str, str]] = {"quantity": "ad", "limit": "ad", **UNITS}
    PROPORTIONAL: ClassVar[tuple[str, ...]] = ("quantity",)

    quantity: Array
    limit: Array

    def lipschitz(self) -> Array:
        return np.asarray(np.abs(self.quantity).sum(-1).max(-1))

    def _at(self, y: Array) -> Array:
        losses = np.array(self.offset)
        for g in range(self.outcomes):  # a sum over a short last axis takes three times as long
            gain = self.quantity[..., g] * (self.limit[..., g] - y[..., None, g])
            losses = losses - np.maximum(gain, 0.0, out=gain)
        return losses

    def _between(self, low: Array, high: Array) -> Range:
        gains = [self.quantity * (self.limit - y[..., None, :]) for y in (low, high)]
        least = self.offset - np.maximum(np.maximum(*gains), 0.0).sum(-1)
        return least, self.offset - np.maximum(np.minimum(*gains), 0.0).sum(-1)


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
