"""What users give an ``OnlineOmnipredictor``, checked: a refusal names the argument and the cure.

The checks of single numbers and names are those of ``market/core/validation.py``. A function here
returns its argument in the form in which the omnipredictor keeps it, or raises ``UserError``.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError, brief, closest
from regretless.market.core.validation import numbers
from regretless.market.losses import Convex1D, Loss

MAX_WIDTHS_BEYOND = 1000.0  # widths of the scale that an outcome may lie beyond it


class FeatureWarning(UserWarning):
    """A context lacks a feature that earlier ones had, or has one that none had.

    Each name is said once.
    """


def checked_table(name: str, value: Any, kind: str) -> dict[str, Any]:
    """Return a mapping from text as a dictionary; None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise UserError(f"{name} = {brief(value)}: give {kind} by name, such as {{'store': ...}}")
    return dict(value)


def checked_losses(losses: Any) -> dict[str, Loss]:
    """Return single losses by name, of equally many outcomes."""
    by_name = checked_table("losses", losses, "single losses")
    if not by_name:
        raise UserError("losses: there are none; give one by name")
    for name, loss in by_name.items():
        if not isinstance(loss, Loss) or loss.stack:
            raise UserError(f"losses['{name}'] is {brief(loss)}; give a single loss")
    return by_name


def checked_scale(scale: Any, losses: Mapping[str, Loss]) -> dict[str, tuple[float, float]]:
    """Return what becomes 0 and 1 by the name of each outcome; empty where outcomes are in [0, 1].

    A pair alone is the scale of one outcome, called "y". Without a scale, orders say it: where all
    losses are of orders of one good and an order is above 1, outcomes are from 0 to the largest
    order. Demand beyond it falls short by as much for every order, so that no decision changes.
    """
    if scale is None:
        return scale_of_orders(losses)
    is_pair = isinstance(scale, tuple | list | np.ndarray) and np.shape(scale) == (2,)
    if is_pair and {loss.outcomes for loss in losses.values()} == {1}:
        scale = {"y": scale}
    if not isinstance(scale, Mapping):
        hint = "give (low, high) by the name of each outcome, such as {'demand': (0, 260)}"
        raise UserError(f"scale = {brief(scale)}: {hint}")
    by_name = checked_table("scale", scale, "(low, high)")
    return {
        name: checked_interval(f"scale['{name}']", interval) for name, interval in by_name.items()
    }


def checked_interval(name: str, interval: Any) -> tuple[float, float]:
    """Return two finite numbers, the first below the second."""
    try:
        pair = numbers(name, interval)
    except ValueError as error:
        raise UserError(f"{name} = {brief(interval)}: give (low, high), two numbers") from error
    if pair.shape != (2,) or not pair[0] < pair[1]:
        raise UserError(f"{name} = {brief(interval)}: give (low, high), low below high")
    if not np.isfinite(pair[1] - pair[0]) or pair[0] + (pair[1] - pair[0]) / 2 in pair:
        raise UserError(f"{name} = {brief(interval)}: give ends that differ by more than rounding")
    return float(pair[0]), float(pair[1])


def scale_of_orders(losses: Mapping[str, Loss]) -> dict[str, tuple[float, float]]:
    """Return the scale that orders say, empty where none is above 1; UserError where others differ.

    Of one outcome all losses must be of orders: another loss may mean an outcome in [0, 1].
    """
    largest_order: dict[str, float] = {}  # of every loss of orders
    for name, loss in losses.items():
        if isinstance(loss, Convex1D) and loss.kinks.shape[-1] == 1:
            largest_order[name] = float(loss.knots.max())
    largest = max(largest_order.values(), default=0.0)
    if largest <= 1.0:
        return {}
    if len(largest_order) < len(losses) or {loss.outcomes for loss in losses.values()} != {1}:
        name = max(largest_order, key=lambda key: largest_order[key])
        cure = f"give scale, (low, high) by the name of each outcome, such as (0, {largest:g})"
        raise UserError(f"losses['{name}'] has orders up to {largest:g}, above 1; {cure}")
    return {"y": (0.0, largest)}


def checked_forecasts(forecasts: Any) -> dict[str, list[str]]:
    """Return the columns of each forecast by its name; a single column may be given as text."""
    columns_of: dict[str, list[str]] = {}
    for name, columns in checked_table("forecasts", forecasts, "columns of the context").items():
        column_names = [columns] if isinstance(columns, str) else columns
        is_list = isinstance(column_names, Sequence | np.ndarray) and np.ndim(column_names) == 1
        if not is_list or not all(isinstance(column, str) for column in column_names):
            cure = "give the name of a column of the context for each outcome"
            raise UserError(f"forecasts['{name}'] = {brief(columns)}: {cure}")
        columns_of[name] = [str(column) for column in column_names]
    return columns_of


def checked_actions(actions: Any) -> dict[str, list[Any]]:
    """Return what the actions of losses are called, each name once."""
    names_of: dict[str, list[Any]] = {}
    for loss, names in checked_table("actions", actions, "names of actions").items():
        hint = "give a list of their names, text or numbers, each once"
        if isinstance(names, str | bytes | Mapping) or not hasattr(names, "__len__"):
            raise UserError(f"actions['{loss}'] = {brief(names)}: {hint}")
        plain_names = [name.item() if isinstance(name, np.generic) else name for name in names]
        if not all(isinstance(name, str | int | float) for name in plain_names):
            raise UserError(f"actions['{loss}'] = {brief(names)}: {hint}")
        if len(set(plain_names)) < len(plain_names):
            raise UserError(f"actions['{loss}'] = {brief(names)}: {hint}")
        names_of[loss] = plain_names
    return names_of


def checked_policies(policies: Any) -> dict[str, dict[str, Any]]:
    """Return rules by the name of a loss and their own; each a function or a table."""
    rules_of: dict[str, dict[str, Any]] = {}
    for loss, rules in checked_table("policies", policies, "rules").items():
        by_name = checked_table(f"policies['{loss}']", rules, "rules")
        for name, rule in by_name.items():
            if not callable(rule) and not isinstance(rule, str | Mapping):
                hint = "give a function of the context, or a table {'kind': ...}"
                raise UserError(f"policies['{loss}']['{name}'] = {brief(rule)}: {hint}")
        rules_of[loss] = by_name
    return rules_of


def check_key(key: Any) -> str:
    """Return the key of a forecast whose outcome comes late, as text."""
    is_key = isinstance(key, str | int | np.integer | date | np.datetime64)
    if not is_key or isinstance(key, bool):
        raise UserError(f"key = {brief(key)}: give text, a whole number or a date")
    return str(key)


def outcome_vector(y: Any, names: Sequence[str]) -> Array | None:
    """Return an outcome as finite numbers (d,); None where one is missing.

    ``y`` is a number, a row of numbers or a mapping by the ``names`` of the outcomes. Missing are
    None, NaN, ``pandas.NA`` and ``pandas.NaT``.
    """
    if isinstance(y, Mapping):
        for name in y:
            if name not in names:
                raise UserError(f"no outcome {brief(name)}; {closest(str(name), names)}")
        values = [y.get(name) for name in names]
    elif isinstance(y, np.ndarray):
        values = list(np.atleast_1d(y))  # an array of no dimension is one number
    elif isinstance(y, list | tuple | pd.Series):
        values = list(y)
    else:
        values = [y] * len(names) if is_missing(y) else [y]
    if len(values) != len(names):
        raise UserError(f"y = {brief(y)}: give a number for each outcome, or None")
    vector = np.array([_outcome(value, y) for value in values])
    return None if np.isnan(vector).any() else vector


def _outcome(value: Any, y: Any) -> float:
    """Return one coordinate of an outcome y, NaN where it is missing."""
    if is_missing(value):
        return np.nan
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if not isinstance(value, int | float | np.number | np.bool_ | Decimal):
        raise UserError(f"y = {brief(y)}: give a number for each outcome, or None")
    try:
        number = float(value)
    except (ArithmeticError, TypeError, ValueError):  # of hundreds of digits, or complex
        number = np.inf
    if np.isinf(number):
        raise UserError(f"y = {brief(y)}: give finite numbers, or None where one is missing")
    return number


def check_not_absurd(unit: Array, names: Sequence[str], vector: Array) -> None:
    """Raise UserError if an outcome is too far beyond its scale to be clipped.

    ``unit`` (d,) is the outcome where its scale is [0, 1], ``vector`` (d,) as it was given.
    """
    for name, value, given in zip(names, unit, vector, strict=True):
        if not abs(value) <= MAX_WIDTHS_BEYOND:
            hint = "check its unit, or widen scale"
            raise UserError(f"y: '{name}' = {given:g} is {MAX_WIDTHS_BEYOND:g} scales away; {hint}")


def is_missing(value: Any) -> bool:
    """Whether a value stands for one that is not known."""
    if value is None or value is pd.NA or value is pd.NaT:
        return True
    return isinstance(value, float | np.floating | Decimal) and bool(np.isnan(float(value)))


def named_values(x: Any) -> dict[str, Any]:
    """Return the values of a context by name; those of a row are called ``x_0``, ``x_1`` and so on.

    A name may be a whole number, which stands for its text.
    """
    if x is None:
        return {}
    hint = "give a dictionary of numbers, words and dates, a row of them, or None"
    if isinstance(x, pd.Series):
        x = x.to_dict()
    if isinstance(x, Mapping):
        for name in x:
            if not isinstance(name, str | int | np.integer):
                raise UserError(f"x has a feature called {brief(name)}; name features by text")
        return {str(name): value for name, value in x.items()}
    is_row = isinstance(x, list | tuple | range | np.ndarray) and getattr(x, "ndim", 1) == 1
    if not is_row:
        raise UserError(f"x = {brief(x)}: {hint}")
    return {f"x_{i}": value for i, value in enumerate(x)}


def feature_line(missing: Sequence[str], new: Sequence[str]) -> str:
    """Say in one line which features are missing and which are new."""
    parts: list[str] = []
    if missing:
        parts.append(f"x lacks {', '.join(map(repr, missing))}, which earlier contexts had")
    if new:
        parts.append(f"x has {', '.join(map(repr, new))}, which no earlier context had")
    hint = "use the old name if it is the same feature" if missing and new else "check the names"
    return f"{'; '.join(parts)}; {hint}"
