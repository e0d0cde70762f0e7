r"""Bernstein polynomials of each coordinate: the L_p losses, exactly and with small coefficients.

    s_{j,k}(y) = C(p, k) y_j^k (1 - y_j)^(p - k),   j = 1..d,  k = 0..p,        n = d (p + 1).

They span the same functions as the paper's powers 1, y_j, ..., y_j^p. A power (y - c)^q has at
degree q the coefficients (-c)^(q - k) (1 - c)^k (its polar form at q - k zeros and k ones), and
raising the degree from q to p replaces them by means of them:

    b_k  <-  sum_i C(q, i) C(p - q, k - i) / C(p, k) b_i.

``sum_k s_{j,k} = 1`` for each coordinate, so a constant per coordinate may move into the offset;
a median of its coefficients makes ``sum |r_i|`` least (of the medians the one nearest to b_0:
at degree 1 only y_j itself is then used).

Lambda. For the paper's family ``sum_j (a_j - y_j)^p`` with a in [0, 1]^d it is d, because

    sum_k a^(p - k) (1 - a)^k <= sum_k C(p, k) a^(p - k) (1 - a)^k = 1

for each coordinate. Expanded in powers of y it is d (2^p - 1). A loss of any form that is served
here and *normalised* into [0, 1] needs at most p, whatever d: a monotone power has its p + 1
coefficients inside its own range; about c in [1/2, 1] the coefficients c^(q - k) (c - 1)^k of an
even power, less the median, add up to sum_{k<q} t^k <= q times the range c^q, with t = (1 - c)/c;
raising the degree multiplies a sum by at most (p + 1) / (q + 1).
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import comb

from regretless.market.core.arrays import Array
from regretless.market.losses import Loss, SeparablePower
from regretless.market.losses.basis import Basis


def signed_powers(loss: SeparablePower) -> tuple[Array, Array]:
    """Write |y - c|^q without the absolute value, for y in [0, 1].

    Returns
    -------
    weights, centre : arrays (..., A, d)
        The loss is ``offset + sum_j weights_j (y_j - centre_j)^q``; centres of weight 0 are 0.

    Raises
    ------
    ValueError
        If q is not even and some centre is inside (0, 1), or q is no integer about another point
        than 0.
    """
    centre = np.where(loss.weights == 0, 0.0, loss.centre)
    exponent = loss.exponent[..., None, None]
    outside = (centre < 0) | (centre >= 1)
    smooth = (centre == 0) | (exponent % 2 == 0) | ((exponent % 1 == 0) & outside)
    if not smooth.all():
        raise ValueError(
            "|y - c|^p is a polynomial on [0, 1] only for an even p, or an integer p and c outside"
        )
    flipped = (centre >= 1) & (exponent % 2 == 1)
    return np.where(flipped, -loss.weights, loss.weights), centre


class BernsteinBasis(Basis):
    """Bernstein polynomials of one degree in every coordinate.

    Serves ``SeparablePower`` losses with an integer exponent up to the degree that are polynomials
    on [0, 1]: an even exponent, or every centre at or outside the ends. ``lipschitz`` is d, for
    the paper's ``sum_j (a_j - y_j)^p`` with a in [0, 1]^d and p the degree, as it stands; for a
    normalised loss ``sum |r_i|`` is at most the degree. ``error`` is 0.

    Parameters
    ----------
    outcomes : int
        Coordinates of an outcome, d.
    degree : int
        p, at least 1.
    """

    error = 0.0

    def __init__(self, outcomes: int, degree: int) -> None:
        if degree < 1:
            raise ValueError(f"a degree of {degree} spans no loss; give at least 1")
        self.outcomes, self.degree = outcomes, degree
        self.size = outcomes * (degree + 1)
        self.lipschitz = float(outcomes)
        self.convex_image = degree == 1
        self._orders = np.arange(degree + 1)
        self._choose = comb(degree, self._orders)
        self._raise = self._elevation()

    def transform(self, y: ArrayLike) -> Array:
        """Map outcomes (..., d) to (..., d (p + 1)), those of a coordinate side by side."""
        each = np.asarray(y, dtype=np.float64)[..., None]
        table = self._choose * each**self._orders * (1 - each) ** (self.degree - self._orders)
        return np.asarray(table.reshape(*table.shape[:-2], self.size))

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Return the polar forms of the powers at the basis's degree, less a median each."""
        power = self.accept(loss, SeparablePower)
        exponent = power.exponent
        if ((exponent % 1 != 0) | (exponent > self.degree)).any():
            raise ValueError(f"an exponent is not an integer from 1 to the degree {self.degree}")
        weights, centre = signed_powers(power)
        low = np.maximum(exponent[..., None, None, None] - self._orders, 0)
        polar = (-centre[..., None]) ** low * (1 - centre[..., None]) ** self._orders
        raised = np.einsum("...ki,...adi->...adk", self._raise[exponent.astype(np.intp)], polar)
        table = weights[..., None] * raised
        ordered = np.sort(table, axis=-1)
        least, most = ordered[..., self.degree // 2], ordered[..., (self.degree + 1) // 2]
        constant = np.clip(table[..., 0], least, most)
        flat = (table - constant[..., None]).reshape(*weights.shape[:-1], self.size)
        return np.ascontiguousarray(power.offset + constant.sum(-1)), np.ascontiguousarray(flat)

    def inverse(self, points: Array) -> Array:
        """Label forecasts by linear precision, ``y_j = sum_k (k / p) s_{j,k}``, clipped."""
        table = np.asarray(points).reshape(*points.shape[:-1], self.outcomes, self.degree + 1)
        return np.clip(table @ (self._orders / self.degree), 0.0, 1.0)

    def _elevation(self) -> Array:
        """Means that raise degree q to p: row k, column i of matrix q, zero for i above q."""
        low, k, i = np.ix_(self._orders, self._orders, self._orders)
        return np.asarray(comb(low, i) * comb(self.degree - low, k - i) / comb(self.degree, k))
