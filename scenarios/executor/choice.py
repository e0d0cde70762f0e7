"""Who does tasks, by the options of a command: this process or a cluster."""

import importlib.util
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from regretless.scenarios.executor.base import A, Executor, T
from regretless.scenarios.executor.cluster import Cluster, warn_nobody


def executor(
    jobs: int | None,
    scheduler: str | None = None,
    imports: tuple[str, ...] = (),
    warn: Callable[[str], Any] = warn_nobody,
) -> closing[Executor]:
    """Return who does tasks, as a context manager: a cluster, or without Dask this process.

    ``jobs``: worker processes; one per processor by default. ``warn``: as of ``Cluster``.
    """
    needs_no_cluster = scheduler is None and jobs in {None, 1}
    if needs_no_cluster and importlib.util.find_spec("distributed") is None:
        return closing(Executor())
    return closing(Cluster(jobs, scheduler, imports, warn))


def mapper(jobs: int | None, warn: Callable[[str], Any] = warn_nobody) -> closing[Executor]:
    """Return who does tasks that need no process of their own: with one job this process."""
    return closing(Executor()) if jobs == 1 else executor(jobs, warn=warn)


def collect(
    work: Callable[[T], A],
    tasks: Sequence[T],
    *,
    jobs: int | None = None,
    progress: Callable[[int], Any] | None = None,
) -> list[A]:
    """Do all the work with a ``mapper`` of its own (``Executor.map``)."""
    with mapper(jobs) as workers:
        return workers.map(work, tasks, progress=progress or (lambda _: None))
