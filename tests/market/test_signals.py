"""Private signals: each agent's own, of the outcome to come, for it and its policies alone."""

from typing import Any

import numpy as np
import pytest
import worlds

from regretless.agents import ScriptedAgent, ScriptedCrowd
from regretless.market import register
from regretless.market.model import MarketModel
from regretless.market.regret import decision_swap_regret


class Listener(ScriptedAgent):
    """Plays 1 where its signal is high."""

    columns = ("seen",)
    seen = 0.0

    def act(self, forecast: Any, context: Any) -> int:
        self.seen = context["signal"]
        return int(self.seen > 0.5)


class Listeners(ScriptedCrowd):
    """The same, all at once."""

    columns = ("seen",)
    seen: Any = 0.0

    def act_many(self, forecasts: Any, contexts: Any) -> Any:
        self.seen = contexts["signal"]
        return (self.seen > 0.5).astype(int)


@pytest.fixture(autouse=True)
def names(registries: None) -> None:
    register.agent("listener")(Listener)
    register.agent("listeners")(Listeners)


def market(signal: Any, *, response: str = "listener", **keys: Any) -> MarketModel:
    other = {"name": "others", "utility": "linear", "count": 2, "actions": 2}
    own = other | {"name": "own", "count": 4, "response": response, "signal": signal}
    high = {"kind": "threshold", "feature": "signal", "at": 0.5, "below": 0, "above": 1}
    given = {"adversary": {"kind": "iid", "outcomes": ["rain", "sun"]}, "policy": {"high": high}}
    cohorts = own | {"policies": ["high"]}, other
    return worlds.scenario(*cohorts, **{"rounds": 200} | given | keys).build(seed=3)


def test_a_signal_is_the_outcome_and_noise_of_ones_own() -> None:
    model = market({"coordinate": "sun", "noise": {"choices": [0.0, 0.3]}})
    model.run()
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
    model = market({"noise": [0.1, 0.5]})
    model.run()
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
