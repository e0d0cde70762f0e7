"""``regretless fit`` and ``regretless predict``, and what they refuse."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from regretless.forecaster import OfflineOmnipredictor
from regretless.scenarios.cli import commands
from regretless.scenarios.reproduce import omniprediction
from regretless.scenarios.reproduce.omniprediction_tasks import (
    LAWS,
    LOSSES,
    TASKS,
    baselines,
    known_best,
    net,
    policies,
)

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
NEWSVENDOR = ["--utility", "newsvendor", "--rounds-kept", "30", "--out", "m.npz"]


def test_fit_then_predict(command: Command, days: pd.DataFrame, tmp_path: Path) -> None:
    status, out, err = command(*FIT, *NEWSVENDOR, "--utility", "ces", "--set", "ces.rho=0.5")
    assert (status, err) == (0, "")
    assert "96 rows fitted, 24 used to choose" in out
    status, printed, err = command("predict", "m.npz", "days.csv")
    assert (status, err) == (0, "")
    status, out, err = command("predict", "m.npz", "days.csv", "--out", "p.csv")
    assert (status, out, err) == (0, "written: p.csv\n", "")
    assert (tmp_path / "p.csv").read_text() == printed
    table = pd.read_csv(tmp_path / "p.csv")
    assert list(table) == ["sales", "newsvendor_0_action", "ces_0_action"]
    sunny = days["sun"] > 0.5
    assert table["sales"][~sunny].mean() < 22
    assert 28 < table["sales"][sunny].mean() < 50
    orders = table["newsvendor_0_action"]
    assert orders[~sunny].mean() < orders[sunny].mean()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["days.csv", "m.npz", "p.csv"]


def test_the_same_seed_writes_the_same_predictions(command: Command, days: pd.DataFrame) -> None:
    told = []
    for _ in range(2):
        command(*FIT, *NEWSVENDOR, "--seed", "3")
        told.append(command("predict", "m.npz", "days.csv")[1])
    assert told[0] == told[1]


def broken(**columns: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return the table with some columns changed."""
    return lambda frame: frame.assign(**columns)


def gap(frame: pd.DataFrame) -> pd.DataFrame:
    """Lose a value."""
    return frame.assign(sun=frame["sun"].mask(frame.index == 4))


BAD: dict[str, tuple[list[str], Callable[[pd.DataFrame], pd.DataFrame], str]] = {
    "missing value": (
        [*FIT, *NEWSVENDOR],
        gap,
        "'sun' has no value in data row 5 (line 6); fill it",
    ),
    "text": ([*FIT, *NEWSVENDOR], broken(sun="high"), "column 'sun' holds 'high' in data row 1"),
    "constant feature": (
        [*FIT[:4], "--features", "one", *FIT[6:], *NEWSVENDOR],
        broken(),
        "'one' is 1 in every row",
    ),
    "constant outcome": ([*FIT, *NEWSVENDOR], broken(sales=3.0), "'sales' is 3 in every row"),
    "no scale": ([*FIT[:6], *NEWSVENDOR], broken(), "add --scale sales="),
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
    "quantile": ([*FIT, *NEWSVENDOR, "--quantiles", "2"], broken(), "between 0 and 1"),
    "kappa": ([*FIT, *NEWSVENDOR, "--kappa", "2"], broken(), "kappa = 2.0"),
    "events": ([*FIT, *NEWSVENDOR, "--events", "some"], broken(), "events = 'some'"),
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
    own = OfflineOmnipredictor(list(LOSSES.values()), rounds_kept=2, theta=0.2)
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


def test_the_known_optimum_is_that_of_the_laws() -> None:
    rng, best = np.random.default_rng(0), known_best()
    draws = [rng.beta(*law, 20_000)[:, None] for law in LAWS]
    for name, loss in LOSSES.items():
        least = np.mean([loss.on(net()).losses(y).mean(0).min() for y in draws])
        assert best[name] == pytest.approx(least, abs=0.004)


def test_the_class_of_policies_is_as_it_says() -> None:
    rules = policies()
    assert len(rules) == 180
    assert len({(r.column, r.below, r.above) for r in rules}) == 180


def test_omniprediction_measures_every_method(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    table = pd.DataFrame(omniprediction.one_run(("cells", 40, 0)))
    methods = {m for m, _ in baselines(TASKS["cells"](40, 0))}
    assert set(table["method"]) == {omniprediction.OURS, omniprediction.TRAINED} | methods
    ours = table[table["method"] == omniprediction.OURS]
    assert (ours["excess"] <= ours["bound"]).all()
    assert table["bound"].notna().sum() == len(ours)
    assert (table["above_best"] >= -0.02).all()  # but for the noise of the test rows
    assert "not within" in omniprediction.text(table)
    written = omniprediction.write(table, tmp_path)
    assert [path.name for path in written] == ["omniprediction.csv", "omniprediction.png"]


def test_the_weather_is_split_without_overlap() -> None:
    task = TASKS["weather"](300, 0)
    assert len(task.x) == len(task.y) == 300
    assert len(task.fresh_x) == 1461 - 300
    whole = np.concatenate([task.y, task.fresh_y])
    other = TASKS["weather"](500, 1)
    assert np.sort(whole, axis=0) == pytest.approx(
        np.sort(np.concatenate([other.y, other.fresh_y]), axis=0)
    )
    assert np.isnan(list(task.best.values())).all()
