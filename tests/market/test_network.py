"""Who hears the forecast, and when: distances, stale news, what is promised, logs, bad input."""

import re
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import worlds

from regretless.market.core.errors import UserError
from regretless.market.game.network import NEVER, edge_list, networked
from regretless.market.game.round import play_round
from regretless.market.response import best_response, expected_losses
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.report.market_figures import rings


def cohort(name: str = "readers", count: int = 6, utility: str = "ces", **keys: Any) -> worlds.Raw:
    parameters = {"rho": [0.3, 0.9]} if utility == "ces" else {}
    return worlds.cohort(name, count, 3, utility, parameters=parameters, **keys)


def along(folder: Path, text: str = "a,b\n1,2\n2,3\n3,4\n5,6\n") -> Scenario:
    """Return a scenario of readers 1 to 6 along these edges; 5 and 6 stand apart."""
    (folder / "edges.csv").write_text(text)
    table = {"graph": "edge-list", "file": str(folder / "edges.csv"), "subscribers": [1]}
    adversary = {"kind": "switching", "outcomes": 2, "length": 10}
    return worlds.scenario(cohort(), seed=5, adversary=adversary, network=table)


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
    smooth = cohort("smooth", 6, "linear", response="quantal", eta=9.0)
    plain, adversary = cohort("plain", 20, "linear"), {"kind": stream, "outcomes": 2}
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
