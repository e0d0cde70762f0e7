"""Arrays at the border to a user's own code: what it is handed is read-only, its answer is checked.

The project's own methods are handed the arrays themselves: kernels are compiled once for arrays
that can be written and once for those that cannot.
"""

from copy import deepcopy
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.errors import UserError, brief
from regretless.market.core.own_code import is_ours, name_of

Numbers = TypeVar("Numbers", bound=NDArray[Any])


def sealed(array: Numbers) -> Numbers:
    """Return a view of an array that cannot be written."""
    view = array.view()
    view.flags.writeable = False
    return view


def kept(array: Any) -> NDArray[Any]:
    """Return what nobody can write: the array itself if it is read-only, else a copy."""
    if isinstance(array, np.ndarray) and not array.flags.writeable:
        return array
    copied = np.array(array)
    copied.flags.writeable = False
    return copied


def handed(method: Any, array: Numbers) -> Numbers:
    """Return what a method is handed: the array itself if it is ours, else a read-only view."""
    return array if is_ours(method) else sealed(array)


def lent(maker: Any, value: Any) -> Any:
    """Return a parameter as a maker is handed it.

    If the maker is not ours, an array is read-only, and a list or a table is a copy.
    """
    if is_ours(maker) or not isinstance(value, np.ndarray | list | dict):
        return value
    return sealed(value) if isinstance(value, np.ndarray) else deepcopy(value)


def numbers_of(method: Any, answer: Any, wanted: str) -> NDArray[Any]:
    """Return a method's answer as an array; UserError, with what is wanted, if it is no numbers."""
    try:
        array = np.asarray(answer)
    except (TypeError, ValueError):
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf":
        raise UserError(f"{name_of(method)} returned {brief(answer)}; {wanted}")
    return array
