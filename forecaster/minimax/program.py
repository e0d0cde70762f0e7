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
blur certificates below 1e-7. Every basis is a mixture, so that the last one serves where the
``MAX_PIVOTS`` run out. The kernels are plain loops: expressions of whole arrays give the same
numbers, and take three to four times as long to compile.

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
from regretless.market.numerics.pairwise_sum import pairwise_sum

# What a variable of the program may be.
NONNEGATIVE = 0
COSTLY_BELOW_ZERO = 1  # any number; each unit below 0 adds 1 to the objective
FREE = 2  # any number, at no cost
MAX_PIVOTS = 20  # per point and coordinate
EPSILON = 1e-12  # of reduced costs and pivots; fields are scaled to 1

# The kernels share one numbering of the variables, for m points and n coordinates:
#     0 .. m - 1        w_j, nonnegative
#     m .. m + n - 1    g_i, costly below 0, over the box; r_i, nonnegative, on the simplex
#     m + n             u, free, on the simplex; unused over the box
# and one ``dictionary`` (n + 2, columns + 1): row r < n + 1 writes the variable ``basic[r]`` as its
# constant, in the last column, plus multiples of the variables ``nonbasic[k]``, in the columns
# k < columns. The last row writes the objective likewise: its entries are the reduced costs.


@compiled()
def _switch_sign(dictionary: Array, sign: Integers, row: int) -> None:
    """Move a basic variable to the other side of 0, where its cost has another slope.

    Its row times its new sign is added to that of the objective. ``dictionary`` and ``sign``, as in
    ``_optimise``, are changed in place.
    """
    sign[row] = -sign[row]
    objective = dictionary.shape[0] - 1
    for k in range(dictionary.shape[1]):
        dictionary[objective, k] += sign[row] * dictionary[row, k]


@compiled()
def _pivot(dictionary: Array, row: int, column: int) -> None:
    """Solve a row for the nonbasic variable of a column, and put it into all others, in place.

    With D the ``dictionary``, r the row and c the column, it becomes D',

        D'_rc = 1 / D_rc,       D'_rk = -D_rk / D_rc,
        D'_ic = D_ic D'_rc,     D'_ik = D_ik + D_ic D'_rk,    for all i but r and k but c.
    """
    inverse = 1.0 / dictionary[row, column]
    solved = np.empty(dictionary.shape[1])  # the row, beside the dictionary: read twice as fast
    for k in range(dictionary.shape[1]):
        solved[k] = dictionary[row, k] * -inverse
    solved[column] = inverse
    for r in range(dictionary.shape[0]):
        factor = dictionary[r, column]
        if r != row and factor != 0.0:
            dictionary[r, column] = 0.0
            for k in range(dictionary.shape[1]):  # twice as fast as the sum of two slices
                dictionary[r, k] += factor * solved[k]
    for k in range(dictionary.shape[1]):
        dictionary[row, k] = solved[k]


@compiled()
def _entering_column(
    reduced_costs: Array, nonbasic: Integers, kinds: Integers
) -> tuple[int, float, float]:
    """Find the column that lowers the objective fastest: column, direction, slope; -1 if none."""
    column = -1
    direction = 1.0
    slope = -EPSILON
    for k in range(nonbasic.shape[0]):
        if reduced_costs[k] < slope:
            column = k
            direction = 1.0
            slope = reduced_costs[k]
        if kinds[nonbasic[k]] == COSTLY_BELOW_ZERO and 1.0 - reduced_costs[k] < slope:
            column = k
            direction = -1.0
            slope = 1.0 - reduced_costs[k]
    return column, direction, slope


@compiled()
def _leaving_row(
    moves: Array, values: Array, kinds: Integers, sign: Integers, slope: float, passed: Array
) -> int:
    """Find the row whose variable stops the step, and which zeros are passed; -1 if none stops.

    Parameters
    ----------
    moves, values : array (n + 1,)
        How fast each basic variable changes along the step, and what it is at its beginning.
    kinds, sign : int array (n + 1,)
        What each basic variable may be, and on which side of 0 it is.
    slope : float
        Of the objective at the beginning of the step, below 0.
    passed : array (n + 1,)
        Written: 1 where the step goes on past the zero of a variable, 0 elsewhere.
    """
    for r in range(passed.shape[0]):
        passed[r] = 0.0
    while True:
        row = -1
        step = np.inf
        speed_of_row = 0.0
        for r in range(values.shape[0]):
            speed_to_zero = -moves[r] * sign[r]
            if kinds[r] == FREE or passed[r] or speed_to_zero <= EPSILON:
                continue
            step_to_zero = max(values[r] * sign[r], 0.0) / speed_to_zero
            is_earlier = step_to_zero < step - EPSILON
            is_no_later = step_to_zero <= step + EPSILON
            if is_earlier or (is_no_later and speed_to_zero > speed_of_row):
                row = r
                speed_of_row = speed_to_zero
                step = min(step, step_to_zero)
        if row < 0 or kinds[row] == NONNEGATIVE:
            return row
        # Past its zero the objective falls slower, by as much as the variable moves.
        slope += speed_of_row
        if slope >= 0.0:
            return row
        passed[row] = 1.0


@compiled()
def _optimise(dictionary: Array, basic: Integers, nonbasic: Integers, kinds: Integers) -> Integers:
    """Pivot until no column lowers the objective; return on which side of 0 basic variables are.

    Parameters
    ----------
    dictionary, basic, nonbasic
        As at the top of the file; changed in place.
    kinds : int array (m + n + 1,)
        What each variable may be.

    Returns
    -------
    int array (n + 1,)
        Of every row 1, or -1 where its variable is costly and below 0.
    """
    rows = basic.shape[0]
    values = dictionary[:rows, -1]
    sign = np.empty(rows, np.int64)
    kinds_of_basic = np.empty(rows, np.int64)
    moves = np.empty(rows)
    passed = np.empty(rows)
    for r in range(rows):
        sign[r] = 1
    for r in range(rows):
        if kinds[basic[r]] == COSTLY_BELOW_ZERO and values[r] < 0.0:
            _switch_sign(dictionary, sign, r)
    for _ in range(MAX_PIVOTS * kinds.shape[0]):
        column, direction, slope = _entering_column(dictionary[-1], nonbasic, kinds)
        if column < 0:
            break
        for r in range(rows):
            moves[r] = direction * dictionary[r, column]
            kinds_of_basic[r] = kinds[basic[r]]
        row = _leaving_row(moves, values, kinds_of_basic, sign, slope, passed)
        if row < 0:
            break
        for r in range(rows):
            if passed[r] > 0.0 or (r == row and sign[r] < 0):
                _switch_sign(dictionary, sign, r)
        _pivot(dictionary, row, column)
        basic[row], nonbasic[column] = nonbasic[column], basic[row]
        if direction < 0.0:
            _switch_sign(dictionary, sign, row)
    return sign


@compiled()
def _initial_dictionary(
    payments: Array,
    fields: Array,
    simplex: bool,  # noqa: FBT001
) -> tuple[Array, Integers, Integers]:
    """Write the program as a dictionary at the best single point: dictionary, basic, nonbasic.

    ``payments`` (m,) and ``fields`` (m, n) are as in ``optimal_weights``. The basic variables are
    g, or r and u, and the mass of that point.
    """
    n_points, n_coordinates = fields.shape
    first_gain = n_points  # the variables are numbered as at the top of the file
    free_variable = n_points + n_coordinates
    best_point = _best_point(payments, fields, simplex)
    largest_entry = _largest_entry(fields)
    scale = 1.0 / largest_entry if largest_entry > 0.0 else 1.0
    columns = n_points if simplex else n_points - 1  # a spare one for the simplex
    mass_row = n_coordinates
    objective_row = n_coordinates + 1
    dictionary = np.zeros((n_coordinates + 2, columns + 1))
    nonbasic = np.empty(columns, np.int64)
    basic = np.empty(n_coordinates + 1, np.int64)
    for i in range(n_coordinates):
        basic[i] = first_gain + i
        dictionary[i, columns] = fields[best_point, i] * scale
    basic[mass_row] = best_point
    dictionary[mass_row, columns] = 1.0
    for k in range(n_points - 1):
        j = k if k < best_point else k + 1
        nonbasic[k] = j
        dictionary[mass_row, k] = -1.0
        for i in range(n_coordinates):
            dictionary[i, k] = (fields[j, i] - fields[best_point, i]) * scale
        dictionary[objective_row, k] = (payments[j] - payments[best_point]) * scale
    if simplex:
        lowest = _enter_free_variable(dictionary, n_coordinates)
        basic[lowest] = free_variable
        nonbasic[n_points - 1] = first_gain + lowest
    return dictionary, basic, nonbasic


@compiled()
def _best_point(payments: Array, fields: Array, simplex: bool) -> int:  # noqa: FBT001
    """Return the point whose worst case is least when it is played alone; arguments as above."""
    best_point = 0
    least_worst_case = np.inf
    for j in range(fields.shape[0]):
        worst = -np.inf if simplex else 0.0
        for i in range(fields.shape[1]):
            if simplex:
                worst = max(worst, -fields[j, i])
            else:
                worst += max(-fields[j, i], 0.0)
        if payments[j] + worst < least_worst_case:
            best_point = j
            least_worst_case = payments[j] + worst
    return best_point


@compiled()
def _largest_entry(fields: Array) -> float:
    """Return the largest absolute entry of fields (m, n)."""
    largest = 0.0
    for j in range(fields.shape[0]):
        for i in range(fields.shape[1]):
            largest = max(largest, abs(fields[j, i]))
    return largest


@compiled()
def _enter_free_variable(dictionary: Array, n_coordinates: int) -> int:
    """Put u = r - g into the row of the least g_i, and r_i = u + g_i into the others; that row.

    ``dictionary`` (n + 2, columns + 1) is changed in place; its last column but one is that of the
    r_i in whose row u is.
    """
    columns = dictionary.shape[1] - 1
    lowest = 0
    for i in range(1, n_coordinates):
        if dictionary[i, columns] < dictionary[lowest, columns]:
            lowest = i
    for k in range(columns + 1):
        gain = -1.0 if k == columns - 1 else dictionary[lowest, k]
        for i in range(n_coordinates):
            dictionary[i, k] -= gain
        dictionary[lowest, k] = -gain
        dictionary[n_coordinates + 1, k] -= gain
    return lowest


@compiled()
def optimal_weights(
    payments: Array,
    fields: Array,
    simplex: bool,  # noqa: FBT001
) -> tuple[Array, Array]:
    """Return the masses of the points (m,), and nature's mean (n,) (compiled).

    Parameters
    ----------
    payments : array (m,)
        c_j = h_j . p_j, what the forecaster pays at each point before nature's part.
    fields : array (m, n)
        h_j, what each coordinate of nature's choice takes off that.
    simplex : bool
        Whether nature chooses one coordinate, and not each by itself.
    """
    n_points, n_coordinates = fields.shape
    first_gain = n_points  # the variables are numbered as at the top of the file
    free_variable = n_points + n_coordinates
    kinds = np.empty(free_variable + 1, np.int64)
    kind_of_gains = NONNEGATIVE if simplex else COSTLY_BELOW_ZERO
    for variable in range(first_gain):
        kinds[variable] = NONNEGATIVE
    for variable in range(first_gain, free_variable):
        kinds[variable] = kind_of_gains
    kinds[free_variable] = FREE

    dictionary, basic, nonbasic = _initial_dictionary(payments, fields, simplex)
    sign = _optimise(dictionary, basic, nonbasic, kinds)

    values = dictionary[:, -1]
    reduced_costs = dictionary[-1]
    mass = np.zeros(n_points)
    mean = np.zeros(n_coordinates)
    for row in range(n_coordinates + 1):
        variable = basic[row]
        if variable < first_gain:
            mass[variable] = max(values[row], 0.0)
        elif variable < free_variable:  # nature chooses 0 where g_i > 0, and 1 where g_i < 0
            mean[variable - first_gain] = 0.0 if sign[row] > 0 else 1.0
    for column in range(nonbasic.shape[0]):
        variable = nonbasic[column]
        if variable >= first_gain:  # by duality its reduced cost is nature's mean
            mean[variable - first_gain] = min(1.0, max(0.0, reduced_costs[column]))
    divide_by_sum(mass)
    if simplex:
        divide_by_sum(mean)
    return mass, mean


@compiled()
def divide_by_sum(weights: Array) -> None:
    """Divide weights (m,) by their sum, in place (compiled)."""
    total = pairwise_sum(weights)
    for j in range(weights.shape[0]):
        weights[j] /= total


def best_mixture(payments: Array, fields: Array, *, simplex: bool) -> tuple[Array, Array]:
    """Return the best weights (m,), of h . p (m,) and h (m, n), and nature's mean (n,).

    On the simplex ``fields`` may be (m, r), what each of r listed choices of nature takes off each
    payment; the mean is its distribution over them.
    """
    return optimal_weights(payments, fields, simplex)


def mixture_of_least_value(
    values: Array, payments: Array, gains: Array, *, limit: float, box: bool
) -> Array | None:
    """Return the masses (m,) of least mean value with a worst case within a limit; or None.

    ``values`` and ``payments`` (m,) are v_j and c_j. ``gains`` (m, r) are the fields over the box,
    where nature chooses every one of the r numbers by itself; against r listed choices of nature
    what each takes off a payment.
    """
    n_points, n_choices_of_nature = gains.shape
    slack_coefficients = np.eye(n_choices_of_nature) if box else np.ones((n_choices_of_nature, 1))
    n_slacks = slack_coefficients.shape[1]
    no_slacks = np.zeros(n_slacks)
    least_slacks = no_slacks if box else np.full(n_slacks, -np.inf)
    # Columns are the masses w and the slacks s. Rows are the worst case, at most the limit; the sum
    # of the masses, which is 1; and s_i + sum_j w_j h_ji, at least 0, for every choice of nature.
    worst_case_row = np.append(payments, np.ones(n_slacks))
    mass_row = np.append(np.ones(n_points), no_slacks)
    rows_of_nature = np.hstack([gains.T, slack_coefficients])
    objective = np.append(values, no_slacks)
    rows = np.vstack([worst_case_row, mass_row, rows_of_nature])
    row_lower = np.append([-np.inf, 1.0], np.zeros(n_choices_of_nature))
    row_upper = np.append([limit, 1.0], np.full(n_choices_of_nature, np.inf))
    least_variables = np.append(np.zeros(n_points), least_slacks)
    program = Program(
        objective, rows, row_lower=row_lower, row_upper=row_upper, lower=least_variables
    )
    try:
        return np.maximum(solve(program).x[:n_points], 0.0)
    except UnsolvedError:
        return None
