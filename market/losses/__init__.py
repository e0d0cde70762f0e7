"""Functional forms of a loss l(a, y): what an agent suffers for action a at outcome y.

    linear               offset + sum_j w_j y_j
    separable power      offset + sum_j w_j |y_j - c_j|^rho
    power of a sum       offset + A (c + sum_j w_j g(y_j))^beta
    exponential of a sum offset + A exp(sum_j w_j g(y_j))
    minimum of ratios    offset + A min_j y_j / a_j
    convex in one y_j    offset + slope y_j + sum_k kink_k max(y_j - knot_k, 0)
    trade                offset - sum_j max(0, q_j (limit_j - y_j))
    orders               linear in y, and knows the orders behind each action
    Lipschitz            any function with its constant
    averaged             any of them, averaged over noise around the outcome

with g a power or the logarithm. Every form gives the losses of all actions at one outcome or at
many, its exact range over the cube or over any box, and the affine map onto [0, 1].
"""

from regretless.market.losses.base import Loss, unique_losses
from regretless.market.losses.lipschitz import AveragedLoss, LipschitzLoss, averaged
from regretless.market.losses.of_sum import ExponentialOfSum, PowerOfSum
from regretless.market.losses.orders import Orders
from regretless.market.losses.outcome_spaces import Box, Polytope
from regretless.market.losses.piecewise import Convex1D, MinimumOfRatios, Trade
from regretless.market.losses.separable import Linear, SeparablePower

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
    "SeparablePower",
    "Trade",
    "averaged",
    "unique_losses",
]
