r"""Bases for convex losses of one coordinate: broken lines, approximate rank, optimised functions.

**Broken line** (``ReLUBasis``). Let f be convex with slopes in [-L, L], and I its broken line
through the knots i / n. In a cell of length h = 1 / n in which the slope rises from p to q, the
chord lies above f by at most h (q - p) / 4, and never below. All rises together are at most 2 L, so
0 <= I - f <= h L / 2, and the line lowered by half of its greatest excess is within L / (4 n).
Written in rectifiers max(y_j - t_i, 0), sum |r_i| reaches 3 L. In absolute values,

    I(y) = const + b y_j + sum_i m_i |y_j - t_i|,        |b| + sum_i m_i <= L,

(b the mean of the first and last slope, 2 m_i the rise at t_i), so the functions are y_j and
|y_j - t_i| / max(t_i, 1 - t_i): lambda is L. A loss whose kinks are all among the knots, evenly
spaced or not, is its own broken line.

**Approximate rank** (``ConvexRankBasis``; Gopalan et al., which Lu, Roth and Shi extend to d
coordinates). Let z = Round(m y) in {0..m} and x_i = i / m. Then |f(y) - f(z / m)| <= L / (2 m), and

    f(z / m) = f(0) + sigma ReLU_0(z) + sum_{0<i<m} Delta_i ReLU_i(z),
    sigma = f(x_1) - f(0),  Delta_i = f(x_{i-1}) - 2 f(x_i) + f(x_{i+1}) >= 0,

with |sigma| <= L / m and sigma + sum_i Delta_i <= L / m. Each ReLU_i is one at a multiple of s
minus at most s - 1 suffix intervals {i'..m}, each at most one dyadic interval of every length.
Sharing columns of a near-identity among these pays only below errors of 1e-9, so all are kept, with
s = ceil(m^(1/3)): 2 to 3 times the line.

**Optimised** (``OptimisedConvexBasis``). A convex f is const + b y + sum_k m_k |y - t_k| with
|b| + sum_k m_k <= L (a limit of such sums). So functions s_1 = y, s_2, ..., s_n with

    | c_0(t) + sum_i c_i(t) s_i(y) - |y - t| | <= e        for all y and t in [0, 1]

approximate every f within L e, with sum |r_i| <= L max(1, max_t sum_i |c_i(t)|). The shipped tables
of s and c, found by alternating linear programs (``paper/optimised_nodes.py``), are linear between
the points of an even grid and are certified when they are read. In a cell off the diagonal the
distance is bilinear like |y - t| itself, so greatest at a corner. In one on the diagonal it is
affine plus bilinear on each side, so greatest at a corner or where |y - t| = 0, and there (1 - u)^2
A_00 + u (1 - u) (A_01 + A_10) + u^2 A_11 for corner values A: at most the largest of |A_00|, |A_01
+ A_10| / 2 and |A_11|.
"""

import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from regretless.forecaster.bases.leontief import MReLUCover, rounded
from regretless.forecaster.minimax.support import BrokenLineSupport, ListedSupport
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.compiled import compiled
from regretless.market.losses import Convex1D, Loss
from regretless.market.losses.basis import Basis, Support, of_form, steepest

ROUNDING = 1e-9
ROUNDING_OF_SUMS = 1e-12  # what sums of a table's entries may round
MAX_CELLS = 100_000
MAX_TABULATED_CELLS = 2_000  # of a basis whose values are looked up
DEFAULT_ERROR = 0.01  # of a broken line whose losses have more kinks than that takes
TABLES = Path(__file__).with_name("optimised.npz")


class ConvexBasis(Basis):
    """What bases for convex losses of one coordinate share: the family and the label.

    Family: ``Convex1D`` losses of ``coordinate`` j of the d ``outcomes`` with slopes in [-constant,
    constant]. ``error`` is the wanted bound on the distance. ValueError if the coordinate does not
    exist, or the error or the constant is not positive.
    """

    knots: Array  # along the coordinate, between which all functions are linear or constant

    def __init__(
        self, error: float, *, outcomes: int = 1, coordinate: int = 0, constant: float = 1.0
    ) -> None:
        if not error > 0:
            raise ValueError(f"an error of {error} is not positive")
        if not 0 <= coordinate < outcomes:
            raise ValueError(f"coordinate {coordinate} is not one of {outcomes}")
        if not 0 < constant < math.inf:
            raise ValueError(f"a Lipschitz constant of {constant} is not positive")
        self.outcomes = outcomes
        self.coordinate = coordinate
        self.constant = constant  # L, the greatest slope of a loss

    @classmethod
    def serving(cls, losses: Sequence[Loss], *, error: float = 0.02) -> Self:
        """Make a basis that serves these losses, all of one coordinate.

        The constant is their steepest slope.
        """
        first_loss = of_form(losses, Convex1D)[0]
        return cls(
            error=error,
            constant=steepest(losses),
            outcomes=first_loss.outcomes,
            coordinate=first_loss.coordinate,
        )

    def convex(self, loss: Loss) -> Convex1D:
        """Return the loss if it belongs to the family; ValueError otherwise."""
        convex_loss = self.accept(loss, Convex1D)
        slope = steepest([convex_loss])
        limit = self.constant
        if convex_loss.coordinate != self.coordinate or slope > limit + ROUNDING:
            of_loss = f"coordinate {convex_loss.coordinate}, slopes up to {slope:.6g}"
            of_basis = f"coordinate {self.coordinate}, slopes up to {limit:.6g}"
            raise ValueError(f"a loss of {of_loss}; the basis is for {of_basis}")
        return convex_loss

    def inverse(self, points: Array) -> Array:
        """Read y_j from the first function; the losses do not depend on the rest, set to 1/2."""
        return self._outcomes_at_levels(np.minimum(np.maximum(points[..., 0], 0.0), 1.0))

    def support(self) -> Support:
        return ListedSupport(self, self._outcomes_at_levels(self.knots))

    def _outcomes_at_levels(self, levels: Array) -> Array:
        """Outcomes (..., d) with these levels of the coordinate; the rest is 1/2."""
        outcomes = np.full((*levels.shape, self.outcomes), 0.5)
        outcomes[..., self.coordinate] = levels
        return outcomes

    def _level(self, y: ArrayLike) -> Array:
        """Return the coordinate that matters (...) of outcomes (..., d)."""
        return np.asarray(np.asarray(y, dtype=np.float64)[..., self.coordinate])


@compiled(nogil=True)
def _write_distances(levels: Array, knots: Array, greatest: Array, images: Array) -> None:
    """Write levels, and their distances from knots as shares of the greatest ones (compiled).

    Parameters
    ----------
    levels : array (m,)
        The coordinate that matters of each outcome.
    knots, greatest : array (n - 1,)
        The inner knots, and the greatest distance in [0, 1] from each.
    images : array (m, n)
        Written: the level, then the distances.
    """
    for i in range(levels.shape[0]):
        images[i, 0] = levels[i]
        for j in range(knots.shape[0]):
            images[i, j + 1] = abs(levels[i] - knots[j]) / greatest[j]


class ReLUBasis(ConvexBasis):
    """The outcome and its distances from knots, equally spaced or given; lambda is ``constant``.

    The declared error is ``constant / (4 size)``. ``knots`` (m,), if given, are inner ones,
    ascending in (0, 1), for losses with no other kinks, and the error is 0; the rest is as in
    ``ConvexBasis``.

    Examples
    --------
    >>> ReLUBasis(error=0.125).transform([0.75])  # y, and its distance from 1 / 2
    array([0.75, 0.5 ])
    >>> ReLUBasis(error=0.125).error
    0.125
    """

    def __init__(self, *, error: float, knots: ArrayLike | None = None, **family: Any) -> None:
        super().__init__(error, **family)
        if knots is None:
            # the fewest cells n for which L / (4 n) is within the error, L the Lipschitz constant
            size = max(1, math.ceil(self.constant / (4 * error) - ROUNDING))
            self.knots = np.arange(size + 1) / size
            self.error = self.constant / (4 * size)
        else:
            self.knots = np.array([0.0, *np.asarray(knots), 1.0])
            self.error = 0.0
        self.size = len(self.knots) - 1
        self.lipschitz = self.constant
        self._lengths = np.diff(self.knots)
        self._inner_knots = self.knots[1:-1]
        self._greatest_distances = np.maximum(self._inner_knots, 1 - self._inner_knots)
        self.convex_image = self.size == self.outcomes == 1

    def support(self) -> Support:
        if self.outcomes == 1:
            return BrokenLineSupport(self, self.knots)
        return super().support()

    def certified_error(self, losses: Loss) -> float:
        """Return half of the losses' greatest excess, and at least what rounding may do."""
        excess = float(self._excess(self.convex(losses)).max()) / 2
        return excess if excess > ROUNDING else 0.0

    def transform(self, y: ArrayLike) -> Array:
        levels = self._level(y)
        images = np.empty((levels.size, self.size))
        _write_distances(levels.ravel(), self._inner_knots, self._greatest_distances, images)
        return images.reshape((*levels.shape, self.size))

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Interpolate the loss at the knots and lower it by half of its greatest excess."""
        convex_loss = self.convex(loss)
        values = np.moveaxis(convex_loss.losses(self._outcomes_at_levels(self.knots)), 0, -1)
        slopes = np.diff(values, axis=-1) / self._lengths
        # I(y) = const + middle y + sum_i masses_i |y - t_i| over the inner knots t_i; the rise of
        # the slope at a knot is twice its mass. Rounding may make a rise negative.
        masses = np.maximum(np.diff(slopes, axis=-1), 0.0) / 2
        mean_of_end_slopes = (slopes[..., :1] + slopes[..., -1:]) / 2
        weights = np.concatenate([mean_of_end_slopes, masses * self._greatest_distances], axis=-1)
        distances_at_zero = (masses * self._inner_knots).sum(-1)  # at y = 0 |y - t_i| is t_i
        constant = values[..., 0] - distances_at_zero
        offset = constant - self._excess(convex_loss) / 2
        return self.contiguous(offset, weights)

    def _excess(self, loss: Convex1D) -> Array:
        """Height (..., A) of the line above the loss: a triangle at each kink, in its cell."""
        kink_places = np.clip(loss.knots, 0.0, 1.0)
        cell = np.searchsorted(self._inner_knots, kink_places, side="right")
        length = self._lengths[cell]
        share_of_cell = (kink_places - self.knots[cell]) / length
        rises_of_slope = loss.kinks  # of the loss, at its kinks
        greatest_excess = np.zeros(loss.offset.shape)
        # The line's height above the loss is greatest at one of the kinks, k. There every kink of
        # the same cell adds its triangle, which is 0 at the cell's ends and highest at that kink.
        for k in range(loss.knots.shape[-1]):
            is_same_cell = cell == cell[..., k, None]
            share_of_kink = share_of_cell[..., k, None]
            left_of_both = np.minimum(share_of_kink, share_of_cell)
            right_of_both = 1 - np.maximum(share_of_kink, share_of_cell)
            unit_triangle_at_k = np.where(is_same_cell, left_of_both * right_of_both, 0.0)
            excess_at_k = (length * rises_of_slope * unit_triangle_at_k).sum(-1)
            greatest_excess = np.maximum(greatest_excess, excess_at_k)
        return np.asarray(greatest_excess)


class ConvexRankBasis(ConvexBasis):
    """Coarse ReLUs and dyadic intervals of one rounded coordinate."""

    inverse = Basis.inverse  # no function is y_j itself

    def __init__(self, *, error: float, **family: Any) -> None:
        super().__init__(error, **family)
        if error / self.constant < 0.5 / MAX_CELLS:
            raise ValueError(f"an error of {error} needs more than {MAX_CELLS} cells")
        # L is the constant and m the cells; a whole number that rounding has lifted stays itself
        self.cells = _ceiling(0.5 / (error / self.constant))  # error = L / (2 m)
        self.knots = np.arange(self.cells + 1) / self.cells
        spacing = _ceiling(math.cbrt(self.cells))  # s = m^(1/3), of the coarse ReLUs
        self.cover = MReLUCover(dimension=1, bottom=0, top=self.cells, stride=spacing)
        each_relu_alone = sparse.eye_array(self.cells + 1, format="csr")
        unit = self.constant / self.cells  # L / m
        self.size = self.cover.size
        self.error = unit / 2
        # The first slope, sigma, weighs ReLU_0, and its rises, Delta_i, weigh the others. The most
        # comes of a first slope of -L / m: then the rises may add up to 2 L / m.
        weights_of_first_relu = self.cover.greatest_sum_of_weights(each_relu_alone[[0]])
        weights_of_any_relu = self.cover.greatest_sum_of_weights(each_relu_alone)
        self.lipschitz = unit * (weights_of_first_relu + 2 * weights_of_any_relu)

    def transform(self, y: ArrayLike) -> Array:
        lattice_points = rounded(self.cells * self._level(y), 0, self.cells)
        if self.cells <= MAX_TABULATED_CELLS:
            return np.asarray(self._values_on_lattice[lattice_points])
        functions = self.cover.transform(lattice_points.reshape(-1, 1))
        return functions.reshape(*lattice_points.shape, self.size)

    @functools.cached_property
    def _values_on_lattice(self) -> Array:
        """The functions (cells + 1, n) at all lattice points, which are looked up."""
        return self.cover.transform(np.arange(self.cells + 1)[:, np.newaxis])

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Read the slopes' changes off the lattice and write its ReLUs in the functions."""
        values = np.moveaxis(self.convex(loss).losses(self._outcomes_at_levels(self.knots)), 0, -1)
        slopes = np.diff(values)  # per cell
        first_slope = slopes[..., :1]  # sigma
        rises_of_slope = np.diff(slopes)  # Delta_i
        weight_of_last = np.zeros_like(first_slope)  # whose ReLU is 0 on the lattice
        weights_of_relus = np.concatenate([first_slope, rises_of_slope, weight_of_last], -1)
        relus_as_rows = weights_of_relus.reshape(-1, self.cells + 1)
        weights = np.asarray(relus_as_rows @ self.cover.coefficients)
        offset = values[..., 0] + weights_of_relus @ self.cover.constant
        return self.contiguous(offset, weights)


def _ceiling(number: float) -> int:
    """Round a number up, but not one that is whole up to rounding."""
    return math.ceil(round(number, 9))


class OptimisedConvexBasis(ConvexBasis):
    """The outcome and n - 1 optimised functions of it, from a shipped table.

    Error and lambda, at most ``constant * cap``, are maxima over the family. With the cap 1, the
    least, n is 3, 7, 11 at errors 0.05 L, 0.02 L, 0.01 L, where ``ReLUBasis`` has 5, 13, 25.
    ValueError if no table keeps cap and error; the rest is as in ``ConvexBasis``.
    """

    def __init__(self, *, error: float, cap: float = 1.0, **family: Any) -> None:
        super().__init__(error, **family)
        if not 1 <= cap < math.inf:
            raise ValueError(f"a cap of {cap} is below 1, which a linear loss needs")
        tables_below_cap = [table for table in tables() if table.lipschitz <= cap + ROUNDING]
        # tables are for slopes up to 1, losses have slopes up to the Lipschitz constant
        fine_tables = [table for table in tables_below_cap if table.error <= error / self.constant]
        if not fine_tables:
            fault = f"an error of {error / self.constant:.3g} of the slope is below"
            least_error = min(table.error for table in tables_below_cap)
            cure = f"{least_error:.3g}, that of the finest table; use ReLUBasis"
            raise ValueError(f"{fault} {cure}")
        self.shipped = fine_tables[0]  # of these the one with fewest functions, which comes first
        count, self.size = self.shipped.functions.shape
        self.knots = np.linspace(0, 1, count)
        self.error = self.constant * self.shipped.error
        self.lipschitz = self.constant * self.shipped.lipschitz
        self.convex_image = self.size == self.outcomes == 1

    def transform(self, y: ArrayLike) -> Array:
        return interpolated(self.shipped.functions, self._level(y))

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Write every kink as (|y - t| + y - t) / 2 and sum the rows of the |y - t|."""
        convex_loss = self.convex(loss)
        # A kink of height m at t adds m (|y - t| + y - t) / 2 inside [0, 1], m (y - t) below it
        # and nothing above: ``masses`` are of the |y - t|, ``rises`` of the y - t.
        is_below = convex_loss.knots <= 0
        is_inside = (convex_loss.knots > 0) & (convex_loss.knots < 1)
        masses = np.where(is_inside, convex_loss.kinks / 2, 0.0)
        rises = np.where(is_below, convex_loss.kinks, masses)
        total = np.zeros((*convex_loss.offset.shape, self.size + 1))  # constant, then weights
        for k in range(convex_loss.knots.shape[-1]):
            kink = np.clip(convex_loss.knots[..., k], 0.0, 1.0)
            coefficients_of_kink = interpolated(self.shipped.rows, kink)  # of |y - t|
            total += masses[..., k, None] * coefficients_of_kink
        offset = convex_loss.offset + total[..., 0] - (rises * convex_loss.knots).sum(-1)
        total[..., 1] += convex_loss.slope + rises.sum(-1)
        return self.contiguous(offset, total[..., 1:])


class ConvexTable(NamedTuple):
    """Functions and coefficients that approximate |y - t|, linear between the grid's points."""

    functions: Array  # (G, n) values at y_g; the first is y
    rows: Array  # (G, n + 1) constant and coefficients for t_g

    @property
    def lipschitz(self) -> float:
        """Greatest sum of absolute coefficients, and at least the 1 of y alone."""
        return max(1.0, float(np.abs(self.rows[:, 1:]).sum(1).max()))

    @property
    def error(self) -> float:
        """Greatest distance from |y - t| over all y and t."""
        approximation = self.rows[:, 0] + self.functions @ self.rows[:, 1:].T  # (G, G): of y and t
        error_at_corners = np.abs(approximation - distances(len(approximation))).max()
        # in the cells along y = t the kink is in the middle
        # there the error is at most |A_01 + A_10| / 2, A its values at the cell's corners off y = t
        sum_of_corners = np.diag(approximation, 1) + np.diag(approximation, -1)
        error_on_diagonal = np.abs(sum_of_corners).max() / 2
        return float(max(error_at_corners, error_on_diagonal)) + ROUNDING_OF_SUMS


def distances(count: int) -> Array:
    """|y - t| on the even grid of ``count`` points."""
    points = np.linspace(0, 1, count)
    return np.abs(points[:, None] - points)


def interpolated(table: Array, points: Array) -> Array:
    """Interpolate the rows (G, m) of a table on the even grid at points (...): (..., m)."""
    rows = np.empty((points.size, table.shape[1]))
    _write_interpolated(points.ravel(), table, rows)
    return rows.reshape(*points.shape, table.shape[1])


@compiled(nogil=True)
def _write_interpolated(points: Array, table: Array, rows: Array) -> None:
    """Write the rows between those of a table on the even grid, by linear shares (compiled).

    Parameters
    ----------
    points : array (T,)
        Of [0, 1].
    table : array (G, m)
        Its rows are of the points 0, 1 / (G - 1), ..., 1.
    rows : array (T, m)
        Written.
    """
    last_cell = table.shape[0] - 2
    for t in range(points.shape[0]):
        position = points[t] * (table.shape[0] - 1)
        cell = int(min(max(math.floor(position), 0), last_cell))
        share = position - cell
        for i in range(table.shape[1]):
            rows[t, i] = (1 - share) * table[cell, i] + share * table[cell + 1, i]


@functools.cache
def tables() -> tuple[ConvexTable, ...]:
    """Read the shipped tables, those of fewest functions first."""
    # The file holds functions and rows of one table after another, each for y up to 1/2.
    with np.load(TABLES, allow_pickle=False) as file:
        half_tables = [np.asarray(file[name], dtype=np.float64) for name in sorted(file.files)]
    whole_tables = []
    for functions, rows in zip(half_tables[::2], half_tables[1::2], strict=True):
        whole_tables.append(mirrored_table(functions, rows))
    return tuple(whole_tables)


def mirrored_table(functions: Array, rows: Array) -> ConvexTable:
    """Rebuild a table from the half of its points up to 1/2: y -> 1 - y swaps s_2..s_n."""
    # [:-1] leaves out the middle, y = 1/2, which both halves share; the rows then go backwards.
    upper = np.concatenate([1 - functions[:-1, :1], functions[:-1, :0:-1]], axis=1)[::-1]
    slope = rows[:-1, 1:2]  # the coefficient of y; b (1 - y) = b - b y also adds to the constant
    mirrored = np.concatenate([rows[:-1, :1] + slope, -slope, rows[:-1, :1:-1]], axis=1)[::-1]
    return ConvexTable(np.concatenate([functions, upper]), np.concatenate([rows, mirrored]))


@register.basis("relu")
def relu(
    losses: Sequence[Loss], *, error: float | None = None, most_kinks: int | None = None
) -> Basis:
    """Put knots at the losses' own kinks where that takes fewer functions than a fine even grid.

    It puts them there, too, if there are at most ``most_kinks``.
    """
    even = ReLUBasis.serving(losses, error=DEFAULT_ERROR if error is None else error)
    kinks = np.concatenate([np.unique(loss.knots) for loss in of_form(losses, Convex1D)])
    inner_kinks = np.unique(kinks[(kinks > 0) & (kinks < 1)])
    if error is not None or len(inner_kinks) >= max(even.size, (most_kinks or 0) + 1):
        return even
    return ReLUBasis(
        error=DEFAULT_ERROR,
        knots=inner_kinks,
        constant=even.constant,
        outcomes=even.outcomes,
        coordinate=even.coordinate,
    )


register.basis("convex-rank")(ConvexRankBasis.serving)
register.basis("optimised-convex")(OptimisedConvexBasis.serving)
