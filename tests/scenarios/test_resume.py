"""A run that is killed or interrupted continues to the same bytes; the same seed repeats itself."""

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import written
from desk import Call, Refused
from worlds import Raw, cohort, told
from written import Reference, assert_same, files, status, tables

import regretless
from regretless.agents import ScriptedAgent
from regretless.agents.adversaries import Adversary
from regretless.market import register
from regretless.market.core import checkpoint
from regretless.market.core.errors import UserError
from regretless.market.logs import journal
from regretless.market.records import Context, Forecast, OutcomeDistribution
from regretless.scenarios.logs.ownership import held

COMMAND = Path(sys.executable).parent / "regretless"
CHECKPOINT = ".partial/checkpoint.npz"
CHUNK = 50  # rounds, of the runs of 110 that stop by themselves: two full chunks and a rest
PATIENCE = 300  # seconds; a first run compiles

CHEAP = """\
name = "cheap"
rounds = 110
seed = 11
adversary = { kind = "drifting", outcomes = 2 }
forecaster = { kind = "running-mean" }
cohort = [{ name = "farmers", utility = "linear", count = 3, actions = 3 }]
"""

MEASURES = ["external", "swap", "omniprediction", "decision_swap", "contextual_swap"]
RHO = {"rho": {"choices": [0.5, 0.8]}}
MIXED = {
    "name": "mixed",
    "rounds": 110,
    "seed": 5,
    "adversary": {"kind": "switching", "outcomes": 2},
    "cohort": [
        cohort("farmers", 3, 3, "ces", parameters=RHO, measures=MEASURES),
        cohort("naive", 2, response="quantal", eta=8.0),
        cohort("scripted", 2, 3, response="remembering"),
    ],
}


class Checkpointable(ScriptedAgent):
    """Plays what lost least so far, half of the time; offers its memory to a checkpoint."""

    def __init__(self, loss: Any, rng: np.random.Generator) -> None:
        super().__init__(loss, rng)
        self.sums = np.zeros(loss.actions)
        self.rounds = 0

    def act(self, forecast: Forecast, context: Context) -> int:
        if self.rng.random() < 0.5:
            return int(self.rng.integers(len(self.sums)))
        return int(self.sums.argmin())

    def learn(self, losses: Any, outcome: Any) -> None:
        self.sums = self.sums + losses
        self.rounds += 1

    def state(self) -> dict[str, Any]:
        return {"sums": self.sums, "rounds": self.rounds, "nothing": None}

    def restore(self, state: dict[str, Any]) -> None:
        self.sums, self.rounds = np.array(state["sums"]), int(state["rounds"])


class Forgetful(ScriptedAgent):
    """Offers no memory."""

    def act(self, forecast: Forecast, context: Context) -> int:
        return 0


class Impatient(Checkpointable):
    """Presses Ctrl-C in the middle of a round."""

    where = ""

    def press(self, where: str) -> None:
        if (where, self.rounds) == (self.where, 60):
            signal.raise_signal(signal.SIGINT)

    def act(self, forecast: Forecast, context: Context) -> int:
        self.press("act")
        return super().act(forecast, context)

    def learn(self, losses: Any, outcome: Any) -> None:
        self.press("learn")  # after the ledger has been told, before the history has
        super().learn(losses, outcome)


class ForgetfulNature(Adversary):
    """Offers no memory."""

    def commit(self, context: Context, history: Any, announced: Any) -> OutcomeDistribution:
        return OutcomeDistribution.pure(np.full(self.outcomes, 0.5))


@pytest.fixture(autouse=True)
def names(registries: None) -> None:
    kinds = {"remembering": Checkpointable, "forgetful": Forgetful, "impatient": Impatient}
    for name, kind in kinds.items():
        register.agent(name)(kind)
    register.adversary("forgetful")(ForgetfulNature)


@pytest.fixture
def desk(desk: Path) -> Path:
    (desk / "cheap.toml").write_text(CHEAP, encoding="utf-8")
    return desk


def play(text: Raw | str, out: Path, *assignments: str, **options: Any) -> None:
    written.play(told(text, *assignments), out, **options)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill a chunk of the logs every few rounds."""
    monkeypatch.setattr(journal, "CHUNK_ROUNDS", CHUNK)


def interrupted(text: Raw | str, out: Path, *assignments: str, **options: Any) -> None:
    assert journal.CHUNK_ROUNDS == CHUNK
    with pytest.raises(KeyboardInterrupt):
        play(text, out, *assignments, **options)


@pytest.fixture
def heeded() -> Iterator[None]:
    """Heed SIGINT in this process, as at a terminal."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


# Real processes.


def started(folder: Path, *words: object, **variables: str) -> subprocess.Popen[str]:
    """Start the installed command."""
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(
        [COMMAND, *map(str, words)], cwd=folder, env=os.environ | variables, **pipes
    )


def finished(process: subprocess.Popen[str]) -> None:
    out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (0, "", "")


def test_a_killed_run_resumes_to_the_same_bytes(desk: Path, reference: Reference) -> None:
    setting = 'forecaster={models=["panel"]}'
    rounds = 1300  # two chunks and a rest
    words = ["run", "cheap.toml", "--out", "logs", "--quiet", "--rounds", rounds, "--set", setting]
    process, deadline = started(desk, *words), time.monotonic() + PATIENCE
    while not (desk / "logs" / CHECKPOINT).exists() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.kill()
    process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGKILL
    logs = desk / "logs"
    assert status(logs) == "interrupted"
    assert tables(logs) == {}  # a reader sees no table at all rather than half of one
    # what a kill between a chunk and its checkpoint, or in the middle of either, leaves behind
    partial = logs / ".partial"
    for name in ("rounds-000007.arrow", "forecasts-000007.arrow", ".checkpoint.npz.tmp"):
        (partial / name).write_bytes(b"PAR1 torn")
    (logs / ".rounds.parquet.tmp").write_bytes(b"PAR1 torn")
    finished(started(desk, *words, "--resume"))
    assert_same(logs, reference(CHEAP, f"rounds={rounds}", setting))


@pytest.mark.usefixtures("heeded", "short")
@pytest.mark.parametrize("where", ["act", "learn"])
def test_an_interrupt_never_splits_a_round(
    where: str, desk: Path, call: Call, reference: Reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables tell of the same rounds, the closing ones agree with the streamed ones; it resumes."""
    logs, setting = desk / "logs", "cohort.farmers.response=impatient"
    words = ("run", "cheap.toml", "--out", "logs", "--quiet", "--set", setting)
    complete = reference(CHEAP, setting)
    monkeypatch.setattr(Impatient, "where", where)
    code, _, err = call(*words)
    assert (code, err.count("\n"), status(logs)) == (130, 1, "interrupted")
    assert "--resume" in err
    for name in ("rounds", "forecasts", "regret_log"):
        log, whole = (pd.read_parquet(home / f"{name}.parquet") for home in (logs, complete))
        count = log["round"].nunique()
        assert count in {60, 61}
        expected = whole[whole["round"] < count].reset_index(drop=True)
        pd.testing.assert_frame_equal(log, expected, check_exact=True)
    agents, swaps = (pd.read_parquet(logs / f"{name}.parquet") for name in ("agents", "swaps"))
    losses = log.groupby("agent")["loss"].mean()
    np.testing.assert_allclose(agents["mean_loss"], losses, rtol=1e-12)
    assert swaps.groupby("agent")["count"].sum().tolist() == [count] * 3
    monkeypatch.setattr(Impatient, "where", "")
    assert call(*words, "--resume")[0] == 0
    assert_same(logs, complete)


def test_two_processes_with_one_seed_write_the_same_bytes(desk: Path) -> None:
    """Whatever the folder, the order of hashing and the name of the run directory."""
    (desk / "below").mkdir()
    common = ["--quiet", "--rounds", "40", "--set", "forecaster.kind=decision-swap"]
    for seed, (home, file) in enumerate(((desk, "cheap.toml"), (desk / "below", "../cheap.toml"))):
        words = ["run", file, "--out", f"out-{seed}", *common]
        finished(started(home, *words, PYTHONHASHSEED=str(seed + 1)))
    assert tables(desk / "out-0") == tables(desk / "below" / "out-1")
    play(CHEAP, desk / "here", "rounds=40", "forecaster.kind=decision-swap")
    assert tables(desk / "out-0") == tables(desk / "here")


# The same in this process, at chosen rounds.


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("text", "stop", "settings"),
    [
        (MIXED, CHUNK, ["adversary.kind=switching"]),  # a regime in mid-course
        (MIXED, 2 * CHUNK + 3, ["adversary.kind=drifting"]),
        (CHEAP, 55, ['cohort.farmers.name="north/south"']),
        (CHEAP, 55, ['cohort.farmers.name="a.b c"']),
        (CHEAP, 55, ["cohort.farmers.exit_rate=0.01"]),
    ],
)
def test_every_player_of_any_name_and_stay_continues_where_it_was(
    text: Raw | str, stop: int, settings: list[str], desk: Path, reference: Reference
) -> None:
    """Basis forecasts, quantal draws, a scripted agent's memory."""
    interrupted(text, desk / "logs", *settings, stop=stop)
    assert status(desk / "logs") == "interrupted"
    play(text, desk / "logs", *settings, resume=True)
    assert_same(desk / "logs", reference(text, *settings))


@pytest.mark.usefixtures("short")
def test_a_run_may_be_interrupted_more_than_once(desk: Path, reference: Reference) -> None:
    interrupted(CHEAP, desk / "logs", stop=60)
    interrupted(CHEAP, desk / "logs", stop=105, resume=True)
    assert len(pd.read_parquet(desk / "logs" / "rounds.parquet")) == 105
    play(CHEAP, desk / "logs", resume=True)
    assert_same(desk / "logs", reference(CHEAP))


@pytest.mark.usefixtures("short")
def test_a_run_resumed_in_another_format_leaves_no_stale_tables(desk: Path) -> None:
    interrupted(CHEAP, desk / "logs", stop=60)
    play(CHEAP, desk / "logs", resume=True, format="csv")
    endings = {path.suffix for path in (desk / "logs").iterdir()}
    assert endings == {".csv", ".json"}
    assert len(pd.read_csv(desk / "logs" / "rounds.csv")) == 110


# What --resume refuses, in one line and without touching what is there.


def archive(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


OURS = f': "{regretless.__version__}"'.encode()
PART = ".partial/rounds-000000.arrow"
PICKLED = {checkpoint.PLAIN: np.array([{"a": 1}], dtype=object)}
DAMAGES: list[tuple[str, Callable[[bytes], bytes | None], str]] = [  # a file, its change
    ("manifest.json", lambda old: old.replace(OURS, b': "0.0.9"'), "0.0.9"),
    (CHECKPOINT, lambda old: old[:500], "checkpoint"),
    (CHECKPOINT, lambda _: archive(**PICKLED), "checkpoint"),
    (CHECKPOINT, lambda _: archive(a=np.ones(3)), "checkpoint"),
    (PART, lambda _: None, "part"),
    (PART, lambda old: old[:-1] + b"x", "part"),
]


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("stop", [60, 30])  # 30 is before the first checkpoint
def test_another_configuration_is_refused(stop: int, desk: Path, refused: Refused) -> None:
    interrupted(CHEAP, desk / "logs", stop=stop)
    before = files("logs")
    for words in ("--seed 12", "--rounds 2000", "--set cohort.farmers.count=4"):
        line = refused("run", "cheap.toml", "--out", "logs", "--resume", *words.split())
        assert "--resume" in line
        assert "another configuration" in line
        assert files("logs") == before


@pytest.mark.usefixtures("short")
def test_what_is_not_what_was_written_is_refused(desk: Path, refused: Refused) -> None:
    """A state of another version may look different, and its rounds may play otherwise."""
    interrupted(CHEAP, desk / "logs", stop=60)
    for name, change, says in DAMAGES:
        file = desk / "logs" / name
        whole = file.read_bytes()
        if (content := change(whole)) is None:
            file.unlink()
        else:
            file.write_bytes(content)
        line = refused("run", "cheap.toml", "--out", "logs", "--resume")
        assert "--resume" in line
        assert says in line
        file.write_bytes(whole)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize(
    ("assignment", "named"),
    [("cohort.farmers.response=forgetful", "farmers"), ("adversary.kind=forgetful", "adversary")],
)
def test_a_player_without_a_memory_is_refused(
    assignment: str, named: str, desk: Path, refused: Refused
) -> None:
    """It runs, and only ``--resume`` says what is missing."""
    play(CHEAP, desk / "logs", assignment, "rounds=60")
    assert status(desk / "logs") == "complete"
    line = refused("run", "cheap.toml", "--out", "other", "--resume", "--set", assignment)
    assert [word for word in (named, "state()", "restore") if word not in line] == []
    assert not (desk / "other").exists()


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
    file = tmp_path / "checkpoint.npz"
    checkpoint.save(file, {"deep": {"er": arrays}, **plain})
    found = checkpoint.load(file)
    read = found.pop("deep")["er"]
    assert found == plain
    assert [*read] == [*arrays]
    for name, array in arrays.items():
        told = (read[name].dtype, read[name].shape, read[name].tobytes())
        assert told == (array.dtype, array.shape, array.tobytes())
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint.npz"]


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

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        return os.mkdir, (str(self.trace),)


@pytest.mark.parametrize("name", [checkpoint.PLAIN, "state"])
def test_a_pickled_object_is_never_loaded(name: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    plain = np.frombuffer(b'{"state": null}', dtype=np.uint8)
    arrays = {checkpoint.PLAIN: plain} | {name: np.array([Trap(trace)], dtype=object)}
    np.savez(tmp_path / "c.npz", **arrays)
    with pytest.raises(ValueError, match="pickle"):
        checkpoint.load(tmp_path / "c.npz")
    assert not trace.exists()


# One writer, whole parts, and complete at every instant.


def test_a_second_writer_is_refused(desk: Path, refused: Refused) -> None:
    with held(desk / "logs"):
        line = refused("run", "cheap.toml", "--out", "logs", "--rounds", "20")
    assert "another process" in line
    play(CHEAP, desk / "logs", "rounds=20")
    assert status(desk / "logs") == "complete"


def test_a_foreign_folder_is_left_alone(desk: Path, refused: Refused) -> None:
    (desk / "photos/.partial").mkdir(parents=True)
    (desk / "photos/.partial/holiday.parquet").write_bytes(b"mine")
    line = refused("run", "cheap.toml", "--out", "photos", "--rounds", "20")
    assert "other files" in line
    assert (desk / "photos/.partial/holiday.parquet").read_bytes() == b"mine"
