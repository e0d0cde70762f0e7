"""The linear solver prints nothing: neither its banner nor a log, in a run or in a study."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SOLVES = """
import numpy as np
from regretless import exploitability
joint, loss = np.full((3, 2), 1 / 6), np.random.default_rng(0).random((3, 2))
exploitability(joint, loss)
"""
STUDY = """
scenario = "file.toml"
seeds = 1
"""
SCENARIO = """
name = "file"
rounds = 5
adversary = { kind = "drifting", outcomes = 2 }
cohort = [{ name = "a", utility = "linear", count = 2, actions = 3 }]
"""


def printed(folder: Path, *command: str) -> str:
    """Return all that a command's process, its compiled libraries included, prints."""
    done = subprocess.run([sys.executable, *command], cwd=folder, capture_output=True, check=True)
    return (done.stdout + done.stderr).decode()


def test_the_solver_prints_nothing(tmp_path: Path) -> None:
    assert printed(tmp_path, "-c", SOLVES) == ""


def test_runs_and_studies_print_no_banner(tmp_path: Path) -> None:
    (tmp_path / "file.toml").write_text(SCENARIO, encoding="utf-8")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    for command in ("run file.toml --out run", "study study.toml --out study --jobs 1"):
        said = printed(tmp_path, "-m", "regretless", *command.split()).lower()
        assert said
        assert "highs" not in said
        assert "licen" not in said
