"""Call auctions against a search over all prices; sealed bids cleared again for each bid."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import worlds
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless import UserError, exploitability, load, register, swap_regret
from regretless.agents import ScriptedAgent
from regretless.market.core.arrays import Array
from regretless.market.losses import Trade
from regretless.market.markets.call_auction import (
    LOTS_PER_UNIT,
    TICKS_PER_UNIT,
    CallAuction,
    clearing,
    fill,
    shares,
)
from regretless.market.markets.sealed_bids import FirstPrice, SecondPrice
from regretless.market.records import Decision


def brute_force(wanted: Array, ticks: Array, last: int) -> tuple[float, int]:
    """Try all ticks and the prices between: the middle of those that clear, and the volume."""
    half, (buys, sells) = (
        np.arange(2 * TICKS_PER_UNIT + 1)[:, None],
        np.maximum([wanted, -wanted], 0),
    )
    demand, supply = (buys * (2 * ticks >= half)).sum(1), (sells * (2 * ticks <= half)).sum(1)
    more, less = (buys * (2 * ticks > half)).sum(1), (sells * (2 * ticks < half)).sum(1)
    good, most = np.flatnonzero((more <= supply) & (less <= demand)), np.minimum(demand, supply)
    price = (good[0] + good[-1]) / 2 if most.any() else np.clip(last, good[0], good[-1])
    return float(price), int(most.max())


def test_random_books_clear_as_a_search_does() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        n, levels = (
            int(rng.integers(1, 17)),
            rng.integers(0, TICKS_PER_UNIT + 1, size=6),
        )  # few, to tie
        wanted, ticks = (
            rng.integers(-4 * LOTS_PER_UNIT, 4 * LOTS_PER_UNIT, size=n),
            rng.choice(levels, size=n),
        )
        book = np.zeros((2, TICKS_PER_UNIT + 1), dtype=np.int64)
        np.add.at(book, ((wanted < 0).astype(int), ticks), np.abs(wanted))
        last = int(rng.integers(2 * TICKS_PER_UNIT + 1))
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


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([0, 3, None, None]))
def test_trade_conserves_and_losses_are_gains(seed: int, goods: int, refresh: int | None) -> None:
    """Cash, and goods at what they are worth to their owner, rise by minus the loss of the rich."""
    rich, rng, people = refresh is None, np.random.default_rng(seed), []
    for name, side in (("buyers", 1.0), ("sellers", -1.0)):
        quantity = side * rng.random((12, 3, goods)) * 2
        quantity[:, 0] = 0.0
        limit = rng.integers(0, TICKS_PER_UNIT + 1, (12, 3, goods)) / TICKS_PER_UNIT
        loss, row_of = Trade(quantity, limit).normalised(), np.arange(12)
        people.append(SimpleNamespace(name=name, loss=loss, row_of=row_of, multiplicity=None))
    poor = {"cash": {"buyers": 2.0}, "refresh": refresh, "outside": 1.5}
    market = CallAuction(people, rng, **({"cash": 1e4, "stock": 1e4} if rich else poor))
    total = market.accounts.totals()
    for _ in range(60):
        actions, before = rng.integers(-1, 3, (2, 12)), market.accounts.state()
        decisions: list[Any] = [Decision(np.zeros((1, 1)), row) for row in actions]
        price = market.clear(rng.random(goods), decisions)
        assert ((price >= 0) & (price <= 1)).all()
        assert (market.accounts.totals() == total).all()
        assert (market.accounts.cash[:-1] >= 0).all()
        assert (market.accounts.goods[:-1] >= 0).all()
        if rich:
            held = market.accounts.goods[:-1] - before["goods"][:-1]
            limit = market.chosen([one.loss.limit for one in people], decisions)
            gained = market.accounts.cash[:-1] - before["cash"][:-1] + (held * limit).sum(1)
            of = [one.loss for one in people]
            own = [f.unit_offset[:, None] + f.unit_scale[:, None] * f.losses(price) for f in of]
            lost = market.chosen(own, decisions)
            assert gained == pytest.approx(-lost, abs=1.01 * goods / LOTS_PER_UNIT)


# Sealed bids, in which each agent has losses of its own.
VALUED = {"parameters": {"value": [0.4, 0.9], "high": 1.1}}
BIDDERS: dict[str, worlds.Raw] = {
    "followers": {"count": 2},
    "swappers": {"count": 2, "response": "blum-mansour"} | VALUED,
    "gamblers": {"count": 1, "response": "exp3", "enters": 10},
    "poor": {"count": 1, "budget_constraint": True},
    "guests": {"count": 2, "entry_rate": 0.2, "exit_rate": 0.05},
    "scripted": {"count": 1, "response": "own-bidder"},
}
SWAPPERS, POOR, SCRIPTED = (2, 3), 5, 8  # places of agents
CHEAP = np.arange(5) < 3  # bids within anybody's means


@register.market("own-first-price")
class OwnFirstPrice(FirstPrice):
    """Knows what is within anybody's means."""

    def affordable(self, place: int) -> Any:
        return np.tile(CHEAP, (len(self.cohorts[place].row_of), 1))


@register.market("own-second-price")
class OwnSecondPrice(SecondPrice):
    """Knows it, too."""

    affordable = OwnFirstPrice.affordable


@register.agent("own-bidder")
class Bidder(ScriptedAgent):
    """Bids at random, and writes down what it is told."""

    def arrive(self) -> None:
        self.told: list[Any] = []

    def act(self, forecast: Any, context: Any) -> int:
        return int(self.rng.integers(5))

    def learn(self, losses: Any, outcome: Any) -> None:
        self.told.append(np.array(losses))


def auction(kind: str, cohorts: dict[str, worlds.Raw], **market: Any) -> Any:
    common = {"utility": "bidder", "actions": 5, "response": "best-response"}
    own = [common | {"name": name} | one for name, one in cohorts.items()]
    given = {"adversary": {"kind": "iid", "outcomes": 1}, "market": {"kind": kind} | market}
    return worlds.scenario(*own, seed=5, windows={"every": 10}, **given).build()


def gained(market: Any, bids: list[float], who: int) -> float:
    """Clear an auction by plain sorting, and return what one bidder gains."""
    ranked = sorted(range(len(bids)), key=lambda i: (-bids[i], market.lot[i]))
    winners = [i for i in ranked[: market.units] if bids[i] >= market._floor]
    lost = [bids[i] for i in ranked if i not in winners]
    paid = bids[who] if isinstance(market, FirstPrice) else max([market._floor, *lost])
    return market.value[who] - paid if who in winners else 0.0


def by_hand(model: Any) -> dict[int, list[Any]]:
    """Clear again for each bid: losses and strategies of each round of each agent (n, 5)."""
    market, cohorts, log = model.game.market, model.game.cohorts, {}
    for _ in range(model.rounds):
        mixed = cohorts[1].learner.play().copy()
        model.step()
        grids = np.concatenate(market._shares) * market._scale[:, None]
        actions = np.concatenate([model.last_actions(i) for i in range(len(cohorts))])
        bids = np.where(actions < 0, -1.0, grids[np.arange(9), actions]).tolist()
        for i in np.flatnonzero(actions >= 0).tolist():
            gains = [gained(market, [*bids[:i], b, *bids[i + 1 :]], i) for b in grids[i]]
            lost, played = (1 - np.array(gains)) / 2, np.eye(5)[actions[i]]
            if i == POOR:  # what it cannot afford is worth what it played
                lost = np.where(CHEAP, lost, lost @ played)
            played = mixed[SWAPPERS.index(i)] if i in SWAPPERS else played
            log.setdefault(i, []).append((lost, played))
    return {i: [np.array(part) for part in zip(*rows, strict=True)] for i, rows in log.items()}


@pytest.mark.parametrize("kind", ["own-first-price", "own-second-price"])
@pytest.mark.parametrize(("units", "reserve"), [(1, 0.0), (2, 0.4), (6, 0.0)])
def test_measures_are_those_of_clearing_for_each_bid(kind: str, units: int, reserve: float) -> None:
    """Regrets, also of a window; exploitability of the joint of actions and vectors of losses."""
    model = auction(kind, BIDDERS, units=units, reserve=reserve, redraw=units < 6)
    hand, table, exploited = by_hand(model), model.agents_frame(), []
    assert (table["loss_scale"] == 2).all()
    assert set(hand) == set(np.flatnonzero(table["mean_loss"].notna()))
    assert len(hand) >= 8
    windows = model.windows_frame().query("last == 59").set_index("agent")["swap_regret"]
    assert model.game.cohorts[-1].agents[0].told == pytest.approx(hand[SCRIPTED][0])
    for i, (losses, play) in hand.items():
        found = table.loc[i, [f"{name}_regret" for name in worlds.FEW]].to_numpy(float)
        assert found == pytest.approx(worlds.regrets(losses, play)[1:], abs=1e-12)
        assert losses.std() > 0
        if len(losses) == 60:
            assert windows[i + 1] == pytest.approx(swap_regret(losses[-10:], play[-10:]))
        vectors, which = np.unique(losses, axis=0, return_inverse=True)
        joint = np.zeros(vectors.shape)
        np.add.at(joint, which.ravel(), play / len(play))
        for name, tolerance in (("exploitability_exact", 0.0), ("exploitability", 0.01)):
            exploited.append(exploitability(joint, vectors, tolerance))
            assert table.loc[i, name] == pytest.approx(exploited[-1], abs=1e-6)
    assert max(exploited) > 0.1
    assert (table["guarantee"] == "none").all()
    assert table[["bound", "bound_from_variation"]].isna().all(axis=None)
    assert "the losses of each agent depend on more" in model.guarantees[0].note
    assert (table["decision_swap_regret"] <= table["bound_from_bias"] + 1e-12)[:2].all()


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("dear", r"[0-9.]+; for cohort.followers return "),
        ("short", r"an array \(1, 5\); for cohort.foll"),
        ("joined", r"array.*; return a list with an array, or None, for each of 6"),
    ],
)
def test_losses_that_do_not_fit_are_named(how: str, says: str) -> None:
    class Wrong(OwnFirstPrice):
        """Returns what is none of its agents' losses."""

        def losses(self, decisions: Any) -> Any:
            own = super().losses(decisions)
            wrong = {"dear": [100 * table for table in own], "short": [table[:1] for table in own]}
            return wrong.get(how, np.concatenate(own))

    model = auction("own-first-price", BIDDERS)
    model.replace(market=Wrong(model.game.cohorts, np.random.default_rng(0)))
    with pytest.raises(UserError, match=rf"Wrong.losses returned {says}"):
        model.run()


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
        model = auction(kind, {"few": {"count": 4, "response": "exp3"}}, units=2)
        table = np.zeros((60, 4, 5))
        for t in range(60):
            model.step()
            table[t] = model.game.market.losses([None])[0]
        worst[kind] = (table[..., -1] - table.min(-1)).max()
    assert worst["second-price"] <= 1e-12
    assert worst["first-price"] > 0.05


def test_followers_bid_where_their_believed_gain_is_greatest() -> None:
    """(v - b) (1/2 + b - y) is greatest at b = (v + y - 1/2) / 2, and b = y at v - 1/2."""
    model = auction("first-price", {"few": {"count": 3, "actions": 41}}, redraw=False)
    model.run(30)
    assert model.rounds_frame()["y_0"].iloc[-1] == pytest.approx(0.5, abs=0.03)
    assert (model.agents_frame()["guarantee"] == "none").all()
