"""Compiling functions with Numba, keeping the compiled code, and running kernels on all cores.

``@compiled()`` decorates every compiled function of this project. Numba keeps the code beside the
source or under the user's home. Where neither can be written, as in a container with a read-only
file system, it is kept in a private folder of the system's temporary one; where that cannot be had
either, nothing is kept and each process compiles for itself.

``over_rows`` shares a kernel's rows out among the processor's cores. A kernel takes arrays and a
span of rows and writes those rows alone, so that the answer is the same to the last bit whatever
the number of threads. Numba's own parallel loops are avoided: their thread pool dies with a fork
and may not be entered twice. The kernels release the interpreter's lock instead (``nogil``).
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
from numba.core.options import DefaultOptions

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(*, counts_references: bool = True, **options: Any) -> Callable[[Function], Function]:
    """Return a decorator that compiles a function on its first call.

    Parameters
    ----------
    counts_references : bool
        Whether the function counts the references to its arrays, as Numba does unless told
        otherwise. A small step of other compiled functions, which hold its arrays meanwhile, need
        not: with False it makes, keeps and returns no array. An order that arrives at a book takes
        36 ns in place of 118, since no other processor has to see what is counted.
    **options
        Numba's.
    """
    if not counts_references and hasattr(DefaultOptions, "_nrt"):  # it only makes steps faster
        options["_nrt"] = False

    def decorated(function: Any) -> Any:
        try:
            return numba.njit(cache=True, **options)(function)
        except RuntimeError:  # Numba found no folder for the code that it may write
            with suppress(OSError, RuntimeError):
                folder = _private_folder(Path(tempfile.gettempdir()))
                numba.config.CACHE_DIR = str(folder)  # type: ignore[attr-defined]
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
        """Do nothing: only the first beginning is announced."""


@contextmanager
def first_compilation_announced(announce: Callable[[], object]) -> Iterator[None]:
    """Call ``announce`` once, before the first function that is compiled within the block.

    It is not called if all compiled code is found in the cache. What other processes compile is
    not noticed.
    """
    with event.install_listener("numba:compile", _FirstCompilation(announce)):
        yield


def _private_folder(parent: Path) -> Path:
    """Return a folder for compiled code in ``parent``, made if need be.

    OSError unless it belongs to this user alone: compiled code is run, so that a folder that
    somebody else prepared must not be used.
    """
    if os.name != "posix":  # there the temporary folder itself is the user's own
        return parent / "regretless-numba"
    folder = parent / f"regretless-numba-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    is_open_to_others = bool(status.st_mode & (stat.S_IRWXG | stat.S_IRWXO))
    if not stat.S_ISDIR(status.st_mode) or is_open_to_others or status.st_uid != os.getuid():
        raise PermissionError(f"{folder} is not this user's alone")
    return folder


# The number of cores, unless NUMBA_NUM_THREADS says otherwise.
MAX_THREADS: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
MIN_SHARED_ROWS = 20_000  # with fewer rows, waking the threads costs more than they save
SPANS_PER_THREAD = 4  # so that a core that is busy elsewhere can take fewer

_thread_pool: list[ThreadPoolExecutor] = []  # empty until it is needed, then the one pool
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_thread_pool.clear)  # a fork takes no threads along


def over_rows(
    kernel: Callable[..., object], rows: int, *arrays: Any, min_shared_rows: int = MIN_SHARED_ROWS
) -> None:
    """Call ``kernel(*arrays, first, last)`` with spans of rows that together cover all rows.

    Parameters
    ----------
    kernel : callable
        A compiled function with ``nogil``. It writes the rows from ``first`` to before ``last`` and
        no others.
    rows : int
        How many rows there are.
    *arrays
        What the kernel is called with before the span.
    min_shared_rows : int
        With fewer rows the calling thread does all the work in one call.
    """
    if rows < min_shared_rows or MAX_THREADS == 1:
        kernel(*arrays, 0, rows)
        return
    if not _thread_pool:
        _thread_pool.append(ThreadPoolExecutor(MAX_THREADS - 1, "lane"))
    n_spans = SPANS_PER_THREAD * MAX_THREADS
    bounds = [rows * span // n_spans for span in range(n_spans + 1)]
    # All threads take their next span from this iterator; the interpreter's lock guards it.
    open_spans = iter(list(pairwise(bounds)))

    def process_spans() -> None:
        for first, last in open_spans:
            kernel(*arrays, first, last)

    futures = [_thread_pool[0].submit(process_spans) for _ in range(MAX_THREADS - 1)]
    try:
        process_spans()
    finally:
        for future in futures:
            has_begun = not future.cancel()
            if has_begun:
                future.result()
