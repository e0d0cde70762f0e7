r"""Best uniform approximation by functions with a bounded sum of coefficients.

    minimise  max_y | f(y) - r_0 - sum_i r_i s_i(y) |    subject to  sum_i |r_i| <= cap

over the outcomes y of a sample: a linear program. Only the sample points where the error is
greatest matter, so the program holds a few working points, shared by all functions f and grown
until no other point is clearly worse (constraint generation). From one f to the next only the
right-hand sides change, and HiGHS starts from the last solution: about a millisecond a function.
"""

from dataclasses import dataclass

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.numerics.linear_program import Program, fitted, hand_over, new_highs

SLACK = 1.05  # a point joins the working points if its error exceeds the program's by this factor
MOST_WORKING = 1200


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients of one function.

    Parameters
    ----------
    offset : float
        r_0.
    weights : array (n,)
        r.
    error : float
        Greatest error over the whole sample.
    """

    offset: float
    weights: Array
    error: float


class SupNormFit:
    """Fits functions, given by their values on a sample, with n given ones.

    Parameters
    ----------
    table : array (n, M)
        Values of s on the M sample points.
    cap : float
        Bound on sum |r_i|.
    working : list of int
        Working points to begin with; it grows in place, so that it can be handed on.
    precision : float
        By how much a point's error must exceed the program's for the point to join.
    """

    def __init__(
        self, table: Array, cap: float, *, working: list[int], precision: float = 2e-3
    ) -> None:
        self.table, self.cap, self.working = table, cap, working
        self.precision = precision
        self._solver = new_highs()
        self._load()

    def __call__(self, values: Array) -> Fit:
        """Fit one function with values (M,)."""
        while True:
            offset, weights, error = self._solve(values[self.working])
            errors = np.abs(values - offset - weights @ self.table)
            worst = int(errors.argmax())
            if errors[worst] <= max(SLACK * error, error + self.precision):
                break
            if worst in self.working or len(self.working) >= MOST_WORKING:
                break
            self.working.append(worst)
            self._require(worst)
        return Fit(offset, weights, float(errors[worst]))

    def _load(self) -> None:
        """Hand the program to the solver: r+, r-, r_0 and the error e; the values come later."""
        size = len(self.table)
        program = Program(
            cost=np.append(np.zeros(2 * size + 1), 1.0),
            matrix=np.append(np.ones(2 * size), [0.0, 0.0])[None],
            row_upper=self.cap,
            lower=np.append(np.zeros(2 * size), [-np.inf, 0.0]),
        )
        hand_over(self._solver, program)
        self._columns = np.arange(2 * size + 2, dtype=np.int32)
        for point in self.working:
            self._require(point)

    def _require(self, point: int) -> None:
        """Add the two rows of a working point: the form plus e above f, minus e below it."""
        values = self.table[:, point]
        for side in (1.0, -1.0):
            row = np.concatenate([values, -values, [1.0, side]])
            self._solver.addRow(-np.inf, np.inf, len(row), self._columns, row)

    def _solve(self, values: Array) -> tuple[float, Array, float]:
        free = np.full(len(values), np.inf)
        lower = np.column_stack([values, -free]).ravel()
        upper = np.column_stack([free, values]).ravel()
        rows = np.arange(1, 1 + len(lower), dtype=np.int32)
        self._solver.changeRowsBounds(len(rows), rows, lower, upper)  # type: ignore[attr-defined]
        solution = fitted(self._solver)
        size = len(self.table)
        weights = solution[:size] - solution[size : 2 * size]
        total = np.abs(weights).sum()
        if total > self.cap:  # by the solver's tolerance
            weights *= self.cap / total
        return float(solution[-2]), weights, float(solution[-1])
