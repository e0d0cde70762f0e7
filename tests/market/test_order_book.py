"""The order book against a plain one, which clears again for each action, and what it must keep."""

from collections.abc import Callable, Sequence
from dataclasses import FrozenInstanceError, dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from log_measures import mean_loss_and_regrets
from run_files import FinishedRun
from small_scenarios import TomlTable, play_to_end, read_scenario

from regretless import MarketModel, load, register
from regretless.agents import ScriptedAgent
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.randomness import stream
from regretless.market.losses.orders import Orders
from regretless.market.markets import order_book, order_book_matching
from regretless.market.markets.order_book import OrderBook
from regretless.market.records import Context, Forecast
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.logs.run_directory import read_run
from regretless.scenarios.report import market_figures  # noqa: F401 - registered
from regretless.scenarios.report.figures import Run, draw_figures
from regretless.scenarios.run import Options, run

BUYS = 1
SELLS = -1


@dataclass
class Order:
    """One order; ``units`` are what is left of it, ``entered`` its round, ``kept`` if it rests."""

    owner: int
    good: int
    side: int  # BUYS or SELLS
    limit: float
    units: float
    entered: int
    kept: bool


@dataclass
class Owner:
    """What an agent owns, how much it may trade in a round and hold, and what it has traded."""

    cash: float
    goods: list[float]
    most_traded: float
    most_held: float
    traded: float = 0.0


class Message(NamedTuple):
    """What an agent does in a round: its orders, and whether its older ones stay open."""

    orders: list[Order]
    keeps: bool


Messages = Callable[[int], Message]  # by agent


def units_of(orders: Sequence[Order]) -> float:
    return sum(order.units for order in orders)


@dataclass
class PlainBook:
    """The rules, who owns what, and the open orders, oldest first: lists, and nothing compiled.

    It is played beside the market, and again for each action of each agent. All amounts are
    binary fractions of few digits, so that floats are exact.
    """

    owners: list[Owner]
    maker_fee: float
    taker_fee: float
    is_batch: bool
    tick: float
    lot: float
    last_prices: list[float]
    orders: list[Order]
    refused: int = 0

    def cash_at_risk(self, order: Order) -> float:
        """Cash that an open order may take, with the most that a trade may cost beside."""
        fee = max(self.maker_fee, self.taker_fee, 0.0)
        return order.units * max(0.0, order.side * order.limit + fee)

    def rivals(self, order: Order) -> list[Order]:
        """Orders that an order would trade with, the best price first, then the oldest."""
        rivals = []
        for other in self.orders:
            is_opposite = other.good == order.good and other.side == -order.side
            if is_opposite and order.side * (order.limit - other.limit) >= 0:
                rivals.append(other)
        return sorted(rivals, key=lambda other: order.side * other.limit)

    def cash_taken_at_once(self, order: Order) -> float:
        """Cash that an order which does not rest takes from its owner."""
        units_left = order.units
        cost = 0.0
        for rival in self.rivals(order):
            units = min(units_left, rival.units)
            cost += units * (order.side * rival.limit + self.taker_fee)
            units_left -= units
        return cost

    def accepts(self, order: Order) -> bool:
        """Say whether an order's owner may send it, given its other open orders."""
        owner = self.owners[order.owner]
        open_orders = [other for other in self.orders if other.owner == order.owner]

        units_in_play = owner.traded + units_of(open_orders) + order.units
        if units_in_play > owner.most_traded:
            return False

        competing_orders = [o for o in open_orders if o.good == order.good and o.side == order.side]
        units_alike = units_of(competing_orders) + order.units
        owned = owner.goods[order.good]
        if order.side == BUYS and owned + units_alike > owner.most_held:
            return False
        if order.side == SELLS and units_alike > owned:
            return False

        rests = order.kept or self.is_batch
        cost = self.cash_at_risk(order) if rests else self.cash_taken_at_once(order)
        if cost > owner.cash - sum(map(self.cash_at_risk, open_orders)):
            return False

        would_trade_with_itself = any(o.owner == order.owner for o in self.rivals(order))
        return not would_trade_with_itself

    def settle(self, order: Order, price: float, units: float, fee: float) -> None:
        """Hand over goods and cash."""
        owner = self.owners[order.owner]
        owner.goods[order.good] += order.side * units
        owner.cash -= order.side * units * price + units * fee
        owner.traded += units
        order.units -= units

    def arrive(self, agent: int, message: Message) -> None:
        """Let an agent do something; its orders trade at the prices of those that were there."""
        if not message.keeps:
            self.orders = [order for order in self.orders if order.owner != agent]
        for order in message.orders:
            if not self.accepts(order):
                self.refused += 1
                continue
            if not self.is_batch:
                self.match(order)
            if order.units and (order.kept or self.is_batch):
                self.orders.append(order)

    def match(self, order: Order) -> None:
        """Let an order trade with what is open."""
        for rival in self.rivals(order):
            if order.units:
                units = min(order.units, rival.units)
                price = rival.limit
                self.settle(order, price, units, self.taker_fee)
                self.settle(rival, price, units, self.maker_fee)
                self.last_prices[order.good] = price
        self.orders = [other for other in self.orders if other.units]

    def auction(self, arrivals: list[int], round_index: int) -> None:
        """Clear what is open at one price for each good."""
        self.orders.sort(key=lambda order: arrivals.index(order.owner))
        for good in range(len(self.last_prices)):
            of_good = [order for order in self.orders if order.good == good]
            price = self.clearing_price(of_good, good)
            willing = [order for order in of_good if order.side * (order.limit - price) >= 0]
            buyers = [order for order in willing if order.side == BUYS]
            sellers = [order for order in willing if order.side == SELLS]
            volume = min(units_of(buyers), units_of(sellers))
            if volume:
                self.last_prices[good] = price
                self.share_out(buyers, price, volume, round_index)
                self.share_out(sellers, price, volume, round_index)
        self.orders = [order for order in self.orders if order.units]

    def clearing_price(self, orders: list[Order], good: int) -> float:
        """Return the middle of the prices at which nobody is left wanting; the last, if it may."""

        def bought_from(price: float) -> float:
            return units_of([o for o in orders if o.side == BUYS and o.limit >= price])

        def sold_up_to(price: float) -> float:
            return units_of([o for o in orders if o.side == SELLS and o.limit <= price])

        def clears(price: float) -> bool:
            unmet_demand = bought_from(price + self.tick) > sold_up_to(price)
            unmet_supply = sold_up_to(price - self.tick) > bought_from(price)
            return not unmet_demand and not unmet_supply

        all_prices = np.arange(0, 1 + self.tick, self.tick).tolist()
        clearing_prices = [price for price in all_prices if clears(price)]
        low = min(clearing_prices)
        high = max(clearing_prices)
        something_trades = any(bought_from(o.limit) for o in orders if o.side == SELLS)
        if something_trades:
            return float(low + high) / 2
        return float(min(max(self.last_prices[good], low), high))

    def share_out(self, orders: list[Order], price: float, volume: float, round_index: int) -> None:
        """Fill better orders, and those at the price in proportion, by running sums of lots."""
        at_the_price = [order for order in orders if order.limit == price]
        better = [order for order in orders if order.limit != price]
        wanted_at_the_price = units_of(at_the_price)
        volume_at_the_price = volume - units_of(better)

        def lots_of_first(units: float) -> float:
            return units * volume_at_the_price // (wanted_at_the_price * self.lot)

        units_before = 0.0
        for order in orders:
            units = order.units
            if order.limit == price:
                units_until = units_before + order.units
                units = (lots_of_first(units_until) - lots_of_first(units_before)) * self.lot
                units_before = units_until
            was_there_before = order.kept and order.entered < round_index
            fee = self.maker_fee if was_there_before else self.taker_fee
            self.settle(order, price, units, fee)

    def play(self, arrivals: list[int], messages: Messages, round_index: int) -> None:
        for owner in self.owners:
            owner.traded = 0.0
        for agent in arrivals:
            self.arrive(agent, messages(agent))
        if self.is_batch:
            self.auction(arrivals, round_index)

    def owners_after(
        self, arrivals: list[int], messages: Messages, round_index: int
    ) -> list[Owner]:
        """Return what everybody would own after a round, which is not played."""
        imagined = replace(
            self,
            owners=[replace(owner, goods=[*owner.goods]) for owner in self.owners],
            orders=[replace(order) for order in self.orders],
            last_prices=[*self.last_prices],
        )
        imagined.play(arrivals, messages, round_index)
        return imagined.owners

    def depth(self, side: int, shape: tuple[int, ...]) -> Array:
        """Return the open units of a side at each tick (goods, ticks + 1)."""
        depth = np.zeros(shape)
        for order in self.orders:
            if order.side == side:
                depth[order.good, round(order.limit / self.tick)] += order.units
        return depth


def traders(
    utility: str, count: int, actions: int, response: str, **parameters: object
) -> TomlTable:
    """Return the keys of a cohort but for its name."""
    return {
        "utility": utility,
        "count": count,
        "actions": actions,
        "response": response,
        "parameters": parameters,
    }


# Rows of a menu are actions: units, limit and asset of each order of an action.
MENU = [
    [0, 0, 0, 0, 0, 0],
    [1, 0.5, 0, -1, 0.75, 0],
    [2, 0.625, 0, 1, 0.25, 0],
    [1, 0.75, 0, -2, 0.375, 0],
    [0, 0.9, 0, 0, 0.2, 0],
]
MENU_OF_TWO_GOODS = [
    [0, 0, 0, 0, 0, 0],
    [1, 0.5, 0, -1, 0.5, 1],
    [1, 0.625, 1, -1, 0.375, 0],
    [2, 1.0, 0, 1, 0.5, 1],
]
VALUES = {"value": [0.2, 0.9], "low": 0.125, "high": 0.875}
TRADERS = traders("orders", 4, 15, "exp3", **VALUES)
MAKERS = traders("quotes", 2, 5, "hedge", value=0.5, size=2.0, high=1.0)
TAKERS = traders("orders", 2, 3, "hedge", common=1.0, size=3.0, rests=False)
KEEPERS = traders("orders", 2, 5, "exp3", value=0.6, menu=MENU, keeps=True, most=6.0)
PAIRS = traders("orders", 4, 4, "exp3", value=[0.3, 0.8], menu=MENU_OF_TWO_GOODS)
MAKER_FEE = -1 / 128
TAKER_FEE = 1 / 64
FEES = {"maker_fee": MAKER_FEE, "taker_fee": TAKER_FEE}
DEAR_FEES = {"maker_fee": 1 / 32, "taker_fee": 1 / 64}


class Case(NamedTuple):
    """A market, its cohorts and its goods."""

    cohorts: list[TomlTable]
    market: TomlTable
    goods: int = 1


MAKERS_FIRST = Case([MAKERS, TAKERS, TRADERS], FEES | {"latency": {"cohort 1": 1}})
TWO_GOODS = Case([PAIRS, PAIRS], {"stock": [3.0, 2.0]} | FEES, goods=2)
TWO_GOODS_IN_QUARTERS = TWO_GOODS._replace(market=TWO_GOODS.market | {"lots": 4})
POOR = Case([TRADERS, MAKERS, TAKERS], {"cash": 1.0, "stock": 2.0, "hold": 3.0} | DEAR_FEES)
CASES = {
    "fees": Case([TRADERS, MAKERS], FEES),
    "makers first": MAKERS_FIRST,
    "poor": POOR,
    "kept": Case([KEEPERS, TRADERS, TAKERS], {"expires": 3} | FEES),
    "short": Case([MAKERS, TAKERS], {"expires": 1, "refresh": 4}),
    "two goods": TWO_GOODS,
    "news": Case([MAKERS, TAKERS, TRADERS], {"centre": "news", "hold": {"cohort 0": 9.0}}),
    "latecomers": Case([TRADERS, MAKERS | {"enters": 4, "exits": 9}], {}),
    "lots": Case([KEEPERS, TRADERS, MAKERS], {"lots": 4}),
}


def book_table(case: Case, *, rounds: int = 11) -> TomlTable:
    cohorts = []
    for number, cohort in enumerate(case.cohorts):
        cohorts.append({"name": f"cohort {number}"} | cohort)
    market = {"kind": "order-book", "cash": 8.0, "stock": 8.0, "ticks": 8} | case.market
    return {
        "name": "book",
        "rounds": rounds,
        "seed": 4,
        "cohort": cohorts,
        "adversary": {"kind": "iid", "outcomes": case.goods},
        "market": market,
    }


def book_scenario(case: Case, *, rounds: int = 11) -> Scenario:
    return read_scenario(book_table(case, rounds=rounds))


class AgentLoss(NamedTuple):
    """The losses of an agent's cohort, and its row in them."""

    loss: Orders
    row: int


def account(market: OrderBook, agent: int) -> tuple[float, list[float]]:
    """Return an agent's cash and goods."""
    return float(market.accounts.cash[agent]), market.accounts.goods[agent].tolist()


class Beside:
    """A plain book that is played beside a market."""

    def __init__(self, model: MarketModel) -> None:
        self.watch(model)
        market = self.market
        lot = 1 / market.lots
        self.agents: list[AgentLoss] = []
        for cohort in model.game.cohorts:
            self.agents += [AgentLoss(cohort.loss, row) for row in range(len(cohort.row_of))]
        owners = []
        for agent, (loss, row) in enumerate(self.agents):
            cash, goods = account(market, agent)
            most_held = int(market._hold_limits[agent]) * lot
            owners.append(Owner(cash, goods, float(loss.max_units[row]), most_held))
        maker_fee, taker_fee = (
            fee * market.lots / 2**22 for fee in (market._maker_fee, market._taker_fee)
        )
        self.book = PlainBook(
            owners=owners,
            maker_fee=maker_fee,
            taker_fee=taker_fee,
            is_batch=market._is_batch,
            tick=1 / market.ticks,
            lot=lot,
            last_prices=[0.5] * market.goods,
            orders=[],
        )

    def watch(self, model: MarketModel) -> None:
        """Play beside this model from now on."""
        self.model = model
        self.market: OrderBook = model.game.market

    def messages(
        self, actions: Indices, round_index: int, shift_of_good: Sequence[float]
    ) -> Messages:
        """Return what tells an agent's orders, and whether older ones are kept."""

        def message_of(agent: int) -> Message:
            loss, row = self.agents[agent]
            action = actions[agent]
            if action < 0:
                return Message([], keeps=False)
            orders = []
            for slot in np.flatnonzero(loss.units[row, action]):
                units = float(loss.units[row, action, slot])
                good = int(loss.asset[row, action, slot])
                limit = float(loss.limit[row, action, slot]) + shift_of_good[good]
                order = Order(
                    owner=agent,
                    good=good,
                    side=int(np.sign(units)),
                    limit=min(max(limit, 0.0), 1.0),
                    units=abs(units),
                    entered=round_index,
                    kept=bool(loss.rests_on_book[row, action]),
                )
                orders.append(order)
            return Message(orders, keeps=bool(loss.keeps_open_orders[row, action]))

        return message_of

    def restock(self) -> None:
        """Give everybody what it began with, and withdraw all orders."""
        initial = zip(self.market._initial_cash, self.market._initial_goods, strict=True)
        for owner, (cash, goods) in zip(self.book.owners, initial, strict=True):
            owner.cash = float(cash)
            owner.goods = goods.tolist()
        self.book.orders = []

    def step(self) -> tuple[list[list[float]], Indices]:
        """Play a round in both.

        Returns what each action of each agent would have gained, of those who were there, and the
        agents' actions.
        """
        market = self.market
        round_index = self.model.played
        if market.refresh and round_index and round_index % market.refresh == 0:
            self.restock()

        self.model.step()
        last_round = self.model.rounds_frame().iloc[-1]
        fundamental = last_round.filter(like="fundamental").to_numpy(float)
        shift_of_good = []
        for value in fundamental:
            ticks_of_news = round((value - 0.5) * market.ticks) * market._centre_follows_news
            shift_of_good.append(ticks_of_news / market.ticks)
        arrivals = market.arrivals.tolist()
        cohorts = range(len(self.model.game.cohorts))
        actions = np.concatenate([self.model.last_actions(cohort) for cohort in cohorts])

        gains: list[list[float]] = []
        for agent, (loss, row) in enumerate(self.agents):
            worth = loss.private_value[row, 0] + loss.common_weight[row] * fundamental
            gains.append([])
            for action in range(loss.actions if actions[agent] >= 0 else 0):
                changed_actions = actions.copy()
                changed_actions[agent] = action
                messages = self.messages(changed_actions, round_index, shift_of_good)
                before = self.book.owners[agent]
                after = self.book.owners_after(arrivals, messages, round_index)[agent]
                bought = np.subtract(after.goods, before.goods)
                gains[-1].append(after.cash - before.cash + float(bought @ worth))

        self.book.play(arrivals, self.messages(actions, round_index, shift_of_good), round_index)
        oldest = round_index + 2 - market.expires if market.expires else 0
        open_orders = [o for o in self.book.orders if o.kept and o.entered >= oldest]
        self.book.orders = open_orders
        return gains, actions


class AfterRound(NamedTuple):
    """What the market and the plain book hold after a round."""

    accounts_of_market: list[tuple[float, list[float]]]
    accounts_of_book: list[tuple[float, list[float]]]
    depth_of_market: list[Array]  # bids and asks
    depth_of_book: list[Array]
    totals: Array


class AgentLog(NamedTuple):
    """What each action of an agent lost and what it played, in the rounds in which it was there."""

    losses: list[Array]
    play: list[Array]


class BesideRun(NamedTuple):
    """A market that was played beside a plain book."""

    model: MarketModel
    book: PlainBook
    initial_totals: Array
    rounds: list[AfterRound]
    logs: dict[int, AgentLog]  # by agent
    trades: int


def compare(beside: Beside) -> AfterRound:
    market = beside.market
    book = beside.book
    view = market.book()
    return AfterRound(
        accounts_of_market=[account(market, agent) for agent in range(len(book.owners))],
        accounts_of_book=[(owner.cash, owner.goods.copy()) for owner in book.owners],
        depth_of_market=[np.array(view.bids), np.array(view.asks)],
        depth_of_book=[
            book.depth(BUYS, np.shape(view.bids)),
            book.depth(SELLS, np.shape(view.asks)),
        ],
        totals=market.accounts.totals(),
    )


@cache
def played_beside(case_name: str, matching: str) -> BesideRun:
    """Play a market beside a plain book; from round 6 on it is one restored from its state."""
    cohorts, market, goods = CASES[case_name]
    scenario = book_scenario(Case(cohorts, market | {"matching": matching}, goods))
    model = scenario.build()
    beside = Beside(model)
    initial_totals = model.game.market.accounts.totals()
    is_bandit: list[bool] = []
    for cohort in model.game.cohorts:
        is_bandit += [cohort.bandit] * len(cohort.row_of)
    rounds: list[AfterRound] = []
    logs: dict[int, AgentLog] = {}
    trades = 0
    for round_index in range(model.rounds):
        if round_index == 6:
            trades += len(model.trades_frame())
            restored = scenario.build()
            restored.restore(model.state())
            model = restored
            beside.watch(model)
        strategies: list[Array] = []
        for cohort in model.game.cohorts:
            strategies.extend(cohort.learner.play())
        gains, actions = beside.step()
        for agent, (loss, row) in enumerate(beside.agents):
            if actions[agent] < 0:
                continue
            losses = (-np.array(gains[agent]) - loss.unit_offset[row]) / loss.unit_scale[row]
            one_hot = np.eye(len(losses))[actions[agent]]
            play = one_hot if is_bandit[agent] else strategies[agent]
            log = logs.setdefault(agent, AgentLog([], []))
            log.losses.append(losses)
            log.play.append(play)
        rounds.append(compare(beside))
    trades += len(model.trades_frame())
    return BesideRun(model, beside.book, initial_totals, rounds, logs, trades)


every_matching = pytest.mark.parametrize("matching", ["continuous", "batch"])
every_case = pytest.mark.parametrize("case_name", CASES)


@every_matching
@every_case
def test_everybody_owns_what_a_plain_book_says(case_name: str, matching: str) -> None:
    played = played_beside(case_name, matching)
    assert played.trades > 5
    for round_index, after in enumerate(played.rounds):
        assert after.accounts_of_market == after.accounts_of_book, f"round {round_index}"


@every_matching
@every_case
def test_the_open_orders_are_those_of_a_plain_book(case_name: str, matching: str) -> None:
    for round_index, after in enumerate(played_beside(case_name, matching).rounds):
        bids, asks = after.depth_of_market
        bids_of_book, asks_of_book = after.depth_of_book
        assert np.array_equal(bids, bids_of_book), f"bids in round {round_index}"
        assert np.array_equal(asks, asks_of_book), f"asks in round {round_index}"


@every_matching
@every_case
def test_trading_conserves_cash_and_goods(case_name: str, matching: str) -> None:
    played = played_beside(case_name, matching)
    for round_index, after in enumerate(played.rounds):
        assert (after.totals == played.initial_totals).all(), f"round {round_index}"


@every_matching
@every_case
def test_regrets_are_those_of_clearing_again_for_each_action(case_name: str, matching: str) -> None:
    played = played_beside(case_name, matching)
    agents = played.model.agents_frame()
    spread_of_losses = 0.0
    for agent, log in played.logs.items():
        losses = np.array(log.losses)
        spread_of_losses += losses.std(0).sum()
        _, external, swap, _ = mean_loss_and_regrets(losses, np.array(log.play))
        measured = agents.loc[agent, ["external_regret", "swap_regret"]].to_numpy(float)
        assert measured == pytest.approx([external, swap], abs=1e-12), f"agent {agent}"
    assert spread_of_losses > 0


@every_matching
@every_case
def test_as_many_orders_are_refused_as_in_a_plain_book(case_name: str, matching: str) -> None:
    played = played_beside(case_name, matching)
    refused = played.model.game.market.described()["refused"] * played.model.rounds
    assert refused == pytest.approx(played.book.refused)
    if case_name == "poor":
        assert refused > 0


@pytest.fixture(scope="module")
def market_of_two_goods() -> MarketModel:
    """Play a market of two goods, which are traded in quarters of a unit."""
    return play_to_end(book_scenario(TWO_GOODS_IN_QUARTERS, rounds=30))


def test_trades_add_up_to_what_changed_hands(market_of_two_goods: MarketModel) -> None:
    before = (
        book_scenario(TWO_GOODS_IN_QUARTERS, rounds=30).build().game.market.accounts.of(slice(0, 8))
    )
    cash = before.cash.copy()
    goods = before.goods.copy()
    for trade in market_of_two_goods.trades_frame().to_dict("records"):
        for party, side in (("buyer", BUYS), ("seller", SELLS)):
            agent = trade[party] - 1
            fee = TAKER_FEE if trade["aggressor"] == party else MAKER_FEE
            cash[agent] -= trade["quantity"] * (side * trade["price"] + fee)
            goods[agent, trade["good"]] += side * trade["quantity"]
    after = market_of_two_goods.game.market.accounts.of(slice(0, 8))
    assert (after.cash == cash).all()
    assert (after.goods == goods).all()


def test_nobody_trades_with_itself(market_of_two_goods: MarketModel) -> None:
    trades = market_of_two_goods.trades_frame()
    assert (trades["buyer"] != trades["seller"]).all()


def test_trades_of_a_round_are_numbered_from_0(market_of_two_goods: MarketModel) -> None:
    by_round = market_of_two_goods.trades_frame().groupby("round")["sequence"]
    assert (by_round.max() + 1 == by_round.count()).all()


def test_the_best_bid_is_below_the_best_ask(market_of_two_goods: MarketModel) -> None:
    quotes = market_of_two_goods.quotes_frame()
    assert len(quotes) == 30 * 2  # for each round and good
    with_bid = quotes.dropna(subset="bid")
    no_ask = 2.0  # above every price
    assert (with_bid["bid"] < with_bid["ask"].fillna(no_ask)).all()


def test_the_depth_of_a_quote_is_what_is_on_the_book_at_its_price(
    market_of_two_goods: MarketModel,
) -> None:
    book = market_of_two_goods.game.market.book()
    last_quotes = market_of_two_goods.quotes_frame().query("round == 29")
    for side, units_by_tick in (("bid", book.bids), ("ask", book.asks)):
        for quote, units in zip(last_quotes.itertuples(), units_by_tick, strict=True):
            price = getattr(quote, side)
            at_price = 0.0 if np.isnan(price) else units[book.prices == price].sum()
            assert getattr(quote, f"{side}_depth") == at_price
    assert last_quotes["bid_depth"].max() > 0, "nobody bids at the end"


def test_a_restored_market_quotes_what_is_on_its_book(market_of_two_goods: MarketModel) -> None:
    market = market_of_two_goods.game.market
    restored = market_of_two_goods.branch().game.market
    restored.restore(market.state())
    quotes = market.extra_tables()["quotes"]
    assert quotes["bid_depth"].any() or quotes["ask_depth"].any(), "nothing is quoted"

    np.testing.assert_equal(restored.extra_tables()["quotes"], quotes)


def test_a_restored_market_quotes_orders_that_expired_after_the_round() -> None:
    """Quotes are those at the end of a round's trade; with ``expires = 1`` no order outlives it."""
    scenario = book_scenario(Case([MAKERS, TAKERS], {"expires": 1}))
    played = play_to_end(scenario).game.market
    restored = scenario.build().game.market
    quotes = played.extra_tables()["quotes"]
    assert quotes["bid_depth"].any() or quotes["ask_depth"].any(), "nothing was quoted"

    restored.restore(played.state())

    np.testing.assert_equal(restored.extra_tables()["quotes"], quotes)
    assert not restored.book().bids.any(), "an order that expired is on the book"


def test_who_asks_for_the_book_twice_in_a_round_sees_one_and_the_same() -> None:
    model = book_scenario(MAKERS_FIRST).build()
    market = model.game.market
    model.step()
    after_first_round = market.book()
    assert market.book() is after_first_round

    model.step()

    assert market.book() is not after_first_round


Tables = dict[str, pd.DataFrame]


def figure_of(tables: Tables, name: str) -> go.Figure | None:
    figures = draw_figures("run", Run({}, tables), [name])
    return figures[name].chart if figures else None


def trace_of(figure: go.Figure | None, name: str) -> go.Scatter:
    assert figure is not None
    return next(trace for trace in figure.data if trace.name == name)


@pytest.fixture
def tables_of_a_run(finished_run: FinishedRun) -> Tables:
    """Return the tables of a run of 300 rounds."""
    _, tables = read_run(finished_run(book_table(MAKERS_FIRST, rounds=300)))
    return dict(tables)


def mid_prices(tables: Tables) -> pd.Series:
    return tables["quotes"].set_index("round")["mid"].ffill()


def test_a_report_shows_the_price_of_every_trade(tables_of_a_run: Tables) -> None:
    dots = trace_of(figure_of(tables_of_a_run, "book"), "trades")
    assert sorted(dots.y) == sorted(tables_of_a_run["trades"]["price"])


def test_a_report_shows_a_spread_though_nobody_sells_in_some_rounds(
    tables_of_a_run: Tables,
) -> None:
    quotes = tables_of_a_run["quotes"].copy()
    quotes.loc[::7, "ask"] = np.nan
    spread = trace_of(figure_of(tables_of_a_run | {"quotes": quotes}, "book"), "spread")
    assert np.isfinite(np.asarray(spread.y)[-5:]).all()


def test_a_report_tells_the_excess_kurtosis_of_price_changes(tables_of_a_run: Tables) -> None:
    change = mid_prices(tables_of_a_run).diff().dropna().to_numpy()
    centred = change - change.mean()
    kurtosis = (centred**4).mean() / (centred**2).mean() ** 2 - 3
    figure = figure_of(tables_of_a_run, "book-facts")
    assert figure is not None
    assert f"{kurtosis:.3g}" in figure.layout.annotations[0].text


def test_a_report_shows_how_squared_price_changes_are_correlated(tables_of_a_run: Tables) -> None:
    squares = mid_prices(tables_of_a_run).diff().dropna().to_numpy() ** 2
    curve = trace_of(figure_of(tables_of_a_run, "book-facts"), "of squared changes")
    for lag in range(1, 21):
        correlation = np.corrcoef(squares[lag:], squares[:-lag])[0, 1]
        assert curve.y[lag - 1] == pytest.approx(correlation), f"lag {lag}"


@pytest.mark.parametrize("lag", [0, 7])
def test_a_report_shows_how_prices_move_after_buyers_or_sellers_insist(
    tables_of_a_run: Tables, lag: int
) -> None:
    """The impact is the mean move in the direction of a round's net flow of orders."""
    prices = mid_prices(tables_of_a_run)
    trades = tables_of_a_run["trades"].query("aggressor != ''")
    signed_units = trades["aggressor"].map({"buyer": 1, "seller": -1}) * trades["quantity"]
    moves = []
    for round_index, flow in signed_units.groupby(trades["round"]).sum().items():
        has_price_before = round_index > prices.index[0]
        if flow and has_price_before and round_index + lag in prices.index:
            move = prices[round_index + lag] - prices[round_index - 1]
            moves.append(np.sign(flow) * move)
    curve = trace_of(figure_of(tables_of_a_run, "book-facts"), "impact")
    assert curve.y[lag] == pytest.approx(np.nanmean(moves))


def test_a_report_of_few_rounds_tells_nothing_of_how_prices_move(tables_of_a_run: Tables) -> None:
    first_rounds = {}
    for name, table in tables_of_a_run.items():
        if "round" in table:
            first_rounds[name] = table.query("round < 30")
    assert figure_of(tables_of_a_run | first_rounds, "book-facts") is None


def test_a_report_without_quotes_shows_no_book(tables_of_a_run: Tables) -> None:
    del tables_of_a_run["quotes"]
    assert figure_of(tables_of_a_run, "book") is None


def scenario_without_trades() -> Scenario:
    """Return a market in which nobody has cash, so that nobody trades."""
    return load("zero-intelligence", rounds=5, seed=1, **{"market.cash": 0})


def test_a_table_of_no_trades_has_the_columns_and_types_of_one_with_trades() -> None:
    no_trades = play_to_end(scenario_without_trades()).trades_frame()
    trades = play_to_end(load("zero-intelligence", rounds=30), seed=1).trades_frame()
    assert len(trades) > 0
    assert len(no_trades) == 0
    assert no_trades.dtypes.equals(trades.dtypes)
    assert no_trades["quantity"].sum() == 0


def test_a_table_of_no_trades_keeps_its_types_when_it_is_written(tmp_path: Path) -> None:
    no_trades = play_to_end(scenario_without_trades()).trades_frame()
    run(scenario_without_trades(), Options(tmp_path / "run"))
    _, tables = read_run(tmp_path / "run")
    assert len(tables["trades"]) == 0
    assert tables["trades"].dtypes.equals(no_trades.dtypes)


def test_followers_choose_price_and_side_by_the_forecast() -> None:
    """Whose unit is worth more than the price that is forecast bids for it, others offer it."""
    tick = 1 / 8  # limits are that far apart
    crowd = traders("orders", 8, 15, "best-response", **VALUES, width=0.25)
    model = book_scenario(Case([crowd, MAKERS], {}), rounds=60).build()
    loss = model.game.cohorts[0].loss
    sides: set[float] = set()
    limits_of_orders: set[float] = set()
    for _ in range(model.rounds):
        model.step()
        forecast = model.forecasts_frame().iloc[-1].filter(regex="^p").to_numpy(float)
        for agent, action in enumerate(model.last_actions(0)):
            units = float(loss.units[agent, action, 0])
            edge = loss.private_value[agent, 0, 0] - forecast[0]
            assert units * edge >= 0 or abs(edge) < tick
            sides.add(units)
            if units:
                limits_of_orders.add(float(loss.limit[agent, action, 0]))
    assert sides >= {-1.0, 1.0}
    assert len(limits_of_orders) > 2
    assert len(model.trades_frame()) > 0
    assert (model.agents_frame()["guarantee"] == "none").all()


@register.agent("book-reader")
class BookReader(ScriptedAgent):
    """Notes the best bid and the best ask, and tries to change the book."""

    def arrive(self) -> None:
        self.quotes_read: list[tuple[float, float]] = []

    def act(self, forecast: Forecast, context: Context) -> int:
        book = self.book
        self.quotes_read.append((float(book.bid[0]), float(book.ask[0])))
        for values in (book.bid, book.ask, book.bids, book.asks, book.last, book.prices):
            with pytest.raises(ValueError, match="read-only"):
                values[...] = 0.0
        with pytest.raises(FrozenInstanceError):
            book.bid = book.ask
        return 0


@pytest.fixture(scope="module")
def market_with_a_reader() -> MarketModel:
    """Play 30 rounds, in which an agent tries to change the book."""
    reader = traders("orders", 1, 3, "book-reader")
    return play_to_end(book_scenario(Case([reader, TRADERS, MAKERS], {}), rounds=30))


def test_an_agent_of_ones_own_reads_the_book_and_cannot_write_it(
    market_with_a_reader: MarketModel,
) -> None:
    """It reads the quotes at the end of the round before."""
    quotes = market_with_a_reader.quotes_frame()[["bid", "ask"]].to_numpy()
    (reader,) = market_with_a_reader.game.cohorts[0].agents
    quotes_read = np.array(reader.quotes_read)
    assert np.isnan(quotes_read[0]).all(), "the book is empty before the first round"
    assert np.array_equal(quotes_read[1:], quotes[:-1], equal_nan=True)
    assert np.isfinite(quotes_read).any(0).all(), "one side was never quoted"


def test_the_spread_is_the_mean_over_rounds_in_which_both_sides_quote(
    market_with_a_reader: MarketModel,
) -> None:
    quotes = market_with_a_reader.quotes_frame()
    spread = (quotes["ask"] - quotes["bid"]).mean()
    assert market_with_a_reader.game.market.described()["spread"] == pytest.approx(spread)


TOP_TICK = 8
SLOTS = 4


class OrdersOnBook(NamedTuple):
    """A state with orders of three agents for two goods, which stand in no queue."""

    rules: order_book_matching.Rules
    state: np.ndarray

    def orders(self) -> np.ndarray:
        """Return the orders of all slots, a view (slots, width)."""
        return self.state[: self.rules.queues_begin].reshape(-1, order_book_matching.ORDER_WIDTH)


@pytest.fixture(params=[0, 1, 2], ids="seed {}".format)
def orders_on_book(request: pytest.FixtureRequest) -> OrdersOnBook:
    """Return orders in random slots; the third agent has none."""
    rng = stream(request.param, "orders on a book")
    begins, state = order_book_matching.empty(agents=3, slots=SLOTS, goods=2, top_tick=TOP_TICK)
    rules = order_book_matching.Rules(
        half_tick_cash=1, maker_fee=0, taker_fee=0, slots_per_agent=SLOTS, is_batch=False,
        round_index=0, **begins,
    )  # fmt: skip
    book = OrdersOnBook(rules, state)
    orders = book.orders()
    for slot in range(2 * SLOTS):
        lots = rng.integers(0, 3)  # a third of the slots are free
        orders[slot, order_book_matching.LOTS] = lots
        orders[slot, order_book_matching.TICK] = rng.integers(0, TOP_TICK + 1)
        orders[slot, order_book_matching.GOOD] = rng.integers(2)
        orders[slot, order_book_matching.SIDE] = rng.integers(2)
        account = order_book_matching.account_at(rules, slot // SLOTS)
        state[account + order_book_matching.OPEN_LOTS] += lots
    return book


@pytest.mark.parametrize("good", [0, 1])
@pytest.mark.parametrize("agent", [0, 1, 2])
def test_an_agents_own_best_ticks_are_those_of_all_its_open_orders(
    orders_on_book: OrdersOnBook, agent: int, good: int
) -> None:
    rules, state = orders_on_book
    orders = orders_on_book.orders()[SLOTS * agent : SLOTS * (agent + 1)]
    is_open = orders[:, order_book_matching.LOTS] > 0
    is_of_good = is_open & (orders[:, order_book_matching.GOOD] == good)
    is_bid = orders[:, order_book_matching.SIDE] == order_book_matching.BID
    ticks = orders[:, order_book_matching.TICK]

    best_ticks = order_book_matching.own_best_ticks(state, rules, agent, good)

    highest_bid = ticks[is_of_good & is_bid].max(initial=-1)
    lowest_ask = ticks[is_of_good & ~is_bid].min(initial=TOP_TICK + 1)
    assert best_ticks == (highest_bid, lowest_ask)


def test_depth_is_the_units_at_each_tick_and_best_prices_are_those_of_ticks_with_some(
    orders_on_book: OrdersOnBook,
) -> None:
    orders = orders_on_book.orders()
    depth = np.zeros((2, 2, TOP_TICK + 1))
    best_price = np.empty((2, 2))
    best_depth = np.empty((2, 2))

    order_book._write_depth(orders, 4, depth, best_price, best_depth)

    for side in (order_book_matching.BID, order_book_matching.ASK):
        for good in range(2):
            is_here = orders[:, order_book_matching.SIDE] == side
            is_here &= orders[:, order_book_matching.GOOD] == good
            ticks = orders[is_here, order_book_matching.TICK]
            units = orders[is_here, order_book_matching.LOTS] / 4
            expected_depth = np.bincount(ticks, units, minlength=TOP_TICK + 1)
            assert np.array_equal(depth[side, good], expected_depth)
            ticks_with_some = np.flatnonzero(expected_depth)
            if not len(ticks_with_some):
                assert np.isnan(best_price[side, good])
                assert best_depth[side, good] == 0.0
                continue
            best = ticks_with_some[-1 if side == order_book_matching.BID else 0]
            assert best_price[side, good] == best / TOP_TICK
            assert best_depth[side, good] == expected_depth[best]


@pytest.mark.parametrize("n_trades", [0, 1, 6])
def test_the_sums_of_a_book_are_added_up_over_trades_goods_and_agents(n_trades: int) -> None:
    rng = stream(3, "sums of a book")
    trades = rng.integers(1, 5, (n_trades, order_book_matching.TRADE_WIDTH))
    trades[:, order_book_matching.TRADE_GOOD] = rng.integers(0, 3, n_trades)
    bought = rng.normal(size=(4, 3))
    worth = rng.random((4, 3))
    bid = np.array([0.25, np.nan, 0.5])  # nobody bids for the second good
    ask = np.array([0.75, 0.5, 0.625])
    volume = np.zeros(3)
    sums = np.ones(5)

    order_book._add_to_sums(trades, 2, bought, worth, bid, ask, 4, volume, sums)

    expected = [n_trades, 2, (bought * worth).sum(), 0.5 + 0.125, 2]
    assert sums == pytest.approx(1.0 + np.array(expected), abs=1e-13)
    goods = trades[:, order_book_matching.TRADE_GOOD]
    lots = trades[:, order_book_matching.TRADE_LOTS]
    assert np.array_equal(volume, np.bincount(goods, lots, minlength=3) / 4)


def test_an_action_loses_what_changes_in_cash_and_goods_are_worth_turned_round() -> None:
    rng = stream(4, "changes")
    changes = rng.integers(-3, 4, (3, 2, 1 + 2))
    worth = rng.random((3, 2))
    unit_offset = rng.normal(size=3)
    unit_scale = 1.0 + rng.random(3)
    losses = np.empty((3, 2))

    order_book._write_losses(changes, 4, worth, unit_offset, unit_scale, losses)

    units = changes[:, :, 1:] / 4
    gains = changes[:, :, 0] * order_book.UNIT + np.einsum("nag,ng->na", units, worth)
    expected = (-gains - unit_offset[:, np.newaxis]) / unit_scale[:, np.newaxis]
    assert losses == pytest.approx(expected, abs=1e-13)
