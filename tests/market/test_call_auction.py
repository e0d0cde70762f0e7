"""Call auctions against a search over all prices; sealed bids cleared again for each bid."""

from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_measures import mean_loss_and_regrets
from small_scenarios import TomlTable, make_scenario

from regretless import MarketModel, UserError, exploitability, load, register, swap_regret
from regretless.agents import ScriptedAgent
from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.losses import Trade
from regretless.market.markets.call_auction import (
    LOTS_PER_UNIT,
    TICKS_PER_UNIT,
    CallAuction,
    chosen_orders,
    clear_goods,
    clearing,
    covered_orders,
    fill,
    shares,
)
from regretless.market.markets.sealed_bids import FirstPrice, SealedBids, SecondPrice
from regretless.market.records import Context, Decision, Forecast

# Prices are whole numbers of half ticks, 0 to 2 * TICKS_PER_UNIT; limits are whole ticks.


class OrderBook(NamedTuple):
    """Orders at a single good, and the last price."""

    wanted: Indices  # lots of each order (n,), below 0 to sell
    limits: Indices  # ticks (n,)
    last_price: int  # half ticks

    def by_tick(self) -> Array:
        """Return the lots (2, ticks) to be bought and to be sold at each limit."""
        lots = np.zeros((2, TICKS_PER_UNIT + 1), dtype=np.int64)
        is_sale = (self.wanted < 0).astype(int)
        np.add.at(lots, (is_sale, self.limits), np.abs(self.wanted))
        return lots


def random_book(seed: int) -> OrderBook:
    """Draw up to 16 orders at six limits, few enough to tie."""
    rng = np.random.default_rng(seed)
    orders = int(rng.integers(1, 17))
    limits = rng.integers(0, TICKS_PER_UNIT + 1, size=6)
    return OrderBook(
        wanted=rng.integers(-4 * LOTS_PER_UNIT, 4 * LOTS_PER_UNIT, size=orders),
        limits=rng.choice(limits, size=orders),
        last_price=int(rng.integers(2 * TICKS_PER_UNIT + 1)),
    )


def clear_by_search(book: OrderBook) -> tuple[float, int]:
    """Try all ticks and the prices between; return the middle of those that clear, and the volume.

    Where nothing trades the price is the one nearest to the last.
    """
    prices = np.arange(2 * TICKS_PER_UNIT + 1)[:, None]
    limits = 2 * book.limits
    bought = np.maximum(book.wanted, 0)
    sold = np.maximum(-book.wanted, 0)
    demand = (bought * (limits >= prices)).sum(1)
    demand_of_gainers = (bought * (limits > prices)).sum(1)
    supply = (sold * (limits <= prices)).sum(1)
    supply_of_gainers = (sold * (limits < prices)).sum(1)
    clears = (demand_of_gainers <= supply) & (supply_of_gainers <= demand)
    clearing_prices = np.flatnonzero(clears)
    lowest = clearing_prices[0]
    highest = clearing_prices[-1]
    volume = int(np.minimum(demand, supply).max())
    if volume:
        return float(lowest + highest) / 2, volume
    return float(np.clip(book.last_price, lowest, highest)), 0


BOOKS = 300


def test_random_books_clear_at_the_price_and_volume_of_a_search() -> None:
    for seed in range(BOOKS):
        book = random_book(seed)
        assert clearing(*book.by_tick(), book.last_price) == clear_by_search(book), f"book {seed}"


class Fill(NamedTuple):
    """What each order traded at a price, and what all but the last gained."""

    book: OrderBook
    price: float
    volume: int
    traded: Indices
    gained: float


@cache
def filled_books() -> list[Fill]:
    fills = []
    for seed in range(BOOKS):
        book = random_book(seed)
        price, volume = clearing(*book.by_tick(), book.last_price)
        parts = shares(price, volume, *book.by_tick())
        traded = np.empty_like(book.wanted)
        gained = fill(book.wanted, book.limits, price, parts, traded)
        fills.append(Fill(book, price, volume, traded, gained))
    return fills


def test_as_much_is_sold_as_bought() -> None:
    for book, _, volume, traded, _ in filled_books():
        assert traded[book.wanted > 0].sum() == volume
        assert -traded[book.wanted < 0].sum() == volume


def test_no_order_trades_more_than_it_wants() -> None:
    for book, _, _, traded, _ in filled_books():
        assert (traded * np.sign(book.wanted) >= 0).all()
        assert (np.abs(traded) <= np.abs(book.wanted)).all()


def test_no_order_trades_at_a_loss() -> None:
    for book, price, _, traded, _ in filled_books():
        gain_per_lot = np.sign(book.wanted) * (2 * book.limits - price)
        assert (traded[gain_per_lot < 0] == 0).all()


def test_only_orders_that_gain_nothing_are_rationed() -> None:
    for book, price, _, traded, _ in filled_books():
        gain_per_lot = np.sign(book.wanted) * (2 * book.limits - price)
        assert (traded == book.wanted)[gain_per_lot > 0].all()


def test_gains_from_trade_are_those_of_all_orders_but_of_the_world_outside() -> None:
    """The last order is that of the world outside."""
    for book, price, _, traded, gained in filled_books():
        assert gained == (traded * (2 * book.limits - price))[:-1].sum()


def test_each_good_clears_as_it_would_by_itself() -> None:
    books = [book for book in (random_book(seed) for seed in range(40)) if len(book.wanted) == 8]
    orders = np.stack([book.wanted for book in books], axis=1)
    limits = np.stack([book.limits for book in books], axis=1)
    last_prices = np.array([book.last_price for book in books])
    traded, prices, volumes, gained = clear_goods(orders, limits, last_prices)

    gained_of_goods = 0
    for good, book in enumerate(books):
        assert (prices[good], volumes[good]) == clear_by_search(book)
        traded_alone = np.empty_like(book.wanted)
        rationing = shares(prices[good], volumes[good], *book.by_tick())
        gained_of_goods += fill(book.wanted, book.limits, prices[good], rationing, traded_alone)
        assert (traded[:, good] == traded_alone).all()
    assert gained == gained_of_goods


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), agents=st.integers(1, 9), goods=st.integers(1, 3))
def test_orders_are_cut_to_what_cash_and_stocks_cover(seed: int, agents: int, goods: int) -> None:
    rng = np.random.default_rng(seed)
    units = rng.uniform(-2, 2, size=(agents, goods))
    limits = rng.integers(0, TICKS_PER_UNIT + 1, size=(agents, goods)) / TICKS_PER_UNIT
    cash = rng.uniform(0, 2, size=agents + 1)
    stocks = rng.uniform(0, 2, size=(agents + 1, goods))
    outside_units = rng.uniform(-2, 2, size=goods)
    orders, ticks = covered_orders(units, limits, cash, stocks, outside_units)

    bought = np.maximum(units, 0)
    cost = (bought * limits).sum(1)
    affordable_share = np.minimum(1, cash[:-1] / np.maximum(cost, 1e-300))
    lots_bought = np.floor(bought * affordable_share[:, None] * LOTS_PER_UNIT)
    lots_sold = np.floor(np.minimum(np.maximum(-units, 0), stocks[:-1]) * LOTS_PER_UNIT)
    assert (orders[:-1] == lots_bought - lots_sold).all()
    assert (ticks[:-1] == limits * TICKS_PER_UNIT).all()
    assert (orders[-1] == np.rint(outside_units * LOTS_PER_UNIT)).all()
    assert (ticks[-1] == np.where(orders[-1] > 0, TICKS_PER_UNIT, 0)).all(), "not at any price"


def test_agents_send_the_orders_of_their_actions_and_who_is_absent_none() -> None:
    rng = np.random.default_rng(0)
    units_of_actions = rng.normal(size=(3, 4, 2))  # rows x actions x goods
    limits_of_actions = rng.random((3, 4, 2))
    row_of_agent = np.array([2, 0, 0, 1])
    actions = np.array([3, -1, 1, 0])

    units, limits = chosen_orders(
        np.stack([units_of_actions, limits_of_actions], axis=2), row_of_agent, actions
    )

    is_here = (actions >= 0)[:, np.newaxis]
    expected_units = np.where(is_here, units_of_actions[row_of_agent, actions], 0.0)
    expected_limits = np.where(is_here, limits_of_actions[row_of_agent, actions], 0.0)
    assert np.array_equal(units, expected_units)
    assert np.array_equal(limits, expected_limits)


def traders(rng: np.random.Generator, goods: int) -> list[SimpleNamespace]:
    """Return as much of cohorts of twelve buyers and twelve sellers as an auction looks at."""
    cohorts = []
    for name, side in (("buyers", 1.0), ("sellers", -1.0)):
        quantity = side * rng.random((12, 3, goods)) * 2
        quantity[:, 0] = 0.0
        limit = rng.integers(0, TICKS_PER_UNIT + 1, (12, 3, goods)) / TICKS_PER_UNIT
        loss = Trade(quantity, limit).normalised()
        cohorts.append(
            SimpleNamespace(name=name, loss=loss, row_of=np.arange(12), multiplicity=None)
        )
    return cohorts


def random_decisions(rng: np.random.Generator) -> list[Decision]:
    """Draw an action, or absence, of each trader."""
    actions = rng.integers(-1, 3, (2, 12))
    return [Decision(np.zeros((1, 1)), actions_of_cohort) for actions_of_cohort in actions]


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([0, 3, None]))
def test_an_auction_conserves_cash_and_goods_and_lets_nobody_overspend(
    seed: int, goods: int, refresh: int | None
) -> None:
    """Also of agents who are poor, and restored every third round or never."""
    rng = np.random.default_rng(seed)
    endowment: TomlTable = {"cash": 1e4, "stock": 1e4}
    if refresh is not None:
        endowment = {"cash": {"buyers": 2.0}, "refresh": refresh, "outside": 1.5}
    market = CallAuction(traders(rng, goods), rng, **endowment)  # type: ignore[arg-type]
    totals = market.accounts.totals()
    for _ in range(60):
        decisions = random_decisions(rng)
        price = market.clear(rng.random(goods), decisions)
        assert (price >= 0).all()
        assert (price <= 1).all()
        assert (market.accounts.totals() == totals).all()
        assert (market.accounts.cash[:-1] >= 0).all()
        assert (market.accounts.goods[:-1] >= 0).all()


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_the_loss_at_the_price_is_minus_what_the_order_gained(seed: int, goods: int) -> None:
    """Cash, and goods at what they are worth to their owner, rise so where nobody is poor."""
    rng = np.random.default_rng(seed)
    cohorts = traders(rng, goods)
    market = CallAuction(cohorts, rng, cash=1e4, stock=1e4)  # type: ignore[arg-type]
    limits_by_cohort = [cohort.loss.limit for cohort in cohorts]
    for _ in range(60):
        decisions = random_decisions(rng)
        cash_before = market.accounts.cash[:-1].copy()
        goods_before = market.accounts.goods[:-1].copy()
        price = market.clear(rng.random(goods), decisions)

        worth = market.chosen(limits_by_cohort, decisions)
        bought = market.accounts.goods[:-1] - goods_before
        gained = market.accounts.cash[:-1] - cash_before + (bought * worth).sum(1)

        losses_by_cohort = []
        for cohort in cohorts:
            loss = cohort.loss
            losses = loss.unit_offset[:, None] + loss.unit_scale[:, None] * loss.losses(price)
            losses_by_cohort.append(losses)
        lost = market.chosen(losses_by_cohort, decisions)
        assert gained == pytest.approx(-lost, abs=1.01 * goods / LOTS_PER_UNIT)


# Sealed bids, in which each agent has losses of its own.
BIDS = 5  # actions
ROUNDS = 60
WINDOW = 10  # rounds
VALUES = {"parameters": {"value": [0.4, 0.9], "high": 1.1}}
BIDDERS: dict[str, TomlTable] = {
    "followers": {"count": 2},
    "swappers": {"count": 2, "response": "blum-mansour"} | VALUES,
    "gamblers": {"count": 1, "response": "exp3", "enters": 10},
    "poor": {"count": 1, "budget_constraint": True},
    "guests": {"count": 2, "entry_rate": 0.2, "exit_rate": 0.05},
    "scripted": {"count": 1, "response": "own-bidder"},
}
FOLLOWERS = [0, 1]  # agents, counted through all cohorts from 0
SWAPPERS = [2, 3]
POOR = 5
SCRIPTED = 8
IS_AFFORDABLE = np.arange(BIDS) < 3  # bids within anybody's means


@register.market("own-first-price")
class OwnFirstPrice(FirstPrice):
    """Knows what is within anybody's means."""

    def affordable(self, cohort_index: int) -> Mask:
        return np.tile(IS_AFFORDABLE, (len(self.cohorts[cohort_index].row_of), 1))


@register.market("own-second-price")
class OwnSecondPrice(SecondPrice):
    """Knows it, too."""

    def affordable(self, cohort_index: int) -> Mask:
        return np.tile(IS_AFFORDABLE, (len(self.cohorts[cohort_index].row_of), 1))


@register.agent("own-bidder")
class Bidder(ScriptedAgent):
    """Bids at random, and writes down which losses it hears of."""

    def arrive(self) -> None:
        self.losses_heard: list[Array] = []

    def act(self, forecast: Forecast, context: Context) -> int:
        return int(self.rng.integers(BIDS))

    def learn(self, losses: Array, outcome: Array) -> None:
        self.losses_heard.append(np.array(losses))


def auction(kind: str, cohorts: dict[str, TomlTable], **market_keys: object) -> MarketModel:
    """Build an auction of 60 rounds; bidders are best responders unless a cohort says more."""
    tables = []
    for name, keys in cohorts.items():
        defaults = {"utility": "bidder", "actions": BIDS, "response": "best-response"}
        tables.append(defaults | {"name": name} | keys)
    return make_scenario(
        *tables,
        rounds=ROUNDS,
        seed=5,
        windows={"every": WINDOW},
        adversary={"kind": "iid", "outcomes": 1},
        market={"kind": kind} | market_keys,
    ).build()


def gain_of_bidder(market: SealedBids, bids: Sequence[float], bidder: int) -> float:
    """Clear an auction by plain sorting, and return what one bidder gains."""
    ranked = sorted(range(len(bids)), key=lambda agent: (-bids[agent], market.lot[agent]))
    winners = [agent for agent in ranked[: market.units] if bids[agent] >= market._floor]
    losing_bids = [bids[agent] for agent in ranked if agent not in winners]
    if bidder not in winners:
        return 0.0
    if isinstance(market, FirstPrice):
        return float(market.value[bidder] - bids[bidder])
    return float(market.value[bidder] - max([market._floor, *losing_bids]))


class BidderLog(NamedTuple):
    """What each bid of a bidder would have lost in its rounds, and its strategies."""

    losses: Array  # (n, BIDS)
    play: Array  # (n, BIDS)


class AuctionByHand(NamedTuple):
    """A played auction, its table of agents, and the log of each agent, made by hand."""

    model: MarketModel
    agents: pd.DataFrame
    logs: dict[int, BidderLog]


def losses_of_bids(
    market: SealedBids, bids: Sequence[float], bidder: int, own_bids: Array
) -> Array:
    """Clear again for each bid that a bidder could make, and return its losses (BIDS,)."""
    gains = []
    for own_bid in own_bids:
        changed_bids = [*bids[:bidder], own_bid, *bids[bidder + 1 :]]
        gains.append(gain_of_bidder(market, changed_bids, bidder))
    return (1 - np.array(gains)) / 2


@cache
def auction_by_hand(kind: str, units: int, reserve: float) -> AuctionByHand:
    """Play an auction, and clear every round again for each bid of each bidder."""
    model = auction(kind, BIDDERS, units=units, reserve=reserve, redraw=units < 6)
    market = model.game.market
    cohorts = model.game.cohorts
    losses: dict[int, list[Array]] = {}
    play: dict[int, list[Array]] = {}
    for _ in range(ROUNDS):
        strategies_of_swappers = cohorts[1].learner.play().copy()
        model.step()
        possible_bids = np.concatenate(market._bids_of_cohorts) * market._scale[:, None]
        actions = np.concatenate([model.last_actions(index) for index in range(len(cohorts))])
        bids = np.where(actions < 0, -1.0, possible_bids[np.arange(9), actions]).tolist()
        for agent in np.flatnonzero(actions >= 0).tolist():
            strategy = np.eye(BIDS)[actions[agent]]
            losses_of_agent = losses_of_bids(market, bids, agent, possible_bids[agent])
            if agent == POOR:  # what it cannot afford is worth what it played
                losses_of_agent = np.where(
                    IS_AFFORDABLE, losses_of_agent, losses_of_agent @ strategy
                )
            if agent in SWAPPERS:
                strategy = strategies_of_swappers[SWAPPERS.index(agent)]
            losses.setdefault(agent, []).append(losses_of_agent)
            play.setdefault(agent, []).append(strategy)
    logs = {agent: BidderLog(np.array(losses[agent]), np.array(play[agent])) for agent in losses}
    return AuctionByHand(model, model.agents_frame(), logs)


every_kind = pytest.mark.parametrize("kind", ["own-first-price", "own-second-price"])
every_size = pytest.mark.parametrize(("units", "reserve"), [(1, 0.0), (2, 0.4), (6, 0.0)])


@every_kind
@every_size
def test_bidders_who_come_are_measured_in_units_of_two(
    kind: str, units: int, reserve: float
) -> None:
    """Gains lie in [-1, 1], of which losses are the half."""
    _, agents, logs = auction_by_hand(kind, units, reserve)
    assert (agents["loss_scale"] == 2).all()
    assert len(logs) >= 8
    assert set(logs) == set(np.flatnonzero(agents["mean_loss"].notna()))


@every_kind
@every_size
def test_a_bidder_of_ones_own_hears_the_losses_of_clearing_for_each_bid(
    kind: str, units: int, reserve: float
) -> None:
    model, _, logs = auction_by_hand(kind, units, reserve)
    (bidder,) = model.game.cohorts[-1].agents
    assert bidder.losses_heard == pytest.approx(logs[SCRIPTED].losses)


@every_kind
@every_size
def test_regrets_of_bidders_are_those_of_clearing_for_each_bid(
    kind: str, units: int, reserve: float
) -> None:
    _, agents, logs = auction_by_hand(kind, units, reserve)
    columns = ["external_regret", "swap_regret", "decision_swap_regret"]
    for agent, (losses, play) in logs.items():
        assert losses.std() > 0
        _, *expected = mean_loss_and_regrets(losses, play)
        measured = agents.loc[agent, columns].to_numpy(float)
        assert measured == pytest.approx(expected, abs=1e-12), f"agent {agent}"


@every_kind
@every_size
def test_regret_in_a_window_is_that_of_its_rounds(kind: str, units: int, reserve: float) -> None:
    model, _, logs = auction_by_hand(kind, units, reserve)
    last_window = model.windows_frame().query(f"last == {ROUNDS - 1}").set_index("agent")
    for agent, (losses, play) in logs.items():
        if len(losses) == ROUNDS:
            expected = swap_regret(losses[-WINDOW:], play[-WINDOW:])
            assert last_window["swap_regret"][agent + 1] == pytest.approx(expected)


@every_kind
@every_size
@pytest.mark.parametrize(
    ("column", "tolerance"), [("exploitability_exact", 0.0), ("exploitability", 0.01)]
)
def test_exploitability_of_bidders_is_that_of_actions_and_vectors_of_losses(
    kind: str, units: int, reserve: float, column: str, tolerance: float
) -> None:
    _, agents, logs = auction_by_hand(kind, units, reserve)
    for agent, (losses, play) in logs.items():
        vectors, vector_of_round = np.unique(losses, axis=0, return_inverse=True)
        joint = np.zeros(vectors.shape)
        np.add.at(joint, vector_of_round.ravel(), play / len(play))
        expected = exploitability(joint, vectors, tolerance)
        assert agents.loc[agent, column] == pytest.approx(expected, abs=1e-6), f"agent {agent}"
    assert agents["exploitability_exact"].max() > 0.1


@every_kind
@every_size
def test_bidders_are_promised_nothing_and_biases_still_bound_the_regret_of_followers(
    kind: str, units: int, reserve: float
) -> None:
    model, agents, _ = auction_by_hand(kind, units, reserve)
    assert (agents["guarantee"] == "none").all()
    assert agents[["bound", "bound_from_variation"]].isna().all(axis=None)
    assert "the losses of each agent depend on more" in model.guarantees[0].note
    followers = agents.loc[FOLLOWERS]
    assert (followers["decision_swap_regret"] <= followers["bound_from_bias"] + 1e-12).all()


class TooGreatLosses(OwnFirstPrice):
    """Returns losses that are far above 1."""

    def losses(self, decisions: Sequence[Decision | None]) -> list[Array]:
        return [100 * table for table in super().losses(decisions)]


class TooFewRows(OwnFirstPrice):
    """Returns the losses of each cohort's first agent alone."""

    def losses(self, decisions: Sequence[Decision | None]) -> list[Array]:
        return [table[:1] for table in super().losses(decisions)]


class JoinedLosses(OwnFirstPrice):
    """Returns one array of all cohorts."""

    def losses(self, decisions: Sequence[Decision | None]) -> Array:  # type: ignore[override]
        return np.concatenate(super().losses(decisions))


@pytest.mark.parametrize(
    ("market", "message"),
    [
        (TooGreatLosses, r"[0-9.]+; for cohort.followers return "),
        (TooFewRows, r"an array \(1, 5\); for cohort.foll"),
        (JoinedLosses, r"array.*; return a list with an array, or None, for each of 6"),
    ],
    ids=["losses above 1", "too few rows", "one array for all cohorts"],
)
def test_a_market_whose_losses_mean_nothing_is_refused_by_its_name(
    market: type[OwnFirstPrice], message: str
) -> None:
    model = auction("own-first-price", BIDDERS)
    model.replace(market=market(model.game.cohorts, np.random.default_rng(0)))
    with pytest.raises(UserError, match=rf"{market.__name__}.losses returned {message}"):
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
    times_bid_before = ledger.count.copy()
    model.run(1500)
    times_bid = ledger.count - times_bid_before
    share_of_bid = np.linspace(0, 1, times_bid.shape[1])
    mean_share = times_bid @ share_of_bid / times_bid.sum(1)
    assert np.abs(mean_share - (bidders - 1) / bidders).max() < 0.08
    assert model.agents_frame()["swap_regret"].max() < 0.003
    assert model.game.market.described()["efficiency"] > 0.97


def greatest_regret_of_truth(kind: str) -> float:
    """Return the most that any bidder who bids its value could have gained by another bid."""
    model = auction(kind, {"few": {"count": 4, "response": "exp3"}}, units=2)
    regrets = []
    for _ in range(ROUNDS):
        model.step()
        (losses,) = model.game.market.losses([None])
        loss_of_truth = losses[:, -1]
        regrets.append((loss_of_truth - losses.min(1)).max())
    return float(max(regrets))


def test_truth_regrets_nothing_at_the_second_price_whatever_the_others_bid() -> None:
    assert greatest_regret_of_truth("second-price") <= 1e-12


def test_winners_who_bid_their_value_at_the_first_price_would_rather_bid_less() -> None:
    assert greatest_regret_of_truth("first-price") > 0.05


def test_followers_bid_where_their_believed_gain_is_greatest() -> None:
    """(v - b) (1/2 + b - y) is greatest at b = (v + y - 1/2) / 2, and b = y at v - 1/2."""
    model = auction("first-price", {"few": {"count": 3, "actions": 41}}, redraw=False)
    model.run(30)
    assert model.rounds_frame()["y_0"].iloc[-1] == pytest.approx(0.5, abs=0.03)
    assert (model.agents_frame()["guarantee"] == "none").all()
