"""Margins: regret is what was charged less them, and bounds on gains less margins bound regret."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from small_scenarios import cohort_table, make_scenario

from regretless.forecaster import GainEvents, ProtectedLosses, UnbiasedPrediction, VectorEvents
from regretless.forecaster.events.base import EventSet, Intervals
from regretless.forecaster.events.loss_events import Assignments
from regretless.forecaster.events.loss_table import LossTable, Played, played_of, responses_at
from regretless.forecaster.guarantees.draws import ASSIGNED
from regretless.forecaster.guarantees.gain_bound import ASSIGNMENT_COSTS, ASSIGNMENT_RATES
from regretless.forecaster.models import Constant
from regretless.forecaster.reference import Reference
from regretless.forecaster.universal import CellEvents, Line
from regretless.forecaster.weights import ExponentialWeights, SecondOrderWeights, WeightRule
from regretless.market.core.arrays import Array

ROUNDS = 60
POLICIES = (lambda x: int(x) % 3, lambda x: (int(x) // 3) % 3)

EVENTS: dict[str, Callable[[ProtectedLosses], EventSet]] = {
    "gains": lambda group: GainEvents([group]),
    "assignments": lambda group: Assignments([group]),
    "coordinates": lambda group: VectorEvents([group]),
    "intervals": lambda group: Intervals(lambda: VectorEvents([group]), rounds=2 * ROUNDS),
}


def listed_losses(eta: float | None = None) -> ProtectedLosses:
    """Return four losses of three actions in two numbers, with two policies."""
    rng = np.random.default_rng(5)
    weights = rng.uniform(-0.25, 0.25, (4, 3, 2))
    return ProtectedLosses(rng.uniform(0.5, 0.6, (4, 3)), weights, POLICIES, eta=eta)


def random_round(rows: LossTable, rng: np.random.Generator) -> Played:
    """Play a mixture of three predictions."""
    return played_of(rows, rng.random((3, 2)), rng.dirichlet(np.ones(3)), rng.random(2))


def regret_of_round(group: ProtectedLosses, played: Played, x: int) -> Array:
    """Return what actions cost beyond comparators in a round, from the definition (K, A, C)."""
    points, mass, truth = played.distribution
    losses = group.offset + group.weights @ truth
    chance = np.zeros(group.offset.shape)
    for point, weight in zip(points, mass, strict=True):
        chance += weight * responses_at(LossTable([group]), point).reshape(chance.shape)
    n_actions = group.offset.shape[1]
    comparators = [*range(n_actions), *(policy(x) for policy in group.policies)]
    return np.asarray(chance[:, :, None] * (losses[:, :, None] - losses[:, None, comparators]))


@pytest.mark.parametrize("trusted_rounds", [0, ROUNDS // 2])
@pytest.mark.parametrize("eta", [None, 4.0])
@pytest.mark.parametrize("events", EVENTS)
def test_gains_less_margins_are_regrets(
    events: str, eta: float | None, trusted_rounds: int
) -> None:
    group = listed_losses(eta)
    charged = EVENTS[events](group)
    rng = np.random.default_rng(1)
    regret = np.zeros((4, 3, 5))
    for x in range(ROUNDS):
        played = random_round(charged.rows, rng)
        charged.charge(charged.active(x), played._replace(reference_is_trusted=x < trusted_rounds))
        regret += regret_of_round(group, played, x)
    some_losses = np.array([2, 0, 3])
    np.testing.assert_allclose(charged.regretted(group, some_losses), regret[some_losses])


@pytest.mark.parametrize("events", EVENTS)
def test_best_responses_have_no_negative_margin(events: str) -> None:
    group = listed_losses()
    charged = EVENTS[events](group)
    rng = np.random.default_rng(2)
    for x in range(ROUNDS):
        charged.charge(charged.active(x), random_round(charged.rows, rng))
    margins = charged.margins(group, np.arange(4))
    assert margins.min() > -1e-12
    assert margins.max() > 0.1


def test_the_most_that_coordinates_gained_is_the_sum_over_their_greatest_biases() -> None:
    group = listed_losses()
    charged = VectorEvents([group])
    forecaster = UnbiasedPrediction(charged)
    rng = np.random.default_rng(6)
    for x in range(ROUNDS):
        charged.charge(charged.active(x), random_round(charged.rows, rng))
    bound = forecaster.bias_bound().with_inputs(rounds=ROUNDS)
    some_losses = np.array([3, 1])
    coefficients = group.weights[some_losses]  # (k, A, n)
    gaps = np.abs(coefficients[:, :, np.newaxis] - coefficients[:, np.newaxis])  # (k, A, A, n)

    greatest = charged.most_gained(bound, group, some_losses)

    decision_events, cross_events = charged.views
    greatest_bias = bound.bias_at(decision_events.variation.reshape(4, 3, 2))[some_losses]
    over_actions = (gaps * greatest_bias[:, :, np.newaxis]).sum(3)
    np.testing.assert_array_equal(greatest[:, :, :3], over_actions)
    variation_by_suggestion = cross_events.variation.reshape(2, 3, 4, 3, 2)[:, :, some_losses]
    greatest_bias = bound.bias_at(variation_by_suggestion)  # (policies, suggestions, k, A, n)
    over_policies = np.einsum("kasn,pskan->kap", gaps, greatest_bias)
    np.testing.assert_allclose(greatest[:, :, 3:], over_policies, rtol=1e-14)


def test_regrets_are_charged_without_a_margin_while_a_reference_is_trusted() -> None:
    group = listed_losses()
    charged = GainEvents([group])
    rng = np.random.default_rng(3)
    for x in range(ROUNDS):
        played = random_round(charged.rows, rng)._replace(reference_is_trusted=True)
        charged.charge(charged.active(x), played)
    np.testing.assert_allclose(charged.margins(group, np.arange(4)), 0.0, atol=1e-12)


def test_cells_know_the_regret_of_a_task_that_nobody_listed() -> None:
    rng = np.random.default_rng(4)
    task = ProtectedLosses(rng.uniform(0, 0.5, (3, 3)), rng.uniform(-0.5, 0.5, (3, 3, 1)))
    unlisted = ProtectedLosses(np.zeros((1, 1)), np.zeros((1, 1, 1)))
    events = CellEvents([unlisted], 6)
    forecaster = UnbiasedPrediction(events, Line(6))
    regret = np.zeros((3, 3, 3))
    for _ in range(ROUNDS):
        mixture = forecaster.mixture()
        truth = rng.random(1)
        forecaster.update(truth)
        played = played_of(LossTable([task]), mixture.points, mixture.weights, truth)
        regret += regret_of_round(task, played, 0)
    every_task = np.arange(3)
    np.testing.assert_allclose(events.regretted(task, every_task), regret, atol=1e-12)
    assert (regret.max(2).sum(1) <= forecaster.from_variation(task)).all()
    without_margins = events.most_gained(forecaster.known_bound(), task, every_task)
    assert (forecaster.from_variation(task) < without_margins.max(2).sum(1)).all()


def played_forecaster(group: ProtectedLosses, events: EventSet, **options: Any) -> Any:
    """Play rounds with outcomes near one corner."""
    forecaster = UnbiasedPrediction(events, **options)
    rng = np.random.default_rng(6)
    for x in range(ROUNDS):
        forecaster.predict(x)
        forecaster.update(rng.beta(4, 1, 2))
    return forecaster


@pytest.mark.parametrize("risk", [None, ASSIGNED])
def test_no_assignment_may_regret_more_than_its_potential_allows_less_its_margins(
    risk: float | None,
) -> None:
    """The bound is over all assignments at once: by brute force over these."""
    group = listed_losses()
    events = Assignments([group], risk=risk)
    forecaster = played_forecaster(group, events)
    bound: Any = forecaster.known_bound()
    every_loss = np.arange(4)
    regret_at_entry = np.zeros((1, 1, 1))
    regret_bound = events._regret_bound_of_assignments(bound, group, every_loss, regret_at_entry)
    assert regret_bound is not None
    (member,) = events.members
    ((_gain, squares, gain_before_games, margin),) = events._assignment_sums
    level = bound.assignment_level(3, 5)
    for loss in every_loss:
        greatest = -np.inf
        for comparators in product(range(5), repeat=3):
            phi = (loss, np.arange(3), list(comparators))
            in_games = ((level + ASSIGNMENT_COSTS * squares[phi].sum()) / ASSIGNMENT_RATES).min()
            total = gain_before_games[phi].sum() + in_games - margin[phi].sum()
            greatest = max(greatest, member.scale[loss] * total)
        assert greatest <= regret_bound[loss]
        assert regret_bound[loss] <= 1.05 * greatest


def test_a_quantal_response_pays_for_what_it_loses_and_not_for_the_most_it_can_lose() -> None:
    """The gap ln(A) / eta is 0.35 here, and bounds that count margins do without it."""
    cohort = cohort_table(
        "agents",
        count=4,
        actions=3,
        response="quantal",
        eta=np.log(3) / 0.35,
        measures=["swap", "decision_swap"],
    )
    scenario = make_scenario(cohort, rounds=400, forecaster={"models": []})
    model = scenario.build()
    model.run()
    agents = model.agents_frame()
    assert (agents["decision_swap_regret"] <= agents["bound_from_variation"]).all()
    assert (agents["bound_from_variation"] < agents["bound"] - 0.2).all()


def test_who_never_gives_a_reference_up_is_bounded_by_its_regret() -> None:
    group = listed_losses(eta=4.0)
    events = Assignments([group])
    reference = Reference(Constant(2, value=0.8))
    forecaster = played_forecaster(group, events, reference=reference)
    assert reference.trusted
    regret = events.regretted(group, np.arange(4)).max(2).sum(1)
    np.testing.assert_allclose(forecaster.from_variation(group), regret, atol=1e-8)


@pytest.mark.parametrize("rule", [SecondOrderWeights(), ExponentialWeights()])
def test_no_bound_is_printed_of_assignments_beside_a_rule_that_counts_no_other_potential(
    rule: WeightRule,
) -> None:
    group = listed_losses()
    for risk in (None, ASSIGNED):
        forecaster = played_forecaster(group, Assignments([group], rule, risk=risk))
        assert np.isnan(forecaster.bias_bound().a_priori(group.weights, policies=2)).all()
        assert np.isnan(forecaster.from_variation(group)).all()
        assert forecaster.realised(group) is None


def test_intervals_promise_nothing_once_a_run_is_longer_than_they_were_made_for() -> None:
    group = listed_losses()
    events = Intervals(lambda: VectorEvents([group]), rounds=ROUNDS)
    forecaster = played_forecaster(group, events)
    assert np.isfinite(forecaster.bias_bound().a_priori(group.weights)).all()
    forecaster.predict(0)
    forecaster.update([0.5, 0.5])
    bound = forecaster.bias_bound()
    assert np.isnan(bound.a_priori(group.weights)).all()
    assert np.isnan(bound.over_window(group.weights, [32], run=ROUNDS)).all()
    assert np.isnan(forecaster.from_variation(group)).all()
