r"""Losses that are one function of one sum: general CES, mean-variance, Cobb-Douglas, CARA.

    power        l(a, y) = offset_a + A_a (intercept_a + sum_j weights_aj g(y_j)) ** beta
    exponential  l(a, y) = offset_a + A_a exp(sum_j weights_aj g(y_j))

with g(y) = y ** power, or ln y for power 0, above a floor; A is ``amplitude`` and beta
``exponent``. The paper's families of monomials and exponentials over g are these with A > 0 and
A < 0. Both are monotone in the sum or, for an even beta, have their turning point at 0, so ranges
over boxes are exact.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.losses.base import UNIT_AXES, Loss, Range, default, product
from regretless.market.losses.sums import (
    InnerFunction,
    check_floor,
    inner_function,
    offset_sum,
    slope,
    to_power,
    transformed,
)

SHARED_AXES = {"weights": "ad", "power": "", "floor": "", "amplitude": "a", **UNIT_AXES}


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
        """Return the function of the sum, a power or an exponential, at sums (..., A)."""

    @abstractmethod
    def _outer_derivatives(self, least_sum: Array, greatest_sum: Array) -> Range:
        """Return the range of that function's derivative, (..., A) each, over ranges of the sum."""

    @abstractmethod
    def _with_shifted_sum(self, shift: Array, weights: Array) -> "OfSum":
        """Return the loss with these weights and more in the sum, by ``shift`` (..., A)."""

    def in_unit_cube(self, low: Array, side: Array) -> Loss:
        if self._function is not InnerFunction.SAME:
            return super().in_unit_cube(low, side)
        # Where g is y itself the map goes into weights and a constant.
        return self._with_shifted_sum(self.weights @ low, self.weights * side)

    def range_of_sum(self) -> Range:
        """Return the least and greatest S over all outcomes of the cube, each (..., A)."""
        corner = self._spread(np.zeros(self.outcomes))
        return self._sum_between(corner, corner + 1.0)

    @cached_property
    def _function(self) -> InnerFunction:
        """Which function g is."""
        return inner_function(self.power, self.floor)

    def _transformed(self, y: Array) -> Array:
        """Return g(y) of outcomes (..., d)."""
        return transformed(y, self.power[..., None], self.floor[..., None], self._function)

    @cached_property
    def _intercepts(self) -> Array:
        """The intercept of each action (..., A)."""
        return np.broadcast_to(self.intercept, self.weights.shape[:-1])

    def _at(self, y: Array) -> Array:
        total = offset_sum(self._intercepts, self.weights, self._transformed(y))
        return np.asarray(self.offset + self.amplitude * self._outer(total))

    def _sum_between(self, low: Array, high: Array) -> Range:
        """Return the least and greatest S over boxes: at corners, since g is monotone."""
        inner_low = self._transformed(low)
        inner_high = self._transformed(high)
        terms_low = self.weights * inner_low[..., None, :]
        terms_high = self.weights * inner_high[..., None, :]
        least_sum = self.intercept + np.minimum(terms_low, terms_high).sum(-1)
        return least_sum, self.intercept + np.maximum(terms_low, terms_high).sum(-1)

    def _outer_affine(self, low: Array, high: Array) -> Range:
        """Return the range of offset + amplitude z over z from ``low`` to ``high``."""
        first = self.amplitude * low
        second = self.amplitude * high
        return self.offset + np.minimum(first, second), self.offset + np.maximum(first, second)

    def _slope_bound(self, outer_bound: Array) -> Array:
        """Bound the slope (...), given a bound on the outer function's slope (..., A)."""
        inner_slopes = slope(self.power, self.floor)[..., None, None]
        inner_bound = (np.abs(self.weights) * np.where(self.weights == 0, 0, inner_slopes)).sum(-1)
        # A factor 0 makes the loss constant, no matter how steep the others are, even if infinite.
        is_constant = (self.amplitude == 0) | (inner_bound == 0) | (outer_bound == 0)
        steepest = np.where(is_constant, 0, outer_bound) * np.where(is_constant, 0, inner_bound)
        return np.asarray((np.abs(self.amplitude) * steepest).max(-1))

    def _slopes(self, low: Array, high: Array) -> Range:
        # By the chain rule: the outer derivative times amplitude, weight and g'(y_j).
        sum_range = self._sum_between(low[..., 0, :], high[..., 0, :])
        outer_least, outer_greatest = self._outer_derivatives(*sum_range)
        weighted_amplitude = self.amplitude[..., None] * self.weights
        inner_range = product(
            (weighted_amplitude, weighted_amplitude), self._inner_derivatives(low, high)
        )
        return product((outer_least[..., None], outer_greatest[..., None]), inner_range)

    def _inner_derivatives(self, low: Array, high: Array) -> Range:
        """Return the range of g' over the sides of boxes; it is 0 below the floor."""
        power = self.power[..., None, None]
        floor = self.floor[..., None, None]
        factor = np.where(power == 0, 1.0, power)
        at_low = factor * np.maximum(low, floor) ** (power - 1)
        at_high = factor * np.maximum(high, floor) ** (power - 1)
        least_derivative = np.minimum(at_low, at_high)
        greatest_derivative = np.maximum(at_low, at_high)
        is_partly_below = low < floor
        least_derivative = np.where(
            is_partly_below, np.minimum(least_derivative, 0), least_derivative
        )
        greatest_derivative = np.where(
            is_partly_below, np.maximum(greatest_derivative, 0), greatest_derivative
        )
        is_below_floor = high <= floor
        return np.where(is_below_floor, 0.0, least_derivative), np.where(
            is_below_floor, 0.0, greatest_derivative
        )


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
    actions_are_separate: ClassVar[bool] = True
    AXES: ClassVar[Mapping[str, str]] = {**SHARED_AXES, "exponent": "", "intercept": "a"}

    weights: Array
    exponent: Array
    power: Array = default(1.0)
    floor: Array = default(0.0)
    intercept: Array = default(0.0)
    amplitude: Array = default(1.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        least_sum, greatest_sum = self.range_of_sum()  # (..., A)
        exponent = self.exponent[..., None]  # (..., 1), against the axis of actions
        is_integer = exponent == np.round(exponent)
        if (~is_integer & (least_sum < 0)).any():
            raise ValueError("the sum can be negative, where only an integer exponent is defined")
        can_be_zero = (least_sum <= 0) & (greatest_sum >= 0)
        if ((exponent <= 0) & can_be_zero).any():
            raise ValueError("the sum can be 0, where the exponent must be positive")

    def lipschitz(self) -> Array:
        least_sum, greatest_sum = self.range_of_sum()
        exponent = self.exponent[..., None]
        with np.errstate(divide="ignore"):
            power_at_least = np.abs(least_sum) ** (exponent - 1)
            power_at_greatest = np.abs(greatest_sum) ** (exponent - 1)
            steepest = np.abs(exponent) * np.maximum(power_at_least, power_at_greatest)
        return self._slope_bound(steepest)

    def _with_shifted_sum(self, shift: Array, weights: Array) -> OfSum:
        return replace(self, weights=weights, intercept=self.intercept + shift)

    @cached_property
    def _is_square(self) -> bool:
        """Whether all exponents are 2."""
        return bool((self.exponent == 2).all())

    @cached_property
    def _least_base(self) -> Array:
        """The least sum (..., 1) that is raised to the exponent.

        Where the exponent is no integer, a sum below 0 is a rounding error of 0.
        """
        exponent = self.exponent[..., None]
        return np.where(exponent == np.round(exponent), -np.inf, 0.0)

    def _outer(self, total: Array) -> Array:
        if self._is_square:
            return np.asarray(np.square(total))
        return to_power(np.maximum(total, self._least_base), self.exponent[..., None])

    def _between(self, low: Array, high: Array) -> Range:
        least_sum, greatest_sum = self._sum_between(low, high)
        return self._outer_affine(
            *_range_of_power(
                least_sum, greatest_sum, self._outer(least_sum), self._outer(greatest_sum)
            )
        )

    def _outer_derivatives(self, least_sum: Array, greatest_sum: Array) -> Range:
        exponent = self.exponent[..., None]
        at_least = exponent * least_sum ** (exponent - 1)
        at_greatest = exponent * greatest_sum ** (exponent - 1)
        return _range_of_power(least_sum, greatest_sum, at_least, at_greatest)


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
    actions_are_separate: ClassVar[bool] = True
    AXES: ClassVar[Mapping[str, str]] = SHARED_AXES

    weights: Array
    power: Array = default(1.0)
    floor: Array = default(0.0)
    amplitude: Array = default(-1.0)

    def lipschitz(self) -> Array:
        _, greatest_sum = self.range_of_sum()
        return self._slope_bound(np.exp(greatest_sum))

    def _with_shifted_sum(self, shift: Array, weights: Array) -> OfSum:
        return replace(self, weights=weights, amplitude=self.amplitude * np.exp(shift))

    def _outer(self, total: Array) -> Array:
        return np.asarray(np.exp(total))

    def _between(self, low: Array, high: Array) -> Range:
        return self._outer_affine(*self._outer_derivatives(*self._sum_between(low, high)))

    def _outer_derivatives(self, least_sum: Array, greatest_sum: Array) -> Range:
        return np.exp(least_sum), np.exp(greatest_sum)


def _range_of_power(low: Array, high: Array, at_low: Array, at_high: Array) -> Range:
    """Return the range of a power over [low, high] from its values there; it may turn at 0."""
    least_power = np.minimum(at_low, at_high)
    contains_zero = (low < 0) & (high > 0)
    return np.where(contains_zero, np.minimum(0, least_power), least_power), np.maximum(
        at_low, at_high
    )
