r"""A limit order book in event time: orders trade one by one, or in a batch, and rest over rounds.

docs/order_book.md says what happens in a round, and what is refused; how orders trade,
``order_book_matching``. A trade moves p q between buyer and seller and a fee from each to the world
outside, all in whole units of 2^-22, so that cash and goods are conserved exactly.

What an agent earns in a round is

    sum over its trades of  (W + C f) q - p q - fee q,         q < 0 for sales,

with f the round's fundamental, trades of orders that rested since earlier rounds included. Its loss
of another action is that of the round cleared again from the book before the round, with all
others' actions and the order of arrival as they were: exact, not an estimate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from regretless.market import register
from regretless.market.core.arrays import Array, Mask
from regretless.market.core.errors import UserError
from regretless.market.core.own_code import read_only
from regretless.market.game.accounts import UNIT, Endowment
from regretless.market.game.market import Decisions, check_key, check_word
from regretless.market.game.protocols import Cohort
from regretless.market.losses.orders import MOST_FEE, Orders
from regretless.market.markets import order_book_matching as kernels
from regretless.market.markets.call_auction import Exchange
from regretless.market.markets.order_book_matching import ASK, BID, FIRST, Rules, Sent, Tape, Whole

FINEST = 2**21  # ticks times lots
UNLIMITED = 2**40  # lots
MOST_SLOTS = 64  # open orders of an agent that adds to those it has
WORDS = {
    "matching": ("continuous", "batch"),
    "centre": ("fixed", "news"),
    "outcome": ("price", "value", ""),
}
AGGRESSORS = np.array(["", "buyer", "seller"], dtype=object)


@dataclass(frozen=True, eq=False)
class View:
    """What is on the book before a round."""

    prices: Array  # (T + 1,)
    bids: Array  # units bid for at each (d, T + 1)
    asks: Array
    bid: Array  # the best price (d,), NaN where there is none
    ask: Array
    last: Array  # the last trade's price (d,), 1/2 before the first

    @property
    def mid(self) -> Array:
        """The middle of the best quotes (d,), the last price where one is missing."""
        middle = (self.bid + self.ask) / 2
        return np.where(np.isnan(middle), self.last, middle)


@register.market("order-book")
class OrderBook(Exchange):
    """A limit order book with price-time priority, or a frequent batch auction.

    UserError if a loss is of another form than ``Orders``, an order off the grid, or a parameter
    leaves its range. ``docs/order_book.md`` says what the parameters are. Where agents have again
    what they began with (``refresh``), a new day begins, and the book is empty.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("open", "price", "rounds", "sums")
    utility_is_expected = True  # what orders gain at a forecast price
    column_labels: ClassVar[Mapping[str, str]] = {"volume": "units traded"}

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        rng: np.random.Generator,
        *,
        matching: str = "continuous",
        cash: Endowment = 1.0,
        stock: Endowment | list[Endowment] = 1.0,
        hold: Endowment | None = None,
        ticks: int = 128,
        lots: int = 1,
        maker_fee: float = 0.0,
        taker_fee: float = 0.0,
        latency: dict[str, float] | None = None,
        refresh: int = 0,
        expires: int = 0,
        centre: str = "fixed",
        outcome: str = "",
    ) -> None:
        super().__init__(cohorts, rng, cash=cash, stock=stock, refresh=refresh)
        for key, word in {"matching": matching, "centre": centre, "outcome": outcome}.items():
            check_word(key, word, WORDS[key])
        _check_grid(ticks, lots)
        fine = type(expires) is int and expires >= 0
        check_key("expires", expires, fine, "a whole number of at least 0")
        self.ticks, self.lots, self.expires = ticks, lots, expires
        self._fees = _fee("maker_fee", maker_fee, lots), _fee("taker_fee", taker_fee, lots)
        self._batch, self._news = matching == "batch", centre == "news"
        self._latency = self.accounts.each("latency", latency or {})
        losses = [_checked_orders(cohort, ticks, lots) for cohort in cohorts]
        self._losses, (self._acts, self._orders) = losses, _menu(losses, ticks, lots)
        self._slots = max(_slots(loss, lots) for loss in losses)
        self._worth = np.concatenate([loss.worth[:, 0] for loss in losses])
        self._common = np.concatenate([loss.common for loss in losses])
        most = np.concatenate([loss.most for loss in losses])
        may = self.accounts.each("hold", {} if hold is None else hold, UNLIMITED)
        self._most, self._hold = (
            np.floor(np.minimum(units * lots, UNLIMITED)).astype(np.int64) for units in (most, may)
        )
        self._says_value = outcome == "value" or (not outcome and bool(self._common.any()))
        if not (self.accounts.goods * lots % 1 == 0).all():
            raise UserError(f"market.stock: lots are 1/{lots} of a unit; give multiples of that")
        self.price = np.full(self.goods, ticks, dtype=np.int64)  # of the last trades, in half ticks
        self.sums = np.zeros(5)  # trades, refused, gains, spreads, and how many
        self._empty()

    def clear(self, fundamental: Array, decisions: Decisions) -> Array:
        """Let all agents arrive, and return the middle of the best quotes, or the fundamental."""
        if self.restores:  # what is on the book goes, too
            self._empty()
            self.restock()
        self._open_round(fundamental, decisions)
        self._start, self._last, before = self.open.copy(), self.price.copy(), self._own.copy()
        rules, most = self._rules(), self.agents * self._slots + len(self._orders)
        tape = Tape(np.zeros((most, 6), dtype=np.int64), np.zeros(2, dtype=np.int64))
        kernels.play(self.open, rules, tape, self._sent, self.price)
        self._tape = tape.trades[: tape.counts[0]]
        if not self._batch:
            self.price[self._tape[:, 0]] = self._tape[:, 3]  # of several trades the last
        kernels.expire(self.open, rules, 0)
        self._quotes = self.book()
        if self.expires:
            kernels.expire(self.open, rules, self.expires)
        self._settle(before, fundamental, int(tape.counts[1]))
        return fundamental if self._says_value else self._quotes.mid

    def losses(self, decisions: Decisions) -> Sequence[Array]:
        """Return what every action of every agent would have lost, by clearing again."""
        changes = np.zeros((*self._acts.shape[:2], 1 + self.goods), dtype=np.int64)
        kernels.again(self._start.copy(), self._rules(-1), self._sent, self._last, changes)
        cash, goods = changes[..., 0] * UNIT, changes[..., 1:] / self.lots
        return self.losses_of(cash + (goods * self._value[:, None]).sum(2))

    def extra_tables(self) -> Mapping[str, Mapping[str, Any]]:
        good, buyer, seller, price, lots, sides = self._tape.T
        trades = {
            "sequence": np.arange(len(good)),
            "good": good,
            "buyer": buyer + 1,
            "seller": seller + 1,
            "price": price / (2 * self.ticks),
            "quantity": lots / self.lots,
            "aggressor": AGGRESSORS[sides],
        }
        seen, goods = self._quotes, np.arange(self.goods)
        quotes = {"good": goods, "bid": seen.bid, "ask": seen.ask, "mid": (seen.bid + seen.ask) / 2}
        for name, units, price in (("bid", seen.bids, seen.bid), ("ask", seen.asks, seen.ask)):
            depth = units[goods, np.nan_to_num(price * self.ticks).astype(np.intp)]
            quotes[f"{name}_depth"] = np.where(np.isnan(price), 0.0, depth)
        return {"trades": trades, "quotes": quotes}

    def book(self) -> View:
        steps, depth = np.arange(self.ticks + 1), np.zeros((2, self.goods, self.ticks + 1))
        orders = self.open[: self._places["queues"]].reshape(-1, kernels.WIDTH)
        at = orders[:, [kernels.SIDE, kernels.GOOD, kernels.TICK]]
        np.add.at(depth, tuple(at.T), orders[:, kernels.LOTS])
        bid = np.where(depth[BID] > 0, steps, -np.inf).max(1) / self.ticks
        ask = np.where(depth[ASK] > 0, steps, np.inf).min(1) / self.ticks
        best = [np.where(np.isinf(end), np.nan, end) for end in (bid, ask)]
        last, prices = self.price / (2 * self.ticks), steps / self.ticks
        return View(*map(read_only, (prices, *(depth / self.lots), *best, last)))

    def affordable(self, place: int) -> Mask:
        """Return which actions an agent can pay for whole, if nothing is open (N, A)."""
        loss, fee = self._losses[place], max(*self._fees, 0) * UNIT * self.lots
        cost = np.where(loss.units > 0, loss.units * (loss.limit + fee), 0.0).sum(2)
        mine = np.eye(self.goods)[loss.asset.astype(np.intp)]
        return self.covered(place, cost, (np.maximum(-loss.units, 0)[..., None] * mine).sum(2))

    def described(self) -> dict[str, Any]:
        """Describe trades and gains; with days, values and holds also the share of possible gains.

        Those are of a day in which each good goes to whom it is worth most, as far as they may hold
        it; cash is no limit.
        """
        rounds, (trades, refused, gains, spread, quoted) = max(self.rounds, 1), self.sums.tolist()
        found = {
            "trades": trades / rounds,
            "refused": refused / rounds,
            "gains_from_trade": gains / rounds,
            "spread": spread / quoted if quoted else None,
        }
        if not self.refresh or self._common.any() or self._hold.max() >= UNLIMITED:
            return found
        possible, room = 0.0, self._hold / self.lots
        for worth, stock in zip(self._worth.T, self._begun[1].T, strict=True):
            ranked = np.argsort(-worth)
            given = np.diff(np.minimum(np.cumsum(room[ranked]), stock.sum()), prepend=0.0)
            possible += float(given @ worth[ranked] - stock @ worth)
        possible *= max(-(-self.rounds // self.refresh), 1)
        return found | {"efficiency": gains / possible} if possible > 0 else found

    def summary(self) -> str:
        now, kind = self.described(), "a batch auction" if self._batch else "an order book"
        spread = "no spread" if now["spread"] is None else f"a mean spread of {now['spread']:.4g}"
        share = f", {100 * now['efficiency']:.4g} % of what there is" if "efficiency" in now else ""
        gains = f"gains of {round(now['gains_from_trade'], 9) + 0.0:.4g}{share}"
        refused = f"; {now['refused']:.4g} orders per round were refused" if now["refused"] else ""
        return f"Market: {kind}; {now['trades']:.4g} trades per round, {spread}, {gains}{refused}"

    @property
    def _own(self) -> Whole:
        """What each agent owns (N, FIRST + 3 d), as part of the state."""
        return self.open[self._places["own"] :].reshape(self.agents, -1)

    def _rules(self, ahead: int = 0) -> Rules:
        """Return the rules of the round that begins, or of the one that has ended (-1)."""
        half, (maker, taker) = round(1 / UNIT) // (2 * self.ticks * self.lots), self._fees
        number, slots = self.rounds + ahead, self._slots
        return Rules(half, maker, taker, slots, batch=self._batch, number=number, **self._places)

    def _empty(self) -> None:
        """Take everything off the book; ``open`` is its state (``matching.Rules``)."""
        book = kernels.empty(self.agents, self._slots, self.goods, self.ticks)
        self._places, self.open = book
        self._own[:, kernels.MOST], self._own[:, kernels.HOLD] = self._most, self._hold

    def _open_round(self, fundamental: Array, decisions: Decisions) -> None:
        """Note who arrives when and does what, what goods are worth, and what agents own."""
        self.arrivals = np.lexsort((self.rng.random(self.agents), self._latency))
        shift = np.rint((fundamental - 0.5) * self.ticks * self._news).astype(np.int64)
        actions = self.acted(decisions).astype(np.int64)
        self._sent = Sent(self._acts, self._orders, self.arrivals, actions, shift)
        self._value = self._worth + self._common[:, None] * fundamental
        self._own[:, kernels.TURN] = 0
        self._own[:, kernels.CASH] = np.rint(self.accounts.cash[:-1] / UNIT)
        self._own[:, FIRST::3] = np.rint(self.accounts.goods[:-1] * self.lots)

    def _settle(self, before: Whole, fundamental: Array, refused: int) -> None:
        """Move what was traded between accounts, and add the round to the sums."""
        change = self._own - before
        bought = change[:, FIRST::3] / self.lots
        self.accounts.move(change[:, kernels.CASH] * UNIT, bought)
        spread = self._quotes.ask - self._quotes.bid
        seen, gains = ~np.isnan(spread), (bought * self._value).sum()
        self.sums += (len(self._tape), refused, gains, spread[seen].sum(), seen.sum())
        volume = np.bincount(self._tape[:, 0], self._tape[:, 4], self.goods) / self.lots
        self.last, self.rounds = {"fundamental": fundamental, "volume": volume}, self.rounds + 1


def _check_grid(ticks: Any, lots: Any) -> None:
    for key, value in {"ticks": ticks, "lots": lots}.items():
        fine = type(value) is int and value >= 1 and not value & (value - 1)
        check_key(key, value, fine, "a power of 2")
    if ticks * lots > FINEST:
        raise UserError(f"market.ticks, market.lots: {ticks} x {lots} is above {FINEST}; give less")


def _fee(key: str, fee: float, lots: int) -> int:
    """Return a fee for a lot in units of the accounts."""
    fine = isinstance(fee, int | float) and not isinstance(fee, bool) and abs(fee) <= MOST_FEE
    check_key(key, fee, fine, f"a number from -{MOST_FEE:g} to {MOST_FEE:g}")
    return round(fee / lots / UNIT)


def _checked_orders(cohort: Cohort, ticks: int, lots: int) -> Orders:
    """Return a cohort's losses; UserError unless their orders are whole lots at whole ticks."""
    loss = cohort.loss
    if not isinstance(loss, Orders):
        raise UserError(
            f"market 'order-book': a {loss.form} loss of cohort.{cohort.name} sends no orders; "
            'use utility = "orders" or "quotes"'
        )
    sent = loss.units != 0
    for what, key, sizes, each in (
        ("an order for {:g} units", "lots", loss.units, lots),
        ("a limit of {:g}", "ticks", loss.limit, ticks),
    ):
        off = sent & (sizes * each % 1 != 0)
        if off.any():
            why = f"is no multiple of 1/{each}; change it, or market.{key}"
            raise UserError(f"cohort.{cohort.name}: {what.format(sizes[off][0])} {why}")
    if (loss.limit[sent] < 0).any() or (loss.limit[sent] > 1).any():
        raise UserError(f"cohort.{cohort.name}: limits are in [0, 1]; change them")
    return loss


def _menu(losses: Sequence[Orders], ticks: int, lots: int) -> tuple[Whole, Whole]:
    """Return all agents' actions and orders, as ``matching.Sent`` has them."""
    most, acts, orders, begun = max(loss.actions for loss in losses), [], [], 0
    for loss in losses:
        sent = loss.units != 0
        count = sent.sum(2)
        ends = begun + np.cumsum(count).reshape(count.shape)
        listed = np.stack([loss.units, loss.limit, loss.asset], -1) * sent[..., None]
        rows = [listed.reshape(*loss.keeps.shape, -1), loss.keeps[..., None], loss.rests[..., None]]
        same = [(own[:, None] == own).all(2).argmax(1) for own in np.concatenate(rows, axis=2)]
        own = np.stack([ends - count, ends, loss.keeps, loss.rests, np.stack(same)], -1)
        beyond = (0, 0), (0, most - loss.actions), (0, 0)
        acts.append(np.pad(own, beyond, constant_values=-1))
        orders.append(np.stack([loss.units * lots, loss.limit * ticks, loss.asset], -1)[sent])
        begun = int(ends[-1, -1])
    return np.concatenate(acts).astype(np.int64), np.rint(np.concatenate(orders)).astype(np.int64)


def _slots(loss: Orders, lots: int) -> int:
    """Return how many open orders an agent may have: no more than it may have lots in them."""
    sends = int(loss.units.shape[-1])
    adds = ((loss.keeps[..., None] > 0) & (loss.units != 0)).any()
    return max(sends, min(MOST_SLOTS, int(loss.most.max() * lots))) if adds else sends
