"""The runs of a study that are complete, as data frames: what its tables are computed from.

``scenarios.studies.tables`` says which tables there are and how each is computed; ``conduct``
computes and writes them, and ``Study`` (``scenarios.studies.results``), which users open, reads
them. The rules by which differences are tested come from the study file.
"""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from regretless.market.core.errors import UserError
from regretless.scenarios.logs.column_notes import columns_of_data
from regretless.scenarios.studies.analysis.contrasts import Rules, controls_of
from regretless.scenarios.studies.analysis.measures import (
    COHORT_TYPES,
    WITHIN,
    IntervalRule,
    Range,
    cohorts_of,
    interval,
    of_solutions,
    own_of,
    replicates,
    typed_table,
    with_everybody,
    with_market,
)
from regretless.scenarios.studies.analysis.parameters import parted
from regretless.scenarios.studies.sampling import SampleSpec


def run_table(home: Path, name: str) -> pd.DataFrame:
    """Return a table of a study's run; UserError if it is damaged or gone."""
    try:
        return pd.read_parquet(home / f"{name}.parquet", partitioning=None)
    except (OSError, ValueError) as error:  # Arrow's own are either
        reason = f"{home}: its table '{name}' is damaged or gone"
        raise UserError(f"{reason}; remove that folder, then continue with --resume") from error


class StudyRuns:
    """The complete runs of a study, and what its file says of them.

    Parameters
    ----------
    path : Path
        The study directory; it need not be complete.
    record : dict
        What its ``study.json`` holds.
    """

    def __init__(self, path: Path, record: dict[str, Any]) -> None:
        self.path = path
        self.record = record
        self._file: dict[str, Any] = record["study"]["file"]

    def runs(self) -> list[int]:
        """Return the runs that are complete, in order."""
        return list(self.folders())

    def folders(self) -> dict[int, Path]:
        """Return the folder of each complete run, in order."""
        folders = {
            int(folder.name.partition("=")[2]): folder for folder in self.path.glob("runs/run=*")
        }
        return dict(sorted(folders.items()))

    def parameters(self) -> pd.DataFrame:
        """Return one row per run: ``run``, ``seed`` and the keys that vary."""
        return pd.read_parquet(self.path / "parameters.parquet")

    def failures(self) -> pd.DataFrame:
        """Return one row per run that failed: ``run``, ``kind``, ``error``, ``traceback``."""
        return pd.read_parquet(self.path / "failures.parquet")

    def table(self, name: str) -> pd.DataFrame:
        """Return a table of all complete runs, such as ``"regret_log"``, with ``run`` in front.

        ``parameters()`` can be merged on ``run``. UserError if no run has that table.
        """
        parts = []
        for run, part in self.tables_by_run(name):
            part.insert(0, "run", run)
            parts.append(part)
        if not parts:
            raise UserError(f"no run in {self.path} has a table '{name}'; check the name")
        return pd.concat(parts, ignore_index=True)

    def tables_by_run(self, name: str) -> Iterator[tuple[int, pd.DataFrame]]:
        """Yield each complete run that kept a table, with that table."""
        for run, home in self.folders().items():
            if (home / f"{name}.parquet").exists():
                yield run, run_table(home, name)

    def agents(self) -> pd.DataFrame:
        """Return the agents of all complete runs."""
        return self.table("agents")

    def agents_if_any(self) -> pd.DataFrame:
        """Return the agents of all complete runs; a table without rows where no run is complete."""
        if not self.runs():
            return pd.DataFrame({"cohort": pd.Series(dtype="str"), "run": pd.Series(dtype="int64")})
        return self.agents()

    @cached_property
    def cohort_rows(self) -> pd.DataFrame:
        """A row per run and cohort (``COHORT_TYPES``), with the user's own measures."""
        parts = []
        for run, home in self.folders().items():
            agents = run_table(home, "agents")
            cohorts = cohorts_of(agents, run)
            if (home / "measures.parquet").exists():
                own_measures = own_of(run_table(home, "measures"), agents)
                cohorts = cohorts.merge(
                    own_measures, how="left", on="cohort", suffixes=("", " (own)")
                )
            if (home / "solutions.parquet").exists():
                cohorts = cohorts.assign(**of_solutions(run_table(home, "solutions")))
            parts.append(cohorts)
        if not parts:
            return typed_table([], COHORT_TYPES)
        return pd.concat(parts, ignore_index=True)

    @cached_property
    def compared_rows(self) -> pd.DataFrame:
        """``cohort_rows`` with rows for everybody, and for the whole market."""
        rows_and_everybody = with_everybody(self.cohort_rows)
        return with_market(rows_and_everybody, self._rounds_without_names())

    def _rounds_without_names(self) -> Iterator[tuple[int, pd.DataFrame]]:
        """Yield the rounds of each run without columns that repeat others in units of the data."""
        folders = self.folders()
        for run, rounds in self.tables_by_run("rounds"):
            names = columns_of_data(folders[run] / "rounds.parquet")
            yield run, rounds.drop(columns=names)

    @cached_property
    def rows_by_parameter(self) -> pd.DataFrame:
        """Rows like those of ``cohort_rows`` for the agents alike in a parameter."""
        return parted(self.agents_if_any())

    def levels(self) -> pd.DataFrame:
        """Return ``parameters()`` without keys that were sampled: none has a value twice."""
        rows = self.parameters()
        return rows if self.sample is None else rows[["run", "seed"]]

    @property
    def has_branches(self) -> bool:
        """Whether the study has branches, and runs that took them."""
        return bool(self._file.get("branch") and self.runs())

    @property
    def has_windows(self) -> bool:
        """Whether the study's runs take regret over windows of rounds."""
        return any(key.partition(".")[0] == "windows" for key in self._keys())

    @property
    def has_impulse(self) -> bool:
        """Whether the study's runs have an impulse."""
        return any(key.partition(".")[0] == "impulse" for key in self._keys())

    @property
    def sample(self) -> SampleSpec | None:
        """What was sampled from ranges; None where values were listed."""
        sample = self._file.get("sample")
        return None if sample is None else SampleSpec.model_validate(sample)

    @property
    def rules(self) -> Rules:
        """How differences are tested: controls and margins are the study file's."""
        levels = {str(key): values for key, values in self.levels().items()}
        return Rules(
            interval_rule=self.interval_rule,
            within=self.within,
            controls=controls_of(self._file.get("control"), levels),
            margin=self._file.get("margin"),
        )

    @property
    def interval_rule(self) -> IntervalRule:
        """How means over seeds get their intervals: seeds may be replicates of one history."""
        seeds_are_replicates = "data.bootstrap" in self._keys()
        return replicates if seeds_are_replicates else interval

    @property
    def within(self) -> dict[str, Range]:
        """The ranges of measures that have one, those of the user's own as registered."""
        own_ranges = self.record.get("within", {})
        return WITHIN | {name: (low, high) for name, (low, high) in own_ranges.items()}

    def _keys(self) -> set[str]:
        """Return the dotted keys of the base scenario's tables and of the study."""
        keys = set(self._file["set"])
        for table, entries in self.record["study"]["base"].items():
            if isinstance(entries, dict):
                keys.update(f"{table}.{key}" for key in entries)
        for key, values in self._file["grid"].items():
            keys.add(key)
            if isinstance(values, dict):  # by label, the keys that it stands for
                keys.update(*values.values())
        keys.update(*self._file["list"])
        return keys
