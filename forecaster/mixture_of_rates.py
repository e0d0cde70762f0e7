r"""A mixture of exponentials over ten rates, the potential of gains with their squares.

For a gain R = sum_t g_t, |g_t| <= 1, and V = sum_t g_t^2, or more, it is

    M(R, V) = sum_j exp(eta_j R - psi_j V) / J,    psi_j = -ln(1 - eta_j) - eta_j,

with J = 10 rates, from 3/4 down by halves. As exp(eta g - psi g^2) <= 1 + eta g for g >= -1 (Fan,
Grama and Liu 2015, doi:10.1214/EJP.v20-3496), M is a supermartingale wherever no g_t is expected
to be above 0, however skewed it is. M grows with R, falls with V, and the set where it is below a
level is convex, as ln M is convex in (R, V): the greatest R that a level allows is concave in V.

The switch test uses it against a reference (``switch_test``), and the second-order weights as
their potential (``weights``).
"""

import math

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled

RATES = np.array([0.75 * 0.5**j for j in range(10)])  # eta; enough for V up to ten million
COSTS = -np.log1p(-RATES) - RATES  # psi
NEWTON_STEPS = 4


def log_mixture(gain: Array, squares: Array) -> Array:
    """Return ln M of gains R and sums of squares V, arrays of one shape."""
    exponents = RATES * gain[..., None] - COSTS * squares[..., None]
    return np.asarray(np.logaddexp.reduce(exponents, axis=-1) - math.log(len(RATES)))


def greatest_of(v: Array | float, exponent: Array | float, *, rates: Array, costs: Array) -> Array:
    """Return the greatest x with sum_j exp(eta_j x - c_j v) / J <= exp(exponent) at each v."""
    each_v = np.asarray(v, dtype=np.float64)
    each_exponent = np.asarray(exponent, dtype=np.float64)
    if each_exponent.ndim == 0:
        each_exponent = np.full(each_v.shape, each_exponent)
    elif each_v.shape != each_exponent.shape:
        shape = np.broadcast_shapes(each_v.shape, each_exponent.shape)
        each_v = np.array(np.broadcast_to(each_v, shape))
        each_exponent = np.array(np.broadcast_to(each_exponent, shape))
    greatest = np.empty(each_v.shape)
    _write_greatest(each_v.ravel(), each_exponent.ravel(), rates, costs, greatest.reshape(-1))
    return greatest


@compiled(error_model="numpy")
def _write_greatest(v: Array, exponent: Array, rates: Array, costs: Array, greatest: Array) -> None:
    """Write the greatest x with ln sum_j exp(eta_j x - c_j v - ln J) <= exponent (compiled).

    By Newton's steps on a convex function from the right: every step is an upper bound,

        x <- x - (ln sum_j e_j - exponent) (sum_j e_j) / (sum_j eta_j e_j),   e_j = the terms,

    with the greatest exponent of all terms taken out, so that no exponential overflows.

    Parameters
    ----------
    v, exponent : array (m,)
        v of every x that is sought, and the logarithm of what the mean of its terms may be.
    rates, costs : array (J,)
        eta, above 0, and c.
    greatest : array (m,)
        x; written.
    """
    log_count = np.log(len(rates))
    for i in range(v.shape[0]):
        # often all are the same, such as 0 where nobody has drawn
        if i > 0 and v[i] == v[i - 1] and exponent[i] == exponent[i - 1]:
            greatest[i] = greatest[i - 1]
            continue
        # start where no single term exceeds the limit yet, to the right of the x that is sought
        x = np.inf
        for j in range(rates.shape[0]):
            x = min(x, (exponent[i] + (costs[j] * v[i] + log_count)) / rates[j])
        for _ in range(NEWTON_STEPS):
            largest = -np.inf
            for j in range(rates.shape[0]):
                largest = max(largest, rates[j] * x - (costs[j] * v[i] + log_count))
            total = 0.0
            slope = 0.0
            for j in range(rates.shape[0]):
                term = np.exp(rates[j] * x - (costs[j] * v[i] + log_count) - largest)
                total += term
                slope += term * rates[j]
            x -= (largest + np.log(total) - exponent[i]) * total / slope
        greatest[i] = x


def greatest_gain(squares: Array | float, exponent: float) -> Array:
    """Return the greatest R with ln M(R, V) <= ``exponent`` at each V: the inverse of M in R."""
    return greatest_of(squares, exponent, rates=RATES, costs=COSTS)
