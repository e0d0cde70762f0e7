r"""Which support oracle a basis has: what is known of its functions between finitely many outcomes.

    linear, power, Bernstein        one coordinate each: knots along one axis, any d
    ReLU, optimised convex, ramps   (multi)linear between their knots: exact
    convex-rank, Leontief           constant around the points of a lattice: exact
    monomials, Taylor, Chebyshev    smooth in the transformed coordinates: a grid, w^2 / 8 max |f''|
    real losses, all or a few       a grid, with the ranges of the losses and of their slopes

A separable power is concave or convex, so it strays from its chord on one side only, on [a, b] by
at most (b - a)^2 / 8 max |f''| and by f(b) - f(a). Knots are u^q for even u, with q so large that
the smallest power is resolved near 0, where it is steep. A Bernstein polynomial of degree p has
|f''| <= 2 p (p - 1), and a monomial t^c with |t| <= 1 has |f''| <= c (c - 1) along an axis.
"""

from functools import singledispatch

import numpy as np

from regretless.forecaster import bases
from regretless.forecaster.bases.approximation.functions import LossFunctions
from regretless.forecaster.bases.approximation.lattice import lattice_points
from regretless.forecaster.bases.exponential import ExponentialBasis
from regretless.forecaster.minimax import support
from regretless.market.core.arrays import Array, grid_points
from regretless.market.losses.basis import Basis

KNOTS = 2049
MOST_POINTS, MOST_NUMBERS = 20_000, 600_000  # of a grid, and in its table of s
LARGEST_LIST = 8_000_000  # numbers in the s of listed outcomes


@singledispatch
def support_of(basis: Basis) -> support.Support:
    """Make the support oracle of a basis.

    Raises
    ------
    ValueError
        If it has none.
    """
    known = "powers, bernstein, monomials, chebyshev, ramps, relu or reduced"
    raise ValueError(f"there is no ensemble forecast for {type(basis).__name__}; use {known}")


@support_of.register
def _(basis: bases.LinearBasis) -> support.Support:
    return _separable(basis, np.array([0.0, 1.0]), np.zeros(basis.size), np.zeros(basis.size))


@support_of.register
def _(basis: bases.PowerBasis) -> support.Support:
    rho = np.tile(basis.exponents, basis.outcomes)
    knots = np.linspace(0, 1, KNOTS) ** max(2.0, 2 / float(rho.min()))
    width = np.diff(knots)[:, None]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        bends = [
            rho * np.abs(rho - 1) * end[:, None] ** (rho - 2) for end in (knots[:-1], knots[1:])
        ]
    bend = np.nan_to_num(np.maximum(*bends), posinf=1e300)  # at 0 the range decides
    errors = np.minimum(width**2 / 8 * bend, np.diff(knots[:, None] ** rho, axis=0)).max(0)
    return _separable(basis, knots, np.where(rho < 1, errors, 0.0), np.where(rho > 1, errors, 0.0))


@support_of.register
def _(basis: bases.BernsteinBasis) -> support.Support:
    knots = np.linspace(0, 1, KNOTS)
    bend = 2 * basis.degree * (basis.degree - 1)
    errors = np.full(basis.size, bend / (8 * (KNOTS - 1) ** 2))
    return _separable(basis, knots, errors, errors)


@support_of.register
def _(basis: bases.ReLUBasis) -> support.Support:
    return _along(basis, basis.knots, basis.coordinate)


@support_of.register
def _(basis: bases.OptimisedConvexBasis) -> support.Support:
    return _along(basis, np.linspace(0, 1, len(basis.table.functions)), basis.coordinate)


@support_of.register
def _(basis: bases.ConvexRankBasis) -> support.Support:
    return _along(basis, np.arange(basis.cells + 1) / basis.cells, basis.coordinate)


@support_of.register
def _(basis: bases.RampBasis) -> support.Support:
    return _listed(basis, grid_points(basis.knots, basis.outcomes))


@support_of.register
def _(basis: bases.LipschitzGridBasis) -> support.Support:
    return _listed(basis, basis.points)


@support_of.register
def _(basis: bases.LeontiefBasis) -> support.Support:
    return _listed(basis, lattice_points(basis.bottom, basis.top, basis.outcomes) / basis.cells)


@support_of.register
def _(basis: bases.MonomialBasis) -> support.Support:
    levels = _levels(basis, basis.floor**basis.power, 1.0)
    return support.CellSupport(_Polynomials(basis, 0.0, 1.0), levels, basis.outcomes)


@support_of.register
def _(basis: ExponentialBasis) -> support.Support:
    pieces = _Polynomials(basis, basis._origin, basis._unit)  # noqa: SLF001 - a view on the basis
    ends = sorted((np.array([basis._low, basis._high]) - basis._origin) / basis._unit)  # noqa: SLF001
    return support.CellSupport(pieces, _levels(basis, ends[0], ends[1]), basis.outcomes)


@support_of.register
def _(basis: bases.ExactLossesBasis) -> support.Support:
    return _of_losses(basis, basis.functions)


@support_of.register
def _(basis: bases.ReducedBasis) -> support.Support:
    return _of_losses(basis, basis.functions)


class _Polynomials:
    """Monomials of ``t = (g(y) - origin) / unit``, over boxes of t in [-1, 1]^d."""

    def __init__(
        self, basis: bases.MonomialBasis | ExponentialBasis, origin: float, unit: float
    ) -> None:
        self.basis, self.origin, self.unit = basis, origin, unit
        counts = basis._counts  # noqa: SLF001 - a view on the basis
        self._bend = counts * (counts - 1.0)
        self._even = (counts % 2 == 0).all(-1)
        if isinstance(basis, ExponentialBasis):  # half as wide where it was moved into [0, 1]
            self._bend = self._bend / np.where(basis._signed, 2.0, 1.0)[:, None]  # noqa: SLF001

    def place(self, levels: Array) -> Array:
        inner = self.origin + self.unit * levels
        power = self.basis.power
        level = np.exp(inner) if power == 0 else np.maximum(inner, 0.0) ** (1 / power)
        return np.clip(level, 0.0, 1.0)

    def images(self, levels: Array) -> Array:
        return self.basis.transform(self.place(levels))

    def errors(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Convex functions never rise over their interpolant."""
        below = (high - low) ** 2 / 8 @ self._bend.T
        convex = self._even | (low.min(1) >= 0)[:, None]
        return np.where(convex, 0.0, below), below


class _Losses:
    """Functions that are single actions of real losses."""

    def __init__(self, functions: LossFunctions) -> None:
        self.functions = functions

    def place(self, levels: Array) -> Array:
        return levels

    def images(self, levels: Array) -> Array:
        return self.functions.values(levels)

    def errors(self, low: Array, high: Array) -> tuple[Array, Array]:
        """By the range of the function, or by the ranges of its slopes."""
        least, most = self.functions.enclosure(low, high)
        first, last = self.functions.slopes(low, high)
        by_slope = ((last - first) * (high - low)[..., None]).sum(1) / 4
        errors = np.minimum(most - least, by_slope)
        return errors, errors


def _separable(basis: Basis, knots: Array, above: Array, below: Array) -> support.Support:
    images = basis.transform(np.repeat(knots[:, None], basis.outcomes, axis=1))
    return support.SeparableSupport(knots, images, basis.outcomes, above=above, below=below)


def _along(basis: Basis, knots: Array, coordinate: int) -> support.Support:
    """List the knots of the one coordinate that matters."""
    places = np.full((len(knots), basis.outcomes), 0.5)
    places[:, coordinate] = knots
    return _listed(basis, places)


def _listed(basis: Basis, places: Array) -> support.Support:
    if len(places) * basis.size > LARGEST_LIST:
        raise ValueError(f"{len(places)} x {basis.size} numbers are too many; use a coarser basis")
    return support.ListedSupport(places, basis.transform(places))


def _levels(basis: Basis, low: float, high: float) -> Array:
    """Even levels along an axis, as many as the limits allow."""
    points = min(MOST_POINTS, MOST_NUMBERS // basis.size)
    return np.linspace(low, high, max(int(points ** (1 / basis.outcomes) + 1e-9), 2))


def _of_losses(basis: Basis, functions: LossFunctions) -> support.Support:
    return support.CellSupport(_Losses(functions), _levels(basis, 0.0, 1.0) ** 2, basis.outcomes)
