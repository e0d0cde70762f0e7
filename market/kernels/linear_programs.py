r"""Small linear programs: minimise c . x subject to row bounds on A x and bounds on x.

HiGHS does the work. For programs of some tens of rows the call costs more than the pivots, so
one solver object is kept per thread, presolve is off and arrays are handed over without a
modelling layer: about 0.05 ms for ten rows, where ``scipy.optimize.linprog`` takes 1.3 ms.

Duals have the sign of the rates of change of the least value: at most 0 for a row that binds
above, at least 0 for one that binds below.
"""

import threading
from dataclasses import dataclass, replace

import highspy
import numpy as np
import scipy.sparse as sp

from regretless.market.core.arrays import Array

FEASIBILITY = 1e-9  # of rows and reduced costs; HiGHS's own 1e-7 blurs actions that nearly tie
OPTIONS: dict[str, bool | int | str] = {"output_flag": False, "presolve": "off", "threads": 1}
UNDECIDED = (highspy.HighsModelStatus.kUnknown, highspy.HighsModelStatus.kSolveError)
DUAL, PRIMAL = 1, 4  # HiGHS's numbers of its simplex methods
# What is tried in turn, each from scratch: options beside those that the program came with.
METHODS: tuple[dict[str, int | str], ...] = (
    {},
    {"simplex_strategy": PRIMAL},
    {"presolve": "on"},
    {"solver": "ipm"},
)
STANDARD: dict[str, int | str] = {"simplex_strategy": DUAL, "presolve": "off", "solver": "choose"}
GAP = 1e-6  # between a solution and the bound that its duals prove, where no method is sure


class UnsolvedError(RuntimeError):
    """A program without an optimum; ``infeasible`` says that nothing satisfies its rows."""

    def __init__(self, status: highspy.HighsModelStatus) -> None:
        super().__init__(f"the linear program was not solved: {status}")
        self.infeasible = status == highspy.HighsModelStatus.kInfeasible


def new_highs(**options: float) -> highspy.Highs:
    """Return a HiGHS object for small programs: silent, on one thread, without presolve.

    Parameters
    ----------
    **options
        Further options of HiGHS.
    """
    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in {**OPTIONS, **options}.items():
        highs.setOptionValue(option, value)
    return highs


def optimise(highs: highspy.Highs) -> None:
    """Solve the program that ``highs`` holds.

    The dual simplex method, HiGHS's choice, may stop without a verdict: seen where coefficients of
    1e-8 to 1e-3 meet a row of ones. The primal one then starts from scratch, then a presolved
    program, and the interior point method with crossover is the last resort.

    Raises
    ------
    UnsolvedError
        If there is no optimum, or no method finds it.
    """
    for i, method in enumerate(METHODS):
        if i:
            highs.clearSolver()
        for option, value in (STANDARD | method).items() if i else ():
            highs.setOptionValue(option, value)
        highs.run()
        status = highs.getModelStatus()
        if status not in UNDECIDED:
            break
    for option, value in STANDARD.items() if i else ():
        highs.setOptionValue(option, value)
    if status != highspy.HighsModelStatus.kOptimal:
        raise UnsolvedError(status)


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise cost . x subject to row_lower <= matrix x <= row_upper, lower <= x <= upper.

    Parameters
    ----------
    cost : array (n,)
    matrix : array (r, n) or sparse matrix of that shape
    row_lower, row_upper : arrays (r,) or numbers
    lower, upper : arrays (n,) or numbers
    """

    cost: Array
    matrix: Array | sp.csr_array
    row_lower: Array | float = -np.inf
    row_upper: Array | float = np.inf
    lower: Array | float = 0.0
    upper: Array | float = np.inf

    def excess(self, x: Array) -> float:
        """By how much x leaves the bounds of a row or a column, at most."""
        sums = self.matrix @ x
        beyond = [sums - self.row_upper, self.row_lower - sums, x - self.upper, self.lower - x]
        return max(float(np.max(by, initial=0.0)) for by in beyond)

    def bound(self, duals: Array) -> float:
        """Return a lower bound on the least value that any row duals prove (weak duality).

        Parameters
        ----------
        duals : array (r,)
            Clipped where their sign does not fit the side that is bounded.

        Returns
        -------
        float
            -inf where they prove nothing, as may be where a column has no bound.
        """
        rows = len(duals)
        low, high = _filled(self.row_lower, rows), _filled(self.row_upper, rows)
        least, most = np.where(np.isinf(high), 0.0, -np.inf), np.where(np.isinf(low), 0.0, np.inf)
        held = np.clip(duals, least, most)
        reduced = self.cost - held @ self.matrix
        lower, upper = (_filled(bound, len(reduced)) for bound in (self.lower, self.upper))
        return _least(held, low, high) + _least(reduced, lower, upper)


@dataclass(frozen=True, eq=False)
class Optimum:
    """An optimal basic solution.

    Parameters
    ----------
    x : array (n,)
    value : float
        The least value, cost . x; a lower bound on it, at most 1e-6 away, where HiGHS had doubts.
    duals : array (r,)
        Of the rows.
    """

    x: Array
    value: float
    duals: Array


def hand_over(highs: highspy.Highs, program: Program) -> None:
    """Let ``highs`` hold a program; UnsolvedError if it is none."""
    matrix = sp.csr_array(program.matrix)
    rows, columns = matrix.shape
    taken = highs.passModel(
        columns,
        rows,
        matrix.nnz,
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMinimize),
        0.0,
        np.asarray(program.cost, dtype=np.float64),
        _filled(program.lower, columns),
        _filled(program.upper, columns),
        _filled(program.row_lower, rows),
        _filled(program.row_upper, rows),
        matrix.indptr.astype(np.int32),
        matrix.indices.astype(np.int32),
        matrix.data.astype(np.float64),
        np.zeros(columns, dtype=np.int32),  # no integers
    )
    if taken == highspy.HighsStatus.kError:
        raise UnsolvedError(highspy.HighsModelStatus.kModelError)


class ProgramSolver:
    """One HiGHS object, used again and again; results do not depend on what it solved before."""

    def __init__(self) -> None:
        self._highs = new_highs(
            primal_feasibility_tolerance=FEASIBILITY, dual_feasibility_tolerance=FEASIBILITY
        )
        self._program: Program | None = None

    def solve(self, program: Program) -> Optimum:
        """Solve a program.

        Raises
        ------
        UnsolvedError
            If it is infeasible or unbounded, or HiGHS gives up.
        """
        hand_over(self._highs, program)
        return self._run(program)

    def again(self, row: int, upper: float) -> Optimum:
        """Solve the last program with another upper bound of one row, from its last basis."""
        assert self._program is not None  # noqa: S101 - something was solved before
        self._highs.changeRowBounds(row, -np.inf, upper)
        above = _filled(self._program.row_upper, self._program.matrix.shape[0])
        above[row] = upper
        return self._run(replace(self._program, row_upper=above))

    def _run(self, program: Program) -> Optimum:
        self._program = program
        doubts: UnsolvedError | None = None
        try:
            optimise(self._highs)
        except UnsolvedError as error:
            doubts = error
        solution = self._highs.getSolution()
        x, duals = np.array(solution.col_value), np.array(solution.row_dual)
        if doubts is None:
            return Optimum(x, float(self._highs.getObjectiveValue()), duals)
        if not (solution.value_valid and solution.dual_valid):
            raise doubts
        value = program.bound(duals)
        if not (abs(float(program.cost @ x) - value) <= GAP and program.excess(x) <= GAP):
            raise doubts
        return Optimum(x, value, duals)


_KEPT = threading.local()


def solver() -> ProgramSolver:
    """Return this thread's solver."""
    if not hasattr(_KEPT, "solver"):
        _KEPT.solver = ProgramSolver()
    kept: ProgramSolver = _KEPT.solver
    return kept


def _filled(bound: Array | float, size: int) -> Array:
    return np.array(np.broadcast_to(np.asarray(bound, dtype=np.float64), size))


def _least(cost: Array, lower: Array, upper: Array) -> float:
    """Return the least value of cost . x over a box."""
    return float((cost * np.where(cost > 0, lower, np.where(cost < 0, upper, 0.0))).sum())
