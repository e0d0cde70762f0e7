"""The central forecaster: predictions without conditional bias, and the models beside it."""

from regretless.forecaster import bases
from regretless.forecaster.anchored import AnchoredPrediction
from regretless.forecaster.calibrated import CalibratedMultiaccurate
from regretless.forecaster.decision_swap import (
    DecisionSwap,
    NonLinearDecisionSwap,
    SmoothDecisionSwap,
)
from regretless.forecaster.events import bounds
from regretless.forecaster.events.protected import LossGroup
from regretless.forecaster.events.scalar import LossEvents
from regretless.forecaster.models import (
    Aggregate,
    Constant,
    ExponentialSmoothing,
    LastValue,
    LeastSquares,
    RunningMean,
    SeasonalNaive,
    adapted,
)
from regretless.forecaster.omniprediction import OfflineOmnipredictor
from regretless.forecaster.unbiased import UnbiasedPrediction

__all__ = [
    "Aggregate",
    "AnchoredPrediction",
    "CalibratedMultiaccurate",
    "Constant",
    "DecisionSwap",
    "ExponentialSmoothing",
    "LastValue",
    "LeastSquares",
    "LossEvents",
    "LossGroup",
    "NonLinearDecisionSwap",
    "OfflineOmnipredictor",
    "RunningMean",
    "SeasonalNaive",
    "SmoothDecisionSwap",
    "UnbiasedPrediction",
    "adapted",
    "bases",
    "bounds",
]
