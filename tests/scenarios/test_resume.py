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
from command_results import RefusalOf, RunCommand
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

USUAL = journal.CHUNK_ROUNDS
CHUNK = 8  # rounds, of runs of 20 that stop by themselves: two full chunks and a rest
CRAFTED = 40  # of several hundred places in a checkpoint

TINY = """\
name = "tiny"
rounds = 20
seed = 11
adversary = { kind = "switching", outcomes = 2 }
cohort = [
  { name = "farmers", utility = "linear", count = 3, actions = 3 },
  { name = "learners", utility = "linear", count = 2, actions = 2, response = "hedge" },
]
"""
RUN = ("run", "tiny.toml", "--out", "logs", "--quiet")
STUDY = ("study", "sweep.toml", "--out", "logs", "--quiet", "--jobs", "1")


class Remembering(ScriptedAgent):
    """Plays what lost least so far, half of the time, and may press Ctrl-C in a round."""

    where = ""

    def __init__(self, loss: Any, rng: np.random.Generator) -> None:
        super().__init__(loss, rng)
        self.sums, self.rounds = np.zeros(loss.actions), 0

    def press(self, where: str) -> None:
        if (where, self.rounds) == (self.where, 11):
            signal.raise_signal(signal.SIGINT)

    def act(self, forecast: Any, context: Any) -> int:
        self.press("act")
        if self.rng.random() < 0.5:
            return int(self.rng.integers(len(self.sums)))
        return int(self.sums.argmin())

    def learn(self, losses: Any, outcome: Any) -> None:
        self.press("learn")  # after the ledger has been told, before the history has
        self.sums, self.rounds = self.sums + losses, self.rounds + 1

    def state(self) -> dict[str, Any]:
        return {"sums": self.sums, "rounds": self.rounds, "nothing": None}

    def restore(self, state: dict[str, Any]) -> None:
        self.sums, self.rounds = np.array(state["sums"]), int(state["rounds"])


class Forgetful(ScriptedAgent):
    """Offers no memory."""

    def act(self, forecast: Any, context: Any) -> int:
        return 0


class ForgetfulNature(Adversary):
    """Offers no memory."""

    def commit(self, context: Any, history: Any, announced: Any) -> OutcomeDistribution:
        return OutcomeDistribution.pure(np.full(self.outcomes, 0.5))


@pytest.fixture(autouse=True)
def folder(registries: None, working_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work beside a scenario and a study, and fill a chunk of the logs every few rounds."""
    register.agent("remembering")(Remembering)
    register.agent("forgetful")(Forgetful)
    register.adversary("forgetful")(ForgetfulNature)
    (working_folder / "tiny.toml").write_text(TINY, encoding="utf-8")
    (working_folder / "sweep.toml").write_text(SWEEP_STUDY, encoding="utf-8")
    monkeypatch.setattr(journal, "CHUNK_ROUNDS", CHUNK)


@pytest.fixture
def refusal_of(refusal_of: RefusalOf) -> RefusalOf:
    def read_scenario(*words: str) -> str:
        before, line = file_bytes(), refusal_of(*words)
        assert file_bytes() == before
        return line

    return read_scenario


def play(text: str, *assignments: str, **options: Any) -> None:
    run_to_folder(read_scenario(text, *assignments), Path("logs"), **options)


def stopped(text: str, stop: int, *assignments: str, **options: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        play(text, *assignments, stop=stop, **options)
    assert run_status("logs") == "interrupted"


# It goes on: real processes, then the same in this process, at chosen rounds.


def finished(*words: str, **variables: str) -> None:
    """Run the installed command, which says nothing."""
    options: Any = {
        "capture_output": True,
        "timeout": PATIENCE_SECONDS,
        "env": os.environ | variables,
    }
    done = subprocess.run([COMMAND, *words], check=False, **options)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_killed_run_resumes_to_the_same_bytes(
    finished_run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "CHUNK_ROUNDS", USUAL)
    rounds, logs, partial = "rounds=1300", Path("logs"), Path("logs/.partial")  # two chunks, a rest
    kill_run_after_checkpoint(Path(), "tiny.toml", "--set", rounds)
    assert run_status(logs) == "interrupted"
    assert table_bytes(logs) == {}  # a reader sees no table at all rather than half of one
    # what a kill between a chunk and its checkpoint, or in the middle of either, leaves behind
    for name in ("rounds-000007.arrow", "forecasts-000007.arrow", ".checkpoint.npz.tmp"):
        (partial / name).write_bytes(b"PAR1 torn")
    (logs / ".rounds.parquet.tmp").write_bytes(b"PAR1 torn")
    finished(*RUN, "--set", rounds, "--resume")
    assert_same_run(logs, finished_run(TINY, rounds))


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
    monkeypatch.setattr("regretless.scenarios.run.ROUND_GRACE", 0.1)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # as at a terminal
    code, _, err = run_command(*RUN, "--set", "cohort.farmers.response=never-done")
    signal.signal(signal.SIGINT, handler)
    assert (code, err.count("\n")) == (130, 1)
    assert not Path("logs").exists()  # no half of a round is written


@pytest.mark.parametrize("where", ["act", "learn"])
def test_an_interrupt_never_splits_a_round(
    where: str, run_command: RunCommand, finished_run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables tell of the same rounds, the closing ones agree with the streamed ones; it resumes."""
    setting = "cohort.farmers.response=remembering"
    complete = finished_run(TINY, setting)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # as at a terminal
    monkeypatch.setattr(Remembering, "where", where)
    code, _, err = run_command(*RUN, "--set", setting)
    signal.signal(signal.SIGINT, handler)
    assert (code, err.count("\n"), run_status("logs")) == (130, 1, "interrupted")
    assert "--resume" in err
    for name in ("rounds", "forecasts", "regret_log"):
        log, whole = (pd.read_parquet(f"{home}/{name}.parquet") for home in ("logs", complete))
        count = log["round"].nunique()
        assert count in {11, 12}
        expected = whole[whole["round"] < count].reset_index(drop=True)
        pd.testing.assert_frame_equal(log, expected, check_exact=True)
    agents, swaps = (pd.read_parquet(f"logs/{name}.parquet") for name in ("agents", "swaps"))
    losses = log.groupby("agent")["loss"].mean()
    np.testing.assert_allclose(agents["mean_loss"], losses, rtol=1e-12)
    assert swaps.groupby("agent")["count"].sum().tolist() == [count] * len(agents)
    monkeypatch.setattr(Remembering, "where", "")
    assert run_command(*RUN, "--set", setting, "--resume")[0] == 0
    assert_same_run(Path("logs"), complete)


def test_two_processes_with_one_seed_write_the_same_bytes(
    finished_run: FinishedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the folder, the order of hashing and the name of the run directory."""
    monkeypatch.setattr(journal, "CHUNK_ROUNDS", USUAL)
    Path("below").mkdir()
    finished(*RUN, PYTHONHASHSEED="1")
    monkeypatch.chdir("below")
    finished("run", "../tiny.toml", "--out", "other", "--quiet", PYTHONHASHSEED="2")
    assert (
        table_bytes(Path("../logs"))
        == table_bytes(Path("other"))
        == table_bytes(finished_run(TINY))
    )


@pytest.mark.parametrize(
    "setting",
    [
        "cohort.farmers.response=remembering",
        'cohort.farmers.name="north/south"',
        'cohort.farmers.name="a.b c"',
        "cohort.farmers.exit_rate=0.1",
    ],
)
def test_who_has_any_name_and_stay_continues_where_it_was(
    setting: str, finished_run: FinishedRun
) -> None:
    """Also when stopped twice; ``golden/test_golden.py`` resumes every key."""
    for stop in (9, 16):
        stopped(TINY, stop, setting, resume=stop == 16)
        assert len(pd.read_parquet("logs/rounds.parquet")) == stop
    play(TINY, setting, resume=True)
    assert_same_run(Path("logs"), finished_run(TINY, setting))


# What --resume refuses, in one line and without touching what is there.


def archive(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


OURS = f': "{regretless.__version__}"'.encode()
PART = ".partial/rounds-000000.arrow"
PICKLED = {checkpoint.PLAIN_MEMBER: np.array([{"a": 1}], dtype=object)}
DAMAGES: list[tuple[str, Callable[[bytes], bytes | None], str]] = [  # a file, its change
    ("manifest.json", lambda old: old.replace(OURS, b': "0.0.9"'), "0.0.9"),
    (CHECKPOINT, lambda old: old[:500], "checkpoint"),
    (CHECKPOINT, lambda _: archive(**PICKLED), "checkpoint"),
    (CHECKPOINT, lambda _: archive(a=np.ones(3)), "checkpoint"),
    (PART, lambda _: None, "part"),
    (PART, lambda old: old[:-1] + b"x", "part"),
]


def test_what_is_not_what_was_written_is_refused(refusal_of: RefusalOf) -> None:
    """A state of another version may look different, and its rounds may play otherwise."""
    stopped(TINY, 9)
    for name, change, says in DAMAGES:
        file = Path("logs", name)
        whole = file.read_bytes()
        if (content := change(whole)) is None:
            file.unlink()
        else:
            file.write_bytes(content)
        line = refusal_of(*RUN, "--resume")
        assert "--resume" in line
        assert says in line
        file.write_bytes(whole)


@pytest.mark.parametrize("stop", [9, 4])  # 4 is before the first checkpoint
def test_another_configuration_is_refused(stop: int, refusal_of: RefusalOf) -> None:
    stopped(TINY, stop)
    for words in ("--seed 12", "--rounds 2000", "--set cohort.farmers.count=4"):
        line = refusal_of(*RUN, "--resume", *words.split())
        assert "--resume" in line
        assert "another configuration" in line


@pytest.mark.parametrize(
    ("assignment", "named"),
    [("cohort.farmers.response=forgetful", "farmers"), ("adversary.kind=forgetful", "adversary")],
)
def test_a_player_without_a_memory_is_refused(
    assignment: str, named: str, refusal_of: RefusalOf
) -> None:
    """It runs, and only ``--resume`` says what is missing."""
    play(TINY, assignment)
    assert run_status("logs") == "complete"
    line = refusal_of("run", "tiny.toml", "--out", "other", "--resume", "--set", assignment)
    assert [word for word in (named, "state()", "restore") if word not in line] == []


def places(tree: dict[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
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


def test_any_checkpoint_is_resumed_or_refused(run_command: RunCommand) -> None:
    """Whatever is changed in it, the run goes on to its end, or there is one line."""
    stopped(TINY, 17)
    kept, rng, wrong = Path("kept"), np.random.default_rng(1), list[str]()
    shutil.copytree("logs", kept)
    found = list(places(checkpoint.load(kept / CHECKPOINT)))
    for chosen in rng.choice(len(found), CRAFTED, replace=False):
        tree = table = checkpoint.load(kept / CHECKPOINT)
        *above, last = found[chosen]
        for key in above:
            table = table[key]
        crafted = list(changes(table[last]))
        table[last] = crafted[rng.integers(len(crafted))]
        shutil.rmtree("logs")
        shutil.copytree(kept, "logs")
        checkpoint.save(Path("logs", CHECKPOINT), tree)
        try:
            code, _, err = run_command(*RUN, "--resume")
        except Exception as error:  # noqa: BLE001 - which the command would show
            code, err = -1, f"{error!r}"
        if (code, err.count("\n")) not in {(0, 0), (2, 1)}:
            wrong.append(f"{found[chosen]} = {table[last]!r:.40}: {code} {err:.80}")
    assert wrong == []


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
    file = tmp_path / "own" / "checkpoint.npz"
    file.parent.mkdir()
    checkpoint.save(file, {"deep": {"er": arrays}, **plain})
    found = checkpoint.load(file)
    read = found.pop("deep")["er"]
    assert found == plain
    assert [*read] == [*arrays]
    for name, array in arrays.items():
        told = (read[name].dtype, read[name].shape, read[name].tobytes())
        assert told == (array.dtype, array.shape, array.tobytes())
    assert [*file.parent.iterdir()] == [file]


def test_a_tree_says_what_cannot_be_kept(tmp_path: Path) -> None:
    loop: dict[str, Any] = {}
    loop["again"] = loop
    wrong = {"object": np.array([None], dtype=object), "table": {1: 2}, "list": [np.ones(2)]}
    wrong |= {"loop": loop, "set": {"deep": {3}}}
    for name, value in wrong.items():
        with pytest.raises(UserError, match=rf"state\(\): {name}.* cannot be kept in a file; give"):
            checkpoint.save(tmp_path / "kept.npz", {name: value})
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


@pytest.mark.parametrize("words", [RUN, STUDY], ids=["run", "study"])
def test_what_is_there_is_replaced_only_if_asked(
    run_command: RunCommand, refusal_of: RefusalOf, words: tuple[str, ...]
) -> None:
    assert run_command(*words)[0] == 0
    line = refusal_of(*words)
    assert "--resume" in line
    assert "--overwrite" in line
    assert "give one" in refusal_of(*words, "--resume", "--overwrite")
    Path("logs/notes.txt").write_text("mine")
    assert run_command("report", "logs")[0] == 0
    assert run_command(*words, "--overwrite", "--rounds", "7")[0] == 0
    assert Path("logs/notes.txt").read_text() == "mine"
    assert not Path("logs/report.html").exists()  # it told of the run before
    assert run_command(*words, "--overwrite", "--rounds", "7")[0] == 0


def test_the_manifest_lists_the_tables_and_another_format_leaves_none_of_them(
    run_command: RunCommand,
) -> None:
    stopped(TINY, 9)
    play(TINY, resume=True, format="csv")
    listed = read_manifest("logs")["files"]
    assert sorted([*listed, "manifest.json"]) == sorted(
        path.name for path in Path("logs").iterdir()
    )
    assert {Path(name).suffix for name in listed} == {".csv"}
    assert len(pd.read_csv("logs/rounds.csv")) == 20
    assert run_command(*RUN, "--overwrite")[0] == 0
    assert {path.suffix for path in Path("logs").iterdir()} == {".json", ".parquet"}


def test_runs_without_a_directory_are_numbered(run_command: RunCommand) -> None:
    words = ("run", "tiny.toml")
    assert "taken" not in run_command(*words)[1]
    code, out, err = run_command(*words)
    assert (code, err) == (0, "")
    assert out.startswith("runs/tiny is taken; this run is written to runs/tiny-2.\n")
    assert "runs/tiny-3" in run_command(*words)[1]
    assert "complete" in run_command(*words, "--resume")[2]
    assert run_command(*words, "--overwrite", "--quiet", "--rounds", "9")[0] == 0
    assert read_manifest("runs/tiny")["rounds"] == 9
    file = Path("runs/tiny-2/manifest.json")
    file.write_text(file.read_text().replace('"complete"', '"interrupted"'))
    assert run_command(*words, "--resume", "--quiet")[0] == 0
    assert run_status("runs/tiny-2") == "complete"
    assert not Path("runs/tiny-4").exists()


def test_a_file_of_the_users_is_never_touched(
    run_command: RunCommand, refusal_of: RefusalOf
) -> None:
    """Nor is one in the way replaced, nor a folder of other files or another writer's used."""
    with held(Path("logs")):
        assert "another process" in refusal_of(*RUN)
    play(TINY)
    names = ("rounds.csv", "models.csv", "report.html", ".rounds.tmp", "notes.txt")
    for name in names:
        Path("logs", name).write_text("mine")
    record = read_manifest("logs")
    record["files"].append("notes.txt")  # which no run writes
    Path("logs/manifest.json").write_text(json.dumps(record))
    assert run_command(*RUN, "--overwrite")[0] == 0
    assert {Path("logs", name).read_text() for name in names} == {"mine"}
    assert "report.html" in refusal_of("report", "logs")
    Path("logs/models.parquet").write_text("mine")
    assert "models.parquet" in refusal_of(*RUN, "--overwrite")
    Path("photos/.partial").mkdir(parents=True)
    Path("photos/.partial/holiday.parquet").write_bytes(b"mine")
    assert "other files" in refusal_of("run", "tiny.toml", "--out", "photos")


@pytest.mark.parametrize("name", [".partial", "rounds.parquet", ".rounds.parquet.tmp", ".lock"])
def test_links_are_not_followed(refusal_of: RefusalOf, name: str) -> None:
    play(TINY)
    Path("mine").mkdir()
    Path("mine/run").write_text("mine")
    Path("logs", name).unlink(missing_ok=True)
    Path("logs", name).symlink_to(Path("mine").absolute() / ("" if name == ".partial" else "run"))
    for how in ("--overwrite", "--resume"):
        assert name in refusal_of(*RUN, how)


def test_a_study_with_what_is_a_strangers_is_not_replaced(
    run_command: RunCommand, refusal_of: RefusalOf
) -> None:
    """Neither a file among its own, nor a link in the place of one."""
    assert run_command(*STUDY)[0] == 0
    for name in ("runs/run=0000/notes.txt", ".drafts/notes.txt", "runs/mine/a"):
        place = Path("logs", name)
        made = not place.parent.exists()
        place.parent.mkdir(exist_ok=True)
        place.write_text("mine")
        assert place.parent.name in refusal_of(*STUDY, "--overwrite")
        place.unlink()
        if made:
            place.parent.rmdir()
    for name in ("runs", ".drafts", "runs/run=0000", "value.parquet"):
        place, elsewhere = Path("logs", name), Path("elsewhere")
        there = place.exists()
        place.rename(elsewhere) if there else elsewhere.mkdir()
        place.symlink_to(elsewhere.absolute())
        assert place.name in refusal_of(*STUDY, "--overwrite")
        place.unlink()
        elsewhere.rename(place) if there else elsewhere.rmdir()


@pytest.mark.parametrize("name", ["photo.jpg", "rounds-x.arrow", "a/b", "rounds-000000.arrow/b"])
def test_a_strange_file_among_the_parts_is_refused(refusal_of: RefusalOf, name: str) -> None:
    stopped(TINY, 9)
    place = Path("logs/.partial", name)
    if place.parent.is_file():
        place.parent.unlink()
    place.parent.mkdir(exist_ok=True)
    place.write_text("mine")
    for how in ("--resume", "--overwrite"):
        assert name.partition("/")[0] in refusal_of(*RUN, how)


MANIFESTS = ["[" * 100_000, "", "[]", "{}", '{"config": 1, "status": [], "scenario": {}}', "\xff"]


def test_a_strange_record_is_refused(refusal_of: RefusalOf) -> None:
    stopped(TINY, 9)
    for file in Path("logs").glob("*.parquet"):  # which a kill does not leave
        file.unlink()
    Path("runs-of-a-study").mkdir()
    for text in MANIFESTS:
        Path("logs/manifest.json").write_text(text, encoding="latin-1")
        refusal_of(*RUN)
        for words in ((*RUN, "--resume"), ("report", "logs")):
            assert "manifest.json" in refusal_of(*words), text
        Path("runs-of-a-study/study.json").write_text(text, encoding="latin-1")
        words = ("study", "sweep.toml", "--out", "runs-of-a-study")
        for refusing in (words, (*words, "--overwrite"), ("report", "runs-of-a-study")):
            refusal_of(*refusing)
