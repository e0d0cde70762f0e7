r"""Losses that are one function of one sum: general CES, mean-variance, Cobb-Douglas, CARA.

    power        l(a, y) = offset_a + A_a (intercept_a + sum_j weights_aj g(y_j)) ** beta
    exponential  l(a, y) = offset_a + A_a exp(sum_j weights_aj g(y_j))

with g(y) = y ** power, or ln y for power 0, above a floor. The paper's families of monomials and
exponentials over g are these with A > 0 and A < 0. Both are monotone in the sum or, for an even
beta, have their turning point at 0, so ranges over boxes are exact.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.losses.base import UNITS, Loss, Range, default, product
from regretless.market.losses.sums import check_floor, offset_sum, slope, to_power, transformed

SHARED = {"weights": "ad", "power": "", "floor": "", "amplitude": "a", **UNITS}


class OfSum(Loss):
    """What both forms share: the sum S = intercept + sum_j weights_j g(y_j) and its range."""

    PROPORTIONAL: ClassVar[tuple[str, ...]] = ("amplitude",)

    weights: Array
    power: Array
    floor: Array
    amplitude: Array
    intercept: Array | float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_floor(self.power, self.floor)

    @property
    def family(self) -> tuple[float, ...]:
        return float(self.power.flat[0]), float(self.floor.flat[0])

    @property
    def alike(self) -> bool:
        """Whether all losses of a stack have the same function g."""
        return bool(np.ptp(self.power) == 0 and np.ptp(self.floor) == 0)

    @abstractmethod
    def _outer(self, total: Array) -> Array:
        """Apply the function of the sum."""

    @abstractmethod
    def _steepness(self, least: Array, most: Array) -> Range:
        """Return the range of its derivative over ranges of the sum."""

    @abstractmethod
    def _moved(self, shift: Array, weights: Array) -> "OfSum":
        """Return the loss with these weights and more in the sum, by ``shift`` (..., A)."""

    def in_unit_cube(self, low: Array, side: Array) -> Loss:
        """Absorb the map into weights and a constant where g is y itself."""
        if (self.power != 1).any() or self.floor.any():
            return super().in_unit_cube(low, side)
        return self._moved(self.weights @ low, self.weights * side)

    def sum_range(self) -> Range:
        """Least and greatest S over the cube, each (..., A)."""
        corner = self._spread(np.zeros(self.outcomes))
        return self._sum_between(corner, corner + 1.0)

    def _at(self, y: Array) -> Array:
        inner = transformed(y, self.power[..., None], self.floor[..., None])
        total = offset_sum(self.intercept, self.weights, inner)
        return np.asarray(self.offset + self.amplitude * self._outer(total))

    def _sum_between(self, low: Array, high: Array) -> Range:
        """Least and greatest S over boxes; g is monotone."""
        ends = [transformed(y, self.power[..., None], self.floor[..., None]) for y in (low, high)]
        terms = [self.weights * end[..., None, :] for end in ends]
        least = self.intercept + np.minimum(*terms).sum(-1)
        return least, self.intercept + np.maximum(*terms).sum(-1)

    def _mapped(self, first: Array, second: Array) -> Range:
        """Apply the outer affine map to a pair of ends."""
        ends = self.amplitude * first, self.amplitude * second
        return self.offset + np.minimum(*ends), self.offset + np.maximum(*ends)

    def _bounded(self, outer: Array) -> Array:
        """Bound the slope (...), given a bound on the outer function's slope (..., A)."""
        rates = slope(self.power, self.floor)[..., None, None]
        inner = (np.abs(self.weights) * np.where(self.weights == 0, 0, rates)).sum(-1)
        still = (self.amplitude == 0) | (inner == 0) | (outer == 0)  # no matter how steep the rest
        steepest = np.where(still, 0, outer) * np.where(still, 0, inner)
        return np.asarray((np.abs(self.amplitude) * steepest).max(-1))

    def _slopes(self, low: Array, high: Array) -> Range:
        """Multiply the outer derivative by amplitude, weight and g', which is 0 below the floor."""
        power, floor = self.power[..., None, None], self.floor[..., None, None]
        outer = self._steepness(*self._sum_between(low[..., 0, :], high[..., 0, :]))
        size = np.where(power == 0, 1.0, power)
        ends = [size * np.maximum(y, floor) ** (power - 1) for y in (low, high)]
        least, most = np.minimum(*ends), np.maximum(*ends)
        flat, partly = high <= floor, low < floor
        least = np.where(flat, 0.0, np.where(partly, np.minimum(least, 0), least))
        most = np.where(flat, 0.0, np.where(partly, np.maximum(most, 0), most))
        scale = self.amplitude[..., None] * self.weights
        inner = product((scale, scale), (least, most))
        return product((outer[0][..., None], outer[1][..., None]), inner)


@dataclass(frozen=True, eq=False)
class PowerOfSum(OfSum):
    """Loss ``offset + amplitude * (intercept + sum_j weights_j g(y_j)) ** exponent``.

    ValueError if the sum can be negative and the exponent is no integer, or 0 and the exponent
    negative.

    Parameters
    ----------
    weights : array (..., A, d)
    exponent, power, floor : array (...) or float
        beta; and the function g, ``max(y, floor) ** power``, or its logarithm for power 0.
    intercept, amplitude : array (..., A) or float

    Examples
    --------
    >>> PowerOfSum([[1.0, 1.0]], 2.0).losses([0.5, 0.25])  # (0.5 + 0.25)^2
    array([0.5625])
    """

    form: ClassVar[str] = "power-of-sum"
    AXES: ClassVar[Mapping[str, str]] = {**SHARED, "exponent": "", "intercept": "a"}

    weights: Array
    exponent: Array
    power: Array = default(1.0)
    floor: Array = default(0.0)
    intercept: Array = default(0.0)
    amplitude: Array = default(1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = self.sum_range()
        beta = self.exponent[..., None]
        if ((beta != np.round(beta)) & (low < 0)).any():
            raise ValueError("the sum can be negative, where only an integer exponent is defined")
        if ((beta <= 0) & (low <= 0) & (high >= 0)).any():
            raise ValueError("the sum can be 0, where the exponent must be positive")

    def lipschitz(self) -> Array:
        low, high = self.sum_range()
        beta = self.exponent[..., None]
        with np.errstate(divide="ignore"):
            outer = np.abs(beta) * np.maximum(np.abs(low) ** (beta - 1), np.abs(high) ** (beta - 1))
        return self._bounded(outer)

    def _moved(self, shift: Array, weights: Array) -> OfSum:
        return replace(self, weights=weights, intercept=self.intercept + shift)

    def _outer(self, total: Array) -> Array:
        """Raise sums to the exponent; where it is no integer, below 0 is a rounding error."""
        if (self.exponent == 2).all():
            return np.asarray(np.square(total))
        beta = self.exponent[..., None]
        least = np.where(beta == np.round(beta), -np.inf, 0.0)
        return to_power(np.maximum(total, least), beta)

    def _between(self, low: Array, high: Array) -> Range:
        least, greatest = self._sum_between(low, high)
        return self._mapped(*_turned(least, greatest, self._outer(least), self._outer(greatest)))

    def _steepness(self, least: Array, most: Array) -> Range:
        beta = self.exponent[..., None]
        return _turned(least, most, beta * least ** (beta - 1), beta * most ** (beta - 1))


@dataclass(frozen=True, eq=False)
class ExponentialOfSum(OfSum):
    """Loss ``offset + amplitude * exp(sum_j weights_j g(y_j))``.

    Parameters
    ----------
    weights : array (..., A, d)
    power, floor : array (...) or float
        The function g, as in ``PowerOfSum``.
    amplitude : array (..., A) or float
        The paper's -A.

    Examples
    --------
    >>> ExponentialOfSum([[1.0, 1.0]], 0.0, 0.01).losses([0.5, 0.25])  # minus their product
    array([-0.125])
    """

    form: ClassVar[str] = "exponential-of-sum"
    AXES: ClassVar[Mapping[str, str]] = SHARED

    weights: Array
    power: Array = default(1.0)
    floor: Array = default(0.0)
    amplitude: Array = default(-1.0)

    def lipschitz(self) -> Array:
        return self._bounded(np.exp(self.sum_range()[1]))

    def _moved(self, shift: Array, weights: Array) -> OfSum:
        return replace(self, weights=weights, amplitude=self.amplitude * np.exp(shift))

    def _outer(self, total: Array) -> Array:
        return np.asarray(np.exp(total))

    def _between(self, low: Array, high: Array) -> Range:
        return self._mapped(*self._steepness(*self._sum_between(low, high)))

    def _steepness(self, least: Array, most: Array) -> Range:
        return np.exp(least), np.exp(most)


def _turned(least: Array, most: Array, first: Array, last: Array) -> Range:
    """Range of a power between its values at the ends, which may turn at 0 in between."""
    across = (least < 0) & (most > 0)
    ends = np.minimum(first, last), np.maximum(first, last)
    return np.where(across, np.minimum(0, ends[0]), ends[0]), ends[1]
