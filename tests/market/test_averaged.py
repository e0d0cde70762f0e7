"""Outcomes of one's own: the mean over declared noise is a loss of the common outcome."""

from typing import Any

import numpy as np
import pytest
import worlds

from regretless.agents.utilities import CES
from regretless.market.losses import averaged

WEIGHTS = np.array([[[0.2, 0.8], [0.6, 0.4]], [[0.5, 0.1], [0.9, 0.3]]])
LOSS = CES(WEIGHTS, rho=0.5, v=1.0, y_min=0.05).normalised()


def test_it_is_the_mean_over_normal_noise() -> None:
    """Three nodes integrate polynomials of the fifth degree: a smooth loss nearly exactly."""
    rng, y = np.random.default_rng(0), np.array([0.5, 0.6])
    noise = rng.standard_normal((400_000, 1)) * [0.08, 0.0]
    drawn = LOSS.losses(np.clip(y + noise, 0, 1)).mean(0)
    assert averaged(LOSS, 0.08, [0]).losses(y) == pytest.approx(drawn, abs=4e-4)


def test_it_stays_in_its_range_and_as_steep_as_it_was() -> None:
    shaken = averaged(LOSS, 0.3, [0, 1])
    y = np.random.default_rng(0).uniform(0, 1, (500, 2))
    values = shaken.losses(y)
    assert 0 <= values.min() <= values.max() <= 1
    rise = np.abs(values[1:] - values[:-1]).max(-1) / np.abs(np.diff(y, axis=0)).max(-1)[:, None]
    assert (rise <= shaken.lipschitz() + 1e-9).all()
    assert shaken[1].losses(y) == pytest.approx(values[:, 1])


def market(idiosyncratic: Any) -> Any:
    cohort: dict[str, Any] = {"name": "own", "utility": "ces", "count": 4, "actions": 3}
    cohort["parameters"] = {"rho": 0.5, "v": 1.0, "y_min": 0.05}
    cohort |= {"idiosyncratic": idiosyncratic} if idiosyncratic else {}
    return worlds.scenario(cohort, rounds=200).build(seed=2)


def test_a_cohort_with_noise_keeps_its_promise() -> None:
    model = market({"deviation": 0.2})
    model.run()
    agents = model.agents_frame()
    assert (agents["guarantee"] == "decision-swap").all()
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()
    assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()
    cohort = model.game.cohorts[0]
    outcomes = model.rounds_frame()[["y_0", "y_1"]].to_numpy()
    played = model.regret_frame().query("agent == 2")["action"].to_numpy()
    expected = cohort.loss[int(cohort.row_of[1])].losses(outcomes)[np.arange(200), played].mean()
    assert agents["mean_loss"][1] == pytest.approx(expected, abs=1e-12)


def test_no_noise_changes_no_loss() -> None:
    still, none = market({"deviation": 0.0}), market(None)
    y = np.random.default_rng(0).uniform(0, 1, (20, 2))
    own, plain = (model.game.cohorts[0].loss.losses(y) for model in (still, none))
    assert own == pytest.approx(plain, abs=1e-12)
