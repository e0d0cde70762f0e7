r"""Ramps: multilinear interpolation at a grid of knots, in cumulative form. For CES and its limits.

With knots t_0 < ... < t_m per coordinate, ramp_i(v) = clip((v - t_(i-1)) / (t_i - t_(i-1)), 0, 1)
and ramp_0 = 1, the multilinear interpolant of a loss at the knots is

    sum_(i in {0..m}^d) w_i prod_j ramp_(i_j)(y_j),    w = the d-fold mixed differences of l,

so the functions are the products other than the constant, n = (m + 1)^d - 1, the span is that of
the hat functions, and a prediction stays meaningful between the knots. If l is minus the
distribution function of a positive measure the weights are minus the measure of the knots' boxes:
of one sign, and lambda is at most the range of l, 1 for a normalised loss. That is so for CES
utility with rho < 0 or 0 < rho <= 1 / (d - 1), for Cobb-Douglas with exponents in (0, 1), and for
Leontief. Hat functions themselves would need lambda up to n / 2.

Interpolation of a loss that is convex along each coordinate (a utility with diminishing returns)
lies above it, so half of the greatest excess is taken off, read from the middles of the knots'
boxes: that halves the error. Knots are t = floor + (1 - floor) u^2 for even u, finer towards the
floor, where such utilities are steep.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forecaster.bases.certify import Certificate, certify
from market.basis import Basis
from market.losses import Loss

Array = NDArray[np.float64]

BUDGET = 20_000_000  # evaluations that a certificate may take
TOLERANCE = 0.1
MOST = 2000  # functions
NUMBERS = 1 << 22  # in one table of losses at outcomes


class RampBasis(Basis):
    """Products of ramps, for a given population of losses of any form.

    Family: ``losses``. The error is certified over all outcomes by interval arithmetic, lambda is
    the greatest sum of absolute weights. Any other loss over the same outcomes has coefficients,
    for which neither is claimed.

    Parameters
    ----------
    losses : sequence of Loss
        Single losses or stacks, over the same outcomes.
    knots : int
        Knots along each coordinate, m + 1 >= 2.
    floor : float
        The first knot: a level below which no loss moves, in [0, 1).
    error : float, optional
        Take the fewest knots, at most ``MOST`` functions, whose certified error is at most this;
        ``knots`` is not used then.
    budget : int
        Most evaluations of (loss, action, box) for a certificate. The certified error is closer
        to the true one the larger this is.

    Attributes
    ----------
    certificate : Certificate
        Bounds on the greatest error over the family, from above (``error``) and below.

    Raises
    ------
    ValueError
        If the losses are over different outcomes, the parameters are out of range, or no number
        of knots reaches the wanted error.
    """

    def __init__(
        self,
        losses: Sequence[Loss],
        *,
        knots: int = 4,
        floor: float = 0.0,
        error: float | None = None,
        budget: int = BUDGET,
    ) -> None:
        if len({loss.outcomes for loss in losses}) != 1:
            raise ValueError("ramps need losses, all over the same number of outcomes")
        if not 0 <= floor < 1:
            raise ValueError(f"a floor of {floor} is not in [0, 1)")
        if error is None and knots < 2:
            raise ValueError(f"{knots} knots along a coordinate; at least 2 are needed")
        if error is not None and not error > 0:
            raise ValueError(f"an error of {error} is not positive")
        self.outcomes, self.floor, self._losses = losses[0].outcomes, floor, tuple(losses)
        if error is None:
            self._place(knots)
            self.certificate = self._certify(0.0, budget)
        else:
            self.certificate = self._search(error, budget)
        self.error = self.certificate.upper
        sums = [np.abs(self.coefficients(loss)[1]).sum(-1).max() for loss in losses]
        self.lipschitz = float(max(sums))

    def transform(self, y: ArrayLike) -> Array:
        """Map outcomes (..., d) to the products of ramps (..., n)."""
        own = np.asarray(y, dtype=np.float64)[..., None]
        ramps = np.clip((own - self.knots[:-1]) / np.diff(self.knots), 0.0, 1.0)
        ramps = np.concatenate([np.ones((*own.shape[:-1], 1)), ramps], axis=-1)
        products = ramps[..., 0, :]
        for j in range(1, self.outcomes):
            wider = products[..., :, None] * ramps[..., j, None, :]
            products = wider.reshape(*wider.shape[:-2], -1)
        return np.ascontiguousarray(products[..., 1:])

    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Mixed differences of the loss at the knots, centred between their boxes."""
        self.check_outcomes(loss)
        count = len(self.knots)
        values = loss.losses(self._grid(self.knots))
        table = values.reshape(*[count] * self.outcomes, *values.shape[1:])
        for axis in range(self.outcomes):
            table = np.diff(table, axis=axis, prepend=0.0)
        weights = np.moveaxis(table.reshape(values.shape), 0, -1)
        offset, weights = weights[..., 0], np.ascontiguousarray(weights[..., 1:])
        return offset - self._excess(loss, offset, weights), weights

    def enclose(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Ranges of the functions over boxes (T, d): they ascend in every coordinate."""
        return self.transform(low), self.transform(high)

    def inverse(self, points: Array) -> Array:
        """Rebuild y_j from the ramps of that coordinate alone: its own broken line."""
        count = len(self.knots)
        steps = np.diff(self.knots)
        labels = [
            self.floor + points[..., np.arange(1, count) * count**power - 1] @ steps
            for power in reversed(range(self.outcomes))
        ]
        return np.clip(np.stack(labels, axis=-1), 0.0, 1.0)

    def _place(self, knots: int) -> None:
        """Set the knots, and with them the size."""
        self.knots = self.floor + (1 - self.floor) * np.linspace(0, 1, knots) ** 2
        self.size = knots**self.outcomes - 1
        self.convex_image = self.size == 1 and self.floor == 0

    def _grid(self, levels: Array) -> Array:
        """All outcomes (T, d) with these levels, the last coordinate fastest."""
        axes = np.meshgrid(*[levels] * self.outcomes, indexing="ij")
        return np.stack(axes, axis=-1).reshape(-1, self.outcomes)

    def _excess(self, loss: Loss, offset: Array, weights: Array) -> Array:
        """Middle (..., A) of the form's distances above the loss at knots and between them."""
        middles = (self.knots[1:] + self.knots[:-1]) / 2
        outcomes = self._grid(np.sort(np.concatenate([self.knots, middles])))
        rows = max(1, NUMBERS // max(offset.size, self.size))
        least, most = np.zeros(offset.shape), np.zeros(offset.shape)
        for first in range(0, len(outcomes), rows):
            part = outcomes[first : first + rows]
            form = np.moveaxis(weights @ self.transform(part).T, -1, 0) + offset
            excess = form - loss.losses(part)
            least = np.minimum(least, excess.min(0))
            most = np.maximum(most, excess.max(0))
        return (least + most) / 2

    def _certify(self, target: float, budget: int) -> Certificate:
        """Bound the error over the family; what is at or below the target is not refined."""
        upper, lower, evaluations = 0.0, 0.0, 0
        for loss in self._losses:
            found = certify(
                loss,
                *self.coefficients(loss),
                self.enclose,
                target=max(target, (1 + TOLERANCE) * lower),
                tolerance=TOLERANCE,
                budget=budget // len(self._losses),
            )
            upper, lower = max(upper, found.upper), max(lower, found.lower)
            evaluations += found.evaluations
        return Certificate(upper, lower, evaluations)
