"""Small files of one key each play as they did, as far as another kind of processor does, too.

And whatever the key, a run that is stopped goes on to the bytes of one that is not.
"""

import json
from pathlib import Path

import golden.figures as golden
import pytest
from resuming import check_resumes

from regretless import load

LOOSE = 0.06  # of losses and regrets: two kinds of processor differed by up to .04 in these files
KNOWN = json.loads((golden.HERE / "figures.json").read_text())


def check_figures(name: str, seen: golden.Figures) -> None:
    assert seen.keys() == KNOWN[name].keys()
    for cohort, row in seen.items():
        golden_figures = KNOWN[name][cohort]
        assert (row.keys(), row["agents"]) == (golden_figures.keys(), golden_figures["agents"]), (
            cohort
        )
        for column in [c for c in row if c.endswith(("_loss", "_regret"))]:
            assert row[column] == pytest.approx(golden_figures[column], abs=LOOSE), column


KEYS = [name.removeprefix("keys/") for name in golden.known() if name.startswith("keys/")]


@pytest.mark.parametrize("key", KEYS)
def test_a_scenario_of_one_key_has_the_figures_on_file_and_resumes(
    key: str, tmp_path: Path
) -> None:
    name = f"keys/{key}"
    scenario = load(str(golden.HERE / f"{name}.toml"))
    agents = check_resumes(lambda: scenario.build(seed=3), 70, tmp_path).agents_frame()
    check_figures(name, golden.of_agents(agents))
    for bound in agents.columns.intersection(["bound", "bound_from_bias", "bound_from_variation"]):
        bounded_agents = agents[agents[bound].notna()]
        assert (bounded_agents["decision_swap_regret"] <= bounded_agents[bound] + 1e-9).all(), bound


@pytest.mark.parametrize("name", ["offline", "workers"])
def test_what_is_not_a_scenario_has_the_figures_on_file(name: str) -> None:
    check_figures(name, golden.figures(name))
