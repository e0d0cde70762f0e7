r"""Polynomial functions of single coordinates: the outcome itself, its powers, Bernstein's.

**Linear.** s(y) = y, exact for linear losses. With values in [0, 1] they have sum |r_i| <= 1.

**Powers**, s_{j,k}(y) = y_j ** rho_k, n = d m, for additive CES losses. A normalised loss whose
exponent is one of rho_1..rho_m is exact, with lambda 1. Between the exponents it is interpolated,
for each y_j, as a polynomial in rho of degree m - 1 (Lagrange form L_k):

    y ** rho = sum_k L_k(rho) y ** rho_k + remainder,
    |remainder| <= prod_k |rho - rho_k| / m!  *  sup_y |ln y|^m y^rho_1,

and the last factor is (m / (e rho_1))^m, reached at y = exp(-m / rho_1). ``lipschitz`` is then the
Lebesgue constant of the exponents, sup_rho sum_k |L_k(rho)|. The L_p losses ``sum_j (a_j - y_j)^p``
of the paper need the exponents 1..p, and lambda d (2^p - 1) for a in [0, 1]^d:

    (y - c)^p = sum_k C(p, k) (-c)^(p - k) y^k,     sum_{k >= 1} |r_k| <= 2^p - 1 for c in [0, 1].

**Bernstein polynomials** span the same with small coefficients:

    s_{j,k}(y) = C(p, k) y_j^k (1 - y_j)^(p - k),   j = 1..d,  k = 0..p,        n = d (p + 1).

A power (y - c)^q has at degree q the coefficients (-c)^(q - k) (1 - c)^k (its polar form at q - k
zeros and k ones), and raising the degree from q to p replaces them by means of them:

    b_k  <-  sum_i C(q, i) C(p - q, k - i) / C(p, k) b_i.

``sum_k s_{j,k} = 1`` for each coordinate, so a constant per coordinate may move into the offset;
a median of its coefficients makes ``sum |r_i|`` least (of the medians the one nearest to b_0).
For the paper's family with a in [0, 1]^d lambda is d, because for each coordinate

    sum_k a^(p - k) (1 - a)^k <= sum_k C(p, k) a^(p - k) (1 - a)^k = 1.

A *normalised* loss needs at most p, whatever d: a monotone power has its p + 1 coefficients inside
its own range; about c in [1/2, 1] the coefficients c^(q - k) (c - 1)^k of an even power, less the
median, add up to sum_{k<q} t^k <= q times the range c^q, with t = (1 - c)/c; raising the degree
multiplies a sum by at most (p + 1) / (q + 1).

**Support.** Along a cell [a, b] of one coordinate a power, concave or convex, strays from its chord
on one side, by at most (b - a)^2 / 8 max |f''| and by f(b) - f(a). Knots are u^q for even u, with q
so large that the smallest power is resolved near 0. For Bernstein's |f''| <= 2 p (p - 1).
"""

import math
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import comb

from regretless.forecaster.minimax.support import SeparableSupport
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.losses import Loss, SeparablePower
from regretless.market.losses.basis import Basis, Support, of_form
from regretless.market.numerics.storage import in_layout

GRID = 20_000
MOST_EXPONENTS = 24  # beyond this the interpolation is no smaller than an exact list
MOST_EXACT = 6  # distinct exponents that are listed one by one; more are interpolated
KNOTS = 2049  # of a support


class LinearBasis(Basis):
    """The coordinates of the outcome."""

    lipschitz = 1.0
    error = 0.0
    convex_image = True

    def __init__(self, outcomes: int) -> None:
        self.outcomes = self.size = outcomes

    def transform(self, y: ArrayLike) -> Array:
        return np.asarray(y, dtype=np.float64)

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        power = self.accept(loss, SeparablePower)
        if not power.linear:
            raise ValueError("a loss with an exponent other than 1 is not linear; use PowerBasis")
        return np.ascontiguousarray(power.offset), in_layout(power.weights)

    def inverse(self, points: Array) -> Array:
        return points

    def support(self) -> Support:
        none = np.zeros(self.size)
        return SeparableSupport(self, np.array([0.0, 1.0]), none, none)


class PowerBasis(Basis):
    """The powers ``y_j ** rho_k`` of every coordinate, those of a coordinate side by side.

    ``exponents`` (m,) are positive. Losses with others are refused, or interpolated where the basis
    is not ``exact``, in a ``span`` that is by default that of those listed. An exact basis with the
    exponents 1..p also serves powers p about other points than 0, where ``|y - c|^p`` is a
    polynomial on [0, 1]; see ``binomial`` for their lambda.

    Examples
    --------
    >>> PowerBasis([0.5, 1.0], outcomes=1).transform([0.25])  # what is forecast of the outcome 0.25
    array([0.5 , 0.25])
    """

    lipschitz = 1.0
    error = 0.0

    def __init__(
        self,
        exponents: ArrayLike,
        outcomes: int,
        *,
        exact: bool = True,
        span: tuple[float, float] | None = None,
    ) -> None:
        self.exponents = np.unique(np.asarray(exponents, dtype=np.float64))
        if not (self.exponents > 0).all():
            raise ValueError("exponents must be positive")
        count = len(self.exponents)
        self.outcomes = outcomes
        self.exact = exact
        self.size = outcomes * count
        self.convex_image = count == 1
        self._span = low, high = span or (float(self.exponents[0]), float(self.exponents[-1]))
        if exact:
            return
        # Upper bounds on the Lebesgue constant and the remainder over the range, maxima of
        # polynomials of degree at most m, taken on a grid with spacing h. At an inner maximum M the
        # slope is 0, and Markov's inequality bounds the second derivative by
        # (2 / length)^2 m^2 (m^2 - 1) / 3 M, so the grid misses at most the share ``missed``.
        rho = np.linspace(low, high, GRID + 1)
        missed = count**2 * (count**2 - 1) / (6 * GRID**2)
        products = np.abs(rho[:, None] - self.exponents).prod(-1).max()
        remainder = products / math.factorial(count) * (count / (math.e * low)) ** count
        lebesgue = float(np.abs(self._lagrange(rho)).sum(-1).max())
        self.lipschitz = lebesgue / (1 - missed)
        self.error = float(remainder) / (1 - missed)

    @classmethod
    def covering(cls, low: float, high: float, outcomes: int, *, error: float = 0.01) -> Self:
        """Smallest interpolating basis for exponents in [low, high] within ``error``.

        The nodes are Chebyshev's; ValueError if it takes more than ``MOST_EXPONENTS``.
        """
        if not 0 < low <= high:
            raise ValueError(f"the range of exponents {low} to {high} must ascend from above 0")
        for count in range(2, MOST_EXPONENTS + 1):
            angles = (2 * np.arange(count) + 1) * np.pi / (2 * count)
            nodes = (low + high) / 2 - (high - low) / 2 * np.cos(angles)
            basis = cls(nodes, outcomes, exact=False, span=(low, high))
            if basis.error <= error:
                return basis
        told = f"exponents from {low} to {high} need more than {MOST_EXPONENTS} powers"
        raise ValueError(f"{told} for an error of {error}; narrow the range or list fewer")

    @classmethod
    def binomial(cls, degree: int, outcomes: int) -> Self:
        """Exponents 1..p for the paper's ``sum_j (a_j - y_j)^p``, with its lambda."""
        if degree < 1:
            raise ValueError(f"a degree of {degree} spans no loss; give at least 1")
        basis = cls(np.arange(1, degree + 1), outcomes)
        basis.lipschitz = float(outcomes * (2**degree - 1))
        return basis

    def transform(self, y: ArrayLike) -> Array:
        powers = np.asarray(y, dtype=np.float64)[..., None] ** self.exponents
        return powers.reshape(*powers.shape[:-2], self.size)

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Spread each weight over the powers of its coordinate, expanded about other points."""
        power = self.accept(loss, SeparablePower)
        offset = power.offset
        weights = power.weights
        table = weights[..., None] * self._lagrange(power.exponent)[..., None, None, :]
        if power.centred:  # the binomial theorem
            rho = power.exponent[..., None, None]
            whole = self.exponents % 1 == 0
            weights, centre = signed_powers(power)
            listed = (self.exponents[whole] <= rho[..., None]).sum(-1) == rho
            if not self.exact or ((centre != 0) & ~listed).any():
                told = "a power p about another point than 0 needs an exact PowerBasis of 1..p"
                raise ValueError(f"{told}, or BernsteinBasis")
            left = rho[..., None] - self.exponents
            used = (left == 0) | ((left > 0) & whole)
            table = weights[..., None] * np.where(used, comb(rho[..., None], self.exponents), 0.0)
            table = table * (-centre[..., None]) ** np.where(used, left, 0.0)
            offset = offset + (weights * (-centre) ** rho).sum(-1)
        return self.in_order(offset, table)

    def inverse(self, points: Array) -> Array:
        """Undo each power and average over the exponents (exact when there is only one)."""
        powers = np.asarray(points).reshape(*points.shape[:-1], self.outcomes, len(self.exponents))
        return np.asarray((np.maximum(powers, 0.0) ** (1 / self.exponents)).mean(axis=-1))

    def support(self) -> Support:
        """Put knots along one coordinate, denser towards 0."""
        rho = np.tile(self.exponents, self.outcomes)
        knots = np.linspace(0, 1, KNOTS) ** max(2.0, 2 / float(rho.min()))
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            bend = rho * np.abs(rho - 1) * knots[:, None] ** (rho - 2)
        bend = np.nan_to_num(np.maximum(bend[:-1], bend[1:]), posinf=1e300)  # at 0: the range
        by_bend = np.diff(knots)[:, None] ** 2 / 8 * bend
        errors = np.minimum(by_bend, np.diff(knots[:, None] ** rho, axis=0)).max(0)
        return SeparableSupport(self, knots, errors * (rho < 1), errors * (rho > 1))

    def _lagrange(self, rho: Array) -> Array:
        """Lagrange weights (..., m) of exponents (...); unit vectors at the nodes, exactly."""
        gaps, (low, high) = rho[..., None] - self.exponents, self._span
        at_node = gaps == 0
        if self.exact and not at_node.any(-1).all():
            raise ValueError(f"an exponent is not among {self.exponents.tolist()}")
        if (rho < low).any() or (rho > high).any():
            raise ValueError(f"an exponent lies outside the basis's range [{low:.6g}, {high:.6g}]")
        shares = np.empty_like(gaps)
        for k, node in enumerate(self.exponents):
            others = np.delete(self.exponents, k)
            shares[..., k] = np.prod(np.delete(gaps, k, -1) / (node - others), axis=-1)
        return np.where(at_node.any(-1)[..., None], at_node.astype(np.float64), shares)


class BernsteinBasis(Basis):
    """Bernstein polynomials of one degree in every coordinate, those of each side by side.

    Serves ``SeparablePower`` losses with an integer exponent up to the degree that are polynomials
    on [0, 1]: an even exponent, or every centre at or outside the ends. ``lipschitz`` is d, for the
    paper's ``sum_j (a_j - y_j)^p`` with a in [0, 1]^d and p the degree, as it stands; for a
    normalised loss ``sum |r_i|`` is at most the degree.

    Examples
    --------
    >>> basis = BernsteinBasis(outcomes=1, degree=2)
    >>> basis.transform([0.5])  # (1 - y)^2, 2 y (1 - y), y^2
    array([0.25, 0.5 , 0.25])
    >>> basis.inverse(np.array([0.25, 0.5, 0.25]))  # the mean outcome
    array([0.5])
    """

    error = 0.0

    def __init__(self, outcomes: int, degree: int) -> None:
        if degree < 1:
            raise ValueError(f"a degree of {degree} spans no loss; give at least 1")
        self.outcomes = outcomes
        self.degree = degree
        self.size = outcomes * (degree + 1)
        self.lipschitz = float(outcomes)
        self.convex_image = degree == 1
        self._orders = np.arange(degree + 1)
        # means that raise degree q to p: row k, column i of matrix q, zero for i above q
        low, k, i = np.ix_(self._orders, self._orders, self._orders)
        self._raise = comb(low, i) * comb(degree - low, k - i) / comb(degree, k)

    def transform(self, y: ArrayLike) -> Array:
        each = np.asarray(y, dtype=np.float64)[..., None]
        choose = comb(self.degree, self._orders)
        rest = self.degree - self._orders
        table = choose * each**self._orders * (1 - each) ** rest
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
        least = ordered[..., self.degree // 2]
        most = ordered[..., (self.degree + 1) // 2]
        constant = np.clip(table[..., 0], least, most)
        return self.in_order(power.offset + constant.sum(-1), table - constant[..., None])

    def inverse(self, points: Array) -> Array:
        """Label forecasts by linear precision, ``y_j = sum_k (k / p) s_{j,k}``, clipped."""
        table = np.asarray(points).reshape(*points.shape[:-1], self.outcomes, self.degree + 1)
        return np.clip(table @ (self._orders / self.degree), 0.0, 1.0)

    def support(self) -> Support:
        bend = 2 * self.degree * (self.degree - 1)
        errors = np.full(self.size, bend / (8 * (KNOTS - 1) ** 2))
        return SeparableSupport(self, np.linspace(0, 1, KNOTS), errors, errors)


def signed_powers(loss: SeparablePower) -> tuple[Array, Array]:
    """Write |y - c|^q as weights (y - centre)^q for y in [0, 1], both (..., A, d).

    Centres of weight 0 are 0. ValueError if q is not even and some centre is inside (0, 1), or q is
    no integer about another point than 0.
    """
    centre = np.where(loss.weights == 0, 0.0, loss.centre)
    exponent = loss.exponent[..., None, None]
    outside = (centre < 0) | (centre >= 1)
    smooth = (centre == 0) | (exponent % 2 == 0) | ((exponent % 1 == 0) & outside)
    if not smooth.all():
        told = "|y - c|^p is a polynomial on [0, 1] only for an even p"
        raise ValueError(f"{told}, or an integer p and c outside")
    flipped = (centre >= 1) & (exponent % 2 == 1)
    return np.where(flipped, -loss.weights, loss.weights), centre


@register.basis("linear")
def linear(losses: Sequence[Loss]) -> Basis:
    """Make the linear basis."""
    return LinearBasis(losses[0].outcomes)


@register.basis("powers")
def powers(losses: Sequence[Loss], *, error: float = 0.01) -> Basis:
    """List the losses' exponents, or interpolate between them where there are many."""
    own = [loss.exponent.ravel() for loss in of_form(losses, SeparablePower)]
    exponents = np.unique(np.concatenate(own))
    outcomes = losses[0].outcomes
    if len(exponents) <= MOST_EXACT:
        return PowerBasis(exponents, outcomes)
    return PowerBasis.covering(float(exponents[0]), float(exponents[-1]), outcomes, error=error)


@register.basis("bernstein")
def bernstein(losses: Sequence[Loss]) -> Basis:
    """Take the losses' greatest exponent as degree."""
    degree = max(float(loss.exponent.max()) for loss in of_form(losses, SeparablePower))
    return BernsteinBasis(losses[0].outcomes, int(degree))
