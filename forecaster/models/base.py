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

**Outcomes that are missing.** ``skip_round`` lets a round pass of which nothing is learned. A model
that looks back by a number of rounds puts its forecast in the place of the outcome, so that the
rounds before it are as far back as they were.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, is_within_unit_cube
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import ParameterError, brief
from regretless.market.core.own_code import is_ours
from regretless.market.core.validation import check_int, check_unit_vector
from regretless.market.game.protocols import Forecaster
from regretless.market.records import CERTAIN, Context, Forecast, Mixture, RoundFeedback

MAX_NUMBERS = 1_000_000  # that a model may predict


class Model(Checkpointable, Forecaster):
    """A deterministic prediction of n = ``size`` numbers; subclasses say which.

    ``predict`` and ``update`` are checked: a context is a ``Context``, a mapping to numbers, a row
    of numbers or None; what is learned is n numbers in [0, 1]. Anything else is a UserError.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("time",)

    def __init__(self, size: int) -> None:
        self.size = check_int("size", size, least=1, below=MAX_NUMBERS + 1)
        self.time = 0
        self._outcome: Array | None = None
        self._open_features: Mapping[
            str, float
        ] = {}  # the features of the open round, where they matter

    def mixture(self, x: object = None) -> Mixture:
        return Mixture(self.point(x)[None], CERTAIN)

    def point(self, x: object = None) -> Array:
        return in_unit_cube(self._predicted(x))

    def write_prediction(self, x: object, prediction: Array) -> None:
        """Write ``point`` into an array (n,), not moved into [0, 1] yet."""
        prediction[:] = self._predicted(x)

    def predict(self, x: object = None) -> Forecast:
        features(x)  # a model that needs no context refuses what is none, too
        return Forecast(self.mixture(x), 0)

    def observe(self, feedback: RoundFeedback) -> None:
        if feedback.outcome is not None:
            size = np.size(feedback.outcome)
            self._outcome = check_unit_vector("outcome", feedback.outcome, size)
        super().observe(feedback)

    def update(self, y: ArrayLike) -> None:
        self._learn(check_unit_vector("y", y, self.size))
        self.time += 1

    def learn_checked(self, statistics: Array, outcome: Array | None) -> None:
        """Learn s(y) (n,), which is known to be right, and y (d,) where it is known (``teach``)."""
        if outcome is not None:
            self._outcome = outcome
        self._learn(statistics)
        self.time += 1

    def skip_round(self, x: object = None) -> None:
        """Let the round after the last known one pass, whose outcome is missing.

        Nothing is learned of it. A model overrides this if it looks back by a number of rounds.
        """

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.size} numbers, round {self.time}>"

    def _predicted(self, x: object) -> Array:
        """Return the prediction (n,)."""
        raise NotImplementedError

    def _learn(self, statistics: Array) -> None:
        """Learn the vector (n,)."""
        raise NotImplementedError


CONTEXT = "give a mapping to numbers, a row of numbers, or None"


class Features(dict[str, float]):
    """The numbers of a context by the names of its features: what ``features`` has checked once.

    Many models read one context, and each asks ``features`` for it.
    """


@cache
def _learns_from_checked_numbers(kind: type[Model]) -> bool:
    """Whether a model is one of ours that learns as the base class says."""
    return is_ours(kind) and kind.observe is Model.observe and kind.update is Model.update


@cache
def predicts_as_model(kind: type) -> bool:
    """Whether a class is one of our models whose ``point`` is what it ``write_prediction`` writes.

    Its predictions have as many numbers as its ``size`` says.
    """
    return issubclass(kind, Model) and is_ours(kind) and kind.point is Model.point


def teacher_of(model: Forecaster) -> Callable[[Array, Array | None], None]:
    """Return the method with which ``teach`` tells a model a round."""
    if isinstance(model, Model) and _learns_from_checked_numbers(type(model)):
        return model.learn_checked
    return partial(_observe, model)


def _observe(model: Forecaster, statistics: Array, outcome: Array | None) -> None:
    model.observe(RoundFeedback(statistics, outcome))


def teach(model: Forecaster, statistics: Array, outcome: Array | None) -> None:
    """Tell a model s(y) (n,), which is known to be right, and y (d,) where it is known.

    What a model that consists of others has checked need not be checked by each of them again.
    Neither array may change later.
    """
    teacher_of(model)(statistics, outcome)


def in_unit_cube(values: Array) -> Array:
    """Return a copy with every number moved into [0, 1]."""
    copied = np.array(values, dtype=np.float64)
    if not is_within_unit_cube(copied):  # most predictions are
        copied = np.asarray(np.minimum(np.maximum(copied, 0.0), 1.0))
    return copied


def features(x: object) -> Mapping[str, float]:
    """Name the features of a context: a ``Context``, a mapping, numbers, or None.

    A number that is not finite is one that is not known, or too large to tell: each model says what
    it makes of that. ParameterError if a value is no number.
    """
    match x:
        case None:
            return {}
        case Features():
            return x
        case Context():
            return x.features
        case Mapping():
            return {str(name): _number(f"x['{name}']", value) for name, value in x.items()}
        case str() | bytes():
            raise ParameterError(f"x = {brief(x)}: {CONTEXT}")
        case _:
            values = np.atleast_1d(_array(x)).ravel()
            return {f"x_{i}": float(value) for i, value in enumerate(values)}


def _number(name: str, value: object) -> float:
    """Return a number of a context; ParameterError if it is none."""
    if not isinstance(value, int | float | np.number | np.bool_):
        raise ParameterError(f"{name} is {brief(value)}; give a number")
    try:
        return float(value)
    except (OverflowError, TypeError) as error:  # of hundreds of digits, or complex
        raise ParameterError(f"{name} is {brief(value)}; give a number") from error


def _array(x: object) -> Array:
    """Return a context that is a row of numbers; ParameterError if it is none."""
    try:
        values = np.asarray(x)
    except (TypeError, ValueError) as error:  # rows of different lengths
        raise ParameterError(f"x = {brief(x)}: {CONTEXT}") from error
    if values.dtype.kind not in "biuf":
        raise ParameterError(f"x = {brief(x)}: {CONTEXT}")
    return values.astype(np.float64)


def check(is_fine: object, name: str, value: object, expected: str) -> None:
    """Raise ParameterError that names a parameter, unless it is fine."""
    if not is_fine:
        raise ParameterError(f"{name} is {brief(value)}; give {expected}")
