"""Models as comparators, and a base that is trusted until a bias says otherwise."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from regretless.forecaster.events.base import Together
from regretless.forecaster.events.bounds import BiasBound, GainBound, spread
from regretless.forecaster.events.coordinate import VectorEvents
from regretless.forecaster.events.protected import (
    LossTable,
    ProtectedLosses,
    played_of,
)
from regretless.forecaster.events.scalar import GainEvents
from regretless.forecaster.events.weights import (
    GROWTH,
    LOGARITHM,
    AdaptiveWeights,
    Moment,
    SecondOrderWeights,
)
from regretless.forecaster.minimax.cube import cube
from regretless.forecaster.models import Aggregate, Constant, LastValue, RunningMean
from regretless.forecaster.reference import ALARM, Band, Reference, Trust
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.arrays import Array

SIZE, LOSSES, ACTIONS = 3, 4, 3


def anchored(groups: Any, model: Any, *, hull: Any = "box", **told: Any) -> UnbiasedPrediction:
    return UnbiasedPrediction(groups, cube(groups.size, hull), Reference(model, **told))


def beside(groups: Any, models: int = 3) -> Together:
    return VectorEvents(groups) + GainEvents(groups, models=models, fixed=False)


def among(groups: Any, models: int = 3) -> GainEvents:
    return GainEvents(groups, models=models)


def group(seed: int = 0, actions: int = ACTIONS, **rule: Any) -> ProtectedLosses:
    rng = np.random.default_rng(seed)
    return ProtectedLosses(
        rng.random((LOSSES, actions)) / 4, rng.dirichlet(np.ones(SIZE), (LOSSES, actions)), **rule
    )


def panel() -> Aggregate:
    models = {"mean": RunningMean(SIZE), "last": LastValue(SIZE), "low": Constant(SIZE, value=0.2)}
    return Aggregate(models, SIZE)


def played(events: Any, rounds: int, models: int, seed: int) -> tuple[Array, Array]:
    """Charge random rounds; return the models' gains (K, A, M) by the definition."""
    rng, own = np.random.default_rng(seed), group()
    gains = np.zeros((LOSSES, ACTIONS, models))
    scale = spread(own.weights)
    for _ in range(rounds):
        advice, points = rng.random((models, SIZE)), rng.random((2, SIZE))
        mass, truth = np.array([0.3, 0.7]), rng.random(SIZE)
        told = LossTable([own]).best_responses(advice)
        active = events.active(None, told)
        for p, q in zip(points, mass, strict=True):
            action = (own.offset + own.weights @ p).argmin(1)
            for k in range(LOSSES):
                r = own.weights[k]
                for m in range(models):
                    gain = (r[told[k, m]] - r[action[k]]) @ (p - truth)
                    gains[k, action[k], m] += q * gain / scale[k]
        events.charge(active, played_of(events.rows, points, mass, truth))
    return gains, scale


def test_gains_are_those_of_the_definition_beside_coordinates_and_among_scalars() -> None:
    both, alone = beside([group()], models=2), among([group()], models=2)
    gains: Any = both.parts[1]
    expected, _ = played(both, 30, 2, seed=3)
    assert gains.members[0].gain == pytest.approx(expected)
    played(alone, 30, 2, seed=3)
    assert alone.members[0].gain[:, :, ACTIONS:] == pytest.approx(expected)
    assert both.experts == VectorEvents([group()]).experts + LOSSES * ACTIONS * 2
    assert alone.experts == GainEvents([group()]).experts + LOSSES * ACTIONS * 2


def test_weights_beside_coordinates_are_those_of_one_family_of_experts() -> None:
    """All weights add up to 1, each the definition's share of them; models have a zone beside."""
    events = beside([group()], models=2)
    gains: Any = events.parts[1]
    played(events, 40, 2, seed=5)
    told = events.rows.best_responses(np.random.default_rng(9).random((2, SIZE)))
    active = events.active(None, told)

    def weight(gain: Array, variation: Array) -> Array:
        regret, scale = gain - 0.25 * np.sqrt(variation), 3 * (variation + 1)
        up, down = np.maximum(regret + 1, 0) ** 2, np.maximum(regret - 1, 0) ** 2
        return np.asarray((np.exp(up / scale) - np.exp(down / scale)) / 2)

    (view,) = active[0][2]
    plus, minus = weight(view.bias, view.variation), weight(-view.bias, view.variation)
    gain, variation, _ = gains.arrays["sums"]
    own = weight(gain - 0.5 * np.sqrt(variation), variation)
    total = plus.sum() + minus.sum() + own.sum()
    table = (plus - minus) / total
    own = own.reshape(LOSSES, ACTIONS, 2) / total
    r, scale = group().weights, spread(group().weights)
    for k, a, m in np.ndindex(own.shape):
        pull = own[k, a, m] * (r[k, told[k, m]] - r[k, a]) / scale[k]
        table[k * ACTIONS + a] += pull
    moment = Moment(41, events.experts, Band(0.25, 0.5))
    assert events.table_of(active, moment) == pytest.approx(table, abs=1e-12)


@pytest.mark.parametrize("make", [beside, among])
@pytest.mark.parametrize("stream", ["turncoat", "noise", "against the base"])
@pytest.mark.parametrize("trust", [0.0, 2.0])
def test_nobody_regrets_not_to_have_followed_a_model(make: Any, stream: str, trust: float) -> None:
    """Regret to every model is at most the sum of its gains, and they are below the bound."""
    rng, own = np.random.default_rng(1), group()
    player = anchored(make([own]), panel(), give_up=trust)
    regret, rounds = np.zeros((LOSSES, 3)), 400
    for t in range(rounds):
        mixture = player.mixture()
        told, base = player.suggested(own), mixture.mean
        truth = rng.random(SIZE)
        if stream == "against the base" or (stream == "turncoat" and t > rounds // 2):
            truth = (base < 0.5).astype(float)
        lost = own.offset + own.weights @ truth
        for p, q in zip(mixture.points, mixture.weights, strict=True):
            action = (own.offset + own.weights @ p).argmin(1)
            regret += q * (lost[np.arange(LOSSES), action][:, None])
        regret -= np.take_along_axis(lost, told, axis=1)
        player.update(truth)
    events: Any = player.events
    scalars: Any = events.parts[1] if make is beside else events
    gains = scalars.members[0].gain[:, :, -3:]
    most = (np.maximum(gains, 0) * scalars.members[0].scale[:, None, None]).sum(1)
    assert (regret <= most + 1e-9).all()
    assert (most.max(1) <= rounds * player.bias_bound().regret_to_models(own.weights)).all()


@pytest.mark.parametrize("kind", [BiasBound, GainBound])
def test_the_models_zone_is_in_their_bound_alone(kind: Any) -> None:
    """D (z + y + sqrt(3 Lambda)) sqrt(A / T) for models, without y for swaps."""
    weights, run = group().weights, {"band": Band(0.25, 1.0), "trust": Trust(50)}
    bound = kind(AdaptiveWeights(), 50, 300, 0.2, **run)
    root = spread(weights) * np.sqrt(ACTIONS / 300)
    beyond = 0.25 + np.sqrt(3 * bound.exponent)
    assert bound.regret_to_models(weights) == pytest.approx(root * (beyond + 1))
    swaps = bound.regret(weights)
    assert swaps == pytest.approx(replace(bound, band=Band(0.25)).regret(weights))


def test_a_base_is_broadcast_until_a_bias_exceeds_trust() -> None:
    """Trust is lost in the first round in which some |B| > w(V), and never comes back."""
    player = anchored(VectorEvents([group()]), Constant(SIZE, value=0.9))
    lost = None
    for t in range(60):
        mixture = player.mixture()
        assert player.reference.trusted is (lost is None)
        assert (mixture.certificate is None) is player.reference.trusted
        player.update(np.full(SIZE, 0.4))
        if not player.reference.trusted and lost is None:
            lost = t + 1
            assert lost == player.reference.disproved_at
    assert 0.5 * lost > float(Trust(player.events.experts).hint(0.25 * lost))
    assert player.reference.unchanged_rounds == player.described()["disproved_at"] == lost


def test_a_head_start_is_the_potential_of_a_bias_that_has_just_lost_its_trust() -> None:
    """No R that the test lets through has a potential above e^(u^2 / 3), u = reach - z."""
    for rule in (AdaptiveWeights(), SecondOrderWeights()):
        wide = [BiasBound(rule, 10, 1000, 0.3, trust=Trust(10, u)).exponent for u in (1, 10, 1000)]
        assert wide[0] < wide[1] < wide[2] < np.inf  # e^u^2 is no double, its logarithm is
    for width, zone in [(1.0, 0.25), (0.3, 0.0), (2.0, 1.0)]:
        trust = Trust(10, width)
        bound = BiasBound(AdaptiveWeights(), 10, 1000, 0.3, band=Band(zone), trust=trust)
        total = (np.exp(bound.exponent) - 1) / 10 + 1
        most = total * np.exp(-GROWTH * 0.3) - LOGARITHM * np.log1p(1000)
        variation = np.linspace(0.01, 1000, 20_000)
        regret = np.minimum(trust.limit(variation) + 1, variation) - zone * np.sqrt(variation)
        assert np.exp(regret.clip(0) ** 2 / (3 * variation)).max() <= most * (1 + 1e-12)
        start = replace(bound, rule=SecondOrderWeights(), certificate_sum=0.0)
        squares = np.linspace(0.0, 1000, 20_000)
        held = trust.limit(squares) + 1 - zone * np.sqrt(squares)
        found = SecondOrderWeights().potentials(held, squares, 0.0).max()
        assert found <= start.exponent - np.log(10) + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_a_calibrated_base_is_kept(seed: int) -> None:
    """Coins whose chances it knows: none of the runs is given up, in a test of 2 %."""
    rng = np.random.default_rng(seed)
    chances = rng.uniform(0.2, 0.8)
    for make in (VectorEvents, GainEvents):
        player = anchored(make([group()]), Constant(SIZE, value=chances))
        for _ in range(300):
            player.mixture()
            player.update((rng.random(SIZE) < chances).astype(float))
        assert player.reference.trusted


# Trust.


@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
def test_who_bets_against_a_calibrated_model_gains_nothing(p: float) -> None:
    """Over all sequences of 11 outcomes the mean of W is 1 at most, and at most alpha ever win."""
    mean = winning = 0.0
    for outcomes in product([0, 1], repeat=11):
        bets = [Reference(Constant(1)) for _ in range(2)]
        for y in outcomes:
            told = {"unchanged": True, "beyond": False, "surprise": (y - p) / p}
            for own, doubtful in zip(bets, (False, True), strict=True):
                own.judge(**told, doubtful=doubtful)  # of a loss y: it can fall short by p
        chance = p ** sum(outcomes) * (1 - p) ** (11 - sum(outcomes))
        mean += chance * np.exp(bets[0].wealth).mean()
        winning += chance * (not bets[1].trusted)
    assert mean <= 1 + 1e-12
    assert p == 0.2 or mean == pytest.approx(1)  # where no gain is above 2
    assert winning <= ALARM


def test_the_worst_outcomes_are_found_within_eleven_rounds() -> None:
    bets = Reference(Constant(1))
    for _ in range(11):
        bets.judge(unchanged=True, beyond=False, surprise=1.0, doubtful=True)
    assert not bets.trusted


def test_a_surprise_is_told_in_units_of_the_most_that_losses_could_fall_short() -> None:
    """By brute force over the corners of the outcomes."""
    rng = np.random.default_rng(0)
    group = ProtectedLosses(rng.random((5, 3)), rng.normal(size=(5, 3, 2)) / 4)
    for said in rng.random((20, 2)):
        player = UnbiasedPrediction(GainEvents([group]), reference=Reference(Told(said)))
        seen = list[float]()
        player.reference.judge = lambda *said, seen=seen: seen.append(said[2])  # type: ignore[union-attr, method-assign]
        truth = rng.random(2)
        player.mixture()
        player.update(truth)
        action = (group.offset + group.weights @ said).argmin(1)
        slopes = group.weights[np.arange(5), action].sum(0)
        least = min(slopes @ (np.array(corner) - said) for corner in product([0, 1], repeat=2))
        assert seen == pytest.approx([slopes @ (truth - said) / -least])


class Told(Constant):
    """Says always the same vector."""

    def __init__(self, value: np.ndarray) -> None:
        super().__init__(len(value))
        self._value = value
