"""Large tables: in memory or in mapped files, and how weights lie in them.

Tables that one pass visits row by row (``staggered_tables``) begin on a cache line, and at
different places of a page: a processor takes writing and reading at equal places of two pages for
one, and waits. Rows that are visited out of order are asked for ahead (``prefetch``). With both,
the ledger's pass over 300,000 rows of 6 actions took 69 ms in place of 89 ms, over 100,000 rows of
12 actions 57 ms in place of 69 ms (medians of nine alternating runs on two cores of a shared
machine).

**The layout** of weights: a table (K, A, n) is read action by action or, where many losses have
one, number by number with the actions side by side in memory: still of shape (K, A, n), but the
last axis but one has the step of one number, and actions fill vector registers
(``best_response.expected_rows``).

Reading is all that such a pass waits for. Weights that 32 bits hold to the last bit are read at
half the width (``narrowed_to_32_bits``) and widened before they are multiplied: the same sums
again.
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

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import MIN_SHARED_ROWS, compiled

MIN_MAPPED_NUMBERS = 1 << 19  # numbers of a table that may be a file
CACHE_LINE = 8  # numbers of 8 bytes
STAGGER = 5  # cache lines between the places of two tables in their pages
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
    if size < MIN_MAPPED_NUMBERS or not _mapping.get():
        return np.zeros(shape)
    with tempfile.TemporaryFile() as file:
        if hasattr(os, "posix_fallocate"):  # a disk that is full says so now
            os.posix_fallocate(file.fileno(), 0, 8 * size)
        return np.asarray(np.memmap(file, np.float64, "w+", shape=shape))


def staggered_tables(*shapes: tuple[int, ...]) -> Iterator[Array]:
    """Make a table of zeros of each shape, for passes that visit one row of each at a time."""
    for table_index, shape in enumerate(shapes):
        size = int(np.prod(shape))
        shift = CACHE_LINE * STAGGER * table_index
        table = np.zeros(CACHE_LINE + shift + size)
        address = table.ctypes.data // table.itemsize  # in numbers
        numbers_to_next_line = -address % CACHE_LINE
        start = numbers_to_next_line + shift
        yield table[start : start + size].reshape(shape)


def _prefetch_address(_context: Any, _address: Any) -> tuple[Any, Any]:
    """Make the code of LLVM that asks memory for what is at an address, to be written soon."""

    def emit(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        byte_pointer = ir.IntType(8).as_pointer()
        integer = ir.IntType(32)
        signature = ir.FunctionType(ir.VoidType(), [byte_pointer, integer, integer, integer])
        code_generation: Any = cgutils  # without types
        instruction = code_generation.get_or_insert_function(
            builder.module, signature, "llvm.prefetch.p0"
        )
        for_writing = integer(1)
        into_all_caches = integer(3)
        data = integer(1)
        address = builder.inttoptr(arguments[0], byte_pointer)
        builder.call(instruction, [address, for_writing, into_all_caches, data])
        return context.get_dummy_value()

    return types.void(types.intp), emit


_ask_for_address: Any = intrinsic(_prefetch_address)


@compiled(nogil=True, inline="always")
def prefetch(table: Array, row: int, column: int) -> None:
    """Ask memory for ``table[row, column]`` ahead of its use: rows out of order wait (compiled)."""
    _ask_for_address(table.ctypes.data + row * table.strides[0] + column * table.strides[1])


def is_mapped(table: Any) -> bool:
    """Whether a table, or what it is a view of, is in a file."""
    while isinstance(table, np.ndarray) and not isinstance(table, np.memmap):
        table = table.base
    return isinstance(table, np.memmap)


def available_memory() -> float:
    """Return how many bytes of memory can be had; infinite where the system does not say."""
    try:
        report = Path("/proc/meminfo").read_text("ascii")
    except OSError:
        return float(np.inf)
    line = re.search(r"MemAvailable: *(\d+) kB", report)
    if line is None:
        return float(np.inf)
    return 1024.0 * int(line[1])


MAX_CACHED_LOSSES = 1000  # losses; fewer are in cache whatever their order


class UnsharedTable(np.ndarray[Any, np.dtype[np.float64]]):
    """A table that was made to be handed over: nobody else holds it, so that it is not copied."""


def as_unshared(table: Array) -> UnsharedTable:
    """Hand a table over that has the layout and of which nobody keeps a view."""
    return table.view(UnsharedTable)


def has_layout(weights: Array) -> bool:
    """Whether many losses' weights have their actions side by side, few losses' their numbers."""
    if weights.ndim == 3 and len(weights) > MAX_CACHED_LOSSES:
        return bool(weights.swapaxes(1, 2).flags.c_contiguous)
    return bool(weights.flags.c_contiguous)


def zeros_in_layout(losses: int, actions: int, numbers: int) -> Array:
    """Return a table of zeros (K, A, n) in the layout, in a file where ``on_disk`` says so."""
    if losses > MAX_CACHED_LOSSES:
        return zeros(losses, numbers, actions).swapaxes(1, 2)
    return zeros(losses, actions, numbers)


def copy_in_layout(weights: Array) -> Array:
    """Copy weights (K, A, n) into the layout; a file, or an unshared table, is returned as is."""
    if weights.ndim != 3:
        return np.array(weights, order="C")
    if (is_mapped(weights) or isinstance(weights, UnsharedTable)) and has_layout(weights):
        return np.asarray(weights)
    table = zeros_in_layout(*weights.shape)
    table[...] = weights
    return table


def in_layout(weights: Array) -> Array:
    """Return weights (K, A, n) in the layout: the same table where it has it already."""
    if has_layout(weights):
        return weights
    return copy_in_layout(weights)


def without_unused_numbers(weights: Array) -> tuple[Indices, Array]:
    """Return which numbers each loss depends on (K, m), ascending, and its weights of these alone.

    ``weights`` are (K, A, n), and (K, A, m) are returned. Where losses are of several families,
    each with statistics of its own, a loss has the weight 0 for the numbers of all other families:
    sums of weighted numbers are the same to the last bit without them. m is the most that a loss
    depends on.
    """
    is_used = (weights != 0).any(1)
    n_kept = int(is_used.sum(1).max(initial=1))
    used_first = np.argsort(~is_used, axis=1, kind="stable")
    numbers = np.sort(used_first[:, :n_kept], axis=1)
    if n_kept == weights.shape[2]:
        return numbers, weights
    return numbers, np.take_along_axis(weights, numbers[:, np.newaxis], axis=2)


def narrowed_to_32_bits(weights: Array) -> NDArray[Any]:
    """Return weights in the layout in 32 bits where that loses nothing, otherwise as they are."""
    if len(weights) < MIN_SHARED_ROWS or not has_layout(weights) or is_mapped(weights):
        return weights
    with np.errstate(over="ignore"):
        narrow = weights.astype(np.float32, order="K")
    if np.array_equal(narrow, weights):
        return narrow
    return weights
