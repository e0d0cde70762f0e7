r"""Small linear programs: minimise c . x subject to row bounds on A x and bounds on x.

Exploitability, commitment values and fits by bases call ``solve`` or ``fitted``; what they get back
is an optimum that was proved, or an ``UnsolvedError`` with the bounds that were. Results do not
depend on what was solved before, nor on the number of threads.

HiGHS does the work. For programs of some tens of rows the call costs more than the pivots, so
one solver object is kept per thread, presolve is off and arrays are handed over without a
modelling layer: about 0.05 ms for ten rows, where ``scipy.optimize.linprog`` takes 1.3 ms.

Duals have the sign of the rates of change of the least value: at most 0 for a row that binds
above, at least 0 for one that binds below.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import highspy
import numpy as np
import scipy.sparse as sp

from regretless.market.core.arrays import Array

# Of rows and reduced costs; HiGHS's own 1e-7 blurs actions that nearly tie.
FEASIBILITY_TOLERANCE = 1e-9
HIGHS_OPTIONS: dict[str, Any] = {"output_flag": False, "presolve": "off", "threads": 1}
STATUS = highspy.HighsModelStatus
UNDECIDED = STATUS.kUnknown, STATUS.kSolveError, STATUS.kIterationLimit, STATUS.kTimeLimit

# HiGHS's numbers of its simplex methods.
DUAL_SIMPLEX = 1
PRIMAL_SIMPLEX = 4
STANDARD_OPTIONS: dict[str, Any] = {
    "simplex_strategy": DUAL_SIMPLEX,
    "presolve": "off",
    "solver": "choose",
    "run_crossover": "on",
}
# What is tried in turn, each from scratch: options beside those that the program came with.
METHODS: list[dict[str, Any]] = [
    {},
    {"simplex_strategy": PRIMAL_SIMPLEX},
    {"presolve": "on"},
    {"solver": "ipm", "run_crossover": "off"},
]
SCALING_STEPS = 4  # of rows and then columns, until they hardly change
PROVED_GAP = 1e-6  # between a solution and the bound that its duals prove, where no method is sure

# Limits of each method, the first of a pair in every program, the second for each row and column.
MIN_PIVOTS = 1000
PIVOTS_PER_LINE = 5
MIN_SECONDS = 60.0  # the pivots run out long before
SECONDS_PER_LINE = 0.01
MAX_INTERIOR_STEPS = 200  # of the interior point method


class UnsolvedError(RuntimeError):
    """A program without a proved optimum.

    Attributes
    ----------
    status : HighsModelStatus
        What HiGHS says of it.
    infeasible : bool
        Whether nothing satisfies the rows.
    best : Optimum or None
        Its value and duals are the greatest lower bound that was proved, its x is no solution; None
        where nothing was proved.
    bound : float
        A lower bound on the least value that was proved; -inf where nothing was.
    best_value : float
        The value of the best x that was found and satisfies rows and bounds within
        ``FEASIBILITY_TOLERANCE``, an upper bound; inf where there is none.
    """

    def __init__(
        self,
        status: highspy.HighsModelStatus,
        best: "Optimum | None" = None,
        best_value: float = np.inf,
    ) -> None:
        super().__init__(f"the linear program was not solved: {status}")
        self.status = status
        self.infeasible = status == STATUS.kInfeasible
        self.best = best
        self.bound = -np.inf if best is None else best.value
        self.best_value = best_value


class UnprovedError(ValueError):
    """A result whose linear program no method solved within its limits.

    Parameters
    ----------
    what : str
        The function that was called.
    hint : str
        What makes the program smaller or better scaled.
    low, high : float
        It was proved that the result is at least and at most so much.
    """

    def __init__(self, what: str, hint: str, *, low: float = -np.inf, high: float = np.inf) -> None:
        proved = []
        if np.isfinite(low):
            proved.append(f"at least {low:.6g}")
        if np.isfinite(high):
            proved.append(f"at most {high:.6g}")
        proof = f"; it is {' and '.join(proved)}" if proved else ""
        if len(proved) == 2:
            proof += f", a gap of {high - low:.3g}"
        super().__init__(f"{what}: no method proved an optimum within its limits{proof}; {hint}")
        self.low = low
        self.high = high


class _Silent(highspy.Highs):
    """A HiGHS object that prints nothing: from 1.16 on its callbacks print a banner when made."""

    def enableCallbacks(self) -> None:  # noqa: N802
        self.silent()
        super().enableCallbacks()  # type: ignore[no-untyped-call]


def new_highs(**options: float) -> highspy.Highs:
    """Return a HiGHS object for small programs: silent, on one thread, without presolve."""
    highs = _Silent()  # type: ignore[no-untyped-call]
    _set_options(highs, HIGHS_OPTIONS | options)
    return highs


def optimise(highs: highspy.Highs, proved: Callable[[], bool] = lambda: False) -> None:
    """Solve the program that ``highs`` holds, within limits that grow with its size.

    The dual simplex method, HiGHS's choice, may stop without a verdict: seen where coefficients of
    1e-8 to 1e-3 meet a row of ones. The others of ``METHODS`` follow; after each that stops so
    ``proved`` is asked whether what was found is good enough. UnsolvedError if there is no optimum,
    or none finds it.
    """
    size = highs.getNumRow() + highs.getNumCol()
    for method_index, method in enumerate(METHODS):
        if method_index:
            highs.clearSolver()
            _set_options(highs, STANDARD_OPTIONS | method)
        seconds_used = highs.getRunTime()  # HiGHS counts the seconds of all its runs together
        limits = {
            "simplex_iteration_limit": MIN_PIVOTS + PIVOTS_PER_LINE * size,
            "ipm_iteration_limit": MAX_INTERIOR_STEPS,
            "time_limit": seconds_used + MIN_SECONDS + SECONDS_PER_LINE * size,
        }
        _set_options(highs, limits)
        highs.run()
        status = highs.getModelStatus()
        is_decided = status not in UNDECIDED
        is_solved = status == STATUS.kOptimal if is_decided else proved()
        if is_solved or is_decided:
            break
    if method_index:  # options of another method are set, which the next program must not meet
        _set_options(highs, STANDARD_OPTIONS)
    if not is_solved:
        raise UnsolvedError(status)


def fitted(highs: highspy.Highs) -> Array:
    """Solve the program of a best fit by the functions of a basis, and return its columns (n,).

    UnprovedError if no method solves it within its limits.
    """
    try:
        optimise(highs)
    except UnsolvedError as error:
        hint = "take another basis, or a greater error"
        raise UnprovedError("fit by a basis", hint) from error
    return np.array(highs.getSolution().col_value)


def _set_options(highs: highspy.Highs, options: Mapping[str, Any]) -> None:
    """Set options of a HiGHS object by their names."""
    for option, value in options.items():
        highs.setOptionValue(option, value)


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise cost . x subject to row_lower <= matrix x <= row_upper, lower <= x <= upper.

    Attributes
    ----------
    cost : ndarray (n,)
    matrix : ndarray or sparse array (r, n)
    row_lower, row_upper : ndarray (r,), or float for all rows
    lower, upper : ndarray (n,), or float for all columns
    """

    cost: Array
    matrix: Array | sp.csr_array
    row_lower: Array | float = -np.inf
    row_upper: Array | float = np.inf
    lower: Array | float = 0.0
    upper: Array | float = np.inf

    def excess(self, x: Array) -> float:
        """Return by how much x (n,) leaves the bounds of a row or a column, at most."""
        sums = self.matrix @ x
        violations = [sums - self.row_upper, self.row_lower - sums, x - self.upper, self.lower - x]
        return max(float(np.max(violation, initial=0.0)) for violation in violations)

    def bound(self, duals: Array) -> float:
        """Return a lower bound on the least value that any row duals (r,) prove (weak duality).

        They are clipped where their sign does not fit the side that is bounded; -inf where they
        prove nothing, as may be where a column has no bound.
        """
        least_dual = np.where(np.isinf(self.row_upper), 0.0, -np.inf)
        greatest_dual = np.where(np.isinf(self.row_lower), 0.0, np.inf)
        clipped_duals = np.clip(duals, least_dual, greatest_dual)
        reduced_cost = self.cost - clipped_duals @ self.matrix
        of_rows = _least_over_box(clipped_duals, self.row_lower, self.row_upper)
        return of_rows + _least_over_box(reduced_cost, self.lower, self.upper)


def _least_over_box(cost: Array, lower: Array | float, upper: Array | float) -> float:
    """Return the least value of cost . x over lower <= x <= upper."""
    x_if_not_positive = np.where(cost < 0, upper, 0.0)
    return float((cost * np.where(cost > 0, lower, x_if_not_positive)).sum())


@dataclass(frozen=True, eq=False)
class Optimum:
    """An optimal basic solution.

    Attributes
    ----------
    x : ndarray (n,)
    value : float
        cost . x; a lower bound on it, at most 1e-6 away, where HiGHS had doubts.
    duals : ndarray (r,)
        Of the rows.
    """

    x: Array
    value: float
    duals: Array


@dataclass(frozen=True, eq=False)
class CoveringProgram:
    """Minimise cost . x subject to matrix x >= demand and x >= 0, with all numbers of like size.

    The rows, the columns, the cost and the demand of a program are each divided by a power of 2, so
    that nothing is rounded. Payoffs and losses that are spread over many orders of magnitude stop
    every method of HiGHS otherwise, whose tolerances are absolute.
    """

    scaled: Program
    unit: float  # of the value: what a value of 1 of the scaled program stands for
    column_scale: Array  # (n,), what an x of 1 of the scaled program stands for

    @classmethod
    def of(cls, cost: Array, matrix: Array, demand: Array) -> "CoveringProgram":
        """Scale a program with a cost (n,) above 0, a matrix (r, n) and a demand (r,)."""
        row_scale = np.ones(len(matrix))
        column_scale = np.ones(matrix.shape[1])
        for _ in range(SCALING_STEPS):
            sizes = np.abs(matrix) * row_scale[:, None] * column_scale
            row_scale /= _middle_size(sizes, axis=1)
            sizes = np.abs(matrix) * row_scale[:, None] * column_scale
            column_scale /= _middle_size(sizes, axis=0)
        scaled_cost = cost * column_scale
        scaled_demand = demand * row_scale
        cost_unit = power_of_two(np.abs(scaled_cost).max(initial=0.0))
        demand_unit = power_of_two(np.abs(scaled_demand).max(initial=0.0))
        program = Program(
            cost=scaled_cost / cost_unit,
            matrix=matrix * row_scale[:, None] * column_scale,
            row_lower=scaled_demand / demand_unit,
        )
        return cls(
            scaled=program,
            unit=float(cost_unit * demand_unit),
            column_scale=column_scale * demand_unit,
        )


def _middle_size(sizes: Array, axis: int) -> Array:
    """Return the power of 2 nearest the geometric mean of the extreme sizes that are not 0."""
    largest = sizes.max(axis)
    smallest = np.where(sizes > 0, sizes, np.inf).min(axis)
    smallest = np.where(largest > 0, smallest, 0.0)  # of rows and columns of zeros
    return power_of_two(np.sqrt(largest) * np.sqrt(smallest))


def power_of_two(size: Array | float) -> Array:
    """Return the powers of 2 nearest to sizes; 1 where a size is 0."""
    positive = np.where(np.asarray(size) > 0, size, 1.0)
    return np.asarray(np.exp2(np.round(np.log2(positive))))


def hand_over(highs: highspy.Highs, program: Program) -> None:
    """Let ``highs`` hold a program; UnsolvedError if it is none."""
    matrix = sp.csr_array(program.matrix)
    n_rows, n_columns = matrix.shape
    no_offset = 0.0
    all_continuous = np.zeros(n_columns, dtype=np.int32)

    def numbers(values: Array | float, size: int) -> Array:
        return np.array(np.broadcast_to(values, size), dtype=np.float64)

    status = highs.passModel(
        n_columns,
        n_rows,
        matrix.nnz,
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMinimize),
        no_offset,
        numbers(program.cost, n_columns),
        numbers(program.lower, n_columns),
        numbers(program.upper, n_columns),
        numbers(program.row_lower, n_rows),
        numbers(program.row_upper, n_rows),
        matrix.indptr.astype(np.int32),
        matrix.indices.astype(np.int32),
        matrix.data.astype(np.float64),
        all_continuous,
    )
    if status == highspy.HighsStatus.kError:
        raise UnsolvedError(STATUS.kModelError)


_THREAD = threading.local()


def solve(program: Program) -> Optimum:
    """Solve a program by this thread's solver; UnsolvedError without a proved optimum.

    Results do not depend on what it solved before.
    """
    if not vars(_THREAD):
        _THREAD.highs = new_highs(
            primal_feasibility_tolerance=FEASIBILITY_TOLERANCE,
            dual_feasibility_tolerance=FEASIBILITY_TOLERANCE,
        )
    highs: highspy.Highs = _THREAD.highs
    hand_over(highs, program)
    candidates: list[Optimum] = []
    feasible_values: list[float] = []  # of what satisfies rows and bounds

    def proved() -> bool:
        solution = highs.getSolution()  # zeros where it holds none
        x = np.array(solution.col_value) if solution.value_valid else np.zeros(highs.getNumCol())
        duals = np.array(solution.row_dual) if solution.dual_valid else np.zeros(highs.getNumRow())
        value = float(program.cost @ x)
        dual_bound = program.bound(duals)
        excess = program.excess(x)
        candidates.append(Optimum(x=x, value=dual_bound, duals=duals))
        if excess <= FEASIBILITY_TOLERANCE:
            feasible_values.append(value)
        return abs(value - dual_bound) <= PROVED_GAP and excess <= PROVED_GAP

    try:
        optimise(highs, proved)
    except UnsolvedError as error:
        best_bounded = max(candidates, key=lambda candidate: candidate.value, default=None)
        least_feasible_value = min(feasible_values, default=np.inf)
        raise UnsolvedError(error.status, best_bounded, least_feasible_value) from None
    if highs.getModelStatus() != STATUS.kOptimal:
        return candidates[-1]  # HiGHS stopped without a verdict, and ``proved`` was content with it
    solution = highs.getSolution()
    return Optimum(
        x=np.array(solution.col_value),
        value=float(highs.getObjectiveValue()),
        duals=np.array(solution.row_dual),
    )
