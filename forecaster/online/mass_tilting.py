r"""The weights nearest to given ones with which the hats of some knots have given means.

Losses that are linear between knots t_0 < ... < t_n, as a newsvendor's between its orders, have
expectations that are linear in the means of the hats

    h_j(y) = 1 at t_j, 0 at the other knots, linear between knots,        sum_j h_j = 1.

To give a distribution such means is to give m_j = E h_j, the mass at each knot: what the knot gets
where every outcome shares its weight between the two knots beside it. Of outcomes with prior
weights v_i the nearest weights in relative entropy with these masses are

    w_i  =  v_i exp(sum_j lambda_j h_j(y_i)),   lambda = argmin G,   G = sum_i w_i - lambda . m

(``tilting`` has the general program; as the hats add up to 1, the weights do, too). An outcome
touches two hats, so that the Hessian of G, which is that of the masses M_j = sum_i w_i h_j(y_i), is
tridiagonal. A step costs an exponential for each outcome and a few operations for each knot.

**Steps.** Were all outcomes at knots, lambda_j = ln(m_j / M_j) would solve the program at once, M
being the masses of the prior. The search starts there, and its steps are Newton's for the equations
ln M_j = ln m_j, which are nearly linear in lambda, rather than for M_j = m_j:

    H d = (M_j ln(m_j / M_j))_j,     H the Hessian.

A step that does not lower G by as much as its slope promises is made shorter. At a knot without
mass lambda is minus infinity: outcomes that touch its hat get no weight.
"""

import math

import numpy as np

from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled

PRECISION = 1e-12  # sum of the differences of all masses from those that are wanted
MAX_STEPS = 50
MAX_CUTS = 20  # of the length of one step
CUT = 0.3  # of a step's length that is left
SHARE_OF_SLOPE = 1e-4  # of what the slope promises, by which a step lowers G at least
ROUNDING = 1e-14  # of G
LEAST_PIVOT = 1e-15  # of an entry on the diagonal; smaller ones are rounding


def masses_at_knots(levels: Array, weights: Array, knots: Array) -> Array:
    """Return what each knot gets (n,) where outcomes share their weights between two knots.

    Parameters
    ----------
    levels, weights : array (m,)
        Outcomes between the first and the last knot, and their weights.
    knots : array (n,)
        At least two, ascending.

    Examples
    --------
    >>> masses_at_knots(np.array([0.25, 1.0]), np.array([0.8, 0.2]), np.array([0.0, 0.5, 1.0]))
    array([0.4, 0.4, 0.2])
    """
    cells = np.empty(len(levels), dtype=np.intp)
    shares = np.empty(len(levels))
    masses = np.empty(len(knots))
    _write_cells(levels, knots, cells, shares)
    _write_masses(weights, cells, shares, masses)
    return masses


def tilted_to_masses(levels: Array, prior: Array, knots: Array, masses: Array) -> Array | None:
    """Return the weights (m,) nearest to prior ones that have given masses at the knots.

    None where they are not found: there may be none.

    Parameters
    ----------
    levels, prior : array (m,)
        Outcomes between the first and the last knot, and positive weights.
    knots, masses : array (n,)
        Ascending knots, at least two; masses at least 0, with sum 1.

    Examples
    --------
    >>> levels = np.array([0.0, 0.5, 1.0])
    >>> ends = np.array([0.0, 1.0])
    >>> tilted_to_masses(levels, np.full(3, 1 / 3), ends, np.array([0.8, 0.2])).round(3)
    array([0.682, 0.236, 0.082])
    """
    weights = np.empty(len(levels))
    is_solved = _tilt_to_masses(levels, np.log(prior / prior.sum()), knots, masses, weights)
    return weights if is_solved else None


@compiled(nogil=True)
def _write_cells(levels: Array, knots: Array, cells: Indices, shares: Array) -> None:
    """Write between which two knots outcomes lie, and where (compiled).

    Parameters
    ----------
    levels, knots : array (m,), array (n,)
        Outcomes, and ascending knots.
    cells : array (m,)
        Written: the lower of the two knots, by its place.
    shares : array (m,)
        Written: the share of the weight that the upper knot gets, in [0, 1].
    """
    last_cell = knots.shape[0] - 2
    for i in range(levels.shape[0]):
        cell = np.searchsorted(knots, levels[i], side="right") - 1
        cell = min(max(cell, 0), last_cell)
        cells[i] = cell
        shares[i] = (levels[i] - knots[cell]) / (knots[cell + 1] - knots[cell])


@compiled(nogil=True)
def _write_masses(weights: Array, cells: Indices, shares: Array, masses: Array) -> None:
    """Write the masses (n,) at the knots of weights (m,) in cells (m,) with shares (m,)."""
    masses[:] = 0.0
    for i in range(weights.shape[0]):
        masses[cells[i]] += weights[i] * (1.0 - shares[i])
        masses[cells[i] + 1] += weights[i] * shares[i]


@compiled(nogil=True)
def _tilt_to_masses(
    levels: Array, log_prior: Array, knots: Array, wanted: Array, weights: Array
) -> bool:
    """Minimise G, and return whether the masses are those that are wanted then (compiled).

    Parameters
    ----------
    levels, log_prior : array (m,)
        y_i and ln v_i.
    knots, wanted : array (n,)
        t_j and m_j.
    weights : array (m,)
        Written: w.
    """
    n_outcomes = levels.shape[0]
    n_knots = knots.shape[0]
    cells = np.empty(n_outcomes, dtype=np.intp)
    shares = np.empty(n_outcomes)
    _write_cells(levels, knots, cells, shares)
    exponents = log_prior.copy()  # ln v_i, or minus infinity of outcomes without weight
    for i in range(n_outcomes):
        touches_lower = shares[i] < 1.0 and wanted[cells[i]] <= 0.0
        touches_upper = shares[i] > 0.0 and wanted[cells[i] + 1] <= 0.0
        if touches_lower or touches_upper:
            exponents[i] = -math.inf
    multipliers = np.zeros(n_knots)  # lambda
    masses = np.empty(n_knots)  # M
    _write_weights(exponents, cells, shares, multipliers, weights)
    _write_masses(weights, cells, shares, masses)
    for j in range(n_knots):
        if wanted[j] > 0.0:
            if masses[j] <= 0.0:
                return False  # no outcome can have the mass that is wanted here
            multipliers[j] = math.log(wanted[j] / masses[j])
    new_multipliers = np.empty(n_knots)
    direction = np.empty(n_knots)  # d
    diagonal = np.empty(n_knots)  # of H
    beside_diagonal = np.empty(n_knots)
    total = _write_weights(exponents, cells, shares, multipliers, weights)
    value = total - np.dot(multipliers, wanted)  # G
    for _ in range(MAX_STEPS):
        _write_masses(weights, cells, shares, masses)
        error = 0.0
        for j in range(n_knots):
            error += abs(masses[j] - wanted[j])
        if error <= PRECISION:
            return True
        _write_hessian(weights, cells, shares, diagonal, beside_diagonal)
        for j in range(n_knots):
            direction[j] = 0.0
            if wanted[j] > 0.0 and masses[j] > 0.0:
                direction[j] = masses[j] * math.log(wanted[j] / masses[j])
        _solve_in_place(diagonal, beside_diagonal, direction)
        slope = 0.0
        for j in range(n_knots):
            slope += direction[j] * (masses[j] - wanted[j])
        if not slope < 0.0:
            return False
        length = 1.0
        for _ in range(MAX_CUTS):
            for j in range(n_knots):
                new_multipliers[j] = multipliers[j] + length * direction[j]
            total = _write_weights(exponents, cells, shares, new_multipliers, weights)
            new_value = total - np.dot(new_multipliers, wanted)
            if new_value <= value + SHARE_OF_SLOPE * length * slope + ROUNDING:
                break
            length *= CUT
        multipliers[:] = new_multipliers
        value = new_value
    return False


@compiled(nogil=True)
def _write_weights(
    exponents: Array, cells: Indices, shares: Array, multipliers: Array, weights: Array
) -> float:
    """Write w_i = v_i exp(lambda . h(y_i)), and return their sum (compiled).

    Parameters
    ----------
    exponents, cells, shares : array (m,)
        ln v_i, and where the outcomes lie.
    multipliers : array (n,)
        lambda.
    weights : array (m,)
        Written.
    """
    total = 0.0
    for i in range(exponents.shape[0]):
        lower = (1.0 - shares[i]) * multipliers[cells[i]]
        upper = shares[i] * multipliers[cells[i] + 1]
        weights[i] = math.exp(exponents[i] + lower + upper)
        total += weights[i]
    return total


@compiled(nogil=True)
def _write_hessian(
    weights: Array, cells: Indices, shares: Array, diagonal: Array, beside_diagonal: Array
) -> None:
    """Write H, the sum of w_i h(y_i) h(y_i)', which is tridiagonal (compiled).

    Parameters
    ----------
    weights, cells, shares : array (m,)
        w, and where the outcomes lie.
    diagonal : array (n,)
        Written: H_jj, or 1 where no outcome touches the hat.
    beside_diagonal : array (n,)
        Written: H_(j, j + 1); the last entry is 0.
    """
    diagonal[:] = 0.0
    beside_diagonal[:] = 0.0
    for i in range(weights.shape[0]):
        lower = 1.0 - shares[i]
        upper = shares[i]
        diagonal[cells[i]] += weights[i] * lower * lower
        diagonal[cells[i] + 1] += weights[i] * upper * upper
        beside_diagonal[cells[i]] += weights[i] * lower * upper
    for j in range(diagonal.shape[0]):
        if diagonal[j] == 0.0:
            diagonal[j] = 1.0


@compiled(nogil=True)
def _solve_in_place(diagonal: Array, beside_diagonal: Array, values: Array) -> None:
    """Solve a symmetric, tridiagonal system by elimination (compiled).

    A knot that the knots before it determine but for rounding gets no step.

    Parameters
    ----------
    diagonal, beside_diagonal : array (n,)
        Of the matrix, which is positive semidefinite; the first is overwritten.
    values : array (n,)
        The right-hand side; overwritten by the solution.
    """
    n_knots = diagonal.shape[0]
    for j in range(1, n_knots):
        ratio = beside_diagonal[j - 1] / diagonal[j - 1]
        pivot = diagonal[j] - ratio * beside_diagonal[j - 1]
        is_rounding = pivot <= LEAST_PIVOT * diagonal[j]
        diagonal[j] = math.inf if is_rounding else pivot
        values[j] -= ratio * values[j - 1]
    for j in range(n_knots - 1, -1, -1):
        if j < n_knots - 1:
            values[j] -= beside_diagonal[j] * values[j + 1]
        values[j] /= diagonal[j]
