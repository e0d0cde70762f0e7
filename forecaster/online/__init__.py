"""One forecast for many losses, round by round on one's own data, without a simulation."""

from regretless.forecaster.online.censoring import CensoringWarning
from regretless.forecaster.online.many import ManyForecasts, ManyOmnipredictors
from regretless.forecaster.online.omnipredictor import OnlineOmnipredictor
from regretless.forecaster.online.outcome_distribution import OnlineForecast
from regretless.forecaster.online.validation import FeatureWarning

__all__ = [
    "CensoringWarning",
    "FeatureWarning",
    "ManyForecasts",
    "ManyOmnipredictors",
    "OnlineForecast",
    "OnlineOmnipredictor",
]
