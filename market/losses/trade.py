r"""What orders gain at a price: l(a, y) = offset_a - sum_g max(0, quantity_ag (limit_ag - y_g)).

y_g is the price of good g. A quantity above 0 is bought wherever the price is below the limit, one
below 0 sold wherever it is above. With the limit at what a unit is worth to the agent this is minus
its gain from trade (the consumer's or producer's surplus, Marshall 1890).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.losses.base import UNIT_AXES, Loss, Range


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

    def _at(self, y: Array) -> Array:
        losses = np.array(self.offset)
        for g in range(self.outcomes):  # a sum over a short last axis takes three times as long
            gain = self.quantity[..., g] * (self.limit[..., g] - y[..., None, g])
            losses = losses - np.maximum(gain, 0.0, out=gain)
        return losses

    def _between(self, low: Array, high: Array) -> Range:
        gain_at_low = self.quantity * (self.limit - low[..., None, :])
        gain_at_high = self.quantity * (self.limit - high[..., None, :])
        greatest_gain = np.maximum(np.maximum(gain_at_low, gain_at_high), 0.0).sum(-1)
        least_gain = np.maximum(np.minimum(gain_at_low, gain_at_high), 0.0).sum(-1)
        return self.offset - greatest_gain, self.offset - least_gain
