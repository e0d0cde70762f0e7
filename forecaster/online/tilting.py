r"""The weights nearest to given ones with which vectors have a given mean.

Of outcomes with prior weights v_i and vectors g_i, the weights with mean zero that are nearest in
relative entropy are

    w_i  ~  v_i exp(lambda . g_i),      lambda = argmin F,    F = ln sum_i v_i exp(lambda . g_i)

(Csiszar 1975, Annals of Probability 3(1), doi:10.1214/aop/1176996454). F is convex; its gradient is
the mean of the g_i with the weights w, and its Hessian their covariance. Nothing has this mean, and
F no minimum, where all g_i lie on one side of a plane through 0. With a ridge, F + rho / 2
|lambda|^2, there always is one, and the mean is -rho lambda.

**Newton's steps.** Along a direction d the third derivative of F is at most R times the second, R
the range of the d . g_i. So a share ln(1 + R) / R of a step lowers F whatever it is (Bach 2010,
Electronic Journal of Statistics 4, 384-414, doi:10.1214/09-EJS521). R counts outcomes that weigh
nothing, and from there on one-dimensional Newton steps look for the least F along d. Such a look
costs an exponential for each outcome, and a new direction the whole covariance.
"""

import math

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled

RIDGE = 1e-4  # of the program that has a solution always
PRECISION = 1e-11  # of the mean, where it is that of some weights
MAX_STEPS = 100  # to new directions
MAX_LOOKS = 40  # along each
SHARE_OF_SLOPE = 0.2  # that may be left of the slope at the end of a step
SHORT_STEP = 0.25  # range R of the change of exponents, of which no look along is needed
GREATEST_GROWTH = 10.0  # of a step's length from one look to the next
LEAST_PIVOT = 1e-15  # of a matrix with ones on its diagonal; smaller ones are rounding
ROUNDING = 1e-12  # of F


def tilted(vectors: Array, prior: Array) -> Array:
    """Return the weights (m,) nearest to prior ones with which vectors (m, n) have mean about 0.

    Examples
    --------
    >>> tilted(np.array([[-1.0], [0.0], [2.0]]), np.full(3, 1 / 3)).round(3)
    array([0.436, 0.346, 0.218])
    """
    weights: Array = prior / prior.sum()
    _tilt(np.ascontiguousarray(vectors, dtype=np.float64), np.log(weights), RIDGE, weights)
    return weights


def exactly_tilted(vectors: Array, prior: Array) -> Array | None:
    """Return the weights (m,) nearest to prior ones with which vectors (m, n) have mean 0.

    It is 0 up to ``PRECISION``. None where no such weights are found: 0 may lie outside of what
    means there are.
    """
    weights: Array = prior / prior.sum()
    no_ridge = 0.0
    is_solved = _tilt(
        np.ascontiguousarray(vectors, dtype=np.float64), np.log(weights), no_ridge, weights
    )
    return weights if is_solved else None


@compiled(nogil=True)
def _tilt(vectors: Array, log_prior: Array, ridge: float, weights: Array) -> bool:
    """Minimise F + rho / 2 |lambda|^2, and return whether its gradient is 0 then (compiled).

    Parameters
    ----------
    vectors, log_prior : array (m, n), array (m,)
        g_i and ln v_i.
    ridge : float
        rho, at least 0.
    weights : array (m,)
        v at first; overwritten by w.
    """
    n_outcomes, size = vectors.shape
    tilt = np.zeros(size)  # lambda
    exponents = log_prior.copy()  # ln v_i + lambda . g_i
    projections = np.empty(n_outcomes)  # d . g_i
    gradient = np.empty(size)
    direction = np.empty(size)  # d
    hessian = np.empty((size, size))
    log_partition = 0.0  # F
    for _ in range(MAX_STEPS):
        _write_mean_and_covariance(vectors, weights, gradient, hessian)
        greatest_slope = 0.0
        for j in range(size):
            gradient[j] += ridge * tilt[j]
            hessian[j, j] += ridge
            greatest_slope = max(greatest_slope, abs(gradient[j]))
        if greatest_slope <= PRECISION:
            return True
        _write_newton_direction(hessian, gradient, direction)
        lowest = math.inf
        highest = -math.inf
        np.dot(vectors, direction, projections)
        for i in range(n_outcomes):
            lowest = min(lowest, projections[i])
            highest = max(highest, projections[i])
        slope = 0.0
        slope_of_ridge = 0.0
        curvature_of_ridge = 0.0
        for j in range(size):
            slope += direction[j] * gradient[j]
            slope_of_ridge += ridge * direction[j] * tilt[j]
            curvature_of_ridge += ridge * direction[j] * direction[j]
        is_one_sided = ridge == 0.0 and highest <= 0.0
        if is_one_sided or slope >= 0.0:
            return False
        length, log_partition = _length_of_step(
            exponents,
            projections,
            log_partition,
            slope,
            slope_of_ridge,
            curvature_of_ridge,
            highest - lowest,
            weights,
        )
        for i in range(n_outcomes):
            exponents[i] += length * projections[i]
        for j in range(size):
            tilt[j] += length * direction[j]
    return False


@compiled(nogil=True)
def _length_of_step(
    exponents: Array,
    projections: Array,
    log_partition: float,
    slope: float,
    slope_of_ridge: float,
    curvature_of_ridge: float,
    spread: float,
    weights: Array,
) -> tuple[float, float]:
    """Return how far to go along a direction d, in units of d, and F there (compiled).

    Parameters
    ----------
    exponents, projections : array (m,)
        ln v_i + lambda . g_i before the step, and d . g_i.
    log_partition, slope : float
        F before the step, and the slope of F + rho / 2 |lambda|^2 along d, below 0.
    slope_of_ridge, curvature_of_ridge : float
        rho lambda . d and rho d . d.
    spread : float
        R, the range of the projections.
    weights : array (m,)
        Written: w after the step.
    """
    is_short = spread <= SHORT_STEP
    length = 1.0 if is_short else math.log1p(spread) / spread
    shortest = 0.0  # the least value along d lies between these
    longest = math.inf
    new_log_partition = log_partition
    for _ in range(MAX_LOOKS):
        new_log_partition, mean, variance = _look_along(exponents, projections, length, weights)
        new_slope = mean + slope_of_ridge + length * curvature_of_ridge
        growth_of_ridge = length * (slope_of_ridge + length / 2 * curvature_of_ridge)
        is_lower = new_log_partition + growth_of_ridge <= log_partition + ROUNDING
        is_level = abs(new_slope) <= SHARE_OF_SLOPE * abs(slope)
        if is_short or (is_lower and is_level):
            break
        if is_lower and new_slope <= 0.0:
            shortest = length
        else:
            longest = length
        curvature = variance + curvature_of_ridge
        next_length = math.inf  # by Newton's step along d
        if curvature > 0.0:
            next_length = length - new_slope / curvature
        next_length = min(next_length, longest, GREATEST_GROWTH * length)
        if not shortest < next_length < longest:
            next_length = (shortest + longest) / 2
        length = next_length
    return length, new_log_partition


@compiled(nogil=True)
def _look_along(
    exponents: Array, projections: Array, length: float, weights: Array
) -> tuple[float, float, float]:
    """Return F after a step, and the mean and variance of the projections there (compiled).

    Parameters
    ----------
    exponents, projections : array (m,)
        ln v_i + lambda . g_i before the step, and d . g_i.
    length : float
        Of the step, in units of d.
    weights : array (m,)
        Written: w after the step.
    """
    largest = -math.inf
    for i in range(exponents.shape[0]):
        weights[i] = exponents[i] + length * projections[i]
        largest = max(largest, weights[i])
    total = 0.0
    for i in range(exponents.shape[0]):
        weights[i] = math.exp(weights[i] - largest)
        total += weights[i]
    mean = 0.0
    for i in range(exponents.shape[0]):
        weights[i] /= total
        mean += weights[i] * projections[i]
    variance = 0.0
    for i in range(exponents.shape[0]):
        variance += weights[i] * (projections[i] - mean) ** 2
    return largest + math.log(total), mean, variance


@compiled(nogil=True)
def _write_mean_and_covariance(
    vectors: Array, weights: Array, mean: Array, covariance: Array
) -> None:
    """Write the mean (n,) and covariance (n, n) of vectors (m, n) with weights (m,) (compiled)."""
    np.dot(weights, vectors, mean)
    centred = np.empty(vectors.shape)
    weighted = np.empty(vectors.shape)
    for i in range(vectors.shape[0]):
        for j in range(vectors.shape[1]):
            centred[i, j] = vectors[i, j] - mean[j]
            weighted[i, j] = weights[i] * centred[i, j]
    np.dot(centred.T, weighted, covariance)


@compiled(nogil=True)
def _write_newton_direction(hessian: Array, gradient: Array, direction: Array) -> None:
    """Write a solution d of H d = -gradient, by Cholesky's factor L of H (compiled).

    H is scaled first, so that it has ones on its diagonal. A coordinate that the others determine
    but for rounding gets no step: its row of L has a 0 on the diagonal.

    Parameters
    ----------
    hessian : array (n, n)
        H, of which the lower triangle is read; overwritten by L of the scaled one.
    gradient, direction : array (n,)
        The second is written.
    """
    size = gradient.shape[0]
    scale = np.zeros(size)
    for j in range(size):
        if hessian[j, j] > 0.0:
            scale[j] = 1.0 / math.sqrt(hessian[j, j])
    for j in range(size):
        pivot = hessian[j, j] * scale[j] * scale[j]
        for k in range(j):
            rest = hessian[j, k] * scale[j] * scale[k]
            for i in range(k):
                rest -= hessian[j, i] * hessian[k, i]
            hessian[j, k] = rest / hessian[k, k] if hessian[k, k] > 0.0 else 0.0
            pivot -= hessian[j, k] * hessian[j, k]
        hessian[j, j] = math.sqrt(pivot) if pivot > LEAST_PIVOT else 0.0
    for j in range(size):  # L z = -scaled gradient
        rest = -gradient[j] * scale[j]
        for k in range(j):
            rest -= hessian[j, k] * direction[k]
        direction[j] = rest / hessian[j, j] if hessian[j, j] > 0.0 else 0.0
    for j in range(size - 1, -1, -1):  # L' d = z
        rest = direction[j]
        for k in range(j + 1, size):
            rest -= hessian[k, j] * direction[k]
        direction[j] = rest / hessian[j, j] if hessian[j, j] > 0.0 else 0.0
    for j in range(size):
        direction[j] *= scale[j]
