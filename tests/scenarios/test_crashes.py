"""Whatever file operation a run or a study ends at, or fails at, it resumes to the same bytes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from file_faults import FAULT_KINDS

SCRIPT = Path(__file__).parent.parent / "file_faults.py"
ALL_KINDS_AT_BOTH_ENDS = pytest.param("1", FAULT_KINDS, id="all kinds, at both ends")
EACH_OPERATION = [
    pytest.param("each", [kind], id=f"{kind}, everywhere", marks=pytest.mark.crashes)
    for kind in FAULT_KINDS
]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks, to be quick")
@pytest.mark.parametrize("command", ["run", "study"])
@pytest.mark.parametrize(("most", "kinds"), [ALL_KINDS_AT_BOTH_ENDS, *EACH_OPERATION])
def test_a_command_that_ends_at_any_file_operation_resumes_to_the_same_bytes(
    tmp_path: Path, command: str, most: str, kinds: list[str]
) -> None:
    words = [sys.executable, SCRIPT, tmp_path, command, most, *kinds]
    process = subprocess.run(words, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    sys.stdout.write(process.stdout)
