"""Whatever file operation a run or a study ends at, or fails at, it resumes to the same bytes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from faults import MODES

FAULTS = Path(__file__).parent.parent / "faults.py"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks, to be quick")
@pytest.mark.parametrize("kind", ["run", "study"])
@pytest.mark.parametrize(
    ("most", "modes"),
    [("1", MODES), *(pytest.param("each", [m], marks=pytest.mark.crashes) for m in MODES)],
)
def test_no_crash_costs_anything(tmp_path: Path, kind: str, most: str, modes: list[str]) -> None:
    words = [sys.executable, FAULTS, tmp_path, kind, most, *modes]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    sys.stdout.write(done.stdout)
