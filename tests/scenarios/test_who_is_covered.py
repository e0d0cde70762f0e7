"""Who is covered by a theorem and who is not: one change at a time to one small scenario.

The rows are those of the table in docs/guarantee.md.
"""

from __future__ import annotations

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
        """Return the largest loss that this may add."""
        return 1.0

    def play(self, predicted: Array) -> Array:
        """Return mixed strategies."""
        return np.full(predicted.shape, 1 / predicted.shape[1])


def some(name: str, **more: Any) -> dict[str, Any]:
    """Return a cohort of four."""
    return {"name": name, "utility": "linear", "count": 4, "actions": 3} | more


def base(**changes: Any) -> dict[str, Any]:
    """Return a scenario of one cohort with some tables replaced."""
    whole = {"name": "base", "rounds": 12, "seed": 1, "adversary": CHANCE}
    return whole | {"cohort": [some("agents")]} | changes


CASES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "chance": (base(), {"agents": "decision-swap"}),
    "an opponent": (
        base(adversary={"kind": "anti-forecast", "outcomes": 2}),
        {"agents": "decision-swap"},
    ),
    "a market, later": (base(market={"feedback": "lagged"}), {"agents": "decision-swap"}),
    "a market, now": (base(market={"feedback": "same-round"}), {"agents": "none"}),
    "private draws": (
        base(market={"feedback": "same-round"}, cohort=[some("agents", response="private")]),
        {"agents": "decision-swap"},
    ),
    "late news": (
        base(network={"graph": "none", "subscribers": 1}),
        {"agents": "decision-swap/none"},
    ),
    "delay": (base(forecaster={"delay": 2}), {"agents": "decision-swap"}),
    "leaving": (
        base(cohort=[some("all"), some("some", exits=6)]),
        {"all": "decision-swap", "some": "decision-swap"},
    ),
    "entry near a protected loss": (
        base(cohort=[some("early"), some("late", enters=3, gamma=2.0)]),
        {"early": "decision-swap", "late": "decision-swap"},
    ),
    "entry far from all": (
        base(cohort=[some("early"), some("late", enters=3, gamma=0.001)]),
        {"early": "decision-swap", "late": "none"},
    ),
    "labels": (
        base(
            cohort=[
                some("smooth", response="quantal", eta=9.0),
                some("hard", response="certainty-equivalent"),
                some("mean", response="ensemble"),
            ]
        ),
        {"smooth": "smooth-decision-swap", "hard": "none", "mean": "decision-swap"},
    ),
    "a rule of one's own": (
        base(cohort=[some("own", response="indifferent")]),
        {"own": "smooth-decision-swap"},
    ),
    "learners": (base(cohort=[some("learners", response="hedge")]), {"learners": "none"}),
    "false reports": (
        base(
            cohort=[
                some("honest", utility="ces", parameters={"rho": 0.5}),
                some("liars", utility="ces", parameters={"rho": 0.5}, reports={"rho": 0.9}),
            ]
        ),
        {"honest": "decision-swap", "liars": "none"},
    ),
    "covers": (
        base(cohort=[some("served", cover=COVER), some("own", cover=COVER | {"play": "own"})]),
        {"served": "decision-swap", "own": "none"},
    ),
    "a model alone": (base(forecaster={"kind": "running-mean"}), {"agents": "none"}),
}


def labels(config: dict[str, Any]) -> dict[str, str]:
    """Return the guarantees of each cohort, after a run in which nobody uncovered has a bound."""
    model = worlds.played(worlds.told(config), seed=1)
    table = model.agents_frame()
    assert table.loc[table["guarantee"] == "none", "bound"].isna().all()
    grouped = table.groupby("cohort", sort=False)["guarantee"]
    return {str(name): "/".join(sorted(set(own))) for name, own in grouped}


@pytest.mark.parametrize("case", CASES)
def test_an_agent_has_the_guarantee_that_its_situation_allows(case: str) -> None:
    config, expected = CASES[case]
    assert labels(config) == expected


def test_an_adversary_that_sees_the_draw_leaves_no_guarantee() -> None:
    assert labels(read(find("rule-breaker")) | {"rounds": 12}) == {"followers": "none"}
