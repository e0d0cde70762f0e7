r"""Find the tables of ``OptimisedConvexBasis``: ``python -m paper.optimised_nodes FILE.npz``.

Functions s_1 = y, s_2, ..., s_n that approximate every |y - t| in the largest entry: low-rank
approximation of a matrix. It starts from the leading singular functions modulo affine ones and
alternates two families of sup-norm programs: a row of coefficients for each t given the functions,
with sum_i |c_i(t)| <= cap, and the values in [0, 1] at each y given the coefficients. Grids are
halved until a cell is shorter than a share of the error. The reflection y -> 1 - y, which swaps
s_2..s_n end for end, halves the work. It takes an hour; what it finds is certified when it is read.
"""

import itertools
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from regretless.forecaster.bases.convex import ConvexTable, distances, mirrored_table
from regretless.market.core.arrays import Array
from regretless.market.numerics.linear_program import Program, fitted, hand_over, new_highs

CAPS = (1.0, 3.0)  # on the sums of coefficients
MAX_FUNCTIONS = 27
COARSEST_GRID = 65  # points
FINEST_GRID = 513
MAX_CELL = 0.7  # of the error: cells of the last grid are shorter
FIRST_CAP = 3.0  # or a greater one: a loose cap in the first sweeps, to find where to start
FIRST_SWEEPS = 5
MAX_SWEEPS = 40  # of a grid
FINE_GRID = 257  # points, from which on there are half as many sweeps
SWEEPS_WITHOUT_GAIN = 6  # after which a grid is left
MIN_GAIN = 0.003  # of the error, in so many sweeps
ROUNDING = 1 - 2e-7  # a factor, so that sums stay below the cap in 32 bits


def optimised_table(size: int, cap: float) -> ConvexTable:
    """Alternate the programs on finer and finer grids until these do not matter."""
    functions = _first_functions(size)
    for _ in range(FIRST_SWEEPS):
        table = _sweep(functions, max(cap, FIRST_CAP))
        functions = table.functions
    functions = _functions_at_nodes(table.functions @ table.rows[:, 1:].T, size)
    while True:
        best = _sweep_until_settled(functions, cap)
        points = len(functions)
        if 1 / (points - 1) < MAX_CELL * best.error or points >= FINEST_GRID:
            return best
        grid = np.linspace(0, 1, points)
        finer_grid = np.linspace(0, 1, 2 * points - 1)
        spline = scipy.interpolate.CubicSpline(grid, best.functions)
        functions = np.clip(spline(finer_grid), 0.0, 1.0)


def _sweep_until_settled(functions: Array, cap: float) -> ConvexTable:
    """Sweep one grid until sweeps gain next to nothing; return the best."""
    least_errors: list[float] = []  # after each sweep
    max_sweeps = MAX_SWEEPS if len(functions) < FINE_GRID else MAX_SWEEPS // 2
    for _ in range(max_sweeps):
        table = _sweep(functions, cap)
        functions = table.functions
        if not least_errors or table.error < least_errors[-1]:
            best = table
        least_errors.append(best.error)
        if len(least_errors) > SWEEPS_WITHOUT_GAIN:
            gain = least_errors[-1 - SWEEPS_WITHOUT_GAIN] - best.error
            if gain < MIN_GAIN * best.error:
                break
    return best


def _first_functions(size: int) -> Array:
    """Return functions (G, n) of the approximants by leading singular functions.

    They approximate what |y - t| is beyond an affine function.
    """
    kernel = distances(COARSEST_GRID)
    affine, _ = np.linalg.qr(np.column_stack([np.ones(COARSEST_GRID), kernel[0]]))
    without_affine = np.eye(COARSEST_GRID) - affine @ affine.T
    curved = without_affine @ kernel @ without_affine
    left, values, right = np.linalg.svd(curved)
    low_rank = (left[:, : size - 1] * values[: size - 1]) @ right[: size - 1]
    return _functions_at_nodes(kernel - curved + low_rank, size)


def _functions_at_nodes(approximants: Array, size: int) -> Array:
    """Return functions (G, n): y, and the approximants (G, G) of |y - t| at equally spaced t."""
    nodes = np.arange(1, size) / size * (len(approximants) - 1)
    at_nodes = approximants[:, np.round(nodes).astype(np.intp)]
    symmetric = (at_nodes + at_nodes[::-1, ::-1]) / 2
    low = symmetric.min(0)
    high = symmetric.max(0)
    y = np.linspace(0, 1, len(approximants))
    return np.column_stack([y, (symmetric - low) / (high - low)])


def _sweep(functions: Array, cap: float) -> ConvexTable:
    """Solve for the rows given the functions (G, n), then for the functions given the rows."""
    points, size = functions.shape
    least = distances(points)
    # Next to the diagonal the form is held below e, not h + e: then so is |A_01 + A_10| / 2.
    most = np.where(least * (points - 1) < 1.5, 0.0, least)
    half = (points + 1) // 2
    rows = _solve_for_rows(functions, least[:half], most[:half], cap)
    slope = rows[-1:, 1:2]  # the middle row is its own reflection
    mirrored = np.concatenate([rows[-1:, :1] + slope, -slope, rows[-1:, :1:-1]], axis=1)
    rows[-1:] = (rows[-1:] + mirrored) / 2

    values = functions[:half].copy()
    all_rows = mirrored_table(functions[:half], rows).rows
    if size > 1:
        affine_part = all_rows[:, 0] + functions[:, :1] * all_rows[:, 1]
        fit = _SupFit(all_rows[:, 2:], np.zeros(size - 1), 1.0)
        for point in range(half):
            value = fit(least[point] - affine_part[point], most[point] - affine_part[point])
            values[point, 1:] = np.clip(value, 0.0, 1.0)
    return mirrored_table(values, rows)


def _solve_for_rows(functions: Array, least: Array, most: Array, cap: float) -> Array:
    """Return a constant and coefficients (H, 1 + n) of the functions for each of H rows.

    A coefficient is the difference of two that are not negative, whose sum has the ``cap``.
    """
    points, size = functions.shape
    design = np.column_stack([np.ones(points), functions, -functions])
    lower = np.append(-np.inf, np.zeros(2 * size))
    fit = _SupFit(design, lower, math.inf, cap)
    solutions = np.array([fit(least[t], most[t]) for t in range(len(least))])
    positive_parts = solutions[:, 1 : size + 1]
    negative_parts = solutions[:, size + 1 :]
    return np.column_stack([solutions[:, 0], positive_parts - negative_parts])


class _SupFit:
    """Find x with ``least - e <= design @ x <= most + e`` for the smallest e, again and again.

    Only the right-hand sides change, so that HiGHS starts from its last solution.

    Parameters
    ----------
    design : array (G, m)
    lower : array (m,)
        Least values of x.
    upper : float
        Their greatest value.
    cap : float
        On the sum of all of x but the first.
    """

    def __init__(self, design: Array, lower: Array, upper: float, cap: float = math.inf) -> None:
        self._solver = new_highs()
        points = len(design)
        variables = design.shape[1] + 1  # x and e
        error = np.ones((points, 1))
        is_summed = np.ones((1, variables))
        is_summed[0, [0, -1]] = 0.0  # all but the constant and e
        program = Program(
            cost=np.append(np.zeros(variables - 1), 1.0),
            matrix=np.concatenate([np.block([[design, -error], [design, error]]), is_summed]),
            row_upper=np.append(np.full(2 * points, np.inf), cap),
            lower=np.append(lower, 0.0),
            upper=np.append(np.full(variables - 1, upper), np.inf),
        )
        hand_over(self._solver, program)
        self._rows = np.arange(2 * points, dtype=np.int32)

    def __call__(self, least: Array, most: Array) -> Array:
        """Return x (m,), for bounds (G,)."""
        unbounded = np.full(len(least), np.inf)
        row_lower = np.append(-unbounded, least)
        row_upper = np.append(most, unbounded)
        self._solver.changeRowsBounds(  # type: ignore[attr-defined]
            len(self._rows), self._rows, row_lower, row_upper
        )
        return fitted(self._solver)[:-1]


def stretched(table: ConvexTable) -> ConvexTable:
    """Return the same forms over functions that fill [0, 1]: no coefficient grows."""
    low = table.functions.min(0)
    span = table.functions.max(0) - low
    span[span < 1e-9] = 1.0
    weights = table.rows[:, 1:]
    functions = np.clip((table.functions - low) / span, 0.0, 1.0)
    constant = table.rows[:, 0] + weights @ low
    return ConvexTable(functions, np.column_stack([constant, weights * span]))


def main(file: Path) -> None:
    """Write the tables, each of fewer functions than any better one under its cap or a lower."""
    halves: list[Array] = []
    least_error = dict.fromkeys(CAPS, math.inf)  # by cap
    for size, cap in itertools.product(range(1, MAX_FUNCTIONS + 1), CAPS):
        table = stretched(optimised_table(size, cap))
        errors_to_beat = [least_error[other] for other in CAPS if other <= cap]
        if table.error < min(errors_to_beat):
            least_error[cap] = table.error
            half = (len(table.rows) + 1) // 2
            rows = table.rows[:half] * np.append(1.0, np.full(size, ROUNDING))
            halves.append(table.functions[:half].astype(np.float32))
            halves.append(rows.astype(np.float32))
    arrays: dict[str, Any] = {f"{number:03}": half for number, half in enumerate(halves)}
    np.savez_compressed(file, **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
