"""Tasks of one outcome, none of them listed: ``everyone`` and what stands beside it.

Measured are the greatest decision swap regret per round and the mean loss over all thresholds (act
if p >= theta; the outcome and theta differ by the loss), and over 100 random tasks of 2 to 40
actions; everything in expectation over the mixtures.

``everyone``: forecasters that protect every task (by dyadic cells, or by the points of a grid),
listed thresholds (by coordinates, or by gains), and the running mean, with processor time.

``everyone-rates``: the first at T / 16, T / 4 and T, with slopes in T.

``everyone-series``: the columns of the bundled series, one at a time: the aggregate of the panel
alone, every task protected with it as a reference, and without.

``newsvendors``: the greatest regret of newsvendors of every ratio, who order a tenth of the range
or a multiple; the forecast has a number for each knot of a ReLU basis.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import isqrt
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from paper.games import regrets, sums_of
from paper.harness import Row, Table
from regretless.forecaster import (
    DecisionSwap,
    ProtectedLosses,
    RunningMean,
    UnbiasedPrediction,
    UniversalDecisionSwap,
)
from regretless.forecaster.events.loss_events import Assignments
from regretless.forecaster.models import Aggregate
from regretless.forecaster.models.aggregate import PANEL, make_panel
from regretless.forecaster.reference import BAND
from regretless.forecaster.unbiased import protected_groups
from regretless.forecaster.weights import AdaptiveWeights, Moment
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.losses import Linear
from regretless.market.records import Mixture
from regretless.scenarios.studies.design import CATALOGUE, read_study

Nature = Callable[[int, float], float]


def threshold(theta: float) -> Linear:
    """Return the task of acting at a price of theta, or not."""
    return Linear(np.array([[0.0], [-0.5]]), np.array([0.5, 0.5 + theta / 2]))


class Grid:
    """Predictions i / m, m = sqrt(T), each with a bias that is within its noise and n / 2m.

    The way of Hu and Wu (2024, arXiv:2404.13503), whose proof needs no more of the biases. The
    gains +-E[p = i / m](p - y) - E[p = i / m] / 2m have adaptive weights. A round's game is exact
    in two neighbours: h < 0 <= h' leave |h| h' / m (|h| + h') at most, which the allowances repay.
    """

    def __init__(self, rounds: int) -> None:
        self.points = np.arange(isqrt(rounds) + 1) / isqrt(rounds)
        self.gain, self.variation = np.zeros((2, 2, len(self.points)))
        self.allowed, self.rule, self.last = 0.5 / isqrt(rounds), AdaptiveWeights(), 0

    def mixture(self) -> Mixture:
        """Return the neighbours nearest to the last ones whose pulls are opposite, or an end."""
        flat = self.gain.ravel(), self.variation.ravel()
        moment = Moment(1, len(flat[0]))
        experts = self.rule.weigh(*flat, moment)
        weights, _total = experts.relative_to(experts.largest_exponent)
        high, low = weights.reshape(2, -1)
        pull = high - low
        turns = np.flatnonzero((pull[:-1] < 0) & (pull[1:] >= 0))
        if pull[0] >= 0 or not len(turns):
            self.last = 0 if pull[0] >= 0 else len(pull) - 2
            mass = np.array([pull[0] >= 0, pull[0] < 0], dtype=float)
        else:
            self.last = int(turns[abs(turns - self.last).argmin()])
            mass = np.array([pull[self.last + 1], -pull[self.last]])
        self.mass = mass / mass.sum()
        return Mixture(self.points[self.last : self.last + 2, None], self.mass)

    def update(self, y: Array) -> None:
        """Learn the outcome (1,)."""
        where = slice(self.last, self.last + 2)
        gap = self.mass * (self.points[where] - y[0])
        gains = np.array([gap, -gap]) - self.mass * self.allowed
        self.gain[:, where] += gains
        self.variation[:, where] += abs(gains)


def of(losses: Sequence[Linear]) -> list[tuple[Array, Array]]:
    """Return the coefficients of losses."""
    return [(loss.offset, loss.weights) for loss in losses]


TWENTY = [threshold((k + 0.5) / 20) for k in range(20)]
FORECASTERS: dict[str, Callable[[int], Any]] = {
    "every task": UniversalDecisionSwap,
    "every task, grid": Grid,
    "one threshold": lambda _: DecisionSwap([threshold(0.5)]),
    "20 thresholds": lambda _: DecisionSwap(TWENTY),
    "20, gains": lambda _: UnbiasedPrediction(Assignments(protected_groups(of(TWENTY), ()))),
    "running mean": lambda _: RunningMean(1),
}


def natures(rounds: int, rng: np.random.Generator, *, period: int = 200) -> dict[str, Nature]:
    """Return what chooses outcomes: functions of the round and the mixture's mean."""

    def late(t: int) -> bool:
        return bool(t // period % 2)

    def wave(t: int) -> float:
        return float(0.5 + 0.4 * np.sin(6 * np.pi * t / rounds))

    return {
        "i.i.d., 0.3": lambda _, __: float(rng.random() < 0.3),
        "switching": lambda t, _: float(rng.random() < (0.8 if late(t) else 0.2)),
        "slow wave": lambda t, _: float(rng.random() < wave(t)),
        "against the mean": lambda _, mean: float(mean < 0.5),
        "beta, switching": lambda t, _: rng.beta(*((8, 2) if late(t) else (2, 8))),
    }


STREAMS = tuple(natures(1, np.random.default_rng()))


def played(
    forecaster: Any, nature: Nature, rounds: int, contexts: Sequence[Any] = ()
) -> tuple[Array, Array, Array]:
    """Return all predictions, with their probabilities and outcomes."""
    rows = []
    for t in range(rounds):
        mixture = forecaster.mixture(*contexts[t : t + 1])
        y = nature(t, float(mixture.mean[0]))
        forecaster.update(np.array([y]))
        parts = zip(mixture.points[:, 0], mixture.weights, strict=True)
        rows += [(point, mass, y) for point, mass in parts]
    points, masses, truths = np.array(rows).T
    return points, masses, truths


def of_thresholds(points: Array, masses: Array, truths: Array) -> tuple[float, float]:
    """Return the greatest sum of swap regret over all thresholds, and their mean loss."""
    order = np.argsort(points)
    points, masses, truths = points[order], masses[order], truths[order]
    mass = np.concatenate([[0.0], np.cumsum(masses)])
    worth = np.concatenate([[0.0], np.cumsum(masses * truths)])
    grid = np.concatenate([points, np.nextafter(points, 2), np.linspace(0, 1, 501)])
    first = np.searchsorted(points, grid, side="left")
    acting = (mass[-1] - mass[first]) * grid - (worth[-1] - worth[first])
    waiting = worth[first] - mass[first] * grid
    regret = (np.maximum(acting, 0) + np.maximum(waiting, 0)).max()
    # over theta from 0 to 1, (1 + (theta - y) [p >= theta]) / 2
    lost = masses @ (0.5 + ((points - truths) ** 2 - truths**2) / 4)
    return float(regret), float(lost)


def of_tasks(points: Array, masses: Array, truths: Array, *, tasks: int = 100) -> Array:
    """Return the greatest sum of swap regret over random tasks, and the mean sum of losses."""
    rng, found = np.random.default_rng(1), []
    for actions in rng.integers(2, 41, tasks):
        at_zero, at_one = rng.random((2, actions))
        task = ProtectedLosses(at_zero[None], (at_one - at_zero)[None, :, None])
        (sums,) = sums_of(task, points[:, None], masses, truths[:, None])
        found.append((regrets(sums), np.trace(sums)))
    regret, lost = np.array(found).T
    return np.array([regret.max(), lost.mean()])


def judged(log: tuple[Array, Array, Array], rounds: int) -> Row:
    """Return regrets and losses per round."""
    names = ("thresholds", "loss", "random tasks", "loss of these")
    found = np.array([*of_thresholds(*log), *of_tasks(*log)]) / rounds
    return dict(zip(names, found, strict=True))


def on_stream(instance: tuple[str, str], rounds: int, seed: int) -> Iterator[Row]:
    """Measure a forecaster on outcomes of a kind."""
    name, outcomes = instance
    nature = natures(rounds, stream(seed, "everyone", outcomes))[outcomes]
    start = process_time()
    log = played(FORECASTERS[name](rounds), nature, rounds)
    spent = process_time() - start
    row = {"outcomes": outcomes, "protected": name} | judged(log, rounds)
    yield row | {"ms": 1e3 * spent / rounds}


def on_horizons(outcomes: str, rounds: int, seed: int) -> Iterator[Row]:
    """Measure both that protect every task at three horizons, with slopes."""
    horizons = [rounds // 16, rounds // 4, rounds]
    for name in ("every task", "every task, grid"):
        found = [next(on_stream((name, outcomes), own, seed)) for own in horizons]
        for column in ("thresholds", "random tasks"):
            values = [row[column] for row in found]
            slope = np.polyfit(np.log(horizons), np.log(values), 1)[0]
            told = dict(zip(map(str, horizons), values, strict=True)) | {"slope": slope}
            yield {"outcomes": outcomes, "protected": name, "regret": column} | told


def panel() -> Aggregate:
    """Return the mean of the panel's models."""
    return Aggregate(make_panel(PANEL, 1), 1)


WAYS: dict[str, Callable[[int], Any]] = {
    "the panel alone": lambda _: panel(),
    "every task, with it": lambda rounds: UniversalDecisionSwap(
        rounds, reference=panel(), band=BAND, give_up=1.0
    ),
    "every task": UniversalDecisionSwap,
}


def columns_of_series() -> list[tuple[str, str]]:
    """List the columns of the bundled series."""
    grid = read_study("skill").spec.grid["stream"]
    told = {name: keys.get("data.outcomes", ()) for name, keys in grid.items()}
    return [(name, column) for name, columns in told.items() for column in columns]


def on_series(instance: tuple[str, str], rounds: int) -> Iterator[Row]:
    """Measure all ways on a column."""
    name, column = instance
    keys = read_study("skill").spec.grid["stream"][name]
    table = pd.read_csv(CATALOGUE.parent.parent / "data" / keys["data.file"])[:rounds]
    low, high = keys["data.scale"][column]
    values = np.clip((table[column].to_numpy() - low) / (high - low), 0.0, 1.0)
    contexts = table[list(keys["data.context"])].to_dict("records")
    for way, make in WAYS.items():
        forecaster = make(len(table))
        log = played(forecaster, lambda t, _: values[t], len(table), contexts)
        reference = getattr(forecaster, "reference", None)
        row = {"series": name, "column": column, "forecast": way} | judged(log, len(table))
        yield row | {"given up": reference.disproved_at if reference else np.nan}


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


SELLERS: dict[str, Callable[[int], Any]] = {
    "every knot": Knots,
    "one ratio": lambda _: DecisionSwap([newsvendor(0.5)]),
    "9 ratios": lambda _: DecisionSwap([newsvendor(k / 10) for k in range(1, 10)]),
    "running mean": lambda _: RunningMean(10),
}


def sold(instance: tuple[str, str], rounds: int, seed: int) -> Iterator[Row]:
    """Return the greatest swap and external regret over 99 ratios, as drawn."""
    name, wanted = instance
    demand = demands(stream(seed, "newsvendors", wanted))[wanted]
    forecaster, said, came = SELLERS[name](rounds), [], []
    for t in range(rounds):
        forecast = forecaster.predict()
        said.append(forecast.statistics)
        came.append(unmet(demand(t, forecast.mixture.mean)))
        forecaster.update(came[-1])
    swap, external = of_newsvendors(np.array(said), np.array(came)) / rounds
    yield {"demand": wanted, "protected": name, "swap": swap, "external": external}


def of_newsvendors(said: Array, came: Array) -> Array:
    """Return the greatest sums of swap and of external regret over all ratios."""
    worst = np.zeros(2)
    for ratio in np.arange(1, 100) / 100:
        one = newsvendor(float(ratio))
        task = ProtectedLosses(one.offset[None], one.weights[None])
        (sums,) = sums_of(task, said, np.ones(len(said)), came)
        external = np.trace(sums) - sums.sum(0).min()
        worst = np.maximum(worst, [regrets(sums), external])
    return worst


def demands(rng: np.random.Generator) -> dict[str, Callable[..., float]]:
    """Return what chooses demand: a function of the round and the mean of the mixture (10,)."""
    return {
        "i.i.d., beta(2, 5)": lambda *_: rng.beta(2, 5),
        "beta, switching": lambda t, _: rng.beta(*((8, 2) if t // 200 % 2 else (2, 8))),
        "against the median": lambda _, mean: 0.9 if mean[4] > 0.5 else 0.1,
    }


def crossed(*parts: Sequence[str]) -> Callable[[], list[tuple[str, ...]]]:
    """Return what lists all combinations."""
    return lambda: list(product(*parts))


DEMANDS = tuple(demands(np.random.default_rng()))
TABLES = {
    "everyone": Table(
        on_stream, ["outcomes", "protected"], crossed(tuple(FORECASTERS), STREAMS), 2000, 3
    ),
    "everyone-rates": Table(
        on_horizons, ["outcomes", "protected", "regret"], lambda: STREAMS, 8000, 1
    ),
    "everyone-series": Table(on_series, ["series", "column", "forecast"], columns_of_series, 2000),
    "newsvendors": Table(sold, ["demand", "protected"], crossed(tuple(SELLERS), DEMANDS), 2000, 3),
}
