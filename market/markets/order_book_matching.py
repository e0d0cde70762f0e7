"""Compiled orders and rounds of an order book, and rounds that are cleared again.

``market.markets.order_book`` calls ``empty`` for a state without orders, ``play`` once per round,
``expire`` after it, and ``again`` for what every other action would have brought. The other
functions are steps of these, called by compiled code alone.

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

Arguments that all functions share
----------------------------------
state : int array (numbers,)
    The book and what agents own, in one array that is quick to copy and to hand on: first the
    orders (``WIDTH`` numbers for each slot), then the ends of each queue, the best prices, and what
    each agent owns (``FIRST_HOLDING`` numbers, and ``HOLDING_WIDTH`` for each good). Written in
    place by all functions that do not return something of it. ``Rules`` says where each part
    begins.
rules : Rules
    What does not change within a round.
tape : Tape
    What happened; trades and refused orders are added to it in place.
sent : Sent
    Who comes in the round, and does what.
slot, agent, good, side, tick
    Numbers of an open order, an agent, a good, ``BID`` or ``ASK``, and a price.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.compiled import compiled
from regretless.market.markets.call_auction import clearing, shares

IntArray = NDArray[np.int64]

# Places of an order's numbers.
LOTS = 0  # that are open; 0 where the slot is free
TICK = 1  # of its limit
GOOD = 2
SIDE = 3
SINCE = 4  # the round in which it was sent; -1 if it does not rest
NEXT = 5  # slot of the order behind it in its queue; -1 for none
BEFORE = 6  # and of the one before it
WIDTH = 7  # how many numbers an order has

# Places of an agent's numbers.
CASH = 0
HELD = 1  # cash that its open orders may cost
TURN = 2  # lots traded in this round
OPEN = 3  # lots in open orders
MOST = 4  # the most that these two may be together
HOLD = 5  # the most lots of a good that it may hold
FIRST_HOLDING = 6  # from here on the numbers of each good

# Places of an agent's numbers of a good, in lots; the first good's begin at ``FIRST_HOLDING``.
OWNED = 0
WANTED = 1  # bid for
OFFERED = 2
HOLDING_WIDTH = 3  # how many numbers an agent has of a good

# Sides, and who took a trade: the buyer, the seller, or nobody in a batch.
BID = 0
ASK = 1
BUYER_TOOK = 1
SELLER_TOOK = -1
NOBODY_TOOK = 0

# What is done with an agent's orders in ``collect``.
ADD = 1
REMOVE = -1

# Places of an action's numbers (``Sent.acts``).
BEGIN = 0  # of its orders in ``Sent.orders``
END = 1
KEEPS = 2  # whether what the agent has on the book stays
RESTS = 3  # whether what does not trade at once rests
SAME = 4  # the first of the agent's actions that does the same
ENTRIES = 5  # how many numbers an action has


class Rules(NamedTuple):
    """What does not change within a round, and where the state holds what.

    Attributes
    ----------
    half : int
        Cash for half a tick of one lot.
    maker, taker : int
        Cash that the side which rested and the side which came pay for a lot; below 0 for what they
        are paid.
    slots : int
        Open orders that an agent may have.
    batch : bool
        Whether orders are collected and cleared together.
    number : int
        Of the round.
    top : int
        The highest tick, T.
    goods : int
    queues : int
        Where the queues begin: slot of the first and of the last order, by good, side and tick.
    best : int
        Where the best ticks begin, by good and side; -1 and T + 1 for none.
    accounts : int
        Where the agents' numbers begin.
    wide : int
        How many numbers an agent has.
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
    accounts: int
    wide: int


class Sent(NamedTuple):
    """Who comes in a round, and does what.

    Attributes
    ----------
    acts : int array (N, A, 5)
        Every agent's actions, see ``BEGIN``; -1 beyond an agent's actions.
    orders : int array (M, 3)
        Lots (below 0 for a sale), tick and good; those of an action side by side.
    arrivals : int array (N,)
        Agents as they arrive.
    actions : int array (N,)
        What each agent does, -1 where it is absent.
    shift : int array (d,)
        Ticks that are added to the limits of each good.
    """

    acts: IntArray
    orders: IntArray
    arrivals: IntArray
    actions: IntArray
    shift: IntArray


class Tape(NamedTuple):
    """What happened in a round.

    Attributes
    ----------
    trades : int array (m, 6)
        Good, buyer, seller, price in half ticks, lots, and who took it: 1 for the buyer, -1 for the
        seller, 0 in a batch. With room for no trades (0, 6) none is kept.
    counts : int array (2,)
        How many trades and how many refused orders there were.
    """

    trades: IntArray
    counts: IntArray


def empty(agents: int, slots: int, goods: int, top: int) -> tuple[dict[str, int], IntArray]:
    """Return where a state holds what, as ``Rules`` name it, and the state without orders."""
    queues = agents * slots * WIDTH
    best = queues + 4 * goods * (top + 1)
    accounts = best + 2 * goods
    wide = FIRST_HOLDING + HOLDING_WIDTH * goods
    begins = {
        "top": top,
        "goods": goods,
        "queues": queues,
        "best": best,
        "accounts": accounts,
        "wide": wide,
    }
    state = np.zeros(accounts + agents * wide, dtype=np.int64)
    state[queues:best] = -1
    state[best:accounts] = np.tile([-1, top + 1], goods)
    return begins, state


@compiled(nogil=True)
def account_at(rules: Rules, agent: int) -> int:
    """Return where what an agent owns begins."""
    return rules.accounts + agent * rules.wide


@compiled(nogil=True)
def queue_at(rules: Rules, good: int, side: int, tick: int) -> int:
    """Return where the first of a queue stands; the last stands behind it, -1 for none."""
    return rules.queues + 2 * ((2 * good + side) * (rules.top + 1) + tick)


@compiled(nogil=True)
def set_aside(rules: Rules, side: int, tick: int) -> int:
    """Return the cash that is set aside for a lot of an open order: the most that it may cost."""
    fee = max(rules.maker, rules.taker, 0)
    worth = 2 * tick * rules.half
    if side == BID:
        return worth + fee
    return max(0, fee - worth)


@compiled(nogil=True)
def reserve(state: IntArray, rules: Rules, slot: int, lots: int) -> None:
    """Count lots of the order in a slot as open; below 0 as open no more."""
    order = slot * WIDTH
    account = account_at(rules, slot // rules.slots)
    side = state[order + SIDE]
    state[account + HELD] += lots * set_aside(rules, side, state[order + TICK])
    state[account + OPEN] += lots
    holding = account + FIRST_HOLDING + HOLDING_WIDTH * state[order + GOOD]
    if side == BID:
        state[holding + WANTED] += lots
    else:
        state[holding + OFFERED] += lots
    state[order + LOTS] += lots


@compiled(nogil=True)
def queue(state: IntArray, rules: Rules, slot: int) -> None:
    """Put an order behind those of its tick."""
    order = slot * WIDTH
    tick = state[order + TICK]
    good = state[order + GOOD]
    side = state[order + SIDE]
    queue_ends = queue_at(rules, good, side, tick)
    best_price = rules.best + 2 * good + side
    last_slot = state[queue_ends + 1]
    state[order + NEXT], state[order + BEFORE] = -1, last_slot
    if last_slot >= 0:
        state[last_slot * WIDTH + NEXT] = slot
    else:
        state[queue_ends] = slot
    state[queue_ends + 1] = slot
    if side == BID:
        state[best_price] = max(state[best_price], tick)
    else:
        state[best_price] = min(state[best_price], tick)


@compiled(nogil=True)
def leave(state: IntArray, rules: Rules, slot: int) -> None:
    """Take an order out of its queue, and look for the best price that is left."""
    order = slot * WIDTH
    good = state[order + GOOD]
    side = state[order + SIDE]
    next_slot = state[order + NEXT]
    previous_slot = state[order + BEFORE]
    queue_ends = queue_at(rules, good, side, state[order + TICK])
    if previous_slot >= 0:
        state[previous_slot * WIDTH + NEXT] = next_slot
    else:
        state[queue_ends] = next_slot
    if next_slot >= 0:
        state[next_slot * WIDTH + BEFORE] = previous_slot
    else:
        state[queue_ends + 1] = previous_slot
    best_price = rules.best + 2 * good + side
    step = -1 if side == BID else 1
    while (
        0 <= state[best_price] <= rules.top
        and state[queue_at(rules, good, side, state[best_price])] < 0
    ):
        state[best_price] += step


@compiled(nogil=True)
def withdraw(state: IntArray, rules: Rules, slot: int) -> None:
    """Cancel the order in a slot, if there is one."""
    if state[slot * WIDTH + LOTS]:
        reserve(state, rules, slot, -state[slot * WIDTH + LOTS])
        if not rules.batch:
            leave(state, rules, slot)


@compiled(nogil=True)
def expire(state: IntArray, rules: Rules, rounds: int) -> None:
    """Cancel what does not rest, and what has been on the book for so many rounds, 0 for ever."""
    for slot in range(rules.queues // WIDTH):
        since = state[slot * WIDTH + SINCE]
        if since < 0 or 0 < rounds <= rules.number + 1 - since:
            withdraw(state, rules, slot)


@compiled(nogil=True)
def at_once(state: IntArray, rules: Rules, lots: int, tick: int, good: int, side: int) -> int:
    """Return the cash that an order which does not rest costs now (below 0: brings)."""
    cost = 0
    other_side = 1 - side
    best_tick = state[rules.best + 2 * good + other_side]
    step = 1 if side == BID else -1
    while lots and 0 <= best_tick <= rules.top and (tick - best_tick) * step >= 0:
        slot = state[queue_at(rules, good, other_side, best_tick)]
        while lots and slot >= 0:
            traded = min(lots, state[slot * WIDTH + LOTS])
            cost += traded * (2 * best_tick * rules.half * step + rules.taker)
            lots -= traded
            slot = state[slot * WIDTH + NEXT]
        best_tick += step
    return cost


@compiled(nogil=True)
def allowed(
    state: IntArray, rules: Rules, agent: int, lots: int, tick: int, good: int, side: int,
    rests: int,
) -> bool:  # fmt: skip
    """Say whether an agent may send an order: it can pay for it, and trades not with itself."""
    account = account_at(rules, agent)
    holding = account + FIRST_HOLDING + HOLDING_WIDTH * good
    if state[account + TURN] + state[account + OPEN] + lots > state[account + MOST]:
        return False
    if (
        side == BID
        and state[holding + OWNED] + state[holding + WANTED] + lots > state[account + HOLD]
    ):
        return False
    if side == ASK and state[holding + OFFERED] + lots > state[holding + OWNED]:
        return False
    if rests or rules.batch:
        cost = lots * set_aside(rules, side, tick)
    else:
        cost = at_once(state, rules, lots, tick, good, side)
    if cost > state[account + CASH] - state[account + HELD]:
        return False
    if state[holding + (OFFERED if side == BID else WANTED)]:
        sign = 1 if side == BID else -1
        for slot in range(agent * rules.slots, (agent + 1) * rules.slots):
            order = slot * WIDTH
            is_opposite = (
                state[order + LOTS] > 0
                and state[order + GOOD] == good
                and state[order + SIDE] != side
            )
            if is_opposite and (tick - state[order + TICK]) * sign >= 0:
                return False
    return True


@compiled(nogil=True)
def settle(
    state: IntArray, rules: Rules, tape: Tape, buyer: int, seller: int, good: int, price: int,
    lots: int, taker: int,
) -> None:  # fmt: skip
    """Hand over goods and cash, and note the trade (``Tape``); fees of a batch are not charged."""
    cash = lots * price * rules.half
    buyer_account = account_at(rules, buyer)
    seller_account = account_at(rules, seller)
    buyer_fee = 0
    seller_fee = 0
    if taker == BUYER_TOOK:
        buyer_fee = lots * rules.taker
        seller_fee = lots * rules.maker
    elif taker == SELLER_TOOK:
        buyer_fee = lots * rules.maker
        seller_fee = lots * rules.taker
    state[buyer_account + CASH] -= cash + buyer_fee
    state[seller_account + CASH] += cash - seller_fee
    for account, sign in ((buyer_account, 1), (seller_account, -1)):
        state[account + FIRST_HOLDING + HOLDING_WIDTH * good] += sign * lots
        state[account + TURN] += lots
    if len(tape.trades):
        for column, value in enumerate((good, buyer, seller, price, lots, taker)):
            tape.trades[tape.counts[0], column] = value
    tape.counts[0] += 1


@compiled(nogil=True)
def send(
    state: IntArray, rules: Rules, tape: Tape, agent: int, signed: int, tick: int, good: int,
    rests: int,
) -> None:  # fmt: skip
    """Let an agent send an order: it is refused, trades, rests, or is dropped."""
    lots = abs(signed)
    if signed > 0:
        step = 1
        side = BID
        other_side = ASK
    else:
        step = -1
        side = ASK
        other_side = BID
    free_slot = agent * rules.slots
    end_slot = (agent + 1) * rules.slots
    while free_slot < end_slot and state[free_slot * WIDTH + LOTS]:
        free_slot += 1
    may_rest = rests or rules.batch
    has_no_slot = may_rest and free_slot == end_slot
    if has_no_slot or not allowed(state, rules, agent, lots, tick, good, side, rests):
        tape.counts[1] += 1
        return

    while lots and not rules.batch:  # trade with what is on the book
        best_tick = state[rules.best + 2 * good + other_side]
        if not 0 <= best_tick <= rules.top or (tick - best_tick) * step < 0:
            break
        rival_slot = state[queue_at(rules, good, other_side, best_tick)]
        rival = rival_slot // rules.slots
        traded = min(lots, state[rival_slot * WIDTH + LOTS])
        reserve(state, rules, rival_slot, -traded)
        if not state[rival_slot * WIDTH + LOTS]:
            leave(state, rules, rival_slot)
        price = 2 * best_tick
        if side == BID:
            settle(state, rules, tape, agent, rival, good, price, traded, BUYER_TOOK)
        else:
            settle(state, rules, tape, rival, agent, good, price, traded, SELLER_TOOK)
        lots -= traded

    if lots and may_rest:
        order = free_slot * WIDTH
        state[order + TICK] = tick
        state[order + GOOD] = good
        state[order + SIDE] = side
        state[order + SINCE] = -1
        if rests:
            state[order + SINCE] = rules.number
        reserve(state, rules, free_slot, lots)
        if not rules.batch:
            queue(state, rules, free_slot)


@compiled(nogil=True)
def arrive(state: IntArray, rules: Rules, tape: Tape, sent: Sent, agent: int, action: int) -> None:
    """Let an agent take an action; one who is absent (-1) has nothing on the book."""
    own_slots = range(agent * rules.slots, (agent + 1) * rules.slots)
    if action < 0 or not sent.acts[agent, action, KEEPS]:
        if state[account_at(rules, agent) + OPEN]:
            for slot in own_slots:
                withdraw(state, rules, slot)
    elif rules.batch:  # what is kept moves to the first slots, the oldest first
        target_slot = agent * rules.slots
        for slot in own_slots:
            if state[slot * WIDTH + LOTS]:
                if slot > target_slot:
                    for entry in range(WIDTH):
                        state[target_slot * WIDTH + entry] = state[slot * WIDTH + entry]
                    state[slot * WIDTH + LOTS] = 0
                target_slot += 1
    if action >= 0:
        entries = sent.acts[agent, action]
        for order_index in range(entries[BEGIN], entries[END]):
            good = sent.orders[order_index, 2]
            tick = min(max(sent.orders[order_index, 1] + sent.shift[good], 0), rules.top)
            send(state, rules, tape, agent, sent.orders[order_index, 0], tick, good, entries[RESTS])


@compiled(nogil=True)
def filled(
    state: IntArray,
    slot: int,
    good: int,
    price: int,
    rationing: tuple[int, int, int, int],
    running_lots: IntArray,
) -> int:
    """Return the lots of a good that the order in a slot trades in a batch.

    ``rationing`` is as ``call_auction.shares`` returns it; ``running_lots`` (2,) has the lots of
    earlier orders at the price, of each side, and this order's are added to it in place.
    """
    side = state[slot * WIDTH + SIDE]
    lots = state[slot * WIDTH + LOTS]
    tick = state[slot * WIDTH + TICK]
    improvement = 2 * tick - price if side == BID else price - 2 * tick
    if state[slot * WIDTH + GOOD] != good or lots == 0 or improvement < 0:
        return 0
    if improvement > 0:
        return int(lots)
    bids_left, offers_left, bids_wanted, offers_wanted = rationing
    lots_left = bids_left if side == BID else offers_left
    lots_wanted = bids_wanted if side == BID else offers_wanted
    lots_before = running_lots[side] * lots_left // lots_wanted
    running_lots[side] += lots
    return int(running_lots[side] * lots_left // lots_wanted - lots_before)


@compiled(nogil=True)
def fee_of(state: IntArray, rules: Rules, slot: int) -> int:
    """Return what an order pays for a lot in a batch: the maker's fee if it is an older one."""
    return rules.maker if 0 <= state[slot * WIDTH + SINCE] < rules.number else rules.taker


@compiled(nogil=True)
def collect(state: IntArray, rules: Rules, totals: IntArray, sign: int, agent: int) -> None:
    """Add an agent's orders, times a sign, to ``totals`` (d, 2, T + 1) in place."""
    for slot in range(agent * rules.slots, (agent + 1) * rules.slots):
        order = slot * WIDTH
        if state[order + LOTS]:
            totals[state[order + GOOD], state[order + SIDE], state[order + TICK]] += (
                sign * state[order + LOTS]
            )


@compiled(nogil=True)
def auction(state: IntArray, rules: Rules, tape: Tape, arrivals: IntArray, last: IntArray) -> None:
    """Clear a batch whose orders are all on the book.

    ``arrivals`` (N,) are agents as they arrived; ``last`` (d,), the last prices in half ticks, is
    written where something trades.
    """
    totals = np.zeros((rules.goods, 2, rules.top + 1), dtype=np.int64)
    for agent in arrivals:
        collect(state, rules, totals, ADD, agent)
    for good in range(rules.goods):
        price, volume = clearing(totals[good, BID], totals[good, ASK], last[good])
        if not volume:
            continue
        last[good] = price
        rationing = shares(price, volume, totals[good, BID], totals[good, ASK])
        running_lots = np.zeros(2, np.int64)
        lots = np.zeros((2, len(arrivals)), dtype=np.int64)
        for arrival_index, agent in enumerate(arrivals):
            for slot in range(agent * rules.slots, (agent + 1) * rules.slots):
                traded = filled(state, slot, good, price, rationing, running_lots)
                if traded:
                    lots[state[slot * WIDTH + SIDE], arrival_index] += traded
                    state[account_at(rules, agent) + CASH] -= traded * fee_of(state, rules, slot)
                    reserve(state, rules, slot, -traded)
        seller = 0  # the first buyer trades with the first seller, and so on
        for buyer in range(len(arrivals)):
            while lots[BID, buyer]:
                while not lots[ASK, seller]:
                    seller += 1
                traded = min(lots[BID, buyer], lots[ASK, seller])
                settle(
                    state,
                    rules,
                    tape,
                    arrivals[buyer],
                    arrivals[seller],
                    good,
                    price,
                    traded,
                    NOBODY_TOOK,
                )
                lots[BID, buyer] -= traded
                lots[ASK, seller] -= traded


@compiled(nogil=True)
def play(state: IntArray, rules: Rules, tape: Tape, sent: Sent, last: IntArray) -> None:
    """Play a round; ``last`` (d,), the last prices in half ticks, is written in a batch."""
    for agent in sent.arrivals:
        arrive(state, rules, tape, sent, agent, sent.actions[agent])
    if rules.batch:
        auction(state, rules, tape, sent.arrivals, last)


@compiled(nogil=True)
def again(state: IntArray, rules: Rules, sent: Sent, last: IntArray, changes: IntArray) -> None:
    """Write what every action of every agent would have changed for it.

    ``state`` is that before the round; ``last`` (d,) are the prices then, in half ticks.
    ``changes`` (N, A, 1 + d) is written: cash, and lots of each good, that the agent has more after
    the round, were it to take the action and all others theirs. Absent agents' rows are 0.
    """
    state_before = state.copy()
    tape = Tape(np.zeros((0, 6), np.int64), np.zeros(2, np.int64))
    if rules.batch:
        again_batch(state, rules, tape, sent, last, changes)
    else:
        again_continuous(state, rules, tape, sent, changes)
    for agent in range(len(sent.actions)):
        for action in range(sent.acts.shape[1] if sent.actions[agent] >= 0 else 0):
            equal_action = sent.acts[agent, action, SAME]
            if equal_action == action:
                changes[agent, action] -= owned(state_before, rules, agent)
            elif equal_action >= 0:
                changes[agent, action] = changes[agent, equal_action]


@compiled(nogil=True)
def owned(state: IntArray, rules: Rules, agent: int) -> IntArray:
    """Return what an agent owns (1 + d,): cash, and lots of each good."""
    account = account_at(rules, agent)
    amounts = np.empty(1 + rules.goods, dtype=np.int64)
    amounts[0] = state[account + CASH]
    amounts[1:] = state[account + FIRST_HOLDING : account + rules.wide : HOLDING_WIDTH]
    return amounts


@compiled(nogil=True)
def again_continuous(
    state: IntArray, rules: Rules, tape: Tape, sent: Sent, owned_after: IntArray
) -> None:
    """Write what agents own after each action to ``owned_after`` (N, A, 1 + d), order by order."""
    state_now = np.empty_like(state)
    arrivals = sent.arrivals
    acts = sent.acts
    actions = sent.actions
    for arrival_index, agent in enumerate(arrivals):
        for action in range(acts.shape[1] if actions[agent] >= 0 else 0):
            if acts[agent, action, SAME] != action or acts[agent, actions[agent], SAME] == action:
                continue
            state_now[:] = state
            arrive(state_now, rules, tape, sent, agent, action)
            for later_agent in arrivals[arrival_index + 1 :]:
                if not state_now[account_at(rules, agent) + OPEN]:
                    break
                arrive(state_now, rules, tape, sent, later_agent, actions[later_agent])
            owned_after[agent, action] = owned(state_now, rules, agent)
        arrive(state, rules, tape, sent, agent, actions[agent])
    for agent in arrivals:
        if actions[agent] >= 0:
            owned_after[agent, acts[agent, actions[agent], SAME]] = owned(state, rules, agent)


@compiled(nogil=True)
def again_batch(
    state: IntArray, rules: Rules, tape: Tape, sent: Sent, last: IntArray, owned_after: IntArray
) -> None:
    """Write what agents own after each action to ``owned_after`` (N, A, 1 + d), in a batch.

    Nothing trades before all are here, so that what an agent may send depends on itself alone.
    """
    state_before = state.copy()
    state_now = state.copy()
    acts = sent.acts
    totals = np.zeros((rules.goods, 2, rules.top + 1), dtype=np.int64)
    earlier = np.zeros_like(totals)  # of who arrives before the agent
    for agent in sent.arrivals:
        arrive(state, rules, tape, sent, agent, sent.actions[agent])
        collect(state, rules, totals, ADD, agent)
    for agent in sent.arrivals:
        slot_span = slice(agent * rules.slots * WIDTH, (agent + 1) * rules.slots * WIDTH)
        account_span = slice(account_at(rules, agent), account_at(rules, agent + 1))
        collect(state, rules, totals, REMOVE, agent)
        for action in range(acts.shape[1] if sent.actions[agent] >= 0 else 0):
            if acts[agent, action, SAME] == action:
                state_now[slot_span], state_now[account_span] = (
                    state_before[slot_span],
                    state_before[account_span],
                )
                arrive(state_now, rules, tape, sent, agent, action)
                collect(state_now, rules, totals, ADD, agent)
                trade_one(state_now, rules, agent, totals, earlier, last)
                owned_after[agent, action] = owned(state_now, rules, agent)
                collect(state_now, rules, totals, REMOVE, agent)
        collect(state, rules, totals, ADD, agent)
        collect(state, rules, earlier, ADD, agent)


@compiled(nogil=True)
def trade_one(
    state: IntArray, rules: Rules, agent: int, totals: IntArray, earlier: IntArray, last: IntArray
) -> None:
    """Give one agent what it would trade in a batch; its orders stay as they are.

    ``totals``, ``earlier`` (d, 2, T + 1): what all, and who came before it, bid for and offer.
    """
    account = account_at(rules, agent)
    for good in range(rules.goods):
        price, volume = clearing(totals[good, BID], totals[good, ASK], last[good])
        if not volume:
            continue
        rationing = shares(price, volume, totals[good, BID], totals[good, ASK])
        running_lots = earlier[good, :, price // 2].copy()
        for slot in range(agent * rules.slots, (agent + 1) * rules.slots):
            lots = filled(state, slot, good, price, rationing, running_lots)
            if lots:
                sign = 1 if state[slot * WIDTH + SIDE] == BID else -1
                state[account + CASH] -= lots * (
                    sign * price * rules.half + fee_of(state, rules, slot)
                )
                state[account + FIRST_HOLDING + HOLDING_WIDTH * good] += sign * lots
