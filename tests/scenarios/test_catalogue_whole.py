"""Every named scenario at its own size and seed, with all its measures: ``make catalogue``.

Minutes, not seconds, so the suite leaves it out; the other tests play the longer ones in part.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from regretless.scenarios import load
from regretless.scenarios.logs.directory import read_run
from regretless.scenarios.run import Options, run
from regretless.scenarios.spec.files import catalogue

pytestmark = pytest.mark.catalogue


@pytest.mark.parametrize("name", catalogue())
def test_scenario_completes_with_every_measure_it_keeps(name: str, tmp_path: Path) -> None:
    scenario = load(name)
    run(scenario, Options(tmp_path / name, log_every=100))
    manifest, tables = read_run(tmp_path / name)
    agents = tables["agents"]
    assert manifest["status"] == "complete"
    assert len(tables["rounds"]) == scenario.spec.rounds
    assert len(agents) == sum(cohort.count for cohort in scenario.spec.cohort)
    followed = manifest["exploitability"]["cohorts"].values()
    assert sum(cohort["unsolved"] for cohort in followed) == 0
    assert agents["exploitability"].notna().sum() == sum(c["followed"] for c in followed)
    promised = agents[agents["bound"].notna()]
    assert (promised["decision_swap_regret"] <= promised["bound"]).all()
    measured = agents[agents["bound_from_bias"].notna()]
    assert (measured["decision_swap_regret"] <= measured["bound_from_bias"] + 1e-9).all()
