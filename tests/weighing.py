"""The weights of a rule alone, as events have them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from regretless.forecaster.events.weights import Moment, Sums, WeightRule, Weights

Array = NDArray[np.float64]


def weighed(rule: WeightRule, bias: Array, variation: Array, moment: Moment) -> Array:
    """Return the signed weights of experts of both signs (rows, n), which add up to 1 or 0."""
    rows, size = bias.shape
    weights = Weights((rows, size), rule.top(bias, variation, moment, both=True))
    rule.two_sided(Sums(slice(0, rows), bias, variation), moment, weights, 1.0)
    return weights.normalised()
