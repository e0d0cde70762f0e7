"""Agents of a user's own: settings drawn per agent, columns that are seen, crowds, neighbours."""

from pathlib import Path

import mesa
import numpy as np
import pandas as pd
import pytest
from numpy.typing import ArrayLike
from resuming import check_resumes
from small_scenarios import TomlTable, cohort_table, make_scenario

from regretless import MarketModel, UserError, register
from regretless.agents import ScriptedAgent, ScriptedCrowd
from regretless.agents.cohorts import scripted_agents
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.randomness import stream
from regretless.market.losses import Loss
from regretless.market.records import Context, Forecast

ROUNDS = 30
SAVERS = 6
DRAWN_THRIFT = {"thrift": [0.1, 0.9]}  # each agent draws its own from this range


@register.agent("saver")
class Saver(ScriptedAgent):
    """Remembers what it has."""

    columns = ("wealth", "thrift")

    def __init__(self, loss: Loss, rng: np.random.Generator, *, thrift: float = 0.5) -> None:
        super().__init__(loss, rng)
        self.wealth = 1.0
        self.thrift = thrift

    def act(self, forecast: Forecast, context: Context) -> int:
        return int(self.loss.losses(forecast.label).argmin())

    def learn(self, losses: Array, outcome: Array) -> None:
        self.wealth *= 1 + self.thrift * (0.5 - losses.min())


@register.agent("savers")
class Savers(ScriptedCrowd):
    """The same, all at once."""

    columns = ("wealth", "thrift")

    def __init__(self, loss: Loss, rng: np.random.Generator, *, thrift: ArrayLike = 0.5) -> None:
        super().__init__(loss, rng)
        self.wealth = np.ones(len(loss))
        self.thrift = thrift

    def act_many(self, forecasts: Forecast, contexts: Context) -> Indices:
        return np.asarray(forecasts.losses(self.loss).argmin(1))

    def learn_many(self, losses: Array, outcome: Array) -> None:
        self.wealth = self.wealth * (1 + self.thrift * (0.5 - losses.min(1)))


def market(
    response: str = "saver", *, settings: TomlTable = DRAWN_THRIFT, **keys: object
) -> MarketModel:
    """Build a market of six agents of this response and of two best responders."""
    savers = cohort_table("savers", SAVERS, 3, response=response, settings=settings)
    best_responders = cohort_table("others", 2, 3)
    adversary = {"kind": "cyclic", "outcomes": 2}
    return make_scenario(
        savers, best_responders, rounds=ROUNDS, adversary=adversary, **keys
    ).build()


@pytest.fixture(scope="module")
def market_of_savers() -> MarketModel:
    """Play agents who are written one by one, with a collector of their wealth."""
    model = market("saver")
    reporters = {"wealth": lambda agent: getattr(agent, "wealth", None)}
    model.datacollector = mesa.DataCollector(agent_reporters=reporters)
    model.run()
    return model


def test_a_crowd_plays_as_its_agents_would_one_by_one(market_of_savers: MarketModel) -> None:
    crowd = market("savers")
    crowd.run()
    columns = ["mean_loss", "swap_regret", "decision_swap_regret"]
    one_by_one = market_of_savers.agents_frame()[columns]
    pd.testing.assert_frame_equal(one_by_one, crowd.agents_frame()[columns])
    pd.testing.assert_frame_equal(market_of_savers.states_frame(), crowd.states_frame())


def wealth_of_savers(model: MarketModel) -> list[float]:
    wealth: list[float] = model.agents.select(lambda agent: agent.cohort == "savers").get("wealth")
    return wealth


def test_columns_of_agents_are_in_the_table_of_states(market_of_savers: MarketModel) -> None:
    states = market_of_savers.states_frame()
    assert list(states.columns) == ["round", "agent", "wealth", "thrift"]
    assert len(states) == ROUNDS * SAVERS
    last_round = states[states["round"] == ROUNDS - 1]
    assert last_round["wealth"].tolist() == wealth_of_savers(market_of_savers)


def test_columns_of_agents_are_read_by_a_collector_of_mesa(market_of_savers: MarketModel) -> None:
    collected = market_of_savers.datacollector.get_agent_vars_dataframe().loc[ROUNDS]
    assert collected["wealth"].dropna().tolist() == wealth_of_savers(market_of_savers)


def test_agents_of_another_cohort_do_not_have_the_columns(market_of_savers: MarketModel) -> None:
    agents_of_others = market_of_savers.agents.select(lambda agent: agent.cohort == "others")
    with pytest.raises(AttributeError):
        agents_of_others.get("wealth")


@pytest.mark.parametrize("response", ["saver", "savers"])
def test_columns_are_kept_in_checkpoints(response: str, tmp_path: Path) -> None:
    check_resumes(lambda: market(response), 11, tmp_path)


def test_a_setting_that_an_agent_does_not_take_is_refused_before_the_first_round() -> None:
    line = "agent 'saver': got an unexpected keyword argument 'greed'; it takes"
    with pytest.raises(UserError, match=line):
        market(settings={"greed": 1.0})


@pytest.mark.parametrize("value", ["text", [1.0, 2.0]], ids=str)
def test_a_column_that_is_no_number_is_refused_before_the_first_round(value: object) -> None:
    odd = type("Odd", (ScriptedAgent,), {"columns": ("wealth",), "wealth": value})
    register.agent("odd")(odd)
    with pytest.raises(UserError, match="column 'wealth' of class Odd"):
        market("odd", settings={})


@pytest.fixture
def market_of_coin_tossers() -> MarketModel:
    """Play a crowd whose six agents play actions 0 and 1 with a half each."""
    half_each = {"act_many": lambda *_: [[0.5, 0.5, 0.0]] * SAVERS}
    register.agent("coins")(type("Coins", (ScriptedCrowd,), half_each))
    model = market("coins", settings={})
    model.run()
    return model


def test_actions_are_drawn_from_the_distribution_of_a_crowd(
    market_of_coin_tossers: MarketModel,
) -> None:
    log = market_of_coin_tossers.regret_frame().query(f"agent <= {SAVERS}")
    assert set(log["action"]) == {0, 1}
    assert 60 < (log["action"] == 0).sum() < 120  # of 180 fair draws


def test_a_crowd_is_charged_the_loss_that_its_log_shows(
    market_of_coin_tossers: MarketModel,
) -> None:
    log = market_of_coin_tossers.regret_frame().query(f"agent <= {SAVERS}")
    loss_of_round = log.groupby(["agent", "round"])["loss"].first()
    mean_losses = market_of_coin_tossers.agents_frame()["mean_loss"][:SAVERS]
    assert np.allclose(loss_of_round.groupby("agent").mean(), mean_losses)


@pytest.fixture
def market_with_measures() -> MarketModel:
    """Play three rounds, measured by a number, a number of a cohort and one of each agent."""
    register.measure("rounds")(lambda model: model.played)
    register.measure("spread")(lambda model: {"savers": np.std(model.column(0, "wealth"))})
    register.measure("number")(lambda model: [agent.unique_id for agent in model.agents])
    model = market(measures=["rounds", "spread", "number"])
    model.run(3)
    return model


def test_a_measure_of_the_market_is_a_row_of_each_round(market_with_measures: MarketModel) -> None:
    table = market_with_measures.measures_frame()
    assert list(table.columns) == ["round", "measure", "cohort", "agent", "value"]
    assert table.query("measure == 'rounds'")["value"].tolist() == [1, 2, 3]


def test_a_measure_of_a_cohort_names_the_cohort(market_with_measures: MarketModel) -> None:
    spread = market_with_measures.measures_frame().query("measure == 'spread'")
    assert (spread["cohort"] == "savers").all()
    assert spread["value"].iloc[-1] == np.std(market_with_measures.column(0, "wealth"))


def test_a_measure_of_agents_names_each_agent(market_with_measures: MarketModel) -> None:
    numbers = market_with_measures.measures_frame().query("measure == 'number'")
    assert numbers["agent"].tolist() == 3 * list(range(1, 9))
    assert numbers["value"].tolist() == numbers["agent"].tolist()


@pytest.mark.parametrize("numbers", [[], [0], [2, 0, 1], [-1], [0, 3], [2, -5, 1]], ids=str)
def test_indices_of_three_actions_are_told_from_others(numbers: list[int]) -> None:
    answer = np.array(numbers, dtype=np.intp)

    assert scripted_agents._are_indices(answer, 3) == np.isin(answer, np.arange(3)).all()


@pytest.mark.parametrize(
    "last_row",
    [
        [1.0, 0.0, 0.0],
        [0.2, 0.3, 0.5],
        [0.2, 0.3, 0.5 + 1e-3],
        [1.5, -0.5, 0.0],
        [0.0, 0.0, 0.0],
        [np.nan, 0.5, 0.5],
        [np.inf, 0.0, 0.0],
    ],
)
@pytest.mark.parametrize("earlier_rows", [0, 4])
def test_distributions_are_told_from_other_rows(last_row: list[float], earlier_rows: int) -> None:
    earlier = stream(6, "rows").dirichlet(np.ones(3), earlier_rows)
    rows = np.vstack([earlier.reshape(-1, 3), last_row])

    are_distributions = scripted_agents._are_distributions(rows)

    sums_to_one = np.abs(rows.sum(1) - 1) <= scripted_agents.SUM_TOLERANCE
    assert are_distributions == ((rows >= 0).all(1) & sums_to_one).all()


def test_nobody_has_distributions_alone() -> None:
    assert scripted_agents._are_distributions(np.empty((0, 3)))
