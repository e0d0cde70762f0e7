r"""A call auction: the orders of a round are collected and cleared at one price for each good.

Orders are limit orders, read off losses of the form ``Trade``. With limits in ticks, b_i what
buyer i would buy at its limit or below and s_j what seller j would sell at its limit or above,

    D(p) = sum of b_i with limit_i >= p,     D+(p) = sum of b_i with limit_i > p,
    S(p) = sum of s_j with limit_j <= p,     S-(p) = sum of s_j with limit_j < p.

A price p clears if D+(p) <= S(p) and S-(p) <= D(p): whoever would rather trade than not does, and
only orders whose limit is p itself, which gain nothing, are rationed. The prices that clear are an
interval; the price is its middle if anything trades there, else the last price, moved into it by no
more than it needs (a k-double auction with k = 1/2: Chatterjee and Samuelson 1983). The volume,

    V = min(D(p), S(p)),

is the greatest at any price. Better limits are filled first, those at the price in proportion. So
the loss at the price is what an order gained, rationed or not.

Nobody spends what it lacks: a sale is cut to the stock, and all that an agent would buy to what its
cash pays for at its limits. (Agents of a cohort with ``budget_constraint`` do not even choose
orders that would be cut.) Quantities are multiples of a lot and limits of a tick, 2^-10 both, so
that payments are exact. The world outside may trade too, at any price and as the fundamental says,

    outside (fundamental_g - 1/2) units of good g,        bought if above 0, else sold.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from regretless.market import register
from regretless.market.core.arrays import Array, Indices, Integers, Mask
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import UserError
from regretless.market.game.accounts import Accounts, Endowment
from regretless.market.game.market import Decisions, Market, check_key
from regretless.market.game.protocols import Cohort
from regretless.market.losses.piecewise import Trade

TICKS = 1024  # between the least and the greatest price
LOTS = 1024  # to a unit
MOST = 2.0**62  # of an order times all of them, in lots: what 64 bits hold

Lots = NDArray[np.int64]


def filled(  # noqa: PLR0913 - orders, book, and what was agreed
    wanted: Lots, ticks: Integers, book: Lots, price: int, volume: int, traded: Lots
) -> float:
    """Write the lots that each order trades (n,), below 0 for sales; return what all gain.

    Parameters
    ----------
    wanted, ticks : int array (n,)
        Lots, below 0 for sales, and limits.
    book : int array (2, TICKS + 1)
        All of them at each limit.
    price, volume : int
        As ``clearing`` returns them.
    traded : int array (n,)
        Written.
    """
    left_bid, left_ask, *at = shares(price, volume, *book)
    return int(fill(wanted, ticks, price, (left_bid, left_ask), np.array(at), traded)) / (
        2 * TICKS * LOTS
    )


class Exchange(Market):
    """A market of agents with cash and stocks, which the world outside may restore.

    UserError unless there is one stock per good.

    Parameters
    ----------
    cohorts, rng : as in ``Market``
    cash : number, or table by cohort's name
        What each agent begins with.
    stock : such a number or table, or a list of them, one per good
        The same for the goods.
    refresh : int
        Every so many rounds agents have again what they began with; 0 for never.
    """

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        rng: np.random.Generator,
        *,
        cash: Endowment,
        stock: Endowment | list[Endowment],
        refresh: int,
    ) -> None:
        super().__init__(cohorts, rng)
        stocks = stock if isinstance(stock, list) else [stock] * self.goods
        if len(stocks) != self.goods:
            raise UserError(f"market.stock has {len(stocks)} entries; give one per good")
        self.accounts: Accounts = Accounts(cohorts, cash, stocks)
        self.refresh, self.rounds = refresh, 0
        self._begun = self.accounts.cash[:-1].copy(), self.accounts.goods[:-1].copy()

    @property
    def restores(self) -> bool:
        """Whether agents have what they began with before the next clearing."""
        return bool(self.refresh and self.rounds and self.rounds % self.refresh == 0)

    def restock(self) -> None:
        """Give agents what they began with."""
        cash, goods = self._begun
        self.accounts.move(cash - self.accounts.cash[:-1], goods - self.accounts.goods[:-1])

    def covered(self, place: int, cost: Array, sold: Array) -> Mask:
        """Return where a cohort's agents own what it costs (N, A) and what is sold (N, A, g)."""
        own = self.accounts.places[self.cohorts[place].name]
        cash, goods = self._begun if self.restores else (self.accounts.cash, self.accounts.goods)
        return np.asarray((cost <= cash[own, None]) & (sold <= goods[own, None]).all(2))


@register.market("call-auction")
class CallAuction(Exchange):
    """A uniform-price call auction of limit orders.

    UserError if a loss is of another form or a parameter leaves its range.

    Parameters
    ----------
    cohorts, rng, cash, stock, refresh : as in ``Exchange``
        With losses of the form ``Trade``.
    outside : float
        Units that the world outside trades where a fundamental is at its end.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("price", "rounds", "volume", "gains")
    column_labels: ClassVar[Mapping[str, str]] = {"volume": "units traded"}

    def __init__(  # noqa: PLR0913 - keyword-only from the third
        self,
        cohorts: Sequence[Cohort],
        rng: np.random.Generator,
        *,
        cash: Endowment = 1.0,
        stock: Endowment | list[Endowment] = 1.0,
        refresh: int = 0,
        outside: float = 0.0,
    ) -> None:
        super().__init__(cohorts, rng, cash=cash, stock=stock, refresh=refresh)
        check_key("refresh", refresh, refresh >= 0, "a number of at least 0")
        check_key("outside", outside, outside >= 0, "a number of at least 0")
        self.outside, self.gains = outside, 0.0
        self.price, self.volume = np.full(self.goods, 0.5), np.zeros(self.goods)
        self._orders = [_orders(cohort) for cohort in cohorts]
        largest = max(float(np.abs(units).max()) for units, _ in self._orders)
        if largest * LOTS * (largest * self.accounts.agents + outside) * LOTS > MOST:
            raise UserError(f"orders of {largest:g} units are too large; give larger units")

    def clear(self, fundamental: Array, decisions: Decisions) -> Array:
        if self.restores:
            self.restock()
        wanted, ticks, book = self._collected(fundamental, decisions)
        traded, volume, price = np.empty_like(wanted), np.empty(self.goods), np.empty(self.goods)
        for g in range(self.goods):
            half, lots = clearing(book[0, g], book[1, g], int(self.price[g] * 2 * TICKS))
            orders = wanted[:, g], ticks[:, g], book[:, g]
            self.gains += filled(*orders, half, lots, traded[:, g])
            volume[g], price[g] = lots / LOTS, half / (2 * TICKS)
        self.accounts.trade(traded[:-1] / LOTS, price)
        self.price, self.volume, self.rounds = price, self.volume + volume, self.rounds + 1
        self.last = {"fundamental": fundamental, "price": price, "volume": volume}
        return price

    def affordable(self, place: int) -> Mask:
        """Return which orders an agent's cash, at its limits, and stock cover whole (N, A)."""
        cohort, (units, limit) = self.cohorts[place], self._orders[place]
        cost = (np.maximum(units, 0) * limit).sum(2)[cohort.row_of]
        return self.covered(place, cost, np.maximum(-units, 0)[cohort.row_of])

    def described(self) -> dict[str, Any]:
        rounds = max(self.rounds, 1)
        return {
            "price": self.price.tolist(),
            "volume": (self.volume / rounds).tolist(),
            "gains_from_trade": self.gains / rounds,
        }

    def summary(self) -> str:
        traded = " and ".join(f"{volume:.4g}" for volume in self.volume / max(self.rounds, 1))
        return f"Market: a call auction; {traded} units traded per round"

    def _collected(self, fundamental: Array, decisions: Decisions) -> tuple[Lots, Integers, Lots]:
        """Return all orders, the world outside's last, in lots and ticks, and the book."""
        agents = self.accounts.agents
        wanted = np.zeros((agents + 1, self.goods), dtype=np.int64)
        ticks = np.zeros_like(wanted)
        book = np.zeros((2, self.goods, TICKS + 1), dtype=np.int64)
        for cohort, orders, decision in zip(self.cohorts, self._orders, decisions, strict=True):
            own = self.accounts.places[cohort.name]
            if decision is not None:
                held = self.accounts.cash[own], self.accounts.goods[own]
                played = *orders, cohort.row_of, decision.actions
                collect(*played, *held, (LOTS, TICKS), wanted[own], ticks[own], book)
        wanted[-1] = np.rint(self.outside * (fundamental - 0.5) * LOTS)
        ticks[-1] = np.where(wanted[-1] > 0, TICKS, 0)
        book[0, :, TICKS] += np.maximum(wanted[-1], 0)
        book[1, :, 0] += np.maximum(-wanted[-1], 0)
        return wanted, ticks, book


def _orders(cohort: Cohort) -> tuple[Array, Array]:
    """Return the units and limits of each row's and action's orders (K, A, g), in own units."""
    loss = cohort.loss
    if not isinstance(loss, Trade):
        raise UserError(
            f"market 'call-auction': a {loss.form} loss of cohort.{cohort.name} has no orders; "
            'use utility = "trader"'
        )
    units = loss.quantity * loss.unit_scale[:, None, None]
    return np.ascontiguousarray(units), np.ascontiguousarray(loss.limit)


@compiled(nogil=True)
def collect(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    quantity: Array,
    limit: Array,
    rows: Indices,
    actions: Indices,
    cash: Array,
    stock: Array,
    scale: tuple[int, int],
    wanted: Lots,
    ticks: Integers,
    book: Lots,
) -> None:
    """Write each agent's orders, cut to what it owns, and add them to the book.

    Parameters
    ----------
    quantity, limit : array (K, A, g)
        Units of an action's orders, below 0 for sales, and their limits.
    rows, actions : int array (n,)
        The row and the action of each agent; -1 where it is absent.
    cash : array (n,)
    stock : array (n, g)
    scale : (int, int)
        Lots to a unit, and ticks to the greatest price.
    wanted, ticks : int array (n, g)
        Written: lots, below 0 for sales, and limits in ticks.
    book : int array (2, g, ticks + 1)
        Lots demanded and offered at each limit, to which is added.
    """
    lots, steps = scale
    for i in range(len(rows)):
        a = actions[i]
        if a < 0:
            wanted[i] = 0
            continue
        cost = 0.0
        for g in range(stock.shape[1]):
            cost += max(quantity[rows[i], a, g], 0.0) * limit[rows[i], a, g]
        enough = cash[i] / cost if cost > cash[i] else 1.0
        for g in range(stock.shape[1]):
            units = quantity[rows[i], a, g]
            ticks[i, g] = round(limit[rows[i], a, g] * steps)
            if units > 0:
                wanted[i, g] = math.floor(units * enough * lots)
                book[0, g, ticks[i, g]] += wanted[i, g]
            else:
                wanted[i, g] = -math.floor(min(-units, stock[i, g]) * lots)
                book[1, g, ticks[i, g]] -= wanted[i, g]


@compiled(nogil=True)
def fill(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    wanted: Lots, ticks: Integers, price: int, left: tuple[int, int], at: Lots, traded: Lots
) -> int:
    """Let orders trade at a price: better limits all, those at it in proportion.

    Returns int: what all but the last (the world outside) gain, in half ticks times lots.

    Parameters
    ----------
    wanted, ticks : int array (n,)
        As ``collect`` writes them.
    price : int
        In half ticks.
    left : (int, int)
        Lots that are left to the buyers and to the sellers whose limit is the price.
    at : int array (2,)
        Lots that these buyers want and these sellers offer.
    traded : int array (n,)
        Written: lots, below 0 for sales. Shares are those of running sums, rounded down: their sum
        is exactly what is left, and nobody gets more than it wanted.
    """
    gained = 0
    over = np.zeros(2, dtype=np.int64)
    for i in range(len(wanted)):
        side = 0 if wanted[i] > 0 else 1
        sign = 1 if wanted[i] > 0 else -1
        better = sign * (2 * ticks[i] - price)
        traded[i] = 0
        if better > 0:
            traded[i] = wanted[i]
            gained += better * abs(wanted[i]) if i < len(wanted) - 1 else 0
        elif better == 0 and wanted[i] != 0:
            over[side] += abs(wanted[i]) * left[side]
            share = over[side] // at[side]
            over[side] -= share * at[side]
            traded[i] = sign * share
    return gained


@compiled(nogil=True)
def clearing(demand: Integers, supply: Integers, last: int) -> tuple[int, int]:
    """Return the price and the lots that trade at it.

    Parameters
    ----------
    demand, supply : int array (T + 1,)
        Lots bid for and offered at each tick 0..T.
    last : int
        The last price, kept as far as it clears where nothing trades.
    """
    top = len(demand) - 1
    above, below = demand.sum(), 0  # D(p), and S(p) less what is offered at p
    low, high, volume = -1, top, 0
    for p in range(top + 1):
        if below > above:  # p is too high, as is all above
            break
        high = p
        if low < 0 and above - demand[p] <= below + supply[p]:
            low, volume = p, min(above, below + supply[p])
        above -= demand[p]
        below += supply[p]
    if volume:
        return low + high, volume
    return min(max(last, 2 * low), 2 * high), 0


@compiled(nogil=True)
def shares(
    price: int, volume: int, demand: Integers, supply: Integers
) -> tuple[int, int, int, int]:
    """Return lots left for bids and offers at the price, and lots that want them."""
    tick, between = price // 2, price % 2
    left_bid = volume - demand[tick + 1 :].sum()
    left_ask = volume - supply[: tick + between].sum()
    if between:
        return left_bid, left_ask, 0, 0
    return left_bid, left_ask, demand[tick], supply[tick]
