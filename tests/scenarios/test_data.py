"""Users' own tables: what is read, scaled and drawn anew, and that nothing else passes."""

import csv
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from small_scenarios import cohort_table, make_scenario, play_to_end, read_scenario, write_study

from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.scenarios import load, table_files
from regretless.scenarios.assembly.data import Table, read_table
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.data import DataSpec
from regretless.scenarios.logs.run_directory import read_run
from regretless.scenarios.run import Options, run
from regretless.scenarios.studies.analysis import measures as analysis
from regretless.scenarios.studies.conduct import Options as StudyOptions
from regretless.scenarios.studies.conduct import conduct


def read_content(
    folder: Path, content: str | bytes | pa.Table | pd.DataFrame, **keys: Any
) -> Table:
    """Write a CSV, or the Parquet file that a table is, and read its column y, or others."""
    path = folder / ("t.parquet" if isinstance(content, pa.Table) else "t.csv")
    if isinstance(content, pa.Table):
        pq.write_table(content, path)
    elif isinstance(content, pd.DataFrame):
        content.to_csv(path, index=False)
    elif isinstance(content, str):
        path.write_bytes(content.encode())
    else:
        path.write_bytes(content)
    return read_table(DataSpec(file=str(path), **{"outcomes": ["y"]} | keys))


def parquet_column(values: list[float], dtype: str) -> pa.Table:
    """Return a table of one column y of a type."""
    return pa.Table.from_pandas(pd.DataFrame({"y": pd.array(values, dtype=dtype)}))


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        ("x,y\n7,0.25\n7,0.5\n", {}),
        ("\ufeffy,x\r\n0.25,7\r\n\r\n0.5,7\r\n", {}),
        ("\n\ny,x\n 0.25 ,7\n0.5,7", {}),
        ("y;x\n0,25;7\n5e-1;7\n", {"separator": ";", "decimal": ","}),
        ("y\tx\n.25\t7\n+0.5\t7\n", {"separator": "\t"}),
        ('y,x\n"0,25",7\n"0,5",7\n', {"decimal": ","}),
        ("y,x\nlow,7\n0.5,7\n", {"codes": {"y": {"low": 0.25}}}),
        ("y,x\nTrue,7\nFalse,7\n", {"codes": {"y": {"True": 0.25, "False": 0.5}}}),
        (pa.table({"y": [True, False]}), {"codes": {"y": {"True": 0.25, "False": 0.5}}}),
        (pa.table({"y": ["0,25", "0,5"]}), {"decimal": ","}),
        (parquet_column([1, 2], "Int64"), {"scale": {"y": [0, 4]}}),
        (parquet_column([1, 2], "int8"), {"scale": {"y": [0, 4]}}),
        (parquet_column([0.25, 0.5], "Float64"), {}),
        (parquet_column([0.25, 0.5], "float32"), {}),
        ("y\n0.25\n\n0.5\n\n\n", {"missing": "drop"}),  # alone in its row, a gap is a blank line
        ("y,x\n0.25,7\n0.5,NA\n", {}),  # nobody asked for x
        ("y,x,x,,\n0.25,7,8,9,9\n0.5,7,8,9,9\n", {}),
        ('y,note\n0.25,"two\nlines"\n0.5,"a, ""quoted"" one"\n', {}),
    ],
)
def test_a_table_is_read_however_it_is_written(
    content: Any, keys: dict[str, Any], tmp_path: Path
) -> None:
    table = read_content(tmp_path, content, **keys)
    assert table.outcomes[:, 0].tolist() == [0.25, 0.5]


SAME_NAME_TWICE = pa.Table.from_arrays([pa.array([0.5]), pa.array([0.25])], names=["y", "y"])
LOW_AND_HIGH = {"levels": [0.1, 0.9], "quantiles": [["low", "high"]]}
WITH_QUANTILES = {"missing": "drop", "forecasts": {"a": LOW_AND_HIGH}}
NO_NUMBERS = [[0, None], [timedelta(0), timedelta(1)], [[0.0], [1.0]]]  # of which floats are made


@pytest.mark.parametrize(
    ("content", "keys", "words"),
    [
        ("y,x\n5,0.25,7\n", {}, "data row 1 (line 2) is of length 3, the header of 2"),
        ('y,x\n"0.\n5",7\n0.5\n', {}, "data row 2 (line 4) is of length 1"),
        ('y,x\n0.5,"7\n8\n', {}, "line 2 is no CSV"),
        ("y,x,y\n0.25,7,0.5\n", {}, "data.outcomes: column 'y' is there twice, as 1 and 3"),
        ("y,x\n0.5,7\nyes,8\n", {}, "'yes' in data row 2 (line 3); every value must be a finite"),
        ("y,x\n0.5,7\n", {"context": ["x y"]}, "no column 'x y'"),
        ("y,x y\n0.5,a b\n", {"context": ["x y"]}, 'codes = { "x y" = { "a b" = 0 } }'),
        ("y,x\ntrue,7\n", {}, "add codes = { y = { true = 1, false = 0 } }"),
        (pa.table({"y": [True, False]}), {}, "add codes = { y = { True = 1, False = 0 } }"),
        ("y|x\n0.5|7\n", {}, 'separator = "|"'),
        ("y,x\n0.5,7\n", {"separator": ";"}, 'separator = ","'),
        ('y,x\n"-3,14",7\n', {}, "'-3,14' in data row 1 (line 2); if that is a decimal comma"),
        ("y;x\n0.5;7\n", {"separator": ";", "decimal": ","}, "leave that key out or mend"),
        ("y,x\n2012-01-31 12:00,7\n", {}, 'a date is no number; give it as index = "y"'),
        (pa.table({"y": [date(2012, 1, 31)]}), {}, "holds '2012-01-31' in data row 1; a date"),
        (pa.table({"y": pd.to_datetime(["2012-01-31"])}), {}, "in data row 1; a date"),
        ("y,x\n0.5,7\n-inf,7\n", {}, "holds '-inf' in data row 2 (line 3); every value must"),
        (pa.table({"y": [0.5, np.inf]}), {}, "holds 'inf' in data row 2; every value must"),
        ("y,x\n0.5,7\n N/A ,7\n", {}, "column 'y' has no value in data row 2 (line 3)"),
        (pa.table({"y": [0.5, None]}), {}, "column 'y' has no value in data row 2; fill it"),
        (pa.table({"y": [0, None]}), {}, 'add missing = "previous" or missing = "drop"'),
        ("y,x\n,7\n0.5,7\n", {"missing": "previous"}, "'y' has no value in data row 1 (line 2)"),
        ("y,x\n,7\nNA,7\n", {"missing": "drop"}, 'missing = "drop" leaves no row'),
        ("y,x\n0.5,7\n", {"codes": {"z": {"a": 1.0}}}, "data.codes: 'z' is no column of the table"),
        ("y,x\n0.5,7\n", {"index": "day"}, "data.index: no column 'day'"),
        (pa.table({"y": [0.5], "day": [b"\xff"]}), {"index": "day"}, "holds bytes in data row 1"),
        ("größe,y\n1,0.5\n".encode("latin-1"), {}, "not UTF-8: byte 0xf6 in line 1"),
        ("y,x\n0.5,7\n".encode("utf-16"), {}, "not UTF-8: byte 0xff in line 1"),
        ("y,x\n0.5,7\n".encode("utf-16-le"), {}, "zero bytes"),
        ("\ufeff", {}, "is empty; give it a line of names"),
        ("y\n\n\n", {}, "has no rows"),
        (pa.table({"y": pa.array([], pa.float64())}), {}, "has no rows"),
        ("y\n1_0\n", {}, "every value"),
        ("y\nnan(7)\n", {}, "every value"),
        ("y\n0x1\n", {}, "every value"),
        ("y\nyes\n", {}, "every value"),
        (SAME_NAME_TWICE, {}, "column 'y' is there twice, as 1 and 2"),
        (
            "y,low,high\n,1,1\n0.5,0.4,0.3\n",
            WITH_QUANTILES,
            "'high' is below 'low' in data row 2 (line 3)",
        ),
        ("y,x\n" + "long " * 50 + ",7\n", {}, "holds 'long long long long long long long lo...'"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_its_row_and_a_cure(
    content: Any, keys: dict[str, Any], words: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as refusal:
        read_content(tmp_path, content, **keys)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("column", NO_NUMBERS, ids=["a gap", "durations", "lists"])
def test_a_column_of_what_is_no_number_is_refused_by_the_key_that_names_it(
    column: list[Any], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"data\.outcomes: column 'y'"):
        read_content(tmp_path, pa.table({"y": column}))
    with pytest.raises(UserError, match=r"data\.context: column 'x'"):
        read_content(tmp_path, pa.table({"y": [0.5, 1], "x": column}), context=["x"])


TABLE_WITH_GAPS = "day,y,x,f\n1,0.1,7,1\n2,,8,1\n3,0.3,NA,1\n4,0.4,6,\n5,0.5,5,0\n"
KEYS_WITH_GAPS: dict[str, Any] = {
    "context": ["x"],
    "forecasts": {"a": {"point": ["f"]}},
    "index": "day",
}


def test_the_last_value_is_carried_forward_where_one_is_missing(tmp_path: Path) -> None:
    table = read_content(tmp_path, TABLE_WITH_GAPS, missing="previous", **KEYS_WITH_GAPS)
    assert table.outcomes[:, 0].tolist() == [0.1, 0.1, 0.3, 0.4, 0.5]
    assert table.contexts.tolist() == [[7, 1], [8, 1], [8, 1], [6, 1], [5, 0]]
    assert table.index == ("1", "2", "3", "4", "5")
    assert table.notes == ("3 rows lacked a value and were filled from the row before.",)


def test_rows_that_lack_a_value_are_dropped(tmp_path: Path) -> None:
    table = read_content(tmp_path, TABLE_WITH_GAPS, missing="drop", **KEYS_WITH_GAPS)
    assert table.outcomes[:, 0].tolist() == [0.1, 0.5]
    assert table.contexts.tolist() == [[7, 1], [5, 0]]
    assert table.index == ("1", "5")
    assert table.notes == ("3 rows lacked a value and were dropped.",)


# The index.


def scenario_with_index(folder: Path) -> Scenario:
    """Write a table of three named rows, and return a scenario of four rounds of it."""
    (folder / "t.csv").write_text("day,y\n2012-01-01,1\n007,0\n,0\n", encoding="utf-8")
    data = {"file": "t.csv", "outcomes": ["y"], "index": "day"}
    return make_scenario(cohort_table("few", 1), rounds=4, data=data, origin=folder)


def assert_index_as_written(rounds: pd.DataFrame) -> None:
    """Assert that rounds carry the index, which starts again after the last row."""
    assert list(rounds)[:3] == ["round", "day", "y_0"]
    assert rounds["day"].tolist() == ["2012-01-01", "007", "", "2012-01-01"]


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_the_logs_carry_the_index_as_written(file_format: str, tmp_path: Path) -> None:
    run(scenario_with_index(tmp_path), Options(tmp_path / "logs", file_format))
    assert_index_as_written(read_run(tmp_path / "logs")[1]["rounds"])


def test_the_frame_of_rounds_carries_the_index_as_written(tmp_path: Path) -> None:
    assert_index_as_written(play_to_end(scenario_with_index(tmp_path)).rounds_frame())


@pytest.mark.parametrize(
    ("written", "times"),
    [
        (["2024-03-04", "2024-01-02"], ["03-04 00:00", "01-02 00:00"]),  # in no order, but ISO
        (["2024-3-4", "2024-1-2"], ["03-04 00:00", "01-02 00:00"]),
        (["11/02/2024", "02/03/2024", "03/03/2024"], ["02-11 00:00", "03-02 00:00", "03-03 00:00"]),
        (["13/02/2024", "02/03/2024", "01/03/2024"], ["02-13 00:00", "03-02 00:00", "03-01 00:00"]),
        (["02.03.24", "01.03.24", "04.03.24"], ["03-02 00:00", "03-01 00:00", "03-04 00:00"]),
        (["01/13/2024", "02/01/2024"], ["01-13 00:00", "02-01 00:00"]),
        (["31.12.2024", "30.12.2024", "12.11.2024"], ["12-31 00:00", "12-30 00:00", "11-12 00:00"]),
    ],
)
def test_the_order_says_whether_days_come_first(written: list[str], times: list[str]) -> None:
    calendar = table_files.calendar(pd.Series(written))
    assert calendar.dt.strftime("%Y-%m-%d %H:%M").tolist() == [f"2024-{time}" for time in times]


@pytest.mark.parametrize(
    "written",
    [
        ["01/02/2024", "02/02/2024"],
        ["11/02/2024", "02/03/2024"],
        ["03-02-2024", "01-03-2024", "02-01-2024"],
    ],
)
def test_dates_that_two_readings_fit_are_no_dates_of_a_calendar(written: list[str]) -> None:
    assert table_files.calendar(pd.Series(written)).isna().all()


@pytest.mark.parametrize(
    ("winter", "summer"),
    [
        ("2024-03-31T01:30:00+01:00", "2024-03-31T03:30:00+02:00"),
        ("2024-03-31 01:30:00.5+0100", "2024-03-31 03:30:00.5+0200"),
        ("2024-03-31T01:30Z", "2024-03-31T03:30+00"),
        ("31.03.2024 01:30", "31.03.2024 03:30"),
    ],
)
def test_times_are_local_whatever_their_offset(winter: str, summer: str) -> None:
    calendar = table_files.calendar(pd.Series([winter, summer] * 2))
    assert calendar.dt.strftime("%m-%d %H:%M").tolist() == ["03-31 01:30", "03-31 03:30"] * 2


DAYS = [date(2012, 1, 31), date(2012, 2, 1)]


@pytest.mark.parametrize("column", [DAYS, pd.to_datetime(DAYS)], ids=["dates", "times"])
def test_dates_of_a_parquet_file_are_written_as_dates(column: Any, tmp_path: Path) -> None:
    table = read_content(tmp_path, pa.table({"day": column, "y": [0, 1]}), index="day")
    assert table.index == ("2012-01-31", "2012-02-01")


# Whatever is written is read, or refused.

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)
CELLS = NUMBERS | st.none() | st.sampled_from(["wet", "", "True", "1_0", "1e999", "31.1.12"])


def write_rows(path: Path, rows: list[list[Any]], separator: str, decimal: str) -> None:
    """Write a CSV of columns a and b, numbers with all their digits."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow(["a", "b"])
        for row in rows:
            cells = []
            for cell in row:
                is_number = isinstance(cell, float)
                cells.append(repr(cell).replace(".", decimal) if is_number else cell)
            writer.writerow(cells)


def mended_rows(rows: list[list[Any]], missing: str | None) -> list[list[float]] | None:
    """Return the numbers that must be read, with gaps mended as asked; None where none can be."""
    mended: list[list[Any]] = []
    for row in rows:
        cells = [None if cell == "" else cell for cell in row]
        if any(isinstance(cell, str) for cell in cells):
            return None
        if missing == "drop" and None in cells:
            continue
        if missing == "previous" and mended:
            before = mended[-1]
            cells = [old if new is None else new for old, new in zip(before, cells, strict=True)]
        mended.append(cells)
    is_whole = all(None not in row for row in mended)
    return mended if mended and is_whole else None


@settings(max_examples=200, deadline=None)
@given(
    rows=st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=6),
    separator=st.sampled_from([",", ";", "\t", "|", ":"]),
    decimal=st.sampled_from([".", ","]),
    missing=st.sampled_from([None, "previous", "drop"]),
)
def test_what_was_written_is_read_to_the_bit_or_refused(
    rows: list[list[Any]],
    separator: str,
    decimal: str,
    missing: str | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("frames") / "t.csv"
    write_rows(path, rows, separator, decimal)
    keys: dict[str, Any] = {"separator": separator, "decimal": decimal, "missing": missing}
    spec = DataSpec(file=str(path), outcomes=["a"], context=["b"], scale={"a": [-1e6, 1e6]}, **keys)
    readable_rows = mended_rows(rows, missing)
    if readable_rows is not None:
        table = read_table(spec)
        values = np.array(readable_rows, dtype=float)
        np.testing.assert_array_equal(table.contexts[:, 0], values[:, 1])
        np.testing.assert_array_equal(table.outcomes[:, 0], (values[:, 0] + 1e6) / 2e6)
    else:
        with pytest.raises(UserError) as refusal:
            read_table(spec)
        assert "\n" not in str(refusal.value)


# Scales.


WEATHER = "rain,warmth,share\n0,-10,0\n5,0,0.25\n10,10,0.5\n20,30,0.75\n-1,40,1\n"


@pytest.mark.parametrize(
    ("ends", "expected", "clipped"),
    [
        ([-1.0, 20.0], [1 / 21, 6 / 21, 11 / 21, 1, 0], 0.0),
        ([0.0, 20.0], [0, 0.25, 0.5, 1, 0], 0.2),
        ([0.0, 10.0], [0, 0.5, 1, 1, 0], 0.4),
        ([10.0, 0.0], [1, 0.5, 0, 0, 1], 0.4),
        ([20.0, -1.0], [20 / 21, 15 / 21, 10 / 21, 0, 1], 0.0),
        ([100.0, 200.0], [0, 0, 0, 0, 0], 1.0),
    ],
)
def test_a_scale_maps_its_ends_to_zero_and_one(
    ends: list[float], expected: list[float], clipped: float, tmp_path: Path
) -> None:
    table = read_content(tmp_path, WEATHER, outcomes=["rain"], scale={"rain": ends})
    np.testing.assert_allclose(table.outcomes[:, 0], expected, atol=1e-15)
    assert table.clipped == pytest.approx(clipped)
    assert not np.signbit(table.outcomes).any()  # no 0 is negative


@pytest.mark.parametrize(("warmth", "share"), [([0, 40], 3 / 5), ([-10, 20], 2 / 5)])
def test_the_clipped_share_counts_rows_not_cells(
    warmth: list[float], share: float, tmp_path: Path
) -> None:
    """Rain clips rows 4 and 5; warmth row 1, or the same two."""
    scale = {"rain": [0.0, 10.0], "warmth": warmth}
    table = read_content(tmp_path, WEATHER, outcomes=["rain", "warmth", "share"], scale=scale)
    assert table.clipped == pytest.approx(share)


@pytest.fixture
def folder_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder that has files of the same names as the data of ``../home/s.toml``."""
    raw = {"name": "s", "rounds": 2, "data": {"file": "t.csv", "outcomes": ["a"]}}
    files = {
        "home/t.csv": "a\n0.25\n",
        "home/s.toml": tomli_w.dumps(raw | {"cohort": [cohort_table("c", 1)]}),
        "elsewhere/t.csv": "a\n0.75\n",
        "elsewhere/seattle-weather.csv": "precipitation\n1\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path / "elsewhere")
    return tmp_path / "elsewhere"


def test_data_are_found_beside_their_scenario(folder_elsewhere: Path) -> None:
    table = load("../home/s.toml").table
    assert table is not None
    assert table.outcomes.tolist() == [[0.25]]


def test_data_of_a_bundled_scenario_are_the_bundled_ones(folder_elsewhere: Path) -> None:
    table = load("crop-choice").table
    assert table is not None
    assert len(table.outcomes) == 1461  # every day of four years


def test_data_are_not_looked_for_in_the_working_folder(folder_elsewhere: Path) -> None:
    Path("../home/t.csv").unlink()
    with pytest.raises(UserError, match=r"'t\.csv' does not exist"):
        load("../home/s.toml")


# Forecasts as columns.


FORECAST = pd.DataFrame(
    [
        [0.0, 0.2, 1, 1.0, 2.0, 3.0, 0.1, 0.1, 0.3],
        [10.0, 0.4, 2, 9.0, 10.0, 12.0, 0.2, 0.3, 0.4],
        [20.0, 0.6, 3, 15.0, 25.0, 30.0, -0.5, 0.5, 0.7],
    ],
    columns=["temp", "wind", "month", "t1", "t2", "t3", "w1", "w2", "w3"],
)
TEMP_SAMPLES = ["t1", "t2", "t3"]
WIND_SAMPLES = ["w1", "w2", "w3"]
COLUMNS = {"outcomes": ["temp", "wind"], "context": ["month"]}
QUANTILES = {"levels": [0.1, 0.5, 0.9], "quantiles": [TEMP_SAMPLES, WIND_SAMPLES]}


def read_weather(
    folder: Path, forecast: dict[str, Any], *, ends: tuple[float, float] = (0, 20)
) -> Table:
    """Read the forecast table with this forecast, and temperatures on a scale."""
    scale = {"temp": [*ends]}
    return read_content(folder, FORECAST, forecasts={"station": forecast}, scale=scale, **COLUMNS)


TWO_FORECASTS: dict[str, Any] = {
    "forecasts": {
        "office": {"point": ["t2", "w2"]},
        "ensemble": {"samples": [TEMP_SAMPLES, WIND_SAMPLES]},
    },
    "scale": {"temp": [0.0, 20.0]},
    **COLUMNS,
}
OFFICE_FEATURES = ["forecasts.office.temp.0", "forecasts.office.wind.0"]
TEMP_FEATURES = [f"forecasts.ensemble.temp.{i}" for i in range(3)]
WIND_FEATURES = [f"forecasts.ensemble.wind.{i}" for i in range(3)]


def test_features_of_forecasts_follow_the_context_by_name(tmp_path: Path) -> None:
    table = read_content(tmp_path, FORECAST, **TWO_FORECASTS)
    assert table.names == ("month", *OFFICE_FEATURES, *TEMP_FEATURES, *WIND_FEATURES)
    spec = DataSpec(file="t.csv", **TWO_FORECASTS)
    assert spec.features_of("office") == [[name] for name in OFFICE_FEATURES]
    assert spec.features_of("ensemble") == [TEMP_FEATURES, WIND_FEATURES]


def test_forecasts_are_in_the_units_of_outcomes(tmp_path: Path) -> None:
    table = read_content(tmp_path, FORECAST, **TWO_FORECASTS)
    temp = FORECAST[TEMP_SAMPLES].to_numpy() / 20
    wind = FORECAST[WIND_SAMPLES].to_numpy()
    forecasts = np.column_stack([temp[:, 1], wind[:, 1], temp, wind])
    forecasts = forecasts.clip(0, 1)  # 25, 30 and -0.5 are beyond the scale
    expected = np.column_stack([FORECAST["month"], forecasts])
    np.testing.assert_allclose(table.contexts, expected, atol=1e-15)


def test_forecasts_that_were_clipped_are_noted_by_column(tmp_path: Path) -> None:
    note = "33.3 % of all rows of forecast {} were outside their scale and were clipped: {}."
    assert read_content(tmp_path, FORECAST, **TWO_FORECASTS).notes == (
        note.format("office", "t2 33.3 %"),
        note.format("ensemble", "t2 33.3 %, t3 33.3 %, w1 33.3 %"),
    )


def test_the_note_on_clipped_rows_names_the_columns_and_their_shares(tmp_path: Path) -> None:
    scale = {"rain": [0.0, 10.0], "warmth": [-10, 20]}
    table = read_content(tmp_path, WEATHER, outcomes=["rain", "warmth", "share"], scale=scale)
    clipped = "40.0 % of all rows were outside their scale and were clipped"
    assert table.notes == (f"{clipped}: rain 40.0 %, warmth 40.0 %.",)


def test_the_note_on_clipped_rows_says_that_clipping_is_meant(tmp_path: Path) -> None:
    scale = {"rain": [0.0, 10.0], "warmth": [-10, 20]}
    outcomes = ["rain", "warmth", "share"]
    table = read_content(tmp_path, WEATHER, outcomes=outcomes, scale=scale, clip=True)
    assert "and were clipped, as data.clip = true says: rain 40.0 %" in table.notes[0]


def test_a_reversed_scale_turns_quantiles_round(tmp_path: Path) -> None:
    """The lowest temperature is the highest outcome: its feature is that of the highest level."""
    upward = read_weather(tmp_path, QUANTILES, ends=(0, 20)).contexts[:, 1:]
    reversed_scale = read_weather(tmp_path, QUANTILES, ends=(20, 0)).contexts[:, 1:]
    np.testing.assert_allclose(reversed_scale[:, :3], 1 - upward[:, 2::-1], atol=1e-15)
    assert (np.diff(reversed_scale[:, :3], axis=1) >= 0).all()
    np.testing.assert_array_equal(reversed_scale[:, 3:], upward[:, 3:])


def test_levels_that_have_no_mirror_are_refused_on_a_reversed_scale_alone(tmp_path: Path) -> None:
    skewed = QUANTILES | {"levels": [0.1, 0.5, 0.8]}
    read_weather(tmp_path, skewed)
    with pytest.raises(ValueError, match=r"reversed scale of 'temp'; give levels that mirror"):
        read_weather(tmp_path, skewed, ends=(20, 0))


def replay_table(
    folder: Path, frame: pd.DataFrame, outcomes: list[str], **data_keys: Any
) -> dict[str, Any]:
    """Write a table, and return a scenario that replays it once."""
    frame.to_csv(folder / "t.csv", index=False)
    data = {"file": "t.csv", "outcomes": outcomes} | data_keys
    return {"name": "s", "rounds": len(frame), "data": data, "cohort": [cohort_table("few", 1)]}


def test_forecasts_are_seen_before_the_round_and_do_not_swell_the_logs(tmp_path: Path) -> None:
    ensemble = {"samples": [TEMP_SAMPLES, WIND_SAMPLES]}
    raw = replay_table(
        tmp_path,
        FORECAST,
        COLUMNS["outcomes"],
        context=["month"],
        forecasts={"ensemble": ensemble},
        scale={"temp": [0.0, 20.0]},
    )
    model = read_scenario(raw, "rounds=5", origin=tmp_path).build(seed=1)
    context = model.game.adversary.context(model.game.history)
    assert context["month"] == 1.0
    assert context["forecasts.ensemble.temp.2"] == 3 / 20
    model.run()
    rounds = model.rounds_frame()
    assert list(rounds.filter(regex="^x_")) == ["x_0"]
    assert rounds["x_0"].tolist() == [1, 2, 3, 1, 2]


def cohort_of_one_outcome(name: str, outcome: int) -> dict[str, Any]:
    """Return an agent whose losses are linear in one of two outcomes, with five actions."""
    slopes = np.linspace(-1, 1, 5)
    parameters = {
        "weights": np.outer(slopes, np.eye(2)[outcome]).tolist(),
        "gains": [[0.5, 0.27, 0.0, -0.22, -0.5]],
    }
    return cohort_table(name, 1, 5, "affine", parameters=parameters)


def test_a_base_that_serves_half_of_the_agents_costs_the_others_nothing(tmp_path: Path) -> None:
    """A forecast column knows the first outcome, and says the opposite of the second."""
    rng = np.random.default_rng(0)
    n_rounds = 400
    signal = rng.random((n_rounds, 2))
    outcomes = np.clip(signal + 0.1 * rng.standard_normal((n_rounds, 2)), 0.0, 1.0)
    columns = np.column_stack([outcomes, signal[:, 0], 1.0 - signal[:, 1]])
    frame = pd.DataFrame(columns, columns=["a", "b", "m", "n"])
    raw = replay_table(tmp_path, frame, ["a", "b"], forecasts={"office": {"point": ["m", "n"]}})
    raw["cohort"] = [cohort_of_one_outcome("served", 0), cohort_of_one_outcome("misled", 1)]

    def play(forecaster: dict[str, Any]) -> pd.DataFrame:
        scenario = read_scenario(raw | {"forecaster": forecaster}, origin=tmp_path)
        return play_to_end(scenario, seed=1).agents_frame()

    agents = play({})
    served, misled = agents["mean_loss"]
    served_by_office, misled_by_office = play({"kind": "office"})["mean_loss"]
    served_without, misled_without = play({"models": []})["mean_loss"]
    assert (agents["decision_swap_regret"] <= agents["bound"]).all()
    assert (agents["regret_to_models"] <= agents["regret_to_models_bound"]).all()
    assert served <= 1.03 * served_by_office < served_without
    assert misled <= misled_without < misled_by_office


# Data drawn anew in blocks.


STUDY = """\
scenario = "crop-choice"
seeds = 3
rounds = 5
leave_out = ["forecasts"]
set = { "data.bootstrap" = 5, "cohort.growers.count" = 2 }
grid = { "forecaster.kind" = ["decision-swap", "running-mean"] }
"""


def test_blocks_follow_the_table_and_are_as_long_as_asked() -> None:
    n_rows = 50
    block_length = 8
    outcomes = np.linspace(0, 1, n_rows)[:, None]
    index = tuple(str(i) for i in range(n_rows))
    table = Table(outcomes, np.arange(float(n_rows))[:, None], 0.0, index=index)
    resampled = table.resampled(block_length, 20_000, np.random.default_rng(3))
    rows = resampled.contexts[:, 0].astype(int)
    assert [int(name) for name in resampled.index] == rows.tolist()
    np.testing.assert_array_equal(resampled.outcomes, outcomes[rows])
    share_of_breaks = (np.diff(rows) % n_rows != 1).mean()
    assert share_of_breaks == pytest.approx((1 - 1 / n_rows) / block_length, rel=0.1)
    assert np.bincount(rows, minlength=n_rows).min() > 200


def test_as_many_rows_are_drawn_as_asked_whatever_the_blocks() -> None:
    table = Table(np.linspace(0, 1, 50)[:, None], np.arange(50.0)[:, None], 0.0)
    assert len(table.resampled(1, 10, np.random.default_rng(3)).outcomes) == 10


def test_every_seed_has_a_history_of_its_own_from_a_named_stream() -> None:
    n_rounds = 12
    scenario = load("crop-choice", **{"data.bootstrap": 7, "rounds": n_rounds})

    def outcomes(seed: int) -> Array:
        return play_to_end(scenario, seed=seed).game.history.last(n_rounds)

    resampled = scenario.table.resampled(7, n_rounds, stream(1, "data", "bootstrap"))
    np.testing.assert_array_equal(outcomes(1), resampled.outcomes)
    assert not np.array_equal(outcomes(2), resampled.outcomes)


def test_the_interval_of_replicates_is_that_of_their_quantiles() -> None:
    assert analysis.replicates(np.arange(101.0)) == pytest.approx((50.0, 2.5, 97.5))
    assert np.isnan(analysis.replicates([1.0])[1:]).all()


def test_a_study_of_histories_drawn_anew_has_intervals_of_quantiles(tmp_path: Path) -> None:
    study = conduct(write_study(tmp_path, STUDY), StudyOptions(tmp_path / "out", jobs=1))
    assert study.interval_rule is analysis.replicates
    contrast = study.contrasts().query("measure == 'mean_loss'").iloc[0]
    losses = study.cohorts().merge(study.parameters(), on="run")
    by_seed = losses.pivot_table(index="seed", columns="forecaster.kind", values="mean_loss")
    differences = by_seed["running-mean"] - by_seed["decision-swap"]
    expected = np.quantile(differences, [0.025, 0.975])
    np.testing.assert_allclose(contrast[["low", "high"]].to_numpy(dtype=float), expected)
