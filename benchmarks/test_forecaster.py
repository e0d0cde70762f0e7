"""Time of one forecaster round, and of its three parts, by pytest-benchmark.

A round is ``mixture`` and ``update`` on a fixed stream: a context per round, outcomes away from the
forecast's mean in half of the coordinates. The forecaster is warm (compiled, with biases) before
the clock runs. Sizes are losses x actions x basis functions.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from pytest_benchmark.fixture import BenchmarkFixture

from regretless.forecaster.events.protected import LossGroup
from regretless.forecaster.minimax.box import explore
from regretless.forecaster.minimax.program import best_mixture
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.randomness import stream

Array = NDArray[np.float64]
Size = tuple[int, int, int]

WARM, TIMED = 100, 300
SMALL, WIDE, MANY = (20, 5, 9), (200, 8, 32), (200, 8, 9)
LARGE, HUGE = (1000, 8, 34), (4000, 8, 34)  # whose weights are kept


class Market:
    """A warm forecaster and the stream that it hears.

    Parameters
    ----------
    size : (int, int, int)
        Losses K, actions A and basis functions n.
    policies : int
        Benchmark policies; policy j suggests what entry j of the context says.
    """

    def __init__(self, size: Size, policies: int = 0) -> None:
        losses, actions, functions = size
        self._rng = stream(0, "benchmark")
        self._entries = actions, policies
        shares = self._rng.dirichlet(np.ones(functions), (losses, actions))
        rules = [itemgetter(j) for j in range(policies)]
        group = LossGroup(np.ones((losses, actions)), -shares, rules)
        self.forecaster = UnbiasedPrediction([group])
        for _ in range(WARM):
            self.play()
        self._seen = self.context()

    def context(self) -> NDArray[np.int64]:
        """Draw what the policies read."""
        actions, policies = self._entries
        return self._rng.integers(actions, size=policies)

    def play(self) -> None:
        """Play one round."""
        mean = self.forecaster.mixture(self.context()).mean
        outcome = self._rng.random(len(mean))
        outcome[::2] = mean[::2] < 0.5
        self.forecaster.update(outcome)

    def table(self) -> Array:
        """Compute the normalised signed weights of the coming round."""
        events: Any = self.forecaster.events
        rule, time = self.forecaster.rule, self.forecaster.time + 1
        return np.asarray(events.weighted(events.awake(self._seen), rule, time))

    def explored(self) -> tuple[Array, Array]:
        """Walk through the coming round's game: points and fields."""
        size = self.forecaster.events.size
        return explore(self.forecaster.events.rows, self.table(), np.full(size, 0.5))


def timed(benchmark: BenchmarkFixture, step: Callable[[], object], *, iterations: int = 1) -> None:
    """Time a step ``TIMED`` times."""
    benchmark.pedantic(step, rounds=TIMED, iterations=iterations)  # type: ignore[no-untyped-call]


def spelled(size: Size) -> str:
    """Write a size as the table's rows show it."""
    return "x".join(map(str, size))


@pytest.mark.parametrize("size", [SMALL, WIDE, MANY, LARGE, HUGE], ids=spelled)
def test_round(benchmark: BenchmarkFixture, size: Size) -> None:
    """Time a round without policies."""
    timed(benchmark, Market(size).play)


def test_round_with_16_policies(benchmark: BenchmarkFixture) -> None:
    """Time a round with cross events: at most twice the time of 20x5x9 without is the aim."""
    timed(benchmark, Market(SMALL, policies=16).play)


@pytest.mark.parametrize("policies", [0, 16])
def test_weights_alone(benchmark: BenchmarkFixture, policies: int) -> None:
    """Time the weights of all awake events, 20x5x9."""
    timed(benchmark, Market(SMALL, policies=policies).table, iterations=5)


@pytest.mark.parametrize("size", [SMALL, MANY], ids=spelled)
def test_walk_alone(benchmark: BenchmarkFixture, size: Size) -> None:
    """Time the exploring player and the removal of dominated points."""
    market = Market(size)
    rows, table, origin = market.forecaster.events.rows, market.table(), np.full(size[2], 0.5)
    timed(benchmark, lambda: explore(rows, table, origin), iterations=5)


@pytest.mark.parametrize("size", [SMALL, MANY], ids=spelled)
def test_program_alone(benchmark: BenchmarkFixture, size: Size) -> None:
    """Time the linear program over the points that the walk left."""
    points, fields = Market(size).explored()
    timed(benchmark, lambda: best_mixture(points, fields))
