"""Who is covered by a theorem and who is not: one change at a time to one small scenario.

The cases are those of the lists in docs/guarantee.md.
"""

from typing import Any

import numpy as np
import pytest
import worlds

from regretless.agents.responses import BestResponse
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.scenarios.config.files import find, read

CHANCE = {"kind": "iid", "outcomes": 2}
COVER = {"kind": "cluster", "count": 2}


@register.response("indifferent")
class Indifferent(BestResponse):
    """All actions with equal probability."""

    name, lipschitz = "indifferent", 1.0

    def gap(self, actions: int) -> float:
        return 1.0

    def play(self, predicted: Array) -> Array:
        return np.full(predicted.shape, 1 / predicted.shape[1])


def some(name: str, **more: Any) -> dict[str, Any]:
    return worlds.cohort(name, 4, 3) | more


def late(gamma: float) -> dict[str, Any]:
    return {"cohort": [some("early"), some("late", enters=3, gamma=gamma)]}


BASE = {"name": "base", "rounds": 12, "seed": 1, "adversary": CHANCE, "cohort": [some("agents")]}
LAGGED, NOW = {"feedback": "lagged"}, {"feedback": "same-round"}
TRUE = {"utility": "ces", "parameters": {"rho": 0.5}}
SMOOTH, HARD = {"response": "quantal", "eta": 9.0}, {"response": "certainty-equivalent"}
CASES: dict[str, tuple[dict[str, Any], list[str]]] = {  # what is changed, guarantees by cohort
    "chance": ({}, ["decision-swap"]),
    "an opponent": ({"adversary": CHANCE | {"kind": "anti-forecast"}}, ["decision-swap"]),
    "a market, later": ({"market": LAGGED}, ["decision-swap"]),
    "a market, now": ({"market": NOW}, ["none"]),
    "private draws": (
        {"market": NOW, "cohort": [some("a", response="private")]},
        ["decision-swap"],
    ),
    "late news": ({"network": {"graph": "none", "subscribers": 1}}, ["decision-swap/none"]),
    "delay": ({"forecaster": {"delay": 2}}, ["decision-swap"]),
    "leaving": ({"cohort": [some("all"), some("some", exits=6)]}, ["decision-swap"] * 2),
    "entry near a protected loss": (late(gamma=2.0), ["decision-swap"] * 2),
    "entry far from all": (late(gamma=0.001), ["decision-swap", "none"]),
    "labels": (
        {"cohort": [some("a", **SMOOTH), some("b", **HARD), some("c", response="ensemble")]},
        ["smooth-decision-swap", "none", "decision-swap"],
    ),
    "one's own": ({"cohort": [some("own", response="indifferent")]}, ["smooth-decision-swap"]),
    "learners": ({"cohort": [some("learners", response="hedge")]}, ["none"]),
    "false reports": (
        {"cohort": [some("honest", **TRUE), some("liars", **TRUE, reports={"rho": 0.9})]},
        ["decision-swap", "none"],
    ),
    "covers": (
        {"cohort": [some("served", cover=COVER), some("own", cover=COVER | {"play": "own"})]},
        ["decision-swap", "none"],
    ),
    "a model alone": ({"forecaster": {"kind": "running-mean"}}, ["none"]),
}


def labels(config: dict[str, Any]) -> list[str]:
    """Return the guarantees of each cohort, after a run in which nobody uncovered has a bound."""
    model = worlds.played(worlds.told(config), seed=1)
    table = model.agents_frame()
    assert table.loc[table["guarantee"] == "none", "bound"].isna().all()
    grouped = table.groupby("cohort", sort=False)["guarantee"]
    return ["/".join(sorted(set(own))) for _, own in grouped]


@pytest.mark.parametrize("case", CASES)
def test_an_agent_has_the_guarantee_that_its_situation_allows(case: str) -> None:
    changes, expected = CASES[case]
    assert labels(BASE | changes) == expected


def test_an_adversary_that_sees_the_draw_leaves_no_guarantee() -> None:
    assert labels(read(find("rule-breaker")) | {"rounds": 12}) == ["none"]
