"""The README is so, and its blocks run; what holds for all pages is in ``test_docs``."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from page_session import command, follow

pytestmark = pytest.mark.pages

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
    follow(HOME / "README.md", folder)
    return folder


def test_the_demo_ends_with_such_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [])  # put back afterwards
    shown = block_with("text", "crop-choice: 1,461 rounds")
    printed = command("regretless run crop-choice --rounds 5")
    assert max(map(len, printed.splitlines())) <= 80
    heads = r"^(Alternatives in hindsight|Regret per round|external|swap|decision swap)"
    found = [re.findall(heads, text, re.MULTILINE) for text in (shown, printed)]
    first = [[line.split("  ")[0] for line in lines] for lines in found]
    assert first[0] == first[1]
    words = "200 growers followed the forecast. Average loss per round: 0."
    assert words in shown
    assert words in printed


def test_the_study_compares_followers_with_contrarians(followed: Path) -> None:
    contrasts = pd.read_parquet(followed / "runs/contrarians/contrasts.parquet")
    assert set(contrasts["value"]) == {"contrarian"}
    assert contrasts.set_index("measure").loc["mean_loss", "low"] > 0
