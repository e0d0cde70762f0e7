"""How fast agents are logged, and how fast one agent's path is read back.

    python -m benchmarks.logs [TURNS]

plays a million agents of 500 losses for 10,000 rounds, 1,000 of them logged: ten million rows.
These are then written by turns by plain PyArrow (200,000 rows at a time, in the order of rounds)
and by the directory of a run, from the parts that a killed run goes on from to the whole, and the
paths of eight agents are read from both files by pandas, Polars and DuckDB.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import typer

from benchmarks.scale import written, written_plainly
from regretless.scenarios.build.scenario import Scenario
from regretless.scenarios.run import Options, run
from regretless.scenarios.spec.scenario import validated

PATHS = 8
CROWD: dict[str, Any] = {
    "name": "million",
    "rounds": 10_000,
    "log_agents": 1000,
    "forecaster": {"kind": "running-mean"},
    "adversary": {"kind": "iid", "outcomes": 16},
    "cohort": [
        {
            "name": "growers",
            "utility": "linear",
            "count": 1_000_000,
            "archetypes": 500,
            "actions": 8,
            "measures": ["external", "swap", "decision_swap"],
        }
    ],
}


def logged(folder: Path) -> pd.DataFrame:
    """Play the crowd, and return its log in the order of rounds."""
    began = time.perf_counter()
    run(Scenario(validated(CROWD, origin=Path.cwd())), Options(folder))
    typer.echo(f"played in {time.perf_counter() - began:.0f} s")
    frame = pd.read_parquet(folder / "regret_log.parquet")
    return frame.sort_values(["round", "agent"], kind="stable", ignore_index=True)


def timed(write: Callable[[pd.DataFrame, Path], Path], frame: pd.DataFrame, folder: Path) -> Path:
    """Write the log, and print what a row cost."""
    wall, spent = time.perf_counter(), time.process_time()
    file = write(frame, folder)
    wall, spent = time.perf_counter() - wall, time.process_time() - spent
    rate, size = len(frame) / wall / 1e6, file.stat().st_size / len(frame)
    each = 1e9 * spent / len(frame)
    typer.echo(f"{write.__name__:20} {rate:5.2f} M rows/s {each:5.0f} ns {size:5.1f} bytes a row")
    return file


def readers(file: Path) -> Iterator[tuple[str, Callable[[int], Any]]]:
    """Yield what can read the path of an agent."""
    lazy, table = pl.scan_parquet(file), duckdb.read_parquet(str(file))
    yield "pandas", lambda agent: pd.read_parquet(file, filters=[("agent", "==", agent)])
    yield "Polars", lambda agent: lazy.filter(pl.col("agent") == agent).collect()
    yield "DuckDB", lambda agent: table.filter(f"agent = {agent}").df()


def read(file: Path, agents: list[int]) -> None:
    """Print how long a path takes."""
    for name, path in readers(file):
        path(agents[0])
        spent = []
        for agent in agents:
            began = time.perf_counter()
            path(agent)
            spent.append(1e3 * (time.perf_counter() - began))
        typer.echo(
            f"{name:8} {statistics.median(spent):6.1f} ms, at most {max(spent):6.1f}: {file.name}"
        )


def main(turns: int) -> None:
    """Measure it all."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frame = logged(folder / "run")
        agents = frame["agent"].unique()
        for _ in range(turns):
            files = [timed(write, frame, folder) for write in (written_plainly, written)]
        for file in files:
            read(file, [int(agent) for agent in agents[:: len(agents) // PATHS][:PATHS]])


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 3)
