"""Every example answers its question, and the page of examples says what they say.

An example runs once, as a reader would start it, and its answer is that of the page: the same
words, and numbers that are as near as other versions of NumPy and other processors leave them,
whose last bits a market that reacts carries further.
"""

import re
import runpy
import sys
from pathlib import Path

import matplotlib.image as mpl_image
import pandas as pd
import pytest
from alone import alone

pytestmark = pytest.mark.pages

HOME = Path(__file__).parent.parent
PAGE = (HOME / "docs" / "examples.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")
MEAN = re.compile(r"([-+]?\d+(?:\.\d+)?) \(([^()]*) to ([^()]*)\)")  # with its interval
NEAR, ENDS_NEAR = 0.02, 0.05  # of a number, and of an interval's ends; or half the interval's width
SCRIPTS = sorted(path.stem for path in (HOME / "examples").glob("*.py") if path.stem != "shown")


def start(script: Path, folder: Path) -> None:
    """Start a script as ``python SCRIPT FOLDER`` does."""
    sys.argv, sys.path[0] = [str(script), str(folder)], str(script.parent)
    runpy.run_path(str(script), run_name="__main__")


def width(mean: tuple[str, str, str]) -> float:
    """Return how wide the interval of a mean is: so much less does another processor's mean say."""
    return float(mean[2]) - float(mean[1])


def shown(name: str) -> str:
    """Return the answer that the page has of an example."""
    section = re.search(rf"`examples/{name}\.py`\n\n> (.*?)\n\n", PAGE, re.DOTALL)
    return " ".join(section[1].replace("\n> ", " ").split())


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_answers_as_the_page_says(tmp_path: Path, name: str) -> None:
    said, _ = alone(tmp_path, start, HOME / "examples" / f"{name}.py", tmp_path)
    printed = said.strip()
    assert len(pd.read_csv(tmp_path / f"{name}.csv"))
    picture = mpl_image.imread(tmp_path / f"{name}.png")
    assert picture.shape[0] > 300
    assert picture.std() > 0.05  # not blank
    assert NUMBER.sub("#", shown(name)) == NUMBER.sub("#", printed), printed
    widths = [width(text) for text in MEAN.findall(shown(name))]
    page, run = (NUMBER.findall(MEAN.sub("", text)) for text in (shown(name), printed))
    assert all(abs(float(a) - float(b)) <= NEAR for a, b in zip(page, run, strict=True)), printed
    page, run = (MEAN.findall(text) for text in (shown(name), printed))
    for ours, theirs, wide in zip(page, run, widths, strict=True):
        within = max(NEAR, wide / 2), *2 * [max(ENDS_NEAR, wide / 2)]
        gaps = [abs(float(a) - float(b)) for a, b in zip(ours, theirs, strict=True)]
        assert all(gap <= most for gap, most in zip(gaps, within, strict=True)), printed
        mean, low, high = map(float, ours)
        assert low <= 0 <= high or float(theirs[0]) * mean > 0, printed  # who gains, gains


def test_every_figure_is_on_the_page() -> None:
    figures = {path.stem for path in (HOME / "docs" / "figures" / "examples").glob("*.png")}
    assert figures == set(SCRIPTS)
