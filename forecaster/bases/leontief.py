r"""The paper's basis for Leontief losses: rounding, MReLUs, dyadic boxes.

Family. ``offset + A min_j y_j / a_j`` with a_j / |A| >= 1/L for all j, in other words L-Lipschitz
in every input (A = -1 is the paper's; the amplitude of a normalised loss goes into a).

Construction (Lu, Roth and Shi, the section on Leontief functions), with delta = 1/m:

1. b_j = Round(m / (a_j L)), z_j = Round(m y_j), both in {1..m-1}, and g(z) = min_j b_j z_j. Then
   |f - L delta^2 g| <= L delta^2 (2 m - 1), below the printed 2 L delta. Rounding to {0..m}, the
   option ``nearest``, halves it: L delta^2 (m - 1/4).
2. g is a sum of MReLUs (``lattice``), those of a coarse grid with s = ceil(m^(d/(d+2))) and dyadic
   boxes (``mrelu``). The family of g is finite, and its worst member decides lambda. Where it has
   more than ``LISTED`` members, the worst orthant bounds them all (g is a mixture of orthants with
   total weight top min_j b_j <= top^2), 10 to 60 times less tightly.

The proposition has 3 L delta and lets near-identities of the boxes spend the rest; where there are
several inputs they would have more columns than there are boxes at every practical size. The basis
is larger than the lattice whose points it replaces, let alone than a grid of cells with the same
error: 133 functions at d = 2, m = 10, where the lattice has 81 points and the printed construction,
which counts every box of {1..2m}^d, 3,702. Use a basis of real losses where size matters; this one
is the paper's.
"""

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from regretless.forecaster.bases.approximation import lattice
from regretless.forecaster.bases.approximation.mrelu import MReLUCover
from regretless.market.core.arrays import Array, Indices
from regretless.market.losses import Loss, MinimumOfRatios
from regretless.market.losses.basis import Basis

MOST_POINTS = 20_000
LISTED = 2500


def worst_cases(top: int, dimension: int) -> sparse.csr_array:
    """Mixtures of MReLUs, one of which is as bad as any g can be in every convex measure.

    Returns
    -------
    sparse array (rows, thresholds)
        The coefficients of all g, or of all orthants times top^2 if there are too many.
    """
    if top**dimension > LISTED:
        return lattice.orthant_coefficients(top, dimension) * float(top**2)
    members = lattice.lattice_points(1, top, dimension)
    return sparse.csr_array(np.stack([min_coefficients(b, top) for b in members]))


def min_coefficients(b: Indices, top: int) -> Array:
    """Coefficients of g(z) = min_j b_j z_j over the thresholds {0..top}^d, flat."""
    return lattice.merged(lattice.mrelu_coefficients(lattice.least_products(b, top))).ravel()


def paper_stride(cells: int, dimension: int) -> int:
    """Spacing of the coarse thresholds, s = ceil(m^(d/(d+2)))."""
    return math.ceil(round(math.pow(cells, dimension / (dimension + 2)), 9))


class LeontiefBasis(Basis):
    """Functions of the rounded outcome in which Leontief losses are nearly linear.

    Parameters
    ----------
    outcomes : int
        Coordinates of an outcome, d.
    cells : int
        m = 1/delta, at least 3.
    constant : float
        L: requirements are at least |amplitude| / L.
    nearest : bool
        Round to {0..m}, not to the paper's {1..m-1}.
    """

    def __init__(
        self, outcomes: int, cells: int, *, constant: float = 1.0, nearest: bool = False
    ) -> None:
        if not constant > 0:
            raise ValueError(f"the constant {constant} must be above 0")
        if cells < 3:
            raise ValueError(f"a lattice of {cells} cells has no two points; give at least 3")
        if cells**outcomes > MOST_POINTS:
            raise ValueError(f"{cells}^{outcomes} cells are too many; at most {MOST_POINTS}")
        self.outcomes, self.cells, self.constant = outcomes, cells, constant
        self.bottom, self.top = (0, cells) if nearest else (1, cells - 1)
        self._unit = constant / cells**2
        stride = paper_stride(cells, outcomes)
        self.cover = MReLUCover(outcomes, self.bottom, self.top, stride)
        self.size = self.cover.size
        self.lipschitz = self._unit * self.cover.weight(worst_cases(self.top, outcomes))
        self.error = self._unit * (cells - 0.25 if nearest else 2 * cells - 1)

    @classmethod
    def covering(
        cls, outcomes: int, *, constant: float = 1.0, error: float = 0.1, nearest: bool = False
    ) -> Self:
        """Coarsest basis with the error that is asked for."""
        cells = max(math.ceil(round((1 if nearest else 2) * constant / error, 9)), 3)
        return cls(outcomes, cells, constant=constant, nearest=nearest)

    def transform(self, y: ArrayLike) -> Array:
        """Map outcomes (d,) or (T, d) to (n,) or (T, n): constant on each cell of the lattice."""
        outcomes = np.asarray(y, dtype=np.float64)
        z = lattice.rounded(self.cells * outcomes, self.bottom, self.top).reshape(-1, self.outcomes)
        return self.cover.transform(z).reshape(*outcomes.shape[:-1], self.size)

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Write every row's g in MReLUs and these in the functions."""
        ratios = self.accept(loss, MinimumOfRatios)
        factors = self._factors(ratios)
        distinct, row = np.unique(factors.reshape(-1, self.outcomes), axis=0, return_inverse=True)
        in_mrelus = np.stack([min_coefficients(b, self.top) for b in distinct])
        row = row.reshape(factors.shape[:-1])
        scale = np.sign(ratios.amplitude) * self._unit
        offset = ratios.offset + scale * (in_mrelus @ self.cover.constant)[row]
        weights = (in_mrelus @ self.cover.table)[row]
        weights *= scale[..., None]
        return offset, weights

    def _factors(self, ratios: MinimumOfRatios) -> Indices:
        """Round the factors b (..., A, d); ValueError where a loss is too steep."""
        rates = np.abs(ratios.amplitude)[..., None] * self.cells / self.constant
        if (ratios.requirements * self.cells < rates * (1 - 1e-9)).any():
            raise ValueError(f"a requirement is below |amplitude| / {self.constant:.6g} (1/L)")
        needed = np.where(rates > 0, ratios.requirements, 1.0)
        return lattice.rounded(rates / needed, self.bottom, self.top)
