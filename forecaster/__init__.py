"""The central forecaster, its bases and bounds, and simple models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from regretless.forecaster import bases
from regretless.forecaster import guarantees as bounds
from regretless.forecaster.calibrated import CalibratedMultiaccurate
from regretless.forecaster.events.decision_events import VectorEvents
from regretless.forecaster.events.loss_events import GainEvents
from regretless.forecaster.events.loss_table import ProtectedLosses
from regretless.forecaster.models import (
    Aggregate,
    Constant,
    ExponentialSmoothing,
    LastValue,
    LeastSquares,
    PastOutcomes,
    RunningMean,
    SeasonalNaive,
    WithErrors,
    adapted,
)
from regretless.forecaster.reference import Reference
from regretless.forecaster.unbiased import (
    DecisionSwap,
    NonLinearDecisionSwap,
    SmoothDecisionSwap,
    UnbiasedPrediction,
)
from regretless.forecaster.universal import UniversalDecisionSwap

if TYPE_CHECKING:
    from regretless.forecaster.offline import OfflineOmnipredictor

__all__ = [
    "Aggregate",
    "CalibratedMultiaccurate",
    "Constant",
    "DecisionSwap",
    "ExponentialSmoothing",
    "GainEvents",
    "LastValue",
    "LeastSquares",
    "NonLinearDecisionSwap",
    "OfflineOmnipredictor",
    "PastOutcomes",
    "ProtectedLosses",
    "Reference",
    "RunningMean",
    "SeasonalNaive",
    "SmoothDecisionSwap",
    "UnbiasedPrediction",
    "UniversalDecisionSwap",
    "VectorEvents",
    "WithErrors",
    "adapted",
    "bases",
    "bounds",
]


def __getattr__(name: str) -> Any:
    """Import what learns offline when it is first asked for: it needs a fifth of all imports."""
    if name != "OfflineOmnipredictor":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from regretless.forecaster import offline  # noqa: PLC0415

    return offline.OfflineOmnipredictor
