"""Arguments as checked numbers and arrays: every refusal names the argument, the value, the cure.

Each function returns the checked value, or raises ``ParameterError``, which is a ``UserError``.
Whoever calls for a key of a scenario file puts that key in front of the line.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regretless.market.core.arrays import Array, is_within_unit_cube
from regretless.market.core.errors import (
    ArgumentTypeError,
    ParameterError,
    UserError,
    brief,
    closest,
)
from regretless.market.core.paths import expanded


class Rule(NamedTuple):
    """What numbers must be, and what to change where they are not."""

    holds: Callable[[Array], Any]  # of an array: which of its numbers are as they must be
    hint: str


FINITE = Rule(np.isfinite, "give finite numbers")
LARGEST = 1e100  # in size: products of a few parameters must be numbers, too
ROUNDING = 1e-9  # by which what was computed may lie beyond [0, 1]
MODERATE = Rule(lambda values: np.abs(values) <= LARGEST, f"give numbers of at most {LARGEST:g}")
POSITIVE = Rule(lambda values: values > 0, "must be positive")
NOT_NEGATIVE = Rule(lambda values: values >= 0, "must be at least 0")
IN_UNIT_INTERVAL = Rule(lambda values: (values >= 0) & (values <= 1), "give numbers in [0, 1]")


def numbers(name: str, value: Any, rule: Rule = FINITE) -> Array:
    """Return a number, a list or a table of finite numbers, its rows equally long, as an array."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError):  # rows of different lengths, or no array
        array = np.asarray("ragged")
    if array.dtype.kind not in "iuf":  # text, truth values and tables of a file are no numbers
        hint = "give numbers"
        if isinstance(value, list):
            hint += ", all rows equally long"
        raise ParameterError(f"{name} = {brief(value)}: {hint}")
    checked = array.astype(np.float64)
    for requirement in (FINITE, MODERATE, rule):
        require(name, checked, requirement.holds(checked), requirement.hint)
    return checked


@contextmanager
def refused_in_one_line() -> Iterator[None]:
    """Turn what another library refuses of a user's arguments into a UserError."""
    try:
        yield
    except UserError:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        kind = ArgumentTypeError if isinstance(error, TypeError) else UserError
        raise kind(" ".join(str(error).split())) from error


def require(name: str, values: Array, holds: Any, hint: str) -> None:
    """Raise ParameterError with the first of the values for which a condition does not hold.

    ``holds`` are truth values that broadcast with ``values``.
    """
    broadcast_values, is_fine = np.broadcast_arrays(values, holds)
    if not is_fine.all():
        first_bad = broadcast_values[~is_fine].flat[0]
        raise ParameterError(f"{name} = {first_bad:g}: {hint}")


def table(
    name: str,
    value: Any,
    others: Sequence[Array] = (),
    *,
    axes: str = "actions x goods",
    rule: Rule = FINITE,
) -> Array:
    """Return a table (..., A, d), repeated over the agents that other parameters stack.

    ``others`` are arrays (...) of one number per agent, or one for all; ``axes`` the trailing ones.
    """
    entries = numbers(name, value, rule)
    trailing_axes = axes.count("x") + 1
    if entries.ndim < trailing_axes or 0 in entries.shape:
        raise ParameterError(f"{name} have shape {entries.shape}; give {axes}, agents first")
    agents_axes = entries.ndim - trailing_axes
    stacked_shapes = [entries.shape[:agents_axes], *(other.shape for other in others)]
    try:
        agents = np.broadcast_shapes(*stacked_shapes)
    except ValueError:
        shapes = " and ".join(str(shape) for shape in stacked_shapes if shape)
        raise ParameterError(
            f"{name} and the other parameters stack agents {shapes}; give as many of each"
        ) from None
    return np.broadcast_to(entries, (*agents, *entries.shape[agents_axes:]))


def check_int(name: str, value: Any, *, least: int, below: int | None = None) -> int:
    """Return a whole number in its range."""
    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    is_in_range = is_whole and value >= least and (below is None or value < below)
    if not is_in_range:
        hint = f"give a whole number of at least {least}"
        if below is not None:
            hint += f" and below {below}"
        raise ParameterError(f"{name} is {brief(value)}; {hint}")
    return int(value)


def check_range(name: str, value: Any, low: float, high: float) -> float:
    """Return a number between two others."""
    number = numbers(name, value)
    if number.ndim or not low <= number <= high:
        hint = f"give a number of at least {low:g}"
        if high < np.inf:
            hint = f"give a number in [{low:g}, {high:g}]"
        raise ParameterError(f"{name} is {brief(value)}; {hint}")
    return float(number)


def check_whole(name: str, value: Any, *, least: int, most: int) -> int:
    """Return a whole number between two others, which may be written as 7.0."""
    is_number = isinstance(value, int | float | np.integer | np.floating)
    if not is_number or isinstance(value, bool) or not least <= value <= most or value % 1:
        raise ParameterError(
            f"{name} is {brief(value)}; give a whole number from {least} to {most}"
        )
    return int(value)


def check_rate(name: str, value: Any) -> float:
    """Return a number above 0 and at most 1."""
    number = numbers(name, value)
    if number.ndim or not 0 < number <= 1:
        raise ParameterError(f"{name} is {brief(value)}; give a number in (0, 1]")
    return float(number)


def check_outcome(name: str, value: Any) -> Array:
    """Return outcomes as numbers: what did or did not happen, a truth value, is 1 or 0.

    Arrays of floating numbers, which every round passes, are returned as they are.
    """
    if type(value) is np.ndarray and value.dtype == np.float64:
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "fb":
        return value.astype(np.float64, copy=False)
    return numbers(name, value)


def check_unit_vector(name: str, value: Any, size: int) -> Array:
    """Return so many numbers in [0, 1], up to rounding, as a new array (size,).

    One number may be given alone.
    """
    vector = check_outcome(name, value).copy()
    if size == 1 and vector.ndim == 0:
        vector = vector.reshape(1)
    hint = "give numbers in [0, 1]"
    if vector.shape != (size,):
        raise ParameterError(f"{name} has shape {vector.shape}, not {(size,)}; {hint}")
    if not is_within_unit_cube(vector):  # most vectors are, and need no more checks
        is_within = (vector >= -ROUNDING) & (vector <= 1 + ROUNDING)
        if not is_within.all():
            require(name, vector, is_within, hint)
    return vector


def without_rounding(values: Array) -> Array:
    """Return numbers of which those that rounding left just beyond [0, 1] are at its nearer end.

    What is further away than ``ROUNDING``, and NaN, stays as it is.

    >>> without_rounding(np.array([1.0000000000000002, 0.5, 1.1])).tolist()
    [1.0, 0.5, 1.1]
    """
    clipped = np.clip(values, 0.0, 1.0)
    return np.where(np.abs(values - clipped) <= ROUNDING, clipped, values)


def check_positive(name: str, value: Any) -> float:
    """Return a number above 0."""
    number = numbers(name, value, POSITIVE)
    if number.ndim:
        raise ParameterError(f"{name} is {brief(value)}; give one number above 0")
    return float(number)


def check_probability(name: str, value: Any) -> float:
    """Return a number above 0 and below 1."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or isinstance(value, np.complexfloating) or not 0 < value < 1:
        raise ParameterError(f"{name} = {brief(value)}: give a number between 0 and 1")
    return float(value)


def check_path(name: str, value: Any) -> Path:
    """Return the path of a file, which need not be there, with a leading ``~`` expanded."""
    is_path = isinstance(value, str | os.PathLike) and isinstance(os.fspath(value), str)
    if not is_path or not os.fspath(value) or "\0" in os.fspath(value):
        raise ParameterError(f"{name} = {brief(value)}: give the path of a file")
    return expanded(value, name)


def check_name(kind: str, value: Any, accepted: Iterable[str]) -> str:
    """Return a name that is among the accepted ones; its kind stands in the error line."""
    names = list(accepted)
    if isinstance(value, str):
        if value in names:
            return value
        raise ParameterError(f"no {kind} '{value}'; {closest(value, names)}")
    raise ParameterError(f"no {kind} {brief(value)}; {closest(str(value), names)}")
