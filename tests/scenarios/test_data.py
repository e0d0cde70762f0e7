"""Users' own tables: what is read, scaled and drawn anew, and that nothing else passes."""

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
import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st
from small_scenarios import cohort_table, make_scenario, play_to_end, read_scenario, write_study

from regretless.market.core.errors import UserError
from regretless.market.core.randomness import stream
from regretless.scenarios import load, table_files
from regretless.scenarios.assembly.data import Table, read_table
from regretless.scenarios.config.data import DataSpec
from regretless.scenarios.logs.run_directory import read_run
from regretless.scenarios.run import Options, run
from regretless.scenarios.studies.analysis import measures as analysis
from regretless.scenarios.studies.conduct import Options as StudyOptions
from regretless.scenarios.studies.conduct import conduct


def table(folder: Path, content: str | bytes | pa.Table | pd.DataFrame, **keys: Any) -> Table:
    """Write a CSV, or the Parquet file that a table is, and read its column y, or others."""
    path = folder / ("t.parquet" if isinstance(content, pa.Table) else "t.csv")
    if isinstance(content, pa.Table):
        pq.write_table(content, path)
    elif isinstance(content, pd.DataFrame):
        content.to_csv(path, index=False)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_table(DataSpec(file=str(path), **{"outcomes": ["y"]} | keys))


def typed(values: list[float], kind: Any) -> pa.Table:
    return pa.Table.from_pandas(pd.DataFrame({"y": pd.array(values, dtype=kind)}))


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
        *[(typed([1, 2], kind), {"scale": {"y": [0, 4]}}) for kind in ("Int64", "int8")],
        *[(typed([0.25, 0.5], kind), {}) for kind in ("Float64", "float32")],
        ("y\n0.25\n\n0.5\n\n\n", {"missing": "drop"}),  # alone in its row, a gap is a blank line
        ("y,x\n0.25,7\n0.5,NA\n", {}),  # nobody asked for x
        ("y,x,x,,\n0.25,7,8,9,9\n0.5,7,8,9,9\n", {}),
        ('y,note\n0.25,"two\nlines"\n0.5,"a, ""quoted"" one"\n', {}),
    ],
)
def test_a_table_is_read(content: Any, keys: dict[str, Any], tmp_path: Path) -> None:
    assert table(tmp_path, content, **keys).outcomes[:, 0].tolist() == [0.25, 0.5]


TWICE = pa.Table.from_arrays([pa.array([0.5]), pa.array([0.25])], names=["y", "y"])
BELOW = {"levels": [0.1, 0.9], "quantiles": [["low", "high"]]}
SPREAD = {"missing": "drop", "forecasts": {"a": BELOW}}
NO_NUMBERS = [[0, None], [timedelta(0), timedelta(1)], [[0.0], [1.0]]]  # of which floats are made


@pytest.mark.parametrize(
    ("content", "keys", "said"),
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
        ("y,x\n0.5,7\n", {"codes": {"x": {"a": 1.0}}}, "data.codes: 'x' is no column that is"),
        ("y,x\n0.5,7\n", {"index": "day"}, "data.index: no column 'day'"),
        (pa.table({"y": [0.5], "day": [b"\xff"]}), {"index": "day"}, "holds bytes in data row 1"),
        ("größe,y\n1,0.5\n".encode("latin-1"), {}, "not UTF-8: byte 0xf6 in line 1"),
        ("y,x\n0.5,7\n".encode("utf-16"), {}, "not UTF-8: byte 0xff in line 1"),
        ("y,x\n0.5,7\n".encode("utf-16-le"), {}, "zero bytes"),
        ("\ufeff", {}, "is empty; give it a line of names"),
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


# The index.


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_the_logs_carry_the_index_as_written(form: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("day,y\n2012-01-01,1\n007,0\n,0\n", encoding="utf-8")
    data = {"file": "t.csv", "outcomes": ["y"], "index": "day"}
    own = make_scenario(cohort_table("few", 1), rounds=4, data=data, origin=tmp_path)
    run(own, Options(tmp_path / "logs", form))
    for rounds in (read_run(tmp_path / "logs")[1]["rounds"], play_to_end(own).rounds_frame()):
        assert list(rounds)[:3] == ["round", "day", "y_0"]
        assert rounds["day"].tolist() == ["2012-01-01", "007", "", "2012-01-01"]  # starts again


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
    found = table_files.calendar(pd.Series(written))
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


# Scales.


FRAME = "rain,warmth,share\n0,-10,0\n5,0,0.25\n10,10,0.5\n20,30,0.75\n-1,40,1\n"


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
    read = table(tmp_path, FRAME, outcomes=["rain"], scale={"rain": ends})
    np.testing.assert_allclose(read.outcomes[:, 0], expected, atol=1e-15)
    assert read.clipped == pytest.approx(clipped)
    assert not np.signbit(read.outcomes).any()  # no 0 is negative


@pytest.mark.parametrize(("warmth", "share"), [([0, 40], 3 / 5), ([-10, 20], 2 / 5)])
def test_the_clipped_share_counts_rows_not_cells(
    warmth: list[float], share: float, tmp_path: Path
) -> None:
    """Rain clips rows 4 and 5; warmth row 1, or the same two."""
    scale = {"rain": [0.0, 10.0], "warmth": warmth}
    read = table(tmp_path, FRAME, outcomes=["rain", "warmth", "share"], scale=scale)
    assert read.clipped == pytest.approx(share)


def test_data_are_beside_their_scenario_or_bundled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in the folder in which the command happens to run."""
    own = {"name": "s", "rounds": 2, "data": {"file": "t.csv", "outcomes": ["a"]}}
    text = tomli_w.dumps(own | {"cohort": [cohort_table("c", 1)]})
    files = {"home/t.csv": "a\n0.25\n", "home/s.toml": text, "elsewhere/t.csv": "a\n0.75\n"}
    for name, content in (files | {"elsewhere/seattle-weather.csv": "precipitation\n1\n"}).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    monkeypatch.chdir(tmp_path / "elsewhere")
    found, bundled = (load(name).table for name in ("../home/s.toml", "crop-choice"))
    assert found is not None
    assert found.outcomes.tolist() == [[0.25]]
    assert bundled is not None
    assert len(bundled.outcomes) == 1461  # every day of four years
    (tmp_path / "home/t.csv").unlink()
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
T, W = ["t1", "t2", "t3"], ["w1", "w2", "w3"]
UNITS = {"outcomes": ["temp", "wind"], "context": ["month"]}
QUANTILES = {"levels": [0.1, 0.5, 0.9], "quantiles": [T, W]}


def weather(folder: Path, own: dict[str, Any], *, ends: tuple[float, float] = (0, 20)) -> Table:
    return table(folder, FORECAST, forecasts={"own": own}, scale={"temp": [*ends]}, **UNITS)


def test_forecasts_follow_the_context_in_the_units_of_outcomes(tmp_path: Path) -> None:
    both = {"office": {"point": ["t2", "w2"]}, "ensemble": {"samples": [T, W]}}
    keys = {"forecasts": both, "scale": {"temp": [0.0, 20.0]}, **UNITS}
    found = table(tmp_path, FORECAST, **keys)
    names = ["forecasts.office.temp.0", "forecasts.office.wind.0"]
    names += [f"forecasts.ensemble.{own}.{i}" for own in ("temp", "wind") for i in range(3)]
    assert found.names == ("month", *names)
    spec = DataSpec(file="t.csv", **keys)
    assert spec.features_of("office") == [names[:1], names[1:2]]
    assert spec.features_of("ensemble") == [names[2:5], names[5:]]
    temp, wind = FORECAST[T].to_numpy() / 20, FORECAST[W].to_numpy()
    by_hand = np.column_stack([FORECAST["month"], temp[:, 1], wind[:, 1], temp, wind])
    by_hand[:, 1:] = by_hand[:, 1:].clip(0, 1)  # 25, 30 and -0.5 are beyond the scale
    np.testing.assert_allclose(found.contexts, by_hand, atol=1e-15)
    said = "33.3 % of all rows of forecast {} were outside their scale and were clipped: {}."
    assert found.notes == (
        said.format("office", "t2 33.3 %"),
        said.format("ensemble", "t2 33.3 %, t3 33.3 %, w1 33.3 %"),
    )


def test_the_note_on_clipped_rows_names_the_columns_and_their_shares(tmp_path: Path) -> None:
    scale = {"rain": [0.0, 10.0], "warmth": [-10, 20]}
    read = table(tmp_path, FRAME, outcomes=["rain", "warmth", "share"], scale=scale)
    (note,) = read.notes
    said = "40.0 % of all rows were outside their scale and were clipped"
    assert note == f"{said}: rain 40.0 %, warmth 40.0 %."


def test_a_reversed_scale_turns_quantiles_round(tmp_path: Path) -> None:
    """The lowest temperature is the highest outcome: its feature is that of the highest level."""
    up, down = (weather(tmp_path, QUANTILES, ends=to).contexts[:, 1:] for to in ((0, 20), (20, 0)))
    np.testing.assert_allclose(down[:, :3], 1 - up[:, 2::-1], atol=1e-15)
    assert (np.diff(down[:, :3], axis=1) >= 0).all()
    np.testing.assert_array_equal(down[:, 3:], up[:, 3:])
    skewed = QUANTILES | {"levels": [0.1, 0.5, 0.8]}
    weather(tmp_path, skewed)
    with pytest.raises(ValueError, match=r"reversed scale of 'temp'; give levels that mirror"):
        weather(tmp_path, skewed, ends=(20, 0))


def replayed(folder: Path, frame: pd.DataFrame, outcomes: list[str], **more: Any) -> dict[str, Any]:
    frame.to_csv(folder / "t.csv", index=False)
    few = cohort_table("few", 1)
    data = {"file": "t.csv", "outcomes": outcomes} | more
    return {"name": "s", "rounds": len(frame), "data": data, "cohort": [few]}


def test_forecasts_are_seen_before_the_round_and_do_not_swell_the_logs(tmp_path: Path) -> None:
    own = {"forecasts": {"ensemble": {"samples": [T, W]}}, "scale": {"temp": [0.0, 20.0]}}
    raw = replayed(tmp_path, FORECAST, UNITS["outcomes"], context=["month"], **own)
    model = read_scenario(raw, "rounds=5", origin=tmp_path).build(seed=1)
    seen = model.game.adversary.context(model.game.history)
    assert [seen["month"], seen["forecasts.ensemble.temp.2"]] == [1.0, 3 / 20]
    model.run()
    rounds = model.rounds_frame()
    assert list(rounds.filter(regex="^x_")) == ["x_0"]
    assert rounds["x_0"].tolist() == [1, 2, 3, 1, 2]


def test_a_base_that_serves_half_of_the_agents_costs_the_others_nothing(tmp_path: Path) -> None:
    """A forecast column knows the first outcome, and says the opposite of the second."""
    rng, rounds = np.random.default_rng(0), 400
    known = rng.random((rounds, 2))
    truth = np.clip(known + 0.1 * rng.standard_normal((rounds, 2)), 0.0, 1.0)
    columns = np.column_stack([truth, known[:, 0], 1.0 - known[:, 1]])
    frame, office = pd.DataFrame(columns, columns=[*"abmn"]), {"office": {"point": ["m", "n"]}}
    raw, slopes = replayed(tmp_path, frame, ["a", "b"], forecasts=office), np.linspace(-1, 1, 5)
    raw["cohort"] = []
    for name, place in (("served", np.eye(2)[0]), ("misled", np.eye(2)[1])):
        gains = [[0.5, 0.27, 0.0, -0.22, -0.5]]
        own = {"weights": np.outer(slopes, place).tolist(), "gains": gains}
        raw["cohort"].append(cohort_table(name, 1, 5, "affine", parameters=own))
    lost = {}
    kinds = {"plain": {"models": []}, "ours": {}, "office alone": {"kind": "office"}}
    for name, kind in kinds.items():
        told = read_scenario(raw | {"forecaster": kind}, origin=tmp_path)
        agents = play_to_end(told, seed=1).agents_frame()
        lost[name] = agents["mean_loss"].to_numpy()
        if name == "ours":
            assert (agents["decision_swap_regret"] <= agents["bound"]).all()
            assert (agents["regret_to_models"] <= agents["regret_to_models_bound"]).all()
    assert lost["ours"][0] <= 1.03 * lost["office alone"][0] < lost["plain"][0]
    assert lost["ours"][1] <= lost["plain"][1] < lost["office alone"][1]


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
    outcomes, rng = np.linspace(0, 1, 50)[:, None], np.random.default_rng(3)
    table = Table(outcomes, np.arange(50.0)[:, None], 0.0, index=tuple(map(str, range(50))))
    found = table.resampled(8, 20_000, rng)
    rows = found.contexts[:, 0].astype(int)
    assert [int(name) for name in found.index] == rows.tolist()
    np.testing.assert_array_equal(found.outcomes, outcomes[rows])
    broken = (np.diff(rows) % 50 != 1).mean()
    assert broken == pytest.approx((1 - 1 / 50) / 8, rel=0.1)
    assert np.bincount(rows, minlength=50).min() > 200
    assert len(table.resampled(1, 10, rng).outcomes) == 10


def test_every_seed_has_a_history_of_its_own_from_a_named_stream() -> None:
    scenario = load("crop-choice", **{"data.bootstrap": 7, "rounds": 12})
    histories = [play_to_end(scenario, seed=s).game.history.last(12) for s in (1, 1, 2)]
    np.testing.assert_array_equal(histories[0], histories[1])
    assert not np.array_equal(histories[0], histories[2])
    again = scenario.table.resampled(7, 12, stream(1, "data", "bootstrap"))
    np.testing.assert_array_equal(histories[0], again.outcomes)


def test_intervals_over_replicates_are_their_quantiles(tmp_path: Path) -> None:
    values = np.arange(101.0)
    assert analysis.replicates(values) == pytest.approx((50.0, 2.5, 97.5))
    assert np.isnan(analysis.replicates([1.0])[1:]).all()
    study = conduct(write_study(tmp_path, STUDY), StudyOptions(tmp_path / "out", jobs=1))
    assert study.ends is analysis.replicates
    found = study.contrasts().query("measure == 'mean_loss'").iloc[0]
    losses = study.cohorts().merge(study.parameters(), on="run")
    wide = losses.pivot_table(index="seed", columns="forecaster.kind", values="mean_loss")
    ends = np.quantile(wide["running-mean"] - wide["decision-swap"], [0.025, 0.975])
    np.testing.assert_allclose(found[["low", "high"]].to_numpy(dtype=float), ends)
