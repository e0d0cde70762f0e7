"""One suite for what a forecaster is put together from: rules, events, references, and the whole.

Solvers have theirs in ``forecaster/test_solvers.py``, with every response.
"""

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

SIZE = 3  # numbers of an outcome
N_LOSSES = 4
N_ACTIONS = 3
N_MODELS = 2
N_ROUNDS = 120
POLICIES = (lambda x: int(x) % N_ACTIONS, lambda x: int(x) // 2 % N_ACTIONS)
RNG = np.random.default_rng(0)
OFFSET = RNG.random((N_LOSSES, N_ACTIONS)) / 4
GROUP = ProtectedLosses(OFFSET, RNG.dirichlet(np.ones(SIZE), (N_LOSSES, N_ACTIONS)), POLICIES)
WITHOUT_INTERVALS = ["coordinates", "gains", "assignments", "sum"]
EVENT_SETS = [
    *WITHOUT_INTERVALS,
    "intervals of coordinates",
    "intervals of gains",
    "intervals of sum",
]
SOLVERS = ["box", "off ties", "wishing"]
DELAYS = [0, 2]

every_rule = pytest.mark.parametrize("rule", RULES)
every_event_set = pytest.mark.parametrize("events_name", EVENT_SETS)


def make_events(name: str, rule_name: str) -> EventSet:
    """Make the events of a name, of the group of losses, weighed by a rule."""
    if name.startswith("intervals"):
        inner = name.removeprefix("intervals of ")
        return Intervals(lambda: make_events(inner, rule_name), rounds=N_ROUNDS)
    rule = rule_of(rule_name)
    if name == "assignments":
        return Assignments([GROUP], rule, models=N_MODELS)
    if name == "gains":
        return GainEvents([GROUP], rule, models=N_MODELS)
    coordinates = VectorEvents([GROUP], rule)
    if name == "coordinates":
        return coordinates
    return coordinates + GainEvents([GROUP], rule, models=N_MODELS, fixed=False)


def charge(events: EventSet, rounds: range) -> None:
    """Tell events of random forecasts and outcomes in these rounds, the same for all."""
    for t in rounds:
        rng = np.random.default_rng([7, t])
        suggested = events.rows.best_responses(rng.random((N_MODELS, SIZE)))
        points = rng.random((2, SIZE))
        masses = np.array([0.3, 0.7])
        outcome = rng.random(SIZE) ** 2
        active = events.active(t, suggested)
        events.charge(active, played_of(events.rows, points, masses, outcome))


def weight_table(events: EventSet, band: Band) -> Array:
    """Return what the events weigh in one round."""
    model_points = np.random.default_rng(1).random((N_MODELS, SIZE))
    suggested = events.rows.best_responses(model_points)
    return events.table_of(events.active(2, suggested), Moment(60, events.experts, band))


@pytest.mark.parametrize("zone", [0.0, 0.5])
@every_rule
@every_event_set
def test_restored_events_weigh_and_go_on_as_those_that_were_saved(
    events_name: str, rule: str, zone: float
) -> None:
    events = make_events(events_name, rule)
    band = Band(zone)
    charge(events, range(70))
    table = weight_table(events, band)
    assert table.shape == events.rows.shape
    assert np.isfinite(table).all()
    restored = make_events(events_name, rule)
    restored.restore(events.state())
    assert weight_table(events, band).tobytes() == table.tobytes()  # to ask changes nothing
    assert weight_table(restored, band).tobytes() == table.tobytes()
    charge(events, range(70, 100))
    charge(restored, range(70, 100))
    assert weight_table(restored, band).tobytes() == weight_table(events, band).tobytes()
    assert restored.sum_of_log_variations() == events.sum_of_log_variations() > 0
    assert restored.log_potential(band) == events.log_potential(band) > 0


@pytest.mark.parametrize("zone", [0.0, 0.5])
@pytest.mark.parametrize("switch_test", [None, SwitchTest(12), SwitchTest(12, 0.3)])
@every_rule
def test_no_gain_passes_what_a_rule_proves(
    rule: str, switch_test: SwitchTest | None, zone: float
) -> None:
    check_bound(rule_of(rule), trust=switch_test, zone=zone)


@every_rule
def test_weights_of_both_signs_and_of_any_scale_agree(rule: str) -> None:
    check_weights(rule_of(rule))


@every_rule
def test_a_budget_grows_with_experts_certificates_and_a_switch(rule: str) -> None:
    weight_rule = rule_of(rule)
    budget = weight_rule.budget(BoundInputs(100, 1000, 0.1))
    assert weight_rule.budget(BoundInputs(1000, 1000, 0.1)) > budget
    assert weight_rule.budget(BoundInputs(100, 1000, 1.0)) > budget
    assert weight_rule.budget(BoundInputs(100, 1000, 0.1, switch_test=SwitchTest(100))) > budget


@every_event_set
def test_a_bound_that_does_not_apply_is_none_and_no_bound_is_nan(events_name: str) -> None:
    events = make_events(events_name, "adaptive")
    weights = GROUP.weights
    bound = events.bound(BoundInputs(events.experts, 100, certificate_sum=0.1), "box")
    over_stay = bound.over_stay(weights, joined=20)
    contextual = bound.contextual(weights)
    of_events = bound.event_bounds(np.array([3.0, 10.0]))
    values = [
        bound.a_priori(weights, policies=2),
        bound.to_models(weights),
        bound.over_window(weights, [32, 1], run=100),
        over_stay,
        contextual,
        of_events,
    ]
    for value in values:
        assert value is None or np.isfinite(value).all()
    assert (over_stay is not None) == events.joinable
    assert (contextual is not None) == events.crossed
    assert (of_events is not None) == events.crossed


def first_number(solution: Any) -> Array:
    """Wish for a first number that is low."""
    return np.asarray(solution.points[:, 0])


def make_forecaster(events_name: str, rule: str, solver: str, delay: int) -> Any:
    """Put a forecaster together; where events have models, its reference is two, which may fail."""
    models = {"last": LastValue(SIZE), "mean": RunningMean(SIZE)}
    has_models = not events_name.endswith("coordinates")
    reference = Reference(Aggregate(models, SIZE), give_up=1.5, turns=delay + 1)

    def make_turn() -> UnbiasedPrediction:
        box = Box(SIZE, off_ties=solver == "off ties")
        if solver == "wishing":
            box.prefer(first_number)
        events = make_events(events_name, rule)
        return UnbiasedPrediction(events, box, reference if has_models else None)

    return Delayed(make_turn, delay) if delay else make_turn()


def every_combination() -> list[tuple[str, str, str, int]]:
    """Return parts such that every set of events meets every rule, each of them all else."""
    combinations = []
    for i, events_name in enumerate(EVENT_SETS):
        for j, rule in enumerate(RULES):
            solver = SOLVERS[(i + j) % len(SOLVERS)]
            delay = DELAYS[(i + j // 2) % len(DELAYS)]
            combinations.append((events_name, rule, solver, delay))
    return combinations


def hostile_outcome(t: int, mean: Array) -> Array:
    """Return the outcome of a stream that is a wave at first, and then opposes the forecast."""
    if t < 50:
        return 0.5 + 0.5 * np.sin(t / 6 + np.arange(SIZE))
    return (mean < 0.5).astype(float)


def add_regret(regret: Array, mixture: Any, outcome: Array, t: int) -> None:
    """Add a round's expected regret of each loss, action played and comparator, in place."""
    losses = GROUP.offset + GROUP.weights @ outcome
    comparators = [*range(N_ACTIONS), *(policy(t) for policy in POLICIES)]
    for point, mass in zip(mixture.points, mixture.weights, strict=True):
        actions = best_response(expected_losses(GROUP.offset, GROUP.weights, point))
        for k, action in enumerate(actions):
            regret[k, action] += mass * (losses[k, action] - losses[k, comparators])


def promised_before(forecaster: Any) -> float:
    """Return the regret that was promised before the first round, of all turns together."""
    total = 0.0
    for turn in forecaster.instances:
        rounds = turn.bias_bound().inputs.rounds
        total += rounds * turn.beforehand(rounds).a_priori(GROUP.weights, policies=len(POLICIES))
    return total


def promised_now(forecaster: Any) -> float:
    """Return the regret that is promised with what has been spent so far."""
    total = 0.0
    for turn in forecaster.instances:
        bound = turn.bias_bound()
        total += bound.inputs.rounds * bound.a_priori(GROUP.weights, policies=len(POLICIES))
    return total


every_forecaster = pytest.mark.parametrize(
    ("events_name", "rule", "solver", "delay"), every_combination()
)


@every_forecaster
def test_decision_swap_regret_stays_below_each_promise(
    events_name: str, rule: str, solver: str, delay: int
) -> None:
    """By its definition and in expectation, on a stream that turns hostile.

    It is below what the variation so far allows, that below what is promised now, and that below
    what was promised before the first round, unless a reference was trusted.
    """
    forecaster = make_forecaster(events_name, rule, solver, delay)
    regret = np.zeros((N_LOSSES, N_ACTIONS, N_ACTIONS + len(POLICIES)))
    for t in range(N_ROUNDS):
        mixture = forecaster.mixture(t)
        outcome = hostile_outcome(t, mixture.mean)
        forecaster.update(outcome)
        add_regret(regret, mixture, outcome, t)
    decision_swap_regret = regret.max(2).sum(1)
    turns = forecaster.instances
    from_variation = sum(turn.from_variation(GROUP) for turn in turns)
    assert (decision_swap_regret <= from_variation + 1e-9).all()
    assert (from_variation <= promised_now(forecaster) + 1e-9).all()
    if not any(turn.bias_bound().inputs.trusted for turn in turns):
        assert (promised_now(forecaster) <= promised_before(forecaster) + 1e-9).all()
    for turn in turns:
        assert turn.certificate_sum <= certificate_limit(turn.time)


@every_forecaster
def test_a_restored_forecaster_announces_what_the_saved_one_does(
    events_name: str, rule: str, solver: str, delay: int
) -> None:
    saved_at = 60
    forecaster = make_forecaster(events_name, rule, solver, delay)
    for t in range(saved_at):
        forecaster.update(hostile_outcome(t, forecaster.mixture(t).mean))
    restored = make_forecaster(events_name, rule, solver, delay)
    restored.restore(forecaster.state())
    for t in range(saved_at, saved_at + 20):
        mixture = forecaster.mixture(t)
        assert restored.mixture(t).points.tobytes() == mixture.points.tobytes()
        assert (forecaster.mixture(t).points == mixture.points).all()  # to ask changes nothing
        outcome = hostile_outcome(t, mixture.mean)
        forecaster.update(outcome)
        restored.update(outcome)


@pytest.mark.parametrize("delay", [0, 3])
def test_a_reference_is_judged_once_a_round_and_not_before_it_is_told(delay: int) -> None:
    reference = Reference(Constant(SIZE, value=0.9), give_up=0.3, turns=delay + 1)

    def make_turn() -> UnbiasedPrediction:
        return UnbiasedPrediction(VectorEvents([GROUP]), reference=reference)

    forecaster = Delayed(make_turn, delay) if delay else make_turn()
    for t in range(40):
        mixture = forecaster.mixture(t)
        if reference.trusted:
            assert mixture.certificate is None
            assert (mixture.points == 0.9).all()
        forecaster.update(np.full(SIZE, 0.1))
        assert reference.time == reference.model.inner.time == max(t + 1 - delay, 0)
    assert reference.unchanged_rounds >= reference.disproved_at
