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
from itertools import pairwise, starmap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.errors import UserError, closest
from regretless.market.core.own_code import read_only
from regretless.market.game.protocols import Cohort

UNIT = 2.0**-22  # totals up to 2^31
BITS = 2.0**53  # a double holds whole numbers up to here
Endowment = float | dict[str, float]  # of every agent, or by cohort's name


@dataclass(frozen=True, eq=False)
class Account:
    """What an agent owns, or each of n: cash, a number or (n,), and goods (g,) or (n, g)."""

    cash: Any
    goods: Array


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
        ends = np.cumsum([0, *self.sizes.values()]).tolist()
        self.places = dict(zip(self.sizes, starmap(slice, pairwise(ends)), strict=True))
        self.cash = self._rounded(np.append(self.each("cash", cash), 0.0))
        columns = [self._rounded(np.append(self.each("stock", good), 0.0)) for good in goods]
        self.goods = np.stack(columns, axis=1) if columns else np.zeros((len(self.cash), 0))
        self._limit = BITS * unit / len(self.cash)  # of a holding, so that totals are exact

    def _rounded(self, amounts: Array) -> Array:
        return np.asarray(np.rint(amounts / self.unit) * self.unit)

    @property
    def agents(self) -> int:
        """How many agents there are, N."""
        return len(self.cash) - 1

    def totals(self) -> Array:
        """Return the sum of all cash and of each good (1 + g,), the world outside included."""
        return np.concatenate([self.cash.sum()[None], self.goods.sum(0)])

    def of(self, agents: int | slice) -> Account:
        """Return what an agent owns, or several do, by their places among all."""
        return Account(read_only(self.cash)[agents], read_only(self.goods)[agents])

    def columns(self, agents: ArrayLike) -> dict[str, Array]:
        """Return what the ``accounts`` table says of some agents (places among all)."""
        own = np.asarray(agents)
        table = {f"goods_{g}": column[own] for g, column in enumerate(self.goods.T)}
        return {"cash": self.cash[own]} | table

    def trade(self, bought: Array, price: ArrayLike) -> None:
        """Let goods (N, g), below 0 where an agent sells, change hands at one price each (g,).

        Where columns do not sum to 0 the world outside trades.
        """
        self.move(0.0, bought, price=price)

    def move(self, cash: ArrayLike, goods: ArrayLike = 0.0, *, price: ArrayLike = 0.0) -> None:
        """Give to agents cash (N,) and goods (N, g) (or take, below 0) of the world outside.

        Numbers are for all. ``price`` (g,) is what a unit of each good is paid with, beside the
        cash. UserError if somebody would own less than nothing, or too much to add exactly.
        """
        paid, given = np.atleast_1d(np.asarray(cash, np.float64)), np.asarray(goods, np.float64)
        shape = self.agents, self.goods.shape[1]
        if paid.shape not in ((1,), shape[:1]) or given.shape not in ((), shape):
            got = f"cash {paid.shape} and goods {given.shape}"
            raise UserError(f"{got} for {shape[0]} agents and {shape[1]} goods; give one each")
        units = np.broadcast_to(self._rounded(given), shape)
        amounts = self._rounded(paid) - self._rounded(units * np.asarray(price)).sum(1)
        held, owned = self.cash[:-1] + amounts, self.goods[:-1] + units
        lacking = ~((held >= 0) & (owned >= 0).all(1))  # what is no number, too
        if lacking.any():
            short = int(lacking.argmax())
            owes = held[short], *owned[short]
            lacks = f"{-min(owes):g} of {'cash' if owes[0] < 0 else 'goods'}"
            raise UserError(f"agent {short + 1} lacks {lacks}; give it less to spend")
        most = max(held.max(initial=0.0), owned.max(initial=0.0))
        if most >= self._limit:
            raise UserError(
                f"{most:g} in one account is too much to add exactly; give larger units"
            )
        self.cash[:-1], self.goods[:-1] = held, owned
        self.cash[-1] -= amounts.sum()
        self.goods[-1] -= units.sum(0)

    def each(self, what: str, given: Endowment, otherwise: float = 0.0) -> Array:
        """Return each agent's number (N,), given for all or by cohort; UserError if below 0."""
        named = given if isinstance(given, dict) else dict.fromkeys(self.sizes, given)
        for name, value in named.items():
            if name not in self.sizes:
                raise UserError(f"market.{what}: no cohort '{name}'; {closest(name, self.sizes)}")
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise UserError(f"market.{what} = {given}: give numbers of at least 0")
        parts = [np.full(n, float(named.get(name, otherwise))) for name, n in self.sizes.items()]
        return np.concatenate(parts)
