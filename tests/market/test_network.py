"""Who hears the forecast, and when: distances, stale news, what is promised, logs, bad input."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from regretless.agents import ScriptedAgent
from regretless.agents.cohorts.responding import RespondingCohort
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.game.network import NEVER, Network, by_distance, edge_list, networked, rings
from regretless.market.game.round import play_round
from regretless.market.model import MarketModel
from regretless.market.records import Context, Forecast
from regretless.market.response import best_response, expected_losses
from regretless.scenarios import load
from regretless.scenarios.build.network import drawn_network
from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.cli.commands import app
from regretless.scenarios.logs.directory import read_run
from regretless.scenarios.report import market_figures
from regretless.scenarios.report.run_data import Run
from regretless.scenarios.report.write import write_report
from regretless.scenarios.run import Options, run
from regretless.scenarios.spec.files import catalogue
from regretless.scenarios.spec.scenario import validated

PATH = [[1, 2], [2, 3], [3, 4], [5, 6]]  # agents 1 to 6; 5 and 6 stand apart
ROUNDS = 40


def cohort(name: str = "readers", **keys: Any) -> dict[str, Any]:
    told = {"name": name, "utility": "ces", "parameters": {"rho": [0.3, 0.9]}, "actions": 3}
    return told | {"count": 6, "response": "best-response"} | keys


def scenario(
    *cohorts: dict[str, Any], network: dict[str, Any] | None = None, **keys: Any
) -> Scenario:
    raw: dict[str, Any] = {"name": "net", "rounds": ROUNDS, "seed": 5, "cohort": list(cohorts)}
    raw |= {"adversary": {"kind": "switching", "outcomes": 2, "length": 10}} | keys
    if network is not None:
        raw["network"] = network
    return Scenario(validated(raw, origin=keys.pop("origin", Path())))


def along(tmp_path: Path, subscribers: Any = (1,)) -> dict[str, Any]:
    """Return the table of a network with the edges of ``PATH``."""
    file = tmp_path / "edges.csv"
    pd.DataFrame(PATH, columns=["a", "b"]).to_csv(file, index=False)
    return {"graph": "edge-list", "file": str(file), "subscribers": list(subscribers)}


def played(model: MarketModel) -> MarketModel:
    model.run()
    return model


def searched(agents: int, edges: list[tuple[int, int]], sources: set[int]) -> list[int]:
    """Breadth-first search, spelled out."""
    distance = [NEVER] * agents
    queue = deque(sorted(sources))
    for source in sources:
        distance[source] = 0
    while queue:
        here = queue.popleft()
        for a, b in (*edges, *((b, a) for a, b in edges)):
            if a == here and distance[b] == NEVER:
                distance[b] = distance[here] + 1
                queue.append(b)
    return distance


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_distances_are_those_of_a_breadth_first_search(data: st.DataObject) -> None:
    agents = data.draw(st.integers(1, 12))
    node = st.integers(0, agents - 1)
    edges = [e for e in data.draw(st.lists(st.tuples(node, node), max_size=20)) if e[0] != e[1]]
    sources = data.draw(st.sets(node, max_size=3))
    graph = edge_list(agents, np.array(edges, dtype=np.intp).reshape(-1, 2))
    found = networked(agents, np.array(sorted(sources), dtype=np.intp), graph)
    assert found.distance.tolist() == searched(agents, edges, sources)
    assert found.edges is not None
    wanted = {(min(e), max(e)) for e in edges}
    assert set(map(tuple, found.edges.tolist())) == wanted
    radius = np.linalg.norm(rings(found), axis=1)
    inner, outermost = max(1.0, (found.farthest + 1) / 3), found.farthest + 1
    ring = np.where(found.distance < 0, outermost, found.distance)
    assert radius == pytest.approx(inner + ring, abs=1e-9)


@pytest.mark.parametrize(
    "keys", [{"graph": "small-world"}, {"graph": "scale-free"}, {"graph": "none"}]
)
def test_a_network_is_drawn_from_its_own_stream(keys: dict[str, Any]) -> None:
    listeners, learners = cohort(count=20), cohort("learners", response="hedge", count=10)
    spec = scenario(listeners, learners, network=keys | {"subscribers": 5}).spec
    first, again, other = (drawn_network(spec, seed) for seed in (1, 1, 2))
    assert first is not None
    assert again is not None
    assert other is not None
    assert first.distance.tolist() == again.distance.tolist() != other.distance.tolist()
    assert (first.distance[:20] == 0).sum() == 5
    assert (first.distance[20:] != 0).all()  # learners do not subscribe
    if keys["graph"] == "none":
        assert first.edges is None
        assert set(first.distance.tolist()) == {0, NEVER}
    else:
        assert first.edges is not None
        edges = [(int(a), int(b)) for a, b in first.edges]
        sources = set(np.flatnonzero(first.distance == 0).tolist())
        assert first.distance.tolist() == searched(30, edges, sources)


def test_news_is_exactly_as_old_as_the_way_is_long(tmp_path: Path) -> None:
    """A row at distance h plays the best response to the prediction drawn h rounds ago."""
    model = scenario(cohort(), network=along(tmp_path)).build()
    (who,) = model.game.cohorts
    assert isinstance(who, RespondingCohort)
    assert who.distance is not None
    mean, past = np.full(model.game.blocks[0].basis.size, 0.5), []
    for number in range(25):
        round_ = play_round(model.game)
        past.append(round_.forecasts[0].point)
        (decision,) = round_.decisions
        assert decision is not None
        for agent, hops in enumerate([0, 1, 2, 3, NEVER, NEVER]):
            row = int(who.row_of[agent])
            assert who.distance[row] == hops
            heard = past[number - hops] if 0 <= hops <= number else mean
            table = expected_losses(*who.coefficients, heard)[[row]]
            assert decision.predicted is not None
            assert decision.predicted[row] == pytest.approx(table[0], abs=1e-12)
            assert decision.actions[agent] == best_response(table)[0]
        vector = model.game.blocks[0].basis.transform(round_.outcome)
        mean = mean + (vector - mean) / (number + 1)


@pytest.mark.parametrize("response", [{}, {"response": "quantal", "eta": 9.0}])
def test_who_hears_at_once_notices_nothing(tmp_path: Path, response: dict[str, Any]) -> None:
    """Agents at distance 0 have the same log and bound; the forecast is the same as well."""
    linear = cohort(utility="linear", parameters={}, **response)
    near = played(scenario(linear, network=along(tmp_path, [1, 5])).build())
    alone = played(scenario(linear).build())
    for name in ("rounds_frame", "forecasts_frame", "biases_frame"):
        pd.testing.assert_frame_equal(getattr(near, name)(), getattr(alone, name)())
    mine = near.agents_frame().query("distance == 0").drop(columns="distance")
    theirs = alone.agents_frame().query("agent in [1, 5]")
    pd.testing.assert_frame_equal(mine, theirs, check_exact=False, rtol=1e-12)
    assert mine["bound"].notna().all()
    others = near.agents_frame().query("distance > 0 or distance.isna()")
    assert set(others["guarantee"]) == {"none"}
    assert others["bound"].isna().all()
    logs = [model.regret_frame().query("agent in [1, 5]") for model in (near, alone)]
    pd.testing.assert_frame_equal(*[log.reset_index(drop=True) for log in logs])


def test_hearing_nothing_is_following_the_running_mean() -> None:
    deaf = scenario(
        cohort(), cohort("near", count=1), network={"graph": "none", "subscribers": [7]}
    )
    mean = scenario(cohort(), cohort("near", count=1), forecaster={"kind": "running-mean"})
    logs = [played(one.build()).regret_frame().query("agent <= 6") for one in (deaf, mean)]
    pd.testing.assert_frame_equal(*[log.reset_index(drop=True) for log in logs])


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("stream", ["switching", "anti-forecast"])
def test_the_bound_from_biases_holds_for_stale_news_too(stream: str, seed: int) -> None:
    """Play responds to what is expected, whatever its age: p_a <= p_b + gap."""
    smooth = cohort("smooth", utility="linear", parameters={}, response="quantal", eta=9.0)
    plain = cohort("plain", utility="linear", parameters={}, count=20)
    table = {"graph": "small-world", "neighbours": 2, "subscribers": 2}
    adversary = {"kind": stream, "outcomes": 2}
    model = scenario(plain, smooth, network=table, adversary=adversary, rounds=150)
    agents = played(model.build(seed=seed)).agents_frame()
    assert agents["distance"].max() >= 3
    assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()
    assert (agents["bound"].notna() == (agents["distance"] == 0)).all()


def test_covers_and_ensembles_travel_as_well(tmp_path: Path) -> None:
    cover = {"kind": "cluster", "count": 2}
    model = scenario(cohort(cover=cover), network=along(tmp_path)).build()
    served = played(model).agents_frame()
    assert served["guarantee"].tolist() == ["decision-swap", *["none"] * 5]
    assert (served["mean_loss"] > 0).all()
    naive = cohort(response="ensemble")
    heard = {"kind": "decision-swap", "hull": "image"}
    model = scenario(naive, network=along(tmp_path), forecaster=heard).build()
    assert played(model).agents_frame()["guarantee"].iloc[0] == "decision-swap"
    assert model.game.blocks[0].relay is not None
    assert model.game.blocks[0].relay.past[0].ensemble is not None


def test_a_scripted_agent_gets_the_forecast_that_reached_it(tmp_path: Path) -> None:
    heard: dict[int, list[Forecast]] = {}

    class Listener(ScriptedAgent):
        def act(self, forecast: Forecast, context: Context) -> int:
            heard.setdefault(id(self), []).append(forecast)
            return 0

    register.agent("network-listener")(Listener)
    model = scenario(cohort(response="network-listener"), network=along(tmp_path)).build()
    rounds = [play_round(model.game) for _ in range(12)]
    points = [one.forecasts[0].point for one in rounds]
    told = [heard[id(agent)] for agent in model.game.cohorts[0].agents]
    for hops, mine in enumerate(told[:4]):
        for number in range(hops, 12):
            assert np.array_equal(mine[number].point, points[number - hops])
    basis = model.game.blocks[0].basis
    vectors = [basis.transform(one.outcome) for one in rounds]
    assert told[4][0].point == pytest.approx(np.full(basis.size, 0.5))
    assert told[4][11].point == pytest.approx(np.mean(vectors[:11], axis=0))
    assert told[4][11].label is not None


def test_adversaries_foresee_what_is_played(tmp_path: Path) -> None:
    """Law and rollout agree with what far agents do: the present round of a rollout is it."""
    seen: list[tuple[Any, Any]] = []
    model = scenario(cohort(), network=along(tmp_path), adversary=MYOPIC, rounds=12).build()
    leader = model.game.adversary
    commit = leader.commit

    def watched(context: Any, history: Any, announced: Any) -> Any:
        ahead = announced.rollout(np.array([0.3, 0.9]), 3, seed=1)
        seen.append((announced.play[0], [laws[0] for laws in ahead]))
        return commit(context, history, announced)

    leader.commit = watched  # type: ignore[method-assign]
    rows = model.game.cohorts[0].row_of
    relay = model.game.blocks[0].relay
    assert relay is not None
    for number in range(12):
        before = relay.past
        round_ = play_round(model.game)
        law, ahead = seen[number]
        assert np.allclose(law, ahead[0])
        decision = round_.decisions[0]
        assert decision is not None
        far = rows[1:4]
        assert np.allclose(law[far], decision.probabilities[far])
        assert relay.past[1:] == before[: len(relay.past) - 1]  # copies went on by themselves
        for hops in (2, 3):  # what is on its way is played hops - 1 rounds on, whatever happens
            if number >= hops:
                rehearsed = seen[number - hops + 1][1][hops - 1]
                assert np.allclose(rehearsed[rows[hops]], decision.probabilities[rows[hops]])


MYOPIC = {"kind": "myopic", "outcomes": 2}


def test_the_tables_say_who_hears(tmp_path: Path) -> None:
    given = scenario(
        cohort(),
        cohort("deaf", count=2, response="hedge"),
        network={"graph": "scale-free", "subscribers": 0.3},
    )
    model = run(given, Options(tmp_path / "run"))
    manifest, tables = read_run(tmp_path / "run")
    agents, edges = tables["agents"], tables["edges"]
    assert manifest["config"]["network"]["attachments"] == 2
    assert str(agents["distance"].dtype) == "Int64"
    assert (agents.query("cohort == 'deaf'")["distance"].isna()).all()
    assert (agents["distance"] == 0).sum() == 2
    pd.testing.assert_frame_equal(edges, model.edges_frame())
    assert edges.to_numpy().min() == 1
    assert edges.to_numpy().max() == 8
    write_report(tmp_path / "run")
    assert "Who hears the forecast" in (tmp_path / "run" / "report.html").read_text()
    assert market_figures.network(Run({}, tables)) == market_figures.network(Run({}, tables))
    text = run(scenario(cohort()), Options(tmp_path / "none"))
    assert "distance" not in text.agents_frame()
    assert not (tmp_path / "none" / "edges.parquet").exists()


def test_regret_by_distance_is_the_groups_mean() -> None:
    frame = pd.DataFrame(
        {
            "agent": range(1, 7),
            "cohort": ["b", "b", "b", "a", "a", "a"],
            "kind": ["trader"] * 5 + ["learner"],
            "mean_loss": [0.5, 0.5, 0.5, 0.5, np.nan, 0.5],
            "swap_regret": [0.1, 0.3, 0.2, 0.4, 9.0, 9.0],
            "decision_swap_regret": [np.nan, np.nan, 0.6, 0.5, 9.0, 9.0],
            "exploitability": [0.0, 0.2, np.nan, 0.1, 9.0, 9.0],
            "distance": pd.array([0, 0, None, 2, 2, None], "Int64"),
        }
    )
    found = by_distance(frame)
    assert found["cohort"].tolist() == ["b", "b", "a"]
    assert found["distance"].isna().tolist() == [False, True, False]
    assert found["agents"].tolist() == [2, 1, 1]
    assert found["regret_mean"].tolist() == pytest.approx([0.2, 0.6, 0.5])
    assert found["regret_worst"].tolist() == pytest.approx([0.3, 0.6, 0.5])
    assert found["exploitability_mean"].iloc[0] == pytest.approx(0.1)


def test_a_large_graph_is_drawn_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(market_figures, "MOST", 5)
    model = scenario(cohort(count=12), network={"graph": "small-world", "subscribers": 2}).build()
    played(model)
    tables = {"agents": model.agents_frame(), "edges": model.edges_frame()}
    figure = market_figures.network(Run({}, tables))
    assert figure is not None
    assert "5 of them drawn" in figure.layout.annotations[0].text
    edges, dots = figure.data
    assert len(dots.x) == len(edges.x) / 3 == 5  # both ends of an edge, and a gap


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({"graph": "ring"}, "network.graph = 'ring'"),
        ({"graph": "small-world", "neighbours": 3}, "network.neighbours = 3"),
        ({"graph": "small-world", "attachments": 3}, "no key attachments"),
        ({"graph": "edge-list"}, "needs the key file"),
        ({"graph": "edge-list", "file": "nowhere.csv"}, "network.file 'nowhere.csv' does not"),
        ({"graph": "none", "subscriber": 3}, "unknown key 'network.subscriber'"),
        ({"graph": "none", "subscribers": 0}, "network.subscribers: 0: give a share"),
        ({"graph": "none", "subscribers": 1.5}, "network.subscribers: 1.5"),
        ({"graph": "none", "subscribers": True}, "network.subscribers: true"),
        ({"graph": "none", "subscribers": [1, 1]}, "network.subscribers: [1, 1]"),
        ({"graph": "none", "subscribers": [7]}, "agent 7: there are 6 agents"),
        ({"graph": "none", "subscribers": 7}, "network.subscribers = 7: 6 agents listen"),
        ({"graph": "small-world", "neighbours": 6}, "network.neighbours = 6: there are 6 agents"),
        ({"graph": "scale-free", "attachments": 6}, "network.attachments = 6"),
    ],
)
def test_a_mistake_is_named(table: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError) as error:
        scenario(cohort(), network=table).build()
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b\n1,9\n", "data row 1 (line 2): '9' is no agent; give numbers from 1 to 6"),
        ("a,b\n1,2\nx,2\n", "column 'a' holds 'x' in data row 2 (line 3)"),
        ("a,b\n3,3\n", "an edge from agent 3 to itself"),
        ("a,b,c\n1,2,3\n", "has 3 columns"),
        ("a,b\n9,1,2\n", "data row 1 (line 2) is of length 3, the header of 2"),
        ("", "is empty"),
    ],
)
def test_a_mistake_in_the_edges_is_named(tmp_path: Path, text: str, says: str) -> None:
    table = along(tmp_path)
    Path(table["file"]).write_text(text)
    with pytest.raises(UserError) as error:
        scenario(cohort(), network=table).build()
    assert says in str(error.value)


def test_a_learner_cannot_subscribe() -> None:
    deaf = cohort("deaf", response="hedge")
    with pytest.raises(UserError, match="agent 7: it is a learner"):
        scenario(cohort(), deaf, network={"graph": "none", "subscribers": [7]}).build()
    with pytest.raises(UserError, match="nobody listens"):
        scenario(deaf, network={"graph": "none"}).build()


def test_a_dry_run_prints_what_reads_the_same(tmp_path: Path) -> None:
    assert "late-news" in catalogue()
    runner = CliRunner()
    printed = runner.invoke(app, ["run", "late-news", "--dry-run"])
    assert printed.exit_code == 0
    (tmp_path / "again.toml").write_text(printed.stdout, encoding="utf-8")
    assert load(str(tmp_path / "again.toml")).spec == load("late-news").spec


@pytest.mark.parametrize("seed", [7, 1])
def test_late_news_costs_the_more_the_later_it_comes(seed: int) -> None:
    """The claim of the catalogue."""
    model = load("late-news", seed=seed).build(log_every=5000)
    table = by_distance(played(model).agents_frame()).set_index("distance")["regret_mean"]
    assert table[0] < 0.001
    assert table[1] >= 10 * table[0]
    assert table[7] >= 1.5 * table[1]
    assert isinstance(model.game.network, Network)
