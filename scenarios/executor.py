"""Who does many tasks: this process, or the workers of a Dask cluster, here or elsewhere.

A cluster of this machine is a ``dask.distributed.LocalCluster``: processes of one thread each, on
loopback, which end with the process that started them and are replaced when they die; they speak to
each other by TLS with a certificate of this cluster alone, so that no other user of the machine
can send them work. One elsewhere is named by the address of its scheduler; its workers need this
package and, at the same path, a data file that is not bundled, share no folder with this process,
and are sent a user's modules of one file. Without Dask, an extra, tasks are done here, one after
another.

A task may show life by ``beat``, as a run does after every round; a worker that shows none for as
long as its tasks are given ends, even if it never lets go of the interpreter, and its task is over
as if it had died.

A worker whose process stands still, as one that a signal has stopped, is given up after ``SILENT``
seconds without a sign of life (``heartbeats``). One line says so, and its tasks are given to
others. On this machine its process is killed, and Dask starts another in its place. A task whose
workers hung ``MOST_HANGS`` times is over as if its worker had died.
"""

import faulthandler
import importlib
import importlib.util
import logging
import os
import queue
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from regretless.market.core.errors import UserError
from regretless.scenarios.heartbeats import Heartbeats, SignOfLife

CONNECTING = 15.0  # seconds to find the scheduler, and then a worker
LOOKING = 2.0  # seconds between two looks at whether anybody still works
WITHOUT_WORKERS = 60.0  # seconds that a cluster may be without one
SILENT = 30.0  # seconds without a sign of life after which a worker is given up
MOST_HANGS = 2  # of workers that were given a task, before the task is given up too
SELDOM = 0.5  # seconds between two signs of life that count
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
SAFE_PATH = "PYTHONSAFEPATH"  # to Python: import nothing from the working folder by itself
LOOPBACK = "127.0.0.1:0"  # at any free port
INSTALL = "which is not installed; run pip install 'regretless[dask]'"
DIED = "its worker process ended before that (killed, out of memory, or still for too long)"
T = TypeVar("T")
A = TypeVar("A")


class Executor:
    """Does tasks: here, one after another, in this process.

    ``sends_files``: whether tasks are done where the folders of this process are not seen.
    """

    sends_files: bool = False

    @property
    def capacity(self) -> int:
        """How many tasks are done at once."""
        return 1

    def answers(
        self, work: Callable[[T], A], tasks: Iterable[T], patience: float | None = None
    ) -> Iterator[tuple[int, A | None]]:
        """Yield places of tasks and answers, as they come; None of one whose worker died.

        ``work`` is a module's function; ``tasks`` are taken when there is room for one more, and
        one may show no life for ``patience`` seconds, by default for ever.
        """
        yield from enumerate(map(work, tasks))

    def map(
        self,
        work: Callable[[T], A],
        tasks: Sequence[T],
        *,
        progress: Callable[[int], Any] = lambda _: None,
    ) -> list[A]:
        """Do all the work, and return the answers in the tasks' order.

        ``progress`` is called with the number of tasks that are done. UserError if a worker died;
        what the work itself raises is raised here.
        """
        found = dict[int, A]()
        for place, answer in self.answers(work, tasks):
            if answer is None:
                cure = "start again, with fewer --jobs if memory is"
                raise UserError(f"task {place + 1}: {DIED}; {cure}")
            found[place] = answer
            progress(len(found))
        return [found[place] for place in range(len(tasks))]

    def close(self) -> None:
        """Let go of everybody, whatever they are doing."""


def _say_nothing(_line: str) -> None:
    """Warn nobody."""


@dataclass(frozen=True)
class PendingTask:
    """A task that a cluster was given and that is not over.

    ``home`` is the address of the worker that it is for, if for any. ``hangs`` counts the workers
    that were given it and hung.
    """

    place: int
    work: Callable[[Any], Any]
    task: Any
    patience: float | None
    home: str | None
    hangs: int = 0


class Cluster(Executor):
    """Workers of a Dask cluster; UserError without Dask, or if no scheduler or worker is found.

    ``workers``: processes of this machine to start, one per processor by default; ``address``: of a
    scheduler elsewhere in their place, e.g. ``tcp://127.0.0.1:8786``; ``imports``: a user's
    modules; ``warn`` is called with a line for each worker that hangs.
    """

    def __init__(
        self,
        workers: int | None = None,
        address: str | None = None,
        imports: tuple[str, ...] = (),
        warn: Callable[[str], Any] = _say_nothing,
    ) -> None:
        try:
            importlib.import_module("cryptography")  # of a cluster's certificate
            dask = importlib.import_module("distributed")
        except ImportError as error:
            option = "--scheduler" if address else f"{workers} worker processes"
            raise UserError(f"{option}: this needs Dask, {INSTALL}") from error
        self.sends_files, self._address, self._local = address is not None, address, None
        self._count = workers or importlib.import_module("dask.system").CPU_COUNT
        self._done: queue.Queue[Any] = queue.Queue()
        self._killed = dask.KilledWorker
        self._psutil = importlib.import_module("psutil")  # which Dask needs
        self.pending = dict[Any, PendingTask]()  # by their futures
        self._given_up = deque[int]()  # places of tasks that make workers hang
        self._warn = warn
        self._heartbeats = Heartbeats()
        self._hung = set[str]()  # addresses of workers that hang
        self._last_look = time.monotonic()
        self._has_safe_path = SAFE_PATH in os.environ
        if address is None:
            try:
                self._local = _local(dask, self._count)
            finally:
                self._restore_environment()
            self.client = dask.Client(self._local, set_as_default=False)
        else:
            self.client = _connected(dask, address)
            for name in (name.removesuffix(".py") for name in imports):
                found = importlib.util.find_spec(name)
                if found is not None and Path(str(found.origin)).name == f"{name}.py":
                    self.client.upload_file(found.origin, load=False)  # a module of one file
        self._seen = time.monotonic()

    @property
    def capacity(self) -> int:
        """How many threads all workers that are there have."""
        return sum(self.workers().values())

    def workers(self) -> dict[str, int]:
        """Return the addresses and threads of the workers that do not hang.

        UserError if the scheduler is gone, or all of them for a minute.
        """
        here = dict[str, int]()
        with suppress(OSError, TimeoutError):
            here = self.client.nthreads() if self.client.status == "running" else {}
        if self.client.status != "running":
            self._lost("was lost")
        if self._local is not None and len(here) < self._count:
            self._local.scale(self._count)  # Dask gives one up that is long in starting again
        here = {address: threads for address, threads in here.items() if address not in self._hung}
        if here:
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > WITHOUT_WORKERS:
            self._lost("has no workers any more")
        return here

    def answers(
        self, work: Callable[[T], A], tasks: Iterable[T], patience: float | None = None
    ) -> Iterator[tuple[int, A | None]]:
        """Yield places and answers; UserError if the scheduler or the last worker goes."""
        waiting = enumerate(tasks)
        while True:
            free = max(self.capacity - len(self.pending), int(not self.pending))
            for place, task in islice(waiting, free):
                self.submit(place, work, task, patience=patience)
            if not self.pending and not self._given_up:
                return
            yield self.next()

    def submit(
        self,
        place: int,
        work: Callable[[T], Any],
        task: T,
        *,
        patience: float | None = None,
        at: str | None = None,
    ) -> None:
        """Hand on a task, to a worker of this address if it is there."""
        self._submit(PendingTask(place, work, task, patience, home=at))

    def _submit(self, task: PendingTask) -> None:
        preferred = list[str]()
        if task.home is not None and task.home not in self._hung:
            preferred = [task.home]
        elif self._hung:  # of which Dask knows nothing
            preferred = list(self.workers())
        where = {"workers": preferred, "allow_other_workers": True} if preferred else {}
        given = (task.work, task.task, task.patience)
        future = self.client.submit(_watched, *given, pure=False, **where)
        self.pending[future] = task
        future.add_done_callback(self._done.put)

    def next(self) -> tuple[int, Any]:
        """Wait for a task that is over: its place, and its answer, None if its worker died."""
        while True:
            self._look_after_workers()
            if self._given_up:
                return self._given_up.popleft(), None
            try:
                future = self._done.get(timeout=LOOKING)
            except queue.Empty:
                if (place := self._stranded()) is not None:
                    return place, None
                continue
            if future not in self.pending:  # it was stranded, or its worker hung
                continue
            if future.status == "cancelled":
                self._lost("was lost")
            try:
                answer = future.result(timeout=LOOKING)
            except self._killed:
                answer = None
            except TimeoutError:  # the task's own, or of one that is done again: its worker died
                if future.status == "error":
                    raise
                future.add_done_callback(self._done.put)
                if (place := self._stranded()) is not None:  # no other may be there to do it
                    return place, None
                continue
            return self.pending.pop(future).place, answer

    def _stranded(self) -> int | None:
        """Take back a task that nobody will do, and return its place; None if there is none.

        One for a worker that went while there was no other waits for ever: Dask gives the next
        worker those only that are for anybody.
        """
        here = self.workers()
        left = [future for future, task in self.pending.items() if task.home not in {None, *here}]
        with suppress(OSError, TimeoutError):
            taken = {key for keys in self.client.processing().values() for key in keys}
            for future in (own for own in left if own.key not in taken):
                future.cancel()
                return self.pending.pop(future).place
        return None

    def _look_after_workers(self) -> None:
        """Give the tasks of workers that hang to others, if it is time to look for such."""
        now = time.monotonic()
        if now - self._last_look < LOOKING:
            return
        self._last_look = now
        with suppress(OSError, TimeoutError):
            self._heartbeats.note(self._signs_of_life(), now)
        silent = self._heartbeats.silent_workers(SILENT)
        newly_hung = silent - self._hung
        self._hung = silent
        for address in newly_hung:
            process = self._processes().get(address)
            name = f"worker {address}" if process is None else f"worker process {process}"
            cure = "its work is given to another"
            self._warn(f"{name} has shown no life for {SILENT:g} s; {cure}")
        for address in silent:
            self._replace(address)

    def _signs_of_life(self) -> dict[str, SignOfLife]:
        """Return what each worker has shown last, by its address."""
        processes = self._processes()
        signs = dict[str, SignOfLife]()
        for address, worker in self.client.scheduler_info(n_workers=-1)["workers"].items():
            seconds = 0.0
            if address in processes:
                with suppress(self._psutil.Error):
                    times = self._psutil.Process(processes[address]).cpu_times()
                    seconds = times.user + times.system
            signs[address] = SignOfLife(worker["last_seen"], seconds)
        return signs

    def _processes(self) -> dict[str, int]:
        """Return the process numbers of the workers of this machine, by their addresses."""
        nannies = [] if self._local is None else self._local.workers.values()
        return {nanny.worker_address: nanny.pid for nanny in nannies if nanny.pid is not None}

    def _replace(self, address: str) -> None:
        """Give the tasks of a worker that hangs to others, and end it where it is of this machine.

        Elsewhere the tasks stay with it while there is no other: it may go on one day.
        """
        process = self._processes().get(address)
        if process is None and not self.workers():
            return
        keys = set[Any]()  # of tasks that it has, or whose answers it has
        with suppress(OSError, TimeoutError):
            keys.update(self.client.processing().get(address, ()))
            keys.update(self.client.has_what().get(address, ()))
        futures = [future for future in self.pending if future.key in keys]
        tasks = [self.pending.pop(future) for future in futures]
        with suppress(OSError, TimeoutError):
            self.client.cancel(futures)
            if process is not None:
                self._kill(process)
                self._wait_until_gone(address)
                self.refill()
        for task in tasks:
            again = replace(task, home=None, hangs=task.hangs + 1)
            if again.hangs < MOST_HANGS:
                self._submit(again)
            else:
                self._given_up.append(task.place)

    def _kill(self, process: int) -> None:
        with suppress(self._psutil.Error):  # it has ended by itself
            self._psutil.Process(process).kill()

    def _wait_until_gone(self, address: str) -> None:
        """Wait until the scheduler has noticed that a process was killed."""
        deadline = time.monotonic() + CONNECTING
        while address in self.client.nthreads() and time.monotonic() < deadline:
            time.sleep(0.05)

    def refill(self) -> None:
        """Wait until a process of this machine that died is replaced."""
        if self._local is not None:
            with suppress(TimeoutError):
                self.client.wait_for_workers(self._count, timeout=CONNECTING)

    def close(self) -> None:
        """Close the connection, and end the workers of this machine.

        Those are killed if somebody is still at work: Dask would wait for them for seconds.
        """
        if self.pending and self._local is not None:
            for nanny in self._local.workers.values():
                nanny.close_gracefully()  # or it would start another process
            for process in self._processes().values():
                self._kill(process)
        self.client.close()
        if self._local is not None:
            self._local.close()
            self._restore_environment()

    def _restore_environment(self) -> None:
        """Take back what is set here for new workers: this process may start other programs."""
        if not self._has_safe_path:
            os.environ.pop(SAFE_PATH, None)

    def _lost(self, what: str) -> NoReturn:
        """Raise UserError: the cluster is not there any more."""
        name = f"--scheduler {self._address}" if self._address else "the Dask cluster"
        raise UserError(f"{name} {what}; start it again and use --resume")


def _connected(dask: Any, address: str) -> Any:
    """Return a client of a cluster elsewhere that has a worker."""
    if not re.fullmatch(r"(\w+://)?[^\s/]+:\d+", address):
        raise UserError(f"--scheduler {address} is no address; write e.g. tcp://127.0.0.1:8786")
    for logger in (
        "distributed",
        "distributed.client",
    ):  # a scheduler that is gone is told in one line, by us
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    try:
        client = dask.Client(address, timeout=CONNECTING, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        reason = f"--scheduler {address} cannot be reached: {error}"
        raise UserError(f"{reason}; check the address and that dask scheduler runs") from error
    try:
        client.wait_for_workers(1, timeout=CONNECTING)
    except (OSError, TimeoutError) as error:
        client.close()
        cure = f"run dask worker {address}"
        raise UserError(f"--scheduler {address} has no workers; {cure}") from error
    return client


def _local(dask: Any, workers: int) -> Any:
    """Start a scheduler and workers on loopback; a task whose worker dies is not tried again.

    The environment of workers is that of this process, but for one thread each where it does not
    say otherwise: what Dask adds makes the allocation of large arrays slow. They import no file of
    the working folder in place of a library, such as a ``socket.py``.
    """
    variables = dict.fromkeys((*ONE_THREAD, SAFE_PATH), 1)
    environment = {"distributed.nanny.pre-spawn-environ": variables}
    os.environ.setdefault(SAFE_PATH, "1")  # for the helper processes that Python itself starts
    try:
        with importlib.import_module("dask.config").set(environment):
            return dask.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=LOOPBACK,
                worker_dashboard_address=LOOPBACK,
                silence_logs=logging.CRITICAL,
                memory_limit=0,
                security=True,
                scheduler_kwargs={"allowed_failures": 0, "dashboard": False},
                preload=[__name__],
            )
    except (OSError, RuntimeError) as error:
        raise UserError(f"{workers} worker processes did not start: {error}; try again") from error


def dask_setup(_worker: Any) -> None:
    """Keep Ctrl-C from a worker of this machine, which its parent ends (Dask calls this there)."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()


def executor(
    jobs: int | None,
    scheduler: str | None = None,
    imports: tuple[str, ...] = (),
    warn: Callable[[str], Any] = _say_nothing,
) -> closing[Executor]:
    """Return who does tasks, as a context manager: a cluster, or without Dask this process.

    ``jobs``: worker processes; one per processor by default. ``warn``: as of ``Cluster``.
    """
    here = scheduler is None and jobs in {None, 1}
    lacking = here and importlib.util.find_spec("distributed") is None
    return closing(Executor() if lacking else Cluster(jobs, scheduler, imports, warn))


def mapper(jobs: int | None, warn: Callable[[str], Any] = _say_nothing) -> closing[Executor]:
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


class _Life:
    """Of a worker: how long it may show no life, if not for ever, and when it last did."""

    patience: float | None = None
    shown = 0.0
    turn = threading.Lock()  # there is one clock


def beat(_: object = None) -> None:
    """Show life, where somebody waits for it."""
    now = time.monotonic()
    if _Life.patience is not None and now - _Life.shown > SELDOM:
        _Life.shown = now
        faulthandler.dump_traceback_later(_Life.patience, exit=True, file=_sink())


@cache
def _sink() -> int:
    return os.open(os.devnull, os.O_WRONLY)


def _watched(work: Callable[[T], A], task: T, patience: float | None) -> A:
    """Do a task in a worker, which ends if no life is shown."""
    if patience is None:
        return work(task)
    with _Life.turn:
        _Life.patience, _Life.shown = patience, 0.0
        beat()
        try:
            return work(task)
        finally:
            _Life.patience = None
            faulthandler.cancel_dump_traceback_later()
