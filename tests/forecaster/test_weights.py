"""Weights of every rule: the lemmas of their proofs, and their definitions."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from weight_rules import check_bound, check_weights
from weights_by_definition import adaptive_weights

from regretless.forecaster import DecisionSwap
from regretless.forecaster import weights as rules
from regretless.forecaster.mixture_of_rates import COSTS, RATES
from regretless.forecaster.reference import Band
from regretless.forecaster.switch_test import SwitchTest
from regretless.forecaster.weights import REMAINDER, SecondOrderWeights
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.losses import Linear


def slope(x: Array) -> Array:
    """Compute E(x) = (e^x - 1) / x."""
    positive_x = np.maximum(x, 1e-300)
    return np.where(x > 1e-8, np.expm1(positive_x) / positive_x, 1 + x)


def most(r0: Array, r1: Array, v0: Array, v1: Array) -> Array:
    """Bound K on rectangles with R in [0, 1], or R >= 1."""
    last = r0**2 / (3 * (1 - 3 * v0)) * slope(r0**2 * v0 / (1 - 3 * v0))
    steps = [(r1 + side) ** 2 / 6 * slope((r1 + side) ** 2 * v1) for side in (1, -1)]
    return steps[0] + np.where(r0 < 1, 0.0, steps[1]) - last


def proved(rectangle: list[float], limit: float, parts_at_most: int = 2_000_000) -> bool:
    """Whether K is below the limit on a rectangle (R, v), by halving; False past so many parts."""
    parts = np.array([rectangle])
    while len(parts):
        r0, r1, v0, v1 = parts.T
        # C >= R, and R^2 <= 3 C where R >= 1: beyond it K is negative
        parts = parts[(v0 <= 1 / (3 * (r0 + 1))) & ((r0 < 1) | (v0 <= 1 / (3 + r0**2)))]
        parts = parts[most(*parts.T) > limit]
        if len(parts) > parts_at_most:
            return False
        r0, r1, v0, v1 = parts.T
        wide = r1 - r0 > 6 * (v1 - v0)
        middle = np.where(wide, r0 + r1, v0 + v1) / 2
        left = [r0, np.where(wide, middle, r1), v0, np.where(wide, v1, middle)]
        right = [np.where(wide, middle, r0), r1, np.where(wide, v0, middle), v1]
        parts = np.concatenate([np.array(left).T, np.array(right).T])
    return True


def test_the_remainder_is_proved_and_nearly_least() -> None:
    """The constant of the lemma of the adaptive weights, by rectangles."""
    limit = REMAINDER - 1e-9  # rounding
    assert proved([0.0, 1.0, 0.0, 1 / 3 - 1e-9], limit)
    assert proved([1.0, 9.0, np.log(3 * REMAINDER), 1 / 6], limit)
    assert not proved([0.0, 1.0, 0.0, 1 / 3 - 1e-9], 0.3355, parts_at_most=20_000)


def potential(regret: Array, variation: Array) -> Array:
    return np.asarray(np.exp(np.maximum(regret, 0.0) ** 2 / (3 * variation)))


@pytest.mark.parametrize("variation", [0.01, 0.3, 1.0, 3.0, 10.2, 40.0, 400.0])
def test_one_step_of_the_potential(variation: float) -> None:
    regret = np.linspace(-2, min(variation, 8 * np.sqrt(variation)), 400)[:, None]
    gain = np.linspace(-1, 1, 101)
    c = np.float64(variation)
    now = potential(regret, c)
    weight = (potential(regret + 1, c + 1) - potential(regret - 1, c + 1)) / 2
    max_potential = now + weight * gain + REMAINDER * np.abs(gain) / (c + 1)
    assert np.all(potential(regret + gain, c + np.abs(gain)) <= max_potential + 1e-9 * now)
    assert np.all(weight <= rules.GROWTH * now * (1 + 1e-12))


def mean(gain: Any, variation: Any, factor: Array | float = 1.0) -> Array:
    """Compute the potential, or with the rates as factor the weight."""
    powers = RATES * np.asarray(gain)[..., None] - COSTS * np.asarray(variation)[..., None]
    return np.asarray((factor * np.exp(powers)).mean(-1))


@given(st.floats(-30, 30), st.floats(0, 60), st.floats(-1, 1))
def test_a_step_adds_at_most_what_the_weights_say(gain: float, past: float, step: float) -> None:
    max_potential = mean(gain, past) + mean(gain, past, RATES) * step
    assert mean(gain + step, past + step**2) <= max_potential * (1 + 1e-12)


@given(st.floats(0, 1e6), st.floats(0.1, 60))
def test_the_greatest_gain_is_at_the_potentials_level(variation: float, exponent: float) -> None:
    greatest = float(SecondOrderWeights().greatest(variation, exponent))
    level = float(np.log(mean(greatest, variation)))
    assert exponent - 1e-9 <= level <= exponent + 1e-5  # four steps of Newton: above, by 4e-6
    closed = ((exponent + np.log(len(RATES)) + COSTS * variation) / RATES).min()
    assert greatest <= closed + 1e-9


def test_it_grows_like_the_root_of_squares_and_is_concave() -> None:
    sums_of_squares = np.array([2e2, 2e3, 2e4, 2e5])
    greatest_gains = SecondOrderWeights().greatest(sums_of_squares, 12.0)
    assert (
        greatest_gains < 1.25 * np.sqrt(2 * sums_of_squares * (12.0 + np.log(len(RATES))))
    ).all()
    grid = np.linspace(0, 500, 1001)
    assert (np.diff(SecondOrderWeights().greatest(grid, 9.0), n=2) <= 1e-9).all()


def weighed(rule: rules.WeightRule, bias: Array, variation: Array, moment: rules.Moment) -> Array:
    """Return the signed weights of experts of both signs (rows, n), which add up to 1."""
    experts = rule.weigh(bias, variation, moment, both_signs=True)
    weights, total = experts.relative_to(experts.largest_exponent)
    return weights / total


def test_second_order_weights_are_their_definition() -> None:
    rng = np.random.default_rng(0)
    bias = rng.normal(size=(4, 3)) * 5
    squares = rng.random((4, 3)) * 20
    up, down = (mean(sign * bias, squares, RATES) for sign in (1, -1))
    rule = SecondOrderWeights()
    moment = rules.Moment(1, 24)
    assert weighed(rule, bias, squares, moment) == pytest.approx((up - down) / (up + down).sum())
    behind = rule.weigh(np.array([-1e6, -2e6]), np.array([1e6, 1e6]), moment)
    assert behind.relative_to(behind.largest_exponent)[1] > 0


@pytest.mark.parametrize("band_factor", [0.0, 0.7])
@pytest.mark.parametrize("experts", [1, 30])
def test_adaptive_weights_are_their_definition(experts: int, band_factor: float) -> None:
    """Of both signs, relative to a greatest exponent; no gain and no variation have weight, too."""
    rng = stream(experts, "adaptive weights")
    bias = 5 * rng.normal(size=experts)
    variation = 20 * rng.random(experts)
    bias[0] = 0.0
    variation[0] = 0.0
    exponents = np.empty((2, experts))

    largest = rules.adaptive_exponents(bias, variation, band_factor, True, exponents)  # noqa: FBT003
    potentials = np.exp(exponents - largest)
    normalised = np.empty(experts)
    rules.write_normalised_adaptive_weights(
        bias, variation, band_factor, largest, potentials.copy(), normalised
    )
    total = rules.signed_adaptive_weights(
        bias, variation, band_factor, 0.25, largest, potentials
    )  # overwrites the first row

    positive = adaptive_weights(bias, variation, band_factor)
    negative = adaptive_weights(-bias, variation, band_factor)
    scale = 0.25 * np.exp(-largest)
    weights_of_both = (positive + negative).sum()
    assert total == pytest.approx(scale * weights_of_both, rel=1e-12)
    assert potentials[0] == pytest.approx(scale * (positive - negative), rel=1e-9, abs=1e-15)
    expected = (positive - negative) / weights_of_both
    assert normalised == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("band_factor", [0.0, 0.7])
def test_exponents_of_one_sign_are_those_of_the_gain_itself(band_factor: float) -> None:
    rng = stream(4, "adaptive exponents")
    gain = 5 * rng.normal(size=20)
    variation = 20 * rng.random(20)
    exponents = np.empty((2, 20))

    largest = rules.adaptive_exponents(gain, variation, band_factor, False, exponents)  # noqa: FBT003

    regret = gain - band_factor * np.sqrt(variation)
    expected = [np.maximum(regret + step, 0.0) ** 2 / (3 * (variation + 1)) for step in (1, -1)]
    assert exponents == pytest.approx(np.array(expected), rel=1e-12)
    assert largest == exponents[0].max()


@pytest.mark.parametrize("rule", list(map(rules.rule_of, rules.RULES)))
@pytest.mark.parametrize("band_factor", [0.0, 0.7])
def test_weights_of_events_that_are_alone_are_those_of_both_signs_by_their_sum(
    rule: rules.WeightRule, band_factor: float
) -> None:
    rng = stream(6, "weights that are alone")
    gain = 5 * rng.normal(size=(4, 3))
    variation = 20 * rng.random((4, 3))
    moment = rules.Moment(9, 24, Band(band_factor))

    weights = rule.normalised(gain, variation, moment)

    weighed_of_signs = rule.weigh(gain, variation, moment, both_signs=True)
    signed_weights, total = weighed_of_signs.relative_to(weighed_of_signs.largest_exponent)
    assert weights == pytest.approx(signed_weights / total, abs=1e-15)


class HalfTheGains(rules.AdaptiveWeights):
    """Weighs half of each gain, and writes no more than that."""

    def weigh(
        self, gain: Array, variation: Array, moment: rules.Moment, *, both_signs: bool = False
    ) -> rules.ExpertWeights:
        return super().weigh(0.5 * gain, variation, moment, both_signs=both_signs)


def test_a_rule_that_weighs_in_its_own_way_does_so_with_events_that_are_alone() -> None:
    gain = np.array([[3.0, -1.0], [0.5, 2.0]])
    variation = np.array([[4.0, 2.0], [1.0, 3.0]])
    moment = rules.Moment(10, 8)

    weights = HalfTheGains().normalised(gain, variation, moment)

    expected = rules.AdaptiveWeights().normalised(0.5 * gain, variation, moment)
    assert weights == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_second_order_weights_of_a_sign_are_added_to_those_of_the_other(sign: float) -> None:
    """Relative to an exponent, with a band; one expert is so far behind that it has no weight."""
    rng = stream(5, "second-order weights")
    gain = np.append(5 * rng.normal(size=8), -sign * 1e6)
    width_of_band = rng.random(9)
    variation = 20 * rng.random(9)
    other_sign = rng.normal(size=9)
    signed = other_sign.copy()

    total = rules.add_second_order_weights(gain, width_of_band, variation, sign, 0.5, 2.0, signed)

    exponents = RATES * (sign * gain - width_of_band)[:, None] - COSTS * variation[:, None]
    weights = 0.5 * (RATES * np.exp(exponents - 2.0)).sum(1)
    assert total == pytest.approx(weights.sum(), rel=1e-12)
    assert signed == pytest.approx(other_sign + sign * weights, rel=1e-12)


def test_exponential_weights_of_both_signs_are_relative_to_an_exponent() -> None:
    rng = stream(6, "exponential weights")
    bias = 5 * rng.normal(size=8)
    width_of_band = rng.random(8)
    weights = np.empty(8)

    total = rules.signed_exponential_weights(bias, width_of_band, 0.4, 2.0, 0.5, weights)

    positive = 0.5 * np.exp(0.4 * (bias - width_of_band) - 2.0)
    negative = 0.5 * np.exp(0.4 * (-bias - width_of_band) - 2.0)
    assert total == pytest.approx((positive + negative).sum(), rel=1e-12)
    assert weights == pytest.approx(positive - negative, rel=1e-12)


@pytest.mark.parametrize("horizon", [None, 400])
def test_exponential_weights_are_those_printed(horizon: int | None) -> None:
    bias = np.random.default_rng(0).uniform(-20, 20, (4, 3))
    rate = np.sqrt(2 * np.log(24) / 400) if horizon else np.sqrt(np.log(24) / 9)
    plus = np.exp(rate * bias)
    minus = np.exp(-rate * bias)
    weights = weighed(rules.ExponentialWeights(horizon), bias, np.abs(bias), rules.Moment(9, 24))
    assert weights == pytest.approx((plus - minus) / (plus + minus).sum())


@pytest.mark.parametrize("name", rules.RULES)
def test_huge_biases_do_not_overflow(name: str) -> None:
    bias = np.array([[1e6, -1e6], [3.0, 0.0]])
    table = weighed(rules.rule_of(name), bias, np.abs(bias), rules.Moment(10, 8))
    assert np.isfinite(table).all()
    assert np.abs(table).sum() <= 1 + 1e-12
    assert table[0, 0] > 0 > table[0, 1]


@dataclass(frozen=True, eq=False)
class RootRateExperts(rules.ExpertWeights):
    """Those of ``RootRateWeights``."""

    log_weights: tuple[Array, ...]  # of the gains, and where they have both signs of minus them
    largest_exponent: float

    def relative_to(self, exponent: float, prior: float = 1.0) -> tuple[Array, float]:
        positive = prior * np.exp(self.log_weights[0] - exponent)
        if len(self.log_weights) == 1:
            return positive, float(positive.sum())
        negative = prior * np.exp(self.log_weights[1] - exponent)
        return positive - negative, float((positive + negative).sum())


class RootRateWeights(rules.WeightRule):
    """Exponential weights of rate 1 / sqrt(t).

    ln(mean of exp(rate R)) / rate grows by at most the certificate and rate / 2 in a round, and
    never when the rate falls: R <= sqrt(T) ln N + sqrt(T) + S, and after trust L(T) + 1 more.
    """

    name = "root-rate"

    def weigh(
        self, gain: Array, variation: Array, moment: rules.Moment, *, both_signs: bool = False
    ) -> rules.ExpertWeights:
        rate = 1.0 / math.sqrt(moment.time)
        noise = moment.band.factor * np.sqrt(variation)
        log_weights = [rate * (gain - noise)]
        if both_signs:
            log_weights.append(rate * (-gain - noise))
        return RootRateExperts(tuple(log_weights), float(np.max(log_weights)))

    def potentials(self, gain: Array, variation: Array, zone: float) -> Array:
        return np.zeros(np.shape(gain))

    def budget(self, inputs: rules.BoundInputs) -> float:
        greatest_start = 0.0
        if inputs.switch_test is not None:
            greatest_start = float(inputs.switch_test.limit(inputs.rounds)) + 1.0
        of_expert = math.log(inputs.experts) - math.log(inputs.prior)
        of_rounds = math.sqrt(inputs.rounds) * (of_expert + 1)
        return of_rounds + inputs.certificate_sum + greatest_start

    def greatest(self, variation: Array | float, budget: float) -> Array:
        return np.full_like(np.asarray(variation, dtype=np.float64), budget)


@pytest.mark.parametrize("zone", [0.0, 0.5])
@pytest.mark.parametrize("trust", [None, SwitchTest(12)])
def test_a_rule_of_ones_own_is_checked_like_the_others(
    trust: SwitchTest | None, zone: float
) -> None:
    check_weights(RootRateWeights())
    check_bound(RootRateWeights(), trust=trust, zone=zone)


def test_a_rule_of_ones_own_weighs_events_and_bounds_their_biases() -> None:
    shops = Linear(np.array([[0.0], [1.0]]), np.array([0.5, 0.0]))
    forecaster = DecisionSwap([shops], weights=RootRateWeights())
    for _ in range(200):
        prediction = forecaster.mixture().mean
        forecaster.update(np.asarray(prediction < 0.5, dtype=np.float64))
    bound = forecaster.bias_bound()
    for *_, occupancy, bias in forecaster.event_table():
        assert np.abs(bias).max() <= bound.bias(occupancy)
    assert bound.bias(1.0) == pytest.approx(
        np.sqrt(200) * (np.log(forecaster.events.experts) + 1) + forecaster.certificate_sum
    )
    assert (forecaster.from_variation(forecaster.events.groups[0]) <= 200).all()
