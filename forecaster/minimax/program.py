r"""A round's linear programs: the best mixture over points that are known, and the preferred one.

With g = sum_j w_j h_j over the mixture's weights w, and c_j = h_j . p_j, it is

    minimise  sum_j w_j c_j + sum_i max(0, -g_i)        over the box
              sum_j w_j c_j + max_i -g_i                over the simplex

subject to w >= 0, sum_j w_j = 1; against listed outcomes s_k as on the simplex, with h_j . s_k in
place of h_ji. The primal simplex method starts at the best single point and keeps a dictionary:
every basic variable as a row of multiples of the nonbasic ones, which are 0, and a constant. The
last row is the objective, the last column has the constants. Over the box the basic variables are
some w_j and some g_i. A g_i is free and costs max(0, -g_i), so that a nonbasic one may enter
upwards or downwards, and a step goes on past the zeros of basic ones as long as the objective
falls. On the simplex u stands for max_i -g_i, and the r_i = u + g_i are at least 0 in place of g_i.

The reduced costs of the g_i or r_i are nature's mean. For tens of rows (n + 1) and columns (points)
a program takes microseconds, where HiGHS's call alone takes 0.1 ms, and there are no tolerances to
blur certificates below 1e-7. Every basis is a mixture, so that the last one serves where ``PIVOTS``
run out. The kernels are plain loops: expressions of whole arrays give the same numbers, and take
three to four times as long to compile.

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

from regretless.market.core.arrays import Array, Integers
from regretless.market.core.compiled import compiled
from regretless.market.numerics.linear_program import Program, UnsolvedError, solve

# what a variable may be: at least 0; costly below 0; anything
POSITIVE = 0
BENT = 1
FREE = 2
PIVOTS = 20  # per point and coordinate, at most
EPSILON = 1e-12  # of reduced costs and pivots; fields are scaled to 1


@compiled()
def _bend(table: Array, side: Integers, row: int) -> None:
    """Move a basic variable to the other side of 0, where its slope is another."""
    side[row] = -side[row]
    objective = table.shape[0] - 1
    for k in range(table.shape[1]):
        table[objective, k] += side[row] * table[row, k]


@compiled()
def _exchange(table: Array, row: int, column: int) -> None:
    """Solve a row for the nonbasic variable of a column, and put it into all others."""
    inverse = 1.0 / table[row, column]
    for k in range(table.shape[1]):
        table[row, k] *= -inverse
    table[row, column] = inverse
    for r in range(table.shape[0]):
        factor = table[r, column]
        if r != row and factor != 0.0:
            table[r, column] = 0.0
            for k in range(table.shape[1]):  # twice as fast as the sum of two slices
                table[r, k] += factor * table[row, k]


@compiled()
def _entering(costs: Array, nonbasic: Integers, kinds: Integers) -> tuple[int, float, float]:
    """Find the column that lowers the objective fastest: column, direction, slope; -1 if none."""
    column = -1
    direction = 1.0
    slope = -EPSILON
    for k in range(nonbasic.shape[0]):
        if costs[k] < slope:
            column = k
            direction = 1.0
            slope = costs[k]
        if kinds[nonbasic[k]] == BENT and 1.0 - costs[k] < slope:
            column = k
            direction = -1.0
            slope = 1.0 - costs[k]
    return column, direction, slope


@compiled()
def _leaving(
    moves: Array, levels: Array, kinds: Integers, side: Integers, slope: float, passed: Array
) -> int:
    """Find the row whose variable stops the step, and which zeros are passed; -1 if none stops."""
    for r in range(passed.shape[0]):
        passed[r] = 0.0
    while True:
        row = -1
        step = np.inf
        for r in range(levels.shape[0]):
            toward = -moves[r] * side[r]
            if kinds[r] == FREE or passed[r] or toward <= EPSILON:
                continue
            reach = max(levels[r] * side[r], 0.0) / toward
            if reach < step - EPSILON or (reach <= step + EPSILON and toward > abs(moves[row])):
                row = r
                step = min(step, reach)
        if row < 0 or kinds[row] == POSITIVE:
            return row
        slope += abs(moves[row])
        if slope >= 0.0:
            return row
        passed[row] = 1.0


@compiled()
def _optimise(table: Array, basic: Integers, nonbasic: Integers, kinds: Integers) -> Integers:
    """Pivot until no column lowers the objective; on which side of 0 the basic variables are."""
    rows = basic.shape[0]
    levels = table[:rows, -1]
    side = np.empty(rows, np.int64)
    kinds_of_basic = np.empty(rows, np.int64)
    moves = np.empty(rows)
    passed = np.empty(rows)
    for r in range(rows):
        side[r] = 1
    for r in range(rows):
        if kinds[basic[r]] == BENT and levels[r] < 0.0:
            _bend(table, side, r)
    for _ in range(PIVOTS * kinds.shape[0]):
        column, direction, slope = _entering(table[-1], nonbasic, kinds)
        if column < 0:
            break
        for r in range(rows):
            moves[r] = direction * table[r, column]
            kinds_of_basic[r] = kinds[basic[r]]
        row = _leaving(moves, levels, kinds_of_basic, side, slope, passed)
        if row < 0:
            break
        for r in range(rows):
            if passed[r] > 0.0 or (r == row and side[r] < 0):
                _bend(table, side, r)
        _exchange(table, row, column)
        basic[row], nonbasic[column] = nonbasic[column], basic[row]
        if direction < 0.0:
            _bend(table, side, row)
    return side


@compiled()
def _opened(
    payments: Array,
    fields: Array,
    simplex: bool,  # noqa: FBT001
) -> tuple[Array, Integers, Integers]:
    """Open the dictionary of w and g, or w, u and r, at the best single point."""
    count, size = fields.shape
    first = 0
    least = np.inf
    largest = 0.0
    for j in range(count):
        worst = -np.inf if simplex else 0.0
        for i in range(size):
            largest = max(largest, abs(fields[j, i]))
            if simplex:
                worst = max(worst, -fields[j, i])
            else:
                worst += max(-fields[j, i], 0.0)
        if payments[j] + worst < least:
            first = j
            least = payments[j] + worst
    scale = 1.0 / largest if largest > 0.0 else 1.0
    columns = count if simplex else count - 1  # a spare one for the simplex
    table = np.zeros((size + 2, columns + 1))
    nonbasic = np.empty(columns, np.int64)
    basic = np.empty(size + 1, np.int64)
    for i in range(size):
        basic[i] = count + i
        table[i, columns] = fields[first, i] * scale
    basic[size] = first
    table[size, columns] = 1.0
    for k in range(count - 1):
        j = k if k < first else k + 1
        nonbasic[k] = j
        table[size, k] = -1.0
        for i in range(size):
            table[i, k] = (fields[j, i] - fields[first, i]) * scale
        table[size + 1, k] = (payments[j] - payments[first]) * scale
    if simplex:
        lowest = _replace_lowest(table, size)
        basic[lowest] = count + size
        nonbasic[count - 1] = count + lowest
    return table, basic, nonbasic


@compiled()
def _replace_lowest(table: Array, size: int) -> int:
    """Put u = r - g into the row of the least g_i, and r_i = u + g_i into the others; that row.

    ``table`` (n + 2, columns + 1) is changed in place; its last column but one is u's.
    """
    columns = table.shape[1] - 1
    lowest = 0
    for i in range(1, size):
        if table[i, columns] < table[lowest, columns]:
            lowest = i
    for k in range(columns + 1):
        gain = -1.0 if k == columns - 1 else table[lowest, k]
        for i in range(size):
            table[i, k] -= gain
        table[lowest, k] = -gain
        table[size + 1, k] -= gain
    return lowest


@compiled()
def _solve(payments: Array, fields: Array, simplex: bool) -> tuple[Array, Array]:  # noqa: FBT001
    """Return the masses of the points, and nature's mean, neither normalised."""
    count, size = fields.shape
    table, basic, nonbasic = _opened(payments, fields, simplex)
    kinds = np.empty(count + size + 1, np.int64)
    for variable in range(count + size):
        kinds[variable] = POSITIVE if variable < count or simplex else BENT
    kinds[count + size] = FREE
    side = _optimise(table, basic, nonbasic, kinds)
    mass = np.zeros(count)
    mean = np.zeros(size)
    for r in range(size + 1):
        if basic[r] < count:
            mass[basic[r]] = max(table[r, -1], 0.0)
        elif basic[r] < count + size:
            mean[basic[r] - count] = 0.0 if side[r] > 0 else 1.0
    for k in range(nonbasic.shape[0]):
        if nonbasic[k] >= count:
            mean[nonbasic[k] - count] = min(1.0, max(0.0, table[-1, k]))
    return mass, mean


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
