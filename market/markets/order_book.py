r"""A limit order book in event time: orders trade one by one, or in a batch, and rest over rounds.

Scenario files choose it by the kind ``order-book``; its cohorts have the utilities ``orders`` or
``quotes``. This file turns decisions into arrivals and orders, moves what was traded between
accounts, and says what every other action would have lost.
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
from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.errors import UserError
from regretless.market.core.own_code import read_only
from regretless.market.game.accounts import UNIT, Endowment
from regretless.market.game.market import Decisions, check_key, check_word
from regretless.market.game.protocols import Cohort
from regretless.market.losses.orders import MAX_FEE, Orders
from regretless.market.markets import order_book_matching as kernels
from regretless.market.markets.call_auction import Exchange
from regretless.market.markets.order_book_matching import (
    ASK,
    BID,
    IntArray,
    Rules,
    Sent,
    Tape,
)

MAX_GRID_POINTS = 2**21  # ticks times lots
UNLIMITED_LOTS = 2**40  # stands for no limit
MAX_SLOTS_OF_ADDING = 64  # open orders of an agent that adds to those it has
ALLOWED_WORDS = {
    "matching": ("continuous", "batch"),
    "centre": ("fixed", "news"),
    "outcome": ("price", "value", ""),
}
AGGRESSORS = np.array(["", "buyer", "seller"], dtype=object)


@dataclass(frozen=True, eq=False)
class View:
    """What is on the book before a round, of d goods at T + 1 ticks.

    Attributes
    ----------
    prices : ndarray (T + 1,)
        Of the ticks, in [0, 1].
    bids, asks : ndarray (d, T + 1)
        Units bid for and offered at each.
    bid, ask : ndarray (d,)
        The best prices, NaN where there is none.
    last : ndarray (d,)
        The last trade's price, 1/2 before the first.
    """

    prices: Array
    bids: Array
    asks: Array
    bid: Array
    ask: Array
    last: Array

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
            check_word(key, word, ALLOWED_WORDS[key])
        _check_grid(ticks, lots)
        is_whole = type(expires) is int and expires >= 0
        check_key("expires", expires, is_whole, "a whole number of at least 0")
        self.ticks = ticks
        self.lots = lots
        self.expires = expires
        self._fees = _fee("maker_fee", maker_fee, lots), _fee("taker_fee", taker_fee, lots)
        self._batch = matching == "batch"
        self._news = centre == "news"
        self._latency = self.accounts.each("latency", latency or {})
        losses = [_checked_orders(cohort, ticks, lots) for cohort in cohorts]
        self._losses = losses
        self._acts, self._orders = _menu(losses, ticks, lots)
        self._slots = max(_slots(loss, lots) for loss in losses)
        self._worth = np.concatenate([loss.worth[:, 0] for loss in losses])
        self._common = np.concatenate([loss.common for loss in losses])
        unit_limits = np.concatenate([loss.most for loss in losses])
        hold_limits = self.accounts.each("hold", {} if hold is None else hold, UNLIMITED_LOTS)
        self._unit_limits = _in_lots(unit_limits, lots)
        self._hold_limits = _in_lots(hold_limits, lots)
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
        self._state_before = self.open.copy()
        self._price_before = self.price.copy()
        owned_before = self._owned.copy()

        rules = self._rules()
        max_trades = self.agents * self._slots + len(self._orders)
        tape = Tape(
            trades=np.zeros((max_trades, 6), dtype=np.int64), counts=np.zeros(2, dtype=np.int64)
        )
        kernels.play(self.open, rules, tape, self._sent, self.price)
        n_trades, n_refused = tape.counts.tolist()
        self._tape = tape.trades[:n_trades]
        if not self._batch:
            self.price[self._tape[:, 0]] = self._tape[:, 3]  # of several trades the last
        kernels.expire(self.open, rules, 0)
        self._quotes = self.book()
        if self.expires:
            kernels.expire(self.open, rules, self.expires)
        self._settle(owned_before, fundamental, n_refused)
        return fundamental if self._says_value else self._quotes.mid

    def losses(self, decisions: Decisions) -> Sequence[Array]:
        """Return what every action of every agent would have lost, by clearing again."""
        changes = np.zeros((*self._acts.shape[:2], 1 + self.goods), dtype=np.int64)
        kernels.again(
            self._state_before.copy(),
            self._rules(rounds_ahead=-1),
            self._sent,
            self._price_before,
            changes,
        )
        cash = changes[..., 0] * UNIT
        goods = changes[..., 1:] / self.lots
        return self.losses_of(cash + (goods * self._value[:, None]).sum(2))

    def extra_tables(self) -> Mapping[str, Mapping[str, Any]]:
        good, buyer, seller, price, lots, aggressor = self._tape.T
        trades = {
            "sequence": np.arange(len(good)),
            "good": good,
            "buyer": buyer + 1,
            "seller": seller + 1,
            "price": price / (2 * self.ticks),
            "quantity": lots / self.lots,
            "aggressor": AGGRESSORS[aggressor],
        }
        view = self._quotes
        quotes = {
            "good": np.arange(self.goods),
            "bid": view.bid,
            "ask": view.ask,
            "mid": (view.bid + view.ask) / 2,
            "bid_depth": self._depth_at(view.bids, view.bid),
            "ask_depth": self._depth_at(view.asks, view.ask),
        }
        return {"trades": trades, "quotes": quotes}

    def _depth_at(self, units: Array, price: Array) -> Array:
        """Return which of ``units`` (d, T + 1) are at each good's price (d,); 0 where it is NaN."""
        tick = np.nan_to_num(price * self.ticks).astype(np.intp)
        depth = units[np.arange(self.goods), tick]
        return np.where(np.isnan(price), 0.0, depth)

    def book(self) -> View:
        """Return what is on the book, in arrays that cannot be written."""
        orders = self.open[: self._begins["queues"]].reshape(-1, kernels.WIDTH)
        order_cells = orders[:, [kernels.SIDE, kernels.GOOD, kernels.TICK]]
        depth = np.zeros((2, self.goods, self.ticks + 1))  # lots by side, good and tick
        np.add.at(depth, tuple(order_cells.T), orders[:, kernels.LOTS])
        ticks = np.arange(self.ticks + 1)
        bid = np.where(depth[BID] > 0, ticks, -np.inf).max(1) / self.ticks
        ask = np.where(depth[ASK] > 0, ticks, np.inf).min(1) / self.ticks
        return View(
            prices=read_only(ticks / self.ticks),
            bids=read_only(depth[BID] / self.lots),
            asks=read_only(depth[ASK] / self.lots),
            bid=read_only(np.where(np.isinf(bid), np.nan, bid)),
            ask=read_only(np.where(np.isinf(ask), np.nan, ask)),
            last=read_only(self.price / (2 * self.ticks)),
        )

    def affordable(self, place: int) -> Mask:
        """Return which actions an agent can pay for whole, if nothing is open (N, A)."""
        loss = self._losses[place]
        fee = max(*self._fees, 0) * UNIT * self.lots  # of a unit
        cost = np.where(loss.units > 0, loss.units * (loss.limit + fee), 0.0).sum(2)
        is_good = np.eye(self.goods)[loss.asset.astype(np.intp)]
        sold = (np.maximum(-loss.units, 0)[..., None] * is_good).sum(2)
        return self.covered(place, cost, sold)

    def described(self) -> dict[str, Any]:
        """Describe trades and gains; with days, values and holds also the share of possible gains.

        Those are of a day in which each good goes to whom it is worth most, as far as they may hold
        it; cash is no limit.
        """
        rounds = max(self.rounds, 1)
        trades, refused, gains, spreads, n_spreads = self.sums.tolist()
        figures = {
            "trades": trades / rounds,
            "refused": refused / rounds,
            "gains_from_trade": gains / rounds,
            "spread": spreads / n_spreads if n_spreads else None,
        }
        if not self.refresh or self._common.any() or self._hold_limits.max() >= UNLIMITED_LOTS:
            return figures
        possible_gains = 0.0
        room = self._hold_limits / self.lots
        for worth, stock in zip(self._worth.T, self._initial_goods.T, strict=True):
            ranked = np.argsort(-worth)
            allotted_so_far = np.minimum(np.cumsum(room[ranked]), stock.sum())
            allotted = np.diff(allotted_so_far, prepend=0.0)
            possible_gains += float(allotted @ worth[ranked] - stock @ worth)
        days = max(-(-self.rounds // self.refresh), 1)  # rounded up
        possible_gains *= days
        if possible_gains > 0:
            figures["efficiency"] = gains / possible_gains
        return figures

    def summary(self) -> str:
        figures = self.described()
        kind = "a batch auction" if self._batch else "an order book"
        spread = "no spread"
        if figures["spread"] is not None:
            spread = f"a mean spread of {figures['spread']:.4g}"
        gains = f"gains of {round(figures['gains_from_trade'], 9) + 0.0:.4g}"
        if "efficiency" in figures:
            gains += f", {100 * figures['efficiency']:.4g} % of what there is"
        refused = ""
        if figures["refused"]:
            refused = f"; {figures['refused']:.4g} orders per round were refused"
        trades = f"{figures['trades']:.4g} trades per round"
        return f"Market: {kind}; {trades}, {spread}, {gains}{refused}"

    @property
    def _owned(self) -> IntArray:
        """What each agent owns (N, FIRST_HOLDING + HOLDING_WIDTH d), as part of the state."""
        return self.open[self._begins["accounts"] :].reshape(self.agents, -1)

    def _rules(self, rounds_ahead: int = 0) -> Rules:
        """Return the rules of the round that begins, or of the one that has ended (-1)."""
        maker_fee, taker_fee = self._fees
        return Rules(
            half=round(1 / UNIT) // (2 * self.ticks * self.lots),
            maker=maker_fee,
            taker=taker_fee,
            slots=self._slots,
            batch=self._batch,
            number=self.rounds + rounds_ahead,
            **self._begins,
        )

    def _empty(self) -> None:
        """Take everything off the book; ``open`` is its state (``order_book_matching.Rules``)."""
        self._begins, self.open = kernels.empty(self.agents, self._slots, self.goods, self.ticks)
        self._owned[:, kernels.MOST] = self._unit_limits
        self._owned[:, kernels.HOLD] = self._hold_limits

    def _open_round(self, fundamental: Array, decisions: Decisions) -> None:
        """Note who arrives when and does what, what goods are worth, and what agents own."""
        self.arrivals = np.lexsort((self.rng.random(self.agents), self._latency))
        shift = np.rint((fundamental - 0.5) * self.ticks * self._news).astype(np.int64)
        actions = self.acted(decisions).astype(np.int64)
        self._sent = Sent(self._acts, self._orders, self.arrivals, actions, shift)
        self._value = self._worth + self._common[:, None] * fundamental
        self._owned[:, kernels.TURN] = 0
        self._owned[:, kernels.CASH] = np.rint(self.accounts.cash[:-1] / UNIT)
        self._owned[:, kernels.FIRST_HOLDING :: kernels.HOLDING_WIDTH] = np.rint(
            self.accounts.goods[:-1] * self.lots
        )

    def _settle(self, owned_before: IntArray, fundamental: Array, refused: int) -> None:
        """Move what was traded between accounts, and add the round to the sums."""
        change = self._owned - owned_before
        bought = change[:, kernels.FIRST_HOLDING :: kernels.HOLDING_WIDTH] / self.lots
        self.accounts.move(change[:, kernels.CASH] * UNIT, bought)
        spread = self._quotes.ask - self._quotes.bid
        has_spread = ~np.isnan(spread)
        gains = (bought * self._value).sum()
        self.sums += (len(self._tape), refused, gains, spread[has_spread].sum(), has_spread.sum())
        volume = np.bincount(self._tape[:, 0], self._tape[:, 4], self.goods) / self.lots
        self.last = {"fundamental": fundamental, "volume": volume}
        self.rounds = self.rounds + 1


def _check_grid(ticks: Any, lots: Any) -> None:
    """Raise UserError unless ticks and lots are powers of 2 and not too many together."""
    for key, value in {"ticks": ticks, "lots": lots}.items():
        is_power_of_2 = type(value) is int and value >= 1 and not value & (value - 1)
        check_key(key, value, is_power_of_2, "a power of 2")
    if ticks * lots > MAX_GRID_POINTS:
        product = f"{ticks} x {lots} is above {MAX_GRID_POINTS}"
        raise UserError(f"market.ticks, market.lots: {product}; give less")


def _in_lots(units: Array, lots: int) -> IntArray:
    """Return limits in whole lots from limits in units; at most ``UNLIMITED_LOTS``."""
    return np.floor(np.minimum(units * lots, UNLIMITED_LOTS)).astype(np.int64)


def _fee(key: str, fee: float, lots: int) -> int:
    """Return a fee for a lot in units of the accounts."""
    is_allowed = isinstance(fee, int | float) and not isinstance(fee, bool) and abs(fee) <= MAX_FEE
    check_key(key, fee, is_allowed, f"a number from -{MAX_FEE:g} to {MAX_FEE:g}")
    return round(fee / lots / UNIT)


def _checked_orders(cohort: Cohort, ticks: int, lots: int) -> Orders:
    """Return a cohort's losses; UserError unless their orders are whole lots at whole ticks."""
    loss = cohort.loss
    if not isinstance(loss, Orders):
        raise UserError(
            f"market 'order-book': a {loss.form} loss of cohort.{cohort.name} sends no orders; "
            'use utility = "orders" or "quotes"'
        )
    is_sent = loss.units != 0
    for description, key, sizes, per_unit in (
        ("an order for {:g} units", "lots", loss.units, lots),
        ("a limit of {:g}", "ticks", loss.limit, ticks),
    ):
        is_off_grid = is_sent & (sizes * per_unit % 1 != 0)
        if is_off_grid.any():
            reason = f"is no multiple of 1/{per_unit}; change it, or market.{key}"
            raise UserError(
                f"cohort.{cohort.name}: {description.format(sizes[is_off_grid][0])} {reason}"
            )
    if (loss.limit[is_sent] < 0).any() or (loss.limit[is_sent] > 1).any():
        raise UserError(f"cohort.{cohort.name}: limits are in [0, 1]; change them")
    return loss


def _menu(losses: Sequence[Orders], ticks: int, lots: int) -> tuple[IntArray, IntArray]:
    """Return all agents' actions and orders, as ``order_book_matching.Sent`` has them."""
    max_actions = max(loss.actions for loss in losses)
    actions_of_cohorts = []
    orders_of_cohorts = []
    n_orders = 0  # of the cohorts before
    for loss in losses:
        is_sent = loss.units != 0  # (N, A, m)
        orders_per_action = is_sent.sum(2)
        ends = n_orders + np.cumsum(orders_per_action).reshape(orders_per_action.shape)
        begins = ends - orders_per_action
        first_equal = _first_equal_actions(loss, is_sent)
        actions = np.stack([begins, ends, loss.keeps, loss.rests, first_equal], -1)
        missing_actions = max_actions - loss.actions
        padding = ((0, 0), (0, missing_actions), (0, 0))
        actions_of_cohorts.append(np.pad(actions, padding, constant_values=-1))
        orders = np.stack([loss.units * lots, loss.limit * ticks, loss.asset], -1)
        orders_of_cohorts.append(orders[is_sent])
        n_orders = int(ends[-1, -1])
    all_actions = np.concatenate(actions_of_cohorts).astype(np.int64)
    all_orders = np.rint(np.concatenate(orders_of_cohorts)).astype(np.int64)
    return all_actions, all_orders


def _first_equal_actions(loss: Orders, is_sent: Mask) -> Indices:
    """Return for each action (N, A) the first of the agent's actions that does the same."""
    sent_orders = np.stack([loss.units, loss.limit, loss.asset], -1) * is_sent[..., None]
    what_actions_do = np.concatenate(
        [
            sent_orders.reshape(*loss.keeps.shape, -1),
            loss.keeps[..., None],
            loss.rests[..., None],
        ],
        axis=2,
    )
    first_equal = []
    for actions in what_actions_do:  # of one agent (A, ...); all agents at once take much memory
        are_equal = (actions[:, None] == actions).all(2)
        first_equal.append(are_equal.argmax(1))
    return np.stack(first_equal)


def _slots(loss: Orders, lots: int) -> int:
    """Return how many open orders an agent may have: no more than it may have lots in them."""
    orders_sent = int(loss.units.shape[-1])
    may_add = ((loss.keeps[..., None] > 0) & (loss.units != 0)).any()
    if not may_add:
        return orders_sent
    return max(orders_sent, min(MAX_SLOTS_OF_ADDING, int(loss.most.max() * lots)))
