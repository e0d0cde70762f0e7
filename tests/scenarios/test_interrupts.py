"""Ctrl-C ends a command though an agent of the user's own loops for ever, and leaves no process."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from small_scenarios import TINY_SCENARIO

PATIENCE = 300  # seconds; a first run compiles
# A shell that starts a command in the background lets it ignore Ctrl-C, and so do its children.
COMMAND = """\
import signal
import sys

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["regretless", *sys.argv[1:]]
from regretless.scenarios.cli.commands import main

main()
"""
ENDLESS = '''\
import os
from pathlib import Path

from regretless import ScriptedAgent, register


@register.agent("endless")
class Endless(ScriptedAgent):
    """Leaves a file named after its process, and never decides."""

    def act(self, forecast, context):
        (Path(__file__).parent / f"begun-{os.getpid()}").touch()
        while True:
            pass
'''
STUDY = """\
scenario = "tiny.toml"
seeds = 2
[set]
"cohort.farmers.response" = "endless"
"""


@pytest.fixture(autouse=True)
def endless_agents(working_folder: Path) -> None:
    """Work beside a scenario, a study of it, and agents that loop for ever."""
    (working_folder / "tiny.toml").write_text(TINY_SCENARIO, encoding="utf-8")
    (working_folder / "own.toml").write_text(STUDY, encoding="utf-8")
    (working_folder / "endless.py").write_text(ENDLESS, encoding="utf-8")


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def interrupted(*arguments: str, looping: int) -> tuple[int, str]:
    """Press Ctrl-C once so many processes loop; return the exit status and standard error."""
    command = [sys.executable, "-c", COMMAND, *arguments, "--import", "endless", "--out", "logs"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: len(list(Path().glob("begun-*"))) == looping)
    started = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=PATIENCE)
    _, alive = psutil.wait_procs(started, timeout=PATIENCE)
    assert alive == []
    return process.returncode, complaint


def test_ctrl_c_ends_a_run_of_which_nothing_can_be_resumed() -> None:
    arguments = ("run", "tiny.toml", "--set", "cohort.farmers.response=endless")
    status, complaint = interrupted(*arguments, looping=1)
    assert (status, complaint) == (130, "regretless: interrupted\n")
    assert not Path("logs").exists()  # no round was played, and there is nothing to resume


def test_ctrl_c_ends_a_study_and_its_workers() -> None:
    status, complaint = interrupted("study", "own.toml", "--jobs", "2", looping=2)
    assert (status, complaint) == (130, "regretless: interrupted; continue with --resume\n")
    record = json.loads(Path("logs/study.json").read_text(encoding="utf-8"))
    assert (record["status"], record["complete"]) == ("interrupted", 0)
    assert not Path("logs/.drafts").exists()
