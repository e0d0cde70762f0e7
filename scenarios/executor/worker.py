"""What happens in a worker of a cluster: how it starts, and how it ends if it shows no life.

A task may show life by ``beat``, as a run does after every round. A worker that shows none for as
long as its tasks are given ends, even if it never lets go of the interpreter, and its task is over
as if it had died.
"""

import faulthandler
import os
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

MIN_SECONDS_BETWEEN_BEATS = 0.5  # others do not count
T = TypeVar("T")
A = TypeVar("A")


def dask_setup(_worker: Any) -> None:
    """Keep Ctrl-C from a worker of this machine, which its parent ends (Dask calls this there)."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()


class _Life:
    """Of a worker: how long it may show no life, if not for ever, and when it last did."""

    patience: float | None = None
    last_beat = 0.0  # by the monotonic clock
    lock = threading.Lock()  # there is one timer in a process


def beat(_: object = None) -> None:
    """Show life, where somebody waits for it."""
    now = time.monotonic()
    if _Life.patience is None or now - _Life.last_beat <= MIN_SECONDS_BETWEEN_BEATS:
        return
    _Life.last_beat = now
    faulthandler.dump_traceback_later(_Life.patience, exit=True, file=_discarded_output())


@cache
def _discarded_output() -> int:
    return os.open(os.devnull, os.O_WRONLY)


def do_watched(work: Callable[[T], A], task: T, patience: float | None) -> A:
    """Do a task in a worker, which ends if no life is shown for so many seconds."""
    if patience is None:
        return work(task)
    with _Life.lock:
        _Life.patience = patience
        _Life.last_beat = 0.0
        beat()
        try:
            return work(task)
        finally:
            _Life.patience = None
            faulthandler.cancel_dump_traceback_later()
