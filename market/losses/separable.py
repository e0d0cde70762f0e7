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
from regretless.market.losses.base import STEEPEST, UNIT_AXES, Loss, Range, default, product
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
    AXES: ClassVar[Mapping[str, str]] = {
        "weights": "ad",
        "exponent": "",
        **UNIT_AXES,
        "centre": "ad",
    }
    PROPORTIONAL: ClassVar[tuple[str, ...]] = ("weights",)
    actions_are_separate: ClassVar[bool] = True

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

    @cached_property
    def linear(self) -> bool:
        """Whether all are linear."""
        return not self.centred and bool((self.exponent == 1).all())

    def lipschitz(self) -> Array:
        """Bound the slope in sup norm; infinite where an exponent is below 1."""
        # The slope of |y - centre| ** exponent is exponent * |y - centre| ** (exponent - 1): it is
        # steepest at the greatest distance from the centre, or at the least for exponents below 1.
        slope_exponent = self.exponent[..., None, None] - 1
        greatest_distance = np.maximum(np.abs(self.centre), np.abs(1 - self.centre))
        least_distance = np.maximum(np.maximum(-self.centre, self.centre - 1), 0)  # to [0, 1]
        with np.errstate(divide="ignore"):
            at_greatest = greatest_distance**slope_exponent
            at_least = least_distance**slope_exponent
        steepest_power = np.where(slope_exponent >= 0, at_greatest, at_least)
        steepest_power = np.where(self.weights == 0, 0.0, steepest_power)
        slopes = np.abs(self.weights) * (slope_exponent + 1) * steepest_power
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
        if self.linear:  # y ** 1 is y
            return offset_sum(self.offset, self.weights, y)
        common = self.exponent.reshape(-1)[:1] if self.alike else self.exponent[..., None]
        return offset_sum(self.offset, self.weights, to_power(y, common))

    def _between(self, low: Array, high: Array) -> Range:
        low_from_centre = low[..., None, :] - self.centre
        high_from_centre = high[..., None, :] - self.centre
        least_distance = np.maximum(np.maximum(low_from_centre, -high_from_centre), 0)
        greatest_distance = np.maximum(np.abs(low_from_centre), np.abs(high_from_centre))
        power = self.exponent[..., None, None]
        at_nearest = self.weights * least_distance**power
        at_farthest = self.weights * greatest_distance**power
        least = np.minimum(at_nearest, at_farthest).sum(-1)
        greatest = np.maximum(at_nearest, at_farthest).sum(-1)
        return self.offset + least, self.offset + greatest

    def _slopes(self, low: Array, high: Array) -> Range:
        from_low = low - self.centre
        from_high = high - self.centre
        rho = self.exponent[..., None, None]
        slope_at_low = rho * np.abs(from_low) ** (rho - 1) * np.where(from_low >= 0, 1.0, -1.0)
        slope_at_high = rho * np.abs(from_high) ** (rho - 1) * np.where(from_high > 0, 1.0, -1.0)
        may_be_infinite = (rho < 1) & (from_low <= 0) & (from_high >= 0)
        least = np.where(may_be_infinite, -STEEPEST, np.minimum(slope_at_low, slope_at_high))
        greatest = np.where(may_be_infinite, STEEPEST, np.maximum(slope_at_low, slope_at_high))
        return product((self.weights, self.weights), (least, greatest))


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
    actions_are_separate: ClassVar[bool] = True

    def __init__(self, weights: ArrayLike, offset: ArrayLike = 0.0, **fields: Array) -> None:
        # `dataclasses.replace` hands exponent and centre back with the fields of units.
        exponent = np.asarray(fields.pop("exponent", 1))
        centre = fields.pop("centre", 0)
        if (exponent != 1).any():
            raise ValueError("a linear loss has exponent 1; use SeparablePower")
        if np.any(centre):
            raise ValueError("a linear loss has centre 0; use SeparablePower")
        super().__init__(np.asanyarray(weights), offset=np.asarray(offset), **fields)

    @property
    def linear_weights(self) -> Array:
        return self.weights

    def moved(self, impact: Array) -> Array:
        """Return the greatest l1 norm of the gap between two actions' weights, times ``impact``."""
        weights_times_impact = self.weights * impact[..., None, :]
        gaps = []  # of each action to the one furthest from it
        for a in range(self.actions):
            differences = weights_times_impact - weights_times_impact[..., [a], :]
            gaps.append(np.abs(differences).sum(-1).max(-1))
        return np.asarray(np.max(gaps, axis=0))

    def in_single_precision(self) -> Self:
        """Round the weights to 24 significant bits, which 32 hold (``storage.narrowed``).

        Losses move by at most 2^-24 sum |weights|: 6e-8 where they are normalised.
        """
        return replace(self, weights=self.weights.astype(np.float32))
