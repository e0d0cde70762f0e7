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


def near(page: list[str], run: list[str], within: list[float]) -> bool:
    pairs = zip(map(float, page), map(float, run), within, strict=True)
    return all(abs(ours - theirs) <= most for ours, theirs, most in pairs)


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_answers_as_the_page_says(tmp_path: Path, name: str) -> None:
    printed = alone(tmp_path, start, HOME / "examples" / f"{name}.py", tmp_path)[0].strip()
    assert len(pd.read_csv(tmp_path / f"{name}.csv"))
    picture = mpl_image.imread(tmp_path / f"{name}.png")
    assert picture.shape[0] > 300
    assert picture.std() > 0.05  # not blank
    section = re.search(rf"`examples/{name}\.py`\n\n> (.*?)\n\n", PAGE, re.DOTALL)
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
