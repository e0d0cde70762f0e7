"""``python -m benchmarks [scale|rounds] [--quick] [--json FILE]``: show rows, and write them."""

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

from benchmarks import rounds, scale, works
from benchmarks.duels import PACKAGES, Duel, measured
from regretless.market.core.checkpoint import replacing
from regretless.market.core.errors import UserError
from regretless.scenarios.cli.options import progress_bar

REPEATS, QUICK = 15, 3
PUBLISHED = Path(__file__).with_name("published.csv")


def side_by_side(*, quick: bool) -> dict[str, Any]:
    """Run and show the duels, and a large crowd in a process of its own for its memory."""
    memory = works.peak_memory(quick=quick)
    rows = _duels("peers", QUICK if quick else REPEATS, works.works(quick=quick))
    _say(f"peak memory: {memory['bytes'] / 1e9:.2f} GB, {memory['size']}")
    return {"rows": rows, "memory": memory}


def at_scale(*, quick: bool) -> dict[str, Any]:
    """Run and show the duels of large runs, and what others have published."""
    rows = _duels("scale", 1 if quick else QUICK, scale.works(quick=quick))
    with PUBLISHED.open(encoding="utf-8", newline="") as file:
        published = list(csv.DictReader(file))
    _say("Published by others, of other work on other machines:")
    for own in published:
        _say("  {work}, {size}: {framework}, {figure}, {machine} ({source})".format(**own))
    return {"scale": rows, "published": published}


def of_rounds(*, quick: bool) -> dict[str, Any]:
    """Play every bundled scenario and show the time of a round, and what it is spent on."""
    names = rounds.names()
    rounds_of_span = rounds.QUICK_ROUNDS if quick else rounds.ROUNDS
    rows = []
    with progress_bar("rounds", len(names), quiet=False) as advance:
        for done, name in enumerate(names, start=1):
            rows.append(rounds.row(name, rounds_of_span))
            advance(done)
    rows.sort(key=lambda row: -row["milliseconds"])
    _say("Milliseconds of one processor per round, and the share of each part", _table(rows))
    return {"rounds": rows}


def _duels(title: str, repeats: int, duels: Sequence[Callable[[], Duel]]) -> list[dict[str, Any]]:
    """Run and show duels; name the peers that are missing."""
    with progress_bar(title, len(duels), quiet=False) as advance:
        rows, skipped = measured(repeats, duels, advance)
    sys.stderr.write("".join(f"{line}\n" for line in skipped))
    told = [asdict(row) for row in rows]
    _say("Side by side, median of one call in seconds", _table(told))
    return told


def _table(rows: list[dict[str, Any]]) -> str:
    return pd.DataFrame(rows).to_string(index=False, float_format="{:.3g}".format)


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def machine() -> dict[str, Any]:
    """Describe where the rows were measured: processor, system and versions."""
    versions: dict[str, str | None] = {}
    for package in ("numpy", "numba", *sorted(set(PACKAGES.values()))):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    listed = Path("/proc/cpuinfo")  # Linux tells more than the standard library does
    text = listed.read_text(encoding="utf-8") if listed.exists() else ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, flags=re.MULTILINE)
    return {
        "processor": found[1] if found else platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": versions,
    }


def check_target(path: Path) -> None:
    """Raise UserError for a file that cannot be written, before the clock starts."""
    if path.is_dir() or not path.parent.is_dir():
        raise UserError(f"--json {path}: not a file in a folder that exists; name one")
    if not os.access(path.parent, os.W_OK):
        raise UserError(f"--json {path}: the folder is not writable; name a file in another")


def main(words: Sequence[str] | None = None) -> None:
    """Run the command with these words, by default those of the command line."""
    parser = ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("part", nargs="?", choices=("peers", "scale", "rounds"), default="peers")
    parser.add_argument("--quick", action="store_true", help="small sizes, few repeats")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured there")
    given = parser.parse_args(words)
    try:
        if given.json is not None:
            check_target(given.json)
    except UserError as error:
        parser.exit(2, f"python -m benchmarks: {error}\n")
    measure = {"peers": side_by_side, "scale": at_scale, "rounds": of_rounds}[given.part]
    found = measure(quick=given.quick)
    if given.json is not None:
        with replacing(given.json) as draft:
            text = json.dumps(found | {"machine": machine()}, indent=2)
            draft.write_text(f"{text}\n", encoding="utf-8")
        _say(f"written: {given.json}")


if __name__ == "__main__":
    main()
