"""What is started for a test and stopped after it: the page's server, a Dask cluster."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import distributed

from regretless.scenarios.live.server import Live
from regretless.scenarios.live.source import Source


@contextmanager
def serving(source: Source, folder: Path) -> Iterator[Live]:
    """Serve the live page of a scenario at a free port; it saves to a folder."""
    with Live(source, folder, 0) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def two_workers() -> distributed.LocalCluster:
    """Start a scheduler and two worker processes."""
    where = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    quiet = {"scheduler_kwargs": {"dashboard": False}}
    return distributed.LocalCluster(n_workers=2, threads_per_worker=1, **where, **quiet)
