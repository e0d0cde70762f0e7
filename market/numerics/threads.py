"""Work on many rows, shared out among the processor's cores.

A kernel takes arrays and a span of rows and writes those rows alone, so that the answer is the
same to the last bit whatever the number of threads. Numba's own parallel loops are avoided: their
thread pool dies with a fork and may not be entered twice. The kernels release the interpreter's
lock instead (``nogil``). The caller's thread works too; the others are started once and wait. A
core that is busy elsewhere takes fewer spans.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numba

LANES: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]  # cores, unless the environment says otherwise
FEWEST = 20_000  # rows; sharing costs more than it saves below
SPANS = 4  # per core

_pool: list[ThreadPoolExecutor] = []  # at most one
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.clear)  # a fork takes no threads along


def over_rows(kernel: Callable[..., object], rows: int, *arrays: Any, fewest: int = FEWEST) -> None:
    """Call ``kernel(*arrays, first, last)`` so that all rows are covered.

    Parameters
    ----------
    kernel : compiled function
        Writes the rows from ``first`` to before ``last`` and no others; has ``nogil``.
    *arrays
        Its other arguments.
    fewest : int
        Rows that are worth sharing.
    """
    if rows < fewest or LANES == 1:
        kernel(*arrays, 0, rows)
        return
    if not _pool:
        _pool.append(ThreadPoolExecutor(LANES - 1, "lane"))
    ends = [rows * span // (SPANS * LANES) for span in range(SPANS * LANES + 1)]
    left = iter(list(pairwise(ends)))  # threads take from it in turn, under the interpreter's lock
    others = [_pool[0].submit(_work, kernel, arrays, left) for _ in range(LANES - 1)]
    try:
        _work(kernel, arrays, left)
    finally:
        for other in others:
            if not other.cancel():  # it has begun
                other.result()


def _work(
    kernel: Callable[..., object], arrays: tuple[Any, ...], spans: Iterator[tuple[int, int]]
) -> None:
    for first, last in spans:
        kernel(*arrays, first, last)
