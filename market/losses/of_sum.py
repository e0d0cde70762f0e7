r"""Losses that are one function of one sum: general CES, mean-variance, Cobb-Douglas, CARA.

    power        l(a, y) = offset_a + A_a (intercept_a + sum_j weights_aj g(y_j)) ** beta
    exponential  l(a, y) = offset_a + A_a exp(sum_j weights_aj g(y_j))

with g(y) = y ** power, or ln y for power 0, above a floor. The paper's families of monomials and
exponentials over g are these with A > 0 and A < 0. Both are monotone in the sum or, for an even
beta, have their turning point at 0, so ranges over boxes are exact.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.losses.base import UNITS, Loss
from regretless.market.losses.sums import offset_sum
from regretless.market.losses.transforms import check_floor, slope, to_power, transformed


class OfSum(Loss):
    """What both forms share: the sum S = intercept + sum_j weights_j g(y_j) and its range."""

    PROPORTIONAL: ClassVar[tuple[str, ...]] = ("amplitude",)

    weights: Array
    power: Array
    floor: Array
    amplitude: Array
    intercept: Array | float = 0.0

    def _sum(self, y: Array) -> Array:
        """Compute S (T, ..., A) at outcomes spread over the stack."""
        inner = transformed(y, self.power[..., None], self.floor[..., None])
        return offset_sum(self.intercept, self.weights, inner)

    def _sum_between(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Least and greatest S over boxes; g is monotone."""
        ends = [transformed(y, self.power[..., None], self.floor[..., None]) for y in (low, high)]
        terms = [self.weights * end[..., None, :] for end in ends]
        least = self.intercept + np.minimum(*terms).sum(-1)
        return least, self.intercept + np.maximum(*terms).sum(-1)

    def sum_range(self) -> tuple[Array, Array]:
        """Least and greatest S over the cube, each (..., A)."""
        corner = self._spread(np.zeros(self.outcomes))
        return self._sum_between(corner, corner + 1.0)

    def _slope(self, outer: Array) -> Array:
        """Bound the slope (...), given a bound on the outer function's slope (..., A)."""
        rates = slope(self.power, self.floor)[..., None, None]
        inner = (np.abs(self.weights) * np.where(self.weights == 0, 0, rates)).sum(-1)
        still = (self.amplitude == 0) | (inner == 0) | (outer == 0)  # no matter how steep the rest
        steepest = np.where(still, 0, outer) * np.where(still, 0, inner)
        return np.asarray((np.abs(self.amplitude) * steepest).max(-1))

    def _mapped(self, first: Array, second: Array) -> tuple[Array, Array]:
        """Apply the outer affine map to a pair of ends."""
        ends = self.amplitude * first, self.amplitude * second
        return self.offset + np.minimum(*ends), self.offset + np.maximum(*ends)


@dataclass(frozen=True, eq=False)
class PowerOfSum(OfSum):
    """Loss ``offset + amplitude * (intercept + sum_j weights_j g(y_j)) ** exponent``.

    Parameters
    ----------
    weights : array (..., A, d)
    exponent : array (...) or float
        beta.
    power, floor : array (...) or float
        The function g: ``max(y, floor) ** power``, or its logarithm for power 0.
    intercept : array (..., A) or float
        A constant inside the sum.
    amplitude : array (..., A) or float
        The factor in front, negative for a utility.
    offset, unit_scale, unit_offset : as in ``Loss``

    Raises
    ------
    ValueError
        If the sum can be negative and the exponent is no integer, or 0 and the exponent negative.
    """

    form: ClassVar[str] = "power-of-sum"
    AXES: ClassVar[Mapping[str, str]] = {
        "weights": "ad",
        "exponent": "",
        "power": "",
        "floor": "",
        "intercept": "a",
        "amplitude": "a",
        **UNITS,
    }

    weights: Array
    exponent: Array
    power: Array = field(default_factory=lambda: np.ones(()))
    floor: Array = field(default_factory=lambda: np.zeros(()))
    intercept: Array = field(default_factory=lambda: np.zeros(()))
    amplitude: Array = field(default_factory=lambda: np.ones(()))
    offset: Array = field(default_factory=lambda: np.zeros(()))
    unit_scale: Array = field(default_factory=lambda: np.ones(()))
    unit_offset: Array = field(default_factory=lambda: np.zeros(()))

    def __post_init__(self) -> None:
        self._settle()
        check_floor(self.power, self.floor)
        low, high = self.sum_range()
        beta = self.exponent[..., None]
        if ((beta != np.round(beta)) & (low < 0)).any():
            raise ValueError("the sum can be negative, where only an integer exponent is defined")
        if ((beta <= 0) & (low <= 0) & (high >= 0)).any():
            raise ValueError("the sum can be 0, where the exponent must be positive")

    def lipschitz(self) -> Array:
        """Bound the slope in sup norm."""
        low, high = self.sum_range()
        beta = self.exponent[..., None]
        with np.errstate(divide="ignore"):
            outer = np.abs(beta) * np.maximum(np.abs(low) ** (beta - 1), np.abs(high) ** (beta - 1))
        return self._slope(outer)

    def _raised(self, total: Array) -> Array:
        """Raise sums to the exponent; where it is no integer, below 0 is a rounding error."""
        if (self.exponent == 2).all():
            return np.asarray(np.square(total))
        beta = self.exponent[..., None]
        least = np.where(beta == np.round(beta), -np.inf, 0.0)
        return to_power(np.maximum(total, least), beta)

    def _at(self, y: Array) -> Array:
        return np.asarray(self.offset + self.amplitude * self._raised(self._sum(y)))

    def _between(self, low: Array, high: Array) -> tuple[Array, Array]:
        least, greatest = self._sum_between(low, high)
        ends = self._raised(least), self._raised(greatest)
        across = (least < 0) & (greatest > 0)
        bottom = np.where(across, np.minimum(0, np.minimum(*ends)), np.minimum(*ends))
        return self._mapped(bottom, np.maximum(*ends))


@dataclass(frozen=True, eq=False)
class ExponentialOfSum(OfSum):
    """Loss ``offset + amplitude * exp(sum_j weights_j g(y_j))``.

    Parameters
    ----------
    weights : array (..., A, d)
    power, floor : array (...) or float
        The function g: ``max(y, floor) ** power``, or its logarithm for power 0.
    amplitude : array (..., A) or float
        The factor in front; the paper's -A.
    offset, unit_scale, unit_offset : as in ``Loss``
    """

    form: ClassVar[str] = "exponential-of-sum"
    AXES: ClassVar[Mapping[str, str]] = {
        "weights": "ad",
        "power": "",
        "floor": "",
        "amplitude": "a",
        **UNITS,
    }

    weights: Array
    power: Array = field(default_factory=lambda: np.ones(()))
    floor: Array = field(default_factory=lambda: np.zeros(()))
    amplitude: Array = field(default_factory=lambda: -np.ones(()))
    offset: Array = field(default_factory=lambda: np.zeros(()))
    unit_scale: Array = field(default_factory=lambda: np.ones(()))
    unit_offset: Array = field(default_factory=lambda: np.zeros(()))

    def __post_init__(self) -> None:
        self._settle()
        check_floor(self.power, self.floor)

    def lipschitz(self) -> Array:
        """Bound the slope in sup norm."""
        return self._slope(np.exp(self.sum_range()[1]))

    def _at(self, y: Array) -> Array:
        return np.asarray(self.offset + self.amplitude * np.exp(self._sum(y)))

    def _between(self, low: Array, high: Array) -> tuple[Array, Array]:
        least, greatest = self._sum_between(low, high)
        return self._mapped(np.exp(least), np.exp(greatest))
