"""``regretless describe``: the columns as a table on the terminal, and the starter file."""

from pathlib import Path

import numpy as np

from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError
from regretless.scenarios.describe.columns import Column, described
from regretless.scenarios.describe.starter import starter
from regretless.scenarios.terminal import console, print_plainly
from regretless.scenarios.terminal import table as laid_out

HEADERS = ("column", "holds", "could be", "missing", "distinct", "from", "to", "season")
LONG, LONGEST = 1e4, 1e15


def describe(data: Path, out: Path | None) -> None:
    """Print what is in a table, and write a starter scenario if a file is given.

    UserError if the table cannot be read, has no outcome, or the file is there already.
    """
    if out is not None and (out.suffix != ".toml" or out.exists()):
        reason = "is there already" if out.exists() else "is no .toml file"
        raise UserError(f"--out {out} {reason}; give another name, such as my-{data.stem}.toml")
    table = described(data)
    text = starter(table, out.parent) if out is not None else ""
    screen = console()
    screen.print(f"{data.name}: {len(table.frame):,} rows, {len(table.columns)} columns\n")
    cells = [_cells(column) for column in table.columns]
    print_plainly(screen, laid_out(HEADERS, cells, width=screen.width, words=range(3)))
    for column in table.columns:
        if column.note:
            screen.print(f"{column.name}: {column.note}.")
    if out is None:
        screen.print(f"\n--out my-{data.stem}.toml writes a scenario of these data.")
        return
    with replacing(out) as draft:
        draft.write_text(text, encoding="utf-8")
    screen.print(f"\nWritten: {out}. Next: regretless run {out}")


def _cells(column: Column) -> list[str]:
    ends = ["" if np.isnan(end) else _written(end) for end in (column.low, column.high)]
    season = "" if column.season is None else f"{column.season:,} rows"
    counts = [f"{column.missing:,}" if column.missing else "", f"{column.distinct:,}"]
    return [column.name, column.kind, column.role or "-", *counts, *ends, season]


def _written(number: float) -> str:
    """Write a number in four digits, or in all that it has before the point if these are few."""
    return f"{number:,.0f}" if LONG <= abs(number) < LONGEST else f"{number:.4g}"
