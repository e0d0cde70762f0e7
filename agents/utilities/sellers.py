"""Sellers who choose a price from a menu, for the market ``price-competition``.

The assembly of a scenario calls the registered function with a ``Population`` and the parameters of
the scenario file. What a price earns is up to the market (``market.markets.price_competition``).

Shapes: N agents, A actions.
"""

import numpy as np
from numpy.typing import ArrayLike

from regretless.agents.parameters import require
from regretless.agents.utilities.populations import Population
from regretless.agents.utilities.units import seller_units
from regretless.market import register
from regretless.market.losses.price_menu import PriceMenu, price_menu_losses


@register.utility("seller", units=seller_units)
def seller_population(
    population: Population,
    *,
    lowest: ArrayLike,
    highest: ArrayLike,
    cost: ArrayLike = 0.0,
    quality: ArrayLike = 0.0,
) -> PriceMenu:
    """Sellers whose actions are prices, evenly spaced from ``lowest`` to ``highest``.

    A unit costs them ``cost``; ``quality`` is how much buyers like it, in the units of prices.
    """
    if population.goods != 1:
        raise ValueError("sellers compete in one market: give one outcome, the mean price")
    lowest_price = population.each("lowest", lowest)
    highest_price = population.each("highest", highest)
    require("highest", highest_price, highest_price > lowest_price, "must be above lowest")
    place = np.linspace(0.0, 1.0, population.actions)
    width = highest_price - lowest_price
    return price_menu_losses(
        price=lowest_price[:, None] + width[:, None] * place,
        cost=population.each("cost", cost),
        quality=population.each("quality", quality),
    )
