"""Who plays the shares of a run: workers of a Dask cluster, each with one share or several.

A crew is given a task for a share that has none in hand, and says what came of it: an answer, or
why a worker died. It keeps a share where it is, since that is where it was built.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Protocol

from regretless.scenarios.distributed.worker import Answer, Task, forget, work
from regretless.scenarios.executor import DIED, Cluster
from regretless.scenarios.studies.conduct import TURN
from regretless.scenarios.studies.directory import Failure, failure_of

Heard = tuple[int, Answer | Failure | str]  # the share; its answer, why it has none, last words


class Crew(Protocol):
    """Plays shares, one task of each at a time."""

    def give(self, task: Task) -> None:
        """Hand on a task of a share that has none in hand."""

    def hear(self, patience: float) -> Iterator[Heard]:
        """Yield what is there, after waiting so many seconds at most for the first."""


def attempt(task: Task) -> Answer | Failure:
    """Do a task in a worker; what goes wrong comes back."""
    try:
        with TURN:
            return work(task)
    except BaseException as error:  # noqa: BLE001 - a user's code may raise SystemExit too
        return failure_of(error)


def _attempt_there(task: Task) -> tuple[str, Answer | Failure]:
    """Do a task in a Dask worker, and say in which."""
    import distributed  # noqa: PLC0415 - an extra, which Dask's workers have

    return distributed.get_worker().address, attempt(task)


class DaskCrew:
    """Workers of a cluster, who forget a run that is over; the cluster is closed by who made it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._homes: dict[int, str] = {}
        self._given: dict[Any, Task] = {}
        self._runs: set[str] = set()

    def give(self, task: Task) -> None:
        """Hand a task to the worker that has the share, or to one with few."""
        place, held = task.recipe.place, Counter(self._homes.values())
        if place not in self._homes and (free := self._cluster.workers()):
            self._homes[place] = min(free, key=lambda worker: held[worker])
        self._runs.add(task.recipe.run)
        future = self._cluster.submit(_attempt_there, task, at=self._homes.get(place))
        self._given[future] = task

    def hear(self, patience: float) -> Iterator[Heard]:
        """Yield what is there; UserError if the scheduler, or the last worker, is gone."""
        while (future := self._cluster.next(patience)) is not None:
            place, patience = self._given.pop(future).recipe.place, 0.0
            if self._cluster.died(future):
                self._homes.pop(place, None)
                self._cluster.refill()
                yield place, DIED
            else:
                self._homes[place], answer = future.result()
                yield place, answer
            future.release()

    def close(self) -> None:
        """Let the workers forget the run."""
        for future in self._given:
            future.cancel()
        with suppress(OSError, TimeoutError):  # who is gone remembers nothing
            for run in self._runs:
                if self._cluster.client.status == "running":
                    self._cluster.client.run(forget, run, on_error="ignore")
