"""Compiled batches: the orders of a round trade at one price (``matching`` has the rules)."""

import numpy as np

from regretless.market.core.compiled import compiled
from regretless.market.markets.matching import (
    ASK,
    BID,
    CASH,
    FIRST,
    GOOD,
    LOTS,
    SIDE,
    SINCE,
    TICK,
    WIDTH,
    Rules,
    Whole,
    own_at,
    reserve,
    settle,
)
from regretless.market.markets.uniform_price import clearing, shares


@compiled(nogil=True)
def filled(s: Whole, k: int, price: int, split: tuple[int, int, int, int], run: Whole) -> int:
    """Return the lots that the order in slot k trades in a batch.

    Parameters
    ----------
    split : (int, int, int, int)
        As ``shares`` returns it.
    run : int array (2,)
        Lots of earlier orders at the price, of each side; written.
    """
    side, lots, tick = s[k * WIDTH + SIDE], s[k * WIDTH + LOTS], s[k * WIDTH + TICK]
    better = 2 * tick - price if side == BID else price - 2 * tick
    if better != 0 or lots == 0:
        return lots if better > 0 else 0
    left, wanted = (split[0], split[2]) if side == BID else (split[1], split[3])
    done = run[side] * left // wanted
    run[side] += lots
    return int(run[side] * left // wanted - done)


@compiled(nogil=True)
def fee_of(s: Whole, r: Rules, k: int) -> int:
    """Return what an order pays for a lot in a batch: the maker's fee if it is an older one."""
    return r.maker if 0 <= s[k * WIDTH + SINCE] < r.number else r.taker


@compiled(nogil=True)
def collect(s: Whole, r: Rules, totals: Whole, sign: int, agent: int) -> None:
    """Add an agent's orders to what is bid for and offered (d, 2, T + 1), or take them off."""
    for at in range(agent * r.slots * WIDTH, (agent + 1) * r.slots * WIDTH, WIDTH):
        if s[at + LOTS]:
            totals[s[at + GOOD], s[at + SIDE], s[at + TICK]] += sign * s[at + LOTS]


@compiled(nogil=True)
def auction(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    s: Whole, r: Rules, order: Whole, last: Whole, tape: Whole, count: Whole
) -> None:
    """Clear a batch whose orders are all on the book.

    Parameters
    ----------
    order : int array (N,)
        Agents as they arrive.
    last : int array (d,)
        The last prices, in half ticks; written where something trades.
    """
    totals = np.zeros((r.goods, 2, r.top + 1), dtype=np.int64)
    for agent in order:
        collect(s, r, totals, 1, agent)
    for g in range(r.goods):
        price, volume = clearing(totals[g, BID], totals[g, ASK], last[g])
        if not volume:
            continue
        last[g] = price
        split, run = shares(price, volume, totals[g, BID], totals[g, ASK]), np.zeros(2, np.int64)
        lots = np.zeros((2, len(order)), dtype=np.int64)
        for place in range(len(order)):
            i = own_at(r, order[place])
            for k in range(order[place] * r.slots, (order[place] + 1) * r.slots):
                n = filled(s, k, price, split, run) if s[k * WIDTH + GOOD] == g else 0
                if n:
                    lots[s[k * WIDTH + SIDE], place] += n
                    s[i + CASH] -= n * fee_of(s, r, k)
                    reserve(s, r, k, -n)
        pair(s, r, order, lots, g, price, tape, count)


@compiled(nogil=True)
def pair(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    s: Whole, r: Rules, order: Whole, lots: Whole, g: int, price: int, tape: Whole, count: Whole
) -> None:
    """Let the first buyer trade with the first seller, and so on; lots (2, N) are used up."""
    a = 0
    for b in range(len(order)):
        while lots[BID, b]:
            while not lots[ASK, a]:
                a += 1
            n = min(lots[BID, b], lots[ASK, a])
            settle(s, r, order[b], order[a], g, price, n, 0, tape, count)
            lots[BID, b] -= n
            lots[ASK, a] -= n


@compiled(nogil=True)
def trade_one(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    s: Whole, r: Rules, agent: int, g: int, totals: Whole, earlier: Whole, last: int
) -> None:
    """Give one agent what it would trade of a good in a batch; its orders stay as they are.

    Parameters
    ----------
    totals, earlier : int array (2, T + 1)
        What all, and who arrived before it, bid for and offer.
    """
    price, volume = clearing(totals[BID], totals[ASK], last)
    if not volume:
        return
    split, i = shares(price, volume, totals[BID], totals[ASK]), own_at(r, agent)
    run = earlier[:, price // 2].copy()
    for k in range(agent * r.slots, (agent + 1) * r.slots):
        lots = filled(s, k, price, split, run) if s[k * WIDTH + GOOD] == g else 0
        if lots:
            sign = 1 if s[k * WIDTH + SIDE] == BID else -1
            s[i + CASH] -= lots * (sign * price * r.half + fee_of(s, r, k))
            s[i + FIRST + 3 * g] += sign * lots
