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
LISTED: dict[str, ContinuousLoss] = {
    "squared": SquaredError(),
    "absolute": Pinball(0.5),
    "pinball 20 %": Pinball(0.2),
    "pinball 80 %": Pinball(0.8),
}
LATER: dict[str, ContinuousLoss] = {"pinball 35 %": Pinball(0.35), "pinball 95 %": Pinball(0.95)}
LEVELS = {"absolute": 0.5, "pinball 20 %": 0.2, "pinball 80 %": 0.8}  # of the listed quantiles
NINE_LEVELS = np.arange(1, 10) / 10
MAX_TEST = 1500  # examples
SIZES = {  # examples to learn from
    "diabetes": (300,),
    "cancer": (300,),
    "wine": (120,),
    "bikes": (300, 1000, 5000),
    "rain": (300, 1000),
    "wind": (300, 1000),
    "friedman": (20_000,),
}
COLUMNS = {  # of bundled tables: the file, the outcome and the features
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
    datasets = sklearn_part("datasets")
    if name == "diabetes":
        diabetes = datasets.load_diabetes()
        return diabetes.data, diabetes.target
    if name == "wine":
        wine = datasets.load_wine().data
        return wine[:, :-1], wine[:, -1]
    if name == "friedman":
        features, mean = datasets.make_friedman1(SIZES[name][0] + MAX_TEST, random_state=0)
        noise = stream(0, "reproduce omniprediction", name).standard_normal(len(mean))
        return features, mean + 4 * features[:, 5] * noise
    cancer = datasets.load_breast_cancer().data
    return cancer[:, [1, 4, 5, 6, 7, 8, 9]], cancer[:, 0]


def task(name: str, examples: int, seed: int) -> Task:
    """Split one of the seven tables at random; ``examples`` are to be learned from."""
    features, outcome = table(name)
    order = stream(seed, "reproduce omniprediction", name).permutation(len(outcome))
    outcome = (outcome - outcome.min()) / np.ptp(outcome)
    train = order[:examples]
    test = order[examples : examples + MAX_TEST]
    return Task(features[train], outcome[train], features[test], outcome[test])


def net() -> Array:
    """Return the ten actions (10, 1)."""
    return theta_net(THETA)


def losses(loss: ContinuousLoss, outcomes: Array) -> Array:
    """Return the loss of every action: (m, 10)."""
    return np.asarray(loss.on(net()).losses(outcomes[:, None]))


Actions = NDArray[np.intp]
Chooses = Callable[[str, ContinuousLoss], "Actions | None"]  # from a loss's name and the loss


def rivals(task: Task) -> dict[str, Chooses]:
    """Learn everything else: by method, what it does (m,) on the test rows for a loss."""
    weights = forest_weights(task)
    mean = boosted_mean(task)
    nine_quantiles = [boosted_quantile(task, level) for level in NINE_LEVELS]
    forecasts = {"squared": mean}
    for name, level in LEVELS.items():
        forecasts[name] = boosted_quantile(task, level)

    def constant(_: str, loss: ContinuousLoss) -> Actions:
        best_action = losses(loss, task.y).mean(0).argmin()
        return np.full(len(task.fresh_y), best_action)

    def by_mean(_: str, loss: ContinuousLoss) -> Actions:
        return np.asarray(losses(loss, mean).argmin(1))

    def by_quantiles(_: str, loss: ContinuousLoss) -> Actions:
        losses_at_quantiles = [losses(loss, quantile) for quantile in nine_quantiles]
        return np.asarray(np.mean(losses_at_quantiles, 0).argmin(1))

    def by_forest(_: str, loss: ContinuousLoss) -> Actions:
        return np.asarray((weights @ losses(loss, task.y)).argmin(1))

    def by_own_model(name: str, _: ContinuousLoss) -> Actions | None:
        if name not in forecasts:
            return None
        distances = np.abs(forecasts[name][:, np.newaxis] - net().T)
        return np.asarray(distances.argmin(1))

    return {
        "constant": constant,
        "mean, boosted": by_mean,
        "quantiles, boosted": by_quantiles,
        "forest weights": by_forest,
        "a model per loss": by_own_model,
    }


def boosted_mean(task: Task) -> Array:
    """Return the means that boosted trees forecast on the test rows (m,)."""
    return _boosted(task)


def boosted_quantile(task: Task, level: float) -> Array:
    """Return the quantiles that boosted trees forecast on the test rows (m,)."""
    return _boosted(task, loss="quantile", alpha=level)


def _boosted(task: Task, **loss: Any) -> Array:
    regressor = sklearn_part("ensemble").GradientBoostingRegressor
    model = regressor(n_estimators=100, max_depth=2, random_state=0, **loss)
    model.fit(task.x, task.y)
    return np.asarray(np.clip(model.predict(task.fresh_x), 0, 1))


def forest_weights(task: Task) -> Array:
    """Return the weights (m test, m) of a random forest's leaves (Meinshausen 2006)."""
    forest = sklearn_part("ensemble").RandomForestRegressor(
        200, min_samples_leaf=5, max_features=0.5, random_state=0
    )
    forest.fit(task.x, task.y)
    leaf = forest.apply(task.x)  # of each example (m, trees)
    leaf_of_test = forest.apply(task.fresh_x)
    weights = np.zeros((len(leaf_of_test), len(leaf)))
    for leaf_of_tree, leaf_of_test_of_tree in zip(leaf.T, leaf_of_test.T, strict=True):
        is_shared = leaf_of_test_of_tree[:, np.newaxis] == leaf_of_tree
        weights += is_shared / is_shared.sum(1, keepdims=True)
    return np.asarray(weights / leaf.shape[1])
