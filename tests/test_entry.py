"""The four generic package names: another package of the same name is noticed, in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).parent.parent


@pytest.mark.parametrize("room", ["market", "agents", "forecaster"])
def test_a_shadowed_package_is_named(tmp_path: Path, room: str) -> None:
    (tmp_path / room).mkdir()
    (tmp_path / room / "__init__.py").write_text("")
    code = (
        f"import sys; sys.path[:0] = [{str(tmp_path)!r}]; from scenarios.entry import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "list"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"omnimarket: package '{room}' comes from {tmp_path / room}")


def test_another_folder_of_the_name_in_the_way_does_no_harm(tmp_path: Path) -> None:
    """A data folder called ``market`` where the command is run is no package of ours."""
    (tmp_path / "market").mkdir()
    command = Path(sys.executable).parent / "omnimarket"
    done = subprocess.run(
        [command, "list"], cwd=tmp_path, capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 0
    assert "crop-choice" in done.stdout
