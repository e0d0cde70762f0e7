"""Outcomes that come late: nobody is asked before it was told, and the theorem of turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import worlds
from streams import STREAMS, market

from regretless.forecaster import (
    Aggregate,
    DecisionSwap,
    GainEvents,
    LastValue,
    Reference,
    SeasonalNaive,
    UnbiasedPrediction,
    VectorEvents,
)
from regretless.forecaster.wrapping import Delayed
from regretless.market.game.seats import AttendanceSpan
from regretless.market.losses import Linear


def plain() -> DecisionSwap:
    weights = -np.random.default_rng(3).dirichlet(np.ones(2), 3)
    return DecisionSwap([Linear(weights, np.ones(3))])


@pytest.mark.parametrize("delay", [0, 1, 4])
def test_a_prediction_owes_nothing_to_outcomes_that_have_not_arrived(delay: int) -> None:
    rng, changed = np.random.default_rng(0), 12
    ways = []
    outcomes = rng.random((30, 2))
    for shift in (0.0, 0.4):
        player, seen = Delayed(plain, delay), []
        for t, outcome in enumerate(outcomes):
            seen.append(player.mixture().points.copy())
            player.update(np.abs(outcome - shift) if t == changed else outcome)
        ways.append(seen)
    same = [a.shape == b.shape and np.array_equal(a, b) for a, b in zip(*ways, strict=True)]
    assert all(same[: changed + delay + 1])
    assert not same[changed + delay + 1]


@pytest.mark.parametrize("weights", ["adaptive", "exponential", "second-order"])
@pytest.mark.parametrize("stream", STREAMS)
def test_regret_stays_below_the_theorem_of_turns(stream: str, weights: str) -> None:
    delay = 1 if weights == "adaptive" else 7
    forecaster: dict[str, Any] = {"delay": delay, "weights": weights}
    model = worlds.played(
        market(STREAMS[stream], forecaster, rounds=200, seed=delay), log_every=200
    )
    agents = model.agents_frame()
    assert set(agents["guarantee"]) == {"decision-swap"}
    assert (agents["swap_regret"] <= agents["bound_from_variation"]).all()
    assert (agents["bound_from_variation"] <= agents["bound"]).all()
    assert len(model.game.blocks[0].forecaster.instances) == delay + 1


def test_the_bound_grows_like_the_root_of_the_delay() -> None:
    bounds = []
    for delay in (0, 3, 15):
        model = worlds.played(
            market(STREAMS["iid"], {"delay": delay}, rounds=320, seed=0), log_every=320
        )
        drawn = model.guarantees[0].bound
        assert drawn is not None
        bounds.append(model.agents_frame()["bound"].max())
    assert 1.5 < bounds[1] / bounds[0] < 2.1
    assert 1.5 < bounds[2] / bounds[1] < 2.1


@pytest.mark.parametrize("stream", STREAMS)
def test_who_comes_and_goes_is_promised_the_sum_over_turns(stream: str) -> None:
    model = worlds.played(market(STREAMS[stream], {"delay": 2}, rounds=200, seed=0, exit_rate=0.02))
    agents = model.agents_frame()
    assert set(agents["guarantee"]) == {"decision-swap"}
    assert (agents["left"] < 200).any()
    assert (agents["swap_regret"] <= agents["bound_from_variation"]).all()
    assert (agents["bound_from_variation"] <= agents["bound"]).all()
    (promise,) = model.guarantees
    assert promise.bound is not None
    assert promise.beforehand is not None
    assert (promise.beforehand(200) >= promise.bound() - 1e-9).all()


def test_a_stay_is_the_rounds_of_all_turns() -> None:
    entered, left = np.array([0, 1, 3, 7, 8]), np.array([1, 9, 3, 8, 40])
    turns = [AttendanceSpan(entered, left).turn(turn, 3) for turn in range(3)]
    for row, (first, last) in enumerate(zip(entered, left, strict=True)):
        for turn, own in enumerate(turns):
            rounds = [t // 3 for t in range(first, last) if t % 3 == turn]
            assert rounds == list(range(own.entered[row], own.left[row]))


@pytest.mark.parametrize(("name", "back"), [("last", 3), ("season", 5)])
def test_a_reference_is_told_two_rounds_late_and_predicts_two_ahead(name: str, back: int) -> None:
    """The last value is that of three rounds ago; a season of five rounds keeps its phase."""
    rows = np.random.default_rng(2).random((30, 2))

    def fresh() -> Delayed:
        models = {"last": LastValue(2), "season": SeasonalNaive(2, period=5)}
        reference = Reference(Aggregate(models, 2, chosen=name), give_up=1000.0)

        def make() -> UnbiasedPrediction:
            events = VectorEvents(plain().events.groups)
            beside = events + GainEvents(events.groups, models=2, fixed=False)
            return UnbiasedPrediction(beside, None, reference)

        return Delayed(make, 2, reference)

    player, twin = fresh(), fresh()
    for t, row in enumerate(rows):
        if t == 20:
            twin.restore(player.state())
        said = player.mixture(t).points
        if t >= 2 * back:
            assert said == pytest.approx(rows[[t - back]])
        if t >= 20:
            assert np.array_equal(twin.mixture(t).points, said)
            twin.update(row)
        player.update(row)
    assert player.described() == {"kept": 1.0, "disproved_at": None}
