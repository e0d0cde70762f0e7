"""A leading ~ is the home folder wherever a path is taken, as a shell would have it."""

from pathlib import Path
from typing import Any

import pytest
import worlds
from desk import Call, Refused

from regretless import UserError, load, read_run
from regretless.scenarios.config.files import expanded

STUDY = """
scenario = "crop-choice"
seeds = 1
rounds = 5
[grid]
"cohort.growers.count" = [2]
"""
OUTCOMES = "round,leave,take\n" + "".join(f"{t},{t * 37 % 12 / 16},0.5\n" for t in range(12))
DECISIONS = "round,action\n" + "".join(f"{t},leave\n" for t in range(12))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide an empty home folder, and a working folder beside it."""
    own, working = tmp_path / "home", tmp_path / "working"
    own.mkdir()
    working.mkdir()
    monkeypatch.setenv("HOME", str(own))
    monkeypatch.setenv("USERPROFILE", str(own))
    monkeypatch.chdir(working)
    return own


def test_run_and_report_take_a_path_in_the_home_folder(home: Path, call: Call) -> None:
    few = "--set", "cohort.growers.count=2"
    call("run", "crop-choice", "--rounds", "5", *few, "--quiet", "--out=~/own-run")
    call("report", "~/own-run")
    assert (home / "own-run" / "report.html").is_file()
    assert len(read_run("~/own-run").agents) == 2
    assert not Path("~").exists()


def test_study_takes_a_file_and_a_folder_there(home: Path, call: Call) -> None:
    (home / "own.toml").write_text(STUDY, encoding="utf-8")
    call("study", "~/own.toml", "--quiet", "--out=~/own-study")
    assert (home / "own-study" / "study.json").is_file()
    assert not Path("~").exists()


def test_describe_and_audit_take_files_there(home: Path, call: Call) -> None:
    (home / "outcomes.csv").write_text(OUTCOMES, encoding="utf-8")
    (home / "decisions.csv").write_text(DECISIONS, encoding="utf-8")
    call("describe", "~/outcomes.csv", "--out=~/starter.toml")
    call("audit", "~/decisions.csv", "--outcomes=~/outcomes.csv", "--out=~/own-audit")
    assert (home / "starter.toml").is_file()
    assert (home / "own-audit" / "agents.csv").is_file()
    assert not Path("~").exists()


def test_a_scenario_file_and_its_data_may_be_there(home: Path) -> None:
    (home / "stream.csv").write_text("a\n0.1\n0.9\n0.4\n", encoding="utf-8")
    data: dict[str, Any] = {"file": "~/stream.csv", "outcomes": ["a"], "scale": {"a": [0.0, 1.0]}}
    own = worlds.cohort("own", 2, 2)
    model = worlds.played(worlds.told({"name": "own", "rounds": 3, "data": data, "cohort": [own]}))
    assert model.rounds_frame()["y_0"].tolist() == [0.1, 0.9, 0.4]
    with pytest.raises(UserError, match=r"none\.toml' does not exist"):
        load("~/none.toml")


def test_the_home_of_nobody_is_refused_in_one_line(refused: Refused) -> None:
    with pytest.raises(UserError, match="no such home folder; write it out"):
        expanded("~nobody-has-this-name/x")
    line = refused("run", "crop-choice", "--out=~nobody-has-this-name/x")
    assert "no such home folder" in line
