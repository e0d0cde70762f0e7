"""The Mesa model, its branches, which share its past, and the memory of whatever plays in it."""

import copy
import gc
import pickle
import tracemalloc
import weakref
from pathlib import Path
from typing import Any

import mesa
import numpy as np
import pandas as pd
import pytest
import worlds

from regretless import MarketModel, UserError, load
from regretless.market.core import checkpoint
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.logs.branch_gains import gains

PEOPLE = (
    worlds.cohort("soft", 3, 3, response="quantal", eta=5.0),
    worlds.cohort("own", 4, 3, types=2),
    worlds.cohort("wise", 3, 3, response="exp3"),
    worlds.cohort("alone", 3, 3, response="private"),
)


def market(*, apart: bool = True, played: int = 10, seed: Any = None, **keys: Any) -> MarketModel:
    given = {"rounds": 40, "adversary": {"kind": "drifting", "outcomes": 2}} | keys
    model = worlds.scenario(*PEOPLE, **given).build(seed=seed, apart=apart)
    model.run(played)
    return model


def test_mesa_sees_the_agents_and_its_collector_reads_them() -> None:
    model = market(rounds=5, played=0)
    assert isinstance(model, mesa.Model)
    read = {"swap": "swap_regret", "action": "action"}
    collector = mesa.DataCollector({"played": "played"}, read)
    for _ in range(5):
        model.step()
        collector.collect(model)
    table, log = collector.get_agent_vars_dataframe(), model.regret_frame()
    assert table["swap"].to_numpy() == pytest.approx(log["swap_regret"].to_numpy())
    assert (table["action"].to_numpy() == log["action"].to_numpy()).all()
    frame = model.agents_frame()
    assert model.agents.get("swap_regret") == pytest.approx(frame["swap_regret"].tolist())
    wise = model.agents.select(lambda agent: agent.cohort == "wise")
    assert {agent.unique_id for agent in wise} == set(frame.query("cohort == 'wise'")["agent"])
    assert model.agents.agg("swap_regret", max) == pytest.approx(frame["swap_regret"].max())
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
    for rounds in (-1, 2.5, float("nan"), "3"):
        with pytest.raises(UserError, match=r"^run\(.*\): give how many rounds"):
            model.run(rounds)  # type: ignore[arg-type]
    next(iter(model.agents)).remove()
    assert (len(model.agents), model.played) == (199, 4)


def test_a_market_is_not_copied() -> None:
    """What a copy would share with the first would play in both; a state goes over instead."""
    model, other = market(rounds=6, played=3), market(rounds=6, played=0)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(UserError, match=r"not copied; take branch\(\)"):
            copied(model)
    other.restore(model.state())
    for each in (model, other):
        each.run()
    assert other.agents_frame().equals(model.agents_frame())


def worst(model: MarketModel) -> float:
    return float(model.agents_frame()["swap_regret"].max())


def batched(seed: int, rounds: int) -> MarketModel:
    model = market(rounds=rounds, played=0, seed=seed)
    model.datacollector = mesa.DataCollector({"worst": worst}, {"regret": "swap_regret"})
    return model


def test_a_batch_run_of_mesa_plays_what_a_run_plays() -> None:
    """Mesa counts the agents' records from 1 and reads them from 0: one round less than played."""
    given = {"seed": [3, 4], "rounds": 6}
    rows = pd.DataFrame(mesa.batch_run(batched, given, display_progress=False))
    for seed, found in rows.groupby("seed"):
        alone = market(rounds=6, played=5, seed=int(seed))
        expected = alone.agents_frame().set_index("agent")["swap_regret"]
        assert found.set_index("AgentID")["regret"].to_dict() == expected.to_dict()
        alone.run()
        assert set(found["worst"]) == {worst(alone)}


def test_models_leave_nothing_behind() -> None:
    """Mesa's own numbering of agents keeps every model: 105 kB each of this size."""
    given = worlds.told(worlds.NATURE, "rounds=2", "cohort.farmers.actions=6")
    held, left = [], []
    worlds.played(given).agents_frame()  # what is imported is imported before
    tracemalloc.start()
    for seed in range(6):
        model = worlds.played(given, seed=seed)
        model.agents_frame()
        left.append(weakref.ref(model))
        del model
        if seed % 3 == 2:
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert sum(model() is not None for model in left) == 0
    assert held[1] - held[0] < 30_000  # bytes, for three models


@pytest.mark.parametrize("keys", [{}, {"market": {"impact": 0.4, "feedback": "same-round"}}])
@pytest.mark.parametrize("played", [0, 10])
def test_a_branch_without_changes_goes_on_to_the_same_bytes(played: int, keys: worlds.Raw) -> None:
    trunk = market(played=played, **keys)
    branch = trunk.branch()
    trunk.run()
    branch.run()
    pd.testing.assert_frame_equal(trunk.agents_frame(), branch.agents_frame())
    late = trunk.rounds_frame().iloc[played:].reset_index(drop=True)
    pd.testing.assert_frame_equal(late, branch.rounds_frame())
    assert (gains(trunk, branch)[["gain", "loss_gain"]] == 0.0).all(axis=None)


def test_without_a_market_nobody_notices_who_deviates() -> None:
    """Outcomes do not answer, so that the gain is the hindsight one on the outcomes that came."""
    trunk = market()
    branch = trunk.branch({"agent.5": 2})
    for model in (trunk.branch({"forecaster.kind": "running-mean"}), branch, trunk):
        model.run()
    pd.testing.assert_frame_equal(trunk.agents_frame(), market(played=40).agents_frame())
    table = gains(trunk, branch)
    assert (table["gain"].drop(index=4) == 0.0).all()
    cohort, outcomes = trunk.game.cohorts[1], trunk.rounds_frame()[["y_0", "y_1"]].to_numpy()[10:]
    there = cohort.loss[int(cohort.row_of[1])].losses(outcomes)[:, 2].mean()
    assert table["branch_loss"][4] == pytest.approx(there, abs=1e-12)
    line = branch.agents_frame().iloc[4]
    assert line["guarantee"] == "none"
    assert line[["bound", "bound_from_bias"]].isna().all()
    kept = [model.agents_frame()["guarantee"].drop(index=4) for model in (trunk, branch)]
    assert (kept[0] == kept[1]).all()


def test_a_firm_that_sells_more_earns_by_the_formula() -> None:
    """With everybody's output held: q' (a - b (Q - q + q') - c) - q (a - b Q - c)."""
    keys = {"market.noise": 0.0, "market.feedback": "same-round", "market.adjustment": 1.0}
    keys |= {"cohort.firms.parameters.slope": 0.0}
    trunk = load("oligopoly", rounds=30, **keys).build(apart=True)
    trunk.run(5)
    held, lost = {f"agent.{number}": 6 for number in range(1, 5)}, []
    for branch in (trunk.branch(held), trunk.branch(held | {"agent.1": 12})):
        branch.run()
        (firms,), fork = branch.game.cohorts, branch.fork
        lost.append((firms.ledger.played_losses.sum(1) - fork.branch_losses[0])[firms.row_of] / 25)  # type: ignore[union-attr]
    q, more, price = 0.75, 1.5, 0.9 - 0.1 * 4 * 0.75
    change = 0.1 * (more - q)
    gain = (lost[0] - lost[1]) * trunk.game.cohorts[0].loss.unit_scale
    assert gain[0] == pytest.approx(more * (price - change - 0.3) - q * (price - 0.3), rel=1e-9)
    assert gain[1:] == pytest.approx(-q * change, rel=1e-9)


def test_what_cannot_be_changed_or_compared_is_said() -> None:
    trunk = market()
    for change, words in (
        ({"rounds": 3}, "'rounds' does not change"),
        ({"cohort.own.count": 3}, "does not change"),
        ({"cohort.owl.response": "hedge"}, "there is no 'owl'; did you mean 'own'"),
        ({"agent.99": 0}, "there are 13 agents"),
        ({"agent.4": 7}, "give an action from 0 to 2"),
        ({"agent.0": 0}, "does not change"),
        ({"adversary.kind": "drifring"}, "did you mean 'drifting'"),
        ({"adversary.steq": 1.0}, "steq"),
    ):
        with pytest.raises(UserError, match=words):
            trunk.branch(change)
    with pytest.raises(UserError, match=r"build\(apart=True\)"):
        market(apart=False).branch({"agent.4": 0})  # who is one row with others
    with pytest.raises(UserError, match="is no branch"):
        gains(trunk, market())
    with pytest.raises(UserError, match="run both equally far"):
        gains(trunk, trunk.branch())


class Walker(Checkpointable):
    """A generator and where it went."""

    REMEMBERED: Any = ("rng", "_place")

    def __init__(self, seed: int) -> None:
        self.rng, self._place = np.random.default_rng(seed), np.zeros(2)

    def walk(self) -> list[float]:
        self._place = self._place + self.rng.random(2)
        return self._place.tolist()


class Group(Checkpointable):
    """Walkers, streams that it does not own, and values of every kind."""

    REMEMBERED: Any = ("walkers", "streams", "name", "best", "when", "paths", "table")

    def __init__(self, seed: int) -> None:
        self.walkers = (Walker(seed + 1), Walker(seed + 2))
        self.name, self.best, self.when, self.paths, self.table = "", None, (), [], {}  # type: Any

    @property
    def streams(self) -> list[np.random.Generator]:
        """Nobody could set this."""
        return [walker.rng for walker in self.walkers]


def test_every_kind_of_memory_comes_back(tmp_path: Path) -> None:
    first, second = Group(1), Group(5)
    for walker in first.walkers:
        walker.walk()
    first.name, first.best, first.when = "north", np.float64(0.5), (1, None, True)
    first.paths = [np.arange(3), 2, [np.ones(1), "x"]]
    first.table = {"flags": np.array([True]), "deep": {"er": np.int64(4)}}
    checkpoint.save(tmp_path / "there.npz", first.state())
    second.restore(checkpoint.load(tmp_path / "there.npz"))
    assert [one.walk() for one in first.walkers] == [one.walk() for one in second.walkers]
    assert (second.name, second.best, second.when) == ("north", 0.5, (1, None, True))
    assert second.paths[0].dtype == np.arange(3).dtype
    assert [np.array(part).tolist() for part in second.paths[:2]] == [[0, 1, 2], 2]
    assert second.table["flags"].tolist() == [True]
    assert second.table["deep"] == {"er": 4}
    assert second.streams == [walker.rng for walker in second.walkers]


def test_a_group_of_another_size_is_refused() -> None:
    group = Group(1)
    group.walkers = group.walkers[:1]
    with pytest.raises(ValueError, match="the state is of"):
        group.restore(Group(1).state())
    with pytest.raises(KeyError):
        group.restore(Walker(1).state())
