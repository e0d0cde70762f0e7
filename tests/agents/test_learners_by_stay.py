"""Learners who enter and leave at rates of their own: each learns in its own rounds alone."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from log_measures import play_and_log
from small_scenarios import cohort_table, make_scenario

from regretless.agents.learners import Hedge, LearnersByStay, QLearning
from regretless.market.core.arrays import Array

ENTERED = np.array([0, 2, 0, 2])
LEFT = np.array([5, 5, 3, 5])
RATES = {"entry_rate": 0.3, "exit_rate": 0.1}


def losses_of_rounds(rounds: int) -> Array:
    """Return losses of four rows and three actions in each round."""
    return np.random.default_rng(3).random((rounds, 4, 3))


def started_learners() -> LearnersByStay:
    """Return learners of four rows with three different stays."""
    learners = LearnersByStay(Hedge(rate="fixed"), entered=ENTERED, left=LEFT)
    learners.start(4, 3, horizon=5)
    return learners


def learn_rounds(learners: LearnersByStay, losses: Array) -> None:
    """Let the rows that are there in each round learn its losses (T, 4, 3)."""
    actions = np.zeros(4, dtype=np.intp)
    for round_index, losses_of_round in enumerate(losses):
        learners.attend((round_index >= ENTERED) & (round_index < LEFT))
        learners.learn(losses_of_round, actions)


def test_rows_of_one_stay_learn_together() -> None:
    learners = started_learners()
    assert [rows.tolist() for rows in learners.rows_of_learner] == [[2], [0], [1, 3]]


@pytest.mark.parametrize("row", range(4))
def test_a_row_learns_what_a_learner_of_its_stay_alone_learns(row: int) -> None:
    """Its rate is tuned to the rounds of its stay, and what came before it is unknown to it."""
    losses = losses_of_rounds(5)
    learners = started_learners()
    learn_rounds(learners, losses)

    learner_of_stay = Hedge(rate="fixed")
    learner_of_stay.start(1, 3, horizon=int(LEFT[row] - ENTERED[row]))
    for round_index in range(ENTERED[row], LEFT[row]):
        learner_of_stay.learn(losses[round_index, [row]], np.zeros(1, dtype=np.intp))

    np.testing.assert_array_equal(learners.play()[row], learner_of_stay.play()[0])


def test_learners_by_stay_go_on_from_a_checkpoint() -> None:
    learners = started_learners()
    learn_rounds(learners, losses_of_rounds(3))
    resumed = started_learners()
    resumed.restore(learners.state())
    np.testing.assert_array_equal(resumed.play(), learners.play())


class Stay(NamedTuple):
    """When an agent was there, and what it did."""

    entered: int
    left: int
    rounds: list[int]
    first_strategy: Array


@cache
def stays_of_a_scenario(response: str) -> list[Stay]:
    """Play learners who enter and leave at rates; return the stays of those who came."""
    learners = cohort_table("learners", 12, 3, response=response, **RATES)
    model = make_scenario(learners, cohort_table("farmers", 2, 3), rounds=30).build()
    logs = play_and_log(model)
    agents = model.agents_frame().query("cohort == 'learners'")
    stays = []
    for agent in agents[agents["entered"].notna()].itertuples():
        log = logs[agent.agent]
        rounds = [round_index for round_index, _, _ in log]
        first_strategy = log[0][2]
        stays.append(Stay(agent.entered, agent.left, rounds, first_strategy))
    return stays


@pytest.mark.parametrize("response", ["hedge", "exp3", "regret-matching"])
def test_a_learner_plays_in_the_rounds_of_its_stay_and_in_no_other(response: str) -> None:
    stays = stays_of_a_scenario(response)
    assert len({stay.entered for stay in stays}) > 1
    for stay in stays:
        assert stay.rounds == list(range(stay.entered, stay.left))


@pytest.mark.parametrize("response", ["hedge", "regret-matching"])
def test_a_learner_that_has_learned_nothing_yet_tries_all_actions_alike(response: str) -> None:
    first_strategies = [stay.first_strategy for stay in stays_of_a_scenario(response)]
    np.testing.assert_allclose(first_strategies, 1 / 3)


def test_a_greedy_strategy_of_an_absent_row_does_not_change() -> None:
    learner = QLearning(memory=0, alpha=1.0, gamma=0.0, epsilon=0.0, initial=1.0)
    learners = LearnersByStay(learner, entered=ENTERED, left=LEFT)
    learners.start(4, 3, horizon=5)
    learn_rounds(learners, np.full((1, 4, 3), 0.5))  # the first action disappoints who is there
    assert learners.unchanged_rounds is not None
    assert learners.unchanged_rounds.tolist() == [0, 1, 0, 1]


def test_strategies_that_settle_end_a_run_of_learners_who_come_and_go() -> None:
    settings = {"memory": 0, "gamma": 0.0, "epsilon": 0.0}  # the first action pays for ever
    learners = cohort_table("learners", 3, response="q-learning", settings=settings, **RATES)
    scenario = make_scenario(
        learners, cohort_table("farmers", 1), rounds=4000, until={"greedy_unchanged": 50}
    )
    model = scenario.build()
    model.run()
    assert 50 <= model.played < 100  # who is not there changes nothing
