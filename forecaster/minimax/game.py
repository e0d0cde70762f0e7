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
from functools import cached_property

import numpy as np

from regretless.forecaster.events.loss_table import (
    LossTable,
    ResponseScratch,
    response_scratch,
    responses_at,
    write_responses,
)
from regretless.market.core.arrays import Array, Integers, is_within_unit_cube
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
FINE_TOLERANCE = 2e-3
SHRINKING = np.concatenate([np.ones(40), np.geomspace(1, 0.1, 20)])
# Where coefficients add up to the same for all actions, corners of the box are ties. Points that
# shall not tie keep off its sides by about this share of the tolerance; drawing all in piles up.
INSET = 0.1
GOLDEN = (math.sqrt(5) - 1) / 2
# Shares that are all unlike, so that no symmetry makes losses tie: 1/4, and of this range the
# fractional parts of multiples of the golden ratio.
LEAST_UNLIKE_SHARE = 0.25
RANGE_OF_UNLIKE_SHARES = 0.5
MIN_MASS = 1e-9  # of an atom; lighter ones are dropped
ROUNDING = 1e-9  # of a worst case, and of a sum of a prediction's numbers
ROUNDS_OF_LEAST_SHIFT = 3  # in which numbers that become 0 in the simplex are left aside


def steps_for(tolerance: float) -> Array:
    """Return the sizes of 60 steps: of a ``FINE_TOLERANCE`` the last ones shrink with it."""
    if tolerance >= FINE_TOLERANCE:
        return WALK
    return np.asarray(WALK * SHRINKING ** max(0.0, math.log10(FINE_TOLERANCE / tolerance)))


@compiled(counts_references=False)
def add_field(
    signed_weights: Array, play_chance: Array, played_rows: Integers, field: Array
) -> None:
    """Add h = sum_r q(r) H_r of the rows that are played to a field (compiled).

    Parameters
    ----------
    signed_weights : array (R, n)
        H, the round's game.
    play_chance, played_rows : arrays
        q, as ``write_responses`` writes them.
    field : array (n,)
        Added to in place.
    """
    for k in range(played_rows.shape[0]):
        for r in range(played_rows[k, 0], played_rows[k, 1]):
            if play_chance[r] > 0.0:
                for i in range(signed_weights.shape[1]):
                    field[i] += play_chance[r] * signed_weights[r, i]


@compiled()
def write_field(
    offset: Array,
    weights: Array,
    start: Integers,
    eta: Array,
    tie: Array,
    signed_weights: Array,
    point: Array,
    losses_in_blocks: Array,
    play_chance: Array,
    played_rows: Integers,
    field: Array,
) -> None:
    """Write h(point) = sum_r q(r, point) H_r (compiled).

    Parameters
    ----------
    offset, weights, start, eta, tie : arrays
        The loss table, of R rows, as in ``RowArrays``.
    signed_weights : array (R, n)
        H, the round's game.
    point : array (n,)
        The prediction.
    losses_in_blocks, play_chance, played_rows : arrays
        ``ResponseScratch``, overwritten.
    field : array (n,)
        Written.
    """
    write_responses(
        offset, weights, start, eta, tie, point, losses_in_blocks, play_chance, played_rows
    )
    for i in range(field.shape[0]):
        field[i] = 0.0
    add_field(signed_weights, play_chance, played_rows, field)


@compiled(counts_references=False)
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


@compiled(counts_references=False)
def move_into_hull(
    point: Array,
    simplex: bool,  # noqa: FBT001 - a compiled kernel
    descending: Array,
) -> None:
    """Move a point (n,) in place to the nearest one of the box or simplex.

    ``descending`` (n,) is overwritten where the hull is the simplex.

    Plain loops: expressions of whole arrays bring the formatting of errors about their shapes,
    which takes longer to compile than everything else here.
    """
    if simplex:
        _move_into_simplex(point, descending)
    else:
        move_into_box(point)


@compiled(counts_references=False)
def move_into_box(point: Array) -> None:
    """Clip a point (n,) to [0, 1] in place."""
    for i in range(point.shape[0]):
        if point[i] <= 0.0:  # -0 becomes 0
            point[i] = 0.0
        elif point[i] > 1.0:
            point[i] = 1.0


@compiled(counts_references=False)
def _move_into_simplex(point: Array, descending: Array) -> None:
    """Move a point (n,) in place to the nearest one of the simplex: max(p_i - shift, 0), sum 1.

    ``descending`` (n,) is overwritten with the point's greatest numbers in that order.
    """
    size = point.shape[0]
    # The nearest point is max(point - shift, 0), with the shift at which its sum is 1. The shift is
    # at least (sum - 1) / count of any entries: those below that become 0, and need no place in the
    # order. A few rounds leave hardly more than the entries that stay positive.
    least_shift = -np.inf
    count = size
    for _ in range(ROUNDS_OF_LEAST_SHIFT):
        total = 0.0
        count = 0
        for i in range(size):
            stays = point[i] > least_shift
            total += point[i] if stays else 0.0
            count += 1 if stays else 0
        least_shift = (total - 1.0) / count - ROUNDING
    count = 0
    for i in range(size):
        if point[i] > least_shift:
            descending[count] = point[i]
            count += 1
    sort_descending(descending[:count])
    # Of the i + 1 greatest entries that stay positive each gives up an equal part of what is too
    # much.
    total = 0.0
    shift = 0.0
    for i in range(count):
        total += descending[i]
        if descending[i] * (i + 1) > total - 1.0:
            shift = (total - 1.0) / (i + 1)
    for i in range(size):
        point[i] = max(0.0, point[i] - shift)


@compiled(counts_references=False)
def move_inside(point: Array, distance_off_sides: float, simplex: bool) -> None:  # noqa: FBT001
    """Move a point (n,) in place off the sides of the hull, off no two by the same distance.

    ``distance_off_sides`` bounds the distance, in units of the prediction.
    """
    total = 0.0
    for i in range(point.shape[0]):
        share = LEAST_UNLIKE_SHARE + RANGE_OF_UNLIKE_SHARES * ((i + 1) * GOLDEN % 1.0)
        if simplex:
            point[i] += distance_off_sides * share
            total += point[i]
        else:
            point[i] = min(
                1.0 - distance_off_sides * (1.0 - share), max(distance_off_sides * share, point[i])
            )
    if simplex:
        for i in range(point.shape[0]):
            point[i] /= total


@compiled(counts_references=False)
def _write_next_point(
    next_point: Array,
    point: Array,
    field: Array,
    step: float,
    simplex: bool,  # noqa: FBT001
    descending: Array,
) -> None:
    """Write the next point (n,) of a walk: one step from a point against its field, in the hull.

    With p the ``point`` and h the ``field``, ``next_point`` is the point of the hull nearest to
    p - step h / max_i |h_i|. ``descending`` (n,) is overwritten.
    """
    largest = 0.0
    for i in range(field.shape[0]):
        largest = max(largest, abs(field[i]))
    length = step / largest if largest > 0.0 else 0.0
    for i in range(field.shape[0]):
        next_point[i] = point[i] - length * field[i]
    move_into_hull(next_point, simplex, descending)


@compiled(counts_references=False)
def _steps_since_equal_point(points: Array, t: int) -> int:
    """Return how many steps ago a walk stood where it stands at step t: 1, 2, or 0 for neither.

    ``points`` (T, n) are those of the walk, the first t + 1 of them written.
    """
    for steps_ago in range(1, min(t, 2) + 1):
        i = 0
        while i < points.shape[1] and points[t, i] == points[t - steps_ago, i]:
            i += 1
        if i == points.shape[1]:  # all are equal
            return steps_ago
    return 0


@compiled(counts_references=False)
def write_walk(
    points: Array,
    fields: Array,
    offset: Array,
    weights: Array,
    start: Integers,
    eta: Array,
    tie: Array,
    signed_weights: Array,
    steps: Array,
    distance_off_sides: float,
    simplex: bool,  # noqa: FBT001
    losses_in_blocks: Array,
    play_chance: Array,
    played_rows: Integers,
    descending: Array,
) -> None:
    """Walk against h from the first of the points (compiled).

    Many walks soon stand still in a corner, or go back and forth over a tie. What was found one or
    two steps ago is copied then: h as long as the point is the same, and the next point as long as
    the step is, too.

    Parameters
    ----------
    points : array (T, n)
        The first is where the walk begins; the others are written.
    fields : array (T, n)
        h at the points; written.
    offset, weights, start, eta, tie : arrays
        The loss table, as in ``RowArrays``.
    signed_weights : array (R, n)
        H, the round's game.
    steps : array (T,)
        Sizes of the steps, in units of the prediction; the last is not taken.
    distance_off_sides : float
        How far points are kept off the sides of the hull.
    simplex : bool
        Whether the hull is the simplex, and not the box.
    losses_in_blocks, play_chance, played_rows : arrays
        ``ResponseScratch``, overwritten.
    descending : array (n,)
        Overwritten.
    """
    goes_in_circle = False  # whether the point is known to be the one of ``period`` steps ago
    period = 0
    for t in range(points.shape[0]):
        point = points[t]
        field = fields[t]
        if goes_in_circle:
            for i in range(point.shape[0]):
                point[i] = points[t - period, i]
        else:
            if distance_off_sides > 0.0:
                move_inside(point, distance_off_sides, simplex)
            period = _steps_since_equal_point(points, t)
        if period > 0:
            for i in range(field.shape[0]):
                field[i] = fields[t - period, i]
        else:
            for i in range(field.shape[0]):
                field[i] = 0.0
            write_responses(
                offset, weights, start, eta, tie, point, losses_in_blocks, play_chance, played_rows
            )
            add_field(signed_weights, play_chance, played_rows, field)
        if t + 1 < points.shape[0]:
            goes_in_circle = period > 0 and steps[t] == steps[t - period]
            if not goes_in_circle:
                _write_next_point(points[t + 1], point, field, steps[t], simplex, descending)


@compiled()
def undominated(points: Array, fields: Array) -> Integers:
    """Return which points (m, n) to keep: of those with equal fields the one that pays least."""
    # At an outcome y a point p with the field h costs the forecaster h . p - h . s(y). Points with
    # equal fields differ in h . p alone, whatever the outcome is: the least is the best.
    kept = np.empty(len(points), np.int64)
    payments = np.zeros(len(points))  # h . p
    count = 0
    for t in range(len(points)):
        for i in range(points.shape[1]):
            payments[t] += fields[t, i] * points[t, i]
        slot = count  # the place in ``kept`` that the point takes: a new one, another's, or -1
        for c in range(count):
            i = 0
            while i < points.shape[1] and fields[kept[c], i] == fields[t, i]:
                i += 1
            if i == points.shape[1]:  # all are equal
                slot = c if payments[t] < payments[kept[c]] else -1
                break
        if slot >= 0:
            kept[slot] = t
            count = max(count, slot + 1)
    return kept[:count]


def field_at(
    rows: LossTable, signed_weights: Array, point: Array, scratch: ResponseScratch
) -> Array:
    """Compute h(point) (n,) of a game H (R, n); ``scratch`` is overwritten."""
    if rows.custom:
        return np.asarray(responses_at(rows, point) @ signed_weights)
    field = np.empty(signed_weights.shape[1])
    write_field(*rows.arrays, signed_weights, point, *scratch, field)
    return field


def walked(
    rows: LossTable,
    signed_weights: Array,
    origin: Array,
    *,
    steps: Array = WALK,
    distance_off_sides: float = 0.0,
    simplex: bool = False,
) -> tuple[Array, Array]:
    """Walk against h from ``origin``; return points and fields (T, n).

    Points keep up to ``distance_off_sides`` off the sides of the hull.
    """
    points = np.empty((len(steps), signed_weights.shape[1]))
    fields = np.empty_like(points)
    points[0] = origin
    scratch = response_scratch(rows.arrays)
    descending = np.empty(signed_weights.shape[1])
    if not rows.custom:
        write_walk(
            points,
            fields,
            *rows.arrays,
            signed_weights,
            steps,
            distance_off_sides,
            simplex,
            *scratch,
            descending,
        )
        return points, fields
    point = origin
    for t, step in enumerate(steps):  # response rules that are not compiled
        points[t] = point
        if distance_off_sides > 0.0:
            move_inside(points[t], distance_off_sides, simplex)
        fields[t] = field_at(rows, signed_weights, points[t], scratch)
        point = np.empty_like(points[t])
        _write_next_point(point, points[t], fields[t], step, simplex, descending)
    return points, fields


CERTAIN_MASS = np.ones(1)  # of a single point; nothing writes into the mass of a solution


def _certain_mass() -> Array:
    """Return the mass of a single point."""
    return CERTAIN_MASS


@dataclass(eq=False)
class Solution:
    """A mixture with its certificate."""

    points: Array  # (m, n)
    mass: Array = field(default_factory=_certain_mass)  # (m,), unless they are to be chosen
    certificate: float | None = None  # worst case over the hull; None where no game was played
    ensembles: tuple[Ensemble, ...] | None = None  # each point as weighted outcomes, if known
    unchanged: bool = False  # whether this is the candidate alone


Objective = Callable[[Solution], Array]  # of its points: values (m,), the less the better


@dataclass(eq=False)
class Game:
    """A round's game: how predictions are answered, and what each answer weighs."""

    rows: LossTable
    signed_weights: Array  # H, of the losses' rows (R, n), then of dyadic cells if there are any
    tolerance: float  # above 0: the certificate that is good enough
    start: Solution  # the single point from which to start
    distance_off_sides: float = 0.0  # by how much points keep off the sides

    def field(self, point: Array) -> Array:
        """Compute h (n,) at a point (n,)."""
        field_of_losses = field_at(self.rows, self._weights_of_losses, point, self._scratch)
        if not len(self._cell_weights):
            return field_of_losses
        return np.asarray(field_of_losses + field_of_cells(self._cell_weights, point))

    @cached_property
    def _weights_of_losses(self) -> Array:
        """The part of H for the losses' rows (R, n)."""
        return self.signed_weights[: self.rows.shape[0]]

    @cached_property
    def _cell_weights(self) -> Array:
        """The part of H for dyadic cells."""
        return self.signed_weights[self.rows.shape[0] :, 0]

    @cached_property
    def _scratch(self) -> ResponseScratch:
        """Arrays that ``field`` overwrites."""
        return response_scratch(self.rows.arrays)

    def fields(self, points: Array) -> Array:
        """Compute h (m, n) at points (m, n)."""
        fields = np.empty(points.shape)
        for point, field_at_point in zip(points, fields, strict=True):
            field_at_point[:] = self.field(point)
        return fields


class HullSolver(Checkpointable, ABC):
    """Solves every round's game over one set of possible s(y), starting from the last round's.

    One that is ``preferring`` plays a game where a model could be broadcast as it is, too; of the
    mixtures that are good enough it takes the one with the least ``objective``, once it has any.
    """

    size: int  # numbers of a prediction, n
    hull: Hull  # the set, as bounds and tables call it
    has_ensembles: bool = False  # whether every point comes with its weighted outcomes
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
    def worst_case(self, mass: Array, points: Array, fields: Array) -> float:
        """Return a mixture's certificate, its cost at the worst s(y) of the hull.

        The mixture has masses (m,), points and fields (m, n); it costs h . (p - s(y)) on average.
        """

    @abstractmethod
    def choices(self, game: Game) -> Solution:
        """Return points of the hull for an objective to choose from; their masses mean nothing."""

    @abstractmethod
    def best_mixture_within(
        self, values: Array, points: Array, fields: Array, *, limit: float
    ) -> Array | None:
        """Return the masses (m,) of least mean value with a worst case within a limit, or None."""

    @abstractmethod
    def _play(self, game: Game) -> Solution:
        """Return a mixture with its certificate."""

    def check(self, statistics: Array) -> None:
        """Raise ParameterError unless ``statistics`` (n,) are a possible s(y)."""
        if statistics.shape != (self.size,) or not is_within_unit_cube(statistics):
            fault = f"y = {brief(statistics.tolist())}"
            raise ParameterError(f"{fault}: update needs {self.size} numbers in [0, 1]")

    def solve(
        self,
        rows: LossTable,
        signed_weights: Array,
        *,
        tolerance: float,
        candidate: Solution | None = None,
    ) -> Solution:
        """Return a mixture with its certificate; H and the ``tolerance`` are as in ``Game``.

        A ``candidate``, the ``single`` point of a model's forecast, is the solution where its
        certificate alone is within the tolerance, and the point to start from where it is not.
        """
        start = candidate or self.origin
        distance_off_sides = 0.0
        if self.off_ties:
            distance_off_sides = INSET * tolerance
        game = Game(rows, signed_weights, tolerance, start, distance_off_sides)
        solved = None
        if candidate is not None:
            solved = self._candidate_if_good_enough(game, candidate)
        if solved is None:
            solved = self._play(game)
        if self.objective is None:
            return solved
        return self._preferred(self.objective, game, solved)

    def _candidate_if_good_enough(self, game: Game, candidate: Solution) -> Solution | None:
        """Return a candidate with its certificate, or None if that is above the tolerance."""
        points = candidate.points
        certificate = self.worst_case(candidate.mass, points, game.fields(points))
        if certificate > game.tolerance:
            return None
        return replace(candidate, certificate=certificate)

    def _preferred(self, objective: Objective, game: Game, solved: Solution) -> Solution:
        """Return the mixture with the least objective of those as good as the solved game's.

        It is the solved game's own where no other mixture is found to be as good.
        """
        # the solved mixture's few points leave the objective little to choose from
        further_choices = self.choices(game)
        all_points = np.vstack([solved.points, further_choices.points])
        points, first_index = np.unique(all_points, axis=0, return_index=True)
        ensembles = None  # where the solver knows outcomes, those behind every point
        if solved.ensembles is not None and further_choices.ensembles is not None:
            all_ensembles = (*solved.ensembles, *further_choices.ensembles)
            ensembles = tuple(all_ensembles[j] for j in first_index)
        fields = game.fields(points)  # h of each point: against s(y) it costs h . (p - s(y))
        # A program with the solved game's certificate as limit could fail by rounding.
        limit = max(game.tolerance, (solved.certificate or 0.0) + ROUNDING)
        values = objective(Solution(points, ensembles=ensembles))  # of each point
        mass = self.best_mixture_within(values, points, fields, limit=limit)
        if mass is None:
            return solved
        atoms = np.flatnonzero(mass > MIN_MASS)
        mass = mass[atoms] / mass[atoms].sum()
        certificate = self.worst_case(mass, points[atoms], fields[atoms])
        if certificate > limit + ROUNDING:
            return solved
        ensembles_of_atoms = None
        if ensembles is not None:
            ensembles_of_atoms = tuple(ensembles[j] for j in atoms)
        return Solution(points[atoms], mass, certificate, ensembles_of_atoms)


@compiled()
def field_of_cells(cell_weights: Array, points: Array) -> Array:
    """Add up the weights of the dyadic cells that hold points (m,) of [0, 1).

    Cells are numbered as a binary tree, scale by scale: ``cell_weights`` (2^(S + 1) - 2,) has that
    of cell i of width 2^-s at 2^s + i - 2. So a cell's number plus 2 is the node of the tree whose
    root is 1, and half of a node is its parent.
    """
    finest = cell_weights.shape[0] // 2 + 1  # 2^S, how many finest cells there are
    field = np.zeros(points.shape[0])
    for j in range(points.shape[0]):
        node = finest + int(points[j] * finest)
        while node > 1:
            field[j] += cell_weights[node - 2]  # nodes from 2 on have cells; the root, 1, has none
            node >>= 1
    return field
