"""The probability with which each action was taken, logged or estimated.

What was not logged is estimated by **cells** (relative frequencies among rounds of the same context
and the same span of time) or by a classifier of scikit-learn's kind that sees the context and the
time. A cell of few rounds would say of each action taken that nothing else could have been: numbers
with many values are therefore divided into bins, and contexts with few rounds are one. Both ways
assume that, among such rounds, the action was drawn independently of what it would have
sold or lost. Nothing in a log can prove this.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError, brief
from regretless.market.core.validation import refused_in_one_line
from regretless.scenarios.audit.bandit_log import BanditLog

ROUNDS_PER_CELL = 100  # rounds of a span of time within which frequencies are taken
MIN_ROUNDS_PER_CONTEXT = 30  # below which contexts are one
MAX_VALUES = 12  # of a column of numbers that is not divided into bins
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
    note : str
        How the context was divided into cells, in sentences; empty where nothing was joined.
    """

    probability: Array
    source: str
    is_logged: bool
    note: str = ""


def check_classifier(classifier: object) -> None:
    """Check that a classifier has what is needed of it; UserError otherwise."""
    needed = ("fit", "predict_proba", "get_params")
    is_classifier = all(hasattr(classifier, name) for name in needed)
    if not is_classifier or isinstance(classifier, type):
        cure = f"give an object of scikit-learn's kind, with {', '.join(needed)}"
        raise UserError(f"classifier: {brief(classifier)} is no classifier; {cure}")


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
        cells, note = _cells(log)
        estimated = _frequencies_by_cell(log, cells)
    else:
        note = ""
        estimated = _classifier_probabilities(log, classifier)
    if not is_known.any():
        source = BY_CELL if classifier is None else BY_CLASSIFIER
        return Propensities(estimated, source, is_logged=False, note=note)

    # The probability of the action taken is known: the others share the rest as estimated.
    of_chosen = log.logged[rounds, log.chosen]
    of_others = estimated.copy()
    of_others[rounds, log.chosen] = 0.0
    totals = of_others.sum(1)
    n_others = len(log.names) - 1
    equal_shares = np.full_like(of_others, 1.0 / n_others)
    equal_shares[rounds, log.chosen] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(totals[:, None] > 0, of_others / totals[:, None], equal_shares)
    probability = shares * (1.0 - of_chosen)[:, None]
    probability[rounds, log.chosen] = of_chosen
    return Propensities(probability, PARTLY_LOGGED, is_logged=False, note=note)


def _cells(log: BanditLog) -> tuple[Indices, str]:
    """Return the cell (T,) of each round, its context and a span of time, and a note."""
    context, note = _contexts(log)
    place_in_context = pd.Series(context).groupby(context).cumcount().to_numpy()
    counts = np.bincount(context)
    n_spans = np.maximum(counts // ROUNDS_PER_CELL, 1)
    span = place_in_context * n_spans[context] // counts[context]
    cell = pd.factorize(context * n_spans.max() + span)[0]
    return np.asarray(cell), note


def _contexts(log: BanditLog) -> tuple[Indices, str]:
    """Return the number (T,) of the context of each round, and what was joined.

    A column of numbers with many values is divided at its quantiles, so that all such columns and
    the time together leave about ``ROUNDS_PER_CELL`` rounds in a cell.
    """
    if not len(log.context.columns):
        return np.zeros(log.rounds, dtype=np.intp), ""
    values = {}
    continuous = []
    for name in log.context:
        column = pd.to_numeric(log.context[name], errors="coerce")
        if column.notna().all() and column.nunique() > MAX_VALUES:
            continuous.append(name)
            values[name] = column
        else:
            values[name] = log.context[name].astype(str)
    notes = []
    n_bins = int((log.rounds / ROUNDS_PER_CELL) ** (1 / (len(continuous) + 1)))
    n_bins = min(max(n_bins, 2), MAX_VALUES)
    for name in continuous:
        bins = pd.qcut(values[name], n_bins, labels=False, duplicates="drop")
        values[name] = bins.astype(str)
        notes.append(
            f"For frequencies, the context '{name}' was divided into {bins.nunique()} bins of "
            "about equally many rounds."
        )
    rounds_by_context = pd.DataFrame(values).groupby(list(values), sort=False)
    context = np.asarray(rounds_by_context.ngroup(), dtype=np.intp)
    counts = np.bincount(context)
    is_rare = counts < MIN_ROUNDS_PER_CONTEXT
    if is_rare.sum() > 1:
        context = np.where(is_rare[context], len(counts), context)
        context = np.asarray(pd.factorize(context)[0])
        notes.append(
            f"For frequencies, {is_rare.sum():,} contexts of fewer than {MIN_ROUNDS_PER_CONTEXT} "
            f"rounds ({counts[is_rare].sum():,} rounds together) are one; a classifier would tell "
            "them apart."
        )
    return context, " ".join(notes)


def _frequencies_by_cell(log: BanditLog, cells: Indices) -> Array:
    """Return the relative frequency of each action in the cell of each round (T, A)."""
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
        with refused_in_one_line():
            fitted: Any = clone(classifier)
            fitted.fit(features[~is_held_out], log.chosen[~is_held_out])
            predicted = fitted.predict_proba(features[is_held_out])
        probability[np.ix_(np.flatnonzero(is_held_out), fitted.classes_)] = predicted
    # An action that was taken had some probability, whatever the classifier says.
    of_chosen = probability[np.arange(log.rounds), log.chosen]
    probability[np.arange(log.rounds), log.chosen] = np.maximum(of_chosen, 1.0 / log.rounds)
    return np.asarray(probability / probability.sum(1, keepdims=True))
