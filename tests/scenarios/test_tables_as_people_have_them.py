"""Tables as spreadsheets, offices and packages write them: described, played or refused."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command_results import RefusalOf, RunCommand
from small_scenarios import cohort_table, play_to_end, read_scenario

from regretless.market.core.errors import UserError
from regretless.scenarios import load
from regretless.scenarios.assembly.data import Table, read_table
from regretless.scenarios.assembly.world import read_edges
from regretless.scenarios.config.data import DataSpec
from regretless.scenarios.config.files import check_values
from regretless.scenarios.starter import starter
from regretless.scenarios.table_description import Description, described

DAYS = pd.date_range("2024-01-01", periods=60).strftime("%Y-%m-%d")
WAVE = np.round(900 + 700 * np.sin(np.arange(60) / 5)).astype(int)


def write(folder: Path, text: str, name: str = "t.csv") -> Path:
    """Write a text file, and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def read(path: Path, **keys: Any) -> Table:
    """Read column y of a table, or others."""
    return read_table(
        DataSpec(file=str(path), **{"outcomes": ["y"], "scale": {"y": [0, 2000]}} | keys)
    )


def outcomes_of(table: Table) -> list[float]:
    """Return the outcomes of a table with the scale [0, 2000], in the units of its file."""
    return np.round(2000 * table.outcomes[:, 0], 9).tolist()


def refusal(path: Path, **keys: Any) -> str:
    """Return the line in which a table is refused."""
    with pytest.raises(UserError) as error:
        read(path, **keys)
    return str(error.value)


def play_starter(table: Description, folder: Path) -> Any:
    """Play the starter of a table to its end, and return what its file says of the data."""
    (folder / "own.toml").write_text(starter(table, folder), encoding="utf-8")
    scenario = load(str(folder / "own.toml"), rounds=20)
    play_to_end(scenario)
    return scenario.spec.data


def test_the_starter_of_two_costs_has_one_newsvendor(
    tmp_path: Path, run_command: RunCommand
) -> None:
    rows = [f"{day},{value},{value % 7}" for day, value in zip(DAYS, WAVE, strict=True)]
    table = write(tmp_path, "\n".join(["day,sold,returned", *rows]))
    scenario = tmp_path / "shop.toml"
    costs = ["--underage", "4", "--overage", "1", "--currency", "EUR"]
    run_command("describe", str(table), "--out", str(scenario), *costs, "--outcome", "returned")
    spec = load(str(scenario)).spec
    (stockist,) = spec.cohort
    assert spec.data is not None
    assert spec.data.outcomes == ["returned"]
    assert spec.data.context == []
    assert stockist.utility == "newsvendor"
    assert stockist.parameters == {"underage": 4.0, "overage": 1.0}
    assert stockist.currency == "EUR"
    assert play_to_end(load(str(scenario), rounds=20)).played == 20


@pytest.mark.parametrize(
    ("options", "cure"),
    [
        (["--underage", "4"], "add --overage"),
        (["--underage", "0", "--overage", "0"], "give one above 0"),
        (["--underage", "-4", "--overage", "1"], "give a number of at least 0"),
        (["--currency", "EUR"], "add --underage and --overage"),
        (["--outcome", "day"], "give a column of numbers that differ"),
    ],
)
def test_costs_and_outcomes_that_cannot_be_meant_are_refused(
    options: list[str], cure: str, tmp_path: Path, refusal_of: RefusalOf
) -> None:
    table = write(tmp_path, "\n".join(["day,sold", *map("{},{}".format, DAYS, WAVE)]))
    scenario = tmp_path / "shop.toml"
    assert cure in refusal_of("describe", str(table), "--out", str(scenario), *options)
    assert not scenario.exists()


# Text that is a number.


def test_thousands_marks_are_described_and_played(tmp_path: Path) -> None:
    cells = [f'{day},"{value:,}"' for day, value in zip(DAYS, WAVE, strict=True)]
    table = described(write(tmp_path, "\n".join(["day,visitors", *cells])))
    visitors = table.columns[1]
    assert (visitors.low, visitors.high) == (WAVE.min(), WAVE.max())
    assert play_starter(table, tmp_path).thousands == ","


GERMAN_TABLE = "\n".join(
    [
        "Tag;Absatz;Preis",
        *[
            f"{day};{value},5;{value % 9 + 1},37{value % 7}"
            for day, value in zip(DAYS, WAVE, strict=True)
        ],
    ]
)


def test_a_table_with_semicolons_and_decimal_commas_is_said_to_be_read_so_and_played(
    tmp_path: Path, run_command: RunCommand
) -> None:
    table = write(tmp_path, GERMAN_TABLE)
    starter_file = tmp_path / "absatz.toml"
    printed = run_command("describe", str(table), "--out", str(starter_file)).out
    told = " ".join(printed.split())
    assert "Columns are separated by ';'" in told
    assert f"'{WAVE[0]},5' in 'Absatz' is {WAVE[0]}.5." in told
    assert '[data] says so: separator = ";", decimal = ",".' in told
    data = load(str(starter_file)).spec.data
    assert data is not None
    assert (data.separator, data.outcomes) == (";", ["Absatz", "Preis"])


def test_the_user_says_that_a_comma_is_a_decimal_comma(
    tmp_path: Path, run_command: RunCommand
) -> None:
    rows = [f"{day};{value % 9 + 1},37{value % 7}" for day, value in zip(DAYS, WAVE, strict=True)]
    table = write(tmp_path, "\n".join(["Tag;Preis", *rows]))
    doubtful = " ".join(run_command("describe", str(table)).out.split())
    assert "say which by --thousands=, or --decimal=," in doubtful
    starter_file = tmp_path / "preis.toml"
    words = ("--decimal=,", "--outcome", "Preis", "--out", str(starter_file))
    assert run_command("describe", str(table), *words).status == 0
    scenario = load(str(starter_file), rounds=20)
    assert scenario.spec.data is not None
    assert scenario.spec.data.decimal == ","
    assert scenario.spec.data.scale["Preis"][1] < 11
    play_to_end(scenario)


def test_the_user_says_that_a_point_does_not_stand_between_thousands(
    tmp_path: Path, run_command: RunCommand
) -> None:
    rows = [f"{day};1.{100 + value // 4}" for day, value in zip(DAYS, WAVE, strict=True)]
    table = write(tmp_path, "\n".join(["Tag;Menge", *rows]))
    doubtful = " ".join(run_command("describe", str(table)).out.split())
    assert 'add --thousands=., or thousands = "." to [data]' in doubtful
    certain = run_command("describe", str(table), "--thousands=none", "--out", f"{tmp_path}/m.toml")
    assert "is read as" not in certain.out
    data = load(str(tmp_path / "m.toml")).spec.data
    assert data is not None
    assert data.thousands == "none"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--decimal=x"], "--decimal='x' is no such mark; give one of '.', ','"),
        (["--thousands=_"], "--thousands='_' is no such mark; give one of"),
        (["--decimal=,", "--thousands=,"], "--thousands=, is the decimal mark, too"),
    ],
)
def test_a_mark_that_numbers_do_not_have_is_refused(
    options: list[str], complaint: str, tmp_path: Path, refusal_of: RefusalOf
) -> None:
    assert complaint in refusal_of("describe", write(tmp_path, GERMAN_TABLE), *options)


def test_points_between_thousands_are_described_and_played(tmp_path: Path) -> None:
    cells = [f"{day};{value:,}".replace(",", ".") for day, value in zip(DAYS, WAVE, strict=True)]
    table = described(write(tmp_path, "\n".join(["tag;besucher", *cells])))
    assert table.columns[1].high == WAVE.max()
    data = play_starter(table, tmp_path)
    assert (data.thousands, data.decimal) == (".", ",")


GROUPED = "day;y\n1;900\n2;1.039\n3;1.172\n4;1.295\n"


def test_a_run_does_not_take_grouped_numbers_for_decimal_ones(tmp_path: Path) -> None:
    line = refusal(write(tmp_path, GROUPED), separator=";")
    assert "'1.039' beside '900': does '.' stand between thousands? if so, add thousands" in line
    assert line.endswith('to [data], else thousands = "none"')


def test_what_stands_between_thousands_can_be_said(tmp_path: Path) -> None:
    path = write(tmp_path, GROUPED)
    grouped = read(path, separator=";", thousands=".")
    assert outcomes_of(grouped) == [900, 1039, 1172, 1295]
    decimal = read(path, separator=";", thousands="none")
    assert outcomes_of(decimal) == [900, 1.039, 1.172, 1.295]


def test_numbers_that_all_look_grouped_are_played_with_a_note(tmp_path: Path) -> None:
    table = read(write(tmp_path, "y\n1.039\n1.172\n"))
    read_as = "column 'y': '1.039' was read as 1.039"
    cure = 'if the point stands between thousands, add thousands = "." to [data].'
    assert table.notes == (f"{read_as}; {cure}",)


@pytest.mark.parametrize("name", ["mixed.csv", "mixed.parquet"])
def test_decimal_commas_beside_points_are_read_by_column(name: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "day": DAYS,
            "price": [f"{value / 100:.2f}".replace(".", ",") for value in WAVE],
            "latitude": [f"{52 + value / 1e4:.4f}" for value in WAVE],
        }
    )
    path = tmp_path / name
    if name.endswith("csv"):
        frame.to_csv(path, sep=";", index=False)
    else:
        pq.write_table(pa.Table.from_pandas(frame), path)
    table = described(path)
    assert table.columns[1].low == WAVE.min() / 100
    assert table.columns[2].low == 52 + WAVE.min() / 1e4
    assert play_starter(table, tmp_path).decimal == {"price": ","}


def test_a_sign_that_all_values_carry_is_their_unit(tmp_path: Path) -> None:
    cells = [f"{day},{value / 16:.1f}%" for day, value in zip(DAYS, WAVE, strict=True)]
    table = described(write(tmp_path, "\n".join(["day,load", *cells])))
    assert table.columns[1].unit == "%"
    assert play_starter(table, tmp_path).units == {"load": "%"}


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["5%", "0.07"], "give all values of the column in '%', or none"),
        (["5", "(7)"], "write one below zero with a minus, not in parentheses"),
        (["5", "0x1A"], "write hexadecimal ones with decimal digits"),
        (["1,039", "2,172"], 'if the comma stands between thousands, add thousands = ","'),
        (["1,234,567", "5"], 'add thousands = ","'),
        (["1.234,5", "5,5"], 'add thousands = "." and decimal = ","'),
        (["1 234", "5"], 'add thousands = " "'),
        (["9,00", "1,5"], 'if that is a decimal comma, add decimal = ","'),
    ],
)
def test_no_number_gets_the_advice_to_code_it(cells: list[str], words: str, tmp_path: Path) -> None:
    line = refusal(
        write(tmp_path, "\n".join(["k;y", *(f"1;{cell}" for cell in cells)])), separator=";"
    )
    assert words in line
    assert "codes" not in line


def test_a_stray_word_among_numbers_may_be_a_missing_value(tmp_path: Path) -> None:
    path = write(tmp_path, "y\n1\n2\nclosed\n4\n")
    assert 'add missing_values = ["closed"] and missing' in refusal(path)
    table = read(path, missing="drop", missing_values=["closed"])
    assert outcomes_of(table) == [1, 2, 4]
    assert table.notes == ("1 row lacked a value and was dropped ('closed' counted as missing).",)


# Marks for missing values.


@pytest.mark.parametrize("mark", ["-", "?", ".", ":", "n/e", "#DIV/0!"])
def test_marks_for_missing_values_belong_to_missing(mark: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"y,k\n1,1\n{mark},1\n3,1\n")
    line = refusal(path)
    assert f"'{mark}' stands for a missing value: fill it, or add missing =" in line
    assert "codes" not in line
    table = read(path, missing="previous")
    assert outcomes_of(table) == [1, 1, 3]
    assert f"('{mark}' counted as missing)" in table.notes[0]


def test_a_number_far_from_all_others_is_no_end_of_a_scale(tmp_path: Path) -> None:
    path = write(tmp_path, "y\n5\n-999\n7\n")
    assert "'y' is -999 in 1 rows" in refusal(path, scale={})
    assert "missing_values = [-999]" in refusal(path, scale={})
    assert outcomes_of(read(path, missing="drop", missing_values=[-999])) == [5, 7]


def test_a_sentinel_is_a_missing_value_of_the_starter(tmp_path: Path) -> None:
    values = WAVE.astype(object)
    values[[3, 7]] = -999
    frame = pd.DataFrame({"day": DAYS, "load": values})
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = described(tmp_path / "t.csv")
    assert (table.columns[1].missing, table.columns[1].low) == (2, WAVE.min())
    data = play_starter(table, tmp_path)
    assert data.missing_values == [-999]
    assert data.missing == "previous"


# No header, other endings, the first line of Excel.


def test_a_table_without_a_header_is_described_and_played(tmp_path: Path) -> None:
    cells = [
        f"{day},{value}.5,{'wet' if value > 900 else 'dry'}"
        for day, value in zip(DAYS, WAVE, strict=True)
    ]
    table = described(write(tmp_path, "\n".join(cells)))
    assert "The first line holds data" in table.notes[0]
    assert table.n_rows == 60
    assert play_starter(table, tmp_path).columns == ["column_1", "column_2", "column_3"]


def test_a_run_says_that_the_header_is_missing(tmp_path: Path) -> None:
    path = write(tmp_path, "2024-01-01,5\n2024-01-02,6\n")
    assert "'2024-01-01,5', holds data: is there no header?" in refusal(path)
    assert outcomes_of(read(path, columns=["day", "y"])) == [5, 6]


@pytest.mark.parametrize(
    "header", ["country,1990,1991,1992", "day,y", "year 1,2nd", "1990,1991,1992"]
)
def test_years_and_words_are_headers(header: str, tmp_path: Path) -> None:
    row = ",".join(["0.5"] * (header.count(",") + 1))
    assert not described(write(tmp_path, f"{header}\n{row}\n{row}\n")).form.columns


@pytest.mark.parametrize("name", ["T.CSV", "t.tsv", "t.csv.gz", "t.Parquet", "t.pq"])
def test_endings_of_tables_are_known(name: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"day": DAYS, "y": WAVE})
    path = tmp_path / name
    text = frame.to_csv(index=False, sep="\t" if "tsv" in name else ",")
    if "gz" in name:
        path.write_bytes(gzip.compress(text.encode()))
    elif name.lower().endswith("sv"):
        path.write_text(text, encoding="utf-8")
    else:
        pq.write_table(pa.Table.from_pandas(frame), path)
    assert outcomes_of(read(path)) == WAVE.tolist()
    play_starter(described(path), tmp_path)


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"y\n1\n")[:-6])
    assert "cannot be read" in refusal(tmp_path / "t.csv.gz")


def test_the_first_line_of_excel_names_the_separator(tmp_path: Path) -> None:
    path = write(tmp_path, "sep=;\nday;y\n1;5\n2;wrong\n")
    assert "'wrong' in data row 2 (line 4)" in refusal(path)
    assert 'line 1 says that ";" separates' in refusal(path, separator=",")
    assert outcomes_of(read(path, missing="drop", missing_values=["wrong"])) == [5]
    assert described(path).columns[1].name == "y"


def test_the_starter_of_a_csv_with_tabs_plays(tmp_path: Path) -> None:
    rows = [f"{day}\t{y}" for day, y in zip(DAYS, WAVE, strict=True)]
    table = described(write(tmp_path, "\n".join(["day\ty", *rows])))
    assert play_starter(table, tmp_path).separator == "\t"


def test_a_key_that_names_something_holds_no_tab() -> None:
    with pytest.raises(UserError, match="a control character"):
        check_values({"data": {"separator": "\t", "index": "\t"}})


# Lists of edges.


@pytest.mark.parametrize("header", ["", "source,target\n"])
def test_edges_are_read_with_and_without_a_header(header: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"{header}1,2\n2,3\n")
    assert read_edges(path, 3).tolist() == [[0, 1], [1, 2]]


def test_edges_may_count_from_zero_if_that_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, "0,1\n1,2\n")
    assert read_edges(path, 3, numbered_from=0).tolist() == [[0, 1], [1, 2]]
    with pytest.raises(UserError, match="add numbered_from = 0"):
        read_edges(path, 3)


# Time.


BACKWARDS = "day,y\n2024-01-03,3\n2024-01-02,2\n2024-01-01,1\n"
SHUFFLED = "day,y\n2024-01-03,3\n2024-01-01,1\n2024-01-02,2\n"


@pytest.mark.parametrize(
    ("text", "words"), [(BACKWARDS, "time runs backwards"), (SHUFFLED, "in no order of time")]
)
def test_rows_are_put_in_the_order_of_time_on_request_only(
    text: str, words: str, tmp_path: Path
) -> None:
    path = write(tmp_path, text)
    as_it_stands = read(path, index="day")
    assert words in as_it_stands.notes[0]
    assert "add sort = true" in as_it_stands.notes[0]
    in_order = read(path, index="day", sort=True)
    assert outcomes_of(in_order) == [1, 2, 3]
    assert in_order.index == ("2024-01-01", "2024-01-02", "2024-01-03")
    assert not in_order.notes


def test_rows_are_named_as_in_the_file_after_sorting(tmp_path: Path) -> None:
    path = write(tmp_path, BACKWARDS.replace(",1\n", ",none of it\n"))
    assert "'none of it' in data row 3 (line 4)" in refusal(path, index="day", sort=True)


def test_numbers_of_an_index_are_sorted_as_numbers(tmp_path: Path) -> None:
    path = write(tmp_path, "k,y\n10,3\n9,2\n1,1\n")
    assert outcomes_of(read(path, index="k", sort=True)) == [1, 2, 3]


def test_an_index_of_words_has_no_order(tmp_path: Path) -> None:
    path = write(tmp_path, "k,y\na,3\nb,2\n")
    assert "'a' in the index is neither a date nor a number" in refusal(path, index="k", sort=True)


def test_the_starter_of_a_table_with_the_newest_row_first_sorts_it(tmp_path: Path) -> None:
    pd.DataFrame({"day": DAYS[::-1], "price": WAVE}).to_csv(tmp_path / "t.csv", index=False)
    table = described(tmp_path / "t.csv")
    assert "time runs backwards" in table.notes[0]
    assert table.columns[0].note == "a day apart"
    assert play_starter(table, tmp_path).sort


@pytest.mark.parametrize("written", ["%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y", "%m/%d/%Y", "%d.%m.%y"])
def test_one_row_out_of_place_does_not_swap_days_and_months(written: str, tmp_path: Path) -> None:
    days = pd.to_datetime(DAYS).strftime(written).to_numpy().copy()
    days[[50, 51]] = days[[51, 50]]
    pd.DataFrame({"day": days, "y": WAVE}).to_csv(tmp_path / "t.csv", index=False)
    table = described(tmp_path / "t.csv")
    assert not table.is_sorted
    assert table.columns[0].note == "a day apart"
    in_order = read(tmp_path / "t.csv", index="day", sort=True)
    expected = WAVE.copy()
    expected[[50, 51]] = expected[[51, 50]]
    assert outcomes_of(in_order) == expected.tolist()


def test_dates_that_cannot_be_decided_are_sorted_once_that_is_said(tmp_path: Path) -> None:
    path = write(tmp_path, "day,y\n03/02/2024,1\n01/03/2024,2\n02/01/2024,3\n")
    doubt = "'03/02/2024' can have the day first or the month"
    cure = 'add dates = "day first" or dates = "month first"'
    assert refusal(path, index="day", sort=True) == f"data.sort = true: {doubt}; {cure}"
    assert read(path, index="day").notes == (f"Column 'day': {doubt}; {cure}.",)
    assert described(path).notes == (f"day: {doubt}; {cure}.",)
    by_day = read(path, index="day", sort=True, dates="day first")
    assert outcomes_of(by_day) == [3, 1, 2]
    by_month = read(path, index="day", sort=True, dates="month first")
    assert outcomes_of(by_month) == [2, 3, 1]


def test_dates_that_are_written_in_two_ways_are_not_sorted(tmp_path: Path) -> None:
    path = write(tmp_path, "day,y\n13/01/2024,1\n01/14/2024,2\n")
    line = refusal(path, index="day", sort=True)
    assert "'13/01/2024' has the day first, '01/14/2024' the month; write all dates alike" in line


def stacked_table(folder: Path) -> Path:
    """Write two shops one below the other."""
    north = pd.DataFrame({"unique_id": "north", "ds": DAYS, "y": WAVE})
    south = pd.DataFrame({"unique_id": "south", "ds": DAYS, "y": 2000 - WAVE})
    pd.concat([north, south]).to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def test_stacked_series_are_noticed_and_told_apart(tmp_path: Path) -> None:
    path = stacked_table(tmp_path)
    assert "each of 60 times is there 2 times" in read(path, index="ds").notes[0]
    assert '2 series apart: "north", "south"; add series_value = "north"' in refusal(
        path, series="unique_id"
    )
    south = read(path, series="unique_id", series_value="south", index="ds")
    assert outcomes_of(south) == (2000 - WAVE).tolist()
    assert not south.notes
    assert "'nort' is no value of column 'unique_id'; did you mean 'north'" in refusal(
        path, series="unique_id", series_value="nort"
    )


def test_the_starter_of_stacked_series_plays_the_first(tmp_path: Path) -> None:
    table = described(stacked_table(tmp_path))
    assert (table.series_column, table.series) == ("unique_id", ("north", "south"))
    data = play_starter(table, tmp_path)
    assert (data.series, data.series_value) == ("unique_id", "north")


def described_frame(columns: dict[str, Any], folder: Path) -> Description:
    """Write columns as a CSV, and describe it."""
    pd.DataFrame(columns).to_csv(folder / "t.csv", index=False)
    return described(folder / "t.csv")


@pytest.mark.parametrize("first_hour", [0, 1])
def test_hours_of_a_day_are_no_series(first_hour: int, tmp_path: Path) -> None:
    columns = {
        "dteday": np.repeat(DAYS, 24),
        "hr": np.tile(np.arange(first_hour, first_hour + 24), 60),
        "cnt": np.arange(1440) * 37 % 1009,
    }
    table = described_frame(columns, tmp_path)
    assert not table.series
    assert len(table.frame) == 1440
    assert "each of 60 times is there 24 times" in table.notes[0]
    assert play_starter(table, tmp_path).series is None


def test_a_date_that_stands_twice_makes_no_series_of_yes_and_no(tmp_path: Path) -> None:
    days = [*DAYS[:30], DAYS[29]]
    columns = {"day": days, "flag": np.arange(31) % 2, "y": WAVE[:31] + 0.5}
    table = described_frame(columns, tmp_path)
    assert not table.series
    assert "1 rows have a time" in table.notes[0]


def test_the_hour_that_comes_twice_in_autumn_makes_no_series(tmp_path: Path) -> None:
    hours = pd.date_range("2024-10-20", periods=336, freq="h", tz="Europe/Berlin")
    columns = {
        "time": [hour.isoformat() for hour in hours],
        "temp": np.arange(336) * 7 % 20,
        "open": np.arange(336) % 2,
        "y": np.arange(336) * 37 % 331 + 0.5,
    }
    table = described_frame(columns, tmp_path)
    assert not table.series
    assert len(table.frame) == 336


def test_a_series_that_begins_a_little_later_is_told_apart(tmp_path: Path) -> None:
    columns = {
        "shop": ["north"] * 60 + ["south"] * 50,
        "day": [*DAYS, *DAYS[10:]],
        "y": [*WAVE, *WAVE[10:]],
    }
    assert described_frame(columns, tmp_path).series == ("north", "south")


def test_blanks_around_the_name_of_a_series_do_not_count(tmp_path: Path) -> None:
    rows = [f"{day}, {shop} ,{y}" for shop in "AB" for day, y in zip(DAYS, WAVE, strict=True)]
    table = described(write(tmp_path, "\n".join(["day,shop,y", *rows])))
    assert table.series == ("A", "B")
    assert len(table.frame) == 60
    assert play_starter(table, tmp_path).series_value == "A"
    for name in ("A", " A "):
        keys = {"series": "shop", "series_value": name}
        assert outcomes_of(read(tmp_path / "t.csv", **keys)) == WAVE.tolist()


def test_rows_without_the_name_of_a_series_belong_to_none(tmp_path: Path) -> None:
    columns = {"shop": [None, *["A"] * 60, *["B"] * 60], "day": [DAYS[0], *DAYS, *DAYS]}
    frame = pd.DataFrame(columns | {"y": [7, *WAVE, *WAVE]})
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet")
    table = described(tmp_path / "t.parquet")
    assert table.series == ("A", "B")
    assert "1 rows have no value in 'shop'" in table.notes[1]
    assert play_starter(table, tmp_path).series_value == "A"


def test_a_study_plays_each_series(tmp_path: Path) -> None:
    stacked_table(tmp_path)
    raw = {"name": "a", "rounds": 4, "cohort": [cohort_table("c", 1)]}
    raw["data"] = {
        "file": "t.csv",
        "outcomes": ["y"],
        "scale": {"y": [0.0, 2000.0]},
        "series": "unique_id",
    }
    for name, values in {"north": WAVE, "south": 2000 - WAVE}.items():
        raw["data"]["series_value"] = name
        model = play_to_end(read_scenario(raw, origin=tmp_path))
        assert np.allclose(2000 * model.rounds_frame()["y_0"], values[:4])


# Counts and yes or no.


@pytest.mark.parametrize("greatest", [1, 11])
def test_counts_and_yes_or_no_get_a_starter(greatest: int, tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(greatest + 1, size=60)
    weekday = np.arange(60) % 7
    frame = pd.DataFrame({"day": DAYS, "sold": values, "weekday": weekday})
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = described(tmp_path / "t.csv")
    assert [column.role for column in table.columns] == ["index", "outcome", "context"]
    assert play_starter(table, tmp_path).outcomes == ["sold"]


def test_an_outcome_of_true_and_false_gets_a_starter(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random(60) < 0.5
    pd.DataFrame({"day": DAYS, "rain": values}).to_csv(tmp_path / "t.csv", index=False)
    data = play_starter(described(tmp_path / "t.csv"), tmp_path)
    assert data.codes == {"rain": {"False": 0, "True": 1}}
