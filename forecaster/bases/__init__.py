"""Bases in which losses are linear, one file each."""

from regretless.forecaster.bases.bernstein import BernsteinBasis
from regretless.forecaster.bases.convex_rank import ConvexRankBasis
from regretless.forecaster.bases.direct_sum import DirectSumBasis
from regretless.forecaster.bases.exact import ExactLossesBasis
from regretless.forecaster.bases.exponential import (
    ChebyshevExponentialBasis,
    TaylorExponentialBasis,
)
from regretless.forecaster.bases.grid import LipschitzGridBasis
from regretless.forecaster.bases.leontief import LeontiefBasis
from regretless.forecaster.bases.linear import LinearBasis
from regretless.forecaster.bases.monomial import MonomialBasis
from regretless.forecaster.bases.optimised_convex import OptimisedConvexBasis
from regretless.forecaster.bases.power import PowerBasis
from regretless.forecaster.bases.ramp import RampBasis
from regretless.forecaster.bases.reduced import ReducedBasis
from regretless.forecaster.bases.relu import ReLUBasis

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
