"""The command line: what a user gets for good input, and one line with a cure for bad input."""

import os
import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from desk import Answer, Call, Refused
from worlds import NATURE
from written import manifest, tables

import regretless
from regretless.market.model import MarketModel
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.cli import commands
from regretless.scenarios.config.files import catalogue

COMMAND = Path(sys.executable).parent / "regretless"
HOME = Path(__file__).parents[1] / "refusals"
TABLES = (
    *("agents", "biases", "forecast_scores", "forecasts"),
    *("regret_log", "rounds", "swaps", "verdict"),
)
MARKET = f"seed = 3\n{(HOME / 'market.toml').read_text(encoding='utf-8')}"
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


@pytest.fixture(autouse=True)
def desk(desk: Path) -> Path:
    lay_out(desk)
    return desk


def lay_out(folder: Path) -> None:
    (folder / "prices.csv").write_text(PRICES, encoding="utf-8")
    (folder / "market.toml").write_text(MARKET, encoding="utf-8")
    (folder / "nature.toml").write_text(NATURE, encoding="utf-8")


def real(folder: Path, *words: object, **variables: str) -> Answer:
    """Start the installed command as a process of its own, its output in pipes."""
    unwanted = {"FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"}
    environment = {key: value for key, value in os.environ.items() if key not in unwanted}
    done = subprocess.run(
        [COMMAND, *map(str, words)],
        cwd=folder,
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Answer(done.returncode, done.stdout, done.stderr)


def edited(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1
    return text.replace(old, new)


BAD_FILES: dict[str, str | bytes] = {
    "malformed.toml": "rounds = \n",
    "binary.toml": b"\xff\xfe",
    "prices.txt": PRICES,
    "prices": PRICES,
    "prices.parquet": PRICES,
    "liner.toml": edited(NATURE, "linear", "liner"),
    "escaped.toml": edited(NATURE, '"nature"', '"../../escaped"'),
    "unparsed.py": "def f(:\n",
    "taken.py": 'from regretless.market import register\nregister.utility("linear")(print)\n',
    "regretless.py": MINE,
    "three.py": MINE,
} | {
    f"{name}.toml": edited(MARKET, "prices.csv", name)
    for name in ("prices.txt", "prices", "prices.parquet")
}
REFUSED = [
    "run prices.txt.toml | data.file | prices.txt | .csv or .parquet",
    "run prices.toml | data.file | .csv or .parquet",
    "run prices.parquet.toml | data.file | prices.parquet",
    "run market.toml --set rounds | --set rounds | KEY=VALUE",
    "run market.toml --set =5 | --set =5 | KEY=VALUE",
    "run market.toml --set cohort.bakers=5 | --set cohort.bakers",
    "run market.toml --format xml | --format xml | parquet or csv",
    "run market.toml --rounds 0 | --rounds",
    "run market.toml --seed -1 | --seed",
    "run market.toml --log-every 0 | --log-every",
    "run market.toml --frobnicate | --frobnicate",
    "run market.toml --rounds | --rounds",
    "run market.toml market.toml | market.toml",
    "run market.toml --import no_such_module | --import | no_such_module",
    "run market.toml --import absent.py | absent",
    "run nature.toml --import unparsed | SyntaxError",
    "run nature.toml --import taken | 'linear'",
    "run nature.toml --import regretless | regretless",
    "run nature.toml --out x --import three --set cohort.farmers.response=mine | Mine | action 3",
    "run escaped.toml | name",
    "run liner.toml --dry-run | 'liner'",
    "run crop-choise | 'crop-choise' | did you mean 'crop-choice'",
    "run absent.toml | 'absent.toml'",
    "run . | '.'",
    "run malformed.toml | malformed.toml | line 1",
    "run binary.toml | binary.toml",
    "run | SCENARIO",
    "rum crop-choice | 'rum' | 'run'",
    "report absent | absent does not exist | folder of a run",
    "report . | manifest.json",
    "dashboard --set cohort.growers.count=0 | count = 0",
    "schema scenari | unknown schema 'scenari'; did you mean 'scenario'",
]


@pytest.mark.parametrize("case", REFUSED)
def test_a_mistake_is_one_line_and_writes_nothing(case: str, refused: Refused, desk: Path) -> None:
    for name, content in BAD_FILES.items():
        (desk / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    before = {path for path in desk.rglob("*") if "__pycache__" not in path.parts}
    words, *named = case.split(" | ")
    line = refused(*words.split())
    assert [name for name in named if name not in line] == []
    assert {path for path in desk.rglob("*") if "__pycache__" not in path.parts} == before


def test_a_real_mistake_is_one_line(desk: Path) -> None:
    """Nothing that Python or a library prints slips through; the module is not our ``agents``."""
    (desk / "agents.py").write_text(MINE, encoding="utf-8")
    words = "run nature.toml --import agents.py --out logs --set cohort.farmers.response=mine"
    answer = real(desk, *words.split())
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1), answer.err
    assert re.search("^regretless: .*Mine.*action 3", answer.err)
    assert not (desk / "logs").exists()


# Strange files and paths, no memory, no room, no folder.

TWENTY = "rounds = 20"
LONG = f'network = {{ graph = "edge-list", file = "{"x/" * 3000}" }}'
STRANGE = [  # a line of the good file, what stands there instead, and what is said
    (TWENTY, f"{'a.' * 300}b = 1", "nested more than 50 deep; write it flatter"),
    (TWENTY, f"rounds = {'9' * 5000}", "a number beyond 64 bits; give a smaller"),
    ('"nature"', f'"{"n" * 300}"', "nnn': string should have at most 100 characters"),
    (TWENTY, f'{TWENTY}\npolicy."a\\u0007".kind = "steps"', "key 'a\\x07': a co"),
    (TWENTY, f"{TWENTY}\n{LONG}", "x/x/' does not exist; give a path from the scenario file"),
]


@pytest.mark.parametrize(("old", "new", "told"), STRANGE)
def test_a_strange_file_is_one_line(
    desk: Path, refused: Refused, old: str, new: str, told: str
) -> None:
    assert NATURE.count(old) == 1
    (desk / "nature.toml").write_text(NATURE.replace(old, new), encoding="utf-8")
    line = refused("run", "nature.toml")
    assert told in line
    assert len(line) < 2100
    assert not (desk / "runs").exists()


@pytest.mark.parametrize("text", [f"{'[' * 5000}{']' * 5000}", "9" * 5000])
def test_a_strange_value_on_the_command_line_is_one_line(refused: Refused, text: str) -> None:
    assert "--set" in refused("run", "nature.toml", "--set", f"rounds={text}")


def test_a_file_may_begin_with_a_byte_order_mark(desk: Path) -> None:
    (desk / "nature.toml").write_text(NATURE, encoding="utf-8-sig")
    assert commands.shared.loaded("nature.toml", [], {}).spec.name == "nature"


def test_paths_too_long_are_one_line(refused: Refused) -> None:
    long = "n" * 300
    assert "File name too long; shorten it" in refused("run", "nature.toml", "--out", long)
    assert "File name too long; check the path" in refused("run", long)
    assert len(refused("run", "x" * 5000)) < 300


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), "there is not enough memory; lower counts, actions or rounds"),
        (OSError(28, "No space left", "f"), "f: No space left; make room, then continue with --re"),
    ],
)
def test_what_the_system_refuses_anywhere_is_one_line(
    refused: Refused, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    fails = Mock(side_effect=error)  # not from the user's code
    monkeypatch.setattr(commands.shared, "loaded", fails)
    assert refused("run", "nature.toml").startswith(told)


def test_a_folder_that_goes_away_is_one_line(desk: Path, refused: Refused) -> None:
    (desk / "own.py").write_text(MINE, encoding="utf-8")
    words = ["--import", "own", "--set", 'cohort.farmers.response="sweeper"']
    line = refused("run", "nature.toml", *words)
    assert "runs/nature/" in line
    assert "No such file or directory; leave its folder alone" in line
    assert not (desk / "runs").exists()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_one_line(desk: Path, refused: Refused) -> None:
    (desk / "shut").mkdir(mode=0o500)
    assert "give another directory" in refused("run", "nature.toml", "--out", "shut/run")


# Good input.


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answer]:
    folder = tmp_path_factory.mktemp("played")
    lay_out(folder)
    return folder, real(folder, "run", "market.toml", "--out", "logs")


def test_list_names_every_forecaster_that_a_scenario_accepts(call: Call) -> None:
    refused = call("run", "nature.toml", "--set", "forecaster.kind=nobody")
    lines = call("list", "forecasters").out.splitlines()
    assert max(map(len, lines)) <= 80
    named = {line.split()[0] for line in lines if not line.startswith(" ")}  # before its meaning
    accepted = refused.err.partition("choose one of: ")[2].partition(";")[0].strip().split(", ")
    assert named == set(accepted) > {"decision-swap", "calibration", "running-mean"}


def test_a_run_writes_the_promised_files(played: tuple[Path, Answer]) -> None:
    logs = played[0] / "logs"
    expected = {"manifest.json", *(f"{name}.parquet" for name in TABLES)}
    assert {path.name for path in logs.iterdir()} == expected
    said = manifest(logs)
    keys = {"scenario", "config", "seed", "rounds", "status", "guarantee", "versions", "started"}
    assert keys | {"wall_seconds"} <= set(said)
    assert (said["scenario"], said["seed"], said["rounds"]) == ("tiny", 3, 20)
    assert said["status"] == "complete"
    assert said["guarantee"] == {"bakers": "none", "drivers": "none"}
    assert said["config"]["cohort"][1]["eta"] == 5.0


def test_the_tables_say_what_was_played(played: tuple[Path, Answer]) -> None:
    logs = played[0] / "logs"
    rounds = pd.read_parquet(logs / "rounds.parquet")
    prices = pd.read_csv(played[0] / "prices.csv").head(20)
    np.testing.assert_allclose(rounds["y_0"], (prices["bread"] - 1) / 2, atol=1e-12)
    np.testing.assert_allclose(rounds["y_1"], prices["fuel"])
    np.testing.assert_array_equal(rounds["x_0"], prices["weekday"])
    log = pd.read_parquet(logs / "regret_log.parquet")
    agents = pd.read_parquet(logs / "agents.parquet")
    assert agents["cohort"].tolist() == ["bakers"] * 3 + ["drivers"] * 2
    last = log[log["round"] == 19]
    np.testing.assert_allclose(last["swap_regret"], agents["swap_regret"])
    np.testing.assert_allclose(log.groupby("agent")["loss"].mean(), agents["mean_loss"])
    swaps = pd.read_parquet(logs / "swaps.parquet")
    np.testing.assert_allclose(swaps.groupby("agent")["count"].sum(), 20)
    total = swaps.groupby("agent")["contribution"].sum()
    np.testing.assert_allclose(total, agents["decision_swap_regret"])


def test_quiet_prints_nothing_and_csv_holds_the_same_values(
    played: tuple[Path, Answer], call: Call, desk: Path
) -> None:
    answer = call("run", "market.toml", "--out", "logs", "--format", "csv", "--quiet")
    assert answer == Answer(0, "", "")
    expected = {"manifest.json", *(f"{name}.csv" for name in TABLES)}
    assert {path.name for path in (desk / "logs").iterdir()} == expected
    for table in TABLES:
        frame = pd.read_parquet(played[0] / "logs" / f"{table}.parquet")
        numbers = dict.fromkeys(frame.select_dtypes("number"), lambda word: float(word or "nan"))
        file = desk / "logs" / f"{table}.csv"
        read = pd.read_csv(file, keep_default_na=False, converters=numbers)
        pd.testing.assert_frame_equal(read, frame, check_dtype=False, check_exact=True)


def test_a_dry_run_prints_a_file_that_runs_again_elsewhere(
    played: tuple[Path, Answer], call: Call, desk: Path
) -> None:
    there, before = desk / "there", sorted(desk.iterdir())
    answer = call("run", "market.toml", "--dry-run", "--out", "logs")
    assert (answer.status, answer.err) == (0, "")
    assert sorted(desk.iterdir()) == before
    there.mkdir()
    (there / "resolved.toml").write_text(answer.out, encoding="utf-8")
    os.chdir(there)  # the fixture's folder comes back with it
    again = call("run", "resolved.toml", "--out", "logs")
    assert (again.status, again.err) == (0, "")
    assert tables(there / "logs") == tables(played[0] / "logs")


def test_a_dry_run_draws_few_agents_of_a_cohort(
    call: Call, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    build = Scenario.build

    def counted(self: Scenario) -> MarketModel:
        counts.extend(cohort.count for cohort in self.peopled.cohort)
        return build(self)

    monkeypatch.setattr(Scenario, "build", counted)
    many = ("--set", "cohort.growers.count=100000", "--set", "cohort.growers.types=2000")
    answer = call("run", "crop-choice", *many, "--dry-run")
    assert counts == [20]
    assert "count = 100000" in answer.out


@pytest.mark.slow
def test_a_dry_run_of_the_catalogue_runs_again(call: Call, desk: Path) -> None:
    for name in [*catalogue()][::4]:
        answer = call("run", name, "--dry-run", "--rounds", 5)
        assert (answer.status, answer.err) == (0, "")
        (desk / "again.toml").write_text(answer.out, encoding="utf-8")
        assert call("run", "again.toml", "--dry-run").out == answer.out


def test_set_replaces_nested_keys(call: Call, desk: Path) -> None:
    values = ["cohort.bakers.count=5", "cohort.drivers.eta = 2.5", "forecaster.kind=last-value"]
    values += ["cohort.bakers.parameters.rho={ choices = [0.5] }", 'name="other"']
    values += ["policy.weekend.at=6", "data.scale.bread=[0.5, 4.0]"]
    answer = call("run", "market.toml", *(word for value in values for word in ("--set", value)))
    assert (answer.status, answer.err) == (0, "")
    config = manifest(desk / "runs" / "other")["config"]
    bakers, drivers = config["cohort"]
    assert (bakers["count"], drivers["eta"], drivers["count"]) == (5, 2.5, 2)
    assert bakers["parameters"] == {"rho": {"choices": [0.5]}}
    assert (config["forecaster"]["kind"], config["policy"]["weekend"]["at"]) == ("last-value", 6)
    assert config["data"]["scale"] == {"bread": [0.5, 4.0]}


def test_rounds_and_seed_replace_the_files(call: Call, desk: Path) -> None:
    answer = call("run", "market.toml", "--out", "logs", "--rounds", 30, "--seed", 9)
    assert (answer.status, answer.err) == (0, "")
    said = manifest(desk / "logs")
    assert (said["rounds"], said["seed"], said["config"]["seed"]) == (30, 9, 9)
    rounds = pd.read_parquet(desk / "logs" / "rounds.parquet")
    assert rounds["round"].tolist() == list(range(30))
    np.testing.assert_array_equal(rounds["y_0"][25:], rounds["y_0"][:5])  # 25 rows, in a loop
    assert "25 rows" in answer.out


def test_the_version_is_the_package_s(call: Call) -> None:
    assert call("--version") == Answer(0, f"{regretless.__version__}\n", "")


@pytest.mark.parametrize(
    ("typed", "offered"), [("regretless sche", "schema"), ("regretless run crop", "crop-choice")]
)
def test_words_are_completed(typed: str, offered: str, tmp_path: Path) -> None:
    """What the script asks that ``--install-completion`` puts into a shell."""
    place = str(len(typed.split()) - 1)
    shell = {"_REGRETLESS_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": place}
    assert real(tmp_path, **shell) == Answer(0, f"{offered}\n", "")


@pytest.mark.parametrize("word", ["--help", "list"])
def test_what_is_quick_loads_no_numpy(word: str) -> None:
    code = (
        "import sys\nfrom regretless.scenarios.cli.commands import main\n"
        f"sys.argv = ['regretless', '{word}']\n"
        "try:\n    main()\nfinally:\n    print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
