"""A newsvendor with pooled demand, whose cost is known: the default basis is fine enough for it.

Two shops with demand of deviation s and correlation rho share one stock: the mean of both demands
has deviation s sqrt((1 + rho) / 2), and the least expected cost is (underage + overage) x that x
phi(z), where z is the quantile underage / (underage + overage) of the normal distribution (Eppen
1979).
"""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from small_scenarios import cohort_table, make_scenario, play_to_end

from regretless import load
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.summary import coarse_bases, print_summary

UNDERAGE = 3.0
OVERAGE = 1.0
POOLED = math.sqrt((1 - 0.5) / 2)  # rho is -0.5


def scenario(home: Path, actions: int, deviation: float = 0.1, rounds: int = 500) -> Scenario:
    """Replay mean demand of two shops: every quantile once, in an order that mixes them."""
    levels = np.maximum((np.arange(rounds) * (math.sqrt(5) - 1) / 2 + 0.5) % 1, 1e-3)
    demand = (norm.ppf(levels) * deviation * POOLED + 0.5).clip(0.0, 1.0)
    pd.DataFrame({"demand": demand}).to_csv(home / "demand.csv", index=False)
    costs = {"underage": UNDERAGE, "overage": OVERAGE}
    return make_scenario(
        cohort_table("shops", 1, actions, "newsvendor", parameters=costs),
        rounds=rounds,
        data={"file": "demand.csv", "outcomes": ["demand"]},
        forecaster={"kind": "running-mean"},
        origin=home,
    )


@pytest.mark.parametrize(("deviation", "actions"), [(0.1, 101), (0.1, 201), (0.05, 21)])
def test_the_known_cost_is_met(deviation: float, actions: int, tmp_path: Path) -> None:
    model = play_to_end(scenario(tmp_path, actions, deviation), seed=1)
    shop = model.agents_frame().iloc[0]
    best_fixed_loss = shop["mean_loss"] - shop["external_regret"]
    assert shop["mean_loss"] <= 1.03 * best_fixed_loss
    if actions > 100:
        quantile = norm.ppf(UNDERAGE / (UNDERAGE + OVERAGE))
        expected_cost = (UNDERAGE + OVERAGE) * deviation * POOLED * norm.pdf(quantile)
        assert shop["mean_loss"] * shop["loss_scale"] == pytest.approx(expected_cost, rel=0.04)


@pytest.mark.parametrize(("actions", "said"), [(201, 1), (5, 0)])
def test_a_run_says_where_the_basis_is_coarser_than_the_regret(
    actions: int, said: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pooled_demand = scenario(tmp_path, actions, rounds=300)
    print_summary(pooled_demand, play_to_end(pooled_demand, seed=1), tmp_path)
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count("shops: the basis approximates losses within 0.03") == said


def test_nothing_is_said_of_a_basis_without_error_at_the_outcomes_that_were_seen() -> None:
    """Ramps are exact at 0 and 1, and it rains or does not: the error between is of no account."""
    days = play_to_end(load("umbrellas", rounds=30), seed=1)
    assert days.game.blocks[0].basis.error > days.agents_frame()["decision_swap_regret"].max()
    assert list(coarse_bases(days, days.agents_frame())) == []
