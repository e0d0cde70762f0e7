"""A leader's seat against one cohort: the scenario with a plan in it, as plain data.

The leader keeps the payoff and the outcomes to choose among of the scenario's own adversary. Where
no market moves outcomes nobody matters to a cohort of learners but the leader, and to followers
those who hear the forecast with them: the others are left out of rehearsals.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError, closest
from regretless.market.model import MarketModel
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.files import DATA
from regretless.scenarios.config.scenario import resolved, validated
from regretless.scenarios.imports import import_modules

DIGITS = 6  # of a weight in a file


@dataclass(frozen=True)
class Attack:
    """A cohort to attack.

    ``config`` is the scenario as JSON, with an adversary of the kind ``plan``, ``rehearsed`` the
    same without those who do not matter to the cohort, ``shape`` that of a plan: phases, rows,
    outcomes of the support. ``warnings`` say what can hardly be meant in the scenario
    (``scenarios.notes``).
    """

    cohort: str
    config: str
    rehearsed: str
    shape: tuple[int, int, int]
    imports: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def model(self, seed: int, plan: Array | None = None) -> MarketModel:
        """Build what is rehearsed, with a plan (P, S, m)."""
        model = _scenario(self.rehearsed, self.imports).build(seed=seed)
        leader: Any = model.game.adversary.innermost
        if plan is not None:
            leader.distributions = plan
        return model

    @property
    def constants(self) -> bool:
        """Whether the cohort is compared with fixed actions, as the theorem on swaps needs."""
        cohorts = json.loads(self.config)["cohort"]
        return next(bool(c["constants"]) for c in cohorts if c["name"] == self.cohort)

    def place(self, model: MarketModel) -> int:
        """Return the cohort's place among those of a model."""
        return [cohort.name for cohort in model.game.cohorts].index(self.cohort)

    def file(self, plan: Array) -> dict[str, Any]:
        """Return the scenario with a plan, for a file that ``regretless run`` plays."""
        raw: dict[str, Any] = json.loads(self.config)
        raw["adversary"]["distributions"] = plan.tolist()
        return raw


def written(plan: Array) -> Array:
    """Return a plan as a file has it, with rounded weights."""
    rounded = np.round(plan, DIGITS)
    return np.asarray(rounded / rounded.sum(-1, keepdims=True))


def attacks(scenario: Scenario, *, phases: int, looking: bool, cohort: str | None) -> list[Attack]:
    """Return an attack on every cohort, or on one.

    ``phases``: of the plans; ``looking``: whether plans look at what followers played last.
    UserError if the scenario's adversary has no payoff or support that a plan could go by, or there
    is no such cohort.
    """
    model = scenario.build()
    if model.game.personal:
        why = "agents have losses of their own, against which no value of commitment is known"
        raise UserError(f"train: in this [market] {why}; take another market")
    names = [one.name for one in model.game.cohorts]
    if cohort is not None and cohort not in names:
        raise UserError(f"--cohort '{cohort}': {closest(cohort, names)}")
    raw = resolved(scenario.spec) | {"adversary": _seat(scenario, model)}
    raw.pop("description", None)
    if "game" in raw and Path(raw["game"]["file"]).parent == DATA / "games":  # a bundled one
        raw["game"]["file"] = Path(raw["game"]["file"]).name
    support = len(raw["adversary"]["distributions"][0])
    found = []
    for one in [own for own in model.game.cohorts if cohort in {None, own.name}]:
        shape = phases, one.loss.actions if looking else 1, support
        own = raw | {"adversary": raw["adversary"] | {"cohort": one.name}}
        near = own
        if model.game.market is None and model.game.network is None:
            others = [c.name for c in model.game.cohorts if c.listens]
            matter = [one.name] if not one.listens else others
            near = own | {"cohort": [c for c in own["cohort"] if c["name"] in matter]}
        given = one.name, json.dumps(own), json.dumps(near), shape
        found.append(Attack(*given, warnings=model.warnings))
    return found


@lru_cache(maxsize=4)
def _scenario(config: str, imports: tuple[str, ...]) -> Scenario:
    import_modules(list(imports))  # for a worker
    return Scenario(validated(json.loads(config), origin=Path()))


def _seat(scenario: Scenario, model: MarketModel) -> dict[str, Any]:
    """Return the table of an adversary that goes by a plan, in the place of the scenario's own."""
    leader: Any = model.game.adversary
    payoff, support = leader.payoff, leader.support
    if scenario.spec.adversary is None:
        raise UserError("train: outcomes are replayed from data; use an [adversary]")
    if payoff is None or support is None:
        given = f"adversary={{ kind = 'up-then-down', outcomes = {leader.outcomes} }}"
        raise UserError(f'train: the adversary has no payoff; give one that has, --set "{given}"')
    if (motive := payoff.keys()) is None:
        kind = type(payoff).__name__
        raise UserError(f"train: a plan's payoff is linear or the followers' loss; drop {kind}")
    own = scenario.spec.adversary.model_dump(exclude_none=True)
    table: dict[str, Any] = {key: own[key] for key in ("outcomes", "outcome_names") if key in own}
    table |= {
        "kind": "plan",
        "distributions": [[1.0] * len(support)],
        "support": np.asarray(support).tolist(),
    }
    table |= motive
    return table
