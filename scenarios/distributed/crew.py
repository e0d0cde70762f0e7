"""A crew: the workers of a Dask cluster, each of which keeps the shares that it has built."""

import importlib
from collections import Counter
from contextlib import suppress
from typing import Any

from regretless.market.core.errors import UserError
from regretless.scenarios.distributed.tasks import Answer, Task, attempt, forget
from regretless.scenarios.executor.cluster import Cluster
from regretless.scenarios.studies.directory import Failure


class DaskCrew:
    """Plays shares, one task of each at a time, on a cluster that is closed by who made it.

    It keeps a share where it is, since that is where it was built.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._run = ""
        self._homes: dict[int, str] = {}  # the worker that has each share, by the share's index

    def give(self, task: Task) -> None:
        """Hand a task to the worker that has the share, or to one with few."""
        index = task.recipe.index
        if index not in self._homes:
            workers = self._cluster.workers()
            n_shares = Counter(self._homes.values())
            if workers:
                self._homes[index] = min(workers, key=lambda worker: n_shares[worker])
        self._run = task.recipe.run
        self._cluster.submit(index, _attempt_there, task, at=self._homes.get(index))

    def hear(self) -> tuple[int, Answer | Failure | None]:
        """Wait for a share's answer; return its index, and the answer or None if its worker died.

        UserError if the scheduler, or the last worker, is gone.
        """
        index, result = self._cluster.next()
        if result is None:
            self._homes.pop(index, None)
            self._cluster.refill()
            return index, None
        worker, answer = result
        self._homes[index] = worker
        return index, answer

    def close(self) -> None:
        """Let the workers forget the run, unless they end with it; nobody waits until they have."""
        if not self._cluster.sends_files:
            return
        dask: Any = importlib.import_module("distributed")  # an extra, which is there
        client = self._cluster.client
        for future in self._cluster.pending:
            future.cancel()
        if not self._run:
            return
        with suppress(OSError, TimeoutError, UserError):  # who is gone remembers nothing
            for address in self._cluster.workers():
                future = client.submit(forget, self._run, workers=[address], pure=False)
                dask.fire_and_forget(future)


def _attempt_there(task: Task) -> tuple[str, Answer | Failure]:
    """Do a task in a Dask worker, and return in which, by its address."""
    import distributed  # noqa: PLC0415 - an extra, which Dask's workers have

    return distributed.get_worker().address, attempt(task)
