r"""The smallest basis known here for convex losses of one coordinate, found by linear programs.

A convex f with slopes in [-L, L] is const + b y + sum_k m_k |y - t_k| with |b| + sum_k m_k <= L
(a limit of such sums). So functions s_1 = y, s_2, ..., s_n that approximate every |y - t|,

    | c_0(t) + sum_i c_i(t) s_i(y) - |y - t| | <= e        for all y and t in [0, 1],

approximate every f within L e, with coefficients b + sum_k m_k c_1(t_k), sum_k m_k c_i(t_k), and
sum |r_i| <= L max(1, max_t sum_i |c_i(t)|). This is low-rank approximation of the matrix |y - t|
in the largest entry. It starts from the leading singular functions modulo affine ones and
alternates two families of sup-norm programs: a row of coefficients for each t given the
functions, with sum_i |c_i(t)| <= cap, and the values in [0, 1] at each y given the coefficients.
The reflection y -> 1 - y, which swaps the functions s_2..s_n end for end, halves the work.

All is on an even grid and linear in between. In a cell off the diagonal the distance is bilinear
like |y - t| itself, so greatest at a corner. In a cell on the diagonal it is affine plus bilinear
on each side, so greatest at a corner or on the diagonal, where |y - t| = 0 and the form is
(1 - u)^2 A_00 + u (1 - u) (A_01 + A_10) + u^2 A_11 for corner values A: at most the largest of
|A_00|, |A_01 + A_10| / 2 and |A_11|. So the certificate holds for all y and t, not on a grid.

With the cap 1, lambda is L as for ``ReLUBasis``, and n is 3, 7, 11, 19, 28 at errors 0.05 L,
0.02 L, 0.01 L, 0.005 L, 0.003 L, where that takes 5, 13, 25, 50, 84. The cap 3 saves one function
at most and costs more in lambda sqrt(n).
"""

import functools
import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from regretless.forecaster.bases.relu import ROUNDING, ConvexBasis
from regretless.market.core.arrays import Array
from regretless.market.losses import Loss
from regretless.market.numerics.linear_program import Program, fitted, hand_over, new_highs

COARSEST = 65
RESOLVED = 0.7  # cells of the finest grid are shorter than this share of the error
GAINED = 0.1  # of a cell: more than finer grids were seen to gain
LOOSE, LOOSE_SWEEPS = 3.0, 5  # first with a loose bound on the sums, to find where to start
SWEEPS, FINE, FINE_SWEEPS = 20, 257, 10  # on each grid, on those of at least FINE points
MOST = 64
# The search begins with FIRST (FIRST_ERROR / error) ** RATE functions, as found before.
FIRST, FIRST_ERROR, RATE = 7, 0.0178, 0.8


@dataclass(frozen=True)
class ConvexTable:
    """Functions and coefficients that approximate |y - t|, linear between the grid's points.

    Attributes
    ----------
    functions : array (G, n)
        Values at y_g; the first is y.
    rows : array (G, n + 1)
        Constant and coefficients for t_g.
    """

    functions: Array
    rows: Array

    @property
    def lipschitz(self) -> float:
        """Greatest sum of absolute coefficients, and at least the 1 of y alone."""
        return max(1.0, float(np.abs(self.rows[:, 1:]).sum(1).max()))

    @property
    def error(self) -> float:
        """Greatest distance from |y - t| over all y and t."""
        form = self.rows[:, 0] + self.functions @ self.rows[:, 1:].T
        corners = np.abs(form - distances(len(form))).max()
        diagonal = np.abs(np.diag(form, 1) + np.diag(form, -1)).max() / 2
        return float(max(corners, diagonal)) + 1e-12

    def stretched(self) -> "ConvexTable":
        """Return the same forms over functions that fill [0, 1]: no coefficient grows."""
        low = self.functions.min(0)
        span = self.functions.max(0) - low
        span[span < ROUNDING] = 1.0
        weights = self.rows[:, 1:]
        constant = self.rows[:, 0] + weights @ low
        functions = np.clip((self.functions - low) / span, 0.0, 1.0)
        return ConvexTable(functions, np.column_stack([constant, weights * span]))


class OptimisedConvexBasis(ConvexBasis):
    """The outcome and n - 1 optimised functions of it.

    Family: ``Convex1D`` losses of this coordinate with slopes in [-constant, constant]. The
    declared error and lambda, at most ``constant * cap``, are maxima over the family.

    Parameters
    ----------
    error : float
        Wanted bound on the distance.
    outcomes, coordinate, constant : as in ``ConvexBasis``
    cap : float
        Bound on lambda in units of the constant, at least 1.

    Raises
    ------
    ValueError
        If the error takes more than 64 functions, the cap is below 1, or as in ``ConvexBasis``.
    """

    def __init__(
        self,
        *,
        error: float,
        outcomes: int = 1,
        coordinate: int = 0,
        constant: float = 1.0,
        cap: float = 1.0,
    ) -> None:
        super().__init__(error, outcomes=outcomes, coordinate=coordinate, constant=constant)
        if not 1 <= cap < math.inf:
            raise ValueError(f"a cap of {cap} is below 1, which a linear loss needs")
        self.table = smallest_table(error / constant, cap)
        self.size = self.table.functions.shape[1]
        self.error = constant * self.table.error
        self.lipschitz = constant * self.table.lipschitz
        self.convex_image = self.size == outcomes == 1

    def transform(self, y: ArrayLike) -> Array:
        """Map outcomes (..., d) to (..., n)."""
        return along(self.table.functions, np.asarray(y, dtype=np.float64)[..., self.coordinate])

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Write every kink as (|y - t| + y - t) / 2 and sum the rows of the |y - t|."""
        found = self.convex(loss)
        before, inside = found.knots <= 0, (found.knots > 0) & (found.knots < 1)
        masses = np.where(inside, found.kinks / 2, 0.0)
        rises = np.where(before, found.kinks, masses)
        total = np.zeros((*found.offset.shape, self.size + 1))
        for k in range(found.knots.shape[-1]):
            row = along(self.table.rows, np.clip(found.knots[..., k], 0.0, 1.0))
            total += masses[..., k, None] * row
        offset = found.offset + total[..., 0] - (rises * found.knots).sum(-1)
        total[..., 1] += found.slope + rises.sum(-1)
        return offset, np.ascontiguousarray(total[..., 1:])


def along(table: Array, points: Array) -> Array:
    """Interpolate the rows (G, m) of a table on the even grid at points (...): (..., m)."""
    place = points * (len(table) - 1)
    cell = np.clip(np.floor(place), 0, len(table) - 2).astype(np.intp)
    share = (place - cell)[..., None]
    return np.asarray((1 - share) * table[cell] + share * table[cell + 1])


def distances(count: int) -> Array:
    """|y - t| on the even grid of ``count`` points."""
    points = np.linspace(0, 1, count)
    return np.abs(points[:, None] - points)


@functools.lru_cache(maxsize=64)
def smallest_table(error: float, cap: float) -> ConvexTable:
    """Find the fewest functions that approximate every |y - t| within the error, under the cap.

    Raises
    ------
    ValueError
        If more than ``MOST`` functions would be needed.
    """
    size = max(1, round(FIRST * (FIRST_ERROR / error) ** RATE))
    best, tried = None, set[int]()
    while 1 <= size <= MOST and size not in tried:
        tried.add(size)
        found = optimised_table(size, error, cap)
        if found.error <= error:
            best, size = found, size - 1
        elif best is None:
            size += 1
    if best is None:
        raise ValueError(f"an error of {error:.3g} of the slope needs more than {MOST} functions")
    return best


def optimised_table(size: int, error: float, cap: float) -> ConvexTable:
    """Alternate the programs on finer and finer grids until the error is reached, or hopeless."""
    functions = _start(size)
    for _ in range(LOOSE_SWEEPS):
        table = _sweep(functions, max(cap, LOOSE))
        functions = table.functions
    functions = _nodes(table.functions @ table.rows[:, 1:].T, size)
    while True:
        cell, last = 1 / (len(functions) - 1), math.inf
        finest = cell < RESOLVED * error
        within = error if finest else error + GAINED * cell
        for left in reversed(range(SWEEPS if len(functions) < FINE else FINE_SWEEPS)):
            table = _sweep(functions, cap)
            functions, now = table.functions, table.error
            # sweeps gain less and less: what is left of them cannot make up the difference
            if now <= error or now - within > left * (last - now):
                return table.stretched()
            last = now
        if finest:
            return table.stretched()
        functions = _finer(functions)


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


def _finer(functions: Array) -> Array:
    """Halve the cells of the grid."""
    coarse, fine = (np.linspace(0, 1, count) for count in (len(functions), 2 * len(functions) - 1))
    spline = scipy.interpolate.CubicSpline(coarse, functions)
    return np.asarray(np.clip(spline(fine), 0.0, 1.0))


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
    rows = np.empty((count, size + 1))
    rows[:half, 0] = parts[:, 0]
    rows[:half, 1:] = parts[:, 1 : size + 1] - parts[:, size + 1 :]
    rows[half - 1] = (rows[half - 1] + _mirrored(rows[half - 1])) / 2
    rows[half:] = _mirrored(rows[half - 2 :: -1])

    values = functions.copy()
    if size > 1:
        known = rows[:, 0] + functions[:, :1] * rows[:, 1]
        fit = _SupFit(rows[:, 2:], np.zeros(size - 1), 1.0)
        for g in range(half):
            values[g, 1:] = np.clip(fit(least[g] - known[g], most[g] - known[g]), 0.0, 1.0)
        values[half:, 1:] = values[half - 2 :: -1, :0:-1]
    return ConvexTable(values, rows)


def _mirrored(rows: Array) -> Array:
    """Rows (..., n + 1) of the reflected form: y becomes 1 - y, the others change places."""
    slope = rows[..., 1:2]
    return np.concatenate([rows[..., :1] + slope, -slope, rows[..., :1:-1]], axis=-1)


class _SupFit:
    """Find x with ``least - e <= design @ x <= most + e`` for the smallest e, again and again.

    Only the right-hand sides change, so that HiGHS starts from its last solution.
    """

    def __init__(self, design: Array, lower: Array, upper: float, cap: float | None = None) -> None:
        self._solver = new_highs()
        count, width = len(design), design.shape[1] + 1
        slack, summed = np.ones((count, 1)), np.ones((1, width))
        summed[0, [0, -1]] = 0.0  # all but the constant and e
        matrix = np.concatenate([np.block([[design, -slack], [design, slack]]), summed])
        program = Program(
            cost=np.append(np.zeros(width - 1), 1.0),
            matrix=matrix,
            row_upper=np.append(np.full(2 * count, np.inf), cap or np.inf),
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
