r"""A round's linear programs: the best mixture over points that are known, and the preferred one.

With points p_j, fields h_j and payments c_j = h_j . p_j, nature's mean m in the box or the simplex
and the forecaster's weights w solve a pair of programs,

    maximise v  subject to  v + h_j . m <= c_j for every j         m in the box or simplex
    minimise  sum_j w_j c_j + sum_i max(0, -g_i)                   over the box, g = sum_j w_j h_j
              sum_j w_j c_j + max_i -g_i                           over the simplex

subject to w >= 0, sum_j w_j = 1; against listed outcomes s_k as on the simplex, with h_j . s_k in
place of h_ji. The primal simplex method solves the first from m = 0, with v at least 0 once the
least payment is taken off all. The weights are the prices of its rows. On the simplex the
sum of m is at most 1, and 2 is taken off every scaled number of the fields, so that 1 is best.
For tens of points and numbers a program takes microseconds, where HiGHS's call alone takes 0.1 ms,
and there are no tolerances to blur certificates below 1e-7.

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
def _pivoted(table: Array, column: int) -> int:
    """Raise the variable of a column until a row stops it, and let them change places; the row."""
    row, least = 0, np.inf
    for r in range(table.shape[0] - 1):
        pivot = table[r, column]
        if pivot > EPSILON:
            reach = max(table[r, -1], 0.0) / pivot
            if reach < least - EPSILON or (reach <= least + EPSILON and pivot > table[row, column]):
                row, least = r, min(least, reach)
    inverse = 1.0 / table[row, column]
    table[row] *= inverse
    table[row, column] = inverse
    for r in range(table.shape[0]):
        factor = table[r, column]
        if r != row and factor != 0.0:
            table[r, column] = 0.0
            for k in range(table.shape[1]):  # twice as fast as the difference of two slices
                table[r, k] -= factor * table[row, k]
    return row


@compiled()
def _solve(payments: Array, fields: Array, simplex: bool) -> tuple[Array, Array]:  # noqa: FBT001
    """Return the weights of the points, and nature's mean, neither normalised."""
    count, size = fields.shape
    largest, limits = np.abs(fields).max(), 1 if simplex else size
    scale = 1.0 / largest if largest > 0.0 else 1.0
    # a column for v, one for each number of m and the right sides; the last row is the objective
    table = np.zeros((count + limits + 1, size + 2))
    table[:count, 0], table[-1, 0] = 1.0, -1.0
    table[:count, 1:-1] = fields * scale - (2.0 if simplex else 0.0)
    table[:count, -1] = (payments - payments.min()) * scale
    table[count:-1, -1] = 1.0
    for i in range(size):
        table[count + (0 if simplex else i), 1 + i] = 1.0
    # v and m are variables 0 to n, the points' slacks the next; all others limit m
    nonbasic = np.arange(size + 1)
    basic = np.arange(size + 1, size + 1 + count + limits)
    for _ in range(PIVOTS * (count + size)):
        column = int(np.argmin(table[-1, :-1]))
        if table[-1, column] >= -EPSILON:
            break
        row = _pivoted(table, column)
        basic[row], nonbasic[column] = nonbasic[column], basic[row]
    solved = np.zeros(size + 1 + count + limits)
    for r in range(count + limits):
        if basic[r] <= size:
            solved[basic[r]] = min(1.0, max(0.0, table[r, -1]))
    for k in range(size + 1):
        if nonbasic[k] > size:
            solved[nonbasic[k]] = max(0.0, table[-1, k])
    return solved[size + 1 : size + 1 + count], solved[1 : size + 1]


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
