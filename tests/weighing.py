"""The weights of a rule alone, as events have them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from regretless.forecaster.events.weights import Moment, WeightRule

Array = NDArray[np.float64]


def weighed(rule: WeightRule, bias: Array, variation: Array, moment: Moment) -> Array:
    """Return the signed weights of experts of both signs (rows, n), which add up to 1 or 0."""
    found = rule.weigh(bias, variation, moment, both=True)
    return found.weights / (found.total or 1.0)
