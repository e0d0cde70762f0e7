"""Accounts: nothing comes out of nothing, and nobody spends what it lacks."""

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
from regretless.market.model import MarketModel


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
    @register.agent("spender")
    class Spender(ScriptedAgent):
        def act(self, forecast: Any, context: Any) -> int:
            return int(self.account.cash >= 0.5)

    @register.agent("spenders")
    class Spenders(ScriptedCrowd):
        def act_many(self, forecasts: Any, contexts: Any) -> Any:
            return (self.account.cash >= 0.5).astype(int)

    def market(response: str) -> MarketModel:
        parameters = {"value": 1.0}
        own = worlds.cohort("own", 3, 2, "trader", response=response, parameters=parameters)
        given = {"market": {"kind": "call-auction", "cash": 1.5, "stock": 0.0, "outside": 8.0}}
        given |= {"adversary": {"kind": "iid", "outcomes": 1}, "rounds": 40}
        return worlds.scenario(own, **given).build(seed=1)

    one, many = market("spender"), market("spenders")
    for model in (one, many):
        model.run()
        last = model.accounts_frame().query("round == 39")
        assert model.agents.get("cash") == last["cash"].tolist()
        assert np.ravel(model.agents.get("goods")).tolist() == last["goods_0"].tolist()
    pd.testing.assert_frame_equal(one.accounts_frame(), many.accounts_frame())
    cash = one.accounts_frame()["cash"]
    assert cash.min() < 0.5 <= cash.max()
    assert set(one.regret_frame()["action"]) == {0, 1}
