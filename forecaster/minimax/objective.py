r"""A forecaster with a wish: among mixtures that are good enough, the one best for an objective.

A round's game is solved until the certificate is at most what is let pass (``tolerance``). Many
mixtures are. With v_j the objective at point p_j, h_j its field and c_j = h_j . p_j (``box``), this
one is chosen by a second linear program,

    minimise  sum_j w_j v_j
    subject to  sum_j w_j c_j + sum_i s_i <= certificate,   s_i >= -sum_j w_j h_ji,   s, w >= 0,
                sum_j w_j = 1                 (over the simplex one s, at least -g_i for all i)

over the points of the solved game, of a walk, and of a lattice. Its certificate is at most the
greater of the tolerance and the solved game's: the bound counts it as any other, and the guarantee
is untouched whatever the objective is.
"""

from collections.abc import Callable

import numpy as np

from regretless.forecaster.events.protected import Rows
from regretless.forecaster.minimax.box import explore, field_at, walk_for, worst_case
from regretless.forecaster.minimax.solver import LIGHTEST, CubeSolver, Solution
from regretless.market.core.arrays import Array, grid_points
from regretless.market.kernels.linear_programs import Program, UnsolvedError, solver

Objective = Callable[[Array], Array]  # points (m, n) to values (m,), the less the better
MOST_POINTS = 64  # of a lattice in the box


class WishfulSolver(CubeSolver):
    """The game over the box or the simplex, with an objective once it is given.

    Attributes
    ----------
    objective : callable or None
        From points (m, n) to values (m,), the less the better; None for none.
    """

    objective: Objective | None = None

    def solve(self, rows: Rows, table: Array, *, tolerance: float) -> Solution:
        """Return the mixture that is best for the objective of those that are good enough."""
        solved = super().solve(rows, table, tolerance=tolerance)
        if self.objective is None or solved.certificate is None:
            return solved
        walk = walk_for(tolerance, off_ties=self.off_ties)
        walked, _ = explore(rows, table, self.origin, hull=self.hull, walk=walk)
        points = np.unique(np.vstack([solved.points, walked, self._lattice()]), axis=0)
        fields = np.array([field_at(rows, table, point) for point in points])
        # within rounding of the limit no program could be sure of it
        limit = max(tolerance, solved.certificate + LIGHTEST)
        mass = best_within(self.objective(points), points, fields, limit=limit, hull=self.hull)
        if mass is None:
            return solved
        heavy = mass > LIGHTEST
        mass, points, fields = mass[heavy] / mass[heavy].sum(), points[heavy], fields[heavy]
        reached = worst_case(mass, points, fields, hull=self.hull)
        return Solution(points, mass, reached) if reached <= limit + LIGHTEST else solved

    def _lattice(self) -> Array:
        size = len(self.origin)
        if self.hull == "simplex":
            return np.eye(size)
        steps = int(MOST_POINTS ** (1 / size))
        if steps < 2:
            return np.empty((0, size))
        return grid_points(np.linspace(0, 1, steps), size)


def best_within(
    values: Array, points: Array, fields: Array, *, limit: float, hull: str = "box"
) -> Array | None:
    """Return the masses (m,) that minimise the mean value with a certificate within a limit.

    None where the program was not solved.
    """
    count, size = fields.shape
    slacks = np.eye(size) if hull == "box" else np.ones((size, 1))
    payments = np.append((points * fields).sum(1), np.ones(slacks.shape[1]))
    whole = np.append(np.ones(count), np.zeros(slacks.shape[1]))
    free = -np.inf if hull == "simplex" else 0.0
    program = Program(
        np.append(values, np.zeros(slacks.shape[1])),
        np.vstack([payments, whole, np.hstack([fields.T, slacks])]),
        row_lower=np.append([-np.inf, 1.0], np.zeros(size)),
        row_upper=np.append([limit, 1.0], np.full(size, np.inf)),
        lower=np.append(np.zeros(count), np.full(slacks.shape[1], free)),
    )
    try:
        return np.maximum(solver().solve(program).x[:count], 0.0)
    except UnsolvedError:
        return None
