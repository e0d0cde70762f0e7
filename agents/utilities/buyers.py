r"""Buyers in a market with a seller: the outcome lists an offer per arm, allocation and price.

A buyer of value v who plays arm a gets the good with probability (or in quantity) x_a and pays
p_a, so that its utility is v x_a - p_a and its loss (1 + p_a - v x_a) / 2, in [0, 1]. The sellers
and their arms are those of ``agents.adversaries.sellers`` (Braverman, Mao, Schneider and Weinberg
2018), arm 0 being nothing for free.
"""

import numpy as np
from numpy.typing import ArrayLike

from regretless.agents.adversaries.sellers import buyer_losses
from regretless.agents.parameters import require
from regretless.agents.utilities.populations import Population
from regretless.market import register
from regretless.market.losses import Linear


@register.utility("buyer")
def buyer_population(population: Population, *, value: ArrayLike) -> Linear:
    """Buyers of one good; the actions are the seller's arms.

    Parameters
    ----------
    value : float or array (N,)
        What the good is worth to each, in [0, 1].

    Raises
    ------
    ValueError
        If a value is outside [0, 1], or the outcomes are not two per action.
    """
    if population.goods != 2 * population.actions:
        raise ValueError(
            f"{population.actions} arms and {population.goods} outcomes; an offer is an "
            f"allocation and a price: give outcomes = {2 * population.actions}"
        )
    worth = population.each("value", value)
    require("value", worth, (worth >= 0) & (worth <= 1), "give a number in [0, 1]")
    weights, offset = buyer_losses(worth, population.actions)
    units = np.ones(population.count)
    return Linear(
        weights,
        np.broadcast_to(offset, weights.shape[:2]),
        unit_scale=2.0 * units,
        unit_offset=-units,
    )
