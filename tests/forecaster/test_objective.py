"""A forecaster with an objective: the best of what is good enough, and no promise is touched."""

from typing import Any

import pytest
import worlds

from regretless import MarketModel, load
from regretless.forecaster.unbiased import tolerance_at

ROUNDS = 25


def bank(objective: Any) -> MarketModel:
    """Play a bank before which everybody queued a round ago."""
    keys = {"market.start": 1.0, "forecaster.objective": objective}
    scenario = load("bank-run", rounds=ROUNDS, **keys, **{"cohort.depositors.count": 10})
    for cohort in scenario.spec.cohort:
        cohort.measures = ["external", "swap", "decision_swap"]
    return worlds.played(scenario)


def test_of_two_equilibria_it_chooses_the_better_one_within_its_certificates() -> None:
    plain, wishful = bank("none"), bank("welfare")
    queue = [model.rounds_frame()["y_0"].iloc[-1] for model in (plain, wishful)]
    assert queue[0] > 0.9
    assert queue[1] < 0.5
    certificates = wishful.rounds_frame()["certificate"].to_numpy()
    assert (certificates <= [tolerance_at(t) + 1e-8 for t in range(1, ROUNDS + 1)]).all()
    agents = wishful.agents_frame()
    assert (agents["guarantee"] == "decision-swap").all()
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()
    assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()


def test_a_planner_may_choose_either_equilibrium_by_a_payoff_of_its_own() -> None:
    waits, queues = (bank({"depositors": payoff}) for payoff in ([1.0, 0.0], [0.0, 1.0]))
    assert waits.rounds_frame()["y_0"].iloc[-1] < 0.5
    assert queues.rounds_frame()["y_0"].iloc[-1] > 0.9
    for model in (waits, queues):
        agents = model.agents_frame()
        assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()


@pytest.mark.parametrize("payoff", [[0.0, 1.0], [[0.0, 1.0]]], ids=["each", "by guilt"])
def test_a_wish_is_no_knowledge(payoff: Any) -> None:
    """A prosecutor who knew who is guilty could have twice as many convicted as are guilty.

    Of 300 cases every third one is guilty at random, before five judges; convicting pays the
    prosecutor 1, or how guilty they are.
    """
    judges = worlds.cohort(
        "judges", 5, ["acquit", "convict"], "affine",
        parameters={"weights": [[-1.0], [1.0]], "gains": [[1.0, 0.0]]},
    )  # fmt: skip
    given = {"adversary": {"kind": "iid", "outcomes": 1, "concentration": 0.1, "mean": [1 / 3]}}
    given |= {"forecaster": {"kind": "decision-swap", "objective": {"judges": payoff}}}
    model = worlds.played(worlds.scenario(judges, rounds=300, **given), seed=1)
    agents = model.agents_frame()
    assert model.game.cohorts[0].ledger.count[:, 1].sum() <= 5 * 300 / 5
    assert (agents["decision_swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()


@pytest.mark.parametrize(
    ("events", "response"), [("coordinates", "ensemble"), ("losses", "private")]
)
def test_two_blocks_with_models_told_late_have_an_objective(events: str, response: str) -> None:
    """No promise is touched; agents who draw for themselves are left out, which a line says."""
    own = worlds.cohort("own", 4, 3, response=response)
    cohorts = own, worlds.cohort("other", 4, 3, "mean-variance")
    table = {"objective": "welfare", "delay": 1, "models": ["last-value"], "events": events}
    nature = {"kind": "switching", "outcomes": 2, "length": 7}
    model = worlds.played(worlds.scenario(*cohorts, adversary=nature, forecaster=table), seed=1)
    agents = model.agents_frame()
    assert (agents["guarantee"] == "decision-swap").all()
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()
    assert (agents["swap_regret"] <= agents["bound_from_bias"] + 1e-9).all()
    left = [note for note in model.notes if "leaves them out" in note]
    assert len(left) == (response == "private")
