"""The online omnipredictor as an estimator of scikit-learn (the extra ``learn``)."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from regretless.forecaster.online.inputs import losses_of_targets
from regretless.forecaster.online.omnipredictor import OnlineOmnipredictor
from regretless.forecaster.online.validation import checked_interval
from regretless.market.core.arrays import Array
from regretless.market.core.validation import check_int, refused_in_one_line
from regretless.market.losses import Loss


class OmnipredictorEstimator(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # no types
    """Forecasts a number row by row, its mean, while serving losses.

    Rows are rounds, in the order of time: ``fit`` and ``partial_fit`` predict and learn one after
    another, ``predict`` forecasts the round after the last one that was learned, for each row.

    Parameters
    ----------
    scale : (float, float), optional
        Ends of the outcome; by default those of the first rows, a tenth wider on either side.
    losses : dict of str to Loss, optional
        What is protected; by default the squared distance to eleven points of the scale.
    models : "panel" or dict
        As in ``OnlineOmnipredictor``.
    random_state : int
        Of the draws.

    Attributes
    ----------
    omnipredictor_ : OnlineOmnipredictor
    n_features_in_ : int
    """

    def __init__(
        self,
        scale: tuple[float, float] | None = None,
        *,
        losses: Mapping[str, Loss] | None = None,
        models: Any = "panel",
        random_state: int = 0,
    ) -> None:
        self.scale = scale
        self.losses = losses
        self.models = models
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Forget what was learned, and learn a table (m, f) of contexts with outcomes (m,)."""
        self.__dict__.pop("omnipredictor_", None)
        return self.partial_fit(X, y)

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn more rows."""
        is_first = not hasattr(self, "omnipredictor_")
        with refused_in_one_line():  # errors of scikit-learn as a UserError of one line
            X, y = validate_data(self, X, y, y_numeric=True, reset=is_first)
        if is_first:
            self.omnipredictor_ = self._new(y)
        for row, outcome in zip(X, y, strict=True):
            self.omnipredictor_.learn_one(row, float(outcome))
        return self

    def _new(self, y: Array) -> OnlineOmnipredictor:
        """Return an omnipredictor that has learned nothing, for outcomes such as the first ones."""
        interval: Any = self.scale
        if interval is None:
            margin = float(np.ptp(y)) / 10 or max(abs(float(y[0])), 1.0)
            interval = float(y.min()) - margin, float(y.max()) + margin
        low, high = checked_interval("scale", interval)
        seed = 0 if self.random_state is None else self.random_state
        return OnlineOmnipredictor(
            losses_of_targets(low, high) if self.losses is None else self.losses,
            scale={"y": (low, high)},
            models=self.models,
            seed=check_int("random_state", seed, least=0),
        )

    def predict(self, X: Any) -> Array:
        """Return the mean outcome that is forecast for each row (m,)."""
        check_is_fitted(self)
        with refused_in_one_line():
            X = validate_data(self, X, reset=False)
        return np.array([float(self.omnipredictor_.predict_one(row).mean) for row in X])
