r"""A solver with an objective: of the mixtures that are good enough, the best one for a purpose.

A round's game is solved until the certificate is at most what is let pass (``tolerance``). Many
mixtures are. With v_j the objective at point p_j, h_j its field and c_j = h_j . p_j (``walk``), one
is chosen by a second linear program,

    minimise  sum_j w_j v_j
    subject to  sum_j w_j c_j + sum_i s_i <= certificate,   s_i >= -sum_j w_j h_ji,   s, w >= 0,
                sum_j w_j = 1,

over the points of the solved game (a model's forecast among them, where it is good enough), of a
walk, and of a lattice. Over the simplex there is one s, at least -g_i for all i, and over
conv s(Y) one s, at least -g . s(y) for the outcomes that were found to be the worst. The
certificate is at most the greater of the tolerance and the solved game's: the bound counts it as
any other, and the guarantee is untouched whatever the objective is.
"""

from dataclasses import replace

import numpy as np

from regretless.forecaster.events.protected import LossTable
from regretless.forecaster.minimax.base import (
    LIGHTEST,
    HullSolver,
    Objective,
    PlainSolver,
    Solution,
    fields_at,
)
from regretless.market.core.arrays import Array
from regretless.market.core.delegated import Delegated
from regretless.market.losses.basis import Hull
from regretless.market.numerics.linear_program import Program, UnsolvedError, solver


class WithObjective(HullSolver):
    """A solver that chooses among good mixtures of a solver over some hull.

    ``values`` maps a solution's points (m, n), with ensembles where they are known, to values (m,),
    the less the better. Until they are set the solver's own mixtures are returned.
    """

    preferring = True

    def __init__(self, solver: PlainSolver, values: Objective | None = None) -> None:
        self.solver, self.values = solver, values
        self.size, self.spelled = solver.size, solver.spelled
        self.hull: Hull = solver.hull

    single = Delegated("solver")
    origin = Delegated("solver")
    check = Delegated("solver")
    remember = Delegated("solver")
    state = Delegated("solver")
    restore = Delegated("solver")

    def solve(
        self, rows: LossTable, table: Array, *, tolerance: float, candidate: Array | None = None
    ) -> Solution:
        """Return the mixture that is best for the objective of those that are good enough."""
        own = self.solver
        solved = own.solve(rows, table, tolerance=tolerance, candidate=candidate)
        if self.values is None or solved.certificate is None:
            return solved
        start = own.origin if candidate is None else own.single(candidate)
        choices = together(solved, own.choices(rows, table, tolerance=tolerance, start=start))
        fields = fields_at(rows, table, choices.points)
        # within rounding of the limit no program could be sure of it
        limit = max(tolerance, solved.certificate + LIGHTEST)
        values = self.values(choices)
        mass = own.best_within(values, choices.points, fields, limit=limit)
        if mass is None:
            return solved
        heavy = mass > LIGHTEST
        best = choices.mixed(mass)
        reached = own.worst(best.mass, best.points, fields[heavy])
        return replace(best, certificate=reached) if reached <= limit + LIGHTEST else solved

    def prefer(self, values: Objective) -> None:
        """Prefer mixtures with a low objective."""
        self.values = values


def together(solved: Solution, choices: Solution) -> Solution:
    """Collect the distinct points of two solutions, in ascending order, with their ensembles."""
    whole = np.vstack([solved.points, choices.points])
    points, first = np.unique(whole, axis=0, return_index=True)
    known = (*(solved.ensembles or ()), *(choices.ensembles or ()))
    ensembles = tuple(known[j] for j in first) if known else None
    return Solution(points, np.empty(len(points)), None, ensembles)


def cheapest(
    values: Array, payments: Array, gains: Array, *, limit: float, box: bool
) -> Array | None:
    """Return the masses (m,) of least mean value with a worst case within a limit; or None.

    Parameters
    ----------
    values, payments : array (m,)
    gains : array (m, r)
        The fields over the box; against r listed choices of nature what each takes off a payment.
    box : bool
        Whether nature chooses every one of the r numbers by itself.
    """
    count, size = gains.shape
    slacks = np.eye(size) if box else np.ones((size, 1))
    own = np.zeros(slacks.shape[1])
    program = Program(
        np.append(values, own),
        np.vstack(
            [
                np.append(payments, own + 1.0),
                np.append(np.ones(count), own),
                np.hstack([gains.T, slacks]),
            ]
        ),
        row_lower=np.append([-np.inf, 1.0], np.zeros(size)),
        row_upper=np.append([limit, 1.0], np.full(size, np.inf)),
        lower=np.append(np.zeros(count), own if box else own - np.inf),
    )
    try:
        return np.maximum(solver().solve(program).x[:count], 0.0)
    except UnsolvedError:
        return None
