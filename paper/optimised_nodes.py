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

CAPS, MOST = (1.0, 3.0), 27
COARSEST, FINEST = 65, 513  # points of the grids
RESOLVED = 0.7  # cells of the last grid are shorter than this share of the error
LOOSE, LOOSE_SWEEPS = 3.0, 5  # first with a loose bound on the sums, to find where to start
SWEEPS, FINE, STALE, GAIN = 40, 257, 6, 0.003  # at most, from FINE points on half; least gain
ROUNDED = 1 - 2e-7  # so that sums stay below the cap in 32 bits


def optimised_table(size: int, cap: float) -> ConvexTable:
    """Alternate the programs on finer and finer grids until these do not matter."""
    functions = _start(size)
    for _ in range(LOOSE_SWEEPS):
        table = _sweep(functions, max(cap, LOOSE))
        functions = table.functions
    functions = _nodes(table.functions @ table.rows[:, 1:].T, size)
    while True:
        best = _settled(functions, cap)
        count = len(functions)
        if 1 / (count - 1) < RESOLVED * best.error or count >= FINEST:
            return best
        coarse, fine = np.linspace(0, 1, count), np.linspace(0, 1, 2 * count - 1)
        spline = scipy.interpolate.CubicSpline(coarse, best.functions)
        functions = np.clip(spline(fine), 0.0, 1.0)


def _settled(functions: Array, cap: float) -> ConvexTable:
    """Sweep one grid until sweeps gain next to nothing; return the best."""
    errors: list[float] = []
    for _ in range(SWEEPS if len(functions) < FINE else SWEEPS // 2):
        table = _sweep(functions, cap)
        functions = table.functions
        if not errors or table.error < errors[-1]:
            best = table
        errors.append(best.error)
        if len(errors) > STALE and errors[-1 - STALE] - errors[-1] < GAIN * errors[-1]:
            break
    return best


def _start(size: int) -> Array:
    """Functions of the approximants by the leading singular functions modulo affine ones."""
    kernel = distances(COARSEST)
    affine = np.linalg.qr(np.column_stack([np.ones(COARSEST), kernel[0]]))[0]
    rest = np.eye(COARSEST) - affine @ affine.T
    curved = rest @ kernel @ rest
    left, values, right = np.linalg.svd(curved)
    kept = (left[:, : size - 1] * values[: size - 1]) @ right[: size - 1]
    return _nodes(kernel - curved + kept, size)


def _nodes(form: Array, size: int) -> Array:
    """Make functions (G, n) of y and of the approximants of |y - t| at equally spaced t."""
    places = np.arange(1, size) / size * (len(form) - 1)
    chosen = form[:, np.round(places).astype(np.intp)]
    even = (chosen + chosen[::-1, ::-1]) / 2
    low, high = even.min(0), even.max(0)
    return np.column_stack([np.linspace(0, 1, len(form)), (even - low) / (high - low)])


def _sweep(functions: Array, cap: float) -> ConvexTable:
    """Solve for the rows given the functions, then for the functions given the rows."""
    count, size = functions.shape
    least = distances(count)
    # Next to the diagonal the form is held below e, not h + e: then so is |A_01 + A_10| / 2.
    most = np.where(least * (count - 1) < 1.5, 0.0, least)
    half = (count + 1) // 2
    design = np.column_stack([np.ones(count), functions, -functions])
    fit = _SupFit(design, np.append(-np.inf, np.zeros(2 * size)), math.inf, cap)
    parts = np.array([fit(least[t], most[t]) for t in range(half)])
    rows = np.column_stack([parts[:, 0], parts[:, 1 : size + 1] - parts[:, size + 1 :]])
    slope = rows[-1:, 1:2]  # the middle row is its own reflection
    mirrored = np.concatenate([rows[-1:, :1] + slope, -slope, rows[-1:, :1:-1]], axis=1)
    rows[-1:] = (rows[-1:] + mirrored) / 2

    values, rows_of_all = functions[:half].copy(), mirrored_table(functions[:half], rows).rows
    if size > 1:
        known = rows_of_all[:, 0] + functions[:, :1] * rows_of_all[:, 1]
        fit = _SupFit(rows_of_all[:, 2:], np.zeros(size - 1), 1.0)
        for g in range(half):
            values[g, 1:] = np.clip(fit(least[g] - known[g], most[g] - known[g]), 0.0, 1.0)
    return mirrored_table(values, rows)


class _SupFit:
    """Find x with ``least - e <= design @ x <= most + e`` for the smallest e, again and again.

    Only the right-hand sides change, so that HiGHS starts from its last solution.
    """

    def __init__(self, design: Array, lower: Array, upper: float, cap: float = math.inf) -> None:
        self._solver = new_highs()
        count, width = len(design), design.shape[1] + 1
        slack, summed = np.ones((count, 1)), np.ones((1, width))
        summed[0, [0, -1]] = 0.0  # all but the constant and e
        program = Program(
            cost=np.append(np.zeros(width - 1), 1.0),
            matrix=np.concatenate([np.block([[design, -slack], [design, slack]]), summed]),
            row_upper=np.append(np.full(2 * count, np.inf), cap),
            lower=np.append(lower, 0.0),
            upper=np.append(np.full(width - 1, upper), np.inf),
        )
        hand_over(self._solver, program)
        self._rows = np.arange(2 * count, dtype=np.int32)

    def __call__(self, least: Array, most: Array) -> Array:
        free = np.full(len(least), np.inf)
        ends = np.append(-free, least), np.append(most, free)
        self._solver.changeRowsBounds(len(self._rows), self._rows, *ends)  # type: ignore[attr-defined]
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
    best = dict.fromkeys(CAPS, math.inf)
    for size, cap in itertools.product(range(1, MOST + 1), CAPS):
        table = stretched(optimised_table(size, cap))
        if table.error < min(error for known, error in best.items() if known <= cap):
            best[cap] = table.error
            half = (len(table.rows) + 1) // 2
            rows = table.rows[:half] * np.append(1.0, np.full(size, ROUNDED))
            halves += [table.functions[:half].astype(np.float32), rows.astype(np.float32)]
    named: dict[str, Any] = {f"{k:03}": half for k, half in enumerate(halves)}
    np.savez_compressed(file, **named)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
