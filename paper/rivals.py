"""What people would use in place of this project: forecasts of quantiles, often refitted.

Every rival forecasts the quantiles ``LEVELS`` of outcome t from the outcomes up to t - h, h being
the steps ahead, and the context of t. Regressions have twelve lags, the outcomes that lie whole
periods back (a day, a week, a year, as the user of a series knows them), and a column for each
value of a context. They are fitted again every ``REFIT`` rounds to all rounds so far of which every
lag is known. The lag of a long period enters once there are ``ROWS_PER_FEATURE`` such rounds for
each feature. Boosting takes features that are missing, and all rounds.

    autoregression          least squares, with the quantiles of its residuals
    quantile regression     ``statsmodels``, reweighted least squares, a fit per level
    boosted quantiles       ``scikit-learn``, histogram gradient boosting, a fit per level
    conformal tracker       the autoregression, and a quantile tracker of its errors per level
    last period             the quantiles of the outcomes of the last week (day, year)
    AutoETS, AutoARIMA      ``statsforecast``, with normal intervals, if they are asked for

The tracker is the first part of conformal PID control (Angelopoulos, Candès and Tibshirani 2023,
arXiv:2307.16895): b_l moves by eta (l - 1[y <= forecast + b_l]), with eta a tenth of the largest of
the last errors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from paper.public_series import PublicSeries
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError, closest

LEVELS = np.array([0.025, 0.05, 0.1, 1 / 3, 0.5, 2 / 3, 0.9, 0.95, 0.975])
N_LAGS = 12
REFIT = {"fast": 5, "slow": 100}  # rounds between fits
ITERATIONS = 25  # of a quantile regression
N_TREES = 40
TRACKED_ERRORS = 100  # errors of which the tracker takes the largest
MAX_SEASON = 24  # rounds of a season that models of ``statsforecast`` have
ROUNDS_FITTED = 500  # that these are fitted to, because they take long
TINY_RIDGE = 1e-6
MAX_VALUES = 12  # of a context that a quantile regression has: with more it takes minutes
ROWS_PER_FEATURE = 5  # rounds per feature without which a regression leaves a long lag out


@dataclass(frozen=True)
class Fit:
    """What one fit learns from, and the features of the rounds that it forecasts."""

    features: Array  # (m, p), none missing
    outcomes: Array  # (m,)
    forecast_features: Array  # (k, p), none missing


@dataclass(frozen=True)
class Task:
    """A series to forecast so many steps ahead, from round ``first`` on."""

    series: PublicSeries
    steps: int
    first: int

    @property
    def values(self) -> Array:
        """Return the outcomes (T,)."""
        return self.series.outcomes

    @cached_property
    def design(self) -> Array:
        """Return all features (T, p) of each round, NaN where a lag lies before the first round."""
        return self._features(most_values=len(self.values))

    @cached_property
    def small_design(self) -> Array:
        """Return the features (T, p) without contexts of many values."""
        return self._features(most_values=MAX_VALUES)

    def _features(self, most_values: int) -> Array:
        """Return features (T, p): contexts first, lags by their length, those of periods last."""
        n_rounds = len(self.values)
        columns = [np.ones(n_rounds)]
        for name in self.series.contexts[0]:
            column = np.array([context[name] for context in self.series.contexts])
            values = np.unique(column)
            if len(values) <= most_values:
                columns += [(column == value).astype(float) for value in values[1:]]
        lags = [self.steps + k for k in range(N_LAGS)]
        lags += [period * -(-self.steps // period) for period in self.series.periods]
        for lag in lags:
            lagged = np.full(n_rounds, np.nan)
            lagged[lag:] = self.values[:-lag]
            columns.append(lagged)
        return np.column_stack(columns)

    def known_rounds(self, round_index: int) -> Indices:
        """Return the rounds with known outcomes, and twelve lags, when this one is forecast."""
        return np.arange(N_LAGS + self.steps - 1, round_index - self.steps + 1)

    def fit(self, design: Array, start: int, end: int) -> Fit:
        """Return what a regression learns from to forecast rounds ``start`` to ``end``.

        As many lags of periods are features, the shortest ones first, as leave it
        ``ROWS_PER_FEATURE`` rounds for each feature.
        """
        known = self.known_rounds(start)
        n_features = design.shape[1]
        n_without_periods = n_features - len(self.series.periods)
        while True:
            features = design[:, :n_features]
            complete = known[np.isfinite(features[known]).all(1)]
            has_enough = len(complete) >= ROWS_PER_FEATURE * n_features
            if has_enough or n_features == n_without_periods:
                break
            n_features -= 1
        return Fit(features[complete], self.values[complete], features[start:end])

    def fits(self, speed: str) -> list[tuple[int, int]]:
        """Return the spans of rounds that one fit forecasts, from ``first`` on."""
        starts = range(self.first, len(self.values), REFIT[speed])
        return [(start, min(start + REFIT[speed], len(self.values))) for start in starts]


def check_rounds(n_rounds: int, first: int, steps: int) -> None:
    """Raise UserError for a series too short for a regression that is first fitted at ``first``.

    A round has all lags after ``N_LAGS`` + ``steps`` - 1 others, and the outcomes of the last
    ``steps`` - 1 rounds are not known yet. Of the rest a fit has at least ``N_LAGS``.
    """
    n_known = (first - steps + 1) - (N_LAGS + steps - 1)
    if n_known < N_LAGS:
        least = 3 * (first + N_LAGS - n_known)  # a third of a series comes before the first fit
        fault = f"{n_rounds} are too few for regressions of {N_LAGS} lags, {steps} steps ahead"
        raise UserError(f"--rounds: {fault}; give at least {least}")


def least_squares(features: Array, outcomes: Array) -> Array:
    """Return the coefficients (p,) of least squares, with a tiny ridge."""
    gram = features.T @ features
    ridge = TINY_RIDGE * np.trace(gram) / len(gram)
    coefficients: Array = np.linalg.solve(gram + ridge * np.eye(len(gram)), features.T @ outcomes)
    return coefficients


def autoregression(
    task: Task, *, forgetting: float = 1.0, max_residuals: int | None = None
) -> Array:
    """Return quantiles (T, L): the forecast of least squares and the quantiles of its residuals.

    A round has ``forgetting`` times the weight of the next one in the fit. Quantiles are those of
    the last ``max_residuals``, by default of all.
    """
    quantiles = np.full((len(task.values), len(LEVELS)), np.nan)
    for start, end in task.fits("fast"):
        fit = task.fit(task.design, start, end)
        rounds_ago = np.arange(len(fit.outcomes))[::-1]
        root_of_weight = np.sqrt(forgetting**rounds_ago)
        weighted_features = fit.features * root_of_weight[:, None]
        coefficients = least_squares(weighted_features, fit.outcomes * root_of_weight)
        residuals = fit.outcomes - fit.features @ coefficients
        if max_residuals is not None:
            residuals = residuals[-max_residuals:]
        forecasts = fit.forecast_features @ coefficients
        quantiles[start:end] = forecasts[:, None] + np.quantile(residuals, LEVELS)
    return quantiles


def conformal_tracker(task: Task) -> Array:
    """Return quantiles (T, L): the autoregression's forecast, and quantiles of errors, tracked."""
    quantiles = np.full((len(task.values), len(LEVELS)), np.nan)
    forecasts = np.full(len(task.values), np.nan)
    for start, end in task.fits("fast"):
        fit = task.fit(task.design, start, end)
        coefficients = least_squares(fit.features, fit.outcomes)
        forecasts[start:end] = fit.forecast_features @ coefficients
        if start == task.first:
            errors = fit.outcomes - fit.features @ coefficients
            tracked = np.quantile(errors, LEVELS)
            recent = list(np.abs(errors[-TRACKED_ERRORS:]))
        for t in range(start, end):
            known_round = t - task.steps
            if known_round >= task.first:
                error = task.values[known_round] - forecasts[known_round]
                recent = [*recent[-TRACKED_ERRORS + 1 :], abs(error)]
                was_below = task.values[known_round] <= quantiles[known_round]
                tracked = tracked + 0.1 * max(recent) * (LEVELS - was_below)
            quantiles[t] = forecasts[t] + tracked
    return np.sort(quantiles, axis=1)


def quantile_regression(task: Task) -> Array:
    """Return quantiles (T, L) of linear quantile regressions, sorted where they cross."""
    regression: Any = import_module("statsmodels.regression.quantile_regression").QuantReg
    quantiles = np.full((len(task.values), len(LEVELS)), np.nan)
    for start, end in task.fits("slow"):
        fit = task.fit(task.small_design, start, end)
        scale = max(float(np.abs(fit.outcomes).max()), 1e-12)
        model = regression(fit.outcomes / scale, fit.features)
        for j, level in enumerate(LEVELS):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of iterations that are spent
                coefficients = model.fit(q=level, max_iter=ITERATIONS).params
            quantiles[start:end, j] = scale * (fit.forecast_features @ coefficients)
    return np.sort(quantiles, axis=1)


def boosted_quantiles(task: Task) -> Array:
    """Return quantiles (T, L) of gradient boosting, sorted where they cross."""
    boosting: Any = import_module("sklearn.ensemble").HistGradientBoostingRegressor
    quantiles = np.full((len(task.values), len(LEVELS)), np.nan)
    for start, end in task.fits("slow"):
        known = task.known_rounds(start)
        was_seen = np.isfinite(task.design[known]).any(0)
        features = task.design[:, was_seen]
        for j, level in enumerate(LEVELS):
            model = boosting(
                loss="quantile", quantile=level, max_iter=N_TREES, max_leaf_nodes=15, random_state=0
            )
            model.fit(features[known], task.values[known])
            quantiles[start:end, j] = model.predict(features[start:end])
    return np.sort(quantiles, axis=1)


def last_period(task: Task) -> Array:
    """Return the quantiles (T, L) of the last period's outcomes, the longest that is known.

    Where none is known yet when the first round is forecast, they are those of as many rounds.
    """
    known_periods = [period for period in task.series.periods if period <= task.first]
    length = max(known_periods, default=task.first)
    quantiles = np.full((len(task.values), len(LEVELS)), np.nan)
    for t in range(task.first, len(task.values)):
        end = t - task.steps + 1
        quantiles[t] = np.quantile(task.values[max(end - length, 0) : end], LEVELS)
    return quantiles


def of_statsforecast(task: Task, kind: str) -> Array:
    """Return the quantiles (T, L) of a model of ``statsforecast``, with normal intervals.

    It follows what comes until it is fitted again; its parameters stay.
    """
    shortest = task.series.periods[0]
    season = shortest if shortest <= MAX_SEASON else 1
    model_class: Any = getattr(import_module("statsforecast.models"), kind)
    percents = sorted({round(100 * abs(2 * level - 1), 6) for level in LEVELS} - {0.0})
    quantiles = np.full((len(task.values), len(LEVELS)), np.nan)
    for start, end in task.fits("slow"):
        known = task.values[max(start - task.steps + 1 - ROUNDS_FITTED, 0) : start - task.steps + 1]
        model = model_class(season_length=season)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(known)
            for t in range(start, end):
                first_known = max(start - task.steps + 1 - ROUNDS_FITTED, 0)
                past = task.values[first_known : t - task.steps + 1]
                answer = model.forward(past, h=task.steps, level=percents)
                for j, level in enumerate(LEVELS):
                    percent = round(100 * abs(2 * level - 1), 6)
                    side = "hi" if level > 0.5 else "lo"
                    column = "mean" if not percent else f"{side}-{percent:g}"
                    quantiles[t, j] = _of_answer(answer, column, side, percent)
    return quantiles


def _of_answer(answer: dict[str, Any], column: str, side: str, percent: float) -> float:
    """Return the last step of a column, however its level is written."""
    if column in answer:
        return float(np.asarray(answer[column])[-1])
    return float(np.asarray(answer[f"{side}-{percent}"])[-1])


Rival = Callable[[Task], Array]
RIVALS: dict[str, Rival] = {
    "autoregression": autoregression,
    "quantile regression": quantile_regression,
    "boosted quantiles": boosted_quantiles,
    "conformal tracker": conformal_tracker,
    "last period": last_period,
    "AutoETS": lambda task: of_statsforecast(task, "AutoETS"),
    "AutoARIMA": lambda task: of_statsforecast(task, "AutoARIMA"),
}
OF_STATSFORECAST = ("AutoETS", "AutoARIMA")
INSTALLED_WITH = {  # the packages that rivals need, and how they are installed
    "quantile regression": ("statsmodels", "python -m pip install statsmodels"),
    "boosted quantiles": ("sklearn", "python -m pip install scikit-learn"),
    **dict.fromkeys(
        OF_STATSFORECAST,
        ("statsforecast", "install it with pandas below 3 in an environment of its own"),
    ),
}
USUAL_RIVALS = tuple(name for name in RIVALS if name not in OF_STATSFORECAST)


def check_rivals(names: Sequence[str]) -> None:
    """Raise UserError for a rival that is unknown, or whose package is not installed."""
    for name in names:
        if name not in RIVALS:
            raise UserError(f"--rivals: no rival '{name}'; {closest(name, RIVALS)}")
        package, cure = INSTALLED_WITH.get(name, (None, ""))
        if package is not None and find_spec(package) is None:
            raise UserError(f"--rivals: {name} needs the package {package}; {cure}")
