"""The online omnipredictor as a regressor of River (the extra ``river``)."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from river import base

from regretless.forecaster.online.inputs import losses_of_targets
from regretless.forecaster.online.omnipredictor import OnlineOmnipredictor
from regretless.forecaster.online.validation import checked_interval
from regretless.market.losses import Loss


class OmnipredictorRegressor(base.Regressor):
    """Forecasts a number between ``low`` and ``high``, its mean, while serving losses.

    ``losses`` (by name) are what is protected, by default the squared distance to eleven points of
    the scale; ``models`` are as in ``OnlineOmnipredictor``, ``seed`` is that of the draws.
    """

    def __init__(
        self,
        low: float = 0.0,
        high: float = 1.0,
        *,
        losses: Mapping[str, Loss] | None = None,
        models: Any = "panel",
        seed: int = 0,
    ) -> None:
        self.low = low
        self.high = high
        self.losses = losses
        self.models = models
        self.seed = seed
        scale = checked_interval("low, high", (low, high))
        protected_losses = losses_of_targets(*scale) if losses is None else losses
        self.omnipredictor = OnlineOmnipredictor(
            protected_losses, scale={"y": scale}, models=models, seed=seed
        )

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"low": 0.0, "high": 100.0}

    def learn_one(self, x: dict[Hashable, Any], y: float) -> None:
        """Learn the outcome of a context."""
        self.omnipredictor.learn_one(x, y)

    def predict_one(self, x: dict[Hashable, Any]) -> float:
        """Return the mean outcome that is forecast."""
        return float(self.omnipredictor.predict_one(x).mean)
