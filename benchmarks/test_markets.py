"""Time of a call auction among many agents, and of a whole round with one, by pytest-benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from regretless.market.model import MarketModel
from regretless.market.records.decision import Decision
from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.spec.scenario import validated

AGENTS, TIMED = 50_000, 30  # of either side


def side(name: str, **parameters: Any) -> dict[str, Any]:
    """Return a cohort of traders with 50 different losses."""
    few = {"archetypes": 50, "basis": "lipschitz-grid", "measures": ["swap", "decision_swap"]}
    people = {"name": name, "utility": "trader", "count": AGENTS, "actions": 3}
    return people | few | {"parameters": parameters}


@pytest.fixture(scope="module")
def model() -> MarketModel:
    """Agents with cash and two goods."""
    raw = {
        "name": "exchange",
        "rounds": 10_000,
        "log_agents": 10,
        "adversary": {"kind": "iid", "outcomes": 2},
        "market": {"kind": "call-auction", "cash": 2.0, "stock": 2.0, "refresh": 5},
        "cohort": [
            side("buyers", value=[0.3, 1.0], spread=0.1),
            side("sellers", value=[0.0, 0.7], spread=0.1, size=-1.0),
        ],
    }
    return Scenario(validated(raw, origin=Path())).build(log_every=10_000)


def test_round(benchmark: BenchmarkFixture, model: MarketModel) -> None:
    """Time forecast, decisions, auction, accounts, losses and ledger."""
    benchmark.pedantic(model.step, rounds=TIMED, warmup_rounds=3)  # type: ignore[no-untyped-call]


def test_clear(benchmark: BenchmarkFixture, model: MarketModel) -> None:
    """Time the auction and its accounts alone."""
    rng = np.random.default_rng(0)
    market: Any = model.game.market
    decisions = [Decision(np.zeros((1, 1)), rng.integers(0, 3, AGENTS)) for _ in range(2)]
    benchmark(market.clear, np.full(2, 0.5), decisions)
