"""Looking ahead: imagined paths that are kept, and plans that are not played out."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from resuming import check_resumes
from small_scenarios import TomlTable, cohort_table

from regretless import MarketModel, load
from regretless.agents.adversaries import LookAhead
from regretless.forecaster.unbiased import UnbiasedPrediction
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.game.lookahead import Rollout, Strategies
from regretless.market.game.round import commit_and_draw, decide, finish, offer
from regretless.market.records import Round

HORIZON = 4
FOLLOWERS = cohort_table("followers", 3, utility="game")
LATE_FOLLOWERS = cohort_table("late", 2, utility="game", enters=3)


def chain_store(*, response: str = "hedge", rounds: int = 30, **keys: Any) -> MarketModel:
    """Return the chain store with few entrants, who follow the forecast or learn by themselves."""
    learners = cohort_table("learners", 2, utility="game", response=response)
    changes: TomlTable = {"cohort": [FOLLOWERS, learners], "rounds": rounds}
    changes["adversary"] = {"kind": "look-ahead", "horizon": HORIZON}
    return load("chain-store", **(changes | keys)).build(seed=2)


def is_same_path(first: list[Strategies], second: list[Strategies]) -> bool:
    """Whether all mixed strategies of two imagined paths are equal bit by bit."""
    for strategies, others in zip(first, second, strict=True):
        for strategy, other in zip(strategies, others, strict=True):
            if not np.array_equal(np.asarray(strategy), np.asarray(other)):
                return False
    return True


def play_and_compare(model: MarketModel, rounds: int) -> int:
    """Play rounds, in each of which kept paths must say what new ones would.

    Returns how many paths were continued.
    """
    game = model.game
    continued = 0
    for seed in range(rounds):
        current = offer(game)
        view = game.view_of_next_round
        kept_paths = list(view.kept_paths)
        rollout = Rollout(view, current.context, current.mixtures)
        anew = Rollout(replace(view, kept_paths=[]), current.context, current.mixtures)
        for outcome in ([1.0, 0.0], [0.0, 1.0]):
            path = rollout(outcome, HORIZON, seed=seed)
            assert is_same_path(path, anew(outcome, HORIZON, seed=seed))
        continued += sum(path in kept_paths for path in view.kept_paths)
        finish(game, decide(game, commit_and_fight(model, current, seed)))
    return continued


def commit_and_fight(model: MarketModel, current: Round, round_index: int) -> Round:
    """Return the round with an outcome that is the same in three rounds of four."""
    committed = commit_and_draw(model.game, current)
    outcome = [0.0, 1.0] if round_index % 4 == 3 else [1.0, 0.0]
    return replace(committed, outcome=np.array(outcome))


def without_looking_ahead(**keys: Any) -> MarketModel:
    """Return the chain store where nobody but the test looks ahead."""
    return chain_store(adversary={"kind": "myopic"}, **keys)


def test_the_path_that_came_true_goes_on_as_a_new_one_would() -> None:
    model = without_looking_ahead()
    continued = play_and_compare(model, rounds=9)
    assert continued == 8  # in every round but the first


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param({"response": "exp3"}, id="learners-learn-from-their-draws"),
        pytest.param({"forecaster": {"kind": "running-mean"}}, id="forecaster-does-not-say"),
        pytest.param({"forecaster": {"delay": 1}}, id="outcomes-come-late"),
        pytest.param({"cohort": [FOLLOWERS, LATE_FOLLOWERS]}, id="followers-enter"),
    ],
)
def test_no_path_goes_on_where_a_new_one_could_differ(keys: TomlTable) -> None:
    model = without_looking_ahead(**keys)
    assert play_and_compare(model, rounds=6) == 0


def test_a_path_that_came_true_costs_one_more_imagined_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mixtures = 0
    compute_mixture = UnbiasedPrediction.mixture

    def compute_and_count(forecaster: UnbiasedPrediction, x: object = None) -> Any:
        nonlocal mixtures
        mixtures += 1
        return compute_mixture(forecaster, x)

    monkeypatch.setattr(UnbiasedPrediction, "mixture", compute_and_count)
    game = without_looking_ahead().game
    mixtures_of_rounds = []
    for seed in range(2):
        current = offer(game)
        mixtures = 0
        Rollout(game.view_of_next_round, current.context, current.mixtures)(
            [1.0, 0.0], HORIZON, seed=seed
        )
        mixtures_of_rounds.append(mixtures)
        fight = replace(commit_and_draw(game, current), outcome=np.array([1.0, 0.0]))
        finish(game, decide(game, fight))
    assert mixtures_of_rounds == [HORIZON, 1]


def test_a_longer_rollout_plays_on_where_a_shorter_one_stopped() -> None:
    model = without_looking_ahead(response="exp3")
    current = offer(model.game)
    view = model.game.view_of_next_round
    rollout = Rollout(view, current.context, current.mixtures)
    shorter = rollout([1.0, 0.0], 2, seed=5)
    longer = rollout([1.0, 0.0], HORIZON, seed=5)
    at_once = Rollout(replace(view, kept_paths=[]), current.context, current.mixtures)
    assert is_same_path(shorter, longer[:2])
    assert is_same_path(longer, at_once([1.0, 0.0], HORIZON, seed=5))


def test_a_market_that_looks_ahead_resumes(tmp_path: Path) -> None:
    check_resumes(chain_store, checkpoint_round=11, folder=tmp_path)


def test_a_restored_market_forgets_what_it_imagined() -> None:
    fighting = without_looking_ahead()
    sharing = without_looking_ahead()
    for model, outcome in ((fighting, [1.0, 0.0]), (sharing, [0.0, 1.0])):
        for seed in range(3):
            current = offer(model.game)
            Rollout(model.game.view_of_next_round, current.context, current.mixtures)(
                [1.0, 0.0], HORIZON, seed=seed
            )
            committed = commit_and_draw(model.game, current)
            finish(model.game, decide(model.game, replace(committed, outcome=np.array(outcome))))
    fighting.restore(sharing.state())
    assert fighting.game.view_of_next_round.kept_paths == []


class PatientLookAhead(LookAhead):
    """Plays out every plan: nothing is known of what a user's own worth can come to."""

    def worth(self, play: Any, outcomes: Array | None = None) -> Array:
        return super().worth(play, outcomes)


@pytest.mark.parametrize("weights", [[[5.0, 5.0], [0.0, 2.0]], [[1.0, -3.0], [-2.0, 2.0]], None])
def test_plans_that_are_left_early_are_none_of_the_best(weights: list[list[float]] | None) -> None:
    models = []
    for kind in (LookAhead, PatientLookAhead):
        model = chain_store(rounds=15)
        leader = kind(2, stream(0, "leader"), weights=weights, horizon=HORIZON)
        model.replace(adversary=leader)
        model.run()
        models.append(model)
    hasty, patient = models
    assert hasty.rounds_frame().equals(patient.rounds_frame())
    assert hasty.regret_frame().equals(patient.regret_frame())


def test_a_plan_that_cannot_be_the_best_is_not_played_out(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: dict[tuple[float, ...], int] = {}
    play_path = Rollout.__call__

    def play_and_note(rollout: Rollout, outcome: Array, rounds: int, *, seed: int) -> Any:
        lengths[tuple(outcome)] = rounds
        return play_path(rollout, outcome, rounds, seed=seed)

    monkeypatch.setattr(Rollout, "__call__", play_and_note)
    model = chain_store(adversary={"kind": "look-ahead", "horizon": HORIZON})
    model.replace(
        adversary=LookAhead(2, stream(0, "leader"), weights=[[5, 1], [5, 1]], horizon=HORIZON)
    )
    model.run(1)
    # the first outcome pays 5 whatever happens, the second one never more than 1
    assert lengths == {(1.0, 0.0): HORIZON, (0.0, 1.0): 1}
