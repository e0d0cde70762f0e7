"""The pages are so: every block of README and pages runs, links lead somewhere, examples answer."""

import os
import re
import runpy
import sys
from pathlib import Path

import matplotlib.image as mpl_image
import numpy as np
import pandas as pd
import pytest
from page_session import SILENT, command, follow, read_here, steps
from separate_process import run_in_separate_process

import regretless

pytestmark = pytest.mark.pages

HOME = Path(__file__).parent.parent
PACKAGE = Path(regretless.__file__).parent  # where a source distribution has the rooms, and alone
PAGES = sorted((HOME / "docs").glob("*.md"))
README = HOME / "README.md"
TEXTS = {page: page.read_text(encoding="utf-8") for page in (README, *PAGES)}
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PROSE = {page: FENCE.sub("", text) for page, text in TEXTS.items()}
DEEP = re.compile(r"(?:from|import) +(regretless(?:\.\w+){3,})")
OURS = re.compile(r"`((?:market|forecaster|agents|scenarios|tests|docs)/[\w./-]+)`")


def known(path: Path) -> bool:
    inside = Path(os.path.normpath(path)).relative_to(HOME)
    return path.exists() or (PACKAGE / inside).exists()


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", PROSE[page], re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_runs_from_top_to_bottom(tmp_path: Path, page: Path) -> None:
    if page.stem == "offline":  # tables that it takes for the reader's own
        rng = np.random.default_rng(0)
        days = pd.DataFrame({"sun": rng.random(120), "weekday": np.arange(120) % 7})
        days.head(20).to_csv(tmp_path / "new.csv", index=False)
        days.assign(sales=50 * rng.beta(2, 5, 120)).to_csv(tmp_path / "days.csv", index=False)
    follow(page, tmp_path, read_here)


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.stem)
def test_page_is_read_whole_and_what_it_names_is_there(page: Path) -> None:
    """And it imports from two levels at most."""
    fences = re.findall("^```", TEXTS[page], re.MULTILINE)
    blocks = [step for step in steps(TEXTS[page]) if step.language != "command"]
    assert len(fences) == 2 * len(blocks)
    assert {step.language for step in blocks} <= {"python", "toml", "sh", "text", *SILENT}
    assert DEEP.findall(TEXTS[page]) == []
    assert [file for file in OURS.findall(PROSE[page]) if not known(HOME / file)] == []
    for target in re.findall(r"\]\(([^)\s]+)\)", PROSE[page]):
        file, _, anchor = target.partition("#")
        there = page.parent / file if file else page
        assert target.startswith("https://") or known(there), target
        assert target.startswith("https://") or not anchor or anchor in anchors(there), target


def test_index_names_every_page() -> None:
    index = TEXTS[HOME / "docs/README.md"]
    for page in PAGES:
        assert page.name == "README.md" or f"]({page.name})" in index


def test_the_demo_ends_with_such_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [])  # put back afterwards
    (shown,) = re.findall(r"```text\n(crop-choice: 1,461 rounds.*?)```", TEXTS[README], re.DOTALL)
    printed = command("regretless run crop-choice --rounds 5")
    assert max(map(len, printed.splitlines())) <= 80
    heads = r"^(Alternatives in hindsight|Regret per round|external|swap|decision swap)"
    one, other = (re.findall(heads, text, re.MULTILINE) for text in (shown, printed))
    assert one == other != []
    words = "200 growers followed the forecast. Average loss per round: 0."
    assert words in shown
    assert words in printed


def test_the_readme_runs_and_its_study_compares_followers_with_contrarians(tmp_path: Path) -> None:
    follow(README, tmp_path)
    contrasts = pd.read_parquet(tmp_path / "runs/contrarians/contrasts.parquet")
    assert set(contrasts["value"]) == {"contrarian"}
    assert contrasts.set_index("measure").loc["mean_loss", "low"] > 0


# An example runs once, as a reader would start it, and its answer is that of the page: the same
# words, and numbers that are as near as other versions of NumPy and other processors leave them,
# whose last bits a market that reacts carries further.
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
MEAN = re.compile(r"([-+]?\d+(?:\.\d+)?) \(([^()]*) to ([^()]*)\)")  # with its interval
NEAR, ENDS_NEAR = 0.02, 0.05  # of a number, and of an interval's ends; or half the interval's width
SCRIPTS = sorted(path.stem for path in (HOME / "examples").glob("*.py") if path.stem != "shown")


def start(script: Path, folder: Path) -> None:
    """Start a script as ``python SCRIPT FOLDER`` does."""
    sys.argv, sys.path[0] = [str(script), str(folder)], str(script.parent)
    runpy.run_path(str(script), run_name="__main__")


def near(page: list[str], run: list[str], within: list[float]) -> bool:
    pairs = zip(map(float, page), map(float, run), within, strict=True)
    return all(abs(ours - theirs) <= most for ours, theirs, most in pairs)


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_answers_as_the_page_says(tmp_path: Path, name: str) -> None:
    printed = run_in_separate_process(tmp_path, start, HOME / "examples" / f"{name}.py", tmp_path)[
        0
    ].strip()
    assert len(pd.read_csv(tmp_path / f"{name}.csv"))
    picture = mpl_image.imread(tmp_path / f"{name}.png")
    assert picture.shape[0] > 300
    assert picture.std() > 0.05  # not blank
    answer = re.compile(rf"`examples/{name}\.py`\n\n> (.*?)\n\n", re.DOTALL)
    section = answer.search(TEXTS[HOME / "docs/examples.md"])
    shown = " ".join(section[1].replace("\n> ", " ").split())
    assert NUMBER.sub("#", shown) == NUMBER.sub("#", printed), printed
    page, run = (NUMBER.findall(MEAN.sub("", text)) for text in (shown, printed))
    assert near(page, run, [NEAR] * len(page)), printed
    for ours, theirs in zip(MEAN.findall(shown), MEAN.findall(printed), strict=True):
        mean, low, high = map(float, ours)
        wide = (high - low) / 2  # so much less does another processor's mean say
        assert near(ours, theirs, [max(NEAR, wide), *2 * [max(ENDS_NEAR, wide)]]), printed
        assert low <= 0 <= high or float(theirs[0]) * mean > 0, printed  # who gains, gains


def test_every_figure_is_on_the_page() -> None:
    figures = {path.stem for path in (HOME / "docs" / "figures" / "examples").glob("*.png")}
    assert figures == set(SCRIPTS)
