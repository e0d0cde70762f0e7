"""Tables in, suggestions out: what the policies say about every row, asked once.

A predictor sees a row only through the tuple of its policies' suggestions. Anything with a
``predict`` (a fitted classifier, a rule of ``policies``) is asked about the whole table at once;
a plain callable row by row, with the row as an array or, where the table has column names, as a
``Context`` that also answers ``row["month"]``.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regretless.forecaster.omniprediction.nets import snap
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.errors import UserError
from regretless.market.records import Context


def checked_features(X: Any, rows: int | None = None) -> Array:
    """Return the features (m, f) as numbers; None and an empty list are no features.

    Parameters
    ----------
    X : array (m, f), DataFrame or None
    rows : int, optional
        m, which no features leave open.

    Raises
    ------
    UserError
        If the table is not two-dimensional, has no rows, or holds a value that is not finite.
    TypeError
        If it holds something that is no number.
    """
    if X is None or (rows is not None and isinstance(X, list) and not X):
        if rows is None:
            raise UserError("X = None: give a table with one row per prediction")
        return np.empty((rows, 0))
    if hasattr(X, "toarray"):
        raise UserError("X is a sparse matrix; give a dense one, X.toarray()")
    given = np.asarray(X)
    if np.iscomplexobj(given):
        raise UserError("X: Complex data not supported; give real numbers")
    if given.ndim != 2:
        raise UserError(
            f"X: Expected 2D array, got {given.ndim}D array instead; "
            "Reshape your data with X.reshape(-1, 1) for one feature"
        )
    if not len(given):
        raise UserError(f"X: Found array with 0 sample(s) (shape={given.shape}); give some rows")
    table = given.astype(np.float64)
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0]
        kind = "NaN" if np.isnan(table[row, column]) else "inf"
        raise UserError(f"X holds {kind} in row {row}, column {column}; fill it or drop the row")
    return table


def named(X: Any, known: Any) -> NDArray[Any] | None:
    """Return the columns' names of a table that has them; UserError if they are not ``known``."""
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    names = np.asarray(columns, dtype=object)
    if known is not None and list(names) != list(known):
        raise UserError(
            "The feature names should match those that were passed during fit: "
            f"{', '.join(known)}; the table has {', '.join(names)}"
        )
    return names


def checked_outcomes(Y: Any) -> Array:
    """Return outcomes (m, d) as numbers; a one-dimensional list is d = 1.

    Raises
    ------
    UserError
        If there are none, or one is not a finite number.
    """
    if Y is None:
        raise UserError("fit requires y to be passed, but the target y is None; give outcomes")
    given = np.asarray(Y)
    if np.iscomplexobj(given):
        raise UserError("Y: Complex data not supported; give real numbers")
    if given.ndim not in (1, 2):
        raise UserError(f"Y has shape {given.shape}; give (rows,) or (rows, outcomes)")
    if not given.size:
        raise UserError(f"Y has shape {given.shape}; give at least one row and one outcome")
    try:
        table = given.astype(np.float64).reshape(len(given), -1)
    except (TypeError, ValueError) as error:
        raise UserError(f"Y holds something that is no number: {error}; give numbers") from error
    wrong = np.argwhere(~np.isfinite(table))
    if len(wrong):
        row, column = wrong[0]
        raise UserError(
            f"Y holds {table[row, column]:g} in row {row}, column {column}; "
            "leave none missing (no NaN or inf)"
        )
    return table


def ends_of(given: Any, outcomes: Array) -> Array:
    """Return the numbers (d, 2) that become 0 and 1; those of a column in [0, 1] are 0 and 1.

    Parameters
    ----------
    given : sequence of pairs, or None
        The estimator's ``ends``; None takes the least and the greatest outcome.

    Raises
    ------
    UserError
        If they are not one pair of different numbers for each outcome.
    """
    if given is not None:
        pairs = np.asarray(given, dtype=np.float64)
        wide = (outcomes.shape[1], 2)
        fine = pairs.shape == wide and np.isfinite(pairs).all()
        if not (fine and (pairs[:, 0] != pairs[:, 1]).all()):
            raise UserError(f"ends = {given!r}: give a low and a high for each outcome")
        return pairs
    low, high = outcomes.min(0), outcomes.max(0)
    inside = (low >= 0) & (high <= 1)
    low = np.where(inside, 0.0, low)
    return np.stack([low, np.where(inside | (high == low), low + 1.0, high)], axis=1)


def scaled(outcomes: Array, ends: Array) -> Array:
    """Bring outcomes (m, d) into [0, 1]; what lies beyond the ends is clipped."""
    low, high = ends.T
    return np.asarray(np.clip((outcomes - low) / (high - low), 0.0, 1.0))


def suggested(
    policies: Sequence[Any], X: Any, rows: int, *, actions: int | None, net: Array | None = None
) -> Indices:
    """Ask every policy about every row, once.

    Parameters
    ----------
    X : array (m, f), DataFrame or None
    rows : int
        m.
    actions : int or None
        A; None where no policy is asked.
    net : array (N, k), optional
        Where actions are points of a cube: suggestions are snapped to it.

    Returns
    -------
    int array (m, C)

    Raises
    ------
    UserError
        If a policy suggests something that is no action.
    """
    table = np.empty((rows, len(policies)), dtype=np.intp)
    for j, policy in enumerate(policies):
        answers = _answers(policy, X, rows)
        if net is not None:
            table[:, j] = snap(answers, net)
            continue
        if actions is None:
            raise UserError("policies need losses with one number of actions; fit them apart")
        try:
            numbers = np.asarray(answers, dtype=np.float64).reshape(rows)
        except (TypeError, ValueError) as error:
            raise UserError(f"policy {called(policy)}: one action per row, please") from error
        fine = (numbers >= 0) & (numbers < actions) & (numbers % 1 == 0)
        if not fine.all():
            wrong = numbers[~fine][0]
            raise UserError(
                f"policy {called(policy)} suggests {wrong:g}; actions are 0 to {actions - 1}"
            )
        table[:, j] = numbers
    return table


def _answers(policy: Any, X: Any, rows: int) -> Any:
    if hasattr(policy, "predict"):
        return np.asarray(policy.predict(np.empty((rows, 0)) if X is None else X))
    return np.array([policy(row) for row in _rows(X, rows)])


def _rows(X: Any, rows: int) -> Sequence[Any]:
    if X is None:
        return [np.empty(0)] * rows
    names = getattr(X, "columns", None)
    table = np.asarray(X)
    if names is None:
        return list(table)
    columns = tuple(str(name) for name in names)
    return [Context(columns, row) for row in table.astype(np.float64)]


def called(policy: Any) -> str:
    """Return a policy's name for an error line."""
    return str(getattr(policy, "name", getattr(policy, "__name__", type(policy).__name__)))
