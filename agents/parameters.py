"""Parameters as checked numbers and arrays; ValueErrors name the parameter, the value, the cure."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.errors import brief


class Rule(NamedTuple):
    """What numbers must be, and what to change where they are not."""

    holds: Callable[[Array], Any]
    cure: str


FINITE = Rule(np.isfinite, "give finite numbers")
POSITIVE = Rule(lambda found: found > 0, "must be positive")
NOT_NEGATIVE = Rule(lambda found: found >= 0, "must be at least 0")
SHARE = Rule(lambda found: (found >= 0) & (found <= 1), "give numbers in [0, 1]")


def numbers(name: str, value: Any, rule: Rule = FINITE) -> Array:
    """Return a number, a list or a table of finite numbers, its rows equally long, as an array."""
    try:
        given = np.asarray(value)
    except ValueError:  # rows of different lengths
        given = np.asarray("ragged")
    if given.dtype.kind not in "iuf":  # text, truth values and tables of a file are no numbers
        cure = ", all rows equally long" if isinstance(value, list) else ""
        raise ValueError(f"{name} = {brief(value)}: give numbers{cure}")
    found = given.astype(np.float64)
    for one in (FINITE, rule):
        require(name, found, one.holds(found), one.cure)
    return found


def require(name: str, values: Array, holds: Any, cure: str) -> None:
    """Raise ValueError with the first value for which a condition, of its shape, does not hold."""
    shown, fine = np.broadcast_arrays(values, holds)
    if not fine.all():
        raise ValueError(f"{name} = {shown[~fine].flat[0]:g}: {cure}")


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
        raise ValueError(f"{name} have shape {found.shape}; give {axes}, agents first")
    shapes = [found.shape[: found.ndim - trailing], *(other.shape for other in others)]
    try:
        agents = np.broadcast_shapes(*shapes)
    except ValueError:
        told = " and ".join(str(shape) for shape in shapes if shape)
        raise ValueError(
            f"{name} and the other parameters stack agents {told}; give as many of each"
        ) from None
    return np.broadcast_to(found, (*agents, *found.shape[found.ndim - trailing :]))


def check_int(name: str, value: Any, *, least: int, below: int | None = None) -> int:
    """Return a whole number in its range."""
    fits = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= least
    if not fits or (below is not None and value >= below):
        above = "" if below is None else f" and below {below}"
        told = f"{name} is {brief(value)}; give a whole number of at least {least}{above}"
        raise ValueError(told)
    return int(value)


def check_range(name: str, value: Any, low: float, high: float) -> float:
    """Return a number between two others."""
    found = numbers(name, value)
    if found.ndim or not low <= found <= high:
        wanted = f"in [{low:g}, {high:g}]" if high < np.inf else f"of at least {low:g}"
        raise ValueError(f"{name} is {brief(value)}; give a number {wanted}")
    return float(found)
