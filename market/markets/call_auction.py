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

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from regretless.market import register
from regretless.market.core.arrays import Array, Mask
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import UserError
from regretless.market.game.accounts import Accounts, Endowment
from regretless.market.game.market import Decisions, Market, check_key
from regretless.market.game.protocols import Cohort
from regretless.market.losses.trade import Trade

TICKS = 1024  # between the least and the greatest price
LOTS = 1024  # to a unit
MOST = 2.0**62  # of an order times all of them, in lots: what 64 bits hold

Whole = NDArray[np.int64]


class Exchange(Market):
    """A market of agents with cash and stocks, one per good.

    Every ``refresh`` rounds agents have again what they began with; 0 for never.
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
        fine = type(refresh) is int and refresh >= 0
        check_key("refresh", refresh, fine, "a whole number of at least 0")
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
    """A uniform-price call auction of limit orders, read off ``Trade`` losses.

    ``outside``: units that the world outside trades where a fundamental is at its end.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("price", "rounds", "volume", "gains")
    column_labels: ClassVar[Mapping[str, str]] = {"volume": "units traded"}

    def __init__(
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
        check_key("outside", outside, outside >= 0, "a number of at least 0")
        self.outside, self.gains = outside, 0.0
        self.price, self.volume = np.full(self.goods, 0.5), np.zeros(self.goods)
        self._units, self._limits = list[Array](), list[Array]()  # (K, A, g), in own units
        for cohort in cohorts:
            loss = cohort.loss
            if not isinstance(loss, Trade):
                why = f"a {loss.form} loss of cohort.{cohort.name} has no orders"
                raise UserError(f"market 'call-auction': {why}; use utility = \"trader\"")
            self._units.append(loss.quantity * loss.unit_scale[:, None, None])
            self._limits.append(loss.limit)
        largest = max(float(np.abs(units).max()) for units in self._units)
        if largest * LOTS * (largest * self.accounts.agents + outside) * LOTS > MOST:
            raise UserError(f"orders of {largest:g} units are too large; give larger units")

    def clear(self, fundamental: Array, decisions: Decisions) -> Array:
        if self.restores:
            self.restock()
        # Orders cut to what agents own, the world outside's last, in lots and ticks (N + 1, d).
        units, limits = self.chosen(self._units, decisions), self.chosen(self._limits, decisions)
        bought, cash, cost = np.maximum(units, 0), self.accounts.cash[:-1], np.zeros(len(units))
        for g in range(self.goods):
            cost += bought[:, g] * limits[:, g]
        enough = np.divide(cash, cost, out=np.ones_like(cost), where=cost > cash)
        sold = np.minimum(np.maximum(-units, 0), self.accounts.goods[:-1])
        sent = np.floor(bought * enough[:, None] * LOTS) - np.floor(sold * LOTS)
        outside = np.rint(self.outside * (fundamental - 0.5) * LOTS)
        wanted = np.vstack([sent, outside]).astype(np.int64)
        ends = np.where(outside > 0, TICKS, 0)
        ticks = np.vstack([np.rint(limits * TICKS), ends]).astype(np.int64)

        traded, volume, price = np.empty_like(wanted), np.empty(self.goods), np.empty(self.goods)
        for g in range(self.goods):
            book = np.zeros((2, TICKS + 1), dtype=np.int64)
            np.add.at(book, ((wanted[:, g] < 0).astype(np.intp), ticks[:, g]), np.abs(wanted[:, g]))
            half, lots = clearing(book[0], book[1], int(self.price[g] * 2 * TICKS))
            left = np.array(shares(half, lots, book[0], book[1]))
            gained = fill(wanted[:, g], ticks[:, g], half, left, traded[:, g])
            self.gains += gained / (2 * TICKS * LOTS)
            volume[g], price[g] = lots / LOTS, half / (2 * TICKS)
        self.accounts.trade(traded[:-1] / LOTS, price)
        self.price, self.volume, self.rounds = price, self.volume + volume, self.rounds + 1
        self.last = {"fundamental": fundamental, "price": price, "volume": volume}
        return price

    def affordable(self, place: int) -> Mask:
        """Return which orders an agent's cash, at its limits, and stock cover whole (N, A)."""
        rows, units = self.cohorts[place].row_of, self._units[place]
        cost = (np.maximum(units, 0) * self._limits[place]).sum(2)[rows]
        return self.covered(place, cost, np.maximum(-units, 0)[rows])

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


@compiled(nogil=True)
def fill(wanted: Whole, ticks: Whole, price: int, left: Whole, traded: Whole) -> int:
    """Write what orders trade at a price (n,), in lots; return what agents gain by it.

    In half ticks times lots, without the last order (the world outside's); ``left`` is as
    ``shares`` returns it. Shares at the limit are those of running sums, rounded down: their sum is
    exactly what is left, and nobody gets more than it wanted.
    """
    gained, over = 0, np.zeros(2, dtype=np.int64)
    for i in range(len(wanted)):
        side, sign = (0, 1) if wanted[i] > 0 else (1, -1)
        better = sign * (2 * ticks[i] - price)
        traded[i] = wanted[i] if better > 0 else 0
        if better > 0 and i < len(wanted) - 1:
            gained += better * abs(wanted[i])
        elif better == 0 and wanted[i] != 0:
            over[side] += abs(wanted[i]) * left[side]
            share = over[side] // left[2 + side]
            over[side] -= share * left[2 + side]
            traded[i] = sign * share
    return gained


@compiled(nogil=True)
def clearing(demand: Whole, supply: Whole, last: int) -> tuple[int, int]:
    """Return the price, in half ticks, and the lots that trade at it.

    ``demand``, ``supply`` (T + 1,) are the lots bid for and offered at each tick; the last price is
    kept as far as it clears where nothing trades.
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
def shares(price: int, volume: int, demand: Whole, supply: Whole) -> tuple[int, int, int, int]:
    """Return lots left for bids and offers at the price, and lots that want them."""
    tick, between = price // 2, price % 2
    left_bid = int(volume - demand[tick + 1 :].sum())
    left_ask = int(volume - supply[: tick + between].sum())
    if between:
        return left_bid, left_ask, 0, 0
    return left_bid, left_ask, int(demand[tick]), int(supply[tick])
