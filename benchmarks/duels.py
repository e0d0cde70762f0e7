"""Two ways to do the same work, timed in turn: medians of one process, and equal answers.

A file of works makes a ``Duel`` for each; ``time_duels`` times them and returns a ``Row`` for each,
which ``python -m benchmarks`` shows and writes.

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
Way = Callable[[], Array]  # does the work once and returns its answer

MAX_DIFFERENCE = 1e-6  # between two answers, in any entry
PACKAGES = {  # that bring a peer, by the name of what is imported
    "bourse": "bourse",
    "pyspiel": "open_spiel",
    "open_spiel": "open_spiel",
    "cvxpy": "cvxpy",
    "noregret": "noregret",
    "sklearn": "scikit-learn",
}
EXTRAS = {"scikit-learn": "learn"}  # extras that bring a package; the others come with `peers`


class DisagreementError(RuntimeError):
    """A peer computed something else, so that its time says nothing."""


class MissingPeerError(ImportError):
    """A peer's package is not installed; ``name`` is the package."""


@dataclass(frozen=True, eq=False)
class Duel:
    """One piece of work and two ways to do it.

    Parameters
    ----------
    work, rival : str
        Names of the work and of the peer, as they stand in the table.
    size : str
        What is done in one call, in words.
    ours, theirs : callable
        This project's way and the peer's, without arguments. Both return the answer, arrays of one
        shape.
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
    """Import and return a peer's module.

    MissingPeerError if a peer's package is not installed. Any other failure is raised as it is.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the peer's, about its own code
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing_module = error.name or ""
        package = PACKAGES.get(missing_module.split(".")[0])
        if package is None:
            raise
        raise MissingPeerError(f"{package} is not installed", name=package) from error


def time_duel(duel: Duel, repeats: int) -> Row:
    """Time a duel, ``repeats`` calls of either way, at least 1.

    DisagreementError if two answers differ by more than 1e-6, or in shape, or are not finite.
    """
    _check_answers(duel, duel.ours(), duel.theirs())
    our_seconds: list[float] = []
    their_seconds: list[float] = []
    for repeat in range(repeats):
        if repeat % 2 == 0:
            our_answer = _timed_call(duel.ours, our_seconds)
            their_answer = _timed_call(duel.theirs, their_seconds)
        else:
            their_answer = _timed_call(duel.theirs, their_seconds)
            our_answer = _timed_call(duel.ours, our_seconds)
        _check_answers(duel, our_answer, their_answer)
    our_median = statistics.median(our_seconds)
    their_median = statistics.median(their_seconds)
    return Row(
        duel.work,
        duel.size,
        duel.rival,
        seconds=our_median,
        rival_seconds=their_median,
        ratio=their_median / our_median,
    )


def _timed_call(way: Way, seconds: list[float]) -> Array:
    """Do the work once; append its seconds to the list and return the answer."""
    begun = perf_counter()
    answer = way()
    seconds.append(perf_counter() - begun)
    return answer


def _check_answers(duel: Duel, ours: Array, theirs: Array) -> None:
    our_shape = np.shape(ours)
    their_shape = np.shape(theirs)
    if our_shape != their_shape:
        shapes = f"shape {our_shape} here, {their_shape} by {duel.rival}"
        raise DisagreementError(f"{duel.work}: {shapes}")
    difference = np.abs(np.asarray(ours) - np.asarray(theirs)).max()
    if not difference <= MAX_DIFFERENCE:  # NaN is a disagreement too
        raise DisagreementError(f"{duel.work}: {duel.rival} differs by {difference:.1e}")


def time_duels(
    repeats: int,
    works: Sequence[Callable[[], Duel]],
    progress: Callable[[int], object] = lambda _: None,
) -> tuple[list[Row], list[str]]:
    """Prepare and time duels one after the other.

    Parameters
    ----------
    repeats : int
        Calls of either way of each duel.
    works : sequence of callable
        Each prepares one duel.
    progress : callable, optional
        Told how many duels are over, after each.

    Returns
    -------
    list of Row
        In the order of ``works``, those whose peer is not installed left out.
    list of str
        A line for each package that is missing: which works went without it.
    """
    rows: list[Row] = []
    works_without: dict[str, list[str]] = {}  # by the package that is missing
    for n_over, work in enumerate(works, start=1):
        try:
            rows.append(time_duel(work(), repeats))
        except MissingPeerError as error:
            function = getattr(work, "func", work)  # of a partial
            works_without.setdefault(str(error.name), []).append(str(function.__name__))
        progress(n_over)
    lines = []
    for package, names in works_without.items():
        extra = EXTRAS.get(package, "peers")
        lines.append(
            f"{package} is not installed, skipped: {', '.join(names)}; "
            f"pip install 'regretless[{extra}]' brings it"
        )
    return rows, lines
