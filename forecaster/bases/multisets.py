r"""Monomials of a function g of each coordinate, for powers and exponentials of one sum.

    power        l(a, y) = offset_a + A_a (c_a + S_a)^beta
    exponential  l(a, y) = offset_a + A_a exp(S_a),              S_a = sum_j w_aj g(y_j),

with g(y) = max(y, floor)^power, or ln max(y, floor). Powers of a sum expand over multisets c of
coordinates, with c_j the number of times that j occurs and t^c = prod_j t_j ** c_j:

    (v_1 t_1 + ... + v_d t_d)^m = sum over multisets c of size m of (m! / c_1! ... c_d!) v^c t^c.

There are C(d + m - 1, m) of size m, where the paper counts d^m ordered tuples.

**Integer powers** (CES with an integer outer exponent, mean-variance), exactly. The coefficient of
g^c, c of size s, is A C(beta, s) c_a^(beta - s) (s! / prod_j c_j!) w^c. A homogeneous family
(c_a = 0, one beta) needs size beta alone; otherwise all sizes from 1, C(d + beta, beta) - 1 in all.
``sum |r_i| = |A| ((|c_a| + sum_j |w_j|)^beta - |c_a|^beta)``: 1 with A = 1, c_a = 0 and weights in
the simplex, and for every normalised loss with floor 0 and weights and intercept of one sign.

**Exponentials** (Cobb-Douglas, CARA) with sum_j |w_j| <= reach become a polynomial of degree k in
S, over multisets of sizes 1..k: n = C(d + k, k) - 1. Write M, m, D for the greatest |g|, the least
|g| and their difference.

*Taylor at 0, as printed* (paper, basis for exponential functions), in t_j = |g(y_j)| / M. The
paper's functions have the range of g; here the sign of g and the scale M are in the coefficients.
With C = reach M and the Lagrange remainder, for A = 1,

    error <= e^max(S, 0) C^(k + 1) / (k + 1)!,        sum |r_i| <= C + C^2 / 2! + ... + C^k / k!.

A loss *normalised* into [0, 1], whose sum has the ends bottom and top, has the amplitude
1 / (e^top - e^bottom); multiplied by e^max(top, 0) it is at most

    amplitude = e^(reach m) / (1 - e^(-reach D)),

by which error and lambda above are multiplied. All factors rise with sum_j |w_j| (for the error
(k + 1) / C >= 1 / (e^C - 1)), so these are bounds for every loss within reach.

*Chebyshev about the middle*, in h_j in [-1, 1], g = middle + h D / 2. Then S is a constant
plus H u, where H = sum_j |w_j| D / 2 and u, a mean of +-h_j, is in [-1, 1], and

    e^(H u) = I_0(H) + 2 sum_j I_j(H) T_j(u),     error <= 2 sum_{j > k} I_j(H),

reached at u = 1. The amplitude is at most 1 / (2 sinh H) for a normalised loss. The polynomial in u
is sum_s p_s u^s, and u^s is a mean of monomials +-h^c. One with all exponents even is in [0, 1]
already; any other enters as (1 + h^c) / 2 and doubles its coefficient. The even ones have a share
of E[(e_1 v_1 + ... + e_d v_d)^s] over random signs e, with v_j = |w_j| / sum |w|: convex and
symmetric in v, so least for equal weights, and

    sum |r_i| <= sum_s |p_s| (2 - share_s) / (2 sinh H).

Error and lambda are the greatest over all H within reach.

**Support.** The functions are monomials of t = (g(y) - origin) / unit in [-1, 1]^d, and along an
axis t^c has |f''| <= c (c - 1): a grid of cells in t.
"""

import itertools
import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Self, TypeVar

import numpy as np
from numpy.polynomial.chebyshev import cheb2poly
from numpy.typing import ArrayLike
from scipy.special import comb, factorial, ive

from regretless.forecaster.minimax.support import CellBasis, CellSupport
from regretless.market import register
from regretless.market.core.arrays import Array, Indices, Mask
from regretless.market.core.compiled import compiled
from regretless.market.losses import ExponentialOfSum, Loss, PowerOfSum
from regretless.market.losses.basis import Basis, Support, of_form
from regretless.market.losses.sums import check_floor, inner_function, transformed

Sum = TypeVar("Sum", PowerOfSum, ExponentialOfSum)

MAX_MULTISETS = 50_000
ROUNDING_SHARE = 1e-9  # by which rounding may have moved a sum of weights above the reach
ROUNDING = 1e-14  # relative error of a sum of monomials with large coefficients
MAX_HALF_WIDTH = 200.0
GRID = 2000  # half-widths at which Chebyshev errors are taken


class OfMultisets(CellBasis):
    """Monomials of ``t = (g(y) - origin) / unit``: what all bases of this file share."""

    _origin = 0.0
    _unit = 1.0
    _signed: Mask = np.zeros(1, dtype=np.bool_)  # which can be negative, and are moved into [0, 1]

    def __init__(self, outcomes: int, power: float, floor: float) -> None:
        check_floor(np.asarray(power), np.asarray(floor))
        self.outcomes = outcomes
        self.power = power
        self.floor = floor
        self._power = np.asarray(power)
        self._floor = np.asarray(floor)
        self._function = inner_function(self._power, self._floor)
        self._low, self._high = sorted(self._inner(np.array([0.0, 1.0])).tolist())

    def _list(self, sizes: range) -> None:
        """List the multisets of these sizes, which are the degrees of their monomials.

        ``counts`` (n, d) says how often each coordinate occurs in each multiset, and so the
        exponent of each coordinate in its monomial, by size, and within a size in the order of
        sorted tuples.
        """
        self.size = sum(math.comb(self.outcomes + size - 1, size) for size in sizes)
        if self.size > MAX_MULTISETS:
            fault = f"{self.size} monomials up to degree {sizes[-1]} exceed {MAX_MULTISETS}"
            raise ValueError(f"{fault}; allow a greater error, or a smaller degree or reach")
        coordinates = np.arange(self.outcomes)
        counts_by_size = []
        for size in sizes:
            tuples = itertools.combinations_with_replacement(range(self.outcomes), size)
            occurs = np.array(list(tuples))[..., None] == coordinates  # (multisets, size, d)
            counts_by_size.append(occurs.sum(1))
        self.counts = np.concatenate(counts_by_size).astype(np.intp)
        self._sizes = self.counts.sum(-1)
        # How many ordered tuples each multiset stands for, m! / prod_j c_j!, as a product of
        # binomials: of the first c_1 + ... + c_j places c_j are coordinate j's.
        self._multinomials = comb(self.counts.cumsum(-1), self.counts).prod(-1).astype(float)

    def transform(self, y: ArrayLike) -> Array:
        """Map outcomes (..., d) to the monomials (..., n), by size, moved into [0, 1]."""
        inner = (self._inner(np.asarray(y, dtype=np.float64)) - self._origin) / self._unit
        values = monomials(np.minimum(np.maximum(inner, -1.0), 1.0), self.counts)
        if not self._is_any_signed:
            return values
        return np.where(self._signed, (1 + values) / 2, values)

    @cached_property
    def _is_any_signed(self) -> bool:
        """Whether a monomial can be negative."""
        return bool(self._signed.any())

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Expand the series in the sum by the multinomial theorem."""
        direction, series = self._series(loss)
        products = self._multinomials * monomials(direction, self.counts)
        weights = series[..., self._sizes] * products
        # t^c = 2 (1 + t^c) / 2 - 1 where a monomial can be negative
        signed_weights = np.where(self._signed, weights, 0.0)
        offset = loss.offset + series[..., 0] - signed_weights.sum(-1)
        return self.contiguous(offset, weights + signed_weights)

    @abstractmethod
    def _series(self, loss: Loss) -> tuple[Array, Array]:
        """Return v (..., A, d) and p (..., A, k + 1): l is offset + sum_s p_s (v . t)^s, nearly."""

    def inverse(self, points: Array) -> Array:
        """Undo g on the monomials of one coordinate alone, (..., d); exact on the image."""
        degree = self._sizes[0]  # the least; its powers of one coordinate are in their order
        powers = np.asarray(points)[..., self._powers_of_coordinates]
        if self._can_be_negative.all():
            powers = 2 * powers - 1
        elif self._is_any_signed:
            powers = np.where(self._can_be_negative, 2 * powers - 1, powers)
        levels = powers
        if degree != 1:
            levels = np.minimum(np.maximum(powers, 0.0), 1.0) ** (1 / degree)
        return np.minimum(np.maximum(self.outcomes_at(levels), self.floor), 1.0)

    @cached_property
    def _can_be_negative(self) -> Mask:
        """Which of the ``_powers_of_coordinates`` can be negative (d,)."""
        return np.broadcast_to(self._signed, self.size)[self._powers_of_coordinates]

    @cached_property
    def _powers_of_coordinates(self) -> Indices:
        """The monomials of the least degree in one coordinate alone (d,), in their order."""
        degree = self._sizes[0]
        return np.flatnonzero((self._sizes == degree) & (self.counts.max(-1) == degree))

    def support(self) -> Support:
        """Cut the transformed coordinates into cells."""
        # sorted: a negative unit turns the interval around
        interval = sorted((np.array([self._low, self._high]) - self._origin) / self._unit)
        return CellSupport(self, *interval)

    def outcomes_at(self, levels: Array) -> Array:
        inner = self._origin + self._unit * levels
        inner = np.minimum(np.maximum(inner, self._low), self._high)
        outcomes = np.exp(inner) if self.power == 0 else inner ** (1 / self.power)
        return np.asarray(np.minimum(np.maximum(outcomes, 0.0), 1.0))

    def errors(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Bound what interpolation misses on boxes; convex functions never rise over it."""
        scale = np.where(self._signed, 2.0, 1.0)[..., None]  # (1 + t^c) / 2 bends half as much
        curvature = self.counts * (self.counts - 1.0) / scale  # (n, d), of every axis
        # (T, n): a monomial bends either way along an axis, by as much, and the axes' errors add up
        greatest_error = (high - low) ** 2 / 8 @ curvature.T
        is_even = (self.counts % 2 == 0).all(-1)
        is_nonnegative_box = (low.min(1) >= 0)[:, None]
        error_above = np.where(is_even | is_nonnegative_box, 0.0, greatest_error)
        error_below = greatest_error
        return error_above, error_below

    def _inner(self, y: Array) -> Array:
        return transformed(y, self._power, self._floor, self._function)

    def _checked(self, loss: Loss, form: type[Sum]) -> Sum:
        """Return the loss if it has this form and g; ValueError otherwise."""
        checked_loss = self.accept(loss, form)
        if (checked_loss.power != self.power).any() or (checked_loss.floor != self.floor).any():
            function = "ln y" if self.power == 0 else f"y^{self.power:g}"
            raise ValueError(f"a sum of other functions than {function} above {self.floor:g}")
        return checked_loss


class MonomialBasis(OfMultisets):
    """Products of ``max(y_j, floor) ** power`` over multisets of coordinates.

    Serves ``PowerOfSum`` losses with this power, above 0, and floor and an integer exponent: 1 to
    the ``degree``, or the degree alone and intercept 0 if ``homogeneous``. ``lipschitz`` is 1, for
    the paper's family with A = 1, intercept 0 and absolute weights that add up to at most 1.
    ValueError if a parameter is out of range, or there are too many monomials.

    Examples
    --------
    >>> MonomialBasis(2, 2).transform([0.5, 0.25])  # y_1, y_2 and the three products
    array([0.5   , 0.25  , 0.25  , 0.125 , 0.0625])
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
        super().__init__(outcomes, power, floor)
        self.degree = degree
        self.homogeneous = homogeneous
        least_degree = degree if homogeneous else 1
        self._list(range(least_degree, degree + 1))
        # one monotone function per coordinate, each with the whole of [0, 1] as its range
        self.convex_image = self.size == outcomes and floor == 0

    def _series(self, loss: Loss) -> tuple[Array, Array]:
        """Expand the power of the sum by the binomial theorem."""
        power_loss = self._checked(loss, PowerOfSum)
        exponent = power_loss.exponent
        orders = np.arange(self.degree + 1)
        if self.homogeneous and ((exponent != self.degree).any() or power_loss.intercept.any()):
            raise ValueError(f"not homogeneous of degree {self.degree}; use homogeneous=False")
        if ((exponent % 1 != 0) | (exponent < 1) | (exponent > self.degree)).any():
            raise ValueError(f"an exponent is not an integer from 1 to the degree {self.degree}")
        exponent = exponent[..., None, None]  # (...) to (..., 1, 1), beside actions and orders
        other_exponents = np.maximum(exponent - orders, 0)  # (..., 1, k + 1), of the intercept
        powers_of_intercept = power_loss.intercept[..., None] ** other_exponents
        series = power_loss.amplitude[..., None] * (comb(exponent, orders) * powers_of_intercept)
        return power_loss.weights, series


class ChebyshevExponentialBasis(OfMultisets):
    """Chebyshev's series about the middle of each loss's range, for normalised losses.

    For ``ExponentialOfSum`` losses with this power and floor and ``sum_j |w_j| <= reach``. The
    declared error is at most the wanted ``error``. g is ``max(y, floor) ** power``, or its
    logarithm for power 0. ValueError if they are out of range, or there are too many monomials or
    too large ones.
    """

    def __init__(
        self, outcomes: int, *, reach: float, error: float, power: float = 0.0, floor: float = 0.01
    ) -> None:
        if not (reach > 0 and error > ROUNDING):
            raise ValueError(f"reach {reach} must be above 0 and error {error} above {ROUNDING}")
        super().__init__(outcomes, power, floor)
        self.reach = reach
        self.degree, self.error = self._choose(error)
        self._list(range(1, self.degree + 1))
        self._signed = (self.counts % 2 == 1).any(-1) & (self._low < self._origin < self._high)
        self.lipschitz = self._greatest_weight_sum()
        if self.lipschitz * ROUNDING > self.error:
            fault = (
                f"coefficients up to {self.lipschitz:.1e} lose an error of {error:g} to rounding"
            )
            raise ValueError(f"{fault}; allow a greater error or a smaller reach")

    @classmethod
    def serving(cls, losses: Sequence[Loss], *, error: float = 0.02) -> Self:
        """Take the losses' greatest sum of absolute weights as reach."""
        stacks = of_form(losses, ExponentialOfSum)
        reach = max(float(np.abs(loss.weights).sum(-1).max()) for loss in stacks)
        power, floor = stacks[0].family
        return cls(losses[0].outcomes, reach=reach, error=error, power=power, floor=floor)

    def _series(self, loss: Loss) -> tuple[Array, Array]:
        exponential_loss = self._checked(loss, ExponentialOfSum)
        greatest_sum = float(np.abs(exponential_loss.weights).sum(-1).max())
        if greatest_sum > self.reach * (1 + ROUNDING_SHARE):
            raise ValueError(
                f"absolute weights add up to {greatest_sum:.6g}, beyond reach {self.reach:g}"
            )
        direction, series = self._series_of_exponential(exponential_loss.weights)
        return direction, exponential_loss.amplitude[..., None] * series

    def _choose(self, error: float) -> tuple[int, float]:
        """Set origin and unit; return the least degree with at most this error, and its error."""
        self._origin = (self._low + self._high) / 2
        self._unit = (self._high - self._low) / 2
        widest = self.reach * self._unit
        if widest > MAX_HALF_WIDTH:
            fault = f"sums that range over {2 * widest:.3g} are too wide for a series"
            raise ValueError(f"{fault}; allow a smaller reach or a greater floor")
        self._widths = widest * np.arange(1, GRID + 1) / GRID
        orders = np.arange(int(2 * widest) + 60)  # later terms are below rounding
        bessel = ive(orders, self._widths[:, None])  # e^-H I_j(H), (GRID, orders)
        # 2 sum_{j >= order} I_j(H) of every order, times the amplitude 1 / (2 sinh H): that is
        # e^-H / (1 - e^-2H), of which e^-H is in the scaled Bessel functions already.
        tails = 2 * bessel[:, ::-1].cumsum(-1)[:, ::-1] / -np.expm1(-2 * self._widths[:, None])
        errors = tails.max(0)  # entry j: of the degree j - 1
        degree = max(int((errors > error).sum()) - 1, 1)  # errors fall with the degree
        self.convex_image = degree == 1
        return degree, float(errors[degree + 1])

    def _greatest_weight_sum(self) -> float:
        """Return the bound on sum |r_i| at the degree."""
        # by size s: the share of ordered tuples whose multiset has even counts alone
        is_even = (self.counts % 2 == 0).all(-1)
        even_tuples = np.bincount(self._sizes, self._multinomials * is_even, self.degree + 1)
        all_tuples = float(self.outcomes) ** np.arange(self.degree + 1)
        share_of_even = even_tuples / all_tuples
        # |p_s| / (2 sinh H), (GRID, k + 1): the scaled series has the e^-H of the amplitude
        series = np.abs(self._scaled(self._widths)) / -np.expm1(-2 * self._widths)[:, None]
        # An even monomial counts once; any other, written as 2 (1 + t^c) / 2 - 1, twice.
        weights_of_orders = series * (2 - share_of_even)
        # by half-width H, 0 first; order 0 is the offset's, no weight
        totals = np.append(1.0, weights_of_orders[:, 1:].sum(-1))  # 1: the limit at 0
        peak = int(totals.argmax())
        # What a peak inside the range can rise above the grid; most are at its upper end.
        is_inside = 0 < peak < GRID
        rise_between_points = np.ptp(totals[peak - 1 : peak + 2]) if is_inside else 0.0
        return float(totals[peak] + rise_between_points)

    def _series_of_exponential(self, weights: Array) -> tuple[Array, Array]:
        """Return v (..., A, d) and p (..., A, k + 1) with e^S = sum_s p_s (v . t)^s, nearly."""
        total = np.abs(weights).sum(-1, keepdims=True)
        direction = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
        half_width = total[..., 0] * self._unit  # H, (..., A)
        greatest_sum = self._origin * weights.sum(-1) + half_width  # its e^ undoes the e^-H
        return direction, np.exp(greatest_sum)[..., None] * self._scaled(half_width)

    def _scaled(self, half_width: Array) -> Array:
        """Coefficients (..., k + 1) in u of the series of e^(H u), times e^-H."""
        orders = np.arange(self.degree + 1)
        # e^-H times the series I_0(H) + 2 sum_j I_j(H) T_j(u): the first term counts once
        bessel = np.where(orders == 0, 1.0, 2.0) * ive(orders, half_width[..., None])
        chebyshev_in_powers = np.zeros((self.degree + 1, self.degree + 1))  # T_j in u^s
        for j in orders:
            chebyshev_in_powers[j, : j + 1] = cheb2poly(np.eye(self.degree + 1)[j])[: j + 1]
        return np.asarray(bessel @ chebyshev_in_powers)


class TaylorExponentialBasis(ChebyshevExponentialBasis):
    """Taylor's series at 0, as printed; ``error`` holds for losses normalised into [0, 1].

    ``lipschitz`` is for the paper's family with A = 1; a normalised loss needs at most
    ``lipschitz`` times ``amplitude``, a bound on its own amplitude times e^max(top of the sum, 0).
    """

    def _choose(self, error: float) -> tuple[int, float]:
        nearest, farthest = sorted(np.abs([self._low, self._high]).tolist())  # least, greatest |g|
        self._unit = self._low if farthest > self._high else self._high
        self._greatest_sum = self.reach * farthest  # C
        if self._greatest_sum > math.log(error / ROUNDING):  # e^C is about the largest coefficient
            series = f"Taylor's series up to {self._greatest_sum:.3g}"
            fault = f"{series} loses an error of {error:g} to rounding"
            raise ValueError(f"{fault}; allow a greater error, a smaller reach or a greater floor")
        width = self.reach * (self._high - self._low)  # reach D, and nearest is m
        self.amplitude = math.exp(self.reach * nearest) / -math.expm1(-width)
        for degree in itertools.count(1):
            next_term = self._greatest_sum ** (degree + 1)
            # Lagrange's, with the amplitude of a normalised loss
            remainder = self.amplitude * next_term / math.factorial(degree + 1)
            if remainder <= error:
                break
        self.convex_image = degree == 1 and nearest == 0
        return degree, remainder

    def _greatest_weight_sum(self) -> float:
        orders = np.arange(1, self.degree + 1)
        return float((self._greatest_sum**orders / factorial(orders)).sum())

    def _series_of_exponential(self, weights: Array) -> tuple[Array, Array]:
        return weights * self._unit, 1 / factorial(np.arange(self.degree + 1))


def monomials(values: Array, counts: Indices) -> Array:
    """Evaluate t^c for values t (..., d) and multisets (n, d): (..., n)."""
    *leading_shape, n_coordinates = values.shape
    result = np.empty((math.prod(leading_shape), len(counts)))
    rows = np.ascontiguousarray(values, dtype=np.float64).reshape(-1, n_coordinates)
    _write_monomials(rows, counts, result)
    return result.reshape(*leading_shape, len(counts))


@compiled(nogil=True)
def _write_monomials(values: Array, counts: Indices, result: Array) -> None:
    """Write prod_j t_j ** c_j of each row of values and each multiset (compiled).

    Powers are products, so that signs and [0, 1] are kept exactly.

    Parameters
    ----------
    values : array (m, d)
        t.
    counts : int array (n, d)
        c, how often each coordinate occurs in each multiset.
    result : array (m, n)
        Written.
    """
    n_multisets, n_coordinates = counts.shape
    greatest = 0
    for i in range(n_multisets):
        for j in range(n_coordinates):
            greatest = max(greatest, counts[i, j])
    powers = np.ones((n_coordinates, greatest + 1))  # t_j ** power
    for row in range(values.shape[0]):
        for j in range(n_coordinates):
            for power in range(1, greatest + 1):
                powers[j, power] = powers[j, power - 1] * values[row, j]
        for i in range(n_multisets):
            product = 1.0
            for j in range(n_coordinates):
                product *= powers[j, counts[i, j]]
            result[row, i] = product


@register.basis("monomials")
def monomial(losses: Sequence[Loss]) -> Basis:
    """Take the losses' greatest exponent as degree, alone if that is everybody's."""
    stacks = of_form(losses, PowerOfSum)
    degree = int(max(float(loss.exponent.max()) for loss in stacks))
    alike = all((loss.exponent == degree).all() and not loss.intercept.any() for loss in stacks)
    power, floor = stacks[0].family
    return MonomialBasis(losses[0].outcomes, degree, power=power, floor=floor, homogeneous=alike)


register.basis("taylor")(TaylorExponentialBasis.serving)
register.basis("chebyshev")(ChebyshevExponentialBasis.serving)
