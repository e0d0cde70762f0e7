"""A worker that is stopped and not dead is named in a line, and its work is given to another."""

import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import pytest
from run_files import table_bytes
from servers import two_worker_cluster
from small_scenarios import TINY_SCENARIO

from regretless.scenarios.executor import cluster as clusters
from regretless.scenarios.executor.cluster import Cluster
from regretless.scenarios.studies.conduct import Options, conduct
from regretless.scenarios.studies.design import read_study

pytestmark = [
    pytest.mark.crashes,
    pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="stops processes"),
]

STUDY = """\
scenario = "tiny.toml"
seeds = 2
rounds = 30
[set]
"adversary.kind" = "stopping"
"""
STOPPING = '''\
import os
import signal
from pathlib import Path

import numpy as np

from regretless import Adversary, OutcomeDistribution, register

ORDER = Path(__file__).parent / "stop"


@register.adversary("stopping")
class Stopping(Adversary):
    """Stops its own process in round 20, if there is a file called ``stop``, which it removes."""

    def commit(self, context, history, announced):
        if history.rounds == 20 and ORDER.exists():
            ORDER.unlink()
            os.kill(os.getpid(), signal.SIGSTOP)
        return OutcomeDistribution(np.eye(2), np.array([0.5, 0.5]))
'''


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a worker up after three seconds, and look often."""
    monkeypatch.setattr(clusters, "SILENT_SECONDS", 3.0)
    monkeypatch.setattr(clusters, "LOOK_SECONDS", 0.2)
    # on a machine that has other work
    monkeypatch.setattr(clusters, "MAX_SECONDS_WITHOUT_WORKERS", 300.0)


@contextmanager
def going_on_afterwards(process: int) -> Iterator[None]:
    """Let a process that was stopped go on at the end, so that it can be ended."""
    try:
        yield
    finally:
        psutil.Process(process).resume()


def test_a_study_plays_the_run_of_a_stopped_worker_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "stopping.py").write_text(STOPPING, encoding="utf-8")
    (tmp_path / "tiny.toml").write_text(TINY_SCENARIO, encoding="utf-8")
    (tmp_path / "own.toml").write_text(STUDY, encoding="utf-8")
    design = read_study(str(tmp_path / "own.toml"))
    undisturbed_study = conduct(design, Options(tmp_path / "alone", jobs=1, imports=("stopping",)))
    (tmp_path / "stop").touch()
    warnings: list[str] = []
    options = Options(tmp_path / "shared", jobs=2, imports=("stopping",))
    study = conduct(design, options, warn=warnings.append)
    assert not (tmp_path / "stop").exists()
    (line,) = warnings
    says = r"worker process \d+ has shown no life for 3 s; its work is given to another"
    assert re.fullmatch(says, line)
    assert len(study.failures()) == 0
    assert table_bytes(study.path) == table_bytes(undisturbed_study.path)
    del sys.modules["stopping"]


def test_a_task_that_stops_every_worker_is_over() -> None:
    warnings: list[str] = []
    with closing(Cluster(1, warn=warnings.append)) as cluster:
        assert [*cluster.answers(signal.raise_signal, [signal.SIGSTOP])] == [(0, None)]
        assert [*cluster.answers(abs, [-1, -2])] == [(0, 1), (1, 2)]
    assert len(set(warnings)) == clusters.MAX_HANGS


def test_a_stopped_worker_elsewhere_is_passed_over() -> None:
    warnings: list[str] = []
    with (
        two_worker_cluster() as elsewhere,
        closing(Cluster(address=elsewhere.scheduler_address, warn=warnings.append)) as cluster,
    ):
        address, process = next(iter(cluster.client.run(os.getpid).items()))
        os.kill(process, signal.SIGSTOP)
        with going_on_afterwards(process):
            answers = dict(cluster.answers(time.sleep, [0.1, 0.2, 0.3]))
            assert answers == dict.fromkeys(range(3))
            assert address not in cluster.workers()
    says = f"worker {address} has shown no life for 3 s; its work is given to another"
    assert warnings == [says]
