"""The same study on a Dask cluster: a real scheduler and worker processes on loopback."""

import importlib
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import distributed
import pytest
from served import two_workers
from worlds import study
from written import tables

from regretless.market.core.errors import UserError
from regretless.scenarios.executor import Cluster
from regretless.scenarios.studies.conduct import Options, conduct

SWEEP = """\
scenario = "tiny.toml"
seeds = 3
set = { "adversary.kind" = "fickle" }
[grid]
"forecaster.kind" = ["decision-swap", "running-mean"]
"adversary.temper" = ["mild", "bad"]
"""

MODULE = '''\
import os

import numpy as np

from regretless.agents.adversaries import Adversary
from regretless.market import register
from regretless.market.records import OutcomeDistribution


@register.adversary("fickle")
class Fickle(Adversary):
    """Flips coins; of bad temper it fails in the tenth round."""

    def __init__(self, outcomes, rng, *, temper):
        super().__init__(outcomes, rng)
        self.temper = temper

    def commit(self, context, history, announced):
        if self.temper == "bad" and history.rounds == 10:
            raise RuntimeError("enough")
        return OutcomeDistribution(np.eye(2), np.array([0.5, 0.5]))
'''


@pytest.fixture
def cluster() -> Iterator[distributed.LocalCluster]:
    with two_workers() as started:
        yield started


def played(study: Path) -> dict[str, bytes]:
    """Every table of a study and of its runs, tracebacks of failures aside."""
    return {name: read for name, read in tables(study).items() if name != "failures.parquet"}


def test_a_cluster_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: distributed.LocalCluster
) -> None:
    home = tmp_path / "home"  # the workers have started without it on their path
    home.mkdir()
    monkeypatch.syspath_prepend(home)
    (home / "fickle.py").write_text(MODULE, encoding="utf-8")
    importlib.invalidate_caches()
    design = study(home, SWEEP)
    imports = ("fickle",)
    here = conduct(design, Options(tmp_path / "here", jobs=1, imports=imports))
    address = cluster.scheduler_address
    there = conduct(design, Options(tmp_path / "there", scheduler=address, imports=imports))
    for logger in ("distributed.client", "distributed.comm"):  # which tell a loss in 40 lines
        assert not logging.getLogger(logger).isEnabledFor(logging.ERROR)
    assert there.runs() == here.runs() == [0, 1, 2, 6, 7, 8]
    assert played(there.path) == played(here.path)
    columns = ["run", "kind", "error"]
    failures = there.failures()[columns].to_numpy().tolist()
    assert failures == here.failures()[columns].to_numpy().tolist()
    said = "round 10: Fickle.commit (fickle.py, line 20): RuntimeError: enough; mend it"
    assert failures == [[run, "RuntimeError", said] for run in (3, 4, 5, 9, 10, 11)]


def test_no_scheduler_is_one_line_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regretless.scenarios.executor.CONNECTING", 0.5)
    design = study(tmp_path, 'scenario = "tiny.toml"')
    options = Options(tmp_path / "out", scheduler="tcp://127.0.0.1:9")
    with pytest.raises(UserError, match=r"tcp://127.0.0.1:9 cannot be reached: .*; check the addr"):
        conduct(design, options)
    with pytest.raises(UserError, match=r"nonsense is no address; write e\.g\. tcp://"):
        conduct(design, Options(tmp_path / "out", scheduler="nonsense"))
    monkeypatch.setitem(sys.modules, "distributed", None)
    for asked in (options, Options(tmp_path / "out", jobs=2)):
        with pytest.raises(UserError, match=r"run pip install 'regretless\[dask\]'"):
            conduct(design, asked)
    assert not (tmp_path / "out").exists()


def test_a_task_for_a_worker_that_is_gone_is_given_back() -> None:
    """Dask keeps one for ever that was sent to it while there was no other."""
    with closing(Cluster(1)) as cluster:
        ((home, pid),) = cluster.client.run(os.getpid).items()
        os.kill(pid, signal.SIGKILL)
        while home in cluster.client.nthreads():
            time.sleep(0.01)
        assert not cluster.client.nthreads()
        cluster.submit(0, abs, -1, at=home)
        assert cluster.next() == (0, None)
        cluster.submit(0, abs, -1)
        assert cluster.next() == (0, 1)


def test_without_dask_runs_are_played_one_after_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    design = study(tmp_path, 'scenario = "tiny.toml"\nseeds = 2')
    with_it = conduct(design, Options(tmp_path / "with", jobs=1))
    monkeypatch.setitem(sys.modules, "distributed", None)
    without = conduct(design, Options(tmp_path / "without"))
    assert without.runs() == [0, 1]
    assert played(without.path) == played(with_it.path)
