"""The game over the box or the simplex: walks, programs, and a certificate."""

from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from regretless.forecaster.minimax.game import (
    GOLDEN,
    MIN_MASS,
    STEPS,
    Game,
    HullSolver,
    Solution,
    move_inside,
    move_into_box,
    move_into_hull,
    steps_for,
    undominated,
    walked,
    write_walk,
)
from regretless.forecaster.minimax.program import (
    divide_by_sum,
    mixture_of_least_value,
    optimal_weights,
)
from regretless.market.core.arrays import Array, Integers, grid_points
from regretless.market.core.compiled import compiled
from regretless.market.core.errors import ParameterError, brief
from regretless.market.losses.basis import Hull
from regretless.market.numerics.pairwise_sum import pairwise_sum
from regretless.market.records import Ensemble

MAX_WALKS = 12  # from nature's answers, at most
# the shortest steps of these walks, and when they shrink again
SHORTEST_STEP = 1e-3
STEPS_THAT_GROW = 20
OFF_CENTRE = 1e-6  # twice how far at most the first point is from the centre of the box
MAX_LATTICE_POINTS = 64  # of a lattice in the box


@compiled()
def payments_of(points: Array, fields: Array) -> Array:
    """Return h . p (m,) of points and their fields (m, n) (compiled)."""
    payments = np.empty(points.shape[0])
    products = np.empty(points.shape[1])
    for j in range(points.shape[0]):
        for i in range(points.shape[1]):
            products[i] = points[j, i] * fields[j, i]
        payments[j] = pairwise_sum(products)
    return payments


@compiled()
def worst_case_of(
    mass: Array,
    payments: Array,
    fields: Array,
    simplex: bool,  # noqa: FBT001
) -> float:
    """Return sum_j w_j c_j + max_s -(sum_j w_j h_j) . s over all s of the hull (compiled).

    ``mass`` and ``payments`` (m,) are w and c_j = h_j . p_j, ``fields`` (m, n) the h_j.
    """
    worst_case = 0.0
    for j in range(fields.shape[0]):
        worst_case += mass[j] * payments[j]
    greatest = -np.inf if simplex else 0.0  # of nature's part
    for i in range(fields.shape[1]):
        against = 0.0  # what nature gains by s_i = 1
        for j in range(fields.shape[0]):
            against -= mass[j] * fields[j, i]
        if simplex:
            greatest = max(greatest, against)
        else:
            greatest += max(against, 0.0)
    return worst_case + greatest


@compiled()
def rows_of(table: Array, rows: Integers) -> Array:
    """Return some rows (m, n) of a table (T, n), by their indices (m,) (compiled)."""
    chosen = np.empty((rows.shape[0], table.shape[1]))
    for j in range(rows.shape[0]):
        for i in range(table.shape[1]):
            chosen[j, i] = table[rows[j], i]
    return chosen


@compiled()
def write_points_of_walk(
    points: Array,
    fields: Array,
    origin: Array,
    offset: Array,
    weights: Array,
    start: Integers,
    eta: Array,
    tie: Array,
    signed_weights: Array,
    steps: Array,
    distance_off_sides: float,
    simplex: bool,  # noqa: FBT001
) -> int:
    """Walk against h and move the undominated points of the walk to the front (compiled).

    Parameters
    ----------
    points, fields : array (T, n)
        Written: the first rows are these points, and h at each; the others mean nothing.
    origin : array (n,)
        Where the walk begins.
    offset, weights, start, eta, tie, signed_weights, steps, distance_off_sides, simplex
        As in ``write_walk``.

    Returns
    -------
    int
        m, the number of undominated points.
    """
    size = origin.shape[0]
    for i in range(size):
        points[0, i] = origin[i]
    # ``response_scratch``, which Python would take a third of the walk of a small game to make
    play_chance = np.empty(offset.size)
    losses_in_blocks = play_chance.reshape(offset.shape)
    played_rows = np.empty((eta.shape[0], 2), np.int64)
    write_walk(
        points,
        fields,
        offset,
        weights,
        start,
        eta,
        tie,
        signed_weights,
        steps,
        distance_off_sides,
        simplex,
        losses_in_blocks,
        play_chance,
        played_rows,
        np.empty(size),
    )
    kept = undominated(points, fields)
    for j in range(kept.shape[0]):  # no row is overwritten that is still to be moved: kept[j] >= j
        for i in range(size):
            points[j, i] = points[kept[j], i]
            fields[j, i] = fields[kept[j], i]
    return len(kept)


@compiled()
def points_of_walk(
    origin: Array,
    offset: Array,
    weights: Array,
    start: Integers,
    eta: Array,
    tie: Array,
    signed_weights: Array,
    steps: Array,
    distance_off_sides: float,
    simplex: bool,  # noqa: FBT001
) -> tuple[Array, Array]:
    """Walk against h; return the undominated points of the walk, and h at each (m, n) (compiled).

    The arguments are those of ``write_points_of_walk``.
    """
    points = np.empty((steps.shape[0], origin.shape[0]))
    fields = np.empty((steps.shape[0], origin.shape[0]))
    count = write_points_of_walk(
        points,
        fields,
        origin,
        offset,
        weights,
        start,
        eta,
        tie,
        signed_weights,
        steps,
        distance_off_sides,
        simplex,
    )
    return points[:count], fields[:count]


@compiled()
def mixture_of_points(
    points: Array,
    fields: Array,
    simplex: bool,  # noqa: FBT001
) -> tuple[Array, Array, float]:
    """Mix points as well as can be (compiled).

    Parameters
    ----------
    points, fields : array (m, n)
        Predictions p_j, and h at each of them.
    simplex : bool
        Whether the hull is the simplex, and not the box.

    Returns
    -------
    mass : array (m,)
        w, the best weights of the points.
    mean : array (n,)
        Nature's answer, the mean of its distribution.
    worst_case : float
        sum_j w_j h_j . p_j + max_s -(sum_j w_j h_j) . s, over all s of the hull.
    """
    payments = payments_of(points, fields)
    mass, mean = optimal_weights(payments, fields, simplex)
    return mass, mean, worst_case_of(mass, payments, fields, simplex)


@compiled()
def certificate_of(
    mass: Array,
    points: Array,
    fields: Array,
    simplex: bool,  # noqa: FBT001
) -> float:
    """Return a mixture's worst case over all s of the hull (compiled); see ``worst_case_of``.

    ``mass`` (m,) are its weights, ``points`` and ``fields`` (m, n) its predictions and h at each.
    """
    return worst_case_of(mass, payments_of(points, fields), fields, simplex)


@compiled()
def without_light_points(
    points: Array,
    fields: Array,
    mass: Array,
    simplex: bool,  # noqa: FBT001
) -> tuple[Array, Array, float]:
    """Drop the points (m, n) of a mixture with next to no mass (m,) (compiled).

    ``fields`` (m, n) are h at the points, and ``simplex`` says whether the hull is the simplex, and
    not the box. Returns the points that are left, their masses, which add up to 1, and the worst
    case of that mixture.
    """
    heavy = np.empty(mass.shape[0], np.int64)
    count = 0
    for j in range(mass.shape[0]):
        if mass[j] > MIN_MASS:
            heavy[count] = j
            count += 1
    heavy = heavy[:count]
    mass_of_heavy = np.empty(count)
    for j in range(count):
        mass_of_heavy[j] = mass[heavy[j]]
    divide_by_sum(mass_of_heavy)
    heavy_points = rows_of(points, heavy)
    certificate = certificate_of(mass_of_heavy, heavy_points, rows_of(fields, heavy), simplex)
    return heavy_points, mass_of_heavy, certificate


@compiled()
def atoms_of_points(
    points: Array,
    fields: Array,
    simplex: bool,  # noqa: FBT001
) -> tuple[float, Array, Array, Array, float]:
    """Mix points as well as can be, and keep those with some mass (compiled).

    The arguments are those of ``mixture_of_points``.

    Returns
    -------
    worst_case, answer : float, array (n,)
        That of the mixture of all points, and nature's mean.
    atoms, mass, certificate : array (k, n), array (k,), float
        As ``without_light_points`` returns them.
    """
    mass, answer, worst_case = mixture_of_points(points, fields, simplex)
    atoms, mass_of_atoms, certificate = without_light_points(points, fields, mass, simplex)
    return worst_case, answer, atoms, mass_of_atoms, certificate


@compiled()
def atoms_of_walk(
    points: Array,
    fields: Array,
    answer: Array,
    origin: Array,
    offset: Array,
    weights: Array,
    start: Integers,
    eta: Array,
    tie: Array,
    signed_weights: Array,
    steps: Array,
    distance_off_sides: float,
    simplex: bool,  # noqa: FBT001
) -> tuple[int, float, Array, Array, float]:
    """Walk, and mix the points of the walk, in one call (compiled).

    ``answer`` (n,) is written: nature's answer to the mixture. The other arguments, and the number
    of points, which is returned first, are those of ``write_points_of_walk``; the rest is as
    ``atoms_of_points`` returns it of these points.
    """
    count = write_points_of_walk(
        points,
        fields,
        origin,
        offset,
        weights,
        start,
        eta,
        tie,
        signed_weights,
        steps,
        distance_off_sides,
        simplex,
    )
    worst_case, mean, atoms, mass, certificate = atoms_of_points(
        points[:count], fields[:count], simplex
    )
    for i in range(answer.shape[0]):
        answer[i] = mean[i]
    return count, worst_case, atoms, mass, certificate


@lru_cache(maxsize=64)
def _steps_from_answer(shortest_step: float) -> Array:
    """Return the steps of a walk from nature's answer: short ones to the end of its own cell first.

    They are the same in every round whose tolerance is at least ``SHORTEST_STEP``.
    """
    growing_steps = np.geomspace(shortest_step, 0.1, STEPS_THAT_GROW)
    return np.append(growing_steps, growing_steps[::-1])


class CubeSolver(HullSolver):
    """What the box and the simplex share; the first round starts at the ``centre`` (n,).

    Off ties points keep off the sides of the hull, each coordinate by another distance, so that
    losses seldom tie: whoever breaks ties otherwise is served as well, at a cost to others.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_mean", "_last")
    simplex: ClassVar[bool]

    def __init__(self, centre: Array, *, off_ties: bool = False) -> None:
        self.size = len(centre)
        self.off_ties = off_ties
        self._mean = centre
        self._last = np.empty((0, self.size))  # points of the last mixture, of which n + 1 are used
        # what a round's first walk overwrites: its points, h at each, and nature's answer
        self._points = np.empty((STEPS, self.size))
        self._fields = np.empty((STEPS, self.size))
        self._answer = np.empty(self.size)

    def worst_case(self, mass: Array, points: Array, fields: Array) -> float:
        """Worst case over the box, every coordinate by itself, or over the simplex, at a corner."""
        return float(certificate_of(mass, points, fields, self.simplex))

    @property
    def origin(self) -> Solution:
        return Solution(self._mean[None])

    def single(self, point: Array) -> Solution:
        nearest = np.array(point, dtype=np.float64)
        if self.simplex:
            move_into_hull(nearest, self.simplex, np.empty(self.size))
        else:
            move_into_box(nearest)
        if self.off_ties:
            move_inside(nearest, OFF_CENTRE, self.simplex)
        return self._with_ensembles(Solution(nearest[None], unchanged=True))

    def _with_ensembles(self, solution: Solution) -> Solution:
        """Add each point's ensemble, where the solver knows outcomes; by default it does not."""
        return solution

    def _play(self, game: Game) -> Solution:
        """Walk and mix; then from nature's answers, too, until the certificate is good enough."""
        tolerance = game.tolerance
        rows = game.rows
        origin = game.start.points[0]
        steps = steps_for(tolerance)
        if rows.custom:
            points, fields = self._walk(game, origin, steps)
            count = len(points)
            worst_case, answer, atoms, mass, certificate = atoms_of_points(
                points, fields, self.simplex
            )
        else:
            # Arrays that the solver keeps, of which the first rows are the points of the walk.
            points = self._points
            fields = self._fields
            answer = self._answer
            count, worst_case, atoms, mass, certificate = atoms_of_walk(
                points,
                fields,
                answer,
                origin,
                *rows.arrays,
                game.signed_weights,
                steps,
                game.distance_off_sides,
                self.simplex,
            )
        if worst_case > tolerance:
            atoms, mass, certificate = self._mix_with_further_walks(
                game, points[:count], fields[:count], answer
            )
        solution = Solution(atoms, mass, certificate)
        if not self.has_ensembles:
            return solution
        with_ensembles = self._with_ensembles(solution)  # whose points may be off by rounding
        fields = game.fields(with_ensembles.points)
        certificate = self.worst_case(mass, with_ensembles.points, fields)
        return replace(with_ensembles, certificate=certificate)

    def _mix_with_further_walks(
        self, game: Game, points: Array, fields: Array, answer: Array
    ) -> tuple[Array, Array, float]:
        """Walk from nature's answers, until the worst case is within the tolerance.

        ``points`` and ``fields`` (m, n) are those of the first walk, ``answer`` (n,) is nature's to
        their mixture. Returns what ``without_light_points`` returns of the last mixture.
        """
        steps = _steps_from_answer(min(SHORTEST_STEP, game.tolerance))
        last_points = self._last[: self.size + 1]  # which join the points of the first walk
        points = np.concatenate([points, last_points])
        fields = np.concatenate([fields, game.fields(last_points)])
        for _ in range(MAX_WALKS):
            further_points, further_fields = self._walk(game, answer, steps)
            points = np.concatenate([points, further_points])
            fields = np.concatenate([fields, further_fields])
            worst_case, answer, atoms, mass, certificate = atoms_of_points(
                points, fields, self.simplex
            )
            if worst_case <= game.tolerance:
                break
        return atoms, mass, certificate

    def _walk(self, game: Game, origin: Array, steps: Array) -> tuple[Array, Array]:
        """Walk; the undominated points visited and their fields (m, n)."""
        if not game.rows.custom:
            return points_of_walk(
                origin,
                *game.rows.arrays,
                game.signed_weights,
                steps,
                game.distance_off_sides,
                self.simplex,
            )
        points, fields = walked(  # by response rules that are not compiled
            game.rows,
            game.signed_weights,
            origin,
            steps=steps,
            distance_off_sides=game.distance_off_sides,
            simplex=self.simplex,
        )
        kept = undominated(points, fields)
        return points[kept], fields[kept]

    def choices(self, game: Game) -> Solution:
        """Return points of a walk, and the corners of the simplex or a lattice in the box."""
        visited, _ = self._walk(game, game.start.points[0], steps_for(game.tolerance))
        n_levels = int(MAX_LATTICE_POINTS ** (1 / self.size))  # per coordinate
        if self.simplex:
            lattice = np.eye(self.size)
        elif n_levels == 1:  # so many coordinates that two levels of each are too many points
            lattice = np.empty((0, self.size))
        else:
            lattice = grid_points(np.linspace(0, 1, n_levels), self.size)
        if self.off_ties:
            for point in lattice:
                move_inside(point, game.distance_off_sides, self.simplex)  # in place
        return self._with_ensembles(Solution(np.vstack([visited, lattice])))

    def best_mixture_within(
        self, values: Array, points: Array, fields: Array, *, limit: float
    ) -> Array | None:
        payments = payments_of(points, fields)
        return mixture_of_least_value(values, payments, fields, limit=limit, box=not self.simplex)

    def remember(self, solution: Solution) -> None:
        """Start the next walk at the mean of this mixture, and have n + 1 of its points at hand."""
        self._mean = solution.mass.dot(solution.points)  # the bits of ``@``, in half its time
        self._last = solution.points

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs, of one shape: an offline run stacks those of rounds."""
        filled_up = np.full((self.size + 1, self.size), np.nan)
        last_points = self._last[: self.size + 1]
        filled_up[: len(last_points)] = last_points
        return super().state() | {"last": filled_up}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self._last = self._last[~np.isnan(self._last[:, 0])]


class Box(CubeSolver):
    """The game over [0, 1]^n, n = ``size``; off ties, points keep off corners and equal numbers."""

    hull: Hull = "box"
    simplex = False

    def __init__(self, size: int, *, off_ties: bool = False) -> None:
        unequal_offsets = (np.arange(1, size + 1) * GOLDEN) % 1 - 0.5  # equal numbers would tie
        centre = np.asarray(0.5 + OFF_CENTRE * unequal_offsets * off_ties, dtype=np.float64)
        super().__init__(centre, off_ties=off_ties)


class Simplex(CubeSolver):
    """The game over the probabilities of n cells, whose indicators are s(y).

    With ``cell_outcomes`` (n, d), one in every cell, a prediction is its own ensemble.
    """

    hull: Hull = "simplex"
    simplex = True

    def __init__(
        self, size: int, *, cell_outcomes: Array | None = None, off_ties: bool = False
    ) -> None:
        centre = np.full(size, 1 / size)
        if off_ties:
            move_inside(centre, OFF_CENTRE, True)  # noqa: FBT003 - compiled
        super().__init__(centre, off_ties=off_ties)
        self._cell_outcomes = cell_outcomes
        self.has_ensembles = cell_outcomes is not None

    def _with_ensembles(self, solution: Solution) -> Solution:
        if self._cell_outcomes is None:
            return solution
        points = np.maximum(solution.points, 0.0)
        points /= points.sum(1, keepdims=True)
        ensembles = tuple(Ensemble(self._cell_outcomes[p > 0], p[p > 0]) for p in points)
        return replace(solution, points=points, ensembles=ensembles)

    def check(self, statistics: Array) -> None:
        super().check(statistics)
        if abs(statistics.sum() - 1) > 1e-9:
            fault = f"y = {brief(statistics.tolist())}"
            raise ParameterError(f"{fault}: update needs numbers that sum to 1")


def cube(size: int, hull: Hull, *, off_ties: bool = False) -> CubeSolver:
    """Make the solver of a basis's own hull."""
    if hull == "simplex":
        return Simplex(size, off_ties=off_ties)
    return Box(size, off_ties=off_ties)
