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
MAX_EXPONENTS = 24  # beyond this the interpolation is no smaller than an exact list
MAX_EXACT_EXPONENTS = 6  # distinct ones that are listed one by one; more are interpolated
KNOTS = 2049  # of a support
MIN_EXPONENT_OF_KNOTS = 2.0  # of u in the knots, which are denser towards 0
INFINITE_CURVATURE = 1e300  # stands for an infinite second derivative


class LinearBasis(Basis):
    """The coordinates of the outcome."""

    lipschitz = 1.0
    error = 0.0
    convex_image = True
    inverse_is_rowwise = True

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
        no_error = np.zeros(self.size)
        return SeparableSupport(self, np.array([0.0, 1.0]), no_error, no_error)


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
    inverse_is_rowwise = True

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
        self._roots = 1 / self.exponents  # with which ``inverse`` undoes each power
        low, high = span or (float(self.exponents[0]), float(self.exponents[-1]))
        self._span = low, high
        if exact:
            return
        # Upper bounds on the Lebesgue constant and the remainder over the range, maxima of
        # polynomials of degree at most m, taken on a grid with spacing h. At an inner maximum M the
        # slope is 0, and Markov's inequality bounds the second derivative by
        # (2 / length)^2 m^2 (m^2 - 1) / 3 M, so the grid misses at most the share ``missed``.
        exponents_between = np.linspace(low, high, GRID + 1)
        missed = count**2 * (count**2 - 1) / (6 * GRID**2)
        products = np.abs(exponents_between[:, None] - self.exponents).prod(-1).max()
        remainder = products / math.factorial(count) * (count / (math.e * low)) ** count
        lebesgue_constant = float(np.abs(self._lagrange(exponents_between)).sum(-1).max())
        self.lipschitz = lebesgue_constant / (1 - missed)
        self.error = float(remainder) / (1 - missed)

    @classmethod
    def covering(cls, low: float, high: float, outcomes: int, *, error: float = 0.01) -> Self:
        """Smallest interpolating basis for exponents in [low, high] within ``error``.

        The nodes are Chebyshev's; ValueError if it takes more than ``MAX_EXPONENTS``.
        """
        if not 0 < low <= high:
            raise ValueError(f"the range of exponents {low} to {high} must ascend from above 0")
        for count in range(2, MAX_EXPONENTS + 1):
            angles = (2 * np.arange(count) + 1) * np.pi / (2 * count)
            nodes = (low + high) / 2 - (high - low) / 2 * np.cos(angles)
            basis = cls(nodes, outcomes, exact=False, span=(low, high))
            if basis.error <= error:
                return basis
        fault = f"exponents from {low} to {high} need more than {MAX_EXPONENTS} powers"
        raise ValueError(f"{fault} for an error of {error}; narrow the range or list fewer")

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
        power_loss = self.accept(loss, SeparablePower)
        if power_loss.centred:
            return self._binomial_coefficients(power_loss)
        lagrange_weights = self._lagrange(power_loss.exponent)[..., None, None, :]
        weights_of_powers = power_loss.weights[..., None] * lagrange_weights  # (..., A, d, m)
        return self.contiguous(power_loss.offset, weights_of_powers)

    def _binomial_coefficients(self, loss: SeparablePower) -> tuple[Array, Array]:
        """Expand w (y - centre)^p by the binomial theorem; shapes are (..., A, d, m)."""
        self._lagrange(loss.exponent)  # refuses an exponent that the basis does not have
        weights, centre = signed_powers(loss)
        exponent = loss.exponent[..., None, None]
        is_integer = self.exponents % 1 == 0
        n_integers_up_to = (self.exponents[is_integer] <= exponent[..., None]).sum(-1)
        has_all_integers = n_integers_up_to == exponent  # 1..p are among the exponents
        if not self.exact or ((centre != 0) & ~has_all_integers).any():
            fault = "a power p about another point than 0 needs an exact PowerBasis of 1..p"
            raise ValueError(f"{fault}, or BernsteinBasis")
        exponent_of_centre = exponent[..., None] - self.exponents  # p - k
        occurs = (exponent_of_centre == 0) | ((exponent_of_centre > 0) & is_integer)
        binomials = np.where(occurs, comb(exponent[..., None], self.exponents), 0.0)
        weights_of_powers = weights[..., None] * binomials
        powers_of_centre = (-centre[..., None]) ** np.where(occurs, exponent_of_centre, 0.0)
        offset = loss.offset + (weights * (-centre) ** exponent).sum(-1)
        return self.contiguous(offset, weights_of_powers * powers_of_centre)

    def inverse(self, points: Array) -> Array:
        """Undo each power and average over the exponents (exact when there is only one)."""
        # In one layout, since the order of a sum of nine powers and more depends on it.
        rows = np.ascontiguousarray(points)
        powers = rows.reshape(*rows.shape[:-1], self.outcomes, len(self.exponents))
        outcomes = np.maximum(powers, 0.0) ** self._roots
        return np.asarray(np.add.reduce(outcomes, axis=-1) / len(self.exponents))

    def support(self) -> Support:
        """Put knots along one coordinate, denser towards 0."""
        exponents = np.tile(self.exponents, self.outcomes)  # of every function (n,)
        # With the smallest exponent rho the knots u^q, q = 2 / rho, have the values u^2: they
        # resolve the steepest of the powers near 0.
        exponent_of_knots = max(MIN_EXPONENT_OF_KNOTS, 2 / float(exponents.min()))
        knots = np.linspace(0, 1, KNOTS) ** exponent_of_knots
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            curvature_factors = exponents * np.abs(exponents - 1)
            curvature_at_knots = curvature_factors * knots[:, None] ** (exponents - 2)  # |f''|
        # |f''| is monotone, and so greatest at an end of each cell; where it is infinite, at 0, the
        # power's range over the cell counts instead
        curvature_in_cells = np.maximum(curvature_at_knots[:-1], curvature_at_knots[1:])
        finite_curvature = np.nan_to_num(curvature_in_cells, posinf=INFINITE_CURVATURE)
        error_by_curvature = np.diff(knots)[:, None] ** 2 / 8 * finite_curvature
        ranges = np.diff(knots[:, None] ** exponents, axis=0)
        errors = np.minimum(error_by_curvature, ranges).max(0)
        is_concave = exponents < 1
        is_convex = exponents > 1
        return SeparableSupport(self, knots, errors * is_concave, errors * is_convex)

    def _lagrange(self, exponents: Array) -> Array:
        """Return the Lagrange weights L_k(rho) (..., m) of exponents rho (...).

        At a node, an exponent of the basis, they are its unit vector, exactly. ValueError for an
        exponent that the basis does not serve.
        """
        low, high = self._span
        gaps = exponents[..., None] - self.exponents  # (..., m)
        is_at_node = gaps == 0
        if self.exact and not is_at_node.any(-1).all():
            raise ValueError(f"an exponent is not among {self.exponents.tolist()}")
        if (exponents < low).any() or (exponents > high).any():
            raise ValueError(f"an exponent lies outside the basis's range [{low:.6g}, {high:.6g}]")
        lagrange_weights = np.empty_like(gaps)
        for k, node in enumerate(self.exponents):
            other_nodes = np.delete(self.exponents, k)
            gaps_to_others = np.delete(gaps, k, -1)
            factors = gaps_to_others / (node - other_nodes)
            lagrange_weights[..., k] = np.prod(factors, axis=-1)
        unit_vectors = is_at_node.astype(np.float64)
        return np.where(is_at_node.any(-1)[..., None], unit_vectors, lagrange_weights)


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
        self._orders = np.arange(degree + 1)  # k
        self._opposite_orders = degree - self._orders
        self._binomials = comb(degree, self._orders)
        self._means = self._orders / degree  # k / p
        # means that raise degree q to p: row k, column i of matrix q, zero for i above q
        low, k, i = np.ix_(self._orders, self._orders, self._orders)
        self._raise = comb(low, i) * comb(degree - low, k - i) / comb(degree, k)

    def transform(self, y: ArrayLike) -> Array:
        coordinates = np.asarray(y, dtype=np.float64)[..., None]
        powers = coordinates**self._orders
        opposite_powers = (1 - coordinates) ** self._opposite_orders
        polynomials = self._binomials * powers * opposite_powers
        return np.asarray(polynomials.reshape(*polynomials.shape[:-2], self.size))

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Return the polar forms of the powers at the basis's degree, less a median each."""
        power_loss = self.accept(loss, SeparablePower)
        exponent = power_loss.exponent
        if ((exponent % 1 != 0) | (exponent > self.degree)).any():
            raise ValueError(f"an exponent is not an integer from 1 to the degree {self.degree}")
        weights, centre = signed_powers(power_loss)
        # (-c)^(q - k) (1 - c)^k of all orders k (..., A, d, p + 1); those above q are not used.
        # It is the polar form of (y - c)^q with q - k of its arguments 0 and k of them 1.
        n_zeros = np.maximum(exponent[..., None, None, None] - self._orders, 0)
        polar_form = (-centre[..., None]) ** n_zeros * (1 - centre[..., None]) ** self._orders
        raise_degree = self._raise[exponent.astype(np.intp)]
        raised = np.einsum("...ki,...adi->...adk", raise_degree, polar_form)
        bernstein_weights = weights[..., None] * raised
        # The functions of a coordinate add up to 1, so that a constant may move into the offset.
        # A median leaves the least sum of absolute weights: of all the one nearest to the first.
        ordered = np.sort(bernstein_weights, axis=-1)
        lower_median = ordered[..., self.degree // 2]
        upper_median = ordered[..., (self.degree + 1) // 2]
        constant = np.clip(bernstein_weights[..., 0], lower_median, upper_median)
        offset = power_loss.offset + constant.sum(-1)
        return self.contiguous(offset, bernstein_weights - constant[..., None])

    def inverse(self, points: Array) -> Array:
        """Label forecasts by linear precision, ``y_j = sum_k (k / p) s_{j,k}``, clipped."""
        shape = (*points.shape[:-1], self.outcomes, self.degree + 1)
        polynomials = np.asarray(points).reshape(shape)
        return np.minimum(np.maximum(polynomials @ self._means, 0.0), 1.0)

    def support(self) -> Support:
        curvature = 2 * self.degree * (self.degree - 1)
        errors = np.full(self.size, curvature / (8 * (KNOTS - 1) ** 2))
        return SeparableSupport(self, np.linspace(0, 1, KNOTS), errors, errors)


def signed_powers(loss: SeparablePower) -> tuple[Array, Array]:
    """Write |y - c|^q as weights (y - centre)^q for y in [0, 1], both (..., A, d).

    Centres of weight 0 are 0. ValueError if q is not even and some centre is inside (0, 1), or q is
    no integer about another point than 0.
    """
    centre = np.where(loss.weights == 0, 0.0, loss.centre)
    exponent = loss.exponent[..., None, None]  # q, the same for all actions and outcomes
    is_outside = (centre < 0) | (centre >= 1)  # there y - c does not change its sign
    is_even = exponent % 2 == 0
    is_integer = exponent % 1 == 0
    is_polynomial = (centre == 0) | is_even | (is_integer & is_outside)
    if not is_polynomial.all():
        fault = "|y - c|^p is a polynomial on [0, 1] only for an even p"
        raise ValueError(f"{fault}, or an integer p and c outside")
    # for an odd q and a centre above all y, |y - c|^q = -(y - c)^q
    flipped = (centre >= 1) & (exponent % 2 == 1)
    return np.where(flipped, -loss.weights, loss.weights), centre


@register.basis("linear")
def linear(losses: Sequence[Loss]) -> Basis:
    """Make the linear basis."""
    return LinearBasis(losses[0].outcomes)


@register.basis("powers")
def powers(losses: Sequence[Loss], *, error: float = 0.01) -> Basis:
    """List the losses' exponents, or interpolate between them where there are many."""
    exponents_of_losses = [loss.exponent.ravel() for loss in of_form(losses, SeparablePower)]
    exponents = np.unique(np.concatenate(exponents_of_losses))
    outcomes = losses[0].outcomes
    if len(exponents) <= MAX_EXACT_EXPONENTS:
        return PowerBasis(exponents, outcomes)
    return PowerBasis.covering(float(exponents[0]), float(exponents[-1]), outcomes, error=error)


@register.basis("bernstein")
def bernstein(losses: Sequence[Loss]) -> Basis:
    """Take the losses' greatest exponent as degree."""
    degree = max(float(loss.exponent.max()) for loss in of_form(losses, SeparablePower))
    return BernsteinBasis(losses[0].outcomes, int(degree))
