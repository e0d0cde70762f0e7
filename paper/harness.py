"""What tables share: instances and seeds shared out, means over seeds printed and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from paper.figures import written
from regretless.scenarios.executor import collect

Row = dict[str, Any]


@dataclass(frozen=True)
class Table:
    """A table: ``rows`` measures an instance with a seed; a line has the means over seeds.

    Parameters
    ----------
    rows : function from instance, and rounds and seed where the table has them, to rows
    by : sequence of str
        Columns that tell lines apart.
    instances : function to a sequence
        What is measured, a job for each and every seed.
    rounds, seeds : int or None
        By default; None where the table has none.
    instead : mapping
        How columns are summed up that are not averaged.
    digits : int
        Decimals that are printed.
    layout : function from the measured table to text
        In place of the lines.
    beside : function from the measured table to frames and figures, by their files' names
        Written beside the rows.
    first : int or None
        Number of the first game that is played, for a table of many; None for other tables.
    """

    rows: Callable[..., Iterable[Row]]
    by: Sequence[str]
    instances: Callable[[], Sequence[Any]] = lambda: ("",)
    rounds: int | None = None
    seeds: int | None = None
    instead: Mapping[str, Any] = field(default_factory=dict)
    digits: int = 4
    layout: Callable[[pd.DataFrame], str] | None = None
    beside: Callable[[pd.DataFrame], Mapping[str, pd.DataFrame | Figure]] = lambda _: {}
    first: int | None = None

    @property
    def options(self) -> dict[str, int]:
        """How much it plays by default."""
        known = {"rounds": self.rounds, "seeds": self.seeds, "first": self.first}
        return {name: value for name, value in known.items() if value is not None}

    def cells(self, seeds: int | None = None) -> int:
        """Count the jobs."""
        return len(self.instances()) * (seeds or 1)

    def measure(
        self,
        *,
        rounds: int | None = None,
        seeds: int = 1,
        first: int | None = None,
        jobs: int | None = None,
        progress: Callable[[int], Any] | None = None,
    ) -> pd.DataFrame:
        """Measure every instance with every seed: a row for each line and seed."""
        plan = list(product(self.instances(), range(seeds)))
        found = collect(_Job(self, rounds, first), plan, jobs=jobs, progress=progress)
        return pd.DataFrame([row for rows in found for row in rows])

    def summed(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return a line for each of ``by``."""
        ways = {name: self.instead.get(str(name), "mean") for name in table if name not in self.by}
        return table.groupby(list(self.by), sort=False, dropna=False).agg(ways)

    def text(self, table: pd.DataFrame) -> str:
        """Lay the lines out."""
        lines = self.layout or (lambda own: self.summed(own).round(self.digits).to_string())
        return lines(table)

    def write(self, table: pd.DataFrame, out: Path) -> list[Path]:
        """Write the rows as CSV, and what is beside them; return the paths."""
        return written(out, {f"{out.name}.csv": table, **self.beside(table)})


@dataclass(frozen=True)
class _Job:
    table: Table
    rounds: int | None
    first: int | None = None

    def __call__(self, cell: tuple[Any, int]) -> list[Row]:
        given: dict[str, Any] = {} if self.table.seeds is None else {"seed": cell[1]}
        if self.table.rounds is not None:
            given["rounds"] = self.rounds
        if self.first is not None:
            given["first"] = self.first
        return list(self.table.rows(cell[0], **given))
