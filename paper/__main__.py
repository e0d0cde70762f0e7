"""``python -m paper NAME [--out DIR]``: measure a table; print it, write it as CSV and a figure.

Without a name it lists the names. A mistake is one line on standard error and exit status 2.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from regretless.market.core.errors import UserError, closest
from regretless.scenarios.cli.options import progress_bar

MODULES = {  # which has which tables
    "tables": "anchoring covers crowding events skill speculator streams unseen",
    "bases": "bases",
    "concentration": "concentration",
    "everyone": "everyone everyone-rates everyone-series newsvendors",
    "exploitation.table": "exploitation",
    "games": "games",
    "late_outcomes": "late-outcomes",
    "listed": "listed",
    "listeners": "listeners",
    "omniprediction": "omniprediction",
    "rates": "rates",
    "series": "series",
    "stays": "stays",
    "statements": "assignments certificates delay distance entry intervals",
    "switch_test": "switch-alarms switch-found",
    "trust": "trust-benign trust-hostile trust-series",
}
TABLES = {name: module for module, names in MODULES.items() for name in names.split()}


def measure(name: str, out: Path, *, jobs: int | None, asked: dict[str, int | None]) -> None:
    """Measure a table, print it and write it into ``out / name``.

    UserError for an unknown name, an option that the table has not, a folder that cannot be
    written.
    """
    if name not in TABLES:
        raise UserError(f"unknown table '{name}'; {closest(name, TABLES)}")
    if importlib.util.find_spec("matplotlib") is None:
        raise UserError("figures need matplotlib; pip install '.[paper]' in a checkout brings it")
    table: Any = importlib.import_module(f"paper.{TABLES[name]}").TABLES[name]
    given = {option: value for option, value in asked.items() if value is not None}
    for option in given.keys() - table.options.keys():
        raise UserError(f"--{option}: the table '{name}' plays no {option}; leave the option out")
    try:
        (out / name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {out}: {error.strerror}; give a folder to write in") from error
    options = table.options | given
    if TABLES[name] == "tables":  # a study goes on where it was
        options["out"] = out / name
    with progress_bar(name, table.cells(options.get("seeds")), quiet=False) as advance:
        measured = table.measure(**options, jobs=jobs, progress=advance)
    _say(table.text(measured), *(f"written: {path}" for path in table.write(measured, out / name)))


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _count(text: str) -> int:
    """Read a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text}: give a whole number of at least 1")
    return int(text)


class _Parser(ArgumentParser):
    """Says in one line what it cannot read."""

    def error(self, message: str) -> NoReturn:
        """Say it and leave."""
        self.exit(2, f"python -m paper: {message}\n")


def main(words: Sequence[str] | None = None) -> None:
    """Run the command with these words, by default those of the command line."""
    parser = _Parser(prog="python -m paper", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", nargs="?", metavar="NAME", help="the table; none lists the names")
    parser.add_argument("--out", type=Path, default=Path("runs/paper"), help="a folder for both")
    for option, about in {
        "rounds": "of a run",
        "seeds": "from 0 on",
        "first": "number of the first game",
        "jobs": "processes",
    }.items():
        parser.add_argument(f"--{option}", type=_count, metavar="N", help=about)
    given = parser.parse_args(words)
    if given.name is None:
        _say(*sorted(TABLES))
        return
    try:
        asked = {"rounds": given.rounds, "seeds": given.seeds, "first": given.first}
        measure(given.name, given.out, jobs=given.jobs, asked=asked)
    except UserError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
