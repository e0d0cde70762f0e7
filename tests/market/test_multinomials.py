"""Counted agents who draw: how many take each action is one multinomial draw per type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from regretless.agents.cohorts.responding import RespondingCohort
from regretless.agents.responses import Quantal
from regretless.market.core.arrays import Array
from regretless.market.losses import Linear
from regretless.market.regret.ledger import Ledger
from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.run import Options, run
from regretless.scenarios.shards.conduct import conductor_of
from regretless.scenarios.spec.scenario import validated

HEADS = np.array([1, 500, 10**9])
CROWD: dict[str, Any] = {
    "name": "crowd",
    "rounds": 12,
    "adversary": {"kind": "drifting", "outcomes": 3},
    "market": {"feedback": "lagged"},
    "cohort": [
        {"name": "counted", "utility": "linear", "count": 3000, "counted": True, "archetypes": 7}
        | {"actions": 4, "response": "quantal", "eta": 5.0},
        {"name": "listed", "utility": "linear", "count": 6, "actions": 3},
    ],
}


def cohort(seed: int) -> RespondingCohort:
    loss = Linear(np.random.default_rng(1).random((3, 4, 2)))
    return RespondingCohort(
        name="crowd",
        utility="linear",
        block=0,
        loss=loss,
        row_of=np.arange(3),
        coefficients=(loss.offset, loss.weights),
        response=Quantal(2.0),
        ledger=Ledger(3, 4),
        rng=np.random.default_rng(seed),
        heads=HEADS,
    )


def drawn(seed: int, rounds: int) -> tuple[Array, Array]:
    """Return counts (rounds, 3, 4) and the mixed strategies (3, 4) by which they were drawn."""
    own = cohort(seed)
    predicted = own.loss.losses(np.array([0.3, 0.8]))
    decisions = [own._decision(predicted) for _ in range(rounds)]
    counts = np.array([decision.counts() for decision in decisions if decision.counts])
    assert decisions[0].probabilities is not None
    return counts, decisions[0].probabilities


def test_counts_add_up_and_the_same_seed_gives_the_same() -> None:
    counts, _ = drawn(5, 20)
    assert (counts.sum(2) == HEADS).all()
    assert (counts >= 0).all()
    assert np.array_equal(drawn(5, 20)[0], counts)
    assert not np.array_equal(drawn(6, 20)[0], counts)


def test_counts_have_the_means_and_covariances_of_a_multinomial() -> None:
    rounds = 4000
    counts, strategies = drawn(2, rounds)
    for k, (heads, law) in enumerate(zip(HEADS, strategies, strict=True)):
        scaled = (counts[:, k] - heads * law) / np.sqrt(heads)
        np.testing.assert_allclose(scaled.mean(0), 0, atol=4 * 0.5 / rounds**0.5)
        wanted = np.diag(law) - np.outer(law, law)
        np.testing.assert_allclose(np.cov(scaled.T), wanted, atol=4 * 0.5 / rounds**0.5)


def test_the_number_of_workers_changes_no_draw(tmp_path: Path) -> None:
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    run(Scenario(validated(CROWD, origin=tmp_path)), Options(alone))
    scenario, options = Scenario(validated(CROWD, origin=tmp_path)), Options(shared)
    with conductor_of(scenario, options, 2, None) as player:
        run(scenario, options, player=player)
    for name in ("agents", "rounds"):
        tables = [pd.read_parquet(folder / f"{name}.parquet") for folder in (alone, shared)]
        pd.testing.assert_frame_equal(*tables)
