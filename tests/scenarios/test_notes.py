"""What a run says beside its results: what is left out, and what can hardly be meant."""

from pathlib import Path
from typing import Any

import pytest
import tomli_w
from command_results import RunCommand
from run_files import read_manifest
from small_scenarios import TomlTable, cohort_table, play_to_end, read_scenario

from regretless.agents import ScriptedAgent
from regretless.market import register
from regretless.market.core.errors import UserError
from regretless.market.model import MarketModel

IDLE = {"cost": [72, 144]}  # of firms that make nothing
ALIKE = {"weights": [[0.2]] * 6}


@register.agent("noted")
class Mortal(ScriptedAgent):
    """Two of them leave after their fourth round."""

    age = 0

    def act(self, forecast: Any, context: Any) -> int:
        return 0

    def learn(self, losses: Any, outcome: Any) -> None:
        self.age += 1
        if self.age == 4 and self.number <= 2:
            self.leave()


def scenario_of_makers(
    parameters: TomlTable, utility: str = "firm", count: int = 20, **own: Any
) -> TomlTable:
    """Return the table of a scenario of firms against random outcomes."""
    makers = cohort_table("makers", count, 6, utility, parameters=parameters)
    raw = {"name": "nature", "rounds": 12, "cohort": [makers]}
    return raw | {"adversary": {"kind": "iid", "outcomes": 1} | own}


def build_scenario(raw: TomlTable | str, *assignments: str, origin: Path = Path()) -> MarketModel:
    """Build a scenario from its table or text."""
    return read_scenario(raw, *assignments, origin=origin).build()


def test_an_outcome_that_is_known_before_its_round_is_warned_of() -> None:
    context_key = 'data.context=["month", "wet_yesterday", "wind"]'
    (warning,) = build_scenario("crop-choice", "cohort.growers.count=9", context_key).warnings
    assert warning.startswith("data.context: everybody knows the outcome 'wind'")


@pytest.mark.parametrize(
    ("utility", "parameters", "count", "warned"),
    [
        ("firm", IDLE, 20, 1),
        ("linear", ALIKE, 20, 1),
        ("firm", {"cost": {"choices": [0.1, 100.0]}}, 20, 0),  # one who can use it is enough
        ("firm", IDLE, 200_000, 1),  # of a big population a sample is looked at
    ],
)
def test_parameters_out_of_proportion_are_warned_of(
    utility: str, parameters: TomlTable, count: int, warned: int
) -> None:
    model = build_scenario(scenario_of_makers(parameters, utility, count))
    assert model.notes == model.warnings
    assert len(model.notes) == warned
    for note in model.notes:
        assert all(word in note for word in ("cohort.makers", f"'{utility}'", "parameters"))


def test_a_run_a_study_and_a_training_show_warnings_once(
    working_folder: Path, run_command: RunCommand
) -> None:
    """On standard error before all; notes are in the manifest and among the results."""
    (working_folder / "nature.toml").write_text(tomli_w.dumps(scenario_of_makers(IDLE)))
    sweep = {"scenario": "nature.toml", "seeds": 2, "grid": {"rounds": [3, 4]}}
    (working_folder / "sweep.toml").write_text(tomli_w.dumps(sweep))
    leader = "--set adversary={kind='up-then-down',outcomes=1} --rounds 8"
    for command in (
        "run nature.toml --out run",
        "study sweep.toml --out study --jobs 1",
        f"train nature.toml {leader} --algorithm cma --budget 16 --jobs 1",
    ):
        result = run_command(*command.split(), "--quiet")
        assert (result.status, result.out) == (0, "")
        assert result.err.startswith("regretless: cohort.makers: with utility 'firm' ")
        assert result.err.count("\n") == 1
    (note,) = read_manifest("run")["notes"]
    printed = " ".join(run_command("run", "nature.toml", "--out", "again").out.split())
    assert " ".join(note.split()) in printed
    leaving = run_command("run", "nature.toml", "--set", "cohort.makers.response=noted").out
    assert "makers: 2 of 20 agents left by themselves, the first in round 4" in leaving


@pytest.mark.parametrize(
    ("top", "more", "warned"), [(7.9, {}, 0), (7.0, {}, 1), (7.0, {"clip": True}, 0)]
)
def test_many_clipped_rows_are_warned_of(
    top: float, more: TomlTable, warned: int, tmp_path: Path
) -> None:
    """Of ten rows three are beyond the lower top."""
    rows = [0, 1, 2, 3, 4, 5, 6, 7.5, 7.6, 7.7]
    (tmp_path / "heat.csv").write_text("\n".join(["heat", *map(str, rows)]), encoding="utf-8")
    data = {"file": "heat.csv", "outcomes": ["heat"], "scale": {"heat": [0.0, top]}} | more
    bathers = cohort_table("bathers", 5, 4, "newsvendor")
    raw = {"name": "heat", "rounds": 10, "cohort": [bathers], "data": data}
    warnings = build_scenario(raw, origin=tmp_path).warnings
    assert len(warnings) == warned
    assert all("30.0 %" in line and "data.scale" in line for line in warnings)


@pytest.mark.parametrize("kind", ["iid", "drifting", "cyclic", "switching"])
def test_outcomes_that_are_nearly_a_coin_toss_are_asked_for_twice(kind: str) -> None:
    raw = scenario_of_makers({"cost": 0.1}, kind=kind, concentration=0.01)
    with pytest.raises(UserError, match=r"concentration is 0\.01.*extreme = true"):
        build_scenario(raw)
    meant = play_to_end(read_scenario(raw, "adversary.extreme=true"))
    assert meant.rounds_frame()["y_0"].round(2).isin([0.0, 1.0]).mean() > 0.5


def test_a_nature_without_noise_is_named() -> None:
    (note,) = build_scenario(scenario_of_makers({"cost": 0.1}, concentration=0)).notes
    assert "adversary.concentration = 0" in note


@pytest.mark.usefixtures("working_folder")
@pytest.mark.parametrize("forecaster", ["running-mean", "decision-swap"])
def test_a_bound_that_no_theorem_promises_is_said_to_be_of_this_run(
    forecaster: str, run_command: RunCommand
) -> None:
    two_cohorts = [cohort_table("bakers", 3), cohort_table("brewers", 3)]
    raw = {"name": "towns", "rounds": 12, "cohort": two_cohorts}
    raw |= {"adversary": {"kind": "iid", "outcomes": 2}, "forecaster": {"kind": forecaster}}
    Path("towns.toml").write_text(tomli_w.dumps(raw), encoding="utf-8")
    printed = run_command("run", "towns.toml").out
    line = "bound of bakers, brewers: from the biases of this run; no theorem promises it"
    assert (line in printed) == (forecaster == "running-mean")


@pytest.mark.usefixtures("working_folder")
@pytest.mark.parametrize("models", ["[]", '["panel"]'])
def test_names_of_models_are_defined_where_models_were_compared(
    models: str, run_command: RunCommand
) -> None:
    options = ("--rounds=12", "--set=cohort.growers.count=2", f"--set=forecaster.models={models}")
    printed = run_command("run", "crop-choice", "--verbose", *options).out
    assert ("Models: the number in a name is" in printed) == (models != "[]")
