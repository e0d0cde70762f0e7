r"""Monomials of one function g of each coordinate: integer powers of a sum, exactly.

    l(a, y) = offset_a + A_a (c_a + sum_j w_aj g(y_j))^beta,          g(y) = max(y, floor)^power,

for an integer beta: CES with an integer outer exponent v/rho, mean-variance, powers of a linear
loss. By the multinomial theorem the coefficient of the monomial g^m, m a multiset of size s, is

    A C(beta, s) c^(beta - s) (s! / m_1! ... m_d!) prod_j w_j^m_j.

A homogeneous family (c = 0, one beta) needs multisets of size beta alone, C(d + beta - 1, beta) of
them; the paper lists d^beta ordered tuples. An intercept, or several exponents, needs all sizes
from 1: C(d + beta, beta) - 1.

Lambda. ``sum |r_i| = |A| ((|c| + sum_j |w_j|)^beta - |c|^beta)``. The paper's A (R d)^beta is
that for c = 0 and every |w_j| <= R, and holds because 0 <= g <= 1. With A = 1 and weights in the
simplex it is 1, and so it is for every normalised loss with floor 0 and weights and intercept of
one sign, where ``sum |r_i|`` is the range.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import comb

from regretless.forecaster.bases.approximation.multisets import monomials, multinomials, multisets
from regretless.market.core.arrays import Array
from regretless.market.losses import Loss, PowerOfSum
from regretless.market.losses.basis import Basis
from regretless.market.losses.sums import check_floor, transformed


class MonomialBasis(Basis):
    """Products of ``max(y_j, floor) ** power`` over multisets of coordinates.

    Serves ``PowerOfSum`` losses with this power and floor and an integer exponent: 1 to the
    degree, or the degree alone and intercept 0 if homogeneous. ``lipschitz`` is 1, for the paper's
    family with A = 1, intercept 0 and weights whose absolute values add up to at most 1; ``error``
    is 0.

    Parameters
    ----------
    outcomes : int
        Coordinates of an outcome, d.
    degree : int
        The greatest exponent, beta, at least 1.
    power, floor : float
        The function g; the power is positive, so that g is in [0, 1].
    homogeneous : bool
        Monomials of the degree alone.

    Raises
    ------
    ValueError
        If the degree is below 1, the power is not positive, the floor is not in [0, 1), or there
        are too many monomials.
    """

    lipschitz = 1.0
    error = 0.0

    def __init__(
        self,
        outcomes: int,
        degree: int,
        *,
        power: float = 1.0,
        floor: float = 0.0,
        homogeneous: bool = False,
    ) -> None:
        if degree < 1:
            raise ValueError(f"a degree of {degree} spans no loss; give at least 1")
        if not power > 0:
            raise ValueError(f"power {power} leaves [0, 1]; give one above 0")
        check_floor(np.asarray(power), np.asarray(floor))
        self.outcomes, self.degree = outcomes, degree
        self.power, self.floor, self.homogeneous = power, floor, homogeneous
        self._counts = multisets(outcomes, range(degree if homogeneous else 1, degree + 1))
        self._sizes = self._counts.sum(-1)
        self._multinomials = multinomials(self._counts)
        self.size = len(self._counts)
        # one monotone function per coordinate, each with the whole of [0, 1] as its range
        self.convex_image = self.size == outcomes and floor == 0

    def transform(self, y: ArrayLike) -> Array:
        """Map outcomes (..., d) to the monomials (..., n), by size."""
        level = np.asarray(y, dtype=np.float64)
        inner = transformed(level, np.asarray(self.power), np.asarray(self.floor))
        return monomials(inner, self._counts)

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Expand the power of the sum by the multinomial theorem."""
        power = self._family(loss)
        beta = power.exponent[..., None, None]
        rest = np.maximum(beta - self._sizes, 0)
        binomial = comb(beta, self._sizes) * power.intercept[..., None] ** rest
        products = self._multinomials * monomials(power.weights, self._counts)
        weights = power.amplitude[..., None] * binomial * products
        constant = power.intercept ** power.exponent[..., None]
        offset = np.ascontiguousarray(power.offset + power.amplitude * constant)
        return offset, np.ascontiguousarray(weights)

    def inverse(self, points: Array) -> Array:
        """Undo g on the monomials of one coordinate alone, (..., d); exact on the image."""
        size = self._sizes[0]  # the least; its multisets of one member are in the members' order
        alone = (self._sizes == size) & (self._counts.max(-1) == size)
        values = np.clip(np.asarray(points)[..., alone], 0.0, 1.0)
        return np.asarray(np.clip(values ** (1 / (self.power * size)), self.floor, 1.0))

    def _family(self, loss: Loss) -> PowerOfSum:
        """Return the loss if it is in the span; ValueError otherwise."""
        power = self.accept(loss, PowerOfSum)
        if (power.power != self.power).any() or (power.floor != self.floor).any():
            raise ValueError(f"a sum of other functions than max(y, {self.floor})^{self.power}")
        if self.homogeneous and ((power.exponent != self.degree).any() or power.intercept.any()):
            raise ValueError(f"not homogeneous of degree {self.degree}; use homogeneous=False")
        beta = power.exponent
        if ((beta % 1 != 0) | (beta < 1) | (beta > self.degree)).any():
            raise ValueError(f"an exponent is not an integer from 1 to the degree {self.degree}")
        return power
