"""Runs of a study whose tables have different columns are read as one table by every recipe."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from read_study_files import read_with_duckdb, read_with_pandas, read_with_polars
from small_scenarios import write_study

from regretless.scenarios.studies import Study
from regretless.scenarios.studies.conduct import Options, conduct

DIFFERENT_TABLES = """\
scenario = "tiny.toml"
seeds = 1
rounds = 12
[grid.arrangement]
alone = {"forecaster.kind" = "running-mean"}
network = {"network.graph" = "none", "network.subscribers" = 1}
"""


@pytest.fixture(scope="module")
def study_of_different_tables(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Play a study whose first run has neither a network nor biases."""
    folder = tmp_path_factory.mktemp("study")
    design = write_study(folder, DIFFERENT_TABLES)
    return conduct(design, Options(folder / "out", jobs=1))


@pytest.mark.parametrize("read_all", [read_with_pandas, read_with_polars, read_with_duckdb])
@pytest.mark.parametrize("table", ["agents", "biases"])
def test_every_recipe_keeps_all_rows_and_columns(
    study_of_different_tables: Study, read_all: Callable[..., pd.DataFrame], table: str
) -> None:
    expected = study_of_different_tables.table(table)
    frame = read_all(study_of_different_tables, table)
    assert set(frame) == set(expected)
    assert sorted(frame["run"].astype("int64")) == sorted(expected["run"])


def test_what_a_run_lacks_is_empty(study_of_different_tables: Study) -> None:
    agents = read_with_pandas(study_of_different_tables)
    assert agents.groupby("run")["distance"].count().tolist()[0] == 0
    assert agents.groupby("run")["distance"].count().tolist()[1] > 0


def test_a_table_without_rows_has_the_types_of_one_with_rows(
    study_of_different_tables: Study,
) -> None:
    types: list[dict[str, Any]] = []
    for home in study_of_different_tables.folders().values():
        table = pd.read_parquet(Path(home) / "biases.parquet", partitioning=None)
        types.append({name: str(dtype) for name, dtype in table.dtypes.items()})
    shared = types[0].keys() & types[1].keys()
    assert {name: types[0][name] for name in shared} == {name: types[1][name] for name in shared}
