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
from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import UserError
from regretless.market.game.accounts import Accounts, Endowment
from regretless.market.game.market import Decisions, Market, check_key, columns_before_clearing
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
        self.last = columns_before_clearing(
            fundamental=self.goods, price=self.goods, volume=self.goods
        )
        orders_of_cohorts = list[Array]()  # units and limits of each cohort's actions (K, A, 2, d)
        # What an order costs at its limits (K, A), and the units that it sells (K, A, d).
        self._costs = list[Array]()
        self._sold = list[Array]()
        largest_order = 0.0  # in units
        for cohort in cohorts:
            loss = cohort.loss
            if not isinstance(loss, Trade):
                reason = f"a {loss.form} loss of cohort.{cohort.name} has no orders"
                raise UserError(f"market 'call-auction': {reason}; use utility = \"trader\"")
            units = loss.quantity * loss.unit_scale[:, None, None]
            orders_of_cohorts.append(np.stack([units, loss.limit], axis=2))
            self._costs.append((np.maximum(units, 0) * loss.limit).sum(2))
            self._sold.append(np.maximum(-units, 0))
            largest_order = max(largest_order, float(np.abs(units).max()))
        units_of_all = largest_order * self.accounts.agents + outside
        if largest_order * LOTS_PER_UNIT * units_of_all * LOTS_PER_UNIT > MAX_ORDER_PRODUCT:
            raise UserError(f"orders of {largest_order:g} units are too large; give larger units")
        self._order_table, self._row_of_agent = _menu(cohorts, orders_of_cohorts)

    def clear(self, fundamental: Array, decisions: Decisions) -> Array:
        if self.restores:
            self.restock()
        trades, half_ticks, volume_lots, gained = clear_actions(
            self._order_table,
            self._row_of_agent,
            self.actions_of_agents(decisions),
            self.accounts.cash,
            self.accounts.goods,
            self.outside * (fundamental - NEUTRAL_FUNDAMENTAL),
            (self.price * 2 * TICKS_PER_UNIT).astype(np.int64),
        )
        price = half_ticks / (2 * TICKS_PER_UNIT)
        volume = volume_lots / LOTS_PER_UNIT
        self.gains += gained / (2 * TICKS_PER_UNIT * LOTS_PER_UNIT)
        self.accounts.trade(trades[:-1] / LOTS_PER_UNIT, price)
        self.price = price
        self.volume = self.volume + volume
        self.rounds = self.rounds + 1
        self.last = {"fundamental": fundamental, "price": price, "volume": volume}
        return price

    def affordable(self, cohort_index: int) -> Mask:
        """Return which orders an agent's cash, at its limits, and stock cover whole (N, A)."""
        row_of_agent = self.cohorts[cohort_index].row_of
        cost = self._costs[cohort_index][row_of_agent]
        sold = self._sold[cohort_index][row_of_agent]
        return self.can_cover(cohort_index, cost, sold)

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


def _menu(cohorts: Sequence[Cohort], orders_of_cohorts: list[Array]) -> tuple[Array, Indices]:
    """Return the orders of all cohorts' actions in one table, and the row of each agent in it.

    ``orders_of_cohorts`` are (K, A, 2, d) by cohort; the table is (R, A, 2, d), with zeros beyond
    a cohort's actions, and rows are (N,).
    """
    max_actions = max(orders.shape[1] for orders in orders_of_cohorts)
    tables = []
    row_of_agent = []
    rows_before = 0
    for cohort, orders in zip(cohorts, orders_of_cohorts, strict=True):
        missing_actions = max_actions - orders.shape[1]
        tables.append(np.pad(orders, ((0, 0), (0, missing_actions), (0, 0), (0, 0))))
        row_of_agent.append(rows_before + cohort.row_of)
        rows_before += len(orders)
    return np.concatenate(tables), np.concatenate(row_of_agent)


@compiled(nogil=True)
def chosen_orders(
    order_table: Array, row_of_agent: Indices, actions: Indices
) -> tuple[Array, Array]:
    """Return the units and the limits of what each agent chose (N, d) and (N, d), compiled.

    Parameters
    ----------
    order_table : array (R, A, 2, d)
        Units, below 0 to sell, and limits of each row's actions.
    row_of_agent, actions : int array (N,)
        Each agent's row and action; -1 for an absent one, who orders nothing.
    """
    n_goods = order_table.shape[3]
    units = np.zeros((len(actions), n_goods))
    limits = np.zeros((len(actions), n_goods))
    for agent in range(len(actions)):
        if actions[agent] >= 0:
            order = order_table[row_of_agent[agent], actions[agent]]
            for good in range(n_goods):
                units[agent, good] = order[0, good]
                limits[agent, good] = order[1, good]
    return units, limits


@compiled(nogil=True)
def clear_actions(
    order_table: Array,
    row_of_agent: Indices,
    actions: Indices,
    cash: Array,
    goods: Array,
    outside_units: Array,
    last_half_ticks: Whole,
) -> tuple[Whole, Whole, Whole, int]:
    """Clear what agents chose, cut to what they own (compiled).

    Arguments are those of ``chosen_orders``, ``covered_orders`` and ``clear_goods``, whose result
    is returned.
    """
    units, limits = chosen_orders(order_table, row_of_agent, actions)
    orders, ticks = covered_orders(units, limits, cash, goods, outside_units)
    return clear_goods(orders, ticks, last_half_ticks)


@compiled(nogil=True)
def covered_orders(
    units: Array, limits: Array, cash: Array, goods: Array, outside_units: Array
) -> tuple[Whole, Whole]:
    """Return orders in lots and their limits in ticks, cut to what agents own (compiled).

    With L lots to a unit and c_i the cash that agent i would pay at its limits, it orders of good g

        floor(L min(1, cash_i / c_i) units_ig)    to buy,        c_i = sum of limit_ig units_ig,
        floor(L min(goods_ig, -units_ig))         to sell.

    Parameters
    ----------
    units, limits : array (N, d)
        What each agent would buy, below 0 to sell, and its limits.
    cash : array (N + 1,)
    goods : array (N + 1, d)
        What everybody owns; the last account is that of the world outside, which may owe.
    outside_units : array (d,)
        What the world outside buys at any price, below 0 to sell.

    Returns
    -------
    int array (N + 1, d), int array (N + 1, d)
        Lots, below 0 for sales, and limits in ticks; the last row is that of the world outside.
    """
    agents, n_goods = units.shape
    orders = np.empty((agents + 1, n_goods), dtype=np.int64)
    ticks = np.empty((agents + 1, n_goods), dtype=np.int64)
    for agent in range(agents):
        cost = 0.0
        for good in range(n_goods):
            cost += max(units[agent, good], 0.0) * limits[agent, good]
        affordable_share = 1.0
        if cost > cash[agent]:
            affordable_share = cash[agent] / cost
        for good in range(n_goods):
            bought = max(units[agent, good], 0.0) * affordable_share
            sold = min(max(-units[agent, good], 0.0), goods[agent, good])
            orders[agent, good] = np.floor(bought * LOTS_PER_UNIT) - np.floor(sold * LOTS_PER_UNIT)
            ticks[agent, good] = np.rint(limits[agent, good] * TICKS_PER_UNIT)
    for good in range(n_goods):
        orders[agents, good] = np.rint(outside_units[good] * LOTS_PER_UNIT)
        ticks[agents, good] = 0
        if orders[agents, good] > 0:
            ticks[agents, good] = TICKS_PER_UNIT
    return orders, ticks


@compiled(nogil=True)
def clear_goods(
    orders: Whole, ticks: Whole, last_half_ticks: Whole
) -> tuple[Whole, Whole, Whole, int]:
    """Clear every good by itself (compiled).

    Parameters
    ----------
    orders, ticks : int array (n, d)
        Lots, below 0 for sales, and limits; the last row is that of the world outside.
    last_half_ticks : int array (d,)
        The last prices.

    Returns
    -------
    int array (n, d)
        Lots that each order trades, below 0 for sales.
    int array (d,), int array (d,)
        Prices in half ticks, and lots that trade at them.
    int
        Gains of all but the last order, in half ticks times lots.
    """
    n_orders, n_goods = orders.shape
    traded = np.empty((n_orders, n_goods), dtype=np.int64)
    half_ticks = np.empty(n_goods, dtype=np.int64)
    volume = np.empty(n_goods, dtype=np.int64)
    gained = 0
    for good in range(n_goods):
        demand = np.zeros(TICKS_PER_UNIT + 1, dtype=np.int64)
        supply = np.zeros(TICKS_PER_UNIT + 1, dtype=np.int64)
        for i in range(n_orders):
            if orders[i, good] < 0:
                supply[ticks[i, good]] -= orders[i, good]
            else:
                demand[ticks[i, good]] += orders[i, good]
        half_ticks[good], volume[good] = clearing(demand, supply, last_half_ticks[good])
        lots_left = shares(half_ticks[good], volume[good], demand, supply)
        gained += fill(
            orders[:, good], ticks[:, good], half_ticks[good], lots_left, traded[:, good]
        )
    return traded, half_ticks, volume, gained


@compiled(nogil=True)
def fill(
    orders: Whole,
    ticks: Whole,
    half_ticks: int,
    lots_left: tuple[int, int, int, int],
    traded: Whole,
) -> int:
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
    lots_left : tuple of int
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
def clearing(demand: Whole, supply: Whole, last_half_ticks: int) -> tuple[int, int]:
    """Return the price in half ticks, and the lots that trade at it (compiled).

    With D(p) the lots that are bid for at p or more and S(p) those offered at p or less, a tick
    clears if D(p + 1) <= S(p) and S(p - 1) <= D(p), and min(D(p), S(p)) lots trade. Of several the
    price is the middle.

    Parameters
    ----------
    demand, supply : int array (T + 1,)
        Lots bid for and offered at each tick.
    last_half_ticks : int
        The last price, which is kept as far as it clears where nothing trades.
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
    return min(max(last_half_ticks, 2 * low), 2 * high), 0


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
    lots_left_for_bids = volume
    for better_tick in range(tick + 1, len(demand)):
        lots_left_for_bids -= demand[better_tick]
    lots_left_for_offers = volume
    for better_tick in range(tick + is_between_ticks):
        lots_left_for_offers -= supply[better_tick]
    if is_between_ticks:
        return lots_left_for_bids, lots_left_for_offers, 0, 0
    return lots_left_for_bids, lots_left_for_offers, int(demand[tick]), int(supply[tick])
