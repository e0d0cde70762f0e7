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
from heapq import heappop, heappush

import numpy as np

from benchmarks.duels import Array, Duel, peer
from regretless.market.core.randomness import stream
from regretless.market.markets import order_book_matching as matching

TOP, LEAST, MOST, UNITS = 64, 1, 62, 5  # ticks, the prices of orders, and their greatest size
TRADERS, FEW, ARRIVALS = 1000, 100, 20
PLENTY = 1 << 40  # of cash, goods and whatever limits an order


class Stream:
    """Orders of a number of traders: signed units and prices in ticks (rounds, N), and who comes.

    ``traders``: n.
    """

    work = "order-book"

    def __init__(self, traders: int) -> None:
        rng, shape = stream(0, "bench", "order-book"), (ARRIVALS, traders)
        self.traders = traders
        self.units = rng.integers(1, UNITS + 1, shape) * rng.choice([-1, 1], shape)
        self.ticks = rng.binomial(MOST - LEAST, 0.5, shape) + LEAST
        self.arrivals = rng.permuted(np.tile(np.arange(traders), (ARRIVALS, 1)), axis=1)
        self.size = f"{shape[0] * shape[1]:,} orders of {traders:,} traders, who cancel the last"
        self.events = [
            (int(who), int(self.units[t, who]), int(self.ticks[t, who]))
            for t in range(ARRIVALS)
            for who in self.arrivals[t]
        ]

    def ours(self) -> Array:
        """Play the rounds by this project's kernels."""
        rules, state = fresh(self.traders)
        acts, trades = menus(self.traders, 1), []
        still, zero = np.zeros(self.traders, dtype=np.int64), np.zeros(1, dtype=np.int64)
        for units, ticks, order in zip(self.units, self.ticks, self.arrivals, strict=True):
            state[rules.accounts_begin + matching.LOTS_TRADED :: rules.account_width] = 0
            orders = np.stack([units, ticks, still], axis=1)
            tape, count = np.zeros((2 * self.traders, 6), np.int64), np.zeros(2, np.int64)
            sent = matching.Submissions(acts, orders, order, still, zero)
            matching.play(state, rules, matching.Tape(tape, count), sent, zero)
            trades.append(tape[: count[0]])
        _, buyer, seller, price, lots, _ = np.concatenate(trades).T
        return np.stack([buyer, seller, price / 2, lots], axis=1)

    def bourse(self) -> Array:
        """Send every order to bourse."""
        book = peer("bourse").core.OrderBook(0, 1)
        last: dict[int, int] = {}
        for time, (who, units, tick) in enumerate(self.events):
            book.set_time(time)  # priority is by time, and of two orders at one time it keeps one
            if who in last:
                book.cancel_order(last[who])
            last[who] = book.place_order(units > 0, abs(units), who, price=tick)
        trades = [(own[5], own[4], own[2], own[3]) for own in book.get_trades()]
        return self._named(np.array(trades, dtype=np.float64))

    def _named(self, trades: Array) -> Array:
        """Put traders in place of the numbers of the order that rested and the one that arrived."""
        who = np.array([event[0] for event in self.events])
        buys = np.array([event[1] > 0 for event in self.events])
        rested, arrived = trades[:, :2].astype(np.intp).T
        buyer, seller = (np.where(buys[arrived] == side, arrived, rested) for side in (True, False))
        return np.column_stack([who[buyer], who[seller], trades[:, 2:]])

    def plain(self) -> Array:
        """Send every order to the plain book."""
        book = PlainBook()
        for who, units, tick in self.events:
            book.send(who, units, tick)
        return np.array(book.trades, dtype=np.float64)


class Round:
    """A round of traders who choose among orders: what each order would have brought each of them.

    ``traders``, ``actions``: n and K.
    """

    work = "book-losses"

    def __init__(self, traders: int, actions: int = 10) -> None:
        rng, shape = stream(0, "bench", "book-losses"), (traders, actions)
        self.units = rng.integers(1, UNITS + 1, shape) * rng.choice([-1, 1], shape)
        self.ticks = rng.binomial(MOST - LEAST, 0.5, shape) + LEAST
        self.played, self.order = rng.integers(0, actions, traders), rng.permutation(traders)
        self.size = f"{traders} traders, {actions} orders each"

    def ours(self) -> Array:
        """Clear again by this project's kernels: cash and units more after the round (N, K, 2)."""
        traders, actions = self.units.shape
        rules, state = fresh(traders)
        orders = np.stack([self.units, self.ticks, 0 * self.ticks], axis=-1).reshape(-1, 3)
        changes, zero = np.zeros((traders, actions, 2), np.int64), np.zeros(1, np.int64)
        sent = matching.Submissions(menus(traders, actions), orders, self.order, self.played, zero)
        matching.write_alternatives(state, rules, sent, zero, changes)
        return changes / [2.0, 1.0]

    def plain(self) -> Array:
        """Play the plain book's round again for each trader and order."""
        changes = np.zeros((*self.units.shape, 2))
        for who, action in np.ndindex(self.units.shape):
            book, played = PlainBook(), self.played.copy()
            played[who] = action
            for other in self.order.tolist():
                chosen = other, played[other]
                book.send(other, int(self.units[chosen]), int(self.ticks[chosen]))
            for buyer, seller, price, units in book.trades:
                sign = (buyer == who) - (seller == who)
                changes[who, action] += sign * np.array([-price * units, units])
        return changes


def fresh(traders: int) -> tuple[matching.Rules, matching.IntArray]:
    """Return the rules and the state of traders with plenty of everything, and no orders."""
    places, state = matching.empty(traders, 1, 1, TOP)
    rules = matching.Rules(1, 0, 0, 1, is_batch=False, round_index=0, **places)
    own = state[rules.accounts_begin :].reshape(traders, -1)
    own[:, [matching.CASH, matching.FIRST_HOLDING]] = PLENTY // 2
    own[:, [matching.MAX_LOTS, matching.MAX_HOLDING]] = PLENTY
    return rules, state


def menus(traders: int, actions: int) -> matching.IntArray:
    """Return actions of one resting order each (N, K, 5), as ``matching.Submissions`` has them."""
    acts = np.zeros((traders, actions, matching.ACTION_WIDTH), dtype=np.int64)
    acts[..., matching.BEGIN] = np.arange(traders * actions).reshape(traders, actions)
    acts[..., matching.END], acts[..., matching.RESTS_ON_BOOK] = acts[..., matching.BEGIN] + 1, 1
    acts[..., matching.FIRST_EQUAL] = np.arange(actions)
    return acts


class PlainBook:
    """Queues of [trader, units left] by price, a heap of prices for each side, and all trades."""

    def __init__(self) -> None:
        self.queues: dict[tuple[int, int], deque[list[int]]] = {}  # by side (1 buys) and price
        self.best: dict[int, list[int]] = {1: [], -1: []}  # -1 times the price for bids
        self.open: dict[int, list[int]] = {}
        self.trades: list[tuple[int, int, int, int]] = []

    def send(self, who: int, units: int, tick: int) -> None:
        """Cancel a trader's order, and let another trade and rest."""
        if who in self.open:
            self.open.pop(who)[1] = 0
        side, left = (1, units) if units > 0 else (-1, -units)
        while left and (queue := self._front(-side, side * tick)):
            rival, price = queue[0], side * self.best[-side][0]
            part = min(left, rival[1])
            left, rival[1] = left - part, rival[1] - part
            pair = (who, rival[0]) if side > 0 else (rival[0], who)
            self.trades.append((*pair, price, part))
        if left:
            own = self.open[who] = [who, left]
            if not self.queues.get((side, tick)):
                self.queues[side, tick] = deque()
                heappush(self.best[side], -side * tick)
            self.queues[side, tick].append(own)

    def _front(self, side: int, limit: int) -> deque[list[int]] | None:
        """Return the queue of a side's best price, if that is within a limit."""
        heap = self.best[side]
        while heap:
            queue = self.queues[side, -side * heap[0]]
            while queue and not queue[0][1]:
                queue.popleft()
            if queue:
                return queue if heap[0] <= limit else None
            heappop(heap)
        return None


def order_book_bourse(traders: int) -> Duel:
    """Compare with bourse."""
    own = Stream(traders)
    peer("bourse")
    return Duel(own.work, own.size, "bourse", own.ours, own.bourse)


def order_book_plain(traders: int) -> Duel:
    """Compare with a plain Python book."""
    own = Stream(traders)
    return Duel(own.work, own.size, "python", own.ours, own.plain)


def book_losses_plain(traders: int) -> Duel:
    """Compare losses of all actions with clearing a plain Python book again for each."""
    own = Round(traders // 10)
    return Duel(own.work, own.size, "python", own.ours, own.plain)


BOOKS = order_book_bourse, order_book_plain, book_losses_plain
