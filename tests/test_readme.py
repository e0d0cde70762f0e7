"""The README is so: every block of it runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

HOME = Path(__file__).parent.parent
TEXT = (HOME / "README.md").read_text(encoding="utf-8")
COMMAND = Path(sys.executable).parent / "omnimarket"


def blocks(language: str) -> list[str]:
    """Code blocks of a language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)


def block_with(language: str, text: str) -> str:
    """Return the one block of a language that contains a text."""
    (found,) = [block for block in blocks(language) if text in block]
    return found


def succeeds(folder: Path, *command: str | Path) -> str:
    """Run a command in a folder; return what it printed."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("text", ["model.run()", "umbrella"])
def test_python_blocks_run(tmp_path: Path, text: str) -> None:
    assert succeeds(tmp_path, sys.executable, "-c", block_with("python", text)).strip()


def test_own_data_runs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    days = {"bread": rng.uniform(1, 3, 90), "fuel": rng.uniform(0.8, 2.2, 90)}
    pd.DataFrame(days | {"weekday": np.arange(90) % 7}).to_csv(tmp_path / "my-prices.csv")
    (tmp_path / "mine.toml").write_text(block_with("toml", "my-prices.csv"), encoding="utf-8")
    printed = succeeds(tmp_path, COMMAND, "run", "mine.toml", "--rounds", "40")
    assert "households" in printed
    assert "naive" in printed


def test_own_agent_adversary_and_utility_run(tmp_path: Path) -> None:
    module = block_with("python", "# my_agents.py")
    (tmp_path / "my_agents.py").write_text(module, encoding="utf-8")
    for part in module.split("@register")[1:]:
        assert len(part.strip().splitlines()) <= 30
    (tmp_path / "my-market.toml").write_text(block_with("toml", "moody"), encoding="utf-8")
    line = next(line for line in TEXT.splitlines() if "--import my_agents" in line)
    program, *rest = line.split()
    assert program == "omnimarket"
    assert "skeptics" in succeeds(tmp_path, COMMAND, *rest)
    agents = pd.read_parquet(tmp_path / "runs/moody-market/agents.parquet")
    assert agents.groupby("cohort")["guarantee"].first().to_dict() == {
        "followers": "decision-swap",
        "skeptics": "none",
    }
    followers = agents.query("cohort == 'followers'")
    assert (followers["swap_regret"] <= followers["bound_from_bias"]).all()


def test_logs_open_as_shown(tmp_path: Path) -> None:
    succeeds(tmp_path, COMMAND, "run", "crop-choice", "--rounds", "5")
    assert "4" in succeeds(tmp_path, sys.executable, "-c", block_with("python", "read_parquet"))


@pytest.mark.parametrize("page", sorted((HOME / "docs").glob("*.md")), ids=lambda page: page.name)
def test_every_block_of_a_page_runs(tmp_path: Path, page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    tables = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    studies = [block for block in tables if "scenario" in tomllib.loads(block)]
    for block in studies:
        (name,) = re.findall(r"^# (\S+)\.toml$", block, flags=re.MULTILINE)
        (tmp_path / f"{name}.toml").write_text(block, encoding="utf-8")
        line = next(line for line in text.splitlines() if f"omnimarket study {name}.toml" in line)
        assert name in succeeds(tmp_path, COMMAND, *line.split()[1:])
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        assert succeeds(tmp_path, sys.executable, "-c", block).strip()
    for block in (block for block in tables if block not in studies):
        (tmp_path / "page.toml").write_text(block, encoding="utf-8")
        name = tomllib.loads(block)["name"]
        assert name in succeeds(tmp_path, COMMAND, "run", "page.toml", "--rounds", "20")


def test_the_file_list_is_so() -> None:
    for room in re.findall(r"^\| `(\w+)/`", TEXT, flags=re.MULTILINE):
        assert (HOME / room / "__init__.py").exists()
    assert "make demo" in TEXT
    for target in ("demo:", "test:"):
        assert target in (HOME / "Makefile").read_text(encoding="utf-8")
    for block in blocks("toml"):
        assert tomllib.loads(block)
    assert os.access(HOME / ".ci/run", os.X_OK)
