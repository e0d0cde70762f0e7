"""The same study on a Dask cluster: tasks go to its workers, run directories come back as bytes.

Workers need this package and, at the same path, a data file that is not bundled; they share no
folder with the client. A user's modules of one file are sent to them. A task whose workers keep
dying is given up by the scheduler (``distributed.scheduler.allowed-failures``) and recorded.
"""

import importlib
import importlib.util
import logging
import queue
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from regretless.market.core.errors import UserError
from regretless.scenarios.studies.design import Task
from regretless.scenarios.studies.play import Answer, Failure, failure_of

CONNECTING = 15.0  # seconds to find the scheduler, and then a worker
LOOKING = 2.0  # seconds between two looks at whether anybody still works
LOGGERS = ("distributed", "distributed.client")  # which have a level each
WITHOUT_WORKERS = 60.0  # seconds that a cluster may be without one


class DaskWorkers:
    """Workers of a Dask cluster; a context manager that closes the connection.

    Parameters
    ----------
    address : str
        Of the scheduler, e.g. ``tcp://127.0.0.1:8786``.

    Raises
    ------
    UserError
        If Dask is not installed, or no scheduler or no worker is found.
    """

    sends_files = True

    def __init__(self, address: str, imports: tuple[str, ...] = ()) -> None:
        try:
            distributed = importlib.import_module("distributed")
        except ImportError as error:
            reason = "--scheduler needs Dask, which is not installed"
            raise UserError(f"{reason}; run pip install 'regretless[dask]'") from error
        if not re.fullmatch(r"(\w+://)?[^\s/]+:\d+", address):
            raise UserError(f"--scheduler {address} is no address; write e.g. tcp://127.0.0.1:8786")
        self.address, self._seen = address, time.monotonic()
        for logger in LOGGERS:  # a scheduler that is gone is told in one line, by us
            logging.getLogger(logger).setLevel(logging.CRITICAL)
        try:
            self.client: Any = distributed.Client(address, timeout=CONNECTING, set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            reason = f"--scheduler {address} cannot be reached: {error}"
            raise UserError(f"{reason}; check the address and that dask scheduler runs") from error
        try:
            self.client.wait_for_workers(1, timeout=CONNECTING)
        except (OSError, TimeoutError) as error:
            self.client.close()
            raise UserError(
                f"--scheduler {address} has no workers; run dask worker {address}"
            ) from error
        for name in imports:
            self._send(name.removesuffix(".py"))

    def _send(self, module: str) -> None:
        found = importlib.util.find_spec(module)
        alone = found is not None and not found.submodule_search_locations and "." not in module
        if alone and found is not None and str(found.origin).endswith(".py"):
            self.client.upload_file(found.origin, load=False)

    def close(self) -> None:
        """Close the connection; what is not done is given up."""
        self.client.close()

    def answers(
        self, work: Callable[[Task], Answer], tasks: Iterable[Task], patience: float | None = None
    ) -> Iterator[Answer]:
        """Yield the answers as they come; as ``LocalWorkers.answers``, whatever the patience.

        Raises
        ------
        UserError
            If the scheduler, or the last worker, goes away.
        """
        done: queue.Queue[Any] = queue.Queue()
        pending = {self.client.submit(work, task, pure=False): task for task in tasks}
        for future in pending:
            future.add_done_callback(done.put)
        while pending:
            future = self._next(done)
            yield self._answer(future, pending.pop(future))
            future.release()

    def _next(self, done: queue.Queue[Any]) -> Any:
        self._seen = time.monotonic()
        while True:
            try:
                return done.get(timeout=LOOKING)
            except queue.Empty:
                self.look()

    def look(self) -> list[str]:
        """Return the workers' addresses; UserError if the scheduler, or all of them, are gone."""
        if self.client.status != "running":
            self.lost("was lost")
        here = list(self.client.scheduler_info()["workers"])
        if here:
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > WITHOUT_WORKERS:
            self.lost("has no workers any more")
        return here

    def _answer(self, future: Any, task: Task) -> Answer:
        if future.status in {"cancelled", "lost"}:
            self.lost("was lost")
        error = future.exception()
        if error is None:
            answer: Answer = future.result()
            return answer
        failure = failure_of(error)
        if failure.kind == "KilledWorker":
            failure = Failure("WorkerDied", "the Dask workers that had the run died")
        return Answer(task.run, failure)

    def lost(self, what: str) -> NoReturn:
        """Raise UserError: the cluster is not there any more."""
        raise UserError(f"--scheduler {self.address} {what}; start it again and use --resume")
