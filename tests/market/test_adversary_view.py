"""What an adversary earns and sees of a round's play: sums over agents, by their definition."""

import numpy as np
import pytest
from small_scenarios import TomlTable, cohort_table, make_scenario

from regretless.market.core.arrays import Array
from regretless.market.core.randomness import stream
from regretless.market.game import adversary_view
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


@pytest.mark.parametrize("actions", [1, 2, 3, 8])
def test_an_agent_pays_the_mean_of_what_its_actions_pay(actions: int) -> None:
    rng = stream(4, "payment")
    strategy = rng.dirichlet(np.ones(actions))
    values = rng.normal(size=actions)

    assert adversary_view._expected_payment(strategy, values) == pytest.approx(
        strategy @ values, abs=1e-15
    )


@pytest.mark.parametrize("is_paid", [False, True])
@pytest.mark.parametrize("is_pure", [False, True])
@pytest.mark.parametrize("rows", [1, 5])
def test_agents_payments_and_play_are_summed_over_rows(
    rows: int, *, is_pure: bool, is_paid: bool
) -> None:
    rng = stream(5, "play")
    agents_of_row = rng.integers(0, 4, rows).astype(np.float64)
    choices = rng.integers(-1, 3, rows)
    agents_of_row[choices < 0] = 0.0
    strategies = rng.dirichlet(np.ones(3), rows) * (choices >= 0)[:, np.newaxis]
    if is_pure:
        strategies = np.eye(4)[choices][:, :3]
    values = rng.normal(size=(rows, 3))
    sums = np.zeros((2, 5))

    adversary_view._add_play(
        np.empty((0, 0)) if is_pure else strategies,
        choices if is_pure else np.empty(0, dtype=np.intp),
        values if is_paid else np.empty((0, 0)),
        agents_of_row,
        sums,
    )

    paid = agents_of_row @ (strategies * values).sum(1) if is_paid else 0.0
    assert sums.sum(0)[0] == agents_of_row.sum()
    assert sums.sum(0)[1] == pytest.approx(paid, abs=1e-13)
    assert sums.sum(0)[2:] == pytest.approx(agents_of_row @ strategies, abs=1e-13)
