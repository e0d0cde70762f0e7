"""Tables in: features, outcomes, weights and groups are checked, policies are asked about the rows.

A policy is a fitted classifier or any other object with ``predict``, which is asked about the whole
table at once, or a callable, which is asked row by row: with the row as an array or, where the
table has column names, as a ``Context`` that also answers ``row["month"]``. Choose a policy on
other rows than those of ``fit``: otherwise the rows are no independent sample given the policies,
and no bound holds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, validate_data

from regretless.forecaster.offline.continuous_actions import snap
from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.errors import UserError
from regretless.market.records import Context


@dataclass(frozen=True, eq=False)
class Seen:
    """What a predictor sees of some rows: features (m, f) and the policies' suggestions (m, C)."""

    features: Array
    suggestions: Indices

    def __len__(self) -> int:
        return len(self.features)

    def __getitem__(self, rows: Any) -> "Seen":
        return Seen(self.features[rows], self.suggestions[rows])

    @property
    def joined(self) -> Array:
        """Features and suggestions (m, f + C)."""
        return np.concatenate([self.features, self.suggestions.astype(np.float64)], axis=1)


@dataclass(frozen=True, eq=False)
class Examples:
    """Rows with their outcomes (m, d) in [0, 1], weights (m,) and groups (m,) or None."""

    seen: Seen
    outcomes: Array
    weights: Array
    groups: Any = None

    def __getitem__(self, rows: Mask | Indices) -> "Examples":
        groups = None if self.groups is None else self.groups[rows]
        return Examples(self.seen[rows], self.outcomes[rows], self.weights[rows], groups)

    @property
    def exchangeable(self) -> bool:
        """Whether neither groups nor weights say that the rows are not i.i.d. draws."""
        return self.groups is None and bool((self.weights == self.weights[0]).all())


def checked_features(estimator: Any, X: Any, *, rows: int | None = None) -> Array:
    """Return the features (m, f), by scikit-learn's rules; None and [] are no features."""
    fitting = rows is not None
    if fitting and (X is None or (isinstance(X, list) and not X)):
        X = np.empty((rows, 0))  # noqa: N806 - scikit-learn's name
    try:
        given: Array = validate_data(
            estimator, X, reset=fitting, dtype="float64", ensure_min_features=0
        )
    except ValueError as error:
        raise UserError(f"X: {' '.join(str(error).split())}") from error
    if fitting and len(given) != rows:
        raise UserError(f"X has {len(given)} rows and Y {rows}; give as many")
    return given


def checked_outcomes(Y: Any) -> Array:
    """Return outcomes (m, d) as numbers; a one-dimensional list is d = 1, UserError for others."""
    if Y is None:
        raise UserError("fit requires y to be passed, but the target y is None; give outcomes")
    try:
        table = check_array(Y, ensure_2d=False, dtype="float64", input_name="Y")
    except ValueError as error:
        raise UserError(f"Y: {' '.join(str(error).split())}") from error
    return np.asarray(table.reshape(len(table), -1))


def checked_weights(given: Any, rows: int) -> Array:
    """Return ``sample_weight`` (m,), ones if it is None; UserError where one is negative."""
    weights = np.ones(rows) if given is None else np.asarray(given, dtype=np.float64)
    fine = weights.shape == (rows,) and np.isfinite(weights).all()
    if not (fine and (weights >= 0).all() and weights.any()):
        raise UserError("sample_weight: give one number of at least 0 for each row, not all zero")
    return weights


def checked_groups(given: Any, rows: int) -> Any:
    """Return ``groups`` (m,) or None; UserError where they do not fit the rows."""
    groups = None if given is None else np.asarray(given)
    if groups is not None and groups.shape != (rows,):
        raise UserError(f"groups has shape {groups.shape} and Y {rows} rows; give one each")
    if groups is not None and (groups == groups[0]).all():
        raise UserError("groups: all rows are in one group; give at least two, or leave groups out")
    return groups


def ends_of(given: Any, outcomes: Array) -> Array:
    """Return the numbers (d, 2) that become 0 and 1: ``given``, the estimator's ``ends``.

    None takes the least and the greatest outcome, and 0 and 1 for a column in [0, 1].
    """
    if given is not None:
        pairs = np.asarray(given, dtype=np.float64)
        fine = pairs.shape == (outcomes.shape[1], 2) and np.isfinite(pairs).all()
        if not (fine and (pairs[:, 0] != pairs[:, 1]).all()):
            raise UserError(f"ends = {given!r}: give a low and a high for each outcome")
        return pairs
    low, high = outcomes.min(0), outcomes.max(0)
    inside = (low >= 0) & (high <= 1)
    low = np.where(inside, 0.0, low)
    return np.stack([low, np.where(inside | (high == low), low + 1.0, high)], axis=1)


def scaled(outcomes: Array, ends: Array) -> Array:
    """Map outcomes (m, d) into [0, 1]; values beyond the ends are clipped."""
    low, high = ends.T
    return np.asarray(np.clip((outcomes - low) / (high - low), 0.0, 1.0))


def suggested(
    policies: Sequence[Any], X: Any, rows: int, *, actions: int | None, net: Array | None = None
) -> Indices:
    """Ask every policy about every row, once: actions (m, C), rounded to a net where there is one.

    UserError if a policy suggests what is no action; ``actions`` is None where losses have
    different numbers of them.
    """
    if policies and net is None and actions is None:
        raise UserError("policies need losses with one number of actions; fit them apart")
    answers = [_answers(policy, X, rows) for policy in policies]
    if net is not None:
        columns = [snap(own, net) for own in answers]
    else:
        pairs = zip(policies, answers, strict=True)
        columns = [_actions(policy, own, rows, actions or 0) for policy, own in pairs]
    return np.array(columns, dtype=np.intp).reshape(len(policies), rows).T


def _answers(policy: Any, X: Any, rows: int) -> Any:
    table = np.empty((rows, 0)) if X is None else X
    if hasattr(policy, "predict"):
        return np.asarray(policy.predict(table))
    values, names = np.asarray(table), getattr(X, "columns", None)
    if names is None:
        return np.array([policy(row) for row in values])
    columns = tuple(str(name) for name in names)
    return np.array([policy(Context(columns, row)) for row in values.astype(np.float64)])


def _actions(policy: Any, answers: Any, rows: int, actions: int) -> Indices:
    name = getattr(policy, "__name__", type(policy).__name__)
    try:
        numbers = np.asarray(answers, dtype=np.float64).reshape(rows)
    except (TypeError, ValueError) as error:
        raise UserError(f"policy {name}: give one action per row") from error
    fine = (numbers >= 0) & (numbers < actions) & (numbers % 1 == 0)
    if not fine.all():
        wrong = numbers[~fine][0]
        raise UserError(f"policy {name} suggests {wrong:g}; actions are 0 to {actions - 1}")
    return numbers.astype(np.intp)


@dataclass(frozen=True)
class Threshold:
    """The policy with one action where feature ``column`` is below ``at``, else another."""

    column: int
    at: float
    below: int
    above: int

    def predict(self, X: ArrayLike) -> Indices:
        """Suggest an action for each row of a table (m, f): (m,)."""
        values = np.asarray(X, dtype=np.float64)[:, self.column]
        return np.where(values >= self.at, self.above, self.below).astype(np.intp)
