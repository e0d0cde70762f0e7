"""A potential over assignments: its definition, its weights and its bound, by brute force."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from regretless.forecaster import GainEvents, ProtectedLosses, Reference, UnbiasedPrediction
from regretless.forecaster.events.bounds import CURBS, RATES
from regretless.forecaster.events.scalar import Assignments
from regretless.forecaster.models import Constant
from regretless.market.core.arrays import Array

LOSSES, ACTIONS, SIZE = 2, 3, 2


def group(seed: int = 0) -> ProtectedLosses:
    rng = np.random.default_rng(seed)
    weights = rng.uniform(-0.5, 0.5, (LOSSES, ACTIONS, SIZE))
    return ProtectedLosses(
        rng.uniform(0.3, 0.7, (LOSSES, ACTIONS)), weights, (lambda x: int(x) % 2,)
    )


def nature(kind: str, rng: np.random.Generator, mean: Array, t: int) -> Array:
    match kind:
        case "hostile":
            return (mean < 0.5).astype(float)
        case "switching":
            return np.array([0.9, 0.1]) if t // 20 % 2 else np.array([0.1, 0.9])
        case _:
            return (rng.random(SIZE) < 0.3).astype(float)


def played(
    kind: str, rounds: int, seed: int = 0, **parts: Any
) -> tuple[UnbiasedPrediction, list[Any]]:
    protected, rng = group(seed), np.random.default_rng(seed)
    forecaster = UnbiasedPrediction(Assignments([protected]), **parts)
    log = []
    for t in range(rounds):
        mixture = forecaster.mixture(t)
        truth = nature(kind, rng, mixture.mean, t)
        forecaster.update(truth)
        log.append((mixture.points, mixture.weights, truth, t % 2))
    return forecaster, log


def regrets(protected: ProtectedLosses, log: list[Any]) -> Array:
    """Each loss's greatest gain of all assignments of comparators, by trying them all."""
    gains = np.zeros((LOSSES, ACTIONS, ACTIONS + 1))
    for points, masses, truth, told in log:
        costs = protected.offset + protected.weights @ truth
        for point, mass in zip(points, masses, strict=True):
            chosen = np.argmin(protected.offset + protected.weights @ point, axis=1)
            for k, a in enumerate(chosen):
                options = [*costs[k], costs[k, told]]
                gains[k, a] += mass * (costs[k, a] - np.array(options))
    every = product(range(ACTIONS + 1), repeat=ACTIONS)
    totals = [gains[:, range(ACTIONS), list(phi)].sum(1) for phi in every]
    return np.max(totals, axis=0)


@pytest.mark.parametrize("kind", ["hostile", "switching", "random"])
@pytest.mark.parametrize("seed", range(4))
def test_no_assignment_gains_more_than_the_bounds(kind: str, seed: int) -> None:
    forecaster, log = played(kind, 150, seed)
    protected = forecaster.events.groups[0]
    found = regrets(protected, log)
    assert np.all(found <= forecaster.from_variation(protected) + 1e-9)
    bound = forecaster.known_bound()
    assert np.all(found / 150 <= bound.regret(protected.weights, policies=1) + 1e-9)


@pytest.mark.parametrize("kind", ["hostile", "random"])
def test_what_was_gained_under_trust_counts(kind: str) -> None:
    reference = Reference(Constant(SIZE, value=0.9), give_up=0.3)
    forecaster, log = played(kind, 150, reference=reference)
    assert reference.disproved_at
    protected = forecaster.events.groups[0]
    assert np.all(regrets(protected, log) <= forecaster.from_variation(protected) + 1e-9)


def test_the_potential_is_that_of_all_assignments() -> None:
    forecaster, _ = played("switching", 60)
    events: Any = forecaster.events
    gain, squares, _ = events.arrays["assigned_0"]
    both, alone = (
        np.exp(kind.log_potential(events, forecaster.band)) for kind in (Assignments, GainEvents)
    )
    every = list(product(range(ACTIONS + 1), repeat=ACTIONS))
    total = 0.0
    for k in range(LOSSES):
        for phi in every:
            g, u = gain[k, range(ACTIONS), list(phi)].sum(), squares[k, range(ACTIONS), phi].sum()
            total += float(np.exp(RATES * g - CURBS * u).mean())
    price = events.share * events.experts / LOSSES
    assert both - alone == pytest.approx(price * total / len(every))


def test_the_potential_grows_by_no_more_than_the_certificates() -> None:
    """W of a whole run stays below N e^(k S) (1 + r + l mean ln(1 + C))."""
    forecaster, _ = played("hostile", 200)
    bound: Any = forecaster.known_bound()
    mean = forecaster.events.log_potential(forecaster.band) - np.log(forecaster.events.experts)
    assert mean <= bound.rule.growth(bound) + 1e-9


@pytest.mark.parametrize("kind", ["hostile", "switching", "random"])
def test_what_is_drawn_keeps_its_bound(kind: str) -> None:
    """Realised regret, against the bound that needs nothing for the draws; it may fail in 1 %."""
    for seed in range(5):
        protected, rng = group(seed), np.random.default_rng(seed)
        forecaster = UnbiasedPrediction(Assignments([protected], risk=0.01), seed=seed)
        log = []
        for t in range(150):
            forecast = forecaster.predict(t)
            truth = nature(kind, rng, forecast.mixture.mean, t)
            forecaster.update(truth)
            log.append((forecast.statistics[None], np.ones(1), truth, t % 2))
        most = forecaster.realised(protected)
        assert np.all(regrets(protected, log) <= most)
        known = forecaster.known_bound().realised(protected.weights, policies=1)
        assert np.all(regrets(protected, log) / 150 <= known)
