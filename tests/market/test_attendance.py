"""Who is there, and who hears when: own rounds, changes, stale news, and what is promised."""

import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import worlds

from regretless import MarketModel, UserError, register
from regretless.agents.adversaries import AntiForecast, LookAhead
from regretless.forecaster import RunningMean
from regretless.forecaster.guarantees.coordinate_bound import CoordinateBound
from regretless.forecaster.guarantees.gain_bound import GainBound
from regretless.forecaster.weights import AdaptiveWeights, BoundInputs
from regretless.market.best_response import best_response, expected_losses
from regretless.market.game.attendance import Attendance, drawn_stays
from regretless.market.game.network import NEVER, edge_list, networked
from regretless.market.game.round import play_round
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.assembly.theorems import over_stays
from regretless.scenarios.report.market_figures import rings

EMPTY = ["mean_loss", "external_regret", "swap_regret", "decision_swap_regret", "bound"]
SMALL_WORLD = {"graph": "small-world", "neighbours": 2, "subscribers": 3}
OWN, TWO = worlds.cohort("own", 5, 3, types=2), worlds.cohort("two", 2, 3)
ALONE = worlds.cohort("own", 1, 3)


def rated(name: str = "guests", count: int = 12, **keys: Any) -> worlds.Raw:
    return worlds.cohort(name, count, 3, **{"entry_rate": 0.03, "exit_rate": 0.04} | keys)


def test_stays_lie_in_their_window() -> None:
    rates = None, 0.1, 1.0
    for entry, leave, seed in itertools.product(rates, rates, range(6)):
        rng = np.random.default_rng(seed)
        first, last = np.cumsum(rng.integers([0, 1], 21)).tolist()
        stay = drawn_stays(rng, 30, window=(first, last), rates=(entry, leave))
        assert ((first <= stay.entered) & (stay.entered <= stay.left) & (stay.left <= last)).all()
        here = np.array([(stay.entered <= t) & (t < stay.left) for t in range(last + 2)])
        assert (here.sum(0) == stay.left - stay.entered).all()
        assert entry == 0.1 or (stay.entered == first).all()
        if leave != 0.1:
            assert (stay.left == (np.minimum(stay.entered + 1, last) if leave else last)).all()


@pytest.mark.parametrize("network", [{}, {"network": SMALL_WORLD}], ids=["all", "network"])
def test_everybody_is_measured_over_own_rounds(network: dict[str, Any]) -> None:
    """Regrets equal those recomputed from the rounds in which agents were there."""
    quantal = rated("smooth", response="quantal", eta=8.0, exit_rate=0.1)
    adversary = {"kind": "switching", "outcomes": 2, "length": 10}
    model = worlds.scenario(rated(), quantal, seed=5, adversary=adversary, **network).build()
    log, frame = worlds.logs(model), model.agents_frame().set_index("agent")
    assert frame["entered"].isna().any()  # somebody never came
    assert frame["left"].lt(60).any()
    for agent, own in frame.iterrows():
        if pd.isna(own["entered"]):
            assert agent not in log
            assert own[[*EMPTY, "exploitability"]].isna().all()
            continue
        numbers, losses, strategies = zip(*log[agent], strict=True)
        assert [*numbers] == list(range(own["entered"], own["left"]))
        known = worlds.regrets(np.array(losses), np.array(strategies))
        assert own[EMPTY[:4]].to_numpy(float) == pytest.approx(known)
        assert own["decision_swap_regret"] <= own["bound_from_bias"] + 1e-9


@pytest.mark.parametrize("stream", ["iid", "switching", "anti-forecast"])
def test_the_bound_over_own_rounds_holds(stream: str) -> None:
    weights = "exponential" if stream == "switching" else "adaptive"
    keys = {"adversary": {"kind": stream, "outcomes": 2}, "forecaster": {"weights": weights}}
    guests = rated(count=40, entry_rate=0.2, exit_rate=0.01)
    model = worlds.scenario(guests, rounds=300, seed=5, **keys).build()
    assert model.agents_frame()["bound"].isna().all()
    model.run()
    agents = model.agents_frame()
    assert set(agents["guarantee"]) == {"decision-swap"}
    assert (agents["decision_swap_regret"] <= agents["bound_from_variation"]).all()
    assert (agents["bound_from_variation"] <= agents["bound"]).all()
    shorter = agents.assign(own=agents["left"] - agents["entered"]).sort_values("own")
    assert shorter["bound"].iloc[0] > shorter["bound"].iloc[-1]


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
    file: str, rounds: int, crowd: worlds.Raw, keys: worlds.Raw
) -> None:
    """The leaver regrets .2267 of its 300 rounds; its gains fall in the rounds that follow."""
    outcomes = ["a", "b", "c", "d"]
    data = {"file": file, "outcomes": outcomes, "scale": {name: [0, 1] for name in outcomes}}
    forecaster = FORECASTER_OF_LEAVERS | keys
    world = worlds.scenario(
        LEAVER, CROWD | crowd, origin=LEAVERS, rounds=rounds, data=data, forecaster=forecaster
    )
    agents = worlds.played(world, seed=0).agents_frame().set_index("cohort")
    assert agents.loc["leaver", "decision_swap_regret"] == pytest.approx(0.2267, abs=1e-4)
    assert (agents["decision_swap_regret"] <= agents["bound_from_variation"]).all()
    assert agents.loc["leaver", "bound_from_variation"] == pytest.approx(0.2267, abs=1e-4)


def test_who_enters_late_is_bounded_by_what_was_gained_at_entry() -> None:
    """Scalar gains have no bound beforehand: an old gain far below zero may be regained."""
    adversary = {"kind": "switching", "outcomes": 2, "length": 20}
    guests = rated(entry_rate=0.05, exit_rate=0.02)
    world = worlds.scenario(
        guests, rounds=120, adversary=adversary, forecaster={"events": "losses"}
    )
    model = worlds.played(world)
    agents = model.agents_frame().dropna(subset=["entered"])
    late = agents[agents["entered"] > 0]
    assert len(late) > 3
    assert late["bound"].isna().all()
    assert set(late["guarantee"]) == {"decision-swap"}
    assert (late["decision_swap_regret"] <= late["bound_from_variation"] + 1e-9).all()
    assert late["bound_from_variation"].notna().all()
    assert "no bound beforehand" in " ".join(model.guarantees[0].unbounded)


def test_over_stays_is_the_theorem_row_by_row() -> None:
    weights = np.random.default_rng(0).random((4, 3, 2))
    rule = AdaptiveWeights()
    inputs = BoundInputs(experts=24, rounds=100, certificate_sum=0.3)
    stay = Attendance(np.array([0, 10, 40, 120]), np.array([200, 50, 41, 200]))
    found = over_stays([CoordinateBound(rule, inputs)], weights, stay, policies=0)
    for row, (first, last) in enumerate([(0, 100), (10, 50), (40, 41)]):
        (alone,) = CoordinateBound(rule, replace(inputs, rounds=last)).over_stay(
            weights[[row]], joined=first
        )
        assert found[row] == pytest.approx(alone)
    assert np.isnan(found[3])  # has not come yet
    scalar = over_stays([GainBound(rule, inputs)], weights, stay, policies=0)
    assert np.isnan(scalar).tolist() == [False, True, True, True]


def market(*cohorts: worlds.Raw, apart: bool = True, **keys: Any) -> MarketModel:
    drift = {"kind": "drifting", "outcomes": 2}
    given = worlds.scenario(*(cohorts or (OWN, TWO)), rounds=30, adversary=drift)
    return given.build(apart=apart, **keys)


def test_whoever_is_removed_plays_no_further_round_regrets_its_own_and_a_run_resumes() -> None:
    """Also where somebody came."""
    model, again = market(spare={"own": 1}), market(spare={"own": 1})
    model.run(10)
    leaver = model.agents[1]
    leaver.remove()
    model.add("own")
    model.run(5)
    again.restore(model.state())
    model.run()
    again.run()
    pd.testing.assert_frame_equal(model.agents_frame(), again.agents_frame())
    assert {a.unique_id for a in model.agents} == {a.unique_id for a in again.agents}
    assert (len(model.agents), leaver in model.agents, leaver.action) == (7, False, -1)
    log, cohort = model.regret_frame(), model.game.cohorts[0]
    assert log[log["agent"] == 2]["round"].tolist() == list(range(10))
    assert sorted(log["agent"].value_counts()) == [10, 20, 30, 30, 30, 30, 30, 30]
    outcomes = model.rounds_frame()[["y_0", "y_1"]].to_numpy()[:10]
    losses = cohort.loss[int(cohort.row_of[1])].losses(outcomes)
    known = worlds.regrets(losses, log.query("agent == 2")["action"].to_numpy())
    line, others = model.agents_frame().iloc[1], model.agents_frame().drop(index=1)
    assert line[EMPTY[:4]].to_numpy(float) == pytest.approx(known, abs=1e-12)
    assert (line["entered"], line["left"], line["guarantee"]) == (0, 10, "none")
    assert np.isnan(line["bound"])
    staying = others[others["entered"] == 0]
    assert len(staying) == 6
    assert (staying["guarantee"] == "decision-swap").all()
    assert (staying["decision_swap_regret"] <= staying["bound"]).all()


def test_agents_that_cannot_go_alone_say_why() -> None:
    shared = market(apart=False)
    with pytest.raises(UserError, match=r"one row; build\(apart=True\)"):
        shared.agents[0].remove()
    assert len(shared.agents) == 7
    with pytest.raises(UserError, match="the last of all"):
        market(ALONE).agents[0].remove()
    with pytest.raises(UserError, match=r"cohort.two learns together"):
        market(ALONE, TWO | {"response": "hedge"}).agents[1].remove()


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
    with pytest.raises(ValueError, match="players were replaced"):
        model.state()


def test_a_player_that_does_not_fit_changes_nothing() -> None:
    model, rng = market(), np.random.default_rng(0)
    new = register.market["prices"](model.game.cohorts, rng, feedback="lagged", impact=0.4)
    before = model.game.adversary, model.game.market, model.game.blocks, model.guarantees
    ahead, against = LookAhead(2, rng, weights=[[1.0, 0.0]] * 3), AntiForecast(3, rng)
    for key, other in (("adversary", ahead), ("news", RunningMean(2)), ("adversary", against)):
        with pytest.raises(UserError):
            model.replace(market=new, **{key: other})
        after = model.game.adversary, model.game.market, model.game.blocks, model.guarantees
        assert after == before


def along(folder: Path, text: str = "a,b\n1,2\n2,3\n3,4\n5,6\n") -> Scenario:
    """Return a scenario of readers 1 to 6 along these edges; 5 and 6 stand apart."""
    (folder / "edges.csv").write_text(text)
    table = {"graph": "edge-list", "file": str(folder / "edges.csv"), "subscribers": [1]}
    adversary = {"kind": "switching", "outcomes": 2, "length": 10}
    readers = worlds.cohort("readers", 6, 3, "ces", parameters={"rho": [0.3, 0.9]})
    return worlds.scenario(readers, seed=5, adversary=adversary, network=table)


def test_distances_are_those_of_networkx() -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        agents = int(rng.integers(1, 13))
        pairs = rng.integers(0, agents, (rng.integers(0, 20), 2))
        edges = [(int(a), int(b)) for a, b in pairs if a != b]
        sources = {*rng.integers(0, agents, rng.integers(0, 4)).tolist()}
        graph = edge_list(agents, np.array(edges, dtype=np.intp).reshape(-1, 2))
        found = networked(agents, np.array(sorted(sources), dtype=np.intp), graph)
        hops = nx.multi_source_dijkstra_path_length(graph, sources) if sources else {}
        assert found.distance.tolist() == [hops.get(agent, NEVER) for agent in range(agents)]
        assert {*map(tuple, found.edges.tolist())} == {(min(e), max(e)) for e in edges}
        inner, outermost = max(1.0, (found.farthest + 1) / 3), found.farthest + 1
        ring = np.where(found.distance < 0, outermost, found.distance)
        assert np.linalg.norm(rings(found), axis=1) == pytest.approx(inner + ring, abs=1e-9)


def test_news_is_exactly_as_old_as_the_way_is_long(tmp_path: Path) -> None:
    """A row at distance h plays the best response to the prediction drawn h rounds ago."""
    model = along(tmp_path).build()
    (who,), (block,) = model.game.cohorts, model.game.blocks
    mean, past = np.full(block.basis.size, 0.5), []
    for number in range(25):
        round_ = play_round(model.game)
        past.append(round_.forecasts[0].statistics)
        (decision,) = round_.decisions
        for agent, hops in enumerate([0, 1, 2, 3, NEVER, NEVER]):
            row = int(who.row_of[agent])
            assert who.distance[row] == hops
            heard = past[number - hops] if 0 <= hops <= number else mean
            table = expected_losses(*who.coefficients, heard)[[row]]
            assert decision.predicted[row] == pytest.approx(table[0], abs=1e-12)
            assert decision.actions[agent] == best_response(table)[0]
        mean = mean + (block.basis.transform(round_.outcome) - mean) / (number + 1)


@pytest.mark.parametrize(("stream", "seed"), [("switching", 0), ("anti-forecast", 1)])
def test_the_bound_from_biases_holds_for_stale_news_too(stream: str, seed: int) -> None:
    """Play responds to what is expected, whatever its age: p_a <= p_b + gap."""
    smooth = worlds.cohort("smooth", 6, 3, response="quantal", eta=9.0)
    plain, adversary = worlds.cohort("plain", 20, 3), {"kind": stream, "outcomes": 2}
    table = {"graph": "small-world", "neighbours": 2, "subscribers": 2}
    keys = {"seed": 5, "network": table, "adversary": adversary, "rounds": 150}
    agents = worlds.played(worlds.scenario(plain, smooth, **keys), seed=seed).agents_frame()
    assert agents["distance"].max() >= 3
    assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()
    assert (agents["bound"].notna() == (agents["distance"] == 0)).all()


def test_a_mistake_in_the_edges_is_named(tmp_path: Path) -> None:
    for text, says in (
        ("a,b\n1,9\n", "data row 1 (line 2): '9' is no agent; give numbers from 1 to 6"),
        ("a,b\n1,2\nx,2\n", "column 'a' holds 'x' in data row 2 (line 3)"),
        ("a,b\n3,3\n", "an edge from agent 3 to itself"),
        ("a,b,c\n1,2,3\n", "has 3 columns"),
        ("a,b\n9,1,2\n", "data row 1 (line 2) is of length 3, the header of 2"),
        ("", "is empty"),
    ):
        with pytest.raises(UserError, match=re.escape(says)):
            along(tmp_path, text).build()
