"""Every bound of ``forecaster.guarantees`` is the formula that docs/theory.md publishes.

The formulas are written again here, from the definitions alone: no constant comes from the package.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from small_scenarios import cohort_table, make_scenario, play_to_end

from regretless.forecaster import ProtectedLosses
from regretless.forecaster.bases.polynomial import LinearBasis
from regretless.forecaster.guarantees import CoordinateBound, GainBound, swap_draws
from regretless.forecaster.minimax.cube import Box
from regretless.forecaster.models.past_outcomes import PastOutcomes
from regretless.forecaster.models.pool import DistributionPool
from regretless.forecaster.online.slots import Slot
from regretless.forecaster.reference import Band
from regretless.forecaster.switch_test import SwitchTest
from regretless.forecaster.unbiased import certificate_limit, tolerance_at
from regretless.forecaster.universal import CellBound
from regretless.forecaster.weights import (
    AdaptiveWeights,
    BoundInputs,
    ExponentialWeights,
    SecondOrderWeights,
)
from regretless.market.core.arrays import Array

EXPERTS = 48  # N
ROUNDS = 300  # T
CERTIFICATE_SUM = 0.7  # S
INPUTS = BoundInputs(EXPERTS, ROUNDS, CERTIFICATE_SUM)

# Two losses of three actions in a basis of two functions, and their norms by hand.
COEFFICIENTS = np.array(
    [
        [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]],
        [[0.4, 0.1], [0.1, 0.2], [0.0, 0.7]],
    ]
)
ACTIONS = 3  # A
WIDEST_GAP = np.array([2.0, 1.0])  # D
CENTRED_NORM = np.array([1.0, 0.5])  # lambda
EUCLIDEAN_GAP = np.array([math.sqrt(2.0), math.sqrt(0.52)])

GROWTH_OF_WEIGHTS = (math.exp(1 / 3) - math.exp(-1)) / 2  # k
REMAINDER = 0.338  # q
RATES = 0.75 * 0.5 ** np.arange(10)  # eta of second-order weights
ASSIGNMENT_RATES = 0.5 ** np.arange(1, 11)  # eta of assignments
BENNETT_RATES = 4.0 * 0.5 ** np.arange(14)  # h
FALSE_ALARMS = 0.01  # alpha
TIGHT = 1e-12


def equal(value: object, expected: object) -> bool:
    """Whether two bounds are the same within rounding."""
    return bool(value == pytest.approx(expected, rel=TIGHT, abs=TIGHT))


def cost(rates: Array) -> Array:
    """Return psi = -eta - ln(1 - eta)."""
    return np.asarray(-rates - np.log(1 - rates))


def growth(*, rounds: int = ROUNDS, start: float = 1.0) -> float:
    """Return P: the mean potential after so many rounds from where it starts."""
    of_variations = REMAINDER / math.log(2) * math.log(1 + rounds)
    return math.exp(GROWTH_OF_WEIGHTS * CERTIFICATE_SUM) * (start + of_variations)


def exponent(*, experts: float = EXPERTS, rounds: int = ROUNDS, start: float = 1.0) -> float:
    """Return Lambda = ln(1 + N (P - 1)); a prior divides N."""
    return math.log(1 + experts * (growth(rounds=rounds, start=start) - 1))


def by_halving(potential: Callable[[float], float], level: float) -> float:
    """Return the greatest gain at which a growing potential is at most a level."""
    low = 0.0
    high = 1e4
    while high - low > 1e-10:
        middle = (low + high) / 2
        if potential(middle) <= level:
            low = middle
        else:
            high = middle
    return low


def greatest_in_mixture(squares: float, level: float) -> float:
    """Return the greatest R with sum_j exp(eta_j R - psi_j V) / J <= e^level."""

    def log_potential(gain: float) -> float:
        return float(np.logaddexp.reduce(RATES * gain - cost(RATES) * squares) - math.log(10))

    return by_halving(log_potential, level)


def greatest_martingale(variance: float, log_count: float) -> float:
    """Return u(V) of martingales with steps of at most 2, together in 0.75 % of runs passed."""

    def log_wealth(value: float) -> float:
        bennett = np.exp(BENNETT_RATES) - 1 - BENNETT_RATES
        exponents = BENNETT_RATES * value / 2 - bennett * variance / 4
        return float(np.logaddexp.reduce(exponents) - math.log(14))

    return by_halving(log_wealth, log_count - math.log(0.0075))


# Statements 2, 3 and 8: biases


@pytest.mark.parametrize("prior", [1.0, 0.25])
def test_a_bias_by_adaptive_weights_is_a_band_and_the_root_of_its_occupancy(prior: float) -> None:
    bound = CoordinateBound(AdaptiveWeights(), INPUTS).with_inputs(band=Band(0.25), prior=prior)
    occupancy = np.array([1.0, 9.0, 100.0])
    of_weights = np.sqrt(3 * occupancy * exponent(experts=EXPERTS / prior))
    assert equal(bound.bias(occupancy), 0.25 * np.sqrt(occupancy) + of_weights)


def test_known_variations_stand_for_the_greatest_ones() -> None:
    with_variations = CoordinateBound(AdaptiveWeights(), INPUTS).with_inputs(
        log_start=math.log(1.5), mean_log_variation=2.0
    )
    of_variations = REMAINDER / math.log(2) * 2.0
    potential = math.exp(GROWTH_OF_WEIGHTS * CERTIFICATE_SUM) * (1.5 + of_variations)
    greatest = growth()
    assert potential < greatest
    expected = math.sqrt(3 * 50.0 * math.log(1 + EXPERTS * (potential - 1)))
    assert equal(with_variations.bias(50.0), expected)


def test_games_that_follow_a_reference_begin_with_what_it_was_trusted_with() -> None:
    trust = SwitchTest(EXPERTS)
    bound = CoordinateBound(AdaptiveWeights(), INPUTS).with_inputs(
        band=Band(0.25), switch_test=trust
    )
    start = math.exp((trust.reach(ROUNDS) - 0.25) ** 2 / 3)
    expected = 0.25 * math.sqrt(50.0) + math.sqrt(3 * 50.0 * exponent(start=start))
    assert equal(bound.bias(50.0), expected)


def test_a_bias_by_second_order_weights_is_where_the_mixture_meets_its_level() -> None:
    bound = CoordinateBound(SecondOrderWeights(), INPUTS).with_inputs(prior=0.25)
    level = math.log(EXPERTS / 0.25) + 0.75 * CERTIFICATE_SUM
    assert equal(bound.exponent, level)
    for squares in (0.0, 3.0, 200.0):
        bias = float(bound.bias(squares))
        greatest = greatest_in_mixture(squares, level)
        closed_form = ((level + math.log(10) + cost(RATES) * squares) / RATES).min()
        assert greatest - 1e-9 <= bias <= closed_form + 1e-9
        assert bias == pytest.approx(greatest, abs=1e-4)  # four steps of Newton end above it


def test_second_order_weights_begin_where_the_switch_test_ends() -> None:
    bound = CoordinateBound(SecondOrderWeights(), INPUTS).with_inputs(switch_test=SwitchTest(200))
    start = math.log(200 / FALSE_ALARMS) + 0.75
    assert equal(bound.exponent, math.log(EXPERTS) + start + 0.75 * CERTIFICATE_SUM)


@pytest.mark.parametrize("prior", [1.0, 0.25])
def test_a_bias_by_exponential_weights_is_as_printed(prior: float) -> None:
    entropy = math.log(EXPERTS)
    of_expert = math.log(EXPERTS / prior)
    known_horizon = CoordinateBound(ExponentialWeights(400), INPUTS).with_inputs(prior=prior)
    rate = math.sqrt(2 * entropy / 400)
    assert equal(known_horizon.bias(7.0), of_expert / rate + rate * ROUNDS / 2 + CERTIFICATE_SUM)
    anytime = CoordinateBound(ExponentialWeights(), INPUTS).with_inputs(prior=prior)
    last_rate = math.sqrt(entropy / ROUNDS)
    sum_of_rates = 2 * math.sqrt(entropy * ROUNDS)  # at most
    assert equal(anytime.bias(7.0), of_expert / last_rate + sum_of_rates / 2 + CERTIFICATE_SUM)


def test_exponential_weights_that_follow_a_reference_add_its_limit_and_a_round() -> None:
    trust = SwitchTest(EXPERTS)
    without_reference = CoordinateBound(ExponentialWeights(), INPUTS)
    later = without_reference.with_inputs(switch_test=trust)
    assert equal(later.bias(7.0) - without_reference.bias(7.0), float(trust.limit(ROUNDS)) + 1)


# Statement 4: the solver's error


def test_the_tolerance_is_the_lesser_of_two_and_its_sum_is_below_its_limit() -> None:
    times = np.arange(1, 5001)
    tolerances = np.minimum(0.05 / np.sqrt(times), 1.5 / times)
    assert equal([tolerance_at(time) for time in times.tolist()], tolerances)
    limits = np.array([certificate_limit(rounds) for rounds in times.tolist()])
    assert (tolerances.cumsum() <= limits).all()
    assert equal(limits[:900], 0.05 * (2 * np.sqrt(times[:900]) - 1))
    assert equal(limits[899:], 2.95 + 1.5 * np.log(times[899:] / 900))
    assert (limits[899:] <= 1.5 * np.log(times[899:]) - 7.2).all()


# Statement 2: regret through coordinates


def test_swap_regret_through_coordinates_is_the_widest_gap_by_all_biases() -> None:
    bound = CoordinateBound(AdaptiveWeights(), INPUTS)
    expected = WIDEST_GAP * math.sqrt(3 * ACTIONS * exponent() / ROUNDS)
    assert equal(bound.a_priori(COEFFICIENTS), expected)


def test_policies_cost_the_lesser_of_two_factors() -> None:
    bound = CoordinateBound(AdaptiveWeights(), INPUTS)
    by_centred_norm = CENTRED_NORM * (1 + math.sqrt(ACTIONS))
    by_other_suggestions = WIDEST_GAP * math.sqrt(ACTIONS - 1)
    factor = np.minimum(by_centred_norm, by_other_suggestions)
    expected = factor * math.sqrt(3 * ACTIONS * exponent() / ROUNDS)
    assert equal(bound.a_priori(COEFFICIENTS, policies=2), expected)


def test_in_the_simplex_the_euclidean_norm_counts_by_the_root_of_two() -> None:
    wide = np.concatenate([COEFFICIENTS, COEFFICIENTS], axis=2)  # four functions
    bound = CoordinateBound(AdaptiveWeights(), INPUTS, hull="simplex")
    absolute = 2 * WIDEST_GAP
    euclidean = math.sqrt(2) * math.sqrt(2) * EUCLIDEAN_GAP
    assert (euclidean < absolute).all()
    expected = euclidean * math.sqrt(3 * ACTIONS * exponent() / ROUNDS)
    assert equal(bound.a_priori(wide), expected)


def test_in_the_simplex_a_trusted_reference_may_spread_its_biases_over_coordinates() -> None:
    """What it may cost is no multiple of a root: equal shares of variation cost more than that."""
    coordinates = 50
    rounds = 2000
    gap = np.linspace(0.0, 0.1, 2)[None, :, None] * np.ones((1, 2, coordinates))
    trust = SwitchTest(2000)
    bound = CoordinateBound(
        AdaptiveWeights(),
        BoundInputs(2000, rounds, 0.0, switch_test=trust, trusted=True),
        hull="simplex",
    )
    variation_of_coordinate = 2 * (rounds / 2) / coordinates
    bias_of_coordinate = min(variation_of_coordinate, float(trust.limit(variation_of_coordinate)))
    cost_of_rounds = 2 * coordinates * 0.1 * bias_of_coordinate
    assert bound.a_priori(gap) * rounds >= cost_of_rounds
    contextual = bound.contextual(gap)
    assert contextual is not None
    variation_of_cell = 2 * (rounds / 4) / coordinates
    bias_of_cell = min(variation_of_cell, float(trust.limit(variation_of_cell)))
    assert contextual * rounds >= 4 * coordinates * 0.1 * bias_of_cell


def test_contextual_swap_regret_counts_pairs_of_actions_and_suggestions() -> None:
    bound = CoordinateBound(AdaptiveWeights(), INPUTS)
    expected = WIDEST_GAP * ACTIONS * math.sqrt(3 * exponent() / ROUNDS)
    assert equal(bound.contextual(COEFFICIENTS), expected)


# Statements 7 and 8: regret to models


@pytest.mark.parametrize("kind", [CoordinateBound, GainBound])
def test_regret_to_models_has_both_bands(kind: type[CoordinateBound | GainBound]) -> None:
    bound = kind(AdaptiveWeights(), INPUTS).with_inputs(band=Band(0.25, 1.0))
    of_root = 0.25 + 1.0 + math.sqrt(3 * exponent())
    expected = WIDEST_GAP * of_root * math.sqrt(ACTIONS / ROUNDS)
    assert equal(bound.to_models(COEFFICIENTS), expected)


# Statement 5: draws


@pytest.mark.parametrize("variance", [0.0, 4.0, 500.0])
def test_what_draws_add_is_where_bennetts_mixture_meets_its_level(variance: float) -> None:
    """With probability 0.9925, for ten losses and all assignments of five comparators at once."""
    sure = np.array([[variance], [1e9]])
    excess = swap_draws(sure, promises=10, actions=ACTIONS, comparators=5)[0]
    greatest = greatest_martingale(variance, math.log(10 * 5**ACTIONS))
    assert greatest - 1e-9 <= excess
    assert excess == pytest.approx(greatest, abs=1e-4)


def test_an_event_adds_its_draws_to_its_bias() -> None:
    of_event = CoordinateBound(AdaptiveWeights(), INPUTS).event_bounds(np.array([40.0]))
    assert of_event is not None
    expected, drawn = of_event
    assert equal(expected, math.sqrt(3 * 40.0 * exponent()))
    of_draws = greatest_martingale(40.0, math.log(EXPERTS))
    assert drawn - expected == pytest.approx(of_draws, abs=1e-4)


# Statement 6: assignments


def gain_of_assignments(*, policies: int = 0, risk: float = 1.0, start: float = 1.0) -> float:
    """Return min_j (L + psi_j T) / eta_j of two losses."""
    if risk < 1:
        risk *= 0.9  # of a run that ends at its horizon
    log_potential = math.log(growth(start=start + 0.01) / risk)
    level = ACTIONS * math.log(ACTIONS + policies) + math.log(10 * 2 / 0.01) + log_potential
    return float(((level + cost(ASSIGNMENT_RATES) * ROUNDS) / ASSIGNMENT_RATES).min())


def assigned(**changes: object) -> GainBound:
    """Make the bound of two losses with a potential over assignments."""
    plain = GainBound(AdaptiveWeights(ROUNDS), INPUTS, greatest_regret=1.0, losses=2, gains=EXPERTS)
    return plain.with_inputs(added_potential=0.01, **changes)


def test_regret_by_assignments_needs_no_number_of_experts() -> None:
    by_gains = WIDEST_GAP * math.sqrt(3 * ACTIONS * exponent(start=1.01) / ROUNDS)
    for policies in (0, 2):
        regret = assigned().a_priori(COEFFICIENTS, policies=policies)
        expected = WIDEST_GAP * gain_of_assignments(policies=policies) / ROUNDS
        assert (expected < by_gains).all()
        assert equal(regret, expected)


def test_regret_through_gains_is_their_range_by_all_gains() -> None:
    """Where predictions stay in conv s(Y) the range is at most 2."""
    root = math.sqrt(3 * ACTIONS * exponent() / ROUNDS)
    box = GainBound(AdaptiveWeights(), INPUTS)
    inside = GainBound(AdaptiveWeights(), INPUTS, within=2.0)
    assert equal(box.a_priori(3 * COEFFICIENTS), 3 * WIDEST_GAP * root)
    assert equal(inside.a_priori(3 * COEFFICIENTS), 2.0 * root)


def test_regret_as_drawn_has_the_risk_in_its_level() -> None:
    regret = assigned(risk=0.0025).realised(COEFFICIENTS, policies=2)
    gain = gain_of_assignments(policies=2, risk=0.0025)
    assert equal(regret, WIDEST_GAP * gain / ROUNDS)
    assert assigned().realised(COEFFICIENTS) is None


def test_a_level_with_a_risk_is_that_of_a_stretch_of_rounds_which_ends_where_it_is_known() -> None:
    """Ville's inequality needs the greatest growth of the variations beforehand."""
    levels = {}
    for rounds in (ROUNDS // 10, ROUNDS, 2 * ROUNDS, (ROUNDS + 1) ** 2 - 1, (ROUNDS + 1) ** 2):
        bound = assigned(risk=0.0025, rounds=rounds)
        levels[rounds] = bound.assignment_level(ACTIONS, ACTIONS)
    at_tenth, at_horizon, beyond, at_end_of_next, in_third = levels.values()
    assert at_tenth == at_horizon
    assert beyond == at_end_of_next
    assert at_horizon < beyond < in_third
    shares_of_risk = [0.9 * 0.1**stretch for stretch in range(40)]
    assert sum(shares_of_risk) <= 1 + 1e-12
    of_variations = REMAINDER / math.log(2) * math.log(1 + ROUNDS)
    of_growth = math.log((1.01 + 2 * of_variations) / (1.01 + of_variations))
    assert beyond - at_horizon == pytest.approx(of_growth + math.log(10))


def test_assignments_begin_with_what_was_regretted_before_the_games() -> None:
    """That is the lesser of what single regrets and their sums over actions may be, and a round."""
    trust = SwitchTest(2 * EXPERTS)
    regret = assigned(switch_test=trust, risk=0.0025).realised(COEFFICIENTS)
    start = math.exp(trust.reach(ROUNDS) ** 2 / 3)
    action_by_action = ACTIONS * (float(trust.limit(ROUNDS / ACTIONS)) + 1)
    of_sums = math.log(2 * 2 * ACTIONS**ACTIONS / FALSE_ALARMS)
    limits = [greatest_in_mixture(squares, of_sums) for squares in ROUNDS / WIDEST_GAP**2]
    before = np.minimum(action_by_action, np.array(limits) + 1)
    gain = gain_of_assignments(risk=0.0025, start=start)
    assert regret == pytest.approx(WIDEST_GAP * (gain + before) / ROUNDS, abs=1e-6)


# Statement 9: trust


def test_the_switch_test_rejects_where_the_mixture_passes_what_shares_alpha() -> None:
    trust = SwitchTest(200, width=1.5, turns=3, blocks=2)
    assert equal(trust.evidence, 1.5**2 * math.log(200 * 3 * 2 / FALSE_ALARMS))
    for squares in (0.0, 30.0, 900.0):
        greatest = greatest_in_mixture(squares, trust.evidence)
        assert float(trust.limit(squares)) == pytest.approx(greatest, abs=1e-4)


def test_regret_to_a_trusted_reference_is_what_its_sums_may_be() -> None:
    """Of 96 tests there are 2 times 2 of the kind of sums, times all assignments of each loss."""
    trust = SwitchTest(2 * EXPERTS)
    bound = assigned(switch_test=trust, trusted=True)
    tests = 2 * 2 * (ACTIONS + 1) ** ACTIONS
    level = math.log(tests / FALSE_ALARMS)
    squares = ROUNDS / WIDEST_GAP**2
    limits = np.array([greatest_in_mixture(square, level) for square in squares])
    regret = bound.a_priori(COEFFICIENTS, policies=1)
    assert regret == pytest.approx(WIDEST_GAP * limits / ROUNDS, abs=1e-6)


# Statement 11: intervals


def test_a_window_adds_up_intervals_with_their_shares_and_single_rounds() -> None:
    """No regret of an interval is above 1 per round, which is all that a single round says."""
    bound = CoordinateBound(AdaptiveWeights(), INPUTS)
    expected = np.zeros(2)
    for length in (1, 64, 32):
        of_length = exponent(experts=EXPERTS * 300 / length)
        regret = WIDEST_GAP / 8 * math.sqrt(3 * ACTIONS * of_length / length)
        expected += length * np.minimum(regret, 1.0)
    assert equal(bound.over_window(COEFFICIENTS / 8, [1, 64, 32], run=300), expected)


# Statement 12: entry and exit


def test_who_comes_late_meets_two_biases() -> None:
    bound = CoordinateBound(AdaptiveWeights(), INPUTS)
    until_now = WIDEST_GAP * math.sqrt(3 * ACTIONS * exponent() * ROUNDS)
    until_entry = WIDEST_GAP * math.sqrt(3 * ACTIONS * exponent(rounds=80) * 80)
    expected = (until_now + until_entry) / (ROUNDS - 80)
    assert equal(bound.over_stay(COEFFICIENTS, joined=80), expected)


def test_who_came_while_a_reference_was_trusted_meets_its_limit() -> None:
    """Second-order weights promise less than L(C) at entry where L(C) is wide."""
    trust = SwitchTest(EXPERTS, width=3.0)
    bound = CoordinateBound(SecondOrderWeights(), INPUTS).with_inputs(
        log_start=0.0, switch_test=trust
    )
    at_entry = ACTIONS * float(trust.limit(80 / ACTIONS))
    at_exit = ACTIONS * float(bound.bias(ROUNDS / ACTIONS))
    expected = WIDEST_GAP * (at_exit + at_entry) / (ROUNDS - 80)
    assert equal(bound.over_stay(COEFFICIENTS, joined=80), expected)


# Statement 13: every task of one number


def test_any_task_of_one_number_adds_up_the_cells_of_all_scales() -> None:
    slopes = np.array([[[0.0], [-0.4], [-1.0]]])  # three actions, D = 1
    scales = 5
    bound = CellBound(AdaptiveWeights(), INPUTS, scales=scales, cells=EXPERTS)
    total = 0.0
    for scale in range(1, scales + 1):
        cells = min(2 * (ACTIONS - 1), 2**scale)
        total += cells * exponent(experts=2 * scales * 2**scale)
    assert equal(bound.a_priori(slopes), [math.sqrt(3 * ROUNDS * total) / ROUNDS])


# Statement 10: delay


def test_regret_of_late_outcomes_adds_up_over_turns() -> None:
    """Three forecasters play 7, 7 and 6 of twenty rounds; the draws are bounded once for all."""
    shops = cohort_table("shops", 4, 3)
    forecaster = {"kind": "decision-swap", "events": "coordinates", "delay": 2}
    model = play_to_end(make_scenario(shops, rounds=20, forecaster=forecaster))
    players = model.game.blocks[0].forecaster.instances
    cohort = model.game.cohorts[0]
    regret = np.zeros(4)
    known_of_draws = np.zeros((2, 4))
    for player in players:
        bound = player.bias_bound()
        regret += player.time * bound.a_priori(cohort.coefficients[1])
        known_of_draws += player.draws.of(player.events.groups[0], fixed=True)
    assert [player.time for player in players] == [7, 7, 6]
    of_draws = swap_draws(known_of_draws, promises=4, actions=3, comparators=3)
    assert equal(model.agents_frame()["bound"].to_numpy(), (regret + of_draws) / 20)


def test_the_first_slot_spends_alpha_and_all_others_together_no_more() -> None:
    losses = ProtectedLosses(np.zeros((1, 2)), np.array([[[1.0, 0.0], [0.0, 1.0]]]))
    basis = LinearBasis(2)
    models = DistributionPool({"past": PastOutcomes(basis)}, basis)
    spent = []
    for slot in range(60):
        trust = Slot([losses], Box(2), models, context_of_models=dict, slot_index=slot).switch_test
        assert trust is not None
        spent.append(trust.tests * math.exp(-trust.evidence))
    places = np.arange(1, 60)
    assert equal(spent, [FALSE_ALARMS, *(FALSE_ALARMS / (places * (places + 1)))])
    assert sum(spent) <= 2 * FALSE_ALARMS
