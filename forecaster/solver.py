"""Solving a round's game: walks, programs, and the certificate of what is returned.

A solver works over one set of possible s(y), the box or the simplex here, and remembers where the
last round ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from forecaster.minimax import CLOSER, MatrixGame, explore, project, worst_case
from forecaster.protected import Rows
from market.basis import Hull
from market.records import Ensemble

Array = NDArray[np.float64]

WALKS = 12  # from nature's answers, at most
COARSE = 3.5e-4  # tolerance that these answers reach by themselves, without a walk
LIGHTEST = 1e-9  # atoms with less weight are dropped


@dataclass(frozen=True, eq=False)
class Solution:
    """A mixture with its certificate.

    Parameters
    ----------
    points : array (m, n)
    mass : array (m,)
    certificate : float
        Its worst case over the hull, in units of the normalised weights.
    ensembles : tuple of Ensemble or None
        Each point as weighted outcomes, where the solver keeps points in the hull of all s(y).
    """

    points: Array
    mass: Array
    certificate: float
    ensembles: tuple[Ensemble, ...] | None = None


class Solver(Protocol):
    """Solves every round's game over one set of possible s(y), warm-started from the last one."""

    hull: Hull

    def solve(self, rows: Rows, table: Array, *, tolerance: float) -> Solution:
        """Return a mixture with its certificate."""
        ...

    def check(self, truth: Array) -> None:
        """Raise ValueError unless ``truth`` (n,) is a possible s(y)."""
        ...

    def remember(self, solution: Solution) -> None:
        """Start the next round from this one."""
        ...

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        ...


class CubeSolver:
    """The game over the box or the simplex.

    Parameters
    ----------
    size : int
        Number of basis functions, n.
    hull : "box" or "simplex"
    """

    def __init__(self, size: int, hull: Hull = "box") -> None:
        self.hull: Hull = hull
        self._game = MatrixGame(hull)
        self.origin = np.full(size, 0.5 if hull == "box" else 1 / size)

    def solve(self, rows: Rows, table: Array, *, tolerance: float) -> Solution:
        """Return a mixture with its certificate."""
        return solve(rows, table, self.origin, game=self._game, tolerance=tolerance)

    def confined(self, point: Array) -> Array:
        """Return the point of the hull that is nearest to ``point`` (n,)."""
        inside = point.copy()
        project(inside, self.hull == "simplex")
        return inside

    def check(self, truth: Array) -> None:
        """Raise ValueError unless ``truth`` (n,) is a possible s(y)."""
        if truth.shape != self.origin.shape or not ((truth >= 0) & (truth <= 1)).all():
            raise ValueError(f"update needs {len(self.origin)} numbers in [0, 1]")
        if self.hull == "simplex" and abs(truth.sum() - 1) > 1e-9:
            raise ValueError("update needs numbers that sum to 1")

    def remember(self, solution: Solution) -> None:
        """Start the next walk at the mean of this mixture."""
        self.origin = solution.mass @ solution.points

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs."""
        return {"origin": self.origin}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        self.origin = np.array(state["origin"])


def solve(
    rows: Rows, table: Array, origin: Array, *, game: MatrixGame, tolerance: float
) -> Solution:
    """Solve a round.

    Parameters
    ----------
    rows : Rows
        Protected losses.
    table : array (R, n)
        H, the normalised signed weights.
    origin : array (n,)
        Where the walk starts: last round's mean.
    game : MatrixGame
    tolerance : float
        While the certificate exceeds it, nature's answers are added, below ``COARSE`` with a walk
        from each; at most ``WALKS`` of them.

    Returns
    -------
    Solution
    """
    hull = game.hull
    points, fields = explore(rows, table, origin, hull=hull)
    mass, mean = game.solve(points, fields)
    worst = worst_case(mass, points, fields, hull=hull)
    steps = CLOSER[:1] if tolerance >= COARSE else CLOSER
    for _ in range(WALKS):
        if worst <= tolerance:
            break
        nearer = explore(rows, table, mean, hull=hull, steps=steps)
        points, fields = np.vstack([points, nearer[0]]), np.vstack([fields, nearer[1]])
        mass, mean = game.solve(points, fields)
        worst = worst_case(mass, points, fields, hull=hull)
    heavy = mass > LIGHTEST
    mass = mass[heavy] / mass[heavy].sum()
    points, fields = points[heavy], fields[heavy]
    return Solution(points, mass, worst_case(mass, points, fields, hull=hull))
