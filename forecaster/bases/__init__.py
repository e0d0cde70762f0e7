"""Bases in which losses are linear, each in one file with its support and its registered maker.

Importing the package registers all of them; ``default`` says which one serves which losses, and any
other is there for whoever names it (docs/utilities.md has a table).
"""

from regretless.forecaster.bases.convex import ConvexRankBasis, OptimisedConvexBasis, ReLUBasis
from regretless.forecaster.bases.exact import DirectSumBasis, ExactLossesBasis
from regretless.forecaster.bases.grid import LipschitzGridBasis, RampBasis
from regretless.forecaster.bases.leontief import LeontiefBasis
from regretless.forecaster.bases.multisets import (
    ChebyshevExponentialBasis,
    MonomialBasis,
    TaylorExponentialBasis,
)
from regretless.forecaster.bases.polynomial import BernsteinBasis, LinearBasis, PowerBasis
from regretless.forecaster.bases.reduced import ReducedBasis

__all__ = [
    "BernsteinBasis",
    "ChebyshevExponentialBasis",
    "ConvexRankBasis",
    "DirectSumBasis",
    "ExactLossesBasis",
    "LeontiefBasis",
    "LinearBasis",
    "LipschitzGridBasis",
    "MonomialBasis",
    "OptimisedConvexBasis",
    "PowerBasis",
    "RampBasis",
    "ReLUBasis",
    "ReducedBasis",
    "TaylorExponentialBasis",
]
