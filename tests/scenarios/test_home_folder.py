"""A leading ~ is the home folder wherever a path is taken, as a shell would have it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from command_results import RefusalOf, RunCommand
from small_scenarios import NATURE_SCENARIO, cohort_table, play_to_end, read_scenario

from regretless import (
    OfflineOmnipredictor,
    OnlineOmnipredictor,
    UserError,
    load,
    load_study,
    read_run,
)
from regretless.agents.utilities import Newsvendor
from regretless.market.core.paths import expanded
from regretless.market.exploitability.bimatrix import read_game
from regretless.market.losses import Linear

STUDY = """
scenario = "crop-choice"
seeds = 1
rounds = 5
[grid]
"cohort.growers.count" = [2]
"""
OUTCOMES = "round,leave,take\n" + "".join(f"{t},{t * 37 % 12 / 16},0.5\n" for t in range(12))
GAME = """leader,follower,leader_payoff,follower_loss
fight,enter,0,0
fight,leave,5,-1
share,enter,2,-2
share,leave,5,-1
"""
EDGES = "from,to\n1,2\n2,3\n3,1\n"
DECISIONS = "round,action\n" + "".join(f"{t},leave\n" for t in range(12))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide an empty home folder, and a working folder beside it."""
    own = tmp_path / "home"
    working = tmp_path / "working"
    own.mkdir()
    working.mkdir()
    monkeypatch.setenv("HOME", str(own))
    monkeypatch.setenv("USERPROFILE", str(own))
    monkeypatch.chdir(working)
    return own


def test_run_and_report_take_a_path_in_the_home_folder(home: Path, run_command: RunCommand) -> None:
    few = "--set", "cohort.growers.count=2"
    run_command("run", "crop-choice", "--rounds", "5", *few, "--quiet", "--out=~/own-run")
    run_command("report", "~/own-run")
    assert (home / "own-run" / "report.html").is_file()
    assert len(read_run("~/own-run").agents) == 2
    assert not Path("~").exists()


def test_describe_and_audit_take_files_there(home: Path, run_command: RunCommand) -> None:
    (home / "outcomes.csv").write_text(OUTCOMES, encoding="utf-8")
    (home / "decisions.csv").write_text(DECISIONS, encoding="utf-8")
    run_command("describe", "~/outcomes.csv", "--out=~/starter.toml")
    run_command("audit", "~/decisions.csv", "--outcomes=~/outcomes.csv", "--out=~/own-audit")
    assert (home / "starter.toml").is_file()
    assert (home / "own-audit" / "agents.csv").is_file()
    assert not Path("~").exists()


def test_train_takes_a_scenario_there_and_writes_there(home: Path, run_command: RunCommand) -> None:
    (home / "own.csv").write_text(GAME, encoding="utf-8")
    entrants = cohort_table("entrants", 2, 2, "game", response="hedge")
    own = {"name": "own", "rounds": 10, "game": {"file": "~/own.csv"}, "cohort": [entrants]}
    own["adversary"] = {"kind": "up-then-down"}
    (home / "own.toml").write_text(tomli_w.dumps(own), encoding="utf-8")
    search = ("--algorithm", "exp3", "--budget", "8", "--phases", "2", "--jobs", "1")
    assert (
        run_command("train", "~/own.toml", *search, "--quiet", "--out=~/own-training").status == 0
    )
    assert (home / "own-training" / "attackers.csv").is_file()
    assert not Path("~").exists()


def test_a_study_its_report_and_its_tables_may_be_there(
    home: Path, run_command: RunCommand
) -> None:
    (home / "own.toml").write_text(STUDY, encoding="utf-8")
    assert (
        run_command("study", "~/own.toml", "--quiet", "--jobs", "1", "--out=~/own-study").status
        == 0
    )
    assert (home / "own-study" / "study.json").is_file()
    assert run_command("report", "~/own-study", "--tables=~/own-tables").status == 0
    assert (home / "own-tables" / "cohorts.csv").is_file()
    load_study("~/own-study").export("~/own-export")
    assert (home / "own-export" / "cohorts.csv").is_file()
    assert not Path("~").exists()


FILES_OF_SCENARIOS: dict[str, tuple[str, dict[str, Any]]] = {  # content, and what names the file
    "data.file": (
        "a\n0.1\n0.9\n0.4\n",
        {
            "data": {"file": "~/own.csv", "outcomes": ["a"], "scale": {"a": [0.0, 1.0]}},
            "cohort": [cohort_table("own", 3)],
        },
    ),
    "game.file": (
        GAME,
        {
            "game": {"file": "~/own.csv"},
            "adversary": {"kind": "anti-forecast"},
            "cohort": [cohort_table("own", 3, 2, "game")],
        },
    ),
    "network.file": (
        EDGES,
        {
            "network": {"graph": "edge-list", "file": "~/own.csv"},
            "adversary": {"kind": "drifting", "outcomes": 1},
            "cohort": [cohort_table("own", 3)],
        },
    ),
}


@pytest.mark.parametrize("key", FILES_OF_SCENARIOS)
def test_every_key_of_a_scenario_that_names_a_file_takes_one_there(home: Path, key: str) -> None:
    content, tables = FILES_OF_SCENARIOS[key]
    (home / "own.csv").write_text(content, encoding="utf-8")
    scenario = {"name": "own", "rounds": 3} | tables
    (home / "own.toml").write_text(tomli_w.dumps(scenario), encoding="utf-8")
    assert len(play_to_end(load("~/own.toml")).rounds_frame()) == 3
    table = key.partition(".")[0]
    nobodys = scenario | {table: scenario[table] | {"file": "~nobody-has-this-name/own.csv"}}
    with pytest.raises(UserError, match=f"^{key} .*: no such home folder; write it out$"):
        read_scenario(nobodys)


def test_a_scenario_file_that_is_not_there_is_named() -> None:
    with pytest.raises(UserError, match=r"none\.toml' does not exist"):
        load("~/none.toml")


def test_a_study_takes_its_scenario_from_there(home: Path, run_command: RunCommand) -> None:
    (home / "base.toml").write_text(NATURE_SCENARIO, encoding="utf-8")
    Path("own.toml").write_text('scenario = "~/base.toml"\nseeds = 1\n', encoding="utf-8")
    run_command("study", "own.toml", "--quiet", "--jobs", "1", "--out", "out")
    assert load_study("out").runs() == [0]
    text = 'scenario = "~nobody-has-this-name/base.toml"\n'
    Path("nobodys.toml").write_text(text, encoding="utf-8")
    answer = run_command("study", "nobodys.toml", "--out", "none")
    assert answer.err.startswith("regretless: scenario '~nobody-has-this-name/base.toml'")


def saved_online(path: str) -> OnlineOmnipredictor:
    """Save a server and load it."""
    shop = Newsvendor(orders=np.array([1.0, 2.0]), underage=1.0, overage=1.0)
    OnlineOmnipredictor({"shop": shop}, scale=(0, 4)).save(path)
    return OnlineOmnipredictor.load(path)


def saved_offline(path: str) -> OfflineOmnipredictor:
    """Save an estimator and load it."""
    pytest.importorskip("skops")
    sides = Linear(np.array([[1.0], [-1.0]]), np.array([0.0, 1.0]))
    model = OfflineOmnipredictor([sides], base="none", rounds_kept=2)
    model.fit(None, np.linspace(0, 1, 9)).save(path)
    return OfflineOmnipredictor.load(path)


@pytest.mark.parametrize("saved_and_loaded", [saved_online, saved_offline])
def test_a_model_file_may_be_there(home: Path, saved_and_loaded: Callable[[str], object]) -> None:
    saved_and_loaded("~/model.file")
    assert (home / "model.file").is_file()
    assert not Path("~").exists()
    with pytest.raises(UserError, match=r"^path '~nobody-has-this-name/x': no such home folder"):
        saved_and_loaded("~nobody-has-this-name/x")


def test_a_game_file_may_be_there(home: Path) -> None:
    (home / "own.csv").write_text(GAME, encoding="utf-8")
    assert read_game("~/own.csv").leader_actions == ("fight", "share")


def test_a_module_there_is_refused_with_what_to_write(home: Path, refusal_of: RefusalOf) -> None:
    """Modules have names and no paths."""
    line = refusal_of("run", "crop-choice", "--import=~/mine.py")
    assert line == "--import ~/mine.py: no module's name; from its folder, write mine"


def test_the_home_of_nobody_is_refused_in_one_line(refusal_of: RefusalOf) -> None:
    with pytest.raises(UserError, match="no such home folder; write it out"):
        expanded("~nobody-has-this-name/x")
    line = refusal_of("run", "crop-choice", "--out=~nobody-has-this-name/x")
    assert "no such home folder" in line
