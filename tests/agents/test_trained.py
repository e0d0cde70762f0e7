"""Leaders who learn: plans, searches, and what they are told after a round."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import worlds
from resuming import check_resumes

from regretless import UserError, register
from regretless.agents.adversaries.learned import SEARCHES, Planned
from regretless.market.core.randomness import stream
from regretless.market.records import AdversaryView, Context, History, Observation

BUDGETS = {"cma": 960, "exp3": 2000}  # plans tried
DENG: dict[str, Any] = {
    "name": "deng",
    "rounds": 120,
    "game": {"file": "deng-2x3.csv"},
    "cohort": [{"name": "learner", "utility": "game", "actions": 3, "response": "hedge"}],
}


def market(adversary: dict[str, Any], **keys: Any) -> Any:
    return worlds.told(DENG | {"adversary": adversary} | keys).build(seed=5)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_finds_the_plan_that_pays(name: str) -> None:
    """Paid where the first half draws outcome 0 and the second outcome 1, with noise."""
    found = []
    for seed in range(3):
        search = SEARCHES[name]((4, 1, 2), stream(seed, "search"), payoff_range=(0.0, 1.0))
        noise = stream(seed, "noise")

        def paid(plans: Any, noise: Any = noise) -> Any:
            good = (plans[:, :2, 0, 0].sum(1) + plans[:, 2:, 0, 1].sum(1)) / 4
            return np.clip(good + noise.normal(0, 0.05, len(plans)), 0, 1)

        for _ in range(BUDGETS[name] // search.generation):
            plans = search.propose()
            assert plans.shape == (search.generation, 4, 1, 2)
            assert plans.sum(-1) == pytest.approx(1.0)
            search.feedback(paid(plans))
        best = search.best()
        found.append((best[:2, 0, 0].sum() + best[2:, 0, 1].sum()) / 4)
    assert min(found) > 0.95


def test_exp3_refuses_what_it_cannot_learn_from() -> None:
    search = SEARCHES["exp3"]((2, 1, 2), stream(0, "x"), payoff_range=(0.0, 1.0))
    search.propose()
    with pytest.raises(UserError, match="beyond its payoff's range"):
        search.feedback(np.full(8, 1.5))


def played(player: Any, plays: list[list[float]]) -> list[int]:
    """Let a leader of pure distributions play, and tell it what followers do."""
    history, found = History(2), []
    for number, play in enumerate(plays):
        distribution = player.commit(Context(), history, AdversaryView())
        found.append(int(distribution.weights.argmax()))
        assert distribution.weights.max() == 1.0
        outcome = distribution.points[found[-1]]
        history.add(outcome)
        player.learn(0.0, Observation(number, outcome, {"them": np.array(play)}))
    return found


def test_a_plan_goes_by_phase_and_by_what_was_played_last() -> None:
    """Phase 0 repeats the followers' last action, phase 1 does the other thing; 0 at first."""
    same, other = [[1, 0], [0, 1]], [[0, 1], [1, 0]]
    plan = Planned(2, stream(0, "x"), distributions=[same, other], rounds=6)
    plays = [[0.1, 0.9], [0.5, 0.5], [0.0, 0.0], [1.0, 0.0], [0.2, 0.8], [0.2, 0.8]]
    assert played(plan, plays) == [0, 1, 0, 1, 1, 0]  # absent followers are as they were last
    blind = Planned(2, stream(0, "x"), distributions=[[3, 0], [0, 2]], rounds=6)
    assert played(blind, plays) == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("kind", SEARCHES)
def test_leaders_who_learn_resume_and_repeat(kind: str, tmp_path: Path) -> None:
    """Across generations: 120 episodes of 2 rounds."""
    adversary = {"kind": kind, "length": 2, "phases": 2, "rows": 3}
    check_resumes(lambda: market(adversary, rounds=240), 101, tmp_path)


@pytest.mark.parametrize("kind", SEARCHES)
def test_leaders_learn_while_they_play(kind: str) -> None:
    """Followers who do the same whatever comes, and one start for three answers."""
    player = register.adversary[kind](3, stream(4, "adversary"), length=2, phases=1)
    history, rng, paid = History(3), stream(4, "outcomes"), []
    for number in range(4000):
        distribution = player.commit(Context(), history, AdversaryView())
        outcome = distribution.draw(rng)
        paid.append(float(outcome @ (0.1, 0.9, 0.4)))
        history.add(outcome)
        player.learn(paid[-1], Observation(number, outcome, {"them": np.ones(1)}))
    assert np.mean(paid[-1000:]) > 0.75
