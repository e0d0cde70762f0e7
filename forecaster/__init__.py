"""The central forecaster: predictions without conditional bias, and the baselines beside it."""

from forecaster import bases, bounds
from forecaster.baselines import Constant, ExponentialSmoothing, LastValue, RunningMean
from forecaster.decision_swap import DecisionSwap, NonLinearDecisionSwap, SmoothDecisionSwap
from forecaster.recipe import CalibratedMultiaccurate
from forecaster.unbiased import UnbiasedPrediction

__all__ = [
    "CalibratedMultiaccurate",
    "Constant",
    "DecisionSwap",
    "ExponentialSmoothing",
    "LastValue",
    "NonLinearDecisionSwap",
    "RunningMean",
    "SmoothDecisionSwap",
    "UnbiasedPrediction",
    "bases",
    "bounds",
]
