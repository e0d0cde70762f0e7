"""One forecast for many losses, round by round on one's own data, without a simulation."""

from regretless.forecaster.online.forecast import OnlineForecast
from regretless.forecaster.online.omnipredictor import OnlineOmnipredictor

__all__ = ["OnlineForecast", "OnlineOmnipredictor"]
