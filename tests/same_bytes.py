"""Do two checkouts compute the same? Plays all that is bundled, briefly, and compares every table.

    python tests/same_bytes.py OLD/.venv/bin/COMMAND NEW/.venv/bin/COMMAND

Every bundled scenario is played for 60 rounds, three studies are conducted and an offline model is
fitted and asked. A digest is of a table's bytes, or of a model's arrays; the scenarios are those
that the first command lists. Either argument may also be a file of digests that ``--keep FILE``
wrote. Bytes depend on the platform and on the versions of NumPy and PyArrow: compare on one.
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

import numpy as np
import pandas as pd

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
FIT = [
    *("fit", "days.csv", "--outcomes", "sales", "--features", "sun,rain", "--scale", "sales=0:50"),
    *("--utility", "linear", "--count", "3", "--actions", "4", "--out", "model.npz"),
]


def digest(path: Path) -> str:
    """Digest a file; of a model its arrays, since an archive holds the time of writing."""
    known = hashlib.sha256()
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            for name in sorted(arrays.files):
                known.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    else:
        known.update(path.read_bytes())
    return known.hexdigest()[:16]


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


def offline(command: str, folder: Path, _: str) -> None:
    """Fit an offline model and ask it."""
    rng = np.random.default_rng(0)
    days = pd.DataFrame({"sun": rng.random(150), "rain": rng.integers(0, 2, 150)})
    days.head(20).to_csv(folder / "new.csv", index=False)
    days.assign(sales=50 * rng.beta(2, 5, 150)).to_csv(folder / "days.csv", index=False)
    call(command, folder, *FIT)
    call(command, folder, "predict", "model.npz", "new.csv", "--out", "predicted.csv")


def digests(command: str) -> dict[str, str]:
    """Play everything; the digest of every table."""
    listed = subprocess.run([command, "list"], capture_output=True, text=True, check=True).stdout
    work = [(scenario, line.split()[0]) for line in listed.splitlines()]
    work += [*((study, name) for name in STUDIES), (offline, "model")]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda job: job[0](command, folder, job[1]), work))
        tables = [p for p in sorted(folder.rglob("*")) if p.suffix in {".parquet", ".npz", ".csv"}]
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
