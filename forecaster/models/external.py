"""Models of other libraries as forecasters: scikit-learn's habits and River's.

    fit(X, Y), predict(X)               refitted on a window of past rounds, ever less often
    learn_one(x, y), predict_one(x)     one copy of the model per predicted number

Neither library is needed: any object with these methods will do. A model sees the round's context
(the named features of ``Context``, a mapping, or plain numbers) and the last vector that was
observed; before the first round it predicts one half.
"""

import copy
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.models.base import Base, features
from regretless.market.core.arrays import Array
from regretless.market.records import Forecast, Mixture

WINDOW = 2000  # rounds that a batch model is fitted to
GROWTH = 1.1  # it is refitted when the rounds seen have grown by this factor
MOST_WAIT = 100  # or after so many rounds


def adapted(model: Any, size: int) -> Base:
    """Make a forecaster of n = ``size`` numbers from any model with the methods above.

    Raises
    ------
    ValueError
        If the model has none of them.
    """
    if hasattr(model, "learn_one") and hasattr(model, "predict_one"):
        return OnlineModel(model, size)
    if hasattr(model, "fit") and hasattr(model, "predict"):
        return BatchModel(model, size)
    if hasattr(model, "predict") and hasattr(model, "update"):
        forecaster: Base = model
        return forecaster
    kind = type(model).__name__
    raise ValueError(
        f"{kind} cannot be a base model; it needs predict and update, fit and predict, or "
        "learn_one and predict_one"
    )


class _Wrapped:
    """Shared part: remembers the last vector and the features of the open round."""

    resumable = False  # nothing is known of the model's memory

    def __init__(self, size: int) -> None:
        self.size = size
        self._last = np.full(size, 0.5)
        self._open: dict[str, float] = {}

    def predict(self, x: Any = None) -> Forecast:
        """Return the model's prediction, kept to [0, 1]."""
        lagged = {f"last_{i}": float(value) for i, value in enumerate(self._last)}
        self._open = features(x) | lagged
        point = np.clip(self._predicted(self._open), 0.0, 1.0)
        return Forecast(Mixture(point[None], np.ones(1)), 0)

    def update(self, y: ArrayLike) -> None:
        """Learn the vector (n,) that was predicted."""
        truth = np.asarray(y, dtype=np.float64)
        self._learn(self._open, truth)
        self._last = truth

    def _predicted(self, seen: dict[str, float]) -> Array:
        raise NotImplementedError

    def _learn(self, seen: dict[str, float], truth: Array) -> None:
        raise NotImplementedError


class OnlineModel(_Wrapped):
    """A model that learns one example at a time, copied for every predicted number.

    Parameters
    ----------
    model : object with ``learn_one`` and ``predict_one``
        An untrained regressor.
    """

    def __init__(self, model: Any, size: int) -> None:
        super().__init__(size)
        self._models = [copy.deepcopy(model) for _ in range(size)]
        self._fresh = True

    def _predicted(self, seen: dict[str, float]) -> Array:
        if self._fresh:
            return self._last
        return np.array([float(model.predict_one(dict(seen))) for model in self._models])

    def _learn(self, seen: dict[str, float], truth: Array) -> None:
        for model, value in zip(self._models, truth.tolist(), strict=True):
            model.learn_one(dict(seen), value)
        self._fresh = False


class BatchModel(_Wrapped):
    """A model that is fitted to a table, again and again as rounds go by.

    Parameters
    ----------
    model : object with ``fit`` and ``predict``
        A regressor of several outputs.
    """

    def __init__(self, model: Any, size: int) -> None:
        super().__init__(size)
        self._model = copy.deepcopy(model)
        self._seen: deque[list[float]] = deque(maxlen=WINDOW)
        self._truths: deque[Array] = deque(maxlen=WINDOW)
        self._rounds, self._next_fit = 0, 2
        self._fitted = False

    def _predicted(self, seen: dict[str, float]) -> Array:
        if not self._fitted:
            return self._last
        row = np.array([list(seen.values())])
        return np.asarray(self._model.predict(row), dtype=np.float64).reshape(self.size)

    def _learn(self, seen: dict[str, float], truth: Array) -> None:
        self._seen.append(list(seen.values()))
        self._truths.append(truth)
        self._rounds += 1
        if self._rounds >= self._next_fit:
            table = np.array(self._truths)
            self._model.fit(np.array(self._seen), table[:, 0] if self.size == 1 else table)
            self._fitted = True
            grown = int(np.ceil(self._rounds * GROWTH))
            self._next_fit = min(grown, self._rounds + MOST_WAIT)
