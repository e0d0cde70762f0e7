"""A study survives: failing runs, dying workers, kill -9 and Ctrl-C cost what was in flight."""

import importlib
import json
import logging
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import dask.dataframe
import distributed
import duckdb
import pandas as pd
import polars as pl
import psutil
import pytest
from distributed.security import Security
from run_files import table_bytes
from servers import two_worker_cluster
from small_scenarios import TINY_SCENARIO, read_scenario, write_study

from regretless.market.core.errors import UserError
from regretless.scenarios.config.files import override, read
from regretless.scenarios.executor import DIED, Cluster, collect
from regretless.scenarios.logs.directory_lock import hold_directory
from regretless.scenarios.report.write import write_report
from regretless.scenarios.run import Options as RunOptions
from regretless.scenarios.run import run
from regretless.scenarios.studies import Study, load_study
from regretless.scenarios.studies.conduct import Options, conduct
from regretless.scenarios.studies.design import Design, read_study
from regretless.scenarios.studies.directory import TABLES, Answer, StudyDirectory

COMMAND = Path(sys.executable).parent / "regretless"
PATIENCE = 120  # seconds; a first run compiles

SWEEP = """\
scenario = "tiny.toml"
seeds = 3
[grid]
"forecaster.kind" = ["decision-swap", "running-mean"]
"cohort.farmers.count" = [3, 4]
"""

MOODS = """\
scenario = "tiny.toml"
seeds = %d
[set]
"adversary.kind" = "moody"
[grid]
"adversary.mood" = %s
"""

MODULE = '''\
import os
import time
from pathlib import Path

import numpy as np

from regretless.agents.adversaries import Adversary
from regretless.market import register
from regretless.market.records import OutcomeDistribution


@register.adversary("moody")
class Moody(Adversary):
    """Some moods end the run, or the whole process, while there is a file called ``storm``."""

    def __init__(self, outcomes, rng, *, mood):
        super().__init__(outcomes, rng)
        self.mood = mood

    def commit(self, context, history, announced):
        if history.rounds == 10 and self.mood == "hopeless":
            raise RuntimeError("enough")
        if history.rounds == 20 and (Path(__file__).parent / "storm").exists():
            if self.mood == "angry":
                raise ValueError("it is\\nraining")
            if self.mood == "deadly":
                os._exit(7)
            while self.mood == "stuck":
                time.sleep(1)
            if self.mood == "gone":
                raise SystemExit("I leave")
        return OutcomeDistribution(np.eye(2), np.array([0.5, 0.5]))
'''


@pytest.fixture(scope="module")
def working_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("working_folder")
    moods = MOODS % (1, ["calm", "stuck", "angry", "deadly", "gone"])
    files = {
        "tiny.toml": TINY_SCENARIO,
        "sweep.toml": SWEEP,
        "moods.toml": moods,
        "moods.py": MODULE,
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def sweep(working_folder: Path) -> Design:
    return read_study(str(working_folder / "sweep.toml"))


@pytest.fixture(scope="module")
def finished(working_folder: Path, sweep: Design) -> Study:
    done: list[int] = []
    study = conduct(sweep, Options(working_folder / "finished", jobs=2), progress=done.append)
    assert done == list(range(1, 13))
    found = [study.record[key] for key in ("status", "complete", "failed")]
    assert found == ["complete", 12, 0]
    others = {"gains", "sensitivity", "calibration", "windows"}  # which this study has not
    known = {f"{name}.parquet" for name in TABLES if name not in others}
    assert {path.name for path in study.path.iterdir()} == known | {"runs", "study.json"}
    return study


def test_a_run_of_a_study_is_the_run_of_the_scenario(working_folder: Path, finished: Study) -> None:
    raw = read(working_folder / "tiny.toml") | {"seed": 2}
    keys = ["forecaster.kind=running-mean", "cohort.farmers.count=3"]
    run(
        read_scenario(override(raw, keys), origin=working_folder),
        RunOptions(working_folder / "alone"),
    )
    places = ["forecaster.kind", "cohort.farmers.count", "seed"]
    number = finished.parameters().set_index(places).loc[("running-mean", 3, 2), "run"]
    assert table_bytes(working_folder / "alone") == table_bytes(
        finished.path / "runs" / f"run={number:04d}"
    )
    told = json.loads((working_folder / "alone/manifest.json").read_text(encoding="utf-8"))[
        "welfare"
    ]
    row = finished.cohorts().set_index("run").loc[number]
    worst = finished.agents().groupby("run")["decision_swap_regret"].max()
    assert row["decision_swap_regret_worst"] == worst[number]
    names = ["welfare_mean", "welfare_gini", "welfare_mean_difference"]
    assert told == {"farmers": {name: row[name] for name in names}}


def test_pairs_have_common_random_numbers(finished: Study) -> None:
    """A drifting nature does not react: both forecasters face the same outcomes."""
    rounds = finished.table("rounds").merge(finished.parameters(), on="run")
    ours, theirs = (
        rounds.loc[rounds["forecaster.kind"] == kind, ["seed", "y_0", "y_1"]].reset_index(drop=True)
        for kind in ("decision-swap", "running-mean")
    )
    pd.testing.assert_frame_equal(ours, theirs)
    assert ours.groupby("seed")["y_0"].first().nunique() == 3


@pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")  # Dask's own
def test_runs_read_as_one_data_set(finished: Study) -> None:
    """By pandas, Polars, DuckDB and Dask."""
    files, columns = f"{finished.path}/runs/*/agents.parquet", ["run", "agent", "mean_loss"]
    rows = duckdb.sql(f"SELECT * FROM read_parquet('{files}', hive_partitioning = true)")  # noqa: S608
    expected = finished.agents()
    for frame in (
        pd.read_parquet(sorted(finished.path.glob("runs/*/agents.parquet")), partitioning="hive"),
        pd.DataFrame(pl.scan_parquet(files, hive_partitioning=True).collect().to_dict()),
        pd.DataFrame(rows.fetchall(), columns=rows.columns),
        dask.dataframe.read_parquet(files).compute(scheduler="synchronous"),
    ):
        assert set(frame) == set(expected)
        read = frame[columns].astype({"run": "int64"}).sort_values(["run", "agent"])
        assert read.to_numpy().tolist() == expected[columns].to_numpy().tolist()


def test_failures_are_recorded_and_tried_again(
    working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(working_folder)
    (working_folder / "storm").touch()
    design = read_study(str(working_folder / "moods.toml"))
    options = Options(working_folder / "moods", jobs=2, imports=("moods",), patience=10)
    study = conduct(design, options)
    said = "round 20: Moody.commit (moods.py, line %d): %s; mend it"
    failures = study.failures()
    assert failures[["run", "kind", "error"]].to_numpy().tolist() == [
        [1, "WorkerDied", DIED],  # it hangs
        [2, "ValueError", said % (25, "ValueError: it is raining")],
        [3, "WorkerDied", DIED],
        [4, "SystemExit", said % (31, "SystemExit: I leave")],
    ]
    assert "moods.py" in failures["traceback"][1]
    assert study.runs() == [0]
    assert study.cohorts()["run"].tolist() == [0]
    assert (study.record["status"], study.record["failed"]) == ("complete", 4)

    (working_folder / "storm").unlink()
    before = [
        path.stat().st_mtime_ns for path in (working_folder / "moods").glob("runs/run=0000/*")
    ]
    tried = conduct(
        design, Options(working_folder / "moods", jobs=1, resume=True, imports=("moods",))
    )
    assert tried.runs() == [0, 1, 2, 3, 4]
    assert len(tried.failures()) == 0
    after = [path.stat().st_mtime_ns for path in (working_folder / "moods").glob("runs/run=0000/*")]
    assert before == after


def alive(process: psutil.Process) -> bool:
    """Whether a process still runs; one that nobody has waited for yet does not."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def test_kill_and_interrupt_lose_what_was_in_flight(
    working_folder: Path, sweep: Design, finished: Study
) -> None:
    """Workers end with who started them; another number of workers leads to the same bytes."""
    killed, command = working_folder / "killed", [COMMAND, "study", "sweep.toml", "--out", "killed"]
    process = subprocess.Popen([*command, "--jobs", "2"], cwd=working_folder)
    wait_until(lambda: len(list(killed.glob("runs/*"))) >= 2)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    assert process.wait(PATIENCE) == -signal.SIGKILL
    wait_until(lambda: not any(map(alive, workers)))
    assert json.loads((killed / "study.json").read_text())["status"] == "interrupted"
    complete = {path: path.stat().st_mtime_ns for path in killed.glob("runs/*/*")}

    def interrupt(over: int) -> None:
        if over == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        conduct(sweep, Options(killed, jobs=1, resume=True), progress=interrupt)
    half = Study(killed)
    assert half.record["status"] == "interrupted"
    assert len(half.runs()) == len(pd.read_parquet(killed / "cohorts.parquet")) == 8
    assert not (killed / ".drafts").exists()
    complete |= {path: path.stat().st_mtime_ns for path in killed.glob("runs/*/*")}
    conduct(sweep, Options(killed, jobs=1, resume=True))
    assert table_bytes(killed) == table_bytes(finished.path)
    assert {path: path.stat().st_mtime_ns for path in complete} == complete


def test_a_study_has_one_writer_one_file_and_one_version(
    working_folder: Path, finished: Study
) -> None:
    other, own = (read_study(str(working_folder / name)) for name in ("moods.toml", "sweep.toml"))
    older = shutil.copytree(finished.path, working_folder / "older")
    record = json.loads((older / "study.json").read_text(encoding="utf-8"))
    record["versions"]["regretless"] = "0.0.9"
    (older / "study.json").write_text(json.dumps(record), encoding="utf-8")
    before = table_bytes(working_folder)
    for design, options, told in (
        (own, Options(finished.path), "holds a study; continue it with --resume"),
        (other, Options(finished.path, resume=True), "holds another study; give another --out"),
        (own, Options(working_folder), "holds other files; give a new or an earlier study's"),
        (own, Options(working_folder / "tiny.toml"), "is a file; give a directory"),
        (own, Options(older, resume=True), r"begun by regretless 0\.0\.9"),
    ):
        with pytest.raises(UserError, match=told):
            conduct(design, options)
    with held(working_folder / "busy"), pytest.raises(UserError, match="another process"):
        conduct(own, Options(working_folder / "busy", jobs=1))
    assert not (working_folder / "busy").exists()
    assert table_bytes(working_folder) == before
    with pytest.raises(UserError, match=r"is not a study directory: give one"):
        load_study(working_folder)


def test_a_damaged_run_is_named_and_can_be_played_again(
    working_folder: Path, finished: Study
) -> None:
    design, hurt = read_study(str(working_folder / "sweep.toml")), working_folder / "hurt"
    shutil.copytree(finished.path, hurt)
    (hurt / "runs/run=0001/agents.parquet").unlink()
    (hurt / "runs/run=0002/agents.parquet").write_bytes(b"PAR1")
    for name in ("run=0001", "run=0002"):
        told = f"{name}: its table 'agents' is damaged or gone; remove that folder"
        with pytest.raises(UserError, match=told):
            conduct(design, Options(hurt, resume=True, jobs=1))
        with pytest.raises(UserError, match=told):
            write_report(hurt)
        assert not list(hurt.glob("*.html*"))
        shutil.rmtree(hurt / "runs" / name)
    conduct(design, Options(hurt, resume=True, jobs=1))
    assert table_bytes(hurt) == table_bytes(finished.path)


@pytest.mark.parametrize("jobs", [1, 2])
def test_work_of_any_kind_is_collected_in_order(jobs: int) -> None:
    done: list[int] = []
    assert collect(math.isqrt, [49, 16, 25, 4], jobs=jobs, progress=done.append) == [7, 4, 5, 2]
    assert done == [1, 2, 3, 4]
    with pytest.raises(ValueError, match="isqrt"):
        collect(math.isqrt, [4, -1, 9], jobs=jobs)


def test_a_worker_that_dies_ends_the_collection() -> None:
    with pytest.raises(UserError, match="task 1: its worker process ended"):
        collect(os._exit, [3], jobs=2)


def test_parts_that_a_run_could_not_remove_do_not_stay(tmp_path: Path, sweep: Design) -> None:
    """A run is complete before it tidies up, and its disk may fail just then."""
    directory = StudyDirectory(tmp_path / "littered", sweep)
    directory.path.mkdir()
    directory.start(known=False)
    (directory.draft(0) / ".partial").mkdir(parents=True)
    (directory.draft(0) / ".partial" / "rounds-000000.arrow").touch()
    (directory.draft(0) / ".lock").touch()
    directory.keep(Answer(0))
    assert list(directory.home(0).iterdir()) == []


def test_strangers_are_sent_away() -> None:
    """A client without the cluster's certificate reaches neither scheduler nor worker."""
    with closing(Cluster(1)) as ours:
        assert ours.map(abs, [-1, -2]) == [1, 2]
        doors = [ours.client.scheduler.address, *ours.workers()]
        assert all(door.startswith("tls://127.0.0.1:") for door in doors)
        strangers = {doors[0]: Security.temporary(), doors[0].replace("tls", "tcp"): None}
        for door, own in strangers.items():
            with pytest.raises((OSError, TypeError)):
                distributed.Client(door, timeout=2, security=own, set_as_default=False)


def test_a_cluster_gives_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tracebacks of failures aside; its workers start without the folder of the user's module."""
    with two_worker_cluster() as cluster:
        monkeypatch.syspath_prepend(tmp_path)
        (tmp_path / "fickle.py").write_text(MODULE, encoding="utf-8")
        importlib.invalidate_caches()
        design = write_study(tmp_path, MOODS % (2, ["calm", "hopeless"]))
        imports = ("fickle",)
        here = conduct(design, Options(tmp_path / "here", jobs=1, imports=imports))
        options = Options(tmp_path / "there", scheduler=cluster.scheduler_address, imports=imports)
        there = conduct(design, options)
    for logger in ("distributed.client", "distributed.comm"):  # which tell a loss in 40 lines
        assert not logging.getLogger(logger).isEnabledFor(logging.ERROR)
    assert there.runs() == here.runs() == [0, 1]
    ours, theirs = table_bytes(here.path), table_bytes(there.path)
    assert [name for name in theirs if ours.get(name) != theirs[name]] == ["failures.parquet"]
    assert set(ours) == set(theirs)
    said = "round 10: Moody.commit (fickle.py, line 22): RuntimeError: enough; mend it"
    for study in (here, there):
        failures = study.failures()[["run", "kind", "error"]].to_numpy().tolist()
        assert failures == [[run, "RuntimeError", said] for run in (2, 3)]


def test_no_scheduler_is_one_line_and_without_dask_runs_are_played_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regretless.scenarios.executor.CONNECTING", 0.5)
    design = write_study(tmp_path, 'scenario = "tiny.toml"')
    out, there = tmp_path / "out", "tcp://127.0.0.1:9"
    lost = r"tcp://127.0.0.1:9 cannot be reached: .*; check the addr"
    for scheduler, told in (there, lost), ("nonsense", r"is no address; write e\.g\. tcp://"):
        with pytest.raises(UserError, match=told):
            conduct(design, Options(out, scheduler=scheduler))
    monkeypatch.setitem(sys.modules, "distributed", None)
    for asked in (Options(out, scheduler=there), Options(out, jobs=2)):
        with pytest.raises(UserError, match=r"run pip install 'regretless\[dask\]'"):
            conduct(design, asked)
    assert not out.exists()
    assert conduct(design, Options(out)).runs() == [0]


@pytest.mark.parametrize("done", [False, True])
def test_a_task_for_a_worker_that_is_gone_is_given_back(*, done: bool) -> None:
    """Dask keeps one for ever that was sent to it, or done by it, while there was no other."""
    with closing(Cluster(1)) as cluster:
        ((home, pid),) = cluster.client.run(os.getpid).items()
        if done:
            cluster.submit(0, abs, -1, at=home)
            wait_until(lambda: all(future.done() for future in cluster.pending))
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not cluster.client.nthreads())
        if not done:
            cluster.submit(0, abs, -1, at=home)
        assert cluster.next() == (0, None)
        cluster.submit(0, abs, -1)
        assert cluster.next() == (0, 1)
