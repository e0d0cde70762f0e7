"""A run directory as an object whose tables are read when they are asked for; and its regret log.

The log has a row per agent and round and may be larger than memory. What a figure needs of it is
the mean and the worst regret per cohort and round: these are gathered part by part, with three
columns of at most ``ROWS_PER_PART`` rows in memory at a time.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from regretless.market.core.errors import UserError, closest
from regretless.market.core.paths import expanded
from regretless.market.logs.counted import COUNT_COLUMN, with_counts
from regretless.scenarios.latex_tables import latex_table
from regretless.scenarios.logs import run_directory
from regretless.scenarios.logs.units import RunInUnits, agents_in_units, rounds_in_units

SHORT_NAMES = {"scores": "forecast_scores"}


class PlayedRun:
    """What a run left behind: ``manifest``, and its tables as attributes by their names.

    ``run.scores`` is the table ``forecast_scores``.

    Parameters
    ----------
    path : str or Path
        A directory that ``regretless run`` wrote.

    Raises
    ------
    UserError
        If it is no run directory, or a table is asked for that the run did not keep.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = expanded(path)
        manifest, _ = self._read(None)
        self.manifest: dict[str, Any] = manifest

    def table(self, name: str) -> pd.DataFrame:
        """Read a table by its name without the ending."""
        _, tables = self._read(name)
        if name not in tables:
            raise UserError(f"{self.path} has no table '{name}'; {closest(name, self.tables)}")
        return tables[name]

    def latex(self, name: str, *, where: str | None = None, caption: str | None = None) -> str:
        """Return a table as LaTeX for a paper: seven columns at most, a caption and notes.

        ``where`` is a condition on its rows, as in ``"cohort == 'growers'"``.
        """
        table = self.table(name)
        return latex_table(name, table if where is None else table.query(where), caption=caption)

    def in_units(self) -> RunInUnits:
        """Return ``rounds`` and ``agents`` in the units and names of the data."""
        rounds = rounds_in_units(self.table("rounds"), self.manifest["config"])
        return RunInUnits(rounds=rounds, agents=agents_in_units(self.table("agents")))

    @property
    def tables(self) -> list[str]:
        """Names of the tables that are there."""
        return sorted(
            {file.stem for file in self.path.iterdir() if file.name in run_directory.TABLE_FILES}
        )

    def _read(self, name: str | None) -> tuple[dict[str, Any], dict[str, pd.DataFrame]]:
        """Return the manifest, and of the tables the one with this name, if it is there."""
        other_tables = {file.partition(".")[0] for file in run_directory.TABLE_FILES} - {name}
        return run_directory.read_run(self.path, without=other_tables)

    def __getattr__(self, name: str) -> pd.DataFrame:
        table = SHORT_NAMES.get(name, name)
        if any(file.startswith(f"{table}.") for file in run_directory.TABLE_FILES):
            return self.table(table)
        raise AttributeError(f"a run has no '{name}'; it has {', '.join(self.tables)}")

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *self.tables, *SHORT_NAMES])

    def __repr__(self) -> str:
        return f"<run of {self.manifest['scenario']} in {self.path}: {', '.join(self.tables)}>"


def read_run(path: str | Path) -> PlayedRun:
    """Open a run directory; UserError if it is none."""
    return PlayedRun(path)


ROWS_PER_PART = 500_000
MAX_POINTS = 1500  # of a curve that is drawn; longer ones are thinned evenly
COLUMNS = ["round", "agent", "loss", "swap_regret", "decision_swap_regret"]


def log_parts(run: Path) -> Iterator[pd.DataFrame]:
    """Yield the regret log of a run directory in parts; nothing where it has none."""
    for file in sorted(run.glob("regret_log.parquet")):
        with pq.ParquetFile(file) as log:
            for batch in log.iter_batches(batch_size=ROWS_PER_PART, columns=COLUMNS):
                yield batch.to_pandas()
    for file in sorted(run.glob("regret_log.csv")):
        yield from pd.read_csv(file, usecols=COLUMNS, chunksize=ROWS_PER_PART)


def thinned(rounds: np.ndarray[Any, Any], points: int = MAX_POINTS) -> np.ndarray[Any, Any]:
    """Pick at most so many of a curve's rounds, evenly, both ends among them."""
    picks = np.linspace(0, len(rounds) - 1, min(len(rounds), points))
    return np.asarray(rounds[picks.astype(int)])


def leading_regret(frame: pd.DataFrame) -> "pd.Series[float]":
    """Return decision swap regret of each row, swap regret where the first was not kept."""
    return frame["decision_swap_regret"].fillna(frame["swap_regret"])


def regret_curves(parts: Iterable[pd.DataFrame], agents: pd.DataFrame) -> pd.DataFrame:
    """Sum a regret log, whose ``parts`` come in any order, up per cohort and round.

    Returns frame, indexed by cohort and round: ``mean`` and ``max`` over the agents of the leading
    regret, NaN where none was kept; ``count`` and ``kept``, how many agents have the one or the
    other, and how many have decision swap regret; ``loss``, the mean loss of the round.
    """
    cohort_of_agent = agents.set_index("agent")["cohort"]
    total = pd.DataFrame()
    for part in parts:  # which may tell of the same rounds as those before
        rows = with_counts(part, agents)
        keys = [rows["agent"].map(cohort_of_agent).rename("cohort"), rows["round"]]
        regret = leading_regret(rows)
        n_agents = rows.get(COUNT_COLUMN, 1)
        columns = {
            "sum": regret * n_agents,
            "count": regret.notna() * n_agents,
            "kept": rows["decision_swap_regret"].notna() * n_agents,
            "lost": rows["loss"] * n_agents,
            "agents": rows["loss"].notna() * n_agents,
        }
        sums = pd.DataFrame(columns).groupby(keys, sort=False).sum()
        sums = sums.assign(max=regret.groupby(keys, sort=False).max())
        together = pd.concat([total, sums]) if len(total) else sums
        groups = together.groupby(level=[0, 1], sort=False)
        total = groups.sum().assign(max=groups["max"].max())
    if not len(total):
        return pd.DataFrame(columns=["mean", "max", "count", "kept", "loss"])
    total = total.sort_index(level="round", sort_remaining=False, kind="stable")
    mean = (total["sum"] / total["count"]).where(total["count"] > 0)
    loss = total["lost"] / total["agents"]
    return total[["count", "kept", "max"]].assign(mean=mean, loss=loss)
