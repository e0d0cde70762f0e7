"""Agents of a user's own: settings drawn per agent, columns that are seen, crowds, neighbours."""

from pathlib import Path
from typing import Any

import mesa
import numpy as np
import pandas as pd
import pytest
import worlds
from resuming import check_resumes

from regretless import MarketModel, UserError, register
from regretless.agents import ScriptedAgent, ScriptedCrowd


@register.agent("saver")
class Saver(ScriptedAgent):
    """Remembers what it has."""

    columns = ("wealth", "thrift")

    def __init__(self, loss: Any, rng: Any, *, thrift: float = 0.5) -> None:
        super().__init__(loss, rng)
        self.wealth, self.thrift = 1.0, thrift

    def act(self, forecast: Any, context: Any) -> Any:
        return self.loss.losses(forecast.label).argmin()

    def learn(self, losses: Any, outcome: Any) -> None:
        self.wealth *= 1 + self.thrift * (0.5 - losses.min())


@register.agent("savers")
class Savers(ScriptedCrowd):
    """The same, all at once."""

    columns = ("wealth", "thrift")

    def __init__(self, loss: Any, rng: Any, *, thrift: Any = 0.5) -> None:
        super().__init__(loss, rng)
        self.wealth, self.thrift = np.ones(len(loss)), thrift

    def act_many(self, forecasts: Any, contexts: Any) -> Any:
        return forecasts.losses(self.loss).argmin(1)

    def learn_many(self, losses: Any, outcome: Any) -> None:
        self.wealth = self.wealth * (1 + self.thrift * (0.5 - losses.min(1)))


def market(response: str = "saver", *, settings: Any = None, **keys: Any) -> MarketModel:
    told = {"thrift": [0.1, 0.9]} if settings is None else settings
    own = worlds.cohort("own", 6, 3, response=response, settings=told)
    keys |= {"rounds": 30, "adversary": {"kind": "cyclic", "outcomes": 2}}
    return worlds.scenario(own, worlds.cohort("others", 2, 3), **keys).build()


def test_a_crowd_plays_as_its_agents_would_one_by_one_and_columns_are_seen() -> None:
    """By agent sets, collectors and tables."""
    model, many = market(), market("savers")
    reporters = {"wealth": lambda agent: getattr(agent, "wealth", None)}
    model.datacollector = mesa.DataCollector(agent_reporters=reporters)
    model.run()
    many.run()
    columns = ["mean_loss", "swap_regret", "decision_swap_regret"]
    pd.testing.assert_frame_equal(model.agents_frame()[columns], many.agents_frame()[columns])
    states = model.states_frame()
    pd.testing.assert_frame_equal(states, many.states_frame())
    assert list(states.columns) == ["round", "agent", "wealth", "thrift"]
    assert len(states) == 30 * 6
    wealth = model.agents.select(lambda agent: agent.cohort == "own").get("wealth")
    assert states[states["round"] == 29]["wealth"].tolist() == wealth
    collected = model.datacollector.get_agent_vars_dataframe().loc[30]
    assert collected["wealth"].dropna().tolist() == wealth
    with pytest.raises(AttributeError):
        model.agents.select(lambda agent: agent.cohort == "others").get("wealth")


@pytest.mark.parametrize("response", ["saver", "savers"])
def test_columns_are_kept_in_checkpoints(response: str, tmp_path: Path) -> None:
    check_resumes(lambda: market(response), 11, tmp_path)


def test_settings_and_columns_that_do_not_fit_are_one_line_before_the_first_round() -> None:
    line = "agent 'saver': got an unexpected keyword argument 'greed'; it takes"
    with pytest.raises(UserError, match=line):
        market(settings={"greed": 1.0})
    for bad in ("text", [1.0, 2.0]):
        odd = {"columns": ("wealth",), "wealth": bad}
        register.agent(f"odd {bad}")(type("Odd", (ScriptedAgent,), odd))
        with pytest.raises(UserError, match="column 'wealth' of class Odd"):
            market(f"odd {bad}", settings={})


def test_distributions_of_a_crowd_are_charged_and_drawn() -> None:
    coins = {"act_many": lambda *_: [[0.5, 0.5, 0.0]] * 6}
    register.agent("coins")(type("Coins", (ScriptedCrowd,), coins))
    model = market("coins", settings={})
    model.run()
    log = model.regret_frame().query("agent <= 6")
    assert set(log["action"]) == {0, 1}
    assert 60 < (log["action"] == 0).sum() < 120  # of 180 fair draws
    same = log.groupby(["agent", "round"])["loss"].first().groupby("agent").mean()
    assert np.allclose(same, model.agents_frame()["mean_loss"][:6])


def test_measures_say_of_whom_they_speak() -> None:
    register.measure("rounds")(lambda model: model.played)
    register.measure("spread")(lambda model: {"own": np.std(model.column(0, "wealth"))})
    register.measure("number")(lambda model: [agent.unique_id for agent in model.agents])
    model = market(measures=["rounds", "spread", "number"])
    model.run(3)
    table = model.measures_frame()
    assert list(table.columns) == ["round", "measure", "cohort", "agent", "value"]
    rounds, spread, number = (table[table["measure"] == m] for m in ("rounds", "spread", "number"))
    assert rounds["value"].tolist() == [1, 2, 3]
    assert (spread["cohort"] == "own").all()
    assert spread["value"].iloc[-1] == np.std(model.column(0, "wealth"))
    assert number["value"].tolist() == number["agent"].tolist() == 3 * list(range(1, 9))
