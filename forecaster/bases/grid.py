r"""Bases on a grid: indicators of its cells, and ramps, which interpolate at its knots.

**Cells** (``LipschitzGridBasis``), for every L-Lipschitz loss, whatever its form:

    s_i(y) = 1[y in cell i],   r_i(a) = l(a, point_i) - c(a),   r_0(a) = c(a),    n = cells^d.

Any constant c(a) may move into the offset, and the median of an action's values makes
``sum |r_i|`` least: at most n/2 for values in [0, 1], not the 1 of the paper (the page of
deviations). Predictions live on the simplex. *Centred*, with the cell's centre as its point, the
error is L / (2 cells) with L in sup norm. *As printed* (paper, basis for L-Lipschitz functions)
each coordinate is rounded to the nearest of 1/cells, 2/cells, ..., 1, and the error is L / cells.

**Ramps** (``RampBasis``), for CES and its limits. With knots t_0 < ... < t_m per coordinate,
ramp_i(v) = clip((v - t_(i-1)) / (t_i - t_(i-1)), 0, 1) and ramp_0 = 1, the multilinear interpolant
of a loss at the knots is

    sum_(i in {0..m}^d) w_i prod_j ramp_(i_j)(y_j),    w = the d-fold mixed differences of l,

so the functions are the products other than the constant, n = (m + 1)^d - 1. If l is minus the
distribution function of a positive measure the weights are minus the measure of the knots' boxes:
of one sign, and lambda is at most the range of l, 1 for a normalised loss. That is so for CES
utility with rho < 0 or 0 < rho <= 1 / (d - 1), for Cobb-Douglas with exponents in (0, 1), and for
Leontief. Hat functions, which span the same, would need lambda up to n / 2.

Interpolation of a loss that is convex along each coordinate (a utility with diminishing returns)
lies above it, so half of the greatest excess is taken off, read from the middles of the knots'
boxes: that halves the error. Knots are t = floor + (1 - floor) u^2 for even u, finer towards the
floor, where such utilities are steep.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.bases.certify import ROUNDING, certify
from regretless.forecaster.minimax.support import ListedSupport
from regretless.market import register
from regretless.market.core.arrays import Array, Indices, grid_points
from regretless.market.core.compiled import compiled
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis, Support, steepest

MAX_CELLS = 200_000
ROUNDING_SHARE = 1e-9  # by which rounding may have moved a Lipschitz constant or a quotient
BUDGET = 10_000_000  # evaluations that a certificate of ramps may take
TOLERANCE = 0.1
MAX_RAMPS = 2000
MAX_NUMBERS_IN_TABLE = 1 << 22  # in one table of losses at outcomes


@compiled()
def _write_indicators(outcomes: Array, cells: int, shift: float, indicators: Array) -> None:
    """Write a 1 for the cell in which each outcome lies (compiled).

    With m cells along each axis, coordinate j of y is in cell c_j = floor(m y_j - shift), cut to
    0..m - 1, and y in cell sum_j c_j m^(d - j) of all, j from 1 to d: the last coordinate fastest.

    Parameters
    ----------
    outcomes : array (T, d)
    cells : int
        m.
    shift : float
        How far cells begin after multiples of their width, in widths.
    indicators : array (T, m^d)
        All 0; a 1 is written in each row.
    """
    for t in range(outcomes.shape[0]):
        cell = 0
        for j in range(outcomes.shape[1]):
            cell_along_axis = int(np.floor(outcomes[t, j] * cells - shift))
            cell = cell * cells + min(max(cell_along_axis, 0), cells - 1)
        indicators[t, cell] = 1.0


class LipschitzGridBasis(Basis):
    """Indicators of the cells of a grid, for losses with values in [0, 1] and a Lipschitz constant.

    Every |l(a, y) - l(a, z)| is at most ``constant`` max_j |y_j - z_j|, and the declared error at
    most ``error``. Losses are read at the cells' centres, or not ``centred`` as printed. ValueError
    if constant or error is not positive, or there are more than ``MAX_CELLS`` cells.
    """

    hull = "simplex"

    def __init__(
        self, outcomes: int, *, constant: float, error: float, centred: bool = True
    ) -> None:
        if not (constant > 0 and error > 0):
            raise ValueError(f"constant {constant} and error {error} must be above 0")
        self.outcomes = outcomes
        self.constant = constant
        self.centred = centred
        # how much a loss may change from the point of a cell of length 1 to its farthest end
        change_over_cell = constant / 2 if centred else constant
        self.cells = max(math.ceil(change_over_cell / error * (1 - ROUNDING_SHARE)), 1)
        self.size = self.cells**outcomes
        if self.size > MAX_CELLS:
            fault = f"{self.cells}^{outcomes} cells exceed {MAX_CELLS}; allow a greater error"
            raise ValueError(f"{fault}, or use a basis for the form of the losses")
        self.error = change_over_cell / self.cells
        self.lipschitz = (
            self.size / 2
        )  # values in [0, 1] are at most 1/2 from their median on average

    @cached_property
    def points(self) -> Array:
        """Where losses are evaluated, one point for each cell: (n, d)."""
        ticks = (np.arange(self.cells) + (0.5 if self.centred else 1.0)) / self.cells
        return grid_points(ticks, self.outcomes)

    def transform(self, y: ArrayLike) -> Array:
        outcomes = np.ascontiguousarray(y, dtype=np.float64)
        leading_axes = outcomes.shape[:-1]
        n_outcomes = math.prod(leading_axes)
        indicators = np.zeros((n_outcomes, self.size))
        shift = 0.0 if self.centred else 0.5
        _write_indicators(
            outcomes.reshape(n_outcomes, self.outcomes), self.cells, shift, indicators
        )
        return indicators.reshape(*leading_axes, self.size)

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Return each action's median over the cells, and its values less the median."""
        self.check_outcomes(loss)
        steepest_slope = steepest([loss])
        if not steepest_slope <= self.constant * (1 + ROUNDING_SHARE):
            fault = f"a loss has Lipschitz constant {steepest_slope:.6g}"
            raise ValueError(f"{fault}, above the basis's {self.constant:g}")
        values = np.moveaxis(loss.losses(self.points), 0, -1)  # (n, ..., A) to (..., A, n)
        median = np.median(values, axis=-1)
        return self.contiguous(median, values - median[..., None])

    def inverse(self, points: Array) -> Array:
        """Mean points (..., d) of predictions read as weights; uniform where all are <= 0."""
        weights = np.maximum(points, 0.0)
        total = weights.sum(-1, keepdims=True)
        if total.min(initial=1.0) > 0:
            shares = weights / total
        else:
            shares = np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1 / self.size)
        return np.asarray(shares @ self.points)

    def support(self) -> Support:
        """List the points: the functions are constant around them."""
        return ListedSupport(self, self.points)


class RampFit(NamedTuple):
    """A loss's linear form in ramps."""

    offset: Array  # (..., A)
    weights: Array  # (..., A, n)
    error: float  # the greatest at the knots and at the middles between them


def _mixed_differences(values: Array, axes: int) -> Array:
    """Take the differences of values on a grid along each of the first axes.

    The values before the first are 0, which keeps the first value as a difference: it is the weight
    of the constant factor.
    """
    differences = values
    for axis in range(axes):
        differences = np.diff(differences, axis=axis, prepend=0.0)
    return differences


class RampBasis(Basis):
    """Products of ramps, for a given population of losses of any form.

    Family: ``losses``. The error is certified over all outcomes by interval arithmetic, lambda is
    the greatest sum of absolute weights. Any other loss over the same outcomes has coefficients,
    for which neither is claimed. There are ``knots`` >= 2 along each coordinate, or the fewest
    whose certified error is at most a wanted ``error``; the first is the ``floor`` in [0, 1), below
    which no loss moves. ``budget`` is of evaluations for the certificate. ValueError if a
    parameter is out of range, or no number of knots reaches the wanted error.

    Examples
    --------
    >>> from regretless.market.losses import Linear
    >>> ramps = RampBasis([Linear([[1.0], [0.5]])], knots=2)
    >>> ramps.size, ramps.transform([0.25])  # one ramp is y itself
    (1, array([0.25]))
    """

    def __init__(
        self,
        losses: Sequence[Loss],
        *,
        knots: int = 4,
        floor: float = 0.0,
        error: float | None = None,
        budget: int = BUDGET,
    ) -> None:
        if len({loss.outcomes for loss in losses}) != 1:
            raise ValueError("ramps need losses, all over the same number of outcomes")
        if not 0 <= floor < 1:
            raise ValueError(f"a floor of {floor} is not in [0, 1)")
        if error is None and knots < 2:
            raise ValueError(f"{knots} knots along a coordinate; at least 2 are needed")
        if error is not None and not error > 0:
            raise ValueError(f"an error of {error} is not positive")
        self.outcomes = losses[0].outcomes
        self.floor = floor
        self.budget = budget
        wanted_error = math.inf if error is None else error
        for n_knots in count(knots if error is None else 2):
            if n_knots**self.outcomes - 1 > MAX_RAMPS and error is not None:
                fault = f"no {n_knots - 1} knots or fewer have an error of {error:.3g}"
                raise ValueError(f"{fault}; raise it")
            # squared, so that knots are finer near the floor, where such losses are steep
            self.knots = floor + (1 - floor) * np.linspace(0, 1, n_knots) ** 2
            self._steps = np.diff(self.knots)
            self.size = n_knots**self.outcomes - 1  # without the constant product
            error_at_points = max(self._fit(loss).error for loss in losses)
            if error_at_points <= wanted_error:  # otherwise it is hopeless
                self.error = self._certify(losses, error and error - ROUNDING)
                if self.error <= wanted_error:
                    break
        self.convex_image = self.size == 1 and floor == 0
        sums_of_weights = [np.abs(self.coefficients(loss)[1]).sum(-1).max() for loss in losses]
        self.lipschitz = float(max(sums_of_weights))

    def transform(self, y: ArrayLike) -> Array:
        return self._products(self._ramps(np.asarray(y, dtype=np.float64)))

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Mixed differences of the loss at the knots, centred between its excesses."""
        self.check_outcomes(loss)
        fit = self._fit(loss)
        return fit.offset, fit.weights

    def certified_error(self, losses: Loss) -> float:
        """Bound the error of these losses, of the family or not, by interval arithmetic."""
        return self._certify([losses], None)

    def slopes(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Ranges (T, d, n) of the functions' partial derivatives over boxes (T, d)."""
        # Of every factor along one coordinate: its slope where it rises, and from where to where
        # that is. The first factor is the constant 1, with slope 0 everywhere.
        rates = np.concatenate([[0.0], 1 / np.diff(self.knots)])
        starts = np.insert(self.knots[:-1], 0, 0)
        ends = np.insert(self.knots[1:], 0, 0)
        box_low = low[..., None]
        box_high = high[..., None]
        # least slope: the rate where it rises all over the box; greatest: where it does in part
        lowest_rates = rates * ((starts <= box_low) & (box_high <= ends))
        highest_rates = rates * ((starts < box_high) & (box_low < ends))
        lowest_ramps = self._ramps(low)
        highest_ramps = self._ramps(high)
        lowest_slopes = []
        highest_slopes = []
        for j in range(self.outcomes):  # in the derivative along j its rate replaces its ramp
            lowest_factors = lowest_ramps.copy()
            highest_factors = highest_ramps.copy()
            lowest_factors[:, j] = lowest_rates[:, j]
            highest_factors[:, j] = highest_rates[:, j]
            lowest_slopes.append(self._products(lowest_factors))
            highest_slopes.append(self._products(highest_factors))
        return np.stack(lowest_slopes, axis=1), np.stack(highest_slopes, axis=1)

    def inverse(self, points: Array) -> Array:
        """Rebuild y_j from the ramps of that coordinate alone: its own broken line."""
        labels = np.empty((*points.shape[:-1], self.outcomes))
        for j, ramps_of_coordinate in enumerate(self._ramps_of_coordinates):
            labels[..., j] = self.floor + points[..., ramps_of_coordinate] @ self._steps
        return np.minimum(np.maximum(labels, 0.0), 1.0)

    @cached_property
    def _ramps_of_coordinates(self) -> list[Indices]:
        """Which functions are ramps of each coordinate alone, in their order."""
        count = len(self.knots)
        ramps_of_coordinates = []
        for j in range(self.outcomes):
            stride = count ** (self.outcomes - 1 - j)  # between the ramps of coordinate j alone
            # - 1, as the constant product, which would be the first, is left out
            ramps_of_coordinates.append(np.arange(1, count) * stride - 1)
        return ramps_of_coordinates

    def support(self) -> Support:
        """List the knots: between them the functions are multilinear."""
        return ListedSupport(self, grid_points(self.knots, self.outcomes))

    def _ramps(self, y: Array) -> Array:
        """Return each coordinate's factors (..., d, m + 1): the constant 1, then its ramps."""
        ramps = np.ones((*y.shape, len(self.knots)))
        shares_of_steps = (y[..., None] - self.knots[:-1]) / self._steps
        ramps[..., 1:] = np.minimum(np.maximum(shares_of_steps, 0.0), 1.0)
        return ramps

    def _products(self, ramps: Array) -> Array:
        """Products (..., n) over the coordinates, the constant left out.

        ``ramps`` (..., d, m + 1) are the factors of each coordinate. The last coordinate's factor
        changes fastest.
        """
        products = ramps[..., 0, :]
        for j in range(1, self.outcomes):
            wider = products[..., :, None] * ramps[..., j, None, :]
            products = wider.reshape(*wider.shape[:-2], wider.shape[-2] * wider.shape[-1])
        return np.ascontiguousarray(products[..., 1:])

    def _fit(self, loss: Loss) -> "RampFit":
        """Interpolate a loss at the knots and centre the form between its excesses."""
        values = loss.losses(grid_points(self.knots, self.outcomes))  # ((m + 1)^d, ..., A)
        values_on_grid = values.reshape(*[len(self.knots)] * self.outcomes, *values.shape[1:])
        differences = _mixed_differences(values_on_grid, axes=self.outcomes)
        # the weight of every product (..., A, n + 1), the constant one first
        weights_of_products = np.moveaxis(differences.reshape(values.shape), 0, -1)
        offset = weights_of_products[..., 0]
        weights = np.ascontiguousarray(weights_of_products[..., 1:])
        # the least and greatest height of the form above the loss, for each action
        midpoints = (self.knots[1:] + self.knots[:-1]) / 2
        outcomes = grid_points(np.sort(np.concatenate([self.knots, midpoints])), self.outcomes)
        outcomes_per_batch = max(1, MAX_NUMBERS_IN_TABLE // max(offset.size, self.size))
        least = np.zeros(offset.shape)
        greatest = np.zeros(offset.shape)
        for first in range(0, len(outcomes), outcomes_per_batch):
            batch = outcomes[first : first + outcomes_per_batch]
            linear_form = np.moveaxis(weights @ self.transform(batch).T, -1, 0) + offset
            excess = linear_form - loss.losses(batch)
            least = np.minimum(least, excess.min(0))
            greatest = np.maximum(greatest, excess.max(0))
        error = float((greatest - least).max()) / 2
        return RampFit(offset - (least + greatest) / 2, weights, error)

    def _certify(self, losses: Sequence[Loss], wanted_error: float | None) -> float:
        """Bound the error over the family, worst stack first; up to the wish all is the same."""
        upper = 0.0
        lower = 0.0
        tolerance = TOLERANCE if wanted_error is None else 0.0
        fits = [self._fit(loss) for loss in losses]
        worst_first = sorted(zip(losses, fits, strict=True), key=lambda pair: -pair[1].error)
        for loss, fit in worst_first:
            certificate = certify(
                loss,
                fit.offset,
                fit.weights,
                # all functions ascend, so that their range over a box is between its corners
                lambda low, high: (self.transform(low), self.transform(high)),
                self.slopes,
                cells=np.unique([0.0, *self.knots]),
                # errors up to the greatest that was met do not raise the family's bound
                target=max(wanted_error or 0.0, (1 + tolerance) * lower),
                tolerance=tolerance,
                limit=wanted_error or math.inf,
                budget=self.budget // len(fits),
            )
            upper = max(upper, certificate.upper)
            lower = max(lower, certificate.lower)
        return upper


@register.basis("lipschitz-grid")
def cells(losses: Sequence[Loss], *, error: float = 0.1, centred: bool = True) -> Basis:
    """Take the losses' steepest slope as constant."""
    constant = steepest(losses)
    if not np.isfinite(constant):
        raise ValueError("a loss is infinitely steep; a grid needs a Lipschitz constant")
    return LipschitzGridBasis(losses[0].outcomes, constant=constant, error=error, centred=centred)


register.basis("ramps")(RampBasis)
