"""How often a bound is exceeded in short games.

Every game has losses, a horizon of 5 to 40 rounds and an opponent of its own, all drawn at random.
Two forecasters play it: one with the potential over assignments (``listed``), whose expected regret
and whose regret as drawn are compared with both bounds, and one that protects every task
(``anybody``), with tasks that it does not know. Printed are the games, those in which a regret
exceeds a bound (of those as drawn 1 in 400 may), and the greatest ratio of a regret to a bound. A
seed draws as many games as there are rounds.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from paper.harness import Row, Table
from regretless.forecaster import (
    ProtectedLosses,
    UnbiasedPrediction,
    UniversalDecisionSwap,
)
from regretless.forecaster.events.loss_events import Assignments
from regretless.forecaster.guarantees.draws import ASSIGNED
from regretless.market.core.arrays import Array

Ratios = Iterator[tuple[str, float]]  # what is compared, and the greatest regret over its bound

NEGLIGIBLE = 1e-9  # of a sum of regret, from rounding


class PlayLog(NamedTuple):
    """What was predicted and came true: a row for each prediction of each round.

    Attributes
    ----------
    points : array (m, n)
        Predictions.
    masses : array (m,)
        Their probabilities within the round; 1 of what was drawn.
    truths : array (m, n)
        What came true in the round.
    """

    points: Array
    masses: Array
    truths: Array


def opponent(rng: np.random.Generator, round_index: int, mean: Array) -> Array:
    """Answer a mixture's mean (n,) in a way that is drawn anew in every round."""
    kind = rng.integers(4)
    if kind == 0:
        return np.asarray(mean < rng.choice([0.5, 0.3]), dtype=np.float64)
    if kind == 1:
        return rng.random(len(mean))
    if kind == 2:
        return np.full(len(mean), float(round_index % 2))
    return np.round(mean)


def sums_of(losses: ProtectedLosses, log: PlayLog) -> Iterator[Array]:
    """Yield for every loss the sums (A, A) of what each action cost where one was played."""
    for offset, weights in zip(losses.offset, losses.weights, strict=True):
        played_action = np.argmin(offset + log.points @ weights.T, axis=1)
        sums = np.zeros((len(offset), len(offset)))
        loss_of_actions = offset + log.truths @ weights.T
        np.add.at(sums, played_action, log.masses[:, np.newaxis] * loss_of_actions)
        yield sums


def swap_regret_of(sums: Array) -> float:
    """Return the sum of swap regret, from the sums (A, A) of one loss."""
    return float((np.diag(sums) - sums.min(axis=1)).sum())


def regret_of(losses: ProtectedLosses, points: Array, masses: Array, truths: Array) -> Array:
    """Return the sums of swap regret of losses (K,), from the arrays of a ``PlayLog``."""
    log = PlayLog(points, masses, truths)
    return np.array([swap_regret_of(sums) for sums in sums_of(losses, log)])


def play_game(rng: np.random.Generator) -> Ratios:
    """Play one game with either forecaster; yield what is compared, and regret over bound."""
    rounds = int(rng.integers(5, 41))
    size = int(rng.integers(1, 4))
    actions = int(rng.integers(2, 6))
    yield from _ratios_of_listed(rng, rounds, size, actions)
    yield from _ratios_of_anybody(rng, rounds, actions)


def _ratios_of_listed(rng: np.random.Generator, rounds: int, size: int, actions: int) -> Ratios:
    """Play with the potential over assignments of three losses that it knows."""
    weights = rng.uniform(-0.5, 0.5, (3, actions, size)) / size
    listed = ProtectedLosses(rng.uniform(0, 0.5, (3, actions)), weights)
    events = Assignments([listed], risk=ASSIGNED)
    forecaster = UnbiasedPrediction(events, seed=int(rng.integers(2**31)))
    expected_log, drawn_log = play_rounds(forecaster, rng, rounds)
    expected = regret_of(listed, *expected_log)
    drawn = regret_of(listed, *drawn_log)
    a_priori = forecaster.beforehand(rounds)
    yield "listed, from variation", greatest_ratio(expected, forecaster.from_variation(listed))
    yield (
        "listed, a priori",
        greatest_ratio(expected, rounds * a_priori.a_priori(listed.weights)),
    )
    yield "listed, drawn, from variation", greatest_ratio(drawn, forecaster.realised(listed))
    yield (
        "listed, drawn, a priori",
        greatest_ratio(drawn, a_priori.realised(listed.weights), rounds),
    )


def _ratios_of_anybody(rng: np.random.Generator, rounds: int, actions: int) -> Ratios:
    """Play with all tasks protected, and measure three that the forecaster does not know."""
    anybody = ProtectedLosses(rng.random((3, actions)), rng.uniform(-1, 1, (3, actions, 1)))
    forecaster = UniversalDecisionSwap(rounds, seed=int(rng.integers(2**31)))
    expected_log, _ = play_rounds(forecaster, rng, rounds)
    expected = regret_of(anybody, *expected_log)
    a_priori = forecaster.beforehand(rounds).a_priori(anybody.weights)
    yield "anybody, from variation", greatest_ratio(expected, forecaster.from_variation(anybody))
    yield "anybody, a priori", greatest_ratio(expected, a_priori, rounds)


def greatest_ratio(regret: Array, bound: Array | None, rounds: int = 1) -> float:
    """Return the greatest regret over ``rounds`` times its bound, infinite where there is none."""
    if bound is None:
        return np.inf
    regret = np.maximum(regret - NEGLIGIBLE, 0)
    return float((regret / np.maximum(rounds * bound, NEGLIGIBLE)).max())


def play_rounds(
    forecaster: UnbiasedPrediction, rng: np.random.Generator, rounds: int
) -> tuple[PlayLog, PlayLog]:
    """Play against the opponent; return the log of all mixtures, and that of what was drawn."""
    expected_rows: list[tuple[Array, float, Array]] = []
    drawn_rows: list[tuple[Array, float, Array]] = []
    for round_index in range(rounds):
        forecast = forecaster.predict(round_index)
        truth = opponent(rng, round_index, forecast.mixture.mean)
        forecaster.update(truth)
        for point, mass in zip(forecast.mixture.points, forecast.mixture.weights, strict=True):
            expected_rows.append((point, mass, truth))
        drawn_rows.append((forecast.statistics, 1.0, truth))
    return _log_of(expected_rows), _log_of(drawn_rows)


def _log_of(rows: list[tuple[Array, float, Array]]) -> PlayLog:
    points, masses, truths = zip(*rows, strict=True)
    return PlayLog(np.array(points), np.array(masses), np.array(truths))


def compare_games(_: str, rounds: int, seed: int) -> Iterator[Row]:
    """Play as many games as ``rounds``; a row for each regret that has a bound."""
    for game in range(rounds):
        for bound, ratio in play_game(np.random.default_rng([seed, game])):
            yield {"bound": bound, "games": 1, "exceeded": int(ratio > 1), "greatest": ratio}


SUMS = {"games": "sum", "exceeded": "sum", "greatest": "max"}
TABLES = {
    "games": Table(compare_games, ["bound"], rounds=5000, seeds=2, aggregations=SUMS, digits=3)
}
