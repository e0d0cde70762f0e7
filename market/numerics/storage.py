"""Large tables: in memory or in mapped files, and how weights lie in them.

Tables of which a pass visits one row each (``staggered``) begin on a cache line, and at
different places of a page: a processor takes writing and reading at equal places of two pages for
one, and waits.

A table of weights (K, A, n) is read action by action or, where many losses have one, number by
number with the actions side by side in memory: still of shape (K, A, n), but the last axis but one
has the step of one number, and actions fill vector registers (``best_response.expected_rows``).

Reading is all that such a pass waits for. Weights that 32 bits hold to the last bit are read at
half the width (``narrowed``) and widened before they are multiplied: the same sums again.
"""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from regretless.market.core.arrays import Array
from regretless.market.core.compiled import FEWEST, compiled

LARGE = 1 << 19  # numbers of a table that may be a file
LINE, STAGGER = 8, 5  # numbers of a cache line; lines between the places of two tables
_mapping = ContextVar("mapping", default=False)


@contextmanager
def on_disk(*, wanted: bool = True) -> Iterator[None]:
    """Let ``zeros`` be in temporary files that nobody else sees and that go with the table."""
    before = _mapping.set(wanted)
    try:
        yield
    finally:
        _mapping.reset(before)


def zeros(*shape: int) -> Array:
    """Return a table of zeros, a large one in a file where that is wanted (``on_disk``)."""
    size = int(np.prod(shape))
    if size < LARGE or not _mapping.get():
        return np.zeros(shape)
    with tempfile.TemporaryFile() as file:
        if hasattr(os, "posix_fallocate"):  # a disk that is full says so now
            os.posix_fallocate(file.fileno(), 0, 8 * size)
        return np.asarray(np.memmap(file, np.float64, "w+", shape=shape))


def staggered(*shapes: tuple[int, ...]) -> Iterator[Array]:
    """Make a table of zeros of each shape, for passes that visit one row of each at a time."""
    for place, shape in enumerate(shapes):
        size, shift = int(np.prod(shape)), LINE * STAGGER * place
        table = np.zeros(LINE + shift + size)
        start = -(table.ctypes.data // table.itemsize) % LINE + shift
        yield table[start : start + size].reshape(shape)


def _prefetch(_context: Any, _address: Any) -> tuple[Any, Any]:
    """Ask memory for what is at an address, to be written soon."""

    def emit(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        form = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        tools: Any = cgutils
        ask = tools.get_or_insert_function(builder.module, form, "llvm.prefetch.p0")
        for_writing, into_all_caches, data = number(1), number(3), number(1)
        place = builder.inttoptr(values[0], byte)
        builder.call(ask, [place, for_writing, into_all_caches, data])
        return context.get_dummy_value()

    return types.void(types.intp), emit


_ask: Any = intrinsic(_prefetch)


@compiled(nogil=True, inline="always")
def fetch(table: Array, row: int, column: int) -> None:
    """Ask memory for ``table[row, column]`` ahead of its use: rows out of order wait (compiled)."""
    _ask(table.ctypes.data + row * table.strides[0] + column * table.strides[1])


def is_mapped(table: Any) -> bool:
    """Whether a table, or what it is a view of, is in a file."""
    while isinstance(table, np.ndarray) and not isinstance(table, np.memmap):
        table = table.base
    return isinstance(table, np.memmap)


def free() -> float:
    """Return how many bytes of memory can be had; infinite where the system does not say."""
    try:
        said = re.search(r"MemAvailable: *(\d+) kB", Path("/proc/meminfo").read_text("ascii"))
    except OSError:
        said = None
    return 1024.0 * int(said[1]) if said else np.inf


MANY = 1000  # losses; fewer are in cache whatever their order


class Fresh(np.ndarray[Any, np.dtype[np.float64]]):
    """A table that was made to be handed over: nobody else holds it, so that it is not copied."""


def fresh(table: Array) -> Fresh:
    """Hand a table over that lies well and of which nobody keeps a view."""
    return table.view(Fresh)


def lies_well(weights: Array) -> bool:
    """Whether many losses' weights have their actions side by side, few losses' their numbers."""
    many = weights.ndim == 3 and len(weights) > MANY
    return bool((weights.swapaxes(1, 2) if many else weights).flags.c_contiguous)


def laid(losses: int, actions: int, numbers: int) -> Array:
    """Return a table of zeros (K, A, n) that lies well, in a file where ``on_disk`` says so."""
    if losses > MANY:
        return zeros(losses, numbers, actions).swapaxes(1, 2)
    return zeros(losses, actions, numbers)


def copied(weights: Array) -> Array:
    """Copy weights (K, A, n) so that they lie well; a file, or a fresh table, is nobody else's."""
    if weights.ndim != 3:
        return np.array(weights, order="C")
    if (is_mapped(weights) or isinstance(weights, Fresh)) and lies_well(weights):
        return np.asarray(weights)
    table = laid(*weights.shape)
    table[...] = weights
    return table


def side_by_side(weights: Array) -> Array:
    """Return weights (K, A, n) that lie well: the same table where it does already."""
    return weights if lies_well(weights) else copied(weights)


def narrowed(weights: Array) -> NDArray[Any]:
    """Return weights that lie well in memory in 32 bits where that loses nothing, else as is."""
    if len(weights) < FEWEST or not lies_well(weights) or is_mapped(weights):
        return weights
    with np.errstate(over="ignore"):
        narrow = weights.astype(np.float32, order="K")
    return narrow if np.array_equal(narrow, weights) else weights
