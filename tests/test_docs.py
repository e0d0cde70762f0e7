"""Every block of README and pages runs, links lead somewhere, examples answer as the page says."""

import os
import re
import runpy
import sys
from pathlib import Path

import matplotlib.image as mpl_image
import numpy as np
import pandas as pd
import pytest
from licences import direct_requirements
from page_session import NOT_RUN, command, follow, read_here, steps
from separate_process import run_in_separate_process

import regretless
from regretless import audit

pytestmark = pytest.mark.pages

PROJECT_FOLDER = Path(__file__).parent.parent
PACKAGE = Path(
    regretless.__file__
).parent  # where a source distribution has the packages, and alone
PAGES = sorted((PROJECT_FOLDER / "docs").glob("*.md"))
README = PROJECT_FOLDER / "README.md"
TEXTS = {page: page.read_text(encoding="utf-8") for page in (README, *PAGES)}
FENCED_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PROSE = {page: FENCED_BLOCK.sub("", text) for page, text in TEXTS.items()}
DEEP_IMPORT = re.compile(r"(?:from|import) +(regretless(?:\.\w+){3,})")
FILE_OF_OURS = re.compile(r"`((?:market|forecaster|agents|scenarios|tests|docs)/[\w./-]+)`")

every_page = pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.stem)


def exists(path: Path) -> bool:
    """Return whether a file is in the checkout, or in the package as it is installed."""
    path_in_project = Path(os.path.normpath(path)).relative_to(PROJECT_FOLDER)
    return path.exists() or (PACKAGE / path_in_project).exists()


def anchors(page: Path) -> set[str]:
    """Return the anchors that the headings of a page have on GitHub."""
    headings = re.findall(r"^#+ (.*)$", PROSE[page], re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def write_readers_tables(folder: Path) -> None:
    """Write the tables that the page on offline forecasts takes for the reader's own."""
    rng = np.random.default_rng(0)
    days = pd.DataFrame({"sun": rng.random(120), "weekday": np.arange(120) % 7})
    days.head(20).to_csv(folder / "new.csv", index=False)
    days.assign(sales=50 * rng.beta(2, 5, 120)).to_csv(folder / "days.csv", index=False)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.stem != "agents"], ids=lambda page: page.stem
)
def test_page_runs_from_top_to_bottom(tmp_path: Path, page: Path) -> None:
    if page.stem == "offline":
        write_readers_tables(tmp_path)
    follow(page, tmp_path, read_here)


@every_page
def test_every_block_of_a_page_is_one_that_the_session_runs(page: Path) -> None:
    fences = re.findall("^```", TEXTS[page], re.MULTILINE)
    blocks = [step for step in steps(TEXTS[page]) if step.language != "command"]
    assert len(fences) == 2 * len(blocks)
    assert {step.language for step in blocks} <= {"python", "toml", "sh", "text", *NOT_RUN}


@every_page
def test_a_page_imports_from_two_levels_at_most(page: Path) -> None:
    assert DEEP_IMPORT.findall(TEXTS[page]) == []


@every_page
def test_files_that_a_page_names_are_there(page: Path) -> None:
    named = FILE_OF_OURS.findall(PROSE[page])
    assert [file for file in named if not exists(PROJECT_FOLDER / file)] == []


@every_page
def test_links_of_a_page_lead_to_a_file_and_an_anchor(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", PROSE[page]):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        linked_page = page.parent / file if file else page
        assert exists(linked_page), target
        if anchor:
            assert anchor in anchors(linked_page), target


def test_index_names_every_page() -> None:
    index = TEXTS[PROJECT_FOLDER / "docs/README.md"]
    for page in PAGES:
        if page.name != "README.md":
            assert f"]({page.name})" in index


def test_the_demo_prints_a_table_like_the_one_in_the_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [])  # put back afterwards
    table = re.compile(r"```text\n(crop-choice: 1,461 rounds.*?)```", re.DOTALL)
    (table_on_page,) = table.findall(TEXTS[README])
    printed = command("regretless run crop-choice --rounds 5")
    assert max(map(len, printed.splitlines())) <= 80
    heads = re.compile(
        r"^(Alternatives in hindsight|Regret per round|external|swap|decision swap)", re.MULTILINE
    )
    assert heads.findall(table_on_page) == heads.findall(printed) != []
    first_sentence = "200 growers followed the forecast. Average loss per round: 0."
    assert first_sentence in table_on_page
    assert first_sentence in printed


def test_the_readme_runs_and_its_market_and_log_are_as_it_says(tmp_path: Path) -> None:
    (tmp_path / "scenarios").symlink_to(PACKAGE / "scenarios")  # it is read in a checkout
    follow(README, tmp_path)
    solutions = pd.read_parquet(tmp_path / "runs/bridge/solutions.parquet").set_index("name")
    hours = solutions["mean_loss"]
    assert hours["optimum"] == pytest.approx(0.61)
    assert hours["worst nash"] == pytest.approx(0.75)
    assert hours["play"] == pytest.approx(0.74, abs=0.01)
    agents = pd.read_parquet(tmp_path / "runs/bridge/agents.parquet")
    assert agents["swap_regret"].mean() == pytest.approx(0.003, abs=0.001)
    log = audit(
        "price-log.csv", price="price", quantity="sold", propensity="chance", cost=0, agent="seller"
    )
    verdicts = log.verdicts.set_index("agent")
    assert verdicts["verdict"].to_dict() == {"learner": "undecided", "q-learner": "fails"}
    q_learner = verdicts.loc["q-learner", ["regret", "low", "high"]]
    assert q_learner.to_numpy(float) == pytest.approx([0.072, 0.033, 0.095], abs=0.002)


def test_contrarians_of_the_page_on_agents_lose_more_than_followers(tmp_path: Path) -> None:
    follow(PROJECT_FOLDER / "docs/agents.md", tmp_path)
    contrasts = pd.read_parquet(tmp_path / "runs/contrarians/contrasts.parquet")
    assert set(contrasts["value"]) == {"contrarian"}
    assert contrasts.set_index("measure").loc["mean_loss", "low"] > 0


# An example runs once, as a reader would start it, and its answer is that of the page: the same
# words, and numbers that are as near as other versions of NumPy and other processors leave them,
# whose last bits a market that reacts carries further.
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
MEAN_WITH_INTERVAL = re.compile(r"([-+]?\d+(?:\.\d+)?) \(([^()]*) to ([^()]*)\)")
TOLERANCE = 0.02  # of a number; of a mean half the interval's width, where that is more
TOLERANCE_OF_ENDS = 0.05  # of an interval's ends
EXAMPLES = PROJECT_FOLDER / "examples"
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "shown")


def start(script: Path, folder: Path) -> None:
    """Start a script as ``python SCRIPT FOLDER`` does."""
    sys.argv = [str(script), str(folder)]
    sys.path[0] = str(script.parent)
    runpy.run_path(str(script), run_name="__main__")


def answer_on_page(name: str) -> str:
    """Return the answer that the page quotes for an example, in one line."""
    pattern = re.compile(rf"`examples/{name}\.py`\n\n> (.*?)\n\n", re.DOTALL)
    section = pattern.search(TEXTS[PROJECT_FOLDER / "docs/examples.md"])
    assert section is not None
    return " ".join(section[1].replace("\n> ", " ").split())


def single_numbers(answer: str) -> list[float]:
    """Return the numbers of an answer that have no interval."""
    return [float(number) for number in NUMBER.findall(MEAN_WITH_INTERVAL.sub("", answer))]


def means_with_intervals(answer: str) -> list[list[float]]:
    """Return mean, low and high of every number with an interval."""
    return [[float(number) for number in match] for match in MEAN_WITH_INTERVAL.findall(answer)]


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_answers_as_the_page_says(tmp_path: Path, name: str) -> None:
    printed, _ = run_in_separate_process(tmp_path, start, EXAMPLES / f"{name}.py", tmp_path)
    printed = printed.strip()
    assert len(pd.read_csv(tmp_path / f"{name}.csv"))
    picture = mpl_image.imread(tmp_path / f"{name}.png")
    assert picture.shape[0] > 300
    assert picture.std() > 0.05  # not blank
    answer = answer_on_page(name)
    assert NUMBER.sub("#", answer) == NUMBER.sub("#", printed), printed
    np.testing.assert_allclose(
        single_numbers(printed), single_numbers(answer), rtol=0, atol=TOLERANCE, err_msg=printed
    )
    for ours, theirs in zip(
        means_with_intervals(printed), means_with_intervals(answer), strict=True
    ):
        mean, low, high = theirs
        half_width = (high - low) / 2  # so much less does another processor's mean say
        assert abs(ours[0] - mean) <= max(TOLERANCE, half_width), printed
        assert abs(ours[1] - low) <= max(TOLERANCE_OF_ENDS, half_width), printed
        assert abs(ours[2] - high) <= max(TOLERANCE_OF_ENDS, half_width), printed
        assert low <= 0 <= high or ours[0] * mean > 0, printed  # who gains, gains


def test_every_figure_is_on_the_page() -> None:
    figures = PROJECT_FOLDER / "docs" / "figures" / "examples"
    assert {path.stem for path in figures.glob("*.png")} == set(SCRIPTS)


def test_the_page_of_licences_lists_all_that_the_project_needs() -> None:
    page = TEXTS[PROJECT_FOLDER / "docs/licences.md"]
    unlisted = [name for name in direct_requirements() if f"| {name} |" not in page]
    assert unlisted == []
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert [row for row in rows if row.count("|") != 5] == []  # four cells each
