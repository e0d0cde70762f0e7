"""The order of a round, and that nobody sees what does not exist yet."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from streams import scenario

from regretless.agents.adversaries import Adversary, AntiForecast
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import generator_state, stream
from regretless.market.game.round import Game, Round, decide, finish, offer, play_round
from regretless.market.records import AdversaryView, Context, History, OutcomeDistribution


def game(seed: int = 0) -> Game:
    chosen = scenario("adaptive", "decision-swap, adaptive", rounds=50, seed=seed)
    return chosen.build().game


def draws_after_commit(play: Any) -> bool:
    """Whether the draw's generator is untouched when the adversary commits, and used after."""
    seen: list[Any] = []

    class Watcher(AntiForecast):
        def commit(
            self, context: Context, history: History, announced: AdversaryView
        ) -> OutcomeDistribution:
            seen.append(generator_state(plain.forecast_stream))
            assert not hasattr(announced, "index")
            return super().commit(context, history, announced)

    plain = game()
    plain.adversary = Watcher(3, stream(0, "watcher"))
    for _ in range(5):
        before = generator_state(plain.forecast_stream)
        play(plain)
        if seen[-1] != before or generator_state(plain.forecast_stream) == before:
            return False
    return True


def peeking_round(plain: Game) -> Round:
    """Play a round that draws the forecast before the adversary commits."""
    offered = offer(plain)
    forecasts = tuple(mixture.draw(plain.forecast_stream) for mixture in offered.mixtures)
    strategy = plain.adversary.commit(
        offered.context, plain.history, AdversaryView(offered.mixtures)
    )
    outcome = strategy.draw(plain.outcome_stream)
    drawn = replace(offered, forecasts=forecasts, distribution=strategy, outcome=outcome)
    return finish(plain, decide(plain, drawn))


def test_the_adversary_commits_before_the_draw_exists() -> None:
    assert draws_after_commit(play_round)
    assert not draws_after_commit(peeking_round)


def test_what_the_adversary_sees_cannot_be_changed_by_it() -> None:
    class Meddler(Adversary):
        def commit(
            self, context: Context, history: History, announced: AdversaryView
        ) -> OutcomeDistribution:
            announced.blocks[0].points[0] = 0.0
            return OutcomeDistribution.pure(np.zeros(3))

    plain = game()
    plain.adversary = Meddler(3, stream(0, "meddler"))
    with pytest.raises(ValueError, match="read-only"):
        play_round(plain)


def test_a_sealed_strategy_cannot_be_changed_after_the_draw() -> None:
    outcome = np.array([0.2, 0.3])
    strategy = OutcomeDistribution.pure(outcome)
    outcome[:] = 1.0
    assert (strategy.points == [[0.2, 0.3]]).all()
    with pytest.raises(ValueError, match="read-only"):
        strategy.points[0] = 0.5


@pytest.mark.parametrize(
    ("points", "weights", "complaint"),
    [
        ([[1.2]], [1.0], r"\[0, 1\]"),
        ([[np.nan]], [1.0], r"\[0, 1\]"),
        ([[0.5], [0.6]], [0.7, 0.7], "sum to"),
        ([[0.5], [0.6]], [np.nan, 0.7], "at least 0"),
        ([[0.5]], [-1.0], "at least 0"),
        ([[0.5], [0.6]], [1.0], "one weight"),
    ],
)
def test_bad_strategies_are_refused(points: Any, weights: Any, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        OutcomeDistribution(np.array(points), np.array(weights))
