"""Adaptive weights and the errors of the calibrated recipe, computed from their definitions."""

import numpy as np

from regretless.forecaster.calibrated import CalibratedMultiaccurate
from regretless.market.core.arrays import Array


def adaptive_weights(gain: Array, variation: Array, zone: float) -> Array:
    """Return the adaptive weights of gains beyond a zone of z sqrt(variation), not normalised."""
    excess = gain - zone * np.sqrt(variation)
    scale = 3 * (variation + 1)
    up = np.maximum(excess + 1, 0) ** 2
    down = np.maximum(excess - 1, 0) ** 2
    return np.asarray((np.exp(up / scale) - np.exp(down / scale)) / 2)


def calibration_error(recipe: CalibratedMultiaccurate) -> float:
    """Return K so far: the cells' biases in sup norm, added up, per round."""
    biases = [bias for loss, *_, bias in recipe.event_table() if loss == 0]
    return float(np.abs(biases).max(1).sum() / recipe.time)


def multiaccuracy_error(recipe: CalibratedMultiaccurate) -> float:
    """Return the greatest M_c so far: over losses and policies, biases in sup norm, per round."""
    error_sums: dict[tuple[int, int], float] = {}
    for loss, _, policy, _, _, bias in recipe.event_table():
        if policy is None:
            continue
        sum_so_far = error_sums.get((loss, policy), 0.0)
        error_sums[loss, policy] = sum_so_far + float(np.abs(bias).max())
    return max(error_sums.values()) / recipe.time


def calibration_bound(recipe: CalibratedMultiaccurate) -> float:
    """Return what K is at most, before the first round.

    Biases are concave in how often a cell is used, so that equal use of all cells is the worst.
    """
    n_cells = len(recipe.grid)
    total = 0.0
    for instance in recipe.inner.instances:
        bound = instance.bias_bound()
        total += n_cells * float(bound.bias(bound.inputs.rounds / n_cells))
    return total / recipe.time
