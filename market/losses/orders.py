r"""What orders come to, for agents who choose among lists of them.

An action is up to m orders, each for ``units`` (below 0 for a sale) of an ``asset`` at a ``limit``.
What they earn is no function of prices alone, since others compete for the same units: a market
says it (``Market.losses``). As a function of the outcome y this form says what a follower of the
forecast believes: an order for q units at limit p of something worth W + C f fills with a chance
that is linear in its limit,

    l(a, y) = - sum over orders of  q (W + C f - p) (1/2 + sign(q) (p - m) / width),

where, without a common value (C = 0), y is the price and m = y; with one, y is the fundamental
f and m = 1/2. Both are linear in y. In the code W is ``private_value``, C ``common_weight`` and
width ``fill_width``.
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
    "keeps_open_orders": "a",
    "rests_on_book": "a",
    "private_value": "ad",
    "common_weight": "",
    "max_units": "",
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
    keeps_open_orders : array (..., A)
        1 where an action leaves what its agent has on the book, 0 where it cancels it first.
    rests_on_book : array (..., A)
        1 where what is not traded at once stays on the book, 0 where it is dropped.
    private_value : array (..., A, d)
        What a unit of each good is worth to the agent, W; the same for all actions.
    common_weight : array (...)
        How much of the fundamental adds to a unit's value, C.
    max_units : array (...)
        Units that may be traded or open in a round.
    """

    AXES: ClassVar[Mapping[str, str]] = {**Linear.AXES, **ORDER_AXES}

    units: Array = default(0.0)
    limit: Array = default(0.0)
    asset: Array = default(0.0)
    keeps_open_orders: Array = default(0.0)
    rests_on_book: Array = default(0.0)
    private_value: Array = default(0.0)
    common_weight: Array = default(0.0)
    max_units: Array = default(0.0)

    def __init__(self, weights: ArrayLike, offset: ArrayLike = 0.0, **fields: Any) -> None:
        for name in ORDER_AXES:
            object.__setattr__(self, name, np.asarray(fields.pop(name), dtype=np.float64))
        super().__init__(weights, offset, **fields)

    @property
    def worth(self) -> Array:
        """The ``private_value``, by the name that agents of a user's own read."""
        return self.private_value


def order_losses(
    *,
    units: Array,
    limit: Array,
    asset: Array,
    keeps_open_orders: Array,
    rests_on_book: Array,
    private_value: Array,
    common_weight: Array,
    max_units: Array,
    fill_width: float,
    max_gain: Array,
) -> Orders:
    """Return the losses of N agents in [0, 1], 1/2 being to earn nothing.

    Parameters
    ----------
    units, limit, asset : array (N, A, m)
        Of the m orders of each action; 0 units for none.
    keeps_open_orders, rests_on_book : array (A,)
        As in ``Orders``, alike for all agents.
    private_value : array (N, d)
        What a unit of each good is worth to each agent, W.
    common_weight, max_units : array (N,)
        As in ``Orders``.
    fill_width : float
        By how much a limit has to move for the chance of a trade to move by 1.
    max_gain : array (N,)
        The most that each agent can gain or lose in a round, in units of its utility.
    """
    n_agents, n_actions, _ = units.shape
    is_good = np.eye(private_value.shape[1])[asset.astype(np.intp)]  # (N, A, m, d)
    private_gain_per_unit = (is_good * private_value[:, None, None]).sum(-1) - limit
    has_common_value = common_weight[:, None, None] > 0
    expected_gain, slope = _linear_in_price(units, limit, private_gain_per_unit, fill_width)
    gain_with_common_value, slope_with_common_value = _linear_in_fundamental(
        units, limit, private_gain_per_unit, common_weight, fill_width
    )
    expected_gain = np.where(has_common_value, gain_with_common_value, expected_gain)
    slope = np.where(has_common_value, slope_with_common_value, slope)

    # Loss = offset + weights @ y, at first in the units of the agents' utilities.
    weights = (slope[..., None] * is_good).sum(2)  # (N, A, d)
    offset = -expected_gain.sum(2)  # (N, A)
    least_loss = offset + np.minimum(weights, 0).sum(2)
    greatest_loss = offset + np.maximum(weights, 0).sum(2)
    largest_loss = np.maximum(np.abs(least_loss).max(1), np.abs(greatest_loss).max(1))
    scale = np.maximum(np.maximum(max_gain, largest_loss), np.finfo(float).tiny)
    # A loss in [-scale, scale] becomes 1/2 + loss / (2 scale) in [0, 1].
    return Orders(
        weights / (2 * scale)[:, None, None],
        0.5 + offset / (2 * scale)[:, None],
        unit_scale=2 * scale,
        unit_offset=-scale,
        units=units,
        limit=limit,
        asset=asset,
        keeps_open_orders=np.broadcast_to(keeps_open_orders, (n_agents, n_actions)),
        rests_on_book=np.broadcast_to(rests_on_book, (n_agents, n_actions)),
        private_value=np.repeat(private_value[:, None], n_actions, axis=1),
        common_weight=common_weight,
        max_units=max_units,
    )


def _linear_in_price(
    units: Array, limit: Array, private_gain_per_unit: Array, fill_width: float
) -> tuple[Array, Array]:
    """Return orders' expected gains at y = 0 and their losses' slopes in y, the price (N, A, m).

    A unit is worth W whatever happens; the farther its limit is from the price, on the side that
    trades, the likelier an order fills.
    """
    chance_per_price = np.sign(units) / fill_width
    chance_at_zero = 0.5 + chance_per_price * limit
    expected_gain = units * private_gain_per_unit * chance_at_zero
    slope = units * private_gain_per_unit * chance_per_price
    return expected_gain, slope


def _linear_in_fundamental(
    units: Array,
    limit: Array,
    private_gain_per_unit: Array,
    common_weight: Array,
    fill_width: float,
) -> tuple[Array, Array]:
    """Return orders' expected gains at y = 0 and losses' slopes in y, the fundamental (N, A, m).

    A unit is worth W + C y; the chance that an order fills depends on its limit's distance from
    1/2 and not on y.
    """
    chance_per_price = np.sign(units) / fill_width
    chance = 0.5 + chance_per_price * (limit - 0.5)
    expected_gain = units * private_gain_per_unit * chance
    slope = -units * common_weight[:, None, None] * chance
    return expected_gain, slope
