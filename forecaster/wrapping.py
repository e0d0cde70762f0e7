"""A forecaster that wraps another one: whatever it does not do itself the inner one does."""

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.game.protocols import Forecaster
from regretless.market.records import Mixture


class Wrapping(Checkpointable, Forecaster):
    """Passes on what it is told and asked. It promises nothing: it has no ``instances``."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("inner",)

    def __init__(self, inner: Forecaster) -> None:
        self.inner, self.models = inner, inner.models

    @property
    def rng(self) -> np.random.Generator:  # type: ignore[override]
        """Of ``predict``."""
        return self.inner.rng

    @property
    def points(self) -> Array:
        """What each model that is a comparator predicts in the open round (M, n)."""
        return self.inner.points

    def suggested(self, group: Any) -> Indices:
        """Return what the models suggest to the losses of a group (K, M) in the open round."""
        return self.inner.suggested(group)

    def observe_outcome(self, outcome: Array) -> None:
        """Pass the outcome (d,) on."""
        self.inner.observe_outcome(outcome)

    def update(self, y: ArrayLike) -> None:
        """Learn the vector (n,) that was predicted."""
        self.inner.update(y)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.inner!r}>"

    def described(self) -> dict[str, Any]:
        """Return what a run's manifest says of it."""
        return self.inner.described()

    @property
    def latest(self) -> Mixture | None:
        """The mean of the inner one's last mixture."""
        return self.inner.latest

    def prefer(self, values: Any) -> None:
        """Let the inner one prefer mixtures with a low objective."""
        self.inner.prefer(values)

    def event_table(self) -> Iterable[tuple[Any, ...]]:
        """Yield the events of the predictions before they are changed."""
        return self.inner.event_table()

    def event_bounds(self, occupancy: Array) -> tuple[Array, Array] | None:
        """Bound the biases of events of this occupancy, in expectation and as drawn."""
        return self.inner.event_bounds(occupancy)
