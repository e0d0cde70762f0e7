"""The same shares on a Dask cluster: workers and schedulers that are killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import distributed
import pytest
import worlds
from served import two_workers
from written import status, tables

from regretless.market.core.errors import UserError
from regretless.scenarios.distributed import conductor_of
from regretless.scenarios.run import Options, run

ASKED: dict[str, Any] = {
    "name": "plain",
    "rounds": 800,
    "seed": 11,
    "market": {"feedback": "same-round"},
    "adversary": {"kind": "drifting", "outcomes": 2},
    "forecaster": {"kind": "running-mean"},
    "cohort": [
        {
            "name": "farmers",
            "utility": "linear",
            "count": 12,
            "actions": 3,
            "response": "quantal",
            "eta": 9.0,
            "measures": ["external", "swap", "decision_swap"],
        }
    ],
}


@pytest.fixture
def cluster() -> Iterator[distributed.LocalCluster]:
    """Start a cluster, and end it if nobody has."""
    with two_workers() as made:
        yield made


def play(out: Path, address: str, progress: Callable[[int], Any], **options: Any) -> None:
    """Play the scenario on a cluster."""
    loaded, given = worlds.told(ASKED), Options(out, **options)
    with conductor_of(loaded, given, scheduler=address) as player:
        run(loaded, given, player=player, progress=progress)


def once(at: int, do: Callable[[], Any]) -> Callable[[int], None]:
    """Do something when so many rounds are played."""
    left = [do]

    def watch(played: int) -> None:
        if played >= at and left:
            left.pop()()

    return watch


@pytest.mark.slow
def test_a_cluster_that_loses_a_worker_and_then_its_scheduler(
    tmp_path: Path, cluster: distributed.LocalCluster
) -> None:
    pid = next(iter(cluster.workers.values())).process.pid
    kill, close = once(200, lambda: os.kill(pid, signal.SIGKILL)), once(600, cluster.close)

    def watch(played: int) -> None:
        kill(played)
        close(played)

    out = tmp_path / "logs"
    with pytest.raises(UserError, match=r"--scheduler \S+ was lost; start it again and use --res"):
        play(out, cluster.scheduler_address, watch)
    assert status(out) == "interrupted"
    with two_workers() as again:
        play(out, again.scheduler_address, lambda _: None, resume=True)
    run(worlds.told(ASKED), Options(tmp_path / "alone"))
    assert tables(out) == tables(tmp_path / "alone")
