"""The table ``solution-times``: seconds of processor time that solutions of a stage game take.

A line is a game of the catalogue at a size, with its number of profiles by counts of actions.
``losses`` is the time in which all of these are evaluated, once for all solutions; each other
column is that of one concept, with losses known. Mixed equilibria are looked for in games of two
or more agents with up to ``MAX_MIXED_PROFILES`` profiles. Every game is solved twice and the second
time counts, since the first one in a process imports and compiles what it needs: seconds that
depend on which games came before. A solution that was not found, or whose program would be too
large, has no time.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from paper.harness import Row, Table
from regretless import load
from regretless.market.solutions.solution import DEFAULT_NAMES, solve
from regretless.market.solutions.stage_game import stage_game_of

Instance = tuple[str, dict[str, Any]]  # a bundled scenario, and what is changed in it
GAMES: tuple[Instance, ...] = (
    ("chicken", {}),
    ("braess", {"cohort.drivers.count": 3}),
    ("pricing-algorithms", {}),
    ("el-farol", {}),
    ("oligopoly", {"cohort.firms.actions": 11}),
    ("braess", {}),
    ("oligopoly", {}),
    ("oligopoly", {"cohort.firms.count": 5}),
)


def solution_times(instance: Instance) -> Iterator[Row]:
    """Solve one game twice; yield the row of the second time."""
    _solve(instance)
    yield _solve(instance)


def _solve(instance: Instance) -> Row:
    """Build one game and solve it; return its size and the times."""
    scenario, changes = instance
    model = load(scenario, rounds=1, **changes).build(seed=1)
    market = model.game.market
    assert market is not None  # noqa: S101 - every scenario above has one
    game = stage_game_of(market)
    start = time.process_time()
    configurations = game.configurations
    row: Row = {
        "game": scenario,
        "agents": game.agents,
        "actions": max(game.sizes),
        "profiles": len(configurations),
        "losses": time.process_time() - start,
    }
    for name in DEFAULT_NAMES:
        start = time.process_time()
        solutions = solve(game, [name])
        seconds = time.process_time() - start
        row[name] = seconds if all(solution.is_found for solution in solutions) else np.nan
    return row


BY = ["game", "agents", "actions", "profiles"]
TABLES = {"solution-times": Table(solution_times, BY, instances=lambda: GAMES, digits=2)}
