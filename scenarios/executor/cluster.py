"""A cluster: tasks are done by the workers of a Dask cluster, here or elsewhere.

A cluster of this machine is a ``dask.distributed.LocalCluster``: processes of one thread each, on
loopback, which end with the process that started them and are replaced when they die; they speak to
each other by TLS with a certificate of this cluster alone, so that no other user of the machine
can send them work. One elsewhere is named by the address of its scheduler; its workers need this
package and, at the same path, a data file that is not bundled, share no folder with this process,
and are sent a user's modules of one file. Without Dask, an extra, tasks are done here, one after
another.

Tasks that are over come from Dask's ``as_completed``. What it does not do is done here:

- A worker that dies ends its task; ``next`` returns None in place of its answer.
- A worker whose process stands still, as one that a signal has stopped, is given up after
  ``SILENT_SECONDS`` without a sign of life (``heartbeats``). One line says so, and its tasks are
  given to others. On this machine its process is killed, and Dask starts another in its place. A
  task whose workers hung ``MAX_HANGS`` times is over as if its worker had died.
- A task that was for a worker that is gone, and that Dask gives to nobody else, is taken back.
- A cluster whose scheduler, or whose last worker, is gone is a UserError.
"""

import importlib
import importlib.util
import logging
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from regretless.market.core.errors import UserError
from regretless.scenarios.executor import worker
from regretless.scenarios.executor.base import A, Executor, T
from regretless.scenarios.executor.heartbeats import Heartbeats, SignOfLife

CONNECT_SECONDS = 15.0  # to find the scheduler, and then a worker
LOOK_SECONDS = 2.0  # between two looks at whether anybody still works
MAX_SECONDS_WITHOUT_WORKERS = 60.0
SILENT_SECONDS = 30.0  # without a sign of life, after which a worker is given up
MAX_WORKERS_PER_PROCESSOR = 64  # of this machine; more is a slip, and fills the memory
MAX_HANGS = 2  # of workers that were given a task, before the task is given up too
# Libraries read the first three while they load; Dask sets such variables in this process, too.
ONE_THREAD_WHILE_LOADING = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# Numba reads this one whenever it compiles, and fails if it changed after threads were started.
ONE_THREAD_IN_WORKERS = "NUMBA_NUM_THREADS"
SAFE_PATH = "PYTHONSAFEPATH"  # to Python: import nothing from the working folder by itself
LOOPBACK = "127.0.0.1:0"  # at any free port
INSTALL = "which is not installed; run pip install 'regretless[dask]'"


def warn_nobody(_line: str) -> None:
    """Drop a warning."""


@dataclass(frozen=True)
class PendingTask:
    """A task that a cluster was given and that is not over.

    Attributes
    ----------
    place : int
        Its index, under which its answer is returned.
    work, task
        What is called, and with what.
    patience : float or None
        For how many seconds it may show no life.
    home : str or None
        The address of the worker that it is for, if for any.
    hangs : int
        How many workers were given it and hung.
    """

    place: int
    work: Callable[[Any], Any]
    task: Any
    patience: float | None
    home: str | None
    hangs: int = 0


class Cluster(Executor):
    """Workers of a Dask cluster; UserError without Dask, or if no scheduler or worker is found.

    Parameters
    ----------
    workers : int, optional
        Processes of this machine to start; one per processor by default.
    address : str, optional
        Of a scheduler elsewhere in their place, e.g. ``tcp://127.0.0.1:8786``.
    imports : tuple of str
        A user's modules.
    warn : callable
        Is called with a line for each worker that hangs.
    """

    def __init__(
        self,
        workers: int | None = None,
        address: str | None = None,
        imports: tuple[str, ...] = (),
        warn: Callable[[str], Any] = warn_nobody,
    ) -> None:
        dask = _import_dask("--scheduler" if address else f"{workers} worker processes")
        self.sends_files = address is not None
        self._address = address
        n_processors = importlib.import_module("dask.system").CPU_COUNT
        self._n_workers = workers or n_processors
        most_workers = MAX_WORKERS_PER_PROCESSOR * n_processors
        if address is None and self._n_workers > most_workers:
            raise UserError(
                f"{workers} worker processes on a machine of {n_processors} processors; "
                f"give at most {most_workers}"
            )
        self._killed_worker_error = dask.KilledWorker
        self._psutil = importlib.import_module("psutil")  # which Dask needs
        self._warn = warn
        self._has_safe_path = SAFE_PATH in os.environ
        self._local_cluster: Any = None
        if address is None:
            try:
                self._local_cluster = _start_local_cluster(dask, self._n_workers)
            finally:
                self._restore_environment()
            self.client = dask.Client(self._local_cluster, set_as_default=False)
        else:
            self.client = _connect(dask, address)
            _send_modules(self.client, imports)
        self.pending: dict[Any, PendingTask] = {}  # by their futures
        self._completed: Any = dask.as_completed(loop=self.client.loop)
        self._given_up: deque[int] = deque()  # places of tasks that make workers hang
        self._heartbeats = Heartbeats()
        self._hung: set[str] = set()  # addresses of workers that hang
        self._last_look = time.monotonic()
        self._last_time_with_workers = time.monotonic()

    @property
    def capacity(self) -> int:
        """How many threads all workers that are there have."""
        return sum(self.workers().values())

    def workers(self) -> dict[str, int]:
        """Return the addresses and threads of the workers that do not hang.

        UserError if the scheduler is gone, or all of them for a minute.
        """
        all_workers: dict[str, int] = {}
        with suppress(OSError, TimeoutError):
            if self.client.status == "running":
                all_workers = self.client.nthreads()
        if self.client.status != "running":
            self._raise_lost("was lost")
        if self._local_cluster is not None and len(all_workers) < self._n_workers:
            # Dask gives one up that is long in starting again
            self._local_cluster.scale(self._n_workers)
        working = {
            address: n_threads
            for address, n_threads in all_workers.items()
            if address not in self._hung
        }
        now = time.monotonic()
        if working:
            self._last_time_with_workers = now
        elif now - self._last_time_with_workers > MAX_SECONDS_WITHOUT_WORKERS:
            self._raise_lost("has no workers any more")
        return working

    def answers(
        self, work: Callable[[T], A], tasks: Iterable[T], patience: float | None = None
    ) -> Iterator[tuple[int, A | None]]:
        """Yield indices and answers; UserError if the scheduler or the last worker goes."""
        waiting = enumerate(tasks)
        while True:
            n_free = self.capacity - len(self.pending)
            if not self.pending:
                n_free = max(n_free, 1)  # one waits for a worker that is not there yet
            for place, task in islice(waiting, max(n_free, 0)):
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
        """Hand on a task, to the worker at an address if it is there."""
        self._submit(PendingTask(place, work, task, patience, home=at))

    def _submit(self, task: PendingTask) -> None:
        restriction: dict[str, Any] = {}
        if task.home is not None and task.home not in self._hung:
            restriction = {"workers": [task.home], "allow_other_workers": True}
        elif self._hung:  # of which Dask knows nothing
            working = list(self.workers())
            if working:
                restriction = {"workers": working, "allow_other_workers": True}
        future = self.client.submit(
            worker.do_watched, task.work, task.task, task.patience, pure=False, **restriction
        )
        self.pending[future] = task
        self._completed.add(future)

    def next(self) -> tuple[int, Any]:
        """Wait for a task that is over: its place, and its answer, None if its worker died."""
        while True:
            self._look_after_workers()
            if self._given_up:
                return self._given_up.popleft(), None
            future = self._wait_for_future()
            if future is None:
                stranded = self._take_back_stranded()
                if stranded is not None:
                    return stranded.place, None
                continue
            if future not in self.pending:  # it was stranded, or its worker hung
                continue
            if future.status == "cancelled":
                self._raise_lost("was lost")
            try:
                answer = future.result(timeout=LOOK_SECONDS)
            except self._killed_worker_error:
                answer = None
            except TimeoutError:
                if future.status == "error":  # the task itself has raised it
                    raise
                # the worker that had the answer died, and the task is done again
                self._completed.add(future)
                stranded = self._take_back_stranded()  # no other worker may be there to do it
                if stranded is not None:
                    return stranded.place, None
                continue
            return self.pending.pop(future).place, answer

    def _wait_for_future(self) -> Any:
        """Return the future of a task that is over; None if there is none within a look's time.

        ``as_completed`` itself would wait for ever, and nobody would look after the workers.
        """
        with self._completed.thread_condition:
            if not self._completed.has_ready():
                self._completed.thread_condition.wait(timeout=LOOK_SECONDS)
        return next(self._completed) if self._completed.has_ready() else None

    def _take_back_stranded(self) -> PendingTask | None:
        """Take back a task that nobody will do; None if there is none.

        One for a worker that went while there was no other waits for ever: Dask gives the next
        worker those only that are for anybody.
        """
        working = self.workers()
        with suppress(OSError, TimeoutError):
            keys_in_work = set()
            for keys in self.client.processing().values():
                keys_in_work.update(keys)
            for future, task in self.pending.items():
                is_home_gone = task.home is not None and task.home not in working
                if is_home_gone and future.key not in keys_in_work:
                    future.cancel()
                    return self.pending.pop(future)
        return None

    def _look_after_workers(self) -> None:
        """Give the tasks of workers that hang to others, if it is time to look for such."""
        now = time.monotonic()
        if now - self._last_look < LOOK_SECONDS:
            return
        self._last_look = now
        with suppress(OSError, TimeoutError):
            self._heartbeats.note(self._signs_of_life(), now)
        silent = self._heartbeats.silent_workers(SILENT_SECONDS)
        newly_hung = silent - self._hung
        self._hung = silent
        for address in newly_hung:
            process = self._processes().get(address)
            name = f"worker {address}" if process is None else f"worker process {process}"
            self._warn(
                f"{name} has shown no life for {SILENT_SECONDS:g} s; its work is given to another"
            )
        for address in silent:
            self._replace_worker(address)

    def _signs_of_life(self) -> dict[str, SignOfLife]:
        """Return what each worker has shown last, by its address."""
        processes = self._processes()
        signs: dict[str, SignOfLife] = {}
        for address, info in self.client.scheduler_info(n_workers=-1)["workers"].items():
            seconds = 0.0
            if address in processes:
                with suppress(self._psutil.Error):
                    times = self._psutil.Process(processes[address]).cpu_times()
                    seconds = times.user + times.system
            signs[address] = SignOfLife(info["last_seen"], seconds)
        return signs

    def _processes(self) -> dict[str, int]:
        """Return the process numbers of the workers of this machine, by their addresses."""
        if self._local_cluster is None:
            return {}
        nannies = self._local_cluster.workers.values()
        return {nanny.worker_address: nanny.pid for nanny in nannies if nanny.pid is not None}

    def _replace_worker(self, address: str) -> None:
        """Give the tasks of a worker that hangs to others, and end it where it is of this machine.

        Elsewhere the tasks stay with it while there is no other: it may go on one day.
        """
        process = self._processes().get(address)
        if process is None and not self.workers():
            return
        keys: set[Any] = set()  # of tasks that it has, or whose answers it has
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
            next_try = replace(task, home=None, hangs=task.hangs + 1)
            if next_try.hangs < MAX_HANGS:
                self._submit(next_try)
            else:
                self._given_up.append(task.place)

    def _kill(self, process: int) -> None:
        with suppress(self._psutil.Error):  # it has ended by itself
            self._psutil.Process(process).kill()

    def _wait_until_gone(self, address: str) -> None:
        """Wait until the scheduler has noticed that a process was killed."""
        deadline = time.monotonic() + CONNECT_SECONDS
        while address in self.client.nthreads() and time.monotonic() < deadline:
            time.sleep(0.05)

    def refill(self) -> None:
        """Wait until a process of this machine that died is replaced."""
        if self._local_cluster is not None:
            with suppress(TimeoutError):
                self.client.wait_for_workers(self._n_workers, timeout=CONNECT_SECONDS)

    def close(self) -> None:
        """Close the connection, and end the workers of this machine.

        Those are killed if somebody is still at work: Dask would wait for them for seconds.
        """
        if self.pending and self._local_cluster is not None:
            for nanny in self._local_cluster.workers.values():
                nanny.close_gracefully()  # or it would start another process
            for process in self._processes().values():
                self._kill(process)
        self.client.close()
        if self._local_cluster is not None:
            self._local_cluster.close()
            self._restore_environment()

    def _restore_environment(self) -> None:
        """Take back what is set here for new workers: this process may start other programs."""
        if not self._has_safe_path:
            os.environ.pop(SAFE_PATH, None)

    def _raise_lost(self, what: str) -> NoReturn:
        """Raise UserError: the cluster is not there any more."""
        name = f"--scheduler {self._address}" if self._address else "the Dask cluster"
        raise UserError(f"{name} {what}; start it again and use --resume")


def _import_dask(option: str) -> Any:
    """Return Dask's ``distributed``; UserError that names the option if it is not installed."""
    try:
        importlib.import_module("cryptography")  # of a cluster's certificate
        return importlib.import_module("distributed")
    except ImportError as error:
        raise UserError(f"{option}: this needs Dask, {INSTALL}") from error


def _connect(dask: Any, address: str) -> Any:
    """Return a client of a cluster elsewhere that has a worker."""
    if not re.fullmatch(r"(\w+://)?[^\s/]+:\d+", address):
        raise UserError(f"--scheduler {address} is no address; write e.g. tcp://127.0.0.1:8786")
    _silence_dask()
    try:
        client = dask.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        reason = f"--scheduler {address} cannot be reached: {error}"
        raise UserError(f"{reason}; check the address and that dask scheduler runs") from error
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except (OSError, TimeoutError) as error:
        client.close()
        raise UserError(
            f"--scheduler {address} has no workers; run dask worker {address}"
        ) from error
    return client


def _silence_dask() -> None:
    """Keep Dask from logging on standard error: of what is gone one line is said here.

    The levels stay after the cluster is closed. Dask puts back its own as soon as a cluster of this
    machine closes, and a connection that ends later would still print its traceback.
    """
    for logger in ("distributed", "distributed.client"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)


def _send_modules(client: Any, imports: tuple[str, ...]) -> None:
    """Send workers elsewhere the user's modules, those of one file."""
    for import_name in imports:
        module = import_name.removesuffix(".py")
        spec = importlib.util.find_spec(module)
        if spec is not None and Path(str(spec.origin)).name == f"{module}.py":
            client.upload_file(spec.origin, load=False)


def _start_local_cluster(dask: Any, n_workers: int) -> Any:
    """Start a scheduler and workers on loopback; a task whose worker dies is not tried again.

    The environment of workers is that of this process, but for one thread each where it does not
    say otherwise: what Dask adds makes the allocation of large arrays slow. They import no file of
    the working folder in place of a library, such as a ``socket.py``.
    """
    settings = {
        "distributed.nanny.pre-spawn-environ": dict.fromkeys(
            (*ONE_THREAD_WHILE_LOADING, SAFE_PATH), 1
        ),
        "distributed.nanny.environ": {ONE_THREAD_IN_WORKERS: 1},
    }
    _silence_dask()
    os.environ.setdefault(SAFE_PATH, "1")  # for the helper processes that Python itself starts
    try:
        with importlib.import_module("dask.config").set(settings):
            return dask.LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=LOOPBACK,
                worker_dashboard_address=LOOPBACK,
                silence_logs=logging.CRITICAL,
                memory_limit=0,
                security=True,
                scheduler_kwargs={"allowed_failures": 0, "dashboard": False},
                preload=[worker.__name__],
            )
    except (OSError, RuntimeError) as error:
        raise UserError(
            f"{n_workers} worker processes did not start: {error}; try again"
        ) from error
