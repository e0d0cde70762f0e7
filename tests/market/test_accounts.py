"""Accounts: nothing comes out of nothing, nobody spends what it lacks, and who chooses by it."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import worlds
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless import MarketModel, UserError, register
from regretless.agents import ScriptedAgent, ScriptedCrowd
from regretless.market.game.accounts import Accounts
from regretless.market.game.market import Market
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


@register.agent("thrifty")
class Thrifty(ScriptedAgent):
    """Acts if it owns enough."""

    def act(self, forecast: Any, context: Any) -> int:
        return int(self.account.cash >= 0.5)


@register.agent("thrifty-crowd")
class ThriftyCrowd(ScriptedCrowd):
    """The same, all at once."""

    def act_many(self, forecasts: Any, contexts: Any) -> Any:
        return (self.account.cash >= 0.5).astype(int)


def test_agents_of_ones_own_read_their_accounts() -> None:
    tables = []
    for response in ("thrifty", "thrifty-crowd"):
        own = worlds.cohort("own", 3, 2, "trader", response=response, parameters={"value": 1.0})
        given = {"market": {"kind": "call-auction", "cash": 1.5, "stock": 0.0, "outside": 8.0}}
        given |= {"adversary": {"kind": "iid", "outcomes": 1}, "rounds": 40, "seed": 1}
        model = worlds.played(worlds.scenario(own, **given))
        tables.append(model.accounts_frame())
        last = tables[-1].query("round == 39")
        assert model.agents.get("cash") == last["cash"].tolist()
        assert np.ravel(model.agents.get("goods")).tolist() == last["goods_0"].tolist()
        assert set(model.regret_frame()["action"]) == {0, 1}
    pd.testing.assert_frame_equal(*tables)
    assert tables[0]["cash"].min() < 0.5 <= tables[0]["cash"].max()


COST = np.array([0.0, 0.25, 0.5])  # of each action in ``Tolls``


@register.market("tolls")
class Tolls(Market):
    """Every action has a price in cash; the outcome is the adversary's."""

    answers_at_once = False

    def __init__(self, cohorts: Any, rng: Any, *, cash: float = 1.0) -> None:
        super().__init__(cohorts, rng)
        self.accounts: Accounts = Accounts(cohorts, cash)

    def clear(self, fundamental: Any, decisions: Any) -> Any:
        costs = [np.tile(COST, (len(cohort.ledger.count), 1)) for cohort in self.cohorts]
        self.accounts.move(0.25 - self.chosen(costs, decisions))  # and a wage
        return fundamental

    def affordable(self, place: int) -> Any:
        own = self.accounts.places[self.cohorts[place].name]
        return self.accounts.cash[own, None] >= COST


@register.agent("toll-payer")
class Spender(ScriptedCrowd):
    """Plays the dearest action that it can pay for; who is careless, the dearest."""

    careful = True

    def act_many(self, forecasts: Any, contexts: Any) -> Any:
        return np.where(self.affordable | (not self.careful), COST, -1.0).argmax(1)


def tolls(response: str = "best-response", *, cash: float = 0.5, **keys: Any) -> MarketModel:
    keys = {"budget_constraint": True, "measures": [*worlds.FEW[1:]], "response": response} | keys
    given = {"market": {"kind": "tolls", "cash": cash}, "rounds": 120}
    given |= {"adversary": {"kind": "anti-forecast", "outcomes": 2}}
    cohorts = worlds.cohort("own", 6, 3) | keys, worlds.cohort("x", 2, measures=["swap"])
    return worlds.scenario(*cohorts, **given).build(seed=3)


@pytest.mark.parametrize("response", ["best-response", "quantal", "hedge", "toll-payer"])
def test_regret_counts_what_could_be_afforded_and_bounds_pay_for_what_slept(response: str) -> None:
    model = tolls(response, **({"eta": 4.0} if response == "quantal" else {}))
    market, cohort, seen = model.game.market, model.game.cohorts[0], []
    for _ in range(model.rounds):
        awake, played = market.affordable(0), model.conclude(model.begin())
        losses = cohort.loss.losses(played.outcome)[cohort.row_of]
        seen.append((awake, played.decisions[0].actions, losses))
    awake, played, losses = map(np.array, zip(*seen, strict=True))
    assert np.take_along_axis(awake, played[..., None], 2).all()
    assert not awake.all()
    if response in ("quantal", "hedge"):
        return  # rounds in which nothing slept are charged in expectation
    table = model.agents_frame().query("cohort == 'own'")
    charged = np.where(awake, losses, np.take_along_axis(losses, played[..., None], 2))
    best = [worlds.regrets(charged[:, agent], played[:, agent])[-1] for agent in range(6)]
    assert table["decision_swap_regret"].to_numpy() == pytest.approx(best, abs=1e-12)
    if response == "best-response":
        slept, promised = np.sum(~awake.all(2), axis=0), model.guarantees[0].bound()
        assert (model.game.seats[0].budget.limited_rounds == slept).all()
        assert slept.min() > 0
        free = replace(model.guarantees[0], bound=lambda: np.zeros(6))
        added = model.game.seats[0].budget.with_limited_rounds(free).bound()
        assert added == pytest.approx(2 * slept / 120)
        assert (promised > added).all()
        assert table["bound"].to_numpy() == pytest.approx(promised)
        assert (table["decision_swap_regret"] <= table["bound_from_bias"] + 1e-9).all()
        assert (table["decision_swap_regret"] <= table["bound"]).all()


def test_a_distribution_of_play_is_that_given_what_is_affordable() -> None:
    means, rng = tolls("hedge", count=1, cash=0.25).game.seats[0].budget, np.random.default_rng(0)
    distribution, can = np.array([[0.2, 0.3, 0.5]]), np.array([[True, True, False]])
    decided = [Decision(distribution, rng.choice(3, 1, p=distribution[0])) for _ in range(4000)]
    drawn = [means.restrict(decision, can, None).actions[0] for decision in decided]
    assert np.mean(drawn) == pytest.approx(0.6, abs=4 * np.sqrt(0.24 / 4000))


def test_mistakes_are_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Spender, "careful", False)
    with pytest.raises(UserError, match="agent 1 of own chose what it cannot afford"):
        tolls("toll-payer", cash=0.25).run()
    with pytest.raises(UserError, match="exp3 takes every action to be possible"):
        tolls("exp3")
