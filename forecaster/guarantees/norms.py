"""Ranges of losses in coefficients, through which bounds on biases become bounds on regret.

``coefficients`` (K, A, n) are those of K losses with A actions in a basis of n functions.
"""

import math

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled
from regretless.market.numerics.pairwise_sum import pairwise_sum


def gain_range(coefficients: Array, within: float | None) -> Array:
    """Compute the range (K,) of <r(c) - r(a), p - s>: D, and at most ``within`` if it is given."""
    widest = spread(coefficients)
    if within is not None:
        widest = np.minimum(widest, within)
    return np.where(widest > 0, widest, 1.0)


def spread(coefficients: Array, *, order: int = 1) -> Array:
    """Compute D (K,): the greatest norm of the gap between two actions' coefficients.

    ``order`` is 1 or 2, of the norm.
    """
    greatest = np.zeros(len(coefficients))
    _write_spread(np.ascontiguousarray(coefficients, dtype=np.float64), order == 2, greatest)
    return greatest


@compiled()
def _write_spread(coefficients: Array, euclidean: bool, greatest: Array) -> None:  # noqa: FBT001
    """Write max_{a, c} ||r(c) - r(a)|| of every loss (compiled).

    Parameters
    ----------
    coefficients : array (K, A, n)
        r.
    euclidean : bool
        Whether the norm is the square root of the sum of squares, and not the sum of sizes.
    greatest : array (K,)
        Zeros; written.
    """
    sizes = np.empty(coefficients.shape[2])  # of a gap's coordinates, or their squares
    for k in range(coefficients.shape[0]):
        for a in range(coefficients.shape[1]):
            for c in range(a + 1, coefficients.shape[1]):  # a gap is the same both ways
                for i in range(coefficients.shape[2]):
                    gap = coefficients[k, c, i] - coefficients[k, a, i]
                    sizes[i] = gap * gap if euclidean else abs(gap)
                norm = pairwise_sum(sizes)
                if euclidean:
                    norm = math.sqrt(norm)
                greatest[k] = max(greatest[k], norm)


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
