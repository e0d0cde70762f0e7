"""Runs of a table in worker processes, and what each returns as one row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from multiprocessing import get_context
from typing import Any, TypeVar

import pandas as pd

Run = TypeVar("Run")
Row = dict[str, Any]

RUNS_PER_CHILD = 20  # some versions of Mesa keep every model of a process alive


def collect(
    one: Callable[[Run], Row],
    runs: Sequence[Run],
    *,
    jobs: int | None = None,
    progress: Callable[[int], Any] | None = None,
) -> pd.DataFrame:
    """Measure every run.

    Parameters
    ----------
    one : callable
        A module's function, from a run to a row.
    runs : sequence
        Plain values.
    jobs : int or None
        Worker processes; None for one per processor, 1 for none.
    progress : callable, optional
        Called with the number of rows so far.

    Returns
    -------
    DataFrame
        One row per run, in their order.
    """
    rows: list[Row] = []
    with ExitStack() as stack:
        found: Iterator[Row] = map(one, runs)
        if jobs != 1:
            pool = get_context("spawn").Pool(jobs, maxtasksperchild=RUNS_PER_CHILD)
            found = stack.enter_context(pool).imap(one, runs)
        for row in found:
            rows.append(row)
            if progress:
                progress(len(rows))
    return pd.DataFrame(rows)
