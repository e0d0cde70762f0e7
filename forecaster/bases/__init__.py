"""Bases in which losses are linear, one file each."""

from forecaster.bases.bernstein import BernsteinBasis
from forecaster.bases.convex_rank import ConvexRankBasis
from forecaster.bases.direct_sum import DirectSumBasis
from forecaster.bases.exact import ExactLossesBasis
from forecaster.bases.exponential import ChebyshevExponentialBasis, TaylorExponentialBasis
from forecaster.bases.grid import LipschitzGridBasis
from forecaster.bases.leontief import LeontiefBasis
from forecaster.bases.linear import LinearBasis
from forecaster.bases.monomial import MonomialBasis
from forecaster.bases.optimised_convex import OptimisedConvexBasis
from forecaster.bases.power import PowerBasis
from forecaster.bases.ramp import RampBasis
from forecaster.bases.reduced import ReducedBasis
from forecaster.bases.relu import ReLUBasis

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
