"""The pages are so: every block of every page runs, and every link leads somewhere.

The README's blocks run in ``test_readme``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from page_session import SILENT, follow, read_here, steps

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
    """Whether there is such a file, in a checkout or in a source distribution."""
    inside = Path(os.path.normpath(path)).relative_to(HOME)
    return path.exists() or (PACKAGE / inside).exists()


def anchors(page: Path) -> set[str]:
    """Names under which a page's headings can be linked to, as GitHub makes them."""
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
