"""Figures of a market in a notebook, what markets say of themselves, and scenarios as classes."""

from __future__ import annotations

import mesa
import pytest

from regretless import load, market_class
from regretless.market.core.errors import UserError
from regretless.market.model import MarketModel
from regretless.scenarios.build.scenario import Scenario

FEW = {"cohort.growers.count": 5, "rounds": 30}


def played(rounds: int = 12) -> MarketModel:
    """Play some rounds of a few growers."""
    model = load("crop-choice", **FEW).build(seed=2)
    model.run(rounds)
    return model


def test_a_market_shows_its_figures() -> None:
    model = played()
    figures = model.show()
    wanted = {"verdict", "regret", "agents", "actions", "forecast", "exploitability"}
    assert wanted <= set(figures)
    assert repr(figures).startswith("Figures(loss, regret, ")
    page = figures._repr_html_()
    assert page.count("plotly-graph-div") == len(figures)
    assert page.startswith("<p>growers lost ")
    one = model.show("regret")
    assert one.to_json() == figures["regret"].to_json()
    assert one.data[0].y[-1] == model.agents_frame()["decision_swap_regret"].mean()


def test_the_actions_that_are_shown_are_all_that_were_taken() -> None:
    figure = played().show("actions")
    assert sum(trace.y for trace in figure.data).tolist() == pytest.approx([1.0] * 12)


def test_what_cannot_be_shown_is_a_line() -> None:
    model = played(0)
    with pytest.raises(UserError, match="no round is played yet"):
        model.show()
    model.step()
    with pytest.raises(UserError, match="did you mean 'regret'"):
        model.show("regrets")
    with pytest.raises(UserError, match="nothing to draw"):
        model.show("network")
    other = Scenario(load("crop-choice", **FEW).spec).build()
    with pytest.raises(UserError, match="only a market that load"):
        other.show()


def test_a_market_says_what_it_is() -> None:
    model = played()
    worst = model.agents_frame()["decision_swap_regret"].max()
    told = f"crop-choice: 5 agents, round 12 of 30, worst regret so far {worst:.4f}"
    assert repr(model) == f"<MarketModel {told}>"
    assert repr(played(0)) == "<MarketModel crop-choice: 5 agents, round 0 of 30>"
    (block,) = model.game.blocks
    said = f"{block.basis.size} numbers, adaptive weights, round 12"
    assert repr(block.forecaster) == f"<AnchoredPrediction: {said}>"


def test_a_scenario_is_a_class_for_mesa() -> None:
    """Its calls are what ``load`` and ``build`` make; Mesa's tools call it as they please."""

    def collector() -> mesa.DataCollector:
        return mesa.DataCollector(model_reporters={"played": "played"})

    market = market_class("crop-choice", {"growers": "cohort.growers.count"}, collector=collector)
    model = market(growers=4, seed=2, rounds=6)
    again = type(model)(growers=4, rng=2, rounds=6)  # as SolaraViz begins again, and Mesa 3.5 says
    assert isinstance(model, MarketModel)
    assert isinstance(again, market)
    with pytest.raises(UserError, match=r"^rng = 3: the seed by another name"):
        market(seed=2, rng=3)
    alone = load("crop-choice", **{"cohort.growers.count": 4}, rounds=6, seed=2).build()
    for each in (model, again, alone):
        each.run()
    assert model.agents_frame().equals(alone.agents_frame())
    assert again.agents_frame().equals(alone.agents_frame())
    rows = mesa.batch_run(market, {"growers": [2, 3], "rounds": [3]}, display_progress=False)
    assert [row["played"] for row in rows] == [3, 3]
    with pytest.raises(UserError, match="grower: no parameter of this class; did you mean"):
        market(grower=3)


def test_iterations_without_a_seed_are_different_runs_whose_rows_name_their_seeds() -> None:
    def mean_loss(model: MarketModel) -> float:
        return float(model.agents_frame()["mean_loss"].mean())

    def collector() -> mesa.DataCollector:
        return mesa.DataCollector(model_reporters={"mean_loss": mean_loss})

    market = market_class("crop-choice", collector=collector, **FEW)
    rows = mesa.batch_run(market, {"rounds": 5}, iterations=3, display_progress=False)
    assert len({row["seed"] for row in rows}) == 3
    assert len({row["mean_loss"] for row in rows}) == 3
    seeds = [row["seed"] for row in rows]
    asked = {"rounds": 5, "seed": seeds}
    again = mesa.batch_run(market, asked, display_progress=False)
    assert [row["mean_loss"] for row in again] == [row["mean_loss"] for row in rows]
    asked = {"rounds": 5, "seed": range(2)}
    twice = [mesa.batch_run(market, asked, display_progress=False) for _ in "ab"]
    assert twice[0] == twice[1]
    with pytest.raises(UserError, match=r"^seed: all models would be one run"):
        market_class("crop-choice", seed=1)
