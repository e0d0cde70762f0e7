"""Small worlds: the plainest scenario, with what a test changes in it."""

import tomllib
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.own_code import is_ours
from regretless.market.model import MarketModel
from regretless.market.register import Registry
from regretless.market.regret import definitions
from regretless.market.regret.ledger import MEASURES
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.files import find, override, read
from regretless.scenarios.config.validation import validated
from regretless.scenarios.studies.design import Design, read_study

Raw = dict[str, Any]
GOLDEN = Path(__file__).parent / "golden"
FEW = ("external", "swap", "decision_swap")
# a scenario file that studies play
TINY = """\
name = "tiny"
rounds = 50
adversary = { kind = "drifting", outcomes = 2 }
cohort = [
  { name = "farmers", utility = "ces", parameters = { rho = [0.3, 0.9] }, count = 3, actions = 3 },
]
"""
NATURE = """\
name = "nature"
rounds = 20
adversary = { kind = "iid", outcomes = 2 }
forecaster = { kind = "constant" }
cohort = [{ name = "farmers", utility = "linear", count = 3, actions = 3 }]
"""


def built_in(registry: Registry) -> list[str]:
    """Names that the project itself registered: tests register names of their own."""
    return [name for name in registry.names() if is_ours(registry[name])]


def cohort(name: str, count: int, actions: Any = 2, utility: str = "linear", **more: Any) -> Raw:
    return {"name": name, "count": count, "actions": actions, "utility": utility} | more


def scenario(*cohorts: dict[str, Any], origin: Path = Path(), **keys: Any) -> Scenario:
    """Return a scenario of these cohorts against chance; a key that is None is left out."""
    raw = {"name": "small", "rounds": 60, "seed": 3, "cohort": list(cohorts)}
    if "data" not in keys:
        raw["adversary"] = {"kind": "iid", "outcomes": 2}
    kept = {key: value for key, value in (raw | keys).items() if value is not None}
    return Scenario(validated(kept, origin=origin))


def told(given: Raw | str, *assignments: str, origin: Path = Path()) -> Scenario:
    """Read a scenario, of the catalogue, of golden keys, as a text or as a table, and set keys."""
    if isinstance(given, dict):
        raw = deepcopy(given)
    elif "\n" in given:
        raw = tomllib.loads(given)
    else:
        path = GOLDEN / f"{given}.toml" if given.startswith("keys/") else find(given)
        raw, origin = read(path), path.parent
    return Scenario(validated(override(raw, assignments), origin=origin))


def lean(name: str, *assignments: str, measures: Sequence[str] = FEW) -> Scenario:
    """Read a scenario of the catalogue, set keys, and measure no more than this."""
    cohorts = [cohort["name"] for cohort in read(find(name))["cohort"]]
    return told(name, *(f"cohort.{own}.measures={[*measures]}" for own in cohorts), *assignments)


def study(folder: Path, text: str, base: str = TINY, *, name: str = "sweep") -> Design:
    """Read a study file beside its scenario, ``tiny.toml``."""
    (folder / "tiny.toml").write_text(base, encoding="utf-8")
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return read_study(str(folder / f"{name}.toml"))


def played(scenario: Scenario, **keys: Any) -> MarketModel:
    model = scenario.build(**keys)
    model.run()
    return model


def logs(model: MarketModel) -> dict[int, list[tuple[int, Array, Array]]]:
    """Play to the end; return the rounds in which each agent was there, its losses and strategy."""
    found: dict[int, list[tuple[int, Array, Array]]] = {}
    while model.played < model.rounds:
        played, agent = model.conclude(model.begin()), 0
        told = zip(model.game.cohorts, played.decisions, played.losses, strict=True)
        for cohort, decision, lost in told:
            for number, row in enumerate(cohort.row_of):
                agent += 1
                if decision is not None and decision.actions[number] >= 0:
                    entry = played.number, lost[row], decision.probabilities[row]
                    found.setdefault(agent, []).append(entry)
    return found


def measured(name: str, losses: Any, actions: Any, policies: Any) -> float:
    """Measure a log: losses (T, A), actions (T,) or probabilities (T, A), policies (C, T)."""
    followed = [policies] if name in MEASURES[2:] else []
    return float(getattr(definitions, f"{name}_regret")(losses, actions, *followed))


def regrets(losses: Array, play: Array) -> list[float]:
    """Return mean loss, external, swap and decision swap regret of a log, whose policies are fixed.

    Losses are (T, A), play is actions (T,) or probabilities (T, A).
    """
    rounds, actions = losses.shape
    play = np.eye(actions)[play] if play.ndim == 1 else play
    log = losses, play, np.tile(np.arange(actions)[:, None], rounds)
    return [float((losses * play).sum() / rounds), *(measured(name, *log) for name in FEW)]
