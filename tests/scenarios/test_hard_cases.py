"""Strange files, a full disk, parts that are none: one line, status 2, nothing half-written."""

import os
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from desk import Refused
from worlds import NATURE

from regretless.market.core import checkpoint
from regretless.market.core.errors import UserError
from regretless.scenarios.cli import commands


@pytest.fixture(autouse=True)
def desk(desk: Path) -> Path:
    (desk / "nature.toml").write_text(NATURE, encoding="utf-8")
    return desk


TWENTY = "rounds = 20"
LONG = f'network = {{ graph = "edge-list", file = "{"x/" * 3000}" }}'
STRANGE = [  # a line of the good file, what stands there instead, and what is said
    (TWENTY, f"{'a.' * 300}b = 1", "nested more than 50 deep; write it flatter"),
    (TWENTY, f"rounds = {'9' * 5000}", "a number beyond 64 bits; give a smaller"),
    ('"nature"', f'"{"n" * 300}"', "nnn': string should have at most 100 characters"),
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
    assert len(refused("run", "x" * 5000)) < 300


# No room, no folder.


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
    fails = Mock(side_effect=error)  # not from the user's code
    monkeypatch.setattr(commands.shared, "loaded", fails)
    assert refused("run", "nature.toml").startswith(told)


SWEEPER = """
import shutil
from regretless import register
from regretless.agents import ScriptedAgent

@register.agent("sweeper")
class Sweeper(ScriptedAgent):
    def act(self, forecast, context):
        shutil.rmtree("runs", ignore_errors=True)
        return 0
"""


def test_a_folder_that_goes_away_is_one_line(desk: Path, refused: Refused) -> None:
    (desk / "own.py").write_text(SWEEPER, encoding="utf-8")
    words = ["--import", "own", "--set", 'cohort.farmers.response="sweeper"']
    line = refused("run", "nature.toml", *words)
    assert "runs/nature/" in line
    assert "No such file or directory; leave its folder alone" in line
    assert not (desk / "runs").exists()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written_is_one_line(desk: Path, refused: Refused) -> None:
    (desk / "shut").mkdir(mode=0o500)
    assert "give another directory" in refused("run", "nature.toml", "--out", "shut/run")


def test_a_tree_says_what_cannot_be_kept(tmp_path: Path) -> None:
    loop: dict[str, Any] = {}
    loop["again"] = loop
    wrong = {"object": np.array([None], dtype=object), "table": {1: 2}, "list": [np.ones(2)]}
    wrong |= {"loop": loop, "set": {"deep": {3}}}
    for name, value in wrong.items():
        with pytest.raises(UserError, match=rf"state\(\): {name}.* cannot be kept in a file; give"):
            checkpoint.save(tmp_path / "kept.npz", {name: value})
    assert not list(tmp_path.glob("*kept*"))
