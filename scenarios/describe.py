"""``regretless describe``: print what a table holds, and write a starter scenario that plays it."""

from pathlib import Path

import numpy as np

from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError
from regretless.scenarios.starter import starter
from regretless.scenarios.table_description import described
from regretless.scenarios.terminal import console, print_plainly
from regretless.scenarios.terminal import table as laid_out

HEADERS = ("column", "holds", "could be", "missing", "distinct", "from", "to", "season")
LONG, LONGEST = 1e4, 1e15


def describe(data: Path, out: Path | None) -> None:
    """Print what is in a table, and write a starter scenario if a file is given."""
    if out is not None and (out.suffix != ".toml" or out.exists()):
        reason = "is there already" if out.exists() else "is no .toml file"
        raise UserError(f"--out {out} {reason}; give another name, such as my-{data.stem}.toml")
    table = described(data)
    text = starter(table, out.parent) if out is not None else ""
    screen = console()
    screen.print(f"{data.name}: {len(table.frame):,} rows, {len(table.columns)} columns\n")
    cells = []
    for own in table.columns:
        ends = [
            "" if np.isnan(end) else f"{end:,.0f}" if LONG <= abs(end) < LONGEST else f"{end:.4g}"
            for end in (own.low, own.high)
        ]
        season = "" if own.season is None else f"{own.season:,} rows"
        missing = f"{own.missing:,}" * (own.missing > 0)
        told = own.name, own.kind, own.role or "-", missing, f"{own.distinct:,}"
        cells.append([*told, *ends, season])
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
