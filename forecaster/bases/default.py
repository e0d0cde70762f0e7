"""The one rule: which basis serves which losses, unless somebody names another one.

A basis may be named once its file is imported in ``bases/__init__.py``.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from regretless.forecaster.bases.exact import DirectSumBasis
from regretless.forecaster.bases.reduced import COARSE_ERROR
from regretless.market import register
from regretless.market.losses import Loss
from regretless.market.losses.basis import Basis, steepest

MAX_DEGREE = 32  # of Bernstein polynomials
MAX_CELLS = 400  # of a grid; above, a reduced basis is smaller
MAX_MONOMIALS = 100  # functions; above, a reduced basis is smaller
ERRORLESS = {"linear", "bernstein", "monomials"}
ANY_FORM = {"lipschitz-grid", "ramps", "exact", "reduced"}  # one serves losses of several families


def natural_kind(loss: Any) -> str:
    """Name the default basis of a stack of losses, as ``register.basis`` knows it."""
    kind = "reduced"
    is_small = True
    match loss.form:
        case "linear":
            kind = "linear"
        case "separable-power" if not loss.centred:
            kind = "linear" if loss.linear else "powers"
        case "separable-power":
            is_even = (loss.exponent % 2 == 0).all()
            kind = "bernstein"
            is_small = is_even and loss.exponent.max() <= MAX_DEGREE
        case "power-of-sum":
            exponent = loss.exponent
            kind = "monomials"
            degree = int(exponent.max())
            is_homogeneous = np.ptp(exponent) == 0 and not loss.intercept.any()
            variables = loss.outcomes - bool(is_homogeneous)  # one less where all have one degree
            is_integer = (exponent == np.round(exponent)).all()
            is_polynomial = loss.alike and is_integer and (loss.power > 0).all()
            is_small = is_polynomial and math.comb(variables + degree, degree) <= MAX_MONOMIALS
        case "exponential-of-sum":
            kind = "chebyshev"
            is_small = loss.alike
        case "convex-1d":
            kind = "relu"
        case "lipschitz":
            cells = np.ceil(steepest([loss]) / (2 * COARSE_ERROR)) ** loss.outcomes
            kind = "lipschitz-grid"
            is_small = cells <= MAX_CELLS
    return kind if is_small else "reduced"


def variant(kind: str, loss: Loss) -> tuple[float, ...]:
    """Tell losses apart that cannot share a basis of this kind: their g, or their coordinate."""
    return () if kind in ANY_FORM else loss.family


def default_basis(losses: Sequence[Loss], *, error: float | None = None, listed: int = 0) -> Basis:
    """Make a basis that spans all losses, the direct sum of their default ones.

    Losses are single or stacked, in [0, 1], over outcomes of one length. ``error`` is wanted where
    a basis is not exact, by default its kind's own. Losses without a small basis of their own are
    functions themselves, up to so many as may be ``listed``.

    Examples
    --------
    >>> from regretless.market.losses import Linear, SeparablePower
    >>> default_basis([Linear([[1.0]]), SeparablePower([[1.0]], 0.5)]).size  # y and its root
    2
    """
    groups: dict[tuple[str, tuple[float, ...]], list[Loss]] = {}
    for loss in losses:
        kind = natural_kind(loss)
        groups.setdefault((kind, variant(kind, loss)), []).append(loss.as_stack())
    parts: list[Basis] = []
    for (kind, _), stacks in groups.items():
        n_functions = sum(loss.offset.size for loss in stacks)
        if kind == "reduced" and n_functions <= listed:
            basis = register.basis["exact"](stacks)
        elif error is None or kind in ERRORLESS:
            basis = register.basis[kind](stacks)
        else:
            basis = register.basis[kind](stacks, error=error)
        parts.append(basis)
    return parts[0] if len(parts) == 1 else DirectSumBasis(parts)
