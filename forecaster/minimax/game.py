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

A **solver** works over one set of possible s(y): the box, the simplex or conv s(Y). It returns a
mixture of predictions in that set, and as certificate the mixture's worst case over the whole set,
so that it holds whatever the outcome is. A solver remembers where the last round ended, and may
have an objective (``program``).

    Box, Simplex    ``cube``       predictions are points
    Line            ``universal``  predictions of one number, in dyadic cells
    Image           ``image``      predictions are weighted outcomes in conv s(Y)
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from regretless.forecaster.events.loss_table import (
    LossTable,
    Room,
    RowArrays,
    choose,
    responses_at,
    room_for,
)
from regretless.market.core.arrays import Array, Integers
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import ParameterError, brief
from regretless.market.losses.basis import Hull
from regretless.market.records import Ensemble

# Forty equal steps look around, twenty shrinking ones close in: on the adaptive stream less regret
# than shrinking steps alone, and a smaller certificate than equal ones alone.
WALK = np.concatenate([np.full(40, 0.1), np.geomspace(0.1, 0.01, 20)])
STEPS = len(WALK)
# Below this tolerance, that of round 625, the twenty end shorter: fewer rounds need two programs.
FINE = 2e-3
SHORTER = np.concatenate([np.ones(40), np.geomspace(1, 0.1, 20)])
# Where coefficients add up to the same for all actions, corners of the box are ties. Points that
# shall not tie keep off its sides by about this share of the tolerance; drawing all in piles up.
INSET = 0.1
GOLDEN = (math.sqrt(5) - 1) / 2
LIGHTEST = 1e-9  # atoms with less weight are dropped


def steps_for(tolerance: float) -> Array:
    """Return the sizes of 60 steps; below ``FINE`` the last shrink as the tolerance, like 1 / t."""
    if tolerance >= FINE:
        return WALK
    return np.asarray(WALK * SHORTER ** max(0.0, math.log10(FINE / tolerance)))


@compiled()
def field_into(rows: RowArrays, table: Array, point: Array, room: Room, out: Array) -> None:
    """Write h(point) into ``out`` (n,)."""
    choose(rows, point, room)
    _, chances, played = room
    for i in range(out.shape[0]):
        out[i] = 0.0
    for k in range(played.shape[0]):
        for r in range(played[k, 0], played[k, 1]):
            if chances[r] > 0.0:
                for i in range(table.shape[1]):
                    out[i] += chances[r] * table[r, i]


@compiled()
def sort_descending(values: Array) -> None:
    """Sort numbers (n,) in place, the greatest first: insertion sort over shrinking gaps.

    NumPy's sort gives the same numbers. Numba takes 4 seconds of a processor to
    compile it, and a quarter of a second for this (Shell 1959, "A high-speed sorting procedure").
    """
    gap = values.shape[0] // 2
    while gap > 0:
        for i in range(gap, values.shape[0]):
            value = values[i]
            j = i
            while j >= gap and values[j - gap] < value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 2


@compiled()
def project(point: Array, simplex: bool) -> None:  # noqa: FBT001 - a compiled kernel
    """Move a point (n,) in place to the nearest one of the box or simplex.

    Plain loops: expressions of whole arrays bring the formatting of errors about their shapes,
    which takes longer to compile than everything else here.
    """
    size = point.shape[0]
    if not simplex:
        for i in range(size):
            if point[i] <= 0.0:  # -0 becomes 0
                point[i] = 0.0
            elif point[i] > 1.0:
                point[i] = 1.0
        return
    descending = np.empty(size)
    for i in range(size):
        descending[i] = point[i]
    sort_descending(descending)
    total = 0.0
    excess = 0.0
    for i in range(size):
        total += descending[i]
        if descending[i] * (i + 1) > total - 1.0:
            excess = (total - 1.0) / (i + 1)
    for i in range(size):
        moved = point[i] - excess
        point[i] = max(0.0, moved)


@compiled()
def keep_off(point: Array, inset: float, simplex: bool) -> None:  # noqa: FBT001
    """Keep a point (n,) off the sides of the hull in place, of no two by the same distance."""
    total = 0.0
    for i in range(point.shape[0]):
        share = 0.25 + 0.5 * ((i + 1) * GOLDEN % 1.0)
        if simplex:
            point[i] += inset * share
            total += point[i]
        else:
            point[i] = min(1.0 - inset * (1.0 - share), max(inset * share, point[i]))
    if simplex:
        for i in range(point.shape[0]):
            point[i] /= total


@compiled()
def _step_into(point: Array, field: Array, step: float, simplex: bool, out: Array) -> None:  # noqa: FBT001
    """Write into ``out`` (n,) the nearest point of the hull to one moved against its field."""
    largest = 0.0
    for i in range(field.shape[0]):
        largest = max(largest, abs(field[i]))
    length = step / largest if largest > 0.0 else 0.0
    for i in range(field.shape[0]):
        out[i] = point[i] - length * field[i]
    project(out, simplex)


@compiled()
def _walk(
    rows: RowArrays,
    table: Array,
    steps: Array,
    inset: float,
    simplex: bool,  # noqa: FBT001
    room: Room,
    points: Array,
    fields: Array,
) -> None:
    """Walk from the first of the points, one step size after the other; write points and fields."""
    for t in range(points.shape[0]):
        if inset > 0.0:
            keep_off(points[t], inset, simplex)
        field_into(rows, table, points[t], room, fields[t])
        if t + 1 < points.shape[0]:
            _step_into(points[t], fields[t], steps[t], simplex, points[t + 1])


@compiled()
def undominated(points: Array, fields: Array) -> Integers:
    """Return which points (m, n) to keep: of those with equal fields the one that pays least."""
    kept = np.empty(len(points), np.int64)
    payments = np.zeros(len(points))
    count = 0
    for t in range(len(points)):
        for i in range(points.shape[1]):
            payments[t] += fields[t, i] * points[t, i]
        slot = count
        for c in range(count):
            equal = True
            for i in range(points.shape[1]):
                equal = equal and fields[kept[c], i] == fields[t, i]
            if equal:
                slot = c if payments[t] < payments[kept[c]] else -1
                break
        if slot >= 0:
            kept[slot] = t
            count = max(count, slot + 1)
    return kept[:count]


def field_at(rows: LossTable, table: Array, point: Array) -> Array:
    """Compute h(point) (n,)."""
    if rows.custom:
        return np.asarray(responses_at(rows, point) @ table)
    field = np.empty(table.shape[1])
    field_into(rows.arrays, table, point, room_for(rows.arrays), field)
    return field


def walked(
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
    points[0] = point = origin
    if not rows.custom:
        _walk(rows.arrays, table, steps, inset, simplex, room_for(rows.arrays), points, fields)
        return points, fields
    for t, step in enumerate(steps):  # response rules that are not compiled
        points[t] = point
        if inset > 0.0:
            keep_off(points[t], inset, simplex)
        fields[t] = field_at(rows, table, points[t])
        point = np.empty_like(points[t])
        _step_into(points[t], fields[t], step, simplex, point)
    return points, fields


@dataclass(frozen=True, eq=False)
class Solution:
    """A mixture with its certificate."""

    points: Array  # (m, n)
    mass: Array = field(default_factory=lambda: np.ones(1))  # (m,), unless they are to be chosen
    certificate: float | None = None  # worst case over the hull; None where no game was played
    ensembles: tuple[Ensemble, ...] | None = None  # each point as weighted outcomes, if known
    unchanged: bool = False  # whether this is the candidate alone


Objective = Callable[[Solution], Array]  # of its points: values (m,), the less the better


@dataclass(frozen=True, eq=False)
class Game:
    """A round's game: how predictions are answered, and what each answer weighs."""

    rows: LossTable
    table: Array  # (lines, n) H, the normalised signed weights; cells follow the rows
    tolerance: float  # above 0: the certificate that is good enough
    start: Solution  # the single point from which to start
    inset: float = 0.0  # by how much points keep off the sides

    def field(self, point: Array) -> Array:
        """Compute h (n,) at a point (n,)."""
        lines = self.rows.shape[0]
        field_of_losses = field_at(self.rows, self.table[:lines], point)
        cells = self.table[lines:, 0]
        return np.asarray(field_of_losses + pulls(cells, point)) if len(cells) else field_of_losses

    def fields(self, points: Array) -> Array:
        """Compute h (m, n) at points (m, n)."""
        return np.array([self.field(point) for point in points]).reshape(points.shape)


class HullSolver(Checkpointable, ABC):
    """Solves every round's game over one set of possible s(y), starting from the last round's.

    One that is ``preferring`` plays a game where a model could be broadcast as it is, too; of the
    mixtures that are good enough it takes the one with the least ``objective``, once it has any.
    """

    size: int  # numbers of a prediction, n
    hull: Hull  # the set, as bounds and tables call it
    spelled: bool = False  # whether every point comes with its weighted outcomes
    off_ties: bool = False  # whether points keep off the sides of the hull
    preferring: bool = False
    objective: Objective | None = None

    def prefer(self, values: Objective) -> None:
        """Prefer mixtures with a low objective among those that are good enough."""
        self.preferring = True
        self.objective = values

    @abstractmethod
    def single(self, point: Array) -> Solution:
        """Return the nearest point of the hull to ``point`` (n,), without a certificate."""

    @property
    @abstractmethod
    def origin(self) -> Solution:
        """The single point from which the next round starts: the mean of the last mixture."""

    @abstractmethod
    def remember(self, solution: Solution) -> None:
        """Start the next round from this one."""

    @abstractmethod
    def worst(self, mass: Array, points: Array, fields: Array) -> float:
        """Worst case over the hull of a mixture (m,) of points with fields (m, n)."""

    @abstractmethod
    def choices(self, game: Game) -> Solution:
        """Return points of the hull for an objective to choose from; their masses mean nothing."""

    @abstractmethod
    def best_within(
        self, values: Array, points: Array, fields: Array, *, limit: float
    ) -> Array | None:
        """Return the masses (m,) of least mean value with a worst case within a limit, or None."""

    @abstractmethod
    def _play(self, game: Game) -> Solution:
        """Return a mixture with its certificate."""

    def check(self, statistics: Array) -> None:
        """Raise ParameterError unless ``statistics`` (n,) are a possible s(y)."""
        if statistics.shape != (self.size,) or not ((statistics >= 0) & (statistics <= 1)).all():
            fault = f"y = {brief(statistics.tolist())}"
            raise ParameterError(f"{fault}: update needs {self.size} numbers in [0, 1]")

    def solve(
        self, rows: LossTable, table: Array, *, tolerance: float, candidate: Solution | None = None
    ) -> Solution:
        """Return a mixture with its certificate, for H (R, n) and a ``tolerance`` as in ``Game``.

        A ``candidate``, the ``single`` point of a model's forecast, is the solution where its
        certificate alone is within the tolerance, and the point to start from where it is not.
        """
        start = candidate or self.origin
        inset = 0.0
        if self.off_ties:
            inset = INSET * tolerance
        game = Game(rows, table, tolerance, start, inset)
        worst_of_candidate = np.inf
        if candidate is not None:
            worst_of_candidate = self.worst(start.mass, start.points, game.fields(start.points))
        if worst_of_candidate <= tolerance:
            solved = replace(start, certificate=worst_of_candidate)
        else:
            solved = self._play(game)
        if self.objective is None:
            return solved
        return self._preferred(self.objective, game, solved)

    def _preferred(self, objective: Objective, game: Game, solved: Solution) -> Solution:
        """Return the mixture with the least objective of those as good as the solved game's."""
        offered = self.choices(game)
        all_points = np.vstack([solved.points, offered.points])
        points, first_index = np.unique(all_points, axis=0, return_index=True)
        all_ensembles = (*(solved.ensembles or ()), *(offered.ensembles or ()))
        ensembles = None
        if all_ensembles:
            ensembles = tuple(all_ensembles[j] for j in first_index)
        fields = game.fields(points)
        # within rounding of the limit no program could be sure of it
        limit = max(game.tolerance, (solved.certificate or 0.0) + LIGHTEST)
        values = objective(Solution(points, ensembles=ensembles))
        mass = self.best_within(values, points, fields, limit=limit)
        if mass is None:
            return solved
        weighted = np.flatnonzero(mass > LIGHTEST)
        mass = mass[weighted] / mass[weighted].sum()
        worst_case = self.worst(mass, points[weighted], fields[weighted])
        if worst_case > limit + LIGHTEST:
            return solved
        kept_ensembles = None
        if ensembles is not None:
            kept_ensembles = tuple(ensembles[j] for j in weighted)
        return Solution(points[weighted], mass, worst_case, kept_ensembles)


@compiled()
def pulls(cells: Array, points: Array) -> Array:
    """Add up the weights of the dyadic cells that hold points (m,) of [0, 1).

    Cell i of scale s has number 2^s + i - 2 of the ``cells`` (2^(S + 1) - 2,).
    """
    finest = cells.shape[0] // 2 + 1
    out = np.zeros(points.shape[0])
    for j in range(points.shape[0]):
        node = finest + int(points[j] * finest)
        while node > 1:
            out[j] += cells[node - 2]
            node >>= 1
    return out
