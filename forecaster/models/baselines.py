"""Models that users know: constant, last value, running mean, exponential smoothing."""

from typing import Any, ClassVar

import numpy as np

from regretless.forecaster.models.base import Model, kept
from regretless.market import register
from regretless.market.core.arrays import Array


class Baseline(Model):
    """A vector that moves; subclasses say how."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_value",)

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._value = np.full(size, 0.5)

    def _predicted(self, x: Any) -> Array:
        return self._value


@register.forecaster("constant")
class Constant(Baseline):
    """Always the same vector, of this value in [0, 1]."""

    def __init__(self, size: int, *, value: float = 0.5) -> None:
        super().__init__(size)
        if not 0 <= value <= 1:
            raise ValueError(f"value is {value}; give a number in [0, 1]")
        self._value = np.full(size, float(value))

    def _learn(self, truth: Array) -> None:
        """Learn nothing."""


@register.forecaster("last-value")
class LastValue(Baseline):
    """The last vector seen; one half at first."""

    def _learn(self, truth: Array) -> None:
        self._value = truth


@register.forecaster("running-mean")
class RunningMean(Baseline):
    """The mean of all vectors seen; one half at first."""

    def _learn(self, truth: Array) -> None:
        moved = kept(self._value + (truth - self._value) / (self.time + 1))
        self._value = moved if self.time else truth


@register.forecaster("exponential-smoothing")
class ExponentialSmoothing(Baseline):
    """Geometrically discounted mean; ``rate`` in (0, 1] is the share of the newest vector."""

    def __init__(self, size: int, *, rate: float = 0.1) -> None:
        super().__init__(size)
        if not 0 < rate <= 1:
            raise ValueError(f"rate is {rate}; give a number in (0, 1]")
        self.rate = rate

    def _learn(self, truth: Array) -> None:
        self._value = kept(self._value + self.rate * (truth - self._value))
