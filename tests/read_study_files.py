"""The recipes of ``docs/studies.md`` that read a table of all runs of a study."""

from pathlib import Path

import duckdb
import pandas as pd
import polars as pl

from regretless.scenarios.studies import Study


def files_of(study: Study, table: str) -> list[Path]:
    """Return the files of a table, in the order of the runs."""
    return sorted(study.path.glob(f"runs/*/{table}.parquet"))


def read_with_pandas(study: Study, table: str = "agents") -> pd.DataFrame:
    """Read a table of all runs as the page says for pandas."""
    files = files_of(study, table)
    return pd.concat([pd.read_parquet([file], partitioning="hive") for file in files])


def read_with_polars(study: Study, table: str = "agents") -> pd.DataFrame:
    """Read a table of all runs as the page says for Polars."""
    parts = [pl.read_parquet(file, hive_partitioning=True) for file in files_of(study, table)]
    return pd.DataFrame(pl.concat(parts, how="diagonal_relaxed").to_dict())


def read_with_duckdb(study: Study, table: str = "agents") -> pd.DataFrame:
    """Read a table of all runs as the page says for DuckDB."""
    files = f"{study.path}/runs/*/{table}.parquet"
    options = "hive_partitioning = true, union_by_name = true"
    rows = duckdb.sql(f"SELECT * FROM read_parquet('{files}', {options})")  # noqa: S608
    return pd.DataFrame(rows.fetchall(), columns=rows.columns)
