r"""What orders gain at a price: l(a, y) = offset_a - sum_g max(0, quantity_ag (limit_ag - y_g)).

y_g is the price of good g. A quantity above 0 is bought wherever the price is below the limit, one
below 0 sold wherever it is above. With the limit at what a unit is worth to the agent this is minus
its gain from trade (the consumer's or producer's surplus, Marshall 1890).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled
from regretless.market.losses.base import UNIT_AXES, Loss, Range


@compiled(nogil=True)
def _write_losses(
    quantity: Array, limit: Array, offset: Array, prices: Array, losses: Array
) -> None:
    """Write offset - sum_g max(0, quantity_g (limit_g - price_g)) (compiled).

    Parameters
    ----------
    quantity, limit : array (K, A, d)
    offset : array (K, A)
    prices : array (T, d)
    losses : array (T, K, A)
        Written.
    """
    for t in range(losses.shape[0]):
        for k in range(losses.shape[1]):
            for a in range(losses.shape[2]):
                losses[t, k, a] = offset[k, a]
            for g in range(quantity.shape[2]):
                for a in range(losses.shape[2]):
                    gain = quantity[k, a, g] * (limit[k, a, g] - prices[t, g])
                    losses[t, k, a] -= max(gain, 0.0)


@dataclass(frozen=True, eq=False)
class Trade(Loss):
    """Loss ``offset - sum_g max(0, quantity_g * (limit_g - y_g))``.

    Parameters
    ----------
    quantity : array (..., A, d)
        Units of each good, below 0 for a sale.
    limit : array (..., A, d) or float
        The price from which on an order does not trade.

    Examples
    --------
    >>> Trade([[1.0], [-1.0]], 0.6).losses([0.5])  # buys for less than 0.6, sells for more
    array([-0.1,  0. ])
    """

    form: ClassVar[str] = "trade"
    AXES: ClassVar[Mapping[str, str]] = {"quantity": "ad", "limit": "ad", **UNIT_AXES}
    PROPORTIONAL: ClassVar[tuple[str, ...]] = ("quantity",)
    actions_are_separate: ClassVar[bool] = True

    quantity: Array
    limit: Array

    def lipschitz(self) -> Array:
        return np.asarray(np.abs(self.quantity).sum(-1).max(-1))

    @cached_property
    def _orders_and_offset(self) -> tuple[Array, Array, Array]:
        """Quantity and limit (K, A, d), and offset (K, A), also of a single loss."""
        actions_and_goods = self.quantity.shape[-2:]
        quantity = self.quantity.reshape(-1, *actions_and_goods)
        limit = self.limit.reshape(-1, *actions_and_goods)
        return quantity, limit, self.offset.reshape(-1, self.actions)

    def _at(self, y: Array) -> Array:
        quantity, limit, offset = self._orders_and_offset
        prices = y.reshape(-1, self.outcomes)
        losses = np.empty((len(prices), *offset.shape))
        _write_losses(quantity, limit, offset, prices, losses)
        rounds_shape = y.shape[: y.ndim - 1 - len(self.stack)]
        return losses.reshape(*rounds_shape, *self.offset.shape)

    def _between(self, low: Array, high: Array) -> Range:
        gain_at_low = self.quantity * (self.limit - low[..., None, :])
        gain_at_high = self.quantity * (self.limit - high[..., None, :])
        greatest_gain = np.maximum(np.maximum(gain_at_low, gain_at_high), 0.0).sum(-1)
        least_gain = np.maximum(np.minimum(gain_at_low, gain_at_high), 0.0).sum(-1)
        return self.offset - greatest_gain, self.offset - least_gain
