"""Orders and accounts of many agents, an agent at a time: collected, filled, handed over."""

import math

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.arrays import Array, Indices, Integers
from regretless.market.core.compiled import compiled

Lots = NDArray[np.int64]


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

    Returns
    -------
    int
        What all but the last (the world outside) gain, in half ticks times lots.
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
