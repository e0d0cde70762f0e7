"""The pages are so: every block of README and pages runs, and every link leads somewhere."""

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from page_session import SILENT, command, follow, read_here, steps

import regretless

pytestmark = pytest.mark.pages

HOME = Path(__file__).parent.parent
PACKAGE = Path(regretless.__file__).parent  # where a source distribution has the rooms, and alone
PAGES = sorted((HOME / "docs").glob("*.md"))
README = HOME / "README.md"
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
DEEP = re.compile(r"(?:from|import) +(regretless(?:\.\w+){3,})")
OURS = re.compile(r"`((?:market|forecaster|agents|scenarios|tests|docs)/[\w./-]+)`")


def days_on_file(folder: Path) -> None:
    """Write the tables that the page on offline learning takes for the reader's own."""
    rng = np.random.default_rng(0)
    days = pd.DataFrame({"sun": rng.random(120), "weekday": np.arange(120) % 7})
    days.head(20).to_csv(folder / "new.csv", index=False)
    days.assign(sales=50 * rng.beta(2, 5, 120)).to_csv(folder / "days.csv", index=False)


def prose(page: Path) -> str:
    """Text of a page without its blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def known(path: Path) -> bool:
    inside = Path(os.path.normpath(path)).relative_to(HOME)
    return path.exists() or (PACKAGE / inside).exists()


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_runs_from_top_to_bottom(tmp_path: Path, page: Path) -> None:
    if page.stem == "offline":
        days_on_file(tmp_path)
    follow(page, tmp_path, read_here)


def test_pages_are_read_whole_and_import_from_two_levels_at_most() -> None:
    for page in [README, *PAGES]:
        text = page.read_text(encoding="utf-8")
        fences = [line for line in text.splitlines() if line.startswith("```")]
        blocks = [step for step in steps(text) if step.language != "command"]
        assert len(fences) == 2 * len(blocks), page
        assert {step.language for step in blocks} <= {"python", "toml", "sh", "text", *SILENT}
        assert DEEP.findall(text) == []


def test_links_lead_somewhere_and_files_that_are_named_exist() -> None:
    for page in [README, *PAGES]:
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
            file, _, anchor = target.partition("#")
            there = page.parent / file if file else page
            assert target.startswith("https://") or known(there), (page, target)
            assert target.startswith("https://") or not anchor or anchor in anchors(there), target
        for file in OURS.findall(prose(page)):
            assert known(HOME / file), (page, file)


def test_index_names_every_page() -> None:
    index = (HOME / "docs/README.md").read_text(encoding="utf-8")
    for page in PAGES:
        assert page.name == "README.md" or f"]({page.name})" in index


# The README.

TEXT = (HOME / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
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
