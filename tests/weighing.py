"""The weights of a rule alone, as events have them."""

from regretless.forecaster.events.weights import Moment, WeightRule
from regretless.market.core.arrays import Array


def weighed(rule: WeightRule, bias: Array, variation: Array, moment: Moment) -> Array:
    """Return the signed weights of experts of both signs (rows, n), which add up to 1 or 0."""
    found = rule.weigh(bias, variation, moment, both=True)
    weights, total = found.weights(found.top, 1.0)
    return weights / total if total else weights
