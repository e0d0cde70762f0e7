"""One predictor learned from a table, for many losses at once."""

from regretless.market.core.errors import UserError

try:
    import sklearn as _  # noqa: F401 - an optional extra, of which the rest is made
except ImportError as _error:
    _told = "learning from tables needs scikit-learn; install regretless[learn]"
    raise UserError(_told) from _error

from regretless.forecaster.offline.certificate import BatchBound, Certificate
from regretless.forecaster.offline.continuous_actions import (
    ActionLoss,
    ContinuousLoss,
    Pinball,
    SquaredError,
    theta_net,
)
from regretless.forecaster.offline.estimator import OfflineOmnipredictor
from regretless.forecaster.offline.tables import Threshold

__all__ = [
    "ActionLoss",
    "BatchBound",
    "Certificate",
    "ContinuousLoss",
    "OfflineOmnipredictor",
    "Pinball",
    "SquaredError",
    "Threshold",
    "theta_net",
]
