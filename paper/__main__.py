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
from typing import TYPE_CHECKING, Any, NoReturn

from regretless.market.core.errors import UserError, closest
from regretless.scenarios.cli.options import progress_bar

if TYPE_CHECKING:  # a table's module, and matplotlib with it, is imported once it is asked for
    from paper.harness import Table
    from paper.study_table import StudyTable

TABLES_OF_MODULE = {  # names of the tables, with a space between
    "tables": (
        "anchoring covers crowding events newcomers price-forecasts skill speculator streams "
        "two-sellers unseen"
    ),
    "announcements": "announcements",
    "attacks": "attacks attacks-followers attacks-learners",
    "audit_sellers": "audit-coverage audit-power audit-sellers",
    "bases": "bases",
    "carried_errors": "carried-errors",
    "censored_demand": "censored-demand",
    "commitments": "commitment-margins",
    "concentration": "concentration",
    "decisions": "decisions-against-rivals decisions-on-unseen-series",
    "everyone": "everyone everyone-rates everyone-series newsvendors",
    "exploitation.table": "exploitation",
    "games": "games",
    "interval_coverage": "interval-coverage",
    "known_answers": "known-answers",
    "late_outcomes": "late-outcomes",
    "listed": "listed",
    "listeners": "listeners",
    "omniprediction": "omniprediction",
    "prequential": "prequential",
    "quantile_coverage": "quantile-bounds quantile-coverage",
    "rates": "rates",
    "series": "series",
    "served_distribution": "served-distribution",
    "served_ingredients": (
        "autoregression-ingredients ingredients-elsewhere served-ingredients served-recalibration "
        "served-seasons"
    ),
    "sharing": "sharing short-runs",
    "solution_times": "solution-times",
    "stays": "stays",
    "statements": "assignments certificates delay distance entry intervals margins",
    "switch_test": "switch-alarms switch-found",
    "trust": "trust-benign trust-hostile trust-series",
    "verdict_intervals": "verdict-coverage",
}
TABLES: dict[str, str] = {}  # the module of each table
for _module, _table_names in TABLES_OF_MODULE.items():
    TABLES.update(dict.fromkeys(_table_names.split(), _module))
INSTALLED_AS = {"sklearn": "scikit-learn"}  # where it is not the name that is imported
OPTIONS = {  # that a table may take, with what the help says
    "rounds": "of a run",
    "seeds": "from 0 on",
    "first": "number of the first game",
}


def measure(name: str, out: Path, *, jobs: int | None, chosen: dict[str, Any]) -> None:
    """Measure a table, print it and write it into ``out / name``.

    ``chosen`` are the values of ``OPTIONS`` and of ``rivals``, None for the table's own.

    UserError for an unknown name, an option that the table has not, fewer rounds than it can say
    anything of, a package that is not installed, a folder that cannot be written.
    """
    if name not in TABLES:
        raise UserError(f"unknown table '{name}'; {closest(name, TABLES)}")
    if importlib.util.find_spec("matplotlib") is None:
        raise UserError("figures need matplotlib; pip install '.[paper]' in a checkout brings it")
    module = importlib.import_module(f"paper.{TABLES[name]}")
    table: Table | StudyTable = module.TABLES[name]
    options: dict[str, Any] = dict(table.options)
    for option, value in chosen.items():
        if value is None:
            continue
        if option not in options:
            raise UserError(
                f"--{option}: the table '{name}' plays no {option}; leave the option out"
            )
        options[option] = value
    table.check_rounds(options.get("rounds"))
    _check_packages(name, table.packages)
    folder = out / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {out}: {error.strerror}; give a folder to write in") from error
    if TABLES[name] == "tables":  # a study goes on where it was
        options["out"] = folder
    with progress_bar(name, table.cells(options.get("seeds")), quiet=False) as advance:
        measured = table.measure(**options, jobs=jobs, progress=advance)
    _print_lines(table.text(measured))
    _print_lines(*(f"written: {path}" for path in table.write(measured, folder)))


def _check_packages(name: str, packages: Sequence[str]) -> None:
    """Raise UserError if a package that a table needs is not installed."""
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        missing = [INSTALLED_AS.get(package, package) for package in missing]
        hint = f"python -m pip install {' '.join(missing)}"
        raise UserError(f"the table '{name}' needs {', '.join(missing)}; {hint}")


def _print_lines(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _listed_names(text: str) -> tuple[str, ...]:
    """Read names with commas between them."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise ArgumentTypeError(f"{text!r}: give names with commas between them")
    return names


def _count(text: str) -> int:
    """Read a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text}: give a whole number of at least 1")
    return int(text)


class _Parser(ArgumentParser):
    """Says in one line what it cannot read."""

    def error(self, message: str) -> NoReturn:
        """Say it in one line on standard error, and leave with status 2."""
        self.exit(2, f"python -m paper: {message}\n")


def main(words: Sequence[str] | None = None) -> None:
    """Run the command with these words, by default those of the command line."""
    parser = _Parser(prog="python -m paper", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", nargs="?", metavar="NAME", help="the table; none lists the names")
    parser.add_argument("--out", type=Path, default=Path("runs/paper"), help="a folder for both")
    for option, description in OPTIONS.items():
        parser.add_argument(f"--{option}", type=_count, metavar="N", help=description)
    parser.add_argument(
        "--rivals", type=_listed_names, metavar="NAME,NAME", help="that are measured"
    )
    parser.add_argument("--jobs", type=_count, metavar="N", help="processes")
    arguments = parser.parse_args(words)
    if arguments.name is None:
        _print_lines(*sorted(TABLES))
        return
    chosen = {option: getattr(arguments, option) for option in (*OPTIONS, "rivals")}
    try:
        measure(arguments.name, arguments.out, jobs=arguments.jobs, chosen=chosen)
    except UserError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
