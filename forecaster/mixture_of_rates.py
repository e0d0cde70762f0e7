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

RATES = np.array([0.75 * 0.5**j for j in range(10)])  # eta; enough for V up to ten million
COSTS = -np.log1p(-RATES) - RATES  # psi
NEWTON_STEPS = 4


def log_mixture(gain: Array, squares: Array) -> Array:
    """Return ln M of gains R and sums of squares V, arrays of one shape."""
    exponents = RATES * gain[..., None] - COSTS * squares[..., None]
    return np.asarray(np.logaddexp.reduce(exponents, axis=-1) - math.log(len(RATES)))


def greatest_of(v: Array | float, exponent: Array | float, *, rates: Array, costs: Array) -> Array:
    """Return the greatest x with sum_j exp(eta_j x - c_j v) / J <= exp(exponent) at each v.

    By Newton's steps on a convex function from the right: every step is an upper bound.
    """
    # what is taken off eta_j x: c_j v + ln J (..., J)
    deductions = costs * np.asarray(v, dtype=np.float64)[..., None] + math.log(len(rates))
    # start where no single term exceeds the limit yet, to the right of the x that is sought
    x = ((exponent + deductions) / rates).min(-1)
    for _ in range(NEWTON_STEPS):
        exponents = rates * x[..., None] - deductions  # (..., J)
        largest = exponents.max(-1)  # taken out, so that no exponential overflows
        terms = np.exp(exponents - largest[..., None])
        total = terms.sum(-1)
        # the logarithm of the sum, less the exponent, over its derivative in x
        x = x - (largest + np.log(total) - exponent) * total / (terms @ rates)
    return np.asarray(x)


def greatest_gain(squares: Array | float, exponent: float) -> Array:
    """Return the greatest R with ln M(R, V) <= ``exponent`` at each V: the inverse of M in R."""
    return greatest_of(squares, exponent, rates=RATES, costs=COSTS)
