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
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import UserError
from regretless.market.core.own_code import read_only
from regretless.market.game.accounts import UNIT, Endowment
from regretless.market.game.market import Decisions, check_key, check_word, columns_before_clearing
from regretless.market.game.protocols import Cohort
from regretless.market.losses.orders import MAX_FEE, Orders
from regretless.market.markets import order_book_matching as kernels
from regretless.market.markets.call_auction import Exchange
from regretless.market.markets.order_book_matching import (
    ASK,
    BID,
    IntArray,
    Rules,
    Submissions,
)
from regretless.market.numerics.pairwise_sum import pairwise_sum

MAX_GRID_POINTS = 2**21  # ticks times lots
UNLIMITED_LOTS = 2**40  # stands for no limit
MAX_SLOTS_OF_ADDING = 64  # open orders of an agent that adds to those it has
ALLOWED_WORDS = {
    "matching": ("continuous", "batch"),
    "centre": ("fixed", "news"),
    "outcome": ("price", "value", ""),
}
# By who took the trade: nobody (0), the buyer (1), the seller (-1, the last).
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
        return middle_of_quotes(self.bid, self.ask, self.last)


def middle_of_quotes(bid: Array, ask: Array, last: Array) -> Array:
    """Return the middle of the best quotes of each good (d,), its ``last`` price where one is NaN.

    >>> middle_of_quotes(np.array([0.25, np.nan]), np.array([0.75, 0.5]), np.array([0.0, 0.125]))
    array([0.5  , 0.125])
    """
    middle = (bid + ask) / 2
    return np.where(np.isnan(middle), last, middle)


@register.market("order-book")
class OrderBook(Exchange):
    """A limit order book with price-time priority, or a frequent batch auction.

    UserError if a loss is of another form than ``Orders``, an order off the grid, or a parameter
    leaves its range. ``docs/order_book.md`` says what the parameters are. Where agents have again
    what they began with (``refresh``), a new day begins, and the book is empty.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = (
        "book_and_accounts",
        "price",
        "rounds",
        "sums",
        "best_price",
        "best_depth",
    )
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
        self._maker_fee = _fee_per_lot("maker_fee", maker_fee, lots)
        self._taker_fee = _fee_per_lot("taker_fee", taker_fee, lots)
        self._is_batch = matching == "batch"
        self._centre_follows_news = centre == "news"
        self._latency = self.accounts.each("latency", latency or {})
        losses = [_checked_orders(cohort, ticks, lots) for cohort in cohorts]
        self._losses = losses
        self._action_table, self._order_table = _menu(losses, ticks, lots)
        self._slots_per_agent = max(_max_open_orders(loss, lots) for loss in losses)
        self._private_value = np.concatenate([loss.private_value[:, 0] for loss in losses])
        self._common_weight = np.concatenate([loss.common_weight for loss in losses])
        unit_limits = np.concatenate([loss.max_units for loss in losses])
        hold_limits = self.accounts.each("hold", {} if hold is None else hold, UNLIMITED_LOTS)
        self._unit_limits = _in_lots(unit_limits, lots)
        self._hold_limits = _in_lots(hold_limits, lots)
        self._outcome_is_fundamental = outcome == "value" or (
            not outcome and bool(self._common_weight.any())
        )
        if not (self.accounts.goods * lots % 1 == 0).all():
            raise UserError(f"market.stock: lots are 1/{lots} of a unit; give multiples of that")
        self._price_of_tick = read_only(np.arange(ticks + 1) / ticks)
        self.price = np.full(self.goods, ticks, dtype=np.int64)  # of the last trades, in half ticks
        self.sums = np.zeros(5)  # trades, refused, gains, spreads, and how many
        self._unit_offset = np.concatenate([loss.unit_offset for loss in losses])
        self._unit_scale = np.concatenate([loss.unit_scale for loss in losses])
        self._no_tick_shift = np.zeros(self.goods, dtype=np.int64)
        # Each trade fills at least one order whole: one that was on the book or one that was sent.
        max_trades = self.agents * self._slots_per_agent + len(self._order_table)
        tape_shape = (kernels.FIRST_TRADE + max_trades, kernels.TRADE_WIDTH)
        self._tape = np.zeros(tape_shape, dtype=np.int64)  # of a round; the next one writes over it
        self._fixed_rules, self._empty_state = self._empty_book()
        self._empty()
        self._trades = np.zeros((0, kernels.TRADE_WIDTH), dtype=np.int64)  # of the last clearing
        # Of the last clearing, for each side and good, before old orders expired: the best price,
        # NaN for none, and how many units are there.
        self.best_price = np.full((2, self.goods), np.nan)
        self.best_depth = np.zeros((2, self.goods))
        self._view: View | None = None  # of the book as it is now; None until somebody asks
        # Written in every round: what there was before it, and what each agent receives in it.
        self._state_before = self._empty_state.copy()
        self._price_before = self.price.copy()
        self._cash_received = np.empty(self.agents)
        self._bought = np.empty((self.agents, self.goods))
        self.last = columns_before_clearing(fundamental=self.goods, volume=self.goods)

    def clear(self, fundamental: Array, decisions: Decisions) -> Array:
        """Let all agents arrive, and return the middle of the best quotes, or the fundamental."""
        if self.restores:  # what is on the book goes, too
            self._empty()
            self.restock()
        self._open_round(fundamental, decisions)
        accounts = self.accounts
        tape = self._tape
        self.best_price = np.empty((2, self.goods))
        self.best_depth = np.empty((2, self.goods))
        volume = np.zeros(self.goods)
        _play_round(
            self.book_and_accounts,
            self._rules,
            self._submissions,
            tape,
            accounts.cash,
            accounts.goods,
            self._value_of_goods,
            self.lots,
            self.expires,
            self._state_before,
            self._price_before,
            self.price,
            self.best_price,
            self.best_depth,
            self._cash_received,
            self._bought,
            volume,
            self.sums,
        )
        end_of_trades = kernels.FIRST_TRADE + tape[kernels.COUNTS, kernels.N_TRADES]
        self._trades = tape[kernels.FIRST_TRADE : end_of_trades].copy()
        self._view = None
        accounts.move(self._cash_received, self._bought)
        self.last = {"fundamental": fundamental, "volume": volume}
        self.rounds = self.rounds + 1
        if self._outcome_is_fundamental:
            return fundamental
        bid, ask = self.best_price
        return middle_of_quotes(bid, ask, self._last_prices())

    def losses(self, decisions: Decisions) -> Sequence[Array]:
        """Return what every action of every agent would have lost, by clearing again."""
        losses = np.empty(self._action_table.shape[:2])
        _write_losses_by_clearing_again(
            self._state_before,
            self._rules,
            self._submissions,
            self._price_before,
            self.lots,
            self._value_of_goods,
            self._unit_offset,
            self._unit_scale,
            losses,
        )
        tables = []
        for cohort, places in zip(self.cohorts, self.accounts.places.values(), strict=True):
            tables.append(np.ascontiguousarray(losses[places, : cohort.loss.actions]))
        return tables

    def extra_tables(self) -> Mapping[str, Mapping[str, Any]]:
        trades = {
            "sequence": np.arange(len(self._trades)),
            "good": self._trades[:, kernels.TRADE_GOOD],
            "buyer": self._trades[:, kernels.TRADE_BUYER] + 1,
            "seller": self._trades[:, kernels.TRADE_SELLER] + 1,
            "price": self._trades[:, kernels.TRADE_PRICE] / (2 * self.ticks),
            "quantity": self._trades[:, kernels.TRADE_LOTS] / self.lots,
            "aggressor": AGGRESSORS[self._trades[:, kernels.TRADE_TAKER]],
        }
        bid, ask = self.best_price
        quotes = {
            "good": np.arange(self.goods),
            "bid": bid,
            "ask": ask,
            "mid": (bid + ask) / 2,
            "bid_depth": self.best_depth[BID],
            "ask_depth": self.best_depth[ASK],
        }
        return {"trades": trades, "quotes": quotes}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint; the trades of its last round are not restored."""
        super().restore(state)
        self._view = None

    def book(self) -> View:
        """Return what is on the book, in arrays that cannot be written."""
        if self._view is None:
            self._view = self._make_view()
        return self._view

    def _make_view(self) -> View:
        """Return what is on the book now."""
        n_slots = self.accounts.agents * self._slots_per_agent
        orders = self.book_and_accounts[: n_slots * kernels.ORDER_WIDTH]
        units = np.zeros((2, self.goods, self.ticks + 1))
        best_price = np.empty((2, self.goods))
        best_depth = np.empty((2, self.goods))
        _write_depth(
            orders.reshape(n_slots, kernels.ORDER_WIDTH), self.lots, units, best_price, best_depth
        )
        units.flags.writeable = False
        best_price.flags.writeable = False
        return View(
            prices=self._price_of_tick,
            bids=units[BID],
            asks=units[ASK],
            bid=best_price[BID],
            ask=best_price[ASK],
            last=read_only(self._last_prices()),
        )

    def _last_prices(self) -> Array:
        """Return the price of the last trade in each good (d,), 1/2 before the first."""
        return np.asarray(self.price / (2 * self.ticks))

    def affordable(self, cohort_index: int) -> Mask:
        """Return which actions an agent can pay for whole, if nothing is open (N, A)."""
        loss = self._losses[cohort_index]
        fee_per_unit = max(self._maker_fee, self._taker_fee, 0) * UNIT * self.lots
        cost = np.where(loss.units > 0, loss.units * (loss.limit + fee_per_unit), 0.0).sum(2)
        is_good = np.eye(self.goods)[loss.asset.astype(np.intp)]
        sold = (np.maximum(-loss.units, 0)[..., None] * is_good).sum(2)
        return self.can_cover(cohort_index, cost, sold)

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
        values_change = bool(self._common_weight.any())
        holds_are_unlimited = self._hold_limits.max() >= UNLIMITED_LOTS
        if not self.refresh or values_change or holds_are_unlimited:
            return figures
        possible_gains = 0.0
        room = self._hold_limits / self.lots
        for private_value, stock in zip(self._private_value.T, self._initial_goods.T, strict=True):
            ranked = np.argsort(-private_value)
            allotted_so_far = np.minimum(np.cumsum(room[ranked]), stock.sum())
            allotted = np.diff(allotted_so_far, prepend=0.0)
            possible_gains += float(allotted @ private_value[ranked] - stock @ private_value)
        days = max(-(-self.rounds // self.refresh), 1)  # rounded up
        possible_gains *= days
        if possible_gains > 0:
            figures["efficiency"] = gains / possible_gains
        return figures

    def summary(self) -> str:
        figures = self.described()
        kind = "a batch auction" if self._is_batch else "an order book"
        spread = "no spread"
        if figures["spread"] is not None:
            spread = f"a mean spread of {figures['spread']:.4g}"
        gains = f"gains from trade of {round(figures['gains_from_trade'], 9) + 0.0:.4g}"
        if "efficiency" in figures:
            gains += f", {100 * figures['efficiency']:.4g} % of what there is"
        refused = ""
        if figures["refused"]:
            refused = f"; {figures['refused']:.4g} orders per round were refused"
        trades = f"{figures['trades']:.4g} trades per round"
        return f"Market: {kind}; {trades}, {spread}, {gains}{refused}"

    def _empty_book(self) -> tuple[tuple[int | bool, ...], IntArray]:
        """Return ``Rules`` but for the round's index, and the state that they lay out, unfilled.

        No order is open, and nobody owns anything.
        """
        begins, state = kernels.empty(self.agents, self._slots_per_agent, self.goods, self.ticks)
        account_table = state[begins["accounts_begin"] :].reshape(self.agents, -1)
        account_table[:, kernels.MAX_LOTS] = self._unit_limits
        account_table[:, kernels.MAX_HOLDING] = self._hold_limits
        rules = Rules(
            half_tick_cash=round(1 / UNIT) // (2 * self.ticks * self.lots),
            maker_fee=self._maker_fee,
            taker_fee=self._taker_fee,
            slots_per_agent=self._slots_per_agent,
            is_batch=self._is_batch,
            round_index=0,
            **begins,
        )
        return rules[:-1], state

    def _empty(self) -> None:
        """Take everything off the book."""
        self.book_and_accounts = self._empty_state.copy()

    def _open_round(self, fundamental: Array, decisions: Decisions) -> None:
        """Note who arrives when and does what, what goods are worth, and the rules."""
        self.arrivals = np.lexsort((self.rng.random(len(self._latency)), self._latency))
        tick_shift = self._no_tick_shift
        if self._centre_follows_news:
            tick_shift = np.rint((fundamental - 0.5) * self.ticks).astype(np.int64)
        actions = self.actions_of_agents(decisions).astype(np.int64, copy=False)
        self._submissions = Submissions(
            action_table=self._action_table,
            order_table=self._order_table,
            arrival_order=self.arrivals,
            actions=actions,
            tick_shift=tick_shift,
        )
        self._value_of_goods = self._private_value + self._common_weight[:, None] * fundamental
        self._rules = Rules._make((*self._fixed_rules, self.rounds))


@compiled(nogil=True)
def _play_round(
    state: IntArray, rules: Rules, submissions: Submissions, tape: IntArray, cash: Array,
    goods: Array, value_of_goods: Array, lots: int, max_rounds: int, state_before: IntArray,
    price_before: IntArray, price: IntArray, best_price: Array, best_depth: Array,
    cash_received: Array, bought: Array, volume: Array, sums: Array,
) -> None:  # fmt: skip
    """Play a round, and write what comes of it (compiled).

    Parameters
    ----------
    state, rules, submissions, tape
        As in ``order_book_matching``. The state is that before the round, in which what agents own
        is noted first; after it, orders older than ``max_rounds`` have gone.
    cash, goods : array (N + 1,) and (N + 1, d)
        What everybody owns before the round, in units.
    value_of_goods : array (N, d)
        What a unit is worth to each agent.
    lots : int
        In a unit.
    max_rounds : int
        For which an order stays on the book; 0 for ever.
    state_before, price_before : int array
        Written: the state in which the first agent arrives, and the prices.
    price : int array (d,)
        Of the last trade in each good, in half ticks; written where something trades.
    best_price, best_depth : array (2, d)
        Written, as by ``_write_depth``, before old orders go.
    cash_received, bought : array (N,) and (N, d)
        Written: what each agent has more after the round, in units.
    volume, sums : array
        As in ``_add_to_sums``.
    """
    kernels.open_accounts(state, rules, cash, goods, UNIT, lots)
    state_before[:] = state
    price_before[:] = price
    tape[kernels.COUNTS, :] = 0
    kernels.play(state, rules, tape, submissions, price)
    end_of_trades = kernels.FIRST_TRADE + tape[kernels.COUNTS, kernels.N_TRADES]
    trades = tape[kernels.FIRST_TRADE : end_of_trades]
    if not rules.is_batch:  # a good that traded several times keeps its last price
        for trade in range(len(trades)):
            price[trades[trade, kernels.TRADE_GOOD]] = trades[trade, kernels.TRADE_PRICE]
    kernels.drop_unrested(state, rules)
    n_slots = rules.queues_begin // kernels.ORDER_WIDTH
    orders = state[: rules.queues_begin].reshape(n_slots, kernels.ORDER_WIDTH)
    depth = np.zeros((2, rules.goods, rules.top_tick + 1))
    _write_depth(orders, lots, depth, best_price, best_depth)
    if max_rounds:
        kernels.expire(state, rules, max_rounds)
    kernels.write_received(state, rules, cash, goods, UNIT, lots, cash_received, bought)
    n_refused = tape[kernels.COUNTS, kernels.N_REFUSED]
    _add_to_sums(
        trades, n_refused, bought, value_of_goods, best_price[BID], best_price[ASK], lots, volume,
        sums,
    )  # fmt: skip


@compiled(nogil=True)
def _write_losses_by_clearing_again(
    state_before: IntArray, rules: Rules, submissions: Submissions, price_before: IntArray,
    lots: int, value_of_goods: Array, unit_offset: Array, unit_scale: Array, losses: Array,
) -> None:  # fmt: skip
    """Write what every action of every agent would have lost in a round (compiled).

    ``state_before`` and ``price_before`` are those that ``_play_round`` has written; the other
    arguments are those of ``order_book_matching.write_alternatives`` and of ``_write_losses``.
    """
    n_agents, max_actions = losses.shape
    changes = np.zeros((n_agents, max_actions, 1 + rules.goods), dtype=np.int64)
    kernels.write_alternatives(state_before.copy(), rules, submissions, price_before, changes)
    _write_losses(changes, lots, value_of_goods, unit_offset, unit_scale, losses)


@compiled(nogil=True)
def _write_losses(
    changes: IntArray,
    lots: int,
    value_of_goods: Array,
    unit_offset: Array,
    unit_scale: Array,
    losses: Array,
) -> None:
    """Write what actions lose that change what agents own, normalised (compiled).

    With the changes c in units of cash and x_g in lots of good g, and L lots in a unit,

        gain = c UNIT + sum_g value_of_goods_g x_g / L,
        loss = (-gain - unit_offset) / unit_scale.

    Parameters
    ----------
    changes : int array (N, A, 1 + d)
        As ``order_book_matching.write_alternatives`` writes it.
    lots : int
        In a unit.
    value_of_goods : array (N, d)
        What a unit is worth to each agent.
    unit_offset, unit_scale : array (N,)
        Of the agents' losses.
    losses : array (N, A)
        Written.
    """
    for agent in range(losses.shape[0]):
        for action in range(losses.shape[1]):
            worth = 0.0
            for good in range(value_of_goods.shape[1]):
                units = changes[agent, action, 1 + good] / lots
                worth += units * value_of_goods[agent, good]
            gain = changes[agent, action, 0] * UNIT + worth
            losses[agent, action] = (-gain - unit_offset[agent]) / unit_scale[agent]


@compiled(nogil=True)
def _add_to_sums(
    trades: IntArray,
    n_refused: int,
    bought: Array,
    value_of_goods: Array,
    bid: Array,
    ask: Array,
    lots: int,
    volume: Array,
    sums: Array,
) -> None:
    """Add a round to the sums of a book, and write what was traded (compiled).

    Parameters
    ----------
    trades : int array (n, order_book_matching.TRADE_WIDTH)
    n_refused : int
        Orders that were refused.
    bought, value_of_goods : array (N, d)
        Units that each agent has bought, below 0 if sold, and what one is worth to it.
    bid, ask : array (d,)
        The best prices, NaN where there is none.
    lots : int
        In a unit.
    volume : array (d,)
        Zeros, to which units that were traded are added.
    sums : array (5,)
        Trades, refused orders, gains, spreads and how many there were; added to in place.
    """
    total_spread = 0.0
    for good in range(len(bid)):
        spread = ask[good] - bid[good]
        if not np.isnan(spread):
            total_spread += spread
            sums[4] += 1
    sums[0] += len(trades)
    sums[1] += n_refused
    sums[2] += pairwise_sum((bought * value_of_goods).ravel())
    sums[3] += total_spread
    for trade in range(len(trades)):
        volume[trades[trade, kernels.TRADE_GOOD]] += trades[trade, kernels.TRADE_LOTS]
    volume /= lots


@compiled(nogil=True)
def _write_depth(
    orders: IntArray, lots_per_unit: int, depth: Array, best_price: Array, best_depth: Array
) -> None:
    """Write how many units are on a book at each tick, and at its best prices (compiled).

    depth[side, good, tick] are the lots of all orders of that side, good and tick, divided by the
    lots of a unit; a price is a tick divided by the highest one, T.

    Parameters
    ----------
    orders : int array (s, kernels.ORDER_WIDTH)
        The open orders; not modified.
    lots_per_unit : int
    depth : array (2, d, T + 1)
        Zeros, to which units bid for and offered are added, by good and tick.
    best_price, best_depth : array (2, d)
        Written: the highest price that is bid and the lowest that is asked for each good, NaN for
        none, and the units there, 0 for none.
    """
    top_tick = depth.shape[2] - 1
    best_tick = np.full(best_price.shape, -1)
    for slot in range(len(orders)):
        lots = orders[slot, kernels.LOTS]
        if not lots:
            continue
        side = orders[slot, kernels.SIDE]
        good = orders[slot, kernels.GOOD]
        tick = orders[slot, kernels.TICK]
        depth[side, good, tick] += lots
        best = best_tick[side, good]
        is_better = tick > best if side == BID else tick < best
        if best < 0 or is_better:
            best_tick[side, good] = tick
    depth /= lots_per_unit
    for side in range(2):
        for good in range(best_price.shape[1]):
            best = best_tick[side, good]
            best_price[side, good] = np.nan
            best_depth[side, good] = 0.0
            if best >= 0:
                best_price[side, good] = best / top_tick
                best_depth[side, good] = depth[side, good, best]


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


def _fee_per_lot(key: str, fee: float, lots: int) -> int:
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
    """Return all agents' actions and orders, as ``order_book_matching.Submissions`` has them."""
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
        actions = np.stack(
            [begins, ends, loss.keeps_open_orders, loss.rests_on_book, first_equal], -1
        )
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
            sent_orders.reshape(*loss.keeps_open_orders.shape, -1),
            loss.keeps_open_orders[..., None],
            loss.rests_on_book[..., None],
        ],
        axis=2,
    )
    first_equal = []
    for actions in what_actions_do:  # of one agent (A, ...); all agents at once take much memory
        do_the_same = (actions[:, None] == actions).all(2)
        first_equal.append(do_the_same.argmax(1))
    return np.stack(first_equal)


def _max_open_orders(loss: Orders, lots: int) -> int:
    """Return how many open orders an agent may have: no more than it may have lots in them."""
    orders_sent = int(loss.units.shape[-1])
    may_add = ((loss.keeps_open_orders[..., None] > 0) & (loss.units != 0)).any()
    if not may_add:
        return orders_sent
    return max(orders_sent, min(MAX_SLOTS_OF_ADDING, int(loss.max_units.max() * lots)))
