r"""Indicators of the cells of a grid: a basis for every L-Lipschitz loss, whatever its form.

    s_i(y) = 1[y in cell i],   r_i(a) = l(a, point_i) - c(a),   r_0(a) = c(a),    n = cells^d.

One indicator is 1 and the others are 0, so ``sum_i s_i = 1`` on the simplex, where predictions
should live, and any constant c(a) may move into the offset. The median of an action's values
makes ``sum |r_i|`` least.

Centred (the default): the point of a cell is its centre. With L in sup norm the error is
L / (2 cells), so ceil(L / (2 delta)) cells per axis suffice.

As printed (paper, basis for L-Lipschitz functions): each coordinate is rounded to the nearest of
1/cells, 2/cells, ..., 1, with ceil(L / delta) cells per axis. There is no point at 0, so what is
close to 0 is rounded up by as much as 1/cells: the error is L / cells, twice that of the centres
for each cell.

Lambda. The paper has 1, the Lipschitz constant between two *images* s(y) and s(y'). Regret is
bounded through biases ``sum_i r_i B_i`` of arbitrary predictions in the simplex, and there only
``sum |r_i| |B_i|`` helps: for values in [0, 1] less their median it is at most n/2 times the
greatest bias. It is needed: let predictions be uniform on one half of the cells and outcomes
cycle through the other half. Every bias is 2/n, yet an action that is best on the first half and
worst on the second has a swap regret that does not vanish with n.
"""

import math
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array, grid_points
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis

MOST_CELLS = 200_000
SLACK = 1e-9  # relative, for constants and quotients that rounding has moved


class LipschitzGridBasis(Basis):
    """Indicators of the cells of a grid, for losses with a Lipschitz constant in sup norm.

    ``lipschitz`` is n/2, for losses with values in [0, 1]; ``error`` is that of the module's text.

    Parameters
    ----------
    outcomes : int
        Coordinates of an outcome, d.
    constant : float
        L: every |l(a, y) - l(a, z)| is at most L max_j |y_j - z_j|.
    error : float
        The error that is wanted, delta; ``error`` is at most that.
    centred : bool
        Value of a cell at its centre. Otherwise at the nearest multiple of 1/cells, as printed.

    Attributes
    ----------
    cells : int
        Cells per axis.
    hull : str
        Predictions should be in the simplex.

    Raises
    ------
    ValueError
        If the constant or the error is not positive, or there are more than ``MOST_CELLS`` cells.
    """

    hull = "simplex"

    def __init__(
        self, outcomes: int, *, constant: float, error: float, centred: bool = True
    ) -> None:
        if not (constant > 0 and error > 0):
            raise ValueError(f"constant {constant} and error {error} must be above 0")
        self.outcomes, self.constant, self.centred = outcomes, constant, centred
        spread = constant / (2 if centred else 1)  # what a loss moves over a cell of length 1
        self.cells = max(math.ceil(spread / error * (1 - SLACK)), 1)
        self.size = self.cells**outcomes
        if self.size > MOST_CELLS:
            raise ValueError(
                f"{self.cells}^{outcomes} cells exceed {MOST_CELLS}; allow a greater error, or use "
                "a basis for the form of the losses"
            )
        self.error = spread / self.cells
        self.lipschitz = self.size / 2

    @cached_property
    def points(self) -> Array:
        """Where losses are evaluated, one point for each cell: (n, d)."""
        ticks = (np.arange(self.cells) + (0.5 if self.centred else 1.0)) / self.cells
        return grid_points(ticks, self.outcomes)

    def transform(self, y: ArrayLike) -> Array:
        """Map outcomes (..., d) to the indicators of their cells (..., n)."""
        scaled = np.asarray(y, dtype=np.float64) * self.cells
        index = np.floor(scaled if self.centred else scaled - 0.5).astype(np.intp)
        along = np.moveaxis(np.clip(index, 0, self.cells - 1), -1, 0)
        cell = np.ravel_multi_index(tuple(along), (self.cells,) * self.outcomes)
        result = np.zeros((*scaled.shape[:-1], self.size))
        np.put_along_axis(result, np.asarray(cell)[..., None], 1.0, axis=-1)
        return result

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Return each action's median over the cells, and its values less the median."""
        self.check_outcomes(loss)
        steepest = float(loss.lipschitz().max())
        if not steepest <= self.constant * (1 + SLACK):
            raise ValueError(
                f"a loss has Lipschitz constant {steepest:.6g}, above the basis's {self.constant:g}"
            )
        values = np.moveaxis(loss.losses(self.points), 0, -1)
        offset = np.ascontiguousarray(np.median(values, axis=-1))
        return offset, np.ascontiguousarray(values - offset[..., None])

    def inverse(self, points: Array) -> Array:
        """Return the mean point under a prediction (..., n) read as weights, (..., d).

        Negative weights count as 0, and a prediction without any weight as uniform.
        """
        weights = np.maximum(points, 0.0)
        total = weights.sum(-1, keepdims=True)
        shares = np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1 / self.size)
        return np.asarray(shares @ self.points)
