"""``python -m paper.games [--games N] [--seed S]``: how often a bound is exceeded in short games.

Every game has losses, a horizon of 5 to 40 rounds and an opponent of its own, all drawn at random.
Two forecasters play it: one with the potential over assignments (``listed``), whose expected regret
and whose regret as drawn are compared with both bounds, and one that protects every task
(``anybody``), with tasks that it does not know. Printed are the games, those in which a regret
exceeds a bound (of those as drawn 1 in 400 may), and the greatest ratio of a regret to a bound.
"""

from argparse import ArgumentParser
from collections.abc import Iterator

import numpy as np
import pandas as pd

from regretless.forecaster import (
    GainEvents,
    ProtectedLosses,
    UnbiasedPrediction,
    UniversalDecisionSwap,
)
from regretless.forecaster.events.assignments import Assignments
from regretless.forecaster.events.draws import ASSIGNED
from regretless.market.core.arrays import Array

Rows = Iterator[tuple[str, float]]


def opponent(rng: np.random.Generator, rounds: int, mean: Array) -> Array:
    """Answer a mixture's mean (n,) in a way that is drawn anew in every round."""
    kind = rng.integers(4)
    if kind == 0:
        return np.asarray(mean < rng.choice([0.5, 0.3]), dtype=np.float64)
    if kind == 1:
        return rng.random(len(mean))
    return np.full(len(mean), float(rounds % 2)) if kind == 2 else np.round(mean)


def regrets(group: ProtectedLosses, points: Array, masses: Array, truths: Array) -> Array:
    """Sum of swap regret of losses (K,) on predictions (m, n) with masses (m,), truths (m, n)."""
    found = np.empty(len(group.offset))
    for k, (offset, weights) in enumerate(zip(group.offset, group.weights, strict=True)):
        chosen = np.argmin(offset + points @ weights.T, axis=1)
        sums = np.zeros((len(offset), len(offset)))
        np.add.at(sums, chosen, masses[:, None] * (offset + truths @ weights.T))
        found[k] = (np.diag(sums) - sums.min(1)).sum()
    return found


def game(rng: np.random.Generator) -> Rows:
    """Play one game; yield what is compared, and regret over bound."""
    rounds, size, actions = (int(rng.integers(*ends)) for ends in ((5, 41), (1, 4), (2, 6)))
    weights = rng.uniform(-0.5, 0.5, (3, actions, size)) / size
    listed = ProtectedLosses(rng.uniform(0, 0.5, (3, actions)), weights)
    events = Assignments(GainEvents([listed]), risk=ASSIGNED)
    forecaster = UnbiasedPrediction(events, seed=int(rng.integers(2**31)))
    expected, drawn = played(forecaster, rng, rounds)
    mean, real = regrets(listed, *expected), regrets(listed, *drawn)
    a_priori = forecaster.beforehand(rounds)
    yield "listed, from variation", ratio(mean, forecaster.from_variation(listed))
    yield "listed, a priori", ratio(mean, rounds * a_priori.regret(listed.weights))
    yield "listed, drawn, from variation", ratio(real, forecaster.realised(listed))
    yield "listed, drawn, a priori", ratio(real, a_priori.realised(listed.weights), rounds)
    anybody = ProtectedLosses(rng.random((3, actions)), rng.uniform(-1, 1, (3, actions, 1)))
    everyone = UniversalDecisionSwap(rounds, seed=int(rng.integers(2**31)))
    mean = regrets(anybody, *played(everyone, rng, rounds)[0])
    yield "anybody, from variation", ratio(mean, everyone.from_variation(anybody))
    yield (
        "anybody, a priori",
        ratio(mean, everyone.beforehand(rounds).regret(anybody.weights), rounds),
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


def measure(games: int, seed: int) -> pd.DataFrame:
    """Return violations and greatest ratios, by what is compared."""
    rows = [row for i in range(games) for row in game(np.random.default_rng([seed, i]))]
    table = pd.DataFrame(rows, columns=["bound", "ratio"])
    own = table.assign(exceeded=table["ratio"] > 1).groupby("bound", sort=False)
    return pd.DataFrame(
        {"games": own.size(), "exceeded": own["exceeded"].sum(), "greatest": own["ratio"].max()}
    )


if __name__ == "__main__":
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    print(measure(**vars(parser.parse_args())).round(3).to_string())  # noqa: T201
