"""Call auctions clear as a search over all prices does, and nobody spends what it lacks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from regretless.market.core.errors import UserError
from regretless.market.losses import Linear, Trade
from regretless.market.markets.auction import LOTS, TICKS, CallAuction, clearing, filled
from regretless.market.records import Decision

Array = NDArray[np.float64]


def random_orders(rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Draw orders at few limits, so that they tie: lots, ticks and the book."""
    n, levels = int(rng.integers(1, 17)), rng.integers(0, TICKS + 1, size=6)
    wanted, ticks = rng.integers(-4 * LOTS, 4 * LOTS, size=n), rng.choice(levels, size=n)
    book = np.zeros((2, TICKS + 1), dtype=np.int64)
    np.add.at(book[0], ticks, np.maximum(wanted, 0))
    np.add.at(book[1], ticks, np.maximum(-wanted, 0))
    return wanted, ticks, book


def brute_force(wanted: Array, ticks: Array, last: int) -> tuple[float, int]:
    """Try all ticks and the prices between: the middle of those that clear, and the volume."""
    good, most = [], 0
    buys, sells = np.maximum(wanted, 0), np.maximum(-wanted, 0)
    for half in range(2 * TICKS + 1):
        demand, supply = buys[2 * ticks >= half].sum(), sells[2 * ticks <= half].sum()
        most = max(most, min(demand, supply))
        if buys[2 * ticks > half].sum() <= supply and sells[2 * ticks < half].sum() <= demand:
            good.append(half)
    return ((good[0] + good[-1]) / 2 if most else float(np.clip(last, good[0], good[-1]))), most


@pytest.mark.parametrize("seed", range(3))
def test_random_books_clear_as_a_search_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(100):
        wanted, ticks, book = random_orders(rng)
        last = int(rng.integers(2 * TICKS + 1))
        price, volume = clearing(*book, last)
        assert (price, volume) == brute_force(wanted, ticks, last)
        traded = np.empty_like(wanted)
        gained = filled(wanted, ticks, book, price, volume, traded)
        own = (traded * (2 * ticks - price))[:-1]  # the last is the world outside
        assert gained == own.sum() / (2 * TICKS * LOTS)
        assert traded[wanted > 0].sum() == -traded[wanted < 0].sum() == volume
        assert ((traded * np.sign(wanted) >= 0) & (np.abs(traded) <= np.abs(wanted))).all()
        gain = np.sign(wanted) * (2 * ticks - price)
        assert (traded[gain < 0] == 0).all()
        assert (traded == wanted)[gain > 0].all()  # who is rationed gains nothing by it


def crowd(rng: np.random.Generator, agents: int, goods: int) -> list[Any]:
    """Return as much of two cohorts as an auction looks at."""
    made = []
    for name, side in (("buyers", 1.0), ("sellers", -1.0)):
        quantity = side * rng.random((agents, 3, goods)) * 2
        quantity[:, 0] = 0.0
        limit = rng.integers(0, TICKS + 1, (agents, 3, goods)) / TICKS
        loss = Trade(quantity, limit).normalised()
        made.append(
            SimpleNamespace(name=name, loss=loss, row_of=np.arange(agents), multiplicity=None)
        )
    return made


def chosen(rng: np.random.Generator, agents: int) -> list[Decision | None]:
    actions = rng.integers(-1, 3, (2, agents))
    return [Decision(np.zeros((1, 1)), row) for row in actions]


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), goods=st.integers(1, 3), refresh=st.sampled_from([0, 3]))
def test_trade_conserves_cash_and_goods_and_nobody_owes(
    seed: int, goods: int, refresh: int
) -> None:
    rng = np.random.default_rng(seed)
    people = crowd(rng, 12, goods)
    market = CallAuction(people, rng, cash={"buyers": 2.0}, refresh=refresh, outside=1.5)
    before = market.accounts.totals()
    for _ in range(60):
        outcome = market.clear(rng.random(goods), chosen(rng, 12))
        assert ((outcome >= 0) & (outcome <= 1)).all()
        assert (market.accounts.totals() == before).all()
        assert (market.accounts.cash[:-1] >= 0).all()
        assert (market.accounts.goods[:-1] >= 0).all()


def test_losses_at_the_price_are_what_accounts_gained() -> None:
    """Cash, and goods at what they are worth to their owner, rise by minus the loss."""
    rng = np.random.default_rng(4)
    people = crowd(rng, 40, 1)
    market = CallAuction(people, rng, cash=1e4, stock=1e4)
    for _ in range(20):
        decisions, before = chosen(rng, 40), market.accounts.state()
        price = market.clear(np.array([0.5]), decisions)
        limit = market.chosen([c.loss.limit for c in people], decisions)
        held = market.accounts.goods[:-1] - before["goods"][:-1]
        gained = market.accounts.cash[:-1] - before["cash"][:-1] + (held * limit).sum(1)
        units = [c.loss.unit_offset[:, None] for c in people]
        own = [
            (o + c.loss.unit_scale[:, None] * c.loss.losses(price))
            for o, c in zip(units, people, strict=True)
        ]
        assert gained == pytest.approx(-market.chosen(own, decisions), abs=1.01 / LOTS)


def test_what_is_no_order_is_refused() -> None:
    rng = np.random.default_rng(0)
    plain = SimpleNamespace(name="odd", loss=Linear(np.ones((1, 2, 1))), row_of=np.array([0]))
    with pytest.raises(UserError, match=r'cohort.odd says no limits; use utility = "trader"'):
        CallAuction([plain], rng)  # type: ignore[list-item]
    people = crowd(rng, 3, 2)
    huge = SimpleNamespace(
        name="huge", loss=Trade(np.full((1, 2, 1), 1e7), np.zeros(())), row_of=np.array([0])
    )
    with pytest.raises(UserError, match=r"orders of 1e\+07 units are too large"):
        CallAuction([huge], rng)  # type: ignore[list-item]
    for bad in ({"refresh": -1}, {"stock": [1.0]}, {"cash": {"bankers": 1.0}}):
        with pytest.raises(UserError, match=r"market\."):
            CallAuction(people, rng, **bad)  # type: ignore[arg-type]
