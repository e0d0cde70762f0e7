"""What study tables measure of runs."""

from pathlib import Path

import pytest

from paper.study_table import Run, numbers
from regretless import load
from regretless.scenarios.run import Options, run
from regretless.scenarios.studies.design import CATALOGUE

TWO_GOODS = {
    "adversary.outcomes": 2,
    "cohort.agents.utility": "linear",
    "cohort.agents.parameters": {},
    "cohort.agents.count": 2,
}


@pytest.mark.parametrize("kind", ["decision-swap", "calibration"])
def test_accumulators_are_counted_of_a_forecaster_and_of_one_that_is_wrapped(
    kind: str, tmp_path: Path
) -> None:
    file = CATALOGUE / "scenarios/twenty-agents.toml"
    scenario = load(str(file), rounds=3, **{"forecaster.kind": kind}, **TWO_GOODS)
    run(scenario, Options(tmp_path / "run"))
    assert numbers(Run({}, tmp_path / "run"))["numbers"] > 0
