"""Two ways to do the same work, timed in turn: medians of one process, and equal answers.

Both ways run once before the clock starts, to compile and to fill caches; then they alternate, and
who goes first alternates too, so that a slow spell of the machine meets both. Every answer is
compared: a benchmark of different answers is none.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Way = Callable[[], Array]

CLOSE = 1e-6  # between two answers, in any entry


class DisagreementError(RuntimeError):
    """A peer computed something else, so that its time says nothing."""


@dataclass(frozen=True, eq=False)
class Duel:
    """One piece of work and two ways to do it.

    Parameters
    ----------
    size : str
        What is done in one call, in words.
    rival : str
        "mesa", "openspiel", "noregret", "numpy" or "bandwidth".
    ours, theirs : callables
        Without arguments; both return the answer, arrays of one shape.
    """

    work: str
    size: str
    rival: str
    ours: Way
    theirs: Way


@dataclass(frozen=True)
class Row:
    """What a duel measured.

    Parameters
    ----------
    seconds, rival_seconds : float
        Medians of one call.
    ratio : float
        ``rival_seconds / seconds``: above 1, this project is faster.
    """

    work: str
    size: str
    rival: str
    seconds: float
    rival_seconds: float
    ratio: float


def timed(duel: Duel, repeats: int) -> Row:
    """Time a duel.

    Parameters
    ----------
    repeats : int
        Timed calls of either way, at least 1.

    Raises
    ------
    DisagreementError
        If two answers differ by more than 1e-6, or in shape, or are not finite.
    """
    ways = duel.ours, duel.theirs
    spent: tuple[list[float], list[float]] = [], []
    _compare(duel, duel.ours(), duel.theirs())
    for repeat in range(repeats):
        answers: dict[int, Array] = {}
        for i in (0, 1) if repeat % 2 == 0 else (1, 0):
            begun = perf_counter()
            answers[i] = ways[i]()
            spent[i].append(perf_counter() - begun)
        _compare(duel, answers[0], answers[1])
    ours, theirs = (statistics.median(times) for times in spent)
    return Row(duel.work, duel.size, duel.rival, ours, theirs, theirs / ours)


def _compare(duel: Duel, ours: Array, theirs: Array) -> None:
    first, second = np.asarray(ours), np.asarray(theirs)
    if first.shape != second.shape:
        raise DisagreementError(
            f"{duel.work}: shape {first.shape} here, {second.shape} by {duel.rival}"
        )
    difference = np.abs(first - second).max()
    if not difference <= CLOSE:  # NaN is a disagreement too
        raise DisagreementError(f"{duel.work}: {duel.rival} differs by {difference:.1e}")
