r"""How time grows: fitted exponents of seconds against each size of the problem.

Seconds of a round are fitted by least squares as log s = c + e log size; e is the exponent and its
standard error the slope's. A linear algorithm has e = 1, less where a fixed cost shows. Seconds are
those of all cores that work, and none of those in which the machine does something else, which
would meet long calls more often than short ones. Of each size the least of several turns counts,
sizes in turn. The crowds lie beyond the processor's caches: a step from within to without would
show as growth. Over the rounds T the seconds of the whole run are fitted, and memory, whose
exponent is 0 where it is flat.
"""

import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import process_time
from typing import Any

import numpy as np
from scipy.stats import linregress

from benchmarks.crowds import Crowd
from benchmarks.rounds import Rounds
from regretless.market.game.round import play_round

TURNS = 7
Sizes = tuple[int, ...]

CROWDS: Mapping[str, tuple[dict[str, int], Sizes]] = {  # what is fixed, and what varies
    "agents": ({}, (50_000, 100_000, 200_000, 400_000)),
    "losses": ({"agents": 400_000}, (50_000, 100_000, 200_000, 400_000)),
    "actions": ({"agents": 25_000, "goods": 64}, (4, 8, 16, 32)),
    "goods": ({"agents": 50_000}, (16, 32, 64, 128)),
    "policies": ({"agents": 50_000}, (8, 16, 32, 64)),
}
FORECASTS: Mapping[str, tuple[dict[str, int], Sizes]] = {
    "losses": ({"actions": 8, "functions": 16}, (500, 1000, 2000, 4000)),
    "actions": ({"losses": 500, "functions": 16}, (8, 16, 32, 64)),
    "functions": ({"losses": 500, "actions": 8}, (16, 32, 64, 128)),
}
ROUNDS: Sizes = (2_000, 4_000, 8_000, 16_000)
SMALLER = 16  # a quick run's crowds and rounds


@dataclass(frozen=True)
class Growth:
    """What was measured for one size of the problem.

    Parameters
    ----------
    work, size : str
        What is done, and what varies.
    measured : tuple of float
        Seconds of the processor, or bytes where the work is ``memory``.
    """

    work: str
    size: str
    sizes: Sizes
    measured: tuple[float, ...]
    exponent: float
    standard_error: float


def measure(*, quick: bool, progress: Callable[[int], None] = lambda _: None) -> list[Growth]:
    """Measure all exponents.

    Parameters
    ----------
    progress : callable
        Told how many of ``cells()`` are over.
    """
    shrink = SMALLER if quick else 1
    lengths = tuple(rounds // shrink for rounds in ROUNDS)
    found: list[Growth] = []

    def keep(work: str, size: str, sizes: Sizes, measured: list[float]) -> None:
        found.append(fitted(work, size, sizes, measured))
        progress(len(found))

    for size, (fixed, sizes) in CROWDS.items():
        crowds = [_shrunk(fixed | {size: value}, shrink) for value in sizes]
        steps = [partial(play_round, Crowd(**crowd).game()) for crowd in crowds]
        keep("agent-steps", size, tuple(crowd[size] for crowd in crowds), least_seconds(steps))
    for size, (fixed, sizes) in FORECASTS.items():
        rounds = [Rounds(**fixed | {size: value}).ours for value in sizes]
        keep("forecaster-round", size, sizes, least_seconds(rounds))
    keep("agent-steps", "rounds", lengths, [_seconds_of_a_run(rounds) for rounds in lengths])
    keep("memory", "rounds", lengths, [_bytes_after(rounds) for rounds in lengths])
    return found


def cells() -> int:
    """Return how many exponents are measured."""
    return len(CROWDS) + len(FORECASTS) + 2


def fitted(work: str, size: str, sizes: Sizes, measured: list[float]) -> Growth:
    """Fit the exponent of what was measured against the sizes."""
    fit = linregress(np.log(sizes), np.log(measured))
    return Growth(work, size, sizes, tuple(measured), float(fit.slope), float(fit.stderr))


def least_seconds(steps: Sequence[Callable[[], Any]]) -> list[float]:
    """Time each step in turn; the least seconds of a call."""
    seconds = np.full((TURNS, len(steps)), np.inf)
    for step in steps:
        step()  # compiles and touches its memory
    for turn in range(TURNS):
        for i, step in enumerate(steps):
            begun = process_time()
            step()
            seconds[turn, i] = process_time() - begun
    least: list[float] = seconds.min(0).tolist()
    return least


def _shrunk(sizes: dict[str, int], shrink: int) -> dict[str, int]:
    many = {"agents", "losses"}
    return {name: value // (shrink if name in many else 1) for name, value in sizes.items()}


def _small() -> Any:
    """Build a model of a few agents that hands its logs on."""
    model = Crowd(100, 20).model()
    model.stream_logs_to(lambda _: None)
    return model


def _seconds_of_a_run(rounds: int) -> float:
    """Return the least seconds of three runs."""
    spent = []
    for _ in range(3):
        model = _small()
        model.run(1)
        begun = process_time()
        model.run(1 + rounds)
        spent.append(process_time() - begun)
    return min(spent)


def _bytes_after(rounds: int) -> float:
    """Return what a model has allocated after so many rounds, logs handed on."""
    tracemalloc.start()
    try:
        model = _small()
        model.run(rounds)
        model.journal.flush()
        return float(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
