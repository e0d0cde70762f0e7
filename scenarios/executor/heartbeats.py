"""For how long the workers of a cluster have shown no life.

A worker whose process stands still, as one that a signal has stopped, is not dead: its connections
stay open, and its tasks are never over. ``Heartbeats`` is told again and again what each worker has
shown last, and counts for how long that has stayed the same.

Only time in which somebody looks is counted, and little of it between two looks. So nobody is
thought to hang because the machine slept, or because the process that looks was stopped itself or
had other work.
"""

from collections.abc import Mapping
from dataclasses import dataclass

MAX_GAP_SECONDS = 4.0  # between two looks that count, at most


@dataclass(frozen=True)
class SignOfLife:
    """What a worker has shown last.

    ``heartbeat`` is the time of its last message, by the scheduler's clock. ``processor_seconds``
    is what its process has computed so far, where that can be seen: one that holds the
    interpreter's lock for minutes sends nothing, and is at work. It is 0 elsewhere.
    """

    heartbeat: float
    processor_seconds: float = 0.0


class Heartbeats:
    """Counts for each worker, by its address, the seconds since it has last shown life."""

    def __init__(self) -> None:
        self._last_signs: dict[str, SignOfLife] = {}
        self._silent_seconds: dict[str, float] = {}
        self._last_look: float | None = None

    def note(self, signs: Mapping[str, SignOfLife], now: float) -> None:
        """Take note of what all workers that are there have shown last.

        ``now`` is in seconds, by a clock that never goes back. Workers that are not in ``signs``
        are forgotten.
        """
        gap = 0.0 if self._last_look is None else min(now - self._last_look, MAX_GAP_SECONDS)
        self._last_look = now
        silent_seconds: dict[str, float] = {}
        for address, sign in signs.items():
            is_silent = self._last_signs.get(address) == sign
            silent_seconds[address] = self._silent_seconds[address] + gap if is_silent else 0.0
        self._silent_seconds = silent_seconds
        self._last_signs = dict(signs)

    def silent_workers(self, seconds: float) -> set[str]:
        """Return the addresses of workers that have shown no life for at least so long."""
        return {address for address, silent in self._silent_seconds.items() if silent >= seconds}
