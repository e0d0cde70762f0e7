"""Compiled orders and rounds of an order book, and rounds that are cleared again.

``market.markets.order_book`` calls ``empty`` for a state without orders, ``play`` once per round,
``drop_unrested`` and ``expire`` after it, and ``write_alternatives`` for what every other action
would have brought. The other functions are steps of these, called by compiled code alone.

Everything is a whole number. Prices are ticks 0..T, quantities lots, and cash is counted in units
of which half a tick of a lot is ``Rules.half_tick_cash``. Slot k belongs to agent
k // slots_per_agent; resting orders of one good, side and tick are a queue by time.

    continuous   agents arrive one after the other; an order trades at once with the best orders of
                 the other side, at their prices, first come first served at each, and what is left
                 of it rests
    batch        orders are collected; D(p) lots are bid for at p or above and S(p) are offered at p
                 or below. Prices that leave nobody wanting are an interval: the price is its
                 middle. Better orders trade in full, those at the price in proportion to their
                 size (shares of running sums in the order of arrival, rounded down)

What every action of every agent would have changed (``write_alternatives``) is exact. In the
continuous book the state before an agent arrives does not depend on its order, so it is walked
through once, and only arrivals from the agent's own on are played again, as long as an order that
it has open crosses the limit of an order to come. In a batch all that the others' orders add up to
is collected once.

Arguments that all functions share
----------------------------------
state : int array (numbers,)
    The book and what agents own, in one array that is quick to copy and to hand on: first the
    orders (``ORDER_WIDTH`` numbers for each slot), then the ends of each queue, the best prices,
    and what each agent owns (``FIRST_HOLDING`` numbers, and ``HOLDING_WIDTH`` for each good).
    Written in place by all functions that do not return something of it. ``Rules`` says where each
    part
    begins.
rules : Rules
    What does not change within a round.
tape : int array (1 + m, 6)
    What happened: row ``COUNTS`` counts, see ``N_TRADES``, and the others are a row per trade, see
    ``TRADE_GOOD``. Trades and refused orders are added in place; with a single row no trades are
    kept.
submissions : Submissions
    Who comes in the round, and does what.
action_table, order_table, tick_shift
    Arrays of ``Submissions``. Functions that are called for every arrival take the arrays one by
    one: handing on a tuple of arrays takes .1 us, as long as an arrival.
slot, agent, good, side, tick
    Numbers of an open order, an agent, a good, ``BID`` or ``ASK``, and a price.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regretless.market.core.arrays import Array
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
ORDER_WIDTH = 7  # how many numbers an order has

# Places of an agent's numbers.
CASH = 0
CASH_HELD = 1  # cash that its open orders may cost
LOTS_TRADED = 2  # lots traded in this round
OPEN_LOTS = 3  # lots in open orders
MAX_LOTS = 4  # the most that these two may be together
MAX_HOLDING = 5  # the most lots of a good that it may hold
FIRST_HOLDING = 6  # from here on the numbers of each good

# Places of an agent's numbers of a good, in lots; the first good's begin at ``FIRST_HOLDING``.
LOTS_OWNED = 0
LOTS_BID_FOR = 1  # bid for
LOTS_OFFERED = 2
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

# Places of an action's numbers (``Submissions.action_table``).
BEGIN = 0  # of its orders in ``Submissions.order_table``
END = 1
KEEPS_OPEN_ORDERS = 2  # whether what the agent has on the book stays
RESTS_ON_BOOK = 3  # whether what does not trade at once rests
FIRST_EQUAL = 4  # the first of the agent's actions that does the same
ACTION_WIDTH = 5  # how many numbers an action has

# Columns of the orders that actions send (``Submissions.order_table``).
SIGNED_LOTS = 0  # below 0 for a sale
LIMIT_TICK = 1
ORDER_GOOD = 2

# Columns of the trades on a tape.
TRADE_GOOD = 0
TRADE_BUYER = 1
TRADE_SELLER = 2
TRADE_PRICE = 3  # in half ticks
TRADE_LOTS = 4
TRADE_TAKER = 5  # ``BUYER_TOOK``, ``SELLER_TOOK`` or ``NOBODY_TOOK``
TRADE_WIDTH = 6  # how many columns there are

# The row of a tape that counts, the row of the first trade, and what is counted.
COUNTS = 0
FIRST_TRADE = 1
N_TRADES = 0
N_REFUSED = 1


class Rules(NamedTuple):
    """What does not change within a round, and where the state holds what.

    Attributes
    ----------
    half_tick_cash : int
        Cash for half a tick of one lot.
    maker_fee, taker_fee : int
        Cash that the side which rested and the side which came pay for a lot; below 0 for what they
        are paid.
    slots_per_agent : int
        Open orders that an agent may have.
    is_batch : bool
        Whether orders are collected and cleared together.
    top_tick : int
        The highest tick, T.
    goods : int
    queues_begin : int
        Where the queues begin: slot of the first and of the last order, by good, side and tick.
    best_begin : int
        Where the best ticks begin, by good and side; -1 and T + 1 for none.
    accounts_begin : int
        Where the agents' numbers begin.
    account_width : int
        How many numbers an agent has.
    round_index : int
        Of the round, counted from 0; all others stay the same in all rounds.
    """

    half_tick_cash: int
    maker_fee: int
    taker_fee: int
    slots_per_agent: int
    is_batch: bool
    top_tick: int
    goods: int
    queues_begin: int
    best_begin: int
    accounts_begin: int
    account_width: int
    round_index: int


class Submissions(NamedTuple):
    """Who arrives in a round, and does what.

    Attributes
    ----------
    action_table : int array (N, A, 5)
        Every agent's actions, see ``BEGIN``; -1 beyond an agent's actions.
    order_table : int array (M, 3)
        The orders of all actions, see ``SIGNED_LOTS``; those of an action side by side.
    arrival_order : int array (N,)
        Agents as they arrive.
    actions : int array (N,)
        What each agent does, -1 where it is absent.
    tick_shift : int array (d,)
        Ticks that are added to the limits of each good.
    """

    action_table: IntArray
    order_table: IntArray
    arrival_order: IntArray
    actions: IntArray
    tick_shift: IntArray


def empty(agents: int, slots: int, goods: int, top_tick: int) -> tuple[dict[str, int], IntArray]:
    """Return where a state holds what, as ``Rules`` name it, and the state without orders.

    ``slots`` are the open orders that an agent may have.
    """
    queues_begin = agents * slots * ORDER_WIDTH
    # A queue has a head and a tail, and every tick of a good one for bids and one for asks.
    best_begin = queues_begin + 4 * goods * (top_tick + 1)
    accounts_begin = best_begin + 2 * goods
    account_width = FIRST_HOLDING + HOLDING_WIDTH * goods
    begins = {
        "top_tick": top_tick,
        "goods": goods,
        "queues_begin": queues_begin,
        "best_begin": best_begin,
        "accounts_begin": accounts_begin,
        "account_width": account_width,
    }
    state = np.zeros(accounts_begin + agents * account_width, dtype=np.int64)
    state[queues_begin:best_begin] = -1
    state[best_begin:accounts_begin] = np.tile([-1, top_tick + 1], goods)
    return begins, state


@compiled(nogil=True)
def account_at(rules: Rules, agent: int) -> int:
    """Return where what an agent owns begins."""
    return rules.accounts_begin + agent * rules.account_width


@compiled(nogil=True)
def queue_at(rules: Rules, good: int, side: int, tick: int) -> int:
    """Return where the first of a queue stands; the last stands behind it, -1 for none."""
    return rules.queues_begin + 2 * ((2 * good + side) * (rules.top_tick + 1) + tick)


@compiled(nogil=True)
def cash_set_aside(rules: Rules, side: int, tick: int) -> int:
    """Return the cash that is set aside for a lot of an open order: the most that it may cost."""
    fee = max(rules.maker_fee, rules.taker_fee, 0)
    worth = 2 * tick * rules.half_tick_cash
    if side == BID:
        return worth + fee
    return max(0, fee - worth)


@compiled(nogil=True)
def open_accounts(
    state: IntArray, rules: Rules, cash: Array, goods: Array, cash_unit: float, lots_per_unit: int
) -> None:
    """Note in the state what agents own, and that nobody has traded in this round.

    ``cash`` (N + 1,) and ``goods`` (N + 1, d) are what everybody owns, in units; the last is the
    world outside. Cash is counted in units of ``cash_unit``.
    """
    for agent in range(len(cash) - 1):
        account = account_at(rules, agent)
        state[account + LOTS_TRADED] = 0
        state[account + CASH] = np.rint(cash[agent] / cash_unit)
        for good in range(rules.goods):
            holding = account + FIRST_HOLDING + HOLDING_WIDTH * good
            state[holding + LOTS_OWNED] = np.rint(goods[agent, good] * lots_per_unit)


@compiled(nogil=True)
def write_received(
    state: IntArray, rules: Rules, cash: Array, goods: Array, cash_unit: float, lots_per_unit: int,
    cash_received: Array, bought: Array,
) -> None:  # fmt: skip
    """Write what agents have more than they owned when the round was opened, in units.

    ``cash`` and ``goods`` are as in ``open_accounts``; ``cash_received`` (N,) and ``bought`` (N, d)
    are written.
    """
    for agent in range(len(cash_received)):
        account = account_at(rules, agent)
        more = state[account + CASH] - int(np.rint(cash[agent] / cash_unit))
        cash_received[agent] = more * cash_unit
        for good in range(rules.goods):
            holding = account + FIRST_HOLDING + HOLDING_WIDTH * good
            lots_before = int(np.rint(goods[agent, good] * lots_per_unit))
            bought[agent, good] = (state[holding + LOTS_OWNED] - lots_before) / lots_per_unit


@compiled(nogil=True, counts_references=False)
def reserve(state: IntArray, rules: Rules, slot: int, lots: int) -> None:
    """Count lots of the order in a slot as open; below 0 as open no more."""
    order = slot * ORDER_WIDTH
    account = account_at(rules, slot // rules.slots_per_agent)
    side = state[order + SIDE]
    state[account + CASH_HELD] += lots * cash_set_aside(rules, side, state[order + TICK])
    state[account + OPEN_LOTS] += lots
    holding = account + FIRST_HOLDING + HOLDING_WIDTH * state[order + GOOD]
    if side == BID:
        state[holding + LOTS_BID_FOR] += lots
    else:
        state[holding + LOTS_OFFERED] += lots
    state[order + LOTS] += lots


@compiled(nogil=True, counts_references=False)
def join_queue(state: IntArray, rules: Rules, slot: int) -> None:
    """Put an order behind those of its tick."""
    order = slot * ORDER_WIDTH
    tick = state[order + TICK]
    good = state[order + GOOD]
    side = state[order + SIDE]
    queue_ends = queue_at(rules, good, side, tick)
    best_price = rules.best_begin + 2 * good + side
    last_slot = state[queue_ends + 1]
    state[order + NEXT] = -1
    state[order + BEFORE] = last_slot
    if last_slot >= 0:
        state[last_slot * ORDER_WIDTH + NEXT] = slot
    else:
        state[queue_ends] = slot
    state[queue_ends + 1] = slot
    if side == BID:
        state[best_price] = max(state[best_price], tick)
    else:
        state[best_price] = min(state[best_price], tick)


@compiled(nogil=True, counts_references=False)
def leave_queue(state: IntArray, rules: Rules, slot: int) -> None:
    """Take an order out of its queue, and look for the best price that is left."""
    order = slot * ORDER_WIDTH
    good = state[order + GOOD]
    side = state[order + SIDE]
    next_slot = state[order + NEXT]
    previous_slot = state[order + BEFORE]
    queue_ends = queue_at(rules, good, side, state[order + TICK])
    if previous_slot >= 0:
        state[previous_slot * ORDER_WIDTH + NEXT] = next_slot
    else:
        state[queue_ends] = next_slot
    if next_slot >= 0:
        state[next_slot * ORDER_WIDTH + BEFORE] = previous_slot
    else:
        state[queue_ends + 1] = previous_slot
    best_price = rules.best_begin + 2 * good + side
    step = -1 if side == BID else 1
    while (
        0 <= state[best_price] <= rules.top_tick
        and state[queue_at(rules, good, side, state[best_price])] < 0
    ):
        state[best_price] += step


@compiled(nogil=True, counts_references=False)
def withdraw(state: IntArray, rules: Rules, slot: int) -> None:
    """Cancel the order in a slot, if there is one."""
    if state[slot * ORDER_WIDTH + LOTS]:
        reserve(state, rules, slot, -state[slot * ORDER_WIDTH + LOTS])
        if not rules.is_batch:
            leave_queue(state, rules, slot)


@compiled(nogil=True)
def drop_unrested(state: IntArray, rules: Rules) -> None:
    """Cancel every order that was to trade at once and does not rest on the book."""
    for slot in range(rules.queues_begin // ORDER_WIDTH):
        if state[slot * ORDER_WIDTH + SINCE] < 0:
            withdraw(state, rules, slot)


@compiled(nogil=True)
def expire(state: IntArray, rules: Rules, max_rounds: int) -> None:
    """Cancel every order that has been on the book for ``max_rounds`` (at least 1)."""
    for slot in range(rules.queues_begin // ORDER_WIDTH):
        since = state[slot * ORDER_WIDTH + SINCE]
        if max_rounds <= rules.round_index + 1 - since:
            withdraw(state, rules, slot)


@compiled(nogil=True, counts_references=False)
def cost_at_once(state: IntArray, rules: Rules, lots: int, tick: int, good: int, side: int) -> int:
    """Return the cash that an order which does not rest costs now (below 0: brings)."""
    cost = 0
    other_side = 1 - side
    best_tick = state[rules.best_begin + 2 * good + other_side]
    step = 1 if side == BID else -1
    while lots and 0 <= best_tick <= rules.top_tick and (tick - best_tick) * step >= 0:
        slot = state[queue_at(rules, good, other_side, best_tick)]
        while lots and slot >= 0:
            traded = min(lots, state[slot * ORDER_WIDTH + LOTS])
            cost += traded * (2 * best_tick * rules.half_tick_cash * step + rules.taker_fee)
            lots -= traded
            slot = state[slot * ORDER_WIDTH + NEXT]
        best_tick += step
    return cost


@compiled(nogil=True, counts_references=False)
def own_best_ticks(state: IntArray, rules: Rules, agent: int, good: int) -> tuple[int, int]:
    """Return the highest tick that an agent bids for a good, and the lowest that it asks.

    They are -1 and T + 1 for none.
    """
    own_bid = -1
    own_ask = rules.top_tick + 1
    lots_left = state[account_at(rules, agent) + OPEN_LOTS]
    slot = agent * rules.slots_per_agent
    while lots_left:
        order = slot * ORDER_WIDTH
        lots = state[order + LOTS]
        if lots and state[order + GOOD] == good:
            if state[order + SIDE] == BID:
                own_bid = max(own_bid, state[order + TICK])
            else:
                own_ask = min(own_ask, state[order + TICK])
        lots_left -= lots
        slot += 1
    return own_bid, own_ask


@compiled(nogil=True, counts_references=False)
def is_allowed(
    state: IntArray, rules: Rules, agent: int, lots: int, tick: int, good: int, side: int,
    rests: int, own_bid: int, own_ask: int,
) -> bool:  # fmt: skip
    """Say whether an agent may send an order: it can pay for it, and trades not with itself.

    ``own_bid`` and ``own_ask`` are as ``own_best_ticks`` returns them.
    """
    if tick >= own_ask if side == BID else tick <= own_bid:
        return False
    account = account_at(rules, agent)
    holding = account + FIRST_HOLDING + HOLDING_WIDTH * good
    lots_of_round = state[account + LOTS_TRADED] + state[account + OPEN_LOTS] + lots
    if lots_of_round > state[account + MAX_LOTS]:
        return False
    lots_if_filled = state[holding + LOTS_OWNED] + state[holding + LOTS_BID_FOR] + lots
    if side == BID and lots_if_filled > state[account + MAX_HOLDING]:
        return False
    if side == ASK and state[holding + LOTS_OFFERED] + lots > state[holding + LOTS_OWNED]:
        return False
    if rests or rules.is_batch:
        cost = lots * cash_set_aside(rules, side, tick)
    else:
        cost = cost_at_once(state, rules, lots, tick, good, side)
    return bool(cost <= state[account + CASH] - state[account + CASH_HELD])


@compiled(nogil=True, counts_references=False)
def settle(
    state: IntArray, rules: Rules, tape: IntArray, buyer: int, seller: int, good: int, price: int,
    lots: int, taker: int,
) -> None:  # fmt: skip
    """Hand over goods and cash, and note the trade; fees of a batch are not charged."""
    cash = lots * price * rules.half_tick_cash
    buyer_account = account_at(rules, buyer)
    seller_account = account_at(rules, seller)
    buyer_fee = 0
    seller_fee = 0
    if taker == BUYER_TOOK:
        buyer_fee = lots * rules.taker_fee
        seller_fee = lots * rules.maker_fee
    elif taker == SELLER_TOOK:
        buyer_fee = lots * rules.maker_fee
        seller_fee = lots * rules.taker_fee
    state[buyer_account + CASH] -= cash + buyer_fee
    state[seller_account + CASH] += cash - seller_fee
    for account, sign in ((buyer_account, 1), (seller_account, -1)):
        state[account + FIRST_HOLDING + HOLDING_WIDTH * good] += sign * lots
        state[account + LOTS_TRADED] += lots
    if len(tape) > FIRST_TRADE:
        row = FIRST_TRADE + tape[COUNTS, N_TRADES]
        tape[row, TRADE_GOOD] = good
        tape[row, TRADE_BUYER] = buyer
        tape[row, TRADE_SELLER] = seller
        tape[row, TRADE_PRICE] = price
        tape[row, TRADE_LOTS] = lots
        tape[row, TRADE_TAKER] = taker
    tape[COUNTS, N_TRADES] += 1


@compiled(nogil=True, counts_references=False)
def send(
    state: IntArray, rules: Rules, tape: IntArray, agent: int, free_slot: int, signed: int,
    tick: int, good: int, rests: int, own_bid: int, own_ask: int,
) -> bool:  # fmt: skip
    """Let an agent send an order: it is refused, trades, rests in a free slot, or is dropped.

    ``free_slot`` is the agent's first, or the one behind its last if none is free; ``own_bid`` and
    ``own_ask`` are its best ticks of the good (``own_best_ticks``). Returns whether the order is in
    the slot now.
    """
    lots = abs(signed)
    if signed > 0:
        step = 1
        side = BID
        other_side = ASK
    else:
        step = -1
        side = ASK
        other_side = BID
    may_rest = rests or rules.is_batch
    has_no_slot = may_rest and free_slot == (agent + 1) * rules.slots_per_agent
    if has_no_slot or not is_allowed(
        state, rules, agent, lots, tick, good, side, rests, own_bid, own_ask
    ):  # fmt: skip
        tape[COUNTS, N_REFUSED] += 1
        return False

    while lots and not rules.is_batch:  # trade with what is on the book
        best_tick = state[rules.best_begin + 2 * good + other_side]
        if not 0 <= best_tick <= rules.top_tick or (tick - best_tick) * step < 0:
            break
        rival_slot = state[queue_at(rules, good, other_side, best_tick)]
        rival = rival_slot // rules.slots_per_agent
        traded = min(lots, state[rival_slot * ORDER_WIDTH + LOTS])
        reserve(state, rules, rival_slot, -traded)
        if not state[rival_slot * ORDER_WIDTH + LOTS]:
            leave_queue(state, rules, rival_slot)
        price = 2 * best_tick
        if side == BID:
            settle(state, rules, tape, agent, rival, good, price, traded, BUYER_TOOK)
        else:
            settle(state, rules, tape, rival, agent, good, price, traded, SELLER_TOOK)
        lots -= traded

    if lots and may_rest:
        order = free_slot * ORDER_WIDTH
        state[order + TICK] = tick
        state[order + GOOD] = good
        state[order + SIDE] = side
        state[order + SINCE] = -1
        if rests:
            state[order + SINCE] = rules.round_index
        reserve(state, rules, free_slot, lots)
        if not rules.is_batch:
            join_queue(state, rules, free_slot)
        return True
    return False


@compiled(nogil=True, counts_references=False)
def arrive(
    state: IntArray, rules: Rules, tape: IntArray, action_table: IntArray, order_table: IntArray,
    tick_shift: IntArray, agent: int, action: int,
) -> None:  # fmt: skip
    """Let an agent take an action; one who is absent (-1) has nothing on the book."""
    account = account_at(rules, agent)
    first_slot = agent * rules.slots_per_agent
    end_slot = first_slot + rules.slots_per_agent
    if action < 0 or not action_table[agent, action, KEEPS_OPEN_ORDERS]:
        slot = first_slot
        while state[account + OPEN_LOTS]:
            withdraw(state, rules, slot)
            slot += 1
    elif rules.is_batch:  # what is kept moves to the first slots, the oldest first
        target_slot = first_slot
        for slot in range(first_slot, end_slot):
            if state[slot * ORDER_WIDTH + LOTS]:
                if slot > target_slot:
                    for entry in range(ORDER_WIDTH):
                        state[target_slot * ORDER_WIDTH + entry] = state[slot * ORDER_WIDTH + entry]
                    state[slot * ORDER_WIDTH + LOTS] = 0
                target_slot += 1
    if action < 0:
        return
    rests = action_table[agent, action, RESTS_ON_BOOK]
    free_slot = first_slot
    # The agent's best ticks of the good of the order before: they are looked for again only where
    # the next order is for another good, since those of 72 orders would be 72 times as many.
    last_good = -1
    own_bid = -1
    own_ask = rules.top_tick + 1
    for order_index in range(action_table[agent, action, BEGIN], action_table[agent, action, END]):
        while free_slot < end_slot and state[free_slot * ORDER_WIDTH + LOTS]:
            free_slot += 1
        signed_lots = order_table[order_index, SIGNED_LOTS]
        good = order_table[order_index, ORDER_GOOD]
        tick = limit_as_sent(rules, order_table, tick_shift, order_index)
        if good != last_good:
            own_bid, own_ask = own_best_ticks(state, rules, agent, good)
            last_good = good
        is_open = send(
            state, rules, tape, agent, free_slot, signed_lots, tick, good, rests, own_bid, own_ask
        )  # fmt: skip
        if is_open and signed_lots > 0:
            own_bid = max(own_bid, tick)
        elif is_open:
            own_ask = min(own_ask, tick)


@compiled(nogil=True, counts_references=False)
def limit_as_sent(
    rules: Rules, order_table: IntArray, tick_shift: IntArray, order_index: int
) -> int:
    """Return the tick of the limit at which an order is sent."""
    shift = tick_shift[order_table[order_index, ORDER_GOOD]]
    tick = order_table[order_index, LIMIT_TICK] + shift
    return int(min(max(tick, 0), rules.top_tick))


@compiled(nogil=True, counts_references=False)
def lots_filled(
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
    side = state[slot * ORDER_WIDTH + SIDE]
    lots = state[slot * ORDER_WIDTH + LOTS]
    tick = state[slot * ORDER_WIDTH + TICK]
    improvement = 2 * tick - price if side == BID else price - 2 * tick
    if state[slot * ORDER_WIDTH + GOOD] != good or lots == 0 or improvement < 0:
        return 0
    if improvement > 0:
        return int(lots)
    bids_left, offers_left, bids_wanted, offers_wanted = rationing
    lots_left = bids_left if side == BID else offers_left
    lots_wanted = bids_wanted if side == BID else offers_wanted
    lots_before = running_lots[side] * lots_left // lots_wanted
    running_lots[side] += lots
    return int(running_lots[side] * lots_left // lots_wanted - lots_before)


@compiled(nogil=True, counts_references=False)
def fee_of(state: IntArray, rules: Rules, slot: int) -> int:
    """Return what an order pays for a lot in a batch: the maker's fee if it is an older one."""
    sent_in_round = state[slot * ORDER_WIDTH + SINCE]  # -1 for an order that does not rest
    if 0 <= sent_in_round < rules.round_index:
        return rules.maker_fee
    return rules.taker_fee


@compiled(nogil=True, counts_references=False)
def collect(state: IntArray, rules: Rules, totals: IntArray, sign: int, agent: int) -> None:
    """Add an agent's orders, times a sign, to ``totals`` (d, 2, T + 1) in place."""
    lots_left = state[account_at(rules, agent) + OPEN_LOTS]
    slot = agent * rules.slots_per_agent
    while lots_left:
        order = slot * ORDER_WIDTH
        lots = state[order + LOTS]
        if lots:
            totals[state[order + GOOD], state[order + SIDE], state[order + TICK]] += sign * lots
            lots_left -= lots
        slot += 1


@compiled(nogil=True)
def auction(
    state: IntArray, rules: Rules, tape: IntArray, arrivals: IntArray, last_prices: IntArray
) -> None:
    """Clear a batch whose orders are all on the book.

    ``arrivals`` (N,) are agents as they arrived; ``last_prices`` (d,), in half ticks, is
    written where something trades.
    """
    totals = np.zeros((rules.goods, 2, rules.top_tick + 1), dtype=np.int64)
    for agent in arrivals:
        collect(state, rules, totals, ADD, agent)
    for good in range(rules.goods):
        price, volume = clearing(totals[good, BID], totals[good, ASK], last_prices[good])
        if not volume:
            continue
        last_prices[good] = price
        rationing = shares(price, volume, totals[good, BID], totals[good, ASK])
        running_lots = np.zeros(2, np.int64)
        lots = np.zeros((2, len(arrivals)), dtype=np.int64)
        for arrival_index, agent in enumerate(arrivals):
            for slot in range(agent * rules.slots_per_agent, (agent + 1) * rules.slots_per_agent):
                traded = lots_filled(state, slot, good, price, rationing, running_lots)
                if traded:
                    lots[state[slot * ORDER_WIDTH + SIDE], arrival_index] += traded
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
def play(
    state: IntArray, rules: Rules, tape: IntArray, submissions: Submissions, last_prices: IntArray
) -> None:
    """Play a round; ``last_prices`` (d,), in half ticks, is written in a batch."""
    action_table = submissions.action_table
    order_table = submissions.order_table
    tick_shift = submissions.tick_shift
    arrival_order = submissions.arrival_order
    actions = submissions.actions
    for agent in arrival_order:
        arrive(
            state, rules, tape, action_table, order_table, tick_shift, agent, actions[agent]
        )  # fmt: skip
    if rules.is_batch:
        auction(state, rules, tape, arrival_order, last_prices)


@compiled(nogil=True)
def write_alternatives(
    state: IntArray,
    rules: Rules,
    submissions: Submissions,
    last_prices: IntArray,
    changes: IntArray,
) -> None:
    """Write what every action of every agent would have changed for it.

    ``state`` is that before the round; ``last_prices`` (d,) are those then, in half ticks.
    ``changes`` (N, A, 1 + d) is written: cash, and lots of each good, that the agent has more after
    the round, were it to take the action and all others theirs. Absent agents' rows are 0.
    """
    action_table = submissions.action_table
    actions = submissions.actions
    owned_before = np.empty((len(actions), 1 + rules.goods), dtype=np.int64)
    for agent in range(len(actions)):
        write_owned(state, rules, agent, owned_before[agent])
    if rules.is_batch:
        write_alternatives_batch(state, rules, submissions, last_prices, changes)
    else:
        write_alternatives_continuous(state, rules, submissions, changes)
    for agent in range(len(actions)):
        if actions[agent] < 0:
            continue
        for action in range(action_table.shape[1]):
            equal_action = action_table[agent, action, FIRST_EQUAL]
            if equal_action < 0:
                continue
            for entry in range(changes.shape[2]):
                if equal_action == action:
                    changes[agent, action, entry] -= owned_before[agent, entry]
                else:
                    changes[agent, action, entry] = changes[agent, equal_action, entry]


@compiled(nogil=True, counts_references=False)
def write_owned(state: IntArray, rules: Rules, agent: int, amounts: IntArray) -> None:
    """Write what an agent owns to ``amounts`` (1 + d,): cash, and lots of each good."""
    account = account_at(rules, agent)
    amounts[0] = state[account + CASH]
    for good in range(rules.goods):
        amounts[1 + good] = state[account + FIRST_HOLDING + HOLDING_WIDTH * good]


@compiled(nogil=True, counts_references=False)
def exceeds_rights(
    state: IntArray, rules: Rules, order_table: IntArray, agent: int, order_index: int
) -> bool:
    """Say that an order is refused whatever is on the book.

    It is for more than the agent may still trade in the round, for more than it may hold, or it
    offers more than the agent owns.
    """
    account = account_at(rules, agent)
    signed_lots = order_table[order_index, SIGNED_LOTS]
    if state[account + LOTS_TRADED] + abs(signed_lots) > state[account + MAX_LOTS]:
        return True
    good = order_table[order_index, ORDER_GOOD]
    lots_owned = state[account + FIRST_HOLDING + HOLDING_WIDTH * good + LOTS_OWNED]
    if signed_lots > 0:
        return bool(lots_owned + signed_lots > state[account + MAX_HOLDING])
    return bool(-signed_lots > lots_owned)


@compiled(nogil=True)
def best_limits_to_come(state: IntArray, rules: Rules, submissions: Submissions) -> IntArray:
    """Return the best limits that are still to be sent once k agents have arrived (N + 1, d, 2).

    They are the highest tick of all bids and the lowest of all asks of each good that agents send
    who arrive later; -1 and T + 1 for none. A single order of an agent who has none on the book
    before the round, as in ``state``, is left out where it exceeds the agent's rights: nothing
    that happens before it arrives changes these. All others count, whether they may be sent or not.
    """
    action_table = submissions.action_table
    order_table = submissions.order_table
    tick_shift = submissions.tick_shift
    arrival_order = submissions.arrival_order
    actions = submissions.actions
    best_limits = np.empty((len(arrival_order) + 1, rules.goods, 2), dtype=np.int64)
    best_limits[len(arrival_order), :, BID] = -1
    best_limits[len(arrival_order), :, ASK] = rules.top_tick + 1
    for arrival_index in range(len(arrival_order) - 1, -1, -1):
        best_limits[arrival_index] = best_limits[arrival_index + 1]
        agent = arrival_order[arrival_index]
        action = actions[agent]
        if action < 0:
            continue
        first_order = action_table[agent, action, BEGIN]
        end_of_orders = action_table[agent, action, END]
        has_nothing_open = state[account_at(rules, agent) + OPEN_LOTS] == 0
        keeps_its_rights = has_nothing_open and end_of_orders == first_order + 1
        for order_index in range(first_order, end_of_orders):
            if keeps_its_rights and exceeds_rights(state, rules, order_table, agent, order_index):
                continue
            tick = limit_as_sent(rules, order_table, tick_shift, order_index)
            best = best_limits[arrival_index, order_table[order_index, ORDER_GOOD]]
            if order_table[order_index, SIGNED_LOTS] > 0:
                best[BID] = max(best[BID], tick)
            else:
                best[ASK] = min(best[ASK], tick)
    return best_limits


@compiled(nogil=True, counts_references=False)
def may_still_trade(state: IntArray, rules: Rules, agent: int, best_limits: IntArray) -> bool:
    """Say whether an open order of an agent crosses the best limits to come (d, 2)."""
    lots_left = state[account_at(rules, agent) + OPEN_LOTS]
    slot = agent * rules.slots_per_agent
    while lots_left:
        order = slot * ORDER_WIDTH
        lots = state[order + LOTS]
        if lots:
            good = state[order + GOOD]
            tick = state[order + TICK]
            if state[order + SIDE] == BID:
                crosses = best_limits[good, ASK] <= tick
            else:
                crosses = best_limits[good, BID] >= tick
            if crosses:
                return True
            lots_left -= lots
        slot += 1
    return False


@compiled(nogil=True, counts_references=False)
def trades_nothing(
    state: IntArray, rules: Rules, action_table: IntArray, order_table: IntArray,
    tick_shift: IntArray, agent: int, action: int, best_limits: IntArray,
) -> bool:  # fmt: skip
    """Say that no order of an agent who arrives with an action can trade in the round.

    Each of them is refused, or crosses neither the best order on the book nor the best limits to
    come (d, 2); and what it keeps on the book crosses none of these limits. The agent owns
    afterwards what it owns now, as with most actions of a menu. False where that is not known.
    """
    first_order = action_table[agent, action, BEGIN]
    for order_index in range(first_order, action_table[agent, action, END]):
        good = order_table[order_index, ORDER_GOOD]
        best_price = rules.best_begin + 2 * good
        tick = limit_as_sent(rules, order_table, tick_shift, order_index)
        if order_table[order_index, SIGNED_LOTS] > 0:
            crosses = tick >= min(state[best_price + ASK], best_limits[good, ASK])
        else:
            crosses = tick <= max(state[best_price + BID], best_limits[good, BID])
        if crosses and not exceeds_rights(state, rules, order_table, agent, order_index):
            return False
    if action_table[agent, action, KEEPS_OPEN_ORDERS]:
        return not may_still_trade(state, rules, agent, best_limits)
    return True


@compiled(nogil=True)
def write_alternatives_continuous(
    state: IntArray, rules: Rules, submissions: Submissions, owned_after: IntArray
) -> None:
    """Write what agents own after each action to ``owned_after`` (N, A, 1 + d), order by order."""
    action_table = submissions.action_table
    order_table = submissions.order_table
    tick_shift = submissions.tick_shift
    arrival_order = submissions.arrival_order
    actions = submissions.actions
    tape = np.zeros((FIRST_TRADE, TRADE_WIDTH), dtype=np.int64)
    best_limits = best_limits_to_come(state, rules, submissions)
    state_now = np.empty_like(state)
    for arrival_index, agent in enumerate(arrival_order):
        if actions[agent] >= 0:
            first_equal = action_table[agent, :, FIRST_EQUAL]
            for action in range(len(first_equal)):
                # What equals an earlier action, or what was played, need not be played again.
                if first_equal[action] != action or first_equal[actions[agent]] == action:
                    continue
                if trades_nothing(
                    state, rules, action_table, order_table, tick_shift, agent, action,
                    best_limits[arrival_index + 1],
                ):  # fmt: skip
                    write_owned(state, rules, agent, owned_after[agent, action])
                    continue
                copy_entries(state, state_now, 0, len(state))
                arrive(
                    state_now, rules, tape, action_table, order_table, tick_shift, agent, action
                )  # fmt: skip
                next_index = arrival_index + 1
                while may_still_trade(state_now, rules, agent, best_limits[next_index]):
                    later_agent = arrival_order[next_index]
                    arrive(
                        state_now, rules, tape, action_table, order_table, tick_shift,
                        later_agent, actions[later_agent],
                    )  # fmt: skip
                    next_index += 1
                write_owned(state_now, rules, agent, owned_after[agent, action])
        arrive(
            state, rules, tape, action_table, order_table, tick_shift, agent, actions[agent]
        )  # fmt: skip
    for agent in arrival_order:
        if actions[agent] >= 0:
            played_action = action_table[agent, actions[agent], FIRST_EQUAL]
            write_owned(state, rules, agent, owned_after[agent, played_action])


@compiled(nogil=True, counts_references=False)
def copy_entries(source: IntArray, target: IntArray, begin: int, end: int) -> None:
    """Copy entries of one state to another: a loop, since slices look for overlaps first."""
    for entry in range(begin, end):
        target[entry] = source[entry]


@compiled(nogil=True)
def write_alternatives_batch(
    state: IntArray,
    rules: Rules,
    submissions: Submissions,
    last_prices: IntArray,
    owned_after: IntArray,
) -> None:
    """Write what agents own after each action to ``owned_after`` (N, A, 1 + d), in a batch.

    Nothing trades before all are here, so that what an agent may send depends on itself alone.
    """
    action_table = submissions.action_table
    order_table = submissions.order_table
    tick_shift = submissions.tick_shift
    arrival_order = submissions.arrival_order
    actions = submissions.actions
    tape = np.zeros((FIRST_TRADE, TRADE_WIDTH), dtype=np.int64)
    state_before = state.copy()
    state_now = state.copy()
    totals = np.zeros((rules.goods, 2, rules.top_tick + 1), dtype=np.int64)
    earlier_totals = np.zeros_like(totals)  # of who arrives before the agent
    for agent in arrival_order:
        arrive(
            state, rules, tape, action_table, order_table, tick_shift, agent, actions[agent]
        )  # fmt: skip
        collect(state, rules, totals, ADD, agent)
    for agent in arrival_order:
        collect(state, rules, totals, REMOVE, agent)
        if actions[agent] >= 0:
            first_entry = agent * rules.slots_per_agent * ORDER_WIDTH
            end_entry = (agent + 1) * rules.slots_per_agent * ORDER_WIDTH
            account = account_at(rules, agent)
            end_account = account + rules.account_width
            first_equal = action_table[agent, :, FIRST_EQUAL]
            for action in range(len(first_equal)):
                if first_equal[action] != action:  # it does what an earlier action does
                    continue
                copy_entries(state_before, state_now, first_entry, end_entry)
                copy_entries(state_before, state_now, account, end_account)
                arrive(
                    state_now, rules, tape, action_table, order_table, tick_shift, agent, action
                )  # fmt: skip
                collect(state_now, rules, totals, ADD, agent)
                trade_of_one_agent(state_now, rules, agent, totals, earlier_totals, last_prices)
                write_owned(state_now, rules, agent, owned_after[agent, action])
                collect(state_now, rules, totals, REMOVE, agent)
        collect(state, rules, totals, ADD, agent)
        collect(state, rules, earlier_totals, ADD, agent)


@compiled(nogil=True)
def trade_of_one_agent(
    state: IntArray,
    rules: Rules,
    agent: int,
    totals: IntArray,
    earlier_totals: IntArray,
    last_prices: IntArray,
) -> None:
    """Give one agent what it would trade in a batch; its orders stay as they are.

    ``totals`` and ``earlier_totals`` (d, 2, T + 1) are what all agents bid for and offer, and what
    those who came before this one do.
    """
    account = account_at(rules, agent)
    for good in range(rules.goods):
        price, volume = clearing(totals[good, BID], totals[good, ASK], last_prices[good])
        if not volume:
            continue
        rationing = shares(price, volume, totals[good, BID], totals[good, ASK])
        running_lots = earlier_totals[good, :, price // 2].copy()
        lots_left = state[account + OPEN_LOTS]
        slot = agent * rules.slots_per_agent
        while lots_left:
            lots = lots_filled(state, slot, good, price, rationing, running_lots)
            if lots:
                sign = 1 if state[slot * ORDER_WIDTH + SIDE] == BID else -1
                state[account + CASH] -= lots * (
                    sign * price * rules.half_tick_cash + fee_of(state, rules, slot)
                )
                state[account + FIRST_HOLDING + HOLDING_WIDTH * good] += sign * lots
            lots_left -= state[slot * ORDER_WIDTH + LOTS]
            slot += 1
