"""Compiled orders and rounds of an order book, and rounds that are cleared again.

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

What every action of every agent would have changed (``again``) is exact. In the continuous book the
state before an agent arrives does not depend on its order, so it is walked through once, and only
arrivals from the agent's own on are played again, as long as it has an order open. In a batch all
that the others' orders add up to is collected once.

The state is one array of whole numbers, which is quick to copy and to hand on: first the orders,
then the ends of each queue, the best prices, and what each agent owns (``Rules``).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.compiled import compiled
from regretless.market.markets.call_auction import clearing, shares

Whole = NDArray[np.int64]

LOTS, TICK, GOOD, SIDE, SINCE, NEXT, BEFORE, WIDTH = range(8)  # of an order, and how many there are
# Of an agent: cash, what of it open orders may cost, lots traded in this round, lots in open
# orders, the most that these two may be, the most of a good that it may hold; then for each good
CASH, HELD, TURN, OPEN, MOST, HOLD, FIRST = range(7)
OWNED, WANTED, OFFERED = range(3)  # lots owned, bid for and offered
BID, ASK = 0, 1
BEGIN, END, KEEPS, RESTS, SAME, ENTRIES = range(6)  # of an action


class Rules(NamedTuple):
    """What does not change within a round, and where the state holds what."""

    half: int  # cash for half a tick of one lot
    maker: int  # the cash that each pays for a lot, below 0 for what it is paid
    taker: int
    slots: int  # open orders that an agent may have
    batch: bool
    number: int  # of the round
    top: int  # T
    goods: int
    queues: int  # where the queues begin
    best: int  # where the best prices do, -1 and T + 1 for none
    own: int  # where the agents do
    wide: int  # numbers of an agent, see ``CASH``


class Sent(NamedTuple):
    """Who comes in a round, and does what.

    ``acts`` (N, A, 5) are every agent's actions: where their orders begin and end, whether what the
    agent has on the book stays, whether what does not trade at once rests, and the first action
    that is the same (-1 beyond an agent's actions).
    """

    acts: Whole
    orders: Whole  # (M, 3): lots (below 0 for a sale), tick and good, of an action side by side
    arrivals: Whole  # agents as they arrive (N,)
    actions: Whole  # what each does (N,), -1 where it is absent
    shift: Whole  # ticks that are added to the limits of each good (d,)


class Tape(NamedTuple):
    """What happened in a round; with room for no trades none is kept."""

    # (m, 6): good, buyer, seller, price in half ticks, lots, and who took it: 1 for the buyer, -1
    # for the seller, 0 in a batch.
    trades: Whole
    counts: Whole  # how many trades and refused orders


def empty(agents: int, slots: int, goods: int, top: int) -> tuple[dict[str, int], Whole]:
    """Return where a state holds what, as ``Rules`` name it, and the state without orders."""
    queues = agents * slots * WIDTH
    best = queues + 4 * goods * (top + 1)
    own, wide = best + 2 * goods, FIRST + 3 * goods
    places = {"top": top, "goods": goods, "queues": queues, "best": best, "own": own, "wide": wide}
    state = np.zeros(own + agents * wide, dtype=np.int64)
    state[queues:best] = -1
    state[best:own] = np.tile([-1, top + 1], goods)
    return places, state


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
    fee, worth = max(r.maker, r.taker, 0), 2 * tick * r.half
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
    s[last * WIDTH + NEXT if last >= 0 else ends] = k
    s[ends + 1] = k
    s[best] = max(s[best], tick) if side == BID else min(s[best], tick)


@compiled(nogil=True)
def leave(s: Whole, r: Rules, k: int) -> None:
    """Take an order out of its queue, and look for the best price that is left."""
    at = k * WIDTH
    g, side, after, before = s[at + GOOD], s[at + SIDE], s[at + NEXT], s[at + BEFORE]
    ends = queue_at(r, g, side, s[at + TICK])
    s[before * WIDTH + NEXT if before >= 0 else ends] = after
    s[after * WIDTH + BEFORE if after >= 0 else ends + 1] = before
    best, step = r.best + 2 * g + side, -1 if side == BID else 1
    while 0 <= s[best] <= r.top and s[queue_at(r, g, side, s[best])] < 0:
        s[best] += step


@compiled(nogil=True)
def withdraw(s: Whole, r: Rules, k: int) -> None:
    """Cancel the order in a slot, if there is one."""
    if s[k * WIDTH + LOTS]:
        reserve(s, r, k, -s[k * WIDTH + LOTS])
        if not r.batch:
            leave(s, r, k)


@compiled(nogil=True)
def expire(s: Whole, r: Rules, rounds: int) -> None:
    """Cancel what does not rest, and what has been on the book for so many rounds, 0 for ever."""
    for k in range(r.queues // WIDTH):
        since = s[k * WIDTH + SINCE]
        if since < 0 or 0 < rounds <= r.number + 1 - since:
            withdraw(s, r, k)


@compiled(nogil=True)
def at_once(s: Whole, r: Rules, lots: int, tick: int, g: int, side: int) -> int:
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
def allowed(
    s: Whole, r: Rules, agent: int, lots: int, tick: int, g: int, side: int, rests: int
) -> bool:  # fmt: skip
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
    if cost > s[i + CASH] - s[i + HELD]:
        return False
    if s[own + (OFFERED if side == BID else WANTED)]:
        sign = 1 if side == BID else -1
        for k in range(agent * r.slots, (agent + 1) * r.slots):
            at = k * WIDTH
            across = s[at + LOTS] > 0 and s[at + GOOD] == g and s[at + SIDE] != side
            if across and (tick - s[at + TICK]) * sign >= 0:
                return False
    return True


@compiled(nogil=True)
def settle(
    s: Whole, r: Rules, tape: Tape, buyer: int, seller: int, g: int, price: int, lots: int,
    took: int,
) -> None:  # fmt: skip
    """Hand over goods and cash, and note the trade (``Tape``); fees of a batch are not charged."""
    cash, b, a = lots * price * r.half, own_at(r, buyer), own_at(r, seller)
    fees = lots * (r.taker if took > 0 else r.maker), lots * (r.maker if took > 0 else r.taker)
    s[b + CASH] -= cash + (fees[0] if took else 0)
    s[a + CASH] += cash - (fees[1] if took else 0)
    for i, sign in ((b, 1), (a, -1)):
        s[i + FIRST + 3 * g] += sign * lots
        s[i + TURN] += lots
    if len(tape.trades):
        for column, value in enumerate((g, buyer, seller, price, lots, took)):
            tape.trades[tape.counts[0], column] = value
    tape.counts[0] += 1


@compiled(nogil=True)
def send(
    s: Whole, r: Rules, tape: Tape, agent: int, signed: int, tick: int, g: int, rests: int
) -> None:  # fmt: skip
    """Let an agent send an order: it is refused, trades, rests, or is dropped."""
    lots, step = abs(signed), 1 if signed > 0 else -1
    side, other = (BID, ASK) if signed > 0 else (ASK, BID)
    free, end = agent * r.slots, (agent + 1) * r.slots
    while free < end and s[free * WIDTH + LOTS]:
        free += 1
    stays = rests or r.batch
    if (free == end and stays) or not allowed(s, r, agent, lots, tick, g, side, rests):
        tape.counts[1] += 1
        return

    while lots and not r.batch:  # trade with what is on the book
        at = s[r.best + 2 * g + other]
        if not 0 <= at <= r.top or (tick - at) * step < 0:
            break
        k = s[queue_at(r, g, other, at)]
        rival, n = k // r.slots, min(lots, s[k * WIDTH + LOTS])
        reserve(s, r, k, -n)
        if not s[k * WIDTH + LOTS]:
            leave(s, r, k)
        buyer, seller = (agent, rival) if side == BID else (rival, agent)
        settle(s, r, tape, buyer, seller, g, 2 * at, n, step)
        lots -= n

    if lots and stays:
        at = free * WIDTH
        s[at + TICK], s[at + GOOD], s[at + SIDE] = tick, g, side
        s[at + SINCE] = r.number if rests else -1
        reserve(s, r, free, lots)
        if not r.batch:
            queue(s, r, free)


@compiled(nogil=True)
def arrive(s: Whole, r: Rules, tape: Tape, sent: Sent, agent: int, action: int) -> None:
    """Let an agent take an action; one who is absent (-1) has nothing on the book."""
    mine = range(agent * r.slots, (agent + 1) * r.slots)
    if action < 0 or not sent.acts[agent, action, KEEPS]:
        if s[own_at(r, agent) + OPEN]:
            for k in mine:
                withdraw(s, r, k)
    elif r.batch:  # what is kept moves to the first slots, the oldest first
        to = agent * r.slots
        for k in mine:
            if s[k * WIDTH + LOTS]:
                if k > to:
                    s[to * WIDTH : (to + 1) * WIDTH] = s[k * WIDTH : (k + 1) * WIDTH]
                    s[k * WIDTH + LOTS] = 0
                to += 1
    if action >= 0:
        act = sent.acts[agent, action]
        for j in range(act[BEGIN], act[END]):
            g = sent.orders[j, 2]
            tick = min(max(sent.orders[j, 1] + sent.shift[g], 0), r.top)
            send(s, r, tape, agent, sent.orders[j, 0], tick, g, act[RESTS])


@compiled(nogil=True)
def filled(
    s: Whole, k: int, g: int, price: int, split: tuple[int, int, int, int], run: Whole
) -> int:
    """Return the lots of a good that the order in slot k trades in a batch.

    ``split`` is as ``shares`` returns it; ``run`` (2,) has the lots of earlier orders at the price,
    of each side, and is written.
    """
    side, lots, tick = s[k * WIDTH + SIDE], s[k * WIDTH + LOTS], s[k * WIDTH + TICK]
    better = 2 * tick - price if side == BID else price - 2 * tick
    if s[k * WIDTH + GOOD] != g or lots == 0 or better < 0:
        return 0
    if better > 0:
        return int(lots)
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
    for k in range(agent * r.slots, (agent + 1) * r.slots):
        at = k * WIDTH
        if s[at + LOTS]:
            totals[s[at + GOOD], s[at + SIDE], s[at + TICK]] += sign * s[at + LOTS]


@compiled(nogil=True)
def auction(s: Whole, r: Rules, tape: Tape, arrivals: Whole, last: Whole) -> None:
    """Clear a batch whose orders are all on the book; write the prices where something trades."""
    totals = np.zeros((r.goods, 2, r.top + 1), dtype=np.int64)
    for agent in arrivals:
        collect(s, r, totals, 1, agent)
    for g in range(r.goods):
        price, volume = clearing(totals[g, BID], totals[g, ASK], last[g])
        if not volume:
            continue
        last[g] = price
        split, run = shares(price, volume, totals[g, BID], totals[g, ASK]), np.zeros(2, np.int64)
        lots = np.zeros((2, len(arrivals)), dtype=np.int64)
        for place, agent in enumerate(arrivals):
            for k in range(agent * r.slots, (agent + 1) * r.slots):
                n = filled(s, k, g, price, split, run)
                if n:
                    lots[s[k * WIDTH + SIDE], place] += n
                    s[own_at(r, agent) + CASH] -= n * fee_of(s, r, k)
                    reserve(s, r, k, -n)
        a = 0  # the first buyer trades with the first seller, and so on
        for b in range(len(arrivals)):
            while lots[BID, b]:
                while not lots[ASK, a]:
                    a += 1
                n = min(lots[BID, b], lots[ASK, a])
                settle(s, r, tape, arrivals[b], arrivals[a], g, price, n, 0)
                lots[BID, b] -= n
                lots[ASK, a] -= n


@compiled(nogil=True)
def play(s: Whole, r: Rules, tape: Tape, sent: Sent, last: Whole) -> None:
    """Play a round; ``last`` (d,) are the last prices, in half ticks."""
    for agent in sent.arrivals:
        arrive(s, r, tape, sent, agent, sent.actions[agent])
    if r.batch:
        auction(s, r, tape, sent.arrivals, last)


@compiled(nogil=True)
def again(s: Whole, r: Rules, sent: Sent, last: Whole, changes: Whole) -> None:
    """Write what every action of every agent would have changed for it.

    ``s`` is the state before the round, and is written; ``last`` (d,) are the prices then, in half
    ticks. ``changes`` (N, A, 1 + d) gets cash, and lots of each good, that the agent has more after
    the round, were it to take the action and all others theirs. Absent agents' rows are 0.
    """
    before, tape = s.copy(), Tape(np.zeros((0, 6), np.int64), np.zeros(2, np.int64))
    if r.batch:
        again_batch(s, r, tape, sent, last, changes)
    else:
        again_continuous(s, r, tape, sent, changes)
    for i in range(len(sent.actions)):
        for a in range(sent.acts.shape[1] if sent.actions[i] >= 0 else 0):
            same = sent.acts[i, a, SAME]
            if same == a:
                changes[i, a] -= owned(before, r, i)
            elif same >= 0:
                changes[i, a] = changes[i, same]


@compiled(nogil=True)
def owned(s: Whole, r: Rules, agent: int) -> Whole:
    """Return what an agent owns (1 + d,): cash, and lots of each good."""
    i, found = own_at(r, agent), np.empty(1 + r.goods, dtype=np.int64)
    found[0] = s[i + CASH]
    found[1:] = s[i + FIRST : i + r.wide : 3]
    return found


@compiled(nogil=True)
def again_continuous(s: Whole, r: Rules, tape: Tape, sent: Sent, after: Whole) -> None:
    """Write what agents own after each action, in a continuous book."""
    now, arrivals, acts, actions = np.empty_like(s), sent.arrivals, sent.acts, sent.actions
    for place, agent in enumerate(arrivals):
        for a in range(acts.shape[1] if actions[agent] >= 0 else 0):
            if acts[agent, a, SAME] != a or acts[agent, actions[agent], SAME] == a:
                continue
            now[:] = s
            arrive(now, r, tape, sent, agent, a)
            for who in arrivals[place + 1 :]:
                if not now[own_at(r, agent) + OPEN]:
                    break
                arrive(now, r, tape, sent, who, actions[who])
            after[agent, a] = owned(now, r, agent)
        arrive(s, r, tape, sent, agent, actions[agent])
    for agent in arrivals:
        if actions[agent] >= 0:
            after[agent, acts[agent, actions[agent], SAME]] = owned(s, r, agent)


@compiled(nogil=True)
def again_batch(s: Whole, r: Rules, tape: Tape, sent: Sent, last: Whole, after: Whole) -> None:
    """Write what agents own after each action, in a batch.

    Nothing trades before all are here, so that what an agent may send depends on itself alone.
    """
    before, now, acts = s.copy(), s.copy(), sent.acts
    totals = np.zeros((r.goods, 2, r.top + 1), dtype=np.int64)
    earlier = np.zeros_like(totals)  # of who arrives before the agent
    for agent in sent.arrivals:
        arrive(s, r, tape, sent, agent, sent.actions[agent])
        collect(s, r, totals, 1, agent)
    for agent in sent.arrivals:
        slots = slice(agent * r.slots * WIDTH, (agent + 1) * r.slots * WIDTH)
        own = slice(own_at(r, agent), own_at(r, agent + 1))
        collect(s, r, totals, -1, agent)
        for a in range(acts.shape[1] if sent.actions[agent] >= 0 else 0):
            if acts[agent, a, SAME] == a:
                now[slots], now[own] = before[slots], before[own]
                arrive(now, r, tape, sent, agent, a)
                collect(now, r, totals, 1, agent)
                trade_one(now, r, agent, totals, earlier, last)
                after[agent, a] = owned(now, r, agent)
                collect(now, r, totals, -1, agent)
        collect(s, r, totals, 1, agent)
        collect(s, r, earlier, 1, agent)


@compiled(nogil=True)
def trade_one(s: Whole, r: Rules, agent: int, totals: Whole, earlier: Whole, last: Whole) -> None:
    """Give one agent what it would trade in a batch; its orders stay as they are.

    ``totals``, ``earlier`` (d, 2, T + 1): what all, and who came before it, bid for and offer.
    """
    i = own_at(r, agent)
    for g in range(r.goods):
        price, volume = clearing(totals[g, BID], totals[g, ASK], last[g])
        if not volume:
            continue
        split = shares(price, volume, totals[g, BID], totals[g, ASK])
        run = earlier[g, :, price // 2].copy()
        for k in range(agent * r.slots, (agent + 1) * r.slots):
            lots = filled(s, k, g, price, split, run)
            if lots:
                sign = 1 if s[k * WIDTH + SIDE] == BID else -1
                s[i + CASH] -= lots * (sign * price * r.half + fee_of(s, r, k))
                s[i + FIRST + 3 * g] += sign * lots
