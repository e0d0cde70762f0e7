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

import numpy as np
from numpy.typing import ArrayLike

from regretless.forecaster.bases.certify import ROUNDING, certify
from regretless.forecaster.minimax.support import ListedSupport
from regretless.market import register
from regretless.market.core.arrays import Array, grid_points
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis, Support, steepest

MAX_CELLS = 200_000
SLACK = 1e-9  # relative, for constants and quotients that rounding has moved
BUDGET = 10_000_000  # evaluations that a certificate of ramps may take
TOLERANCE = 0.1
MAX_RAMPS = 2000  # ramps
MAX_NUMBERS = 1 << 22  # in one table of losses at outcomes


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
        change_over_cell = constant / (
            2 if centred else 1
        )  # what a loss moves over a cell of length 1
        self.cells = max(math.ceil(change_over_cell / error * (1 - SLACK)), 1)
        self.size = self.cells**outcomes
        if self.size > MAX_CELLS:
            fault = f"{self.cells}^{outcomes} cells exceed {MAX_CELLS}; allow a greater error"
            raise ValueError(f"{fault}, or use a basis for the form of the losses")
        self.error = change_over_cell / self.cells
        self.lipschitz = self.size / 2

    @cached_property
    def points(self) -> Array:
        """Where losses are evaluated, one point for each cell: (n, d)."""
        ticks = (np.arange(self.cells) + (0.5 if self.centred else 1.0)) / self.cells
        return grid_points(ticks, self.outcomes)

    def transform(self, y: ArrayLike) -> Array:
        scaled = np.asarray(y, dtype=np.float64) * self.cells
        index = np.floor(scaled if self.centred else scaled - 0.5).astype(np.intp)
        indices = np.moveaxis(np.clip(index, 0, self.cells - 1), -1, 0)
        cell = np.asarray(np.ravel_multi_index(tuple(indices), (self.cells,) * self.outcomes))
        return np.asarray(cell[..., None] == np.arange(self.size), dtype=np.float64)

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Return each action's median over the cells, and its values less the median."""
        self.check_outcomes(loss)
        steepest_slope = steepest([loss])
        if not steepest_slope <= self.constant * (1 + SLACK):
            fault = f"a loss has Lipschitz constant {steepest_slope:.6g}"
            raise ValueError(f"{fault}, above the basis's {self.constant:g}")
        values = np.moveaxis(loss.losses(self.points), 0, -1)
        offset = np.median(values, axis=-1)
        return self.in_order(offset, values - offset[..., None])

    def inverse(self, points: Array) -> Array:
        """Mean points (..., d) of predictions read as weights; uniform where all are <= 0."""
        weights = np.maximum(points, 0.0)
        total = weights.sum(-1, keepdims=True)
        shares = np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1 / self.size)
        return np.asarray(shares @ self.points)

    def support(self) -> Support:
        """List the points: the functions are constant around them."""
        return ListedSupport(self, self.points)


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
            self.knots = floor + (1 - floor) * np.linspace(0, 1, n_knots) ** 2
            self.size = n_knots**self.outcomes - 1
            if (
                max(self._fit(loss)[-1] for loss in losses) <= wanted_error
            ):  # otherwise it is hopeless
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
        return self._fit(loss)[:2]

    def certified_error(self, losses: Loss) -> float:
        """Bound the error of these losses, of the family or not, by interval arithmetic."""
        return self._certify([losses], None)

    def slopes(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Ranges (T, d, n) of the functions' partial derivatives over boxes (T, d)."""
        rates = np.concatenate([[0.0], 1 / np.diff(self.knots)])
        starts = np.insert(self.knots[:-1], 0, 0)
        ends = np.insert(self.knots[1:], 0, 0)
        box_low = low[..., None]
        box_high = high[..., None]
        lowest_rates = rates * ((starts <= box_low) & (box_high <= ends))
        highest_rates = rates * ((starts < box_high) & (box_low < ends))
        lowest_ramps = self._ramps(low)
        highest_ramps = self._ramps(high)
        products_of_axes = []
        for j in range(self.outcomes):
            pair = lowest_ramps.copy(), highest_ramps.copy()
            pair[0][:, j] = lowest_rates[:, j]
            pair[1][:, j] = highest_rates[:, j]
            products_of_axes.append([self._products(ramps) for ramps in pair])
        lowest, highest = zip(*products_of_axes, strict=True)
        return np.stack(lowest, axis=1), np.stack(highest, axis=1)

    def inverse(self, points: Array) -> Array:
        """Rebuild y_j from the ramps of that coordinate alone: its own broken line."""
        count = len(self.knots)
        steps = np.diff(self.knots)
        labels = [
            self.floor + points[..., np.arange(1, count) * count**power - 1] @ steps
            for power in reversed(range(self.outcomes))
        ]
        return np.clip(np.stack(labels, axis=-1), 0.0, 1.0)

    def support(self) -> Support:
        """List the knots: between them the functions are multilinear."""
        return ListedSupport(self, grid_points(self.knots, self.outcomes))

    def _ramps(self, y: Array) -> Array:
        ramps = np.clip((y[..., None] - self.knots[:-1]) / np.diff(self.knots), 0.0, 1.0)
        return np.concatenate([np.ones((*y.shape, 1)), ramps], axis=-1)

    def _products(self, ramps: Array) -> Array:
        """Products (..., n) over the coordinates, the constant left out."""
        products = ramps[..., 0, :]
        for j in range(1, self.outcomes):
            wider = products[..., :, None] * ramps[..., j, None, :]
            products = wider.reshape(*wider.shape[:-2], wider.shape[-2] * wider.shape[-1])
        return np.ascontiguousarray(products[..., 1:])

    def _fit(self, loss: Loss) -> tuple[Array, Array, float]:
        """Return the coefficients, and the error at and between the knots."""
        values = loss.losses(grid_points(self.knots, self.outcomes))
        table = values.reshape(*[len(self.knots)] * self.outcomes, *values.shape[1:])
        for axis in range(self.outcomes):
            table = np.diff(table, axis=axis, prepend=0.0)
        weights = np.moveaxis(table.reshape(values.shape), 0, -1)
        offset = weights[..., 0]
        weights = np.ascontiguousarray(weights[..., 1:])
        # the least and greatest height of the form above the loss, for each action
        midpoints = (self.knots[1:] + self.knots[:-1]) / 2
        outcomes = grid_points(np.sort(np.concatenate([self.knots, midpoints])), self.outcomes)
        rows = max(1, MAX_NUMBERS // max(offset.size, self.size))
        least = np.zeros(offset.shape)
        greatest = np.zeros(offset.shape)
        for first in range(0, len(outcomes), rows):
            some_outcomes = outcomes[first : first + rows]
            form = np.moveaxis(weights @ self.transform(some_outcomes).T, -1, 0) + offset
            excess = form - loss.losses(some_outcomes)
            least = np.minimum(least, excess.min(0))
            greatest = np.maximum(greatest, excess.max(0))
        return offset - (least + greatest) / 2, weights, float((greatest - least).max()) / 2

    def _certify(self, losses: Sequence[Loss], wanted_error: float | None) -> float:
        """Bound the error over the family, worst stack first; up to the wish all is the same."""
        upper = 0.0
        lower = 0.0
        tolerance = TOLERANCE if wanted_error is None else 0.0
        fits = [(loss, *self._fit(loss)) for loss in losses]
        for loss, offset, weights, _ in sorted(fits, key=lambda fit: -fit[-1]):
            certificate = certify(
                loss,
                offset,
                weights,
                lambda low, high: (self.transform(low), self.transform(high)),  # all ascend
                self.slopes,
                cells=np.unique([0.0, *self.knots]),
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
