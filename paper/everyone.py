"""``python -m paper.everyone [NAME] [--rounds T] [--seeds S]``: tasks of one outcome, none listed.

``streams``: greatest decision swap regret per round over 501 and more thresholds (act if p >=
theta; the outcome and theta differ by the loss), and over 100 random tasks of 2 to 40 actions, with
the squared error of the prediction and processor time, for a forecaster that protects every task,
listed thresholds (by coordinates, or by gains), and the running mean.

``rates``: the first two at T / 16, T / 4 and T, with slopes in T.

``newsvendors``: the greatest regret of newsvendors of every ratio, who order a tenth of the range
or a multiple; the forecast has a number for each knot of a ReLU basis.
"""

from argparse import ArgumentParser
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import product
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from paper.games import regrets
from regretless.forecaster import (
    DecisionSwap,
    GainEvents,
    ProtectedLosses,
    RunningMean,
    UnbiasedPrediction,
    UniversalDecisionSwap,
)
from regretless.forecaster.decision_swap import grouped
from regretless.forecaster.events.assignments import Assignments
from regretless.market.core.arrays import Array
from regretless.market.losses import Linear
from regretless.market.records import Mixture

Nature = Callable[[int, float], float]


def threshold(theta: float) -> Linear:
    """Return the task of acting at a price of theta, or not."""
    return Linear(np.array([[0.0], [-0.5]]), np.array([0.5, 0.5 + theta / 2]))


TWENTY = [threshold((k + 0.5) / 20) for k in range(20)]


def of(losses: Sequence[Linear]) -> list[tuple[Array, Array]]:
    """Return the coefficients of losses."""
    return [(loss.offset, loss.weights) for loss in losses]


FORECASTERS: dict[str, Callable[[int], Any]] = {
    "every task": UniversalDecisionSwap,
    "one threshold": lambda _: DecisionSwap([threshold(0.5)]),
    "20 thresholds": lambda _: DecisionSwap(TWENTY),
    "20, gains": lambda _: UnbiasedPrediction(Assignments(GainEvents(grouped(of(TWENTY), ())))),
    "running mean": lambda _: RunningMean(1),
}


def natures(rounds: int, rng: np.random.Generator) -> Iterator[tuple[str, Nature]]:
    """Yield what chooses outcomes: a function of the round and the mixture's mean."""
    yield "i.i.d., 0.3", lambda _, __: float(rng.random() < 0.3)
    yield "switching", lambda t, _: float(rng.random() < (0.8 if t // 200 % 2 else 0.2))
    yield "slow wave", lambda t, _: float(rng.random() < 0.5 + 0.4 * np.sin(6 * np.pi * t / rounds))
    yield "against the mean", lambda _, mean: float(mean < 0.5)
    yield "beta, switching", lambda t, _: rng.beta(*((8, 2) if t // 200 % 2 else (2, 8)))


def played(forecaster: Any, nature: Nature, rounds: int) -> tuple[Array, Array, Array]:
    """Return all predictions, with their probabilities and outcomes."""
    rows = []
    for t in range(rounds):
        mixture = forecaster.mixture()
        y = nature(t, float(mixture.mean[0]))
        forecaster.update(np.array([y]))
        parts = zip(mixture.points[:, 0], mixture.weights, strict=True)
        rows += [(point, mass, y) for point, mass in parts]
    points, masses, truths = np.array(rows).T
    return points, masses, truths


def of_thresholds(points: Array, masses: Array, truths: Array) -> float:
    """Return the greatest sum of swap regret over all thresholds."""
    order = np.argsort(points)
    points, masses, truths = points[order], masses[order], truths[order]
    mass = np.concatenate([[0.0], np.cumsum(masses)])
    worth = np.concatenate([[0.0], np.cumsum(masses * truths)])
    grid = np.concatenate([points, np.nextafter(points, 2), np.linspace(0, 1, 501)])
    first = np.searchsorted(points, grid, side="left")
    acting = (mass[-1] - mass[first]) * grid - (worth[-1] - worth[first])
    waiting = worth[first] - mass[first] * grid
    return float((np.maximum(acting, 0) + np.maximum(waiting, 0)).max())


def of_tasks(points: Array, masses: Array, truths: Array, *, tasks: int = 100) -> float:
    """Return the greatest sum of swap regret over random tasks of 2 to 40 actions."""
    rng, worst, log = np.random.default_rng(1), 0.0, (points[:, None], masses, truths[:, None])
    for actions in rng.integers(2, 41, tasks):
        at_zero, at_one = rng.random((2, actions))
        task = ProtectedLosses(at_zero[None], (at_one - at_zero)[None, :, None])
        worst = max(worst, float(regrets(task, *log)[0]))
    return worst


ORDERS = np.arange(11) / 10


def unmet(y: float) -> Array:
    """Return s(y): how much of each tenth of the range is not asked for (10,)."""
    return np.asarray(1 - np.clip(10 * y - np.arange(10), 0, 1))


def newsvendor(ratio: float) -> Linear:
    """Return the task of ordering a tenth of the range or a multiple, with a critical ratio."""
    below = np.arange(10) < np.arange(11)[:, None]
    return Linear(np.where(below, 1 - ratio, -ratio) / 10, ratio * (1 - ORDERS))


class Said(NamedTuple):
    """A draw (n,), and the mean of its distribution as a mixture."""

    statistics: Array
    mixture: Mixture


class Knots:
    """A forecaster that protects every task of each number by itself."""

    def __init__(self, rounds: int) -> None:
        self.parts = [UniversalDecisionSwap(rounds) for _ in range(10)]  # drawn by one coin

    def predict(self) -> Said:
        """Return a draw of every number (10,), with the mean of the mixtures."""
        each = [part.predict() for part in self.parts]
        means = np.array([one.mixture.mean for one in each]).reshape(1, 10)
        return Said(np.array([one.statistics[0] for one in each]), Mixture(means, np.ones(1)))

    def update(self, truth: Array) -> None:
        """Learn s(y)."""
        for part, own in zip(self.parts, truth, strict=True):
            part.update(own)


def newsvendors(rounds: int, seeds: int) -> pd.DataFrame:
    """Return the greatest swap and external regret over 99 ratios, as drawn."""
    nine = [newsvendor(k / 10) for k in range(1, 10)]
    makers: dict[str, Callable[[int], Any]] = {
        "every knot": Knots,
        "one ratio": lambda _: DecisionSwap([newsvendor(0.5)]),
        "9 ratios": lambda _: DecisionSwap(nine),
        "running mean": lambda _: RunningMean(10),
    }
    rows = []
    for seed, (name, make) in product(range(seeds), makers.items()):
        for stream, demand in demands(np.random.default_rng(seed)):
            forecaster, said, came = make(rounds), [], []
            for t in range(rounds):
                forecast = forecaster.predict()
                said.append(forecast.statistics)
                came.append(unmet(demand(t, forecast.mixture.mean)))
                forecaster.update(came[-1])
            worst = of_newsvendors(np.array(said), np.array(came)) / rounds
            rows.append((name, stream, *worst))
    table = pd.DataFrame(rows, columns=["protected", "demand", "swap", "external"])
    return table.groupby(["protected", "demand"], sort=False).mean()


def of_newsvendors(said: Array, came: Array) -> Array:
    """Return the greatest sums of swap and of external regret over all ratios."""
    worst = np.zeros(2)
    for ratio in np.arange(1, 100) / 100:
        task = newsvendor(float(ratio))
        chosen = np.argmin(task.offset + said @ task.weights.T, axis=1)
        costs = task.offset + came @ task.weights.T
        sums = np.zeros((11, 11))
        np.add.at(sums, chosen, costs)
        own = np.diag(sums)
        worst = np.maximum(worst, [(own - sums.min(1)).sum(), own.sum() - sums.sum(0).min()])
    return worst


def demands(rng: np.random.Generator) -> Iterator[tuple[str, Callable[..., float]]]:
    """Yield what chooses demand: a function of the round and the mean of the mixture (10,)."""
    yield "i.i.d., beta(2, 5)", lambda *_: rng.beta(2, 5)
    yield "beta, switching", lambda t, _: rng.beta(*((8, 2) if t // 200 % 2 else (2, 8)))
    yield "against the median", lambda _, mean: 0.9 if mean[4] > 0.5 else 0.1


def rates(rounds: int, seeds: int) -> pd.DataFrame:
    """Return the greatest regrets at three horizons, and their slopes."""
    horizons = [rounds // 16, rounds // 4, rounds]
    found = [measure(own, seeds, only=("every task",)).droplevel(0) for own in horizons]
    columns = ["thresholds", "random tasks"]
    table = pd.concat([own[columns] for own in found], keys=horizons, names=["rounds"])
    for column in columns:
        wide = table[column].unstack("rounds")  # noqa: PD010 - a column for each horizon
        slopes = np.polyfit(np.log(horizons), np.log(wide.to_numpy()).T, 1)[0]
        known = dict(zip(wide.index, slopes, strict=True))
        table[f"{column}, slope"] = [known[stream] for _, stream in table.index]
    return table


def measure(rounds: int, seeds: int, only: Collection[str] = tuple(FORECASTERS)) -> pd.DataFrame:
    """Return the means over seeds, by forecaster and nature."""
    rows = []
    for seed in range(seeds):
        for name, make in FORECASTERS.items():
            for stream, nature in natures(rounds, np.random.default_rng(seed)):
                if name not in only:
                    continue
                start = process_time()
                log = played(make(rounds), nature, rounds)
                spent = (process_time() - start) / rounds
                error = float(log[1] @ (log[0] - log[2]) ** 2)
                found = np.array([of_thresholds(*log), of_tasks(*log), error]) / rounds
                rows.append((name, stream, *found, 1e3 * spent))
    columns = ["protected", "outcomes", "thresholds", "random tasks", "squared error", "ms"]
    table = pd.DataFrame(rows, columns=columns)
    return table.groupby(columns[:2], sort=False).mean()


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    tables = {"streams": measure, "rates": rates, "newsvendors": newsvendors}
    parser.add_argument("name", choices=tables, nargs="?", default="streams")
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3)
    given = vars(parser.parse_args())
    print(tables[given.pop("name")](**given).round(4).to_string())  # noqa: T201
