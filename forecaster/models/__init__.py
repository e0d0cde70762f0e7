"""Models: forecasts without a guarantee, alone, as bases, or compared with (``base`` says more)."""

from regretless.forecaster.models.aggregate import PANEL, Aggregate
from regretless.forecaster.models.auto_series import AutoARIMA, AutoETS
from regretless.forecaster.models.base import Model
from regretless.forecaster.models.external import adapted
from regretless.forecaster.models.least_squares import LeastSquares
from regretless.forecaster.models.outcomes import ColumnForecast
from regretless.forecaster.models.past_outcomes import PastOutcomes
from regretless.forecaster.models.seasonal_regression import SeasonalRegression
from regretless.forecaster.models.simple import (
    Constant,
    ExponentialSmoothing,
    LastValue,
    RunningMean,
    SeasonalNaive,
)
from regretless.forecaster.models.with_errors import WithErrors

__all__ = [
    "PANEL",
    "Aggregate",
    "AutoARIMA",
    "AutoETS",
    "ColumnForecast",
    "Constant",
    "ExponentialSmoothing",
    "LastValue",
    "LeastSquares",
    "Model",
    "PastOutcomes",
    "RunningMean",
    "SeasonalNaive",
    "SeasonalRegression",
    "WithErrors",
    "adapted",
]
