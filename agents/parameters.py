"""Parameters as checked numbers and arrays; errors name the parameter, the value, the cure."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.errors import brief


def numbers(name: str, value: Any) -> Array:
    """Return a number, a list or a table of numbers as an array.

    ValueError if it holds anything but finite numbers, or its rows differ in length.

    Parameters
    ----------
    name : str
        What the user calls it.
    value : array_like
    """
    try:
        given = np.asarray(value)
    except ValueError:  # rows of different lengths
        given = np.asarray("ragged")
    if given.dtype.kind not in "iuf":  # text, truth values and tables of a file are no numbers
        cure = ", all rows equally long" if isinstance(value, list) else ""
        raise ValueError(f"{name} = {brief(value)}: give numbers{cure}")
    found = given.astype(np.float64)
    require(name, found, np.isfinite(found), "give finite numbers")
    return found


def require(name: str, values: Array, holds: Any, cure: str) -> None:
    """Raise ValueError with the first value for which a condition does not hold.

    Parameters
    ----------
    values : array
    holds : bool array
        Broadcasts against the values.
    cure : str
        What to change.
    """
    shown, fine = np.broadcast_arrays(values, holds)
    if not fine.all():
        raise ValueError(f"{name} = {shown[~fine].flat[0]:g}: {cure}")


def table(
    name: str, value: Any, others: Sequence[Array] = (), *, axes: str = "actions x goods"
) -> Array:
    """Return a table of numbers, repeated over the agents that other parameters stack.

    Returns array (..., A, d). ValueError if axes are missing, or the leading ones and the others do
    not fit together.

    Parameters
    ----------
    value : array_like (..., A, d)
    others : arrays (...)
        One number per agent, or one for all.
    axes : str
        The trailing axes; the others stack agents.
    """
    found, trailing = numbers(name, value), axes.count("x") + 1
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
    """Return a whole number; ValueError unless it is one, and in its range."""
    fits = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= least
    if not fits or (below is not None and value >= below):
        above = "" if below is None else f" and below {below}"
        raise ValueError(
            f"{name} is {brief(value)}; give a whole number of at least {least}{above}"
        )
    return int(value)


def check_range(name: str, value: Any, low: float, high: float) -> float:
    """Return a number; ValueError unless it is one between two others."""
    found = numbers(name, value)
    if found.ndim or not low <= found <= high:
        wanted = f"in [{low:g}, {high:g}]" if high < np.inf else f"of at least {low:g}"
        raise ValueError(f"{name} is {brief(value)}; give a number {wanted}")
    return float(found)
