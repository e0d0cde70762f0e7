"""A model that is told every outcome late, as reference of a forecaster with a delay."""

from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.models.base import teacher_of
from regretless.forecaster.wrapping import Wrapping
from regretless.market.core.arrays import Array
from regretless.market.core.validation import check_unit_vector
from regretless.market.game.protocols import Forecaster
from regretless.market.records import Context, Forecast, Mixture, RoundFeedback


class LearnedLate(NamedTuple):
    """A round that a model learns D rounds after it was asked for."""

    statistics: Array  # s(y) (n,)
    outcome: Array | None  # y (d,), where it is known
    evidence: dict[str, Any]


class LateModel(Wrapping):
    """A model that is told every outcome D = ``delay`` rounds late, as it was then."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_waiting",)

    def __init__(self, model: Forecaster, delay: int) -> None:
        super().__init__(model)
        self.delay = delay  # D, in rounds
        self._teach = teacher_of(model)
        self._waiting = list[dict[str, Any]]()
        self._context: Any = None

    def mixture(self, x: object = None) -> Mixture:
        return self._model_for(x).mixture(x)

    def predict(self, x: object = None) -> Forecast:
        return self._model_for(x).predict(x)

    def point(self, x: object = None) -> Array:
        return self._model_for(x).point(x)

    def _model_for(self, x: object) -> Forecaster:
        """Return the model, told how many rounds are open before the one it is asked for."""
        self._context = x
        self.inner.ahead = len(self._waiting)
        return self.inner

    def observe(self, feedback: RoundFeedback) -> None:
        statistics = np.array(feedback.statistics, dtype=np.float64)
        learned = self._round_to_learn(statistics, feedback.outcome, {})
        if learned is not None:
            self.inner.observe(RoundFeedback(learned.statistics, learned.outcome))

    def update(self, y: ArrayLike) -> None:
        self.observe(RoundFeedback(np.array(y, dtype=np.float64)))

    def learn(
        self, statistics: Array, outcome: Array | None = None, **evidence: Any
    ) -> dict[str, Any] | None:
        """Add the round that was asked for, and teach the model one that is D rounds old.

        ``statistics`` are s(y) (n,) of the round, which are known to be right, ``outcome`` its y
        (d,), where it is known. The ``evidence`` that was given with the round that the model
        learned is returned; None if it learned none.
        """
        learned = self._round_to_learn(statistics.copy(), outcome, evidence)
        if learned is None:
            return None
        self._teach(learned.statistics, learned.outcome)
        return learned.evidence

    def _round_to_learn(
        self, statistics: Array, outcome: Array | None, evidence: dict[str, Any]
    ) -> "LearnedLate | None":
        """Add the round that was asked for, and go back to one that is D rounds old, if any."""
        if outcome is not None:
            outcome = check_unit_vector("outcome", outcome, np.size(outcome))
        context = self._context
        if self.delay:
            waiting_round = {  # with the keys that checkpoints have
                "context": _as_saved(context),
                "opened": self.inner.opened(),
                "outcome": outcome,
                "truth": statistics.copy(),
                "beside": evidence,
            }
            self._waiting.append(waiting_round)
            if len(self._waiting) <= self.delay:
                return None
            oldest = self._waiting.pop(0)
            self.inner.ahead = 0  # the outcomes of all rounds before it are known
            context = _as_given(oldest["context"])
            outcome = oldest["outcome"]
            statistics = oldest["truth"]
            self.inner.reopen(context, oldest["opened"])
            evidence = oldest["beside"]
        return LearnedLate(statistics, outcome, evidence)


def _as_saved(context: Any) -> Any:
    """Return a context as a checkpoint can hold it: a ``Context`` as a dictionary."""
    if isinstance(context, Context):
        return {"names": list(context.names), "values": np.array(context.values)}
    return context


def _as_given(saved_context: Any) -> Any:
    """Undo ``_as_saved``."""
    if isinstance(saved_context, dict) and saved_context.keys() == {"names", "values"}:
        return Context(tuple(saved_context["names"]), np.asarray(saved_context["values"]))
    return saved_context
