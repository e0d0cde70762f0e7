"""Predictions of the result that each action would have had, from earlier rounds alone.

A doubly robust estimate corrects such predictions by the results that were observed. It is right on
average whatever the model says, if the propensities are right; the better the model, the shorter
the interval. For this each round's prediction may use earlier rounds only: models are fitted anew
when the number of rounds has doubled.

``means`` is the running mean of each action. ``linear`` and ``logit`` are linear and logistic in
the price (in other logs: in indicators of the action) and in the context. An object of one's own
has ``fit(features, result)`` and ``predict(features)``, as scikit-learn's regressors do; its
features are the same.
"""

from __future__ import annotations

import copy
from typing import Any, Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError, brief, closest
from regretless.market.core.validation import refused_in_one_line
from regretless.scenarios.audit.bandit_log import BanditLog
from regretless.scenarios.audit.propensities import context_features

FIRST_FIT = 32  # rounds, before which the running means are used
RIDGE = 1e-3  # of the squared coefficients, in rounds: logistic models stay finite
PRIOR_ROUNDS = 1.0  # that the mean of all actions weighs in the running mean of one
MODELS = ("means", "linear", "logit")


class Regressor(Protocol):
    """A regressor of scikit-learn's kind."""

    def fit(self, features: Array, result: Array) -> Any:
        """Learn from features (n, k) and results (n,)."""

    def predict(self, features: Array) -> Array:
        """Return the predicted result of each row of features (n, k)."""


def check_model(model: object) -> None:
    """Check that a model of demand is known, or has what it needs; None is the default.

    UserError otherwise.
    """
    if isinstance(model, str):
        if model not in MODELS:
            raise UserError(f"demand: unknown '{model}'; {closest(model, MODELS)}")
        return
    is_model = hasattr(model, "fit") and hasattr(model, "predict") and not isinstance(model, type)
    if model is not None and not is_model:
        cure = f"give one of: {', '.join(MODELS)}, or an object with fit and predict"
        raise UserError(f"demand: {brief(model)} is no model; {cure}")


def predict_results(log: BanditLog, model: str | Regressor = "means") -> Array:
    """Return the predicted result of each action in each round (T, A), from earlier rounds.

    Raises
    ------
    UserError
        If the model is unknown, or has no ``fit`` and ``predict``.
    """
    check_model(model)
    predictions = _running_means(log)
    if isinstance(model, str):
        if model == "means":
            return predictions
        regressor: Any = _LinearResults()
        if model == "logit":
            regressor = _LogitResults(log.smallest, log.largest)
    else:
        regressor = model

    n_actions = len(log.names)
    context = context_features(log)
    start = FIRST_FIT
    while start < log.rounds:
        end = min(2 * start, log.rounds)
        fitted = copy.deepcopy(regressor)
        with refused_in_one_line():
            fitted.fit(_features(log, log.chosen[:start], context[:start]), log.result[:start])
        for action in range(n_actions):
            actions = np.full(end - start, action)
            features = _features(log, actions, context[start:end])
            with refused_in_one_line():
                predicted = np.asarray(fitted.predict(features), dtype=np.float64)
            _check_predictions(predicted, len(features))
            predictions[start:end, action] = np.clip(predicted, log.smallest, log.largest)
        start = end
    return predictions


def _check_predictions(predicted: Array, n_rows: int) -> None:
    if predicted.shape != (n_rows,) or not np.isfinite(predicted).all():
        fault = f"the model's predictions have the shape {predicted.shape}, or are not finite"
        raise UserError(f"demand: {fault}; return {n_rows} finite numbers for {n_rows} rows")


def _features(log: BanditLog, actions: Indices, context: Array) -> Array:
    """Return what a model sees of actions (n,) in contexts (n, k): the price or indicators."""
    if log.prices is not None:
        action_features = log.prices[actions][:, None]
    else:
        action_features = np.eye(len(log.names))[actions][:, 1:]
    return np.concatenate([action_features, context], axis=1)


def _running_means(log: BanditLog) -> Array:
    """Return each action's mean result before each round (T, A), shrunk to that of all actions."""
    was_taken = np.eye(len(log.names))[log.chosen]
    counts_before = np.cumsum(was_taken, axis=0) - was_taken
    result_taken = was_taken * log.result[:, None]
    sums_before = np.cumsum(result_taken, axis=0) - result_taken
    rounds_before = np.arange(log.rounds)
    middle = (log.smallest + log.largest) / 2
    total_before = np.cumsum(log.result) - log.result
    overall = (total_before + middle) / (rounds_before + 1)
    return (sums_before + PRIOR_ROUNDS * overall[:, None]) / (counts_before + PRIOR_ROUNDS)


def _with_constant(features: Array) -> Array:
    return np.concatenate([np.ones((len(features), 1)), features], axis=1)


class _LinearResults:
    """Least squares."""

    def fit(self, features: Array, result: Array) -> None:
        self.coefficients = np.linalg.lstsq(_with_constant(features), result, rcond=None)[0]

    def predict(self, features: Array) -> Array:
        return np.asarray(_with_constant(features) @ self.coefficients)


class _LogitResults:
    """Logistic regression of a result between the smallest and the largest, by quasi-likelihood.

    The share of the range may be any number in [0, 1] (Papke and Wooldridge 1996, Journal of
    Applied Econometrics 11(6)).
    """

    def __init__(self, smallest: float, largest: float) -> None:
        self.smallest = smallest
        self.span = (largest - smallest) or 1.0

    def fit(self, features: Array, result: Array) -> None:
        self.centre = features.mean(0)
        self.spread = np.where(features.std(0) > 0, features.std(0), 1.0)
        standardised = _with_constant((features - self.centre) / self.spread)
        share = np.clip((result - self.smallest) / self.span, 0.0, 1.0)

        def loss_and_gradient(coefficients: Array) -> tuple[float, Array]:
            index = standardised @ coefficients
            loss = np.logaddexp(0.0, index).sum() - share @ index
            gradient = standardised.T @ (expit(index) - share)
            penalty = RIDGE * coefficients @ coefficients
            return float(loss + penalty), gradient + 2 * RIDGE * coefficients

        start = np.zeros(standardised.shape[1])
        self.coefficients = minimize(loss_and_gradient, start, jac=True, method="BFGS").x

    def predict(self, features: Array) -> Array:
        standardised = _with_constant((features - self.centre) / self.spread)
        return np.asarray(self.smallest + self.span * expit(standardised @ self.coefficients))
