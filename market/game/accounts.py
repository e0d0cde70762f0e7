r"""Accounts: what every agent of a market owns, cash and goods, and what the world outside does.

Agents are numbered through all cohorts, as everywhere from the first of the first cohort. Row N of
both tables is the world outside: what is granted to agents comes from it, what they consume goes to
it, and it may owe. Agents may not: whatever would leave one with less than nothing is refused.

    sum over all rows of cash, and of each good:  the same before and after every move.

Not up to rounding, but exactly: every amount is rounded to a multiple of ``unit`` = 2^-k before it
moves, and doubles add multiples of 2^-k without error as long as totals stay below 2^(53-k).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Remembering
from regretless.market.core.errors import UserError, closest
from regretless.market.game.protocols import Cohort

UNIT = 2.0**-22  # totals up to 2^31
BITS = 2.0**53  # a double holds whole numbers up to here


class Accounts(Remembering):
    """Cash and goods of all agents and of the world outside.

    Parameters
    ----------
    cohorts : sequence of Cohort
    cash : number, or dict by cohort's name
        What every agent begins with; 0 for cohorts that are not named.
    goods : sequence of such numbers or dicts
        The same for each good.
    unit : float
        A power of 2 of which all amounts are multiples.

    Attributes
    ----------
    cash : array (N + 1,)
    goods : array (N + 1, g)
        In both the last row is the world outside. Read them; ``move`` writes.

    Raises
    ------
    UserError
        If an endowment is negative, too large for the unit, or of a cohort that does not exist.
    """

    REMEMBERED = ("cash", "goods")

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        cash: float | dict[str, float] = 0.0,
        goods: Sequence[float | dict[str, float]] = (),
        *,
        unit: float = UNIT,
    ) -> None:
        self.unit = unit
        self.sizes = {cohort.name: len(cohort.row_of) for cohort in cohorts}
        self.cash = self._endowed("cash", cash)
        columns = [self._endowed("stock", good) for good in goods]
        self.goods = np.stack(columns, axis=1) if columns else np.zeros((len(self.cash), 0))

    @property
    def agents(self) -> int:
        """How many agents there are, N."""
        return len(self.cash) - 1

    def totals(self) -> Array:
        """Return the sum of all cash and of each good (1 + g,), the world outside included."""
        return np.concatenate([self.cash.sum()[None], self.goods.sum(0)])

    def columns(self, agents: ArrayLike) -> dict[str, Array]:
        """Return what the ``accounts`` table says of some agents (places among all)."""
        own = np.asarray(agents)
        table = {f"goods_{g}": column[own] for g, column in enumerate(self.goods.T)}
        return {"cash": self.cash[own]} | table

    def move(self, cash: ArrayLike, goods: ArrayLike = 0.0) -> None:
        """Give to agents (or take, below 0) what the world outside gives up.

        Parameters
        ----------
        cash : array (N,) or number
        goods : array (N, g) or number

        Raises
        ------
        UserError
            If somebody would own less than nothing.
        """
        held, stock = (own.copy() for own in (self.cash, self.goods))
        for table, change in ((held, cash), (stock, goods)):
            given = np.broadcast_to(self._rounded(change), table[:-1].shape)
            table[:-1] += given
            table[-1] -= given.sum(0)
        self._check(held, stock)
        self.cash, self.goods = held, stock

    def trade(self, bought: Array, price: ArrayLike) -> None:
        """Let goods change hands at one price each.

        Parameters
        ----------
        bought : array (N, g)
            Below 0 where an agent sells. Where columns do not sum to 0 the world outside trades.
        price : array (g,)
        """
        bought = self._rounded(bought)
        self.move(-(bought @ np.asarray(price, dtype=np.float64)), bought)

    def _rounded(self, amount: ArrayLike) -> Array:
        return np.rint(np.asarray(amount, dtype=np.float64) / self.unit) * self.unit

    def _check(self, cash: Array, goods: Array) -> None:
        for name, table in (("cash", cash), ("goods", goods)):
            if (table[:-1] < 0).any():
                worst = np.unravel_index(int(table[:-1].argmin()), table[:-1].shape)
                agent, owed = int(worst[0]) + 1, -float(table[worst])
                raise UserError(f"agent {agent} lacks {owed:g} of {name}; give it less to spend")
            if table.size and not np.abs(table).sum() < BITS * self.unit:
                limit = f"the accounts hold {BITS * self.unit:g} in units of {self.unit:g}"
                raise UserError(f"{name} in excess of {limit}; give larger units")

    def _endowed(self, what: str, given: float | dict[str, float]) -> Array:
        named = given if isinstance(given, dict) else dict.fromkeys(self.sizes, given)
        for name in named:
            if name not in self.sizes:
                raise UserError(f"market.{what}.{name}: {closest(name, self.sizes)}")
        for value in named.values():
            if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
                raise UserError(f"market.{what} = {given}: give numbers of at least 0")
        each = [np.full(size, named.get(name, 0.0)) for name, size in self.sizes.items()]
        return self._rounded(np.concatenate([*each, [0.0]]))
