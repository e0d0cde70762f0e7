r"""A broken line for convex losses of one coordinate: n = L / (4 error) functions, lambda = L.

Let f be convex with slopes in [-L, L], and I its broken line through the knots i / n. In a cell
of length h = 1 / n in which the slope rises from p to q, the chord lies above f by at most
h (q - p) / 4, and never below. All rises together are at most 2 L, so 0 <= I - f <= h L / 2, and
the broken line lowered by half of its greatest excess is within

    error = h L / 4 = L / (4 n).

The span is that of y_j and of n - 1 rectifiers max(y_j - t_i, 0), one per inner knot. Written in
rectifiers, sum |r_i| reaches 3 L: slope -L everywhere, then 2 L of rise. In absolute values,

    I(y) = const + b y_j + sum_i m_i |y_j - t_i|,        |b| + sum_i m_i <= L,

(b the mean of the first and last slope, 2 m_i the rise at t_i), so the functions here are y_j and
|y_j - t_i| / max(t_i, 1 - t_i): the same functions to approximate with, and lambda = L.

**Own knots.** A loss whose kinks are all among the knots, evenly spaced or not, is its own broken
line: the error is 0. In a cell of length h the excess of any other is at most h times as above.

A smooth basis of Gopalan et al. is asymptotically smaller, from errors of about 1e-9 on;
``OptimisedConvexBasis`` is smaller at errors that one uses.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.losses import Convex1D, Loss
from regretless.market.losses.basis import Basis

ROUNDING = 1e-9


class ConvexBasis(Basis):
    """What bases for convex losses of one coordinate share: the family and the label.

    Family: ``Convex1D`` losses of this coordinate with slopes in [-constant, constant].

    Parameters
    ----------
    error : float
        Wanted bound on the distance.
    outcomes : int
        Coordinates of an outcome, d.
    coordinate : int
        j, the one that the losses depend on.
    constant : float
        L, the steepest slope. A newsvendor's or pinball loss mapped onto [0, 1] has one above 1.

    Raises
    ------
    ValueError
        If the coordinate does not exist, or the error or the constant is not positive.
    """

    def __init__(self, error: float, *, outcomes: int, coordinate: int, constant: float) -> None:
        if not error > 0:
            raise ValueError(f"an error of {error} is not positive")
        if not 0 <= coordinate < outcomes:
            raise ValueError(f"coordinate {coordinate} is not one of {outcomes}")
        if not 0 < constant < math.inf:
            raise ValueError(f"a Lipschitz constant of {constant} is not positive")
        self.outcomes, self.coordinate, self.constant = outcomes, coordinate, constant

    def convex(self, loss: Loss) -> Convex1D:
        """Return the loss if it belongs to the family; ValueError otherwise."""
        found = self.accept(loss, Convex1D)
        if found.coordinate != self.coordinate:
            named = f"coordinate {found.coordinate}; the basis is for {self.coordinate}"
            raise ValueError(f"the loss is convex in {named}")
        steepest = float(found.lipschitz().max())
        if steepest > self.constant + ROUNDING:
            limit = f"the basis is for at most {self.constant:.6g}"
            raise ValueError(f"the loss has slopes up to {steepest:.6g}; {limit}")
        return found

    def inverse(self, points: Array) -> Array:
        """Read y_j from the first function; the losses do not depend on the rest, set to 1/2."""
        points = np.asarray(points)
        labels = np.full((*points.shape[:-1], self.outcomes), 0.5)
        labels[..., self.coordinate] = np.clip(points[..., 0], 0.0, 1.0)
        return labels


class ReLUBasis(ConvexBasis):
    """The outcome and its distances from knots, equally spaced or given.

    Family: ``Convex1D`` losses of this coordinate with slopes in [-constant, constant]. lambda is
    ``constant``, which a linear loss needs.

    Parameters
    ----------
    error : float
        Wanted bound on the distance; the declared one is ``constant / (4 size)``.
    outcomes, coordinate, constant : as in ``ConvexBasis``
    knots : array (m,), optional
        Inner knots, ascending in (0, 1), in place of as many equally spaced ones as the error
        wants. The declared error is then 0, that of losses with no other kinks;
        ``certified_error`` is proved for others, too.

    Raises
    ------
    ValueError
        As in ``ConvexBasis``.
    """

    def __init__(
        self,
        *,
        error: float,
        outcomes: int = 1,
        coordinate: int = 0,
        constant: float = 1.0,
        knots: ArrayLike | None = None,
    ) -> None:
        super().__init__(error, outcomes=outcomes, coordinate=coordinate, constant=constant)
        if knots is None:
            size = self.even_size(error, constant)
            self.knots, self.error = np.arange(size + 1) / size, constant / (4 * size)
        else:
            self.knots, self.error = np.array([0.0, *np.asarray(knots), 1.0]), 0.0
        self.size, self.lipschitz = len(self.knots) - 1, constant
        self._lengths = np.diff(self.knots)
        self.convex_image = self.size == outcomes == 1
        inner = self.knots[1:-1]
        self._reach = np.maximum(inner, 1 - inner)

    @staticmethod
    def even_size(error: float, constant: float) -> int:
        """Return how many functions equally spaced knots take."""
        return max(1, math.ceil(constant / (4 * error) - ROUNDING))

    def certified_error(self, losses: Loss) -> float:
        """Return half of the losses' greatest excess, and at least what rounding may do."""
        excess = float(self._excess(self.convex(losses)).max()) / 2
        return excess if excess > ROUNDING else 0.0

    def transform(self, y: ArrayLike) -> Array:
        """Map outcomes (..., d) to (..., n)."""
        own = np.asarray(y, dtype=np.float64)[..., self.coordinate, None]
        return np.concatenate([own, np.abs(own - self.knots[1:-1]) / self._reach], axis=-1)

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Interpolate the loss at the knots and lower it by half of its greatest excess."""
        found = self.convex(loss)
        values = self._values(found, self.knots)
        slopes = np.diff(values, axis=-1) / self._lengths
        masses = np.maximum(np.diff(slopes, axis=-1), 0.0) / 2  # rounding may make one negative
        middle = (slopes[..., :1] + slopes[..., -1:]) / 2
        weights = np.concatenate([middle, masses * self._reach], axis=-1)
        offset = values[..., 0] - (masses * self.knots[1:-1]).sum(-1) - self._excess(found) / 2
        return offset, np.ascontiguousarray(weights)

    def _values(self, loss: Convex1D, points: Array) -> Array:
        """Losses (..., A, T) where the coordinate has values (T,)."""
        outcomes = np.zeros((len(points), self.outcomes))
        outcomes[:, self.coordinate] = points
        return np.moveaxis(loss.losses(outcomes), 0, -1)

    def _excess(self, loss: Convex1D) -> Array:
        """Height (..., A) of the broken line above the loss, greatest at a kink of the loss.

        Each kink raises the line above the loss on its own cell only, by a triangle with its top
        at the kink.
        """
        place = np.clip(loss.knots, 0.0, 1.0)
        cell = np.searchsorted(self.knots[1:-1], place, side="right")
        length = self._lengths[cell]
        inside = (place - self.knots[cell]) / length
        top = np.zeros(loss.offset.shape)
        for k in range(loss.knots.shape[-1]):
            same = cell == cell[..., k, None]
            here = inside[..., k, None]
            share = np.minimum(here, inside) * (1 - np.maximum(here, inside))
            height = length * loss.kinks * np.where(same, share, 0.0)
            top = np.maximum(top, height.sum(-1))
        return np.asarray(top)
