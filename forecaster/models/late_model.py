"""A model that is told every outcome late, as reference of a forecaster with a delay."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.wrapping import Wrapping
from regretless.market.core.arrays import Array
from regretless.market.core.own_code import handed
from regretless.market.game.protocols import Forecaster
from regretless.market.records import Context, Forecast, Mixture


class LateModel(Wrapping):
    """A model that is told every outcome D = ``rounds`` rounds late, as it was then."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_waiting",)

    def __init__(self, model: Forecaster, rounds: int) -> None:
        super().__init__(model)
        self.rounds, self._waiting = rounds, list[dict[str, Any]]()
        self._context: Any = None
        self._outcome: Array | None = None

    def mixture(self, x: object = None) -> Mixture:
        return self._asked(x).mixture(x)

    def predict(self, x: object = None) -> Forecast:
        return self._asked(x).predict(x)

    def point(self, x: object = None) -> Array:
        return self._asked(x).point(x)

    def _asked(self, x: object) -> Forecaster:
        """Return the model, who knows how many rounds are open before the one it is asked for."""
        self._context, self.inner.ahead = x, len(self._waiting)
        return self.inner

    def observe_outcome(self, outcome: Array) -> None:
        self._outcome = np.array(outcome, dtype=np.float64)

    def update(self, y: ArrayLike) -> None:
        self.learn(np.array(y, dtype=np.float64))

    def learn(self, truth: Array, **beside: Any) -> dict[str, Any] | None:
        """Add s(y) of the round that was asked for, and teach the model one that is D rounds old.

        Return what was given ``beside`` the round that it learned; None if it learned none.
        """
        (outcome, self._outcome), x = (self._outcome, None), self._context
        if self.rounds:
            if isinstance(x, Context):  # as a checkpoint can hold it
                x = {"names": list(x.names), "values": np.array(x.values)}
            known = {"context": x, "opened": self.inner.opened(), "outcome": outcome}
            self._waiting.append(known | {"truth": truth.copy(), "beside": beside})
            if len(self._waiting) <= self.rounds:
                return None
            oldest, self.inner.ahead = self._waiting.pop(0), 0
            x, outcome, truth = (oldest[name] for name in ("context", "outcome", "truth"))
            if isinstance(x, dict) and x.keys() == {"names", "values"}:
                x = Context(tuple(x["names"]), np.asarray(x["values"]))
            self.inner.reopen(x, oldest["opened"])
            beside = oldest["beside"]
        if outcome is not None:
            self.inner.observe_outcome(outcome)
        self.inner.update(handed(self.inner.update, truth))
        return beside
