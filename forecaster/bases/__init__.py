"""Bases in which losses are linear, one file each."""

from forecaster.bases.direct_sum import DirectSumBasis
from forecaster.bases.linear import LinearBasis
from forecaster.bases.power import PowerBasis

__all__ = ["DirectSumBasis", "LinearBasis", "PowerBasis"]
