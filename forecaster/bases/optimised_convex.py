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

With the cap 1, lambda is L as for ``ReLUBasis``, and n is 3, 7, 12, 21 at errors 0.05 L, 0.02 L,
0.01 L, 0.005 L where it takes 5, 13, 25, 50. Looser caps save few functions (cap 3: 3, 6, 11, 18)
and cost more in lambda sqrt(n) than they save.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline
from scipy.optimize import linprog

from forecaster.bases.relu import ROUNDING, ConvexBasis
from market.losses import Loss

Array = NDArray[np.float64]

COARSEST = 65
RESOLVED = 0.7  # cells of the finest grid are shorter than this share of the error
FREE_CAP, FREE_SWEEPS = 3.0, 5  # first with a loose cap, to find where to start
SWEEPS, FINE, FINE_SWEEPS = 6, 257, 4  # on each grid, on those of at least FINE points
MOST = 40  # an error of 0.0025; programs take a minute for 0.005, three for 0.003
# The search begins with FIRST (FIRST_ERROR / error) ** RATE functions, as found before.
FIRST, FIRST_ERROR, RATE = 7, 0.0185, 0.83


@dataclass(frozen=True)
class Table:
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

    def stretched(self) -> Table:
        """Return the same forms over functions that fill [0, 1]: no coefficient grows."""
        low = self.functions.min(0)
        span = self.functions.max(0) - low
        span[span < ROUNDING] = 1.0
        weights = self.rows[:, 1:]
        constant = self.rows[:, 0] + weights @ low
        functions = np.clip((self.functions - low) / span, 0.0, 1.0)
        return Table(functions, np.column_stack([constant, weights * span]))


class OptimisedConvexBasis(ConvexBasis):
    """The outcome and n - 1 optimised functions of it.

    Family: ``Convex1D`` losses of this coordinate with slopes in [-constant, constant]. Both the
    declared error and lambda, which is at most ``constant * cap``, are maxima over the family.

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
        If the cap is below 1, the error is not positive or takes more than 40 functions, or as in
        ``ConvexBasis``.
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
        super().__init__(outcomes, coordinate, constant)
        if not error > 0:
            raise ValueError(f"an error of {error} is not positive")
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
def smallest_table(error: float, cap: float) -> Table:
    """Find the fewest functions that approximate every |y - t| within the error, under the cap.

    Raises
    ------
    ValueError
        If more than ``MOST`` functions would be needed.
    """
    size = max(1, round(FIRST * (FIRST_ERROR / error) ** RATE))
    best = None
    while 1 <= size <= MOST:
        found = optimised_table(size, error, cap)
        if found.error <= error:
            best, size = found, size - 1
        elif best is None:
            size += 1
        else:
            break
    if best is None:
        raise ValueError(f"an error of {error:.3g} of the slope needs more than {MOST} functions")
    return best


def optimised_table(size: int, error: float, cap: float) -> Table:
    """Alternate the programs on finer and finer grids until the error is reached, or hopeless."""
    functions = _start(size)
    for _ in range(FREE_SWEEPS):
        table = _sweep(functions, max(cap, FREE_CAP))
        functions = table.functions
    functions = _nodes(table.functions @ table.rows[:, 1:].T, size)
    points = COARSEST
    while True:
        finest = 1 / (points - 1) < RESOLVED * error
        last = math.inf
        rounds = SWEEPS if points < FINE else FINE_SWEEPS
        for left in reversed(range(rounds)):
            table = _sweep(functions, cap)
            functions, now = table.functions, table.error
            # sweeps gain less and less: what is left of them cannot make up the difference
            if now <= error or (finest and now - error > left * (last - now)):
                return table.stretched()
            last = now
        if finest:
            return table.stretched()
        functions = _finer(functions)
        points = len(functions)


def _start(size: int) -> Array:
    """Functions of the approximants by the leading singular functions modulo affine ones."""
    kernel, points = distances(COARSEST), np.linspace(0, 1, COARSEST)
    affine = np.linalg.qr(np.column_stack([np.ones(COARSEST), points]))[0]
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
    return np.asarray(np.clip(CubicSpline(coarse, functions)(fine), 0.0, 1.0))


def _sweep(functions: Array, cap: float) -> Table:
    """Solve for the rows given the functions, then for the functions given the rows."""
    count, size = functions.shape
    least = distances(count)
    # Next to the diagonal the form is held below e, not h + e: then so is |A_01 + A_10| / 2.
    most = np.where(least * (count - 1) < 1.5, 0.0, least)
    half = (count + 1) // 2

    rows = np.empty((count, size + 1))
    for t in range(half):
        rows[t] = _row(functions, least[:, t], most[:, t], cap)
    rows[half - 1] = (rows[half - 1] + _mirrored(rows[half - 1])) / 2
    rows[half:] = _mirrored(rows[half - 2 :: -1])

    values = functions.copy()
    if size > 1:
        known = rows[:, 0] + functions[:, :1] * rows[:, 1]
        for g in range(half):
            ends = least[g] - known[g], most[g] - known[g]
            values[g, 1:] = _least_sup(rows[:, 2:], *ends, [(0.0, 1.0)] * (size - 1))
        values[half:, 1:] = values[half - 2 :: -1, :0:-1]
    return Table(values, rows)


def _mirrored(rows: Array) -> Array:
    """Rows (..., n + 1) of the reflected form: y becomes 1 - y, the others change places."""
    first, slope = rows[..., :1], rows[..., 1:2]
    return np.concatenate([first + slope, -slope, rows[..., :1:-1]], axis=-1)


def _row(functions: Array, least: Array, most: Array, cap: float) -> Array:
    """Find constant and coefficients (n + 1,) for one t, their absolute sum at most the cap."""
    count, size = functions.shape
    design = np.column_stack([np.ones(count), functions, -functions])
    bounds = [(None, None), *[(0.0, None)] * (2 * size)]
    found = _least_sup(design, least, most, bounds, cap)
    return np.concatenate([found[:1], found[1 : size + 1] - found[size + 1 :]])


def _least_sup(
    design: Array,
    least: Array,
    most: Array,
    bounds: Sequence[tuple[float | None, float | None]],
    cap: float | None = None,
) -> Array:
    """Find x with ``least - e <= design @ x <= most + e`` for the smallest e."""
    slack = -np.ones((len(design), 1))
    table, limits = np.block([[design, slack], [-design, slack]]), [most, -least]
    if cap is not None:  # on the sum of all but the constant and e
        summed = np.ones((1, table.shape[1]))
        summed[0, [0, -1]] = 0.0
        table, limits = np.concatenate([table, summed]), [*limits, np.array([cap])]
    cost = np.zeros(table.shape[1])
    cost[-1] = 1.0
    limit = np.concatenate(limits)
    found = linprog(cost, A_ub=table, b_ub=limit, bounds=[*bounds, (0.0, None)], method="highs-ds")
    if found.x is None:
        raise ArithmeticError(f"a linear program was not solved: {found.message}")
    return np.asarray(found.x[:-1])
