"""Adaptive weights by their definition; errors of the calibrated recipe."""

import numpy as np

from regretless.forecaster.calibrated import CalibratedMultiaccurate
from regretless.market.core.arrays import Array


def adaptive(gain: Array, variation: Array, zone: float) -> Array:
    """Compute the adaptive weights of gains beyond a zone of z sqrt(variation), unnormalised."""
    regret, scale = gain - zone * np.sqrt(variation), 3 * (variation + 1)
    up, down = np.maximum(regret + 1, 0) ** 2, np.maximum(regret - 1, 0) ** 2
    return np.asarray((np.exp(up / scale) - np.exp(down / scale)) / 2)


def calibration_error(recipe: CalibratedMultiaccurate) -> float:
    """Return K so far: the cells' biases in sup norm, added up, per round."""
    biases = [bias for loss, *_, bias in recipe.event_table() if loss == 0]
    return float(np.abs(biases).max(1).sum() / recipe.time)


def multiaccuracy_error(recipe: CalibratedMultiaccurate) -> float:
    """Return the greatest M_c so far."""
    errors: dict[tuple[int, int], float] = {}
    for loss, _, policy, _, _, bias in recipe.event_table():
        if policy is not None:
            known = errors.get((loss, policy), 0.0)
            errors[loss, policy] = known + float(np.abs(bias).max())
    return max(errors.values()) / recipe.time


def calibration_bound(recipe: CalibratedMultiaccurate) -> float:
    """Bound K a priori."""
    bounds = [own.bias_bound() for own in recipe.inner.instances]
    cells = len(recipe.grid)  # biases are concave in occupancy: equal is worst
    return sum(cells * float(own.bias(own.inputs.rounds / cells)) for own in bounds) / recipe.time
