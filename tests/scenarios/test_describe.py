"""``regretless describe``: what columns can be, and a starter scenario that plays as it stands."""

import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command_results import RefusalOf, RunCommand
from hypothesis import given, settings
from hypothesis import strategies as st
from small_scenarios import cohort_table, play_to_end, read_scenario

from regretless.market.core.errors import UserError
from regretless.market.model import MarketModel
from regretless.scenarios import load, table_files
from regretless.scenarios.config.files import DATA
from regretless.scenarios.describe import Description, described, starter

ROLES = {  # index, outcome, context
    "seattle-weather": "date / precipitation temp_max temp_min wind / month wet_yesterday",
    "bike-demand": " / bikers / hour workingday warmth",
    "factor-returns": "date / mtum qual size usmv vlue / up_yesterday volatility",
}
WHOLE = [f"{i * 0.37 % 1:.3f}" for i in range(60)]
Starter = Callable[[str, list[str]], tuple[dict[str, Any], str]]


def started(table: Description, folder: Path, rounds: int) -> MarketModel:
    """Write the starter of a table, and play it."""
    (folder / "own.toml").write_text(starter(table, folder), encoding="utf-8")
    return play_to_end(load(str(folder / "own.toml"), rounds=rounds))


@pytest.mark.parametrize("name", ROLES)
def test_bundled_tables_are_understood_and_their_starters_play(name: str, tmp_path: Path) -> None:
    table = described(DATA / f"{name}.csv")
    roles = (table.named(role) for role in ("index", "outcome", "context"))
    assert " / ".join(" ".join(column.name for column in own) for own in roles) == ROLES[name]
    assert started(table, tmp_path, 20).agents_frame()["mean_loss"].between(0, 1).all()
    assert load(str(tmp_path / "own.toml")).spec.rounds == len(table.frame)


def test_seasons_are_found_where_there_are_any(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"noise": rng.normal(size=500), "walk": rng.normal(size=500).cumsum()})
    frame.to_csv(tmp_path / "a.csv", index=False)
    bikes, chance = described(DATA / "bike-demand.csv"), described(tmp_path / "a.csv")
    seasons = {c.name: c.season for c in (*bikes.columns, *chance.columns) if c.role}
    assert [seasons[name] for name in ("bikers", "hour")] == [24, 24]
    assert [seasons.get(name) for name in ("day", "noise", "walk")] == [None] * 3


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
    assert [f"{column.kind} is {column.role}" for column in table.columns] == [
        *("dates is index", "numbers is outcome", "words is context"),
        *("yes or no is context", "nothing is ", "whole numbers is "),
    ]
    assert started(table, tmp_path, 30).rounds_frame()["Tag"].iloc[0] == "01.02.2024"


def test_gaps_days_before_months_and_percent_signs(tmp_path: Path) -> None:
    """The first row lacks a value, a weekend is left out, and names have spaces and signs."""
    days = pd.bdate_range("2024-01-01", periods=120).strftime("%d.%m.%Y")
    frame = pd.DataFrame({"Tag": days, "Auslastung in %": np.random.default_rng(0).random(120)})
    frame.loc[[0, 7], "Auslastung in %"] = np.nan
    frame.to_csv(tmp_path / "voll.csv", sep=";", decimal=",", index=False)
    table = described(tmp_path / "voll.csv")
    assert table.columns[0].note == "a day apart, but for 23 steps of another length"
    rounds = started(table, tmp_path, 20).rounds_frame()
    spec = load(str(tmp_path / "own.toml")).spec
    assert (spec.rounds, spec.data.missing) == (118, "drop")
    assert str(table_files.calendar(rounds["Tag"])[0]) == "2024-01-02 00:00:00"


def test_dates_are_so_far_apart(tmp_path: Path) -> None:
    for freq, told in ("MS", "a month apart"), ("h", "an hour apart"):
        days = pd.date_range("2024-01-01", periods=30, freq=freq)
        frame = pd.DataFrame({"when": days, "sold": np.random.default_rng(0).random(30)})
        frame.to_csv(tmp_path / "sold.csv", index=False)
        assert described(tmp_path / "sold.csv").columns[0].note == told


@pytest.mark.usefixtures("working_folder")
def test_the_command_writes_a_file_that_runs(
    run_command: RunCommand, refusal_of: RefusalOf
) -> None:
    data = str(DATA / "seattle-weather.csv")
    assert "--out my-seattle-weather.toml writes a scenario" in run_command("describe", data).out
    assert "regretless run own.toml" in run_command("describe", data, "--out", "own.toml").out
    assert run_command("run", "own.toml", "--rounds", 12, "--quiet", "--out", "o").status == 0
    assert len(pd.read_parquet("o/rounds.parquet")) == 12
    before = Path("own.toml").read_bytes()
    assert "own.toml is there already" in refusal_of("describe", data, "--out", "own.toml")
    assert Path("own.toml").read_bytes() == before
    assert "data file 'nothing.csv' does not exist" in refusal_of("describe", "nothing.csv")


def test_marks_between_thousands_are_named(tmp_path: Path) -> None:
    rows = [f"{i / 10:.1f};{1 + i % 7}.2{i:02},5;{100 + i},0;a {i}.200,5\n" for i in range(40)]
    text = "".join(["x;marked;plain;words\n", *rows]).replace(";0.", ";0,")
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    _, marked, plain, words = described(tmp_path / "a.csv").columns
    assert (marked.kind, plain.kind, words.kind) == ("marked numbers", "whole numbers", "words")
    assert "write them without it" in marked.note
    assert words.role == "index"


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


def test_missing_scales_are_told_for_all_outcomes_in_toml_to_be_pasted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("rain fall,wind,z\n3,10,0.5\n5,40,0.2\n", encoding="utf-8")
    raw = {"name": "a", "rounds": 2, "cohort": [cohort_table("c", 1)]}
    raw["data"] = {"file": "a.csv", "outcomes": ["rain fall", "wind", "z"]}
    with pytest.raises(UserError) as error:
        read_scenario(raw, origin=tmp_path)
    cure = tomllib.loads(str(error.value).partition("; add ")[2])
    assert cure == {"scale": {"rain fall": [3, 5], "wind": [10, 40]}}
    raw["data"] |= cure
    play_to_end(read_scenario(raw, origin=tmp_path))


@pytest.fixture
def begun(
    working_folder: Path, run_command: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> Starter:
    """Describe a small table and play the starter for a few rounds; the file, what is printed."""
    monkeypatch.setenv("COLUMNS", "200")

    def starter_of(head: str, rows: list[str]) -> tuple[dict[str, Any], str]:
        (working_folder / "a.csv").write_text("\n".join([head, *rows, ""]), encoding="utf-8")
        Path("own.toml").unlink(missing_ok=True)
        told = run_command("describe", "a.csv", "--out", "own.toml")
        assert (told.status, told.err) == (0, "")
        play_to_end(load("own.toml", rounds=4))
        return tomllib.loads(Path("own.toml").read_text(encoding="utf-8")), told.out

    return starter_of


def test_weekdays_and_months_are_coded_in_their_order(begun: Starter) -> None:
    for names in (
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
        "Jan. Feb. Mar. Apr. May June July Aug. Sept. Oct. Nov. Dec.",
        "cold mild warm",
    ):
        words = names.split()
        rows = [f"{words[(11 * i) % len(words)]},{one}" for i, one in enumerate(WHOLE)]
        written, _ = begun("when,sold", rows)
        assert written["data"]["codes"] == {"when": {word: i for i, word in enumerate(words)}}


@pytest.mark.parametrize(("values", "edges"), [("012345", [1.5, 3.5]), ("799992", [8.0])])
def test_the_policy_is_cut_between_values_near_thirds_of_the_rows(
    begun: Starter, values: str, edges: list[float]
) -> None:
    written, _ = begun("hour,sold", [f"{values[i % 6]},{one}" for i, one in enumerate(WHOLE)])
    assert written["policy"]["rule"]["edges"] == edges


def test_columns_without_a_usable_name_are_left_out(begun: Starter) -> None:
    for head, told in (
        ("sold,", ["(column 2)"]),
        ('sold,"no\n\nte"', ["(column 2)"]),
        (",sold,", ["(column 1)", "(column 3)"]),
        ("odd,sold,odd", [f"odd (column {i}): another column has its name" for i in (1, 3)]),
    ):
        written, printed = begun(head, [",".join([one] * (head.count(",") + 1)) for one in WHOLE])
        assert written["data"]["outcomes"] == ["sold"]
        assert [line for line in told if line not in printed] == []


@pytest.mark.parametrize("cell", ["1e308", "1e-320", "inf", "1e400"])
def test_numbers_at_the_ends_of_floats_are_numbers(begun: Starter, cell: str) -> None:
    """And give no warning, which would be an error here; what is not finite is no outcome."""
    endless = cell in {"inf", "1e400"}
    others = [i + 0.5 if endless else i * 0.71 % 1 for i in range(len(WHOLE))]  # as an index grows
    rows = [f"{one},{cell if i == 30 else others[i]}" for i, one in enumerate(WHOLE)]
    written, printed = begun("sold,odd", rows)
    data = written["data"]
    assert data["outcomes"] == (["sold", "odd"] if cell == "1e-320" else ["sold"])
    assert ("index" in data, "context" in data) == (False, False)
    assert ("odd: numbers that are not finite" in printed) == endless
    assert "words" not in printed


def test_outcomes_that_are_small_or_nearly_all_equal_fill_their_scale(begun: Starter) -> None:
    for unit in (1e-90, 1e-13):
        written, _ = begun("sold", [repr(unit * float(one)) for one in WHOLE])
        low, high = written["data"]["scale"]["sold"]
        assert 0 == low < 0.9 * unit < high < 1.1 * unit
    rows = [f"{0.5 if i == 77 else 0.0}" for i in range(200)]
    assert begun("sold", rows)[0]["data"]["scale"]["sold"] == [0.0, 0.5]


def test_where_nothing_can_be_an_outcome_each_column_has_its_reason(
    working_folder: Path, refusal_of: RefusalOf
) -> None:
    for head, row, reason in (
        ("x,y", "{i},{j}", "'x': a counter: it only grows or only falls; 'y': whole numbers, 2 di"),
        ("x", "{one}e-200", "'x': no number above 1e-100: give them in a smaller unit"),
        ("x,x", "{one},{one}", "'x (column 1)': another column has its name: rename one"),
        ("a,b,c,d,e,f", "u,u,u,u,u,u", "'d': always the same; and 2 more"),
    ):
        rows = [row.format(i=i, j=i % 2, one=f"1{one[1:]}") for i, one in enumerate(WHOLE)]
        (working_folder / "a.csv").write_text("\n".join([head, *rows, ""]), encoding="utf-8")
        line = refusal_of("describe", "a.csv", "--out", "own.toml")
        assert line.startswith("a.csv has no column that can be an outcome; ")
        assert reason in line
        assert not Path("own.toml").exists()
