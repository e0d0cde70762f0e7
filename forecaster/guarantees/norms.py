"""Ranges of losses in coefficients, through which bounds on biases become bounds on regret.

``coefficients`` (K, A, n) are those of K losses with A actions in a basis of n functions.
"""

import math

import numpy as np

from regretless.market.core.arrays import Array


def gain_range(coefficients: Array, within: float | None) -> Array:
    """Compute the range (K,) of <r(c) - r(a), p - s>: D, and at most ``within`` if it is given."""
    widest = spread(coefficients)
    if within is not None:
        widest = np.minimum(widest, within)
    return np.where(widest > 0, widest, 1.0)


def spread(coefficients: Array, *, order: int = 1) -> Array:
    """Compute D (K,): the greatest norm of the gap between two actions' coefficients."""
    n_losses, n_actions, _ = coefficients.shape
    greatest = np.zeros(n_losses)
    for action in range(n_actions - 1):  # with every later action: a gap is the same both ways
        differences = coefficients[:, action + 1 :] - coefficients[:, [action]]
        gaps = np.linalg.norm(differences, ord=order, axis=2)
        np.maximum(greatest, gaps.max(1), out=greatest)
    return greatest


def centred_norm(coefficients: Array, *, order: int = 1) -> Array:
    """Compute lambda (K,): the greatest norm after subtracting the coordinates' midrange."""
    centre = (coefficients.max(1, keepdims=True) + coefficients.min(1, keepdims=True)) / 2
    return np.asarray(np.linalg.norm(coefficients - centre, ord=order, axis=2).max(1))


def recommended_eta(actions: int, *, error: float, rounds: int) -> float:
    """Return the smoothness that balances a quantal agent's two costs.

    It loses ln(A) / eta against a best response, and eta delta where it does not see the basis
    (error delta): the sum is least at sqrt(ln(A) / delta). At ln(A) sqrt(T) the gap is 1 / sqrt(T),
    the order of everything else. (The paper has |A| (e^(2 eta delta) - 1) in place of eta delta.)
    """
    entropy = math.log(actions)
    steepest = entropy * math.sqrt(rounds)
    if error <= 0:
        return steepest
    return min(steepest, math.sqrt(entropy / error))
