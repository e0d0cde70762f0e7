"""Servers that are started for a test and stopped after it: the live page's, a Dask cluster."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import distributed

from regretless.scenarios.live.server import Live
from regretless.scenarios.live.source import Source


@contextmanager
def live_server(source: Source, folder: Path) -> Iterator[Live]:
    """Serve the live page of a scenario at a free port; the page saves runs to a folder."""
    with Live(source, folder, 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def two_worker_cluster() -> distributed.LocalCluster:
    """Start a scheduler and two worker processes of one thread each, without a dashboard."""
    return distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        scheduler_kwargs={"dashboard": False},
    )
