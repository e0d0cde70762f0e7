"""All duels that the installed peers allow; what was measured as a table and as JSON."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from regretless.market.core.atomic import replacing
from regretless.market.core.errors import UserError
from regretless.scenarios.bench.clock import Duel, Row, timed
from regretless.scenarios.bench.peers import PACKAGES, MissingPeerError

REPEATS, QUICK = 15, 3
WIDTH = 136


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


def measure(
    repeats: int,
    *,
    works: Sequence[Callable[[], Duel]],
    progress: Callable[[int], None] = lambda _: None,
) -> Results:
    """Run the duels one after the other.

    Parameters
    ----------
    repeats : int
        Timed calls of either way.
    works : sequence of callables
    progress : callable
        Told how many duels are over.

    Returns
    -------
    Results
    """
    rows: list[Row] = []
    missing: dict[str, list[str]] = {}
    for done, work in enumerate(works, start=1):
        try:
            rows.append(timed(work(), repeats))
        except MissingPeerError as error:
            missing.setdefault(str(error.name), []).append(getattr(work, "__name__", "agent-steps"))
        progress(done)
    return Results(rows, missing)


def as_rows(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Return rows as JSON holds them."""
    return [asdict(row) for row in rows]


def skipped(results: Results) -> list[str]:
    """Return one line for each package that is missing."""
    return [
        f"{package} is not installed, skipped: {', '.join(works)}; "
        "pip install 'regretless[peers]' brings it"
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
    """Refuse a file that cannot be written, before the clock starts.

    Raises
    ------
    UserError
    """
    if path.is_dir() or not path.parent.is_dir():
        raise UserError(f"--json {path}: not a file in a folder that exists; name one")
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"--json {path}: the folder is not writable; name a file in another")


def write_json(measured: dict[str, Any], path: Path) -> None:
    """Write what was measured and ``machine``, atomically."""
    content = measured | {"machine": machine()}
    with replacing(path) as draft:
        draft.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def as_table(results: Results) -> Table:
    """Lay out a row per duel."""
    table = Table(title="Side by side, median of one call", box=box.SIMPLE)
    for name in ("work", "size", "rival"):
        table.add_column(name, no_wrap=True)
    for name in ("milliseconds", "rival's", "ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in results.rows:
        times = (f"{1e3 * seconds:.3g}" for seconds in (row.seconds, row.rival_seconds))
        table.add_row(row.work, row.size, row.rival, *times, f"{row.ratio:.3g}")
    return table


def show(table: Table) -> None:
    """Print a table, unbroken where the terminal is narrow."""
    console = Console(markup=False, highlight=False)
    if console.width < WIDTH:
        console = Console(markup=False, highlight=False, width=WIDTH)
    console.print(table)
