"""Anchored forecasts: the base is kept where it is good, corrected where it is not, and bounded."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import worlds
from hypothesis import given
from hypothesis import strategies as st
from streams import STREAMS, market
from weighing import weighed

from regretless.forecaster import Constant
from regretless.forecaster.events.coordinate import VectorEvents
from regretless.forecaster.events.protected import ProtectedLosses
from regretless.forecaster.events.scalar import Assignments, GainEvents
from regretless.forecaster.events.weights import AdaptiveWeights, Moment
from regretless.forecaster.minimax.cube import cube
from regretless.forecaster.reference import Band, Reference, Trust
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.records import Forecast, Mixture
from regretless.scenarios.run import Options, run

SIZE = 3


def anchored(groups: Any, model: Any, *, hull: Any = "box", **told: Any) -> UnbiasedPrediction:
    events = VectorEvents(groups) if isinstance(groups, list) else groups
    return UnbiasedPrediction(events, cube(events.size, hull), Reference(model, **told))


def group(seed: int = 0) -> ProtectedLosses:
    rng = np.random.default_rng(seed)
    return ProtectedLosses(np.ones((4, 3)), -rng.dirichlet(np.ones(SIZE), (4, 3)))


class Told:
    """A base that is told what to say."""

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value, dtype=np.float64)

    def predict(self, x: Any = None) -> Forecast:
        return Forecast(Mixture(np.atleast_2d(self.value), np.ones(1)), 0)

    def update(self, y: Any) -> None:
        """Learn nothing."""


def test_a_base_that_is_right_is_left_alone() -> None:
    """Unbiased noise stays in its tolerance band: the base's own forecast is broadcast."""
    rng = np.random.default_rng(1)
    player = anchored([group()], Told(np.full(SIZE, 0.5)), band=3.0, give_up=0.0)
    for _ in range(300):
        assert (player.mixture().points == 0.5).all()
        player.update(rng.random(SIZE))
    assert player.reference.unchanged_rounds == player.time == 300
    assert player.certificate_sum <= 0.1 * np.sqrt(300)


@pytest.mark.parametrize("base", [0.0, 0.2, 1.0])
def test_a_base_that_is_wrong_is_corrected(base: float) -> None:
    """Whatever the base says, biases stay below the bound with the tolerance band's constant."""
    rng = np.random.default_rng(2)
    player = anchored([group()], Told(np.full(SIZE, base)), band=0.5, give_up=0.0)
    total = np.zeros(SIZE)
    for _ in range(600):
        mean, truth = player.mixture().mean, rng.beta(5, 3, SIZE)
        player.update(truth)
        total += mean - truth
    limit = player.bias_bound()
    assert limit.band == Band(0.5)
    for _, _, _, _, occupancy, bias in player.events.table():
        assert np.abs(bias).max() <= float(limit.bias(occupancy))
    assert np.abs(total / 600).max() < 0.1


@given(st.integers(0, 10_000), st.floats(0, 2))
def test_tolerance_bands_are_those_of_the_definition(seed: int, zone: float) -> None:
    rng = np.random.default_rng(seed)
    variation = rng.uniform(0, 30, (4, 3))
    bias = variation * rng.uniform(-1, 1, (4, 3))

    def weight(gain: Array) -> Array:
        regret, scale = gain - zone * np.sqrt(variation), 3 * (variation + 1)
        up, down = np.maximum(regret + 1, 0) ** 2, np.maximum(regret - 1, 0) ** 2
        return np.asarray((np.exp(up / scale) - np.exp(down / scale)) / 2)

    plus, minus, moment = weight(bias), weight(-bias), Moment(1, 24, Band(zone))
    for both, expected in ((True, plus - minus), (False, plus)):
        total = (plus + both * minus).sum()
        found = AdaptiveWeights().weigh(bias, variation, moment, both=both)
        weights, whole = found.weights(found.top, 1.0)
        assert weights / (whole or 1) == pytest.approx(expected / (total or 1), abs=1e-12)


def test_nothing_outside_its_tolerance_band_gives_no_game() -> None:
    bias, variation = np.full((2, 2), 15.0), np.full((2, 2), 100.0)
    assert not weighed(AdaptiveWeights(), bias, variation, Moment(1, 8, Band(2.0))).any()
    with pytest.raises(ValueError, match="band is -1"):
        Reference(Constant(2), band=-1.0)


def test_hostile_streams_are_no_place_for_the_base_alone() -> None:
    """The breaker robs exponential smoothing of 0.3; anchored at it the forecast keeps its word."""
    regrets = {}
    for name, table in {
        "alone": {"kind": "exponential-smoothing"},
        "anchored": {"reference": "exponential-smoothing"},
    }.items():
        model = worlds.played(market(STREAMS["adaptive"], table, rounds=800, seed=0), log_every=800)
        regrets[name] = model.agents_frame()["swap_regret"].max()
    assert regrets["alone"] > 0.25
    assert regrets["anchored"] < 0.05


def test_predictions_of_a_base_are_moved_into_the_hull() -> None:
    player = anchored([group()], Told([-1.0, 0.5, 3.0]))
    assert player.mixture().points == pytest.approx(np.array([[0.0, 0.5, 1.0]]))
    simplex = anchored([group()], Told([0.9, 0.9, 0.0]), hull="simplex")
    assert simplex.mixture().points == pytest.approx(np.array([[0.5, 0.5, 0.0]]))
    for value in ([0.1, np.nan, 0.1], [0.1, 0.2]):
        with pytest.raises(UserError, match="must predict 3 finite numbers"):
            anchored([group()], Told(value)).mixture()


class Mean:
    """The habits of scikit-learn: the mean target."""

    def fit(self, _: Array, targets: Array) -> None:
        self.mean = targets.mean(0)

    def predict(self, _: Array) -> Array:
        return np.asarray(self.mean[None])


def test_a_model_of_the_user_serves_as_base(tmp_path: Path) -> None:
    """Registered like a forecaster, named in the file; without state it cannot be resumed."""
    register.forecaster("by-day")(lambda _: Mean())
    scenario = market(STREAMS["iid"], {"reference": "by-day"}, rounds=60, seed=0)
    run(scenario, Options(tmp_path / "out"))
    with pytest.raises(UserError, match="block powers offers no state"):
        run(scenario, Options(tmp_path / "out", resume=True))


def choice() -> ProtectedLosses:
    """Two actions, one better where y is above a half and one below; the margin is large."""
    return ProtectedLosses(np.array([[0.25, 0.75]]), np.array([[[0.5], [-0.5]]]))


@pytest.mark.parametrize("events", [GainEvents, Assignments])
def test_a_base_that_is_too_sure_and_right_is_left_alone(events: Any) -> None:
    """It says 1 where 0.8 is true: biases grow, no loss has a regret. Then it is wrong."""
    rng = np.random.default_rng(0)
    player, again = (anchored(events([choice()]), Constant(1, value=1.0)) for _ in range(2))
    for _ in range(1000):
        player.predict()
        player.update([float(rng.random() < 0.8)])
    assert player.reference.disproved_at is None
    again.restore(player.state())
    for own in (player, again):
        for _ in range(1000):
            own.predict()
            own.update([0.0])
    assert player.reference.disproved_at == again.reference.disproved_at
    assert player.reference.disproved_at > 1000


@pytest.mark.parametrize("seed", range(3))
def test_gains_go_on_from_the_regret_of_the_trusted_rounds(seed: int) -> None:
    """Each gain is what following the base lost against an action; bounds hold ever after."""
    protected = group(seed)
    player = anchored(GainEvents([protected]), Told([0.9, 0.1, 0.5]))
    lost = np.zeros((4, 3, 3))
    for t in range(300):
        mixture = player.mixture()
        truth = np.array([0.0, 1.0, 0.5 * (t % 2)])
        came = protected.offset + protected.weights @ truth
        expected = protected.offset[:, :, None] + protected.weights @ mixture.points.T
        chosen = np.eye(3)[expected.argmin(1)].transpose(0, 2, 1) @ mixture.weights
        lost += chosen[:, :, None] * (came[:, :, None] - came[:, None])
        player.update(truth)
        regret = lost.max(2).sum(1)
        assert (regret <= player.from_variation(protected) + 1e-9).all()
        gains = np.array([event[5] for event in player.events.table()]).reshape(4, 3, 3)
        if player.reference.trusted:
            assert gains.clip(0) == pytest.approx(lost.clip(0), abs=1e-12)
        assert (gains.max(2).sum(1) >= regret - 1e-9).all()
    assert player.reference.disproved_at


@pytest.mark.parametrize("make", [GainEvents, Assignments])
def test_what_a_base_costs_every_action_a_little_adds_up(make: Any) -> None:
    """It is given up before the regret of a single action would do it, and within bounds."""
    apart = ProtectedLosses(np.ones((1, 4)), -np.eye(4)[None])
    base = Told(np.zeros(4))
    player = anchored(make([apart]), base)
    alone = Trust(player.events.experts)
    while player.reference.trusted:
        base.value = 0.02 * np.eye(4)[player.time % 4]
        player.predict()
        player.update(np.roll(np.eye(4)[player.time % 4], 1))
        most = player.time * player.bias_bound().regret(apart.weights)
        assert player.time <= most + (not player.reference.trusted)
    assert player.time / 4 + 3 < float(alone.limit(player.time / 4))


def test_a_base_that_failed_at_once_is_no_candidate() -> None:
    """Nor has it a band; a checkpoint remembers both."""
    player, again = (anchored(GainEvents([choice()]), Constant(1, value=1.0)) for _ in range(2))
    for _ in range(100):
        player.predict()
        player.update([0.0])
    assert 0 < player.reference.disproved_at < 64
    again.restore(player.state())
    assert again.band == player.band == Band(0.0, 1.0)
    assert player.reference.unchanged_rounds == player.reference.disproved_at
