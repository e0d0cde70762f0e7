"""Anchored forecasts: the base is kept where it is good, corrected where it is not, and bounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from streams import STREAMS, market
from weighing import weighed

from regretless.forecaster import Constant
from regretless.forecaster.events.coordinate import VectorEvents
from regretless.forecaster.events.protected import LossGroup
from regretless.forecaster.events.scalar import GainEvents
from regretless.forecaster.events.weights import AdaptiveWeights, Band, Moment
from regretless.forecaster.minimax.cube import cube
from regretless.forecaster.reference import BAND, Reference
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.records import Forecast, Mixture
from regretless.scenarios.run import Options, run

Array = NDArray[np.float64]

SIZE = 3


def anchored(groups: Any, model: Any, *, hull: Any = "box", **told: Any) -> UnbiasedPrediction:
    """Make a forecaster with a reference."""
    events = VectorEvents(groups) if isinstance(groups, list) else groups
    return UnbiasedPrediction(events, cube(events.size, hull), Reference(model, **told))


def group(seed: int = 0) -> LossGroup:
    """Draw random linear losses in [0, 1]."""
    rng = np.random.default_rng(seed)
    return LossGroup(np.ones((4, 3)), -rng.dirichlet(np.ones(SIZE), (4, 3)))


class Told:
    """A base that is told what to say."""

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value, dtype=np.float64)

    def predict(self, x: Any = None) -> Forecast:
        """Say it."""
        return Forecast(Mixture(np.atleast_2d(self.value), np.ones(1)), 0)

    def update(self, y: Any) -> None:
        """Learn nothing."""


def test_a_base_that_is_right_is_left_alone() -> None:
    """Unbiased noise stays in its dead zone: the base's own forecast is broadcast."""
    rng = np.random.default_rng(1)
    player = anchored([group()], Told(np.full(SIZE, 0.5)), band=3.0, give_up=0.0)
    for _ in range(300):
        assert (player.mixture().points == 0.5).all()
        player.update(rng.random(SIZE))
    assert player.reference.unchanged_rounds == player.time == 300
    assert player.slack <= 0.1 * np.sqrt(300)


@pytest.mark.parametrize("base", [0.0, 0.2, 1.0])
def test_a_base_that_is_wrong_is_corrected(base: float) -> None:
    """Whatever the base says, biases stay below the bound with the dead zone's constant."""
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
def test_dead_zones_are_those_of_the_definition(seed: int, zone: float) -> None:
    rng = np.random.default_rng(seed)
    variation = rng.uniform(0, 30, (4, 3))
    bias = variation * rng.uniform(-1, 1, (4, 3))

    def weight(gain: Array) -> Array:
        regret = gain - zone * np.sqrt(variation)
        up, down = np.maximum(regret + 1, 0) ** 2, np.maximum(regret - 1, 0) ** 2
        scale = 3 * (variation + 1)
        return np.asarray((np.exp(up / scale) - np.exp(down / scale)) / 2)

    plus, minus = weight(bias), weight(-bias)
    total = (plus + minus).sum()
    moment = Moment(1, 24, Band(zone))
    rule = AdaptiveWeights()
    both = weighed(rule, bias, variation, moment)
    expected = (plus - minus) / total if total > 0 else np.zeros_like(bias)
    assert both == pytest.approx(expected, rel=1e-9, abs=1e-12)
    known = bias.ravel(), variation.ravel(), moment
    one = rule.one_sided(*known, top=rule.top(*known))
    total = plus.sum()
    one = one / one.sum() if total > 0 else one
    assert one == pytest.approx((plus / total if total > 0 else plus).ravel(), abs=1e-12)


def test_nothing_outside_its_dead_zone_gives_no_game() -> None:
    variation = np.full((2, 2), 100.0)
    moment = Moment(1, 8, Band(2.0))
    assert (weighed(AdaptiveWeights(), np.full((2, 2), 15.0), variation, moment) == 0).all()
    with pytest.raises(ValueError, match="band is -1"):
        Reference(Constant(2), band=-1.0)


def test_hostile_streams_are_no_place_for_the_base_alone() -> None:
    """The breaker robs exponential smoothing of 0.3; anchored at it the forecast keeps its word."""
    regrets = {}
    for name, table in {
        "alone": {"kind": "exponential-smoothing"},
        "anchored": {"reference": "exponential-smoothing"},
    }.items():
        model = market(STREAMS["adaptive"], table, rounds=800, seed=0).build(log_every=800)
        model.run()
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
        """Average."""
        self.mean = targets.mean(0)

    def predict(self, _: Array) -> Array:
        """Repeat it."""
        return np.asarray(self.mean[None])


def test_a_model_of_the_user_serves_as_base(tmp_path: Path) -> None:
    """Registered like a forecaster, named in the file; without state it cannot be resumed."""
    register.forecaster("by-day")(lambda _: Mean())
    scenario = market(STREAMS["iid"], {"reference": "by-day"}, rounds=60, seed=0)
    run(scenario, Options(tmp_path / "out"))
    with pytest.raises(UserError, match="block powers offers no state"):
        run(scenario, Options(tmp_path / "out", resume=True))


@pytest.mark.parametrize(("trust", "lost"), [(0.2, 0), (2.0, 6)])
def test_when_trust_was_lost_is_told(trust: float, lost: int) -> None:
    """Off by 0.8 in every round: 0.8 t exceeds 2 sqrt(0.8 t) from t = 6 on."""
    player = anchored([group()], Told(np.full(SIZE, 0.2)), band=0.25, give_up=trust)
    for played in range(1, 12):
        player.mixture()
        player.update(np.ones(SIZE))
        assert player.reference.disproved_at == (lost if played >= lost else None)
        assert player.reference.trusted == (played < lost)


@pytest.mark.parametrize(("came", "lost"), [(1.0, 10), (0.0, None)])
def test_a_base_is_disproved_by_what_all_lose_beyond_expectations(
    came: float, lost: int | None
) -> None:
    """Losses of the two actions move together, so that no bias hurts and none exceeds its zone."""
    loss = LossGroup(np.zeros((1, 2)), np.array([[[0.05], [0.05]]]))
    player, again = (
        anchored(GainEvents([loss]), Constant(1, value=0.5), give_up=1.5) for _ in range(2)
    )
    for _ in range(40):
        player.predict()
        player.update([came])
    assert player.reference.disproved_at == lost
    assert player.band.zone == (0.0 if lost else BAND)
    again.restore(player.state())
    assert again.band == player.band
