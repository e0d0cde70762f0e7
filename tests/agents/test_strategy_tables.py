"""Agents with a few fixed strategies: what they score, play and draw, and the crowd they make."""

from pathlib import Path

import numpy as np
import pytest
from resuming import check_resumes
from small_scenarios import cohort_table, make_scenario

from regretless import UserError, load
from regretless.agents.learners import GameFacts, StrategyTables
from regretless.scenarios.assembly.scenario import Scenario


def learner_with(tables: list[list[list[int]]], memory: int) -> StrategyTables:
    """Return a started learner of two actions whose rows hold these tables (K, S, P)."""
    learner = StrategyTables(memory=memory, strategies=len(tables[0]))
    learner.start(len(tables), 2)
    learner.tables = np.array(tables)
    return learner


def learn(learner: StrategyTables, best_action: int) -> None:
    """Let a round pass in which one action was best for all rows."""
    losses = np.ones((learner.rows, 2))
    losses[:, best_action] = 0.0
    learner.learn(losses, np.zeros(learner.rows, dtype=np.intp))


def test_the_strategy_that_named_the_best_action_most_often_is_played() -> None:
    learner = learner_with([[[0, 0], [1, 1]]], memory=1)
    learn(learner, best_action=1)
    assert learner.scores.tolist() == [[0, 1]]
    assert learner.play().tolist() == [[0.0, 1.0]]


def test_strategies_that_tie_are_played_with_equal_chances() -> None:
    learner = learner_with([[[0, 0], [1, 1]]], memory=1)
    learn(learner, best_action=1)
    learn(learner, best_action=0)
    assert learner.play().tolist() == [[0.5, 0.5]]


def test_a_history_is_the_last_best_actions_the_newest_in_the_lowest_place() -> None:
    learner = learner_with([[[0] * 4]], memory=2)
    for best_action in (1, 1, 0):
        learn(learner, best_action)
    assert learner.history.tolist() == [0b10]


def test_a_strategy_answers_the_history() -> None:
    learner = learner_with([[[0, 1]]], memory=1)
    learn(learner, best_action=1)
    assert learner.play().tolist() == [[0.0, 1.0]]
    learn(learner, best_action=0)
    assert learner.play().tolist() == [[1.0, 0.0]]


def test_tables_are_drawn_by_the_generator_of_the_market() -> None:
    tables = []
    for seed in (1, 1, 2):
        learner = StrategyTables(memory=3, strategies=2)
        learner.start(4, 2)
        rng = np.random.default_rng(seed)
        learner.meet(GameFacts(np.array([2]), np.ones(4), lambda: np.zeros((4, 2)), rng))
        tables.append(learner.tables.tolist())
    assert tables[0] == tables[1]
    assert tables[0] != tables[2]


def test_a_memory_of_too_many_histories_is_refused() -> None:
    with pytest.raises(UserError, match=r"memory = 20000: 2\^20000 histories .*lower memory"):
        StrategyTables(memory=20_000).start(1, 2)


def test_rows_learn_without_each_other() -> None:
    tables = [[[0, 0], [1, 1]], [[1, 0], [0, 1]]]
    together = learner_with(tables, memory=1)
    rng = np.random.default_rng(3)
    losses = rng.random((30, 2, 2))
    no_actions = np.zeros(2, dtype=np.intp)
    single_learners = [learner_with([tables_of_row], memory=1) for tables_of_row in tables]
    for losses_of_round in losses:
        together.learn(losses_of_round, no_actions)
        for row, learner in enumerate(single_learners):
            learner.learn(losses_of_round[[row]], no_actions[:1])
            assert learner.play()[0].tolist() == together.play()[row].tolist()


def crowd(*, agents: int, memory: int) -> Scenario:
    settings = {"memory": memory, "strategies": 2}
    keys = {"cohort.agents.count": agents, "cohort.agents.settings": settings, "windows": None}
    return load("minority-game", rounds=1500, **keys)


def variance_per_agent(scenario: Scenario, seed: int) -> float:
    """Return 4 N times the variance of the share, which is 1 if all toss coins."""
    model = scenario.build(seed=seed)
    model.run()
    shares = model.game.history.last(1000)[:, 0]
    return float(4 * model.game.market.agents * shares.var())


def test_a_crowd_with_few_histories_herds_and_one_with_more_coordinates() -> None:
    """Savit, Manuca and Riolo 1999: variance against 2^m / N, with a valley near 1/3."""
    assert variance_per_agent(crowd(agents=51, memory=2), seed=1) > 1.0
    assert variance_per_agent(crowd(agents=51, memory=4), seed=1) < 1.0


def test_agents_with_tables_resume_to_the_same_bits(tmp_path: Path) -> None:
    agents = cohort_table("agents", 5, response="strategy-tables", settings={"memory": 2})
    scenario = make_scenario(agents, cohort_table("farmers", 2))
    model = check_resumes(lambda: scenario.build(seed=4), 33, tmp_path)
    assert len(model.game.cohorts[0].ledger.count) == 5  # nobody shares a row
