"""What a model is, and the simple ones: it predicts s(y), deterministically, and promises nothing.

A model is a ``Forecaster`` whose mixture is one point. It serves as a forecaster by itself, as the
reference of another one, or as one of several in an aggregate. What it predicts is a function of
the past and of the context: asking twice changes nothing, and ``update`` learns from the context
that was asked for last.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.game.protocols import Forecaster
from regretless.market.records import Context, Forecast, Mixture

MOST = 1024  # combinations that are kept
LONGEST = 100_000  # a period


class Model(Checkpointable, Forecaster):
    """A deterministic prediction of n = ``size`` numbers; subclasses say which."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("time",)

    def __init__(self, size: int) -> None:
        self.size, self.time = size, 0
        self._outcome: Array | None = None
        self._open: dict[str, float] = {}  # the features of the open round, where they matter

    def mixture(self, x: object = None) -> Mixture:
        return Mixture(self.point(x)[None], np.ones(1))

    def point(self, x: object = None) -> Array:
        return kept(self._predicted(x))

    def predict(self, x: object = None) -> Forecast:
        return Forecast(self.mixture(x), 0)

    def observe_outcome(self, outcome: Array) -> None:
        self._outcome = np.array(outcome, dtype=np.float64)

    def update(self, y: ArrayLike) -> None:
        self._learn(np.array(y, dtype=np.float64))
        self.time += 1

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.size} numbers, round {self.time}>"

    def _predicted(self, x: object) -> Array:
        """Return the prediction (n,)."""
        raise NotImplementedError

    def _learn(self, truth: Array) -> None:
        """Learn the vector (n,)."""
        raise NotImplementedError


def kept(values: Array) -> Array:
    """Return a copy with every number moved into [0, 1]."""
    return np.asarray(np.minimum(np.maximum(values, 0.0), 1.0))


def features(x: object) -> dict[str, float]:
    """Name the features of a context: a ``Context``, a mapping, numbers, or None."""
    match x:
        case None:
            return {}
        case Context():
            return dict(zip(x.names, x.values.tolist(), strict=True))
        case Mapping():
            return {str(name): float(value) for name, value in x.items()}
        case _:
            values = np.atleast_1d(np.asarray(x, dtype=np.float64)).ravel()
            return {f"x_{i}": float(value) for i, value in enumerate(values)}


def check(fine: object, name: str, value: object, wanted: str) -> None:
    """Raise ValueError that names a parameter, unless it is fine."""
    if not fine:
        raise ValueError(f"{name} is {value}; give {wanted}")


class Baseline(Model):
    """A vector that moves; subclasses say how."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_value",)

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._value = np.full(size, 0.5)

    def _predicted(self, x: object) -> Array:
        return self._value


@register.forecaster("constant")
class Constant(Baseline):
    """Always the same vector, of this value in [0, 1]."""

    def __init__(self, size: int, *, value: float = 0.5) -> None:
        super().__init__(size)
        check(0 <= value <= 1, "value", value, "a number in [0, 1]")
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
        check(0 < rate <= 1, "rate", rate, "a number in (0, 1]")
        self.rate = rate

    def _learn(self, truth: Array) -> None:
        self._value = kept(self._value + self.rate * (truth - self._value))


@register.forecaster("seasonal-naive")
class SeasonalNaive(Model):
    """The vector last seen in the same season; one half at first.

    The season is the round modulo ``period``; without a period it is the combination of all
    features of the context that have been integers so far: the hour, the weekday, whether it
    rained. In a season that is new, the last vector is predicted. At most ``MOST`` combinations are
    kept, the oldest makes way. ``rate`` in (0, 1] is the share of the newest vector within its
    season; 1 is the naive forecast.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_last", "_uneven")

    def __init__(self, size: int, *, period: int | None = None, rate: float = 1.0) -> None:
        super().__init__(size)
        fine = period is None or (period == int(period) and 1 <= period <= LONGEST)
        check(fine, "period", period, f"a whole number from 1 to {LONGEST}")
        check(0 < rate <= 1, "rate", rate, "a number in (0, 1]")
        self.period, self.rate = period, rate
        self._last = np.full(size, 0.5)
        self._seasons: dict[str, Array] = {}  # the oldest first
        self._uneven: list[str] = []  # features that were no integers

    def _predicted(self, x: object) -> Array:
        self._open = features(x)
        return self._seasons.get(self._season(), self._last)

    def _season(self) -> str:
        if self.period is not None:
            return str((self.time + self.ahead) % self.period)
        known = [(name, value) for name, value in self._open.items() if value.is_integer()]
        return ",".join(f"{n}={value!r}" for n, value in known if n not in self._uneven)

    def _learn(self, truth: Array) -> None:
        odd = [name for name, value in self._open.items() if not value.is_integer()]
        self._uneven.extend(name for name in odd if name not in self._uneven)
        season = self._season()
        if season not in self._seasons and len(self._seasons) == (self.period or MOST):
            del self._seasons[next(iter(self._seasons))]
        before = self._seasons.get(season, truth)
        self._seasons[season] = truth + (1 - self.rate) * (before - truth)
        self._last = truth

    def state(self) -> dict[str, Any]:
        table = np.array([*self._seasons.values()]).reshape(-1, self.size)
        return super().state() | {"seasons": list(self._seasons), "table": table}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._seasons = dict(zip(state["seasons"], np.array(state["table"]), strict=True))
