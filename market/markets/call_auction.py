r"""A call auction: the orders of a round are collected and cleared at one price for each good.

Scenario files choose it by the kind ``call-auction``; ``Exchange``, agents with cash and stocks, is
also what the order book builds on, and its batches are cleared by ``clearing`` and ``shares``. Cash
and goods are conserved exactly, since all amounts are whole numbers of lots and ticks.

Mathematics
-----------
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

TICKS_PER_UNIT = 1024  # between the least and the greatest price
LOTS_PER_UNIT = 1024  # to a unit
NEUTRAL_FUNDAMENTAL = 0.5  # at which the world outside neither buys nor sells
MAX_ORDER_PRODUCT = 2.0**62  # of an order times all of them, in lots: what 64 bits hold

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
        is_whole = type(refresh) is int and refresh >= 0
        check_key("refresh", refresh, is_whole, "a whole number of at least 0")
        self.accounts: Accounts = Accounts(cohorts, cash, stocks)
        self.refresh = refresh
        self.rounds = 0
        # What agents began with; the last account is that of the world outside.
        self._initial_cash = self.accounts.cash[:-1].copy()
        self._initial_goods = self.accounts.goods[:-1].copy()

    @property
    def restores(self) -> bool:
        """Whether agents have what they began with before the next clearing."""
        return bool(self.refresh and self.rounds and self.rounds % self.refresh == 0)

    def restock(self) -> None:
        """Give agents what they began with."""
        cash_lacking = self._initial_cash - self.accounts.cash[:-1]
        goods_lacking = self._initial_goods - self.accounts.goods[:-1]
        self.accounts.move(cash_lacking, goods_lacking)

    def can_cover(self, cohort_index: int, cost: Array, sold: Array) -> Mask:
        """Return which actions (N, A) the agents of a cohort can pay for and deliver.

        ``cost`` (N, A) is their cash, and ``sold`` (N, A, d) their units of each good; the cohort
        is named by its index.
        """
        agent_rows = self.accounts.places[self.cohorts[cohort_index].name]
        cash = self.accounts.cash
        goods = self.accounts.goods
        if self.restores:
            cash = self._initial_cash
            goods = self._initial_goods
        can_pay = cost <= cash[agent_rows, None]
        can_deliver = (sold <= goods[agent_rows, None]).all(2)
        return np.asarray(can_pay & can_deliver)


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
        self.outside = outside
        self.gains = 0.0  # from trade, of all rounds
        self.price = np.full(self.goods, 0.5)
        self.volume = np.zeros(self.goods)  # units, of all rounds
        self._units = list[Array]()  # of each cohort's actions (K, A, d)
        self._limits = list[Array]()  # likewise
        for cohort in cohorts:
            loss = cohort.loss
            if not isinstance(loss, Trade):
                reason = f"a {loss.form} loss of cohort.{cohort.name} has no orders"
                raise UserError(f"market 'call-auction': {reason}; use utility = \"trader\"")
            self._units.append(loss.quantity * loss.unit_scale[:, None, None])
            self._limits.append(loss.limit)
        largest_order = max(float(np.abs(units).max()) for units in self._units)
        units_of_all = largest_order * self.accounts.agents + outside
        if largest_order * LOTS_PER_UNIT * units_of_all * LOTS_PER_UNIT > MAX_ORDER_PRODUCT:
            raise UserError(f"orders of {largest_order:g} units are too large; give larger units")

    def clear(self, fundamental: Array, decisions: Decisions) -> Array:
        if self.restores:
            self.restock()
        orders, ticks = self._orders_of_round(fundamental, decisions)
        trades = np.empty_like(orders)
        volume = np.empty(self.goods)
        price = np.empty(self.goods)
        for g in range(self.goods):
            demand = np.zeros(TICKS_PER_UNIT + 1, dtype=np.int64)
            supply = np.zeros(TICKS_PER_UNIT + 1, dtype=np.int64)
            is_sale = orders[:, g] < 0
            np.add.at(demand, ticks[~is_sale, g], orders[~is_sale, g])
            np.add.at(supply, ticks[is_sale, g], -orders[is_sale, g])
            last_half_ticks = int(self.price[g] * 2 * TICKS_PER_UNIT)
            half_ticks, volume_lots = clearing(demand, supply, last_half_ticks)
            lots_left = np.array(shares(half_ticks, volume_lots, demand, supply))
            gained = fill(orders[:, g], ticks[:, g], half_ticks, lots_left, trades[:, g])
            self.gains += gained / (2 * TICKS_PER_UNIT * LOTS_PER_UNIT)
            volume[g] = volume_lots / LOTS_PER_UNIT
            price[g] = half_ticks / (2 * TICKS_PER_UNIT)
        self.accounts.trade(trades[:-1] / LOTS_PER_UNIT, price)
        self.price = price
        self.volume = self.volume + volume
        self.rounds = self.rounds + 1
        self.last = {"fundamental": fundamental, "price": price, "volume": volume}
        return price

    def _orders_of_round(self, fundamental: Array, decisions: Decisions) -> tuple[Whole, Whole]:
        """Return the orders in lots, below 0 for sales, and their limits in ticks (N + 1, d).

        They are cut to what agents own; the last is that of the world outside.
        """
        units = self.chosen(self._units, decisions)
        limits = self.chosen(self._limits, decisions)
        bought = np.maximum(units, 0)
        cash = self.accounts.cash[:-1]  # the last account is that of the world outside
        cost = np.zeros(len(units))
        for g in range(self.goods):
            cost += bought[:, g] * limits[:, g]
        affordable_share = np.divide(cash, cost, out=np.ones_like(cost), where=cost > cash)
        sold = np.minimum(np.maximum(-units, 0), self.accounts.goods[:-1])
        lots_bought = np.floor(bought * affordable_share[:, None] * LOTS_PER_UNIT)
        lots_sold = np.floor(sold * LOTS_PER_UNIT)
        lots_of_outside = np.rint(
            self.outside * (fundamental - NEUTRAL_FUNDAMENTAL) * LOTS_PER_UNIT
        )
        tick_of_outside = np.where(lots_of_outside > 0, TICKS_PER_UNIT, 0)  # it trades at any price
        orders = np.vstack([lots_bought - lots_sold, lots_of_outside])
        ticks = np.vstack([np.rint(limits * TICKS_PER_UNIT), tick_of_outside])
        return orders.astype(np.int64), ticks.astype(np.int64)

    def affordable(self, cohort_index: int) -> Mask:
        """Return which orders an agent's cash, at its limits, and stock cover whole (N, A)."""
        row_of_agent = self.cohorts[cohort_index].row_of
        units = self._units[cohort_index]
        cost = (np.maximum(units, 0) * self._limits[cohort_index]).sum(2)
        sold = np.maximum(-units, 0)
        return self.can_cover(cohort_index, cost[row_of_agent], sold[row_of_agent])

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
def fill(orders: Whole, ticks: Whole, half_ticks: int, lots_left: Whole, traded: Whole) -> int:
    """Write what orders trade at a price, and return what agents gain by it (compiled).

    Shares at the limit are those of running sums, rounded down: their sum is exactly what is left,
    and nobody gets more than it wanted.

    Parameters
    ----------
    orders : int array (n,)
        Lots, below 0 for sales; the last order is that of the world outside.
    ticks : int array (n,)
        Their limits.
    half_ticks : int
        The price.
    lots_left : int array (4,)
        What ``shares`` returns.
    traded : int array (n,)
        Written: lots, below 0 for sales.

    Returns
    -------
    int
        Gains of all but the last order, in half ticks times lots.
    """
    gained = 0
    running_remainder = np.zeros(2, dtype=np.int64)  # of bids and offers at the price
    for i in range(len(orders)):
        if orders[i] > 0:
            side = 0
            sign = 1
        else:
            side = 1
            sign = -1
        improvement = sign * (2 * ticks[i] - half_ticks)
        traded[i] = orders[i] if improvement > 0 else 0
        if improvement > 0 and i < len(orders) - 1:
            gained += improvement * abs(orders[i])
        elif improvement == 0 and orders[i] != 0:
            running_remainder[side] += abs(orders[i]) * lots_left[side]
            share = running_remainder[side] // lots_left[2 + side]
            running_remainder[side] -= share * lots_left[2 + side]
            traded[i] = sign * share
    return gained


@compiled(nogil=True)
def clearing(demand: Whole, supply: Whole, last: int) -> tuple[int, int]:
    """Return the price in half ticks, and the lots that trade at it (compiled).

    Parameters
    ----------
    demand, supply : int array (T + 1,)
        Lots bid for and offered at each tick.
    last : int
        The last price in half ticks, which is kept as far as it clears where nothing trades.
    """
    top_tick = len(demand) - 1
    demand_at = demand.sum()  # D(p)
    supply_below = 0  # S(p) less what is offered at p
    low = -1
    high = top_tick
    volume = 0
    for tick in range(top_tick + 1):
        if supply_below > demand_at:  # the tick is too high, as are all above
            break
        high = tick
        if low < 0 and demand_at - demand[tick] <= supply_below + supply[tick]:
            low = tick
            volume = min(demand_at, supply_below + supply[tick])
        demand_at -= demand[tick]
        supply_below += supply[tick]
    # Half ticks: twice the middle of the ticks that clear, and ticks times two.
    if volume:
        return low + high, volume
    return min(max(last, 2 * low), 2 * high), 0


@compiled(nogil=True)
def shares(half_ticks: int, volume: int, demand: Whole, supply: Whole) -> tuple[int, int, int, int]:
    """Return how the orders whose limit is the price itself are rationed (compiled).

    These are the lots left for such bids and for such offers once better orders are filled, and the
    lots that these bids and these offers want; 0 wanted where the price lies between two ticks.

    Parameters
    ----------
    half_ticks, volume : int
        The price and the lots that trade at it, as ``clearing`` returns them.
    demand, supply : int array (T + 1,)
        Lots bid for and offered at each tick.
    """
    tick = half_ticks // 2
    is_between_ticks = half_ticks % 2
    lots_left_for_bids = int(volume - demand[tick + 1 :].sum())
    lots_left_for_offers = int(volume - supply[: tick + is_between_ticks].sum())
    if is_between_ticks:
        return lots_left_for_bids, lots_left_for_offers, 0, 0
    return lots_left_for_bids, lots_left_for_offers, int(demand[tick]), int(supply[tick])
