"""What the table `omniprediction` learns from, and what one would do instead of one omnipredictor.

Tables that scikit-learn ships or this project bundles, one outcome each, scaled to [0, 1]:
`diabetes` (progression), `cancer` (mean radius, from textures and shapes), `wine` (proline),
`bikes` (hired per hour), `rain` and `wind` of Seattle; and a made one, large: `friedman`, the
function of Friedman (1991) of five of ten features, with noise of a standard deviation that the
sixth says. The action is a forecast, chosen from ten.

    listed     squared error, absolute error, pinball losses of the 20 % and the 80 % quantile
    later      pinball losses of the 35 % and the 95 % quantile, unknown when models are learned
    shifted    the listed losses on test rows in the highest quarter of the first feature

**Instead.** `constant` is the action that lost least (for later losses, too, as the outcomes are
kept); `mean, boosted` is taken for the outcome; `quantiles, boosted` are nine quantiles, taken as
equally likely; `forest weights` are those of a random forest (200 trees, 5 rows in a leaf), with
the exact expected loss; `a model per loss` is boosted for each listed loss, and has nothing to say
on later ones. All but the last are one model for all losses.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from regretless.forecaster.offline import ContinuousLoss, Pinball, SquaredError, theta_net
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.scenarios.config.files import DATA

THETA = 0.05
LEVELS = {"squared": 0.5, "absolute": 0.5, "pinball 20 %": 0.2, "pinball 80 %": 0.8}
LISTED: dict[str, ContinuousLoss] = {"squared": SquaredError()} | {
    name: Pinball(level) for name, level in LEVELS.items() if name != "squared"
}
LATER: dict[str, ContinuousLoss] = {"pinball 35 %": Pinball(0.35), "pinball 95 %": Pinball(0.95)}
NINE = np.arange(1, 10) / 10
MOST_TEST = 1500
SIZES = {"diabetes": (300,), "cancer": (300,), "wine": (120,)} | {
    "bikes": (300, 1000, 5000),
    "rain": (300, 1000),
    "wind": (300, 1000),
    "friedman": (20_000,),
}
COLUMNS = {
    "bikes": ("bike-demand.csv", "bikers", ["day", "hour", "workingday", "warmth"]),
    "rain": (
        "seattle-weather.csv",
        "precipitation",
        ["temp_max", "temp_min", "wind", "month", "wet_yesterday"],
    ),
    "wind": ("seattle-weather.csv", "wind", ["temp_max", "temp_min", "month", "wet_yesterday"]),
}


@dataclass(frozen=True, eq=False)
class Task:
    """Examples to learn from and examples to test on: features (m, f), outcomes (m,) in [0, 1]."""

    x: Array
    y: Array
    fresh_x: Array
    fresh_y: Array

    @property
    def shifted(self) -> NDArray[np.bool_]:
        """Test rows in the highest quarter of the first feature."""
        first = self.fresh_x[:, 0]
        return np.asarray(first >= np.quantile(first, 0.75))


def sklearn_part(name: str) -> Any:
    """Import a part of scikit-learn, or say what to install."""
    try:
        from importlib import import_module  # noqa: PLC0415 - beside the import it is for

        return import_module(f"sklearn.{name}")
    except ImportError as error:
        raise UserError("this table needs scikit-learn; install regretless[learn]") from error


def table(name: str) -> tuple[Array, Array]:
    """Read a table: features and the outcome in its own units."""
    if name in COLUMNS:
        file, outcome, features = COLUMNS[name]
        frame = pd.read_csv(DATA / file)
        return frame[features].to_numpy(np.float64), frame[outcome].to_numpy(np.float64)
    data = sklearn_part("datasets")
    if name == "diabetes":
        found = data.load_diabetes()
        return found.data, found.target
    if name == "wine":
        whole = data.load_wine().data
        return whole[:, :-1], whole[:, -1]
    if name == "friedman":
        features, mean = data.make_friedman1(SIZES[name][0] + MOST_TEST, random_state=0)
        noise = stream(0, "reproduce omniprediction", name).standard_normal(len(mean))
        return features, mean + 4 * features[:, 5] * noise
    whole = data.load_breast_cancer().data
    return whole[:, [1, 4, 5, 6, 7, 8, 9]], whole[:, 0]


def task(name: str, examples: int, seed: int) -> Task:
    """Split one of the seven tables at random."""
    features, outcome = table(name)
    order = stream(seed, "reproduce omniprediction", name).permutation(len(outcome))
    outcome = (outcome - outcome.min()) / np.ptp(outcome)
    train, test = order[:examples], order[examples : examples + MOST_TEST]
    return Task(features[train], outcome[train], features[test], outcome[test])


def net() -> Array:
    """Return the ten actions (10, 1)."""
    return theta_net(THETA)


def losses(loss: ContinuousLoss, outcomes: Array) -> Array:
    """Return the loss of every action: (m, 10)."""
    return np.asarray(loss.on(net()).losses(outcomes[:, None]))


Chooses = Callable[[str, ContinuousLoss], "NDArray[np.intp] | None"]


def rivals(given: Task) -> dict[str, Chooses]:
    """Learn everything else: by method, what it does (m,) on the test rows for a loss."""
    boosting = sklearn_part("ensemble").GradientBoostingRegressor
    size: dict[str, Any] = {"n_estimators": 100, "max_depth": 2, "random_state": 0}

    def forecast(level: float | None) -> Array:
        own = {} if level is None else {"loss": "quantile", "alpha": level}
        fitted = boosting(**size, **own).fit(given.x, given.y)
        return np.asarray(np.clip(fitted.predict(given.fresh_x), 0, 1))

    def nearest(points: Array) -> NDArray[np.intp]:
        return np.asarray(np.abs(points[:, None] - net().T).argmin(1))

    mean, nine = forecast(None), np.stack([forecast(level) for level in NINE])
    own = {n: mean if n == "squared" else forecast(level) for n, level in LEVELS.items()}
    weights = forest_weights(given)
    spread = [losses_of(point) for point in nine]
    return {
        "constant": lambda _, loss: np.full(
            len(given.fresh_y), losses(loss, given.y).mean(0).argmin()
        ),
        "mean, boosted": lambda _, loss: losses(loss, mean).argmin(1),
        "quantiles, boosted": lambda _, loss: np.mean([s(loss) for s in spread], 0).argmin(1),
        "forest weights": lambda _, loss: (weights @ losses(loss, given.y)).argmin(1),
        "a model per loss": lambda name, _: nearest(own[name]) if name in own else None,
    }


def losses_of(points: Array) -> Callable[[ContinuousLoss], Array]:
    """Return what a loss is if the outcomes are these points."""
    return lambda loss: losses(loss, points)


def forest_weights(given: Task) -> Array:
    """Return the weights (m test, m) of a random forest's leaves (Meinshausen 2006)."""
    forest = sklearn_part("ensemble").RandomForestRegressor(
        200, min_samples_leaf=5, max_features=0.5, random_state=0
    )
    forest.fit(given.x, given.y)
    known, asked = forest.apply(given.x), forest.apply(given.fresh_x)
    weights = np.zeros((len(asked), len(known)))
    for ours, theirs in zip(known.T, asked.T, strict=True):
        together = theirs[:, None] == ours
        weights += together / together.sum(1, keepdims=True)
    return np.asarray(weights / known.shape[1])
