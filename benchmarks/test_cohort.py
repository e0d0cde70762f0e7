"""Time of a cohort's kernels and of whole rounds of a crowd, by pytest-benchmark.

Every crowd has random linear losses over 16 goods and 8 actions and a running mean for its
forecaster, so that the time is the agents' own. Compiled and touched before the clock runs.
"""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.crowds import ACTIONS, GOODS, Crowd
from regretless.market.losses import unique_losses
from regretless.market.records.decision import Decision
from regretless.market.response import best_response, expected_losses

AGENTS, TIMED = 100_000, 30
NONE = np.zeros(0, dtype=np.intp)


@pytest.fixture(scope="module")
def crowd() -> Crowd:
    """Agents with distinct losses."""
    return Crowd(AGENTS)


@pytest.mark.parametrize("losses", [AGENTS, 500])
def test_round(benchmark: BenchmarkFixture, losses: int) -> None:
    """Time ``MarketModel.step``: forecast, decisions, losses, ledger, journal."""
    model = Crowd(AGENTS, losses).model()
    benchmark.pedantic(model.step, rounds=TIMED, warmup_rounds=3)  # type: ignore[no-untyped-call]


def test_expected_losses(benchmark: BenchmarkFixture, crowd: Crowd) -> None:
    """Time the losses that agents expect at a prediction."""
    parts = crowd.loss.offset, crowd.loss.weights, np.full(GOODS, 0.5)
    benchmark(expected_losses, *parts)


def test_best_response(benchmark: BenchmarkFixture, crowd: Crowd) -> None:
    """Time the least of eight losses."""
    benchmark(best_response, crowd.loss.losses(crowd.outcomes[0]))


def test_true_losses(benchmark: BenchmarkFixture, crowd: Crowd) -> None:
    """Time the losses of all actions at an outcome."""
    benchmark(crowd.loss.losses, crowd.outcomes[0])


def test_ledger_add(benchmark: BenchmarkFixture, crowd: Crowd) -> None:
    """Time a round of pure play entering the ledger."""
    ledger = crowd.game().cohorts[0].ledger
    predicted, losses = (crowd.loss.losses(y) for y in crowd.outcomes[:2])
    choices = stirred(AGENTS)
    decision = Decision(None, choices, predicted, choices=choices)
    ledger.add(decision, losses, NONE)
    benchmark(ledger.add, decision, losses, NONE)


def test_ledger_read(benchmark: BenchmarkFixture, crowd: Crowd) -> None:
    """Time the swap regret of all rows."""
    benchmark(crowd.game().cohorts[0].ledger.regret, "swap")


def test_equal_losses(benchmark: BenchmarkFixture, crowd: Crowd) -> None:
    """Time the search for equal losses among distinct ones, when a cohort is built."""
    benchmark.pedantic(unique_losses, (crowd.loss,), rounds=3)  # type: ignore[no-untyped-call]


def stirred(rows: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return actions without a pattern."""
    return np.random.default_rng(0).integers(ACTIONS, size=rows).astype(np.intp)
