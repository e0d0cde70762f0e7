r"""Convex functions of one coordinate on a coarse ReLU grid and dyadic intervals (Gopalan et al.).

Family. Convex, L-Lipschitz losses of one y_j, as ``Convex1D``.

Construction (Gopalan et al., approximate rank of convex functions, which Lu, Roth and Shi extend
to d coordinates; here it is their machinery at d = 1). Let z = Round(m y) in {0..m} and
x_i = i / m. Then |f(y) - f(z / m)| <= L / (2 m), and on the lattice

    f(z / m) = f(0) + sigma ReLU_0(z) + sum_{0<i<m} Delta_i ReLU_i(z),
    sigma = f(x_1) - f(0),  Delta_i = f(x_{i-1}) - 2 f(x_i) + f(x_{i+1}) >= 0,

with |sigma| <= L / m and sigma + sum_i Delta_i <= L / m, so that sum_i Delta_i <= 2 L / m and
errors add up linearly: each ReLU_i is one at a multiple of s minus at most s - 1 suffix intervals
{i'..m}, each of them at most one dyadic interval of every length, and the intervals of one length
share the columns of a near-identity.

Size. With s^3 near m / ln(m)^4 and mu near 1/(s ln m) there are O(ln^(4/3)(1/e) / e^(2/3))
functions for the error e, against 1/(4 e) of a plain ReLU grid. The constants decide:
``least_size`` minimises the count over s and over the split of the error, and falls below the
ReLU grid only for errors below 1e-9. Above, the best s is 1, which is the ReLU lattice itself. By
default s = ceil(m^(1/3)); the near-identities get half of the error where that saves columns, and
otherwise nothing: then all intervals are kept, and with m = 1/(2 e) the basis is 2 to 3 times the
ReLU grid.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from regretless.forecaster.bases.approximation.dyadic import enough_columns, fewest_columns
from regretless.forecaster.bases.approximation.lattice import rounded
from regretless.forecaster.bases.approximation.mrelu import MReLUCover, MReLUSpan
from regretless.market.core.arrays import Array
from regretless.market.game.basis import Basis
from regretless.market.losses import Convex1D, Loss

MOST_CELLS = 100_000
SHARES = np.linspace(0.05, 0.95, 19)


def coarse_spacing(cells: int) -> int:
    """Spacing of the coarse thresholds, s = ceil(m^(1/3))."""
    return math.ceil(round(math.cbrt(cells), 9))


def interval_counts(cells: int) -> list[int]:
    """Greatest number of dyadic intervals of each length that suffixes of {0..m} take."""
    return [max((cells >> h) + 1, 2) // 2 for h in range(cells.bit_length())]


def _use(cells: int, stride: int) -> float:
    """Greatest weight of the intervals of one length in a convex 1-Lipschitz function."""
    return 2 * (stride - 1) / cells


def fewest_cells(error: float, stride: int | None, mu: float) -> int:
    """Cells m of a lattice on which rounding and near-identities stay within the error."""
    cells = math.ceil(round(0.5 / error, 9))
    while True:
        reduced = sum(fewest_columns(count, mu) < count for count in interval_counts(cells))
        slack = _use(cells, stride or coarse_spacing(cells)) * mu * reduced
        if 0.5 / cells + slack <= error * (1 + 1e-9):
            return cells
        cells = math.ceil(cells * 1.02)


def affordable_mu(error: float, stride: int | None) -> float:
    """Return the mu that takes half of the error, or 0 if it would save no functions."""
    cells = math.ceil(1 / error)
    counts = interval_counts(cells)
    use = _use(cells, stride or coarse_spacing(cells)) * len(counts)
    mu = error / 2 / use if use > 0 else 0.0
    return mu if enough_columns(counts[0], mu) < counts[0] else 0.0


def least_size(error: float) -> float:
    """Count the functions for convex 1-Lipschitz losses, at the best s and split of the error.

    The near-identities are counted by the union bound, min(N, 4 ln N / mu^2), not built.
    """
    sizes = [0.5 / error]  # s = 1: no intervals
    for share in SHARES:
        cells = math.ceil(0.5 / (error * share))
        counts = interval_counts(cells)
        for stride in 2 ** np.arange(1, len(counts)):
            mu = error * (1 - share) / (_use(cells, int(stride)) * len(counts))
            sizes.append(cells / stride + sum(enough_columns(count, mu) for count in counts))
    return float(min(sizes))


class ConvexRankBasis(Basis):
    """Coarse ReLUs and dyadic intervals of one rounded coordinate.

    Parameters
    ----------
    error : float
        Greatest distance from the loss that is allowed.
    outcomes : int
        Coordinates of an outcome, d.
    coordinate : int
        The one that matters.
    constant : float
        L: slopes are at most this.
    stride : int, optional
        s; 1 is the ReLU lattice.
    mu : float, optional
        Error of a dyadic interval that the near-identities may make; 0 keeps all intervals.
    seed : int
        Root seed of the random signs.
    """

    def __init__(  # noqa: PLR0913 - keyword-only choices, each with a default
        self,
        *,
        error: float,
        outcomes: int = 1,
        coordinate: int = 0,
        constant: float = 1.0,
        stride: int | None = None,
        mu: float | None = None,
        seed: int = 0,
    ) -> None:
        if not (error > 0 and constant > 0):
            raise ValueError(f"the error {error} and the constant {constant} must be above 0")
        if not 0 <= coordinate < outcomes:
            raise ValueError(f"coordinate {coordinate} is not one of {outcomes}")
        self.outcomes, self.coordinate, self.constant = outcomes, coordinate, constant
        if error / constant < 0.5 / MOST_CELLS:
            raise ValueError(f"an error of {error} needs more than {MOST_CELLS} cells")
        if mu is None:
            mu = affordable_mu(error / constant, stride)
        self.cells = fewest_cells(error / constant, stride, mu)
        cover = MReLUCover(1, 0, self.cells, stride or coarse_spacing(self.cells))
        self.span = MReLUSpan(cover, mu, seed)
        self.size = self.span.size
        relus = sparse.csr_array(sparse.eye_array(self.cells + 1))
        unit = constant / self.cells
        self.error = unit * (0.5 + 2 * self.span.slack(relus))
        # sigma = -L/m leaves the most for the rest
        self.lipschitz = unit * (self.span.weight(relus[[0]]) + 2 * self.span.weight(relus))

    def transform(self, y: ArrayLike) -> Array:
        """Map outcomes (d,) or (T, d) to (n,) or (T, n): constant on each cell of the lattice."""
        outcomes = np.asarray(y, dtype=np.float64)
        z = rounded(self.cells * outcomes[..., self.coordinate], 0, self.cells).reshape(-1, 1)
        return self.span.transform(z).reshape(*outcomes.shape[:-1], self.size)

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Read the slopes' changes off the lattice and write its ReLUs in the functions."""
        convex = self.accept(loss, Convex1D)
        if convex.coordinate != self.coordinate:
            raise ValueError(f"a loss of y_{convex.coordinate}; the basis has y_{self.coordinate}")
        steepest = float(convex.lipschitz().max())
        if steepest > self.constant * (1 + 1e-9):
            raise ValueError(f"a slope of {steepest:.6g} is above {self.constant:.6g}")
        points = np.zeros((self.cells + 1, self.outcomes))
        points[:, self.coordinate] = np.arange(self.cells + 1) / self.cells
        values = np.moveaxis(convex.losses(points), 0, -1)
        slopes = np.diff(values)
        relus = np.concatenate(
            [slopes[..., :1], np.diff(slopes), np.zeros_like(slopes[..., :1])], -1
        )
        flat = relus.reshape(-1, self.cells + 1) @ self.span.table
        offset = values[..., 0] + relus @ self.span.constant
        weights = np.ascontiguousarray(flat).reshape(*values.shape[:-1], self.size)
        return np.ascontiguousarray(offset), weights
