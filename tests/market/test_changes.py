"""Agents leave and players are replaced between rounds; regret is over own rounds, promises cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from regretless.agents import ScriptedAgent
from regretless.agents.adversaries import AntiForecast, DrawSeer, LookAhead, Myopic
from regretless.forecaster import RunningMean
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.model import MarketModel
from regretless.market.regret import swap_regret
from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.spec.scenario import validated


def market(*, apart: bool = True, **keys: Any) -> MarketModel:
    cohort = {"name": "own", "utility": "linear", "count": 5, "archetypes": 2, "actions": 3}
    raw: dict[str, Any] = {
        "name": "own",
        "rounds": 30,
        "adversary": {"kind": "drifting", "outcomes": 2},
        "cohort": [cohort, {"name": "two", "utility": "linear", "count": 2, "actions": 3}],
    }
    return Scenario(validated(raw | keys, origin=Path())).build(seed=3, apart=apart)


def test_rows_apart_change_no_number() -> None:
    together, apart = market(apart=False), market()
    for model in (together, apart):
        model.run()
    columns = ["agent", "mean_loss", "swap_regret", "decision_swap_regret", "exploitability"]
    pd.testing.assert_frame_equal(together.agents_frame()[columns], apart.agents_frame()[columns])


def test_whoever_is_removed_plays_no_further_round() -> None:
    model = market()
    model.run(10)
    leaver = model.agents[1]
    leaver.remove()
    model.run()
    assert len(model.agents) == 6
    assert leaver not in model.agents
    log = model.regret_frame()
    assert log[log["agent"] == 2]["round"].tolist() == list(range(10))
    assert (log["agent"].value_counts()[[1, 3, 4, 5, 6, 7]] == 30).all()
    assert leaver.action == -1


def test_its_regret_is_over_its_own_rounds() -> None:
    model = market()
    model.run(10)
    model.agents[1].remove()
    model.run()
    cohort: Any = model.game.cohorts[0]
    rounds = model.rounds_frame()[["y_0", "y_1"]].to_numpy()[:10]
    played = model.regret_frame().query("agent == 2")["action"].to_numpy()
    losses = cohort.loss[int(cohort.row_of[1])].losses(rounds)
    line = model.agents_frame().iloc[1]
    assert line["swap_regret"] == pytest.approx(swap_regret(losses, played), abs=1e-12)
    assert line["decision_swap_regret"] == line["swap_regret"]  # no policies but the constants
    assert line["mean_loss"] == pytest.approx(losses[np.arange(10), played].mean(), abs=1e-12)
    assert (line["entered"], line["left"]) == (0, 10)
    assert line["guarantee"] == "none"
    assert np.isnan(line["bound"])
    others = model.agents_frame().drop(index=1)
    assert (others["guarantee"] == "decision-swap").all()
    assert (others["decision_swap_regret"] <= others["bound"]).all()


def test_it_does_not_touch_the_others() -> None:
    whole, less = market(), market()
    less.run(10)
    less.agents[1].remove()
    for model in (whole, less):
        model.run()
    columns = ["mean_loss", "swap_regret", "decision_swap_regret"]
    pd.testing.assert_frame_equal(
        whole.agents_frame()[columns].drop(index=1), less.agents_frame()[columns].drop(index=1)
    )


def test_agents_that_cannot_go_alone_say_why() -> None:
    shared = market(apart=False)
    with pytest.raises(UserError, match=r"one row; build\(apart=True\)"):
        shared.agents[0].remove()
    assert len(shared.agents) == 7
    cohort = {"name": "own", "utility": "linear", "count": 1, "actions": 3}
    with pytest.raises(UserError, match="the last of all"):
        market(cohort=[cohort]).agents[0].remove()
    learners = market(cohort=[cohort, cohort | {"name": "two", "response": "hedge"}])
    with pytest.raises(UserError, match=r"cohort.two learns together"):
        learners.agents[1].remove()


def test_an_agent_of_ones_own_may_leave_and_a_run_that_it_left_resumes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(register.agent, "_known", dict(register.agent._known))

    @register.agent("mortal")
    class Mortal(ScriptedAgent):
        columns = ("age",)
        age = 0.0

        def act(self, forecast: Any, context: Any) -> int:
            assert self.number != 2 or self.age < 7, "asked after it left"
            return 0

        def learn(self, losses: Any, outcome: Any) -> None:
            self.age += 1
            assert self.number != 2 or self.age <= 7, "taught after it left"
            if self.age == 7 and self.number == 2:
                self.leave()

    cohort = {"name": "own", "utility": "linear", "count": 3, "actions": 3, "response": "mortal"}
    whole, first, second = (market(cohort=[cohort]) for _ in range(3))
    whole.run()
    log = whole.regret_frame()
    assert log[log["agent"] == 2]["round"].max() == 6
    assert whole.states_frame().query("agent == 2")["round"].max() == 6
    assert sorted(agent.unique_id for agent in whole.agents) == [1, 3]
    first.run(20)
    second.restore(first.state())
    second.run()
    pd.testing.assert_frame_equal(whole.agents_frame(), second.agents_frame())
    assert sorted(agent.unique_id for agent in second.agents) == [1, 3]


def test_a_forecaster_is_replaced_and_the_promise_with_it() -> None:
    model = market()
    model.run(10)
    assert (model.agents_frame()["guarantee"] == "decision-swap").all()
    (block,) = model.game.blocks
    model.swap(**{block.name: RunningMean(block.basis.size)})
    model.run()
    agents = model.agents_frame()
    assert (agents["guarantee"] == "none").all()
    assert agents["bound"].isna().all()
    assert "replaced before round 10" in model.guarantees[0].note
    assert model.bounds_frame()["round"].max() <= 10
    means = model.rounds_frame()[["y_0", "y_1"]].to_numpy()[10:25].mean(0)
    said = model.forecasts_frame().query("round == 25")[["p_0", "p_1"]].to_numpy()
    assert said[0] == pytest.approx(means)
    with pytest.raises(ValueError, match="swapped"):
        model.state()


def test_an_adversary_is_replaced_and_regret_goes_on() -> None:
    model = market()
    model.run(10)
    model.swap(adversary=AntiForecast(2, np.random.default_rng(0)))
    model.run(20)
    agents = model.agents_frame()
    assert (agents["guarantee"] == "decision-swap").all()
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()
    model.swap(adversary=DrawSeer(2, np.random.default_rng(0)))
    model.run()
    assert (model.agents_frame()["guarantee"] == "none").all()
    with pytest.raises(UserError, match="give one of 2"):
        model.swap(adversary=AntiForecast(3, np.random.default_rng(0)))
    with pytest.raises(UserError, match="there is no block 'news'"):
        model.swap(news=RunningMean(2))


def with_room(**room: int) -> MarketModel:
    cohort = {"name": "own", "utility": "linear", "count": 3, "actions": 3}
    raw = {
        "name": "own",
        "rounds": 30,
        "adversary": {"kind": "drifting", "outcomes": 2},
        "cohort": [cohort, cohort | {"name": "two"}],
    }
    return Scenario(validated(raw, origin=Path())).build(seed=3, room=room)


def test_agents_are_added_while_it_runs() -> None:
    model = with_room(own=2)
    assert len(model.agents) == 6
    model.run(10)
    (one,) = model.add("own")
    model.run(20)
    (other,) = model.add("own")
    model.run()
    assert len(model.agents) == 8
    assert (one.unique_id, other.unique_id) == (4, 5)
    log, agents = model.regret_frame(), model.agents_frame()
    assert log[log["agent"] == 4]["round"].tolist() == list(range(10, 30))
    assert log[log["agent"] == 5]["round"].tolist() == list(range(20, 30))
    assert agents["entered"].tolist() == [0, 0, 0, 10, 20, 0, 0, 0]
    assert (
        agents["guarantee"].tolist()
        == [*["decision-swap"] * 3, *["none"] * 2] + ["decision-swap"] * 3
    )
    played = log[log["agent"] == 4]["loss"]
    assert agents["mean_loss"][3] == pytest.approx(played.mean(), abs=1e-12)
    with pytest.raises(UserError, match=r"cohort\.own has room for 0 agents"):
        model.add("own")
    with pytest.raises(UserError, match="there is no cohort 'three'"):
        with_room(three=1)


def test_a_run_in_which_agents_came_and_went_resumes() -> None:
    whole, first, second = (with_room(own=1) for _ in range(3))
    for model in (whole, first):
        model.run(10)
        model.add("own")
        model.run(15)
        model.agents[0].remove()
    whole.run()
    second.restore(first.state())
    second.run()
    pd.testing.assert_frame_equal(whole.agents_frame(), second.agents_frame())
    assert {a.unique_id for a in whole.agents} == {a.unique_id for a in second.agents}


def prices(model: MarketModel, **parameters: Any) -> Any:
    """Make another market of the same kind."""
    return register.market["prices"](
        model.game.cohorts, np.random.default_rng(0), feedback="lagged", **parameters
    )


def test_a_market_is_replaced_and_logs_speak_of_the_new_one() -> None:
    model = market()
    model.run(10)
    model.swap(market=prices(model, impact=0.4, adjustment=1.0))
    model.run(20)
    frame = model.rounds_frame()
    assert frame["price_0"].isna().tolist() == [True] * 10 + [False] * 10
    model.swap(market=prices(model, impact=-0.4, adjustment=0.5))
    model.run()
    frame = model.rounds_frame()
    assert frame["price_0"][20] == 0.5  # of the new one's first round
    assert frame["price_0"][21:].std() > 0
    moved = np.clip(frame["fundamental_0"] + 0.4 * (frame["price_0"] - 0.5), 0, 1)
    assert moved[20:].to_numpy() == pytest.approx(frame["y_0"][20:].to_numpy())
    agents = model.agents_frame()
    assert (agents["guarantee"] == "decision-swap").all()
    assert agents["exploitability"].isna().all()
    assert (model.regret_frame()["agent"].value_counts() == 30).all()


def test_a_player_that_does_not_fit_changes_nothing() -> None:
    model = market()
    before = model.game.adversary, model.game.market, model.game.blocks, model.guarantees
    planner = LookAhead(2, np.random.default_rng(0), weights=[[1.0, 0.0]] * 3)
    new = prices(model, impact=0.4)
    for players in (
        {"market": new, "adversary": planner},
        {"market": new, "news": RunningMean(2)},
        {"market": new, "adversary": AntiForecast(3, np.random.default_rng(0))},
    ):
        with pytest.raises(UserError):
            model.swap(**players)
        after = model.game.adversary, model.game.market, model.game.blocks, model.guarantees
        assert after == before


def test_the_new_leader_is_who_is_paid() -> None:
    model = market()
    model.run(10)
    model.swap(adversary=Myopic(2, np.random.default_rng(0), weights=[[1.0, 0.0]] * 3))
    model.run(20)
    frame = model.rounds_frame()
    assert frame["leader_payoff"].isna().tolist() == [True] * 10 + [False] * 10
    assert frame["leader_payoff"][10:].to_numpy() == pytest.approx(frame["y_0"][10:].to_numpy())
