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


@register.response("indifferent")
class Indifferent(BestResponse):
    """All actions with equal probability."""

    name, lipschitz = "indifferent", 1.0

    def gap(self, actions: int) -> float:
        return 1.0

    def play(self, predicted: Array) -> Array:
        return np.full(predicted.shape, 1 / predicted.shape[1])


def some(name: str = "agents", **more: Any) -> worlds.Raw:
    return worlds.cohort(name, 4, 3) | more


CHANCE = {"kind": "iid", "outcomes": 2}
BASE = {"name": "base", "rounds": 12, "seed": 1, "adversary": CHANCE, "cohort": [some()]}
NOW = {"market": {"feedback": "same-round"}}
TRUE = {"utility": "ces", "parameters": {"rho": 0.5}}
LIARS = some("liars", **TRUE, reports={"rho": 0.9})
SMOOTH, HARD = {"response": "quantal", "eta": 9.0}, {"response": "certainty-equivalent"}
COVER = {"kind": "cluster", "count": 2}
OWN = some("own", cover=COVER | {"play": "own"})
NEAR, FAR = (some("late", enters=3, gamma=gamma) for gamma in (2.0, 0.001))
DECISION, NONE = "decision-swap", "none"
CASES: dict[str, tuple[worlds.Raw, list[str]]] = {  # what is changed, guarantees by cohort
    "chance": ({}, [DECISION]),
    "an opponent": ({"adversary": CHANCE | {"kind": "anti-forecast"}}, [DECISION]),
    "a market, later": ({"market": {"feedback": "lagged"}}, [DECISION]),
    "a market, now": (NOW, [NONE]),
    "private draws": (NOW | {"cohort": [some(response="private")]}, [DECISION]),
    "late news": ({"network": {"graph": "none", "subscribers": 1}}, ["decision-swap/none"]),
    "delay": ({"forecaster": {"delay": 2}}, [DECISION]),
    "leaving": ({"cohort": [some(), some("some", exits=6)]}, [DECISION, DECISION]),
    "entry near a protected loss": ({"cohort": [some(), NEAR]}, [DECISION, DECISION]),
    "entry far from all": ({"cohort": [some(), FAR]}, [DECISION, NONE]),
    "labels": (
        {"cohort": [some("a", **SMOOTH), some("b", **HARD), some("c", response="ensemble")]},
        ["smooth-decision-swap", NONE, DECISION],
    ),
    "one's own": ({"cohort": [some(response="indifferent")]}, ["smooth-decision-swap"]),
    "learners": ({"cohort": [some(response="hedge")]}, [NONE]),
    "false reports": ({"cohort": [some(**TRUE), LIARS]}, [DECISION, NONE]),
    "covers": ({"cohort": [some(cover=COVER), OWN]}, [DECISION, NONE]),
    "a model alone": ({"forecaster": {"kind": "running-mean"}}, [NONE]),
    "an adversary that sees the draw": (read(find("rule-breaker")) | {"rounds": 12}, [NONE]),
}


@pytest.mark.parametrize("case", CASES)
def test_an_agent_has_the_guarantee_that_its_situation_allows(case: str) -> None:
    """And nobody uncovered has a bound."""
    changes, expected = CASES[case]
    table = worlds.played(worlds.told(BASE | changes), seed=1).agents_frame()
    assert table.loc[table["guarantee"] == NONE, "bound"].isna().all()
    grouped = table.groupby("cohort", sort=False)["guarantee"]
    assert ["/".join(sorted(set(own))) for _, own in grouped] == expected
