"""The README is so, and its blocks run; what holds for all pages is in ``test_docs``."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from page_session import command, follow

HOME = Path(__file__).parent.parent
TEXT = (HOME / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """Code blocks of a language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", TEXT, flags=re.DOTALL)


def block_with(language: str, text: str) -> str:
    """Return the one block of a language that contains a text."""
    (found,) = [block for block in blocks(language) if text in block]
    return found


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Follow the README from top to bottom; returns the folder."""
    folder = tmp_path_factory.mktemp("readme")
    rng = np.random.default_rng(0)
    days = {"bread": rng.uniform(1, 3, 90), "fuel": rng.uniform(0.8, 2.2, 90)}
    pd.DataFrame(days | {"weekday": np.arange(90) % 7}).to_csv(folder / "my-prices.csv")
    follow(HOME / "README.md", folder)
    return folder


def test_the_demo_ends_with_such_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [])  # put back afterwards
    shown = block_with("text", "crop-choice, 1461 rounds")
    printed = command("regretless run crop-choice --rounds 5")
    pieces = ("decision", " growers"), ("Regret per", "10.3%"), ("Forecast:", " stood")
    for start, end in pieces:
        parts = [
            text[text.index(start) : text.index(end)].replace("─", "").split()
            for text in (shown, printed)
        ]
        assert parts[0] == parts[1]
    told = [text[text.index("Who is") :] for text in (shown, printed)]
    heads = [text[: text.index("──")].split() for text in told]
    assert heads[0] == heads[1]
    rows = [set(re.findall(r"(?:model|policy|action) [\w .-]*?(?=  )", text)) for text in told]
    assert len(rows[0]) == 3
    assert rows[0] < rows[1]
    for words in (r"Listening \w+ growers", r"the best\s+model", r"would\s+have\s+gained"):
        assert all(re.search(words, text) for text in told), words


def test_own_agent_adversary_and_utility_run(followed: Path) -> None:
    for part in block_with("python", "# my_agents.py").split("@register")[1:]:
        assert len(part.strip().splitlines()) <= 30
    agents = pd.read_parquet(followed / "runs/moody-market/agents.parquet")
    assert agents.groupby("cohort")["guarantee"].first().to_dict() == {
        "followers": "decision-swap",
        "skeptics": "none",
    }
    followers = agents.query("cohort == 'followers'")
    assert (followers["swap_regret"] <= followers["bound_from_bias"]).all()


def test_it_stays_short() -> None:
    assert len(TEXT.splitlines()) < 250


def test_the_file_list_is_so() -> None:
    for room in re.findall(r"^\| `(\w+)/`", TEXT, flags=re.MULTILINE):
        assert (HOME / "regretless" / room / "__init__.py").exists()
    assert "make demo" in TEXT
    for target in ("demo:", "test:"):
        assert target in (HOME / "Makefile").read_text(encoding="utf-8")
    for block in blocks("toml"):
        assert tomllib.loads(block)
    assert os.access(HOME / ".ci/run", os.X_OK)
