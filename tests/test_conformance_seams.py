"""One suite for what a forecaster is put together from: rules, events, references, and the whole.

Solvers have theirs in ``forecaster/test_solvers.py``, with every response.
"""

from itertools import product
from typing import Any

import numpy as np
import pytest
from weight_rules import check_bound, check_weights

from regretless.forecaster.delayed import Delayed
from regretless.forecaster.events.base import EventSet, Intervals
from regretless.forecaster.events.decision_events import VectorEvents
from regretless.forecaster.events.loss_events import Assignments, GainEvents
from regretless.forecaster.events.loss_table import ProtectedLosses, played_of
from regretless.forecaster.minimax.cube import Box
from regretless.forecaster.models import Aggregate, Constant, LastValue, RunningMean
from regretless.forecaster.reference import Band, Reference
from regretless.forecaster.switch_test import SwitchTest
from regretless.forecaster.unbiased import UnbiasedPrediction, certificate_limit
from regretless.forecaster.weights import RULES, BoundInputs, Moment, rule_of
from regretless.market.best_response import best_response, expected_losses
from regretless.market.core.arrays import Array

SIZE, LOSSES, ACTIONS, MODELS, ROUNDS = 3, 4, 3, 2, 120
POLICIES = (lambda x: int(x) % ACTIONS, lambda x: int(x) // 2 % ACTIONS)
RNG = np.random.default_rng(0)
OFFSET = RNG.random((LOSSES, ACTIONS)) / 4
GROUP = ProtectedLosses(OFFSET, RNG.dirichlet(np.ones(SIZE), (LOSSES, ACTIONS)), POLICIES)
PLAIN = "coordinates", "gains", "assignments", "sum"
SETS = *PLAIN, *(f"intervals of {name}" for name in PLAIN if name != "assignments")
SOLVERS = "box", "off ties", "wishing"


def events_of(name: str, rule: str) -> EventSet:
    group, own = [GROUP], rule_of(rule)
    if name.startswith("intervals"):
        return Intervals(lambda: events_of(name.rpartition(" ")[2], rule), rounds=ROUNDS)
    if name == "assignments":
        return Assignments(group, own, models=MODELS)
    if name == "gains":
        return GainEvents(group, own, models=MODELS)
    coordinates = VectorEvents(group, own)
    if name == "coordinates":
        return coordinates
    return coordinates + GainEvents(group, own, models=MODELS, fixed=False)


def charged(events: EventSet, rounds: range) -> EventSet:
    for t in rounds:
        rng = np.random.default_rng([7, t])
        told = events.rows.best_responses(rng.random((MODELS, SIZE)))
        points, mass, truth = rng.random((2, SIZE)), np.array([0.3, 0.7]), rng.random(SIZE) ** 2
        events.charge(events.active(t, told), played_of(events.rows, points, mass, truth))
    return events


def table(events: EventSet, band: Band) -> Array:
    told = events.rows.best_responses(np.random.default_rng(1).random((MODELS, SIZE)))
    return events.table_of(events.active(2, told), Moment(60, events.experts, band))


@pytest.mark.parametrize("zone", [0.0, 0.5])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", SETS)
def test_events_weigh_and_resume(name: str, rule: str, zone: float) -> None:
    events, twin = charged(events_of(name, rule), range(70)), events_of(name, rule)
    band = Band(zone)
    first = table(events, band)
    assert first.shape == events.rows.shape
    assert np.isfinite(first).all()
    twin.restore(events.state())
    assert table(events, band).tobytes() == table(twin, band).tobytes() == first.tobytes()
    for own in (events, twin):
        charged(own, range(70, 100))
    assert table(twin, band).tobytes() == table(events, band).tobytes()
    assert twin.spent() == events.spent() > 0
    assert twin.log_potential(band) == events.log_potential(band) > 0


@pytest.mark.parametrize("zone", [0.0, 0.5])
@pytest.mark.parametrize("trust", [None, SwitchTest(12), SwitchTest(12, 0.3)])
@pytest.mark.parametrize("name", RULES)
def test_no_gain_passes_what_a_rule_proves(
    name: str, trust: SwitchTest | None, zone: float
) -> None:
    check_bound(rule_of(name), trust=trust, zone=zone)


@pytest.mark.parametrize("name", RULES)
def test_weights_of_both_signs_and_of_any_scale_agree(name: str) -> None:
    check_weights(rule_of(name))


@pytest.mark.parametrize("name", RULES)
def test_a_budget_grows_with_what_it_is_spent_on(name: str) -> None:
    rule = rule_of(name)
    plain = rule.budget(BoundInputs(100, 1000, 0.1))
    assert rule.budget(BoundInputs(1000, 1000, 0.1)) > plain
    assert rule.budget(BoundInputs(100, 1000, 1.0)) > plain
    assert rule.budget(BoundInputs(100, 1000, 0.1, switch_test=SwitchTest(100))) > plain


@pytest.mark.parametrize("name", SETS)
def test_a_bound_that_does_not_apply_is_none_and_no_bound_is_nan(name: str) -> None:
    events, weights = events_of(name, "adaptive"), GROUP.weights
    bound = events.bound(BoundInputs(events.experts, 100, certificate_sum=0.1), "box")
    late, contextual = bound.over_stay(weights, joined=20), bound.contextual(weights)
    of_events = bound.event_bounds(np.array([3.0, 10.0]))
    always = bound.a_priori(weights, policies=2), bound.to_models(weights)
    windows = bound.over_window(weights, [32, 1], run=100)
    given = [own for own in (*always, windows, late, contextual, of_events) if own is not None]
    assert all(np.isfinite(own).all() for own in given)
    assert (late is not None) == events.joinable
    assert (contextual is not None) == (of_events is not None) == events.crossed


def first_low(solution: Any) -> Array:
    """Wish for a first number that is low."""
    return np.asarray(solution.points[:, 0])


def made(events: str, rule: str, solver: str, delay: int) -> Any:
    """Put a forecaster together; where events have models, its reference is two, which may fail."""
    models = {"last": LastValue(SIZE), "mean": RunningMean(SIZE)}
    own = Reference(Aggregate(models, SIZE), give_up=1.5, turns=delay + 1)

    def turn() -> UnbiasedPrediction:
        box = Box(SIZE, off_ties=solver == "off ties")
        if solver == "wishing":
            box.prefer(first_low)
        modelled = not events.endswith("coordinates")
        return UnbiasedPrediction(events_of(events, rule), box, own if modelled else None)

    return Delayed(turn, delay) if delay else turn()


WHOLES = [
    (name, rule, SOLVERS[(i + j) % 3], (0, 2)[(i + j // 2) % 2])
    for (i, name), (j, rule) in product(enumerate(SETS), enumerate(RULES))
]  # every set of events meets every rule, and each of them every solver and delay


@pytest.mark.parametrize("parts", WHOLES)
def test_forecasters_resume_and_keep_regret_below_their_promise(parts: Any) -> None:
    """Decision swap regret by its definition, in expectation, on a stream that turns hostile."""
    player, twin = made(*parts), made(*parts)
    regret = np.zeros((LOSSES, ACTIONS, ACTIONS + len(POLICIES)))
    for t in range(ROUNDS):
        mixture = player.mixture(t)
        truth = mixture.mean < 0.5 if t >= 50 else 0.5 + 0.5 * np.sin(t / 6 + np.arange(SIZE))
        if t == 60:
            twin.restore(player.state())
        if t >= 60:
            assert twin.mixture(t).points.tobytes() == mixture.points.tobytes()
            assert (player.mixture(t).points == mixture.points).all()
            twin.update(truth)
        player.update(truth)
        lost = GROUP.offset + GROUP.weights @ truth
        comparators = [*range(ACTIONS), *(policy(t) for policy in POLICIES)]
        for point, mass in zip(mixture.points, mixture.weights, strict=True):
            played = best_response(expected_losses(GROUP.offset, GROUP.weights, point))
            for k, action in enumerate(played):
                regret[k, action] += mass * (lost[k, action] - lost[k, comparators])
    turns = [(own, own.bias_bound()) for own in player.instances]
    promise = sum(
        b.inputs.rounds * b.a_priori(GROUP.weights, policies=len(POLICIES)) for _, b in turns
    )
    early = [(b.inputs.rounds, own.beforehand(b.inputs.rounds)) for own, b in turns]
    before = sum(n * b.a_priori(GROUP.weights, policies=len(POLICIES)) for n, b in early)
    known = sum(own.from_variation(GROUP) for own, _ in turns)
    assert (regret.max(2).sum(1) <= known + 1e-9).all()
    assert (known <= promise + 1e-9).all()
    assert (promise <= before + 1e-9).all() or any(b.inputs.trusted for _, b in turns)
    assert all(own.certificate_sum <= certificate_limit(own.time) for own, _ in turns)


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
