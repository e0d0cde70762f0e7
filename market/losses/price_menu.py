r"""What sellers earn who choose a price from a menu.

What a seller earns depends on what the others charge: a market says it (``Market.losses``,
``market.markets.price_competition``). As a function of the outcome y, the mean place of all prices
on their menus, this form says what a seller believes who knows nothing of demand: that it sells
half a unit where it charges what the others charge, and the less the dearer it is,

    l(a, y) = - (p_a - c) (1 + y - z_a) / 2,      z_a = place of p_a on the menu, from 0 to 1.

In the code p is ``price``, c is ``cost`` and z is linear in the action.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.losses.base import default
from regretless.market.losses.separable import Linear

SELLER_AXES = {"price": "a", "cost": "", "quality": ""}  # of the fields that a linear loss has not


@dataclass(frozen=True, eq=False, init=False)
class PriceMenu(Linear):
    """A linear loss that knows the price behind each action, and the seller's cost and quality.

    Parameters
    ----------
    weights, offset : as in ``Linear``
    price : array (..., A)
        What each action charges.
    cost : array (...)
        What a unit costs the seller.
    quality : array (...)
        How much buyers like what it sells, in the units of prices.
    """

    AXES: ClassVar[Mapping[str, str]] = {**Linear.AXES, **SELLER_AXES}

    price: Array = default(0.0)
    cost: Array = default(0.0)
    quality: Array = default(0.0)

    def __init__(self, weights: ArrayLike, offset: ArrayLike = 0.0, **fields: Any) -> None:
        for name in SELLER_AXES:
            object.__setattr__(self, name, np.asarray(fields.pop(name), dtype=np.float64))
        super().__init__(weights, offset, **fields)


def price_menu_losses(*, price: Array, cost: Array, quality: Array) -> PriceMenu:
    """Return the losses of N sellers in [0, 1], of whom each sells from 0 to 1 unit.

    Parameters
    ----------
    price : array (N, A)
        What each action charges, evenly spaced and ascending.
    cost, quality : array (N,)
        As in ``PriceMenu``.
    """
    margin = price - cost[:, None]  # (N, A)
    place = np.linspace(0.0, 1.0, price.shape[1])
    # In the units of prices: loss = offset + weights * y.
    offset = -margin * (1.0 - place) / 2
    weights = -margin / 2
    greatest_gain = np.maximum(margin.max(1), 0.0)
    least_gain = np.minimum(margin.min(1), 0.0)
    scale = np.maximum(greatest_gain - least_gain, np.finfo(float).tiny)
    return PriceMenu(
        (weights / scale[:, None])[:, :, None],
        (offset + greatest_gain[:, None]) / scale[:, None],
        unit_scale=scale,
        unit_offset=-greatest_gain,
        price=price,
        cost=cost,
        quality=quality,
    )
