"""Every example answers its question, and the page of examples says what they say.

An example runs once, as a reader would start it. Its claim is held to the table that it writes, and
its answer to the page: the same words, and numbers that are as near as other versions of NumPy
and other processors leave them, whose last bits a market that reacts carries further.
"""

import re
import runpy
import sys
from collections.abc import Callable
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


def told(name: str, folder: Path) -> tuple[str, pd.DataFrame]:
    said, _ = alone(folder, start, HOME / "examples" / f"{name}.py", folder)
    return said.strip(), pd.read_csv(folder / f"{name}.csv")


def start(script: Path, folder: Path) -> None:
    """Start a script as ``python SCRIPT FOLDER`` does."""
    sys.argv, sys.path[0] = [str(script), str(folder)], str(script.parent)
    runpy.run_path(str(script), run_name="__main__")


def row(table: pd.DataFrame, **keys: object) -> pd.Series:
    found = table[(table[list(keys)] == pd.Series(keys)).all(axis=1)]
    assert len(found) == 1, keys
    return found.iloc[0]


def width(mean: tuple[str, str, str]) -> float:
    """Return how wide the interval of a mean is: so much less does another processor's mean say."""
    return float(mean[2]) - float(mean[1])


def stabilise(table: pd.DataFrame) -> bool:
    """Outcomes move more where all follow than where all learn, and less than with past bests."""
    return all(
        row(table, impact=impact, listen="all")["mean"]
        > row(table, impact=impact, listen="nobody")["mean"]
        for impact in table["impact"].unique()
    ) and row(table, impact=0.8, listen="all")["high"] < min(
        row(table, impact=0.8, listen=control)["low"]
        for control in ("all, last value", "all, smoothing", "nobody, best so far")
    )


def survival(table: pd.DataFrame) -> bool:
    """Who discounts past frequencies owns most where odds drift, and shares add up."""
    whole = table.groupby("odds")["mean"].sum()
    drift = row(table, odds="drift", who="discounted")
    return drift["low"] > 0.5 and bool(((whole - 1).abs() < 1e-9).all())


def censoring(table: pd.DataFrame) -> bool:
    """Who sees sales stocks less and regrets less."""
    level, regret = (table[table["measure"] == name] for name in ("level", "regret"))
    sales, demand = row(level, seen="sales"), row(level, seen="demand")
    low, high = row(regret, seen="sales"), row(regret, seen="demand")
    return sales["high"] < demand["low"] and low["mean"] < high["mean"]


def congestion(table: pd.DataFrame) -> bool:
    """With draws of their own agents lose less and regret less."""
    keys = ["measure", "agents"]
    common = table[table["draw"] == "one for all"].set_index(keys)
    alone = table[table["draw"] == "a draw each"].set_index(keys)
    return bool((alone["high"] < common["low"]).all())


def lying(table: pd.DataFrame) -> bool:
    """No lie that was tried gains a fiftieth of what is lost; liars are scored beside outsiders."""
    own = table[table["who"] == "liars"]
    return len(own) == 2 and bool((own["mean"] < 0.01).all()) and len(table) == 4


def leaders(table: pd.DataFrame) -> bool:
    """One that trains gains from learners, not from followers; one that commits, nothing more."""
    surplus = table[table["measure"] == "surplus"].set_index(["leader", "agents"])["mean"]
    trains = surplus["trains, then turns"]
    return (
        trains["no external regret"] > 0.5
        and trains["follow the forecast"] < 0
        and surplus["commits"].between(-0.03, 1e-9).all()
    )


def whose_model(table: pd.DataFrame) -> bool:
    """Both kinds of station are scored against all models, and seasons are what matters."""
    best = table.loc[table.groupby("cohort")["difference"].idxmin(), "name"]
    return len(table) == 14 and best.str.startswith("seasonal").all()


def one_forecast(table: pd.DataFrame) -> bool:
    """Swap learners pay more than the posted price, followers of a shared or own forecast less."""
    of = table.pivot_table(index="agents", columns="quantity", values="measured")
    ours, swap = of.loc["followers of the forecast"], of.loc["swap regret matching"]
    apart = of.loc["followers, a forecast each"]
    return (
        max(ours["revenue"], apart["revenue"]) < 0.1
        and swap["revenue"] > 0.25
        and swap["swap regret"] < 0.01
        and ours["mimic regret"] < 0.01
        and swap["mimic regret"] > 0.5
    )


def spreads(table: pd.DataFrame) -> bool:
    """Spreads narrow where makers hear the forecast and widen where takers alone do."""
    of = table.set_index("hear")
    narrow = of.loc["all", "high"] < of.loc["makers", "low"]
    return bool(
        narrow
        and of.loc["makers", "high"] < of.loc["nobody", "low"]
        and of.loc["nobody", "high"] < of.loc["the six", "low"]
    )


def informed(table: pd.DataFrame) -> bool:
    """Who keeps a quote could have saved most of the loss, a swap learner little of it."""
    of = table.set_index(["makers", "informed", "measure"])["mean"]
    kept, swap = of["keep 1/8"][4], of["no swap regret"][4]
    return bool(
        kept["best single quote"] > 0.5 * kept["lost to the informed"]
        and swap["swap regret"] < 0.2 * swap["lost to the informed"]
        and swap["swap regret"] < of["no swap regret"][0]["swap regret"] + 0.02
        and (of[:, 0, "lost to the informed"] == 0).all()
    )


def latency(table: pd.DataFrame) -> bool:
    """Makers and noise traders pay snipers; regret shows the latter's part alone."""
    of = table[table["case"] == "as fast"].set_index(["measure", "who"])
    loss, regret = of.loc["loss"], of.loc["swap regret"]
    return bool(
        (loss.loc[["makers", "noise"], "low"] > 0).all()
        and loss.loc["snipers", "high"] < 0
        and abs(loss.loc["noise", "mean"] - regret.loc["noise", "mean"]) < 1e-9
        and regret.loc["makers", "high"] < loss.loc["makers", "low"]
    )


CLAIMS: dict[str, Callable[[pd.DataFrame], bool]] = {name: globals()[name] for name in SCRIPTS}


def shown(name: str) -> str:
    """Return the answer that the page has of an example."""
    section = re.search(rf"`examples/{name}\.py`\n\n> (.*?)\n\n", PAGE, re.DOTALL)
    return " ".join(section[1].replace("\n> ", " ").split())


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_finds_what_it_claims(tmp_path: Path, name: str) -> None:
    printed, table = told(name, tmp_path)
    assert CLAIMS[name](table)
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


def test_every_figure_is_on_the_page() -> None:
    figures = {path.stem for path in (HOME / "docs" / "figures" / "examples").glob("*.png")}
    assert figures == set(SCRIPTS)
