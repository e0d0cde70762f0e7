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

from paper.games import PlayLog, sums_of, swap_regret_of
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

Nature = Callable[[int, float], float]  # from the round and the mixture's mean to the outcome
Demand = Callable[[int, Array], float]  # the same, from the means of ten numbers (10,)

SHARES_OF_HORIZONS = (16, 4, 1)  # how many of each horizon make up all rounds
PERIOD = 200  # rounds until what switches does so
LISTED_THRESHOLDS = 20
RANDOM_TASKS = 100
MAX_ACTIONS = 40  # of a random task
THRESHOLD_GRID = 501  # thresholds at which regret is computed, beside the predictions
ORDERS = np.arange(11) / 10  # that a newsvendor may place
KNOTS = 10  # of the newsvendors' basis


def threshold(theta: float) -> Linear:
    """Return the task of acting at a price of theta, or not."""
    return Linear(np.array([[0.0], [-0.5]]), np.array([0.5, 0.5 + theta / 2]))


class Grid:
    """Predictions i / m, m = sqrt(T), each with a bias that is within its noise and n / 2m.

    The way of Hu and Wu (2024, arXiv:2404.13503), whose proof needs no more of the biases. The
    gains +-E[p = i / m](p - y) - E[p = i / m] / 2m have adaptive weights. A round's game is exact
    in two neighbours: h < 0 <= h' leave |h| h' / m (|h| + h') at most, which the allowances repay.

    Attributes
    ----------
    points : array (m + 1,)
    gain, variation : array (2, m + 1)
        Sums of the gains of both signs of every point's bias, and of the gains' sizes.
    """

    def __init__(self, rounds: int) -> None:
        intervals = isqrt(rounds)
        self.points = np.arange(intervals + 1) / intervals
        self.gain = np.zeros((2, len(self.points)))
        self.variation = np.zeros_like(self.gain)
        self.allowance = 0.5 / intervals
        self.rule = AdaptiveWeights()
        self.left = 0  # index of the left one of the neighbours that were played last
        self.mass = np.zeros(2)  # of these two

    def mixture(self) -> Mixture:
        """Return the neighbours nearest to the last ones whose pulls are opposite, or an end."""
        pull = self._pull()
        turns = np.flatnonzero((pull[:-1] < 0) & (pull[1:] >= 0))
        if pull[0] >= 0:
            self.left = 0
            mass = np.array([1.0, 0.0])
        elif not len(turns):
            self.left = len(pull) - 2
            mass = np.array([0.0, 1.0])
        else:
            self.left = int(turns[abs(turns - self.left).argmin()])
            mass = np.array([pull[self.left + 1], -pull[self.left]])
        self.mass = mass / mass.sum()
        return Mixture(self.points[self.left : self.left + 2, np.newaxis], self.mass)

    def _pull(self) -> Array:
        """Return the weight of "too high" minus that of "too low" at each point (m + 1,)."""
        moment = Moment(1, self.gain.size)
        experts = self.rule.weigh(self.gain.ravel(), self.variation.ravel(), moment)
        weights, _total = experts.relative_to(experts.largest_exponent)
        too_high, too_low = weights.reshape(2, -1)
        pull: Array = too_high - too_low
        return pull

    def update(self, y: Array) -> None:
        """Learn the outcome (1,)."""
        played = slice(self.left, self.left + 2)
        bias = self.mass * (self.points[played] - y[0])
        gains = np.array([bias, -bias]) - self.mass * self.allowance
        self.gain[:, played] += gains
        self.variation[:, played] += abs(gains)


def coefficients_of(losses: Sequence[Linear]) -> list[tuple[Array, Array]]:
    """Return the offsets (A,) and weights (A, 1) of losses."""
    return [(loss.offset, loss.weights) for loss in losses]


THRESHOLDS = [threshold((k + 0.5) / LISTED_THRESHOLDS) for k in range(LISTED_THRESHOLDS)]
FORECASTERS: dict[str, Callable[[int], Any]] = {  # made for a number of rounds
    "every task": UniversalDecisionSwap,
    "every task, grid": Grid,
    "one threshold": lambda _: DecisionSwap([threshold(0.5)]),
    "20 thresholds": lambda _: DecisionSwap(THRESHOLDS),
    "20, gains": lambda _: UnbiasedPrediction(
        Assignments(protected_groups(coefficients_of(THRESHOLDS), ()))
    ),
    "running mean": lambda _: RunningMean(1),
}


def is_late(round_index: int) -> bool:
    """Whether a round is in the second half of two periods, where what switches is different."""
    return bool(round_index // PERIOD % 2)


def switching_beta(rng: np.random.Generator, round_index: int) -> float:
    """Draw from beta(8, 2) or beta(2, 8), in turn for a period each."""
    if is_late(round_index):
        return float(rng.beta(8, 2))
    return float(rng.beta(2, 8))


def natures(rounds: int, rng: np.random.Generator) -> dict[str, Nature]:
    """Return what chooses outcomes, by name."""

    def independent(_round: int, _mean: float) -> float:
        return float(rng.random() < 0.3)

    def switching(round_index: int, _mean: float) -> float:
        return float(rng.random() < (0.8 if is_late(round_index) else 0.2))

    def slow_wave(round_index: int, _mean: float) -> float:
        chance = float(0.5 + 0.4 * np.sin(6 * np.pi * round_index / rounds))
        return float(rng.random() < chance)

    def against_the_mean(_round: int, mean: float) -> float:
        return float(mean < 0.5)

    def beta_switching(round_index: int, _mean: float) -> float:
        return switching_beta(rng, round_index)

    return {
        "i.i.d., 0.3": independent,
        "switching": switching,
        "slow wave": slow_wave,
        "against the mean": against_the_mean,
        "beta, switching": beta_switching,
    }


NATURES = tuple(natures(1, np.random.default_rng()))  # their names


def play_rounds(
    forecaster: Any, nature: Nature, rounds: int, contexts: Sequence[object] = ()
) -> PlayLog:
    """Play and return all predictions; ``contexts`` are told to the forecaster where there are."""
    rows: list[tuple[float, float, float]] = []
    for round_index in range(rounds):
        mixture = forecaster.mixture(*contexts[round_index : round_index + 1])
        outcome = nature(round_index, float(mixture.mean[0]))
        forecaster.update(np.array([outcome]))
        for point, mass in zip(mixture.points[:, 0], mixture.weights, strict=True):
            rows.append((point, mass, outcome))
    points, masses, outcomes = np.array(rows).T
    return PlayLog(points[:, np.newaxis], masses, outcomes[:, np.newaxis])


def judge_thresholds(log: PlayLog) -> tuple[float, float]:
    """Return the greatest sum of swap regret over all thresholds, and their mean loss.

    A threshold theta acts if p >= theta. Between two predictions its regret is linear in theta, so
    that the predictions and the numbers next to them are enough; a grid is added.
    """
    order = np.argsort(log.points[:, 0])
    points = log.points[order, 0]
    masses = log.masses[order]
    outcomes = log.truths[order, 0]
    mass_below = np.concatenate([[0.0], np.cumsum(masses)])  # of the first i predictions
    outcome_below = np.concatenate([[0.0], np.cumsum(masses * outcomes)])
    evenly = np.linspace(0, 1, THRESHOLD_GRID)
    thetas = np.concatenate([points, np.nextafter(points, 2), evenly])
    n_below = np.searchsorted(points, thetas, side="left")
    mass_acting = mass_below[-1] - mass_below[n_below]
    outcome_acting = outcome_below[-1] - outcome_below[n_below]
    regret_of_acting = mass_acting * thetas - outcome_acting
    regret_of_waiting = outcome_below[n_below] - mass_below[n_below] * thetas
    regret = (np.maximum(regret_of_acting, 0) + np.maximum(regret_of_waiting, 0)).max()
    # The loss (1 + (theta - y) [p >= theta]) / 2, averaged over theta from 0 to 1.
    mean_losses = 0.5 + ((points - outcomes) ** 2 - outcomes**2) / 4
    return float(regret), float(masses @ mean_losses)


def judge_random_tasks(log: PlayLog) -> tuple[float, float]:
    """Return the greatest sum of swap regret over random tasks, and the mean sum of losses."""
    rng = np.random.default_rng(1)
    regrets = []
    losses = []
    for actions in rng.integers(2, MAX_ACTIONS + 1, RANDOM_TASKS):
        loss_at_0, loss_at_1 = rng.random((2, actions))
        weights = (loss_at_1 - loss_at_0)[np.newaxis, :, np.newaxis]
        (sums,) = sums_of(ProtectedLosses(loss_at_0[np.newaxis], weights), log)
        regrets.append(swap_regret_of(sums))
        losses.append(np.trace(sums))
    return float(np.max(regrets)), float(np.mean(losses))


def judge(log: PlayLog, rounds: int) -> Row:
    """Return regrets and losses per round."""
    threshold_regret, threshold_loss = judge_thresholds(log)
    task_regret, task_loss = judge_random_tasks(log)
    return {
        "thresholds": threshold_regret / rounds,
        "loss": threshold_loss / rounds,
        "random tasks": task_regret / rounds,
        "loss of these": task_loss / rounds,
    }


def measure_stream(instance: tuple[str, str], rounds: int, seed: int) -> Row:
    """Measure a forecaster on outcomes of a kind."""
    protected, outcomes = instance
    nature = natures(rounds, stream(seed, "everyone", outcomes))[outcomes]
    start = process_time()
    log = play_rounds(FORECASTERS[protected](rounds), nature, rounds)
    seconds = process_time() - start
    return {
        "outcomes": outcomes,
        "protected": protected,
        **judge(log, rounds),
        "ms": 1e3 * seconds / rounds,
    }


def rows_of_stream(instance: tuple[str, str], rounds: int, seed: int) -> list[Row]:
    """Return the row of a forecaster on outcomes of a kind."""
    return [measure_stream(instance, rounds, seed)]


def rows_of_horizons(outcomes: str, rounds: int, seed: int) -> Iterator[Row]:
    """Measure both that protect every task at three horizons, with slopes."""
    horizons = [rounds // share for share in SHARES_OF_HORIZONS]
    for protected in ("every task", "every task, grid"):
        measured = [measure_stream((protected, outcomes), horizon, seed) for horizon in horizons]
        for regret in ("thresholds", "random tasks"):
            values = [row[regret] for row in measured]
            row: Row = {"outcomes": outcomes, "protected": protected, "regret": regret}
            for horizon, value in zip(horizons, values, strict=True):
                row[str(horizon)] = value
            row["slope"] = np.nan  # a regret of 0 has no logarithm
            if min(values) > 0:
                row["slope"] = np.polyfit(np.log(horizons), np.log(values), 1)[0]
            yield row


def panel_mean() -> Aggregate:
    """Return the mean of the panel's models."""
    return Aggregate(make_panel(PANEL, 1), 1)


def with_panel(rounds: int) -> UniversalDecisionSwap:
    """Return a forecaster that protects every task, with the panel as its reference."""
    return UniversalDecisionSwap(rounds, reference=panel_mean(), band=BAND, give_up=1.0)


SERIES_FORECASTERS: dict[str, Callable[[int], Any]] = {  # made for a number of rounds
    "the panel alone": lambda _: panel_mean(),
    "every task, with it": with_panel,
    "every task": UniversalDecisionSwap,
}


def columns_of_series() -> list[tuple[str, str]]:
    """List the columns of the bundled series: a series and a column each."""
    pairs = []
    for series, keys in read_study("skill").spec.grid["stream"].items():
        pairs += [(series, column) for column in keys.get("data.outcomes", ())]
    return pairs


def rows_of_series(instance: tuple[str, str], rounds: int) -> Iterator[Row]:
    """Measure all forecasters on a column, of which ``rounds`` rows are played at most."""
    series, column = instance
    keys = read_study("skill").spec.grid["stream"][series]
    table = pd.read_csv(CATALOGUE.parent.parent / "data" / keys["data.file"])[:rounds]
    low, high = keys["data.scale"][column]
    values = np.clip((table[column].to_numpy() - low) / (high - low), 0.0, 1.0)
    contexts = table[list(keys["data.context"])].to_dict("records")

    def replay(round_index: int, _mean: float) -> float:
        value: float = values[round_index]
        return value

    for name, make in SERIES_FORECASTERS.items():
        forecaster = make(len(table))
        log = play_rounds(forecaster, replay, len(table), contexts)
        reference = getattr(forecaster, "reference", None)
        yield {
            "series": series,
            "column": column,
            "forecast": name,
            **judge(log, len(table)),
            "given up": reference.disproved_at if reference else np.nan,
        }


def unmet_share(demand: float) -> Array:
    """Return s(y): how much of each tenth of the range is not asked for (10,)."""
    return np.asarray(1 - np.clip(KNOTS * demand - np.arange(KNOTS), 0, 1))


def newsvendor(ratio: float) -> Linear:
    """Return the task of ordering a tenth of the range or a multiple, with a critical ratio."""
    is_ordered = np.arange(KNOTS) < np.arange(len(ORDERS))[:, np.newaxis]
    weights = np.where(is_ordered, 1 - ratio, -ratio) / KNOTS
    return Linear(weights, ratio * (1 - ORDERS))


class KnotForecast(NamedTuple):
    """A draw (n,), and the mean of its distribution as a mixture."""

    statistics: Array
    mixture: Mixture


class KnotForecaster:
    """A forecaster that protects every task of each number by itself."""

    def __init__(self, rounds: int) -> None:
        # They are drawn by one coin.
        self.forecasters = [UniversalDecisionSwap(rounds) for _ in range(KNOTS)]

    def predict(self) -> KnotForecast:
        """Return a draw of every number (10,), with the mean of the mixtures."""
        forecasts = [forecaster.predict() for forecaster in self.forecasters]
        draw = np.array([forecast.statistics[0] for forecast in forecasts])
        means = np.array([forecast.mixture.mean for forecast in forecasts]).reshape(1, KNOTS)
        return KnotForecast(draw, Mixture(means, np.ones(1)))

    def update(self, truth: Array) -> None:
        """Learn s(y) (10,)."""
        for forecaster, number in zip(self.forecasters, truth, strict=True):
            forecaster.update(number)


NEWSVENDOR_FORECASTERS: dict[str, Callable[[int], Any]] = {  # made for a number of rounds
    "every knot": KnotForecaster,
    "one ratio": lambda _: DecisionSwap([newsvendor(0.5)]),
    "9 ratios": lambda _: DecisionSwap([newsvendor(k / 10) for k in range(1, 10)]),
    "running mean": lambda _: RunningMean(KNOTS),
}


def rows_of_newsvendors(instance: tuple[str, str], rounds: int, seed: int) -> Iterator[Row]:
    """Return the greatest swap and external regret over 99 ratios, as drawn."""
    protected, demand_name = instance
    demand = demands(stream(seed, "newsvendors", demand_name))[demand_name]
    forecaster = NEWSVENDOR_FORECASTERS[protected](rounds)
    draws = []
    truths = []
    for round_index in range(rounds):
        forecast = forecaster.predict()
        truth = unmet_share(demand(round_index, forecast.mixture.mean))
        forecaster.update(truth)
        draws.append(forecast.statistics)
        truths.append(truth)
    log = PlayLog(np.array(draws), np.ones(rounds), np.array(truths))
    swap, external = worst_newsvendor_regrets(log)
    yield {
        "demand": demand_name,
        "protected": protected,
        "swap": swap / rounds,
        "external": external / rounds,
    }


def worst_newsvendor_regrets(log: PlayLog) -> tuple[float, float]:
    """Return the greatest sums of swap and of external regret over all ratios."""
    swap_regrets = [0.0]
    external_regrets = [0.0]
    for ratio in np.arange(1, 100) / 100:
        task = newsvendor(float(ratio))
        losses = ProtectedLosses(task.offset[np.newaxis], task.weights[np.newaxis])
        (sums,) = sums_of(losses, log)
        swap_regrets.append(swap_regret_of(sums))
        external_regrets.append(float(np.trace(sums) - sums.sum(axis=0).min()))
    return max(swap_regrets), max(external_regrets)


def demands(rng: np.random.Generator) -> dict[str, Demand]:
    """Return what chooses demand, by name."""

    def independent(_round: int, _means: Array) -> float:
        return float(rng.beta(2, 5))

    def beta_switching(round_index: int, _means: Array) -> float:
        return switching_beta(rng, round_index)

    def against_the_median(_round: int, means: Array) -> float:
        return 0.9 if means[4] > 0.5 else 0.1

    return {
        "i.i.d., beta(2, 5)": independent,
        "beta, switching": beta_switching,
        "against the median": against_the_median,
    }


DEMANDS = tuple(demands(np.random.default_rng()))  # their names
TABLES = {
    "everyone": Table(
        rows_of_stream,
        ["outcomes", "protected"],
        lambda: list(product(FORECASTERS, NATURES)),
        rounds=2000,
        seeds=3,
    ),
    "everyone-rates": Table(
        rows_of_horizons,
        ["outcomes", "protected", "regret"],
        lambda: NATURES,
        rounds=8000,
        seeds=1,
        min_rounds=SHARES_OF_HORIZONS[0],
        why_min_rounds=f"the shortest run has 1/{SHARES_OF_HORIZONS[0]} of them",
    ),
    "everyone-series": Table(
        rows_of_series, ["series", "column", "forecast"], columns_of_series, rounds=2000
    ),
    "newsvendors": Table(
        rows_of_newsvendors,
        ["demand", "protected"],
        lambda: list(product(NEWSVENDOR_FORECASTERS, DEMANDS)),
        rounds=2000,
        seeds=3,
    ),
}
