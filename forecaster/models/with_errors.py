r"""A model of the outcome that carries its own past errors, and so forecasts a distribution.

    WithErrors(LastValue(1), basis)          y is the last value, plus any of its last 64 errors

A model m forecasts the outcome itself, y^ in [0, 1]^d. With its errors e_s = y_s - y^_s of the last
``window`` rounds

    y  ~  y^ + e_s,  every s alike, kept to [0, 1]^d,        E s(y)  =  mean_s s(y^ + e_s).

The errors are whole vectors of one round each, so that the coordinates of y depend on each other as
they did. One distribution has the statistics of every basis: they agree with each other, where a
model of every statistic by itself may predict what no distribution has.

**Seasons.** The errors of an hour at night are not those of noon. Where the context has a season
(``seasons``), its own last errors have the share m / (m + ``ROUNDS_OF_ALL``) of the distribution, m
their number, and the errors of all last rounds the rest.

An error belongs to the round that was forecast: with outcomes that come late, it is that of a
forecast as far ahead.
"""

import inspect
from typing import Any, ClassVar

import numpy as np

from regretless.forecaster.models.base import Model, check, features, in_unit_cube, teach
from regretless.forecaster.models.external import adapted
from regretless.forecaster.models.outcomes import (
    MARKS_TO_TAKE_OVER,
    WINDOW,
    Coordinates,
    DistributionModel,
)
from regretless.forecaster.models.seasons import MAX_ROUNDS, PastRounds
from regretless.market import register
from regretless.market.core.arrays import Array, is_within_unit_cube
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import ParameterError, UserError, closest
from regretless.market.core.validation import check_whole
from regretless.market.game.protocols import Forecaster
from regretless.market.losses.basis import Basis
from regretless.market.records import Ensemble

WINDOW_OF_SEASON = 40  # errors of the same season
ROUNDS_OF_ALL = 5.0  # how many errors of the season the errors of all rounds count for


@compiled()
def _write_distribution(
    forecast: Array,
    errors: Array,
    errors_of_season: Array,
    weights_of_kinds: tuple[float, float, float],
    outcomes: Array,
    weights: Array,
) -> None:
    """Write the forecast plus each error, moved into [0, 1]; behind them the forecast (compiled).

    Parameters
    ----------
    forecast : array (d,)
        Of the outcome, in [0, 1].
    errors, errors_of_season : array (m, d), (k, d)
        Of the last rounds, and of the last ones of the season.
    weights_of_kinds : three numbers
        The weight of an outcome that comes of an error, of one of the season, and without one.
    outcomes, weights : array (m + k or more, d), (m + k or more,)
        Written.
    """
    n_errors = errors.shape[0]
    n_of_season = errors_of_season.shape[0]
    for i in range(outcomes.shape[0]):
        kind = 0 if i < n_errors else 1 if i < n_errors + n_of_season else 2
        weights[i] = weights_of_kinds[kind]
        for j in range(outcomes.shape[1]):
            outcome = forecast[j]
            if kind == 0:
                outcome += errors[i, j]
            elif kind == 1:
                outcome += errors_of_season[i - n_errors, j]
            outcomes[i, j] = min(max(outcome, 0.0), 1.0)


class WithErrors(DistributionModel):
    """A forecast of the outcome and the last errors of it, as a distribution.

    Parameters
    ----------
    model : Forecaster
        Predicts the d coordinates of an outcome in [0, 1]: a model for d numbers.
    basis : Basis
        Of the statistics s(y) that are predicted, over d coordinates.
    window : int
        How many errors it carries, at most 8,192.
    by_season : bool
        Whether errors of the same season count for more: of the same combination of features of the
        context that are integers.

    Examples
    --------
    >>> from regretless.forecaster.bases import PowerBasis
    >>> from regretless.forecaster.models import LastValue
    >>> model = WithErrors(LastValue(1), PowerBasis([2.0], 1), window=8)
    >>> for outcome in [0.5, 0.7] * 8:
    ...     _ = model.predict()
    ...     model.learn_outcome([outcome])
    >>> model.distribution().outcomes[:2].round(3).tolist()  # the last value is 0.7
    [[0.5], [0.9]]
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("model", "_errors")

    def __init__(
        self,
        model: Forecaster,
        basis: Basis,
        *,
        window: int = WINDOW,
        by_season: bool = True,
    ) -> None:
        super().__init__(basis)
        self.window = check_whole("window", window, least=1, most=MAX_ROUNDS)
        self.by_season = by_season
        check(isinstance(model, Forecaster), "model", model, "a model, such as LastValue(1)")
        size = getattr(model, "size", basis.outcomes)
        if size != basis.outcomes:
            fault = f"model predicts {size} numbers, an outcome has {basis.outcomes}"
            raise ParameterError(f"{fault}; give a model of the outcome, made for as many")
        self.model = model
        of_season = WINDOW_OF_SEASON if by_season else 0
        self._errors = PastRounds(basis.outcomes, of_all=self.window, of_season=of_season)
        self._forecast: Array | None = None  # of the open round (d,)

    def distribution(self, x: object = None) -> Ensemble:
        self._open_features = features(x)
        forecast = self._forecast_of_outcome(x)
        self._forecast = forecast
        errors = self._errors.last(self.window)
        share = min(self._errors.rounds / min(MARKS_TO_TAKE_OVER, self.window), 1.0)
        errors_of_season = errors[:0]
        if self.by_season:
            errors_of_season = self._errors.last_of_season(self._open_features, WINDOW_OF_SEASON)
        n_errors = len(errors)
        n_of_season = len(errors_of_season)
        share_of_season = share * n_of_season / (n_of_season + ROUNDS_OF_ALL)
        n_outcomes = n_errors + n_of_season
        if share < 1:  # the point itself, as long as there are few errors
            n_outcomes += 1
        weight_of_error = (share - share_of_season) / max(n_errors, 1)
        weight_of_error_of_season = share_of_season / max(n_of_season, 1)
        outcomes = np.empty((n_outcomes, len(forecast)))
        weights = np.empty(n_outcomes)
        _write_distribution(
            forecast,
            errors,
            errors_of_season,
            (weight_of_error, weight_of_error_of_season, 1 - share),
            outcomes,
            weights,
        )
        return Ensemble(outcomes, weights)

    def _forecast_of_outcome(self, x: object) -> Array:
        """Return the model's forecast of the outcome (d,), in [0, 1]."""
        self.model.ahead = self.ahead
        self.model.newer = self.newer
        outcome = np.asarray(self.model.point(x), dtype=np.float64)
        is_right_shape = outcome.shape == (self.basis.outcomes,)
        if is_right_shape and is_within_unit_cube(outcome):  # as those of our own models are
            return outcome
        if not is_right_shape or not np.isfinite(outcome).all():
            fault = f"the model predicted {outcome!s}"
            raise UserError(f"{fault}; it must predict {self.basis.outcomes} finite numbers")
        return in_unit_cube(outcome)

    def opened(self) -> Any:
        forecast = None if self._forecast is None else self._forecast.copy()
        return {"forecast": forecast, "model": self.model.opened()}

    def reopen(self, x: object, opened: Any) -> None:
        self._open_features = features(x)
        self._forecast = opened["forecast"]
        self.model.ahead = self.ahead
        self.model.newer = self.newer
        self.model.reopen(x, opened["model"])

    def skip_round(self, x: object = None) -> None:
        if isinstance(self.model, Model):
            self.model.ahead = self.ahead
            self.model.newer = self.newer
            self.model.skip_round(x)

    def _learn_outcome(self, outcome: Array) -> None:
        if self._forecast is not None:
            self._errors.add(outcome - self._forecast, self._open_features, newer=self.newer)
            self._forecast = None
        self.model.newer = self.newer
        teach(self.model, outcome, outcome)


def model_of_outcome(description: str | dict[str, Any], outcomes: int) -> Forecaster:
    """Make a registered model that predicts the d = ``outcomes`` coordinates of an outcome.

    ``description`` is the name of its kind, or a table of it, ``{"kind": ..., ...}``, with its
    parameters. UserError if there is no such kind, or its parameters do not fit.
    """
    table = {"kind": description} if isinstance(description, str) else dict(description)
    kind = str(table.pop("kind", ""))
    if kind not in register.forecaster:
        known = closest(kind, register.forecaster.names())
        raise UserError(f"model: unknown kind '{kind}'; {known}")
    maker = register.forecaster[kind]
    accepted = list(inspect.signature(maker).parameters)[1:]
    for name in table:
        if name not in accepted:
            raise UserError(f"model '{kind}': no parameter '{name}'; {closest(name, accepted)}")
    try:
        return adapted(maker(outcomes, **table), outcomes, Coordinates(outcomes))
    except (TypeError, ValueError) as error:
        raise UserError(f"model '{kind}': {error}") from error


@register.forecaster("with-errors")
def with_errors(
    size: int,
    *,
    basis: Basis | None = None,
    model: str | dict[str, Any] = "last-value",
    window: int = WINDOW,
    by_season: bool = True,
) -> WithErrors:
    """Make a registered ``model`` of the outcome carry its last errors.

    Without a ``basis`` the n = ``size`` numbers are the outcome.
    """
    basis_of_statistics = Coordinates(size) if basis is None else basis
    point_model = model_of_outcome(model, basis_of_statistics.outcomes)
    return WithErrors(point_model, basis_of_statistics, window=window, by_season=by_season)
