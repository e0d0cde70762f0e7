"""Agents leave and players are replaced between rounds; regret is over own rounds, promises cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import worlds

from regretless.agents.adversaries import AntiForecast, LookAhead
from regretless.forecaster import RunningMean
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.model import MarketModel
from regretless.market.regret import swap_regret


def market(*, apart: bool = True, **keys: Any) -> MarketModel:
    cohort = {"name": "own", "utility": "linear", "count": 5, "types": 2, "actions": 3}
    raw: dict[str, Any] = {
        "name": "own",
        "rounds": 30,
        "adversary": {"kind": "drifting", "outcomes": 2},
        "cohort": [cohort, {"name": "two", "utility": "linear", "count": 2, "actions": 3}],
    }
    return worlds.told(raw | keys).build(seed=3, apart=apart)


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


def test_a_forecaster_is_replaced_and_the_promise_with_it() -> None:
    model = market()
    model.run(10)
    assert (model.agents_frame()["guarantee"] == "decision-swap").all()
    (block,) = model.game.blocks
    model.replace(**{block.name: RunningMean(block.basis.size)})
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


def with_spare(**spare: int) -> MarketModel:
    cohort = {"name": "own", "utility": "linear", "count": 3, "actions": 3}
    raw = {
        "name": "own",
        "rounds": 30,
        "adversary": {"kind": "drifting", "outcomes": 2},
        "cohort": [cohort, cohort | {"name": "two"}],
    }
    return worlds.told(raw).build(seed=3, spare=spare)


def test_a_run_in_which_agents_came_and_went_resumes() -> None:
    whole, first, second = (with_spare(own=1) for _ in range(3))
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
            model.replace(**players)
        after = model.game.adversary, model.game.market, model.game.blocks, model.guarantees
        assert after == before
