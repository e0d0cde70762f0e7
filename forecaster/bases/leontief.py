r"""The paper's basis for Leontief losses: rounding, multivariate ReLUs, dyadic boxes.

Family. ``offset + A min_j y_j / a_j`` with a_j / |A| >= 1/L for all j, in other words L-Lipschitz
in every input (A = -1 is the paper's; the amplitude of a normalised loss goes into a).

Construction (Lu, Roth and Shi, the section on Leontief functions, after Gopalan et al. at d = 1),
with delta = 1/m. Outcomes are rounded to z in {bottom..top}^d, and MReLU_i(z) = max(z_1 - i_1, ...,
z_d - i_d, 0) for a threshold i.

**Rounding.** b_j = Round(m / (a_j L)), z_j = Round(m y_j), both in {1..m-1}, and g(z) = min_j b_j
z_j. Then |f - L delta^2 g| <= L delta^2 (2 m - 1), below the printed 2 L delta. Rounding to {0..m},
the option ``nearest``, halves it: L delta^2 (m - 1/4). Both are attained.

**Lattice functions in MReLUs** (corollary of the lemma "indicator to MReLU"). With the mixed
difference D g(i) = sum_sigma (-1)^{|sigma|} g(i - sigma) over sigma in {0,1}^d, any g on
{1..top}^d, taken as 0 elsewhere, has the coefficients c_i = (-1)^d (D g(i) - D g(i + (1..1))) on
{0..top+1}^d. Thresholds top and top + 1 act alike on the lattice and are merged.

Orthants. D of the indicator of {z >= q} is a product over j of (1 at q_j, -1 at top + 1), so its
coefficients sum to 2^{d+1} in absolute value. And g is the mixture of all orthants with weights
D g, which for min_j b_j z_j are at least 0 and sum to top min_j b_j. Hence sum_i |c_i| <= 2^{d+1}
top min_j b_j.

**Cover.** R_s holds the MReLUs whose thresholds are multiples of s = ceil(m^(d/(d+2))) (0 among
them: the printed indices 1..m/s do not reach the thresholds below s). Any other is reached from
the multiples below it by at most d (s - 1) unit steps, and one step is the indicator of a box,

    MReLU_i - MReLU_{i + e_j} = 1[z_j >= i_j + 1] prod_{k != j} 1[z_j - z_k >= i_j - i_k + 1],

in the turned coordinates (z_j, z_j - z_k), shifted so that the least value is 0 (the printed shift
is m). Such a box is a disjoint union of dyadic boxes, products of {a 2^h, ..., (a + 1) 2^h - 1}.

An interval without an upper end, the only kind that steps need, takes at most one dyadic piece of
each length. Boxes that no point reaches or no step takes get no function, and what is the same
everywhere goes into the constant. The paper replaces the N boxes of one shape by the columns of a
near-identity (Alon: 4 ln N / mu^2 of them for an error mu): at practical sizes as many.

**Lambda.** The family of g is finite, and its worst member decides. Where it has more than
``MAX_LISTED_FACTORS`` members the worst orthant bounds them all, 10 to 60 times less tightly. The
basis is larger than the lattice that it replaces: 133 functions at d = 2, m = 10 for 81 points.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from regretless.forecaster.minimax.support import ListedSupport
from regretless.market import register
from regretless.market.core.arrays import Array, Indices, Mask, grid_points
from regretless.market.core.compiled import compiled
from regretless.market.losses import Loss, MinimumOfRatios
from regretless.market.losses.basis import Basis, Support, of_form, steepest

ROUNDING_SHARE = 1e-9  # by which rounding may have moved a requirement
MAX_POINTS = 20_000  # of a lattice
MAX_LISTED_FACTORS = 2500  # members of the family of which each is looked at


class LeontiefBasis(Basis):
    """Functions of the rounded outcome in which Leontief losses are nearly linear.

    ``cells`` is m = 1/delta, at least 3, ``constant`` L: requirements are at least |amplitude| / L.
    ``nearest`` rounds to {0..m}, not to the paper's {1..m-1}.
    """

    def __init__(
        self, outcomes: int, cells: int, *, constant: float = 1.0, nearest: bool = False
    ) -> None:
        if not constant > 0:
            raise ValueError(f"the constant {constant} must be above 0")
        if cells < 3:
            raise ValueError(f"a lattice of {cells} cells has no two points; give at least 3")
        if cells**outcomes > MAX_POINTS:
            raise ValueError(f"{cells}^{outcomes} cells are too many; at most {MAX_POINTS}")
        self.outcomes = outcomes
        self.cells = cells
        self.constant = constant
        self.bottom = 0 if nearest else 1
        self.top = cells if nearest else cells - 1
        # the paper's spacing of coarse thresholds; round() keeps a whole number whole
        stride = math.ceil(round(cells ** (outcomes / (outcomes + 2)), 9))
        self.cover = MReLUCover(dimension=outcomes, bottom=self.bottom, top=self.top, stride=stride)
        self.size = self.cover.size
        self._orthants = orthants(self.top, outcomes)
        self._unit = constant / cells**2  # L delta^2
        all_factors = lattice_points(1, self.top, outcomes)  # every b of the family of g
        if len(all_factors) <= MAX_LISTED_FACTORS:
            extreme_mixtures = self._in_mrelus(all_factors)
        else:
            # g is a mixture of orthants whose weights add up to top min_j b_j, at most top^2
            extreme_mixtures = self._orthants * float(self.top**2)
        self.lipschitz = self._unit * self.cover.greatest_sum_of_weights(extreme_mixtures)
        self.error = self._unit * (cells - 0.25 if nearest else 2 * cells - 1)

    @classmethod
    def covering(
        cls, outcomes: int, *, constant: float = 1.0, error: float = 0.1, nearest: bool = False
    ) -> Self:
        """Coarsest basis with the error that is asked for."""
        cells_per_error = 1 if nearest else 2  # the error is nearly L / m, or 2 L / m
        cells = max(math.ceil(round(cells_per_error * constant / error, 9)), 3)
        return cls(outcomes, cells, constant=constant, nearest=nearest)

    def transform(self, y: ArrayLike) -> Array:
        outcomes = np.asarray(y, dtype=np.float64)
        points = rounded(self.cells * outcomes, self.bottom, self.top)
        functions = self.cover.transform(points.reshape(-1, self.outcomes))
        return functions.reshape(*outcomes.shape[:-1], self.size)

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Write every action's g in MReLUs and these in the functions."""
        ratios = self.accept(loss, MinimumOfRatios)
        # A factor is b_j = Round(m / (a_j L)) with a_j = requirement / |amplitude|.
        rates = np.abs(ratios.amplitude)[..., None] * self.cells / self.constant  # |A| m / L
        if (ratios.requirements * self.cells < rates * (1 - ROUNDING_SHARE)).any():
            raise ValueError(f"a requirement is below |amplitude| / {self.constant:.6g} (1/L)")
        requirements = np.where(rates > 0, ratios.requirements, 1.0)
        factors = rounded(rates / requirements, self.bottom, self.top)  # b, (..., A, d)
        distinct_factors, index_of_action = np.unique(
            factors.reshape(-1, self.outcomes), axis=0, return_inverse=True
        )
        index_of_action = index_of_action.reshape(factors.shape[:-1])
        in_mrelus = self._in_mrelus(distinct_factors)
        constants = in_mrelus @ self.cover.constant
        weights = in_mrelus @ self.cover.coefficients
        scale = np.sign(ratios.amplitude) * self._unit
        offset = ratios.offset + scale * constants[index_of_action]
        return offset, scale[..., None] * weights[index_of_action]

    def support(self) -> Support:
        """List the lattice: the functions are constant around its points."""
        lattice = lattice_points(self.bottom, self.top, self.outcomes) / self.cells
        return ListedSupport(self, lattice)

    def _in_mrelus(self, factors: Indices) -> Array:
        """Return the coefficients of g of every b (count, d) over the thresholds {0..top}^d."""
        points = lattice_points(1, self.top, self.outcomes)
        values = np.stack([(b * points).min(-1) for b in factors])
        values = values.reshape(-1, *[self.top] * self.outcomes)
        return np.asarray(mixed_differences(values) @ self._orthants)


def rounded(x: ArrayLike, bottom: int, top: int) -> Indices:
    """Round to the nearest integer of {bottom..top}."""
    nearest = np.rint(np.asarray(x, dtype=np.float64))
    return np.minimum(np.maximum(nearest, bottom), top).astype(np.intp)


def lattice_points(bottom: int, top: int, dimension: int) -> Indices:
    """List {bottom..top}^d in lexicographic order, (count, d)."""
    return grid_points(np.arange(bottom, top + 1), dimension)


def mrelu(z: Indices, threshold: Indices) -> Indices:
    """MReLU of lattice points (..., d) at thresholds (..., d), broadcast."""
    return np.asarray(np.maximum((z - threshold).max(-1), 0))


def mixed_differences(values: Indices) -> Indices:
    """Return D of functions (count, top, ..., top) on {1..top}^d, 0 below: (count, top^d)."""
    differences = values
    for axis in range(1, values.ndim):
        differences = np.diff(differences, axis=axis, prepend=0)
    return differences.reshape(len(values), -1)


def orthants(top: int, dimension: int) -> sparse.csr_array:
    """Tabulate the merged coefficients of the indicators of {z >= q}: (top^d, (top + 1)^d)."""
    # The coefficient of threshold i is (-1)^d (D(i) - D(i + (1..1))). D, a mixed difference of the
    # indicator, is a product over the axes: along each it is 1 at q_j and -1 at top + 1.
    total = 0
    for shift, sign in ((1, 1), (0, -1)):  # D(i), then D(i + (1..1))
        axis = sparse.lil_array(sparse.eye_array(top, top + 1, k=shift))  # rows q_j, columns i_j
        axis[:, [top]] -= np.ones((top, 1))  # threshold top + 1, merged with the last one, top
        product = sparse.csr_array([[float(sign * (-1) ** dimension)]])
        for _ in range(dimension):
            product = sparse.kron(product, axis, format="csr")
        total = product + total
    return total


def turned_coordinates(z: Indices, axis: int, bottom: int, top: int) -> Indices:
    """Return (z_j, z_j - z_k for k != j) of lattice points z (..., d), where j is the axis.

    They are shifted so that the least value on the lattice is 0.
    """
    z_j = z[..., axis, None]
    differences = z_j - np.delete(z, axis, -1)
    return np.concatenate([z_j - bottom, differences + (top - bottom)], -1)


def suffix_piece(low: Indices, height: int | Indices, log2_side: int | Indices) -> Indices:
    """Find the dyadic piece of a length in {low .. 2^height - 1}.

    It is {a 2^h, ..., (a + 1) 2^h - 1} with h = ``log2_side``. Returns a, or -1 if no piece of this
    length belongs to the interval.
    """
    length = (1 << height) - low
    # Shorter pieces stand to the left of longer ones.
    length_of_shorter = length & ((1 << log2_side) - 1)
    start = low + length_of_shorter
    return np.where((length >> log2_side) & 1, start >> log2_side, -1)


class DyadicBoxes(NamedTuple):
    """Products of dyadic intervals {a 2^h, ..., (a + 1) 2^h - 1} of turned coordinates."""

    axes: Indices  # (b,) the axis j of the turned coordinates in which each box is one
    log2_sides: Indices  # (b, d) h of each side
    cell_indices: Indices  # (b, d) a of each side

    def chosen(self, is_chosen: Mask) -> "DyadicBoxes":
        """Keep some of the boxes, marked (b,)."""
        return DyadicBoxes(
            self.axes[is_chosen], self.log2_sides[is_chosen], self.cell_indices[is_chosen]
        )


@compiled(nogil=True)
def _write_coarse(
    points: Indices, thresholds: Indices, least: Indices, lengths: Indices, values: Array
) -> None:
    """Write (max(max_j z_j - q_j, 0) - least) / length of lattice points z (compiled).

    Parameters
    ----------
    points, thresholds : int array (T, d), int array (c, d)
        z, and the thresholds q of the coarse MReLUs.
    least, lengths : int array (c,)
        Of each coarse MReLU the least value on the lattice, and how much greater the greatest is.
    values : array (T, c or more)
        The first c columns are written.
    """
    for t in range(points.shape[0]):
        for i in range(thresholds.shape[0]):
            value = 0
            for j in range(points.shape[1]):
                value = max(value, points[t, j] - thresholds[i, j])
            values[t, i] = (value - least[i]) / lengths[i]


@compiled(nogil=True)
def _write_boxes(
    points: Indices,
    axes: Indices,
    log2_sides: Indices,
    cell_indices: Indices,
    bottom: int,
    top: int,
    values: Array,
) -> None:
    """Write whether lattice points are in dyadic boxes, 1 or 0 (compiled).

    Parameters
    ----------
    points : int array (T, d)
        Of {bottom..top}^d.
    axes, log2_sides, cell_indices : int array (b,), int arrays (b, d)
        The boxes, as in ``DyadicBoxes``; their sides are in the order of ``turned_coordinates``.
    bottom, top : int
        Of the lattice.
    values : array (T, b or more)
        The last b columns are written.
    """
    first_column = values.shape[1] - axes.shape[0]
    for t in range(points.shape[0]):
        for i in range(axes.shape[0]):
            axis = axes[i]
            coordinate = points[t, axis] - bottom
            is_inside = coordinate >> log2_sides[i, 0] == cell_indices[i, 0]
            side = 1
            for k in range(points.shape[1]):
                if k != axis:
                    coordinate = points[t, axis] - points[t, k] + (top - bottom)
                    is_inside &= coordinate >> log2_sides[i, side] == cell_indices[i, side]
                    side += 1
            values[t, first_column + i] = 1.0 if is_inside else 0.0


class MReLUCover:
    """MReLUs on {bottom..top}^d with thresholds {0..top}^d as sums of functions in [0, 1].

    Functions are coarse MReLUs, scaled to [0, 1], then dyadic boxes, those in the turned
    coordinates of the first axis first. ``coefficients`` (thresholds, size) and ``constant``
    (thresholds,) write each MReLU in the functions.
    """

    def __init__(self, dimension: int, bottom: int, top: int, stride: int) -> None:
        self.dimension = dimension
        self.bottom = bottom
        self.top = top
        thresholds = lattice_points(0, top, dimension)
        coarse_below = thresholds // stride * stride
        coarse_below[-1] = thresholds[-1]  # it is zero on the lattice and needs no steps
        coarse, coarse_index = np.unique(coarse_below, axis=0, return_inverse=True)
        coarse_index = coarse_index.ravel()
        least = mrelu(np.full(dimension, bottom), coarse)
        greatest = mrelu(np.full(dimension, top), coarse)
        varies = greatest > least
        self.coarse_thresholds = coarse[varies]  # (c, d)
        self.coarse_least = least[varies]  # the coarse MReLUs' values are in [least, least + range]
        self.coarse_range = (greatest - least)[varies]
        n_thresholds = len(thresholds)
        starts_at = _ones_at(np.arange(n_thresholds), coarse_index, (n_thresholds, len(coarse)))
        steps_of_threshold = self._path(thresholds, coarse_below)
        boxes_of_step, is_everywhere, boxes = self._steps(thresholds)
        boxes_of_threshold = sparse.csc_array(steps_of_threshold @ boxes_of_step)
        is_used = np.diff(boxes_of_threshold.indptr) > 0
        self._boxes = DyadicBoxes(*map(np.ascontiguousarray, boxes.chosen(is_used)))
        weights_of_coarse = starts_at[:, varies] * self.coarse_range
        weights_of_boxes = -boxes_of_threshold[:, is_used]
        self.coefficients = sparse.csr_array(sparse.hstack([weights_of_coarse, weights_of_boxes]))
        self.size = self.coefficients.shape[1]
        self.constant = least[coarse_index] - steps_of_threshold @ is_everywhere

    def _steps(self, thresholds: Indices) -> tuple[sparse.csr_array, Array, DyadicBoxes]:
        """Write each unit step, the indicator of a box, as a sum of dyadic boxes.

        Step axis * thresholds + i goes from threshold i along the axis. Returns ones (steps,
        boxes) where a dyadic box belongs to a step; whether each step is 1 everywhere (steps,); and
        the boxes.
        """
        n_thresholds = len(thresholds)
        span = self.top - self.bottom
        # the turned coordinates are below 2^height: z_j up to the span, differences up to twice it
        heights = np.array([span.bit_length(), *[(2 * span).bit_length()] * (self.dimension - 1)])
        # log2 of the sides of every shape of box, but that of all points
        log2_sides = np.array(list(itertools.product(*(range(h + 1) for h in heights)))[:-1])
        numbering = self.dimension, len(log2_sides) + 1, *(1 << heights)
        steps_with_box = []
        box_numbers = []
        is_everywhere = []
        for axis in range(self.dimension):
            lowest = turned_coordinates(thresholds, axis, self.bottom, self.top) + 1
            is_everywhere.append((lowest == 0).all(-1))
            cell_index = suffix_piece(lowest[:, None], heights, log2_sides)
            first = cell_index << log2_sides
            last = ((cell_index + 1) << log2_sides) - 1
            # A point with z_j = bottom + u has the other turned coordinates in u..u + span: u must
            # be in the box's first side, and reach its others.
            least_u = np.maximum(first[..., 0], first[..., 1:].max(-1, initial=span) - span)
            greatest_u = np.minimum(last[..., 0], last[..., 1:].min(-1, initial=span))
            has_points = (cell_index >= 0).all(-1) & (least_u <= greatest_u)
            step, shape = np.nonzero(has_points)
            steps_with_box.append(axis * n_thresholds + step)
            coordinates_of_box = (axis, shape, *cell_index[step, shape].T)
            box_numbers.append(np.ravel_multi_index(coordinates_of_box, numbering))
        distinct_numbers, box = np.unique(np.concatenate(box_numbers), return_inverse=True)
        axes, shapes, *cell_indices = np.unravel_index(distinct_numbers, numbering)
        boxes = DyadicBoxes(axes, log2_sides[shapes], np.array(cell_indices).T)
        shape_of_steps = (self.dimension * n_thresholds, len(distinct_numbers))
        boxes_of_step = _ones_at(np.concatenate(steps_with_box), box, shape_of_steps)
        return boxes_of_step, np.concatenate(is_everywhere), boxes

    def _path(self, thresholds: Indices, coarse_below: Indices) -> sparse.csr_array:
        """Mark the unit steps from each threshold's coarse one to itself (thresholds, steps).

        The first coordinate goes first, so that the last step is along the last that has moved.
        """
        n_thresholds = len(thresholds)
        distance = thresholds - coarse_below
        fine = np.flatnonzero(distance.any(-1))  # thresholds that need steps
        # the last axis along which a threshold is off its coarse one: the first in reversed order
        axes_after_last = (distance[fine, ::-1] > 0).argmax(-1)
        last_axis = self.dimension - 1 - axes_after_last
        # Thresholds are numbered as digits of base top + 1: one step less along an axis is so many
        # numbers less.
        index_before_step = fine - (self.top + 1) ** axes_after_last
        shape = (n_thresholds, self.dimension * n_thresholds)
        last_step = _ones_at(fine, last_axis * n_thresholds + index_before_step, shape)
        to_index_before_step = _ones_at(fine, index_before_step, (n_thresholds, n_thresholds))
        # A path is its last step and the path to where that begins: each product adds a step to
        # all paths that are longer.
        longest_path = distance.sum(-1).max()
        steps_of_path = last_step
        for _ in range(longest_path - 1):
            steps_of_path = last_step + to_index_before_step @ steps_of_path
        return steps_of_path

    def transform(self, z: Indices) -> Array:
        """Values (T, size) of all functions at lattice points (T, d)."""
        values = np.empty((len(z), self.size))
        _write_coarse(z, self.coarse_thresholds, self.coarse_least, self.coarse_range, values)
        axes, log2_sides, cell_indices = self._boxes
        _write_boxes(z, axes, log2_sides, cell_indices, self.bottom, self.top, values)
        return values

    def greatest_sum_of_weights(self, mixtures: Any) -> float:
        """Return the greatest sum of |coefficients| of mixtures of MReLUs (count, thresholds)."""
        return float(abs(mixtures @ self.coefficients).sum(-1).max(initial=0.0))


def _ones_at(rows: Indices, columns: Indices, shape: tuple[int, int]) -> sparse.csr_array:
    """Sparse array of ones at the given rows and columns."""
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


@register.basis("leontief")
def leontief(losses: Sequence[Loss], *, error: float = 0.2, nearest: bool = True) -> Basis:
    """Take the losses' steepest slope as constant."""
    constant = steepest(of_form(losses, MinimumOfRatios))
    return LeontiefBasis.covering(
        losses[0].outcomes, constant=constant, error=error, nearest=nearest
    )
