"""What a model is: it predicts s(y), deterministically, and promises nothing.

A model is a ``Forecaster`` whose mixture is one point. It serves as a forecaster by itself, as the
reference of another one, or as one of several in an aggregate. What it predicts is a function of
the past and of the context: asking twice changes nothing, and ``update`` learns from the context
that was asked for last.

**Outcomes that come late.** ``ahead`` is the number of rounds between the last outcome that is
known and the round that is asked for: a model forecasts ``ahead`` + 1 rounds ahead, from what it
knows. What ``opened`` returns is kept until the outcome comes; ``reopen`` goes back to that round,
so that ``update`` learns how the outcome followed from what was known when it was forecast.
Outcomes may come in any order: one that is learned after ``newer`` outcomes of later rounds does
not pass for the newest one.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.game.protocols import Forecaster
from regretless.market.records import Context, Forecast, Mixture


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
