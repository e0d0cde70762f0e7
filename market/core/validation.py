"""Arguments as checked numbers and arrays: every refusal names the argument, the value, the cure.

Each function returns the checked value, or raises ``ParameterError``, which is a ``UserError``.
Whoever calls for a key of a scenario file puts that key in front of the line.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.errors import ParameterError, brief, closest


class Rule(NamedTuple):
    """What numbers must be, and what to change where they are not."""

    holds: Callable[[Array], Any]
    cure: str


FINITE = Rule(np.isfinite, "give finite numbers")
LARGEST = 1e100  # in size: products of a few parameters must be numbers, too
MODERATE = Rule(lambda found: np.abs(found) <= LARGEST, f"give numbers of at most {LARGEST:g}")
POSITIVE = Rule(lambda found: found > 0, "must be positive")
NOT_NEGATIVE = Rule(lambda found: found >= 0, "must be at least 0")
SHARE = Rule(lambda found: (found >= 0) & (found <= 1), "give numbers in [0, 1]")


def numbers(name: str, value: Any, rule: Rule = FINITE) -> Array:
    """Return a number, a list or a table of finite numbers, its rows equally long, as an array."""
    try:
        given = np.asarray(value)
    except (TypeError, ValueError, OverflowError):  # rows of different lengths, or no array
        given = np.asarray("ragged")
    if given.dtype.kind not in "iuf":  # text, truth values and tables of a file are no numbers
        cure = ", all rows equally long" if isinstance(value, list) else ""
        raise ParameterError(f"{name} = {brief(value)}: give numbers{cure}")
    found = given.astype(np.float64)
    for one in (FINITE, MODERATE, rule):
        require(name, found, one.holds(found), one.cure)
    return found


def require(name: str, values: Array, holds: Any, cure: str) -> None:
    """Raise ValueError with the first value for which a condition, of its shape, does not hold."""
    shown, fine = np.broadcast_arrays(values, holds)
    if not fine.all():
        raise ParameterError(f"{name} = {shown[~fine].flat[0]:g}: {cure}")


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
    found, trailing = numbers(name, value, rule), axes.count("x") + 1
    if found.ndim < trailing or 0 in found.shape:
        raise ParameterError(f"{name} have shape {found.shape}; give {axes}, agents first")
    shapes = [found.shape[: found.ndim - trailing], *(other.shape for other in others)]
    try:
        agents = np.broadcast_shapes(*shapes)
    except ValueError:
        told = " and ".join(str(shape) for shape in shapes if shape)
        raise ParameterError(
            f"{name} and the other parameters stack agents {told}; give as many of each"
        ) from None
    return np.broadcast_to(found, (*agents, *found.shape[found.ndim - trailing :]))


def check_int(name: str, value: Any, *, least: int, below: int | None = None) -> int:
    """Return a whole number in its range."""
    fits = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= least
    if not fits or (below is not None and value >= below):
        above = "" if below is None else f" and below {below}"
        told = f"{name} is {brief(value)}; give a whole number of at least {least}{above}"
        raise ParameterError(told)
    return int(value)


def check_range(name: str, value: Any, low: float, high: float) -> float:
    """Return a number between two others."""
    found = numbers(name, value)
    if found.ndim or not low <= found <= high:
        wanted = f"in [{low:g}, {high:g}]" if high < np.inf else f"of at least {low:g}"
        raise ParameterError(f"{name} is {brief(value)}; give a number {wanted}")
    return float(found)


def check_positive(name: str, value: Any) -> float:
    """Return a number above 0."""
    found = numbers(name, value, POSITIVE)
    if found.ndim:
        raise ParameterError(f"{name} is {brief(value)}; give one number above 0")
    return float(found)


def check_probability(name: str, value: Any) -> float:
    """Return a number above 0 and below 1."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or isinstance(value, np.complexfloating) or not 0 < value < 1:
        raise ParameterError(f"{name} = {brief(value)}: give a number between 0 and 1")
    return float(value)


def check_name(what: str, value: Any, known: Iterable[str]) -> str:
    """Return a name that is among those known; ``what`` it is a name of goes into the line."""
    names = list(known)
    if not isinstance(value, str) or value not in names:
        shown = f"'{value}'" if isinstance(value, str) else brief(value)
        raise ParameterError(f"no {what} {shown}; {closest(str(value), names)}")
    return value
