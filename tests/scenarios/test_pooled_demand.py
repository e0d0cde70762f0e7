"""A newsvendor with pooled demand, whose cost is known: the default basis is fine enough for it.

Two shops with demand of deviation s and correlation rho share one stock: the mean of both demands
has deviation s sqrt((1 + rho) / 2), and the least expected cost is (underage + overage) x that x
phi(z), where z is the quantile underage / (underage + overage) of the normal distribution (Eppen
1979).
"""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import worlds
from scipy.stats import norm

from regretless import register
from regretless.agents.adversaries import Adversary
from regretless.market.records import Context, OutcomeDistribution
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.summary import print_summary

UNDERAGE, OVERAGE, RHO = 3.0, 1.0, -0.5


@register.adversary("pooled-demand")
class PooledDemand(Adversary):
    """Plays the mean demand of two shops: every quantile once, in an order that mixes them."""

    deviation = 0.1

    def commit(self, context: Context, history: Any, announced: Any) -> OutcomeDistribution:
        level = max((history.rounds * (math.sqrt(5) - 1) / 2 + 0.5) % 1, 1e-3)
        demand = norm.ppf(level) * self.deviation * math.sqrt((1 + RHO) / 2) + 0.5
        return OutcomeDistribution.pure(np.array([demand]).clip(0.0, 1.0))


def scenario(actions: int, rounds: int = 500) -> Scenario:
    own = {"underage": UNDERAGE, "overage": OVERAGE}
    shops = {"name": "shops", "utility": "newsvendor", "parameters": own, "actions": actions}
    nature, mean = {"kind": "pooled-demand", "outcomes": 1}, {"kind": "running-mean"}
    return worlds.scenario(shops, rounds=rounds, adversary=nature, forecaster=mean)


@pytest.mark.parametrize(("deviation", "actions"), [(0.1, 101), (0.1, 201), (0.05, 21)])
def test_the_known_cost_is_met(
    deviation: float, actions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PooledDemand, "deviation", deviation)
    model = worlds.played(scenario(actions), seed=1)
    shop = model.agents_frame().iloc[0]
    least = shop["mean_loss"] - shop["external_regret"]  # of the best fixed order of these
    assert shop["mean_loss"] <= 1.03 * least
    if actions > 100:
        quantile = norm.ppf(UNDERAGE / (UNDERAGE + OVERAGE))
        pooled = deviation * math.sqrt((1 + RHO) / 2)
        known = (UNDERAGE + OVERAGE) * pooled * norm.pdf(quantile)
        assert shop["mean_loss"] * shop["loss_scale"] == pytest.approx(known, rel=0.04)


@pytest.mark.parametrize(("actions", "said"), [(201, 1), (5, 0)])
def test_a_run_says_where_the_basis_is_coarser_than_the_regret(
    actions: int, said: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = scenario(actions, rounds=300)
    print_summary(told, worlds.played(told, seed=1), tmp_path)
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count("shops: the basis approximates losses within 0.03") == said
