"""How often a round asks benchmark policies what they suggest."""

import numpy as np
import pytest
from small_scenarios import read_scenario

from regretless.agents.policies import NamedPolicy, Steps
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.records import Context, suggestions_to_all

ROUNDS = 5
SMALL_CROP_CHOICE = ("rounds=5", "cohort.growers.count=3")
MONTHS = [Context(("month",), np.array([float(month)])) for month in (2, 7, 11)]


class Alternating:
    """A rule that suggests another of two actions each time it is asked."""

    def __init__(self) -> None:
        self.n_asked = 0

    def __call__(self, context: Context) -> int:
        self.n_asked += 1
        return self.n_asked % 2


@pytest.fixture
def asked_features(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which every question to steps adds their feature."""
    features = []
    answer = Steps.__call__

    def note_and_answer(steps: Steps, context: Context) -> int:
        features.append(steps.feature)
        return answer(steps, context)

    monkeypatch.setattr(Steps, "__call__", note_and_answer)
    return features


@pytest.mark.parametrize("events", ["losses", "coordinates"])
def test_a_round_asks_the_steps_of_a_scenario_once(events: str, asked_features: list[str]) -> None:
    scenario = read_scenario("crop-choice", *SMALL_CROP_CHOICE, f"forecaster.events={events}")
    model = scenario.build(seed=1)
    asked_features.clear()
    for _ in range(ROUNDS):
        model.step()
    assert asked_features == ["month", "wet_yesterday"] * ROUNDS


def test_forecaster_and_seat_each_ask_a_policy_of_a_users_own() -> None:
    alternating_policy = Alternating()
    register.policy("alternating")(alternating_policy)
    scenario = read_scenario(
        "crop-choice", *SMALL_CROP_CHOICE, 'cohort.growers.policies=["by-month","alternating"]'
    )
    model = scenario.build(seed=1)
    alternating_policy.n_asked = 0
    for _ in range(ROUNDS):
        model.step()
    assert alternating_policy.n_asked == 2 * ROUNDS


def test_steps_suggest_anew_in_every_context() -> None:
    policies = (NamedPolicy("calendar", Steps("month", edges=[6, 9], actions=[2, 0, 1])),)
    suggested = [suggestions_to_all(policies, month, 3).tolist() for month in MONTHS]
    assert suggested == [[2], [0], [1]]


def test_policies_of_two_cohorts_suggest_different_actions_in_one_context() -> None:
    july = Context(("month",), np.array([7.0]))
    rice = (NamedPolicy("rice", Steps("month", edges=[], actions=[0])),)
    vines = (NamedPolicy("vines", Steps("month", edges=[], actions=[3])),)
    suggested = [suggestions_to_all(policies, july, 6).tolist() for policies in (rice, vines, rice)]
    assert suggested == [[0], [3], [0]]


def test_a_suggestion_that_was_kept_is_checked_against_the_actions_of_another_cohort() -> None:
    july = Context(("month",), np.array([7.0]))
    vines = (NamedPolicy("vines", Steps("month", edges=[], actions=[3])),)
    suggestions_to_all(vines, july, 6)
    with pytest.raises(UserError, match="'vines' suggests 3; return an action from 0 to 1"):
        suggestions_to_all(vines, july, 2)


def test_a_list_of_policies_that_changes_is_asked_again() -> None:
    july = Context(("month",), np.array([7.0]))
    policies = [NamedPolicy("rice", Steps("month", edges=[], actions=[0]))]
    suggestions_to_all(policies, july, 6)
    policies[0] = NamedPolicy("vines", Steps("month", edges=[], actions=[3]))
    assert suggestions_to_all(policies, july, 6).tolist() == [3]
