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


def played(rounds: int = 12) -> MarketModel:
    model = load("crop-choice", **FEW).build(seed=2)
    model.run(rounds)
    return model


def test_a_market_shows_its_figures() -> None:
    model = played()
    figures = model.show()
    wanted = {"alternatives", "regret", "agents", "actions", "forecast", "exploitability"}
    assert wanted <= set(figures)
    assert repr(figures).startswith("Figures(alternatives, loss, regret, ")
    page = figures._repr_html_()
    assert page.count("plotly-graph-div") == len(figures)
    assert page.startswith("<p>5 growers followed the forecast. ")
    one = model.show("regret")
    assert one.to_json() == figures["regret"].to_json()
    assert one.data[0].y[-1] == model.agents_frame()["decision_swap_regret"].mean()
    taken = [trace.y for trace in model.show("actions").data]
    assert sum(taken).tolist() == pytest.approx([1.0] * 12)


def test_what_cannot_be_shown_is_a_line() -> None:
    other = Scenario(load("crop-choice", **FEW).spec).build()
    for model, names, told in (
        (played(0), [], "no round is played yet"),
        (played(1), ["regrets"], "did you mean 'regret'"),
        (played(1), ["network"], "nothing to draw"),
        (other, [], "only a market that load"),
    ):
        with pytest.raises(UserError, match=told):
            model.show(*names)


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


def times(iterations: int) -> dict[str, Any]:
    """Return how ``batch_run`` is asked for so many runs of each setting."""
    return {"rng": [None] * iterations} if NEW else {"iterations": iterations}


def counting() -> mesa.DataCollector:
    """Collect how many rounds were played, and what they cost."""
    loss = {"loss": lambda model: float(model.agents_frame()["mean_loss"].mean())}
    return mesa.DataCollector(model_reporters={"played": "played", **loss})


def test_iterations_of_one_seed_are_different_runs_that_can_be_made_again() -> None:
    market = market_class("crop-choice", collector=counting, **FEW | {"rounds": 5})
    asked = {"seed": np.arange(1, 3)}
    rows = mesa.batch_run(market, asked, display_progress=False, **times(2))
    seeds = [row["seed"] for row in rows]
    assert seeds[:2] == [1, 2]
    assert len(set(seeds)) == len({row["loss"] for row in rows}) == 4
    again = mesa.batch_run(market, {"seed": seeds}, display_progress=False)
    assert [row["loss"] for row in again] == [row["loss"] for row in rows]
    assert rows == mesa.batch_run(market, asked, display_progress=False, **times(2))
    if NEW:
        rows = mesa.batch_run(market, {}, rng=[4, 5], display_progress=False)
        assert [row["seed"] for row in rows] == [4, 5]


def test_several_processes_make_the_runs_of_one() -> None:
    played = partial(mesa.DataCollector, model_reporters={"played": "played"})
    market = market_class("crop-choice", collector=played, **FEW | {"rounds": 3})
    asked = {"seed": [1]}
    once = partial(mesa.batch_run, market, asked, display_progress=False, **times(2))
    rows = [once(number_processes=processes) for processes in (1, 2)]
    assert rows[0] == sorted(rows[1], key=lambda row: row["RunId"])
    with pytest.raises(UserError, match=r"define collector at the top of a module"):
        pickle.dumps(market_class("crop-choice", collector=lambda: counting()))  # noqa: PLW0108
