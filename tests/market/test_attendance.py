"""Who is there, and who hears when: own rounds, changes, stale news, and what is promised."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from log_measures import mean_loss_and_regrets, play_and_log
from small_scenarios import TomlTable, cohort_table, make_scenario, play_to_end

from regretless import MarketModel, UserError, register
from regretless.agents.adversaries import AntiForecast, LookAhead, StackelbergCommitter
from regretless.forecaster import RunningMean
from regretless.forecaster.guarantees.coordinate_bound import CoordinateBound
from regretless.forecaster.guarantees.gain_bound import GainBound
from regretless.forecaster.no_forecast import NoForecast
from regretless.forecaster.weights import AdaptiveWeights, BoundInputs
from regretless.market.best_response import best_response, expected_losses
from regretless.market.core.arrays import Array, Mask
from regretless.market.game.attendance import Attendance, drawn_stays
from regretless.market.game.network import NEVER, Network, edge_list, networked
from regretless.market.game.round import play_round
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.assembly.theorems import over_stays
from regretless.scenarios.report.market_figures import rings

REGRETS = ["mean_loss", "external_regret", "swap_regret", "decision_swap_regret"]
SMALL_WORLD = {"graph": "small-world", "neighbours": 2, "subscribers": 3}
OWN = cohort_table("own", 5, 3, types=2)
TWO = cohort_table("two", 2, 3)
ALONE = cohort_table("own", 1, 3)


def guests(name: str = "guests", count: int = 12, **keys: object) -> TomlTable:
    """Return a cohort whose agents enter and leave at rates."""
    rates = {"entry_rate": 0.03, "exit_rate": 0.04}
    return cohort_table(name, count, 3, **rates | keys)


class DrawnStays(NamedTuple):
    """Stays of thirty agents, and the window in which they are."""

    first: int
    last: int
    stays: Attendance


def stays_in_window(entry_rate: float | None, exit_rate: float | None, seed: int) -> DrawnStays:
    rng = np.random.default_rng(seed)
    first, last = np.cumsum(rng.integers([0, 1], 21)).tolist()
    stays = drawn_stays(rng, 30, window=(first, last), rates=(entry_rate, exit_rate))
    return DrawnStays(first, last, stays)


def rows_present(stays: Attendance, round_index: int) -> Mask:
    present = stays.present_rows(round_index)
    return np.ones(30, dtype=bool) if present is None else present


every_seed = pytest.mark.parametrize("seed", range(6))
every_entry_rate = pytest.mark.parametrize("entry_rate", [None, 0.1, 1.0])
every_exit_rate = pytest.mark.parametrize("exit_rate", [None, 0.1, 1.0])


@every_seed
@every_entry_rate
@every_exit_rate
def test_stays_lie_in_their_window(
    entry_rate: float | None, exit_rate: float | None, seed: int
) -> None:
    first, last, stays = stays_in_window(entry_rate, exit_rate, seed)
    assert (first <= stays.entered).all()
    assert (stays.entered <= stays.left).all()
    assert (stays.left <= last).all()


@every_seed
@every_entry_rate
@every_exit_rate
def test_agents_are_present_in_the_rounds_of_their_stay(
    entry_rate: float | None, exit_rate: float | None, seed: int
) -> None:
    _, last, stays = stays_in_window(entry_rate, exit_rate, seed)
    present = np.array([rows_present(stays, round_index) for round_index in range(last + 2)])
    assert (present.sum(0) == stays.left - stays.entered).all()


@every_seed
@every_exit_rate
@pytest.mark.parametrize("entry_rate", [None, 1.0])
def test_everybody_enters_at_the_first_round_where_there_is_no_waiting(
    entry_rate: float | None, exit_rate: float | None, seed: int
) -> None:
    first, _, stays = stays_in_window(entry_rate, exit_rate, seed)
    assert (stays.entered == first).all()


@every_seed
@every_entry_rate
def test_everybody_stays_until_the_last_round_without_a_rate_of_exit(
    entry_rate: float | None, seed: int
) -> None:
    _, last, stays = stays_in_window(entry_rate, None, seed)
    assert (stays.left == last).all()


@every_seed
@every_entry_rate
def test_everybody_leaves_after_a_round_at_a_rate_of_exit_of_one(
    entry_rate: float | None, seed: int
) -> None:
    _, last, stays = stays_in_window(entry_rate, 1.0, seed)
    assert (stays.left == np.minimum(stays.entered + 1, last)).all()


class LoggedGuests(NamedTuple):
    """The agents of a run by number, and of those who came their rounds, losses and strategies."""

    agents: pd.DataFrame
    logs: dict[int, list[tuple[int, Array, Array]]]


@cache
def logged_guests(*, has_network: bool) -> LoggedGuests:
    """Play best responders and quantal agents who come and go."""
    quantal = guests("smooth", response="quantal", eta=8.0, exit_rate=0.1)
    adversary = {"kind": "switching", "outcomes": 2, "length": 10}
    keys = {"network": SMALL_WORLD} if has_network else {}
    model = make_scenario(guests(), quantal, seed=5, adversary=adversary, **keys).build()
    logs = play_and_log(model)
    return LoggedGuests(model.agents_frame().set_index("agent"), logs)


with_and_without_network = pytest.mark.parametrize(
    "has_network", [False, True], ids=["all hear", "network"]
)


@with_and_without_network
def test_who_never_comes_plays_nothing_and_is_not_measured(has_network: bool) -> None:  # noqa: FBT001 - a parameter
    agents, logs = logged_guests(has_network=has_network)
    never_came = agents[agents["entered"].isna()]
    assert len(never_came) > 0
    assert not set(never_came.index) & set(logs)
    assert never_came[[*REGRETS, "bound", "exploitability"]].isna().all(axis=None)


@with_and_without_network
def test_who_comes_plays_the_rounds_of_its_stay(has_network: bool) -> None:  # noqa: FBT001 - a parameter
    agents, logs = logged_guests(has_network=has_network)
    assert agents["left"].lt(60).any(), "nobody left before the end"
    for number, agent in agents[agents["entered"].notna()].iterrows():
        rounds = [round_index for round_index, _, _ in logs[number]]
        assert rounds == list(range(agent["entered"], agent["left"])), f"agent {number}"


@with_and_without_network
def test_everybody_is_measured_over_its_own_rounds(has_network: bool) -> None:  # noqa: FBT001 - a parameter
    agents, logs = logged_guests(has_network=has_network)
    for number, agent in agents[agents["entered"].notna()].iterrows():
        _, losses, strategies = zip(*logs[number], strict=True)
        expected = mean_loss_and_regrets(np.array(losses), np.array(strategies))
        assert agent[REGRETS].to_numpy(float) == pytest.approx(expected), f"agent {number}"


@with_and_without_network
def test_regret_over_own_rounds_stays_below_the_bound_from_biases(has_network: bool) -> None:  # noqa: FBT001 - a parameter
    agents, _ = logged_guests(has_network=has_network)
    agents_who_entered = agents[agents["entered"].notna()]
    assert (
        agents_who_entered["decision_swap_regret"] <= agents_who_entered["bound_from_bias"] + 1e-9
    ).all()


WEIGHTS_AGAINST = {"iid": "adaptive", "switching": "exponential", "anti-forecast": "adaptive"}


@pytest.mark.parametrize("adversary", WEIGHTS_AGAINST)
def test_the_bound_over_own_rounds_holds(adversary: str) -> None:
    model = make_scenario(
        guests(count=40, entry_rate=0.2, exit_rate=0.01),
        rounds=300,
        seed=5,
        adversary={"kind": adversary, "outcomes": 2},
        forecaster={"weights": WEIGHTS_AGAINST[adversary]},
    ).build()
    assert model.agents_frame()["bound"].isna().all(), "there is a bound before the first round"

    model.run()

    agents = model.agents_frame()
    assert set(agents["guarantee"]) == {"decision-swap"}
    assert (agents["decision_swap_regret"] <= agents["bound_from_variation"]).all()
    assert (agents["bound_from_variation"] <= agents["bound"]).all()
    by_stay = agents.assign(stay=agents["left"] - agents["entered"]).sort_values("stay")
    assert by_stay["bound"].iloc[0] > by_stay["bound"].iloc[-1], "a short stay is bounded better"


LEAVERS = Path(__file__).parent / "data" / "leavers"
EACH_ITS_OUTCOME = np.eye(4)
LEAVER = ALONE | {
    "name": "leaver",
    "actions": 2,
    "parameters": {"weights": EACH_ITS_OUTCOME[:2].tolist()},
    "exits": 300,
}
CROWD = ALONE | {
    "name": "crowd",
    "actions": 2,
    "parameters": {"weights": EACH_ITS_OUTCOME[2:].tolist()},
}
FORECASTER_OF_LEAVERS = {"events": "losses", "models": [], "reference": {"kind": "constant"}}


@pytest.mark.parametrize(
    ("file", "rounds", "crowd", "keys"),
    [
        ("private.csv", 386, {"response": "private"}, {}),
        ("intervals.csv", 390, {}, {"intervals": True}),
    ],
)
def test_what_a_leaver_would_have_regained_later_lowers_no_bound(
    file: str, rounds: int, crowd: TomlTable, keys: TomlTable
) -> None:
    """The leaver regrets .2267 of its 300 rounds; its gains fall in the rounds that follow."""
    outcomes = ["a", "b", "c", "d"]
    data = {"file": file, "outcomes": outcomes, "scale": {name: [0, 1] for name in outcomes}}
    forecaster = FORECASTER_OF_LEAVERS | keys
    world = make_scenario(
        LEAVER, CROWD | crowd, origin=LEAVERS, rounds=rounds, data=data, forecaster=forecaster
    )
    agents = play_to_end(world, seed=0).agents_frame().set_index("cohort")
    assert agents.loc["leaver", "decision_swap_regret"] == pytest.approx(0.2267, abs=1e-4)
    assert (agents["decision_swap_regret"] <= agents["bound_from_variation"]).all()
    assert agents.loc["leaver", "bound_from_variation"] == pytest.approx(0.2267, abs=1e-4)


def test_who_enters_late_is_bounded_by_what_was_gained_at_entry() -> None:
    """Scalar gains have no bound beforehand: an old gain far below zero may be regained."""
    world = make_scenario(
        guests(entry_rate=0.05, exit_rate=0.02),
        rounds=120,
        adversary={"kind": "switching", "outcomes": 2, "length": 20},
        forecaster={"events": "losses"},
    )
    model = play_to_end(world)
    agents = model.agents_frame().dropna(subset=["entered"])
    late = agents[agents["entered"] > 0]
    assert len(late) > 3
    assert late["bound"].isna().all()
    assert set(late["guarantee"]) == {"decision-swap"}
    assert (late["decision_swap_regret"] <= late["bound_from_variation"] + 1e-9).all()
    assert late["bound_from_variation"].notna().all()
    assert "no bound beforehand" in " ".join(model.guarantees[0].unbounded)


BOUND_INPUTS = BoundInputs(experts=24, rounds=100, certificate_sum=0.3)
STAYS = Attendance(np.array([0, 10, 40, 120]), np.array([200, 50, 41, 200]))  # the last is to come
WEIGHTS_OF_ROWS = np.random.default_rng(0).random((4, 3, 2))


def test_the_bound_of_a_stay_is_the_theorem_from_its_entry_to_its_end() -> None:
    rule = AdaptiveWeights()
    bounds = over_stays([CoordinateBound(rule, BOUND_INPUTS)], WEIGHTS_OF_ROWS, STAYS, policies=0)
    for row, (first, last) in enumerate([(0, 100), (10, 50), (40, 41)]):
        bound_until = CoordinateBound(rule, replace(BOUND_INPUTS, rounds=last))
        (expected,) = bound_until.over_stay(WEIGHTS_OF_ROWS[[row]], joined=first)
        assert bounds[row] == pytest.approx(expected), f"row {row}"
    assert np.isnan(bounds[3]), "who has not come yet has a bound"


def test_scalar_gains_bound_only_who_was_there_from_the_first_round() -> None:
    bounds = over_stays(
        [GainBound(AdaptiveWeights(), BOUND_INPUTS)], WEIGHTS_OF_ROWS, STAYS, policies=0
    )
    assert np.isnan(bounds).tolist() == [False, True, True, True]


def drifting_market(*cohorts: TomlTable, apart: bool = True, **keys: object) -> MarketModel:
    """Build a market of 30 rounds, by default of five agents of two types and of two others."""
    adversary = {"kind": "drifting", "outcomes": 2}
    scenario = make_scenario(*(cohorts or (OWN, TWO)), rounds=30, adversary=adversary)
    return scenario.build(apart=apart, **keys)


LEAVES_AT = 10


@pytest.fixture(scope="module")
def market_that_one_left() -> MarketModel:
    """Play a market that the second agent leaves, and another one enters, before round 10."""
    model = drifting_market(spare={"own": 1})
    model.run(LEAVES_AT)
    model.agents[1].remove()
    model.add("own")
    model.run()
    return model


def test_a_run_that_an_agent_left_and_another_entered_resumes() -> None:
    model = drifting_market(spare={"own": 1})
    model.run(LEAVES_AT)
    model.agents[1].remove()
    model.add("own")
    model.run(5)
    resumed = drifting_market(spare={"own": 1})
    resumed.restore(model.state())
    model.run()
    resumed.run()
    pd.testing.assert_frame_equal(model.agents_frame(), resumed.agents_frame())
    numbers = {agent.unique_id for agent in model.agents}
    assert numbers == {agent.unique_id for agent in resumed.agents}


def test_an_agent_that_is_removed_is_no_agent_of_the_market() -> None:
    model = drifting_market()
    model.run(LEAVES_AT)
    leaver = model.agents[1]
    leaver.remove()
    model.run()
    assert len(model.agents) == 6
    assert leaver not in model.agents
    assert leaver.action == -1


def test_an_agent_that_is_removed_plays_no_further_round(market_that_one_left: MarketModel) -> None:
    log = market_that_one_left.regret_frame()
    assert log[log["agent"] == 2]["round"].tolist() == list(range(LEAVES_AT))
    rounds_played = sorted(log["agent"].value_counts())
    assert rounds_played == [10, 20, 30, 30, 30, 30, 30, 30]  # who left, who entered, the others
    assert len(market_that_one_left.agents) == 7


def test_an_agent_that_is_removed_is_measured_until_it_left(
    market_that_one_left: MarketModel,
) -> None:
    log = market_that_one_left.regret_frame()
    actions = log.query("agent == 2")["action"].to_numpy()
    outcomes = market_that_one_left.rounds_frame()[["y_0", "y_1"]].to_numpy()[:LEAVES_AT]
    cohort = market_that_one_left.game.cohorts[0]
    losses = cohort.loss[int(cohort.row_of[1])].losses(outcomes)
    leaver = market_that_one_left.agents_frame().iloc[1]
    expected = mean_loss_and_regrets(losses, actions)
    assert leaver[REGRETS].to_numpy(float) == pytest.approx(expected, abs=1e-12)
    assert (leaver["entered"], leaver["left"]) == (0, LEAVES_AT)


def test_an_agent_that_is_removed_is_promised_nothing(market_that_one_left: MarketModel) -> None:
    leaver = market_that_one_left.agents_frame().iloc[1]
    assert leaver["guarantee"] == "none"
    assert np.isnan(leaver["bound"])


def test_those_who_stay_keep_their_guarantee(market_that_one_left: MarketModel) -> None:
    staying_agents = market_that_one_left.agents_frame().drop(index=1)
    staying = staying_agents[staying_agents["entered"] == 0]
    assert len(staying) == 6
    assert (staying["guarantee"] == "decision-swap").all()
    assert (staying["decision_swap_regret"] <= staying["bound"]).all()


def test_an_agent_that_shares_its_row_is_not_removed() -> None:
    model = drifting_market(apart=False)
    with pytest.raises(UserError, match=r"one row; build\(apart=True\)"):
        model.agents[0].remove()
    assert len(model.agents) == 7


def test_the_last_agent_of_all_is_not_removed() -> None:
    with pytest.raises(UserError, match="the last of all"):
        drifting_market(ALONE).agents[0].remove()


def test_an_agent_of_a_cohort_that_learns_together_is_not_removed() -> None:
    model = drifting_market(ALONE, TWO | {"response": "hedge"})
    with pytest.raises(UserError, match=r"cohort.two learns together"):
        model.agents[1].remove()


@pytest.fixture
def market_with_another_forecaster() -> MarketModel:
    """Play ten rounds with a guarantee, and the rest with the mean of the outcomes since."""
    model = drifting_market()
    model.run(10)
    assert (model.agents_frame()["guarantee"] == "decision-swap").all()
    (block,) = model.game.blocks
    model.replace(**{block.name: RunningMean(block.basis.size)})
    model.run()
    return model


def test_a_forecaster_put_in_the_place_of_another_broadcasts_from_then_on(
    market_with_another_forecaster: MarketModel,
) -> None:
    outcomes = market_with_another_forecaster.rounds_frame()[["y_0", "y_1"]].to_numpy()
    forecasts = market_with_another_forecaster.forecasts_frame().query("round == 25")
    assert forecasts[["p_0", "p_1"]].to_numpy()[0] == pytest.approx(outcomes[10:25].mean(0))


def test_what_was_broadcast_stays_in_the_tables_where_nobody_is_told_anything_any_more() -> None:
    model = drifting_market()
    model.run(10)
    rounds_before = model.rounds_frame()
    forecasts_before = model.forecasts_frame()
    (block,) = model.game.blocks
    model.replace(**{block.name: NoForecast(block.basis.size)})
    pd.testing.assert_frame_equal(model.rounds_frame(), rounds_before)
    pd.testing.assert_frame_equal(model.forecasts_frame(), forecasts_before)


def test_a_leader_who_takes_over_is_paid_in_the_tables_from_then_on() -> None:
    model = drifting_market()
    model.run(10)
    rng = np.random.default_rng(0)
    leader = StackelbergCommitter(2, rng, weights=[[1.0, 0.0]] * 3, margin=0.01)
    model.replace(adversary=leader)
    model.run(15)
    payments = model.rounds_frame()["leader_payoff"]
    assert payments[:10].isna().all()
    assert payments[10:].notna().all()


def test_the_guarantee_ends_where_the_forecaster_is_replaced(
    market_with_another_forecaster: MarketModel,
) -> None:
    agents = market_with_another_forecaster.agents_frame()
    assert (agents["guarantee"] == "none").all()
    assert agents["bound"].isna().all()
    assert "replaced before round 10" in market_with_another_forecaster.guarantees[0].note
    assert market_with_another_forecaster.bounds_frame()["round"].max() <= 10


def test_a_market_whose_players_were_replaced_gives_no_state(
    market_with_another_forecaster: MarketModel,
) -> None:
    with pytest.raises(ValueError, match="players were replaced"):
        market_with_another_forecaster.state()


def players(model: MarketModel) -> tuple[object, ...]:
    return model.game.adversary, model.game.market, model.game.blocks, model.guarantees


def test_nothing_is_replaced_where_one_of_the_players_does_not_fit() -> None:
    model = drifting_market()
    rng = np.random.default_rng(0)
    fitting_market = register.market["prices"](
        model.game.cohorts, rng, feedback="lagged", impact=0.4
    )
    players_before = players(model)
    for key, unfitting in (
        ("adversary", LookAhead(2, rng, weights=[[1.0, 0.0]] * 3)),  # plans without the market
        ("news", RunningMean(2)),  # there is no such block
        ("adversary", AntiForecast(3, rng)),  # of another number of outcomes
    ):
        with pytest.raises(UserError):
            model.replace(market=fitting_market, **{key: unfitting})
        assert players(model) == players_before, type(unfitting).__name__


PATHS = "a,b\n1,2\n2,3\n3,4\n5,6\n"  # from reader 1 to reader 4; 5 and 6 stand apart


def readers_along(folder: Path, edges: str) -> Scenario:
    """Return a scenario of six readers along edges, of whom the first subscribes."""
    (folder / "edges.csv").write_text(edges)
    network = {"graph": "edge-list", "file": str(folder / "edges.csv"), "subscribers": [1]}
    adversary = {"kind": "switching", "outcomes": 2, "length": 10}
    readers = cohort_table("readers", 6, 3, "ces", parameters={"rho": [0.3, 0.9]})
    return make_scenario(readers, seed=5, adversary=adversary, network=network)


class RandomNetwork(NamedTuple):
    """A graph of networkx, those who subscribe, and the network that is made of both."""

    graph: nx.Graph
    subscribers: set[int]
    network: Network


def random_network(seed: int) -> RandomNetwork:
    rng = np.random.default_rng(seed)
    agents = int(rng.integers(1, 13))
    pairs = rng.integers(0, agents, (rng.integers(0, 20), 2))
    edges = [(int(a), int(b)) for a, b in pairs if a != b]
    subscribers = {*rng.integers(0, agents, rng.integers(0, 4)).tolist()}
    graph = edge_list(agents, np.array(edges, dtype=np.intp).reshape(-1, 2))
    network = networked(agents, np.array(sorted(subscribers), dtype=np.intp), graph)
    assert {*map(tuple, network.edges.tolist())} == {(min(edge), max(edge)) for edge in edges}
    return RandomNetwork(graph, subscribers, network)


@pytest.mark.parametrize("seed", range(40))
def test_distances_are_those_of_networkx(seed: int) -> None:
    graph, subscribers, network = random_network(seed)
    hops = {}
    if subscribers:
        hops = nx.multi_source_dijkstra_path_length(graph, subscribers)
    expected = [hops.get(agent, NEVER) for agent in graph.nodes]
    assert network.distance.tolist() == expected


@pytest.mark.parametrize("seed", range(40))
def test_a_figure_draws_agents_of_one_distance_on_one_ring(seed: int) -> None:
    """Those who never hear are on the outermost."""
    _, _, network = random_network(seed)
    outermost = network.farthest + 1
    radius_of_subscribers = max(1.0, outermost / 3)
    ring = np.where(network.distance < 0, outermost, network.distance)
    radii = np.linalg.norm(rings(network), axis=1)
    assert radii == pytest.approx(radius_of_subscribers + ring, abs=1e-9)


def test_news_is_exactly_as_old_as_the_way_is_long(tmp_path: Path) -> None:
    """A row at distance h plays the best response to the prediction drawn h rounds ago.

    Who has heard none yet, or never does, responds to the mean of what came.
    """
    model = readers_along(tmp_path, PATHS).build()
    (cohort,) = model.game.cohorts
    (block,) = model.game.blocks
    hops_to_agent = [0, 1, 2, 3, NEVER, NEVER]
    assert cohort.distance[cohort.row_of].tolist() == hops_to_agent
    mean = np.full(block.basis.size, 0.5)
    predictions = []
    for round_index in range(25):
        played = play_round(model.game)
        predictions.append(played.forecasts[0].statistics)
        (decision,) = played.decisions
        for agent, hops in enumerate(hops_to_agent):
            has_heard = 0 <= hops <= round_index
            expected_signal = predictions[round_index - hops] if has_heard else mean
            row = int(cohort.row_of[agent])
            expected = expected_losses(*cohort.coefficients, expected_signal)[[row]]
            when = f"agent {agent} in round {round_index}"
            assert decision.predicted[row] == pytest.approx(expected[0], abs=1e-12), when
            assert decision.actions[agent] == best_response(expected)[0], when
        mean = mean + (block.basis.transform(played.outcome) - mean) / (round_index + 1)


@pytest.mark.parametrize(("adversary", "seed"), [("switching", 0), ("anti-forecast", 1)])
def test_the_bound_from_biases_holds_for_stale_news_too(adversary: str, seed: int) -> None:
    """Play responds to what is expected, whatever its age: p_a <= p_b + gap."""
    scenario = make_scenario(
        cohort_table("plain", 20, 3),
        cohort_table("smooth", 6, 3, response="quantal", eta=9.0),
        seed=5,
        network=SMALL_WORLD | {"subscribers": 2},
        adversary={"kind": adversary, "outcomes": 2},
        rounds=150,
    )
    agents = play_to_end(scenario, seed=seed).agents_frame()
    assert agents["distance"].max() >= 3
    assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()
    assert (agents["bound"].notna() == (agents["distance"] == 0)).all()


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ("a,b\n1,9\n", "data row 1 (line 2): '9' is no agent; give numbers from 1 to 6"),
        ("a,b\n1,2\nx,2\n", "column 'a' holds 'x' in data row 2 (line 3)"),
        ("a,b\n3,3\n", "an edge from agent 3 to itself"),
        ("a,b,c\n1,2,3\n", "has 3 columns"),
        ("a,b\n9,1,2\n", "data row 1 (line 2) is of length 3, the header of 2"),
        ("", "is empty"),
    ],
)
def test_a_mistake_in_the_edges_is_named(tmp_path: Path, edges: str, message: str) -> None:
    with pytest.raises(UserError, match=re.escape(message)):
        readers_along(tmp_path, edges).build()
