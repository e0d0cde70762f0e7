r"""The support function of the image of a basis: the best outcome in a direction, and how good.

For a direction h in R^n a support oracle returns an outcome y whose h . s(y) is (nearly) the
greatest and an upper bound on max h . s(z) over **all** outcomes z in [0, 1]^d. With it a game
over conv s(Y) is solved and certified without listing s(Y).

Each oracle compares h . s with a function that is linear in between finitely many outcomes, where
it is greatest at one of them. If f lies at most ``above`` over and ``below`` under its interpolant,

    h . s(z) <= max_v h . s(y_v) + sum_i max(h_i above_i, -h_i below_i).

Along an axis with cell width w, interpolation between the ends of a cell errs by at most
w^2 / 8 max |f''|, by (b - a) w / 4 for a slope in [a, b], and by the range of f. Interpolation
axis by axis is an average of the ends, so the errors of the axes add up.
"""

from abc import abstractmethod
from itertools import product

import numpy as np

from regretless.market.core.arrays import Array, grid_points
from regretless.market.core.compiled import compiled
from regretless.market.losses.basis import Basis, Support, Vertex

ROUNDING = 1e-12  # of s(y), which is in [0, 1]
PRECISION = 3e-4  # gap per unit of |h|_1 at which cells are not split any more
# rounds of splitting, and children in one of them
MAX_SPLITS = 8
MAX_CHILDREN = 512
# of a grid, and in its table of s
MAX_GRID_POINTS = 20_000
MAX_GRID_NUMBERS = 600_000
MAX_LISTED_NUMBERS = 8_000_000  # numbers in the s of listed outcomes
OUTCOMES_OF_CHUNK = 16  # outcomes listed one after another, whose values are bounded together


def values(images: Array, direction: Array) -> Array:
    """Compute h . s (V,), without the threads that a matrix product would start."""
    return np.asarray(np.einsum("vi,i->v", images, direction))


@compiled(counts_references=False)
def inner_product(images: Array, row: int, direction: Array) -> float:
    """Return h . s of one row of images (V, n) (compiled).

    Its bits are those of ``values``: NumPy adds up the even and the odd coordinates, by eights,
    and in each eight the last ones first.
    """
    size = direction.shape[0]
    even_sum = 0.0
    odd_sum = 0.0
    first = 0
    while first + 8 <= size:
        even_sum += images[row, first + 6] * direction[first + 6]
        odd_sum += images[row, first + 7] * direction[first + 7]
        even_sum += images[row, first + 4] * direction[first + 4]
        odd_sum += images[row, first + 5] * direction[first + 5]
        even_sum += images[row, first + 2] * direction[first + 2]
        odd_sum += images[row, first + 3] * direction[first + 3]
        even_sum += images[row, first] * direction[first]
        odd_sum += images[row, first + 1] * direction[first + 1]
        first += 8
    while first + 2 <= size:
        even_sum += images[row, first] * direction[first]
        odd_sum += images[row, first + 1] * direction[first + 1]
        first += 2
    if first < size:
        even_sum += images[row, first] * direction[first]
    return even_sum + odd_sum


@compiled()
def least_row(images: Array, direction: Array) -> int:
    """Return the first row of images (V, n) whose h . s is least, h the direction (compiled)."""
    best_row = 0
    least_value = np.inf
    for row in range(images.shape[0]):
        value = inner_product(images, row, direction)
        if value < least_value:
            best_row = row
            least_value = value
    return best_row


@compiled()
def write_values_near_greatest(
    images: Array,
    highest: Array,
    lowest: Array,
    direction: Array,
    margin: float,
    limits: Array,
    values_of_rows: Array,
) -> None:
    """Write h . s of the rows that can be within a margin of the greatest one (compiled).

    Over a chunk of rows h . s is at most sum_i max(h_i highest_i, h_i lowest_i). The chunk where
    this is greatest has a row whose value is attained; chunks that cannot come near it are left
    out. Of a grid of 20,000 outcomes that is nearly all.

    Parameters
    ----------
    images : array (V, n)
        s of every row.
    highest, lowest : array (n, C)
        The greatest and the least s_i of every chunk of ``OUTCOMES_OF_CHUNK`` rows.
    direction : array (n,)
        h.
    margin : float
        Not below 0.
    limits : array (C,)
        Overwritten.
    values_of_rows : array (V,)
        Written: h . s, or minus infinity for the rows that are left out.
    """
    n_rows = images.shape[0]
    n_chunks = limits.shape[0]
    rounding = 0.0
    for c in range(n_chunks):
        limits[c] = 0.0
    for i in range(direction.shape[0]):
        rounding += ROUNDING * abs(direction[i])
        bounds_of_coordinate = highest[i] if direction[i] > 0.0 else lowest[i]
        for c in range(n_chunks):
            limits[c] += direction[i] * bounds_of_coordinate[c]
    most_promising = 0
    for c in range(n_chunks):
        if limits[c] > limits[most_promising]:
            most_promising = c
    attained = -np.inf
    first = most_promising * OUTCOMES_OF_CHUNK
    for row in range(first, min(first + OUTCOMES_OF_CHUNK, n_rows)):
        attained = max(attained, inner_product(images, row, direction))
    for c in range(n_chunks):
        first = c * OUTCOMES_OF_CHUNK
        end = min(first + OUTCOMES_OF_CHUNK, n_rows)
        if limits[c] + rounding < attained - margin:
            for row in range(first, end):
                values_of_rows[row] = -np.inf
        else:
            for row in range(first, end):
                values_of_rows[row] = inner_product(images, row, direction)


def excess(direction: Array, above: Array, below: Array) -> Array:
    """Bound how far h . s rises over its interpolant; ``above`` and ``below`` (..., n), h (n,)."""
    rise = np.einsum("...i,i->...", above, np.maximum(direction, 0.0))
    fall = np.einsum("...i,i->...", below, np.maximum(-direction, 0.0))
    return np.asarray(rise + fall + ROUNDING * np.abs(direction).sum())


class ListedSupport(Support):
    """Listed outcomes (V, d), between which s is linear or constant."""

    def __init__(self, basis: Basis, listed_outcomes: Array) -> None:
        self.outcomes = basis.outcomes
        self.size = basis.size
        if len(listed_outcomes) * self.size > MAX_LISTED_NUMBERS:
            fault = f"{len(listed_outcomes)} x {self.size} numbers are too many"
            raise ValueError(f"{fault}; use a coarser basis")
        self._listed_outcomes = listed_outcomes
        self._images = np.ascontiguousarray(basis.transform(listed_outcomes))  # (V, n)
        # the greatest and the least s_i of every chunk of outcomes (n, C)
        first_of_chunks = np.arange(0, len(listed_outcomes), OUTCOMES_OF_CHUNK)
        highest = np.maximum.reduceat(self._images, first_of_chunks)
        lowest = np.minimum.reduceat(self._images, first_of_chunks)
        self._highest = np.ascontiguousarray(highest.T)
        self._lowest = np.ascontiguousarray(lowest.T)

    def best(self, direction: Array) -> Vertex:
        best_index = int(self._values_near_greatest(direction).argmax())
        return Vertex(self._listed_outcomes[best_index], self._images[best_index])

    def bound(self, direction: Array, *, enough: float = -np.inf) -> float:
        """Return the greatest value of the list: there is none between."""
        slack = ROUNDING * np.abs(direction).sum()
        return float(self._values_near_greatest(direction).max() + slack)

    def _values_near_greatest(self, direction: Array, margin: float = 0.0) -> Array:
        """Return h . s (V,); minus infinity where it is further than a margin from the greatest."""
        values_of_rows = np.empty(len(self._images))
        limits = np.empty(self._highest.shape[1])
        write_values_near_greatest(
            self._images, self._highest, self._lowest, direction, margin, limits, values_of_rows
        )
        return values_of_rows


class BrokenLineSupport(ListedSupport):
    """Ascending ``levels`` (V,) of the only coordinate, between which s is linear."""

    def __init__(self, basis: Basis, levels: Array) -> None:
        super().__init__(basis, levels[:, None])
        self._levels = levels

    def spread(self, outcomes: Array, weights: Array) -> tuple[Array, Array, Array]:
        """Return outcomes of the list, their images and weights, with the same mean of s.

        An outcome between two levels shares its weight among them, so that its own mean stays, and
        as s is linear there its s(y) does.

        Parameters
        ----------
        outcomes, weights : array (e, 1), array (e,)
            An ensemble of outcomes in [0, 1].

        Returns
        -------
        arrays (m, 1), (m, n), (m,)
            The outcomes that have some weight.
        """
        values_of_outcomes = outcomes[:, 0]
        last_cell = len(self._levels) - 2
        cell = np.searchsorted(self._levels, values_of_outcomes, side="right") - 1
        cell = np.minimum(cell, last_cell)
        length = self._levels[cell + 1] - self._levels[cell]
        share_of_upper = (values_of_outcomes - self._levels[cell]) / length
        n_levels = len(self._levels)
        lower_weights = np.bincount(cell, weights * (1 - share_of_upper), n_levels)
        upper_weights = np.bincount(cell + 1, weights * share_of_upper, n_levels)
        total_weights = np.asarray(lower_weights + upper_weights, dtype=np.float64)
        kept = np.flatnonzero(total_weights)
        return self._listed_outcomes[kept], self._images[kept], total_weights[kept]


class SeparableSupport(Support):
    """Functions of one coordinate each, the same number for every coordinate, side by side.

    Along every coordinate there are ``knots`` (G,) from 0 to 1; a function rises over and falls
    under its interpolant by ``above`` and ``below`` (n,).
    """

    def __init__(self, basis: Basis, knots: Array, above: Array, below: Array) -> None:
        self.outcomes = basis.outcomes
        self.size = basis.size
        self._knots = knots
        self._above = above
        self._below = below
        images = basis.transform(np.repeat(knots[:, None], self.outcomes, axis=1))
        # (G, d, n / d): the functions of each coordinate at each knot
        self._images = np.ascontiguousarray(images.reshape(len(knots), self.outcomes, -1))

    def best(self, direction: Array) -> Vertex:
        """Return the outcome that is best coordinate by coordinate."""
        best_knots = self._values_of_coordinates(direction).argmax(1)
        image = self._images[best_knots, np.arange(self.outcomes)]
        return Vertex(self._knots[best_knots], image.ravel())

    def bound(self, direction: Array, *, enough: float = -np.inf) -> float:
        """Add up the coordinates' greatest values, and what they miss between the knots."""
        slack = excess(direction, self._above, self._below)
        return float(self._values_of_coordinates(direction).max(1).sum() + slack)

    def _values_of_coordinates(self, direction: Array) -> Array:
        """Return what each coordinate (d, G) adds to h . s at each knot."""
        direction_of_coordinates = direction.reshape(self.outcomes, -1)
        return np.asarray(np.einsum("gdm,dm->dg", self._images, direction_of_coordinates))


class CellBasis(Basis):
    """A basis that knows how its functions bend over boxes, in levels: coordinates of its own."""

    def outcomes_at(self, levels: Array) -> Array:
        """Turn levels (T, d) into outcomes (T, d)."""
        return levels

    @abstractmethod
    def errors(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Return ``above`` and ``below`` (T, n) on boxes of levels with these corners (T, d)."""


class CellSupport(ListedSupport):
    """A grid of cells with an error of interpolation each; the worst cells are split in halves.

    The grid's levels along an axis are even between ``low`` and ``high``, or these raised to a
    ``power``, which makes them denser towards 0; there are as many as the limits allow.
    """

    def __init__(self, basis: CellBasis, low: float, high: float, power: int = 1) -> None:
        max_points = min(MAX_GRID_POINTS, MAX_GRID_NUMBERS // basis.size)
        levels_per_axis = max_points ** (1 / basis.outcomes)
        levels_per_axis = max(int(levels_per_axis + 1e-9), 2)  # the root may be off by rounding
        levels = np.linspace(low, high, levels_per_axis) ** power
        super().__init__(basis, basis.outcomes_at(grid_points(levels, basis.outcomes)))
        self._basis = basis
        self._shape = (len(levels),) * self.outcomes
        self._low = grid_points(levels[:-1], self.outcomes)  # lowest corners of the cells (C, d)
        self._high = grid_points(levels[1:], self.outcomes)
        above, below = basis.errors(self._low, self._high)  # (C, n)
        self._above = _first_row_if_equal(above)
        self._below = _first_row_if_equal(below)
        self._greatest_above = above.max(0, keepdims=True)  # of all cells (1, n)
        self._greatest_below = below.max(0, keepdims=True)
        # of the unit cube (2^d, d)
        self._corners = np.array(list(product([0.0, 1.0], repeat=self.outcomes)))

    def bound(self, direction: Array, *, enough: float = -np.inf) -> float:
        """Split the worst cells until their bound is close to a value that is attained."""
        # a cell that the greatest errors of all do not lift above what is attained is of no account
        greatest_excess = excess(direction, self._greatest_above, self._greatest_below)
        greatest_excess *= 1 + ROUNDING
        margin = float(greatest_excess[0])
        values_at_corners = self._values_near_greatest(direction, margin)
        grid = values_at_corners.reshape(self._shape)
        for axis in range(self.outcomes):  # the greatest value at a corner of every cell
            earlier_axes = (slice(None),) * axis
            at_lower_ends = grid[(*earlier_axes, slice(None, -1))]
            at_upper_ends = grid[(*earlier_axes, slice(1, None))]
            grid = np.maximum(at_lower_ends, at_upper_ends)
        attained = float(values_at_corners.max())
        cells = (grid.ravel() + greatest_excess > attained).nonzero()[0]
        above = self._above if len(self._above) == 1 else self._above[cells]
        below = self._below if len(self._below) == 1 else self._below[cells]
        bounds = grid.ravel()[cells] + excess(direction, above, below)
        low = self._low[cells]
        high = self._high[cells]
        closeness = PRECISION * float(np.abs(direction).sum())
        n_split = max(MAX_CHILDREN // len(self._corners) ** 2, 1)
        for _ in range(MAX_SPLITS):
            good_enough = max(attained + closeness, enough)
            worst = (bounds > good_enough).nonzero()[0]  # few of all, and these alone are sorted
            if not len(worst):
                break
            worst = worst[np.argsort(-bounds[worst], kind="stable")[:n_split]]
            half_sides = (high[worst] - low[worst])[:, None] / 2  # (split cells, 1, d)
            child_low = (low[worst, None] + self._corners * half_sides).reshape(-1, self.outcomes)
            child_high = child_low + np.repeat(half_sides[:, 0], len(self._corners), axis=0)
            child_sides = (child_high - child_low)[:, None]
            corners = child_low[:, None] + self._corners * child_sides  # (children, 2^d, d)
            outcomes = self._basis.outcomes_at(corners.reshape(-1, self.outcomes))
            values_at_corners = values(self._basis.transform(outcomes), direction)
            best_of_children = values_at_corners.reshape(len(child_low), -1).max(1)
            above, below = self._basis.errors(child_low, child_high)
            bounds_of_children = best_of_children + excess(direction, above, below)
            attained = max(attained, float(best_of_children.max()))
            kept = np.flatnonzero(bounds > attained)
            kept = kept[~np.isin(kept, worst)]
            bounds = np.concatenate([bounds[kept], bounds_of_children])
            low = np.vstack([low[kept], child_low])
            high = np.vstack([high[kept], child_high])
        return max(float(bounds.max(initial=-np.inf)), attained)


def _first_row_if_equal(rows: Array) -> Array:
    """Return the first row alone (1, n) where all rows are equal: it is broadcast to the others."""
    return rows[:1] if (rows == rows[0]).all() else rows
