r"""Accounts: what every agent of a market owns, cash and goods, and what the world outside does.

Agents are numbered through all cohorts, as everywhere from the first of the first cohort. Row N of
both tables is the world outside: what is granted to agents comes from it, what they consume goes to
it, and it may owe. Agents may not: whatever would leave one with less than nothing is refused.

    sum over all rows of cash, and of each good:  the same before and after every move.

Not up to rounding, but exactly: every amount is rounded to a multiple of ``unit`` = 2^-k before it
moves, and doubles add multiples of 2^-k without error as long as totals stay below 2^(53-k).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, starmap
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
BITS = 2.0**53  # a double holds whole numbers up to here
Endowment = float | dict[str, float]  # of every agent, or by cohort's name


@dataclass(frozen=True, eq=False)
class Account:
    """What an agent owns, or each of n.

    Parameters
    ----------
    cash : float or array (n,)
    goods : array (g,) or (n, g)
    """

    cash: Any
    goods: Array


class Accounts(Checkpointable):
    """Cash and goods of all agents and of the world outside.

    UserError if an endowment is negative, too large for the unit, or of a cohort that does not
    exist.

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
        self.cash = self._endowed("cash", cash)
        columns = [self._endowed("stock", good) for good in goods]
        self._limit = BITS * unit / len(self.cash)  # of a holding, so that totals are exact
        self.goods = np.stack(columns, axis=1) if columns else np.zeros((len(self.cash), 0))

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
        """Give to agents (or take, below 0) what the world outside gives up.

        UserError if somebody would own less than nothing.

        Parameters
        ----------
        cash : array (N,) or number
        goods : array (N, g) or number
        price : array (g,) or number
            What a unit of each good is paid with, beside the cash.
        """
        kinds = self.goods.shape[1]
        price = np.array(np.broadcast_to(np.asarray(price, dtype=np.float64), kinds))
        paid, given = np.atleast_1d(np.asarray(cash, np.float64)), np.asarray(goods, np.float64)
        given = given if given.ndim == 2 else np.broadcast_to(given, (1, kinds)).copy()
        fits = (1, self.agents)
        if len(paid) not in fits or len(given) not in fits or given.shape[1] != kinds:
            got = f"cash {paid.shape} and goods {given.shape}"
            raise UserError(f"{got} for {self.agents} agents and {kinds} goods; give one each")
        before = self.cash.copy(), self.goods.copy()
        short, most = hand_over(self.cash, self.goods, paid, given, price, self.unit)
        if short < 0 and most < self._limit:
            return
        owes = self.cash[short], *self.goods[short]
        self.cash[:], self.goods[:] = before
        if short >= 0:
            lacks = (
                f"agent {short + 1} lacks {-min(owes):g} of {'cash' if owes[0] < 0 else 'goods'}"
            )
            raise UserError(f"{lacks}; give it less to spend")
        much = f"{most:g} in one account is too much to add exactly"
        raise UserError(f"{much}; give larger units")

    def _endowed(self, what: str, given: Endowment) -> Array:
        own = np.append(self.each(what, given), 0.0)
        return np.rint(own / self.unit) * self.unit

    def each(self, what: str, given: Endowment, otherwise: float = 0.0) -> Array:
        """Return each agent's number (N,) from one for all, or one by cohort's name.

        UserError if there is no such cohort, or a number is below 0.
        """
        named = given if isinstance(given, dict) else dict.fromkeys(self.sizes, given)
        for name, value in named.items():
            if name not in self.sizes:
                raise UserError(f"market.{what}: no cohort '{name}'; {closest(name, self.sizes)}")
            if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
                raise UserError(f"market.{what} = {given}: give numbers of at least 0")
        parts = [np.full(n, float(named.get(name, otherwise))) for name, n in self.sizes.items()]
        return np.concatenate(parts)


@compiled(nogil=True)
def hand_over(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    cash: Array, goods: Array, paid: Array, given: Array, price: Array, unit: float
) -> tuple[int, float]:
    """Add to accounts, to the cent; the last row gives what the others get.

    Parameters
    ----------
    cash : array (N + 1,)
    goods : array (N + 1, g)
        Both written, up to whoever would own less than nothing.
    paid : array (N,), or (1,) for all
    given : array (N, g), or (1, g) for all
        Both rounded to multiples of the unit, a power of 2.
    price : array (g,)
        Of what is given, in cash.

    Returns
    -------
    int
        Who would own less than nothing; -1 if nobody would.
    float
        The greatest holding of cash or goods, that of the last row apart.
    """
    agents, most, lots = len(cash) - 1, 0.0, 1 / unit
    for i in range(agents):
        own, part = i if len(paid) > 1 else 0, i if len(given) > 1 else 0
        amount = np.rint(paid[own] * lots) * unit
        fine = True
        for g in range(goods.shape[1]):
            units = np.rint(given[part, g] * lots) * unit
            amount -= np.rint(units * price[g] * lots) * unit
            goods[i, g] += units
            goods[agents, g] -= units
            fine &= goods[i, g] >= 0
            most = max(most, goods[i, g])
        cash[i] += amount
        cash[agents] -= amount
        most = max(most, cash[i])
        if not (fine and cash[i] >= 0):  # what is no number, too
            return i, most
    return -1, most
