r"""The per-round game: a mixture over predictions against the worst outcome, with a certificate.

With H the normalised table of signed weights and q(r, p) the responses, let h(p) = sum_r q(r, p)
H_r in R^n. The forecaster chooses a distribution pi over predictions in the box [0, 1]^n, nature
an s in the box, and the forecaster pays

    E_pi[ h(p) . (p - s) ],        worst case   E_pi[h(p) . p] + sum_i max(0, -E_pi[h_i(p)]).

Where every s(y) lies in the simplex (indicators of cells), predictions are kept there too, and
the worst case is E_pi[h(p) . p] + max_i -E_pi[h_i(p)].

Its value is at most 0: against any distribution of s with mean m, predicting m pays 0. That is
also the way to solve it. The best mixture over a finite set of points is a small linear program
(``program``) whose dual is the mean m that nature would choose; the point p = m answers it. The
first points come from a player that walks from last round's mean against h, with equal and then
with shrinking steps. Where they are not enough, the points of the last mixture and those of a
walk from m join them and the program is solved again, until its value is small enough.

The certificate is the worst case above, computed from the mixture that is returned. It covers
every s in the box or simplex, so it holds whatever outcomes the basis can produce. ``cube`` puts
points and programs together.
"""

import math

import numpy as np

from regretless.forecaster.events.protected import (
    LossTable,
    Room,
    RowArrays,
    arrays_of,
    choose,
    responses_at,
    room_for,
)
from regretless.market.core.arrays import Array, Integers
from regretless.market.core.compiled import compiled

# Forty equal steps look around, twenty shrinking ones close in. Measured on the adaptive stream:
# less regret than shrinking steps alone, and a smaller certificate than equal ones alone.
WALK = np.concatenate([np.full(40, 0.1), np.geomspace(0.1, 0.01, 20)])
STEPS = len(WALK)
# Below this tolerance, that of round 625, the twenty end shorter: fewer rounds need two programs.
FINE = 2e-3
SHORTER = np.concatenate([np.ones(40), np.geomspace(1, 0.1, 20)])
NEAR, TURN = 1e-3, 20  # the shortest steps from nature's answer, and when they shrink again
# Where coefficients add up to the same for all actions, corners of the box are ties. Points that
# shall not tie keep off its sides by about this share of the tolerance; drawing all in piles up.
INSET = 0.1
GOLDEN = (math.sqrt(5) - 1) / 2


def steps_for(tolerance: float) -> Array:
    """Return the sizes of 60 steps; below ``FINE`` the last shrink as the tolerance, like 1 / t."""
    return np.asarray(WALK * SHORTER ** max(0.0, math.log10(FINE / tolerance)))


def closer_steps(tolerance: float) -> Array:
    """Return the sizes of 40 steps from nature's answer, which grow and shrink again.

    Short steps first come to the end of the answer's own cell, where it pays least.
    """
    grow = np.geomspace(min(NEAR, tolerance), 0.1, TURN)
    return np.append(grow, grow[::-1])


@compiled()
def field_into(rows: RowArrays, table: Array, point: Array, room: Room, out: Array) -> None:
    """Write h(point) into ``out`` (n,)."""
    choose(rows, point, room)
    chances, played = room[0].ravel(), room[1]
    out[:] = 0.0
    for k in range(played.shape[0]):
        for r in range(played[k, 0], played[k, 1]):
            if chances[r] > 0.0:
                for i in range(table.shape[1]):
                    out[i] += chances[r] * table[r, i]


@compiled()
def _field(rows: RowArrays, table: Array, point: Array) -> Array:
    out = np.empty(table.shape[1])
    field_into(rows, table, point, room_for(rows), out)
    return out


@compiled()
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


@compiled()
def keep_off(point: Array, inset: float, simplex: bool) -> None:  # noqa: FBT001
    """Keep a point off the sides of the hull, of no two by the same distance."""
    size = point.shape[0]
    for i in range(size):
        share = 0.25 + 0.5 * ((i + 1) * GOLDEN % 1.0)
        if simplex:
            point[i] += inset * share
        else:
            point[i] = min(1.0 - inset * (1.0 - share), max(inset * share, point[i]))
    if simplex:
        point /= point.sum()


@compiled()
def _walk(  # noqa: PLR0913 - a compiled kernel takes plain arrays
    rows: RowArrays,
    table: Array,
    origin: Array,
    steps: Array,
    inset: float,
    simplex: bool,  # noqa: FBT001
    points: Array,
    fields: Array,
) -> None:
    """Walk against h, one step size after the other; the visited points and their fields."""
    room = room_for(rows)
    points[0] = origin
    for t in range(points.shape[0]):
        if inset > 0.0:
            keep_off(points[t], inset, simplex)
        field_into(rows, table, points[t], room, fields[t])
        if t + 1 < points.shape[0]:
            largest = np.abs(fields[t]).max()
            rate = steps[t] / largest if largest > 0.0 else 0.0
            for i in range(origin.shape[0]):
                points[t + 1, i] = points[t, i] - rate * fields[t, i]
            project(points[t + 1], simplex)


@compiled()
def _undominated(points: Array, fields: Array, kept: Integers) -> int:
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


def field_at(rows: LossTable, table: Array, point: Array) -> Array:
    """Compute h(point) (n,)."""
    if rows.custom:
        return np.asarray(responses_at(rows, point) @ table)
    return np.asarray(_field(arrays_of(rows), table, point))


def walked(  # noqa: PLR0913 - a walk has these settings
    rows: LossTable,
    table: Array,
    origin: Array,
    *,
    steps: Array = WALK,
    inset: float = 0.0,
    simplex: bool = False,
) -> tuple[Array, Array]:
    """Walk against h from ``origin``, at most ``inset`` off the sides; points and fields (T, n)."""
    points, fields = np.empty((2, len(steps), table.shape[1]))
    if not rows.custom:
        _walk(arrays_of(rows), table, origin, steps, inset, simplex, points, fields)
        return points, fields
    here = origin.copy()  # response rules that are not compiled
    for t, step in enumerate(steps):
        if inset > 0.0:
            keep_off(here, inset, simplex)
        points[t], fields[t] = here, field_at(rows, table, here)
        largest = np.abs(fields[t]).max()
        here = here - (step / largest if largest > 0.0 else 0.0) * fields[t]
        project(here, simplex)
    return points, fields


def undominated(points: Array, fields: Array) -> Integers:
    """Return which points (m, n) to keep: of those with equal fields the one that pays least."""
    kept = np.empty(len(points), dtype=np.int64)
    return kept[: _undominated(points, fields, kept)]
