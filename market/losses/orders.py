r"""What orders come to, for agents who choose among lists of them.

An action is up to m orders, each for ``units`` (below 0 for a sale) of an ``asset`` at a ``limit``.
What they earn is no function of prices alone, since others compete for the same units: a market
says it (``Market.losses``). As a function of the outcome y this form says what a follower of the
forecast believes: an order for q units at limit p of something worth W + C f fills with a chance
that is linear in its limit,

    l(a, y) = - sum over orders of  q (W + C f - p) (1/2 + sign(q) (p - m) / width),

where, without a common value (C = 0), y is the price and m = y; with one, y is the fundamental
f and m = 1/2. Both are linear in y.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.losses.base import default
from regretless.market.losses.separable import Linear

ORDER_AXES = {  # of the fields that a linear loss has not
    "units": "am",
    "limit": "am",
    "asset": "am",
    "keeps": "a",
    "rests": "a",
    "worth": "ad",
    "common": "",
    "most": "",
}
MAX_FEE = 1 / 8  # that a market may charge, or pay, for a unit


@dataclass(frozen=True, eq=False, init=False)
class Orders(Linear):
    """A linear loss that knows the orders behind each action.

    Parameters
    ----------
    weights, offset : as in ``Linear``
    units, limit, asset : array (..., A, m)
        Of the orders of each action; 0 units for none.
    keeps, rests : array (..., A)
        1 where an action leaves what its agent has on the book, 0 where it cancels it first; 1
        where what is not traded at once stays on the book, 0 where it is dropped.
    worth : array (..., A, d)
        What a unit of each good is worth to the agent, W; the same for all actions.
    common, most : array (...)
        C, how much of the fundamental adds to it; units that may be traded or open in a round.
    """

    AXES: ClassVar[Mapping[str, str]] = {**Linear.AXES, **ORDER_AXES}

    units: Array = default(0.0)
    limit: Array = default(0.0)
    asset: Array = default(0.0)
    keeps: Array = default(0.0)
    rests: Array = default(0.0)
    worth: Array = default(0.0)
    common: Array = default(0.0)
    most: Array = default(0.0)

    def __init__(self, weights: ArrayLike, offset: ArrayLike = 0.0, **fields: Any) -> None:
        for name in ORDER_AXES:
            object.__setattr__(self, name, np.asarray(fields.pop(name), dtype=np.float64))
        super().__init__(weights, offset, **fields)


def order_losses(
    units: Array, limit: Array, *, width: float, reach: Array, worth: Array, **fields: Array
) -> Orders:
    """Return the losses of N agents in [0, 1], 1/2 being to earn nothing.

    ``units`` and ``limit`` are (N, A, m), ``worth`` (N, d), the other fields as in ``Orders``, with
    ``keeps`` and ``rests`` (A,) of all. The chance moves by 1 as a limit moves by ``width``;
    ``reach`` (N,) is the most that an agent can gain or lose in a round, in units of its utility.
    """
    common_value = fields["common"][:, None, None]
    has_common_value = common_value > 0
    good_of_order = fields["asset"].astype(np.intp)
    is_good = np.eye(worth.shape[1])[good_of_order]  # (N, A, m, d)
    profit_per_unit = (is_good * worth[:, None, None]).sum(-1) - limit
    chance_per_price = np.sign(units) / width
    chance = 0.5 + chance_per_price * (limit - np.where(has_common_value, 0.5, 0.0))

    slope_in_fundamental = -units * common_value * chance
    slope_in_price = units * profit_per_unit * chance_per_price
    slope = np.where(has_common_value, slope_in_fundamental, slope_in_price)
    weights = (slope[..., None] * is_good).sum(2)  # (N, A, d), in the utility's own units
    offset = -(units * profit_per_unit * chance).sum(2)

    least_loss = offset + np.minimum(weights, 0).sum(2)
    greatest_loss = offset + np.maximum(weights, 0).sum(2)
    largest_loss = np.maximum(np.abs(least_loss).max(1), np.abs(greatest_loss).max(1))
    scale = np.maximum(np.maximum(reach, largest_loss), np.finfo(float).tiny)
    fields["keeps"] = np.broadcast_to(fields["keeps"], offset.shape)
    fields["rests"] = np.broadcast_to(fields["rests"], offset.shape)
    return Orders(
        weights / (2 * scale)[:, None, None],
        0.5 + offset / (2 * scale)[:, None],
        unit_scale=2 * scale,
        unit_offset=-scale,
        units=units,
        limit=limit,
        worth=np.repeat(worth[:, None], offset.shape[1], axis=1),
        **fields,
    )
