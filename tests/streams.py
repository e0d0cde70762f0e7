"""The market of the bundled study `streams`, as scenarios that tests play."""

from copy import deepcopy
from typing import Any

from small_scenarios import read_scenario

from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.studies.design import read_study

DESIGN = read_study("streams")
STREAMS, FORECASTS = (
    {
        name: {key.partition(".")[2]: value for key, value in keys.items()}
        for name, keys in DESIGN.spec.grid[axis].items()
    }
    for axis in ("stream", "forecast")
)


def market(
    adversary: dict[str, Any], forecaster: dict[str, Any], *, rounds: int, seed: int, **cohort: Any
) -> Scenario:
    raw = deepcopy(DESIGN.base) | {"rounds": rounds, "seed": seed, "forecaster": forecaster}
    raw["adversary"] = {"outcomes": 3} | adversary
    raw["cohort"] = [raw["cohort"][0] | cohort]
    return read_scenario(raw)
