"""Shares under MPI: ``mpiexec -n 9 regretless run ... --scheduler mpi``, one conducts, eight play.

All processes are started with the same command, and those that are not the first one serve it
(``join``). If one of them dies MPI ends all: ``--resume`` goes on from the last checkpoints.
"""

import atexit
import signal
import time
from collections.abc import Iterator
from typing import Any

from regretless.market.core.errors import UserError
from regretless.scenarios.shards.crews import Heard, attempt
from regretless.scenarios.shards.shard import Task

NAME = "mpi"  # in the place of a scheduler's address
PAUSE = 5e-5  # seconds between two looks, so that who waits leaves the processor to others


def join() -> None:
    """Serve until all is over and exit; in the first process, return.

    Raises
    ------
    UserError
        If MPI is not there, or only one process.
    """
    world = _world()
    if world.Get_rank() == 0:
        if world.Get_size() == 1:
            told = f"--scheduler {NAME}: a single process, and nobody to play"
            raise UserError(f"{told}; start it as mpiexec -n 3 regretless ...")
        atexit.register(_end)
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first one notes it
    while _arrived(world, None) and (task := world.recv(source=0)) is not None:
        world.send((task.recipe.place, attempt(task)), dest=0)
    world.send(None, dest=0)
    raise SystemExit(0)


def _world() -> Any:
    try:
        from mpi4py import MPI  # noqa: PLC0415 - an extra
    except (ImportError, RuntimeError) as error:  # RuntimeError: there is no MPI library
        why = f"--scheduler {NAME} needs mpi4py and an MPI ({str(error).splitlines()[0]})"
        raise UserError(f"{why}; pip install 'regretless[mpi]', and load the cluster's") from error
    return MPI.COMM_WORLD


def _arrived(world: Any, patience: float | None) -> bool:
    """Wait so many seconds at most, None for any time, until there is something to receive."""
    end = None if patience is None else time.monotonic() + patience
    while not world.iprobe():
        if end is not None and time.monotonic() >= end:
            return False
        time.sleep(PAUSE)
    return True


def _end() -> None:
    """Let all others go, after hearing what they still have to say."""
    world = _world()
    others = range(1, world.Get_size())
    gone = [world.isend(None, dest=other) for other in others]
    left = len(gone)
    while left:
        left -= world.recv() is None


class MpiCrew:
    """The processes of an MPI run but the first, each with one share or several."""

    def __init__(self) -> None:
        self._world = _world()
        self._sent: list[Any] = []

    def __len__(self) -> int:
        """Count the workers."""
        return int(self._world.Get_size()) - 1

    def give(self, task: Task) -> None:
        """Send a task, without waiting for a worker that may itself be sending."""
        self._sent = [sent for sent in self._sent if not sent.test()[0]]
        home = 1 + task.recipe.place % len(self)
        self._sent.append(self._world.isend(task, dest=home))

    def hear(self, patience: float) -> Iterator[Heard]:
        """Yield what is there."""
        while _arrived(self._world, patience):
            patience = 0.0
            heard: Heard = self._world.recv()
            yield heard

    def close(self) -> None:
        """Leave the workers what they have until this process ends."""
