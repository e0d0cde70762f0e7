"""What an agent alone sees or meets: signals of the outcome, and outcomes with its own noise."""

from typing import Any

import numpy as np
import pytest
import worlds

from regretless.agents import ScriptedAgent, ScriptedCrowd
from regretless.agents.utilities import CES
from regretless.market import register
from regretless.market.losses import averaged
from regretless.market.model import MarketModel
from regretless.market.regret import decision_swap_regret

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


def test_a_cohort_with_noise_keeps_its_promise() -> None:
    parameters = {"rho": 0.5, "v": 1.0, "y_min": 0.05}
    own = worlds.cohort("own", 4, 3, "ces", parameters=parameters, idiosyncratic={"deviation": 0.2})
    model = worlds.played(worlds.scenario(own, rounds=200), seed=2)
    agents = model.agents_frame()
    assert (agents["guarantee"] == "decision-swap").all()
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()
    assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()
    cohort = model.game.cohorts[0]
    outcomes = model.rounds_frame()[["y_0", "y_1"]].to_numpy()
    played = model.regret_frame().query("agent == 2")["action"].to_numpy()
    expected = cohort.loss[int(cohort.row_of[1])].losses(outcomes)[np.arange(200), played].mean()
    assert agents["mean_loss"][1] == pytest.approx(expected, abs=1e-12)


@register.agent("listener")
class Listener(ScriptedAgent):
    """Plays 1 where its signal is high."""

    columns = ("seen",)
    seen = 0.0

    def act(self, forecast: Any, context: Any) -> int:
        self.seen = context["signal"]
        return int(self.seen > 0.5)


@register.agent("listeners")
class Listeners(ScriptedCrowd):
    """The same, all at once."""

    columns = ("seen",)
    seen: Any = 0.0

    def act_many(self, forecasts: Any, contexts: Any) -> Any:
        self.seen = contexts["signal"]
        return (self.seen > 0.5).astype(int)


def market(signal: Any, response: str) -> MarketModel:
    own = worlds.cohort("own", 4, response=response, signal=signal, policies=["high"])
    high = {"kind": "threshold", "feature": "signal", "at": 0.5, "below": 0, "above": 1}
    given = {"adversary": {"kind": "iid", "outcomes": ["rain", "sun"]}, "policy": {"high": high}}
    return worlds.played(worlds.scenario(own, worlds.cohort("x", 2), rounds=200, **given))


def test_a_signal_is_the_outcome_and_noise_of_ones_own() -> None:
    model = market({"coordinate": "sun", "noise": {"choices": [0.0, 0.3]}}, "listener")
    noise = model.game.seats[0].signal.noise  # type: ignore[union-attr]
    assert set(noise) == {0.0, 0.3}
    truth = model.rounds_frame()["y_1"].to_numpy()
    seen = model.states_frame().pivot_table(index="round", columns="agent", values="seen")
    error = seen.to_numpy() - truth[:, None]
    assert error.std(0) == pytest.approx(noise, rel=0.2)
    assert not error[:, noise == 0].any()
    noisy = error[:, noise > 0]
    assert noisy.shape[1] < 2 or abs(np.corrcoef(noisy.T)[0, 1]) < 0.25


def test_its_policies_are_scored_for_each_agent_by_what_it_saw() -> None:
    model = market({"noise": [0.1, 0.5]}, "listeners")
    cohort: Any = model.game.cohorts[0]
    truth = model.rounds_frame()[["y_0", "y_1"]].to_numpy()
    log, states = model.regret_frame(), model.states_frame()
    for agent in range(4):
        losses = cohort.loss[agent].losses(truth)
        played = log[log["agent"] == agent + 1]["action"].to_numpy()
        told = (states[states["agent"] == agent + 1]["seen"] >= 0.5).to_numpy().astype(int)
        fixed = np.stack([np.zeros(200, dtype=int), np.ones(200, dtype=int), told])
        expected = decision_swap_regret(losses, played, fixed)
        found = model.agents_frame()["decision_swap_regret"][agent]
        assert found == pytest.approx(expected, abs=1e-12)
