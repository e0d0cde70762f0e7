"""What every rule of weights keeps: a rule of one's own is checked by the same two calls.

    check_weights(MyWeights())
    check_bound(MyWeights(), trust=None, zone=0.0)

The first compares the parts in which weights are asked for. The second pushes gains as far as the
weights let them, and compares them with the bound that the rule claims.
"""

import numpy as np
import pytest

from regretless.forecaster.reference import Band
from regretless.forecaster.switch_test import SwitchTest
from regretless.forecaster.weights import BoundInputs, Moment, WeightRule

EXPERTS = 12
ROUNDS = 400


def check_weights(rule: WeightRule) -> None:
    """Check that experts of both signs, -inf, the scale and the prior mean what they must."""
    rng = np.random.default_rng(0)
    gain = rng.uniform(-9, 9, (3, 2))
    variation = np.abs(gain) + rng.random((3, 2))
    moment = Moment(20, 2 * gain.size, Band(0.5))
    both_signs_weights = rule.weigh(gain, variation, moment, both_signs=True)
    exponent = both_signs_weights.largest_exponent
    signed_weights, total = both_signs_weights.relative_to(exponent)
    positive, of_positive = rule.weigh(gain, variation, moment).relative_to(exponent)
    negative, of_negative = rule.weigh(-gain, variation, moment).relative_to(exponent)
    assert (positive >= 0).all()
    assert signed_weights == pytest.approx(positive - negative)
    assert total == pytest.approx(of_positive + of_negative)
    assert of_positive == pytest.approx(positive.sum())

    scaled, _ = both_signs_weights.relative_to(exponent + 1.0, 3.0)
    assert scaled == pytest.approx(3.0 / np.e * signed_weights)

    never = rule.weigh(np.array([-np.inf, 2.0]), np.array([0.0, 3.0]), moment)
    weights, _ = never.relative_to(never.largest_exponent)
    assert weights[0] == 0.0 < weights[1]


def check_bound(rule: WeightRule, *, trust: SwitchTest | None, zone: float) -> None:
    """Check that no gain passes the bound, which never falls and is concave in variations.

    The gains push the leading expert as far as sum w g <= 0 lets them. With ``trust`` they begin
    as far as a reference that is trusted still lets them, and a step beyond.
    """
    rng = np.random.default_rng(1)
    band = Band(zone)
    gain = np.zeros(EXPERTS)
    variation = np.zeros(EXPERTS)
    begun = 0
    if trust:
        begun = 40
        variation[:] = 40.0
        gain[:] = trust.limit(variation) + 1.0
    for time in range(begun + 1, begun + ROUNDS + 1):
        experts = rule.weigh(gain, variation, Moment(time, EXPERTS, band))
        weights, _total = experts.relative_to(experts.largest_exponent)
        assert (weights >= 0).all()
        gains = rng.random(EXPERTS) < rng.choice([0.05, 0.5])
        gains[(gain / np.sqrt(variation + 1)).argmax()] = True
        ahead = max(weights @ gains, 1e-300)
        behind = max(weights @ ~gains, 1e-300)
        step = np.where(gains, min(1, behind / ahead), -min(1, ahead / behind))
        gain += step
        variation += step**2 if rule.squared else np.abs(step)
        inputs = BoundInputs(EXPERTS, time, certificate_sum=0.0, band=band, switch_test=trust)
        greatest = rule.greatest(variation, rule.budget(inputs)) + zone * np.sqrt(variation)
        assert (gain <= greatest + 1e-9).all()

    curve = rule.greatest(np.linspace(0.0, ROUNDS, 41), rule.budget(inputs))
    assert (np.diff(curve) >= -1e-9).all()
    assert (np.diff(curve, n=2) <= 1e-6).all()
