"""``python -m benchmarks [PART] [--quick] [--json FILE]``: show rows, and write them."""

from __future__ import annotations

import csv
import json
import os
import platform
import re
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks import rounds, scale, serving, works
from benchmarks.duels import PACKAGES, Duel, time_duels
from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError
from regretless.scenarios.cli.options import progress_bar

REPEATS = 15  # calls of either way of a duel
FEW_REPEATS = 3  # of a quick run, and of large runs
PUBLISHED = Path(__file__).with_name("published.csv")
PUBLISHED_LINE = "  {work}, {size}: {framework}, {figure}, {machine} ({source})"


def run_peers(*, quick: bool) -> dict[str, Any]:
    """Run and show the duels with peers, and a large crowd in a process of its own for its memory.

    Returns what ``--json`` writes: ``rows`` and ``memory``.
    """
    memory = works.peak_memory(quick=quick)
    rows = _run_duels("peers", FEW_REPEATS if quick else REPEATS, works.works(quick=quick))
    _print_lines(f"peak memory: {memory['bytes'] / 1e9:.2f} GB, {memory['size']}")
    return {"rows": rows, "memory": memory}


def run_serving(*, quick: bool) -> dict[str, Any]:
    """Run and show the duels of served forecasts alone, which are among those with peers.

    Returns what ``--json`` writes: ``rows``.
    """
    repeats = FEW_REPEATS if quick else REPEATS
    return {"rows": _run_duels("serving", repeats, serving.works(quick=quick))}


def run_scale(*, quick: bool) -> dict[str, Any]:
    """Run and show the duels of large runs, and what others have published.

    Returns what ``--json`` writes: ``scale`` and ``published``.
    """
    rows = _run_duels("scale", 1 if quick else FEW_REPEATS, scale.works(quick=quick))
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        published = list(csv.DictReader(file))
    _print_lines("Published by others, of other work on other machines:")
    for measurement in published:
        _print_lines(PUBLISHED_LINE.format(**measurement))
    return {"scale": rows, "published": published}


def run_rounds(*, quick: bool) -> dict[str, Any]:
    """Play every bundled scenario; show the time of a round, and what it is spent on.

    Returns what ``--json`` writes: ``rounds``.
    """
    names = rounds.names()
    rounds_of_span = rounds.QUICK_ROUNDS if quick else rounds.ROUNDS
    rows = []
    with progress_bar("rounds", len(names), quiet=False) as advance:
        for done, name in enumerate(names, start=1):
            rows.append(rounds.row(name, rounds_of_span))
            advance(done)
    rows.sort(key=lambda row: -row["milliseconds"])
    title = "Milliseconds of one processor per round, and the share of each part"
    _print_lines(title, _table_text(rows))
    return {"rounds": rows}


def _run_duels(
    title: str, repeats: int, duels: Sequence[Callable[[], Duel]]
) -> list[dict[str, Any]]:
    """Run and show duels; name the peers that are missing."""
    with progress_bar(title, len(duels), quiet=False) as advance:
        rows, skipped = time_duels(repeats, duels, advance)
    sys.stderr.write("".join(f"{line}\n" for line in skipped))
    records = [asdict(row) for row in rows]
    _print_lines("Side by side, median of one call in seconds", _table_text(records))
    return records


def _table_text(rows: list[dict[str, Any]]) -> str:
    return pd.DataFrame(rows).to_string(index=False, float_format="{:.3g}".format)


def _print_lines(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


PARTS = {  # by their names on the command line
    "peers": run_peers,
    "serving": run_serving,
    "scale": run_scale,
    "rounds": run_rounds,
}


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
    """Name the processor; Linux tells more than the standard library does."""
    processor_file = Path("/proc/cpuinfo")
    if processor_file.exists():
        text = processor_file.read_text(encoding="utf-8")
        model_name = re.search(r"^model name\s*:\s*(.+)$", text, flags=re.MULTILINE)
        if model_name:
            return model_name[1]
    return platform.processor() or platform.machine()


def check_target(path: Path) -> None:
    """Raise UserError for a file that cannot be written, before the clock starts."""
    if path.is_dir() or not path.parent.is_dir():
        raise UserError(f"--json {path}: not a file in a folder that exists; name one")
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"--json {path}: the folder is not writable; name a file in another")


def main(words: Sequence[str] | None = None) -> None:
    """Run the command with these words, by default those of the command line."""
    parser = ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("part", nargs="?", choices=tuple(PARTS), default="peers")
    parser.add_argument("--quick", action="store_true", help="small sizes, few repeats")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured there")
    options = parser.parse_args(words)
    try:
        if options.json is not None:
            check_target(options.json)
    except UserError as error:
        parser.exit(2, f"python -m benchmarks: {error}\n")
    results = PARTS[options.part](quick=options.quick)
    if options.json is not None:
        with replacing(options.json) as draft:
            text = json.dumps({**results, "machine": machine()}, indent=2)
            draft.write_text(f"{text}\n", encoding="utf-8")
        _print_lines(f"written: {options.json}")


if __name__ == "__main__":
    main()
