"""Learners in scenarios: every one runs, listens to nothing, resumes, joins late; error lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import worlds

from regretless.agents.cohorts.learning import LearnerCohort
from regretless.agents.learners.base import TotalLearner
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.game.round import play_round
from regretless.market.model import MarketModel
from regretless.market.regret import definitions
from regretless.scenarios.assembly.scenario import Scenario

SETTINGS: dict[str, dict[str, Any]] = {"quantal-fictitious-play": {"eta": 10.0}}
ROUNDS = 60


def traders(**keys: Any) -> dict[str, Any]:
    """Return a cohort that listens."""
    common = {"name": "traders", "utility": "linear", "count": 4, "actions": 3}
    return common | keys


def learners(response: str = "hedge", **keys: Any) -> dict[str, Any]:
    """Return a cohort that learns, with curved losses."""
    settings = SETTINGS.get(response, {})
    common = {"name": "learners", "utility": "ces", "parameters": {"rho": 0.5}, "count": 3}
    return common | {"actions": 4, "response": response, "settings": settings} | keys


def scenario(*cohorts: dict[str, Any], **keys: Any) -> Scenario:
    adversary = {"kind": "anti-forecast", "outcomes": 2, "strength": 0.8}
    return worlds.scenario(*cohorts, **{"rounds": ROUNDS, "adversary": adversary} | keys)


def members(model: MarketModel, name: str = "learners") -> LearnerCohort:
    (found,) = [cohort for cohort in model.game.cohorts if cohort.name == name]
    assert isinstance(found, LearnerCohort)
    return found


@pytest.mark.parametrize("name", ["hedge", "exp3"])  # the others' strategies: test_learners
def test_the_ledger_of_learners_agrees_with_the_raw_log(name: str) -> None:
    model = scenario(learners(name), traders()).build()
    log = [play_round(model.game) for _ in range(ROUNDS)]
    losses = np.array([entry.losses[0] for entry in log])
    strategies = np.array([entry.decisions[0].probabilities for entry in log])
    ledger = members(model).ledger
    for k in range(len(ledger.count)):
        wanted = definitions.swap_regret(losses[:, k], strategies[:, k])
        assert ledger.regret("swap")[k] == pytest.approx(wanted, abs=1e-9)


def test_an_unfinished_learner_of_a_user_is_refused() -> None:
    class Nameless(TotalLearner):
        def step(self, losses: Any, actions: Any) -> Any:
            return self.strategy

    register.learner("nameless")(Nameless)
    with pytest.raises(UserError, match="learner 'nameless' has no name; add it"):
        scenario(learners("nameless")).build()
