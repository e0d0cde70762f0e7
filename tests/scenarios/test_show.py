"""Figures of a market in a notebook, what markets say of themselves, and scenarios as classes."""

import inspect
import pickle
from functools import partial
from typing import Any

import mesa
import numpy as np
import pytest

from regretless import load, market_class
from regretless.market.core.errors import UserError
from regretless.market.model import MarketModel
from regretless.scenarios.assembly.scenario import Scenario

FEW: dict[str, Any] = {"cohort.growers.count": 5, "rounds": 30}
NEW = "rng" in inspect.signature(mesa.batch_run).parameters  # since Mesa 3.4
PLAYED = partial(mesa.DataCollector, model_reporters={"played": "played"})
batch_run = partial(mesa.batch_run, display_progress=False)
THRICE: dict[str, Any] = {"rng": [None] * 3} if NEW else {"iterations": 3}  # each setting


def play_crop_choice(rounds: int = 12) -> MarketModel:
    """Play some rounds of a small crop choice."""
    model = load("crop-choice", **FEW).build(seed=2)
    model.run(rounds)
    return model


def test_a_market_shows_its_figures() -> None:
    model = play_crop_choice()
    figures = model.show()
    figure_names = {"alternatives", "regret", "agents", "actions", "forecast", "exploitability"}
    assert figure_names <= set(figures)
    assert repr(figures).startswith("Figures(alternatives, loss, regret, ")
    page = figures._repr_html_()
    assert page.count("plotly-graph-div") == len(figures)
    assert page.startswith("<p>5 growers followed the forecast. ")
    figure = model.show("regret")
    assert figure.to_json() == figures["regret"].to_json()
    assert figure.data[0].y[-1] == model.agents_frame()["decision_swap_regret"].mean()
    taken = [trace.y for trace in model.show("actions").data]
    assert sum(taken).tolist() == pytest.approx([1.0] * 12)


def test_what_cannot_be_shown_is_a_line() -> None:
    other = Scenario(load("crop-choice", **FEW).spec).build()
    for model, names, complaint in (
        (play_crop_choice(0), [], "no round is played yet"),
        (play_crop_choice(1), ["regrets"], "did you mean 'regret'"),
        (play_crop_choice(1), ["network"], "nothing to draw"),
        (other, [], "only a market that load"),
    ):
        with pytest.raises(UserError, match=complaint):
            model.show(*names)


def test_a_scenario_is_a_class_for_mesa() -> None:
    """Its calls are what ``load`` and ``build`` make; Mesa's tools call it as they please."""
    market = market_class("crop-choice", {"growers": "cohort.growers.count"}, collector=PLAYED)
    model = market(growers=4, seed=2, rounds=6)
    again = type(model)(growers=4, rng=2, rounds=6)  # as SolaraViz begins again, and Mesa 3.5 says
    assert isinstance(model, MarketModel)
    assert isinstance(again, market)
    built_model = load("crop-choice", **{"cohort.growers.count": 4}, rounds=6, seed=2).build()
    for played_model in (model, again, built_model):
        played_model.run()
        assert played_model.agents_frame().equals(model.agents_frame())
    rows = batch_run(market, {"growers": [2, 3], "rounds": [3]})
    assert [row["played"] for row in rows] == [3, 3]
    with pytest.raises(UserError, match=r"^rng = 3: the seed by another name"):
        market(seed=2, rng=3)
    with pytest.raises(UserError, match="grower: no parameter of this class; did you mean"):
        market(grower=3)


def played_by_both() -> mesa.DataCollector:
    """Collect from the model and from its agents how many rounds were played."""
    return mesa.DataCollector({"played": "played"}, {"played_says_agent": _rounds_of_agent})


def _rounds_of_agent(agent: Any) -> int:
    return int(agent.model.played)


def test_rows_of_a_batch_join_model_and_agents_of_the_same_round() -> None:
    """All rounds have rows of their agents, the last one included."""
    market = market_class("crop-choice", collector=played_by_both, **FEW | {"rounds": 4})
    rows = batch_run(market, {"seed": [1]}, data_collection_period=1)
    assert {row["played"] for row in rows} == {1, 2, 3, 4}
    assert all(row["played"] == row["played_says_agent"] for row in rows)
    assert all(row["Step"] == row["played"] - 1 for row in rows)


def collect_mean_loss() -> mesa.DataCollector:
    """Return Mesa's collector of the mean loss over all agents."""
    loss = {"loss": lambda model: float(model.agents_frame()["mean_loss"].mean())}
    return mesa.DataCollector(model_reporters=loss)


def test_iterations_of_one_seed_are_different_runs_that_can_be_made_again() -> None:
    market = market_class("crop-choice", collector=collect_mean_loss, **FEW | {"rounds": 5})
    parameters = {"seed": np.arange(1, 3)}
    rows = batch_run(market, parameters, **THRICE)
    seeds = [row["seed"] for row in rows]
    assert seeds[:2] == [1, 2]
    assert len(set(seeds)) == len({row["loss"] for row in rows}) == 6
    again = batch_run(market, {"seed": seeds})
    assert [row["loss"] for row in again] == [row["loss"] for row in rows]
    assert rows == batch_run(market, parameters, **THRICE)
    if NEW:
        assert [row["seed"] for row in batch_run(market, {}, rng=[4, 5])] == [4, 5]


def test_several_processes_make_the_runs_of_one() -> None:
    market = market_class("crop-choice", collector=PLAYED, **FEW | {"rounds": 3})
    rows = [batch_run(market, {"seed": [1]}, **THRICE, number_processes=many) for many in (1, 2)]
    assert rows[0] == sorted(rows[1], key=lambda row: row["RunId"])
    with pytest.raises(UserError, match=r"define collector at the top of a module"):
        pickle.dumps(market_class("crop-choice", collector=lambda: collect_mean_loss()))  # noqa: PLW0108
