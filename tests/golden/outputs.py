"""What the project writes and prints, in one folder, so that two commits can be compared.

    OLD/.venv/bin/python tests/golden/outputs.py write /tmp/before
    NEW/.venv/bin/python tests/golden/outputs.py write /tmp/after
    NEW/.venv/bin/python tests/golden/outputs.py compare /tmp/before /tmp/after

``write`` plays short runs of every bundled scenario, a study, a training, an audit, the serving
and the offline predictor, and the commands that only print. It uses what users use: the command
line and the names of ``import regretless``. So one copy of this file serves checkouts of any age.
``compare`` names the files that differ, and for tables which columns differ and by how much.

A change of form changes no byte on one machine. Processors of two kinds add up in different
orders, and therefore no output is on file here; ``test_golden.py`` compares figures loosely.
"""

import argparse
import contextlib
import io
import json
import os
import re
import runpy
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

ROUNDS = 40
SEED = 3
VOLATILE_KEYS = ("started", "written", "wall_seconds", "versions")
DURATION = re.compile(r"\b\d+(\.\d+)? (s|ms|min)\b")

STUDY = """\
scenario = "crop-choice"
seeds = 3
rounds = 30
grid."forecaster.kind" = ["decision-swap", "running-mean"]
"""

# No outcome: the row is missing. An outcome of another row: it comes that many rows late.
SERVED_ROWS = 60
MISSING_EVERY = 11
LATE_EVERY = 7


def run_command(arguments: list[str]) -> str:
    """Run ``regretless WORDS`` in this process; what it printed, without durations.

    RuntimeError if the command fails.
    """
    printed = io.StringIO()
    arguments_of_process = sys.argv
    sys.argv = ["regretless", *arguments]
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            runpy.run_module("regretless", run_name="__main__")
    except SystemExit as stop:
        if stop.code:
            message = f"regretless {' '.join(arguments)} failed:\n{printed.getvalue()}"
            raise RuntimeError(message) from stop
    finally:
        sys.argv = arguments_of_process
    return DURATION.sub("TIME", printed.getvalue())


def bundled_scenarios() -> list[str]:
    """Return the names of the bundled scenarios, in the order of the alphabet."""
    import regretless.scenarios  # noqa: PLC0415 - ``compare`` works without the package

    catalogue = Path(regretless.scenarios.__file__).parent / "catalogue"
    return sorted(path.stem for path in catalogue.glob("*.toml"))


def strip_manifests(folder: Path) -> None:
    """Remove times and versions from the manifests of runs and studies below a folder, in place."""
    for path in [*folder.rglob("manifest.json"), *folder.rglob("study.json")]:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        for key in VOLATILE_KEYS:
            manifest.pop(key, None)
        text = json.dumps(manifest, indent=1, sort_keys=True)
        path.write_text(DURATION.sub("TIME", text), encoding="utf-8")


def write_runs(folder: Path) -> None:
    """Play every bundled scenario for a few rounds; tables as CSV, and the text that is printed."""
    for name in bundled_scenarios():
        options = ["--rounds", str(ROUNDS), "--seed", str(SEED), "--format", "csv", "--verbose"]
        printed = run_command(["run", name, *options, "--out", f"runs/{name}"])
        (folder / "runs" / name / "printed.txt").write_text(printed, encoding="utf-8")


def write_report(folder: Path) -> None:
    """Play the demo's scenario as Parquet, briefly printed, with its report."""
    run = ["run", "crop-choice", "--rounds", str(ROUNDS), "--out", "parquet"]
    printed = run_command(run) + run_command(["report", "parquet"])
    (folder / "parquet" / "printed.txt").write_text(printed, encoding="utf-8")


def write_study(folder: Path) -> None:
    """Play a small study, with its tables and its page."""
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    printed = run_command(["study", "study.toml", "--out", "study"])
    printed += run_command(["report", "study"])
    (folder / "study-printed.txt").write_text(printed, encoding="utf-8")


def write_training(folder: Path) -> None:
    """Train an attacker with a small budget."""
    options = ["--algorithm", "cma", "--budget", "32", "--rounds", "60", "--seed", str(SEED)]
    printed = run_command(["train", "beating-mean-based-learners", *options, "--out", "training"])
    (folder / "training-printed.txt").write_text(printed, encoding="utf-8")


def write_audit(folder: Path) -> None:
    """Audit the bundled decisions of travellers."""
    import regretless.scenarios  # noqa: PLC0415 - ``compare`` works without the package

    data = Path(regretless.scenarios.__file__).parent / "data"
    decisions = str(data / "travel-decisions.csv")
    outcomes = str(data / "travel-costs.csv")
    columns = ["--round", "traveller", "--action", "mode", "--agent", "alone"]
    arguments = ["audit", decisions, "--outcomes", outcomes, *columns, "--out", "audit"]
    printed = run_command(arguments)
    (folder / "audit-printed.txt").write_text(printed, encoding="utf-8")


def write_serving(folder: Path) -> None:
    """Serve a newsvendor; some outcomes are missing, and some come several rounds late."""
    from regretless import OnlineOmnipredictor  # noqa: PLC0415 - as above
    from regretless.agents.utilities import Newsvendor  # noqa: PLC0415

    orders = np.arange(40.0, 121.0, 10.0)
    losses = {
        "careful": Newsvendor(orders=orders, underage=4.0, overage=1.0),
        "frugal": Newsvendor(orders=orders, underage=1.0, overage=4.0),
    }
    server = OnlineOmnipredictor(losses, scale={"demand": (0.0, 160.0)}, seed=SEED)
    generator = np.random.default_rng(SEED)
    rows = []
    waiting: tuple[str, float] | None = None
    for day in range(SERVED_ROWS):
        context = {"weekday": day % 7}
        demand = float(70 + 30 * (day % 7 >= 5) + generator.normal(0, 8))
        is_late = day % LATE_EVERY == 0
        key = f"day {day}" if is_late else None
        forecast = server.predict_one(context, key=key)
        quantiles = [forecast.quantile(level) for level in (0.1, 0.5, 0.9)]
        acts = [forecast.act(name) for name in losses]
        rows.append([day, forecast.mean, *quantiles, *acts])
        if waiting is not None:
            server.learn_late(*waiting)
            waiting = None
        if is_late:
            waiting = key, demand
        elif day % MISSING_EVERY == 0:
            server.learn_one(context, None)
        else:
            server.learn_one(context, demand)
    columns = ["day", "mean", "q10", "q50", "q90", *losses]
    pd.DataFrame(rows, columns=columns).to_csv(folder / "serving.csv", index=False)
    server.regrets().to_csv(folder / "serving-regrets.csv", index=False)
    (folder / "serving-counts.json").write_text(json.dumps(dict(server.counts)), encoding="utf-8")


def write_offline(folder: Path) -> None:
    """Fit the offline predictor to a table, and act for agents of a known form."""
    from regretless import OfflineOmnipredictor  # noqa: PLC0415 - as above
    from regretless.agents.utilities.forms import CES  # noqa: PLC0415

    generator = np.random.default_rng(SEED)
    features = generator.random((240, 2))
    outcomes = 0.3 + 0.4 * (features > 0.5) + 0.1 * generator.standard_normal((240, 2))
    consumers = CES(generator.dirichlet(np.ones(2), (4, 3)), 0.5)
    predictor = OfflineOmnipredictor([consumers], trees=20).fit(features[:160], outcomes[:160])
    actions = {f"consumer {k}": predictor.act(consumers[k], features[160:]) for k in range(4)}
    pd.DataFrame(actions).to_csv(folder / "offline.csv", index=False)


def write_printed(folder: Path) -> None:
    """Keep what the commands print that play nothing."""
    commands = {
        "schema-scenario": ["schema", "scenario"],
        "schema-study": ["schema", "study"],
        "list": ["list", "--verbose"],
        "resolved": ["run", "crop-choice", "--dry-run"],
    }
    for name, arguments in commands.items():
        (folder / f"{name}.txt").write_text(run_command(arguments), encoding="utf-8")


WRITERS = {
    "runs": write_runs,
    "report": write_report,
    "study": write_study,
    "training": write_training,
    "audit": write_audit,
    "serving": write_serving,
    "offline": write_offline,
    "printed": write_printed,
}


def write_outputs(folder: Path, parts: list[str]) -> None:
    """Write the named parts into a new folder. FileExistsError if there is one already."""
    folder.mkdir(parents=True)
    home = Path.cwd()
    os.chdir(folder)  # commands print the paths that they were given
    try:
        for part in parts:
            print(part, file=sys.stderr, flush=True)
            WRITERS[part](folder)
    finally:
        os.chdir(home)
    strip_manifests(folder)


def read_table(path: Path) -> pd.DataFrame:
    """Read a table, CSV or Parquet."""
    if path.suffix == ".csv":
        return pd.read_csv(path, low_memory=False)
    return pd.read_parquet(path)


def table_differences(before: Path, after: Path) -> Iterator[str]:
    """Yield a line for every column in which two tables differ."""
    old = read_table(before)
    new = read_table(after)
    if len(old) != len(new):
        yield f"{len(old)} rows, now {len(new)}"
        return
    for column in [*old.columns, *new.columns.difference(old.columns)]:
        if column not in new:
            yield f"column {column} is gone"
        elif column not in old:
            yield f"column {column} is new"
        elif not old[column].equals(new[column]):
            numbers = [pd.to_numeric(table[column], errors="coerce") for table in (old, new)]
            greatest = (numbers[0] - numbers[1]).abs().max()
            yield f"column {column} differs by up to {greatest:.3g}"


def differences(before: Path, after: Path) -> Iterator[str]:
    """Yield a line for every file of two folders that differs, and for columns of tables."""
    names = {path.relative_to(root) for root in (before, after) for path in root.rglob("*")}
    for name in sorted(names):
        old = before / name
        new = after / name
        if old.is_dir() or new.is_dir():
            continue
        if not old.exists() or not new.exists():
            yield f"{name} is {'gone' if old.exists() else 'new'}"
        elif old.read_bytes() != new.read_bytes():
            yield f"{name} differs"
            if name.suffix in {".csv", ".parquet"}:
                yield from (f"    {line}" for line in table_differences(old, new))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write", help="write all outputs into a new folder")
    write.add_argument("folder", type=Path)
    write.add_argument("--only", nargs="+", choices=list(WRITERS), default=list(WRITERS))
    compare = commands.add_parser("compare", help="name what differs between two folders")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.command == "write":
        warnings.simplefilter("ignore")
        write_outputs(options.folder.resolve(), options.only)
        return 0
    lines = list(differences(options.before, options.after))
    print(*lines, "the same to the byte" if not lines else f"{len(lines)} lines", sep="\n")
    return int(bool(lines))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("MPLCONFIGDIR", cache)
        sys.exit(main())
