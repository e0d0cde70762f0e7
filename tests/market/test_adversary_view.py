"""What an adversary earns and sees of a round's play: sums over agents, by their definition."""

import numpy as np
import pytest
from small_scenarios import TomlTable, cohort_table, make_scenario

from regretless.market.core.arrays import Array
from regretless.market.game.protocols import Cohort
from regretless.market.records import Round
from regretless.scenarios.assembly.scenario import Scenario

WEIGHTS = [[0.8, 0.2], [0.2, 0.8], [0.5, 0.5]]  # what each of three actions is worth
ROUNDS = 12


def scenario_with_a_paid_leader() -> Scenario:
    """Return followers who choose and enter late, and learners who mix, against a leader."""
    parameters: TomlTable = {"weights": WEIGHTS, "concentration": 6.0}
    return make_scenario(
        cohort_table("followers", 5, 3, parameters=parameters, enters=2, entry_rate=0.3),
        cohort_table("learners", 4, 3, parameters=parameters, response="hedge"),
        adversary={"kind": "myopic", "outcomes": 2, "weights": WEIGHTS},
        rounds=ROUNDS,
    )


def strategies_of_present_agents(played: Round, index: int, cohort: Cohort) -> Array:
    """Return the mixed strategy of each agent of a cohort who was there (n, A)."""
    decision = played.decisions[index]
    if decision is None:
        return np.zeros((0, cohort.loss.actions))
    is_present = decision.actions >= 0
    return decision.probabilities[cohort.row_of][is_present]


def test_play_and_payments_are_added_up_over_the_agents_who_are_there() -> None:
    model = scenario_with_a_paid_leader().build()
    for _ in range(ROUNDS):
        played = model.conclude(model.begin())
        assert played.sums is not None
        worth_of_actions = np.array(WEIGHTS) @ played.outcome
        for index, cohort in enumerate(model.game.cohorts):
            strategies = strategies_of_present_agents(played, index, cohort)
            paid = (strategies @ worth_of_actions).sum()
            totals = played.sums[cohort.name].sum(0)
            assert totals[0] == len(strategies)
            assert totals[1] == pytest.approx(paid, abs=1e-12)
            assert totals[2:] == pytest.approx(strategies.sum(0), abs=1e-12)
