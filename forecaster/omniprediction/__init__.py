"""Offline omniprediction: one predictor learned from a table, for many losses at once."""

from regretless.forecaster.omniprediction.batch_bounds import BatchBound
from regretless.forecaster.omniprediction.estimator import OfflineOmnipredictor
from regretless.forecaster.omniprediction.nets import (
    ActionLoss,
    ContinuousLoss,
    Pinball,
    SquaredError,
    theta_net,
)
from regretless.forecaster.omniprediction.policies import LinearScore, Threshold, Tree, best_tree

__all__ = [
    "ActionLoss",
    "BatchBound",
    "ContinuousLoss",
    "LinearScore",
    "OfflineOmnipredictor",
    "Pinball",
    "SquaredError",
    "Threshold",
    "Tree",
    "best_tree",
    "theta_net",
]
