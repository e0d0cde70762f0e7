"""Whatever file operation a run or a study ends at, or fails at, it resumes to the same bytes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from faults import MODES

FAULTS = Path(__file__).parent.parent / "faults.py"

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks, to be quick")


def strike(folder: Path, kind: str, most: object, *modes: str) -> str:
    done = subprocess.run(
        [sys.executable, FAULTS, folder, kind, str(most), *modes],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", ["run", "study"])
def test_some_crashes_cost_nothing(tmp_path: Path, kind: str) -> None:
    assert "wrong: 0" in strike(tmp_path, kind, 1)


@pytest.mark.crashes
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["run", "study"])
def test_no_crash_costs_anything(tmp_path: Path, kind: str, mode: str) -> None:
    sys.stdout.write(strike(tmp_path, kind, "each", mode))
