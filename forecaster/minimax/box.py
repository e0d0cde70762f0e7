r"""The per-round game: a mixture over predictions against the worst outcome, with a certificate.

With H the normalised table of signed weights and q(r, p) the responses, let h(p) = sum_r q(r, p)
H_r in R^n. The forecaster chooses a law pi over predictions in the box [0, 1]^n, nature an s in
the box, and the forecaster pays

    E_pi[ h(p) . (p - s) ],        worst case   E_pi[h(p) . p] + sum_i max(0, -E_pi[h_i(p)]).

Where every s(y) lies in the simplex (indicators of cells), predictions are kept there too, and
the worst case is E_pi[h(p) . p] + max_i -E_pi[h_i(p)].

Its value is at most 0: against any law of s with mean m, predicting m pays 0. That is also the
way to solve it. The best mixture over a finite set of points is a small linear program whose dual
is the mean m that nature would choose; the point p = m answers it. The first points come from a
player that walks from last round's mean against h, with equal and then with shrinking steps. Where
they are not enough, the points of the last mixture and those of a walk from m join them and the
program is solved again, until its value is small enough.

The certificate is the worst case above, computed from the mixture that is returned. It covers
every s in the box or simplex, so it holds whatever outcomes the basis can produce. This file has
the points and the program; ``solver`` puts them together.
"""

from __future__ import annotations

import math

import highspy
import numba
import numpy as np

from regretless.forecaster.events.protected import RowArrays, Rows, arrays_of, respond, responses_at
from regretless.market.core.arrays import Array, Integers
from regretless.market.game.basis import Hull
from regretless.market.kernels.linear_programs import new_highs, optimise

# Forty equal steps look around, twenty shrinking ones close in. Measured on the adaptive stream:
# less regret than shrinking steps alone, and a smaller certificate than equal ones alone.
WALK = np.concatenate([np.full(40, 0.1), np.geomspace(0.1, 0.01, 20)])
STEPS = len(WALK)
# Below this tolerance, that of 62,500 rounds, the twenty end shorter. Measured on the i.i.d. stream
# after 200,000 rounds: 1.15 programs a round in place of 1.63.
FINE = 2e-4
SHORTER = np.concatenate([np.ones(40), np.geomspace(1, 0.1, 20)])
# From nature's answer, long steps and short ones. Answers alone did not suffice where 34 functions
# are predicted and less than 3e-4 is wanted: six programs a round, and some still above.
CLOSER = np.geomspace(0.1, 0.001, 40)


def walk_for(tolerance: float) -> Array:
    """Return the walk's steps (60,); below ``FINE`` the last ones shrink as the tolerance's square.

    A tolerance falls as 1 / sqrt(t), hence the steps as 1 / t, like the weight of one round in the
    biases and with it the distance from the last round's mixture to this one's.
    """
    return np.asarray(WALK * SHORTER ** max(0.0, 2 * math.log10(FINE / tolerance)))


@numba.njit(cache=True)
def field_into(rows: RowArrays, table: Array, point: Array, responses: Array, out: Array) -> None:
    """Write h(point) into ``out`` (n,)."""
    respond(rows, point, responses)
    out[:] = 0.0
    for r in range(table.shape[0]):
        if responses[r] > 0.0:
            for i in range(table.shape[1]):
                out[i] += responses[r] * table[r, i]


@numba.njit(cache=True)
def project(point: Array, simplex: bool) -> None:  # noqa: FBT001 - a compiled kernel
    """Move a point to the nearest one of the box or simplex."""
    if not simplex:
        for i in range(point.shape[0]):
            point[i] = min(1.0, max(0.0, point[i]))
        return
    descending = np.sort(point)[::-1]
    total, excess = 0.0, 0.0
    for i in range(descending.shape[0]):
        total += descending[i]
        if descending[i] * (i + 1) > total - 1.0:
            excess = (total - 1.0) / (i + 1)
    for i in range(point.shape[0]):
        point[i] = max(0.0, point[i] - excess)


@numba.njit(cache=True)
def _walk(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    rows: RowArrays,
    table: Array,
    origin: Array,
    steps: Array,
    simplex: bool,  # noqa: FBT001
    points: Array,
    fields: Array,
) -> None:
    """Walk against h, one step size after the other; the visited points and their fields."""
    responses = np.empty(table.shape[0])
    points[0] = origin
    for t in range(points.shape[0]):
        field_into(rows, table, points[t], responses, fields[t])
        if t + 1 < points.shape[0]:
            largest = np.abs(fields[t]).max()
            rate = steps[t] / largest if largest > 0.0 else 0.0
            for i in range(origin.shape[0]):
                points[t + 1, i] = points[t, i] - rate * fields[t, i]
            project(points[t + 1], simplex)


@numba.njit(cache=True)
def undominated(points: Array, fields: Array, kept: Integers) -> int:
    """Keep, of the points with equal fields, the one that pays least; write their indices."""
    count = 0
    for t in range(points.shape[0]):
        payment = 0.0
        for i in range(points.shape[1]):
            payment += fields[t, i] * points[t, i]
        place = count
        for c in range(count):
            equal, other = True, 0.0
            for i in range(points.shape[1]):
                equal = equal and fields[kept[c], i] == fields[t, i]
                other += fields[kept[c], i] * points[kept[c], i]
            if equal:
                place = c if payment < other else -1
                break
        if place >= 0:
            kept[place] = t
            count = max(count, place + 1)
    return count


def field_at(rows: Rows, table: Array, point: Array) -> Array:
    """Compute h(point) (n,)."""
    if rows.custom:
        return np.asarray(responses_at(rows, point) @ table)
    out = np.empty(table.shape[1])
    responses = np.empty(table.shape[0])
    field_into(arrays_of(rows), table, point, responses, out)
    return out


def _slow_walk(  # noqa: PLR0913 - the arguments of ``_walk``
    rows: Rows,
    table: Array,
    origin: Array,
    steps: Array,
    *,
    simplex: bool,
    visited: tuple[Array, Array],
) -> None:
    """Do what ``_walk`` does, for response rules that are not compiled."""
    points, fields = visited
    here = origin.copy()
    for t, step in enumerate(steps):
        points[t], fields[t] = here, field_at(rows, table, here)
        largest = np.abs(fields[t]).max()
        here = here - (step / largest if largest > 0.0 else 0.0) * fields[t]
        project(here, simplex)


def worst_case(mass: Array, points: Array, fields: Array, *, hull: Hull = "box") -> float:
    """Worst case over the hull of a mixture (m,), points and fields (m, n): its certificate."""
    mean = mass @ fields
    gain = mean.min() if hull == "simplex" else np.minimum(mean, 0.0).sum()
    return float(mass @ (points * fields).sum(1) - gain)


class MatrixGame:
    """The restricted game as a linear program, solved by HiGHS; one solver object is kept.

    Minimise sum_j w_j h_j.p_j + sum_i u_i subject to u_i + sum_j w_j h_ji >= 0, sum_j w_j = 1,
    all variables at least 0. The duals of the first n rows are nature's mean. On the simplex a
    single free u takes the place of all u_i.
    """

    def __init__(self, hull: Hull = "box") -> None:
        self.hull: Hull = hull
        self._solver = new_highs()

    def __reduce__(self) -> tuple[type[MatrixGame], tuple[Hull]]:
        """Copy as an equal game; it remembers nothing, and HiGHS cannot be copied."""
        return MatrixGame, (self.hull,)

    def solve(self, points: Array, fields: Array) -> tuple[Array, Array]:
        """Return the best weights (m,) and nature's mean (n,); UnsolvedError if HiGHS fails."""
        count, size = points.shape
        program = highspy.HighsLp()
        payments = 1 if self.hull == "simplex" else size
        width, least = count + payments, -np.inf if self.hull == "simplex" else 0.0
        program.num_col_, program.num_row_ = width, size + 1
        program.col_cost_ = np.concatenate([(points * fields).sum(1), np.ones(payments)])
        program.col_lower_ = np.concatenate([np.zeros(count), np.full(payments, least)])
        program.col_upper_ = np.full(width, np.inf)
        program.row_lower_ = np.concatenate([np.zeros(size), [1.0]])
        program.row_upper_ = np.concatenate([np.full(size, np.inf), [1.0]])
        matrix = np.zeros((size + 1, width))
        matrix[:size, :count] = fields.T
        matrix[:size, count:] = 1.0 if self.hull == "simplex" else np.eye(size)
        matrix[size, :count] = 1.0
        program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        program.a_matrix_.start_ = np.arange(size + 2) * width
        program.a_matrix_.index_ = np.tile(np.arange(width), size + 1)
        program.a_matrix_.value_ = matrix.ravel()
        self._solver.passModel(program)
        optimise(self._solver)
        solution = self._solver.getSolution()
        mass = np.maximum(np.array(solution.col_value)[:count], 0.0)
        mean = np.clip(np.array(solution.row_dual)[:size], 0.0, 1.0)
        if self.hull == "simplex":
            mean /= mean.sum()
        return mass / mass.sum(), mean


def walked(
    rows: Rows, table: Array, origin: Array, *, hull: Hull = "box", steps: Array = WALK
) -> tuple[Array, Array]:
    """Walk against h from ``origin``; all points visited and their fields (one per step, n)."""
    points, fields = np.empty((2, len(steps), table.shape[1]))
    simplex = hull == "simplex"
    if rows.custom:
        _slow_walk(rows, table, origin, steps, simplex=simplex, visited=(points, fields))
    else:
        _walk(arrays_of(rows), table, origin, steps, simplex, points, fields)
    return points, fields


def explore(
    rows: Rows, table: Array, origin: Array, *, hull: Hull = "box", steps: Array = WALK
) -> tuple[Array, Array]:
    """Walk against h from ``origin``; the undominated points visited and their fields (m, n).

    Of two points with the same responses, hence the same field h, the one with the smaller h . p
    is the better answer to every outcome.
    """
    points, fields = walked(rows, table, origin, hull=hull, steps=steps)
    kept = np.empty(len(steps), dtype=np.int64)
    kept = kept[: undominated(points, fields, kept)]
    return points[kept], fields[kept]
