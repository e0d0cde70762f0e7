"""Q-learning against its definition, with a dictionary of values, in a market of two sellers."""

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from small_scenarios import make_scenario

from regretless import MarketModel, UserError
from regretless.agents.learners import GameFacts, QLearning

ALPHA = 0.3
GAMMA = 0.8
N_PRICES = 3
ABSENT = -1


def market_of_q_learners(rounds: int = 60, **settings: Any) -> MarketModel:
    """Build a market in which two Q-learners set one of three prices."""
    cohort = {
        "name": "sellers",
        "utility": "seller",
        "count": 2,
        "actions": N_PRICES,
        "parameters": {"cost": 1.0, "quality": 2.0, "lowest": 1.4, "highest": 2.0},
        "response": "q-learning",
        "settings": {"alpha": ALPHA, "gamma": GAMMA, **settings},
        "measures": ["external"],
    }
    market = {"kind": "price-competition", "outside": 0.0}
    return make_scenario(
        cohort, rounds=rounds, seed=4, adversary={"kind": "iid", "outcomes": 1}, market=market
    ).build()


def played_actions(model: MarketModel) -> list[tuple[int, int]]:
    log = model.regret_frame()
    of_first, of_second = (log[log["agent"] == agent]["action"] for agent in (1, 2))
    return list(zip(of_first.tolist(), of_second.tolist(), strict=True))


def state_number(history: tuple[tuple[int, ...], ...]) -> int:
    """Return the number of a state: oldest round and first agent first, digits from 0."""
    number = 0
    for actions in history:
        for action in actions:
            number = number * (N_PRICES + 1) + action + 1
    return number


def values_by_definition(
    model: MarketModel, agent: int, *, memory: int, sees_all: bool
) -> dict[int, np.ndarray]:
    """Return what Q-learning comes to, by state number, from the actions that were played."""
    q: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(N_PRICES))
    n_seen = 2 if sees_all else 1
    history = ((ABSENT,) * n_seen,) * memory
    for actions in played_actions(model):
        loss = model.game.market.profile_losses(np.array([actions]))[0, agent]
        seen = actions if sees_all else (actions[agent],)
        next_history = (*history, seen)[1:] if memory else ()
        state = state_number(history)
        best_next = q[state_number(next_history)].max()
        q[state][actions[agent]] += ALPHA * (
            1 - loss + GAMMA * best_next - q[state][actions[agent]]
        )
        history = next_history
    return q


@pytest.mark.parametrize("memory", [0, 1, 2])
@pytest.mark.parametrize("sees", ["own", "all"])
def test_values_are_those_of_the_definition(memory: int, sees: str) -> None:
    model = market_of_q_learners(memory=memory, sees=sees, epsilon=0.5)
    model.run()
    learner = model.game.cohorts[0].learner
    for agent in range(2):
        expected = values_by_definition(model, agent, memory=memory, sees_all=sees == "all")
        visited = sorted(expected)
        assert learner.q[agent, visited] == pytest.approx(np.array([expected[s] for s in visited]))
        unvisited = np.setdiff1d(np.arange(learner.q.shape[1]), visited)
        assert not learner.q[agent, unvisited].any()


def test_the_greedy_action_is_the_first_of_greatest_value_in_every_state() -> None:
    model = market_of_q_learners(memory=1, sees="all", epsilon=0.5, rounds=300)
    model.run()
    learner = model.game.cohorts[0].learner
    assert (learner.greedy == learner.q.argmax(2)).all()


def test_exploration_fades_at_the_rate_beta() -> None:
    learner = QLearning(memory=0, beta=0.1)
    learner.start(1, 4)
    for round_index in range(5):
        share = math.exp(-0.1 * round_index)
        assert sorted(learner.play()[0])[:3] == pytest.approx([share / 4] * 3)
        learner.learn(np.full((1, 4), 0.5), np.array([0]))


def test_first_values_are_what_actions_earn_for_ever_against_uniform_play() -> None:
    model = market_of_q_learners(initial="uniform-play", memory=1, sees="all")
    market = model.game.market
    learner = model.game.cohorts[0].learner
    for action in range(N_PRICES):
        profiles = np.array([[action, rival] for rival in range(N_PRICES)])
        mean_reward = 1 - market.profile_losses(profiles)[:, 0].mean()
        assert learner.q[0, :, action] == pytest.approx(mean_reward / (1 - GAMMA))


def test_learners_who_come_late_remember_from_their_entry_on() -> None:
    model = make_late_market()
    model.run()
    learner = model.game.cohorts[1].learner
    assert learner.rounds == 10
    assert learner.state_index[0] < learner.base


def make_late_market() -> MarketModel:
    cohorts = []
    for name, enters in (("early", 0), ("late", 10)):
        cohorts.append(
            {
                "name": name,
                "utility": "seller",
                "actions": N_PRICES,
                "enters": enters,
                "parameters": {"lowest": 1.4, "highest": 2.0, "quality": 2.0},
                "response": "q-learning",
                "settings": {"sees": "all", "memory": 1},
            }
        )
    return make_scenario(
        *cohorts,
        rounds=20,
        adversary={"kind": "iid", "outcomes": 1},
        market={"kind": "price-competition"},
    ).build()


def test_a_learner_that_watches_everybody_must_be_told_what_they_play() -> None:
    learner = QLearning(sees="all", memory=1)
    learner.start(1, 2)
    with pytest.raises(ValueError, match="observe_actions"):
        learner.learn(np.zeros((1, 2)), np.array([0]))


def test_a_memory_that_is_too_long_is_refused() -> None:
    learner = QLearning(sees="all", memory=9)
    learner.start(1, 15)
    facts = GameFacts(np.array([15, 15]), np.ones(1), lambda: np.zeros((1, 15)))
    with pytest.raises(UserError, match=r"memory = 9: .* too many; lower memory"):
        learner.meet(facts)


def test_a_memory_of_more_states_than_can_be_written_is_refused() -> None:
    learner = QLearning(memory=10_000)
    with pytest.raises(UserError, match=r"memory = 10000: 16\^10000 states .*; lower memory$"):
        learner.start(1, 15)


def test_uniform_play_needs_a_market() -> None:
    cohort = {
        "name": "learners",
        "utility": "linear",
        "actions": 3,
        "response": "q-learning",
        "settings": {"initial": "uniform-play"},
    }
    with pytest.raises(UserError, match=r"add \[market\]"):
        make_scenario(cohort).build()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"memory": -1}, "memory = -1"),
        ({"alpha": 0.0}, "alpha = 0.0"),
        ({"gamma": 1.0}, "gamma = 1.0"),
        ({"beta": -0.1}, "beta = -0.1"),
        ({"epsilon": 1.5}, "epsilon = 1.5"),
        ({"initial": "zero"}, "initial = 'zero'"),
    ],
)
def test_a_setting_outside_its_range_is_refused_by_name(settings: Any, named: str) -> None:
    with pytest.raises(UserError, match=named):
        QLearning(**settings)
