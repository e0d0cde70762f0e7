r"""Accounts: what every agent of a market owns, cash and goods, and what the world outside does.

Agents are numbered through all cohorts, as everywhere from the first of the first cohort. Row N of
both tables is the world outside: what is granted to agents comes from it, what they consume goes to
it, and it may owe. Agents may not: whatever would leave one with less than nothing is refused.

The sum over all rows of cash, and of each good, is the same before and after every move: exactly,
since every amount is rounded to a multiple of ``unit`` = 2^-k before it moves, and doubles add
multiples of 2^-k without error as long as totals stay below 2^(53-k).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import UserError, closest
from regretless.market.core.own_code import read_only
from regretless.market.game.protocols import Cohort

UNIT = 2.0**-22  # totals up to 2^31
MAX_EXACT_INTEGER = 2.0**53  # a double holds whole numbers up to here
Endowment = float | dict[str, float]  # of every agent, or by cohort's name


@dataclass(frozen=True, eq=False)
class Account:
    """What an agent owns, or each of n: cash, a number or (n,), and goods (g,) or (n, g)."""

    cash: Any
    goods: Array


@compiled()
def _move(
    cash: Array,
    goods: Array,
    cash_received: Array,
    goods_received: Array,
    price: Array,
    unit: float,
    limit: float,
    new_cash: Array,
    new_goods: Array,
) -> tuple[int, float]:
    """Write what everybody owns after a move, unless somebody lacks something or owns too much.

    With R(x) the multiple of the unit that is nearest to x, agent i has afterwards

        goods'_ig = goods_ig + R(received_ig),
        cash'_i   = cash_i + R(received_i) - sum over g of R(price_g R(received_ig)),

    and the world outside, the last row, as much less as all agents have more (compiled).

    Parameters
    ----------
    cash : array (N + 1,)
    goods : array (N + 1, g)
        What everybody owns before, and after the move; as they were if it is refused.
    cash_received : array (N,)
    goods_received : array (N, g)
        What each agent receives, below 0 for what it gives.
    price : array (g,)
        What an agent pays for a unit of each good.
    unit : float
        What amounts are rounded to multiples of.
    limit : float
        No holding may reach it.
    new_cash, new_goods : array
        As ``cash`` and ``goods``. Written: what the move would leave.

    Returns
    -------
    int
        The first agent who would own less than nothing, or what is no number; -1 for none.
    float
        The largest amount of cash or of one good that an agent would own.
    """
    agents = len(cash) - 1
    new_cash[:] = cash
    new_goods[:] = goods
    first_short = -1
    largest_holding = 0.0
    for agent in range(agents):
        cash_moved = np.rint(cash_received[agent] / unit) * unit
        is_solvent = True
        for good in range(goods.shape[1]):
            units_moved = np.rint(goods_received[agent, good] / unit) * unit
            cash_moved -= np.rint(units_moved * price[good] / unit) * unit
            new_goods[agent, good] += units_moved
            new_goods[agents, good] -= units_moved
            is_solvent = is_solvent and new_goods[agent, good] >= 0.0  # false of NaN as well
            largest_holding = max(largest_holding, new_goods[agent, good])
        new_cash[agent] += cash_moved
        new_cash[agents] -= cash_moved
        is_solvent = is_solvent and new_cash[agent] >= 0.0
        largest_holding = max(largest_holding, new_cash[agent])
        if first_short < 0 and not is_solvent:
            first_short = agent
    if first_short < 0 and largest_holding < limit:
        cash[:] = new_cash
        goods[:] = new_goods
    return first_short, largest_holding


class Accounts(Checkpointable):
    """Cash and goods of all agents and of the world outside.

    UserError if an endowment is negative, too large for the unit, or of a cohort that does not
    exist.

    ``cash`` and each of the ``goods`` are what every agent begins with, or by cohort's name, 0 for
    who is not named; all amounts are multiples of ``unit``, a power of 2.

    Attributes
    ----------
    cash : array (N + 1,)
    goods : array (N + 1, g)
        In both the last row is the world outside. Read them; ``move`` writes.
    places : dict of str to slice
        The rows of each cohort's agents.
    """

    REMEMBERED = ("cash", "goods")

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        cash: Endowment = 0.0,
        goods: Sequence[Endowment] = (),
        *,
        unit: float = UNIT,
    ) -> None:
        self.unit = unit
        self.sizes = {cohort.name: len(cohort.row_of) for cohort in cohorts}
        self.places: dict[str, slice] = {}
        first = 0
        for name, size in self.sizes.items():
            self.places[name] = slice(first, first + size)
            first += size
        self.cash = self._rounded(np.append(self.each("cash", cash), 0.0))
        holdings_per_good = [
            self._rounded(np.append(self.each("stock", good), 0.0)) for good in goods
        ]
        self.goods = np.zeros((len(self.cash), 0))
        if holdings_per_good:
            self.goods = np.stack(holdings_per_good, axis=1)
        self._shape = self.agents, self.goods.shape[1]
        # No holding may reach this amount: then the sum over all rows is exact, too.
        self._limit = MAX_EXACT_INTEGER * unit / len(self.cash)

    def _rounded(self, amounts: Array) -> Array:
        return np.asarray(np.rint(amounts / self.unit) * self.unit)

    @property
    def agents(self) -> int:
        """How many agents there are, N."""
        return len(self.cash) - 1

    def totals(self) -> Array:
        """Return the sum of all cash and of each good (1 + g,), the world outside included."""
        return np.concatenate([self.cash.sum()[None], self.goods.sum(0)])

    def of(self, agent_rows: int | slice) -> Account:
        """Return what an agent or several agents own, by their rows."""
        return Account(read_only(self.cash)[agent_rows], read_only(self.goods)[agent_rows])

    def columns(self, agents: ArrayLike) -> dict[str, Array]:
        """Return the columns of the ``accounts`` table for some agents, by their rows."""
        rows = np.asarray(agents)
        columns = {"cash": self.cash[rows]}
        for g, holdings in enumerate(self.goods.T):
            columns[f"goods_{g}"] = holdings[rows]
        return columns

    def trade(self, bought: Array, price: ArrayLike) -> None:
        """Exchange goods for cash at one price per good (g,), in place.

        ``bought`` (N, g) is below 0 where an agent sells. The world outside takes the other side
        of what is left where a column does not sum to 0.
        """
        self.move(0.0, bought, price=price)

    def move(self, cash: ArrayLike, goods: ArrayLike = 0.0, *, price: ArrayLike = 0.0) -> None:
        """Move cash and goods from the world outside to agents, or back where below 0, in place.

        Parameters
        ----------
        cash : number or array (N,)
            What each agent receives; a number for all alike.
        goods : number or array (N, g)
            As ``cash``.
        price : number or array (g,)
            What an agent pays for a unit of each good, beside ``cash``.

        Raises
        ------
        UserError
            If an agent would own less than nothing, or too much to add exactly. Then nothing moves.
        """
        cash_received = np.asarray(cash, np.float64)
        goods_received = np.asarray(goods, np.float64)
        shape = self._shape
        is_cash = cash_received.shape in (shape[:1], (), (1,))
        if not is_cash or goods_received.shape not in (shape, ()):
            received = f"cash {cash_received.shape} and goods {goods_received.shape}"
            raise UserError(f"{received} for {shape[0]} agents and {shape[1]} goods; give one each")
        price_per_good = np.asarray(price, np.float64)
        new_cash = np.empty(len(self.cash))
        new_goods = np.empty(self.goods.shape)
        first_short, largest_holding = _move(
            self.cash,
            self.goods,
            _filled(cash_received, shape[:1]),
            _filled(goods_received, shape),
            _filled(price_per_good, shape[1:]),
            self.unit,
            self._limit,
            new_cash,
            new_goods,
        )
        if first_short >= 0:
            balances = new_cash[first_short], *new_goods[first_short]
            shortfall = f"{-min(balances):g} of {'cash' if balances[0] < 0 else 'goods'}"
            raise UserError(f"agent {first_short + 1} lacks {shortfall}; give it less to spend")
        if largest_holding >= self._limit:
            raise UserError(
                f"{largest_holding:g} in one account is too much to add exactly; give larger units"
            )

    def each(self, key: str, amounts: Endowment, default: float = 0.0) -> Array:
        """Return each agent's number (N,), given for all or by cohort; UserError if below 0."""
        amount_by_cohort = (
            amounts if isinstance(amounts, dict) else dict.fromkeys(self.sizes, amounts)
        )
        for name, value in amount_by_cohort.items():
            if name not in self.sizes:
                raise UserError(f"market.{key}: no cohort '{name}'; {closest(name, self.sizes)}")
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise UserError(f"market.{key} = {amounts}: give numbers of at least 0")
        amounts_of_cohorts = [
            np.full(count, float(amount_by_cohort.get(name, default)))
            for name, count in self.sizes.items()
        ]
        return np.concatenate(amounts_of_cohorts)


def _filled(amounts: Array, shape: tuple[int, ...]) -> Array:
    """Return amounts of this shape in the order of C, of one number for all or as they are."""
    if amounts.shape == shape:
        return np.ascontiguousarray(amounts)
    filled = np.empty(shape)
    filled[...] = amounts
    return filled
