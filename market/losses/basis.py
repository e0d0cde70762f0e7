"""The base class of all bases: functions s_1..s_n of the outcome in which losses are linear.

``forecaster.bases`` subclasses ``Basis``; a forecaster predicts s(y), cohorts and events read the
``coefficients`` of their losses, and reports turn predictions into outcomes by ``inverse``. A basis
does not change once it is made, so that players may share one.

Mathematics
-----------
Definition (paper, (n, lambda, delta)-approximate basis). ``s`` maps outcomes into [0, 1]^n, and
every loss of the basis's family has coefficients with

    | r_0(a) + sum_i r_i(a) s_i(y) - l(a, y) | <= delta    and    sum_i |r_i(a)| <= lambda.

A forecaster that predicts s(y) without conditional bias serves all those losses at once. What
counts for regret is lambda sqrt(n) at a given delta.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Array
from regretless.market.core.errors import ParameterError, brief
from regretless.market.core.randomness import stream
from regretless.market.losses.base import Loss

Form = TypeVar("Form", bound=Loss)
Hull = Literal["box", "simplex", "image"]

READOUT_POINTS = 1024


class Vertex(NamedTuple):
    """An outcome y (d,) and its s(y) (n,)."""

    outcome: Array
    image: Array


class Support(ABC):
    """The best outcomes of a basis, of d coordinates, in every direction of R^n."""

    outcomes: int
    size: int

    @abstractmethod
    def best(self, direction: Array) -> Vertex:
        """Return the best outcome found in a direction (n,)."""

    @abstractmethod
    def bound(self, direction: Array, *, enough: float = -np.inf) -> float:
        """Bound ``direction . s(y)`` over all outcomes, no closer than ``enough``."""


class Basis(ABC):
    """Functions of the outcome with range [0, 1].

    Attributes
    ----------
    outcomes : int
        Coordinates of an outcome, d.
    size : int
        Number of functions, n.
    lipschitz : float
        Bound on sum |r_i| over the family that the class's docstring declares (lambda).
    error : float
        Bound on the distance between a loss of the family and its linear form (delta).
    proved : bool
        Whether ``error`` holds at every outcome; else it is measured, and ``certified_error``
        proved.
    convex_image : bool
        Whether {s(y)} is convex, so that every prediction in the box is some s(y) and a label
        forecast ``inverse`` is exact.
    hull : "box" or "simplex"
        Where every s(y) lies, and predictions with it.
    inverse_is_rowwise : bool
        Whether ``inverse`` makes of many predictions (T, n) bit for bit what it makes of each row
        alone, so that labels of many rounds may be made together. A product of matrices does not:
        its sums are taken in an order that depends on the number of rows.
    """

    outcomes: int
    size: int
    lipschitz: float
    error: float
    convex_image: bool = False
    hull: Hull = "box"
    proved: ClassVar[bool] = True
    inverse_is_rowwise: ClassVar[bool] = False

    @property
    def points(self) -> Array | None:
        """The outcome (n, d) that each function stands for, where these are cells' indicators."""
        return None

    @abstractmethod
    def transform(self, y: ArrayLike) -> Array:
        """Return s(y), in [0, 1]: (n,) of an outcome (d,), or (T, n) of outcomes (T, d)."""

    @abstractmethod
    def coefficients(self, loss: Loss) -> tuple[Array, Array]:
        """Return a loss's offset (..., A) and weights (..., A, n); ValueError where it has none."""

    def inverse(self, points: Array) -> Array:
        """Return label forecasts (..., d), outcomes in [0, 1], for predictions (..., n).

        Where the image is convex this is s^-1, else the mean outcome that a prediction suggests:
        the linear readout of y from s that fits best on the cube.
        """
        offset, weights = self._readout
        return np.minimum(np.maximum(offset + points @ weights, 0.0), 1.0)

    @cached_property
    def _readout(self) -> tuple[Array, Array]:
        """Least squares of the outcome on its own functions: (d,) and (n, d)."""
        outcomes = stream(0, "readout").random((READOUT_POINTS, self.outcomes))
        design = np.column_stack([np.ones(READOUT_POINTS), self.transform(outcomes)])
        solution = np.linalg.lstsq(design, outcomes, rcond=1e-8)[0]
        return solution[0], np.ascontiguousarray(solution[1:])

    def support(self) -> Support:
        """Return the support oracle, with which ensembles are made; ValueError if there is none."""
        bases_with_support = "powers, bernstein, monomials, chebyshev, ramps, relu or reduced"
        name = type(self).__name__
        raise ValueError(f"there is no ensemble forecast for {name}; use {bases_with_support}")

    def accept(self, loss: Loss, form: type[Form]) -> Form:
        """Return the loss if it has this form and length; ValueError otherwise."""
        if not isinstance(loss, form):
            name = type(self).__name__
            raise ValueError(f"a {loss.form} loss is not in the span of {name}")  # noqa: TRY004
        self.check_outcomes(loss)
        return loss

    def check_outcomes(self, loss: Loss) -> None:
        """Raise ValueError if a loss is over outcomes of another length."""
        if loss.outcomes != self.outcomes:
            raise ValueError(f"a loss over {loss.outcomes} outcomes; the basis has {self.outcomes}")

    def contiguous(self, offset: Array, weights: Array) -> tuple[Array, Array]:
        """Lay coefficients out in index order, as kernels read them: (..., A) and (..., A, n)."""
        weights = weights.reshape(*offset.shape, self.size)
        return np.ascontiguousarray(offset), np.ascontiguousarray(weights)

    def audit(self, losses: Loss, outcomes: ArrayLike) -> float:
        """Measure the greatest distance of losses from their linear forms on outcomes (T, d)."""
        offset, weights = self.coefficients(losses)
        linear = offset + np.einsum("...an,tn->t...a", weights, self.transform(outcomes))
        return float(np.abs(linear - losses.losses(outcomes)).max())

    def certified_error(self, losses: Loss) -> float:
        """Bound the distance of these losses from their linear forms at every outcome."""
        return self.error


def checked_basis(basis: object) -> Basis:
    """Return a basis; ParameterError if it is none."""
    if not isinstance(basis, Basis):
        raise ParameterError(f"basis = {brief(basis)}: give a basis of forecaster.bases")
    return basis


def of_form(losses: Sequence[Loss], form: type[Form]) -> list[Form]:
    """Return the losses if all have this form; ValueError otherwise."""
    losses_of_form = [loss for loss in losses if isinstance(loss, form)]
    if len(losses_of_form) != len(losses):
        other_form = next(loss.form for loss in losses if not isinstance(loss, form))
        raise ValueError(
            f"it does not serve {other_form} losses; leave the basis out for the default"
        )
    return losses_of_form


def steepest(losses: Sequence[Loss]) -> float:
    """Return the greatest Lipschitz constant of some losses."""
    return max(float(loss.lipschitz().max()) for loss in losses)
