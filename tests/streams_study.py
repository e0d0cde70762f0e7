"""The market of the bundled study ``streams``, as scenarios that tests play."""

from copy import deepcopy
from typing import Any

from small_scenarios import read_scenario

from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.studies.design import read_study

STREAMS_DESIGN = read_study("streams")


def tables_of_axis(axis: str) -> dict[str, dict[str, Any]]:
    """Return what each named point of an axis puts in the one table that it changes."""
    tables = {}
    for name, assignments in STREAMS_DESIGN.spec.grid[axis].items():
        tables[name] = {key.partition(".")[2]: value for key, value in assignments.items()}
    return tables


STREAMS = tables_of_axis("stream")  # adversary tables by their names in the study
FORECASTS = tables_of_axis("forecast")  # forecaster tables


def streams_scenario(
    adversary: dict[str, Any], forecaster: dict[str, Any], *, rounds: int, seed: int, **cohort: Any
) -> Scenario:
    """Return the study's scenario with these tables, three outcomes and these cohort keys."""
    raw = deepcopy(STREAMS_DESIGN.base)
    raw |= {"rounds": rounds, "seed": seed, "forecaster": forecaster}
    raw["adversary"] = {"outcomes": 3} | adversary
    raw["cohort"] = [raw["cohort"][0] | cohort]
    return read_scenario(raw)
