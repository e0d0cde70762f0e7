"""The same shares in processes of a Dask cluster, who are killed: workers, scheduler, conductor."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from served import two_workers
from test_distributed import ASKED, LEARNING, MOVING, PLAIN
from worlds import Raw, told
from written import Reference, assert_same, status, tables

from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.market.logs import journal
from regretless.scenarios import distributed as shares
from regretless.scenarios.distributed import Answer, Conductor, DaskCrew, conductor_of
from regretless.scenarios.executor import Cluster
from regretless.scenarios.run import Options, run
from regretless.scenarios.studies.directory import Failure

COMMAND = Path(sys.executable).parent / "regretless"
PATIENCE = 300  # seconds; a first run compiles

pytestmark = pytest.mark.crashes


class Mortal(DaskCrew):
    """Processes of which so many are killed, some answers apart, while they have work to do."""

    def __init__(self, cluster: Cluster, deaths: int, every: int) -> None:
        super().__init__(cluster)
        self.deaths, self._every, self._answers, self._next = deaths, every, 0, 1
        self._rng = stream(deaths, "deaths")

    def hear(self) -> tuple[int, Answer | Failure | None]:
        """Kill somebody if it is time, early or late in what it does, and wait for an answer."""
        self._answers += 1
        if self.deaths and self._answers >= self._next:
            busy = [place for place, _ in self._cluster.pending.values()]
            home = self._homes.get(busy[int(self._rng.integers(len(busy)))])
            ask, homes = self._cluster.client.run, [home] * bool(home)
            time.sleep(self._rng.choice([0.0, 0.02, 0.5]))
            for pid in ask(os.getpid, workers=homes, on_error="ignore").values():
                os.kill(pid, signal.SIGKILL)
                self.deaths -= 1
                self._next = self._answers + self._every  # at the next answer where it was dead
        return super().hear()


def with_deaths(text: Raw, out: Path, rounds: int, deaths: int, every: int, **more: Any) -> None:
    loaded, options = told(text, f"rounds={rounds}"), Options(out, **more)
    with closing(Cluster(2)) as cluster, closing(Mortal(cluster, deaths, every)) as crew:
        run(loaded, options, player=Conductor(loaded, crew, options, 2))
        assert crew.deaths == 0


@pytest.mark.parametrize(
    ("text", "rounds", "every"),
    [(PLAIN, 3000, 12), (ASKED, 600, 300), (LEARNING, 2000, 10), (MOVING, 2000, 10)],
)
def test_twenty_processes_that_are_killed(  # noqa: PLR0913 - fixtures
    text: Raw,
    rounds: int,
    every: int,
    tmp_path: Path,
    reference: Reference,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shares, "DEATHS", 100)  # Dask ends some more that are long in starting
    with_deaths(text, tmp_path / "logs", rounds, 5, every)
    assert_same(tmp_path / "logs", reference(text, f"rounds={rounds}"))


# A chunk of the logs is 512 rounds.
@pytest.mark.parametrize(("text", "rounds"), [(ASKED, 700), (PLAIN, 4000)])
def test_a_killed_conductor_is_resumed_though_a_worker_dies(
    text: Raw, rounds: int, tmp_path: Path, reference: Reference
) -> None:
    (tmp_path / "own.toml").write_text(tomli_w.dumps(text), encoding="utf-8")
    words = [COMMAND, "run", "own.toml", "--set", f"rounds={rounds}", "--out", "logs", "--quiet"]
    process = subprocess.Popen([*words, "--workers", "2"], cwd=tmp_path, stderr=subprocess.PIPE)
    deadline = time.monotonic() + PATIENCE
    while not (tmp_path / "logs/.partial/checkpoint.npz").exists() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.kill()
    process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGKILL
    with_deaths(text, tmp_path / "logs", rounds, 1, 10, resume=True)
    assert_same(tmp_path / "logs", reference(text, f"rounds={rounds}"))


def once(at: int, do: Callable[[], Any]) -> Callable[[int], None]:
    left = [do]

    def watch(played: int) -> None:
        if played >= at and left:
            left.pop()()

    return watch


def test_a_cluster_loses_a_worker_then_its_scheduler(
    tmp_path: Path, reference: Reference, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "CHUNK_ROUNDS", 64)
    loaded, out = told(ASKED, "rounds=100"), tmp_path / "logs"

    def play(address: str, progress: Callable[[int], Any], **more: Any) -> None:
        options = Options(out, **more)
        with conductor_of(loaded, options, scheduler=address) as player:
            run(loaded, options, player=player, progress=progress)

    with two_workers() as cluster:
        pid = next(iter(cluster.workers.values())).process.pid
        kill = once(20, lambda: os.kill(pid, signal.SIGKILL))
        close = once(80, cluster.close)
        with pytest.raises(UserError, match=r"--scheduler \S+ was lost; start it again and use -"):
            play(cluster.scheduler_address, lambda played: (kill(played), close(played)))
    assert status(out) == "interrupted"
    with two_workers() as again:
        play(again.scheduler_address, lambda _: None, resume=True)
    assert tables(out) == tables(reference(ASKED, "rounds=100"))
