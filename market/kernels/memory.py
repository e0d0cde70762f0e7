"""Where large tables lie in memory, and how their rows are reached.

Rows visited out of order wait for memory: ``fetch`` asks for one ahead of its use. Tables that are
visited together are laid out by ``zeros`` so that their rows begin on a cache line and equal places
of two tables do not fall on equal addresses modulo a page, which the processor mistakes for one. A
round's large tables come from ``empty``, which hands out again what nobody refers to any more,
unless it is told to let go of that (``release``): the system clears fresh memory page by page, and
that would be a quarter of a large round. Tables that memory has no room for are files that the
system maps into it, and drops from it again.
"""

import math
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from regretless.market.core.arrays import Array

AHEAD = 16  # rows between a fetch and its use
LARGE, KEPT = 1 << 19, 6  # numbers of a table that is kept for reuse; how many are, at most
LINE, STAGGER = 8, 5  # numbers per cache line; lines between equal places of two tables


def zeros(*shape: int, place: int = 0) -> Array:
    """Return a table of zeros; tables of different ``place`` are visited together."""
    size, shift = int(np.prod(shape)), LINE * STAGGER * place
    room = np.zeros(LINE + shift + size)
    start = -(room.ctypes.data // room.itemsize) % LINE + shift
    return room[start : start + size].reshape(shape)


@contextmanager
def on_disk(*, wanted: bool = True) -> Iterator[None]:
    """Let ``room`` be in files: temporary ones that nobody else sees and that go with the table."""
    before = _mapping.set(wanted)
    try:
        yield
    finally:
        _mapping.reset(before)


def room(*shape: int) -> Array:
    """Return a table of zeros, a large one in a file where that is wanted (``on_disk``)."""
    size = int(np.prod(shape))
    if size < LARGE or not _mapping.get():
        return np.zeros(shape)
    with tempfile.TemporaryFile() as file:
        if hasattr(os, "posix_fallocate"):  # a disk that is full says so now
            os.posix_fallocate(file.fileno(), 0, 8 * size)
        return np.asarray(np.memmap(file, np.float64, "w+", shape=shape))


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


def empty(*shape: int, dtype: Any = np.float64) -> NDArray[Any]:
    """Return a table to be filled; a large one may be an earlier one that nobody holds."""
    if math.prod(shape) < LARGE:
        return np.empty(shape, dtype)
    with _lock:
        free = [i for i in range(len(_kept)) if _holders(_kept, i) == _ALONE]
        for i in free:
            if _kept[i].shape == shape and _kept[i].dtype == dtype:
                return _kept[i]
        if len(_kept) == KEPT:
            del _kept[free[0] if free else 0]
        _kept.append(np.empty(shape, dtype))
        return _kept[-1]


def release() -> None:
    """Let go of large tables that nobody holds, which ``empty`` would hand out again."""
    with _lock:
        for i in reversed(range(len(_kept))):
            if _holders(_kept, i) == _ALONE:
                del _kept[i]


def _holders(tables: list[NDArray[Any]], i: int) -> int:
    """Count who refers to a table; every view on it does."""
    return sys.getrefcount(tables[i])


_mapping = ContextVar("mapping", default=False)
_lock = Lock()
_kept: list[NDArray[Any]] = []
_ALONE = _holders([np.empty(0)], 0)


def _fetch(_context: Any, table: Any, row: Any, column: Any) -> tuple[Any, Any]:
    """Ask memory for what begins at ``table[row, column]``, to be written soon (LLVM prefetch)."""
    tools: Any = cgutils

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = signature.args[0]
        array = context.make_array(kind)(context, builder, values[0])
        indices = [*values[1:], *[context.get_constant(types.intp, 0)] * (kind.ndim - 2)]
        place = tools.get_item_pointer(context, builder, kind, array, indices, wraparound=False)
        number, byte = ir.IntType(32), ir.IntType(8).as_pointer()
        form = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        prefetch = tools.get_or_insert_function(builder.module, form, "llvm.prefetch.p0")
        for_writing, into_all_caches, data = (ir.Constant(number, code) for code in (1, 3, 1))
        builder.call(prefetch, [builder.bitcast(place, byte), for_writing, into_all_caches, data])
        return context.get_dummy_value()

    return types.void(table, row, column), emit


fetch: Any = intrinsic(_fetch)
