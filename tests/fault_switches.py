"""A plugin of pytest for ``faults.py``: tries many faults in one process that collects tests once.

All faults stand in the code at the same time, each behind a switch that is off. First all tests run
with every switch off, and the plugin notes which test asks for which switch, hence executes the
line. Then, for one fault after the other, a copy of the process (a fork) turns its switch on and
runs the tests that execute the line, until a few fail or the time of a fault is over.

Events are written to ``events.jsonl`` of the folder that ``FAULTS`` names, a line of JSON each, so
that what was written stays when a process is killed. Commands that a test starts in a process of
their own take part: they inherit the switch and the name of the current test from the environment.
"""

import json
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

FOLDER = "FAULTS"  # environment variables
SWITCH = "FAULT"
CURRENT_TEST = "PYTEST_CURRENT_TEST"  # pytest keeps it
OFF = -1
LIMIT_SECONDS = 60  # for the tests of one fault
KERNEL_LIMIT_SECONDS = 180  # where kernels are compiled first
MAX_FAILURES = 4  # of one fault: what a maintainer would read
MAX_MESSAGE_LINES = 14

_active = int(os.environ.get(SWITCH, OFF))
_noted: set[int] = set()  # the lines that are known to be executed by the current test


def write_event(kind: str, **entries: object) -> None:
    """Append an event to the record."""
    line = json.dumps({"event": kind, "fault": _active, **entries}) + "\n"
    with (Path(os.environ[FOLDER]) / "events.jsonl").open("a", encoding="utf-8") as record:
        record.write(line)


def is_on(fault: int) -> bool:
    """Return whether a fault is active; the code under test asks this where the fault stands."""
    if _active == OFF and fault not in _noted:
        test = os.environ.get(CURRENT_TEST, "").rpartition(" ")[0]
        if test and FOLDER in os.environ:
            _noted.add(fault)
            write_event("executed", number=fault, test=test)
    return _active == fault


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note that a test begins: the last one that does so may be the one that hangs."""
    _noted.clear()
    write_event("started", test=nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how long a phase of a test took, whether it passed, and what a failure says."""
    lines = [line[1:].strip() for line in report.longreprtext.splitlines() if line[:2] == "E "]
    write_event(
        "reported",
        test=report.nodeid,
        outcome=report.outcome,
        seconds=report.duration,
        message="\n".join(lines[:MAX_MESSAGE_LINES]),
    )


def turn_on(fault: dict[str, Any]) -> None:
    """Turn a switch on in this process and in those that it starts."""
    global _active  # noqa: PLW0603 - one switch for the whole process is what is meant
    _active = fault["number"]
    os.environ[SWITCH] = str(_active)
    if not fault["kernel"]:
        return
    from numba.core.caching import NullCache  # noqa: PLC0415 - only for kernels

    for file in fault["compiled_files"]:  # a kernel takes the switch in when it is compiled
        module = sys.modules["regretless." + file.removesuffix(".py").replace("/", ".")]
        if file == fault["file"]:
            setattr(module, f"FAULT_{_active}", True)
        for member in vars(module).values():
            if hasattr(member, "py_func"):
                member._cache = NullCache()


def run_tests(items: list[pytest.Item], session: pytest.Session, *, maxfail: int | None) -> None:
    """Run tests in this process, all or until as many have failed."""
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed == maxfail:
            return


def in_a_fork(task: Callable[[], None], limit: float) -> bool:
    """Do a task in a copy of this process; return whether it ended within ``limit`` seconds."""
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            task()
        finally:
            os._exit(0)
    deadline = time.monotonic() + limit
    has_ended = False
    while not has_ended and time.monotonic() < deadline:
        time.sleep(0.05)
        has_ended = os.waitpid(child, os.WNOHANG)[0] == child
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # and what a test may have started
    if not has_ended:
        os.waitpid(child, 0)
    return has_ended


def tests_of_faults() -> dict[int, list[str]]:
    """Return the tests that pass and execute each fault's line, those of its own part first."""
    folder = Path(os.environ[FOLDER])
    faults = json.loads((folder / "faults.json").read_text(encoding="utf-8"))
    seconds: dict[str, float] = defaultdict(float)
    failing = set()
    tests: dict[int, set[str]] = defaultdict(set)
    for line in (folder / "events.jsonl").read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["event"] == "executed":
            tests[event["number"]].add(event["test"])
        elif event["event"] == "reported" and event["fault"] == OFF:
            seconds[event["test"]] += event["seconds"]
            if event["outcome"] != "passed":
                failing.add(event["test"])
    ordered = {}
    for number, names in tests.items():
        part = "tests/" + faults[number]["file"].partition("/")[0]
        passing = [name for name in names if name in seconds and name not in failing]
        passing.sort(key=lambda name: (not name.startswith(part), seconds[name]))
        ordered[number] = passing
    return ordered


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Find out who executes what, and try the faults that were not tried before."""
    folder = Path(os.environ[FOLDER])
    has_measured = folder / "measured"
    if not has_measured.exists():

        def measure() -> None:
            run_tests(session.items, session, maxfail=None)

        in_a_fork(measure, limit=float("inf"))
        has_measured.touch()
    items = {item.nodeid: item for item in session.items}
    tests = tests_of_faults()
    for fault in json.loads((folder / "faults.json").read_text(encoding="utf-8")):
        number = fault["number"]
        result_file = folder / f"result-{number}.json"
        if result_file.exists():
            continue
        names = [name for name in tests.get(number, []) if name in items]
        chosen = [items[name] for name in names]

        def attempt(fault: dict[str, Any] = fault, chosen: list[pytest.Item] = chosen) -> None:
            turn_on(fault)
            run_tests(chosen, session, maxfail=MAX_FAILURES)

        started = time.monotonic()
        limit = KERNEL_LIMIT_SECONDS if fault["kernel"] else LIMIT_SECONDS
        has_ended = in_a_fork(attempt, limit=limit) if chosen else True
        result = {
            "number": number,
            "tests": len(names),
            "has_ended": has_ended,
            "seconds": round(time.monotonic() - started, 1),
        }
        result_file.write_text(json.dumps(result), encoding="utf-8")
    return True
