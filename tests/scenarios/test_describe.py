"""``regretless describe``: what columns can be, and a starter scenario that plays as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless.market.core.errors import UserError
from regretless.scenarios import load
from regretless.scenarios.cli import commands
from regretless.scenarios.config.files import DATA
from regretless.scenarios.describe.columns import described
from regretless.scenarios.describe.starter import starter
from regretless.scenarios.report.write import write_report
from regretless.scenarios.run import Options, run

ROLES = {
    "seattle-weather": {
        "index": ["date"],
        "outcome": ["precipitation", "temp_max", "temp_min", "wind"],
        "context": ["month", "wet_yesterday"],
    },
    "bike-demand": {
        "index": [],
        "outcome": ["bikers"],
        "context": ["hour", "workingday", "warmth"],
    },
    "factor-returns": {
        "index": ["date"],
        "outcome": ["mtum", "qual", "size", "usmv", "vlue"],
        "context": ["up_yesterday", "volatility"],
    },
}


@pytest.mark.parametrize("name", ROLES)
def test_bundled_tables_are_understood_and_their_starters_play(name: str, tmp_path: Path) -> None:
    table = described(DATA / f"{name}.csv")
    assert {role: [c.name for c in table.named(role)] for role in ROLES[name]} == ROLES[name]
    file = tmp_path / "own.toml"
    file.write_text(starter(table, tmp_path), encoding="utf-8")
    model = load(str(file), rounds=20).build()
    model.run()
    assert load(str(file)).spec.rounds == len(table.frame)
    assert model.agents_frame()["mean_loss"].between(0, 1).all()


def test_seasons_are_found_where_there_are_any() -> None:
    table = {column.name: column for column in described(DATA / "bike-demand.csv").columns}
    assert (table["bikers"].season, table["hour"].season) == (24, 24)
    assert table["day"].season is None or table["day"].role == ""


def test_noise_and_walks_have_no_season(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"noise": rng.normal(size=500), "walk": rng.normal(size=500).cumsum()})
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert [column.season for column in described(tmp_path / "a.csv").columns] == [None, None]


WRITTEN = """\
Tag;Umsatz je Stück;Himmel;offen;leer;Nr
01.02.2024;12,5;klar;True;;1
02.02.2024;13,1;trüb;False;;2
03.02.2024;;klar;True;;3
04.02.2024;11,9;Regen;True;;4
"""


def test_a_table_as_a_spreadsheet_writes_it(tmp_path: Path) -> None:
    rows = (
        f"{day:02}.{month:02}.2024;{10 + day},{month};klar;True;;{day + 30 * month}\n"
        for month in range(3, 6)
        for day in range(1, 29)
    )
    (tmp_path / "Läden.csv").write_text(WRITTEN + "".join(rows), encoding="utf-8")
    table = described(tmp_path / "Läden.csv")
    assert (table.form.separator, table.form.decimal) == (";", ",")
    kinds = {column.name: (column.kind, column.role) for column in table.columns}
    assert kinds == {
        "Tag": ("dates", "index"),
        "Umsatz je Stück": ("numbers", "outcome"),
        "Himmel": ("words", "context"),
        "offen": ("yes or no", "context"),
        "leer": ("nothing", ""),
        "Nr": ("whole numbers", ""),
    }
    file = tmp_path / "own.toml"
    file.write_text(starter(table, tmp_path), encoding="utf-8")
    model = load(str(file)).build()
    model.run(30)
    assert model.rounds_frame()["Tag"].iloc[0] == "01.02.2024"


def test_gaps_days_before_months_and_percent_signs(tmp_path: Path) -> None:
    """The first row lacks a value, a weekend is left out, and names have spaces and signs."""
    days = pd.bdate_range("2024-01-01", periods=120)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"Tag": days.strftime("%d.%m.%Y"), "Auslastung in %": rng.random(120)})
    frame.loc[[0, 7], "Auslastung in %"] = np.nan
    frame.to_csv(tmp_path / "voll.csv", sep=";", decimal=",", index=False)
    table = described(tmp_path / "voll.csv")
    assert table.columns[0].note == "a day apart, but for 23 steps of another length"
    text = starter(table, tmp_path)
    assert "rounds = 118" in text
    assert 'missing = "drop"' in text
    (tmp_path / "own.toml").write_text(text, encoding="utf-8")
    scenario = load(str(tmp_path / "own.toml"))
    run(scenario, Options(tmp_path / "out"))
    page = write_report(tmp_path / "out").read_text(encoding="utf-8")
    assert '"2024-01-02T00:00:00"' in page  # as an axis of time has it


@pytest.mark.parametrize(
    ("freq", "told"),
    [
        ("MS", "a month apart"),
        ("h", "an hour apart"),
    ],
)
def test_dates_are_so_far_apart(tmp_path: Path, freq: str, told: str) -> None:
    days = pd.date_range("2024-01-01", periods=30, freq=freq)
    frame = pd.DataFrame({"when": days, "sold": np.random.default_rng(0).random(30)})
    frame.to_csv(tmp_path / "sold.csv", index=False)
    assert described(tmp_path / "sold.csv").columns[0].note == told


def test_eighty_columns_break_names_and_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    name = "money_that_was_spent_on_education_and_on_health"
    sold = 1e6 + np.arange(40)
    pd.DataFrame({name: sold}).to_csv(tmp_path / "sold.csv", index=False)
    assert command("describe", str(tmp_path / "sold.csv")) == 0
    told = capsys.readouterr().out
    assert "…" not in told
    assert re.search(r"1,000,000 +1,000,039", told)
    assert "missing" not in told


def command(*words: str) -> int:
    sys.argv[:] = ["regretless", *words]
    with pytest.raises(SystemExit) as left:
        commands.main()
    return int(left.value.code or 0)


def test_the_command_writes_a_file_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [])
    data = str(DATA / "seattle-weather.csv")
    assert command("describe", data) == 0
    assert "--out my-seattle-weather.toml writes a scenario" in capsys.readouterr().out
    assert command("describe", data, "--out", "own.toml") == 0
    assert "regretless run own.toml" in capsys.readouterr().out
    assert command("run", "own.toml", "--rounds", "12", "--quiet", "--out", "o") == 0
    assert len(pd.read_parquet("o/rounds.parquet")) == 12
    before = Path("own.toml").read_bytes()
    assert command("describe", data, "--out", "own.toml") == 2
    assert "own.toml is there already" in capsys.readouterr().err
    assert Path("own.toml").read_bytes() == before
    assert command("describe", "nothing.csv") == 2
    assert "data file 'nothing.csv' does not exist" in capsys.readouterr().err


def test_marks_between_thousands_are_named(tmp_path: Path) -> None:
    rows = [f"{i / 10:.1f};{1 + i % 7}.2{i:02},5;{100 + i},0;a {i}.200,5\n" for i in range(40)]
    text = "".join(["x;marked;plain;words\n", *rows]).replace(";0.", ";0,")
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    columns = {column.name: column for column in described(tmp_path / "a.csv").columns}
    kinds = [columns[name].kind for name in ("marked", "plain", "words")]
    assert kinds == ["marked numbers", "whole numbers", "words"]
    assert "write them without it" in columns["marked"].note
    assert columns["words"].role == "index"


def test_a_table_without_an_outcome_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,a\n2,b\n1,a\n", encoding="utf-8")
    with pytest.raises(UserError, match="no column that can be an outcome"):
        starter(described(tmp_path / "a.csv"), tmp_path)


CELLS = st.text(alphabet='0123456789.,-/:;"\t naeINTrue%äfls+', max_size=8)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=1, max_size=12))
def test_strange_tables_are_described_or_refused(
    tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]
) -> None:
    file = tmp_path_factory.mktemp("strange") / "a.csv"
    file.write_text("\n".join(",".join(row) for row in rows), encoding="utf-8")
    with suppress(UserError):
        starter(described(file), file.parent)


def test_a_missing_scale_is_told_for_all_outcomes_in_toml_that_can_be_pasted(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.csv").write_text("rain fall,wind,z\n3,10,0.5\n5,40,0.2\n", encoding="utf-8")
    text = """
name = "a"
rounds = 2
data = { file = "a.csv", outcomes = ["rain fall", "wind", "z"] }
cohort = [{ name = "c", utility = "linear", actions = 2 }]
"""
    (tmp_path / "a.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as error:
        load(str(tmp_path / "a.toml"))
    _, _, cure = str(error.value).partition("; add ")
    assert tomllib.loads(cure) == {"scale": {"rain fall": [3, 5], "wind": [10, 40]}}
    mended = text.replace('"z"] }', f'"z"], {cure} }}')
    (tmp_path / "a.toml").write_text(mended, encoding="utf-8")
    load(str(tmp_path / "a.toml")).build().run()


def starter_by_command(folder: Path, head: str, rows: list[str]) -> dict[str, Any]:
    """Describe a small table, run the starter for a few rounds, and return the starter."""
    (folder / "a.csv").write_text("\n".join([head, *rows, ""]), encoding="utf-8")
    own, out = folder / "own.toml", folder / "out"
    assert command("describe", str(folder / "a.csv"), "--out", str(own)) == 0
    assert command("run", str(own), "--rounds", "4", "--quiet", "--out", str(out)) == 0
    return tomllib.loads(own.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "names",
    [
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
        "Jan. Feb. Mar. Apr. May June July Aug. Sept. Oct. Nov. Dec.",
        "cold mild warm",
    ],
)
def test_weekdays_and_months_are_coded_in_their_order(tmp_path: Path, names: str) -> None:
    words = names.split()
    rows = [f"{words[(11 * i) % len(words)]},{i * 0.37 % 1:.3f}" for i in range(60)]
    written = starter_by_command(tmp_path, "when,sold", rows)
    assert written["data"]["codes"] == {"when": {word: i for i, word in enumerate(words)}}


@pytest.mark.parametrize(
    ("values", "edges"),
    [([0, 1, 2, 3, 4, 5], [1.5, 3.5]), ([7, 9, 9, 9, 9, 2], [8.0])],
)
def test_the_policy_is_cut_between_values_near_thirds_of_the_rows(
    tmp_path: Path, values: list[int], edges: list[float]
) -> None:
    rows = [f"{values[i % len(values)]},{i * 0.37 % 1:.3f}" for i in range(60)]
    written = starter_by_command(tmp_path, "hour,sold", rows)
    assert written["policy"]["rule"]["edges"] == edges


@pytest.mark.parametrize("head", ["sold,", 'sold,"no\n\nte"', ",sold,"])
def test_columns_without_a_usable_name_are_left_out(
    tmp_path: Path, head: str, capsys: pytest.CaptureFixture[str]
) -> None:
    width = head.count(",") + 1
    rows = [",".join([f"{i * 0.37 % 1:.3f}"] * width) for i in range(60)]
    written = starter_by_command(tmp_path, head, rows)
    assert written["data"]["outcomes"] == ["sold"]
    assert "(column" in capsys.readouterr().out


@pytest.mark.parametrize("cell", ["1e308", "1e-320"])
def test_numbers_at_the_ends_of_floats_give_no_warning(tmp_path: Path, cell: str) -> None:
    rows = [f"{i * 0.37 % 1:.3f},{cell if i == 30 else i * 0.71 % 1}" for i in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["sold,odd", *rows, ""]), encoding="utf-8")
    words = [sys.executable, "-m", "regretless", "describe", "a.csv", "--out", "own.toml"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    taken = tomllib.loads((tmp_path / "own.toml").read_text())["data"]["outcomes"]
    assert taken == (["sold"] if "308" in cell else ["sold", "odd"])
