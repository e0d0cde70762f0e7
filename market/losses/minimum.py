r"""Leontief losses: l(a, y) = offset_a + A_a min_j y_j / a_aj, A < 0 for a production function.

Inputs come in fixed proportions and the scarcest decides: a_j of input j makes one unit of output,
and an input with a_j = 0 is not needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from regretless.market.core.arrays import Array, Mask
from regretless.market.losses.base import UNIT_AXES, Loss, Range, default, product
from regretless.market.losses.lipschitz import as_lipschitz_loss


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
    AXES: ClassVar[Mapping[str, str]] = {"requirements": "ad", "amplitude": "a", **UNIT_AXES}
    PROPORTIONAL: ClassVar[tuple[str, ...]] = ("amplitude",)
    actions_are_separate: ClassVar[bool] = True

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
        return as_lipschitz_loss(self, low, side)

    def _at(self, y: Array) -> Array:
        least_ratio = np.asarray(np.inf)
        for j, (divisor, is_needed) in enumerate(self._divisors):
            ratio = y[..., None, j] / divisor
            if is_needed is not None:
                ratio = np.where(is_needed, ratio, np.inf)
            least_ratio = ratio if j == 0 else np.minimum(least_ratio, ratio)
        return np.asarray(self.offset + self.amplitude * least_ratio)

    @cached_property
    def _divisors(self) -> list[tuple[Array, Mask | None]]:
        """The requirements (..., A) of each input, and who needs it; None where all do.

        They are whole planes, as the last axis is short. Who does not need an input has 1 there.
        """
        divisors: list[tuple[Array, Mask | None]] = []
        for j in range(self.outcomes):
            requirement = self.requirements[..., j]
            is_needed = requirement > 0
            if is_needed.all():
                divisors.append((requirement, None))
            else:
                divisors.append((np.where(is_needed, requirement, 1.0), is_needed))
        return divisors

    def _between(self, low: Array, high: Array) -> Range:
        at_low = self._at(low)
        at_high = self._at(high)
        return np.minimum(at_low, at_high), np.maximum(at_low, at_high)

    def _slopes(self, low: Array, high: Array) -> Range:
        # The derivative in y_j is A / a_j where input j is scarcest, 0 elsewhere.
        is_needed = self.requirements > 0
        rates = 1 / np.where(is_needed, self.requirements, np.inf)
        least_ratios = np.where(is_needed, low * rates, np.inf)
        greatest_ratios = np.where(is_needed, high * rates, np.inf)
        may_be_scarcest = least_ratios <= greatest_ratios.min(-1, keepdims=True)
        is_itself = np.eye(self.outcomes, dtype=bool)
        # (..., input, other input): for every input the ratios of all but itself
        ratios_of_others = np.where(is_itself, np.inf, least_ratios[..., None, :])
        is_scarcest = greatest_ratios < ratios_of_others.min(-1)
        steepness = self.amplitude[..., None] * rates
        # 0 or 1 from below and from above: 1 where it surely is the scarcest, and where it may be
        scarcity = is_scarcest.astype(np.float64), may_be_scarcest.astype(np.float64)
        return product((steepness, steepness), scarcity)
