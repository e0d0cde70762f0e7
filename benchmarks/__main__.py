"""``python -m benchmarks [scale] [--quick] [--json FILE]``: show the rows, and write them."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks import results
from regretless.market.core.errors import UserError
from regretless.scenarios.cli.options import progress_bar

PARTS = {"peers": results.side_by_side, "scale": results.at_scale}


def main(words: Sequence[str] | None = None) -> None:
    """Run the command with these words, by default those of the command line."""
    parser = ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("part", nargs="?", choices=PARTS, default="peers", help="what is measured")
    parser.add_argument("--quick", action="store_true", help="small sizes, few repeats")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured there")
    given = parser.parse_args(words)
    try:
        if given.json is not None:
            results.check_target(given.json)
    except UserError as error:
        parser.exit(2, f"python -m benchmarks: {error}\n")
    measured = PARTS[given.part](partial(progress_bar, quiet=False), quick=given.quick)
    if given.json is not None:
        results.write_json(measured, given.json)
        sys.stdout.write(f"written: {given.json}\n")


if __name__ == "__main__":
    main()
