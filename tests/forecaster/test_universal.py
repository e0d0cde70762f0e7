"""One outcome and everybody: certificate, biases and regrets against brute force."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weights_by_definition import adaptive_weights

from regretless import swap_regret
from regretless.forecaster import Constant, UniversalDecisionSwap
from regretless.forecaster.unbiased import certificate_limit, tolerance_at
from regretless.forecaster.universal import scales_for
from regretless.forecaster.weights import GROWTH, LOGARITHM
from regretless.market.core.arrays import Array
from regretless.market.losses import Linear

Nature = Callable[[int, float], float]


class Log:
    """What was announced, and what happened."""

    def __init__(self, forecaster: UniversalDecisionSwap, nature: Nature, rounds: int) -> None:
        self.mixtures = []
        truths = []
        for t in range(rounds):
            mixture = forecaster.mixture()
            self.mixtures.append((mixture.points[:, 0], mixture.weights))
            truths.append(nature(t, float(mixture.mean[0])))
            forecaster.update(truths[-1])
        self.truths = np.array(truths)[:, None]

    def regret_of(self, loss: Linear) -> float:
        play = np.zeros((len(self.truths), len(loss.offset)))
        for row, (points, masses) in zip(play, self.mixtures, strict=True):
            np.add.at(row, (loss.offset + loss.weights[:, 0] * points[:, None]).argmin(1), masses)
        return float(swap_regret(loss.losses(self.truths), play))


def threshold(theta: float) -> Linear:
    """Act or not, which pays where y is above theta."""
    return Linear([[0.0], [-1.0]], [0.0, theta])


NATURES: dict[str, Nature] = {
    "alternating": lambda t, _: float(t % 2),
    "rising": lambda t, _: min(t / 400, 1.0),
    "against the mean": lambda _, mean: float(mean < 0.5),
    "around a third": lambda t, mean: float(mean < 1 / 3) if t % 7 else 0.5,
    "blocks": lambda t, _: 0.9 if t // 50 % 2 else 0.1,
}
HELD = [{}, {"band": 0.5, "give_up": 0.0}, {"band": 0.25, "give_up": 2.0}]
# every reference's leeway against the nature that is hostile, each other nature with one of them
MET = [("against the mean", held) for held in HELD]
MET += [(name, HELD[i % 3]) for i, name in enumerate(NATURES) if name != "against the mean"]


@pytest.mark.parametrize(("nature", "held"), MET)
def test_nobody_regrets_more_than_the_bound(nature: str, held: dict[str, float]) -> None:
    rng = np.random.default_rng(3)
    forecaster = UniversalDecisionSwap(400, **{"band": 0.0, "give_up": 0.0} | held)
    log = Log(forecaster, NATURES[nature], 400)
    tasks = [threshold(theta) for theta in np.linspace(0, 1, 41)]
    sizes = np.repeat([2, 3, 6, 20], 5)
    tasks += [Linear(rng.uniform(-1, 1, (a, 1)), rng.random(a)) for a in sizes]
    for loss in tasks:
        assert log.regret_of(loss) <= forecaster.regret_bound(loss)[0] + 1e-9
    check_biases(forecaster)


def check_biases(forecaster: UniversalDecisionSwap) -> None:
    """Check every cell's bias against its bound, with its own share of the prior."""
    events: Any = forecaster.events
    for view in events.views:
        bound = forecaster.known_bound().with_inputs(prior=view.prior).bias_at(view.variation)
        assert np.all(np.abs(view.gain) <= bound + 1e-9)


def weights_of(forecaster: UniversalDecisionSwap) -> tuple[Array, float]:
    """Compute h at every finest cell and the sum of all weights, by the definition."""
    events: Any = forecaster.events
    signed = np.zeros(2**events.scales)
    total = 0.0
    for s, view in enumerate(events.views, start=1):
        bias = view.gain[:, 0]
        variation = view.variation[:, 0]
        up, down = (
            adaptive_weights(sign * bias, variation, forecaster.band.factor) for sign in (1, -1)
        )
        prior = 1 / (2 * events.scales * 2**s)
        signed += np.repeat(prior * (up - down), len(signed) // 2**s)
        total += prior * float((up + down).sum())
    return signed, total


@settings(max_examples=30, deadline=None)
@given(
    truths=st.lists(st.sampled_from([0.0, 0.2, 0.5, 1.0]), min_size=1, max_size=60),
    rounds=st.integers(60, 200),
    band=st.sampled_from([0.0, 0.3]),
)
def test_no_outcome_gains_more_than_told(truths: list[float], rounds: int, band: float) -> None:
    forecaster = UniversalDecisionSwap(rounds, band=band)
    for t, y in enumerate(truths):
        signed, total = weights_of(forecaster)
        mixture = forecaster.mixture()
        points = mixture.points[:, 0]
        masses = mixture.weights
        pulls = signed[(points * len(signed)).astype(int)]
        worst = max(float(masses @ (pulls * (points - outcome))) for outcome in (0.0, 1.0))
        assert worst == pytest.approx(mixture.certificate * total, abs=1e-9)
        assert mixture.certificate <= tolerance_at(t + 1) + 1e-12
        forecaster.update(y)


def test_regret_falls_like_the_root_of_the_rounds() -> None:
    """Against the mean of the mixture: cells of one width alone have a regret of one half there."""
    logs = [Log(UniversalDecisionSwap(T), NATURES["against the mean"], T) for T in (250, 4000)]
    first, last = (log.regret_of(threshold(0.5)) for log in logs)
    assert last <= first / 3
    assert first <= 0.1


def test_a_good_reference_is_broadcast_until_it_is_disproved() -> None:
    reference = Constant(1, value=0.3)
    rng = np.random.default_rng(0)
    forecaster: Any = UniversalDecisionSwap(1000, reference=reference, band=0.25, give_up=1.0)
    for points, _ in Log(forecaster, lambda *_: float(rng.random() < 0.3), 300).mixtures:
        assert points == pytest.approx([0.3], abs=1 / 1000)
    assert forecaster.reference.disproved_at is None
    points, _ = Log(forecaster, lambda *_: 1.0, 300).mixtures[-1]
    assert forecaster.reference.disproved_at is not None
    assert points[0] > 0.9
    check_biases(forecaster)


def test_it_continues_from_a_checkpoint() -> None:
    first = UniversalDecisionSwap(64)
    second = UniversalDecisionSwap(64)
    nature = NATURES["around a third"]
    Log(first, nature, 30)
    second.restore(first.state())
    first_mixtures, second_mixtures = (
        Log(forecaster, nature, 30).mixtures for forecaster in (first, second)
    )
    for (points, weights), (same_points, same_weights) in zip(
        first_mixtures, second_mixtures, strict=True
    ):
        assert np.array_equal(points, same_points)
        assert np.array_equal(weights, same_weights)


def test_the_bound_grows_like_a_root() -> None:
    """At most D sqrt(6 S T Lambda) for two actions, with the greatest Lambda of all scales."""
    rounds = 512
    loss = threshold(0.4)
    forecaster = UniversalDecisionSwap(rounds)
    Log(forecaster, NATURES["alternating"], rounds)
    scales = scales_for(rounds)
    certificate_sum = certificate_limit(rounds)
    growth = math.exp(GROWTH * certificate_sum) * (1 + LOGARITHM * math.log1p(rounds))
    exponent = math.log(2 * scales * 2**scales * growth)
    bound = forecaster.beforehand(rounds).a_priori(np.reshape(loss.weights, (1, 2, 1)))[0]
    assert forecaster.regret_bound(loss)[0] <= bound <= math.sqrt(6 * scales * exponent / rounds)


def test_rounds_bands_and_outcomes_without_a_meaning_are_refused() -> None:
    with pytest.raises(ValueError, match="rounds"):
        UniversalDecisionSwap(0)
    with pytest.raises(ValueError, match="band"):
        UniversalDecisionSwap(10, band=-1.0)
    with pytest.raises(ValueError, match="prediction"):
        UniversalDecisionSwap(10).update(0.5)
    with pytest.raises(ValueError, match=r"in .0, 1."):
        Log(UniversalDecisionSwap(10), lambda *_: 1.5, 1)
