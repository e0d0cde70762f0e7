"""Compiled orders of an order book: they are sent, rest, trade with each other and are cancelled.

Everything is a whole number. Prices are ticks 0..T, quantities lots, and cash is counted in units
of which half a tick of a lot is ``Rules.half``. Slot k belongs to agent k // slots; resting orders
of one good, side and tick are a queue by time.

    continuous   agents arrive one after the other; an order trades at once with the best orders of
                 the other side, at their prices, first come first served at each, and what is left
                 of it rests
    batch        orders are collected; D(p) lots are bid for at p or above and S(p) are offered at p
                 or below. Prices that leave nobody wanting are an interval: the price is its
                 middle. Better orders trade in full, those at the price in proportion to their
                 size (shares of running sums in the order of arrival, rounded down)

``book_rounds`` plays rounds, and says what every action of an agent would have changed.

The state is one array of whole numbers, which is quick to copy and to hand on: first the orders,
then the ends of each queue, the best prices, and what each agent owns (``Rules``).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.compiled import compiled

Whole = NDArray[np.int64]

LOTS, TICK, GOOD, SIDE, SINCE, NEXT, BEFORE, WIDTH = range(8)  # of an order, and how many there are
CASH, HELD, TURN, OPEN, MOST, HOLD, FIRST = range(7)  # of an agent; then three for each good:
OWNED, WANTED, OFFERED = range(3)
BID, ASK = 0, 1
BEGIN, END, KEEPS, RESTS, SAME, ENTRIES = range(6)  # of an action


class Rules(NamedTuple):
    """What does not change within a round, and where the state holds what.

    Parameters
    ----------
    half : int
        Cash for half a tick of one lot.
    maker, taker : int
        Cash that each pays for a lot; below 0 for what it is paid.
    slots : int
        Open orders that an agent may have.
    number : int
        Of the round.
    top, goods : int
        T, and how many goods.
    queues, best, own, wide, size : int
        Where the queues, the best prices (-1 and T + 1 for none) and the agents begin, how many
        numbers an agent has, and how many there are in all. An agent has its cash, what of it open
        orders may cost, lots traded in this round, lots in open orders, the most that these two may
        be, the most of a good that it may hold; and of each good lots owned, bid for and offered.
    """

    half: int
    maker: int
    taker: int
    slots: int
    batch: bool
    number: int
    top: int
    goods: int
    queues: int
    best: int
    own: int
    wide: int
    size: int


def layout(agents: int, slots: int, goods: int, top: int) -> dict[str, int]:
    """Return where the state of so many agents holds what, as ``Rules`` name it."""
    queues = agents * slots * WIDTH
    best = queues + 4 * goods * (top + 1)
    own, wide = best + 2 * goods, FIRST + 3 * goods
    places = {"queues": queues, "best": best, "own": own, "wide": wide}
    return {"top": top, "goods": goods, **places, "size": own + agents * wide}


def empty(rules: Rules) -> Whole:
    """Return the state without orders, in which nobody owns anything."""
    state = np.zeros(rules.size, dtype=np.int64)
    state[rules.queues : rules.best] = -1
    state[rules.best : rules.own] = np.tile([-1, rules.top + 1], rules.goods)
    return state


@compiled(nogil=True)
def own_at(r: Rules, agent: int) -> int:
    """Return where what an agent owns begins."""
    return r.own + agent * r.wide


@compiled(nogil=True)
def queue_at(r: Rules, g: int, side: int, tick: int) -> int:
    """Return where the first of a queue stands; the last stands behind it, -1 for none."""
    return r.queues + 2 * ((2 * g + side) * (r.top + 1) + tick)


@compiled(nogil=True)
def set_aside(r: Rules, side: int, tick: int) -> int:
    """Return the cash that a lot of an open order may cost."""
    fee = max(r.maker, r.taker, 0)
    worth = 2 * tick * r.half
    return worth + fee if side == BID else max(0, fee - worth)


@compiled(nogil=True)
def reserve(s: Whole, r: Rules, k: int, lots: int) -> None:
    """Count lots of the order in slot k as open; below 0 as open no more."""
    at, i = k * WIDTH, own_at(r, k // r.slots)
    side = s[at + SIDE]
    s[i + HELD] += lots * set_aside(r, side, s[at + TICK])
    s[i + OPEN] += lots
    s[i + FIRST + 3 * s[at + GOOD] + (WANTED if side == BID else OFFERED)] += lots
    s[at + LOTS] += lots


@compiled(nogil=True)
def queue(s: Whole, r: Rules, k: int) -> None:
    """Put an order behind those of its tick."""
    at = k * WIDTH
    tick, g, side = s[at + TICK], s[at + GOOD], s[at + SIDE]
    ends, best = queue_at(r, g, side, tick), r.best + 2 * g + side
    last = s[ends + 1]
    s[at + NEXT], s[at + BEFORE] = -1, last
    if last >= 0:
        s[last * WIDTH + NEXT] = k
    else:
        s[ends] = k
    s[ends + 1] = k
    s[best] = max(s[best], tick) if side == BID else min(s[best], tick)


@compiled(nogil=True)
def leave(s: Whole, r: Rules, k: int) -> None:
    """Take an order out of its queue, and look for the best price that is left."""
    at = k * WIDTH
    side, after, before = s[at + SIDE], s[at + NEXT], s[at + BEFORE]
    ends = queue_at(r, s[at + GOOD], side, s[at + TICK])
    if before >= 0:
        s[before * WIDTH + NEXT] = after
    else:
        s[ends] = after
    if after >= 0:
        s[after * WIDTH + BEFORE] = before
    else:
        s[ends + 1] = before
    best = r.best + 2 * s[at + GOOD] + side
    step, tick = -1 if side == BID else 1, s[best]
    while 0 <= tick <= r.top and s[queue_at(r, s[at + GOOD], side, tick)] < 0:
        tick += step
    s[best] = tick


@compiled(nogil=True)
def withdraw(s: Whole, r: Rules, k: int) -> None:
    """Cancel an order."""
    reserve(s, r, k, -s[k * WIDTH + LOTS])
    if not r.batch:
        leave(s, r, k)


@compiled(nogil=True)
def withdraw_all(s: Whole, r: Rules, agent: int) -> None:
    """Cancel all that an agent has on the book."""
    if s[own_at(r, agent) + OPEN]:
        for k in range(agent * r.slots, (agent + 1) * r.slots):
            if s[k * WIDTH + LOTS]:
                withdraw(s, r, k)


@compiled(nogil=True)
def close_ranks(s: Whole, r: Rules, agent: int) -> None:
    """Move an agent's orders to its first slots, the oldest first; no queue knows of them."""
    to = agent * r.slots
    for k in range(agent * r.slots, (agent + 1) * r.slots):
        if s[k * WIDTH + LOTS]:
            if k > to:
                for column in range(WIDTH):
                    s[to * WIDTH + column] = s[k * WIDTH + column]
                s[k * WIDTH + LOTS] = 0
            to += 1


@compiled(nogil=True)
def expire(s: Whole, r: Rules, rounds: int) -> None:
    """Cancel what does not rest, and what has been on the book for so many rounds, 0 for ever."""
    for k in range(r.queues // WIDTH):
        since = s[k * WIDTH + SINCE]
        if s[k * WIDTH + LOTS] and (since < 0 or 0 < rounds <= r.number + 1 - since):
            withdraw(s, r, k)


@compiled(nogil=True)
def at_once(  # noqa: PLR0913 - an order has so many parts
    s: Whole, r: Rules, lots: int, tick: int, g: int, side: int
) -> int:
    """Return the cash that an order which does not rest costs now (below 0: brings)."""
    cost, other = 0, 1 - side
    at, step = s[r.best + 2 * g + other], 1 if side == BID else -1
    while lots and 0 <= at <= r.top and (tick - at) * step >= 0:
        k = s[queue_at(r, g, other, at)]
        while lots and k >= 0:
            n = min(lots, s[k * WIDTH + LOTS])
            cost += n * (2 * at * r.half * step + r.taker)
            lots -= n
            k = s[k * WIDTH + NEXT]
        at += step
    return cost


@compiled(nogil=True)
def crosses(  # noqa: PLR0913 - an order has so many parts
    s: Whole, r: Rules, agent: int, tick: int, g: int, side: int
) -> bool:
    """Say whether an order would trade with one of the agent's own."""
    if not s[own_at(r, agent) + FIRST + 3 * g + (OFFERED if side == BID else WANTED)]:
        return False
    sign = 1 if side == BID else -1
    for at in range(agent * r.slots * WIDTH, (agent + 1) * r.slots * WIDTH, WIDTH):
        across = s[at + LOTS] > 0 and s[at + GOOD] == g and s[at + SIDE] != side
        if across and (tick - s[at + TICK]) * sign >= 0:
            return True
    return False


@compiled(nogil=True)
def allowed(  # noqa: PLR0913 - an order has so many parts
    s: Whole, r: Rules, agent: int, lots: int, tick: int, g: int, side: int, rests: int
) -> bool:
    """Say whether an agent may send an order: it can pay for it, and trades not with itself."""
    i = own_at(r, agent)
    own = i + FIRST + 3 * g
    if s[i + TURN] + s[i + OPEN] + lots > s[i + MOST]:
        return False
    if side == BID and s[own + OWNED] + s[own + WANTED] + lots > s[i + HOLD]:
        return False
    if side == ASK and s[own + OFFERED] + lots > s[own + OWNED]:
        return False
    if rests or r.batch:
        cost = lots * set_aside(r, side, tick)
    else:
        cost = at_once(s, r, lots, tick, g, side)
    return cost <= s[i + CASH] - s[i + HELD] and not crosses(s, r, agent, tick, g, side)


@compiled(nogil=True)
def settle(  # noqa: PLR0913 - a trade has so many parts
    s: Whole, r: Rules, buyer: int, seller: int, g: int, price: int, lots: int, sides: int,
    tape: Whole, count: Whole,
) -> None:  # fmt: skip
    """Hand over goods and cash, and note the trade.

    Parameters
    ----------
    price : int
        In half ticks.
    sides : int
        1 if the buyer is the taker, -1 if the seller is; fees of a batch are charged elsewhere (0).
    tape : int array (m, 6)
        Written: good, buyer, seller, price, lots, sides; nothing if m is 0.
    count : int array (2,)
        Trades and refused orders so far.
    """
    cash, b, a = lots * price * r.half, own_at(r, buyer), own_at(r, seller)
    fees = lots * (r.taker if sides > 0 else r.maker), lots * (r.maker if sides > 0 else r.taker)
    s[b + CASH] -= cash + (fees[0] if sides else 0)
    s[a + CASH] += cash - (fees[1] if sides else 0)
    s[b + FIRST + 3 * g] += lots
    s[a + FIRST + 3 * g] -= lots
    s[b + TURN] += lots
    s[a + TURN] += lots
    if len(tape):
        n = count[0]
        tape[n, 0], tape[n, 1], tape[n, 2] = g, buyer, seller
        tape[n, 3], tape[n, 4], tape[n, 5] = price, lots, sides
    count[0] += 1


@compiled(nogil=True)
def meet(  # noqa: PLR0913 - an order has so many parts
    s: Whole, r: Rules, agent: int, lots: int, tick: int, g: int, side: int,
    tape: Whole, count: Whole,
) -> int:  # fmt: skip
    """Let an order trade with what is on the book, and return the lots that are left."""
    step, other = (1, ASK) if side == BID else (-1, BID)
    while lots:
        at = s[r.best + 2 * g + other]
        if not 0 <= at <= r.top or (tick - at) * step < 0:
            break
        k = s[queue_at(r, g, other, at)]
        rival, n = k // r.slots, min(lots, s[k * WIDTH + LOTS])
        reserve(s, r, k, -n)
        if not s[k * WIDTH + LOTS]:
            leave(s, r, k)
        if side == BID:
            settle(s, r, agent, rival, g, 2 * at, n, 1, tape, count)
        else:
            settle(s, r, rival, agent, g, 2 * at, n, -1, tape, count)
        lots -= n
    return lots


@compiled(nogil=True)
def send(  # noqa: PLR0913 - an order has so many parts
    s: Whole, r: Rules, agent: int, signed: int, tick: int, g: int, rests: int,
    tape: Whole, count: Whole,
) -> None:  # fmt: skip
    """Let an agent send an order: it is refused, trades, rests, or is dropped."""
    lots, side = abs(signed), BID if signed > 0 else ASK
    k, end = agent * r.slots, (agent + 1) * r.slots
    while k < end and s[k * WIDTH + LOTS]:
        k += 1
    stays = rests or r.batch
    if (k == end and stays) or not allowed(s, r, agent, lots, tick, g, side, rests):
        count[1] += 1
        return
    if not r.batch:
        lots = meet(s, r, agent, lots, tick, g, side, tape, count)
    if lots and stays:
        at = k * WIDTH
        s[at + TICK], s[at + GOOD], s[at + SIDE] = tick, g, side
        s[at + SINCE] = r.number if rests else -1
        reserve(s, r, k, lots)
        if not r.batch:
            queue(s, r, k)


@compiled(nogil=True)
def arrive(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    s: Whole, r: Rules, acts: Whole, orders: Whole, agent: int, action: int, shift: Whole,
    tape: Whole, count: Whole,
) -> None:  # fmt: skip
    """Let an agent take an action; one who is absent (-1) has nothing on the book.

    Parameters
    ----------
    acts : int array (N, A, 5)
        Of every agent's actions: where their orders begin and end, whether what the agent has on
        the book stays, whether what does not trade at once rests, and the first action that is the
        same (-1 beyond an agent's actions).
    orders : int array (M, 3)
        Lots (below 0 for a sale), tick and good of all orders, those of an action side by side.
    shift : int array (d,)
        Ticks that are added to the limits of each good.
    """
    if action < 0 or not acts[agent, action, KEEPS]:
        withdraw_all(s, r, agent)
    elif r.batch:
        close_ranks(s, r, agent)
    if action < 0:
        return
    for j in range(acts[agent, action, BEGIN], acts[agent, action, END]):
        g = orders[j, 2]
        tick = min(max(orders[j, 1] + shift[g], 0), r.top)
        send(s, r, agent, orders[j, 0], tick, g, acts[agent, action, RESTS], tape, count)
