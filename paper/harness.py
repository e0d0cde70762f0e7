"""A table of ``python -m paper``: what is measured, shared out over processes, printed and written.

Each module with tables of its own has a dictionary ``TABLES`` from names to objects of ``Table``,
which ``paper.__main__`` measures, prints and writes. Bundled studies are ``study_table.StudyTable``
instead, which offers the same methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from paper.figures import write_files
from regretless.market.core.errors import UserError
from regretless.scenarios.executor.choice import collect

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
    aggregations : mapping
        How columns are summed up that are not averaged, as ``pandas`` names it.
    digits : int
        Decimals that are printed.
    layout : function from the measured table to text
        In place of the lines.
    attachments : function from the measured table to frames and figures, by their files' names
        Written beside the rows.
    first : int or None
        Number of the first game that is played, for a table of many; None for other tables.
    rivals : sequence of str or None
        Names of the rivals that are measured by default, for a table that has some; None for other
        tables.
    packages : sequence of str
        Packages that its series come with, without which nothing is measured.
    min_rounds : int
        The fewest rounds of which it can say anything.
    why_min_rounds : str
        The reason, as the line says it that refuses fewer.
    """

    rows: Callable[..., Iterable[Row]]
    by: Sequence[str]
    instances: Callable[[], Sequence[Any]] = lambda: ("",)
    rounds: int | None = None
    seeds: int | None = None
    aggregations: Mapping[str, Any] = field(default_factory=dict)
    digits: int = 4
    layout: Callable[[pd.DataFrame], str] | None = None
    attachments: Callable[[pd.DataFrame], Mapping[str, pd.DataFrame | Figure]] = lambda _: {}
    first: int | None = None
    rivals: Sequence[str] | None = None
    packages: Sequence[str] = ()
    min_rounds: int = 1
    why_min_rounds: str = ""

    @property
    def options(self) -> dict[str, Any]:
        """What it plays by default: the options of the command that it takes, with values."""
        defaults = {
            "rounds": self.rounds,
            "seeds": self.seeds,
            "first": self.first,
            "rivals": self.rivals,
        }
        return {name: value for name, value in defaults.items() if value is not None}

    def cells(self, seeds: int | None = None) -> int:
        """Count the jobs: instances times seeds."""
        return len(self.instances()) * (seeds or 1)

    def check_rounds(self, rounds: int | None) -> None:
        """Raise UserError for fewer rounds than the table can say anything of."""
        if rounds is not None and rounds < self.min_rounds:
            cure = f"give at least {self.min_rounds}"
            raise UserError(f"--rounds {rounds}: {self.why_min_rounds}; {cure}")

    def measure(
        self,
        *,
        rounds: int | None = None,
        seeds: int = 1,
        first: int | None = None,
        rivals: Sequence[str] | None = None,
        jobs: int | None = None,
        progress: Callable[[int], Any] | None = None,
    ) -> pd.DataFrame:
        """Measure every instance with every seed: a row for each line and seed.

        UserError for too few rounds.
        """
        self.check_rounds(rounds)
        cells = list(product(self.instances(), range(seeds)))
        measure_cell = _CellMeasurement(self, rounds, first, rivals)
        rows_of_cells = collect(measure_cell, cells, jobs=jobs, progress=progress)
        return pd.DataFrame([row for rows in rows_of_cells for row in rows])

    def summed(self, table: pd.DataFrame) -> pd.DataFrame:
        """Sum a measured table up: a line for each combination of the columns ``by``."""
        columns = [str(column) for column in table if column not in self.by]
        aggregations = {column: self.aggregations.get(column, "mean") for column in columns}
        return table.groupby(list(self.by), sort=False, dropna=False).agg(aggregations)

    def text(self, table: pd.DataFrame) -> str:
        """Lay a measured table out as it is printed."""
        if self.layout is not None:
            return self.layout(table)
        return self.summed(table).round(self.digits).to_string()

    def write(self, table: pd.DataFrame, out: Path) -> list[Path]:
        """Write the rows as CSV, and what is beside them; return the paths."""
        return write_files(out, {f"{out.name}.csv": table, **self.attachments(table)})


@dataclass(frozen=True)
class _CellMeasurement:
    """Measures one instance with one seed, in whatever process it is sent to."""

    table: Table
    rounds: int | None
    first: int | None = None
    rivals: Sequence[str] | None = None

    def __call__(self, cell: tuple[Any, int]) -> list[Row]:
        instance, seed = cell
        options: dict[str, Any] = {}
        if self.table.seeds is not None:
            options["seed"] = seed
        if self.table.rounds is not None:
            options["rounds"] = self.rounds
        if self.first is not None:
            options["first"] = self.first
        if self.rivals is not None:
            options["rivals"] = self.rivals
        return list(self.table.rows(instance, **options))
