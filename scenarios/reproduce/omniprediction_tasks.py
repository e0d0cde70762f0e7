"""What `reproduce omniprediction` learns, from which examples, and what others do instead.

The action is a forecast of a number in [0, 1], chosen from ten, the losses those that a forecast
can have: squared error, absolute error, and the pinball loss of the 80 % quantile, a newsvendor
who pays four times as much for a unit short as for a unit left over.

    cells      two features, each above or below 1/2; the outcome's law is another Beta law in each
               of the four cells, some of them skewed. Everything is known: the best policy and the
               best action of every cell are computed from the laws
    weather    precipitation of Seattle, 0 to 10 mm, by whether yesterday was wet and whether it is
               October to April; days are drawn without regard to their order

**Policies.** C has every rule that looks at one of the two features and forecasts one of the ten
numbers on either side: 180 rules beside the ten constants.

``one omnipredictor, trained C`` has other policies: a boosted model for each loss, trained on half
of the examples; the predictor is fitted to the other half.

**Instead.** ``mean, boosted`` and ``mean, linear`` predict the mean once, and everybody takes it
for the outcome (certainty equivalence). ``quantiles, linear`` is linear quantile regression, at the
level that each loss wants (the mean for squared error). ``one model per loss`` is a boosted model
trained for each loss separately. All see the same features and forecast from the same ten numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import beta

from regretless.forecaster.omniprediction import (
    ContinuousLoss,
    Pinball,
    SquaredError,
    Threshold,
    theta_net,
)
from regretless.forecaster.omniprediction.nets import snap
from regretless.forecaster.omniprediction.policies import enumerated
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.scenarios.spec.files import DATA

Array = NDArray[np.float64]

THETA = 0.05
FEATURES = 2
LEVELS = {"squared": 0.5, "absolute": 0.5, "newsvendor": 0.8}
LOSSES: dict[str, ContinuousLoss] = {
    "squared": SquaredError(),
    "absolute": Pinball(0.5),
    "newsvendor": Pinball(0.8),
}
LAWS = np.array([[2.0, 8.0], [8.0, 3.0], [1.0, 1.0], [0.6, 2.4]])  # of the cells, Beta(a, b)
TEST = 4000
WETTEST, WET_SEASON = 10.0, (10, 11, 12, 1, 2, 3, 4)
KNOWN = 4000  # points at which the laws are integrated


@dataclass(frozen=True, eq=False)
class Task:
    """Examples to learn from and examples to test on."""

    x: Array  # (m, 2), features in {0, 1}
    y: Array  # (m, 1)
    fresh_x: Array
    fresh_y: Array
    best: dict[str, float]  # by loss: the least expected one of any rule, NaN for an unknown law


def net() -> Array:
    """Return the ten actions (10, 1)."""
    return theta_net(THETA)


def policies() -> list[Threshold]:
    """Return C as actions' numbers."""
    return [rule for j in range(FEATURES) for rule in enumerated(j, 0.5, len(net()))]


class Forecasting:
    """A rule on action numbers as a rule on forecasts, as continuous actions want it."""

    def __init__(self, rule: Threshold) -> None:
        self.rule, self._net = rule, net()

    def predict(self, X: Array) -> Array:  # noqa: N803 - scikit-learn's name
        """Forecast for every row (m, 1)."""
        return self._net[self.rule.predict(X)]


def cells(examples: int, seed: int) -> Task:
    """Draw the synthetic task."""
    rng = stream(seed, "reproduce omniprediction", "cells")
    X = rng.integers(0, 2, (TEST + examples, FEATURES)).astype(np.float64)  # noqa: N806
    a, b = LAWS[(2 * X[:, 0] + X[:, 1]).astype(np.intp)].T
    Y = rng.beta(a, b)[:, None]  # noqa: N806
    return Task(X[TEST:], Y[TEST:], X[:TEST], Y[:TEST], known_best())


def known_best() -> dict[str, float]:
    """Integrate each loss over each cell's law; the mean over cells of the best action's."""
    levels = (np.arange(KNOWN) + 0.5) / KNOWN
    outcomes = [beta.ppf(levels, *law)[:, None] for law in LAWS]
    tables = {name: loss.on(net()) for name, loss in LOSSES.items()}
    return {
        name: float(np.mean([table.losses(y).mean(0).min() for y in outcomes]))
        for name, table in tables.items()
    }


def weather(examples: int, seed: int) -> Task:
    """Draw days of the bundled weather without replacement; the other days are the test."""
    frame = pd.read_csv(DATA / "seattle-weather.csv")
    season = frame["month"].isin(list(WET_SEASON))
    X = np.column_stack([frame["wet_yesterday"], season]).astype(np.float64)  # noqa: N806
    Y = np.clip(frame["precipitation"].to_numpy() / WETTEST, 0, 1)[:, None]  # noqa: N806
    order = stream(seed, "reproduce omniprediction", "weather").permutation(len(frame))
    train, test = order[:examples], order[examples:]
    return Task(X[train], Y[train], X[test], Y[test], dict.fromkeys(LOSSES, np.nan))


TASKS: dict[str, Callable[[int, int], Task]] = {"cells": cells, "weather": weather}


def boosted_for(loss: str) -> Any:
    """Return a boosted model for a loss, the mean's for squared error; not fitted yet."""
    try:
        from sklearn.ensemble import GradientBoostingRegressor  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise UserError("this table needs scikit-learn; install regretless[learn]") from error
    size: dict[str, Any] = {"n_estimators": 100, "max_depth": 2, "random_state": 0}
    if loss == "squared":
        return GradientBoostingRegressor(**size)
    return GradientBoostingRegressor(loss="quantile", alpha=LEVELS[loss], **size)


class Clipped:
    """A regression model as a policy: its forecasts, clipped into [0, 1]."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, X: Array) -> Array:  # noqa: N803 - scikit-learn's name
        """Forecast for every row (m, 1)."""
        return np.asarray(np.clip(self.model.predict(X), 0, 1)[:, None])


def trained(task: Task) -> tuple[list[Clipped], Task]:
    """Train a boosted policy for each loss on half of the examples; leave the other half."""
    half = len(task.x) // 2
    rules = [Clipped(boosted_for(loss).fit(task.x[:half], task.y[:half, 0])) for loss in LOSSES]
    return rules, replace(task, x=task.x[half:], y=task.y[half:])


def baselines(task: Task) -> dict[tuple[str, str], Array]:
    """Forecast the test rows in every other way: points (m, 1) of the net by method and loss."""
    from sklearn.linear_model import LinearRegression, QuantileRegressor  # noqa: PLC0415

    target = task.y[:, 0]

    def forecast(model: Any) -> Array:
        points = np.clip(model.fit(task.x, target).predict(task.fresh_x), 0, 1)
        return net()[snap(points[:, None], net())]

    boosted, linear = forecast(boosted_for("squared")), forecast(LinearRegression())
    found = {}
    for name, level in LEVELS.items():
        mean = name == "squared"
        quantiles = QuantileRegressor(quantile=level, alpha=0.0, solver="highs")
        found["mean, boosted", name], found["mean, linear", name] = boosted, linear
        found["quantiles, linear", name] = linear if mean else forecast(quantiles)
        found["one model per loss", name] = boosted if mean else forecast(boosted_for(name))
    return found
