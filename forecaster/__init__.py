"""The central forecaster: predictions without conditional bias, and the baselines beside it."""

from regretless.forecaster import bases
from regretless.forecaster.anchored import AnchoredPrediction
from regretless.forecaster.baselines import Constant, ExponentialSmoothing, LastValue, RunningMean
from regretless.forecaster.calibrated import CalibratedMultiaccurate
from regretless.forecaster.decision_swap import (
    DecisionSwap,
    NonLinearDecisionSwap,
    SmoothDecisionSwap,
)
from regretless.forecaster.events import bounds
from regretless.forecaster.events.protected import LossGroup
from regretless.forecaster.events.scalar import LossEvents
from regretless.forecaster.external_models import adapted
from regretless.forecaster.omniprediction import OfflineOmnipredictor
from regretless.forecaster.unbiased import UnbiasedPrediction

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
