"""A scenario is resolved once, and every market of it is built of what was resolved."""

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_scenarios import cohort_table, make_scenario

from regretless import UserError, register
from regretless.agents import ScriptedAgent
from regretless.scenarios.assembly.resolved import resolve
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.config.validation import validated

GAME_FILE = "rock-paper-scissors.csv"
HANDS = ["rock", "paper", "scissors"]


def specification(*cohorts: dict[str, Any], **keys: Any) -> ScenarioSpec:
    raw = {"name": "small", "rounds": 20, "cohort": list(cohorts)}
    if "adversary" not in keys:
        raw["adversary"] = {"kind": "iid", "outcomes": 2}
    return validated(raw | keys, origin=Path())


def game_specification(**keys: Any) -> ScenarioSpec:
    """Specify a game without its sizes; ``keys`` change its one cohort of followers."""
    players = cohort_table("players", 2, 3, "game")
    adversary = {"kind": "iid"}
    return specification(players | keys, game={"file": GAME_FILE}, adversary=adversary)


def test_resolving_fills_in_the_sizes_of_a_game_and_leaves_the_specification_as_it_was() -> None:
    spec = game_specification()
    before = spec.model_dump()
    scenario = resolve(spec)
    assert spec.model_dump() == before
    assert scenario.spec.adversary is not None
    assert scenario.spec.adversary.outcomes == 3
    assert scenario.spec.outcome_names == HANDS
    assert scenario.cohorts[0].action_names == HANDS


def test_what_is_resolved_cannot_be_changed() -> None:
    scenario = resolve(specification(cohort_table("own", 2)))
    with pytest.raises(FrozenInstanceError):
        scenario.cohorts = ()  # type: ignore[misc]


def test_cohorts_without_agents_are_recorded_and_not_played() -> None:
    spec = specification(cohort_table("own", 2), cohort_table("nobody", 0))
    scenario = resolve(spec)
    assert [cohort.name for cohort in scenario.spec.cohort] == ["own", "nobody"]
    assert [cohort.name for cohort in scenario.cohorts] == ["own"]


def test_spare_agents_are_added_to_a_copy_of_the_scenario() -> None:
    scenario = resolve(specification(cohort_table("own", 2), cohort_table("others", 4)))
    with_spare = scenario.with_spare({"own": 3})
    assert [cohort.count for cohort in with_spare.cohorts] == [5, 4]
    assert [cohort.count for cohort in scenario.cohorts] == [2, 4]
    with pytest.raises(UserError, match="spare: there is no cohort 'owm'"):
        scenario.with_spare({"owm": 1})


def test_followers_who_cannot_be_counted_have_the_names_of_their_actions_all_the_same() -> None:
    spec = game_specification(count=4, types=2, multiplicity=True, entry_rate=0.5)
    cohort = resolve(spec).cohorts[0]
    assert cohort.multiplicity is False
    assert cohort.action_names == HANDS


@register.agent("hearsay")
class Hearsay(ScriptedAgent):
    """Plays 1 where its signal is high."""

    columns = ("heard",)
    heard = 0.0

    def act(self, forecast: Any, context: Any) -> int:
        self.heard = context["signal"]
        return int(self.heard > 0.5)


def test_a_spare_agent_with_a_signal_hears_it_once_it_is_let_in() -> None:
    signal = {"coordinate": 0, "noise": 0.0}
    scenario = make_scenario(cohort_table("own", 2, response="hearsay", signal=signal))
    model = scenario.build(spare={"own": 1})
    model.run(5)
    model.add("own")
    model.run(10)
    states = model.states_frame()
    heard_by_the_added = states[(states["agent"] == 3) & (states["round"] >= 5)]["heard"]
    outcomes = model.rounds_frame()["y_0"].to_numpy()
    np.testing.assert_array_equal(heard_by_the_added, outcomes[5:10])
