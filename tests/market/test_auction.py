"""Call auctions clear as a search over all prices does, and nobody spends what it lacks."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import worlds
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless import load
from regretless.market.core.arrays import Array
from regretless.market.losses import Trade
from regretless.market.markets.auction import LOTS, TICKS, CallAuction, clearing, fill, shares
from regretless.market.records import Decision


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
    half, (buys, sells) = np.arange(2 * TICKS + 1)[:, None], np.maximum([wanted, -wanted], 0)
    demand, supply = (buys * (2 * ticks >= half)).sum(1), (sells * (2 * ticks <= half)).sum(1)
    more, less = (buys * (2 * ticks > half)).sum(1), (sells * (2 * ticks < half)).sum(1)
    good, most = np.flatnonzero((more <= supply) & (less <= demand)), np.minimum(demand, supply)
    price = (good[0] + good[-1]) / 2 if most.any() else np.clip(last, good[0], good[-1])
    return float(price), int(most.max())


def test_random_books_clear_as_a_search_does() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        wanted, ticks, book = random_orders(rng)
        last = int(rng.integers(2 * TICKS + 1))
        price, volume = clearing(*book, last)
        assert (price, volume) == brute_force(wanted, ticks, last)
        traded = np.empty_like(wanted)
        gained = fill(wanted, ticks, price, np.array(shares(price, volume, *book)), traded)
        assert gained == (traded * (2 * ticks - price))[:-1].sum()  # the last is the world outside
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
        rows = np.arange(agents)
        made.append(SimpleNamespace(name=name, loss=loss, row_of=rows, multiplicity=None))
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
        losses = [c.loss for c in people]
        own = [o.unit_offset[:, None] + o.unit_scale[:, None] * o.losses(price) for o in losses]
        assert gained == pytest.approx(-market.chosen(own, decisions), abs=1.01 / LOTS)


# Sealed bids.


def auction(kind: str, *cohorts: worlds.Raw, **market: Any) -> Any:
    common = {"utility": "bidder", "actions": 5, "response": "blum-mansour"}
    own = [common | {"name": f"cohort {i}"} | one for i, one in enumerate(cohorts)]
    given = {"adversary": {"kind": "iid", "outcomes": 1}, "market": {"kind": kind} | market}
    return worlds.scenario(*own, seed=5, **given).build()


def gained(kind: str, bids: list[float], who: int, market: Any) -> float:
    """Clear an auction by plain sorting, and return what one bidder gains."""
    ranked = sorted(range(len(bids)), key=lambda i: (-bids[i], market.lot[i]))
    winners = [i for i in ranked[: market.units] if bids[i] >= market.last_reserve]
    lost = [bids[i] for i in ranked if i not in winners]
    paid = bids[who] if kind == "first-price" else max([market.last_reserve, *lost])
    return market.value[who] - paid if who in winners else 0.0


@pytest.mark.parametrize("kind", ["first-price", "second-price"])
@pytest.mark.parametrize(("units", "reserve"), [(1, 0.0), (2, 0.4), (6, 0.1)])
def test_regrets_are_those_of_clearing_again_for_each_bid(
    kind: str, units: int, reserve: float
) -> None:
    cohorts = [{"count": 3}, {"count": 2, "parameters": {"value": [0.4, 0.9], "high": 1.1}}]
    model = auction(kind, *cohorts, units=units, reserve=reserve)
    market, losses, played = model.game.market, np.zeros((5, 60, 5)), np.zeros((5, 60, 5))
    for t in range(60):
        played[:, t] = np.concatenate([cohort.learner.play() for cohort in model.game.cohorts])
        model.step()
        market.last_reserve = market._floor
        grids = np.concatenate(market._shares) * market._scale[:, None]
        actions = np.concatenate([model.last_actions(0), model.last_actions(1)])
        for i in range(5):
            bids = grids[np.arange(5), actions].tolist()
            own = [gained(kind, [*bids[:i], b, *bids[i + 1 :]], i, market) for b in grids[i]]
            losses[i, t] = (1 - np.array(own)) / 2
    frame = model.agents_frame()
    assert (frame["loss_scale"] == 2).all()
    for i in range(5):
        known = worlds.regrets(losses[i], played[i])[1:3]
        found = frame.loc[i, ["external_regret", "swap_regret"]].to_numpy(float)
        assert found == pytest.approx(known, abs=1e-12)
        assert losses[i].std() > 0


@pytest.mark.slow
@pytest.mark.parametrize("bidders", [2, 4])
def test_learners_shade_first_price_bids_as_the_equilibrium_does(bidders: int) -> None:
    """Vickrey 1961: (n - 1) / n of a uniform value; a grid has equilibria a little below.

    Measured by what share of its value each learner bids in the last two thirds of the rounds.
    """
    model = load("sealed-bids", **{"cohort.bidders.count": bidders}).build(log_every=4000)
    model.run(750)
    ledger = model.game.cohorts[0].ledger
    before = ledger.count.copy()
    model.run(1500)
    count = ledger.count - before
    share = count @ np.linspace(0, 1, count.shape[1]) / count.sum(1)
    assert np.abs(share - (bidders - 1) / bidders).max() < 0.08
    assert model.agents_frame()["swap_regret"].max() < 0.003
    assert model.game.market.described()["efficiency"] > 0.97


def test_truth_regrets_nothing_at_the_second_price_whatever_the_others_bid() -> None:
    """Dominance, and not in the first-price auction: there all who win would rather bid less."""
    worst = {}
    for kind in ("first-price", "second-price"):
        model = auction(kind, {"count": 4, "response": "exp3"}, units=2)
        table = np.zeros((60, 4, 5))
        for t in range(60):
            model.step()
            table[t] = model.game.market.losses([None])[0]
        worst[kind] = (table[..., -1] - table.min(-1)).max()
    assert worst["second-price"] <= 1e-12
    assert worst["first-price"] > 0.05


def test_followers_bid_where_their_believed_gain_is_greatest() -> None:
    """(v - b) (1/2 + b - y) is greatest at b = (v + y - 1/2) / 2, and b = y at v - 1/2."""
    followers = {"response": "best-response", "count": 3, "actions": 41}
    model = auction("first-price", followers, redraw=False)
    model.run(30)
    assert model.rounds_frame()["y_0"].iloc[-1] == pytest.approx(0.5, abs=0.03)
    assert (model.agents_frame()["guarantee"] == "none").all()


def test_who_is_absent_neither_wins_nor_is_charged() -> None:
    model = auction("second-price", {"count": 2}, {"count": 2, "enters": 30})
    model.run(20)
    assert model.agents_frame()["mean_loss"].isna().tolist() == [False, False, True, True]
    model.run(60)
    assert model.agents_frame()["mean_loss"].notna().all()
