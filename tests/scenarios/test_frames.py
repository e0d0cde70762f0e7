"""Users' own tables: what is read, and that nothing else passes."""

import csv
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import worlds
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless.market.core.errors import UserError
from regretless.scenarios import frames
from regretless.scenarios.assembly.data import Table, read_table
from regretless.scenarios.assembly.scenario import Scenario
from regretless.scenarios.config.data import DataSpec
from regretless.scenarios.logs.run_directory import read_run
from regretless.scenarios.run import Options, run


def table(folder: Path, content: str | bytes | pa.Table, **keys: Any) -> Table:
    """Write a CSV, or the Parquet file that a table is, and read its column y."""
    path = folder / ("t.parquet" if isinstance(content, pa.Table) else "t.csv")
    if isinstance(content, pa.Table):
        pq.write_table(content, path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_table(DataSpec(file=str(path), **{"outcomes": ["y"]} | keys))


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
        ("y,x\n0.25,7\n,7\n0.5,7\n", {"missing": "drop"}),
        ("y\n0.25\n\n0.5\n\n\n", {"missing": "drop"}),  # alone in its row, a gap is a blank line
        ("y,x\n0.25,7\n0.5,NA\n", {}),  # nobody asked for x
        ("y,x,x,,\n0.25,7,8,9,9\n0.5,7,8,9,9\n", {}),
        ('y,note\n0.25,"two\nlines"\n0.5,"a, ""quoted"" one"\n', {}),
    ],
)
def test_a_table_is_read(content: Any, keys: dict[str, Any], tmp_path: Path) -> None:
    assert table(tmp_path, content, **keys).outcomes[:, 0].tolist() == [0.25, 0.5]


TWICE = pa.Table.from_arrays([pa.array([0.5]), pa.array([0.25])], names=["y", "y"])
QUANTILES = {"levels": [0.1, 0.9], "quantiles": [["low", "high"]]}
SPREAD = {"missing": "drop", "forecasts": {"a": QUANTILES}}
NO_NUMBERS = [[0, None], [timedelta(0), timedelta(1)], [[0.0], [1.0]]]  # of which floats are made


@pytest.mark.parametrize(
    ("content", "keys", "said"),
    [
        ("y,x\n5,0.25,7\n", {}, "data row 1 (line 2) is of length 3, the header of 2"),
        ('y,x\n"0.\n5",7\n0.5\n', {}, "data row 2 (line 4) is of length 1"),
        ('y,x\n0.5,"7\n8\n', {}, "line 2 is no CSV"),
        ("y,x,y\n0.25,7,0.5\n", {}, "data.outcomes: column 'y' is there twice, as 1 and 3"),
        ("y,x\n0.5,7\nyes,8\n", {}, "'yes' in data row 2 (line 3); every value must be a finite"),
        ("y,x\n0.5,7\nyes,8\n", {}, "add codes = { y = { yes = 0 } }"),
        ("y,x\n0.5,7\n", {"context": ["x y"]}, "no column 'x y'"),
        ("y,x y\n0.5,a b\n", {"context": ["x y"]}, 'codes = { "x y" = { "a b" = 0 } }'),
        ("y,x\ntrue,7\n", {}, "add codes = { y = { true = 1, false = 0 } }"),
        (pa.table({"y": [True, False]}), {}, "add codes = { y = { True = 1, False = 0 } }"),
        ("y|x\n0.5|7\n", {}, 'separator = "|"'),
        ("y,x\n0.5,7\n", {"separator": ";"}, 'separator = ","'),
        ("y,x\n0.5;7\n", {}, "is of length 1"),
        ('y,x\n"-3,14",7\n', {}, "'-3,14' in data row 1 (line 2); if that is a decimal comma"),
        ("y;x\n0.5;7\n", {"separator": ";", "decimal": ","}, "leave that key out or mend"),
        ("y,x\n2012-01-31 12:00,7\n", {}, 'a date is no number; give it as index = "y"'),
        ("y,x\n31.1.2012,7\n", {}, "a date is no number"),
        (pa.table({"y": [date(2012, 1, 31)]}), {}, "holds '2012-01-31' in data row 1; a date"),
        (pa.table({"y": pd.to_datetime(["2012-01-31"])}), {}, "in data row 1; a date"),
        ("y,x\n0.5,7\n-inf,7\n", {}, "holds '-inf' in data row 2 (line 3); every value must"),
        ("y,x\n1e999,7\n", {}, "holds '1e999' in data row 1 (line 2); every value must"),
        (pa.table({"y": [0.5, np.inf]}), {}, "holds 'inf' in data row 2; every value must"),
        ("y,x\n0.5,7\n N/A ,7\n", {}, "column 'y' has no value in data row 2 (line 3)"),
        (pa.table({"y": [0.5, None]}), {}, "column 'y' has no value in data row 2; fill it"),
        (pa.table({"y": [0, None]}), {}, 'add missing = "previous" or missing = "drop"'),
        ("y,x\n,7\n0.5,7\n", {"missing": "previous"}, "'y' has no value in data row 1 (line 2)"),
        ("y,x\n,7\nNA,7\n", {"missing": "drop"}, 'missing = "drop" leaves no row'),
        ("y,x\n0.5,7\n", {"codes": {"x": {"a": 1.0}}}, "data.codes: 'x' is no column that is"),
        ("y,x\n0.5,7\n", {"index": "day"}, "data.index: no column 'day'"),
        (pa.table({"y": [0.5], "day": [b"\xff"]}), {"index": "day"}, "holds bytes in data row 1"),
        ("größe,y\n1,0.5\n".encode("latin-1"), {}, "not UTF-8: byte 0xf6 in line 1"),
        ("y,x\n0.5,7\n".encode("utf-16"), {}, "not UTF-8: byte 0xff in line 1"),
        ("y,x\n0.5,7\n".encode("utf-16-le"), {}, "zero bytes"),
        ("\ufeff", {}, "is empty; give it a line of names"),
        ("y,x\n", {}, "has no rows"),
        ("y\n\n\n", {}, "has no rows"),
        (pa.table({"y": pa.array([], pa.float64())}), {}, "has no rows"),
        *[(f"y\n{cell}\n", {}, "every value") for cell in ("1_0", "nan(7)", "0x1", "yes")],
        (TWICE, {}, "column 'y' is there twice, as 1 and 2"),
        ("y,low,high\n,1,1\n0.5,0.4,0.3\n", SPREAD, "'high' is below 'low' in data row 2 (line 3)"),
        *[(pa.table({"y": own}), {}, "data.outcomes: column 'y'") for own in NO_NUMBERS],
        *[
            (pa.table({"y": [0.5, 1], "x": own}), {"context": ["x"]}, "data.context: column 'x'")
            for own in NO_NUMBERS
        ],
        ("y,x\n" + "long " * 50 + ",7\n", {}, "holds 'long long long long long long long lo...'"),
    ],
)
def test_what_is_found_is_said_with_its_row_and_a_cure(
    content: Any, keys: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as error:
        table(tmp_path, content, **keys)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_the_last_value_is_carried_forward_or_the_row_dropped(tmp_path: Path) -> None:
    text = "day,y,x,f\n1,0.1,7,1\n2,,8,1\n3,0.3,NA,1\n4,0.4,6,\n5,0.5,5,0\n"
    keys: dict[str, Any] = {"context": ["x"], "forecasts": {"a": {"point": ["f"]}}}
    keys["index"] = "day"
    carried = table(tmp_path, text, missing="previous", **keys)
    assert carried.outcomes[:, 0].tolist() == [0.1, 0.1, 0.3, 0.4, 0.5]
    assert carried.contexts.tolist() == [[7, 1], [8, 1], [8, 1], [6, 1], [5, 0]]
    assert carried.index == ("1", "2", "3", "4", "5")
    assert carried.notes == ("3 rows lacked a value and were filled from the row before.",)
    dropped = table(tmp_path, text, missing="drop", **keys)
    assert dropped.outcomes[:, 0].tolist() == [0.1, 0.5]
    assert dropped.contexts.tolist() == [[7, 1], [5, 0]]
    assert dropped.index == ("1", "5")
    assert dropped.notes == ("3 rows lacked a value and were dropped.",)


# The index in the logs.


def scenario(folder: Path, text: str, **keys: Any) -> Scenario:
    (folder / "t.csv").write_text(text, encoding="utf-8")
    data = {"file": "t.csv", "outcomes": ["y"]} | keys
    return worlds.scenario(worlds.cohort("few", 1), rounds=3, data=data, origin=folder)


@pytest.mark.parametrize("form", ["parquet", "csv"])
@pytest.mark.parametrize("names", [["2012-01-01", "2012-01-02"], ["007", ""]])
def test_the_logs_carry_the_index_as_written(form: str, names: list[str], tmp_path: Path) -> None:
    own = scenario(tmp_path, f"day,y\n{names[0]},1\n{names[1]},0\n", index="day")
    run(own, Options(tmp_path / "logs", form))
    rounds = read_run(tmp_path / "logs")[1]["rounds"]
    assert list(rounds)[:3] == ["round", "day", "y_0"]
    assert rounds["day"].tolist() == [*names, names[0]]  # the table starts again
    model = worlds.played(own)
    assert model.rounds_frame()["day"].tolist() == [*names, names[0]]


@pytest.mark.parametrize(
    ("written", "times"),
    [
        (["2024-03-04", "2024-01-02"], ["03-04 00:00", "01-02 00:00"]),  # in no order, but ISO
        (["01/02/2024", "02/02/2024"], ["02-01 00:00", "02-02 00:00"]),
        (["01/13/2024", "02/01/2024"], ["01-13 00:00", "02-01 00:00"]),
        (["31.12.2024", "30.12.2024", "12.11.2024"], ["12-31 00:00", "12-30 00:00", "11-12 00:00"]),
        *[
            ([winter, summer] * 2, ["03-31 01:30", "03-31 03:30"] * 2)
            for winter, summer in (
                ("2024-03-31T01:30:00+01:00", "2024-03-31T03:30:00+02:00"),
                ("2024-03-31 01:30:00.5+0100", "2024-03-31 03:30:00.5+0200"),
                ("2024-03-31T01:30Z", "2024-03-31T03:30+00"),
                ("31.03.2024 01:30", "31.03.2024 03:30"),
            )
        ],
    ],
)
def test_the_order_says_whether_days_come_first_and_times_are_local(
    written: list[str], times: list[str]
) -> None:
    found = frames.calendar(pd.Series(written))
    assert found.dt.strftime("%Y-%m-%d %H:%M").tolist() == [f"2024-{time}" for time in times]


def test_dates_of_a_parquet_file_are_written_as_dates(tmp_path: Path) -> None:
    days = [date(2012, 1, 31) + timedelta(i) for i in range(2)]
    for column in (days, pd.to_datetime(days)):
        own = table(tmp_path, pa.table({"day": column, "y": [0, 1]}), index="day")
        assert own.index == ("2012-01-31", "2012-02-01")


# Whatever is written is read, or refused.

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)
CELLS = NUMBERS | st.none() | st.sampled_from(["wet", "", "True", "1_0", "1e999", "31.1.12"])


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
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow(["a", "b"])
        for row in rows:
            numbers = [repr(c).replace(".", decimal) if isinstance(c, float) else c for c in row]
            writer.writerow(numbers)
    keys: dict[str, Any] = {"separator": separator, "decimal": decimal, "missing": missing}
    spec = DataSpec(file=str(path), outcomes=["a"], context=["b"], scale={"a": [-1e6, 1e6]}, **keys)
    whole = [[None if c == "" else c for c in row] for row in rows]
    plain = all(c is None or isinstance(c, float) for row in whole for c in row)
    if missing == "drop":
        whole = [row for row in whole if None not in row]
    elif missing == "previous" and None not in whole[0]:
        for before, row in pairwise(whole):
            row[:] = [b if c is None else c for b, c in zip(before, row, strict=True)]
    if plain and whole and all(c is not None for row in whole for c in row):
        read = read_table(spec)
        values = np.array(whole, dtype=float)
        np.testing.assert_array_equal(read.contexts[:, 0], values[:, 1])
        np.testing.assert_array_equal(read.outcomes[:, 0], (values[:, 0] + 1e6) / 2e6)
    else:
        with pytest.raises(UserError) as error:
            read_table(spec)
        assert "\n" not in str(error.value)
