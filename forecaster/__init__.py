"""The central forecaster: predictions without conditional bias, and the baselines beside it."""

from forecaster import bases, bounds
from forecaster.anchoring import AnchoredPrediction
from forecaster.baselines import Constant, ExponentialSmoothing, LastValue, RunningMean
from forecaster.decision_swap import DecisionSwap, NonLinearDecisionSwap, SmoothDecisionSwap
from forecaster.external import adapted
from forecaster.loss_events import LossEvents
from forecaster.omniprediction import OfflineOmnipredictor
from forecaster.protected import LossGroup
from forecaster.recipe import CalibratedMultiaccurate
from forecaster.unbiased import UnbiasedPrediction

__all__ = [
    "AnchoredPrediction",
    "CalibratedMultiaccurate",
    "Constant",
    "DecisionSwap",
    "ExponentialSmoothing",
    "LastValue",
    "LossEvents",
    "LossGroup",
    "NonLinearDecisionSwap",
    "OfflineOmnipredictor",
    "RunningMean",
    "SmoothDecisionSwap",
    "UnbiasedPrediction",
    "adapted",
    "bases",
    "bounds",
]
