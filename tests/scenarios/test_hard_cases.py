"""Strange files, a full disk, parts that are none: one line, status 2, nothing half-written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from desk import Call, Refused
from worlds import NATURE

from regretless.market.core import checkpoint
from regretless.market.core.errors import UserError
from regretless.scenarios.cli import commands

ROUNDS = 1100  # so many that there are checkpoints


@pytest.fixture(autouse=True)
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder; modules are imported anew."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own", raising=False)
    (tmp_path / "nature.toml").write_text(NATURE, encoding="utf-8")
    return tmp_path


TWENTY = "rounds = 20"
LONG = f'network = {{ graph = "edge-list", file = "{"x/" * 3000}" }}'
STRANGE = [  # a line of the good file, what stands there instead, and what is said
    (TWENTY, f"{'a.' * 300}b = 1", "nested more than 50 deep; write it flatter"),
    (TWENTY, f"rounds = {'9' * 5000}", "a number beyond 64 bits; give a smaller"),
    (TWENTY, f"{TWENTY}\nseed = {2**63}", "beyond 64 bits; give a smaller number"),
    ('"nature"', f'"{"n" * 300}"', "nnn': string should have at most 100 characters"),
    ('"nature"', '"na\\u0000ture"', "name = 'na\\x00ture': a control character; drop it"),
    (TWENTY, f'{TWENTY}\npolicy."a\\u0007".kind = "steps"', "key 'a\\x07': a co"),
    (TWENTY, f"{TWENTY}\n{LONG}", "x/x/' does not exist; give a path from the scenario file"),
]


@pytest.mark.parametrize(("old", "new", "told"), STRANGE)
def test_a_strange_file_is_one_line(
    desk: Path, refused: Refused, old: str, new: str, told: str
) -> None:
    assert NATURE.count(old) == 1
    (desk / "nature.toml").write_text(NATURE.replace(old, new), encoding="utf-8")
    line = refused("run", "nature.toml")
    assert told in line
    assert len(line) < 2100
    assert not (desk / "runs").exists()


@pytest.mark.parametrize("text", [f"{'[' * 5000}{']' * 5000}", "9" * 5000])
def test_a_strange_value_on_the_command_line_is_one_line(refused: Refused, text: str) -> None:
    assert "--set" in refused("run", "nature.toml", "--set", f"rounds={text}")


def test_a_file_may_begin_with_a_byte_order_mark(desk: Path) -> None:
    (desk / "nature.toml").write_text(NATURE, encoding="utf-8-sig")
    assert commands.shared.loaded("nature.toml", [], {}).spec.name == "nature"


def test_paths_too_long_are_one_line(refused: Refused) -> None:
    long = "n" * 300
    assert "File name too long; shorten it" in refused("run", "nature.toml", "--out", long)
    assert "File name too long; check the path" in refused("run", long)


OWN = """
import shutil
from regretless import register
from regretless.agents import ScriptedAgent

class Strange(BaseException):
    pass

@register.adversary("nobody")
class Nobody:
    def __init__(self, outcomes, rng):
        self.outcomes = outcomes

@register.response("mute")
def mute():
    return None

@register.agent("secretive")
class Secretive(ScriptedAgent):
    def act(self, forecast, context):
        return 0

    def state(self):
        return {"seen": {1, 2}}

    def restore(self, state):
        pass

@register.agent("sweeper")
class Sweeper(ScriptedAgent):
    def act(self, forecast, context):
        shutil.rmtree("runs", ignore_errors=True)
        return 0
"""
PARTS = {
    'adversary.kind="nobody"': "adversary 'nobody' is no Adversary; let it subclass",
    'cohort.farmers.response="mute"': "'mute' of cohort.farmers has no name, hears_label",
    'cohort.farmers.response="secretive"': "state(): players.cohort farmers.agents.0.seen "
    "= {1, 2} cannot be kept in a file; give arrays, numbers, text, lists and None",
}


@pytest.mark.parametrize(("part", "told"), PARTS.items())
def test_what_is_no_part_is_one_line(desk: Path, refused: Refused, part: str, told: str) -> None:
    """What cannot be remembered is told before the first round, not at the first checkpoint."""
    (desk / "own.py").write_text(OWN, encoding="utf-8")
    assert told in refused(
        "run", "nature.toml", "--rounds", ROUNDS, "--import", "own", "--set", part
    )
    assert not (desk / "runs/nature").exists()


@pytest.mark.parametrize("raised", ['SystemExit("bye")', 'Strange("odd")'])
def test_whatever_a_module_raises_is_one_line(desk: Path, refused: Refused, raised: str) -> None:
    (desk / "own.py").write_text(f"{OWN}\nraise {raised}", encoding="utf-8")
    assert "--import own failed: S" in refused("run", "nature.toml", "--import", "own")


def test_an_interrupt_within_a_module_is_an_interruption(desk: Path, call: Call) -> None:
    (desk / "own.py").write_text("raise KeyboardInterrupt", encoding="utf-8")
    answer = call("run", "nature.toml", "--import", "own")
    assert (answer.status, answer.err.count("\n")) == (130, 1)


# No room, no folder.


def limited(folder: Path, size: int, *words: object) -> tuple[int, str]:
    """Start the command with a limit on the size of a file; status and standard error."""
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))"
    start = f"{limit}; from regretless.scenarios.cli.commands import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", start, *map(str, words)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


def run_bytes(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.glob("*.parquet"))}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no limit on the size of files")
def test_what_was_written_before_there_was_no_room_is_kept(desk: Path) -> None:
    """A limit that the first checkpoint keeps to, and what follows does not."""
    words = ["run", "nature.toml", "--rounds", 9000, "--quiet", "--out"]
    assert limited(desk, 2**30, *words, "whole") == (0, "")
    part = max(len(content) for content in run_bytes(desk / "whole").values())
    status, told = limited(desk, int(part * 0.8), *words, "cut")
    assert status == 2
    assert told.count("\n") == 1
    assert "File too large; make room, then continue with --resume" in told
    assert json.loads((desk / "cut/manifest.json").read_text())["status"] == "interrupted"
    assert (desk / "cut/.partial/checkpoint.npz").exists()
    assert limited(desk, 2**30, *words, "cut", "--resume") == (0, "")
    assert run_bytes(desk / "cut") == run_bytes(desk / "whole")
    status, told = limited(desk, 100, *words, "none")
    assert (status, told.count("\n")) == (2, 1)
    assert not (desk / "none").exists()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError(), "there is not enough memory; lower counts, actions or rounds"),
        (OSError(28, "No space left", "f"), "f: No space left; make room, then continue with --re"),
    ],
)
def test_what_the_system_refuses_anywhere_is_one_line(
    refused: Refused, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    monkeypatch.setattr(
        commands.shared, "loaded", Mock(side_effect=error)
    )  # not from the user's code
    assert refused("run", "nature.toml").startswith(told)


def test_a_folder_that_goes_away_is_one_line(desk: Path, refused: Refused) -> None:
    (desk / "own.py").write_text(OWN, encoding="utf-8")
    words = ["--import", "own", "--set", 'cohort.farmers.response="sweeper"']
    line = refused("run", "nature.toml", *words)
    assert "runs/nature/" in line
    assert "No such file or directory; leave its folder alone" in line
    assert not (desk / "runs").exists()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_one_line(desk: Path, refused: Refused) -> None:
    (desk / "shut").mkdir(mode=0o500)
    assert "give another directory" in refused("run", "nature.toml", "--out", "shut/run")


# Models that nobody fitted.


def test_a_tree_says_what_cannot_be_kept(tmp_path: Path) -> None:
    loop: dict[str, Any] = {}
    loop["again"] = loop
    wrong = {
        "object": np.array([None], dtype=object),
        "table": {1: 2},
        "list": [np.ones(2)],
        "loop": loop,
        "set": {"deep": {3}},
    }
    for name, value in wrong.items():
        with pytest.raises(UserError, match=rf"state\(\): {name}.* cannot be kept in a file; give"):
            checkpoint.save(tmp_path / "kept.npz", {name: value})
    assert not list(tmp_path.glob("*kept*"))


@pytest.mark.parametrize("key", ["count", "actions", "types"])
def test_more_than_any_array_holds_is_a_line(key: str, refused: Refused) -> None:
    told = refused("run", "nature.toml", "--set", f"cohort.farmers.{key}={2**62}")
    assert f"cohort.farmers.{key} = {2**62}" in told
