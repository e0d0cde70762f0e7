"""How this project's functions are compiled, where that code is kept, and who runs it.

Numba keeps it beside the source or under the user's home. Where neither can be written, as in a
container with a read-only file system, it is kept in a private folder of the system's temporary
one; where that cannot be had either, nothing is kept and each process compiles for itself.

**Work on many rows** is shared out among the processor's cores. A kernel takes arrays and a span of
rows and writes those rows alone, so that the answer is the same to the last bit whatever the number
of threads. Numba's own parallel loops are avoided: their thread pool dies with a fork and may not
be entered twice. The kernels release the interpreter's lock instead (``nogil``). A core that is
busy elsewhere takes fewer spans.
"""

import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import event

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Compile a function on its first call, and keep the code; options are Numba's."""

    def decorated(function: Any) -> Any:
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # in a private temporary folder, or nowhere
            with suppress(OSError, RuntimeError):
                numba.config.CACHE_DIR = str(_private(Path(tempfile.gettempdir())))  # type: ignore[attr-defined]
                return numba.njit(cache=True, **options)(function)
            return numba.njit(**options)(function)

    return decorated


class _FirstCompilation(event.Listener):
    """Calls a function when Numba begins to compile, once.

    Numba triggers this event only for code that it does not find in its cache.
    """

    def __init__(self, announce: Callable[[], object]) -> None:
        self._announce = announce
        self._announced = False

    def on_start(self, _event: object) -> None:
        """Announce the first compilation."""
        if not self._announced:
            self._announced = True
            self._announce()

    def on_end(self, _event: object) -> None:
        """Do nothing: the end of one compilation is the beginning of the next."""


@contextmanager
def first_compilation_announced(announce: Callable[[], object]) -> Iterator[None]:
    """Call ``announce`` before the first function that this process compiles within the block.

    It is not called where all compiled code is found in the cache. Other processes are not seen.
    """
    with event.install_listener("numba:compile", _FirstCompilation(announce)):
        yield


def _private(home: Path) -> Path:
    """Return our folder there, made if need be; OSError unless it is this user's alone.

    What is kept is code that will be run: a folder that somebody else has prepared is not used.
    """
    if os.name != "posix":  # there the temporary folder itself is the user's own
        return home / "regretless-numba"
    folder = home / f"regretless-numba-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    alone = stat.S_ISDIR(found.st_mode) and not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO)
    if not alone or found.st_uid != os.getuid():
        raise PermissionError(f"{folder} is not this user's alone")
    return folder


LANES: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]  # cores, unless the environment says otherwise
FEWEST = 20_000  # rows; sharing costs more than it saves below
SPANS = 4  # per core

_pool: list[ThreadPoolExecutor] = []  # at most one
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.clear)  # a fork takes no threads along


def over_rows(kernel: Callable[..., object], rows: int, *arrays: Any, fewest: int = FEWEST) -> None:
    """Call ``kernel(*arrays, first, last)`` so that all rows are covered; ``fewest`` are shared.

    The kernel writes the rows from ``first`` to before ``last`` and no others, and has ``nogil``.
    """
    if rows < fewest or LANES == 1:
        kernel(*arrays, 0, rows)
        return
    if not _pool:
        _pool.append(ThreadPoolExecutor(LANES - 1, "lane"))
    ends = [rows * span // (SPANS * LANES) for span in range(SPANS * LANES + 1)]
    left = iter(list(pairwise(ends)))  # threads take from it in turn, under the interpreter's lock

    def work() -> None:
        for first, last in left:
            kernel(*arrays, first, last)

    others = [_pool[0].submit(work) for _ in range(LANES - 1)]
    try:
        work()
    finally:
        for other in others:
            if not other.cancel():  # it has begun
                other.result()
