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
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import dask.dataframe
import distributed
import pandas as pd
import psutil
import pytest
from distributed.security import Security
from read_study_files import read_with_duckdb, read_with_pandas, read_with_polars
from run_files import read_manifest, table_bytes
from servers import two_worker_cluster
from small_scenarios import TINY_SCENARIO, read_scenario, write_study

from regretless.market.core.errors import UserError
from regretless.scenarios.config.files import override, read
from regretless.scenarios.executor.base import DIED
from regretless.scenarios.executor.choice import collect
from regretless.scenarios.executor.cluster import Cluster
from regretless.scenarios.logs.directory_lock import hold_directory
from regretless.scenarios.report.write import write_report
from regretless.scenarios.run import Options as RunOptions
from regretless.scenarios.run import run
from regretless.scenarios.studies import Study, load_study
from regretless.scenarios.studies.conduct import Options, conduct
from regretless.scenarios.studies.design import Design, read_study
from regretless.scenarios.studies.directory import TABLES, Answer, StudyDirectory

COMMAND = Path(sys.executable).parent / "regretless"
PATIENCE_SECONDS = 120  # a first run compiles

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

MOODY_MODULE = '''\
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
    """Return a folder with a scenario, two studies of it, and the module that one needs."""
    folder = tmp_path_factory.mktemp("working_folder")
    files = {
        "tiny.toml": TINY_SCENARIO,
        "sweep.toml": SWEEP,
        "moods.toml": MOODS % (1, ["calm", "stuck", "angry", "deadly", "gone"]),
        "moods.py": MOODY_MODULE,
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def sweep(working_folder: Path) -> Design:
    """Return the study of two forecasters and two sizes, of twelve runs."""
    return read_study(str(working_folder / "sweep.toml"))


@pytest.fixture(scope="module")
def progress_of_finished() -> list[int]:
    """Return the list in which the finished study's progress is kept."""
    return []


@pytest.fixture(scope="module")
def finished(working_folder: Path, sweep: Design, progress_of_finished: list[int]) -> Study:
    """Return the study, played by two workers."""
    options = Options(working_folder / "finished", jobs=2)
    return conduct(sweep, options, progress=progress_of_finished.append)


def test_a_study_counts_its_runs_as_they_end(
    finished: Study, progress_of_finished: list[int]
) -> None:
    assert progress_of_finished == list(range(1, 13))
    assert finished.record["status"] == "complete"
    assert finished.record["complete"] == 12
    assert finished.record["failed"] == 0


def test_a_study_writes_its_tables_its_runs_and_its_record(finished: Study) -> None:
    has_none = {"gains", "sensitivity", "calibration", "windows", "impulse_response"}
    tables = {f"{name}.parquet" for name in TABLES if name not in has_none}
    assert {path.name for path in finished.path.iterdir()} == tables | {"runs", "study.json"}


def number_of_run(study: Study, kind: str, count: int, seed: int) -> int:
    """Return the number of the run of a setting and a seed."""
    keys = ["forecaster.kind", "cohort.farmers.count", "seed"]
    return int(study.parameters().set_index(keys).loc[(kind, count, seed), "run"])


@pytest.fixture(scope="module")
def run_alone(working_folder: Path) -> Path:
    """Return the folder of one of the study's runs, played as a scenario."""
    raw = read(working_folder / "tiny.toml") | {"seed": 2}
    assignments = ["forecaster.kind=running-mean", "cohort.farmers.count=3"]
    scenario = read_scenario(override(raw, assignments), origin=working_folder)
    run(scenario, RunOptions(working_folder / "alone"))
    return working_folder / "alone"


def test_a_run_of_a_study_is_the_run_of_the_scenario(run_alone: Path, finished: Study) -> None:
    number = number_of_run(finished, "running-mean", 3, seed=2)
    folder = finished.path / "runs" / f"run={number:04d}"
    assert table_bytes(folder) == table_bytes(run_alone)


def test_the_row_of_a_run_has_its_worst_regret_and_its_welfare(
    run_alone: Path, finished: Study
) -> None:
    number = number_of_run(finished, "running-mean", 3, seed=2)
    row = finished.cohorts().set_index("run").loc[number]
    worst_regret = finished.agents().groupby("run")["decision_swap_regret"].max()
    assert row["decision_swap_regret_worst"] == worst_regret[number]
    names = ["welfare_mean", "welfare_gini", "welfare_mean_difference"]
    welfare = {"farmers": {name: row[name] for name in names}}
    assert read_manifest(run_alone)["welfare"] == welfare


def outcomes_against(study: Study, kind: str) -> pd.DataFrame:
    """Return the outcomes of all rounds of a forecaster's runs, with their seeds."""
    rounds = study.table("rounds").merge(study.parameters(), on="run")
    is_kind = rounds["forecaster.kind"] == kind
    return rounds.loc[is_kind, ["seed", "y_0", "y_1"]].reset_index(drop=True)


def test_pairs_have_common_random_numbers(finished: Study) -> None:
    """A drifting nature does not react: both forecasters face the same outcomes."""
    outcomes = outcomes_against(finished, "decision-swap")
    pd.testing.assert_frame_equal(outcomes, outcomes_against(finished, "running-mean"))
    assert outcomes.groupby("seed")["y_0"].first().nunique() == 3


def read_with_dask(study: Study) -> pd.DataFrame:
    frame = dask.dataframe.read_parquet(f"{study.path}/runs/*/agents.parquet")
    return frame.compute(scheduler="synchronous")


@pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")  # Dask's own
@pytest.mark.parametrize(
    "read_all", [read_with_pandas, read_with_polars, read_with_duckdb, read_with_dask]
)
def test_runs_are_read_as_one_data_set(finished: Study, read_all: Callable[..., Any]) -> None:
    frame = read_all(finished)
    expected = finished.agents()
    columns = ["run", "agent", "mean_loss"]
    assert set(frame) == set(expected)
    rows = frame[columns].astype({"run": "int64"}).sort_values(["run", "agent"])
    assert rows.to_numpy().tolist() == expected[columns].to_numpy().tolist()


def times_of_change(folder: Path) -> dict[Path, int]:
    """Return when each file of a study's runs was written last."""
    return {path: path.stat().st_mtime_ns for path in folder.glob("runs/*/*")}


def test_failures_are_recorded_and_tried_again(
    working_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that are complete are not played again."""
    monkeypatch.syspath_prepend(working_folder)
    design = read_study(str(working_folder / "moods.toml"))
    out = working_folder / "moods"
    (working_folder / "storm").touch()
    study = conduct(design, Options(out, jobs=2, imports=("moods",), patience=10))
    fault = "round 20: Moody.commit (moods.py, line %d): %s; mend it"
    failures = study.failures()
    assert failures[["run", "kind", "error"]].to_numpy().tolist() == [
        [1, "WorkerDied", DIED],  # it hangs
        [2, "ValueError", fault % (25, "ValueError: it is raining")],
        [3, "WorkerDied", DIED],
        [4, "SystemExit", fault % (31, "SystemExit: I leave")],
    ]
    assert "moods.py" in failures["traceback"][1]
    assert study.runs() == [0]
    assert study.cohorts()["run"].tolist() == [0]
    assert study.record["status"] == "complete"
    assert study.record["failed"] == 4

    (working_folder / "storm").unlink()
    times_before = times_of_change(out)
    mended = conduct(design, Options(out, jobs=1, resume=True, imports=("moods",)))
    assert mended.runs() == [0, 1, 2, 3, 4]
    assert len(mended.failures()) == 0
    times_after = times_of_change(out)
    assert {path: times_after[path] for path in times_before} == times_before


def is_running(process: psutil.Process) -> bool:
    """Return whether a process runs; one that nobody has waited for yet does not."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what another process does."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.fixture
def killed_study(working_folder: Path, sweep: Design) -> Iterator[Path]:
    """Start the study as a command, kill it after two runs, and return its folder.

    Its workers have ended by then.
    """
    folder = working_folder / "killed"
    command = [COMMAND, "study", "sweep.toml", "--out", "killed", "--jobs", "2"]
    process = subprocess.Popen(command, cwd=working_folder)
    wait_until(lambda: len(list(folder.glob("runs/*"))) >= 2)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    assert process.wait(PATIENCE_SECONDS) == -signal.SIGKILL
    wait_until(lambda: not any(is_running(worker) for worker in workers))
    yield folder
    shutil.rmtree(folder)


def test_kill_and_interrupt_lose_what_was_in_flight(
    killed_study: Path, sweep: Design, finished: Study
) -> None:
    """Another number of workers leads to the same bytes, and no complete run is played again."""
    record = json.loads((killed_study / "study.json").read_text())
    assert record["status"] == "interrupted"
    times_of_complete = times_of_change(killed_study)

    def interrupt(n_over: int) -> None:
        if n_over == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        conduct(sweep, Options(killed_study, jobs=1, resume=True), progress=interrupt)
    interrupted = Study(killed_study)
    assert interrupted.record["status"] == "interrupted"
    assert len(interrupted.runs()) == 8
    assert len(pd.read_parquet(killed_study / "cohorts.parquet")) == 8
    assert not (killed_study / ".drafts").exists()
    times_of_complete |= times_of_change(killed_study)
    conduct(sweep, Options(killed_study, jobs=1, resume=True))
    assert table_bytes(killed_study) == table_bytes(finished.path)
    times_after = times_of_change(killed_study)
    assert {path: times_after[path] for path in times_of_complete} == times_of_complete


@pytest.fixture
def copied_study(finished: Study, tmp_path: Path) -> Path:
    """Return the folder of a copy of the finished study, which a test may change."""
    return shutil.copytree(finished.path, tmp_path / "copy")


def test_a_study_is_continued_or_replaced_only_where_it_is_said(
    sweep: Design, finished: Study
) -> None:
    tables = table_bytes(finished.path)
    with pytest.raises(UserError, match="holds a study; continue it with --resume"):
        conduct(sweep, Options(finished.path))
    assert table_bytes(finished.path) == tables


def test_a_study_of_another_file_is_not_continued(working_folder: Path, finished: Study) -> None:
    other = read_study(str(working_folder / "moods.toml"))
    tables = table_bytes(finished.path)
    with pytest.raises(UserError, match=r"holds another study \(.*\); give another --out"):
        conduct(other, Options(finished.path, resume=True))
    assert table_bytes(finished.path) == tables


def test_a_study_of_another_version_is_not_continued(sweep: Design, copied_study: Path) -> None:
    tables = table_bytes(copied_study)
    record = json.loads((copied_study / "study.json").read_text(encoding="utf-8"))
    record["versions"]["regretless"] = "0.0.9"
    (copied_study / "study.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(UserError, match=r"begun by regretless 0\.0\.9"):
        conduct(sweep, Options(copied_study, resume=True))
    assert table_bytes(copied_study) == tables


def test_a_study_is_written_to_no_folder_of_other_files(
    working_folder: Path, sweep: Design
) -> None:
    with pytest.raises(UserError, match="holds other files; give a new or an earlier study's"):
        conduct(sweep, Options(working_folder))
    with pytest.raises(UserError, match="is a file; give a directory"):
        conduct(sweep, Options(working_folder / "tiny.toml"))


def test_a_study_has_one_writer(tmp_path: Path, sweep: Design) -> None:
    with hold_directory(tmp_path / "busy"), pytest.raises(UserError, match="another process"):
        conduct(sweep, Options(tmp_path / "busy", jobs=1))
    assert not (tmp_path / "busy").exists()


def test_a_folder_without_a_study_is_not_loaded(working_folder: Path) -> None:
    with pytest.raises(UserError, match=r"is not a study directory: give one"):
        load_study(working_folder)


def remove_table(run_folder: Path) -> None:
    """Remove a table of a run."""
    (run_folder / "agents.parquet").unlink()


def damage_table(run_folder: Path) -> None:
    """Write what is no table in place of one of a run's."""
    (run_folder / "agents.parquet").write_bytes(b"PAR1")


@pytest.mark.parametrize("damage", [remove_table, damage_table])
def test_a_damaged_run_is_named_and_can_be_played_again(
    sweep: Design, finished: Study, copied_study: Path, damage: Callable[[Path], None]
) -> None:
    run_folder = copied_study / "runs" / "run=0001"
    damage(run_folder)
    line = "run=0001: its table 'agents' is damaged or gone; remove that folder"
    with pytest.raises(UserError, match=line):
        conduct(sweep, Options(copied_study, resume=True, jobs=1))
    with pytest.raises(UserError, match=line):
        write_report(copied_study)
    assert not list(copied_study.glob("*.html*"))
    shutil.rmtree(run_folder)
    conduct(sweep, Options(copied_study, resume=True, jobs=1))
    assert table_bytes(copied_study) == table_bytes(finished.path)


@pytest.mark.parametrize("jobs", [1, 2])
def test_work_of_any_kind_is_collected_in_order(jobs: int) -> None:
    counts: list[int] = []
    roots = collect(math.isqrt, [49, 16, 25, 4], jobs=jobs, progress=counts.append)
    assert roots == [7, 4, 5, 2]
    assert counts == [1, 2, 3, 4]


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_a_task_is_raised_where_it_is_collected(jobs: int) -> None:
    with pytest.raises(ValueError, match="isqrt"):
        collect(math.isqrt, [4, -1, 9], jobs=jobs)


def test_a_worker_that_dies_ends_the_collection() -> None:
    with pytest.raises(UserError, match="task 1: its worker process ended"):
        collect(os._exit, [3], jobs=2)


def test_parts_that_a_run_could_not_remove_do_not_stay(tmp_path: Path, sweep: Design) -> None:
    """A run is complete before it tidies up, and its disk may fail just then."""
    directory = StudyDirectory(tmp_path / "littered", sweep)
    directory.path.mkdir()
    directory.start(is_known=False)
    (directory.draft(0) / ".partial").mkdir(parents=True)
    (directory.draft(0) / ".partial" / "rounds-000000.arrow").touch()
    (directory.draft(0) / ".lock").touch()
    directory.keep(Answer(0))
    assert list(directory.home(0).iterdir()) == []


def test_a_client_without_the_certificate_reaches_neither_scheduler_nor_worker() -> None:
    with closing(Cluster(1)) as cluster:
        assert cluster.map(abs, [-1, -2]) == [1, 2]
        scheduler = cluster.client.scheduler.address
        for address in (scheduler, *cluster.workers()):
            assert address.startswith("tls://127.0.0.1:")
        with pytest.raises((OSError, TypeError)):
            distributed.Client(
                scheduler, timeout=2, security=Security.temporary(), set_as_default=False
            )
        plain_address = scheduler.replace("tls", "tcp")
        with pytest.raises((OSError, TypeError)):
            distributed.Client(plain_address, timeout=2, security=None, set_as_default=False)


@pytest.fixture
def moody_here_and_on_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Study, Study]:
    """Return a study with failures, played in this process and on a cluster.

    The cluster's workers start without the folder of the user's module.
    """
    with two_worker_cluster() as cluster:
        monkeypatch.syspath_prepend(tmp_path)
        (tmp_path / "fickle.py").write_text(MOODY_MODULE, encoding="utf-8")
        importlib.invalidate_caches()
        design = write_study(tmp_path, MOODS % (2, ["calm", "hopeless"]))
        imports = ("fickle",)
        here = conduct(design, Options(tmp_path / "here", jobs=1, imports=imports))
        address = cluster.scheduler_address
        there = conduct(design, Options(tmp_path / "there", scheduler=address, imports=imports))
    return here, there


def test_a_cluster_gives_the_same_bytes_and_failures(
    moody_here_and_on_a_cluster: tuple[Study, Study],
) -> None:
    """Tracebacks of failures aside."""
    here, there = moody_here_and_on_a_cluster
    assert there.runs() == here.runs() == [0, 1]
    tables = table_bytes(here.path)
    tables_of_cluster = table_bytes(there.path)
    assert set(tables_of_cluster) == set(tables)
    differing = [name for name, table in tables.items() if tables_of_cluster[name] != table]
    assert differing == ["failures.parquet"]
    fault = "round 10: Moody.commit (fickle.py, line 22): RuntimeError: enough; mend it"
    for study in (here, there):
        failures = study.failures()[["run", "kind", "error"]].to_numpy().tolist()
        assert failures == [[2, "RuntimeError", fault], [3, "RuntimeError", fault]]
    for logger in ("distributed.client", "distributed.comm"):  # which tell a loss in 40 lines
        assert not logging.getLogger(logger).isEnabledFor(logging.ERROR)


NOBODY_S_ADDRESS = "tcp://127.0.0.1:9"


@pytest.mark.parametrize(
    ("scheduler", "line"),
    [
        (NOBODY_S_ADDRESS, r"tcp://127.0.0.1:9 cannot be reached: .*; check the addr"),
        ("nonsense", r"is no address; write e\.g\. tcp://"),
    ],
)
def test_a_scheduler_that_is_not_there_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheduler: str, line: str
) -> None:
    monkeypatch.setattr("regretless.scenarios.executor.cluster.CONNECT_SECONDS", 0.5)
    design = write_study(tmp_path, 'scenario = "tiny.toml"')
    with pytest.raises(UserError, match=line):
        conduct(design, Options(tmp_path / "out", scheduler=scheduler))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("options", [{"scheduler": NOBODY_S_ADDRESS}, {"jobs": 2}])
def test_without_dask_the_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    design = write_study(tmp_path, 'scenario = "tiny.toml"')
    with pytest.raises(UserError, match=r"run pip install 'regretless\[dask\]'"):
        conduct(design, Options(tmp_path / "out", **options))
    assert not (tmp_path / "out").exists()


def test_without_dask_runs_are_played_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    design = write_study(tmp_path, 'scenario = "tiny.toml"')
    assert conduct(design, Options(tmp_path / "out")).runs() == [0]


def kill_only_worker(cluster: Cluster) -> None:
    """Kill the worker of a cluster of one, and wait until the cluster knows."""
    (pid,) = cluster.client.run(os.getpid).values()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not cluster.client.nthreads())


def assert_task_comes_back_and_is_done_by_another(cluster: Cluster) -> None:
    """Assert that the task of a dead worker is given back, and done once it is submitted again."""
    assert cluster.next() == (0, None)
    cluster.submit(0, abs, -1)
    assert cluster.next() == (0, 1)


def test_a_task_that_was_sent_to_a_worker_that_is_gone_is_given_back() -> None:
    """Dask keeps one for ever, while there is no other worker."""
    with closing(Cluster(1)) as cluster:
        (address,) = cluster.client.run(os.getpid)
        kill_only_worker(cluster)
        cluster.submit(0, abs, -1, at=address)
        assert_task_comes_back_and_is_done_by_another(cluster)


def test_a_task_whose_worker_goes_before_the_answer_is_taken_is_given_back() -> None:
    """Dask keeps one for ever, while there is no other worker."""
    with closing(Cluster(1)) as cluster:
        (address,) = cluster.client.run(os.getpid)
        cluster.submit(0, abs, -1, at=address)
        wait_until(lambda: all(future.done() for future in cluster.pending))
        kill_only_worker(cluster)
        assert_task_comes_back_and_is_done_by_another(cluster)
