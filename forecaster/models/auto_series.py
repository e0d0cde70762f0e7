"""AutoETS and AutoARIMA of statsforecast as models: their quantiles, mended by their own past.

    models = ["panel", "auto-ets"]                                    in [forecaster]
    { kind = "auto-arima", season = 24, refit = 200, name = "arima" }

Both choose the form of their model, exponential smoothing or ARIMA, when they are fitted to the
last outcomes, and read no context. They are fitted again every ``refit`` rounds, and in the first
rounds whenever these have doubled; in between their parameters stay, and they follow what comes.
Their intervals are normal; past outcomes say how far off these are (``outcomes.OutcomeModel``).

They need the package statsforecast (extra ``forecasts``), which wants pandas below 3: an
environment of its own serves best.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from regretless.forecaster.models.external import SHORT
from regretless.forecaster.models.outcomes import Coordinates, OutcomeModel, Spread
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.core.validation import check_whole
from regretless.market.losses.basis import Basis

INSTALL = (
    "needs statsforecast, which is not installed; run pip install 'regretless[forecasts]' in an "
    "environment of its own, because it wants pandas below 3"
)
MODEL_CLASSES = {"auto-ets": "AutoETS", "auto-arima": "AutoARIMA"}  # in ``statsforecast.models``
PERCENTS = (50, 80, 95)  # of the intervals that are asked for
LEVELS = np.array([0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975])  # of their ends and of the mean
FIRST_FIT = 10  # rounds after which a model is fitted for the first time, or two seasons
MAX_ROUNDS = 10_000  # of a season, between fits, or fitted to


def model_class(kind: str) -> Any:
    """Return the class of a kind of model; UserError if statsforecast is not installed."""
    try:
        return getattr(import_module("statsforecast.models"), MODEL_CLASSES[kind])
    except ImportError as error:
        raise UserError(f"model '{kind}' {INSTALL}") from error


def lacks_its_package(kind: str) -> bool:
    """Whether a kind of model, of any name, is one of statsforecast, which is not installed."""
    return kind in MODEL_CLASSES and find_spec("statsforecast") is None


class AutoSeries(OutcomeModel):
    """A model of statsforecast for each coordinate of the outcome, fitted again and again.

    Until the first fit, and where a fit is not possible in the first ``SHORT`` rounds, it predicts
    the last outcome and what its errors were.

    A subclass has the ``kind`` of its model.

    Parameters
    ----------
    size : int
        How many statistics are predicted.
    basis : Basis, optional
        Of these statistics, over d coordinates; left out where they are the coordinates.
    season : int
        Rounds of a season, 1 for none.
    refit : int
        Rounds between two fits.
    fitted_rounds : int
        How many of the last rounds it is fitted to, and follows.
    """

    kind: ClassVar[str]
    REMEMBERED: ClassVar[tuple[str, ...]] = ("_past_outcomes", "_fitted_outcomes", "_next_fit")

    def __init__(
        self,
        size: int,
        *,
        basis: Basis | None = None,
        season: int = 1,
        refit: int = 100,
        fitted_rounds: int = 500,
    ) -> None:
        super().__init__(Coordinates(size) if basis is None else basis)
        self.season = check_whole("season", season, least=1, most=MAX_ROUNDS)
        self.refit = check_whole("refit", refit, least=1, most=MAX_ROUNDS)
        least_rounds = max(FIRST_FIT, 2 * self.season)
        self.fitted_rounds = check_whole(
            "fitted_rounds", fitted_rounds, least=least_rounds, most=MAX_ROUNDS
        )
        self._model_class = model_class(self.kind)
        self._models: list[Any] = []  # fitted, one for each coordinate; none before the first fit
        self._past_outcomes = np.zeros((0, self.basis.outcomes))  # (m, d), of the last rounds
        self._fitted_outcomes = np.zeros((0, self.basis.outcomes))  # (m, d), those of the last fit
        self._next_fit = least_rounds  # how many rounds are known when it is fitted again

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._models = []
        if len(self._fitted_outcomes):
            self._fit(self._fitted_outcomes)

    def _forecast_of_outcome(self, x: object) -> Spread:
        last_outcome = np.full(self.basis.outcomes, 0.5)
        if len(self._past_outcomes):
            last_outcome = self._past_outcomes[-1]
        if not self._models:
            return Spread(last_outcome[:, np.newaxis])
        quantiles = np.empty((self.basis.outcomes, len(LEVELS)))
        for coordinate, model in enumerate(self._models):
            past = np.ascontiguousarray(self._past_outcomes[:, coordinate])
            answer = model.forward(y=past, h=self.ahead + 1, level=list(PERCENTS))
            quantiles[coordinate] = _quantiles_of(answer)
        # where it predicts no number, the last outcome stands in its place
        is_known = np.isfinite(quantiles).all(axis=1, keepdims=True)
        quantiles = np.where(is_known, quantiles, last_outcome[:, np.newaxis])
        return Spread(np.sort(quantiles), LEVELS)

    def skip_round(self, x: object = None) -> None:
        if self.time:
            values = self._forecast_of_outcome(x).values
            middle = values[:, values.shape[1] // 2]
            self._add(np.clip(middle, 0.0, 1.0))
            self.time += 1

    def _learn_outcome(self, outcome: Array) -> None:
        super()._learn_outcome(outcome)
        self._add(outcome)

    def _add(self, outcome: Array) -> None:
        """Put the outcome (d,) of a round into the series; fit the models again if it is time."""
        position = max(len(self._past_outcomes) - self.newer, 0)  # in the order of the rounds
        longer = np.insert(self._past_outcomes, position, outcome, axis=0)
        self._past_outcomes = longer[-self.fitted_rounds :]
        n_rounds = self.time + 1
        if n_rounds < self._next_fit:
            return
        self._next_fit = n_rounds + min(n_rounds, self.refit)
        if self._fit(self._past_outcomes):
            self._fitted_outcomes = self._past_outcomes

    def _fit(self, outcomes: Array) -> bool:
        """Fit a model to each coordinate of outcomes (m, d), and return whether that was possible.

        UserError if it was not, and ``SHORT`` rounds or more were known.
        """
        models = []
        try:
            for values in outcomes.T:
                model = self._model_class(season_length=self.season)
                models.append(model.fit(y=np.ascontiguousarray(values)))
        except Exception as error:  # they raise errors of many kinds
            if len(outcomes) >= SHORT:
                fault = " ".join(str(error).split())
                raise UserError(f"{self.kind} on {len(outcomes)} rounds: {fault}") from error
            return False
        self._models = models
        return True


@register.forecaster("auto-ets")
class AutoETS(AutoSeries):
    """Exponential smoothing that chooses its form (AutoETS); it needs the extra forecasts."""

    kind = "auto-ets"


@register.forecaster("auto-arima")
class AutoARIMA(AutoSeries):
    """An ARIMA model that chooses its form (AutoARIMA); it needs the extra forecasts."""

    kind = "auto-arima"


def _quantiles_of(answer: dict[str, Any]) -> Array:
    """Return the quantiles (L,) of the last step that a model forecasts."""
    lower = [_last_step(answer, "lo", percent) for percent in reversed(PERCENTS)]
    upper = [_last_step(answer, "hi", percent) for percent in PERCENTS]
    middle = float(np.asarray(answer["mean"])[-1])
    return np.array([*lower, middle, *upper])


def _last_step(answer: dict[str, Any], side: str, percent: int) -> float:
    """Return the last step of an interval's end, however its percentage is written."""
    name = f"{side}-{percent}"
    column = answer[name] if name in answer else answer[f"{name}.0"]
    return float(np.asarray(column)[-1])
