"""How often a bound is exceeded in short games.

Every game has losses, a horizon of 5 to 40 rounds and an opponent of its own, all drawn at random.
Two forecasters play it: one with the potential over assignments (``listed``), whose expected regret
and whose regret as drawn are compared with both bounds, and one that protects every task
(``anybody``), with tasks that it does not know. Printed are the games, those in which a regret
exceeds a bound (of those as drawn 1 in 400 may), and the greatest ratio of a regret to a bound. A
seed draws as many games as there are rounds.
"""

from collections.abc import Iterator

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

Ratios = Iterator[tuple[str, float]]


def opponent(rng: np.random.Generator, rounds: int, mean: Array) -> Array:
    """Answer a mixture's mean (n,) in a way that is drawn anew in every round."""
    kind = rng.integers(4)
    if kind == 0:
        return np.asarray(mean < rng.choice([0.5, 0.3]), dtype=np.float64)
    if kind == 1:
        return rng.random(len(mean))
    return np.full(len(mean), float(rounds % 2)) if kind == 2 else np.round(mean)


def sums_of(group: ProtectedLosses, points: Array, masses: Array, truths: Array) -> Iterator[Array]:
    """Yield for every loss the sums (A, A) of what each action cost where one was played.

    Predictions are (m, n), with masses (m,) and truths (m, n).
    """
    for offset, weights in zip(group.offset, group.weights, strict=True):
        chosen = np.argmin(offset + points @ weights.T, axis=1)
        sums = np.zeros((len(offset), len(offset)))
        np.add.at(sums, chosen, masses[:, None] * (offset + truths @ weights.T))
        yield sums


def regrets(sums: Array) -> float:
    """Return the sum of swap regret."""
    return float((np.diag(sums) - sums.min(1)).sum())


def regret_of(group: ProtectedLosses, *log: Array) -> Array:
    """Return the sums of swap regret of losses (K,)."""
    return np.array([regrets(sums) for sums in sums_of(group, *log)])


def game(rng: np.random.Generator) -> Ratios:
    """Play one game; yield what is compared, and regret over bound."""
    rounds, size, actions = (int(rng.integers(*ends)) for ends in ((5, 41), (1, 4), (2, 6)))
    weights = rng.uniform(-0.5, 0.5, (3, actions, size)) / size
    listed = ProtectedLosses(rng.uniform(0, 0.5, (3, actions)), weights)
    events = Assignments([listed], risk=ASSIGNED)
    forecaster = UnbiasedPrediction(events, seed=int(rng.integers(2**31)))
    expected, drawn = played(forecaster, rng, rounds)
    mean, real = (regret_of(listed, *log) for log in (expected, drawn))
    a_priori = forecaster.beforehand(rounds)
    yield "listed, from variation", ratio(mean, forecaster.from_variation(listed))
    yield "listed, a priori", ratio(mean, rounds * a_priori.a_priori(listed.weights))
    yield "listed, drawn, from variation", ratio(real, forecaster.realised(listed))
    yield "listed, drawn, a priori", ratio(real, a_priori.realised(listed.weights), rounds)
    anybody = ProtectedLosses(rng.random((3, actions)), rng.uniform(-1, 1, (3, actions, 1)))
    everyone = UniversalDecisionSwap(rounds, seed=int(rng.integers(2**31)))
    mean = regret_of(anybody, *played(everyone, rng, rounds)[0])
    yield "anybody, from variation", ratio(mean, everyone.from_variation(anybody))
    yield (
        "anybody, a priori",
        ratio(mean, everyone.beforehand(rounds).a_priori(anybody.weights), rounds),
    )


def ratio(regret: Array, bound: Array | None, rounds: int = 1) -> float:
    """Return the greatest regret over its bound, infinite where there is none."""
    if bound is None:
        return np.inf
    own = np.maximum(rounds * bound, 1e-9)
    return float((np.maximum(regret - 1e-9, 0) / own).max())


def played(
    forecaster: UnbiasedPrediction, rng: np.random.Generator, rounds: int
) -> tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]:
    """Return points, masses and truths of all mixtures, and the same of what was drawn."""
    distribution, drawn = [], []
    for t in range(rounds):
        forecast = forecaster.predict(t)
        truth = opponent(rng, t, forecast.mixture.mean)
        forecaster.update(truth)
        pairs = zip(forecast.mixture.points, forecast.mixture.weights, strict=True)
        distribution += [(point, mass, truth) for point, mass in pairs]
        drawn.append((forecast.statistics, 1.0, truth))
    return columns(distribution), columns(drawn)


def columns(rows: list[tuple[Array, float, Array]]) -> tuple[Array, Array, Array]:
    """Return rows as three arrays."""
    points, masses, truths = zip(*rows, strict=True)
    return np.array(points), np.array(masses), np.array(truths)


def drawn(_: str, rounds: int, seed: int) -> Iterator[Row]:
    """Play as many games."""
    for i in range(rounds):
        for bound, found in game(np.random.default_rng([seed, i])):
            yield {"bound": bound, "games": 1, "exceeded": int(found > 1), "greatest": found}


SUMS = {"games": "sum", "exceeded": "sum", "greatest": "max"}
TABLES = {"games": Table(drawn, ["bound"], rounds=5000, seeds=2, instead=SUMS, digits=3)}
