"""``python -m paper.everyone [--rounds T] [--seeds S]``: tasks of one outcome that nobody listed.

Greatest decision swap regret per round over 501 and more thresholds (act if p >= theta; the outcome
and theta differ by the loss), and over 100 random tasks of six actions, with the squared error of
the prediction, for a forecaster that protects every task, one that protects a threshold of one
half, one that protects twenty thresholds, and the running mean. Means over seeds.
"""

from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from regretless.forecaster import DecisionSwap, RunningMean, UniversalDecisionSwap
from regretless.market.core.arrays import Array
from regretless.market.losses import Linear

Nature = Callable[[int, float], float]


def threshold(theta: float) -> Linear:
    """Return the task of acting at a price of theta, or not."""
    return Linear(np.array([[0.0], [-0.5]]), np.array([0.5, 0.5 + theta / 2]))


FORECASTERS: dict[str, Callable[[int], Any]] = {
    "every task": UniversalDecisionSwap,
    "one threshold": lambda _: DecisionSwap([threshold(0.5)]),
    "20 thresholds": lambda _: DecisionSwap([threshold((k + 0.5) / 20) for k in range(20)]),
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
    """Return the greatest sum of swap regret over random tasks of six actions."""
    rng, worst = np.random.default_rng(1), 0.0
    for _ in range(tasks):
        at_zero, at_one = rng.random((2, 6))
        slope = at_one - at_zero
        chosen = np.argmin(at_zero + slope * points[:, None], axis=1)
        costs = masses[:, None] * (at_zero + slope * truths[:, None])
        sums = np.zeros((6, 6))
        np.add.at(sums, chosen, costs)
        worst = max(worst, float((np.diag(sums) - sums.min(1)).sum()))
    return worst


def measure(rounds: int, seeds: int) -> pd.DataFrame:
    """Return the means over seeds, by forecaster and nature."""
    rows = []
    for seed in range(seeds):
        for name, make in FORECASTERS.items():
            for stream, nature in natures(rounds, np.random.default_rng(seed)):
                start = perf_counter()
                log = played(make(rounds), nature, rounds)
                spent = (perf_counter() - start) / rounds
                error = float(log[1] @ (log[0] - log[2]) ** 2)
                found = np.array([of_thresholds(*log), of_tasks(*log), error]) / rounds
                rows.append((name, stream, *found, 1e3 * spent))
    columns = ["protected", "outcomes", "thresholds", "random tasks", "squared error", "ms"]
    table = pd.DataFrame(rows, columns=columns)
    return table.groupby(columns[:2], sort=False).mean()


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3)
    print(measure(**vars(parser.parse_args())).round(4).to_string())  # noqa: T201
