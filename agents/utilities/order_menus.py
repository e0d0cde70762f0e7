"""Agents who choose among orders: bidders in a sealed-bid auction, traders at an order book.

    bidder   action a bids a share of its value, evenly spaced from ``low`` to ``high``
    orders   action a sends a row of a menu, or an order at one of evenly spaced limits

What the orders earn is up to the market (``market.markets.sealed_bids``, ``.order_book``).
"""

import numpy as np
from numpy.typing import ArrayLike

from regretless.agents.parameters import require
from regretless.agents.utilities.populations import Population
from regretless.market import register
from regretless.market.losses.orders import Orders, order_losses


@register.utility("bidder")
def bidder_population(
    population: Population, *, value: ArrayLike = 1.0, low: float = 0.0, high: float = 1.0
) -> Orders:
    """Bidders for one unit.

    Parameters
    ----------
    value : float or array (N,)
        What the unit is worth to each, in [0, 1]; the most, where the auction redraws values.
    low, high : float
        Shares of the value that the first and the last action bid.
    """
    worth = population.each("value", value)
    require("value", worth, (worth >= 0) & (worth <= 1), "give a number in [0, 1]")
    if population.goods != 1 or not 0 <= low < high:
        raise ValueError("a bidder bids for one good: give one outcome, and 0 <= low < high")
    bids = worth[:, None, None] * np.linspace(low, high, population.actions)[None, :, None]
    require("high", bids, bids <= 1, "bids are shares of the value and at most 1")
    return order_losses(
        np.ones_like(bids),
        bids,
        asset=np.zeros_like(bids),
        keeps=np.zeros(population.actions),
        worth=worth[:, None],
        common=np.zeros(population.count),
        width=1.0,
        reach=np.ones(population.count),
    )
