"""The simplest models, by the path that scripts import them from; they live in ``models``."""

from regretless.forecaster.models.baselines import (
    Constant,
    ExponentialSmoothing,
    LastValue,
    RunningMean,
)

__all__ = ["Constant", "ExponentialSmoothing", "LastValue", "RunningMean"]
