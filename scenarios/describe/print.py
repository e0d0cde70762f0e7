"""``regretless describe``: the columns as a table on the terminal, and the starter file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from rich.console import Console
from rich.table import Table

from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError
from regretless.scenarios.describe.columns import Column, described
from regretless.scenarios.describe.starter import starter

HEADS = ("column", "holds", "could be", "missing", "different", "from", "to", "season")
FIRST_NUMBER = 3
LONG, LONGEST = 1e4, 1e15


def describe(data: Path, out: Path | None) -> None:
    """Print what is in a table, and write a starter scenario if a file is given.

    Raises
    ------
    UserError
        If the table cannot be read, has no outcome, or the file is there already.
    """
    if out is not None and (out.suffix != ".toml" or out.exists()):
        reason = "is there already" if out.exists() else "is no .toml file"
        raise UserError(f"--out {out} {reason}; give another name, such as my-{data.stem}.toml")
    table = described(data)
    text = starter(table, out.parent) if out is not None else ""
    console = Console(highlight=False)
    console.print(
        f"{data.name}: {len(table.frame)} rows, {len(table.columns)} columns\n", markup=False
    )
    console.print(_listing(table.columns))
    for column in table.columns:
        if column.note:
            console.print(f"{column.name}: {column.note}.", markup=False)
    if out is None:
        wanted = f"--out my-{data.stem}.toml writes a scenario that plays it."
        console.print(f"\n{wanted}", markup=False)
        return
    with replacing(out) as draft:
        draft.write_text(text, encoding="utf-8")
    console.print(f"\nWritten: {out}. Next: regretless run {out}", markup=False)


def _listing(columns: Sequence[Column]) -> Table:
    """Lay the columns out: long names are broken, numbers never, and what all lack is left out."""
    listing = Table(box=None, header_style="bold", pad_edge=False)
    cells = list(zip(*map(_cells, columns), strict=True))
    kept = [i for i, own in enumerate(cells) if any(own)]
    for i in kept:
        number = i >= FIRST_NUMBER
        side: Literal["right", "left"] = "right" if number else "left"
        listing.add_column(HEADS[i], justify=side, no_wrap=number, overflow="fold")
    for row in zip(*(cells[i] for i in kept), strict=True):
        listing.add_row(*row)
    return listing


def _cells(column: Column) -> list[str]:
    ends = ["" if np.isnan(end) else _written(end) for end in (column.low, column.high)]
    season = "" if column.season is None else f"{column.season} rows"
    counts = [str(column.missing or ""), str(column.distinct)]
    return [column.name, column.kind, column.role or "-", *counts, *ends, season]


def _written(number: float) -> str:
    """Write a number in four digits, or in all that it has before the point if these are few."""
    return f"{number:,.0f}" if LONG <= abs(number) < LONGEST else f"{number:.4g}"
