"""The command line: what a user gets for good input, and one line with a cure for bad input."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from command_results import CommandResult, RefusalOf, RunCommand
from run_files import file_bytes, read_manifest, table_bytes
from small_scenarios import NATURE_SCENARIO

import regretless
from regretless.market.model import MarketModel
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.cli import commands
from regretless.scenarios.config.files import catalogue

HOME = Path(__file__).parents[1] / "refusals"
TABLES = ["agents", "biases", "forecast_scores", "forecasts", "regret_log"]
TABLES += ["rounds", "swaps", "verdict"]
PRICES = (HOME / "prices.csv").read_text(encoding="utf-8")
MINE = """\
import shutil
from regretless.agents import ScriptedAgent
from regretless.market import register

@register.agent("mine")
class Mine(ScriptedAgent):
    def act(self, forecast, context):
        return 3

@register.agent("sweeper")
class Sweeper(ScriptedAgent):
    def act(self, forecast, context):
        shutil.rmtree("runs", ignore_errors=True)
        return 0
"""
FILES = {
    "prices.csv": PRICES,
    "prices.txt": PRICES,
    "prices": PRICES,
    "prices.parquet": PRICES,
    "market.toml": f"seed = 3\n{(HOME / 'market.toml').read_text(encoding='utf-8')}",
    "nature.toml": f"\ufeff{NATURE_SCENARIO}",  # a file may begin with a byte order mark
    "malformed.toml": "rounds = \n",
    "binary.toml": "\udcff",
    "deep.toml": f"{'a.' * 300}b = 1\n{NATURE_SCENARIO}",
    "huge.toml": NATURE_SCENARIO.replace("20", "9" * 5000),
    "bell.toml": f'policy."a\\u0007".kind = "steps"\n{NATURE_SCENARIO}',
    "unparsed.py": "def f(:\n",
    "taken.py": 'from regretless.market import register\nregister.utility("linear")(print)\n',
    "regretless.py": MINE,
    "agents.py": MINE,
    "own.py": MINE,
}
LONG = "n" * 300
REFUSED = [
    *(HOME / "commands.txt").read_text(encoding="utf-8").splitlines()[2:],
    f"run market.toml --{'x' * 5000} | No such option | --help",
    f'run nature.toml --set name="{LONG}" | nnn\': string should have at most 100 characters',
    f'run nature.toml --set network={{graph="edge-list",file="{"x/" * 3000}"}} | x\' does not',
    f"run nature.toml --set rounds={'[' * 5000}{']' * 5000} | --set",
    f"run nature.toml --set rounds={'9' * 5000} | --set",
    f"run nature.toml --out {LONG} | File name too long; shorten it",
    f"run {LONG} | File name too long; check the path",
    f"run {'x' * 5000} | xxx",
]


@pytest.fixture(autouse=True)
def working_folder(working_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (working_folder / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return working_folder


def real(*arguments: str, **variables: str) -> CommandResult:
    """Start the installed command as a process of its own, its output in pipes."""
    unwanted = {"FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"}
    environment = {key: value for key, value in os.environ.items() if key not in unwanted}
    command = [Path(sys.executable).parent / "regretless", *arguments]
    done = subprocess.run(
        command, env=environment | variables, capture_output=True, text=True, check=False
    )
    return CommandResult(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("case", REFUSED, ids=range(len(REFUSED)))
def test_a_mistake_is_one_line_and_writes_nothing(case: str, refusal_of: RefusalOf) -> None:
    before = file_bytes()
    (command, *named) = case.split(" | ")
    line = refusal_of(*command.split())
    assert [name for name in named if name not in line] == []
    assert len(line) < 2100
    assert file_bytes() == before


def test_a_real_mistake_is_one_line() -> None:
    """Nothing that Python or a library prints slips through; the module is not our ``agents``."""
    command = "run nature.toml --import agents.py --out logs --set cohort.farmers.response=mine"
    answer = real(*command.split())
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1), answer.err
    assert re.search("^regretless: .*Mine.*action 3", answer.err)
    assert not Path("logs").exists()


def test_what_the_system_refuses_anywhere_is_one_line(
    refusal_of: RefusalOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    for error, complaint in (
        (MemoryError(), "there is not enough memory; lower counts, actions or rounds"),
        (OSError(28, "No space left", "f"), "f: No space left; make room, then try again"),
    ):
        monkeypatch.setattr(commands.shared, "load_scenario", Mock(side_effect=error))
        assert refusal_of("run", "nature.toml").startswith(complaint)


def test_a_full_disk_is_resumed_where_a_run_was_left(
    refusal_of: RefusalOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    full_disk = Mock(side_effect=OSError(28, "No space left", "f"))
    monkeypatch.setattr("regretless.scenarios.run.run", full_disk)
    line = refusal_of("run", "nature.toml", "--out", "logs")
    assert line == "f: No space left; make room, then try again"
    Path("logs").mkdir()
    record = {"scenario": "nature", "config": {}, "status": "interrupted"}
    Path("logs/manifest.json").write_text(json.dumps(record), encoding="utf-8")
    line = refusal_of("run", "nature.toml", "--out", "logs")
    assert line == "f: No space left; make room, then continue with --resume"


def test_a_folder_that_goes_away_is_one_line(refusal_of: RefusalOf) -> None:
    command = "run nature.toml --import own --set cohort.farmers.response=sweeper"
    line = refusal_of(*command.split())
    assert "runs/nature/" in line
    assert "No such file or directory; leave its folder alone" in line
    assert not Path("runs").exists()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_one_line(refusal_of: RefusalOf) -> None:
    Path("shut").mkdir(mode=0o500)
    assert "give another directory" in refusal_of("run", "nature.toml", "--out", "shut/run")


def test_list_names_every_forecaster_that_a_scenario_accepts(run_command: RunCommand) -> None:
    refused = run_command("run", "nature.toml", "--set", "forecaster.kind=nobody")
    lines = run_command("list", "forecasters").out.splitlines()
    assert max(map(len, lines)) <= 80
    named = {line.split()[0] for line in lines if not line.startswith(" ")}  # before its meaning
    accepted = refused.err.partition("choose one of: ")[2].partition(";")[0].strip().split(", ")
    assert named == set(accepted) > {"decision-swap", "calibration", "running-mean"}


def output_of_run(run_command: RunCommand, *arguments: object, wrong: str = "") -> str:
    """Run a scenario that ends well; return what it printed."""
    answer = run_command("run", *arguments)
    assert (answer.status, answer.err) == (0, wrong)
    return answer.out


def test_a_run_writes_what_was_played(run_command: RunCommand) -> None:
    """The promised files, of the same values as Parquet and, without a word, as CSV."""
    output_of_run(run_command, "market.toml", "--out", "logs")
    assert (
        output_of_run(run_command, "market.toml", "--out", "text", "--format", "csv", "--quiet")
        == ""
    )
    for folder, form in (("logs", "parquet"), ("text", "csv")):
        expected = {"manifest.json", *(f"{name}.{form}" for name in TABLES)}
        assert {path.name for path in Path(folder).iterdir()} == expected
    frames = {name: pd.read_parquet(f"logs/{name}.parquet") for name in TABLES}
    for name, frame in frames.items():
        numbers = dict.fromkeys(frame.select_dtypes("number"), lambda cell: float(cell or "nan"))
        read = pd.read_csv(f"text/{name}.csv", keep_default_na=False, converters=numbers)
        for column in frame.select_dtypes("boolean"):  # empty where it is not known
            read[column] = read[column].replace({"": pd.NA}).astype("boolean")
        pd.testing.assert_frame_equal(read, frame, check_dtype=False, check_exact=True)
    manifest = read_manifest("logs")
    assert manifest["wall_seconds"] > 0
    assert set(manifest["versions"]) > {"regretless", "numpy"}
    assert manifest["started"].startswith("20")
    recorded_facts = [manifest[key] for key in ("scenario", "seed", "rounds", "status")]
    assert recorded_facts == ["tiny", 3, 20, "complete"]
    assert manifest["guarantee"] == {"bakers": "none", "drivers": "none"}
    assert manifest["config"]["cohort"][1]["eta"] == 5.0
    rounds, log, agents = (frames[name] for name in ("rounds", "regret_log", "agents"))
    prices = pd.read_csv("prices.csv").head(20)
    np.testing.assert_allclose(rounds["y_0"], (prices["bread"] - 1) / 2, atol=1e-12)
    np.testing.assert_allclose(rounds["y_1"], prices["fuel"])
    np.testing.assert_array_equal(rounds["x_0"], prices["weekday"])
    assert agents["cohort"].tolist() == ["bakers"] * 3 + ["drivers"] * 2
    np.testing.assert_allclose(log[log["round"] == 19]["swap_regret"], agents["swap_regret"])
    np.testing.assert_allclose(log.groupby("agent")["loss"].mean(), agents["mean_loss"])
    sums = frames["swaps"].groupby("agent")[["count", "contribution"]].sum()
    np.testing.assert_allclose(sums["count"], 20)
    np.testing.assert_allclose(sums["contribution"], agents["decision_swap_regret"])


def test_a_dry_run_prints_a_file_that_runs_again_elsewhere(
    run_command: RunCommand, working_folder: Path
) -> None:
    before = file_bytes()
    text = output_of_run(run_command, "market.toml", "--dry-run", "--out", "logs")
    assert file_bytes() == before
    output_of_run(run_command, "market.toml", "--out", "logs")
    Path("there").mkdir()
    os.chdir("there")  # the fixture's folder comes back with it
    Path("resolved.toml").write_text(text, encoding="utf-8")
    output_of_run(run_command, "resolved.toml", "--out", "logs")
    assert table_bytes(Path("logs")) == table_bytes(working_folder / "logs")


def test_a_dry_run_draws_few_agents_of_a_cohort(
    run_command: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    build = Scenario.build

    def counted(self: Scenario) -> MarketModel:
        counts.extend(cohort.count for cohort in self.resolved.cohorts)
        return build(self)

    monkeypatch.setattr(Scenario, "build", counted)
    large_cohort = ("--set", "cohort.growers.count=100000", "--set", "cohort.growers.types=2000")
    assert "count = 100000" in output_of_run(run_command, "crop-choice", *large_cohort, "--dry-run")
    assert counts == [20]


@pytest.mark.slow
def test_a_dry_run_of_the_catalogue_runs_again(run_command: RunCommand) -> None:
    for name in [*catalogue()][::4]:
        text = output_of_run(run_command, name, "--dry-run", "--rounds", 5)
        Path("again.toml").write_text(text, encoding="utf-8")
        assert run_command("run", "again.toml", "--dry-run").out == text


def test_options_replace_what_the_file_says(run_command: RunCommand) -> None:
    values = ["cohort.bakers.count=5", "cohort.drivers.eta = 2.5", "forecaster.kind=last-value"]
    values += ["cohort.bakers.parameters.rho={ choices = [0.5] }", 'name="other"']
    values += ["policy.weekend.at=6", "data.scale.bread=[0.5, 4.0]"]
    arguments = [argument for value in values for argument in ("--set", value)]
    assert "25 rows" in output_of_run(
        run_command, "market.toml", *arguments, "--rounds", 30, "--seed", 9
    )
    manifest = read_manifest("runs/other")
    config = manifest["config"]
    assert (manifest["rounds"], manifest["seed"], config["seed"]) == (30, 9, 9)
    bakers, drivers = config["cohort"]
    assert (bakers["count"], drivers["eta"], drivers["count"]) == (5, 2.5, 2)
    assert bakers["parameters"] == {"rho": {"choices": [0.5]}}
    assert (config["forecaster"]["kind"], config["policy"]["weekend"]["at"]) == ("last-value", 6)
    assert config["data"]["scale"] == {"bread": [0.5, 4.0]}
    rounds = pd.read_parquet("runs/other/rounds.parquet")
    assert rounds["round"].tolist() == list(range(30))
    np.testing.assert_array_equal(rounds["y_0"][25:], rounds["y_0"][:5])  # 25 rows, in a loop


def test_the_version_is_the_package_s(run_command: RunCommand) -> None:
    assert run_command("--version") == CommandResult(0, f"{regretless.__version__}\n", "")


@pytest.mark.parametrize(
    ("typed", "offered"), [("regretless sche", "schema"), ("regretless run crop", "crop-choice")]
)
def test_words_are_completed(typed: str, offered: str) -> None:
    """What the script asks that ``--install-completion`` puts into a shell."""
    word_index = str(len(typed.split()) - 1)
    shell = {"_REGRETLESS_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": word_index}
    assert real(**shell) == CommandResult(0, f"{offered}\n", "")


@pytest.mark.parametrize("word", ["--help", "list"])
def test_what_is_quick_loads_no_numpy(word: str) -> None:
    arguments = [sys.executable, "-P", "-X", "importtime", "-m", "regretless", word]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert ("typer" in loaded, "numpy" in loaded) == (True, False)
