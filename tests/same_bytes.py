"""Do two checkouts compute the same? Plays all that is bundled, briefly, and compares every table.

    python tests/same_bytes.py OLD/.venv/bin/COMMAND NEW/.venv/bin/COMMAND

Every bundled scenario is played for 60 rounds and three studies are conducted. A digest is of a
table's bytes; the scenarios are those that the first command lists. Either argument may also be a
file of digests that ``--keep FILE`` wrote. Bytes depend on the platform and on the versions of
NumPy and PyArrow: compare on one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROUNDS = "60"
STUDIES = {
    "forecasts": """\
scenario = "crop-choice"
seeds = 2
rounds = 40
[grid]
"forecaster.kind" = ["decision-swap", "running-mean"]
"cohort.growers.count" = [5, 10]
""",
    "markets": """\
scenario = "crowding"
seeds = 2
rounds = 40
[grid]
"market.impact" = [0.1, 0.3]
""",
    "seeds": """\
scenario = "mixed-bazaar"
seeds = 3
rounds = 30
""",
}


def digest(path: Path) -> str:
    """Digest a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def call(command: str, folder: Path, *words: str) -> None:
    """Run a command in a folder; what it says is shown if it fails."""
    done = subprocess.run(
        [command, *words], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{command} {' '.join(words)}: status {done.returncode}\n{done.stderr}")


def scenario(command: str, folder: Path, name: str) -> None:
    """Play a bundled scenario."""
    call(command, folder, "run", name, "--rounds", ROUNDS, "--quiet", "--out", f"scenario/{name}")


def study(command: str, folder: Path, name: str) -> None:
    """Conduct a study."""
    (folder / f"{name}.toml").write_text(STUDIES[name], encoding="utf-8")
    call(command, folder, "study", f"{name}.toml", "--out", f"study/{name}", "--quiet")


def digests(command: str) -> dict[str, str]:
    """Play everything; the digest of every table."""
    listed = subprocess.run([command, "list"], capture_output=True, text=True, check=True).stdout
    work = [(scenario, line.split()[0]) for line in listed.splitlines()]
    work += [(study, name) for name in STUDIES]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda job: job[0](command, folder, job[1]), work))
        tables = [p for p in sorted(folder.rglob("*")) if p.suffix in {".parquet", ".csv"}]
        return {str(p.relative_to(folder)): digest(p) for p in tables}


def known(source: str) -> dict[str, str]:
    """Digests from a file of them or from a command."""
    if source.endswith(".json"):
        found: dict[str, str] = json.loads(Path(source).read_text(encoding="utf-8"))
        return found
    return digests(str(Path(source).absolute()))


def main() -> None:
    """Compare, and say which tables differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commands", nargs="+", help="a command, or a .json file of digests")
    parser.add_argument("--keep", type=Path, help="write the first one's digests")
    asked = parser.parse_args()
    first, *others = [known(source) for source in asked.commands]
    if asked.keep is not None:
        asked.keep.write_text(json.dumps(first, indent=1) + "\n", encoding="utf-8")
    for other in others:
        differ = sorted(name for name in first.keys() | other if first.get(name) != other.get(name))
        print(f"{len(first)} tables, {len(differ)} differ", *differ, sep="\n  ")  # noqa: T201
        if differ:
            sys.exit(1)


if __name__ == "__main__":
    main()
