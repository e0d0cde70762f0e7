r"""A round's linear programs: the best mixture over points that are known, and the preferred one.

With g = sum_j w_j h_j over the mixture's weights w, and c_j = h_j . p_j, it is

    minimise  sum_j w_j c_j + sum_i max(0, -g_i)        over the box
              sum_j w_j c_j + max_i -g_i                over the simplex

subject to w >= 0, sum_j w_j = 1; against listed outcomes s_k as on the simplex, with h_j . s_k in
place of h_ji. The primal simplex method starts at the best single point and keeps a dictionary:
every basic variable as a constant and a row of multiples of the nonbasic ones, which are 0. Over
the box the basic variables are some w_j and some g_i. A g_i is free and costs max(0, -g_i), so that
a nonbasic one may enter upwards or downwards, and a step goes on past the zeros of basic ones as
long as the objective falls. On the simplex u stands for max_i -g_i, and the r_i = u + g_i are at
least 0 in place of the g_i.

The reduced costs of the g_i or r_i are nature's mean. There are n + 1 rows and as many columns as
points: for tens of either a program takes microseconds, where HiGHS's call alone takes 0.1 ms, and
there are no tolerances to blur certificates below 1e-7. Every basis is a mixture, so that the last
one serves where ``PIVOTS`` run out.

**Objective**: of the mixtures that are good enough, the best one for a purpose. A round's game is
solved until the certificate is at most what is let pass (``unbiased``). Many mixtures are. With v_j
the objective at point p_j, h_j its field and c_j = h_j . p_j, one is chosen by a second linear
program,

    minimise  sum_j w_j v_j
    subject to  sum_j w_j c_j + sum_i s_i <= certificate,   s_i >= -sum_j w_j h_ji,   s, w >= 0,
                sum_j w_j = 1,

over the points of the solved game (a model's forecast among them, where it is good enough), of a
walk, and of a lattice. Over the simplex there is one s, at least -g_i for all i, and over
conv s(Y) one s, at least -g . s(y) for the outcomes that were found to be the worst. The
certificate is at most the greater of the tolerance and the solved game's: the bound counts it as
any other, and the guarantee is untouched whatever the objective is.
"""

import numpy as np

from regretless.market.core.arrays import Array, Integers
from regretless.market.core.compiled import compiled
from regretless.market.numerics.linear_program import Program, UnsolvedError, solver

POSITIVE, BENT, FREE = 0, 1, 2  # what a variable may be: at least 0; costly below 0; anything
PIVOTS = 20  # per point and coordinate, at most
EPSILON = 1e-12  # of reduced costs and pivots; fields are scaled to 1


@compiled()
def _bend(dictionary: Array, costs: Array, side: Integers, row: int) -> None:
    """Move a basic variable to the other side of 0, where its slope is another."""
    side[row] = -side[row]
    for k in range(costs.shape[0]):
        costs[k] += side[row] * dictionary[row, k]


@compiled()
def _exchange(dictionary: Array, levels: Array, costs: Array, row: int, column: int) -> None:
    """Solve a row for the nonbasic variable of a column, and put it into all others."""
    inverse = 1.0 / dictionary[row, column]
    for k in range(costs.shape[0]):
        dictionary[row, k] *= -inverse
    dictionary[row, column] = inverse
    levels[row] *= -inverse
    for r in range(levels.shape[0]):
        factor = dictionary[r, column]
        if r != row and factor != 0.0:
            dictionary[r, column] = 0.0
            levels[r] += factor * levels[row]
            for k in range(costs.shape[0]):
                dictionary[r, k] += factor * dictionary[row, k]
    factor, costs[column] = costs[column], 0.0
    for k in range(costs.shape[0]):
        costs[k] += factor * dictionary[row, k]


@compiled()
def _entering(costs: Array, nonbasic: Integers, kinds: Integers) -> tuple[int, float, float]:
    """Find the column that lowers the objective fastest: column, direction, slope; -1 if none."""
    column, direction, slope = -1, 1.0, -EPSILON
    for k in range(costs.shape[0]):
        if costs[k] < slope:
            column, direction, slope = k, 1.0, costs[k]
        if kinds[nonbasic[k]] == BENT and 1.0 - costs[k] < slope:
            column, direction, slope = k, -1.0, 1.0 - costs[k]
    return column, direction, slope


@compiled()
def _leaving(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    moves: Array, levels: Array, kinds: Integers, side: Integers, slope: float, passed: Array
) -> int:
    """Find the row whose variable stops the step, and which zeros are passed; -1 if none stops."""
    passed[:] = 0.0
    while True:
        row, step = -1, np.inf
        for r in range(levels.shape[0]):
            toward = -moves[r] * side[r]
            if kinds[r] == FREE or passed[r] or toward <= EPSILON:
                continue
            reach = max(levels[r] * side[r], 0.0) / toward
            if reach < step - EPSILON or (reach <= step + EPSILON and toward > abs(moves[row])):
                row, step = r, min(step, reach)
        if row < 0 or kinds[row] == POSITIVE:
            return row
        slope += abs(moves[row])
        if slope >= 0.0:
            return row
        passed[row] = 1.0


@compiled()
def _optimise(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    dictionary: Array,
    levels: Array,
    costs: Array,
    basic: Integers,
    nonbasic: Integers,
    kinds: Integers,
) -> Integers:
    """Pivot until no column lowers the objective; on which side of 0 the basic variables are."""
    rows = levels.shape[0]
    side, passed, moves = np.ones(rows, np.int64), np.empty(rows), np.empty(rows)
    for r in range(rows):
        if kinds[basic[r]] == BENT and levels[r] < 0.0:
            _bend(dictionary, costs, side, r)
    for _ in range(PIVOTS * kinds.shape[0]):
        column, direction, slope = _entering(costs, nonbasic, kinds)
        if column < 0:
            break
        for r in range(rows):
            moves[r] = direction * dictionary[r, column]
        row = _leaving(moves, levels, kinds[basic], side, slope, passed)
        if row < 0:
            break
        for r in range(rows):
            if passed[r] > 0.0 or (r == row and side[r] < 0):
                _bend(dictionary, costs, side, r)
        _exchange(dictionary, levels, costs, row, column)
        basic[row], nonbasic[column] = nonbasic[column], basic[row]
        if direction < 0.0:
            _bend(dictionary, costs, side, row)
    return side


@compiled()
def _best_single(payments: Array, fields: Array, simplex: bool) -> int:  # noqa: FBT001
    first, least = 0, np.inf
    for j in range(fields.shape[0]):
        gain = -np.inf if simplex else 0.0
        for i in range(fields.shape[1]):
            gain = max(gain, -fields[j, i]) if simplex else gain + max(0.0, -fields[j, i])
        if payments[j] + gain < least:
            least, first = payments[j] + gain, j
    return first


@compiled()
def _opened(
    payments: Array,
    fields: Array,
    scale: float,
    simplex: bool,  # noqa: FBT001
) -> tuple[Array, Array, Array, Integers, Integers]:
    """Open the dictionary of w and g at the best single point, a spare column for the simplex."""
    count, size = fields.shape
    first = _best_single(payments, fields, simplex)
    columns = count if simplex else count - 1
    dictionary, costs = np.zeros((size + 1, columns)), np.zeros(columns)
    nonbasic, k = np.empty(columns, np.int64), 0
    for j in range(count):
        if j != first:
            nonbasic[k], costs[k] = j, (payments[j] - payments[first]) * scale
            dictionary[:size, k] = (fields[j] - fields[first]) * scale
            dictionary[size, k] = -1.0
            k += 1
    levels = np.append(fields[first] * scale, 1.0)
    return dictionary, levels, costs, np.append(np.arange(count, count + size), first), nonbasic


@compiled()
def _lifted(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    dictionary: Array, levels: Array, costs: Array, basic: Integers, nonbasic: Integers, count: int
) -> None:
    """Put u = r - g into the row of the least g_i, and r_i = u + g_i into the others."""
    size = levels.shape[0] - 1
    lowest = int(np.argmin(levels[:size]))
    least, level = dictionary[lowest].copy(), levels[lowest]
    for i in range(size):
        dictionary[i] -= least
        dictionary[i, -1] = 1.0
        levels[i] -= level
    dictionary[lowest], levels[lowest] = -least, -level
    dictionary[lowest, -1] = 1.0
    costs += dictionary[lowest]
    basic[lowest], nonbasic[-1] = count + size, count + lowest


@compiled()
def _solve(payments: Array, fields: Array, simplex: bool) -> tuple[Array, Array]:  # noqa: FBT001
    """Return the masses of the points, and nature's mean, neither normalised."""
    count, size = fields.shape
    largest = np.abs(fields).max()
    scale = 1.0 / largest if largest > 0.0 else 1.0
    dictionary, levels, costs, basic, nonbasic = _opened(payments, fields, scale, simplex)
    kinds = np.full(count + size + 1, POSITIVE if simplex else BENT)
    kinds[:count], kinds[count + size] = POSITIVE, FREE
    if simplex:
        _lifted(dictionary, levels, costs, basic, nonbasic, count)
    side = _optimise(dictionary, levels, costs, basic, nonbasic, kinds)
    mass, mean = np.zeros(count), np.zeros(size)
    for r in range(size + 1):
        if basic[r] < count:
            mass[basic[r]] = max(levels[r], 0.0)
        elif basic[r] < count + size:
            mean[basic[r] - count] = 0.0 if side[r] > 0 else 1.0
    for k in range(costs.shape[0]):
        if nonbasic[k] >= count:
            mean[nonbasic[k] - count] = min(1.0, max(0.0, costs[k]))
    return mass, mean


def best_mixture(payments: Array, fields: Array) -> tuple[Array, Array]:
    """Return the best weights (m,) over the box, and nature's mean (n,), of h . p (m,) and h."""
    mass, mean = _solve(payments, fields, False)  # noqa: FBT003 - compiled
    return mass / mass.sum(), mean


def best_against(payments: Array, gains: Array) -> tuple[Array, Array]:
    """Return the best weights (m,) against r listed choices of nature, and its distribution (r,).

    They minimise w . payments + max_k -(w . gains)_k, with ``gains`` (m, r) what each choice takes
    off each payment; the fields on the simplex.
    """
    mass, distribution = _solve(payments, gains, True)  # noqa: FBT003 - compiled
    return mass / mass.sum(), distribution / distribution.sum()


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
        return np.maximum(solver().solve(program).x[:count], 0.0)
    except UnsolvedError:
        return None
