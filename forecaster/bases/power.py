r"""Powers of the coordinates: s_{j,k}(y) = y_j ** rho_k, size n = d m. For additive CES losses.

A loss ``sum_j w_j y_j ** rho`` whose exponent is one of rho_1..rho_m is exact, with lambda 1 when
it is normalised. Between the exponents a loss is interpolated, for each y_j, as a polynomial in
rho of degree m - 1 (Lagrange form L_k):

    y ** rho = sum_k L_k(rho) y ** rho_k + remainder,
    |remainder| <= prod_k |rho - rho_k| / m!  *  sup_y |ln y|^m y^rho_1,

and the last factor is (m / (e rho_1))^m, reached at y = exp(-m / rho_1). So ten thousand agents
with as many exponents need only a handful of functions per coordinate. ``lipschitz`` is then the
Lebesgue constant of the exponents, sup_rho sum_k |L_k(rho)|.

The L_p losses ``sum_j (a_j - y_j)^p`` of the paper need the exponents 1..p, by the binomial
expansion. The paper's functions (-y_j)^k leave [0, 1]; here the sign is in the coefficient:

    (y - c)^p = sum_k C(p, k) (-c)^(p - k) y^k,     sum_{k >= 1} |r_k| <= 2^p - 1 for c in [0, 1],

so lambda is d (2^p - 1), where Bernstein polynomials (``forecaster.bases.bernstein``) have d.
"""

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import comb

from regretless.forecaster.bases.bernstein import signed_powers
from regretless.market.core.arrays import Array
from regretless.market.losses import Loss, SeparablePower
from regretless.market.losses.basis import Basis

GRID = 20_000
MOST_EXPONENTS = 24  # beyond this the interpolation is no smaller than an exact list


class PowerBasis(Basis):
    """The powers ``y_j ** rho_k`` of every coordinate.

    Parameters
    ----------
    exponents : array (m,)
        Distinct and positive; kept in ascending order.
    outcomes : int
        Coordinates of an outcome, d.
    exact : bool
        Refuse losses whose exponent is not listed (error 0). Otherwise they are interpolated.

    Notes
    -----
    An exact basis with the exponents 1..p also serves powers p about other points than 0, where
    ``|y - c|^p`` is a polynomial on [0, 1]; see ``binomial`` for their lambda.
    """

    def __init__(self, exponents: ArrayLike, outcomes: int, *, exact: bool = True) -> None:
        self.exponents = np.unique(np.asarray(exponents, dtype=np.float64))
        if not (self.exponents > 0).all():
            raise ValueError("exponents must be positive")
        self.outcomes, self.exact = outcomes, exact
        self.size = outcomes * len(self.exponents)
        self.convex_image = len(self.exponents) == 1
        self.lipschitz, self.error = (1.0, 0.0) if exact else self._declare()

    @classmethod
    def covering(cls, low: float, high: float, outcomes: int, *, error: float = 0.01) -> Self:
        """Smallest interpolating basis for exponents in [low, high] within ``error``.

        The nodes are Chebyshev's of the first kind on the interval, which minimise the product
        in the remainder.

        Raises
        ------
        ValueError
            If more than ``MOST_EXPONENTS`` nodes would be needed.
        """
        if not 0 < low <= high:
            raise ValueError(f"the range of exponents {low} to {high} must ascend from above 0")
        for count in range(2, MOST_EXPONENTS + 1):
            angles = (2 * np.arange(count) + 1) * np.pi / (2 * count)
            nodes = (low + high) / 2 - (high - low) / 2 * np.cos(angles)
            basis = cls(nodes, outcomes, exact=False)
            basis._span = (low, high)
            basis.lipschitz, basis.error = basis._declare()
            if basis.error <= error:
                return basis
        raise ValueError(
            f"exponents from {low} to {high} need more than {MOST_EXPONENTS} powers for an error "
            f"of {error}; narrow the range or list fewer exponents"
        )

    @classmethod
    def binomial(cls, degree: int, outcomes: int) -> Self:
        """Exponents 1..p for the paper's ``sum_j (a_j - y_j)^p``, a in [0, 1]^d, as printed.

        Parameters
        ----------
        degree : int
            p, at least 1.
        outcomes : int
            Coordinates of an outcome, d.

        Returns
        -------
        PowerBasis
            Exact, n = p d, ``lipschitz`` d (2^p - 1) for that family as it stands.
        """
        if degree < 1:
            raise ValueError(f"a degree of {degree} spans no loss; give at least 1")
        basis = cls(np.arange(1, degree + 1), outcomes)
        basis.lipschitz = float(outcomes * (2**degree - 1))
        return basis

    def transform(self, y: ArrayLike) -> Array:
        """Map outcomes (..., d) to (..., d m), the powers of a coordinate side by side."""
        powers = np.asarray(y, dtype=np.float64)[..., None] ** self.exponents
        return powers.reshape(*powers.shape[:-2], self.size)

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Spread each weight over the powers of its coordinate."""
        power = self.accept(loss, SeparablePower)
        if power.centred:
            return self._expanded(power)
        shares = self._lagrange(power.exponent)
        weights = power.weights[..., None] * shares[..., None, None, :]
        flat = weights.reshape(*power.weights.shape[:-1], self.size)
        return np.ascontiguousarray(power.offset), np.ascontiguousarray(flat)

    def inverse(self, points: Array) -> Array:
        """Undo each power and average over the exponents (exact when there is only one)."""
        powers = np.asarray(points).reshape(*points.shape[:-1], self.outcomes, len(self.exponents))
        return np.asarray((np.maximum(powers, 0.0) ** (1 / self.exponents)).mean(axis=-1))

    def _expanded(self, power: SeparablePower) -> tuple[Array, Array]:
        """Binomial coefficients about 0 of a stack in which some power is about another point."""
        rho = power.exponent[..., None, None]
        self._lagrange(power.exponent)  # refuses what is not listed, centred or not
        weights, centre = signed_powers(power)
        whole = self.exponents[self.exponents % 1 == 0]
        listed = (whole <= rho[..., None]).sum(-1) == rho
        if not self.exact or ((centre != 0) & ~listed).any():
            raise ValueError(
                "a power p about another point than 0 needs an exact PowerBasis of 1..p, or "
                "BernsteinBasis"
            )
        left = rho[..., None] - self.exponents
        used = (left == 0) | ((left > 0) & (self.exponents % 1 == 0))
        left = np.where(used, left, 0.0)
        binomial = np.where(used, comb(rho[..., None], self.exponents), 0.0)
        table = weights[..., None] * binomial * (-centre[..., None]) ** left
        flat = table.reshape(*weights.shape[:-1], self.size)
        offset = power.offset + (weights * (-centre) ** rho).sum(-1)
        return np.ascontiguousarray(offset), np.ascontiguousarray(flat)

    _span: tuple[float, float] | None = None

    def _lagrange(self, rho: Array) -> Array:
        """Lagrange weights (..., m) of exponents (...); unit vectors at the nodes, exactly."""
        rho = np.asarray(rho, dtype=np.float64)
        at_node = rho[..., None] == self.exponents
        if self.exact and not at_node.any(-1).all():
            raise ValueError(f"an exponent is not among {self.exponents.tolist()}")
        low, high = self._span or (self.exponents[0], self.exponents[-1])
        if (rho < low).any() or (rho > high).any():
            raise ValueError(f"an exponent lies outside the basis's range [{low:.6g}, {high:.6g}]")
        gaps = rho[..., None] - self.exponents
        shares = np.empty_like(gaps)
        for k in range(len(self.exponents)):
            others = np.delete(np.arange(len(self.exponents)), k)
            spans = self.exponents[k] - self.exponents[others]
            shares[..., k] = np.prod(gaps[..., others] / spans, axis=-1)
        return np.where(at_node.any(-1)[..., None], at_node.astype(np.float64), shares)

    def _declare(self) -> tuple[float, float]:
        """Return upper bounds on the Lebesgue constant and on the remainder over the range.

        Both are maxima of polynomials of degree at most m, taken on a grid with spacing h. At an
        inner maximum M the slope is 0, and Markov's inequality bounds the second derivative by
        (2 / length)^2 m^2 (m^2 - 1) / 3 M, so the grid misses at most the share ``missed``.
        """
        low, high = self._span or (self.exponents[0], self.exponents[-1])
        rho = np.linspace(low, high, GRID + 1)
        count = len(self.exponents)
        missed = count**2 * (count**2 - 1) / (6 * GRID**2)
        products = np.abs(rho[:, None] - self.exponents).prod(-1).max()
        steepest = (count / (math.e * low)) ** count
        lebesgue = float(np.abs(self._lagrange(rho)).sum(-1).max())
        error = float(products / math.factorial(count) * steepest)
        return lebesgue / (1 - missed), error / (1 - missed)
