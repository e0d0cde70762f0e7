"""What a basis is: functions s_1..s_n of the outcome in which losses are (nearly) linear.

Definition (paper, (n, lambda, delta)-approximate basis). ``s`` maps outcomes into [0, 1]^n, and
every loss it serves has coefficients with

    | r_0(a) + sum_i r_i(a) s_i(y) - l(a, y) | <= delta    and    sum_i |r_i(a)| <= lambda.

A forecaster that predicts s(y) without conditional bias serves all those losses at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from market.losses import SeparablePower

Array = NDArray[np.float64]


class Basis(ABC):
    """Functions of the outcome with range [0, 1].

    Attributes
    ----------
    outcomes : int
        Coordinates of an outcome, d.
    size : int
        Number of functions, n.
    lipschitz : float
        Bound on sum |r_i| over losses normalised into [0, 1] (lambda).
    error : float
        Bound on the distance between a normalised loss and its linear form (delta).
    convex_image : bool
        Whether {s(y)} is convex, so that every prediction in the box is some s(y) and a label
        forecast ``inverse`` is exact.
    """

    outcomes: int
    size: int
    lipschitz: float
    error: float
    convex_image: bool

    @abstractmethod
    def transform(self, y: ArrayLike) -> Array:
        """Map outcomes (d,) or (T, d) to (n,) or (T, n)."""

    @abstractmethod
    def coefficients(self, loss: SeparablePower) -> tuple[Array, Array]:
        """Offset (..., A) and weights (..., A, n) of a loss; ValueError where it has none."""

    @abstractmethod
    def inverse(self, points: Array) -> Array:
        """Label forecasts (..., d) for predictions (..., n); exact where the image is convex."""

    def check_outcomes(self, loss: SeparablePower) -> None:
        """Raise ValueError if a loss is over outcomes of another length."""
        if loss.outcomes != self.outcomes:
            raise ValueError(f"a loss over {loss.outcomes} outcomes; the basis has {self.outcomes}")

    def audit(self, losses: SeparablePower, outcomes: ArrayLike) -> float:
        """Measure the greatest distance of losses from their linear forms on outcomes (T, d)."""
        offset, weights = self.coefficients(losses)
        linear = offset + np.einsum("...an,tn->t...a", weights, self.transform(outcomes))
        return float(np.abs(linear - losses.losses(outcomes)).max())
