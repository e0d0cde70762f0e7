"""Accounts: nothing comes out of nothing, nobody spends what it lacks, and who chooses by it."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import worlds
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless.agents import ScriptedAgent, ScriptedCrowd
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.game.accounts import Accounts
from regretless.market.game.market import Market
from regretless.market.model import MarketModel
from regretless.market.records import Decision


def people(*sizes: int) -> list[Any]:
    """Return as much of cohorts as accounts look at."""
    return [SimpleNamespace(name=f"c{i}", row_of=np.zeros(n)) for i, n in enumerate(sizes)]


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), agents=st.integers(1, 30), goods=st.integers(0, 3))
def test_moves_conserve_everything_exactly(seed: int, agents: int, goods: int) -> None:
    """Whatever the amounts, totals do not move by a single bit, however many the moves."""
    rng = np.random.default_rng(seed)
    accounts = Accounts(people(agents, agents), 1e6, [1e6] * goods)
    before = accounts.totals()
    for _ in range(200):
        bought = rng.normal(size=(2 * agents, goods))
        accounts.trade(bought, rng.random(goods))
        accounts.move(rng.normal(size=2 * agents), rng.normal(size=(2 * agents, goods)))
    assert (accounts.totals() == before).all()
    assert accounts.cash[:-1].std() > 0


def test_nobody_spends_what_it_lacks() -> None:
    accounts = Accounts(people(2), 1.0, [0.5])
    for cash, goods in ((-1.5, 0.0), (0.0, -0.75)):
        with pytest.raises(UserError, match="agent 1 lacks"):
            accounts.move(cash, goods)
    with pytest.raises(UserError, match="agent 2 lacks nan of"):
        accounts.move([0.0, np.nan])
    assert accounts.cash.tolist() == [1.0, 1.0, 0.0]
    accounts.move([-1.0, 1.0])
    assert accounts.cash.tolist() == [0.0, 2.0, 0.0]
    with pytest.raises(UserError, match="larger units"):
        accounts.move(1e12)


def test_agents_of_ones_own_read_their_accounts() -> None:
    @register.agent("thrifty")
    class Thrifty(ScriptedAgent):
        def act(self, forecast: Any, context: Any) -> int:
            return int(self.account.cash >= 0.5)

    @register.agent("thrifty-crowd")
    class ThriftyCrowd(ScriptedCrowd):
        def act_many(self, forecasts: Any, contexts: Any) -> Any:
            return (self.account.cash >= 0.5).astype(int)

    def thrifty(response: str) -> MarketModel:
        parameters = {"value": 1.0}
        own = worlds.cohort("own", 3, 2, "trader", response=response, parameters=parameters)
        given = {"market": {"kind": "call-auction", "cash": 1.5, "stock": 0.0, "outside": 8.0}}
        given |= {"adversary": {"kind": "iid", "outcomes": 1}, "rounds": 40}
        return worlds.scenario(own, **given).build(seed=1)

    one, many = thrifty("thrifty"), thrifty("thrifty-crowd")
    for model in (one, many):
        model.run()
        last = model.accounts_frame().query("round == 39")
        assert model.agents.get("cash") == last["cash"].tolist()
        assert np.ravel(model.agents.get("goods")).tolist() == last["goods_0"].tolist()
    pd.testing.assert_frame_equal(one.accounts_frame(), many.accounts_frame())
    cash = one.accounts_frame()["cash"]
    assert cash.min() < 0.5 <= cash.max()
    assert set(one.regret_frame()["action"]) == {0, 1}


# Agents who choose within their means: what they play, regret and are promised.

COST = np.array([0.0, 0.25, 0.5])  # of each action in ``Tolls``


@register.market("tolls")
class Tolls(Market):
    """Every action has a price in cash; the outcome is the adversary's."""

    answers_at_once = False

    def __init__(self, cohorts: Any, rng: Any, *, cash: float = 1.0, wage: float = 0.25) -> None:
        super().__init__(cohorts, rng)
        self.accounts: Accounts = Accounts(cohorts, cash)
        self.wage = wage

    def clear(self, fundamental: Any, decisions: Any) -> Any:
        costs = [np.tile(COST, (len(cohort.ledger.count), 1)) for cohort in self.cohorts]
        self.accounts.move(-self.chosen(costs, decisions))
        self.accounts.move(self.wage)
        return fundamental

    def affordable(self, place: int) -> Any:
        own = self.accounts.places[self.cohorts[place].name]
        return self.accounts.cash[own, None] >= COST


@register.agent("toll-payer")
class Spender(ScriptedCrowd):
    """Plays the dearest action, or the dearest that it can pay for."""

    def __init__(self, loss: Any, rng: Any, *, careful: Any = 1.0) -> None:
        super().__init__(loss, rng)
        self.careful = bool(np.all(careful))

    def act_many(self, forecasts: Any, contexts: Any) -> Any:
        can = self.affordable if self.careful else np.ones((len(self.loss), 3))
        return np.where(can, COST, -1.0).argmax(1)


def tolls(response: str = "best-response", *, cash: float = 0.5, **keys: Any) -> MarketModel:
    own = {"budget_constraint": True, "measures": ["swap", "decision_swap"]} | keys
    own = worlds.cohort("own", own.pop("count", 6), 3, response=response, **own)
    other = worlds.cohort("x", 2, measures=["swap"])
    given = {"market": {"kind": "tolls", "cash": cash}, "rounds": 120}
    given |= {"adversary": {"kind": "anti-forecast", "outcomes": 2}}
    return worlds.scenario(own, other, **given).build(seed=3)


def watched(model: MarketModel) -> Iterator[tuple[Any, Any, Any]]:
    """Play a model; yield what was affordable, played and lost by the first cohort."""
    market, cohort = model.game.market, model.game.cohorts[0]
    for _ in range(model.rounds):
        awake, played = market.affordable(0), model.conclude(model.begin())
        losses = cohort.loss.losses(played.outcome)[cohort.row_of]
        yield awake, played.decisions[0].actions, losses  # type: ignore[union-attr]


@pytest.mark.parametrize("response", ["best-response", "quantal", "hedge", "toll-payer"])
def test_regret_counts_what_could_be_afforded_and_nothing_else(response: str) -> None:
    eta = {"eta": 4.0} if response == "quantal" else {}
    model = tolls(response, **eta)
    seen = [*watched(model)]
    told = model.agents_frame().query("cohort == 'own'")
    for agent in range(6):
        awake, played, losses = zip(
            *[(a[agent], p[agent], lost[agent]) for a, p, lost in seen], strict=True
        )
        assert all(awake[t][played[t]] for t in range(120))
        if response in ("quantal", "hedge"):
            continue  # rounds in which nothing slept are charged in expectation
        own = np.array(losses)[np.arange(120), played]
        charged = np.where(awake, losses, own[:, None])
        best = worlds.regrets(charged, np.array(played))[-1]
        assert told["decision_swap_regret"].iloc[agent] == pytest.approx(best, abs=1e-12)
    assert not np.concatenate([a for a, _, _ in seen]).all()


def test_the_promise_pays_for_the_rounds_in_which_something_slept() -> None:
    model = tolls()
    seen = [*watched(model)]
    table = model.agents_frame().query("cohort == 'own'")
    slept = np.sum([~awake.all(1) for awake, _, _ in seen], axis=0)
    promised = model.guarantees[0].bound
    budget: Any = model.game.seats[0].budget
    assert (budget.scarce == slept).all()
    without = promised() - 2 * slept / 120
    assert slept.min() > 0
    assert (without > 0).all()
    assert table["bound"].to_numpy() == pytest.approx(promised())
    assert (table["decision_swap_regret"] <= table["bound_from_bias"] + 1e-9).all()
    assert (table["decision_swap_regret"] <= table["bound"]).all()


def test_a_distribution_of_play_is_that_given_what_is_affordable() -> None:
    model = tolls("hedge", count=1, cash=0.25)
    means, rng = model.game.seats[0].budget, np.random.default_rng(0)
    distribution, can = np.array([[0.2, 0.3, 0.5]]), np.array([[True, True, False]])
    decided = [Decision(distribution, rng.choice(3, 1, p=distribution[0])) for _ in range(4000)]
    drawn = [means.limited(decision, can, None).actions[0] for decision in decided]
    assert np.mean(drawn) == pytest.approx(0.6, abs=4 * np.sqrt(0.24 / 4000))


def test_mistakes_are_a_line() -> None:
    with pytest.raises(UserError, match="agent 1 of own chose what it cannot afford"):
        tolls("toll-payer", settings={"careful": 0.0}, cash=0.25).run()
    with pytest.raises(UserError, match="exp3 takes every action to be possible"):
        tolls("exp3")
