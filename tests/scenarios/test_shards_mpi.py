"""The same shares under MPI."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regretless.market.core.errors import UserError
from regretless.scenarios.shards.mpi import join

SCENARIO = """\
name = "asked"
rounds = 60
adversary = { kind = "drifting", outcomes = 2 }
market = { feedback = "same-round" }
forecaster = { kind = "running-mean" }

[[cohort]]
name = "farmers"
utility = "linear"
count = 12
actions = 3
response = "quantal"
eta = 8.0
"""
MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
HERE = MPIEXEC is not None and importlib.util.find_spec("mpi4py") is not None


def played(
    where: Path, *words: str, before: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run the command."""
    (where / "asked.toml").write_text(SCENARIO, encoding="utf-8")
    own = [*before, sys.executable, "-m", "regretless", "run", "asked.toml", "--quiet", *words]
    return subprocess.run(own, cwd=where, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.skipif(not HERE, reason="needs mpi4py and mpiexec")
def test_mpi_gives_the_bytes_of_one_machine_and_a_mistake_is_one_line(tmp_path: Path) -> None:
    mpi = str(MPIEXEC), "-n", "3"
    assert played(tmp_path, "--out", "alone").returncode == 0
    done = played(tmp_path, "--out", "shared", "--scheduler", "mpi", before=mpi)
    assert (done.returncode, done.stderr) == (0, "")
    for path in (tmp_path / "alone").glob("*.parquet"):
        assert path.read_bytes() == (tmp_path / "shared" / path.name).read_bytes()
    wrong = played(tmp_path, "--scheduler", "mpi", "--set", "rounds=-1", before=mpi)
    assert wrong.returncode == 2
    assert wrong.stderr.count("rounds") == 1


@pytest.mark.crashes
@pytest.mark.skipif(not HERE, reason="needs mpi4py and mpiexec")
def test_a_killed_process_ends_the_others_and_resume_gives_the_same_bytes(tmp_path: Path) -> None:
    longer = "--set", "rounds=1000", "--set", "cohort.farmers.count=1200"
    assert played(tmp_path, "--out", "alone", *longer).returncode == 0
    command = [str(MPIEXEC), "-n", "3", sys.executable, "-m", "regretless", "run", "asked.toml"]
    shared = [*command, *longer, "--quiet", "--out", "shared", "--scheduler", "mpi"]
    running = subprocess.Popen(shared, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=-2)
    while not (tmp_path / "shared" / ".partial" / "checkpoint.npz").exists():
        assert running.poll() is None
        time.sleep(0.05)
    found = ["pgrep", "-f", f"^{sys.executable}.*--out shared"]
    workers = subprocess.run(found, capture_output=True, text=True, check=True).stdout.split()
    os.kill(int(workers[-1]), signal.SIGKILL)
    assert running.wait(60) != 0
    assert subprocess.run([*shared, "--resume"], cwd=tmp_path, check=False).returncode == 0
    for path in (tmp_path / "alone").glob("*.parquet"):
        assert path.read_bytes() == (tmp_path / "shared" / path.name).read_bytes()


def test_without_mpi_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(UserError, match=r"^--scheduler mpi needs mpi4py .*regretless\[mpi\]"):
        join()
