"""The tables of a study: written once from its runs, and read by everything that shows them."""

import dataclasses
import shutil
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_scenarios import NATURE_SCENARIO, write_study

from regretless.market.core.errors import UserError
from regretless.scenarios.report.write import write_report
from regretless.scenarios.studies import Study, load_study
from regretless.scenarios.studies.analysis.measures import typed_table
from regretless.scenarios.studies.conduct import Options, conduct
from regretless.scenarios.studies.directory import StudyDirectory
from regretless.scenarios.studies.tables import STUDY_TABLES

SIZES = """\
scenario = "tiny.toml"
seeds = 2
[grid]
"cohort.farmers.count" = [2, 3]
"""
SAMPLED_WITH_WINDOWS = """\
scenario = "tiny.toml"
set = { "windows.every" = 5 }
[sample]
points = 8
targets = { "farmers.mean_loss" = 0.5 }
[sample.keys]
"cohort.farmers.count" = [2, 5]
"""
IS_OF_TYPE = {
    "str": lambda column: pa.types.is_string(column) or pa.types.is_large_string(column),
    "int64": pa.types.is_int64,
    "float64": pa.types.is_float64,
    "bool": pa.types.is_boolean,
}


@pytest.fixture(scope="module")
def finished_study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("sizes")
    return conduct(write_study(folder, SIZES, NATURE_SCENARIO), Options(folder / "out", jobs=1))


@pytest.fixture
def copied_study(finished_study: Study, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished_study.path, tmp_path / "copy"))


def columns_of_another_type(file: Path, columns: dict[str, str]) -> list[str]:
    schema = pq.read_schema(file)
    wrong = []
    for name, kind in columns.items():
        if not IS_OF_TYPE[kind](schema.field(name).type):
            wrong.append(f"{file.name}: {name} is {schema.field(name).type}, not {kind}")
    return wrong


@pytest.mark.parametrize("text", [SIZES, SAMPLED_WITH_WINDOWS], ids=["listed", "sampled"])
def test_a_table_without_rows_keeps_the_types_of_its_columns(tmp_path: Path, text: str) -> None:
    directory = StudyDirectory(tmp_path / "out", write_study(tmp_path, text, NATURE_SCENARIO))
    directory.path.mkdir()
    directory.start(is_known=False)
    without_runs = Study(directory.path)
    wrong = []
    for name, table in STUDY_TABLES.items():
        if table.available(without_runs):
            directory.write(name, table.of(without_runs))
            file = directory.path / f"{name}.parquet"
            wrong += columns_of_another_type(file, dict(table.columns))
    assert wrong == []


def test_a_column_of_text_without_rows_is_text_whatever_pandas_calls_it(tmp_path: Path) -> None:
    directory = StudyDirectory(tmp_path / "out", write_study(tmp_path, SIZES, NATURE_SCENARIO))
    directory.path.mkdir()
    directory.start(is_known=False)
    directory.write("value", typed_table([], {"cohort": "object", "mean": "float64"}))
    assert pa.types.is_string(pq.read_schema(tmp_path / "out/value.parquet").field("cohort").type)


def test_every_table_has_the_columns_that_it_declares(finished_study: Study) -> None:
    wrong = []
    for name in ("cohorts", "effects", "contrasts", "regression"):
        file = finished_study.path / f"{name}.parquet"
        assert pq.read_metadata(file).num_rows > 0
        wrong += columns_of_another_type(file, dict(STUDY_TABLES[name].columns))
    assert wrong == []


def test_the_page_and_the_tables_are_read_and_not_computed_again(
    copied_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Any) -> pd.DataFrame:
        raise AssertionError("it was computed again")

    for name, table in STUDY_TABLES.items():
        unable = dataclasses.replace(table, compute=refuse)
        monkeypatch.setitem(STUDY_TABLES, name, unable)
    read = load_study(copied_study)
    for name in ("cohorts", "effects", "contrasts", "regression"):
        written = pd.read_parquet(copied_study / f"{name}.parquet")
        pd.testing.assert_frame_equal(read.result(name), written)
    assert "cohort.farmers.count" in write_report(copied_study).read_text(encoding="utf-8")
    exported = {file.stem for file in read.export(tmp_path / "tables")}
    assert {"effects", "contrasts", "regression", "parameters"} <= exported


def test_tables_follow_the_runs_that_are_there(copied_study: Path) -> None:
    shutil.rmtree(copied_study / "runs/run=0003")
    remaining = load_study(copied_study)
    assert remaining.cohorts()["run"].tolist() == [0, 1, 2]
    of_three = remaining.effects().query("value == '3' and measure == 'mean_loss'")
    assert of_three["seeds"].tolist() == [1]


def test_a_damaged_table_is_computed_from_the_runs(copied_study: Path) -> None:
    expected = load_study(copied_study).effects()
    (copied_study / "effects.parquet").write_bytes(b"PAR1 torn")
    pd.testing.assert_frame_equal(load_study(copied_study).effects(), expected)


def test_without_statsmodels_a_study_has_no_regression_and_says_what_brings_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    warnings: list[str] = []
    options = Options(tmp_path / "out", jobs=1)
    played = conduct(write_study(tmp_path, SIZES, NATURE_SCENARIO), options, warn=warnings.append)
    needs = "needs statsmodels, which is not installed; run pip install 'regretless[stats]'"
    assert [line for line in warnings if needs in line] == warnings != []
    assert not (played.path / "regression.parquet").exists()
    assert (played.path / "contrasts.parquet").exists()
    assert "Effects" in write_report(played.path).read_text(encoding="utf-8")
    for measures in ((), ("mean_loss",)):
        with pytest.raises(UserError, match=r"run pip install 'regretless\[stats\]'"):
            played.regression(*measures)


def test_a_regression_that_can_no_longer_be_computed_does_not_stay(
    copied_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    shutil.rmtree(copied_study / "runs/run=0003")
    resumed = conduct(
        write_study(tmp_path, SIZES, NATURE_SCENARIO), Options(copied_study, jobs=1, resume=True)
    )
    assert len(resumed.runs()) == 4
    assert not (copied_study / "regression.parquet").exists()
    assert "regression.parquet" not in load_study(copied_study).record["files"]


def test_where_play_is_among_the_solutions_is_a_measure(tmp_path: Path) -> None:
    text = """\
scenario = "pigou"
seeds = 2
set = { rounds = 30, "cohort.drivers.count" = 20, solutions = ["nash", "ce", "cce", "optimum"] }
[grid]
"market.noise" = [0.0, 0.1]
"""
    study = conduct(write_study(tmp_path, text), Options(tmp_path / "out", jobs=1))
    cohorts = study.cohorts()
    solutions = study.table("solutions")
    for run, rows in solutions.groupby("run"):
        of_name = rows.drop_duplicates("name").set_index("name")
        row = cohorts[cohorts["run"] == run].iloc[0]
        assert row["distance_cce"] == of_name.loc["play", "distance_cce"]
        nash = of_name["welfare"].get("worst nash", of_name["welfare"].get("nash"))
        way = of_name.loc["optimum", "welfare"] - nash
        expected = (of_name.loc["play", "welfare"] - nash) / way
        assert row["index_nash_optimum"] == pytest.approx(expected)
    effects = study.effects()
    assert {"distance_ce", "distance_cce", "index_nash_optimum"} <= {*effects["measure"]}
