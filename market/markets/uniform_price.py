"""One price for all orders of a good, in a call auction or a batch, and who is rationed at it.

``auction`` says which prices clear. Prices are in half ticks, so that the middle of two is one.
"""

from regretless.market.core.arrays import Integers
from regretless.market.core.compiled import compiled


@compiled(nogil=True)
def clearing(demand: Integers, supply: Integers, last: int) -> tuple[int, int]:
    """Return the price and the lots that trade at it.

    Parameters
    ----------
    demand, supply : int array (T + 1,)
        Lots bid for and offered at each tick 0..T.
    last : int
        The last price, kept as far as it clears where nothing trades.
    """
    top = len(demand) - 1
    above, below = demand.sum(), 0  # D(p), and S(p) less what is offered at p
    low, high, volume = -1, top, 0
    for p in range(top + 1):
        if below > above:  # p is too high, as is all above
            break
        high = p
        if low < 0 and above - demand[p] <= below + supply[p]:
            low, volume = p, min(above, below + supply[p])
        above -= demand[p]
        below += supply[p]
    if volume:
        return low + high, volume
    return min(max(last, 2 * low), 2 * high), 0


@compiled(nogil=True)
def shares(
    price: int, volume: int, demand: Integers, supply: Integers
) -> tuple[int, int, int, int]:
    """Return lots left for bids and offers at the price, and lots that want them."""
    tick, between = price // 2, price % 2
    left_bid = volume - demand[tick + 1 :].sum()
    left_ask = volume - supply[: tick + between].sum()
    if between:
        return left_bid, left_ask, 0, 0
    return left_bid, left_ask, demand[tick], supply[tick]
