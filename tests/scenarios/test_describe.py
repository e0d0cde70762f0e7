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
from regretless.scenarios.starter import OrderCosts, starter
from regretless.scenarios.table_description import Description, described

ROLES = {  # index / outcomes / context
    "seattle-weather": "date / precipitation temp_max temp_min wind / month wet_yesterday",
    "bike-demand": " / bikers / hour workingday warmth",
    "factor-returns": "date / mtum qual size usmv vlue / up_yesterday volatility",
}
SHARES = [f"{i * 0.37 % 1:.3f}" for i in range(60)]  # a column that can be an outcome
StarterOf = Callable[[str, list[str]], tuple[dict[str, Any], str]]  # the fixture ``starter_of``


def play_starter(table: Description, folder: Path, rounds: int) -> MarketModel:
    """Write the starter of a table to ``own.toml`` in a folder, and play it."""
    (folder / "own.toml").write_text(starter(table, folder), encoding="utf-8")
    return play_to_end(load(str(folder / "own.toml"), rounds=rounds))


def describe_frame(frame: pd.DataFrame, folder: Path, **options: Any) -> Description:
    """Write a frame as a CSV, and describe it."""
    frame.to_csv(folder / "a.csv", index=False, **options)
    return described(folder / "a.csv")


def names_with_role(table: Description, role: str) -> str:
    """Return the names of a role's columns, with spaces between them."""
    return " ".join(column.name for column in table.named(role))


@pytest.mark.parametrize("name", ROLES)
def test_columns_of_bundled_tables_have_the_roles_that_a_reader_gives_them(name: str) -> None:
    table = described(DATA / f"{name}.csv")
    roles = [names_with_role(table, role) for role in ("index", "outcome", "context")]
    assert " / ".join(roles) == ROLES[name]


@pytest.mark.parametrize("name", ROLES)
def test_starters_of_bundled_tables_play(name: str, tmp_path: Path) -> None:
    table = described(DATA / f"{name}.csv")
    model = play_starter(table, tmp_path, rounds=20)
    assert model.agents_frame()["mean_loss"].between(0, 1).all()
    assert load(str(tmp_path / "own.toml")).spec.rounds == len(table.frame)


def test_a_season_is_found_where_there_is_one() -> None:
    seasons = {
        column.name: column.season
        for column in described(DATA / "bike-demand.csv").columns
        if column.role
    }
    assert seasons["bikers"] == 24
    assert seasons["hour"] == 24
    assert seasons.get("day") is None


def test_no_season_is_found_in_noise_and_in_a_random_walk(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=500)
    walk = rng.normal(size=500).cumsum()
    table = describe_frame(pd.DataFrame({"noise": noise, "walk": walk}), tmp_path)
    assert {column.season for column in table.columns if column.role} == {None}


SPREADSHEET = """\
Tag;Umsatz je Stück;Himmel;offen;leer;Nr
01.02.2024;12,5;klar;True;;1
02.02.2024;13,1;trüb;False;;2
03.02.2024;;klar;True;;3
04.02.2024;11,9;Regen;True;;4
"""


def test_a_table_as_a_spreadsheet_writes_it_is_understood(tmp_path: Path) -> None:
    text = SPREADSHEET
    for month in range(3, 6):
        for day in range(1, 29):
            text += f"{day:02}.{month:02}.2024;{10 + day},{month};klar;True;;{day + 30 * month}\n"
    (tmp_path / "Läden.csv").write_text(text, encoding="utf-8")
    table = described(tmp_path / "Läden.csv")
    assert table.form.separator == ";"
    assert table.form.decimal == ","
    assert [f"{column.kind} is {column.role}" for column in table.columns] == [
        "dates is index",
        "numbers is outcome",
        "words is context",
        "yes or no is context",
        "nothing is ",
        "whole numbers is ",
    ]
    assert play_starter(table, tmp_path, 30).rounds_frame()["Tag"].iloc[0] == "01.02.2024"


def test_gaps_days_before_months_and_percent_signs_are_played(tmp_path: Path) -> None:
    """The first row lacks a value, a weekend is left out, and names have spaces and signs."""
    days = pd.bdate_range("2024-01-01", periods=120).strftime("%d.%m.%Y")
    frame = pd.DataFrame({"Tag": days, "Auslastung in %": np.random.default_rng(0).random(120)})
    frame.loc[[0, 7], "Auslastung in %"] = np.nan
    table = describe_frame(frame, tmp_path, sep=";", decimal=",")
    assert table.columns[0].note == "a day apart, but for 23 steps of another length"
    rounds = play_starter(table, tmp_path, rounds=20).rounds_frame()
    spec = load(str(tmp_path / "own.toml")).spec
    assert (spec.rounds, spec.data.missing) == (118, "drop")
    assert str(table_files.calendar(rounds["Tag"])[0]) == "2024-01-02 00:00:00"


BAKERY = """\
Datum;Feiertag;Temperatur;verkauft;ausverkauft
"""


@pytest.fixture
def bakery(tmp_path: Path) -> Description:
    """Return a bakery's table: a column of holidays, a column of sold-out days, in German."""
    rng = np.random.default_rng(0)
    text = BAKERY
    for day, date in enumerate(pd.date_range("2024-03-01", periods=90).strftime("%d.%m.%Y")):
        holiday = {30: "Ostern", 31: "Ostern", 61: "Maifeiertag"}.get(day, "")
        sold = rng.integers(100, 200)
        all_sold = "ja" if sold > 180 else "nein"
        text += f"{date};{holiday};{-2 + 0.2 * day:.1f};{sold};{all_sold}\n".replace(".5;", ",5;")
    (tmp_path / "bakery.csv").write_text(text, encoding="utf-8")
    return described(tmp_path / "bakery.csv")


def test_an_empty_cell_of_a_column_of_holidays_is_a_value(bakery: Description) -> None:
    written = tomllib.loads(starter(bakery, bakery.file.parent))
    assert written["data"]["context"] == ["Feiertag"]
    assert written["data"]["codes"]["Feiertag"] == {"": 0, "Maifeiertag": 1, "Ostern": 2}
    assert written["rounds"] == 90
    assert "missing" not in written["data"]


def test_what_is_ordered_is_a_count_rather_than_a_temperature(bakery: Description) -> None:
    costs = OrderCosts(underage=2.0, overage=1.0)
    written = tomllib.loads(starter(bakery, bakery.file.parent, costs=costs))
    assert written["data"]["outcomes"] == ["verkauft"]


def test_words_are_no_outcome(bakery: Description) -> None:
    with pytest.raises(UserError, match="--outcome Feiertag: words, no numbers; give a column"):
        starter(bakery, bakery.file.parent, outcome="Feiertag")


def test_sold_out_days_may_be_told_in_another_language(bakery: Description) -> None:
    assert names_with_role(bakery, "censored") == "ausverkauft"
    costs = OrderCosts(underage=2.0, overage=1.0)
    written = tomllib.loads(starter(bakery, bakery.file.parent, costs=costs))
    written["data"]["censored"] = "ausverkauft"
    table = read_scenario(written, origin=bakery.file.parent).table
    assert table is not None
    assert table.is_censored is not None
    is_sold_out = bakery.frame["ausverkauft"] == "ja"
    assert table.is_censored[:, 0].tolist() == is_sold_out.tolist()


def test_codes_of_a_column_that_left_the_context_change_nothing(bakery: Description) -> None:
    costs = OrderCosts(underage=2.0, overage=1.0)
    written = tomllib.loads(starter(bakery, bakery.file.parent, costs=costs))
    written["data"]["context"] = []
    table = read_scenario(written, origin=bakery.file.parent).table
    assert table is not None
    assert len(table.outcomes) == 90


def test_thousands_are_told_by_the_fractions_of_another_column(tmp_path: Path) -> None:
    """1,100 alone may be 1.1; beside prices as 9.99 the comma stands between thousands."""
    frame = pd.DataFrame({"sold": [f"1,{100 + day}" for day in range(60)]})
    unclear = describe_frame(frame, tmp_path)
    assert unclear.columns[0].kind == "marked numbers"
    with pytest.raises(UserError, match=r"--outcome sold: '1,100' is 1100 or 1\.1: say which by"):
        starter(unclear, tmp_path, outcome="sold")
    frame["price"] = np.where(np.arange(60) % 2, 9.99, 12.49)
    table = describe_frame(frame, tmp_path)
    assert (table.columns[0].low, table.columns[0].high) == (1100.0, 1159.0)


@pytest.mark.parametrize(("frequency", "note"), [("MS", "a month apart"), ("h", "an hour apart")])
def test_it_is_said_how_far_dates_are_apart(frequency: str, note: str, tmp_path: Path) -> None:
    days = pd.date_range("2024-01-01", periods=30, freq=frequency)
    frame = pd.DataFrame({"when": days, "sold": np.random.default_rng(0).random(30)})
    assert describe_frame(frame, tmp_path).columns[0].note == note


WEATHER = str(DATA / "seattle-weather.csv")


def test_the_command_says_how_to_write_a_starter(run_command: RunCommand) -> None:
    printed = run_command("describe", WEATHER).out
    assert "--out my-seattle-weather.toml writes a scenario" in printed


@pytest.mark.usefixtures("working_folder")
def test_a_range_shows_the_half_of_a_number_above_a_thousand(run_command: RunCommand) -> None:
    prices = [1100.5, 1234.25, 9000.0] + [1101.0 + day for day in range(60)]
    pd.DataFrame({"price": prices}).to_csv("a.csv", index=False)
    printed = run_command("describe", "a.csv").out
    row = next(line for line in printed.splitlines() if line.startswith("price"))
    assert "1100.5" in row.split()
    assert "9000" in row.split()


@pytest.mark.usefixtures("working_folder")
def test_the_command_writes_a_starter_that_runs(run_command: RunCommand) -> None:
    printed = run_command("describe", WEATHER, "--out", "own.toml").out
    assert "regretless run own.toml" in printed
    assert run_command("run", "own.toml", "--rounds", 12, "--quiet", "--out", "o").status == 0
    assert len(pd.read_parquet("o/rounds.parquet")) == 12


@pytest.mark.usefixtures("working_folder")
def test_the_command_replaces_no_file(refusal_of: RefusalOf) -> None:
    Path("own.toml").write_text("mine", encoding="utf-8")
    assert "own.toml is there already" in refusal_of("describe", WEATHER, "--out", "own.toml")
    assert Path("own.toml").read_text(encoding="utf-8") == "mine"


def test_a_starter_in_a_folder_that_is_not_there_is_refused(refusal_of: RefusalOf) -> None:
    line = refusal_of("describe", WEATHER, "--out", "nofolder/own.toml")
    assert "there is no folder 'nofolder'; make it" in line


@pytest.mark.usefixtures("working_folder")
def test_the_command_refuses_a_file_that_is_not_there(refusal_of: RefusalOf) -> None:
    assert "data file 'nothing.csv' does not exist" in refusal_of("describe", "nothing.csv")


def test_marks_between_thousands_are_read_and_named(tmp_path: Path) -> None:
    rows = [f"{i / 10:.1f};{1 + i % 7}.2{i:02},5;{100 + i},0;a {i}.200,5\n" for i in range(40)]
    text = "".join(["x;marked;plain;words\n", *rows]).replace(";0.", ";0,")
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    _, marked, plain, word_column = described(tmp_path / "a.csv").columns
    assert (marked.kind, plain.kind, word_column.kind) == ("numbers", "whole numbers", "words")
    assert "'1.200,5' is 1200.5" in marked.note
    assert word_column.role == "index"


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
    with pytest.raises(UserError) as refusal:
        read_scenario(raw, origin=tmp_path)
    advised_keys = tomllib.loads(str(refusal.value).partition("; add ")[2])
    assert advised_keys == {"scale": {"rain fall": [3, 5], "wind": [10, 40]}}
    raw["data"] |= advised_keys
    play_to_end(read_scenario(raw, origin=tmp_path))


@pytest.fixture
def starter_of(
    working_folder: Path, run_command: RunCommand, monkeypatch: pytest.MonkeyPatch
) -> StarterOf:
    """Return a function that describes a table, by its head and rows, and plays its starter.

    It returns the starter, and what the command printed.
    """
    monkeypatch.setenv("COLUMNS", "200")

    def describe_and_play(head: str, rows: list[str]) -> tuple[dict[str, Any], str]:
        (working_folder / "a.csv").write_text("\n".join([head, *rows, ""]), encoding="utf-8")
        result = run_command("describe", "a.csv", "--out", "own.toml")
        assert (result.status, result.err) == (0, "")
        play_to_end(load("own.toml", rounds=4))
        return tomllib.loads(Path("own.toml").read_text(encoding="utf-8")), result.out

    return describe_and_play


@pytest.mark.parametrize(
    "names",
    [
        "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
        "Jan. Feb. Mar. Apr. May June July Aug. Sept. Oct. Nov. Dec.",
        "cold mild warm",
    ],
)
def test_weekdays_and_months_are_coded_in_their_order(starter_of: StarterOf, names: str) -> None:
    words = names.split()
    rows = [f"{words[(11 * i) % len(words)]},{share}" for i, share in enumerate(SHARES)]
    written, _ = starter_of("when,sold", rows)
    assert written["data"]["codes"] == {"when": {word: i for i, word in enumerate(words)}}


@pytest.mark.parametrize(("values", "edges"), [("012345", [1.5, 3.5]), ("799992", [8.0])])
def test_the_policy_is_cut_between_values_near_thirds_of_the_rows(
    starter_of: StarterOf, values: str, edges: list[float]
) -> None:
    rows = [f"{values[i % 6]},{share}" for i, share in enumerate(SHARES)]
    written, _ = starter_of("hour,sold", rows)
    assert written["policy"]["rule"]["edges"] == edges


@pytest.mark.parametrize(
    ("head", "n_columns", "named"),
    [
        ("sold,", 2, ["(column 2)"]),
        ('sold,"no\n\nte"', 2, ["(column 2)"]),
        (",sold,", 3, ["(column 1)", "(column 3)"]),
        (
            "odd,sold,odd",
            3,
            [
                "odd (column 1): another column has its name",
                "odd (column 3): another column has its name",
            ],
        ),
    ],
)
def test_columns_without_a_usable_name_are_left_out(
    starter_of: StarterOf, head: str, n_columns: int, named: list[str]
) -> None:
    written, printed = starter_of(head, [",".join([share] * n_columns) for share in SHARES])
    assert written["data"]["outcomes"] == ["sold"]
    for words in named:
        assert words in printed


def rows_with_an_odd_cell(cell: str, odd: list[float]) -> list[str]:
    """Return rows of a share and an odd number, where one number is this cell."""
    cells = [*map(str, odd)]
    cells[30] = cell
    return [f"{share},{odd_cell}" for share, odd_cell in zip(SHARES, cells, strict=True)]


WAVE = [i * 0.71 % 1 for i in range(len(SHARES))]
GROWING = [i + 0.5 for i in range(len(SHARES))]  # as an index


@pytest.mark.parametrize(
    ("cell", "outcomes"), [("1e308", ["sold"]), ("1e-320", ["sold", "odd"])], ids=["huge", "tiny"]
)
def test_numbers_at_the_ends_of_floats_are_numbers(
    starter_of: StarterOf, cell: str, outcomes: list[str]
) -> None:
    """And give no warning, which would be an error here."""
    written, printed = starter_of("sold,odd", rows_with_an_odd_cell(cell, WAVE))
    assert written["data"]["outcomes"] == outcomes
    assert "index" not in written["data"]
    assert "context" not in written["data"]
    assert "odd: numbers that are not finite" not in printed
    assert "words" not in printed


@pytest.mark.parametrize("cell", ["inf", "1e400"])
def test_a_column_with_what_is_not_finite_is_neither_outcome_nor_index(
    starter_of: StarterOf, cell: str
) -> None:
    written, printed = starter_of("sold,odd", rows_with_an_odd_cell(cell, GROWING))
    assert written["data"]["outcomes"] == ["sold"]
    assert "index" not in written["data"]
    assert "context" not in written["data"]
    assert "odd: numbers that are not finite" in printed
    assert "words" not in printed


@pytest.mark.parametrize("unit", [1e-90, 1e-13])
def test_the_scale_of_small_outcomes_is_as_small(starter_of: StarterOf, unit: float) -> None:
    written, _ = starter_of("sold", [repr(unit * float(share)) for share in SHARES])
    low, high = written["data"]["scale"]["sold"]
    assert 0 == low < 0.9 * unit < high < 1.1 * unit


def test_the_scale_of_outcomes_that_are_nearly_all_equal_reaches_the_one_that_is_not(
    starter_of: StarterOf,
) -> None:
    rows = ["0.0"] * 200
    rows[77] = "0.5"
    written, _ = starter_of("sold", rows)
    assert written["data"]["scale"]["sold"] == [0.0, 0.5]


NO_OUTCOMES = {
    "'x': a counter: it only grows or only falls; 'y': whole numbers, 2 di": (
        "x,y",
        [f"{i},{i % 2}" for i in range(60)],  # y repeats itself, as a calendar does
    ),
    "'x': no number above 1e-100: give them in a smaller unit": (
        "x",
        [f"1{share[1:]}e-200" for share in SHARES],
    ),
    "'x (column 1)': another column has its name: rename one": (
        "x,x",
        [f"1{share[1:]},1{share[1:]}" for share in SHARES],
    ),
    "'d': always the same; and 2 more": ("a,b,c,d,e,f", ["u,u,u,u,u,u"] * 60),
}


@pytest.mark.parametrize("reason", NO_OUTCOMES)
def test_where_nothing_can_be_an_outcome_each_column_has_its_reason(
    working_folder: Path, refusal_of: RefusalOf, reason: str
) -> None:
    head, rows = NO_OUTCOMES[reason]
    (working_folder / "a.csv").write_text("\n".join([head, *rows, ""]), encoding="utf-8")
    line = refusal_of("describe", "a.csv", "--out", "own.toml")
    assert line.startswith("a.csv has no column that can be an outcome; ")
    assert reason in line
    assert not Path("own.toml").exists()
