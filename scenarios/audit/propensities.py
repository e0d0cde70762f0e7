"""The probability with which each action was taken, logged or estimated.

What was not logged is estimated by ``cells`` (relative frequencies among rounds of the same context
and the same span of time) or by a classifier of scikit-learn's kind that sees the context and the
time. Both assume that, among such rounds, the action was drawn independently of what it would have
sold or lost. Nothing in a log can prove this.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError
from regretless.scenarios.audit.bandit_log import BanditLog

ROUNDS_PER_CELL = 100  # rounds of a span of time within which frequencies are taken
N_FOLDS = 5  # spans of time; the classifier that speaks of one learns from the others
LOGGED = "logged"
PARTLY_LOGGED = "logged for the action taken; for the others estimated by frequencies"
BY_CELL = "estimated by frequencies"
BY_CLASSIFIER = "estimated by a classifier"


class Classifier(Protocol):
    """A classifier of scikit-learn's kind."""

    def fit(self, features: Array, labels: Any) -> Any:
        """Learn from features (n, k) and labels (n,)."""

    def predict_proba(self, features: Array) -> Array:
        """Return the probability of each class (n, classes)."""


@dataclass(frozen=True, eq=False)
class Propensities:
    """The probability of each action in each round.

    Attributes
    ----------
    probability : ndarray
        (T, A), each row with sum 1.
    source : str
        Where they come from, in words.
    is_logged : bool
        Whether all of them were logged, so that regret estimates are sums of martingale
        differences.
    """

    probability: Array
    source: str
    is_logged: bool


def find_propensities(log: BanditLog, classifier: Classifier | None = None) -> Propensities:
    """Return logged probabilities; where they are missing, estimates of them."""
    rounds = np.arange(log.rounds)
    logged = log.logged.copy()
    is_certain = logged[rounds, log.chosen] == 1
    logged[is_certain] = 0.0  # nothing else could have been taken
    logged[rounds[is_certain], log.chosen[is_certain]] = 1.0
    is_known = ~np.isnan(logged)
    if is_known.all():
        totals = logged.sum(1, keepdims=True)
        return Propensities(logged / totals, LOGGED, is_logged=True)
    if classifier is None:
        estimated = _frequencies_by_cell(log)
    else:
        estimated = _classifier_probabilities(log, classifier)
    if not is_known.any():
        source = BY_CELL if classifier is None else BY_CLASSIFIER
        return Propensities(estimated, source, is_logged=False)

    # The probability of the action taken is known: the others share the rest as estimated.
    of_chosen = log.logged[rounds, log.chosen]
    others = estimated.copy()
    others[rounds, log.chosen] = 0.0
    totals = others.sum(1)
    n_others = len(log.names) - 1
    equal_shares = np.full_like(others, 1.0 / n_others)
    equal_shares[rounds, log.chosen] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(totals[:, None] > 0, others / totals[:, None], equal_shares)
    probability = shares * (1.0 - of_chosen)[:, None]
    probability[rounds, log.chosen] = of_chosen
    return Propensities(probability, PARTLY_LOGGED, is_logged=False)


def _cells(log: BanditLog) -> Indices:
    """Return the number (T,) of the cell of each round: its context, and a span of time."""
    if len(log.context.columns):
        keys = log.context.astype(str).agg("\x1f".join, axis=1)
        context = pd.factorize(keys)[0]
    else:
        context = np.zeros(log.rounds, dtype=np.intp)
    place_in_context = pd.Series(context).groupby(context).cumcount().to_numpy()
    counts = np.bincount(context)
    n_spans = np.maximum(counts // ROUNDS_PER_CELL, 1)
    span = place_in_context * n_spans[context] // counts[context]
    return np.asarray(pd.factorize(pd.Series(list(zip(context, span, strict=True))))[0])


def _frequencies_by_cell(log: BanditLog) -> Array:
    """Return the relative frequency of each action in the cell of each round (T, A)."""
    cells = _cells(log)
    counts = np.zeros((cells.max() + 1, len(log.names)))
    np.add.at(counts, (cells, log.chosen), 1.0)
    frequencies = counts / counts.sum(1, keepdims=True)
    return np.asarray(frequencies[cells])


def context_features(log: BanditLog) -> Array:
    """Return the context as numbers (T, k): columns of numbers as they are, texts as indicators."""
    columns = []
    for name in log.context:
        numbers = pd.to_numeric(log.context[name], errors="coerce")
        if numbers.notna().all():
            columns.append(numbers.to_numpy(dtype=np.float64)[:, None])
        else:
            indicators = pd.get_dummies(log.context[name].astype(str), dtype=float)
            columns.append(indicators.to_numpy()[:, 1:])
    if not columns:
        return np.zeros((log.rounds, 0))
    return np.concatenate(columns, axis=1)


def _classifier_probabilities(log: BanditLog, classifier: Classifier) -> Array:
    """Return probabilities (T, A) by a classifier; of each span of time, fitted to the others."""
    try:
        from sklearn.base import clone  # noqa: PLC0415 - an extra
    except ImportError as error:
        cure = "run pip install 'regretless[learn]', or leave the classifier out"
        raise UserError(f"propensities by a classifier need scikit-learn; {cure}") from error
    time = np.linspace(-1.0, 1.0, log.rounds)[:, None]
    features = np.concatenate([time, time**2, context_features(log)], axis=1)
    probability = np.zeros((log.rounds, len(log.names)))
    fold = np.arange(log.rounds) * N_FOLDS // log.rounds
    for number in range(N_FOLDS):
        is_held_out = fold == number
        learned = np.unique(log.chosen[~is_held_out])
        if len(learned) == 1:
            probability[is_held_out, learned[0]] = 1.0
            continue
        fitted: Any = clone(classifier)
        fitted.fit(features[~is_held_out], log.chosen[~is_held_out])
        predicted = fitted.predict_proba(features[is_held_out])
        probability[np.ix_(np.flatnonzero(is_held_out), fitted.classes_)] = predicted
    # An action that was taken had some probability, whatever the classifier says.
    of_chosen = probability[np.arange(log.rounds), log.chosen]
    probability[np.arange(log.rounds), log.chosen] = np.maximum(of_chosen, 1.0 / log.rounds)
    return np.asarray(probability / probability.sum(1, keepdims=True))
