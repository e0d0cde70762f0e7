"""Two ways to do the same work, timed in turn: medians of one process, and equal answers.

Both ways run once before the clock starts, to compile and to fill caches; then they alternate, and
who goes first alternates too, so that a slow spell of the machine meets both. Every answer is
compared: a benchmark of different answers is none. A peer's package is imported where it is timed.
"""

import importlib
import statistics
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Way = Callable[[], Array]

CLOSE = 1e-6  # between two answers, in any entry
PACKAGES = {  # by what is imported
    "bourse": "bourse",
    "pyspiel": "open_spiel",
    "open_spiel": "open_spiel",
    "cvxpy": "cvxpy",
    "noregret": "noregret",
    "sklearn": "scikit-learn",
}
EXTRAS = {"scikit-learn": "learn"}  # that bring a package which `peers` does not


class DisagreementError(RuntimeError):
    """A peer computed something else, so that its time says nothing."""


class MissingPeerError(ImportError):
    """A peer's package is not installed; ``name`` is the package."""


@dataclass(frozen=True, eq=False)
class Duel:
    """One piece of work and two ways to do it.

    ``size``: what is done in one call, in words; ``ours``, ``theirs`` (callables): without
    arguments; both return the answer, arrays of one shape.
    """

    work: str
    size: str
    rival: str
    ours: Way
    theirs: Way


@dataclass(frozen=True)
class Row:
    """What a duel measured: medians of one call, and ``rival_seconds / seconds``."""

    work: str
    size: str
    rival: str
    seconds: float
    rival_seconds: float
    ratio: float


def peer(module: str) -> Any:
    """Import a peer's module.

    MissingPeerError if a peer's package is not installed. Any other failure is raised as it is.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the peer's, about its own code
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = PACKAGES.get((error.name or "").split(".")[0])
        if package is None:
            raise
        raise MissingPeerError(f"{package} is not installed", name=package) from error


def timed(duel: Duel, repeats: int) -> Row:
    """Time a duel, ``repeats`` calls of either way, at least 1.

    DisagreementError if two answers differ by more than 1e-6, or in shape, or are not finite.
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


def _compare(duel: Duel, *answers: Array) -> None:
    first, second = map(np.asarray, answers)
    if first.shape != second.shape:
        shapes = f"shape {first.shape} here, {second.shape} by {duel.rival}"
        raise DisagreementError(f"{duel.work}: {shapes}")
    difference = np.abs(first - second).max()
    if not difference <= CLOSE:  # NaN is a disagreement too
        raise DisagreementError(f"{duel.work}: {duel.rival} differs by {difference:.1e}")


def measured(
    repeats: int,
    works: Sequence[Callable[[], Duel]],
    progress: Callable[[int], Any] = lambda _: None,
) -> tuple[list[Row], list[str]]:
    """Run duels one after the other.

    ``progress``: told how many duels are over. Returns list, list: the rows, and a line for each
    package that is missing: which works went without it.
    """
    rows: list[Row] = []
    missing: dict[str, list[str]] = {}
    for done, work in enumerate(works, start=1):
        try:
            rows.append(timed(work(), repeats))
        except MissingPeerError as error:
            name = str(getattr(work, "func", work).__name__)
            missing.setdefault(str(error.name), []).append(name)
        progress(done)
    return rows, [
        f"{package} is not installed, skipped: {', '.join(names)}; "
        f"pip install 'regretless[{EXTRAS.get(package, 'peers')}]' brings it"
        for package, names in missing.items()
    ]
