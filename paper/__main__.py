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

A_STUDY: dict[str, int | None] = {"rounds": None, "seeds": None}  # its file says how much
TABLES: dict[str, dict[str, int | None]] = {  # how much each plays by default
    "streams": A_STUDY,
    "bases": {},
    "covers": A_STUDY,
    "events": A_STUDY,
    "anchoring": A_STUDY,
    "skill": A_STUDY,
    "rates": {"rounds": 64_000, "seeds": 3},
    "exploitation": {"rounds": 100_000, "seeds": 5},
    "crowding": A_STUDY,
    "omniprediction": {"seeds": 5},
    "unseen": A_STUDY,
    "speculator": A_STUDY,
}
MODULES = {  # tables that say themselves how much they play
    "certificates": "statements",
    "concentration": "concentration",
    "distance": "statements",
    "entry": "statements",
    "everyone": "everyone",
    "everyone-rates": "everyone",
    "everyone-series": "everyone",
    "games": "games",
    "listed": "listed",
    "listeners": "listeners",
    "newsvendors": "everyone",
    "series": "series",
    "trust-benign": "trust",
    "trust-hostile": "trust",
    "trust-series": "trust",
}


def measure(name: str, out: Path, *, jobs: int | None, asked: dict[str, int | None]) -> None:
    """Measure a table, print it and write it into ``out / name``.

    UserError for an unknown name, an option that the table has not, a folder that cannot be
    written.
    """
    if name not in (known := [*TABLES, *MODULES]):
        raise UserError(f"unknown table '{name}'; {closest(name, known)}")
    given = {option: value for option, value in asked.items() if value is not None}
    defaults: dict[str, Any] = TABLES.get(name, {})
    if name in MODULES:
        table: Any = importlib.import_module(f"paper.{MODULES[name]}").TABLES[name]
        defaults = table.options
    for option in given.keys() - defaults.keys():
        raise UserError(f"--{option}: the table '{name}' plays no rounds; leave the option out")
    if importlib.util.find_spec("matplotlib") is None:
        raise UserError("figures need matplotlib; pip install '.[paper]' in a checkout brings it")
    try:
        (out / name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {out}: {error.strerror}; give a folder to write in") from error
    options: dict[str, Any] = defaults | given
    if defaults is A_STUDY:
        table = importlib.import_module("paper.tables").STUDIES[name]
        options["out"] = out / name
    elif name in TABLES:
        table = importlib.import_module(f"paper.{name}")
    total = table.cells(options["seeds"]) if "seeds" in options else table.cells()
    with progress_bar(name, total, quiet=False) as advance:
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
    for option, about in (("rounds", "of a run"), ("seeds", "from 0 on"), ("jobs", "processes")):
        parser.add_argument(f"--{option}", type=_count, metavar="N", help=about)
    given = parser.parse_args(words)
    if given.name is None:
        _say(*TABLES, *MODULES)
        return
    try:
        asked = {"rounds": given.rounds, "seeds": given.seeds}
        measure(given.name, given.out, jobs=given.jobs, asked=asked)
    except UserError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
