"""The Mesa model, its branches, which share its past, and the memory of whatever plays in it."""

import copy
import gc
import pickle
import tracemalloc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, NamedTuple

import mesa
import numpy as np
import pandas as pd
import pytest
from small_scenarios import (
    NATURE_SCENARIO,
    TomlTable,
    cohort_table,
    make_scenario,
    play_to_end,
    read_scenario,
)

from regretless import MarketModel, UserError, load
from regretless.market.core import checkpoint
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.logs.branch_gains import gains

COHORTS = (
    cohort_table("soft", 3, 3, response="quantal", eta=5.0),  # agents 1 to 3
    cohort_table("own", 4, 3, types=2),  # agents 4 to 7
    cohort_table("wise", 3, 3, response="exp3"),
    cohort_table("alone", 3, 3, response="private"),
)


def market(
    *,
    apart: bool = True,
    played: int = 10,
    seed: int | None = None,
    rounds: int = 40,
    **keys: object,
) -> MarketModel:
    """Build a market of all kinds of agents and play some of its rounds."""
    adversary = {"kind": "drifting", "outcomes": 2}
    scenario = make_scenario(*COHORTS, rounds=rounds, adversary=adversary, **keys)
    model = scenario.build(seed=seed, apart=apart)
    model.run(played)
    return model


class CollectedMarket(NamedTuple):
    """A played market, and what a collector of Mesa read of its agents in each round."""

    model: MarketModel
    collected: pd.DataFrame


@pytest.fixture(scope="module")
def collected_market() -> CollectedMarket:
    """Play five rounds, step by step."""
    model = market(rounds=5, played=0)
    columns = {"swap": "swap_regret", "action": "action"}
    collector = mesa.DataCollector({"played": "played"}, columns)
    for _ in range(5):
        model.step()
        collector.collect(model)
    return CollectedMarket(model, collector.get_agent_vars_dataframe())


def test_a_collector_of_mesa_reads_agents_as_the_log_has_them(
    collected_market: CollectedMarket,
) -> None:
    model, collected = collected_market
    log = model.regret_frame()
    assert collected["swap"].to_numpy() == pytest.approx(log["swap_regret"].to_numpy())
    assert (collected["action"].to_numpy() == log["action"].to_numpy()).all()


def test_sets_of_agents_of_mesa_are_read_selected_and_aggregated(
    collected_market: CollectedMarket,
) -> None:
    model = collected_market.model
    table = model.agents_frame()
    assert model.agents.get("swap_regret") == pytest.approx(table["swap_regret"].tolist())
    worst = model.agents.agg("swap_regret", max)
    assert worst == pytest.approx(table["swap_regret"].max())
    wise = model.agents.select(lambda agent: agent.cohort == "wise")
    numbers = {agent.unique_id for agent in wise}
    assert numbers == set(table.query("cohort == 'wise'")["agent"])


def test_a_market_is_a_model_of_mesa_that_counts_its_steps(
    collected_market: CollectedMarket,
) -> None:
    model = collected_market.model
    assert isinstance(model, mesa.Model)
    assert model.steps == 5
    assert model.played == 5


@pytest.fixture(scope="module")
def finished_market() -> MarketModel:
    """Let Mesa's own loop play four rounds: while running, step."""
    model = load("crop-choice", rounds=4).build(seed=1)
    model.run_model()
    return model


def test_mesas_own_loop_ends_with_the_last_round(finished_market: MarketModel) -> None:
    assert finished_market.played == 4
    assert finished_market.steps == 4
    assert not finished_market.running


def test_a_finished_market_plays_no_further_round(finished_market: MarketModel) -> None:
    with pytest.raises(UserError, match="all 4 rounds are played"):
        finished_market.step()


@pytest.mark.parametrize("method", ["reset_rng", "reset_randomizer"])
def test_mesas_own_random_numbers_are_not_reset(finished_market: MarketModel, method: str) -> None:
    with pytest.raises(UserError, match="root seed"):
        getattr(finished_market, method)(3)


@pytest.mark.parametrize("rounds", [-1, 2.5, float("nan"), "3"], ids=str)
def test_a_number_of_rounds_that_is_none_is_refused(
    finished_market: MarketModel, rounds: object
) -> None:
    with pytest.raises(UserError, match=r"^run\(.*\): give how many rounds"):
        finished_market.run(rounds)  # type: ignore[arg-type]


def test_an_agent_is_removed_after_the_last_round() -> None:
    model = load("crop-choice", rounds=4).build(seed=1)
    model.run()
    next(iter(model.agents)).remove()
    assert len(model.agents) == 199
    assert model.played == 4


@pytest.mark.parametrize("copy_model", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_market_is_not_copied(copy_model: Callable[[MarketModel], object]) -> None:
    """What a copy would share with the first would play in both."""
    model = market(rounds=6, played=3)
    with pytest.raises(UserError, match=r"not copied; take branch\(\)"):
        copy_model(model)


def test_a_state_goes_over_to_another_model() -> None:
    model = market(rounds=6, played=3)
    other = market(rounds=6, played=0)
    other.restore(model.state())
    model.run()
    other.run()
    assert other.agents_frame().equals(model.agents_frame())


def worst_regret(model: MarketModel) -> float:
    return float(model.agents_frame()["swap_regret"].max())


def collecting_market(seed: int, rounds: int) -> MarketModel:
    model = market(rounds=rounds, played=0, seed=seed)
    model.datacollector = mesa.DataCollector({"worst": worst_regret}, {"regret": "swap_regret"})
    return model


def test_a_batch_run_of_mesa_plays_what_a_run_plays() -> None:
    """Mesa counts the agents' records from 1 and reads them from 0: one round less than played."""
    parameters = {"seed": [3, 4], "rounds": 6}
    records = mesa.batch_run(collecting_market, parameters, display_progress=False)
    for seed, rows in pd.DataFrame(records).groupby("seed"):
        single_run = market(rounds=6, played=5, seed=int(seed))
        regrets = single_run.agents_frame().set_index("agent")["swap_regret"]
        assert rows.set_index("AgentID")["regret"].to_dict() == regrets.to_dict()
        single_run.run()
        assert set(rows["worst"]) == {worst_regret(single_run)}


def test_models_leave_nothing_behind() -> None:
    """Mesa's own numbering of agents keeps every model: 105 kB each of this size."""
    scenario = read_scenario(NATURE_SCENARIO, "rounds=2", "cohort.farmers.actions=6")
    play_to_end(scenario).agents_frame()  # what is imported is imported before
    references = []
    bytes_held = []
    tracemalloc.start()
    for _ in range(2):
        for seed in range(3):
            model = play_to_end(scenario, seed=seed)
            model.agents_frame()
            references.append(weakref.ref(model))
            del model
        gc.collect()
        bytes_held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    models_alive = sum(reference() is not None for reference in references)
    assert models_alive == 0
    assert bytes_held[1] - bytes_held[0] < 30_000  # for three models


@pytest.mark.parametrize(
    "keys", [{}, {"market": {"impact": 0.4, "feedback": "same-round"}}], ids=["alone", "market"]
)
@pytest.mark.parametrize("played", [0, 10])
def test_a_branch_without_changes_goes_on_to_the_same_bytes(played: int, keys: TomlTable) -> None:
    trunk = market(played=played, **keys)
    branch = trunk.branch()
    trunk.run()
    branch.run()
    pd.testing.assert_frame_equal(trunk.agents_frame(), branch.agents_frame())
    rounds_since = trunk.rounds_frame().iloc[played:].reset_index(drop=True)
    pd.testing.assert_frame_equal(rounds_since, branch.rounds_frame())
    assert (gains(trunk, branch)[["gain", "loss_gain"]] == 0.0).all(axis=None)


BRANCHED_AT = 10
DEVIATOR = 4  # the row of agent 5, the second of the cohort own


class Deviation(NamedTuple):
    """A trunk, and a branch from round 10 in which agent 5 always plays action 2."""

    trunk: MarketModel
    branch: MarketModel


@pytest.fixture(scope="module")
def deviation() -> Deviation:
    """Play a trunk after two of its branches."""
    trunk = market(played=BRANCHED_AT)
    branch = trunk.branch({"agent.5": 2})
    trunk.branch({"forecaster.kind": "running-mean"}).run()
    branch.run()
    trunk.run()
    return Deviation(trunk, branch)


def test_a_trunk_plays_on_as_if_it_had_no_branches(deviation: Deviation) -> None:
    unbranched = market(played=40)
    pd.testing.assert_frame_equal(deviation.trunk.agents_frame(), unbranched.agents_frame())


def test_without_a_market_nobody_else_notices_who_deviates(deviation: Deviation) -> None:
    table = gains(deviation.trunk, deviation.branch)
    assert (table["gain"].drop(index=DEVIATOR) == 0.0).all()


def test_without_a_market_the_gain_of_a_deviation_is_the_hindsight_one(
    deviation: Deviation,
) -> None:
    """Outcomes do not answer: the loss in the branch is that of action 2 on those that came."""
    cohort = deviation.trunk.game.cohorts[1]
    outcomes = deviation.trunk.rounds_frame()[["y_0", "y_1"]].to_numpy()[BRANCHED_AT:]
    losses = cohort.loss[int(cohort.row_of[1])].losses(outcomes)
    table = gains(deviation.trunk, deviation.branch)
    assert table["branch_loss"][DEVIATOR] == pytest.approx(losses[:, 2].mean(), abs=1e-12)


def test_who_deviates_is_promised_nothing_and_the_others_what_they_were(
    deviation: Deviation,
) -> None:
    in_branch = deviation.branch.agents_frame()
    assert in_branch["guarantee"][DEVIATOR] == "none"
    assert in_branch.loc[DEVIATOR, ["bound", "bound_from_bias"]].isna().all()
    in_trunk = deviation.trunk.agents_frame()
    is_other_agent = in_branch.index != DEVIATOR
    assert (in_branch["guarantee"][is_other_agent] == in_trunk["guarantee"][is_other_agent]).all()


def test_a_firm_that_sells_more_earns_by_the_formula() -> None:
    """With everybody's output held: q' (a - b (Q - q + q') - c) - q (a - b Q - c)."""
    keys = {"market.noise": 0.0, "market.feedback": "same-round", "market.adjustment": 1.0}
    keys["cohort.firms.parameters.slope"] = 0.0
    trunk = load("oligopoly", rounds=30, **keys).build(apart=True)
    trunk.run(5)
    all_hold = {f"agent.{number}": 6 for number in range(1, 5)}
    mean_losses = []
    for changes in (all_hold, all_hold | {"agent.1": 12}):
        branch = trunk.branch(changes)
        branch.run()
        (firms,) = branch.game.cohorts
        losses_since = firms.ledger.played_losses.sum(1) - branch.fork.branch_losses[0]
        mean_losses.append(losses_since[firms.row_of] / 25)
    gain = (mean_losses[0] - mean_losses[1]) * trunk.game.cohorts[0].loss.unit_scale

    q = 0.75
    larger_q = 1.5
    cost = 0.3
    price = 0.9 - 0.1 * 4 * q
    fall_of_price = 0.1 * (larger_q - q)
    expected = larger_q * (price - fall_of_price - cost) - q * (price - cost)
    assert gain[0] == pytest.approx(expected, rel=1e-9)
    assert gain[1:] == pytest.approx(-q * fall_of_price, rel=1e-9)


@pytest.fixture(scope="module")
def trunk() -> MarketModel:
    return market()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": 3}, "'rounds' does not change"),
        ({"cohort.own.count": 3}, "does not change"),
        ({"cohort.owl.response": "hedge"}, "there is no 'owl'; did you mean 'own'"),
        ({"agent.99": 0}, "there are 13 agents"),
        ({"agent.4": 7}, "give an action from 0 to 2"),
        ({"agent.0": 0}, "does not change"),
        ({"adversary.kind": "drifring"}, "did you mean 'drifting'"),
        ({"adversary.steq": 1.0}, "steq"),
    ],
    ids=str,
)
def test_what_a_branch_cannot_change_is_named(
    trunk: MarketModel, change: TomlTable, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        trunk.branch(change)


def test_an_agent_that_shares_its_row_does_not_deviate_alone() -> None:
    with pytest.raises(UserError, match=r"build\(apart=True\)"):
        market(apart=False).branch({"agent.4": 0})


def test_gains_are_of_a_branch_alone(trunk: MarketModel) -> None:
    with pytest.raises(UserError, match="is no branch"):
        gains(trunk, market())


def test_gains_are_of_a_branch_that_is_played_as_far_as_its_trunk(trunk: MarketModel) -> None:
    with pytest.raises(UserError, match="run both equally far"):
        gains(trunk, trunk.branch())


class Walker(Checkpointable):
    """A generator and where it went."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("rng", "_position")

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self._position = np.zeros(2)

    def walk(self) -> list[float]:
        self._position = self._position + self.rng.random(2)
        steps: list[float] = self._position.tolist()
        return steps


class Group(Checkpointable):
    """Walkers, streams that it does not own, and values of every kind."""

    REMEMBERED: ClassVar[tuple[str, ...]] = (
        "walkers",
        "streams",
        "name",
        "best",
        "when",
        "paths",
        "table",
    )

    def __init__(self, seed: int) -> None:
        self.walkers: tuple[Walker, ...] = (Walker(seed + 1), Walker(seed + 2))
        self.name = ""
        self.best: float | None = None
        self.when: tuple[object, ...] = ()
        self.paths: list[object] = []
        self.table: TomlTable = {}

    @property
    def streams(self) -> list[np.random.Generator]:
        """Nobody could set this."""
        return [walker.rng for walker in self.walkers]


@pytest.fixture
def group() -> Group:
    """Return a group that has walked, with values of every kind."""
    group = Group(1)
    for walker in group.walkers:
        walker.walk()
    group.name = "north"
    group.best = np.float64(0.5)
    group.when = (1, None, True)
    group.paths = [np.arange(3), 2, [np.ones(1), "x"]]
    group.table = {"flags": np.array([True]), "deep": {"er": np.int64(4)}}
    return group


@pytest.fixture
def restored_group(group: Group, tmp_path: Path) -> Group:
    """Return another group that was restored from the first one's file."""
    checkpoint.save(tmp_path / "there.npz", group.state())
    restored = Group(5)
    restored.restore(checkpoint.load(tmp_path / "there.npz"))
    return restored


def test_generators_go_on_from_a_checkpoint_file(group: Group, restored_group: Group) -> None:
    steps = [walker.walk() for walker in group.walkers]
    assert [walker.walk() for walker in restored_group.walkers] == steps


def test_values_of_every_kind_come_back_from_a_checkpoint_file(restored_group: Group) -> None:
    assert restored_group.name == "north"
    assert restored_group.best == 0.5
    assert restored_group.when == (1, None, True)
    assert restored_group.paths[0].dtype == np.arange(3).dtype
    assert restored_group.paths[0].tolist() == [0, 1, 2]
    assert restored_group.paths[1] == 2
    assert restored_group.table["flags"].tolist() == [True]
    assert restored_group.table["deep"] == {"er": 4}


def test_a_property_that_cannot_be_set_keeps_its_own_streams(restored_group: Group) -> None:
    assert restored_group.streams == [walker.rng for walker in restored_group.walkers]


def test_the_state_of_a_group_of_another_size_is_refused() -> None:
    smaller = Group(1)
    smaller.walkers = smaller.walkers[:1]
    with pytest.raises(ValueError, match="the state is of"):
        smaller.restore(Group(1).state())


def test_the_state_of_something_else_is_refused() -> None:
    with pytest.raises(KeyError):
        Group(1).restore(Walker(1).state())


def test_bounds_are_logged_four_times_in_every_doubling_and_at_the_end() -> None:
    model = market(rounds=50, played=50)
    assert sorted(set(model.bounds_frame()["round"])) == [
        8,
        10,
        12,
        14,
        16,
        20,
        23,
        27,
        32,
        39,
        46,
        50,
    ]


def test_a_market_that_goes_back_to_an_earlier_round_logs_its_bounds_again() -> None:
    model = market(rounds=50, played=15)
    earlier = model.state()
    model.run(40)
    logged = model.bounds_frame()
    model.restore(earlier)
    model.run(40)
    assert model.bounds_frame().equals(logged)
