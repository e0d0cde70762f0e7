r"""Small linear programs: minimise c . x subject to row bounds on A x and bounds on x.

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

FEASIBILITY = 1e-9  # of rows and reduced costs; HiGHS's own 1e-7 blurs actions that nearly tie
OPTIONS: dict[str, Any] = {"output_flag": False, "presolve": "off", "threads": 1}
STATUS = highspy.HighsModelStatus
UNDECIDED = STATUS.kUnknown, STATUS.kSolveError, STATUS.kIterationLimit, STATUS.kTimeLimit
DUAL, PRIMAL = 1, 4  # HiGHS's numbers of its simplex methods
STANDARD: dict[str, Any] = {"simplex_strategy": DUAL, "presolve": "off"}
STANDARD |= {"solver": "choose", "run_crossover": "on"}
# What is tried in turn, each from scratch: options beside those that the program came with.
METHODS: list[dict[str, Any]] = [{}, {"simplex_strategy": PRIMAL}, {"presolve": "on"}]
METHODS += [{"solver": "ipm", "run_crossover": "off"}]
SCALINGS = 4  # of rows and then columns, until they hardly change
GAP = 1e-6  # between a solution and the bound that its duals prove, where no method is sure
# Limits of each method.
FEWEST_PIVOTS, PIVOTS = 1000, 5  # in every program, and for each row and column
STEPS = 200  # of the interior point method
SECONDS, EACH = 60.0, 0.01  # likewise; the pivots run out long before


class UnsolvedError(RuntimeError):
    """A program without a proved optimum, by what HiGHS says of it.

    Value and duals of ``best`` are the greatest lower bound that was proved, None where nothing
    was; its x is no solution. ``infeasible`` says whether nothing satisfies the rows; the least
    value is at least ``bound``, -inf where nothing was proved, and at most ``found``, the value of
    the best x that satisfies rows and bounds within ``FEASIBILITY``, inf where there is none.
    """

    def __init__(
        self,
        status: highspy.HighsModelStatus,
        best: "Optimum | None" = None,
        found: float = np.inf,
    ) -> None:
        super().__init__(f"the linear program was not solved: {status}")
        self.status, self.best = status, best
        self.infeasible = status == STATUS.kInfeasible
        self.bound = -np.inf if best is None else best.value
        self.found = found


class UnprovedError(ValueError):
    """A result whose linear program no method solved within its limits.

    The ``cure`` makes the program smaller or better scaled; it was proved that the result is at
    least ``low`` and at most ``high``.
    """

    def __init__(self, what: str, cure: str, *, low: float = -np.inf, high: float = np.inf) -> None:
        ends = {"at least": low, "at most": high}
        proved = " and ".join(f"{s} {end:.6g}" for s, end in ends.items() if np.isfinite(end))
        known = f"; it is {proved}" if proved else ""
        if np.isfinite(low) and np.isfinite(high):
            known += f", a gap of {high - low:.3g}"
        super().__init__(f"{what}: no method proved an optimum within its limits{known}; {cure}")
        self.low, self.high = low, high


class _Silent(highspy.Highs):
    """A HiGHS object that prints nothing: from 1.16 on its callbacks print a banner when made."""

    def enableCallbacks(self) -> None:  # noqa: N802
        self.silent()
        super().enableCallbacks()  # type: ignore[no-untyped-call]


def new_highs(**options: float) -> highspy.Highs:
    """Return a HiGHS object for small programs: silent, on one thread, without presolve."""
    highs = _Silent()  # type: ignore[no-untyped-call]
    _set(highs, OPTIONS | options)
    return highs


def optimise(highs: highspy.Highs, proved: Callable[[], bool] = lambda: False) -> None:
    """Solve the program that ``highs`` holds, within limits that grow with its size.

    The dual simplex method, HiGHS's choice, may stop without a verdict: seen where coefficients of
    1e-8 to 1e-3 meet a row of ones. The others of ``METHODS`` follow; ``proved`` is asked whether
    what was found is good enough. UnsolvedError if there is no optimum, or none finds it.
    """
    for i, method in enumerate(METHODS):
        if i:
            highs.clearSolver()
            _set(highs, STANDARD | method)
        size = highs.getNumRow() + highs.getNumCol()
        limits: dict[str, Any] = {"simplex_iteration_limit": FEWEST_PIVOTS + PIVOTS * size}
        used = highs.getRunTime()  # HiGHS counts the seconds of all its runs together
        limits |= {"ipm_iteration_limit": STEPS, "time_limit": used + SECONDS + EACH * size}
        _set(highs, limits)
        highs.run()
        status = highs.getModelStatus()
        found = proved() if status in UNDECIDED else status == STATUS.kOptimal
        if found or status not in UNDECIDED:
            break
    if i:
        _set(highs, STANDARD)
    if not found:
        raise UnsolvedError(status)


def fitted(highs: highspy.Highs) -> Array:
    """Solve the program of a best fit by the functions of a basis, and return its columns (n,).

    UnprovedError if no method solves it within its limits.
    """
    try:
        optimise(highs)
    except UnsolvedError as error:
        cure = "take another basis, or a greater error"
        raise UnprovedError("fit by a basis", cure) from error
    return np.array(highs.getSolution().col_value)


def _set(highs: highspy.Highs, options: Mapping[str, Any]) -> None:
    for option, value in options.items():
        highs.setOptionValue(option, value)


@dataclass(frozen=True, eq=False)
class Program:
    """Minimise cost . x subject to row_lower <= matrix x <= row_upper, lower <= x <= upper."""

    cost: Array  # (n,)
    matrix: Array | sp.csr_array  # (r, n)
    row_lower: Array | float = -np.inf  # (r,), or for all
    row_upper: Array | float = np.inf
    lower: Array | float = 0.0  # (n,), or for all
    upper: Array | float = np.inf

    def excess(self, x: Array) -> float:
        """By how much x leaves the bounds of a row or a column, at most."""
        sums = self.matrix @ x
        beyond = [sums - self.row_upper, self.row_lower - sums, x - self.upper, self.lower - x]
        return max(float(np.max(by, initial=0.0)) for by in beyond)

    def bound(self, duals: Array) -> float:
        """Return a lower bound on the least value that any row duals (r,) prove (weak duality).

        They are clipped where their sign does not fit the side that is bounded; -inf where they
        prove nothing, as may be where a column has no bound.
        """
        least = np.where(np.isinf(self.row_upper), 0.0, -np.inf)
        held = np.clip(duals, least, np.where(np.isinf(self.row_lower), 0.0, np.inf))
        sides = [(held, self.row_lower, self.row_upper)]
        sides += [(self.cost - held @ self.matrix, self.lower, self.upper)]
        return sum(  # of the least value of cost . x over a box
            float((c * np.where(c > 0, low, np.where(c < 0, high, 0.0))).sum())
            for c, low, high in sides
        )


@dataclass(frozen=True, eq=False)
class Optimum:
    """An optimal basic solution."""

    x: Array  # (n,)
    value: float  # cost . x; a lower bound on it, at most 1e-6 away, where HiGHS had doubts
    duals: Array  # of the rows (r,)


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
        row_scale, column_scale = np.ones(len(matrix)), np.ones(matrix.shape[1])
        for _ in range(SCALINGS):
            sizes = np.abs(matrix) * row_scale[:, None] * column_scale
            row_scale /= _middle_size(sizes, axis=1)
            sizes = np.abs(matrix) * row_scale[:, None] * column_scale
            column_scale /= _middle_size(sizes, axis=0)
        scaled_cost, scaled_demand = cost * column_scale, demand * row_scale
        cost_unit = power_of_two(np.abs(scaled_cost).max(initial=0.0))
        demand_unit = power_of_two(np.abs(scaled_demand).max(initial=0.0))
        program = Program(
            scaled_cost / cost_unit,
            matrix * row_scale[:, None] * column_scale,
            scaled_demand / demand_unit,
        )
        unit = float(cost_unit * demand_unit)
        return cls(program, unit, column_scale * demand_unit)


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
    rows, columns = matrix.shape
    bounds = [np.broadcast_to(bound, columns) for bound in (program.lower, program.upper)]
    bounds += [np.broadcast_to(bound, rows) for bound in (program.row_lower, program.row_upper)]
    given: list[Any] = [columns, rows, matrix.nnz]
    given += [int(highspy.MatrixFormat.kRowwise), int(highspy.ObjSense.kMinimize), 0.0]
    given += [np.array(values, dtype=np.float64) for values in (program.cost, *bounds)]
    given += [matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)]
    given += [matrix.data.astype(np.float64), np.zeros(columns, dtype=np.int32)]  # no integers
    if highs.passModel(*given) == highspy.HighsStatus.kError:
        raise UnsolvedError(STATUS.kModelError)


_KEPT = threading.local()


def solve(program: Program) -> Optimum:
    """Solve a program by this thread's solver; UnsolvedError without a proved optimum.

    Results do not depend on what it solved before.
    """
    if not vars(_KEPT):
        sides = "primal_feasibility_tolerance", "dual_feasibility_tolerance"
        _KEPT.highs = new_highs(**dict.fromkeys(sides, FEASIBILITY))
    highs: highspy.Highs = _KEPT.highs
    hand_over(highs, program)
    held: list[Optimum] = []
    values: list[float] = []  # of what satisfies rows and bounds

    def proved() -> bool:
        found = highs.getSolution()  # zeros where it holds none
        x = np.array(found.col_value) if found.value_valid else np.zeros(highs.getNumCol())
        duals = np.array(found.row_dual) if found.dual_valid else np.zeros(highs.getNumRow())
        held.append(Optimum(x, program.bound(duals), duals))
        if program.excess(x) <= FEASIBILITY:
            values.append(float(program.cost @ x))
        return abs(float(program.cost @ x) - held[-1].value) <= GAP and program.excess(x) <= GAP

    try:
        optimise(highs, proved)
    except UnsolvedError as error:
        best = max(held, key=lambda one: one.value, default=None)
        found_value = min(values, default=np.inf)
        raise UnsolvedError(error.status, best, found_value) from None
    if highs.getModelStatus() != STATUS.kOptimal:
        return held[-1]
    found = highs.getSolution()
    value = float(highs.getObjectiveValue())
    return Optimum(np.array(found.col_value), value, np.array(found.row_dual))
