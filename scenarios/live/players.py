"""Other players for a market that is being played: forecasters and adversaries by name.

A new forecaster is the one that the scenario would have had under that name, at its beginning; it
knows nothing of the rounds before. A new adversary chooses outcomes in place of the old one, or of
the data, whose context goes on: what everybody sees before a round, such as the month, and what
the models' forecasts were, still comes from there.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from regretless.agents.adversaries import Confined
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.game.protocols import Adversary
from regretless.market.losses.outcome_spaces import Box
from regretless.market.model import MarketModel
from regretless.market.records import Context, History
from regretless.scenarios.assembly.adversaries import make_adversary
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.forecaster import KINDS
from regretless.scenarios.config.scenario import resolved, validated
from regretless.scenarios.config.world import AdversarySpec


class Dated(Confined):
    """An adversary who takes over, in the context of the one before."""

    REMEMBERED = ("before",)

    def __init__(self, adversary: Adversary, before: Adversary) -> None:
        ends = np.zeros(adversary.outcomes), np.ones(adversary.outcomes)
        super().__init__(adversary, Box(*ends))
        self.before = before

    def context(self, history: History) -> Context:
        """Return the context of the one before."""
        return self.before.context(history)


DATA = "data"  # in place of an adversary's name, where the data choose the outcomes


def named(scenario: Scenario) -> dict[str, str]:
    """Return who plays in a scenario as it stands, by role, under the names of the menus."""
    own = scenario.spec.adversary
    adversary = DATA if own is None else own.kind
    return {"forecaster": scenario.spec.forecaster.kind, "adversary": adversary}


def adversaries(scenario: Scenario, outcomes: int) -> list[str]:
    """Return who plays, and the adversaries who need to be told but the number of outcomes."""
    known = [named(scenario)["adversary"]]
    for name in register.adversary.names():
        if name in known:
            continue
        try:
            _adversary(scenario, name, outcomes)
        except UserError:
            continue
        known.append(name)
    return known


def _adversary(scenario: Scenario, name: str, outcomes: int) -> Adversary:
    table: dict[str, Any] = {"kind": name, "outcomes": outcomes}
    own = scenario.spec.adversary
    given = AdversarySpec(**table) if own is None or own.kind != name else own
    spec = scenario.spec.model_copy(update={"data": None, "adversary": given})
    return make_adversary(spec, spec.seed, game=scenario.game)


def forecasters(scenario: Scenario) -> list[str]:
    """Return the names of the scenario's own forecaster and of those that take its place."""
    data = scenario.spec.data
    columns = [] if data is None else list(data.forecasts)
    every = [named(scenario)["forecaster"], *KINDS, *columns, *register.forecaster.names()]
    return list(dict.fromkeys(every))


def replace_adversary(model: MarketModel, scenario: Scenario, name: str) -> None:
    """Let another adversary choose the outcomes; UserError if it does not fit."""
    before = model.game.adversary
    first = before.before if isinstance(before, Dated) else before
    if name == DATA and scenario.spec.adversary is None:
        model.replace(adversary=first)
        return
    chosen = _adversary(scenario, name, model.game.adversary.outcomes)
    model.replace(adversary=Dated(chosen, first))


def replace_forecaster(model: MarketModel, scenario: Scenario, name: str) -> None:
    """Let another forecaster make every block; UserError if it does not fit."""
    spec = scenario.spec
    if name != spec.forecaster.kind:
        spec = validated(resolved(spec) | {"forecaster": {"kind": name}}, origin=Path())
    other = Scenario(spec).build()
    model.replace(**{block.name: block.forecaster for block in other.game.blocks})


REPLACERS: dict[str, Callable[[MarketModel, Scenario, str], None]] = {
    "forecaster": replace_forecaster,
    "adversary": replace_adversary,
}
