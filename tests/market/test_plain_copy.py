"""Copies of objects that are made of arrays and plain values."""

import copyreg
from enum import Enum
from threading import Lock
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from regretless.market.core.plain_copy import NotPlainError, plain_copy


class Pair(NamedTuple):
    """Two things that belong together."""

    first: Any
    second: Any


class Holder:
    """Holds whatever it is given."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


class Shared:
    """Stands for what copies share."""


class SaysHow:
    """Says itself how it is copied."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "SaysHow":
        return self


class Slotted:
    """Keeps its attributes elsewhere."""

    __slots__ = ("value",)


class Reading(float):
    """A number that may have attributes."""


class LabelledPair(Pair):
    """A pair that may have attributes."""


class Registered:
    """Is copied as its module has registered."""


copyreg.pickle(Registered, lambda _: (Registered, ()))


class Season(Enum):
    """What copies share."""

    WINTER = 1


def copy_of(value: Any) -> Any:
    """Return a plain copy in which what is ``Shared`` is shared."""
    return plain_copy(value, lambda part: part if isinstance(part, Shared) else None, memo={})


def test_a_copy_has_arrays_of_its_own_in_the_same_layout() -> None:
    table = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    holder = Holder(sums=Pair([table], {"t": 3}))
    copied = copy_of(holder)
    copied_table = copied.sums.first[0]
    copied_table += 1.0
    assert copied_table.flags.f_contiguous
    assert table[1, 2] == 5.0
    assert copied_table[1, 2] == 6.0
    assert copied.sums.second == {"t": 3}


def test_parts_that_were_one_object_are_one_in_the_copy() -> None:
    counts = np.zeros(2)
    holder = Holder(counts=counts, views=[counts])
    holder.members = (holder,)
    copied = copy_of(holder)
    assert copied.views[0] is copied.counts
    assert copied.members[0] is copied


def test_what_is_put_in_the_place_of_a_part_is_not_copied() -> None:
    shared = Shared()
    copied = copy_of(Holder(parts=[shared, shared]))
    assert copied.parts == [shared, shared]


@pytest.mark.parametrize(
    "value",
    [
        SaysHow(),
        Slotted(),
        {1, 2},
        SimpleNamespace(a=1),
        pytest.param(object(), id="an-object-without-attributes"),
        pytest.param(Lock(), id="a-lock"),
        pytest.param(Reading(1.0), id="a-number-with-attributes"),
        pytest.param(LabelledPair(1, 2), id="a-pair-with-attributes"),
        pytest.param(Registered(), id="a-registered-class"),
        pytest.param(np.zeros(1, dtype=[("price", float)])[0], id="a-structured-scalar"),
    ],
)
def test_an_object_with_a_way_of_its_own_is_refused(value: object) -> None:
    with pytest.raises(NotPlainError):
        copy_of(Holder(value=value))


def test_plain_values_and_members_of_an_enumeration_are_shared() -> None:
    values = [1, 0.5, "a", None, np.float64(0.5), np.str_("a"), np.dtype(float), int]
    values.append(Season.WINTER)
    for value, copied in zip(values, copy_of(values), strict=True):
        assert copied is value
