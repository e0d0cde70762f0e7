"""One suite for what a forecaster is put together from: rules, events, references, and the whole.

Solvers have theirs in ``forecaster/test_solvers.py``, with every response.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from regretless.forecaster.delayed import Delayed
from regretless.forecaster.events.base import EventSet, Intervals
from regretless.forecaster.events.biases import VectorEvents
from regretless.forecaster.events.bounds import BiasBound
from regretless.forecaster.events.gains import Assignments, GainEvents
from regretless.forecaster.events.loss_table import ProtectedLosses, played_of
from regretless.forecaster.events.weights import RULES, Moment, Stand, rule_of
from regretless.forecaster.minimax.cube import Box
from regretless.forecaster.minimax.game import HullSolver
from regretless.forecaster.models import Aggregate, Constant, LastValue, RunningMean
from regretless.forecaster.reference import Band, Reference, Trust
from regretless.forecaster.unbiased import UnbiasedPrediction, certificate_limit
from regretless.market.core.arrays import Array
from regretless.market.response import best_response, expected_losses

SIZE, LOSSES, ACTIONS, MODELS, ROUNDS = 3, 4, 3, 2, 120
POLICIES = (lambda x: int(x) % ACTIONS, lambda x: int(x) // 2 % ACTIONS)


def group() -> ProtectedLosses:
    rng = np.random.default_rng(0)
    shape = LOSSES, ACTIONS
    return ProtectedLosses(rng.random(shape) / 4, rng.dirichlet(np.ones(SIZE), shape), POLICIES)


GROUP = group()
SETS: dict[str, Callable[[Any], EventSet]] = {
    "coordinates": lambda rule: VectorEvents([GROUP], rule),
    "gains": lambda rule: GainEvents([GROUP], rule, models=MODELS),
    "assignments": lambda rule: Assignments([GROUP], rule, models=MODELS),
    "sum": lambda rule: (
        VectorEvents([GROUP], rule) + GainEvents([GROUP], rule, models=MODELS, fixed=False)
    ),
    "intervals": lambda rule: Intervals(lambda: VectorEvents([GROUP], rule), rounds=ROUNDS),
    "intervals of gains": lambda rule: Intervals(
        lambda: GainEvents([GROUP], rule, models=MODELS), rounds=ROUNDS
    ),
    "intervals of a sum": lambda rule: Intervals(
        lambda: VectorEvents([GROUP], rule) + GainEvents([GROUP], rule, models=MODELS, fixed=False),
        rounds=ROUNDS,
    ),
}
MODELLED = [name for name in SETS if name not in ("coordinates", "intervals")]


def charged(events: EventSet, rounds: range) -> EventSet:
    for t in rounds:
        rng = np.random.default_rng([7, t])
        told = events.rows.best_responses(rng.random((MODELS, SIZE)))
        points, mass, truth = rng.random((2, SIZE)), np.array([0.3, 0.7]), rng.random(SIZE) ** 2
        events.charge(events.active(t, told), played_of(events.rows, points, mass, truth))
    return events


def table(events: EventSet, band: Band, time: int = 60) -> Array:
    told = events.rows.best_responses(np.random.default_rng(1).random((MODELS, SIZE)))
    return events.table_of(events.active(2, told), Moment(time, events.experts, band))


@pytest.mark.parametrize("zone", [0.0, 0.5])
@pytest.mark.parametrize("trust", [None, Trust(12), Trust(12, 0.3)])
@pytest.mark.parametrize("name", RULES)
def test_no_gain_passes_what_a_rule_proves(name: str, trust: Trust | None, zone: float) -> None:
    """Gains that push the leading expert as far as sum w g <= 0 lets them, from a head start."""
    rule, count, rounds = rule_of(name), 12, 400
    rng, band = np.random.default_rng(1), Band(zone)
    gain, variation = np.zeros(count), np.zeros(count)
    if trust:  # all as far as a reference that is trusted still lets them, and a step beyond
        variation[:] = 40.0
        gain[:] = trust.limit(variation) + 1.0
    begun = 40 if trust else 0
    for t in range(rounds):
        found = rule.weigh(gain, variation, Moment(begun + t + 1, count, band))
        weights, _ = found.weights(found.top, 1.0)
        assert (weights >= 0).all()
        up = rng.random(count) < rng.choice([0.05, 0.5])
        up[(gain / np.sqrt(variation + 1)).argmax()] = True
        ahead, behind = max(weights @ up, 1e-300), max(weights @ ~up, 1e-300)
        step = np.where(up, min(1, behind / ahead), -min(1, ahead / behind))
        gain += step
        variation += step**2 if rule.squared else np.abs(step)
        stand = Stand(rule, count, begun + t + 1, 0.0, band, trust)
        greatest = rule.greatest(variation, rule.budget(stand)) + zone * np.sqrt(variation)
        assert (gain <= greatest + 1e-9).all()


@pytest.mark.parametrize("name", RULES)
def test_a_budget_grows_with_what_it_is_spent_on(name: str) -> None:
    rule = rule_of(name)
    plain = Stand(rule, 100, 1000, 0.1)
    harder = [
        Stand(rule, 1000, 1000, 0.1),
        Stand(rule, 100, 1000, 1.0),
        Stand(rule, 100, 1000, 0.1, trust=Trust(100)),
    ]
    assert all(rule.budget(stand) > rule.budget(plain) for stand in harder)


@pytest.mark.parametrize("zone", [0.0, 0.5])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", SETS)
def test_events_weigh_and_resume(name: str, rule: str, zone: float) -> None:
    events, band = charged(SETS[name](rule_of(rule)), range(70)), Band(zone)
    first = table(events, band)
    assert first.shape == events.rows.shape
    assert np.isfinite(first).all()
    assert (table(events, band) == first).all()
    twin = SETS[name](rule_of(rule))
    twin.restore(events.state())
    assert table(twin, band).tobytes() == first.tobytes()
    for own in (events, twin):
        charged(own, range(70, 100))
    assert table(twin, band).tobytes() == table(events, band).tobytes()
    assert twin.spent() == events.spent() > 0
    assert twin.log_potential(band) == events.log_potential(band) > 0


@pytest.mark.parametrize("name", SETS)
def test_a_bound_that_does_not_apply_is_none_and_no_bound_is_nan(name: str) -> None:
    events = SETS[name](rule_of("adaptive"))
    bound = events.bound(BiasBound(events.rule, events.experts, 100, certificate_sum=0.1))
    answers = {
        "regret": bound.regret(GROUP.weights, policies=2),
        "models": bound.regret_to_models(GROUP.weights),
        "late": bound.since(GROUP.weights, joined=20),
        "contextual": bound.contextual(GROUP.weights),
        "events": bound.of_events(np.array([3.0, 10.0])),
        "intervals": bound.over_intervals(GROUP.weights, [32, 1], run=100),
    }
    assert all(np.isfinite(own).all() for own in answers.values() if own is not None)
    assert (answers["late"] is not None) == events.joinable
    assert (answers["contextual"] is not None) == events.crossed
    assert (answers["events"] is not None) == events.crossed


def first_low(solution: Any) -> Array:
    """Wish for a first number that is low."""
    return np.asarray(solution.points[:, 0])


SOLVERS: dict[str, Callable[[], HullSolver]] = {
    "box": lambda: Box(SIZE),
    "off ties": lambda: Box(SIZE, off_ties=True),
    "wishing": lambda: wishing(Box(SIZE)),
}


def wishing(solver: HullSolver) -> HullSolver:
    solver.prefer(first_low)
    return solver


def reference(give_up: float, turns: int) -> Reference:
    """Make a reference of two models, both of which may fail."""
    models = {"last": LastValue(SIZE), "mean": RunningMean(SIZE)}
    return Reference(Aggregate(models, SIZE), give_up=give_up, turns=turns)


def made(name: str, rule: str, solver: str, *, delay: int, trust: float) -> Any:
    own = reference(trust, delay + 1) if name in MODELLED else None

    def turn() -> UnbiasedPrediction:
        return UnbiasedPrediction(SETS[name](rule_of(rule)), SOLVERS[solver](), own)

    return Delayed(turn, delay) if delay else turn()


def truth(t: int, mean: Array) -> Array:
    """Return s(y): a season, then what the mean of the mixture is not."""
    season = 0.5 + 0.5 * np.sin(t / 6 + np.arange(SIZE))
    return season if t < 50 else np.asarray(mean < 0.5, dtype=np.float64)


WHOLES = [
    (name, rule, list(SOLVERS)[(i + j) % 3], (0, 2)[(i + j // 2) % 2])
    for (i, name), (j, rule) in product(enumerate(SETS), enumerate(RULES))
]  # every set of events meets every rule, and each of them every solver and delay


@pytest.mark.parametrize(("name", "rule", "solver", "delay"), WHOLES)
def test_forecasters_resume_and_keep_regret_below_their_promise(
    name: str, rule: str, solver: str, delay: int
) -> None:
    """Decision swap regret by its definition, in expectation, on a stream that turns hostile."""
    player, twin = (made(name, rule, solver, delay=delay, trust=1.5) for _ in range(2))
    regret = np.zeros((LOSSES, ACTIONS, ACTIONS + len(POLICIES)))
    for t in range(ROUNDS):
        if t == 60:
            twin.restore(player.state())
        mixture = player.mixture(t)
        if t >= 60:
            assert twin.mixture(t).points.tobytes() == mixture.points.tobytes()
            assert (player.mixture(t).points == mixture.points).all()
        came = truth(t, mixture.mean)
        lost = GROUP.offset + GROUP.weights @ came
        comparators = [*range(ACTIONS), *(policy(t) for policy in POLICIES)]
        for point, mass in zip(mixture.points, mixture.weights, strict=True):
            played = best_response(expected_losses(GROUP.offset, GROUP.weights, point))
            for k in range(LOSSES):
                regret[k, played[k]] += mass * (lost[k, played[k]] - lost[k, comparators])
        for own in (player, twin) if t >= 60 else (player,):
            own.update(came)
    total = regret.max(2).sum(1)
    turns = [own.bias_bound() for own in player.instances]
    promise = sum(b.rounds * b.regret(GROUP.weights, policies=len(POLICIES)) for b in turns)
    known = sum(own.from_variation(GROUP) for own in player.instances)
    assert (total <= known + 1e-9).all()
    assert (known <= promise + 1e-9).all()
    before = sum(b.rounds * own.beforehand(b.rounds).regret(GROUP.weights, policies=2)
                 for b, own in zip(turns, player.instances, strict=True))  # fmt: skip
    assert (promise <= before + 1e-9).all() or any(b.trusted for b in turns)
    assert all(own.certificate_sum <= certificate_limit(own.time) for own in player.instances)


@pytest.mark.parametrize("delay", [0, 3])
def test_a_reference_is_judged_once_a_round_and_not_before_it_is_told(delay: int) -> None:
    own = Reference(Constant(SIZE, value=0.9), give_up=0.3, turns=delay + 1)

    def turn() -> UnbiasedPrediction:
        return UnbiasedPrediction(VectorEvents([GROUP]), reference=own)

    player = Delayed(turn, delay) if delay else turn()
    for t in range(40):
        mixture = player.mixture(t)
        if own.trusted:
            assert mixture.certificate is None
            assert (mixture.points == 0.9).all()
        player.update(np.full(SIZE, 0.1))
        assert own.time == own.model.inner.time == max(t + 1 - delay, 0)
    assert own.unchanged_rounds >= own.disproved_at
