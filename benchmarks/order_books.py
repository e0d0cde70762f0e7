"""Order books: a stream of orders through this project's kernels, bourse, and plain Python.

Traders arrive one after the other, again and again. Each cancels what it has on the book and sends
an order for 1 to 5 units at one of 62 prices near the middle. The answer is every trade: buyer,
seller, price and units. bourse (github.com/zombie-einstein/bourse, Rust) gets one call per cancel
and per order, as its Python interface has it; the plain book keeps a queue per price and a heap of
prices per side. Neither checks accounts; this project's book does.

The other work is the losses of all actions in a round: what each of K orders would have brought
each trader, all others' orders held fixed. The plain way plays the round again N x K times.
"""

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.duels import Array, Duel, peer
from regretless.market.core.randomness import stream
from regretless.market.markets import order_book_matching as matching

TOP_TICK = 64  # of the book
MIN_TICK = 1  # of orders
MAX_TICK = 62
MAX_UNITS = 5  # of an order
TRADERS = 1000
FEW_TRADERS = 100  # of a quick run
ROUNDS = 20  # in each of which every trader comes once
PLENTY = 1 << 40  # of cash, goods and whatever limits an order
BUY = 1
SELL = -1


class Arrival(NamedTuple):
    """A trader's order as it comes: signed units at a price in ticks."""

    trader: int
    units: int  # below 0 for a sale
    tick: int


Trade = tuple[int, int, int, int]  # buyer, seller, price in ticks, units: as quick as Python has it


class OrderStream:
    """Orders of a number of traders, who all come once in every round, in a random order.

    Attributes
    ----------
    units, ticks : int array (rounds, N)
        The signed units and the price of each trader's order of a round.
    arrivals : int array (rounds, N)
        Traders as they come.
    events : list of Arrival
        The same orders, one after the other.
    """

    work = "order-book"

    def __init__(self, traders: int) -> None:
        rng = stream(0, "bench", "order-book")
        shape = (ROUNDS, traders)
        self.traders = traders
        self.units = rng.integers(1, MAX_UNITS + 1, shape) * rng.choice([SELL, BUY], shape)
        self.ticks = rng.binomial(MAX_TICK - MIN_TICK, 0.5, shape) + MIN_TICK
        self.arrivals = rng.permuted(np.tile(np.arange(traders), (ROUNDS, 1)), axis=1)
        self.size = f"{ROUNDS * traders:,} orders of {traders:,} traders, who cancel the last"
        self.events = []
        for round_index in range(ROUNDS):
            for trader in self.arrivals[round_index].tolist():
                units = int(self.units[round_index, trader])
                tick = int(self.ticks[round_index, trader])
                self.events.append(Arrival(trader, units, tick))

    def ours(self) -> Array:
        """Play the rounds by this project's kernels; return all trades (M, 4)."""
        rules, state = empty_book(self.traders)
        acts = one_order_actions(self.traders, 1)
        trades_of_rounds = []
        first_actions = np.zeros(self.traders, dtype=np.int64)
        first_good = np.zeros(self.traders, dtype=np.int64)
        no_shift = np.zeros(1, dtype=np.int64)
        for units, ticks, arrivals in zip(self.units, self.ticks, self.arrivals, strict=True):
            state[rules.accounts_begin + matching.LOTS_TRADED :: rules.account_width] = 0
            orders = np.stack([units, ticks, first_good], axis=1)
            tape = np.zeros(
                (matching.FIRST_TRADE + 2 * self.traders, matching.TRADE_WIDTH), np.int64
            )
            sent = matching.Submissions(acts, orders, arrivals, first_actions, no_shift)
            matching.play(state, rules, tape, sent, no_shift)
            n_trades = tape[matching.COUNTS, matching.N_TRADES]
            trades_of_rounds.append(tape[matching.FIRST_TRADE :][:n_trades])
        _, buyer, seller, half_ticks, lots, _ = np.concatenate(trades_of_rounds).T
        return np.stack([buyer, seller, half_ticks / 2, lots], axis=1)

    def bourse(self) -> Array:
        """Send every order to bourse; return all trades (M, 4)."""
        book = peer("bourse").core.OrderBook(0, 1)
        open_order: dict[int, int] = {}  # bourse's number of each trader's last order
        for time, (trader, units, tick) in enumerate(self.events):
            book.set_time(time)  # priority is by time, and of two orders at one time it keeps one
            if trader in open_order:
                book.cancel_order(open_order[trader])
            open_order[trader] = book.place_order(units > 0, abs(units), trader, price=tick)
        return self._with_traders(np.array(book.get_trades(), dtype=np.float64))

    def _with_traders(self, bourse_trades: Array) -> Array:
        """Put buyer and seller in place of the orders that bourse names (M, 4).

        ``bourse_trades`` (M, 6) are time, side, price and units, and the numbers of the order that
        arrived and of the one that rested.
        """
        trader = np.array([arrival.trader for arrival in self.events])
        is_buy = np.array([arrival.units > 0 for arrival in self.events])
        _, _, price, units, arrived, rested = bourse_trades.T
        trader_arrived = trader[arrived.astype(np.intp)]
        trader_rested = trader[rested.astype(np.intp)]
        arrived_buys = is_buy[arrived.astype(np.intp)]
        buyer = np.where(arrived_buys, trader_arrived, trader_rested)
        seller = np.where(arrived_buys, trader_rested, trader_arrived)
        return np.column_stack([buyer, seller, price, units])

    def plain(self) -> Array:
        """Send every order to the plain book; return all trades (M, 4)."""
        book = PlainBook()
        for arrival in self.events:
            book.send(arrival)
        return np.array(book.trades, dtype=np.float64)


class BookRound:
    """A round of traders who choose among orders: what each order would have brought each of them.

    Attributes
    ----------
    units, ticks : int array (N, K)
        The signed units and the price of each order that a trader may send.
    actions : int array (N,)
        Which of them it sends.
    arrivals : int array (N,)
        Traders as they come.
    """

    work = "book-losses"

    def __init__(self, traders: int, actions: int = 10) -> None:
        rng = stream(0, "bench", "book-losses")
        shape = (traders, actions)
        self.units = rng.integers(1, MAX_UNITS + 1, shape) * rng.choice([SELL, BUY], shape)
        self.ticks = rng.binomial(MAX_TICK - MIN_TICK, 0.5, shape) + MIN_TICK
        self.actions = rng.integers(0, actions, traders)
        self.arrivals = rng.permutation(traders)
        self.size = f"{traders} traders, {actions} orders each"

    def ours(self) -> Array:
        """Clear again by this project's kernels: cash and units more after the round (N, K, 2)."""
        traders, actions = self.units.shape
        rules, state = empty_book(traders)
        first_good = np.zeros_like(self.ticks)
        orders = np.stack([self.units, self.ticks, first_good], axis=-1).reshape(-1, 3)
        no_shift = np.zeros(1, np.int64)
        acts = one_order_actions(traders, actions)
        sent = matching.Submissions(acts, orders, self.arrivals, self.actions, no_shift)
        changes = np.zeros((traders, actions, 2), np.int64)
        matching.write_alternatives(state, rules, sent, no_shift, changes)
        return changes / [2.0, 1.0]  # cash was counted in half ticks

    def plain(self) -> Array:
        """Play the plain book's round again for each trader and order (N, K, 2)."""
        changes = np.zeros((*self.units.shape, 2))
        for trader, action in np.ndindex(self.units.shape):
            actions = self.actions.copy()
            actions[trader] = action
            for buyer, seller, price, units in self._plain_trades(actions):
                if buyer == trader:
                    changes[trader, action] += [-price * units, units]
                if seller == trader:
                    changes[trader, action] += [price * units, -units]
        return changes

    def _plain_trades(self, actions: NDArray[np.int64]) -> list[Trade]:
        """Play a round on a new plain book, in which trader n sends order ``actions[n]``."""
        book = PlainBook()
        for trader in self.arrivals.tolist():
            order = (trader, actions[trader])
            book.send(Arrival(trader, int(self.units[order]), int(self.ticks[order])))
        return book.trades


def empty_book(traders: int) -> tuple[matching.Rules, matching.IntArray]:
    """Return the rules and the state of traders with plenty of everything, and no orders."""
    places, state = matching.empty(traders, 1, 1, TOP_TICK)
    rules = matching.Rules(
        half_tick_cash=1,
        maker_fee=0,
        taker_fee=0,
        slots_per_agent=1,
        is_batch=False,
        round_index=0,
        **places,
    )
    accounts = state[rules.accounts_begin :].reshape(traders, -1)
    accounts[:, [matching.CASH, matching.FIRST_HOLDING]] = PLENTY // 2
    accounts[:, [matching.MAX_LOTS, matching.MAX_HOLDING]] = PLENTY
    return rules, state


def one_order_actions(traders: int, actions: int) -> matching.IntArray:
    """Return actions of one resting order each (N, K, 5), as ``matching.Submissions`` has them."""
    acts = np.zeros((traders, actions, matching.ACTION_WIDTH), dtype=np.int64)
    order = np.arange(traders * actions).reshape(traders, actions)
    acts[..., matching.BEGIN] = order
    acts[..., matching.END] = order + 1
    acts[..., matching.RESTS_ON_BOOK] = 1
    acts[..., matching.FIRST_EQUAL] = np.arange(actions)
    return acts


@dataclass(slots=True, eq=False)
class RestingOrder:
    """Whose order rests, and how many of its units are left; 0 once it is cancelled."""

    trader: int
    units: int


Queue = deque[RestingOrder]


class PlainBook:
    """Resting orders in a queue by side and price, a heap of prices for each side, and all trades.

    Attributes
    ----------
    queues : dict
        Orders by side and tick, the first that came first.
    best : dict
        A heap of the ticks of each side; of bids -1 times the tick, so that the best comes first.
    open : dict
        Each trader's resting order.
    trades : list of Trade
    """

    def __init__(self) -> None:
        self.queues: dict[tuple[int, int], Queue] = {}
        self.best: dict[int, list[int]] = {BUY: [], SELL: []}
        self.open: dict[int, RestingOrder] = {}
        self.trades: list[Trade] = []

    def send(self, arrival: Arrival) -> None:
        """Cancel a trader's order, and let another trade and rest."""
        trader, units, tick = arrival
        if trader in self.open:
            self.open.pop(trader).units = 0
        side = BUY if units > 0 else SELL
        units_left = abs(units)
        while units_left:
            queue = self._best_queue(-side, limit=side * tick)
            if queue is None:
                break
            resting = queue[0]
            price = side * self.best[-side][0]
            units_traded = min(units_left, resting.units)
            units_left -= units_traded
            resting.units -= units_traded
            if side == BUY:
                self.trades.append((trader, resting.trader, price, units_traded))
            else:
                self.trades.append((resting.trader, trader, price, units_traded))
        if units_left:
            self._rest(side, tick, RestingOrder(trader, units_left))

    def _rest(self, side: int, tick: int, order: RestingOrder) -> None:
        """Put an order at the end of its queue."""
        self.open[order.trader] = order
        if not self.queues.get((side, tick)):
            self.queues[side, tick] = deque()
            heappush(self.best[side], -side * tick)
        self.queues[side, tick].append(order)

    def _best_queue(self, side: int, limit: int) -> Queue | None:
        """Return the queue of a side's best price, if its entry in the heap is within a limit."""
        heap = self.best[side]
        while heap:
            queue = self.queues[side, -side * heap[0]]
            while queue and not queue[0].units:
                queue.popleft()
            if queue:
                return queue if heap[0] <= limit else None
            heappop(heap)
        return None


def order_book_bourse(traders: int) -> Duel:
    """Compare with bourse."""
    orders = OrderStream(traders)
    peer("bourse")
    return Duel(orders.work, orders.size, "bourse", orders.ours, orders.bourse)


def order_book_plain(traders: int) -> Duel:
    """Compare with a plain Python book."""
    orders = OrderStream(traders)
    return Duel(orders.work, orders.size, "python", orders.ours, orders.plain)


def book_losses_plain(traders: int) -> Duel:
    """Compare losses of all actions with clearing a plain Python book again for each."""
    book_round = BookRound(traders // 10)
    return Duel(book_round.work, book_round.size, "python", book_round.ours, book_round.plain)


WORKS = (order_book_bourse, order_book_plain, book_losses_plain)
