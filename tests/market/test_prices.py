"""Endogenous markets: what is demanded, how it moves outcomes, and what stays promised."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import worlds

from regretless.market.losses import Linear, Loss
from regretless.market.markets.price_impact import (
    Prices,
    Tally,
    churn,
    concentration,
    crowding,
    drawn_labels,
)
from regretless.market.records import Decision
from regretless.scenarios.assembly.scenario import Scenario

RNG = np.random.default_rng(3)


def cohort(loss: Loss, row_of: Sequence[int]) -> Any:
    """Return as much of a cohort as a market looks at."""
    return SimpleNamespace(
        loss=loss, row_of=np.array(row_of), multiplicity=None, multiplicity_of=lambda _: None
    )


def chosen(actions: Sequence[int]) -> Decision:
    return Decision(np.zeros((1, 1)), np.array(actions))


def scenario(market: dict[str, Any] | None, **tables: Any) -> Scenario:
    shares = {"weights": [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], "concentration": 6.0}
    cohorts = [
        worlds.cohort("followers", 8, 3, parameters=shares),
        worlds.cohort("noisy", 8, 3, parameters=shares, response="quantal", eta=20.0),
        worlds.cohort("learners", 8, 3, parameters=shares, response="hedge"),
    ]
    keys: dict[str, Any] = {"rounds": 120, "seed": 1, "market": market}
    if "data" not in tables:
        keys["adversary"] = {"kind": "iid", "outcomes": 3, "concentration": 20.0}
    return worlds.scenario(*cohorts, **keys | tables)


LAGGED = {"feedback": "lagged", "impact": 0.4, "adjustment": 0.7}


def test_a_market_by_hand() -> None:
    """Two goods, pure baskets: three agents buy the first, then all the second."""
    loss = Linear(-np.eye(2)[None])
    people = [cohort(loss, [0, 0]), cohort(loss, [0, 0])]
    market = Prices(people, RNG, feedback="lagged", impact=0.5, adjustment=0.5)
    at_once = Prices(people, RNG, feedback="same-round", impact=0.5, adjustment=0.5)
    first = [chosen([0, 0]), chosen([0, 1])]
    half = np.full(2, 0.5)
    assert market.clear(half, first) == pytest.approx([0.5, 0.5])
    assert market.level == pytest.approx([0.625, 0.375])
    assert market.clear(half, [chosen([1, 1]), None]) == pytest.approx([0.4375, 0.5625])
    assert market.last["demand"] == pytest.approx([0.0, 1.0])
    assert market.last["price"] == pytest.approx([0.625, 0.375])
    assert at_once.clear(half, first) == pytest.approx([0.4375, 0.5625])
    assert market.clear(np.array([1.0, 0.0]), [None, None]) == pytest.approx([1.0, 0.0])
    assert market.clipped_share == pytest.approx(1 / 3)
    assert not market.aggregate([None, chosen([-1, -1])]).any()
    assert market.aggregate([None, chosen([-1, 1])]).sum(0) == pytest.approx([1.0, 0.0, 1.0])


def test_a_lagged_market_is_a_replay_of_its_outcomes(tmp_path: Path) -> None:
    """The same agents who face the recorded outcomes as data do and lose exactly the same."""
    model = worlds.played(scenario(LAGGED))
    goods = ["y_0", "y_1", "y_2"]
    rounds = model.rounds_frame()
    rounds[goods].to_parquet(tmp_path / "lived.parquet")
    data = {"file": str(tmp_path / "lived.parquet"), "outcomes": goods}
    again = worlds.played(scenario(None, data=data, forecaster={"models": []}))
    before = rounds[[f"fundamental_{i}" for i in range(3)]].to_numpy()
    assert (rounds[goods] != before).any(axis=None)
    pd.testing.assert_frame_equal(model.regret_frame(), again.regret_frame())
    pd.testing.assert_frame_equal(model.agents_frame(), again.agents_frame())


PUMP = {"kind": "pump-and-dump", "outcomes": 3, "exposure": [1.0, 0.0, 0.0], "pump": 20, "dump": 20}
SHOCKS = {kind: {"kind": kind, "outcomes": 3} for kind in ("iid", "anti-forecast")}


@pytest.mark.parametrize("shocks", [*SHOCKS, "pump-and-dump"])
@pytest.mark.parametrize("impact", [-0.6, 0.6])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_theorem_holds_where_feedback_is_lagged(shocks: str, impact: float, seed: int) -> None:
    adversary = SHOCKS.get(shocks, PUMP)
    model = worlds.played(scenario(LAGGED | {"impact": impact}, adversary=adversary, seed=seed))
    agents = model.agents_frame()
    bound = agents[agents["cohort"] != "learners"]
    assert (bound["guarantee"] != "none").all()
    assert (bound["decision_swap_regret"] <= bound["bound_from_bias"] + 1e-9).all()
    assert (bound["bound_from_bias"] <= bound["bound"]).all()
    forecaster: Any = model.game.blocks[0].forecaster
    limits = forecaster.bias_bound()
    for *_, occupancy, bias in forecaster.events.table():
        assert np.abs(bias).max() <= float(np.max(limits.bias(occupancy))) + 1e-9
    if adversary is PUMP:
        assert (agents["leader_surplus"] <= agents["surplus_cap"] + 1e-9).all()


def test_crowding_on_cases_worked_out_by_hand() -> None:
    demand = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 0.5], [0.0, 0.0]])
    assert concentration(demand) == pytest.approx([0.5, 1.0, 1.0, np.nan], nan_ok=True)
    assert churn(demand) == pytest.approx([np.nan, 0.5, 0.75, 0.25], nan_ok=True)
    tally = Tally(2)
    for row in demand:
        tally.add(row)
    assert tally.means() == pytest.approx({"concentration": 2.5 / 3, "churn": 0.5})
    rounds = pd.DataFrame(
        {"round": [0], "y_0": [0.5], "y_1": [0.5], "demand_0": [0.2], "demand_1": [0.8]}
        | {"fundamental_0": [0.1], "fundamental_1": [0.5]}
    )
    forecasts = pd.DataFrame({"drawn": [False, True], "label_0": [0.9, 0.6], "label_1": [0.9, 0.4]})
    (row,) = crowding(rounds, forecasts).to_dict("records")
    expected = {"round": 0, "concentration": 0.68, "miss": 0.1, "miss_before": 0.3}
    assert {name: row[name] for name in expected} == pytest.approx(expected)
    assert row["confirmed"] == pytest.approx(0.2)
    assert np.isnan(drawn_labels(forecasts[["drawn"]], 1, 2)).all()
    with pytest.raises(ValueError, match="market"):
        crowding(rounds.drop(columns=["demand_0", "demand_1"]), forecasts)
