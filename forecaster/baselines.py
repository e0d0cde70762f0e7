"""Forecasts that users know: constant, last value, running mean, exponential smoothing.

Each predicts the vector s(y) of the same basis that Decision-Swap would predict, deterministically
and without a guarantee.
"""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Remembering
from regretless.market.records import Forecast, Mixture


class Baseline(Remembering):
    """A deterministic forecast; subclasses say how ``_value`` moves.

    Parameters
    ----------
    size : int
        Length n of the predicted vector.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_value", "time")

    def __init__(self, size: int) -> None:
        self._value = np.full(size, 0.5)
        self.time = 0

    def mixture(self, x: Any = None) -> Mixture:
        """Return the prediction as a law with one atom."""
        return Mixture(self._value[None].copy(), np.ones(1))

    def predict(self, x: Any = None) -> Forecast:
        """Return the prediction."""
        return Forecast(self.mixture(x), 0)

    def update(self, y: ArrayLike) -> None:
        """Learn the vector that was predicted."""
        self.time += 1
        self._value = self._moved(np.asarray(y, dtype=np.float64))

    def _moved(self, truth: Array) -> Array:
        raise NotImplementedError


@register.forecaster("constant")
class Constant(Baseline):
    """Always the same vector.

    Parameters
    ----------
    value : float
        In [0, 1].
    """

    def __init__(self, size: int, *, value: float = 0.5) -> None:
        super().__init__(size)
        if not 0 <= value <= 1:
            raise ValueError(f"value is {value}; give a number in [0, 1]")
        self._value = np.full(size, float(value))

    def _moved(self, truth: Array) -> Array:
        return self._value


@register.forecaster("last-value")
class LastValue(Baseline):
    """The last vector seen; one half at first."""

    def _moved(self, truth: Array) -> Array:
        return truth


@register.forecaster("running-mean")
class RunningMean(Baseline):
    """The mean of all vectors seen; one half at first."""

    def _moved(self, truth: Array) -> Array:
        if self.time == 1:
            return truth
        return np.asarray(np.clip(self._value + (truth - self._value) / self.time, 0.0, 1.0))


@register.forecaster("exponential-smoothing")
class ExponentialSmoothing(Baseline):
    """Geometrically discounted mean.

    Parameters
    ----------
    rate : float
        Share of the newest vector, in (0, 1].
    """

    def __init__(self, size: int, *, rate: float = 0.1) -> None:
        super().__init__(size)
        if not 0 < rate <= 1:
            raise ValueError(f"rate is {rate}; give a number in (0, 1]")
        self.rate = rate

    def _moved(self, truth: Array) -> Array:
        return np.asarray(np.clip(self._value + self.rate * (truth - self._value), 0.0, 1.0))
