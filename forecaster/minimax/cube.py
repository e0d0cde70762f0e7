"""The game over the box or the simplex: walks, programs, and a certificate."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from regretless.forecaster.minimax.game import (
    GOLDEN,
    LIGHTEST,
    Game,
    HullSolver,
    Solution,
    keep_off,
    project,
    steps_for,
    undominated,
    walked,
)
from regretless.forecaster.minimax.program import best_mixture, cheapest
from regretless.market.core.arrays import Array, grid_points
from regretless.market.core.errors import ParameterError, brief
from regretless.market.losses.basis import Hull
from regretless.market.records import Ensemble

WALKS = 12  # from nature's answers, at most
# the shortest steps of these walks, and when they shrink again
NEAR = 1e-3
TURN = 20
OFF_CENTRE = 1e-6  # twice how far at most the first point is from the centre of the box
MOST_POINTS = 64  # of a lattice in the box


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
        # points of the last mixture, and no others
        self._last = np.full((self.size + 1, self.size), np.nan)

    def best(self, points: Array, fields: Array) -> tuple[Array, Array]:
        """Return the best weights (m,) of points and fields (m, n), and nature's mean (n,)."""
        return best_mixture((points * fields).sum(1), fields, simplex=self.simplex)

    def worst(self, mass: Array, points: Array, fields: Array) -> float:
        """Worst case over the box, every coordinate by itself, or over the simplex, at a corner."""
        mean = mass @ fields
        least = mean.min() if self.simplex else np.minimum(mean, 0.0).sum()
        return float(mass @ (points * fields).sum(1) - least)

    @property
    def origin(self) -> Solution:
        return Solution(self._mean[None])

    def single(self, point: Array) -> Solution:
        inside = np.array(point, dtype=np.float64)
        if self.simplex:
            project(inside, self.simplex)
        else:  # as ``project``, which a run that plays no game need not compile
            inside = np.where(inside <= 0.0, 0.0, np.minimum(inside, 1.0))
        if self.off_ties:
            keep_off(inside, OFF_CENTRE, self.simplex)
        return self._spelled(Solution(inside[None], unchanged=True))

    def _spelled(self, solution: Solution) -> Solution:
        return solution

    def _play(self, game: Game) -> Solution:
        """Add the last mixture's points and those of walks from nature's answers, to certify it."""
        tolerance = game.tolerance
        points, fields = self._explore(game, game.start.points[0], steps_for(tolerance))
        mass, answer = self.best(points, fields)
        known = self._last[~np.isnan(self._last[:, 0])]
        for _ in range(WALKS):
            if self.worst(mass, points, fields) <= tolerance:
                break
            # from nature's answer short steps to the end of its own cell first
            grow = np.geomspace(min(NEAR, tolerance), 0.1, TURN)
            nearer = self._explore(game, answer, np.append(grow, grow[::-1]))
            points = np.vstack([points, known, nearer[0]])
            fields = np.vstack([fields, game.fields(known), nearer[1]])
            mass, answer = self.best(points, fields)
            known = known[:0]  # once
        heavy = mass > LIGHTEST
        mass = mass[heavy] / mass[heavy].sum()
        points = points[heavy]
        fields = fields[heavy]
        found = self._spelled(Solution(points, mass))
        if found.points is not points:  # off by rounding
            fields = game.fields(found.points)
        return replace(found, certificate=self.worst(mass, found.points, fields))

    def _explore(self, game: Game, origin: Array, steps: Array) -> tuple[Array, Array]:
        """Walk; the undominated points visited and their fields (m, n)."""
        points, fields = walked(
            game.rows, game.table, origin, steps=steps, inset=game.inset, simplex=self.simplex
        )
        kept = undominated(points, fields)
        return points[kept], fields[kept]

    def choices(self, game: Game) -> Solution:
        """Return points of a walk, and the corners of the simplex or a lattice in the box."""
        visited, _ = self._explore(game, game.start.points[0], steps_for(game.tolerance))
        levels = np.linspace(0, 1, int(MOST_POINTS ** (1 / self.size)))
        lattice = np.eye(self.size) if self.simplex else grid_points(levels, self.size)
        if not self.simplex and len(levels) == 1:
            lattice = lattice[:0]
        if self.off_ties:
            for point in lattice:
                keep_off(point, game.inset, self.simplex)
        return self._spelled(Solution(np.vstack([visited, lattice])))

    def best_within(
        self, values: Array, points: Array, fields: Array, *, limit: float
    ) -> Array | None:
        payments = (points * fields).sum(1)
        return cheapest(values, payments, fields, limit=limit, box=not self.simplex)

    def remember(self, solution: Solution) -> None:
        """Start the next walk at the mean of this mixture, and have n + 1 of its points at hand."""
        self._mean = solution.mass @ solution.points
        count = min(len(solution.points), len(self._last))
        self._last[:count], self._last[count:] = solution.points[:count], np.nan


class Box(CubeSolver):
    """The game over [0, 1]^n, n = ``size``; off ties, points keep off corners and equal numbers."""

    hull: Hull = "box"
    simplex = False

    def __init__(self, size: int, *, off_ties: bool = False) -> None:
        unlike = (np.arange(1, size + 1) * GOLDEN) % 1 - 0.5  # equal numbers would tie
        centre = np.asarray(0.5 + OFF_CENTRE * unlike * off_ties, dtype=np.float64)
        super().__init__(centre, off_ties=off_ties)


class Simplex(CubeSolver):
    """The game over the probabilities of n cells, whose indicators are s(y).

    With ``places`` (n, d), one outcome in every cell, a prediction is its own ensemble.
    """

    hull: Hull = "simplex"
    simplex = True

    def __init__(self, size: int, *, places: Array | None = None, off_ties: bool = False) -> None:
        centre = np.full(size, 1 / size)
        if off_ties:
            keep_off(centre, OFF_CENTRE, True)  # noqa: FBT003 - compiled
        super().__init__(centre, off_ties=off_ties)
        self._places = places
        self.spelled = places is not None

    def _spelled(self, solution: Solution) -> Solution:
        if self._places is None:
            return solution
        points = np.maximum(solution.points, 0.0)
        points /= points.sum(1, keepdims=True)
        ensembles = tuple(Ensemble(self._places[p > 0], p[p > 0]) for p in points)
        return replace(solution, points=points, ensembles=ensembles)

    def check(self, truth: Array) -> None:
        super().check(truth)
        if abs(truth.sum() - 1) > 1e-9:
            told = f"y = {brief(truth.tolist())}"
            raise ParameterError(f"{told}: update needs numbers that sum to 1")


def cube(size: int, hull: Hull, *, off_ties: bool = False) -> CubeSolver:
    """Make the solver of a basis's own hull."""
    return (Simplex if hull == "simplex" else Box)(size, off_ties=off_ties)
