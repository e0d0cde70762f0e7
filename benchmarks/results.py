"""Measure all that the peers allow, show it, write it as JSON."""

import csv
import json
import os
import platform
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import scale, steps
from benchmarks import works as all_works
from benchmarks.clock import Duel, Row, timed
from benchmarks.peers import EXTRAS, PACKAGES, MissingPeerError
from regretless.market.core.atomic import replacing
from regretless.market.core.errors import UserError

REPEATS, QUICK = 15, 3
WIDTH = 136
PUBLISHED = Path(__file__).with_name("published.csv")
# A progress bar, made from a title and a total; it is told how much is over.
Bar = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


@dataclass(frozen=True)
class Results:
    """What was measured and what could not be.

    Parameters
    ----------
    missing : dict
        From a peer's package that is not installed to the works that went without it.
    """

    rows: list[Row]
    missing: dict[str, list[str]]


def side_by_side(bar: Bar, *, quick: bool) -> dict[str, Any]:
    """Run and show the duels, and a large crowd in a process of its own for its memory."""
    memory = steps.peak_memory(quick=quick)
    prepared, repeats = all_works.works(quick=quick), QUICK if quick else REPEATS
    rows = _duels(bar, "peers", repeats, prepared)
    typer.echo(f"peak memory: {memory['bytes'] / 1e9:.2f} GB, {memory['size']}")
    return {"rows": rows, "memory": memory}


def at_scale(bar: Bar, *, quick: bool) -> dict[str, Any]:
    """Run and show the duels of large runs, and what others have published; as ``side_by_side``."""
    rows = _duels(bar, "scale", 1 if quick else QUICK, scale.works(quick=quick))
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        published = list(csv.DictReader(file))
    typer.echo("Published by others, of other work on other machines:")
    for own in published:
        what = f"{own['work']}, {own['size']}: {own['framework']}, {own['figure']}"
        typer.echo(f"  {what}, {own['machine']} ({own['source']})")
    return {"scale": rows, "published": published}


def _duels(
    bar: Bar, title: str, repeats: int, works: Sequence[Callable[[], Duel]]
) -> list[dict[str, Any]]:
    """Run and show duels; name the peers that are missing."""
    with bar(title, len(works)) as advance:
        measured = measure(repeats, works=works, progress=advance)
    for line in skipped(measured):
        typer.echo(line, err=True)
    cells = []
    for row in measured.rows:
        numbers = 1e3 * row.seconds, 1e3 * row.rival_seconds, row.ratio
        cells.append([row.work, row.size, row.rival, *(f"{number:.3g}" for number in numbers)])
    head = ["work", "size", "rival"], ["milliseconds", "rival's", "ratio"]
    _show("Side by side, median of one call", *head, cells)
    return [asdict(row) for row in measured.rows]


def measure(
    repeats: int,
    *,
    works: Sequence[Callable[[], Duel]],
    progress: Callable[[int], None] = lambda _: None,
) -> Results:
    """Run the duels one after the other.

    Parameters
    ----------
    progress : callable
        Told how many duels are over.
    """
    rows: list[Row] = []
    missing: dict[str, list[str]] = {}
    for done, work in enumerate(works, start=1):
        try:
            rows.append(timed(work(), repeats))
        except MissingPeerError as error:
            missing.setdefault(str(error.name), []).append(_named(work))
        progress(done)
    return Results(rows, missing)


def _named(work: Any) -> str:
    made = getattr(work, "func", work)
    return "agent-steps" if made is steps.against_mesa else str(made.__name__)


def skipped(results: Results) -> list[str]:
    """Return one line for each package that is missing."""
    return [
        f"{package} is not installed, skipped: {', '.join(works)}; "
        f"pip install 'regretless[{EXTRAS.get(package, 'peers')}]' brings it"
        for package, works in results.missing.items()
    ]


def machine() -> dict[str, Any]:
    """Describe where the rows were measured: processor, system and versions."""
    versions: dict[str, str | None] = {}
    for package in ("numpy", "numba", *sorted(set(PACKAGES.values()))):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": versions,
    }


def _processor() -> str:
    """Name of the processor; Linux tells more than the standard library does."""
    listed = Path("/proc/cpuinfo")
    text = listed.read_text(encoding="utf-8") if listed.exists() else ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, flags=re.MULTILINE)
    return found[1] if found else platform.processor() or platform.machine()


def check_target(path: Path) -> None:
    """Raise UserError for a file that cannot be written, before the clock starts."""
    if path.is_dir() or not path.parent.is_dir():
        raise UserError(f"--json {path}: not a file in a folder that exists; name one")
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"--json {path}: the folder is not writable; name a file in another")


def write_json(measured: dict[str, Any], path: Path) -> None:
    """Write what was measured and ``machine``, atomically."""
    content = measured | {"machine": machine()}
    with replacing(path) as draft:
        draft.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _show(
    title: str, words: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """Print a table, unbroken where the terminal is narrow."""
    table = Table(title=title, box=box.SIMPLE)
    for name in (*words, *numbers):
        table.add_column(name, justify="left" if name in words else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    width = max(Console().width, WIDTH)
    Console(markup=False, highlight=False, width=width).print(table)
