"""Tables that an audit reads: pandas, Polars or Arrow, CSV or Parquet files, or bundled ones."""

from pathlib import Path
from typing import Protocol, runtime_checkable

import pandas as pd

from regretless.market.core.errors import UserError
from regretless.market.core.paths import expanded
from regretless.scenarios.config.files import DATA
from regretless.scenarios.table_files import place, read_frame, texts

ALL = "all"  # the decision maker, where the table names none


@runtime_checkable
class ConvertibleTable(Protocol):
    """A table of another library that converts itself, as those of Polars and Arrow do."""

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a DataFrame of pandas."""


Table = pd.DataFrame | ConvertibleTable | Path | str


def read_table(table: Table, where: str) -> pd.DataFrame:
    """Return a table, read where it is a path, or the name of one that comes with the package."""
    if isinstance(table, ConvertibleTable):
        table = table.to_pandas()
    if isinstance(table, pd.DataFrame):
        if not len(table):
            raise UserError(f"{where} have no rows; give them at least one")
        return table
    if not isinstance(table, str | Path):
        kind = type(table).__name__
        cure = "give a path, or a table of pandas, Polars or Arrow (of a LazyFrame, collect it)"
        raise UserError(f"{where}: {kind} is no table; {cure}")
    given_path = expanded(table)
    path = given_path if given_path.is_file() else DATA / given_path
    if not path.is_file():
        raise UserError(f"{where}: no file '{given_path}'; give the path of a CSV or Parquet file")
    return read_frame(path, f"{where} {path.name}")


def read_names(table: pd.DataFrame, column: str, key: str) -> tuple[str, ...]:
    """Return a column of texts (T,), none of which is missing; UserError, under ``key``, else."""
    names = texts(table, column, key)
    if "" in names:
        empty = f"column '{column}' has no value in {place(table, names.index(''))}"
        raise UserError(f"{key}: {empty}; fill it")
    return names
