"""Processor time of a round of every bundled scenario, and what it is spent on.

Each scenario is built once, with all measures, and plays some rounds to warm up. Then two spans of
rounds are played: one for the processor time per round, one with clocks in it, for the shares of

    forecaster   mixtures, and learning from outcomes
    adversary    contexts seen, commitments, and whatever it looks ahead at
    cohorts      decisions, and what learners learn
    measures     ledgers, comparisons, exploitability and windows
    log          rows of the tables, and what bounds at logged rounds depend on

What is left is the market and the round itself. Bounds are worked out, and columns made of rows,
when somebody reads a table, and not in a round. Ratios of two checkouts say more than the times:
run the command in each, one after the other, several times.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from regretless import load
from regretless.market.exploitability.tracker import Tracker
from regretless.market.game import round as game_round
from regretless.market.game.round import Block
from regretless.market.game.seats import Seat
from regretless.market.logs.bounds_log import BoundsLog
from regretless.market.logs.journal import Journal
from regretless.scenarios.config.files import catalogue

SEED = 1
WARM_UP_ROUNDS = 20
ROUNDS = 200  # of each of the two spans
QUICK_ROUNDS = 10
PARTS = ("forecaster", "adversary", "cohorts", "measures", "log")


class Stopwatch:
    """Adds up the processor time of parts of a round, each without the parts within it.

    What an adversary asks of forecasters and cohorts while it looks ahead is its own time.
    """

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self._open_parts: list[str] = []
        self._since = 0.0

    def timed(self, function: Callable[..., Any], part: str) -> Callable[..., Any]:
        """Return a function that does the same, and whose time is that of a part."""

        @wraps(function)
        def with_clock(*arguments: Any, **keywords: Any) -> Any:
            if "adversary" in self._open_parts:
                return function(*arguments, **keywords)
            self._charge_open_part()
            self._open_parts.append(part)
            try:
                return function(*arguments, **keywords)
            finally:
                self._charge_open_part()
                self._open_parts.pop()

        return with_clock

    def _charge_open_part(self) -> None:
        """Add the time since the last call to the innermost part that is open."""
        now = time.process_time()
        if self._open_parts:
            self.seconds[self._open_parts[-1]] += now - self._since
        self._since = now


@contextmanager
def clocks(model: Any) -> Iterator[Stopwatch]:
    """Put clocks into what a model calls in a round, and take them out again."""
    stopwatch = Stopwatch()
    places: list[tuple[Any, str, str]] = [
        (Block, "mixture", "forecaster"),
        (Block, "learn", "forecaster"),
        (game_round, "_commit_and_draw", "adversary"),
        (Seat, "decide", "cohorts"),
        (Seat, "record", "measures"),
        (Tracker, "add", "measures"),
        (Journal, "add", "log"),
        (BoundsLog, "add", "log"),
    ]
    kinds_of_cohorts = {type(cohort) for cohort in model.game.cohorts}
    places.extend((kind, "learn", "cohorts") for kind in kinds_of_cohorts)
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
    try:
        for owner, name, part in places:
            setattr(owner, name, stopwatch.timed(getattr(owner, name), part))
        yield stopwatch
    finally:
        for owner, name, function in before:
            setattr(owner, name, function)


def row(name: str, rounds: int) -> dict[str, Any]:
    """Return the milliseconds of a scenario's round, and the share of each part."""
    model = load(name, rounds=WARM_UP_ROUNDS + 2 * rounds).build(seed=SEED)
    model.run(WARM_UP_ROUNDS)
    began = time.process_time()
    model.run(WARM_UP_ROUNDS + rounds)
    per_round = (time.process_time() - began) / rounds
    with clocks(model) as stopwatch:
        began = time.process_time()
        model.run()
        total = time.process_time() - began
    shares = {part: stopwatch.seconds[part] / total for part in PARTS}
    return {"scenario": name, "milliseconds": 1000 * per_round} | shares


def names() -> list[str]:
    """Return the names of all bundled scenarios."""
    return list(catalogue())
