"""The Mesa model: AgentSets, data collectors, frames, and a ledger that agrees with the raw log."""

import copy
import gc
import pickle
import tracemalloc
import weakref
from typing import Any

import mesa
import pandas as pd
import pytest
import worlds

from regretless.market.core.errors import UserError
from regretless.market.model import MarketModel
from regretless.market.regret.ledger import MEASURES
from regretless.scenarios import load
from regretless.scenarios.assembly.scenario import Scenario


def mixed_market(**keys: Any) -> Scenario:
    growers = worlds.cohort("growers", 12, 3, "ces", parameters={"rho": [0.3, 0.9]})
    naive = worlds.cohort("naive", 5, 3, response="quantal", eta=30.0)
    return worlds.scenario(growers | {"measures": list(MEASURES)}, naive, **keys)


def test_mesa_sees_the_agents_and_its_collector_reads_them() -> None:
    model = mixed_market(rounds=5).build()
    assert isinstance(model, mesa.Model)
    collector = mesa.DataCollector(
        model_reporters={"played": "played"},
        agent_reporters={"swap": "swap_regret", "action": "action"},
    )
    for _ in range(5):
        model.step()
        collector.collect(model)
    table, log = collector.get_agent_vars_dataframe(), model.regret_frame()
    assert table["swap"].to_numpy() == pytest.approx(log["swap_regret"].to_numpy())
    assert (table["action"].to_numpy() == log["action"].to_numpy()).all()
    frame = model.agents_frame()
    assert model.agents.get("swap_regret") == pytest.approx(frame["swap_regret"].tolist())
    naive = model.agents.select(lambda agent: agent.cohort == "naive")
    assert {agent.unique_id for agent in naive} == set(frame.query("cohort == 'naive'")["agent"])
    worst = model.agents.agg("decision_swap_regret", max)
    assert worst == pytest.approx(frame["decision_swap_regret"].max())
    assert model.steps == model.played == 5


def test_mesas_own_calls_work_or_refuse() -> None:
    model = load("crop-choice", rounds=4).build(seed=1)
    model.run_model()  # Mesa's loop: while running, step
    assert (model.played, model.steps, model.running) == (4, 4, False)
    with pytest.raises(UserError, match="all 4 rounds are played"):
        model.step()
    for reset in (model.reset_rng, model.reset_randomizer):
        with pytest.raises(UserError, match="root seed"):
            reset(3)
    assert len(model.agents) == 200
    next(iter(model.agents)).remove()
    assert len(model.agents) == 199
    assert model.played == 4


def worst(model: MarketModel) -> float:
    return float(model.agents_frame()["swap_regret"].max())


@pytest.mark.parametrize("rounds", [-1, 2.5, float("nan"), "3"])
def test_a_run_takes_a_number_of_rounds(rounds: Any) -> None:
    with pytest.raises(UserError, match=r"^run\(.*\): give how many rounds"):
        mixed_market(rounds=6).build().run(rounds)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_market_is_not_copied(copied: Any) -> None:
    """What a copy would share with the first would play in both; a state goes over instead."""
    model = mixed_market(rounds=6).build()
    model.run(3)
    with pytest.raises(UserError, match=r"not copied; take branch\(\)"):
        copied(model)
    other = mixed_market(rounds=6).build()
    other.restore(model.state())
    for each in (model, other):
        each.run()
    assert other.agents_frame().equals(model.agents_frame())


def batched(seed: int, rounds: int) -> MarketModel:
    model = mixed_market(rounds=rounds).build(seed=seed)
    reporters = {"model_reporters": {"worst": worst}, "agent_reporters": {"regret": "swap_regret"}}
    model.datacollector = mesa.DataCollector(**reporters)
    return model


def test_a_batch_run_of_mesa_plays_what_a_run_plays() -> None:
    """Mesa counts the agents' records from 1 and reads them from 0: one round less than played."""
    given = {"seed": [3, 4], "rounds": 6}
    rows = pd.DataFrame(mesa.batch_run(batched, given, display_progress=False))
    for seed, found in rows.groupby("seed"):
        alone = mixed_market(rounds=6).build(seed=int(seed))
        alone.run(5)
        expected = alone.agents_frame().set_index("agent")["swap_regret"]
        assert found.set_index("AgentID")["regret"].to_dict() == expected.to_dict()
        alone.run()
        assert set(found["worst"]) == {worst(alone)}


def test_models_leave_nothing_behind() -> None:
    """Mesa's own numbering of agents keeps every model: 110 kB each of this size."""
    keys = {"rounds": 2, "forecaster": {"kind": "constant"}, "cohort.growers.count": 3}
    market = load("crop-choice", **keys)
    held, left = [], []
    tracemalloc.start()
    try:
        for seed in range(9):
            model = worlds.played(market, seed=seed)
            model.agents_frame()
            left.append(weakref.ref(model))
            del model
            if seed % 3 == 2:
                gc.collect()
                held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert sum(model() is not None for model in left) == 0
    assert held[2] - held[1] < 30_000  # bytes, for three models
