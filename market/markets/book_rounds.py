"""Compiled rounds of an order book, in event time or as a batch, and each cleared again.

``matching`` has the rules. What every action of every agent would have changed is exact.

In the continuous book the state before an agent arrives does not depend on its order, so it is
walked through once, and only arrivals from the agent's own on are played again, as long as it has
an order open. In a batch all that the others' orders add up to is collected once.
"""

import numpy as np

from regretless.market.core.compiled import compiled
from regretless.market.markets.auction import clearing, shares
from regretless.market.markets.matching import (
    ASK,
    BID,
    CASH,
    FIRST,
    GOOD,
    LOTS,
    OPEN,
    SAME,
    SIDE,
    SINCE,
    TICK,
    WIDTH,
    Rules,
    Whole,
    arrive,
    own_at,
    reserve,
    settle,
)


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

    ``totals``, ``earlier`` (int array (2, T + 1)): what all, and who arrived before it, bid for and
    offer.
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


@compiled(nogil=True)
def play(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    s: Whole, r: Rules, acts: Whole, orders: Whole, order: Whole, actions: Whole, shift: Whole,
    last: Whole, tape: Whole, count: Whole,
) -> None:  # fmt: skip
    """Play a round.

    Parameters
    ----------
    order : int array (N,)
        Agents as they arrive.
    actions : int array (N,)
        What each does; -1 where it is absent.
    """
    for agent in order:
        arrive(s, r, acts, orders, agent, actions[agent], shift, tape, count)
    if r.batch:
        auction(s, r, order, last, tape, count)


@compiled(nogil=True)
def again(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    s: Whole, r: Rules, acts: Whole, orders: Whole, order: Whole, actions: Whole, shift: Whole,
    last: Whole, changes: Whole,
) -> None:  # fmt: skip
    """Write what every action of every agent would have changed for it.

    Parameters
    ----------
    s : int array
        Before the round; written.
    last : int array (d,)
        Prices before the round, in half ticks.
    changes : int array (N, A, 1 + d)
        Written: cash, and lots of each good, that the agent has more after the round, were it to
        take the action and all others theirs. Absent agents' rows are 0.
    """
    before = s[r.own :].copy()
    if r.batch:
        again_batch(s, r, acts, orders, order, actions, shift, last, changes)
    else:
        again_continuous(s, r, acts, orders, order, actions, shift, changes)
    for i in range(len(actions)):
        for a in range(acts.shape[1] if actions[i] >= 0 else 0):
            if acts[i, a, SAME] == a:
                changes[i, a, 0] -= before[i * r.wide + CASH]
                for g in range(r.goods):
                    changes[i, a, 1 + g] -= before[i * r.wide + FIRST + 3 * g]
            elif acts[i, a, SAME] >= 0:
                changes[i, a] = changes[i, acts[i, a, SAME]]


@compiled(nogil=True)
def note(s: Whole, r: Rules, agent: int, owned: Whole) -> None:
    """Write what an agent owns (1 + d,)."""
    i = own_at(r, agent)
    owned[0] = s[i + CASH]
    for g in range(r.goods):
        owned[1 + g] = s[i + FIRST + 3 * g]


@compiled(nogil=True)
def again_continuous(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    s: Whole, r: Rules, acts: Whole, orders: Whole, order: Whole, actions: Whole, shift: Whole,
    owned: Whole,
) -> None:  # fmt: skip
    """Write what ``again`` does, for a continuous book, as what agents own after the round."""
    none, count, now = np.zeros((0, 6), dtype=np.int64), np.zeros(2, np.int64), np.empty_like(s)
    for place in range(len(order)):
        agent = order[place]
        for a in range(acts.shape[1] if actions[agent] >= 0 else 0):
            if acts[agent, a, SAME] != a or acts[agent, actions[agent], SAME] == a:
                continue
            now[:] = s
            arrive(now, r, acts, orders, agent, a, shift, none, count)
            for later in range(place + 1, len(order)):
                if not now[own_at(r, agent) + OPEN]:
                    break
                who = order[later]
                arrive(now, r, acts, orders, who, actions[who], shift, none, count)
            note(now, r, agent, owned[agent, a])
        arrive(s, r, acts, orders, agent, actions[agent], shift, none, count)
    for agent in order:
        if actions[agent] >= 0:
            note(s, r, agent, owned[agent, acts[agent, actions[agent], SAME]])


@compiled(nogil=True)
def again_batch(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    s: Whole, r: Rules, acts: Whole, orders: Whole, order: Whole, actions: Whole, shift: Whole,
    last: Whole, owned: Whole,
) -> None:  # fmt: skip
    """Write what ``again`` does, for a batch, as what agents own after the round.

    Nothing trades before all are here, so that what an agent may send depends on itself alone.
    """
    none, count, before = np.zeros((0, 6), dtype=np.int64), np.zeros(2, np.int64), s.copy()
    totals = np.zeros((r.goods, 2, r.top + 1), dtype=np.int64)
    earlier = np.zeros_like(totals)  # of who arrives before the agent
    for agent in order:
        arrive(s, r, acts, orders, agent, actions[agent], shift, none, count)
        collect(s, r, totals, 1, agent)
    for agent in order:
        slots = slice(agent * r.slots * WIDTH, (agent + 1) * r.slots * WIDTH)
        own = slice(own_at(r, agent), own_at(r, agent + 1))
        sent, held = s[slots].copy(), s[own].copy()
        collect(s, r, totals, -1, agent)
        for a in range(acts.shape[1] if actions[agent] >= 0 else 0):
            if acts[agent, a, SAME] == a:
                s[slots], s[own] = before[slots], before[own]
                arrive(s, r, acts, orders, agent, a, shift, none, count)
                collect(s, r, totals, 1, agent)
                for g in range(r.goods):
                    trade_one(s, r, agent, g, totals[g], earlier[g], last[g])
                note(s, r, agent, owned[agent, a])
                collect(s, r, totals, -1, agent)
        s[slots], s[own] = sent, held
        collect(s, r, totals, 1, agent)
        collect(s, r, earlier, 1, agent)
