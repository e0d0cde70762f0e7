"""Small scenarios: the plainest one, with what a test changes in it, read, built and played."""

import tomllib
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from log_measures import BASIC_MEASURES

from regretless.forecaster.models.auto_series import lacks_its_package
from regretless.market import register
from regretless.market.core.own_code import is_ours
from regretless.market.model import MarketModel
from regretless.market.register import Registry
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.files import find, override, read
from regretless.scenarios.config.validation import validated
from regretless.scenarios.studies.design import Design, read_study

TomlTable = dict[str, Any]
GOLDEN_FOLDER = Path(__file__).parent / "golden"
TINY_SCENARIO = """\
name = "tiny"
rounds = 50
adversary = { kind = "drifting", outcomes = 2 }
cohort = [
  { name = "farmers", utility = "ces", parameters = { rho = [0.3, 0.9] }, count = 3, actions = 3 },
]
"""
# a constant forecast against chance: the quickest that a command can run
NATURE_SCENARIO = """\
name = "nature"
rounds = 20
adversary = { kind = "iid", outcomes = 2 }
forecaster = { kind = "constant" }
cohort = [{ name = "farmers", utility = "linear", count = 3, actions = 3 }]
"""


def built_in_names(registry: Registry) -> list[str]:
    """Return the names that the project itself registers: tests register names of their own."""
    return [name for name in registry.names() if is_ours(registry[name])]


def names_of_models_that_can_be_made() -> list[str]:
    """Return the names of registered models, without those whose package is not installed."""
    return [name for name in register.forecaster.names() if not lacks_its_package(name)]


def cohort_table(
    name: str, count: int, actions: Any = 2, utility: str = "linear", **keys: Any
) -> TomlTable:
    """Return a cohort as a scenario file has it, with these keys and any others."""
    return {"name": name, "count": count, "actions": actions, "utility": utility} | keys


def make_scenario(*cohorts: TomlTable, origin: Path = Path(), **keys: Any) -> Scenario:
    """Return a scenario of these cohorts against chance, 60 rounds long.

    Other keys of the scenario are added or replaced; one whose value is None is left out.
    """
    raw = {"name": "small", "rounds": 60, "seed": 3, "cohort": list(cohorts)}
    if "data" not in keys:
        raw["adversary"] = {"kind": "iid", "outcomes": 2}
    raw |= keys
    present = {key: value for key, value in raw.items() if value is not None}
    return Scenario(validated(present, origin=origin))


def read_scenario(source: TomlTable | str, *assignments: str, origin: Path = Path()) -> Scenario:
    """Read a scenario, and set keys as ``--set`` does.

    The source is a table, the text of a scenario file, the name of a scenario of the catalogue, or
    ``keys/NAME`` for a file of ``golden/keys``.
    """
    if isinstance(source, dict):
        raw = deepcopy(source)
    elif "\n" in source:
        raw = tomllib.loads(source)
    else:
        is_golden = source.startswith("keys/")
        path = GOLDEN_FOLDER / f"{source}.toml" if is_golden else find(source)
        raw = read(path)
        origin = path.parent
    return Scenario(validated(override(raw, assignments), origin=origin))


def read_catalogue_scenario(
    name: str, *assignments: str, measures: Sequence[str] = BASIC_MEASURES
) -> Scenario:
    """Read a scenario of the catalogue, set keys, and measure no more than these regrets."""
    cohorts = read(find(name))["cohort"]
    measured = [f"cohort.{cohort['name']}.measures={[*measures]}" for cohort in cohorts]
    return read_scenario(name, *measured, *assignments)


def write_study(
    folder: Path, text: str, base: str = TINY_SCENARIO, *, name: str = "sweep"
) -> Design:
    """Write a study file and its scenario ``tiny.toml`` to a folder, and read the study."""
    (folder / "tiny.toml").write_text(base, encoding="utf-8")
    (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return read_study(str(folder / f"{name}.toml"))


def play_to_end(scenario: Scenario, **options: Any) -> MarketModel:
    """Build a scenario's model and play all its rounds; options are those of ``build``."""
    model = scenario.build(**options)
    model.run()
    return model
