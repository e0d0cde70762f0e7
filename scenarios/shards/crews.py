"""Who plays the shares of a run: processes of this machine, or workers of a Dask cluster.

A crew is given a task for a share that has none in hand, and says what came of it: an answer, or
the words with which a worker died. It keeps a share where it is, since that is where it was built.
"""

import queue
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any, Protocol

from regretless.scenarios.shards.shard import Answer, Task, forget, work
from regretless.scenarios.studies.cluster import LOOKING, DaskWorkers
from regretless.scenarios.studies.play import TURN, Failure, failure_of
from regretless.scenarios.studies.processes import Worker

Heard = tuple[int, Answer | Failure | str]  # the share; its answer, why it has none, last words


class Crew(Protocol):
    """Plays shares, one task of each at a time."""

    def give(self, task: Task) -> None:
        """Hand on a task of a share that has none in hand."""

    def hear(self, patience: float) -> Iterator[Heard]:
        """Yield what is there, after waiting so many seconds at most for the first."""

    def close(self) -> None:
        """Let go of all shares, whatever they are doing."""


def attempt(task: Task) -> Answer | Failure:
    """Do a task in a worker; what goes wrong comes back."""
    try:
        with TURN:
            return work(task)
    except BaseException as error:  # noqa: BLE001 - a user's code may raise SystemExit too
        return failure_of(error)


class LocalCrew:
    """A process for every share, replaced when it dies."""

    def __init__(self) -> None:
        self.workers: dict[int, Worker] = {}
        self._busy: set[int] = set()

    def give(self, task: Task) -> None:
        """Hand a task to the share's process."""
        place = task.recipe.place
        if place not in self.workers:
            self.workers[place] = Worker()
        self.workers[place].give(attempt, task)
        self._busy.add(place)

    def hear(self, patience: float) -> Iterator[Heard]:
        """Yield what is there."""
        signals = {s: place for place in self._busy for s in self.workers[place].signals}
        for place in {signals[found] for found in wait(list(signals), patience)}:
            self._busy.discard(place)
            worker = self.workers[place]
            if found := worker.answer():
                yield place, found[0]
                continue
            del self.workers[place]
            words = worker.last_words()
            worker.kill()
            yield place, words

    def close(self) -> None:
        """End all processes."""
        for worker in self.workers.values():
            worker.kill()
        self.workers, self._busy = {}, set()


def _attempt_there(task: Task) -> tuple[str, Answer | Failure]:
    """Do a task in a Dask worker, and say in which."""
    import distributed  # noqa: PLC0415 - an extra, which Dask's workers have

    return distributed.get_worker().address, attempt(task)


class DaskCrew:
    """Workers of a Dask cluster, each with one share or several.

    Parameters
    ----------
    address : str
        Of the scheduler.
    imports : tuple of str
        A user's modules, which are sent to the workers.
    """

    def __init__(self, address: str, imports: tuple[str, ...] = ()) -> None:
        self._cluster = DaskWorkers(address, imports)
        self._done: queue.Queue[Any] = queue.Queue()
        self._homes: dict[int, str] = {}
        self._given: dict[Any, Task] = {}
        self._runs: set[str] = set()
        self._looked = 0.0

    def __len__(self) -> int:
        """Count the workers."""
        return len(self._cluster.look())

    def give(self, task: Task) -> None:
        """Hand a task to the worker that has the share, or to one with few."""
        home = self._homes.get(task.recipe.place) or self._free()
        self._homes[task.recipe.place] = home
        self._runs.add(task.recipe.run)
        future = self._cluster.client.submit(
            _attempt_there, task, workers=[home], allow_other_workers=True, pure=False
        )
        self._given[future] = task
        future.add_done_callback(self._done.put)

    def _free(self) -> str:
        here, held = self._cluster.look(), Counter(self._homes.values())
        return min(here, key=lambda worker: held[worker]) if here else ""

    def hear(self, patience: float) -> Iterator[Heard]:
        """Yield what is there; UserError if the scheduler, or the last worker, is gone."""
        while True:
            try:
                future = self._done.get(timeout=patience) if patience else self._done.get_nowait()
            except queue.Empty:
                break
            place, patience = self._given.pop(future).recipe.place, 0.0
            yield place, self._heard(place, future)
            future.release()
        if time.monotonic() - self._looked > LOOKING:
            self._looked = time.monotonic()
            self._cluster.look()

    def _heard(self, place: int, future: Any) -> Answer | Failure | str:
        if future.status in {"cancelled", "lost"}:
            self._cluster.lost("was lost")
        if (error := future.exception()) is not None:
            self._homes.pop(place, None)
            failure = failure_of(error)
            killed = failure.kind == "KilledWorker"
            return "the Dask workers that had it died" if killed else failure
        self._homes[place], answer = future.result()
        found: Answer | Failure = answer
        return found

    def close(self) -> None:
        """Let the workers forget the run, and close the connection."""
        client = self._cluster.client
        for future in self._given:
            future.cancel()
        with suppress(OSError, TimeoutError):  # who is gone remembers nothing
            for run in self._runs if client.status == "running" else ():
                client.run(forget, run, on_error="ignore")
        self._cluster.close()
