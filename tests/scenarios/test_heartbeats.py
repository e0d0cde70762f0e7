"""A worker hangs if it has shown no life for long, as counted by who looks."""

from regretless.scenarios.executor.heartbeats import MAX_GAP_SECONDS, Heartbeats, SignOfLife


def test_a_worker_that_shows_nothing_new_is_silent() -> None:
    heartbeats = Heartbeats()
    for now in (0.0, 2.0, 4.0, 6.0):
        heartbeats.note({"stopped": SignOfLife(100.0), "alive": SignOfLife(now)}, now)
    assert heartbeats.silent_workers(6.0) == {"stopped"}
    assert heartbeats.silent_workers(6.1) == set()


def test_a_heartbeat_ends_the_silence() -> None:
    heartbeats = Heartbeats()
    for now, heartbeat in ((0.0, 100.0), (2.0, 100.0), (4.0, 104.0), (6.0, 104.0)):
        heartbeats.note({"worker": SignOfLife(heartbeat)}, now)
    assert heartbeats.silent_workers(2.0) == {"worker"}
    assert heartbeats.silent_workers(2.1) == set()


def test_a_worker_that_computes_is_not_silent_though_it_sends_nothing() -> None:
    """As one that calls code of others which holds the interpreter's lock for minutes."""
    heartbeats = Heartbeats()
    for now in (0.0, 2.0, 4.0):
        heartbeats.note({"worker": SignOfLife(100.0, processor_seconds=now)}, now)
    assert heartbeats.silent_workers(0.1) == set()


def test_time_in_which_nobody_looks_hardly_counts() -> None:
    """As on a machine that slept for an hour, or while the process that looks was stopped."""
    heartbeats = Heartbeats()
    for now in (0.0, 3600.0):
        heartbeats.note({"worker": SignOfLife(100.0)}, now)
    assert heartbeats.silent_workers(MAX_GAP_SECONDS) == {"worker"}
    assert heartbeats.silent_workers(MAX_GAP_SECONDS + 0.1) == set()


def test_a_worker_that_left_is_forgotten() -> None:
    heartbeats = Heartbeats()
    for now in (0.0, 2.0, 4.0):
        heartbeats.note({} if now == 2.0 else {"worker": SignOfLife(100.0)}, now)
    assert heartbeats.silent_workers(0.1) == set()
