"""What a forecaster is told of a round: one call, and ``update`` for who offers no more."""

from typing import Any

import numpy as np
import pytest

from regretless.forecaster import DecisionSwap
from regretless.forecaster.bases import LinearBasis
from regretless.market.core.arrays import Array
from regretless.market.game.protocols import as_forecaster
from regretless.market.game.round import Block
from regretless.market.losses import Linear
from regretless.market.records import Context, Forecast, Mixture, RoundFeedback

OUTCOME = np.array([0.25, 0.75])


class UserForecaster:
    """A user's own object: two equally likely predictions, and what it was told."""

    def __init__(self) -> None:
        self.updates: list[Array] = []

    def predict(self, x: object = None) -> Forecast:
        return Forecast(Mixture(np.array([[0.0, 0.0], [1.0, 1.0]]), np.full(2, 0.5)), 0)

    def update(self, y: Array) -> None:
        self.updates.append(y)


class ObservingForecaster(UserForecaster):
    """A user's own object that asks for the whole feedback."""

    def __init__(self) -> None:
        super().__init__()
        self.feedback: list[RoundFeedback] = []

    def observe(self, feedback: RoundFeedback) -> None:
        self.feedback.append(feedback)


def play_one_round(player: Any) -> None:
    block = Block("all", LinearBasis(2), as_forecaster(player))
    mixture = block.mixture(Context())
    block.learn(Forecast(mixture, index=1), OUTCOME)


def test_an_object_with_predict_and_update_is_told_the_statistics() -> None:
    player = UserForecaster()
    play_one_round(player)
    assert [statistics.tolist() for statistics in player.updates] == [OUTCOME.tolist()]
    with pytest.raises(ValueError, match="read-only"):
        player.updates[0][0] = 1.0


def test_an_object_with_observe_is_told_outcome_and_draw_once() -> None:
    player = ObservingForecaster()
    play_one_round(player)
    (feedback,) = player.feedback
    assert player.updates == []
    assert feedback.drawn == 1
    assert feedback.outcome is not None
    assert feedback.outcome.tolist() == OUTCOME.tolist()
    assert feedback.statistics.tolist() == OUTCOME.tolist()


def test_observing_rounds_predicts_the_same_as_updating_by_hand() -> None:
    losses = [Linear(np.array([[0.5, 0.0], [0.0, 0.5]]), np.zeros(2))]
    observing = DecisionSwap(losses, seed=1)
    updated = DecisionSwap(losses, seed=1)
    for outcome in np.random.default_rng(0).random((20, 2)):
        drawn = observing.predict()
        by_hand = updated.predict()
        np.testing.assert_array_equal(drawn.statistics, by_hand.statistics)
        observing.observe(RoundFeedback(outcome, outcome, drawn.index))
        updated.update(outcome)
