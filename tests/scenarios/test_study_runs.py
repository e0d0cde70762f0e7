"""A study survives: failing runs, dying workers, kill -9 and Ctrl-C cost what was in flight."""

import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import dask.dataframe
import distributed
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import worlds
from distributed.security import Security
from worlds import TINY
from written import tables

from regretless.market.core.errors import UserError
from regretless.scenarios.config.files import override, read
from regretless.scenarios.executor import DIED, Cluster, collect
from regretless.scenarios.logs.ownership import held
from regretless.scenarios.report.write import write_report
from regretless.scenarios.run import Options as RunOptions
from regretless.scenarios.run import run
from regretless.scenarios.studies import Study
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
seeds = 1
[set]
"adversary.kind" = "moody"
[grid]
"adversary.mood" = ["calm", "stuck", "angry", "deadly", "gone"]
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
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    files = {"tiny.toml": TINY, "sweep.toml": SWEEP, "moods.toml": MOODS, "moods.py": MODULE}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def sweep(desk: Path) -> Design:
    return read_study(str(desk / "sweep.toml"))


@pytest.fixture(scope="module")
def finished(desk: Path, sweep: Design) -> Study:
    done: list[int] = []
    study = conduct(sweep, Options(desk / "finished", jobs=2), progress=done.append)
    assert done == list(range(1, 13))
    found = [study.record[key] for key in ("status", "complete", "failed")]
    assert found == ["complete", 12, 0]
    return study


def test_the_number_of_workers_changes_no_byte(desk: Path, sweep: Design, finished: Study) -> None:
    one = conduct(sweep, Options(desk / "one", jobs=1))
    assert tables(one.path) == tables(finished.path)
    others = {"gains", "sensitivity", "calibration", "windows"}  # which this study has not
    known = {f"{name}.parquet" for name in TABLES if name not in others}
    assert {path.name for path in one.path.iterdir()} == known | {"runs", "study.json"}


def test_a_run_of_a_study_is_the_run_of_the_scenario(desk: Path, finished: Study) -> None:
    raw = read(desk / "tiny.toml") | {"seed": 2}
    keys = ["forecaster.kind=running-mean", "cohort.farmers.count=3"]
    run(worlds.told(override(raw, keys), origin=desk), RunOptions(desk / "alone"))
    places = ["forecaster.kind", "cohort.farmers.count", "seed"]
    number = finished.parameters().set_index(places).loc[("running-mean", 3, 2), "run"]
    assert tables(desk / "alone") == tables(finished.path / "runs" / f"run={number:04d}")
    told = json.loads((desk / "alone/manifest.json").read_text(encoding="utf-8"))["welfare"]
    row = finished.cohorts().set_index("run").loc[number]
    names = ["welfare_mean", "welfare_gini", "welfare_mean_difference"]
    assert told == {"farmers": {name: row[name] for name in names}}


def test_pairs_have_common_random_numbers(sweep: Design, finished: Study) -> None:
    """A drifting nature does not react: both forecasters face the same outcomes and agents."""
    rounds = finished.table("rounds").merge(finished.parameters(), on="run")
    ours, theirs = (
        rounds.loc[rounds["forecaster.kind"] == kind, ["seed", "y_0", "y_1"]].reset_index(drop=True)
        for kind in ("decision-swap", "running-mean")
    )
    pd.testing.assert_frame_equal(ours, theirs)
    assert ours.groupby("seed")["y_0"].first().nunique() == 3
    for mine, other in zip(range(6), range(6, 12), strict=True):
        pair = (sweep.task(number).scenario().build() for number in (mine, other))
        populations = [model.game.cohorts[0].loss.rows() for model in pair]
        np.testing.assert_array_equal(*populations)


def test_the_tables_are_what_python_recomputes(finished: Study) -> None:
    for name in ("cohorts", "value", "effects", "parameters", "failures"):
        stored = pd.read_parquet(finished.path / f"{name}.parquet")
        pd.testing.assert_frame_equal(stored, getattr(finished, name)())
    value = finished.value()
    assert value["pairs"].tolist() == [3, 3]
    assert ((value["low"] < value["mean"]) & (value["mean"] < value["high"])).all()
    cohorts = finished.cohorts()
    worst = finished.agents().groupby("run")["decision_swap_regret"].max()
    assert cohorts["decision_swap_regret_worst"].tolist() == worst.tolist()


def with_pandas(study: Path) -> pd.DataFrame:
    return pd.read_parquet(sorted(study.glob("runs/*/agents.parquet")), partitioning="hive")


def with_polars(study: Path) -> pd.DataFrame:
    files = str(study / "runs/*/agents.parquet")
    frame = pl.scan_parquet(files, hive_partitioning=True).collect()
    return pd.DataFrame(frame.to_dict(as_series=False))


def with_duckdb(study: Path) -> pd.DataFrame:
    files = f"'{study}/runs/*/agents.parquet'"
    read = f"read_parquet({files}, hive_partitioning = true, hive_types = {{'run': BIGINT}})"
    query = f"SELECT a.* FROM {read} a JOIN '{study}/parameters.parquet' USING (run)"  # noqa: S608
    rows = duckdb.sql(query)
    return pd.DataFrame(rows.fetchall(), columns=rows.columns)


def with_dask(study: Path) -> pd.DataFrame:
    files = str(study / "runs/*/agents.parquet")
    return dask.dataframe.read_parquet(files).compute(scheduler="synchronous")


@pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")  # Dask's own
@pytest.mark.parametrize("reader", [with_pandas, with_polars, with_duckdb, with_dask])
def test_runs_read_as_one_data_set(finished: Study, reader: Callable[[Path], pd.DataFrame]) -> None:
    frame = reader(finished.path)
    frame["run"] = frame["run"].astype("int64")
    frame = frame.sort_values(["run", "agent"])
    expected = finished.agents()
    assert set(frame) == set(expected)
    for column in ("run", "agent", "mean_loss", "decision_swap_regret"):
        assert frame[column].tolist() == expected[column].tolist()


def test_failures_are_recorded_and_tried_again(desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(desk)
    (desk / "storm").touch()
    design = read_study(str(desk / "moods.toml"))
    options = Options(desk / "moods", jobs=2, imports=("moods",), patience=10)
    study = conduct(design, options)
    said = "round 20: Moody.commit (moods.py, line %d): %s; mend it"
    failures = study.failures()
    assert failures[["run", "kind", "error"]].to_numpy().tolist() == [
        [1, "WorkerDied", DIED],  # it hangs
        [2, "ValueError", said % (23, "ValueError: it is raining")],
        [3, "WorkerDied", DIED],
        [4, "SystemExit", said % (29, "SystemExit: I leave")],
    ]
    assert "moods.py" in failures["traceback"][1]
    assert study.runs() == [0]
    assert study.cohorts()["run"].tolist() == [0]
    assert (study.record["status"], study.record["failed"]) == ("complete", 4)

    (desk / "storm").unlink()
    before = [path.stat().st_mtime_ns for path in (desk / "moods").glob("runs/run=0000/*")]
    tried = conduct(design, Options(desk / "moods", jobs=1, resume=True, imports=("moods",)))
    assert tried.runs() == [0, 1, 2, 3, 4]
    assert len(tried.failures()) == 0
    after = [path.stat().st_mtime_ns for path in (desk / "moods").glob("runs/run=0000/*")]
    assert before == after


def children(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(pid) for pid in listed.split()]


def alive(process: int) -> bool:
    """Whether a process still runs; one that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


def stopped_after(desk: Path, runs: int, sent: signal.Signals, *more: str) -> tuple[int, str]:
    """Start the study, stop it when that many runs are complete; exit status, standard error."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored for all
    command = [COMMAND, "study", "sweep.toml", "--out", "killed", *more]
    process = subprocess.Popen(command, cwd=desk, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: len(list((desk / "killed").glob("runs/*"))) >= runs)
    workers = children(process.pid)
    process.send_signal(sent)
    _, error = process.communicate(timeout=PATIENCE)
    wait_until(lambda: not any(map(alive, workers)))
    return process.returncode, error


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
def test_kill_and_interrupt_lose_what_was_in_flight(
    desk: Path, sweep: Design, finished: Study
) -> None:
    first, more = random.Random(7).randint(1, 3), random.Random(8).randint(2, 3)  # noqa: S311
    status, _ = stopped_after(desk, first, signal.SIGKILL, "--jobs", "2")
    assert status == -signal.SIGKILL
    killed = desk / "killed"
    assert json.loads((killed / "study.json").read_text())["status"] == "interrupted"
    complete = {path: path.stat().st_mtime_ns for path in killed.glob("runs/*/*")}
    status, error = stopped_after(desk, first + more, signal.SIGINT, "--jobs", "1", "--resume")
    assert status == 130
    assert error == "regretless: interrupted; continue with --resume\n"
    half = Study(killed)
    assert half.record["status"] == "interrupted"
    assert first + more <= len(half.runs()) < 12
    assert len(pd.read_parquet(killed / "cohorts.parquet")) == len(half.runs())
    assert not (killed / ".drafts").exists()
    complete |= {path: path.stat().st_mtime_ns for path in killed.glob("runs/*/*")}
    conduct(sweep, Options(killed, jobs=1, resume=True))
    assert tables(killed) == tables(finished.path)
    assert {path: path.stat().st_mtime_ns for path in complete} == complete


def test_a_study_is_never_overwritten_or_mixed(desk: Path, finished: Study) -> None:
    other, own = (read_study(str(desk / name)) for name in ("moods.toml", "sweep.toml"))
    before = tables(finished.path)
    for design, options, told in (
        (own, Options(finished.path), "holds a study; continue it with --resume"),
        (other, Options(finished.path, resume=True), "holds another study; give another --out"),
        (own, Options(desk), "holds other files; give a new or an earlier study's"),
        (own, Options(desk / "tiny.toml"), "is a file; give a directory"),
    ):
        with pytest.raises(UserError, match=told):
            conduct(design, options)
    assert tables(finished.path) == before


def test_a_study_has_one_writer_and_one_version(desk: Path, finished: Study) -> None:
    design, copied = read_study(str(desk / "sweep.toml")), desk / "copied"
    with held(desk / "busy"), pytest.raises(UserError, match="another process"):
        conduct(design, Options(desk / "busy", jobs=1))
    assert not (desk / "busy").exists()
    shutil.copytree(finished.path, copied)
    record = json.loads((copied / "study.json").read_text(encoding="utf-8"))
    record["versions"]["regretless"] = "0.0.9"
    (copied / "study.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(UserError, match=r"begun by regretless 0\.0\.9"):
        conduct(design, Options(copied, resume=True))


def test_a_damaged_run_is_named_and_can_be_played_again(desk: Path, finished: Study) -> None:
    design, hurt = read_study(str(desk / "sweep.toml")), desk / "hurt"
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
    assert tables(hurt) == tables(finished.path)


def test_every_setting_is_built_before_anything_is_written(desk: Path) -> None:
    """A name that only the market knows: found in a worker, and no directory is made."""
    text = SWEEP.replace('"running-mean"', '"runing-mean"')
    (desk / "wrong.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"did you mean 'running-mean'\?") as caught:
        conduct(read_study(str(desk / "wrong.toml")), Options(desk / "wrong", jobs=1))
    setting = "forecaster.kind = 'runing-mean', cohort.farmers.count = 3"
    assert str(caught.value).startswith(f"study 'wrong', {setting}: ")
    assert "\n" not in str(caught.value)
    assert not (desk / "wrong").exists()


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
    ours = Cluster(1)
    try:
        assert ours.map(abs, [-1, -2]) == [1, 2]
        doors = [ours.client.scheduler.address, *ours.workers()]
        assert all(door.startswith("tls://127.0.0.1:") for door in doors)
        strangers = {doors[0]: Security.temporary(), doors[0].replace("tls", "tcp"): None}
        for door, own in strangers.items():
            with pytest.raises((OSError, TypeError)):
                distributed.Client(door, timeout=2, security=own, set_as_default=False)
    finally:
        ours.close()
