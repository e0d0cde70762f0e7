"""Small worlds: the plainest scenario, with what a test changes in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.scenario import validated

# a scenario file that studies play
TINY = """\
name = "tiny"
rounds = 50

[adversary]
kind = "drifting"
outcomes = 2

[[cohort]]
name = "farmers"
utility = "ces"
parameters = { rho = [0.3, 0.9] }
count = 3
actions = 3
"""


def scenario(*cohorts: dict[str, Any], origin: Path = Path(), **keys: Any) -> Scenario:
    """Return a scenario of these cohorts against chance; a key that is None is left out."""
    raw = {"name": "small", "rounds": 60, "seed": 3, "cohort": list(cohorts)}
    if "data" not in keys:
        raw["adversary"] = {"kind": "iid", "outcomes": 2}
    kept = {key: value for key, value in (raw | keys).items() if value is not None}
    return Scenario(validated(kept, origin=origin))
