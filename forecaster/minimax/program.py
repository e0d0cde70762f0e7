r"""A round's linear programs: the best mixture over points that are known, and the preferred one.

With points p_j, fields h_j and payments c_j = h_j . p_j, nature's mean m in the box or the simplex
and the forecaster's weights w solve a pair of programs,

    maximise v  subject to  v + h_j . m <= c_j for every j         m in the box or simplex
    minimise  sum_j w_j c_j + sum_i max(0, -g_i)                   over the box, g = sum_j w_j h_j
              sum_j w_j c_j + max_i -g_i                           over the simplex

subject to w >= 0, sum_j w_j = 1; against listed outcomes s_k as on the simplex, with h_j . s_k in
place of h_ji. The primal simplex method solves the first; the weights are the prices of its rows.
Over the box it starts from nature's answer to the even mixture, with v at least 0 once the least
payment is taken off all, and keeps to m_i <= 1 without rows: a variable that reaches 1 gives its
place to 1 - m_i. On the simplex it starts from m = 0 with a sum of at most 1, and 2 is taken off
every scaled number of the fields, so that 1 is best. For tens of points and numbers a program takes
microseconds, where HiGHS's call alone takes 0.1 ms, and there are no tolerances to blur
certificates below 1e-7.

**Objective**: many mixtures are good enough for a round. With v_j the objective at point p_j, h_j
its field and c_j = h_j . p_j, one is chosen by a second linear program,

    minimise  sum_j w_j v_j
    subject to  sum_j w_j c_j + sum_i s_i <= certificate,   s_i >= -sum_j w_j h_ji,   s, w >= 0,
                sum_j w_j = 1,

over the points of the solved game, of a walk, and of a lattice. Over the simplex there is one s, at
least -g_i for all i, and over conv s(Y) one s, at least -g . s(y) for the outcomes that were found
to be the worst. The certificate is at most the greater of the tolerance and the solved game's, so
that the guarantee is untouched whatever the objective is.
"""

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled
from regretless.market.numerics.linear_program import Program, UnsolvedError, solve

PIVOTS = 20  # per point and coordinate, at most
EPSILON = 1e-12  # of reduced costs and pivots; fields are scaled to 1


@compiled()
def _stopped(table: Array, column: int, limits: Array, own: float) -> int:
    """Find the row that stops the variable of a column, at 0 or its limit; -1 if its own does."""
    row, least, largest = -1, own, 0.0
    for r in range(table.shape[0] - 1):
        pivot = table[r, column]
        if abs(pivot) > EPSILON:
            left = table[r, -1] if pivot > 0.0 else limits[r] - table[r, -1]
            reach = max(left, 0.0) / abs(pivot)
            if reach < least - EPSILON or (reach <= least + EPSILON and abs(pivot) > largest):
                row, least, largest = r, min(least, reach), abs(pivot)
    return row


@compiled()
def _exchange(table: Array, row: int, column: int) -> None:
    """Let the variables of a row and a column change places."""
    inverse = 1.0 / table[row, column]
    table[row] *= inverse
    table[row, column] = inverse
    for r in range(table.shape[0]):
        factor = table[r, column]
        if r != row and factor != 0.0:
            table[r, column] = 0.0
            for k in range(table.shape[1]):  # twice as fast as the difference of two slices
                table[r, k] -= factor * table[row, k]


@compiled()
def _mirror(table: Array, column: int) -> None:
    """Put 1 - m_i in the place of m_i."""
    table[:, -1] -= table[:, column]
    table[:, column] *= -1.0


@compiled()
def _solve(payments: Array, fields: Array, simplex: bool) -> tuple[Array, Array]:  # noqa: FBT001
    """Return the weights of the points, and nature's mean, neither normalised."""
    (count, size), largest = fields.shape, np.abs(fields).max()
    scale, rows = 1.0 / largest if largest > 0.0 else 1.0, count + simplex
    # a column for v, one for each number of m and the right sides; the last row is the objective
    table = np.zeros((rows + 1, size + 2))
    table[:count, 0], table[-1, 0] = 1.0, -1.0
    table[:count, 1:-1] = fields * scale - (2.0 if simplex else 0.0)
    table[:count, -1] = payments * scale
    # v and m are variables 0 to n, the rows' slacks the next
    nonbasic, basic = np.arange(size + 1), np.arange(size + 1, size + 1 + rows)
    limits, turned = np.full(size + 1 + rows, np.inf), np.zeros(size + 1 + rows, np.bool_)
    if simplex:
        table[count, 1:] = 1.0
    else:
        limits[1 : size + 1], turned[1 : size + 1] = 1.0, fields.sum(0) < 0.0
        for i in range(1, size + 1):
            if turned[i]:
                _mirror(table, i)
    table[:count, -1] -= table[:count, -1].min()
    for _ in range(PIVOTS * (count + size)):
        column = int(np.argmin(table[-1, :-1]))
        if table[-1, column] >= -EPSILON:
            break
        entering = nonbasic[column]
        row = _stopped(table, column, limits[basic], limits[entering])
        if row < 0:
            _mirror(table, column)
            turned[entering] = not turned[entering]
            continue
        if table[row, column] < 0.0:  # what leaves is at 1
            turned[basic[row]] = not turned[basic[row]]
            table[row] *= -1.0
            table[row, -1] += 1.0
        _exchange(table, row, column)
        basic[row], nonbasic[column] = entering, basic[row]
    levels, prices = np.zeros((2, size + 1 + rows))
    levels[basic], prices[nonbasic] = table[:rows, -1], table[-1, :-1]
    mass = np.maximum(prices[size + 1 : size + 1 + count], 0.0)
    mean = np.minimum(np.maximum(levels[1 : size + 1], 0.0), 1.0)
    return mass, np.where(turned[1 : size + 1], 1.0 - mean, mean)


def best_mixture(payments: Array, fields: Array, *, simplex: bool) -> tuple[Array, Array]:
    """Return the best weights (m,), of h . p (m,) and h (m, n), and nature's mean (n,).

    On the simplex ``fields`` may be (m, r), what each of r listed choices of nature takes off each
    payment; the mean is its distribution over them.
    """
    mass, mean = _solve(payments, fields, simplex)
    return mass / mass.sum(), mean / mean.sum() if simplex else mean


def cheapest(
    values: Array, payments: Array, gains: Array, *, limit: float, box: bool
) -> Array | None:
    """Return the masses (m,) of least mean value with a worst case within a limit; or None.

    ``gains`` (m, r) are the fields over the box, where nature chooses every one of the r numbers by
    itself; against r listed choices of nature what each takes off a payment.
    """
    count, size = gains.shape
    slacks = np.eye(size) if box else np.ones((size, 1))
    own = np.zeros(slacks.shape[1])
    rows = np.append(payments, own + 1.0), np.append(np.ones(count), own)
    program = Program(
        np.append(values, own),
        np.vstack([*rows, np.hstack([gains.T, slacks])]),
        row_lower=np.append([-np.inf, 1.0], np.zeros(size)),
        row_upper=np.append([limit, 1.0], np.full(size, np.inf)),
        lower=np.append(np.zeros(count), own if box else own - np.inf),
    )
    try:
        return np.maximum(solve(program).x[:count], 0.0)
    except UnsolvedError:
        return None
