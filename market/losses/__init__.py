"""Functional forms of a loss l(a, y): what an agent suffers for action a at outcome y.

Every form gives the losses of all actions at one outcome or at many, its exact range over the cube
or over any box, and the affine map onto [0, 1].
"""

from regretless.market.losses.base import Loss, unique_losses
from regretless.market.losses.convex import Convex1D
from regretless.market.losses.lipschitz import AveragedLoss, LipschitzLoss, averaged
from regretless.market.losses.minimum import MinimumOfRatios
from regretless.market.losses.of_sum import ExponentialOfSum, PowerOfSum
from regretless.market.losses.orders import Orders
from regretless.market.losses.outcome_spaces import Box, Polytope
from regretless.market.losses.price_menu import PriceMenu
from regretless.market.losses.separable import Linear, SeparablePower
from regretless.market.losses.trade import Trade

__all__ = [
    "AveragedLoss",
    "Box",
    "Convex1D",
    "ExponentialOfSum",
    "Linear",
    "LipschitzLoss",
    "Loss",
    "MinimumOfRatios",
    "Orders",
    "Polytope",
    "PowerOfSum",
    "PriceMenu",
    "SeparablePower",
    "Trade",
    "averaged",
    "unique_losses",
]
