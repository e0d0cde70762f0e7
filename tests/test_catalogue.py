"""Every named scenario runs, and its claim holds at full length."""

from __future__ import annotations

import numpy as np
import pytest

from forecaster.minimax import worst_case
from scenarios import load
from scenarios.files import catalogue


@pytest.mark.parametrize("name", catalogue())
def test_every_scenario_has_a_claim_and_a_source(name: str) -> None:
    spec = load(name, rounds=3).spec
    assert spec.name == name
    assert len(spec.claim) > 20
    assert len(spec.source) > 10


def test_no_grower_would_have_gained_a_hundredth() -> None:
    model = load("crop-choice").build(log_every=500)
    model.run()
    agents = model.agents_frame()
    regret = agents["decision_swap_regret"]
    assert len(agents) == 200
    assert regret.max() < 0.01
    assert (regret >= agents["omniprediction_regret"] - 1e-12).all()
    assert (regret <= agents["bound_from_bias"] + 1e-9).all()
    assert (regret <= agents["bound"]).all()
    forecaster = model.game.blocks[0].forecaster
    assert forecaster.slack <= 0.1 * np.sqrt(model.played)
    limits = forecaster.bias_bound()
    for *_, occupancy, bias in forecaster.events.table():
        assert np.abs(bias).max() <= limits.bias(occupancy) + 1e-9


def test_a_pure_mixture_is_certified_like_any_other() -> None:
    point, field = np.array([[0.2, 1.0]]), np.array([[0.3, -0.5]])
    assert worst_case(np.ones(1), point, field) == pytest.approx(0.3 * 0.2)
