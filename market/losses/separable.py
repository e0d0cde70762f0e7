r"""Losses that add up coordinate by coordinate: linear, additive CES, L_p distance to a target.

    l(a, y) = offset_a + sum_j weights_aj |y_j - centre_aj| ** exponent,        y in [0, 1]^d.

Exponent 1 about the centre 0 is the linear form. Additive CES utility has the share parameters as
weights and rho as exponent; the L_p loss of the paper has the action as centre and p as exponent.
The paper writes (a_j - y_j)^p, which is negative for odd p; the absolute value is meant here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.losses.base import STEEPEST, UNITS, Loss, Range, default, product
from regretless.market.losses.sums import offset_sum, to_power


@dataclass(frozen=True, eq=False)
class SeparablePower(Loss):
    """Loss ``offset + sum_j weights_j * |y_j - centre_j| ** exponent``.

    ValueError if a number is not finite or an exponent is not positive.

    Parameters
    ----------
    weights, centre : array (..., A, d)
        By action and coordinate of the outcome; where each power is 0. Leading axes stack losses.
    exponent : array (...) or float
        The common power, positive, one per stacked loss.

    Examples
    --------
    >>> SeparablePower([[1.0], [0.5]], 2.0).losses([0.5])  # y^2, and half of it
    array([0.25 , 0.125])
    """

    form: ClassVar[str] = "separable-power"
    AXES: ClassVar[Mapping[str, str]] = {"weights": "ad", "exponent": "", **UNITS, "centre": "ad"}
    PROPORTIONAL: ClassVar[tuple[str, ...]] = ("weights",)

    weights: Array
    exponent: Array = default(1.0)
    centre: Array = default(0.0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.exponent <= 0).any():
            raise ValueError("exponent must be positive")

    @cached_property
    def centred(self) -> bool:
        """Whether some power is about another point than 0."""
        return bool(self.centre.any())

    @cached_property
    def alike(self) -> bool:
        """Whether all stacked losses have one exponent."""
        powers = self.exponent.ravel()
        return bool(len(powers) and (powers == powers[0]).all())

    @property
    def linear(self) -> bool:
        """Whether all are linear."""
        return not self.centred and bool((self.exponent == 1).all())

    def lipschitz(self) -> Array:
        """Bound the slope in sup norm; infinite where an exponent is below 1."""
        steep = self.exponent[..., None, None] - 1
        far = np.maximum(np.abs(self.centre), np.abs(1 - self.centre))
        near = np.maximum(np.maximum(-self.centre, self.centre - 1), 0)
        with np.errstate(divide="ignore"):
            power = np.where(steep >= 0, far**steep, near**steep)
        slopes = np.abs(self.weights) * (steep + 1) * np.where(self.weights == 0, 0.0, power)
        return np.asarray(slopes.sum(-1).max(-1))

    def in_unit_cube(self, low: Array, side: Array) -> Loss:
        if self.linear:
            return Linear(self.weights * side, self.offset + self.weights @ low, **self.unit_map)
        weights = self.weights * side ** self.exponent[..., None, None]
        return replace(self, weights=weights, centre=(self.centre - low) / side)

    def _at(self, y: Array) -> Array:
        if self.centred:
            distance = np.abs(y[..., None, :] - self.centre)
            powers = distance ** self.exponent[..., None, None]
            return np.asarray(self.offset + (self.weights * powers).sum(-1))
        common = self.exponent.reshape(-1)[:1] if self.alike else self.exponent[..., None]
        return offset_sum(self.offset, self.weights, to_power(y, common))

    def _between(self, low: Array, high: Array) -> Range:
        left, right = low[..., None, :] - self.centre, high[..., None, :] - self.centre
        power = self.exponent[..., None, None]
        near = self.weights * np.maximum(np.maximum(left, -right), 0) ** power
        far = self.weights * np.maximum(np.abs(left), np.abs(right)) ** power
        ends = np.minimum(near, far), np.maximum(near, far)
        return self.offset + ends[0].sum(-1), self.offset + ends[1].sum(-1)

    def _slopes(self, low: Array, high: Array) -> Range:
        left, right = low - self.centre, high - self.centre
        rho = self.exponent[..., None, None]
        first = rho * np.abs(left) ** (rho - 1) * np.where(left >= 0, 1.0, -1.0)
        last = rho * np.abs(right) ** (rho - 1) * np.where(right > 0, 1.0, -1.0)
        steep = (rho < 1) & (left <= 0) & (right >= 0)
        least = np.where(steep, -STEEPEST, np.minimum(first, last))
        most = np.where(steep, STEEPEST, np.maximum(first, last))
        return product((self.weights, self.weights), (least, most))


@dataclass(frozen=True, eq=False, init=False)
class Linear(SeparablePower):
    """Loss ``offset + weights @ y``: a risk-neutral agent.

    Parameters
    ----------
    weights, offset : array (..., A, d), and (..., A) or float
        By action. Leading axes stack losses.

    Examples
    --------
    >>> umbrella = Linear([[1.0], [0.0]], [0.0, 0.3])  # leave it: 1 if it rains; take it: 0.3
    >>> umbrella.losses([0.25])
    array([0.25, 0.3 ])
    """

    form: ClassVar[str] = "linear"

    def __init__(self, weights: ArrayLike, offset: ArrayLike = 0.0, **units: Array) -> None:
        if (np.asarray(units.pop("exponent", 1)) != 1).any():  # `dataclasses.replace` hands it back
            raise ValueError("a linear loss has exponent 1; use SeparablePower")
        if np.any(units.pop("centre", 0)):
            raise ValueError("a linear loss has centre 0; use SeparablePower")
        super().__init__(np.asanyarray(weights), offset=np.asarray(offset), **units)

    @property
    def linear_weights(self) -> Array:
        return self.weights

    def moved(self, impact: Array) -> Array:
        """Return the greatest l1 norm of the gap between two actions' weights, times ``impact``."""
        felt = self.weights * impact[..., None, :]
        gaps = [np.abs(felt - felt[..., [a], :]).sum(-1).max(-1) for a in range(self.actions)]
        return np.asarray(np.max(gaps, axis=0))

    def in_single_precision(self) -> Self:
        """Round the weights to 24 significant bits, which 32 hold (``storage.narrowed``).

        Losses move by at most 2^-24 sum |weights|: 6e-8 where they are normalised.
        """
        return replace(self, weights=self.weights.astype(np.float32))
