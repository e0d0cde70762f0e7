"""Tables that an audit reads: pandas, Polars or Arrow, CSV or Parquet files, or bundled ones.

What an audit writes comes into a new directory, whole or not at all (``new_directory``).
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, runtime_checkable

import pandas as pd

from regretless.market.core.errors import UserError, brief
from regretless.market.core.paths import expanded
from regretless.scenarios.config.files import DATA
from regretless.scenarios.table_files import Form, place, read_frame, texts

ALL = "all"  # the decision maker, where the table names none


@runtime_checkable
class ConvertibleTable(Protocol):
    """A table of another library that converts itself, as those of Polars and Arrow do."""

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a DataFrame of pandas."""


Table = pd.DataFrame | ConvertibleTable | Path | str
MARKS = (",", ".")  # of decimals
SEPARATOR = re.compile(r"[^\w.+\-\"\r\n]")
USUAL_FORM = Form(has_options=True)


def form_of_tables(separator: str | None, decimal: str | None) -> Form:
    """Return how the files are written; UserError for what cannot separate or mark decimals."""
    if separator is not None and not SEPARATOR.fullmatch(str(separator)):
        reason = f"separator: {brief(separator)} is no separator"
        raise UserError(f"{reason}; give one character, as ';'")
    if decimal is not None and decimal not in MARKS:
        reason = f"decimal: {brief(decimal)} is no decimal mark"
        raise UserError(f"{reason}; give ',' or '.'")
    return Form(separator=separator, decimal=decimal, has_options=True)


def read_table(table: Table, where: str, form: Form = USUAL_FORM) -> pd.DataFrame:
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
    return read_frame(path, f"{where} {path.name}", form)


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """Yield a folder that takes its place at a path once it is complete; else nothing is left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.mkdir()
    try:
        yield draft
        draft.rename(path)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def read_names(table: pd.DataFrame, column: str, key: str) -> tuple[str, ...]:
    """Return a column of texts (T,), none of which is missing; UserError, under ``key``, else."""
    names = texts(table, column, key)
    if "" in names:
        empty = f"column '{column}' has no value in {place(table, names.index(''))}"
        raise UserError(f"{key}: {empty}; fill it, or leave the row out")
    return names
