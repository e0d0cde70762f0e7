"""The basis that an offline omnipredictor takes for its losses where none is named.

    linear                                   the outcome
    powers about 0, at most six exponents    powers, exact
    even powers about targets                Bernstein polynomials, exact
    convex in one coordinate                 broken lines with error delta
    anything else                            the losses themselves if they are few, else a reduced
                                             basis with error delta

Losses of several kinds get the direct sum of their kinds' bases.
"""

from collections.abc import Sequence

import numpy as np

from regretless.forecaster import bases
from regretless.market.losses import Convex1D, Loss, SeparablePower
from regretless.market.losses.basis import Basis

DELTA = 0.05
FEW_EXPONENTS, FEW_FUNCTIONS, MOST_DEGREE = 6, 24, 16


def default_basis(losses: Sequence[Loss], delta: float | None = None) -> Basis:
    """Return a basis that spans all listed losses.

    Parameters
    ----------
    losses : sequence of Loss
        Single or stacked, in [0, 1], over outcomes of one length.
    delta : float, optional
        Wanted error where the basis is not exact, 0.05 by default.
    """
    kinds: dict[tuple[str, int], list[Loss]] = {}
    for loss in losses:
        kinds.setdefault(_kind(loss), []).append(loss)
    parts = [_part(kind, members, delta or DELTA) for (kind, _), members in kinds.items()]
    return parts[0] if len(parts) == 1 else bases.DirectSumBasis(parts)


def _kind(loss: Loss) -> tuple[str, int]:
    """Name the family of a loss, and its coordinate where that matters."""
    if isinstance(loss, Convex1D):
        return "convex", loss.coordinate
    if not isinstance(loss, SeparablePower):
        return "other", 0
    if not loss.centred:
        return ("linear" if (loss.exponent == 1).all() else "powers"), 0
    even = (loss.exponent % 2 == 0).all() and loss.exponent.max() <= MOST_DEGREE
    return ("bernstein" if even else "other"), 0


def _part(kind: str, losses: Sequence[Loss], delta: float) -> Basis:
    outcomes = losses[0].outcomes
    separable = [loss for loss in losses if isinstance(loss, SeparablePower)]
    if kind == "linear":
        return bases.LinearBasis(outcomes)
    if kind == "powers":
        exponents = np.unique(np.concatenate([loss.exponent.ravel() for loss in separable]))
        if len(exponents) <= FEW_EXPONENTS:
            return bases.PowerBasis(exponents, outcomes)
    if kind == "bernstein":
        degree = max(int(loss.exponent.max()) for loss in separable)
        return bases.BernsteinBasis(outcomes, degree)
    convex = [loss for loss in losses if isinstance(loss, Convex1D)]
    if kind == "convex":
        steepest = max(float(loss.lipschitz().max()) for loss in convex)
        place = convex[0].coordinate
        return bases.ReLUBasis(error=delta, outcomes=outcomes, coordinate=place, constant=steepest)
    listed = bases.ExactLossesBasis(losses)
    return listed if listed.size <= FEW_FUNCTIONS else bases.ReducedBasis(losses, error=delta)
