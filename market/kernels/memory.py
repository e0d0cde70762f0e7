"""Large tables: in memory, or in files that the system maps into it and drops from it again."""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array

LARGE = 1 << 19  # numbers of a table that may be a file


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


_mapping = ContextVar("mapping", default=False)
