"""A run that ends early continues to the same bytes; nothing but its own files is touched."""

import io
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from archives import members_of, with_right_digest, write_members
from command_results import CommandResult, RefusalOf, RunCommand
from file_faults import SWEEP_STUDY
from run_files import (
    CHECKPOINT,
    COMMAND,
    PATIENCE_SECONDS,
    FinishedRun,
    assert_same_run,
    file_bytes,
    kill_run_after_checkpoint,
    read_manifest,
    run_status,
    run_to_folder,
    table_bytes,
)
from small_scenarios import read_scenario

import regretless
from regretless.agents import ScriptedAgent
from regretless.agents.adversaries import Adversary
from regretless.market import register
from regretless.market.core import checkpoint
from regretless.market.core.errors import UserError
from regretless.market.logs import journal
from regretless.market.records import OutcomeDistribution
from regretless.scenarios.logs.directory_lock import hold_directory
from regretless.scenarios.run import Options, run

pytestmark = pytest.mark.usefixtures("interrupts_as_at_a_terminal")

USUAL_CHUNK_ROUNDS = journal.CHUNK_ROUNDS
CHUNK_ROUNDS = 8  # of runs of 20 that stop by themselves: two full chunks and a rest
N_CRAFTED = 40  # checkpoints, each with a change in one of several hundred places
ROUND_OF_INTERRUPT = 11

TINY_SCENARIO = """\
name = "tiny"
rounds = 20
seed = 11
adversary = { kind = "switching", outcomes = 2 }
cohort = [
  { name = "farmers", utility = "linear", count = 3, actions = 3 },
  { name = "learners", utility = "linear", count = 2, actions = 2, response = "hedge" },
]
"""
RUN_COMMAND = ("run", "tiny.toml", "--out", "logs", "--quiet")
STUDY_COMMAND = ("study", "sweep.toml", "--out", "logs", "--quiet", "--jobs", "1")


class Remembering(ScriptedAgent):
    """Plays what lost least so far, half of the time, and may press Ctrl-C in a round."""

    interrupts_in = ""  # "act" or "learn"

    def __init__(self, loss: Any, rng: np.random.Generator) -> None:
        super().__init__(loss, rng)
        self.sums = np.zeros(loss.actions)
        self.rounds = 0

    def interrupt(self, method: str) -> None:
        """Press Ctrl-C if it is time."""
        if method == self.interrupts_in and self.rounds == ROUND_OF_INTERRUPT:
            signal.raise_signal(signal.SIGINT)

    def act(self, forecast: Any, context: Any) -> int:
        self.interrupt("act")
        if self.rng.random() < 0.5:
            return int(self.rng.integers(len(self.sums)))
        return int(self.sums.argmin())

    def learn(self, losses: Any, outcome: Any) -> None:
        self.interrupt("learn")  # after the ledger has been told, before the history has
        self.sums = self.sums + losses
        self.rounds += 1

    def state(self) -> dict[str, Any]:
        return {"sums": self.sums, "rounds": self.rounds, "nothing": None}

    def restore(self, state: dict[str, Any]) -> None:
        self.sums = np.array(state["sums"])
        self.rounds = int(state["rounds"])


class Forgetful(ScriptedAgent):
    """Offers no memory."""

    def act(self, forecast: Any, context: Any) -> int:
        return 0


class ForgetfulNature(Adversary):
    """Offers no memory."""

    def commit(self, context: Any, history: Any, announced: Any) -> OutcomeDistribution:
        return OutcomeDistribution.pure(np.full(self.outcomes, 0.5))


@pytest.fixture(autouse=True)
def folder_with_scenario_and_study(
    registries: None, working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work beside a scenario and a study, and fill a chunk of the logs every few rounds."""
    register.agent("remembering")(Remembering)
    register.agent("forgetful")(Forgetful)
    register.adversary("forgetful")(ForgetfulNature)
    (working_folder / "tiny.toml").write_text(TINY_SCENARIO, encoding="utf-8")
    (working_folder / "sweep.toml").write_text(SWEEP_STUDY, encoding="utf-8")
    monkeypatch.setattr(journal, "CHUNK_ROUNDS", CHUNK_ROUNDS)


@pytest.fixture
def refusal_of(refusal_of: RefusalOf) -> RefusalOf:
    """Return a function that expects one line of refusal, and no change of any file."""

    def refuse(*words: str) -> str:
        files_before = file_bytes()
        line = refusal_of(*words)
        assert file_bytes() == files_before
        return line

    return refuse


def play(text: str, *assignments: str, **options: Any) -> None:
    """Run a scenario with these keys to ``logs``."""
    run_to_folder(read_scenario(text, *assignments), Path("logs"), **options)


def play_until(text: str, stop: int, *assignments: str, **options: Any) -> None:
    """Run a scenario with these keys to ``logs``, and interrupt it after so many rounds."""
    with pytest.raises(KeyboardInterrupt):
        play(text, *assignments, stop=stop, **options)
    assert run_status("logs") == "interrupted"


# It goes on: real processes, then the same in this process, at chosen rounds.


def run_installed_command(*words: str, **variables: str) -> None:
    """Run the installed command, which must succeed and say nothing."""
    process = subprocess.run(
        [COMMAND, *words],
        check=False,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        env=os.environ | variables,
    )
    assert (process.returncode, process.stdout, process.stderr) == (0, b"", b"")


def test_a_killed_run_resumes_to_the_same_bytes(
    finished_run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "CHUNK_ROUNDS", USUAL_CHUNK_ROUNDS)
    rounds = "rounds=1300"  # two chunks and a rest
    logs = Path("logs")
    kill_run_after_checkpoint(Path(), "tiny.toml", "--set", rounds)
    assert run_status(logs) == "interrupted"
    assert table_bytes(logs) == {}  # a reader sees no table at all rather than half of one
    # what a kill between a chunk and its checkpoint, or in the middle of either, leaves behind
    for name in ("rounds-000007.arrow", "forecasts-000007.arrow", ".checkpoint.npz.tmp"):
        (logs / ".partial" / name).write_bytes(b"PAR1 torn")
    (logs / ".rounds.parquet.tmp").write_bytes(b"PAR1 torn")
    run_installed_command(*RUN_COMMAND, "--set", rounds, "--resume")
    assert_same_run(logs, finished_run(TINY_SCENARIO, rounds))


SUMMARY_SCENARIO = """\
name = "long"
rounds = 40_000
logs = "summary"
windows = { every = 10_000 }
seed = 2
adversary = { kind = "iid", outcomes = 1 }
forecaster = { kind = "none" }
market = { kind = "price-competition", outside = 0.0 }
[[cohort]]
name = "sellers"
utility = "seller"
count = 2
actions = 3
parameters = { cost = 1.0, quality = 2.0, lowest = 1.4, highest = 2.0 }
response = "exp3"
"""


def test_a_run_that_logs_its_first_round_alone_goes_on_where_it_was_stopped() -> None:
    scenario = read_scenario(SUMMARY_SCENARIO)
    run(scenario, Options(Path("undisturbed")))
    rounds_of_progress = []

    def press_ctrl_c(rounds: int) -> None:
        if rounds > 5000:
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(scenario, Options(Path("logs")), progress=press_ctrl_c)
    run(scenario, Options(Path("logs"), resume=True), progress=rounds_of_progress.append)
    assert rounds_of_progress[0] > 5000
    assert_same_run(Path("logs"), Path("undisturbed"))


def test_a_run_without_a_checkpoint_says_that_it_begins_again() -> None:
    play_until(TINY_SCENARIO, 3)
    warnings: list[str] = []
    run(read_scenario(TINY_SCENARIO), Options(Path("logs"), resume=True), warn=warnings.append)
    assert warnings == ["--resume: logs has no checkpoint yet; the run begins at round 0"]


class NeverDone(ScriptedAgent):
    """Presses Ctrl-C in a round that it never lets end."""

    def act(self, forecast: Any, context: Any) -> int:
        signal.raise_signal(signal.SIGINT)
        while True:
            pass


def test_an_interrupt_ends_a_round_that_never_ends(
    run_command: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    register.agent("never-done")(NeverDone)
    monkeypatch.setattr("regretless.market.core.interrupts.ROUND_GRACE_SECONDS", 0.1)
    result = run_command(*RUN_COMMAND, "--set", "cohort.farmers.response=never-done")
    assert (result.status, result.err) == (130, "regretless: interrupted\n")
    assert not Path("logs").exists()  # no half of a round is written


REMEMBERING = "cohort.farmers.response=remembering"


@pytest.fixture(params=["act", "learn"])
def run_interrupted_within_a_round(
    request: pytest.FixtureRequest,
    run_command: RunCommand,
    monkeypatch: pytest.MonkeyPatch,
) -> CommandResult:
    """Run a scenario one of whose agents presses Ctrl-C; return what the command said."""
    with monkeypatch.context() as patch:
        patch.setattr(Remembering, "interrupts_in", request.param)
        return run_command(*RUN_COMMAND, "--set", REMEMBERING)


def test_an_interrupt_within_a_round_is_one_line_that_names_resume(
    run_interrupted_within_a_round: CommandResult,
) -> None:
    assert run_interrupted_within_a_round.status == 130
    assert run_interrupted_within_a_round.err.count("\n") == 1
    assert "--resume" in run_interrupted_within_a_round.err
    assert run_status("logs") == "interrupted"


@pytest.mark.usefixtures("run_interrupted_within_a_round")
def test_an_interrupt_never_splits_a_round(finished_run: FinishedRun) -> None:
    """Tables tell of the same rounds, and the closing ones agree with the streamed ones."""
    undisturbed = finished_run(TINY_SCENARIO, REMEMBERING)
    n_rounds = pd.read_parquet("logs/rounds.parquet")["round"].nunique()
    assert n_rounds in {ROUND_OF_INTERRUPT, ROUND_OF_INTERRUPT + 1}
    for name in ("rounds", "forecasts", "regret_log"):
        log = pd.read_parquet(f"logs/{name}.parquet")
        undisturbed_table = pd.read_parquet(undisturbed / f"{name}.parquet")
        expected = undisturbed_table[undisturbed_table["round"] < n_rounds].reset_index(drop=True)
        pd.testing.assert_frame_equal(log, expected, check_exact=True)
    regret_log = pd.read_parquet("logs/regret_log.parquet")
    agents = pd.read_parquet("logs/agents.parquet")
    losses = regret_log.groupby("agent")["loss"].mean()
    np.testing.assert_allclose(agents["mean_loss"], losses, rtol=1e-12)
    swaps = pd.read_parquet("logs/swaps.parquet")
    assert (swaps.groupby("agent")["count"].sum() == n_rounds).all()


@pytest.mark.usefixtures("run_interrupted_within_a_round")
def test_a_run_that_was_interrupted_within_a_round_resumes_to_the_same_bytes(
    run_command: RunCommand, finished_run: FinishedRun
) -> None:
    assert run_command(*RUN_COMMAND, "--set", REMEMBERING, "--resume").status == 0
    assert_same_run(Path("logs"), finished_run(TINY_SCENARIO, REMEMBERING))


def test_two_processes_with_one_seed_write_the_same_bytes(
    finished_run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the folder, the order of hashing and the name of the run directory."""
    monkeypatch.setattr(journal, "CHUNK_ROUNDS", USUAL_CHUNK_ROUNDS)
    Path("below").mkdir()
    run_installed_command(*RUN_COMMAND, PYTHONHASHSEED="1")
    monkeypatch.chdir("below")
    run_installed_command("run", "../tiny.toml", "--out", "other", "--quiet", PYTHONHASHSEED="2")
    tables = table_bytes(Path("../logs"))
    assert table_bytes(Path("other")) == tables
    assert table_bytes(finished_run(TINY_SCENARIO)) == tables


@pytest.mark.parametrize(
    "setting",
    [
        REMEMBERING,
        'cohort.farmers.name="north/south"',
        'cohort.farmers.name="a.b c"',
        "cohort.farmers.exit_rate=0.1",
    ],
)
def test_who_has_any_name_and_stay_continues_where_it_was(
    setting: str, finished_run: FinishedRun
) -> None:
    """Also when stopped twice; ``golden/test_golden.py`` resumes every key."""
    play_until(TINY_SCENARIO, 9, setting)
    assert len(pd.read_parquet("logs/rounds.parquet")) == 9
    play_until(TINY_SCENARIO, 16, setting, resume=True)
    assert len(pd.read_parquet("logs/rounds.parquet")) == 16
    play(TINY_SCENARIO, setting, resume=True)
    assert_same_run(Path("logs"), finished_run(TINY_SCENARIO, setting))


# What --resume refuses, in one line and without touching what is there.


def archive(**arrays: Any) -> bytes:
    """Return the bytes of an archive of arrays."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


VERSION = f': "{regretless.__version__}"'.encode()
PART = ".partial/rounds-000000.arrow"
PICKLED = {checkpoint.PLAIN_MEMBER: np.array([{"a": 1}], dtype=object)}
DAMAGES: dict[str, tuple[str, Callable[[bytes], bytes | None], str]] = {
    # name: a file, its new content, and a word of the refusal
    "another version": ("manifest.json", lambda old: old.replace(VERSION, b': "0.0.9"'), "0.0.9"),
    "a torn checkpoint": (CHECKPOINT, lambda old: old[:500], "checkpoint"),
    "a pickled checkpoint": (CHECKPOINT, lambda _: archive(**PICKLED), "checkpoint"),
    "other arrays": (CHECKPOINT, lambda _: archive(a=np.ones(3)), "checkpoint"),
    "no part": (PART, lambda _: None, "part"),
    "a damaged part": (PART, lambda old: old[:-1] + b"x", "part"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_not_what_was_written_is_refused(damage: str, refusal_of: RefusalOf) -> None:
    """A state of another version may look different, and its rounds may play otherwise."""
    name, change, word = DAMAGES[damage]
    play_until(TINY_SCENARIO, 9)
    file = Path("logs", name)
    content = change(file.read_bytes())
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    line = refusal_of(*RUN_COMMAND, "--resume")
    assert "--resume" in line
    assert word in line


@pytest.mark.parametrize("stop", [9, 4])  # 4 is before the first checkpoint
@pytest.mark.parametrize(
    ("words", "difference"),
    [
        ("--seed 12", "seed = 11, not 12"),
        ("--rounds 2000", "rounds = 20, not 2000"),
        ("--set cohort.farmers.count=4", "cohort.farmers.count = 3, not 4"),
    ],
)
def test_another_configuration_is_refused_with_what_differs(
    words: str, difference: str, stop: int, refusal_of: RefusalOf
) -> None:
    play_until(TINY_SCENARIO, stop)
    line = refusal_of(*RUN_COMMAND, "--resume", *words.split())
    assert "--resume" in line
    assert f"another configuration ({difference})" in line


@pytest.mark.parametrize(
    ("assignment", "player"),
    [("cohort.farmers.response=forgetful", "farmers"), ("adversary.kind=forgetful", "adversary")],
)
def test_a_player_without_a_memory_is_refused(
    assignment: str, player: str, refusal_of: RefusalOf
) -> None:
    """It runs, and only ``--resume`` says what is missing."""
    play(TINY_SCENARIO, assignment)
    assert run_status("logs") == "complete"
    line = refusal_of("run", "tiny.toml", "--out", "other", "--resume", "--set", assignment)
    for word in (player, "state()", "restore"):
        assert word in line


def places(tree: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the keys that lead to every value of a tree."""
    for key, value in tree.items():
        yield (*above, key)
        if isinstance(value, dict):
            yield from places(value, (*above, key))


def changes(value: Any) -> Iterator[Any]:
    """Yield what may stand in a value's place: other types, shapes and kinds of number."""
    yield from (None, "text", [], {}, [[1], "a"], float("nan"), -1, 10**30)
    yield from (np.zeros((0, 0)), np.full(7, np.nan), np.array(["a"]))
    if isinstance(value, np.ndarray):
        yield from (value[:-1] if value.ndim else value.reshape(1), value[None], value[..., None])
        yield from (value.astype(str), value.astype(complex), value.ravel())
        yield np.zeros(value.shape, np.int8)


def change_checkpoint(file: Path, place: tuple[str, ...], rng: np.random.Generator) -> str:
    """Put something else in one place of a checkpoint, and return what is where."""
    tree = checkpoint.load(file)
    *above, key = place
    table = tree
    for step in above:
        table = table[step]
    candidates = list(changes(table[key]))
    table[key] = candidates[rng.integers(len(candidates))]
    checkpoint.save(file, tree)
    return f"{place} = {table[key]!r:.40}"


def test_any_checkpoint_is_resumed_or_refused(run_command: RunCommand) -> None:
    """Whatever is changed in it, the run goes on to its end, or there is one line."""
    play_until(TINY_SCENARIO, 17)
    untouched_copy = Path("kept")
    shutil.copytree("logs", untouched_copy)
    rng = np.random.default_rng(1)
    all_places = list(places(checkpoint.load(untouched_copy / CHECKPOINT)))
    failures = []
    for index in rng.choice(len(all_places), N_CRAFTED, replace=False):
        shutil.rmtree("logs")
        shutil.copytree(untouched_copy, "logs")
        change = change_checkpoint(Path("logs", CHECKPOINT), all_places[index], rng)
        try:
            status, _, err = run_command(*RUN_COMMAND, "--resume")
        except Exception as error:  # noqa: BLE001 - which the command would show
            failures.append(f"{change}: {error!r:.80}")
            continue
        is_resumed = status == 0 and err == ""
        is_refused = status == 2 and err.count("\n") == 1
        if not is_resumed and not is_refused:
            failures.append(f"{change}: {status} {err:.80}")
    assert failures == []


# The checkpoint file itself.


def test_a_checkpoint_gives_back_what_was_saved(tmp_path: Path) -> None:
    rng = np.random.default_rng(2**100)
    arrays = {
        "floats": rng.random((3, 0, 2)),
        "special": np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324]),
        "single": rng.random(4).astype(np.float32),
        "bytes": np.array([0, 255], dtype=np.uint8),
        "words": np.array(["rice", "maïs"]),
        "number": np.array(3.5),
        "fortran": np.asfortranarray(rng.random((2, 3))),
    }
    plain = {
        "generator": dict(rng.bit_generator.state),
        "whole": [2**200 + 1, -(2**70), True],
        "text": 'Zürich / "quoted"\n',
        "list": [1, "two", None, [3.5]],
        "empty": {},
    }
    file = tmp_path / "folder" / "checkpoint.npz"
    file.parent.mkdir()
    checkpoint.save(file, {"deep": {"er": arrays}, **plain})
    loaded = checkpoint.load(file)
    loaded_arrays = loaded.pop("deep")["er"]
    assert loaded == plain
    assert [*loaded_arrays] == [*arrays]
    for name, array in arrays.items():
        assert loaded_arrays[name].dtype == array.dtype
        assert loaded_arrays[name].shape == array.shape
        assert loaded_arrays[name].tobytes() == array.tobytes()
    assert [*file.parent.iterdir()] == [file]


CYCLE: dict[str, Any] = {}
CYCLE["again"] = CYCLE
NOT_KEPT = {
    "object": np.array([None], dtype=object),
    "table": {1: 2},
    "list": [np.ones(2)],
    "loop": CYCLE,
    "set": {"deep": {3}},
}


@pytest.mark.parametrize("name", NOT_KEPT)
def test_a_tree_says_what_cannot_be_kept(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"state\(\): {name}.* cannot be kept in a file; give"):
        checkpoint.save(tmp_path / "kept.npz", {name: NOT_KEPT[name]})
    assert not list(tmp_path.glob("*kept*"))


class Trap:
    """Leaves a trace when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.mkdir, ("trace",)


@pytest.mark.parametrize("name", [checkpoint.PLAIN_MEMBER, "state"])
def test_a_pickled_object_is_never_loaded(name: str) -> None:
    """Not even from a file whose format and digest are right."""
    plain = np.frombuffer(b'{"state": null}', dtype=np.uint8)
    arrays = {checkpoint.PLAIN_MEMBER: plain} | {name: np.array([Trap()], dtype=object)}
    Path("c.npz").write_bytes(archive(**arrays))
    members = members_of(Path("c.npz"))
    with_right_digest(members)
    write_members(Path("c.npz"), members)
    with pytest.raises(ValueError, match="pickle"):
        checkpoint.load(Path("c.npz"))
    assert not Path("trace").exists()


# Whose files are replaced: those that an earlier run's manifest lists.


run_and_study = pytest.mark.parametrize("words", [RUN_COMMAND, STUDY_COMMAND], ids=["run", "study"])


@run_and_study
def test_what_is_there_is_replaced_only_if_asked(
    run_command: RunCommand, refusal_of: RefusalOf, words: tuple[str, ...]
) -> None:
    assert run_command(*words).status == 0
    line = refusal_of(*words)
    assert "--resume" in line
    assert "--overwrite" in line
    assert "give one" in refusal_of(*words, "--resume", "--overwrite")


@run_and_study
def test_overwrite_replaces_the_files_of_the_run_and_its_report_and_no_other(
    run_command: RunCommand, words: tuple[str, ...]
) -> None:
    assert run_command(*words).status == 0
    Path("logs/notes.txt").write_text("mine")
    assert run_command("report", "logs").status == 0
    assert run_command(*words, "--overwrite", "--rounds", "7").status == 0
    assert Path("logs/notes.txt").read_text() == "mine"
    assert not Path("logs/report.html").exists()  # it told of the run before
    assert run_command(*words, "--overwrite", "--rounds", "7").status == 0


def test_the_manifest_lists_the_tables() -> None:
    play_until(TINY_SCENARIO, 9)
    play(TINY_SCENARIO, resume=True, format="csv")
    names = read_manifest("logs")["files"]
    written = sorted(path.name for path in Path("logs").iterdir())
    assert sorted([*names, "manifest.json"]) == written
    assert {Path(name).suffix for name in names} == {".csv"}
    assert len(pd.read_csv("logs/rounds.csv")) == 20


def test_another_format_leaves_no_table_of_the_one_before(run_command: RunCommand) -> None:
    play(TINY_SCENARIO, format="csv")
    assert run_command(*RUN_COMMAND, "--overwrite").status == 0
    assert {path.suffix for path in Path("logs").iterdir()} == {".json", ".parquet"}


def test_runs_without_a_directory_are_numbered(run_command: RunCommand) -> None:
    assert "taken" not in run_command("run", "tiny.toml").out
    second = run_command("run", "tiny.toml")
    assert second.status == 0
    assert second.err == ""
    assert second.out.startswith("runs/tiny is taken; this run is written to runs/tiny-2.\n")
    assert "runs/tiny-3" in run_command("run", "tiny.toml").out


def test_overwrite_without_a_directory_replaces_the_first_run(run_command: RunCommand) -> None:
    for _ in range(2):
        run_command("run", "tiny.toml", "--quiet")
    result = run_command("run", "tiny.toml", "--overwrite", "--quiet", "--rounds", "9")
    assert result.status == 0
    assert read_manifest("runs/tiny")["rounds"] == 9
    assert read_manifest("runs/tiny-2")["rounds"] == 20


def test_resume_without_a_directory_continues_the_one_that_is_interrupted(
    run_command: RunCommand,
) -> None:
    for _ in range(3):
        run_command("run", "tiny.toml", "--quiet")
    assert "complete" in run_command("run", "tiny.toml", "--resume").err
    file = Path("runs/tiny-2/manifest.json")
    file.write_text(file.read_text().replace('"complete"', '"interrupted"'))
    assert run_command("run", "tiny.toml", "--resume", "--quiet").status == 0
    assert run_status("runs/tiny-2") == "complete"
    assert not Path("runs/tiny-4").exists()


def test_a_folder_that_another_process_holds_is_not_used(refusal_of: RefusalOf) -> None:
    with hold_directory(Path("logs")):
        assert "another process" in refusal_of(*RUN_COMMAND)


USERS_FILES = ["rounds.csv", "models.csv", "report.html", ".rounds.tmp", "notes.txt"]


def test_files_of_the_user_are_never_touched(
    run_command: RunCommand, refusal_of: RefusalOf
) -> None:
    """Not even one that the manifest was made to list."""
    play(TINY_SCENARIO)
    for name in USERS_FILES:
        Path("logs", name).write_text("mine")
    manifest = read_manifest("logs")
    manifest["files"].append("notes.txt")  # which no run writes
    Path("logs/manifest.json").write_text(json.dumps(manifest))
    assert run_command(*RUN_COMMAND, "--overwrite").status == 0
    assert {Path("logs", name).read_text() for name in USERS_FILES} == {"mine"}
    assert "report.html" in refusal_of("report", "logs")


def test_a_file_of_the_user_in_the_place_of_a_table_is_not_replaced(refusal_of: RefusalOf) -> None:
    play(TINY_SCENARIO)
    Path("logs/models.parquet").write_text("mine")
    assert "models.parquet" in refusal_of(*RUN_COMMAND, "--overwrite")


def test_a_folder_of_other_files_is_not_used(refusal_of: RefusalOf) -> None:
    Path("photos/.partial").mkdir(parents=True)
    Path("photos/.partial/holiday.parquet").write_bytes(b"mine")
    assert "other files" in refusal_of("run", "tiny.toml", "--out", "photos")


@pytest.mark.parametrize("name", [".partial", "rounds.parquet", ".rounds.parquet.tmp", ".lock"])
def test_links_are_not_followed(refusal_of: RefusalOf, name: str) -> None:
    play(TINY_SCENARIO)
    Path("mine").mkdir()
    Path("mine/run").write_text("mine")
    target = Path("mine") if name == ".partial" else Path("mine/run")
    Path("logs", name).unlink(missing_ok=True)
    Path("logs", name).symlink_to(target.absolute())
    for option in ("--overwrite", "--resume"):
        assert name in refusal_of(*RUN_COMMAND, option)


@pytest.mark.parametrize("name", ["runs/run=0000/notes.txt", ".drafts/notes.txt", "runs/mine/a"])
def test_a_study_with_a_file_of_the_user_among_its_own_is_not_replaced(
    run_command: RunCommand, refusal_of: RefusalOf, name: str
) -> None:
    assert run_command(*STUDY_COMMAND).status == 0
    file = Path("logs", name)
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine")
    assert file.parent.name in refusal_of(*STUDY_COMMAND, "--overwrite")


@pytest.mark.parametrize("name", ["runs", ".drafts", "runs/run=0000", "value.parquet"])
def test_a_study_with_a_link_in_the_place_of_its_own_is_not_replaced(
    run_command: RunCommand, refusal_of: RefusalOf, name: str
) -> None:
    assert run_command(*STUDY_COMMAND).status == 0
    linked_folder = Path("logs", name)
    elsewhere = Path("elsewhere")
    if linked_folder.exists():
        linked_folder.rename(elsewhere)
    else:
        elsewhere.mkdir()
    linked_folder.symlink_to(elsewhere.absolute())
    assert linked_folder.name in refusal_of(*STUDY_COMMAND, "--overwrite")


@pytest.mark.parametrize("name", ["photo.jpg", "rounds-x.arrow", "a/b", "rounds-000000.arrow/b"])
def test_a_strange_file_among_the_parts_is_refused(refusal_of: RefusalOf, name: str) -> None:
    play_until(TINY_SCENARIO, 9)
    file = Path("logs/.partial", name)
    if file.parent.is_file():
        file.parent.unlink()
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine")
    for option in ("--resume", "--overwrite"):
        assert name.partition("/")[0] in refusal_of(*RUN_COMMAND, option)


STRANGE_RECORDS = {
    "deep lists": "[" * 100_000,
    "nothing": "",
    "a list": "[]",
    "an empty table": "{}",
    "other types": '{"config": 1, "status": [], "scenario": {}}',
    "no text": "\xff",
}
every_strange_record = pytest.mark.parametrize(
    "text", STRANGE_RECORDS.values(), ids=STRANGE_RECORDS
)


@every_strange_record
def test_a_run_with_a_strange_manifest_is_refused(refusal_of: RefusalOf, text: str) -> None:
    play_until(TINY_SCENARIO, 9)
    for file in Path("logs").glob("*.parquet"):  # which a kill does not leave
        file.unlink()
    Path("logs/manifest.json").write_text(text, encoding="latin-1")
    refusal_of(*RUN_COMMAND)
    assert "manifest.json" in refusal_of(*RUN_COMMAND, "--resume")
    assert "manifest.json" in refusal_of("report", "logs")


@every_strange_record
def test_a_study_with_a_strange_record_is_refused(refusal_of: RefusalOf, text: str) -> None:
    Path("study").mkdir()
    Path("study/study.json").write_text(text, encoding="latin-1")
    words = ("study", "sweep.toml", "--out", "study")
    refusal_of(*words)
    refusal_of(*words, "--overwrite")
    refusal_of("report", "study")
