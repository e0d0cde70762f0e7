"""Accounts: nothing comes out of nothing, nobody spends what it lacks, and who chooses by it."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_measures import mean_loss_and_regrets
from small_scenarios import TomlTable, cohort_table, make_scenario, play_to_end

from regretless import MarketModel, UserError, register
from regretless.agents import ScriptedAgent, ScriptedCrowd
from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.game.accounts import UNIT, Accounts
from regretless.market.game.market import Market
from regretless.market.game.protocols import Cohort
from regretless.market.records import Context, Decision, Forecast


def accounts_of(*sizes: int, cash: float, goods: Sequence[float] = ()) -> Accounts:
    """Return accounts of cohorts of these sizes, of which they look at names and rows."""
    cohorts = []
    for number, size in enumerate(sizes):
        cohorts.append(SimpleNamespace(name=f"c{number}", row_of=np.zeros(size)))
    return Accounts(cohorts, cash, goods)  # type: ignore[arg-type]


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), agents=st.integers(1, 30), goods=st.integers(0, 3))
def test_moves_conserve_everything_exactly(seed: int, agents: int, goods: int) -> None:
    """Whatever the amounts, totals do not move by a single bit, however many the moves."""
    rng = np.random.default_rng(seed)
    accounts = accounts_of(agents, agents, cash=1e6, goods=[1e6] * goods)
    totals_before = accounts.totals()
    for _ in range(200):
        accounts.trade(rng.normal(size=(2 * agents, goods)), rng.random(goods))
        accounts.move(rng.normal(size=2 * agents), rng.normal(size=(2 * agents, goods)))
    assert (accounts.totals() == totals_before).all()
    assert accounts.cash[:-1].std() > 0, "nothing was moved"


@pytest.mark.parametrize(
    ("cash", "goods", "message"),
    [
        (-1.5, 0.0, "agent 1 lacks"),
        (0.0, -0.75, "agent 1 lacks"),
        ([0.0, np.nan], 0.0, "agent 2 lacks nan of"),
    ],
)
def test_nobody_spends_what_it_lacks(cash: float | list[float], goods: float, message: str) -> None:
    accounts = accounts_of(2, cash=1.0, goods=[0.5])
    with pytest.raises(UserError, match=message):
        accounts.move(cash, goods)
    assert accounts.cash.tolist() == [1.0, 1.0, 0.0]
    assert accounts.goods[:, 0].tolist() == [0.5, 0.5, 0.0]


def test_a_trade_costs_its_units_times_their_price() -> None:
    accounts = accounts_of(2, cash=2.0, goods=[0.5, 0.5])
    accounts.trade(np.array([[0.5, 0.25], [-0.5, 0.0]]), [2.0, 4.0])
    assert accounts.cash.tolist() == [0.0, 3.0, 1.0]  # the world outside sold a quarter of a unit
    assert accounts.goods[:2].tolist() == [[1.0, 0.75], [0.0, 0.5]]


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), agents=st.integers(1, 9), goods=st.integers(0, 3))
def test_amounts_are_rounded_to_units_before_they_move(seed: int, agents: int, goods: int) -> None:
    """What moves are the nearest multiples of the unit, and a payment is rounded good by good."""
    rng = np.random.default_rng(seed)
    accounts = accounts_of(agents, cash=100.0, goods=[100.0] * goods)
    cash = rng.normal(size=agents)
    bought = rng.normal(size=(agents, goods))
    price = rng.random(goods)
    accounts.move(cash, bought, price=price)

    goods_moved = np.rint(bought / UNIT) * UNIT
    payments = np.rint(goods_moved * price / UNIT) * UNIT
    cash_moved = np.rint(cash / UNIT) * UNIT - payments.sum(axis=1)
    assert accounts.cash[:-1].tolist() == (100.0 + cash_moved).tolist()
    assert accounts.goods[:-1].tolist() == (100.0 + goods_moved).tolist()
    assert accounts.cash[-1] == -cash_moved.sum()


def test_what_agents_spend_goes_to_the_world_outside() -> None:
    accounts = accounts_of(2, cash=1.0, goods=[0.5])
    accounts.move([-1.0, 1.0])
    assert accounts.cash.tolist() == [0.0, 2.0, 0.0]


def test_an_amount_that_would_lose_digits_is_refused() -> None:
    accounts = accounts_of(2, cash=1.0, goods=[0.5])
    with pytest.raises(UserError, match="larger units"):
        accounts.move(1e12)


@register.agent("thrifty")
class Thrifty(ScriptedAgent):
    """Acts if it owns enough."""

    def act(self, forecast: Forecast, context: Context) -> int:
        return int(self.account.cash >= 0.5)


@register.agent("thrifty-crowd")
class ThriftyCrowd(ScriptedCrowd):
    """The same, all at once."""

    def act_many(self, forecasts: Forecast, contexts: Context) -> Indices:
        return np.asarray((self.account.cash >= 0.5).astype(int))


def market_of_thrifty_agents(response: str) -> MarketModel:
    """Play three agents who act if they own enough, in a call auction."""
    traders = cohort_table("own", 3, 2, "trader", response=response, parameters={"value": 1.0})
    scenario = make_scenario(
        traders,
        market={"kind": "call-auction", "cash": 1.5, "stock": 0.0, "outside": 8.0},
        adversary={"kind": "iid", "outcomes": 1},
        rounds=40,
        seed=1,
    )
    return play_to_end(scenario)


@pytest.mark.parametrize("response", ["thrifty", "thrifty-crowd"])
def test_agents_of_ones_own_act_by_their_accounts(response: str) -> None:
    model = market_of_thrifty_agents(response)
    cash = model.accounts_frame()["cash"]
    assert cash.min() < 0.5 <= cash.max()
    assert set(model.regret_frame()["action"]) == {0, 1}


@pytest.mark.parametrize("response", ["thrifty", "thrifty-crowd"])
def test_agents_show_what_the_table_of_accounts_says(response: str) -> None:
    model = market_of_thrifty_agents(response)
    last_round = model.accounts_frame().query("round == 39")
    assert model.agents.get("cash") == last_round["cash"].tolist()
    assert np.ravel(model.agents.get("goods")).tolist() == last_round["goods_0"].tolist()


def test_a_crowd_trades_as_its_agents_would_one_by_one() -> None:
    one_by_one = market_of_thrifty_agents("thrifty").accounts_frame()
    crowd = market_of_thrifty_agents("thrifty-crowd").accounts_frame()
    pd.testing.assert_frame_equal(one_by_one, crowd)


ROUNDS = 120
TOLL_PAYERS = 6
TOLLS = np.array([0.0, 0.25, 0.5])  # of each action
WAGE = 0.25


@register.market("tolls")
class TollMarket(Market):
    """Every action has a price in cash; the outcome is the adversary's."""

    answers_at_once = False

    def __init__(
        self, cohorts: Sequence[Cohort], rng: np.random.Generator, *, cash: float = 1.0
    ) -> None:
        super().__init__(cohorts, rng)
        self.accounts: Accounts = Accounts(cohorts, cash)

    def clear(self, fundamental: Array, decisions: Sequence[Decision | None]) -> Array:
        rows_by_cohort = [len(cohort.ledger.count) for cohort in self.cohorts]
        tolls_by_cohort = [np.tile(TOLLS, (rows, 1)) for rows in rows_by_cohort]
        self.accounts.move(WAGE - self.chosen(tolls_by_cohort, decisions))
        return fundamental

    def affordable(self, cohort_index: int) -> Mask:
        agents = self.accounts.places[self.cohorts[cohort_index].name]
        return np.asarray(self.accounts.cash[agents, None] >= TOLLS)


@register.agent("toll-payer")
class TollPayer(ScriptedCrowd):
    """Plays the dearest action that it can pay for; who is careless, the dearest."""

    is_careful = True

    def act_many(self, forecasts: Forecast, contexts: Context) -> Indices:
        is_considered = self.affordable | (not self.is_careful)
        return np.asarray(np.where(is_considered, TOLLS, -1.0).argmax(1))


def toll_market(response: str, *, cash: float = 0.5, **keys: object) -> MarketModel:
    """Build a market in which the cohort ``own`` may do what it can pay for."""
    toll_payers = cohort_table(
        "own",
        TOLL_PAYERS,
        3,
        response=response,
        budget_constraint=True,
        measures=["swap", "decision_swap"],
    )
    others = cohort_table("others", 2, measures=["swap"])
    scenario = make_scenario(
        toll_payers | keys,
        others,
        market={"kind": "tolls", "cash": cash},
        rounds=ROUNDS,
        adversary={"kind": "anti-forecast", "outcomes": 2},
    )
    return scenario.build(seed=3)


class TollLog(NamedTuple):
    """What the agents of the first cohort could pay for and did, and what they lost."""

    affordable: Mask  # (T, N, A)
    actions: Indices  # (T, N)
    losses: Array  # (T, N, A)


def play_and_log(model: MarketModel) -> TollLog:
    cohort = model.game.cohorts[0]
    affordable = []
    actions = []
    losses = []
    for _ in range(model.rounds):
        affordable.append(model.game.market.affordable(0))
        played = model.conclude(model.begin())
        actions.append(played.decisions[0].actions)
        losses.append(cohort.loss.losses(played.outcome)[cohort.row_of])
    return TollLog(np.array(affordable), np.array(actions), np.array(losses))


RESPONSES: dict[str, TomlTable] = {
    "best-response": {},
    "quantal": {"eta": 4.0},
    "hedge": {},
    "toll-payer": {},
}


@pytest.mark.parametrize("response", RESPONSES)
def test_agents_under_a_budget_do_only_what_they_can_pay_for(response: str) -> None:
    log = play_and_log(toll_market(response, **RESPONSES[response]))
    assert np.take_along_axis(log.affordable, log.actions[..., None], 2).all()
    assert not log.affordable.all(), "everything could be afforded in every round"


@pytest.mark.parametrize("response", ["best-response", "toll-payer"])
def test_regret_is_of_what_could_be_afforded_alone(response: str) -> None:
    """What sleeps is charged as what was played; those who draw are charged in expectation."""
    model = toll_market(response)
    log = play_and_log(model)
    losses_of_play = np.take_along_axis(log.losses, log.actions[..., None], 2)
    charged_losses = np.where(log.affordable, log.losses, losses_of_play)
    expected = []
    for agent in range(TOLL_PAYERS):
        regrets = mean_loss_and_regrets(charged_losses[:, agent], log.actions[:, agent])
        expected.append(regrets[-1])
    agents = model.agents_frame().query("cohort == 'own'")
    assert agents["decision_swap_regret"].to_numpy() == pytest.approx(expected, abs=1e-12)


def test_the_bound_pays_twice_for_each_round_in_which_something_slept() -> None:
    model = toll_market("best-response")
    log = play_and_log(model)
    budget = model.game.seats[0].budget
    guarantee = model.guarantees[0]
    rounds_with_sleep = np.sum(~log.affordable.all(2), axis=0)
    assert rounds_with_sleep.min() > 0
    assert (budget.limited_rounds == rounds_with_sleep).all()
    without_sleep = replace(guarantee, bound=lambda: np.zeros(TOLL_PAYERS))
    payment_for_sleep = budget.with_limited_rounds(without_sleep).bound()
    assert payment_for_sleep == pytest.approx(2 * rounds_with_sleep / ROUNDS)
    assert (guarantee.bound() > payment_for_sleep).all()


def test_regret_under_a_budget_stays_below_its_bounds() -> None:
    model = toll_market("best-response")
    model.run()
    agents = model.agents_frame().query("cohort == 'own'")
    assert agents["bound"].to_numpy() == pytest.approx(model.guarantees[0].bound())
    assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()


def test_a_distribution_of_play_is_that_given_what_is_affordable() -> None:
    """Probabilities .2, .3 and .5 become .4 and .6 where the last action sleeps."""
    budget = toll_market("hedge", count=1, cash=0.25).game.seats[0].budget
    rng = np.random.default_rng(0)
    strategy = np.array([[0.2, 0.3, 0.5]])
    affordable = np.array([[True, True, False]])
    actions = []
    for _ in range(4000):
        decision = Decision(strategy, rng.choice(3, 1, p=strategy[0]))
        actions.append(budget.restrict(decision, affordable, None).actions[0])
    assert np.mean(actions) == pytest.approx(0.6, abs=4 * np.sqrt(0.24 / 4000))


def test_an_agent_of_ones_own_that_chooses_what_it_cannot_afford_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(TollPayer, "is_careful", False)
    with pytest.raises(UserError, match="agent 1 of own chose what it cannot afford"):
        toll_market("toll-payer", cash=0.25).run()


def test_a_bandit_under_a_budget_is_refused() -> None:
    with pytest.raises(UserError, match="exp3 takes every action to be possible"):
        toll_market("exp3")
