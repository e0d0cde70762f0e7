"""Models of other libraries as forecasters, told apart by what they offer.

    learn_one(x, y), predict_one(x)               River: one copy per predicted number
    fit(y, X, fh), predict(fh)                    sktime: one copy per coordinate of y
    fit(y), predict(h), or forecast(y, h)         statsforecast: likewise; {"mean": ...}
    fit(X, Y), predict(X)                         scikit-learn
    predict(x), update(vector)                    a model already

None of the libraries is needed: any object with these methods will do. Those of the last kinds but
one see the round's context and the last vector and predict s(y); those of a series see y alone,
and ``outcomes`` turns what they predict into E s(y). What is fitted is fitted to the last
``WINDOW`` rounds, again whenever the rounds have grown by ``GROWTH``: 39 times in 4,000. Until the
next fit a series model follows what comes if it offers ``forward(y, h)``, as most of statsforecast
do; otherwise it answers for all these rounds at once.
"""

import copy
import inspect
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.models.base import MAX_NUMBERS, Model, features, in_unit_cube
from regretless.forecaster.models.outcomes import OutcomeModel, Spread
from regretless.forecaster.persistence import Copy
from regretless.market.core.arrays import Array
from regretless.market.core.errors import ParameterError, UserError, brief
from regretless.market.core.own_code import name_of
from regretless.market.core.validation import check_int
from regretless.market.game.protocols import Forecaster, as_forecaster
from regretless.market.losses.basis import Basis, checked_basis

WINDOW = 2000  # rounds that a model is fitted to
FIRST_FIT = 2  # the rounds after which a model is fitted for the first time
GROWTH = 1.2  # it is refitted when the rounds seen have grown by this factor
SHORT = 100  # a series that may be too short for its model


def adapted(model: Any, size: int, basis: Basis | None = None) -> Forecaster:
    """Make a forecaster of n = ``size`` numbers from any model with the methods above."""
    check_int("size", size, least=1, below=MAX_NUMBERS + 1)
    if basis is not None:
        checked_basis(basis)
    if isinstance(model, type):
        raise ParameterError(f"model = {model.__name__} is a class; give an object of it")
    kind = type(model).__name__
    if hasattr(model, "learn_one") and hasattr(model, "predict_one"):  # as River
        return OnlineModel(model, size)
    if _forecasts_series(model):  # which many of the following do, too, so it is asked first
        if basis is None:
            raise ParameterError(f"{kind} predicts a series of outcomes; give the basis as well")
        return SeriesModel(model, basis)
    if hasattr(model, "fit") and hasattr(model, "predict"):  # as scikit-learn
        return BatchModel(model, size)
    if hasattr(model, "predict") and hasattr(model, "update"):
        return as_forecaster(model)
    wanted_methods = "predict and update, fit and predict, forecast, or learn_one and predict_one"
    raise ParameterError(f"{kind} cannot be a base model; it needs {wanted_methods}")


def _forecasts_series(model: Any) -> bool:
    """Whether a model continues a series by itself, as those of sktime and statsforecast do."""
    if _has_parameter(model, "forecast", "y") and _has_parameter(model, "forecast", "h"):
        return True
    return _has_parameter(model, "predict", "fh") or _has_parameter(model, "predict", "h")


def _has_parameter(model: Any, method: str, parameter: str) -> bool:
    """Whether a model's method has a parameter of this name."""
    try:
        return parameter in inspect.signature(getattr(model, method)).parameters
    except (AttributeError, TypeError, ValueError):  # compiled methods show none
        return False


class _Wrapped(Model):
    """Shared part: remembers the models, the last vector and the features of the open round."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_model_copies", "_last_statistics")
    silent_rounds: ClassVar[int] = 1  # rounds before it is asked

    def __init__(self, size: int, *models: Any) -> None:
        super().__init__(size)
        self._model_copies = [Copy(model) for model in models]
        self._last_statistics = np.full(size, 0.5)  # s(y) of the latest round that is known (n,)

    @property
    def resumable(self) -> bool:
        """Whether the models can be written, which is not known before they have learned."""
        return self.time > 0 and all(copy_of_model.writable for copy_of_model in self._model_copies)

    def _predicted(self, x: object) -> Array:
        lagged = {f"last_{i}": float(value) for i, value in enumerate(self._last_statistics)}
        self._open_features = {**features(x), **lagged}
        if self.time < self.silent_rounds:
            return self._last_statistics
        return self._answer()

    def opened(self) -> Any:
        return dict(self._open_features)

    def reopen(self, x: object, opened: Any) -> None:
        self._open_features = dict(opened)

    def _answer(self) -> Array:
        raise NotImplementedError

    def _remember_last(self, statistics: Array) -> None:
        """Remember the vector of the latest round that is known."""
        if not self.newer:
            self._last_statistics = statistics


def _numbers(method: Callable[[Any], Any], count: int, features_of_round: Any) -> Array:
    """Return the numbers (count,) that a model predicts; UserError if it does not."""
    answer = method(features_of_round)
    try:
        return np.asarray(answer, dtype=np.float64).reshape(count)
    except (TypeError, ValueError) as error:
        expected = "a number" if count == 1 else f"{count} numbers"
        raise UserError(f"{name_of(method)} returned {brief(answer)}; return {expected}") from error


class OnlineModel(_Wrapped):
    """An untrained regressor that learns one example at a time, copied for every number."""

    def __init__(self, model: Any, size: int) -> None:
        super().__init__(size, *[model] * size)

    def _answer(self) -> Array:
        methods = [copy_of_model.model.predict_one for copy_of_model in self._model_copies]
        return np.concatenate(
            [_numbers(method, 1, dict(self._open_features)) for method in methods]
        )

    def _learn(self, statistics: Array) -> None:
        for copy_of_model, value in zip(self._model_copies, statistics.tolist(), strict=True):
            copy_of_model.model.learn_one(dict(self._open_features), value)
        self._remember_last(statistics)


class BatchModel(_Wrapped):
    """A regressor that is fitted to a table, again and again.

    One that does not say that it predicts several numbers at once, by scikit-learn's tags, is
    copied for every number. Where fewer rounds than ``SHORT`` are too few for it, which it says by
    a ValueError, the last value is predicted.

    The table has a column for every feature that a round had, in the order in which they first
    came. Where a round lacks one, the mean of the column stands in its place; a feature that is new
    counts from the next fit on.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = (
        *("_feature_names", "_feature_table", "_is_known", "_target_table"),
        *("_fitted_means", "_next_fit", "_is_fitted"),
    )
    silent_rounds = 2

    def __init__(self, model: Any, size: int) -> None:
        one_copy_for_all = size == 1 or _predicts_several_numbers(model)
        copies = [model] if one_copy_for_all else [model] * size
        super().__init__(size, *copies)
        self._feature_names: list[str] = []  # F of them, in the order in which they first came
        # The last m rounds, at most ``WINDOW``: features (m, F), 0 where a round lacks one; whether
        # it had them (m, F), 1 or 0; and the vectors s(y) that came true (m, n).
        self._feature_table = np.zeros((0, 0))
        self._is_known = np.zeros((0, 0))
        self._target_table = np.zeros((0, size))
        # At the last fit: the mean of each feature that was known then, which stands for a missing
        # one, (features of the fit,).
        self._fitted_means = np.zeros(0)
        self._next_fit = FIRST_FIT  # the number of rounds after which the model is fitted again
        self._is_fitted = False  # whether the last fit succeeded

    def _answer(self) -> Array:
        if not self._is_fitted:
            return self._last_statistics
        try:
            return self._predictions()
        except UserError:  # as of a prediction of another size
            raise
        except ValueError:
            if len(self._target_table) >= SHORT:
                raise
            return self._last_statistics  # neighbours, for one, are counted when they are asked for

    def _predictions(self) -> Array:
        """Return what the fitted copies predict of the open round (n,)."""
        row = self._fitted_means.copy()
        for column, name in enumerate(self._feature_names[: len(row)]):
            row[column] = self._open_features.get(name, row[column])
        numbers_per_copy = self.size // len(self._model_copies)
        methods = [model_copy.model.predict for model_copy in self._model_copies]
        rows = np.array([row])
        return np.concatenate([_numbers(method, numbers_per_copy, rows) for method in methods])

    def _learn(self, statistics: Array) -> None:
        self._feature_names += [
            name for name in self._open_features if name not in self._feature_names
        ]
        features_of_round = [self._open_features.get(name, 0.0) for name in self._feature_names]
        is_known = [float(name in self._open_features) for name in self._feature_names]
        self._feature_table = _with_row(self._feature_table, features_of_round)
        self._is_known = _with_row(self._is_known, is_known)
        self._target_table = _with_row(self._target_table, statistics)
        self._remember_last(statistics)
        rounds_learned = self.time + 1
        if rounds_learned >= self._next_fit:
            self._fit()
            self._next_fit = math.ceil(rounds_learned * GROWTH)

    def _fit(self) -> None:
        """Fit every copy to the last rounds, each missing feature at its mean.

        UserError if it fails and the rounds are enough.
        """
        rounds_known = self._is_known.sum(axis=0)  # of each feature (F,)
        self._fitted_means = self._feature_table.sum(axis=0) / np.maximum(rounds_known, 1.0)
        complete_table = np.where(self._is_known > 0, self._feature_table, self._fitted_means)
        targets = [self._target_table]
        if len(self._model_copies) == self.size:
            targets = list(self._target_table.T)
        try:
            for model_copy, target in zip(self._model_copies, targets, strict=True):
                model_copy.model.fit(complete_table, target)
        except ValueError as error:
            n_rounds = len(complete_table)
            if n_rounds >= SHORT:
                kind = type(self._model_copies[0].model).__name__
                fault = " ".join(str(error).split())
                raise UserError(f"{kind} cannot be fitted to {n_rounds} rounds: {fault}") from error
            self._is_fitted = False
        else:
            self._is_fitted = True


def _predicts_several_numbers(model: Any) -> bool:
    """Whether a regressor predicts several numbers at once, as its tags say; true without tags."""
    if not hasattr(model, "__sklearn_tags__"):
        return True
    return bool(model.__sklearn_tags__().target_tags.multi_output)


def _with_row(table: Array, row: ArrayLike) -> Array:
    """Append a row to a table, of which the last ``WINDOW`` rows stay.

    Where the row is longer the table gets columns of zeros first.
    """
    new_row = np.asarray(row, dtype=np.float64)
    n_new_columns = len(new_row) - table.shape[1]
    kept_rows = table[max(len(table) + 1 - WINDOW, 0) :]
    widened_rows = np.pad(kept_rows, ((0, 0), (0, n_new_columns)))
    return np.concatenate([widened_rows, new_row[np.newaxis]])


class SeriesModel(OutcomeModel):
    """An untrained model of a series, copied for every coordinate of y; its points are mended.

    The last outcome is predicted where it predicts no number, or ``SHORT`` rounds are too few.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = (
        "_past_outcomes",
        "_fitted_outcomes",
        "_forecasts_ahead",
        "_next_fit",
    )

    def __init__(self, model: Any, basis: Basis) -> None:
        super().__init__(basis)
        self._models = [copy.deepcopy(model) for _ in range(basis.outcomes)]
        self._can_continue = hasattr(model, "forward")  # whether it forecasts without a new fit
        self._past_outcomes = np.zeros((0, basis.outcomes))  # (m, d), of the last rounds
        self._fitted_outcomes = np.zeros((0, basis.outcomes))  # (m, d), those of the last fit
        self._forecasts_ahead = np.zeros((0, basis.outcomes))  # (rounds to come, d)
        self._next_fit = FIRST_FIT  # the number of rounds after which the models are fitted again

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        if len(self._fitted_outcomes) and self._can_continue:
            self._forecast(self._fitted_outcomes, 1, fit=True)

    def _forecast_of_outcome(self, x: object) -> Spread:
        last_outcome = np.full(self.basis.outcomes, 0.5)
        if len(self._past_outcomes):
            last_outcome = self._past_outcomes[-1]
        point = last_outcome
        if len(self._forecasts_ahead):
            point = self._forecasts_ahead[min(self.ahead, len(self._forecasts_ahead) - 1)]
        return Spread(np.where(np.isfinite(point), point, last_outcome)[:, None])

    def skip_round(self, x: object = None) -> None:
        if self.time:
            self._continue_series(in_unit_cube(self._forecast_of_outcome(x).values[:, 0]))
            self.time += 1

    def _learn_outcome(self, outcome: Array) -> None:
        super()._learn_outcome(outcome)
        self._continue_series(outcome)

    def _continue_series(self, outcome: Array) -> None:
        """Add the outcome (d,) of a round to the series, and forecast the rounds that follow it."""
        position = max(len(self._past_outcomes) - self.newer, 0)  # in the order of the rounds
        self._past_outcomes = np.insert(self._past_outcomes, position, outcome, axis=0)[-WINDOW:]
        self._forecasts_ahead = self._forecasts_ahead[1:]
        rounds = self.time + 1
        is_refitted = rounds >= self._next_fit
        if is_refitted:
            self._next_fit = math.ceil(rounds * GROWTH)
        elif not (len(self._forecasts_ahead) and self._can_continue):
            return
        try:
            self._forecasts_ahead = self._forecast(
                self._past_outcomes, self._next_fit - rounds, fit=is_refitted
            )
        except Exception as error:
            if rounds >= SHORT:
                kind = type(self._models[0]).__name__
                raise UserError(f"{kind} on {len(self._past_outcomes)} rounds: {error}") from error
        else:
            if is_refitted:
                self._fitted_outcomes = self._past_outcomes

    def _forecast(self, series: Array, steps: int, *, fit: bool) -> Array:
        """Forecast the next steps (steps, d) of a series (m, d), a model for each coordinate.

        The models are fitted to the series, or, without ``fit``, as they were fitted last they go
        on from its end.
        """
        forecasts = []
        for model, values in zip(self._models, series.T, strict=True):
            past = np.array(values)
            if not fit:
                answer = model.forward(y=past, h=steps)
            elif _has_parameter(model, "predict", "fh"):  # as sktime: the horizon lists the steps
                model.fit(past)
                answer = model.predict(fh=np.arange(1, steps + 1))
            elif _has_parameter(model, "predict", "h"):  # as statsforecast: it is their number
                model.fit(past)
                answer = model.predict(h=steps)
            else:
                answer = model.forecast(y=past, h=steps)
            mean = answer["mean"] if isinstance(answer, dict) else answer
            forecasts.append(np.asarray(mean, dtype=np.float64).ravel())
        return np.array(forecasts).T
