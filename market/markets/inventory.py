r"""Shops that order before they know demand, keep what is left over, and see sales, not demand.

Scenario files choose this market by the kind ``shops``. Cash and goods are conserved: what is
bought and sold moves between the shops' accounts and the world outside.

Each agent has a stock s, which lasts; action a orders up to q_a (its place in [0, 1] times A - 1):

    stock raised to max(s, q_a), as far as cash goes, at ``cost`` a unit
    sales = min(stock, D), paid at ``price`` a unit,         D = fundamental_0, everybody's demand
    what is left over is kept, and costs ``holding`` a unit and round

What is published is demand, or, where it is cut off, the most that anybody sold:

    y = D                              seen = "demand"
    y = c = min(D, greatest stock)     seen = "sales": of a shop that is sold out nobody knows more
    y = c, or E[D | D > c]             seen = "censored": where all shops sold out the mean of what
                                       is beyond c, by Kaplan and Meier's estimate from the sales
                                       so far (``market.numerics.censored_sample``)

A shop that sells out wins ``price - cost`` less than it could have, and pays for what stays on the
shelf; a unit left over is worth its cost next round. So the best order-up-to level in every round
is the newsvendor's quantile of demand (Arrow, Harris and Marschak 1951; carry-over with lost
sales: Karlin 1958),

    P(D <= q) = underage / (underage + overage),    underage = price - cost, overage = holding,

which utility ``newsvendor`` with these two reads. Where sales are seen, forecasts learn from demand
cut off at the stock, orders follow, and the level spirals down (Cooper, Homem-de-Mello and
Kleywegt 2006); the regret that is measured at sales says nothing of it. Whoever knows which sales
were cut off comes near the quantile again (Huh, Levi, Rusmevichientong and Orlin 2011, Operations
Research 59(4), 929-941, doi:10.1287/opre.1100.0906, order a quantile of Kaplan and Meier's
estimate, for independent demands).
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from regretless.market import register
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import UserError
from regretless.market.game.accounts import UNIT, Accounts
from regretless.market.game.market import Decisions, Market, check_word, columns_before_clearing
from regretless.market.game.protocols import Cohort
from regretless.market.markets.aggregate import Moments
from regretless.market.numerics.censored_sample import CensoredSample
from regretless.market.numerics.pairwise_sum import pairwise_sum

SEEN = ("demand", "sales", "censored")

SEEN_IN_WORDS = {
    "demand": "demand",
    "sales": "sales",
    "censored": "sales and what was sold out",
}


@compiled(nogil=True)
def _sell(
    order_levels: Array,
    actions: Indices,
    cash: Array,
    goods: Array,
    demand: float,
    price: float,
    cost: float,
    holding: float,
    cash_received: Array,
    goods_received: Array,
    mean_stock: Array,
    sold: Array,
) -> float:
    """Let N shops order and sell; return the greatest stock before sales (compiled).

    A shop with goods g, cash c and the order level q has afterwards

        ordered = min(max(q - g, 0), c / cost),    sold = min(g + ordered, demand),
        goods   = g + ordered - sold,
        cash    = c + price sold - cost ordered - holding (g + ordered - sold),

    with c / cost rounded down to units of ``accounts``. One that is absent orders nothing if its
    order level is 0, sells nothing, and pays for no holding.

    Parameters
    ----------
    order_levels : array (N,)
        Up to which stock each shop orders, as far as its cash goes.
    actions : int array (N,)
        Of each shop, -1 for one that is absent, which sells nothing and pays for no holding.
    cash : array (N + 1,)
    goods : array (N + 1, 1)
        What the shops own, and last the world outside.
    demand : float
        Of each shop.
    price, cost, holding : float
        What a shop receives for a unit sold, and pays for one ordered and for one left over.
    cash_received : array (N,)
    goods_received : array (N, 1)
        Written: what each shop has more afterwards.
    mean_stock, sold : array (1,)
        Written: the mean stock before sales of who is present, 0 if nobody is, and what all sold.
    """
    n_shops = len(actions)
    sold_by_shop = np.empty(n_shops)
    present_stock = np.empty(n_shops)
    n_present = 0
    greatest_stock = 0.0
    for shop in range(n_shops):
        ordered = max(order_levels[shop] - goods[shop, 0], 0.0)
        if cost > 0.0:
            affordable = np.floor(cash[shop] / cost / UNIT) * UNIT
            ordered = min(ordered, affordable)
        stock = goods[shop, 0] + ordered
        units_sold = 0.0
        left_over = 0.0
        if actions[shop] >= 0:
            units_sold = min(stock, demand)
            left_over = stock - units_sold
            present_stock[n_present] = stock
            n_present += 1
            greatest_stock = max(greatest_stock, stock)
        sold_by_shop[shop] = units_sold
        cash_received[shop] = price * units_sold - cost * ordered - holding * left_over
        goods_received[shop, 0] = ordered - units_sold
    mean_stock[0] = 0.0
    if n_present > 0:
        mean_stock[0] = pairwise_sum(present_stock[:n_present]) / n_present
    sold[0] = pairwise_sum(sold_by_shop)
    return greatest_stock


@register.market("shops")
class Shops(Market):
    """Inventories under demand that may be censored; actions order evenly spaced levels."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("levels", "unmet", "sales")
    column_labels: ClassVar[Mapping[str, str]] = {
        "level": "mean stock, of the greatest",
        "sold": "units sold by all",
    }

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        rng: np.random.Generator,
        *,
        price: float = 4.0,
        cost: float = 1.0,
        holding: float = 1.0,
        seen: str = "demand",
        cash: float | dict[str, float] = 100.0,
    ) -> None:
        super().__init__(cohorts, rng)
        check_word("seen", seen, SEEN)
        if self.goods != 1:
            raise UserError(f"market 'shops': {self.goods} outcomes; demand is one")
        if not 0 <= cost < price or holding < 0:
            raise UserError("market.cost, market.holding: give 0 <= cost < price, holding >= 0")
        self.price = float(price)
        self.cost = float(cost)
        self.holding = float(holding)
        self.seen = seen
        self.accounts: Accounts = Accounts(cohorts, cash, [0.0])
        self.levels = Moments(1)
        self.unmet = Moments(1)
        self.sales = CensoredSample()
        self.last = columns_before_clearing(fundamental=1, level=1, sold=1)
        self.answers_at_once = seen != "demand"
        self._order_levels = []  # what each action orders up to, (K, A) of each cohort
        for cohort in cohorts:
            evenly_spaced = np.linspace(0, 1, cohort.loss.actions)
            self._order_levels.append(np.tile(evenly_spaced, (len(cohort.loss), 1)))

    def clear(self, fundamental: Array, decisions: Decisions) -> Array:
        order_levels = self.chosen(self._order_levels, decisions)
        actions = self.actions_of_agents(decisions)
        cash_received = np.empty(len(actions))
        goods_received = np.empty((len(actions), 1))
        mean_stock = np.empty(1)
        sold = np.empty(1)
        greatest_stock = _sell(
            order_levels,
            actions,
            self.accounts.cash,
            self.accounts.goods,
            float(fundamental[0]),
            self.price,
            self.cost,
            self.holding,
            cash_received,
            goods_received,
            mean_stock,
            sold,
        )
        self.accounts.move(cash_received, goods_received)

        published = fundamental
        if self.answers_at_once:
            published = np.minimum(fundamental, greatest_stock)
            if self.seen == "censored":
                is_sold_out = bool(fundamental[0] >= greatest_stock)
                published = self._known_demand(float(published[0]), is_sold_out=is_sold_out)
        self.levels.add(mean_stock)
        self.unmet.add(np.array([max(fundamental[0] - mean_stock[0], 0.0)]))
        self.last = {
            "fundamental": fundamental,
            "level": mean_stock,
            "sold": sold,
        }
        return published

    def _known_demand(self, sold: float, *, is_sold_out: bool) -> Array:
        """Return what is learned (1,) of demand from what was ``sold``, and note these sales."""
        demand = self.sales.mean_beyond(sold) if is_sold_out else sold
        self.sales.add(sold, is_limit=is_sold_out)
        return np.array([demand])

    def described(self) -> dict[str, Any]:
        return {
            "seen": self.seen,
            "level": float(self.levels.mean[0]),
            "unmet": float(self.unmet.mean[0]),
            "cash": float(self.accounts.cash[:-1].mean()),
        }

    def summary(self) -> str:
        seen = SEEN_IN_WORDS[self.seen]
        return (
            f"Market: shops that see {seen} stock up to {self.levels.mean[0]:.3f} on average; "
            f"{self.unmet.mean[0]:.3f} of demand per round is not met"
        )
