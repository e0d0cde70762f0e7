"""Solving a round's game: walks, programs, and the certificate of what is returned.

A solver works over one set of possible s(y), the box or the simplex here, and remembers where the
last round ended.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from regretless.forecaster.events.protected import Rows
from regretless.forecaster.minimax import box
from regretless.forecaster.minimax.program import best_mixture
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Remembering
from regretless.market.game.basis import Hull
from regretless.market.game.protocols import Resumable
from regretless.market.records import Ensemble

WALKS = 12  # from nature's answers, at most
OFF_CENTRE = 1e-6  # twice how far at most the first point is from the centre of the box
LIGHTEST = 1e-9  # atoms with less weight are dropped


@dataclass(frozen=True, eq=False)
class Solution:
    """A mixture with its certificate.

    Parameters
    ----------
    points : array (m, n)
    mass : array (m,)
    certificate : float or None
        Its worst case over the hull, in units of the normalised weights; None where no game was
        played.
    ensembles : tuple of Ensemble or None
        Each point as weighted outcomes, where the solver keeps points in the hull of all s(y).
    """

    points: Array
    mass: Array
    certificate: float | None
    ensembles: tuple[Ensemble, ...] | None = None


class Solver(Resumable, Protocol):
    """Solves every round's game over one set of possible s(y), warm-started from the last one."""

    hull: Hull

    def solve(self, rows: Rows, table: Array, *, tolerance: float) -> Solution:
        """Return a mixture with its certificate."""

    def check(self, truth: Array) -> None:
        """Raise ValueError unless ``truth`` (n,) is a possible s(y)."""

    def remember(self, solution: Solution) -> None:
        """Start the next round from this one."""


class CubeSolver(Remembering):
    """The game over the box or the simplex.

    Parameters
    ----------
    size : int
        Number of basis functions, n.
    hull : "box" or "simplex"
    off_ties : bool
        Whether points keep off corners and equal numbers of the box, where losses tie: so that
        whoever breaks ties otherwise is served as well. It costs those who do not (decisions page).
    """

    REMEMBERED = ("origin", "last")

    def __init__(self, size: int, hull: Hull = "box", *, off_ties: bool = False) -> None:
        self.hull: Hull = hull
        self.off_ties = off_ties
        unlike = (np.arange(1, size + 1) * box.GOLDEN) % 1 - 0.5  # equal numbers would tie
        self.origin: Array = np.full(size, 0.5 if hull == "box" else 1 / size)
        if off_ties and hull == "box":
            self.origin = np.asarray(0.5 + OFF_CENTRE * unlike, dtype=np.float64)
        self.last = np.full((size + 1, size), np.nan)  # points of the last mixture, and no others

    def solve(self, rows: Rows, table: Array, *, tolerance: float) -> Solution:
        """Return a mixture with its certificate.

        Parameters
        ----------
        rows : Rows
            Protected losses.
        table : array (R, n)
            H, the normalised signed weights.
        tolerance : float
            Above 0. While the certificate exceeds it, points are added: those of the last mixture,
            and at most ``WALKS`` walks from nature's answers.
        """
        walk = box.walk_for(tolerance, off_ties=self.off_ties)
        points, fields = box.explore(rows, table, self.origin, hull=self.hull, walk=walk)
        mass, answer = best_mixture(points, fields, hull=self.hull)
        known = self.last[~np.isnan(self.last[:, 0])]
        for _ in range(WALKS):
            if box.worst_case(mass, points, fields, hull=self.hull) <= tolerance:
                break
            closer = box.closer_for(tolerance, off_ties=self.off_ties)
            nearer = box.explore(rows, table, answer, hull=self.hull, walk=closer)
            there = [box.field_at(rows, table, point) for point in known]
            points = np.vstack([points, known, nearer[0]])
            fields = np.vstack([fields, *there, nearer[1]])
            mass, answer = best_mixture(points, fields, hull=self.hull)
            known = known[:0]  # once
        heavy = mass > LIGHTEST
        mass = mass[heavy] / mass[heavy].sum()
        points, fields = points[heavy], fields[heavy]
        return Solution(points, mass, box.worst_case(mass, points, fields, hull=self.hull))

    def confined(self, point: Array) -> Array:
        """Return the point of the hull that is nearest to ``point`` (n,)."""
        inside = point.copy()
        box.project(inside, self.hull == "simplex")
        return inside

    def check(self, truth: Array) -> None:
        """Raise ValueError unless ``truth`` (n,) is a possible s(y)."""
        if truth.shape != self.origin.shape or not ((truth >= 0) & (truth <= 1)).all():
            raise ValueError(f"update needs {len(self.origin)} numbers in [0, 1]")
        if self.hull == "simplex" and abs(truth.sum() - 1) > 1e-9:
            raise ValueError("update needs numbers that sum to 1")

    def remember(self, solution: Solution) -> None:
        """Start the next walk at the mean of this mixture, and have its points at hand.

        A program with n + 1 rows mixes n + 1 points at most; of other mixtures the first are kept.
        """
        self.origin = solution.mass @ solution.points
        count = min(len(solution.points), len(self.last))
        self.last[:count], self.last[count:] = solution.points[:count], np.nan
