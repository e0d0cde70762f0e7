"""A cluster of this machine lets nobody in but the process that started it."""

import distributed
import pytest
from distributed.security import Security

from regretless.scenarios.executor import Cluster


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
