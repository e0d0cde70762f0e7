"""Worker processes of this machine: both cores busy, and no worker's death stops the others.

Each worker is a fresh interpreter with a pipe of its own, holds one task at a time, and is replaced
after a number of tasks or when it has grown, whatever a user's own code may keep alive. The
standard library's pools do not do: ``multiprocessing.Pool`` waits for ever for the task of a worker
that was killed, ``ProcessPoolExecutor`` gives up all tasks when one dies, and with
``max_tasks_per_child`` can come to a standstill on Python 3.11.

A task may show life by ``beat``, as a run does after every round; a worker that shows none for as
long as its tasks are given is ended, and its task is over as if it had died.

A worker has its own process group, so that Ctrl-C reaches the parent alone, and ends as soon as
the parent is gone. Array work keeps to one thread per worker unless the environment says
otherwise: the processors are busy with runs, and the same sums come out everywhere.
"""

import contextlib
import os
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from regretless.market.core.errors import UserError

TASKS_PER_WORKER = 100
GROWTH = 512.0  # MiB that a worker may grow by
PATIENCE = 5.0  # seconds for a worker to end by itself
LOOKING = 1.0  # seconds between two looks at whether workers show life
BEATS: list[Any] = []  # in a worker, the counter that its parent reads
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
T = TypeVar("T")
A = TypeVar("A")


class LocalWorkers(Generic[T, A]):
    """Worker processes on this machine; a context manager that ends them.

    Parameters
    ----------
    jobs : int or None
        How many; None for one per processor.
    died : callable
        From a task whose worker died, and what it died of, to the answer in its place.
    """

    sends_files = False

    def __init__(self, jobs: int | None, died: Callable[[T, str], A]) -> None:
        self.jobs = jobs or _processors()
        self._died = died
        self._idle: list[Worker] = []
        self._busy: list[Worker] = []

    def close(self) -> None:
        """End all workers, whatever they are doing."""
        for worker in (*self._idle, *self._busy):
            worker.kill()
        self._idle, self._busy = [], []

    def answers(
        self, work: Callable[[T], A], tasks: Iterable[T], patience: float | None = None
    ) -> Iterator[A]:
        """Yield the answers as they come.

        Parameters
        ----------
        work : callable
            A module's function, which catches what may go wrong.
        tasks : iterable
            Taken one at a time, when a worker is free.
        patience : float, optional
            Seconds for which a task may show no life; by default for ever.
        """
        waiting = deque(tasks)
        while waiting or self._busy:
            while waiting and len(self._busy) < self.jobs:
                worker = self._idle.pop() if self._idle else Worker()
                worker.give(work, waiting.popleft())
                self._busy.append(worker)
            signals = {s: worker for worker in self._busy for s in worker.signals}
            heard = wait(list(signals), None if patience is None else LOOKING)
            ready = {id(signals[found]): signals[found] for found in heard}
            for worker in [w for w in self._busy if patience is not None and w.still() > patience]:
                if id(worker) not in ready:
                    self._busy.remove(worker)
                    worker.kill()
                    told = f"no round was played for {patience:g} seconds, and the worker was ended"
                    yield self._died(worker.task, told)
            for worker in ready.values():
                found = worker.answer()
                self._busy.remove(worker)
                if worker.fresh:
                    self._idle.append(worker)
                else:
                    worker.kill()
                yield found[0] if found else self._died(worker.task, worker.last_words())


class Worker:
    """A process that does one task at a time."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._beats = context.RawValue("q")
        self._process = context.Process(target=_serve, args=(theirs, self._beats), daemon=True)
        with _one_thread_each():
            self._process.start()
        theirs.close()
        self._tasks, self._alive, self._grown = 0, True, False

    @property
    def signals(self) -> tuple[Any, Any]:
        """What becomes ready when the worker answers or dies."""
        return self._pipe, self._process.sentinel

    @property
    def fresh(self) -> bool:
        """Whether it may take another task."""
        return self._alive and not self._grown and self._tasks < TASKS_PER_WORKER

    def give(self, work: Callable[[Any], Any], task: Any) -> None:
        """Hand a task to a worker that has none."""
        self.task = task
        self._tasks += 1
        self._heard, self._since = self._beats.value, time.monotonic()
        with contextlib.suppress(OSError):  # a worker that died while idle: the answer will say so
            self._pipe.send((work, task))

    def still(self) -> float:
        """Return for how many seconds the task has shown no life."""
        if self._beats.value != self._heard:
            self._heard, self._since = self._beats.value, time.monotonic()
        return time.monotonic() - self._since

    def answer(self) -> tuple[Any] | None:
        """Return the answer, alone in a tuple; None if the worker has died."""
        try:
            if self._pipe.poll():
                answer, self._grown = self._pipe.recv()
                return (answer,)
        except (EOFError, OSError):
            pass
        self._alive = False
        return None

    def last_words(self) -> str:
        """Say how the process ended."""
        self._process.join(PATIENCE)
        status = self._process.exitcode
        if status is not None and status < 0:
            return f"the worker process was ended by signal {-status}; was it out of memory?"
        return f"the worker process ended with status {status} before the run was complete"

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        self._pipe.close()
        self._process.kill()
        self._process.join()


def collect(
    work: Callable[[T], A],
    tasks: Sequence[T],
    *,
    jobs: int | None = None,
    progress: Callable[[int], Any] | None = None,
) -> list[A]:
    """Do all the work, in worker processes unless ``jobs`` is 1; answers in the tasks' order.

    Parameters
    ----------
    jobs : int or None
        Worker processes; None for one per processor, 1 for none.
    progress : callable, optional
        Called with the number of tasks that are done.

    Raises
    ------
    UserError
        If a worker died. What the work itself raises is raised here.
    """
    with crew(jobs) as workers:
        return gathered(workers, work, tasks, progress=progress)


def crew(jobs: int | None) -> contextlib.closing[LocalWorkers[Any, Any]]:
    """Return workers for ``gathered``, as a context manager; they start with their first task."""
    return contextlib.closing(LocalWorkers(jobs, _death))


def gathered(
    workers: LocalWorkers[Any, Any],
    work: Callable[[T], A],
    tasks: Sequence[T],
    *,
    progress: Callable[[int], Any] | None = None,
) -> list[A]:
    """Let workers that may have more to do later do all the work, as ``collect`` does."""
    found: dict[int, A] = {}
    attempt = partial(_attempt, work)
    alone = map(attempt, enumerate(tasks))
    answers = alone if workers.jobs == 1 else workers.answers(attempt, enumerate(tasks))
    for place, answer, error in answers:
        if error is not None:
            raise error
        found[place] = answer
        if progress is not None:
            progress(len(found))
    return [found[place] for place in range(len(tasks))]


def _attempt(work: Callable[[T], A], numbered: tuple[int, T]) -> tuple[int, Any, Exception | None]:
    try:
        return numbered[0], work(numbered[1]), None
    except Exception as error:  # noqa: BLE001 - raised again by ``collect``, in the parent
        error.add_note(traceback.format_exc())  # tracebacks do not travel
        return numbered[0], None, error


def _death(numbered: tuple[int, Any], words: str) -> tuple[int, Any, Exception | None]:
    return numbered[0], None, UserError(f"{words}; start again, with fewer --jobs if it was")


def beat(_: object = None) -> None:
    """Show life to the parent of a worker; elsewhere nothing happens."""
    for counter in BEATS:
        counter.value += 1


def _serve(pipe: Connection, beats: Any) -> None:
    """Answer tasks until the parent closes the pipe."""
    BEATS.append(beats)
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    before = _peak()
    with contextlib.suppress(EOFError, OSError):
        while True:
            work, task = pipe.recv()
            pipe.send((work(task), _peak() - before > GROWTH))


def _peak() -> float:
    """Return the most memory that this process has held, in MiB; 0 where the system is not Unix."""
    if sys.platform == "win32":
        return 0.0
    import resource  # noqa: PLC0415 - Unix alone has it

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # Linux counts in KiB


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Keep a new process's array work to one thread, where the user has not said otherwise."""
    ours = [name for name in ONE_THREAD if name not in os.environ]
    os.environ.update(dict.fromkeys(ours, "1"))
    try:
        yield
    finally:
        for name in ours:
            del os.environ[name]


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
