"""Leaders who learn: plans, searches, and what they are told after a round."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from resuming import check_resumes
from small_scenarios import TomlTable, read_scenario

from regretless import MarketModel, UserError, register
from regretless.agents.adversaries.learned import SEARCHES, Planned, Search
from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.game.protocols import Follower
from regretless.market.losses import Linear
from regretless.market.records import AdversaryView, Context, History, Mixture, Observation

PLANS_TRIED = {"cma": 960, "exp3": 2000}
GAME_OF_DENG: TomlTable = {
    "name": "deng",
    "rounds": 240,
    "game": {"file": "deng-2x3.csv"},
    "cohort": [{"name": "learner", "utility": "game", "actions": 3, "response": "hedge"}],
}


def share_of_right_draws(plans: Array) -> Array:
    """Pay plans (n, 4, 1, 2) for outcome 0 in the first half and outcome 1 in the second."""
    right = plans[:, :2, 0, 0].sum(1) + plans[:, 2:, 0, 1].sum(1)
    return np.asarray(right / 4)


def started_search(name: str, seed: int) -> Search:
    """Return a search for plans of four phases, one row and two outcomes."""
    return SEARCHES[name]((4, 1, 2), stream(seed, "search"), payoff_range=(0.0, 1.0))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_finds_the_plan_that_pays_though_payoffs_are_noisy(name: str, seed: int) -> None:
    search = started_search(name, seed)
    noise = stream(seed, "noise")
    for _ in range(PLANS_TRIED[name] // search.generation):
        plans = search.propose()
        payoffs = share_of_right_draws(plans) + noise.normal(0, 0.05, len(plans))
        search.feedback(np.clip(payoffs, 0, 1))
    assert share_of_right_draws(search.best()[None])[0] > 0.95


def trap(plans: Array) -> Array:
    """Pay plans (n, 4, 1, 2) 1 for outcome 1 throughout, 0.6 for outcome 0, little in between."""
    share_of_outcome_1 = plans[:, :, 0, 1].mean(1)
    towards_0 = 0.6 * (1 - share_of_outcome_1 / 0.7)
    towards_1 = (share_of_outcome_1 - 0.7) / 0.3
    return np.maximum(towards_0, towards_1)


def started_cma(seed: int, *, begins_again: bool) -> Search:
    """Return a CMA-ES for plans of four phases, one row and two outcomes."""
    return SEARCHES["cma"](
        (4, 1, 2),
        stream(seed, "search"),
        payoff_range=(0.0, 1.0),
        begins_again=begins_again,
    )


def payoff_in_trap(search: Search) -> float:
    """Let a search try 640 plans in the trap; return what its best plan is paid."""
    for _ in range(640 // search.generation):
        search.feedback(trap(search.propose()))
    return float(trap(search.best()[None])[0])


def test_a_search_that_begins_again_leaves_local_optima() -> None:
    """Where the first start finds the optimum, what is tried later does not lose it."""
    found_once = np.zeros(8)
    found_again = np.zeros(8)
    for seed in range(8):
        found_once[seed] = payoff_in_trap(started_cma(seed, begins_again=False))
        found_again[seed] = payoff_in_trap(started_cma(seed, begins_again=True))
    assert (found_again > found_once - 0.02).all()
    assert (found_again > 0.95).sum() > (found_once > 0.95).sum()


def test_a_search_that_began_again_is_restored() -> None:
    """Three generations that are all paid alike have converged."""
    begun_again = started_cma(0, begins_again=True)
    begun_once = started_cma(0, begins_again=False)
    is_equal = []
    for _ in range(5):
        is_equal.append(bool((begun_again.propose() == begun_once.propose()).all()))
        begun_again.feedback(np.full(16, 0.5))
        begun_once.feedback(np.full(16, 0.5))
    assert is_equal == [True, True, True, False, False]
    restored = started_cma(1, begins_again=True)
    restored.restore(begun_again.state())
    assert (restored.propose() == begun_again.propose()).all()
    assert (restored.best() == begun_again.best()).all()


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_proposes_a_generation_of_plans_of_distributions(name: str) -> None:
    search = started_search(name, seed=0)
    for _ in range(3):
        plans = search.propose()
        assert plans.shape == (search.generation, 4, 1, 2)
        assert plans.sum(-1) == pytest.approx(1.0)
        search.feedback(share_of_right_draws(plans))


def test_exp3_refuses_a_payoff_beyond_the_range_that_it_was_told() -> None:
    search = SEARCHES["exp3"]((2, 1, 2), stream(0, "x"), payoff_range=(0.0, 1.0))
    search.propose()
    with pytest.raises(UserError, match="beyond its payoff's range"):
        search.feedback(np.full(8, 1.5))


# what followers play in each of six rounds; in the third they are absent
PLAY_OF_FOLLOWERS = [[0.1, 0.9], [0.5, 0.5], [0.0, 0.0], [1.0, 0.0], [0.2, 0.8], [0.2, 0.8]]


def outcomes_of_pure_plan(plan: Planned, play_of_followers: Sequence[Sequence[float]]) -> list[int]:
    """Let a leader of pure distributions play, and tell it what followers do."""
    history = History(2)
    chosen = []
    for round_index, play in enumerate(play_of_followers):
        distribution = plan.commit(Context(), history, AdversaryView())
        assert distribution.weights.max() == 1.0
        chosen.append(int(distribution.weights.argmax()))
        outcome = distribution.points[chosen[-1]]
        history.add(outcome)
        plan.learn(0.0, Observation(round_index, outcome, {"them": np.array(play)}))
    return chosen


def test_a_plan_goes_by_what_was_played_last() -> None:
    """Followers who are absent are as they were last, and before the first round at action 0."""
    repeat_their_action = [[1, 0], [0, 1]]
    do_the_other_thing = [[0, 1], [1, 0]]
    distributions = [repeat_their_action, do_the_other_thing]
    plan = Planned(2, stream(0, "x"), distributions=distributions, rounds=6)
    assert outcomes_of_pure_plan(plan, PLAY_OF_FOLLOWERS) == [0, 1, 0, 1, 1, 0]


def test_a_plan_that_does_not_look_at_followers_goes_by_the_phase_alone() -> None:
    plan = Planned(2, stream(0, "x"), distributions=[[3, 0], [0, 2]], rounds=6)
    assert outcomes_of_pure_plan(plan, PLAY_OF_FOLLOWERS) == [0, 0, 0, 1, 1, 1]


def test_a_leader_that_is_given_another_plan_plays_it_from_the_next_round_on() -> None:
    plan = Planned(2, stream(0, "x"), distributions=[[[1, 0]]], rounds=6)
    before = plan.commit(Context(), History(2), AdversaryView())
    plan.distributions = np.array([[[0.25, 0.75]]])
    after = plan.commit(Context(), History(2), AdversaryView())
    assert before.weights.tolist() == [1.0, 0.0]
    assert after.weights.tolist() == [0.25, 0.75]


def follower_of_three_actions() -> Follower:
    """Return a follower, two agents in one row and one in another, over two outcomes."""
    loss = Linear(np.zeros((2, 3, 2)))
    return Follower("them", loss, np.array([0, 0, 1]), None)


def announced(mean_label: float, *strategies: Sequence[float]) -> AdversaryView:
    """Return what is announced: a forecast of two outcomes, and a strategy for each row."""
    label = np.array([[1 - mean_label, mean_label]])
    block = Mixture(label, np.ones(1), labels=label)
    return AdversaryView((block,), play=lambda: (np.array(strategies),))


def test_a_plan_goes_by_announced_play_and_by_the_outcome_that_is_forecast() -> None:
    """Each of 3 x 2 rows has a distribution of its own; agents count, not rows."""
    chances = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    distributions = np.stack([chances, 1 - chances], axis=1)[None]
    looks_at = ["announced-play", "forecast"]
    plan = Planned(2, stream(0, "x"), distributions=distributions, rounds=6, looks_at=looks_at)
    plan.meet([follower_of_three_actions()])
    assert {"mixture", "play", "losses"} <= plan.sees

    def chance_of_first(view: AdversaryView) -> float:
        return float(plan.commit(Context(), History(2), view).weights[0])

    third_action, first_action = [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]
    assert chance_of_first(announced(0.9, third_action, first_action)) == pytest.approx(0.6)
    assert chance_of_first(announced(0.1, third_action, first_action)) == pytest.approx(0.5)
    assert chance_of_first(announced(0.1, first_action, third_action)) == pytest.approx(0.1)
    nobody = [0.0, 0.0, 0.0]
    assert chance_of_first(announced(0.9, nobody, nobody)) == pytest.approx(0.2)  # as before


@pytest.mark.parametrize(
    ("looks_at", "words"),
    [
        (["stars"], "looks_at: unknown 'stars'"),
        (["forecast", "forecast"], "name each once"),
        (["forecast"], "has 3 rows a phase"),
        (["last-play", "announced-play"], "has 3 rows a phase"),
    ],
)
def test_a_plan_says_what_it_cannot_look_at(looks_at: list[str], words: str) -> None:
    distributions = np.ones((1, 3, 2))
    with pytest.raises(ValueError, match=words):
        Planned(2, stream(0, "x"), distributions=distributions, rounds=6, looks_at=looks_at)


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_leader_who_learns_resumes_in_the_middle_of_an_episode(kind: str, tmp_path: Path) -> None:
    """It has 120 episodes of 2 rounds: more than a generation before the stop and after it."""
    adversary = {"kind": kind, "length": 2, "phases": 2, "rows": 3}
    scenario = read_scenario(GAME_OF_DENG | {"adversary": adversary})

    def build() -> MarketModel:
        return scenario.build(seed=5)

    check_resumes(build, 101, tmp_path)


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_leader_learns_while_it_plays_to_draw_what_pays_most(kind: str) -> None:
    """Followers do the same whatever comes; the second of three outcomes pays 0.9."""
    payoff_of_outcome = np.array([0.1, 0.9, 0.4])
    player = register.adversary[kind](3, stream(4, "adversary"), length=2, phases=1)
    rng = stream(4, "outcomes")
    history = History(3)
    payoffs = []
    for round_index in range(4000):
        outcome = player.commit(Context(), history, AdversaryView()).draw(rng)
        payoff = float(outcome @ payoff_of_outcome)
        payoffs.append(payoff)
        history.add(outcome)
        player.learn(payoff, Observation(round_index, outcome, {"them": np.ones(1)}))
    assert np.mean(payoffs[-1000:]) > 0.75
