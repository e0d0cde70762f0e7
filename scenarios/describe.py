"""``regretless describe``: print what a table holds, and write a starter scenario that plays it."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import numpy as np

from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError
from regretless.scenarios.config.data import DecimalMark, ThousandsMark
from regretless.scenarios.config.tables import MAX_NAME_CHARACTERS
from regretless.scenarios.starter import OrderCosts, starter
from regretless.scenarios.table_description import Column, described
from regretless.scenarios.terminal import console, print_plainly
from regretless.scenarios.terminal import table as laid_out

HEADERS = ("column", "holds", "could be", "missing", "distinct", "from", "to", "season")
MIN_FIVE_DIGITS = 1e3  # size of a number that is printed with five digits: 1100.5, not 1100
MIN_ROUNDED = 1e4  # size of a number that is printed without decimals
MAX_ROUNDED = 1e15
DECIMAL_MARKS: tuple[str, ...] = get_args(DecimalMark)
THOUSANDS_MARKS: tuple[str, ...] = get_args(ThousandsMark)


def describe(
    data: Path,
    out: Path | None,
    *,
    costs: OrderCosts | None = None,
    outcome: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
) -> None:
    """Print what is in a table, and write a starter scenario if a file is given.

    ``costs`` and ``outcome`` are those of the starter, ``decimal`` and ``thousands`` the marks of
    the table's numbers.
    """
    _check_mark("--decimal", decimal, DECIMAL_MARKS)
    _check_mark("--thousands", thousands, THOUSANDS_MARKS)
    if decimal is not None and decimal == thousands:
        raise UserError(f"--thousands={thousands} is the decimal mark, too; give another one")
    if out is None and (costs is not None or outcome is not None):
        option = "--underage and --overage are" if costs is not None else "--outcome is"
        raise UserError(f"{option} for a scenario; add --out my-{data.name.split('.')[0]}.toml")
    if out is not None and (out.suffix != ".toml" or out.exists()):
        reason = "is there already" if out.exists() else "is no .toml file"
        stem = data.name.split(".")[0]
        raise UserError(f"--out {out} {reason}; give another name, such as my-{stem}.toml")
    if out is not None and not out.parent.is_dir():
        raise UserError(f"--out {out}: there is no folder '{out.parent}'; make it, or give another")
    table = described(data, decimal=decimal, thousands=thousands)
    text = ""
    if out is not None:
        text = starter(table, out.parent, costs=costs, outcome=outcome)
    screen = console()
    screen.print(f"{data.name}: {table.n_rows:,} rows, {len(table.columns)} columns\n")
    for note in table.notes:
        screen.print(note)
    if table.notes:
        screen.print()
    cells = [_cells_of(column) for column in table.columns]
    print_plainly(screen, laid_out(HEADERS, cells, width=screen.width, words=range(3)))
    for column in table.columns:
        if column.note:
            screen.print(f"{column.name}: {column.note}.")
    if out is None:
        screen.print(f"\n--out my-{data.name.split('.')[0]}.toml writes a scenario of these data.")
        return
    with replacing(out) as draft:
        draft.write_text(text, encoding="utf-8")
    screen.print(f"\nWritten: {out}. Next: regretless run {out}")


def _check_mark(option: str, mark: str | None, marks: Sequence[str]) -> None:
    """Raise UserError if an option gives a mark that no number has."""
    if mark is not None and mark not in marks:
        listed = ", ".join(repr(one) for one in marks)
        raise UserError(f"{option}={mark!r} is no such mark; give one of {listed}")


def read_costs(
    underage: float | None, overage: float | None, currency: str | None
) -> OrderCosts | None:
    """Return the costs that the command line gives, None where it gives none.

    UserError if one is missing, is no cost, or if the currency is no name.
    """
    costs = {"--underage": underage, "--overage": overage}
    given_costs = {option: cost for option, cost in costs.items() if cost is not None}
    for option, cost in given_costs.items():
        if not 0 <= cost < math.inf:
            raise UserError(f"{option} {cost:g}: no cost; give a number of at least 0")
    if underage is not None and overage is not None:
        if underage == overage == 0:
            raise UserError("--underage 0 --overage 0: orders cost nothing; give one above 0")
        if currency is not None and not _is_label(currency):
            raise UserError(f"--currency {currency!r}: no name; give one, as EUR")
        return OrderCosts(underage=underage, overage=overage, currency=currency)
    for option, cost in given_costs.items():
        other = next(name for name in costs if name not in given_costs)
        raise UserError(f"{option} {cost:g} is one of two costs; add {other}")
    if currency is not None:
        raise UserError(f"--currency {currency} is of two costs; add --underage and --overage")
    return None


def _is_label(text: str) -> bool:
    return 0 < len(text.strip()) <= len(text) <= MAX_NAME_CHARACTERS and text.isprintable()


def _cells_of(column: Column) -> list[str]:
    """Return what stands in the row of a column."""
    season = "" if column.season is None else f"{column.season:,} rows"
    missing = f"{column.missing:,}" if column.missing else ""
    return [
        column.name,
        column.kind,
        column.role or "-",
        missing,
        f"{column.distinct:,}",
        _end_of_range(column.low, column.unit),
        _end_of_range(column.high, column.unit),
        season,
    ]


def _end_of_range(value: float, unit: str) -> str:
    """Write the end of a column's range; empty where it has none."""
    if np.isnan(value):
        return ""
    size = abs(value)
    if MIN_ROUNDED <= size < MAX_ROUNDED:
        text = f"{value:,.0f}"
    elif MIN_FIVE_DIGITS <= size < MIN_ROUNDED:
        text = f"{value:.5g}"
    else:
        text = f"{value:.4g}"
    return f"{text} {unit}" if unit else text
