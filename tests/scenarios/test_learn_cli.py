"""``regretless fit`` and ``regretless predict``, and what they refuse."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from paper import omniprediction
from paper.omniprediction_tasks import LISTED, task
from regretless.forecaster import OfflineOmnipredictor
from regretless.scenarios.cli import commands

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Run ``regretless`` in a folder of its own; status, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["regretless", *words])
        with pytest.raises(SystemExit) as stop:
            commands.main()
        told = capsys.readouterr()
        return int(stop.value.code or 0), told.out, told.err

    return run


@pytest.fixture
def days(tmp_path: Path) -> pd.DataFrame:
    """Write 120 days: sales in 0 to 50, higher when sunny."""
    rng = np.random.default_rng(0)
    sun = rng.random(120)
    sales = np.clip(10 + 30 * (sun > 0.5) + 4 * rng.standard_normal(120), 0, 50)
    frame = pd.DataFrame({"sales": sales, "sun": sun, "share": rng.random(120), "one": 1.0})
    frame.to_csv(tmp_path / "days.csv", index=False)
    return frame


FIT = ["fit", "days.csv", "--outcomes", "sales", "--features", "sun", "--scale", "sales=0:50"]
NEWSVENDOR = ["--utility", "newsvendor", "--base", "ridge", "--out", "m.npz"]


WHAT = "action", "expected_loss"


def test_fit_then_predict(command: Command, days: pd.DataFrame, tmp_path: Path) -> None:
    status, out, err = command(*FIT, *NEWSVENDOR, "--utility", "ces", "--set", "ces.rho=0.5")
    assert (status, err) == (0, "")
    assert "120 rows learned from, 0 held out; features: sun" in out
    assert "scaled from sales 0 to 50; law: ridge" in out
    assert "certified_on_holdout: none" in out
    status, printed, err = command("predict", "m.npz", "days.csv")
    assert (status, err) == (0, "")
    status, out, err = command("predict", "m.npz", "days.csv", "--out", "p.csv")
    assert (status, out, err) == (0, "written: p.csv\n", "")
    assert (tmp_path / "p.csv").read_text() == printed
    table = pd.read_csv(tmp_path / "p.csv")
    spread = ["sales_q10", "sales_q50", "sales_q90"]
    acts = [f"{name}_0_{what}" for name in ("newsvendor", "ces") for what in WHAT]
    assert list(table) == ["sales", *spread, *acts]
    assert (table["sales_q10"] <= table["sales_q90"]).all()
    sunny = days["sun"] > 0.5
    assert table["sales"][~sunny].mean() < 22
    assert 28 < table["sales"][sunny].mean() < 50
    orders = table["newsvendor_0_action"]
    assert orders[~sunny].mean() < orders[sunny].mean()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["days.csv", "m.npz", "p.csv"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_words_are_features(command: Command, tmp_path: Path, ending: str) -> None:
    """Sales depend on the town alone; a town that nobody knew is none of them."""
    rng = np.random.default_rng(0)
    towns = rng.choice(["Ulm", "Bern", "Graz"], 150)
    sales = 10.0 + 15 * (towns == "Bern") + rng.random(150)
    days = pd.DataFrame({"": range(150), "sales": sales, "town": towns, "note": "good"})
    days["name"] = [f"day {i}" for i in range(150)]
    new = pd.DataFrame({"town": ["Bern", "Ulm", "Rome"]})
    for frame, name in ((days, "days"), (new, "new")):
        file = tmp_path / f"{name}.{ending}"
        frame.to_csv(file, index=False) if ending == "csv" else frame.to_parquet(file)
    words = ["fit", f"days.{ending}", "--outcomes", "sales", *NEWSVENDOR]
    status, out, err = command(*words)
    assert (status, err) == (0, "")
    assert "features: town (3 words)\n" in out
    assert "or no name): a column without a name, note, name\n" in out
    status, _, err = command("predict", "m.npz", f"new.{ending}", "--out", "p.csv")
    assert (status, err) == (0, "town: Rome in 1 of 3 rows, never learned\n")
    found = pd.read_csv(tmp_path / "p.csv")["sales"]
    assert found[:2].tolist() == pytest.approx([25.5, 10.5], abs=1)
    assert 10 < found[2] < 26


def test_blanks_around_a_column_s_name_are_nobody_s_business(
    command: Command, days: pd.DataFrame, tmp_path: Path
) -> None:
    days[["sales", "sun"]].rename(columns=" {} ".format).to_csv(tmp_path / "days.csv", index=False)
    status, out, err = command(*FIT, *NEWSVENDOR)
    assert (status, err) == (0, "")
    assert "features: sun\n" in out
    assert command("predict", "m.npz", "days.csv")[0] == 0


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_gaps_are_marked(command: Command, tmp_path: Path, ending: str) -> None:
    """Sales depend on whether the weather was noted, in words and in numbers, and on no more."""
    rng, noted = np.random.default_rng(0), np.arange(150) % 3 > 0
    sales = 10.0 + 15 * noted + rng.random(150)
    days = pd.DataFrame({"sales": sales, "sun": rng.random(150), "sky": "fair"})
    days = days.assign(sun=days["sun"].where(noted), sky=days["sky"].where(noted))
    new = pd.DataFrame({"sun": [0.4, None, 0.6], "sky": ["fair", None, "fair"]})
    for frame, name in ((days, "days"), (new, "new"), (new.assign(sun=0.5), "other")):
        file = tmp_path / f"{name}.{ending}"
        frame.to_csv(file, index=False) if ending == "csv" else frame.to_parquet(file)
    fit = ["fit", f"days.{ending}", "--outcomes", "sales", *NEWSVENDOR]
    for features in ("sun", "sky"):
        status, out, err = command(*fit, "--features", features)
        assert (status, err) == (0, "")
        median = f"{days['sun'].median():g}"
        told = {"sun": f"sun (gaps are marked, and {median})", "sky": "sky (2 words)"}
        assert f"features: {told[features]}\n" in out
        status, _, err = command("predict", "m.npz", f"new.{ending}", "--out", "p.csv")
        assert (status, err) == (0, "")
        found = pd.read_csv(tmp_path / "p.csv")["sales"]
        assert found.tolist() == pytest.approx([25.5, 10.5, 25.5], abs=1)
    status, _, err = command(*fit[:1], f"new.{ending}", *fit[2:])
    assert status == 2
    for known in ("sun", "sky"):
        days.dropna().assign(sky=["fair", "grey"] * 50).to_csv(tmp_path / "known.csv", index=False)
        command("fit", "known.csv", *fit[2:], "--features", known)
        status, _, err = command("predict", "m.npz", f"new.{ending}")
        assert status == 2
        assert f"column '{known}' has no value in data row 2" in err


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_of_dates_is_learned_what_comes_again(
    command: Command, tmp_path: Path, ending: str
) -> None:
    """Sales are high on weekends; that days stand before months is known from the first table."""
    dates = pd.date_range("2022-01-01", periods=300)
    sales = 10.0 + 15 * (dates.day_of_week > 4) + np.random.default_rng(0).random(300)
    days = pd.DataFrame({"sales": sales, "day": dates, "year": pd.Timestamp("2022-01-01")})
    new = pd.DataFrame(
        {"day": pd.to_datetime(["2024-03-02", "2024-03-04"])}
    )  # a Saturday, a Monday
    for frame, name in ((days, "days"), (new, "new"), (new.assign(day=["soon", ""]), "bad")):
        file = tmp_path / f"{name}.{ending}"
        if ending == "parquet":
            frame.to_parquet(file)
        else:
            frame.to_csv(file, index=False, date_format="%d.%m.%Y")
    status, out, err = command("fit", f"days.{ending}", "--outcomes", "sales", *NEWSVENDOR)
    assert (status, err) == (0, "")
    assert "features: day (month, weekday)\n" in out
    assert "or no name): year\n" in out
    hint = "rows are in the order of day: --ordered tries it on later rows alone\n"
    assert hint in out
    assert (
        hint
        not in command("fit", f"days.{ending}", "--outcomes", "sales", *NEWSVENDOR, "--ordered")[1]
    )
    status, _, err = command("predict", "m.npz", f"new.{ending}", "--out", "p.csv")
    assert (status, err) == (0, "")
    weekend, monday = pd.read_csv(tmp_path / "p.csv")["sales"]
    assert weekend > 20
    assert monday < 12
    status, _, err = command("predict", "m.npz", f"bad.{ending}")
    assert status == 2
    assert "column 'day' holds 'soon' in data row 1" in err or "has no value in data row 2" in err


def test_the_same_seed_writes_the_same_predictions(command: Command, days: pd.DataFrame) -> None:
    told = []
    for _ in range(2):
        command(*FIT, *NEWSVENDOR, "--seed", "3")
        told.append(command("predict", "m.npz", "days.csv")[1])
    assert told[0] == told[1]


def test_without_options_it_looks_at_every_number_and_certifies_a_thousand_rows(
    command: Command, days: pd.DataFrame, tmp_path: Path
) -> None:
    pytest.importorskip("sklearn")
    many = pd.concat([days] * 9, ignore_index=True).assign(town="A")
    many["sun"] += np.random.default_rng(1).normal(0, 0.01, len(many))
    many.to_csv(tmp_path / "days.csv", index=False)
    words = ["fit", "days.csv", "--outcomes", "sales", "--utility", "newsvendor"]
    status, out, _ = command(*words, "--out", "m.npz")
    assert status == 0
    assert "780 rows learned from, 300 held out; features: sun, share" in out
    assert "left out (all the same, too many words, no numbers, or no name): one, town" in out
    (bound,) = re.findall(r"certified_on_holdout: ([\d.]+): decision swap", out)
    assert 0 < float(bound) < 0.2
    assert "it is about the law of the 780 rows, the one written knows all" in out
    plain = command(*words, "--out", "plain.npz", "--no-refit")[1]
    assert re.findall(r"certified_on_holdout: ([\d.]+)", plain) == [bound]
    assert "about the law of" not in plain
    status, out, _ = command("predict", "m.npz", "days.csv", "--laws", "--levels", "0.05,0.95")
    assert status == 0
    names = out.splitlines()[0].split(",")
    assert names[:3] == ["sales", "sales_q5", "sales_q95"]
    assert [name for name in names if "_p" in name] == [f"newsvendor_0_p{a}" for a in range(5)]
    for option in (["--ordered"], ["--groups", "town"], ["--weight", "share"]):
        if option[0] == "--groups":
            many.assign(town=np.arange(len(many)) // 40).to_csv("days.csv", index=False)
        status, out, _ = command(*words, "--out", "m.npz", *option)
        assert status == 0
        assert "certified_on_holdout: none" in out  # rows are no independent draws of one law


def broken(**columns: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return the table with some columns changed."""
    return lambda frame: frame.assign(**columns)


BAD: dict[str, tuple[list[str], Callable[[pd.DataFrame], pd.DataFrame], str]] = {
    "missing outcome": (
        [*FIT, *NEWSVENDOR],
        lambda frame: frame.assign(sales=frame["sales"].mask(frame.index == 4)),
        "'sales' has no value in data row 5 (line 6); fill it",
    ),
    "no value": ([*FIT, *NEWSVENDOR], broken(sun=""), "'sun' is empty in every row; leave it"),
    "one word": ([*FIT, *NEWSVENDOR], broken(sun="high"), "'sun' is high in every row; leave it"),
    "names": (
        [*FIT, *NEWSVENDOR],
        broken(sun=[f"day {i}" for i in range(120)]),
        "column 'sun' holds 120 words in 120 rows; leave it out, or give it at most 24",
    ),
    "words and numbers": (
        [*FIT, *NEWSVENDOR],
        broken(sun=["1", "low"] * 60),
        "column 'sun' holds 'low' in data row 2",
    ),
    "constant feature": (
        [*FIT[:4], "--features", "one", *FIT[6:], *NEWSVENDOR],
        broken(),
        "'one' is 1 in every row",
    ),
    "constant outcome": ([*FIT, *NEWSVENDOR], broken(sales=3.0), "'sales' is 3 in every row"),
    "bad scale": ([*FIT[:7], "sales=5", *NEWSVENDOR], broken(), "write COLUMN=LOW:HIGH"),
    "empty scale": ([*FIT[:7], "sales=5:5", *NEWSVENDOR], broken(), "two different numbers"),
    "other scale": ([*FIT, "--scale", "sale=0:1", *NEWSVENDOR], broken(), "did you mean 'sales'"),
    "no column": ([*FIT[:4], "--features", "sum", *NEWSVENDOR, *FIT[6:]], broken(), "'sun'"),
    "no outcome": (["fit", "days.csv", "--outcomes", ",", *NEWSVENDOR], broken(), "--outcomes"),
    "no file": (["fit", "day.csv", *FIT[2:], *NEWSVENDOR], broken(), "'day.csv' does not exist"),
    "no folder": ([*FIT, *NEWSVENDOR[:4], "--out", "no/m.npz"], broken(), "no folder 'no'"),
    "outcome as feature": (
        [*FIT[:4], "--features", "sun,sales", *FIT[6:], *NEWSVENDOR],
        broken(),
        "'sales' is an outcome too",
    ),
    "few rows": ([*FIT, *NEWSVENDOR], lambda frame: frame.head(5), "give at least 10"),
    "no rows": ([*FIT, *NEWSVENDOR], lambda frame: frame.head(0), "has no rows"),
    "utility": ([*FIT, *NEWSVENDOR, "--utility", "cess"], broken(), "did you mean 'ces'"),
    "parameter": ([*FIT, *NEWSVENDOR, "--utility", "ces"], broken(), "set it as --set ces.KEY"),
    "stray parameter": ([*FIT, *NEWSVENDOR, "--set", "ces.rho=1"], broken(), "--set ces: no such"),
    "twice": ([*FIT, *NEWSVENDOR, "--utility", "newsvendor"], broken(), "is given twice"),
    "base": ([*FIT, *NEWSVENDOR[:3], "all", "--out", "m.npz"], broken(), "base = 'all'"),
    "no policies": ([*FIT, *NEWSVENDOR[:3], "none", "--out", "m.npz"], broken(), "--base none"),
    "holdout": ([*FIT, *NEWSVENDOR, "--holdout", "half"], broken(), "give a share such as 0.3"),
    "groups": ([*FIT, *NEWSVENDOR, "--groups", "suns"], broken(), "did you mean 'sun'"),
    "one group": ([*FIT, *NEWSVENDOR, "--groups", "one"], broken(), "all rows are in one group"),
    "weight": ([*FIT, *NEWSVENDOR, "--weight", "debt"], broken(debt=-1.0), "at least 0"),
    "kappa": ([*FIT, *NEWSVENDOR, "--kappa", "2"], broken(), "kappa = 2.0"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_mistake_is_one_line_and_leaves_nothing(
    command: Command, days: pd.DataFrame, tmp_path: Path, case: str
) -> None:
    words, change, told = BAD[case]
    change(days).to_csv(tmp_path / "days.csv", index=False)
    status, out, err = command(*words)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert told in err
    assert [p.name for p in tmp_path.iterdir()] == ["days.csv"]


def test_predict_refuses_what_does_not_fit(
    command: Command, days: pd.DataFrame, tmp_path: Path
) -> None:
    command(*FIT, *NEWSVENDOR)
    days.drop(columns="sun").to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "text.npz").write_text("no model")
    refused = {
        ("m.npz", "new.csv"): "no column 'sun'",
        ("n.npz", "days.csv"): "'n.npz' does not exist",
        ("text.npz", "days.csv"): "no readable model",
        ("m.npz", "days.txt"): "'days.txt' does not exist",
    }
    for words, told in refused.items():
        status, out, err = command("predict", *words)
        assert (status, out) == (2, "")
        assert told in err
        assert err.count("\n") == 1
    status, _, err = command("predict", "m.npz", "days.csv", "--levels", "2")
    assert (status, err.count("\n")) == (2, 1)
    assert "levels = [2.0]" in err
    own = OfflineOmnipredictor(list(LISTED.values()), base="ridge", theta=0.2)
    own.fit(days[["sun"]].to_numpy(), days["share"].to_numpy()).save(tmp_path / "own.npz")
    status, _, err = command("predict", "own.npz", "days.csv")
    assert status == 2
    assert "was not written by regretless fit" in err


def test_the_commands_of_the_page_run(command: Command, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    days = pd.DataFrame({"sales": rng.uniform(0, 50, 60), "sun": rng.random(60)})
    days["weekday"] = np.arange(60) % 7
    days.to_csv(tmp_path / "days.csv", index=False)
    days.drop(columns="sales").to_csv(tmp_path / "new.csv", index=False)
    page = (Path(__file__).parent.parent.parent / "docs/offline.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(.*?)```", page, flags=re.DOTALL)
    lines = block.replace("\\\n", " ").strip().splitlines()
    assert len(lines) == 2
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "regretless"
        assert command(*words)[::2] == (0, "")
    assert len(pd.read_csv(tmp_path / "predictions.csv")) == 60


# The tables.


def test_subgroup_regret_is_the_worst_of_all_groups() -> None:
    rng = np.random.default_rng(0)
    tables = {name: rng.random((200, 10)) for name in LISTED}
    acts = {name: rng.integers(2, size=200) for name in LISTED}
    other = {name: rng.integers(3, size=200) for name in LISTED}
    worst = 0.0
    for name, table in tables.items():
        for a, b in product(range(2), range(3)):
            rows = (acts[name] == a) & (other[name] == b)
            if rows.sum() >= 20:
                worst = max(worst, table[rows, a].mean() - table[rows].mean(0).min())
    played: Any = {omniprediction.OURS: acts, "other": other}
    assert omniprediction.subgroup(acts, played, tables) == pytest.approx(worst)
    assert worst > 0


def test_a_split_has_no_row_twice() -> None:
    one, two = task("wind", 300, 0), task("wind", 300, 1)
    assert len(one.x) == len(one.y) == 300
    assert len(one.fresh_x) == 1461 - 300
    whole = [np.sort(np.concatenate([t.y, t.fresh_y])) for t in (one, two)]
    assert whole[0] == pytest.approx(whole[1])
    assert (one.y != two.y).any()
    assert one.shifted.mean() >= 0.25


def test_omniprediction_measures_every_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sklearn")
    fast = partial(OfflineOmnipredictor, trees=10)
    monkeypatch.setattr(omniprediction, "OfflineOmnipredictor", fast)
    table = pd.DataFrame(
        [row for seed in (0, 1) for row in omniprediction.one_run(("wine", 120, seed))]
    )
    assert set(table["method"]) == set(omniprediction.COLOURS)
    assert set(table["setting"]) == set(omniprediction.SETTINGS)
    silent = table["loss"].isna()
    assert set(table["method"][silent]) == {omniprediction.PER_LOSS}
    assert set(table["setting"][silent]) == {"later"}
    listed = omniprediction.against(table, "listed", "loss")
    assert listed.loc[("wine", 120), "constant"] > 10  # thousandths: a constant is far worse
    assert "standard error of the best one model for all: " in omniprediction.text(table)
    written = omniprediction.write(table, tmp_path)
    assert [path.name for path in written] == ["omniprediction.csv", "omniprediction.png"]
