"""A deep copy of objects that are made of arrays and plain values, in one pass.

An adversary that looks ahead copies players in every round (``market.game.lookahead``). What
``copy.deepcopy`` does for every object, to ask it how it wants to be copied, takes longer there
than the arrays. Here objects whose class leaves that to Python are copied attribute by attribute;
one that has a way of its own raises ``NotPlainError``, and its owner is left to ``copy.deepcopy``.
"""

import copyreg
import operator
from collections.abc import Callable
from enum import Enum
from functools import cache
from types import BuiltinFunctionType, FunctionType, NoneType
from typing import Any

import numpy as np

# Of these the copy holds the same object. An object of a user's own kind of number or text may have
# attributes that change; a structured scalar (``np.void``) can be written to.
UNCHANGING = {
    *(NoneType, bool, int, float, complex, str, bytes, slice, range),
    *(FunctionType, BuiltinFunctionType),
}
UNCHANGING_WITH_RELATIVES = (
    *(type, Enum, np.dtype),
    *(np.bool_, np.number, np.character, np.datetime64),
)
# methods by which a class may say how it is copied
OWN_WAYS = (
    *("__deepcopy__", "__getnewargs__", "__getnewargs_ex__", "__setstate__"),
    *("__reduce__", "__reduce_ex__", "__getstate__", "__new__"),
)


class NotPlainError(Exception):
    """An object has a way of its own to be copied."""


@cache
def is_unchanging(kind: type) -> bool:
    """Whether objects of a class may be shared with copies."""
    return kind in UNCHANGING or issubclass(kind, UNCHANGING_WITH_RELATIVES)


@cache
def is_named_tuple(kind: type) -> bool:
    """Whether a class is one of ``NamedTuple``, whose objects hold nothing but their elements."""
    return issubclass(kind, tuple) and hasattr(kind, "_fields") and not kind.__dictoffset__


@cache
def is_plain(kind: type) -> bool:
    """Whether a class leaves it to Python how its objects are copied: attribute by attribute."""
    if any(base_class.__dict__.get("__slots__") for base_class in kind.__mro__):
        return False
    if not kind.__dictoffset__:  # its objects have no attributes: a bare ``object()``, a lock
        return False
    if kind in copyreg.dispatch_table:
        return False
    return all(getattr(kind, name, None) is getattr(object, name, None) for name in OWN_WAYS)


def plain_copy(value: Any, substitute: Callable[[Any], Any], memo: dict[int, Any]) -> Any:
    """Return a deep copy of a value, with other objects in the place of some.

    Parameters
    ----------
    value : object
        Arrays keep their layout in memory.
    substitute : callable
        Asked once about every object that is neither a container, an array nor a plain value. It
        returns what the copy holds in the object's place, or None for a copy.
    memo : dict
        What is copied or replaced already: the copy of an object, by the object's id. It is added
        to, and holds what another call needs to copy a second value that shares parts with this.

    Raises
    ------
    NotPlainError
        If an object has a way of its own to be copied.
    """
    kind: Any = type(value)
    if is_unchanging(kind):
        return value
    if id(value) in memo:
        return memo[id(value)]
    copied: Any
    if kind is np.ndarray and not value.dtype.hasobject:
        copied = value.copy(order="K")
        memo[id(value)] = copied
        return copied
    if kind is list:
        copied = []
        memo[id(value)] = copied
        copied.extend([plain_copy(element, substitute, memo) for element in value])
        return copied
    if kind is tuple or is_named_tuple(kind):
        elements = [plain_copy(element, substitute, memo) for element in value]
        if all(map(operator.is_, elements, value)):
            copied = value
        elif kind is tuple:
            copied = tuple(elements)
        else:  # a named one
            copied = kind(*elements)
        return memo.setdefault(id(value), copied)
    if kind is dict:
        copied = {}
        memo[id(value)] = copied
        keys = [plain_copy(key, substitute, memo) for key in value]
        values = [plain_copy(element, substitute, memo) for element in value.values()]
        copied.update(zip(keys, values, strict=True))
        return copied
    replacement = substitute(value)
    if replacement is not None:
        memo[id(value)] = replacement
        return replacement
    if not is_plain(kind):
        raise NotPlainError(kind.__name__)
    copied = object.__new__(kind)
    memo[id(value)] = copied
    attributes = vars(copied)
    for name, attribute in vars(value).items():
        attributes[name] = plain_copy(attribute, substitute, memo)
    return copied
