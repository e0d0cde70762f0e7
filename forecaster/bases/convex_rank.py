r"""Convex functions of one coordinate on a coarse ReLU grid and dyadic intervals (Gopalan et al.).

Family. Convex, L-Lipschitz losses of one y_j, as ``Convex1D``.

Construction (Gopalan et al., approximate rank of convex functions, which Lu, Roth and Shi extend
to d coordinates; here it is their machinery at d = 1). Let z = Round(m y) in {0..m} and
x_i = i / m. Then |f(y) - f(z / m)| <= L / (2 m), and on the lattice

    f(z / m) = f(0) + sigma ReLU_0(z) + sum_{0<i<m} Delta_i ReLU_i(z),
    sigma = f(x_1) - f(0),  Delta_i = f(x_{i-1}) - 2 f(x_i) + f(x_{i+1}) >= 0,

with |sigma| <= L / m and sigma + sum_i Delta_i <= L / m, so that sum_i Delta_i <= 2 L / m: each
ReLU_i is one at a multiple of s minus at most s - 1 suffix intervals {i'..m}, each of them at most
one dyadic interval of every length.

Size. Where the intervals of one length share the columns of a near-identity, with s^3 near
m / ln(m)^4 and mu near 1/(s ln m) there are O(ln^(4/3)(1/e) / e^(2/3)) functions for the error e,
against 1/(4 e) of a plain ReLU grid. The constants decide: at the best s and split of the error,
near-identities counted by the union bound, the sum falls below the ReLU grid only for errors below
1e-9, and above, the best s is 1, which is the ReLU lattice itself. So all intervals are kept here:
with s = ceil(m^(1/3)) and m = 1/(2 e) the basis is 2 to 3 times the ReLU grid.
"""

import math
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from regretless.forecaster.bases.approximation.lattice import rounded
from regretless.forecaster.bases.approximation.mrelu import MReLUCover
from regretless.forecaster.bases.relu import ConvexBasis
from regretless.market.core.arrays import Array
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis

MOST_CELLS = 100_000
MOST_KEPT = 1_000_000  # values on the lattice that are kept


def coarse_spacing(cells: int) -> int:
    """Spacing of the coarse thresholds, s = ceil(m^(1/3))."""
    return math.ceil(round(math.cbrt(cells), 9))


class ConvexRankBasis(ConvexBasis):
    """Coarse ReLUs and dyadic intervals of one rounded coordinate.

    Parameters
    ----------
    error : float
        Greatest distance from the loss that is allowed.
    outcomes, coordinate, constant : as in ``ConvexBasis``
    stride : int, optional
        s; 1 is the ReLU lattice.
    """

    inverse = Basis.inverse  # no function is y_j itself

    def __init__(
        self,
        *,
        error: float,
        outcomes: int = 1,
        coordinate: int = 0,
        constant: float = 1.0,
        stride: int | None = None,
    ) -> None:
        super().__init__(error, outcomes=outcomes, coordinate=coordinate, constant=constant)
        if error / constant < 0.5 / MOST_CELLS:
            raise ValueError(f"an error of {error} needs more than {MOST_CELLS} cells")
        self.cells = math.ceil(round(0.5 / (error / constant), 9))
        self.cover = MReLUCover(1, 0, self.cells, stride or coarse_spacing(self.cells))
        self.size = self.cover.size
        relus = sparse.csr_array(sparse.eye_array(self.cells + 1))
        unit = constant / self.cells
        self.error = unit / 2
        # sigma = -L/m leaves the most for the rest
        self.lipschitz = unit * (self.cover.weight(relus[[0]]) + 2 * self.cover.weight(relus))

    def transform(self, y: ArrayLike) -> Array:
        """Map outcomes (d,) or (T, d) to (n,) or (T, n): constant on each cell of the lattice."""
        outcomes = np.asarray(y, dtype=np.float64)
        z = rounded(self.cells * outcomes[..., self.coordinate], 0, self.cells)
        if (self.cells + 1) * self.size <= MOST_KEPT:
            return np.take(self._values, z, axis=0)
        return self.cover.transform(z.reshape(-1, 1)).reshape(*z.shape, self.size)

    @cached_property
    def _values(self) -> Array:
        """All functions on the whole lattice (m + 1, n)."""
        return self.cover.transform(np.arange(self.cells + 1)[:, None])

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Read the slopes' changes off the lattice and write its ReLUs in the functions."""
        points = np.zeros((self.cells + 1, self.outcomes))
        points[:, self.coordinate] = np.arange(self.cells + 1) / self.cells
        values = np.moveaxis(self.convex(loss).losses(points), 0, -1)
        slopes = np.diff(values)
        relus = np.concatenate(
            [slopes[..., :1], np.diff(slopes), np.zeros_like(slopes[..., :1])], -1
        )
        flat = relus.reshape(-1, self.cells + 1) @ self.cover.table
        offset = values[..., 0] + relus @ self.cover.constant
        weights = np.ascontiguousarray(flat).reshape(*values.shape[:-1], self.size)
        return np.ascontiguousarray(offset), weights
