"""A study directory, read back as data frames: what ``load_study`` returns."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from regretless.market.core.errors import UserError, closest
from regretless.market.core.paths import expanded
from regretless.market.logs.named_columns import UNIT_SCALE
from regretless.scenarios.latex_tables import latex_table
from regretless.scenarios.logs.column_notes import outcomes_of
from regretless.scenarios.logs.run_directory import MANIFEST
from regretless.scenarios.studies.analysis import parameters
from regretless.scenarios.studies.analysis.certainty_equivalents import (
    EQUIVALENT,
    certainty_equivalents,
    gains_by_parameter,
)
from regretless.scenarios.studies.directory import StudyDirectory
from regretless.scenarios.studies.sampling import calibration_table
from regretless.scenarios.studies.study_runs import StudyRuns, run_table
from regretless.scenarios.studies.tables import STUDY_TABLES
from regretless.scenarios.table_files import export


class Study(StudyRuns):
    """What a study has found so far; ``docs/columns.md`` lists the tables' columns.

    The tables are those that the study wrote. They are computed anew where they are of other runs
    than are there now: while the study goes on, and after a folder of a run was removed.

    Parameters
    ----------
    path : path
        A study directory; it need not be complete.

    Attributes
    ----------
    record : dict
        Contents of ``study.json``.

    Raises
    ------
    UserError
        If it is not a study directory.

    Examples
    --------
    >>> study = Study("runs/value-of-a-forecast")  # doctest: +SKIP
    >>> study.value()  # doctest: +SKIP
    """

    def __init__(self, path: str | Path) -> None:
        home = expanded(path)
        record = StudyDirectory.record_in(home)
        if record is None:
            raise UserError(f"{home} is not a study directory: give one with a study.json")
        super().__init__(home, record)

    def cohorts(self) -> pd.DataFrame:
        """Return one row per run and cohort, with the user's own measures."""
        return self.result("cohorts")

    def value(self) -> pd.DataFrame:
        """Return the value of the forecast, in the utility's own units."""
        return self.result("value")

    def effects(self, *, by: str | None = None) -> pd.DataFrame:
        """Return the means for each value of each key.

        With ``by``, a parameter of the agents such as ``"param_risk_aversion"``: what each value of
        a key is worth to them against its control, in certainty equivalents, among who is alike in
        the parameter, and its ``slope`` in it, which is the interaction of both. UserError if
        agents have no such parameter, or do not differ in it.
        """
        if by is None:
            return self.result("effects")
        return gains_by_parameter(
            self._agents_with_equivalents(), self.parameters(), by, controls=self.rules.controls
        )

    def _agents_with_equivalents(self) -> pd.DataFrame:
        """Return the agents of all complete runs with their certainty equivalents."""
        parts = []
        for run, home in self.folders().items():
            agents = run_table(home, "agents")
            config = json.loads((home / MANIFEST).read_text(encoding="utf-8"))["config"]
            outcomes = outcomes_of(config)
            scale = outcomes[0].scale if outcomes else UNIT_SCALE
            equivalents = certainty_equivalents(agents, scale)
            parts.append(agents.assign(run=run, **{EQUIVALENT: equivalents}))
        return pd.concat(parts, ignore_index=True) if parts else self.agents_if_any()

    def pair_effects(self) -> pd.DataFrame:
        """Return the means for each values of two keys."""
        return self.result("pair_effects")

    def contrasts(self) -> pd.DataFrame:
        """Return what each key and branch changes."""
        return self.result("contrasts")

    def interactions(self) -> pd.DataFrame:
        """Return how the contrasts of a key depend on another."""
        return self.result("interactions")

    def effects_by_parameter(self) -> pd.DataFrame:
        """Return ``effects`` among agents alike in a parameter of their utility."""
        return self.result("effects_by_parameter")

    def contrasts_by_parameter(self) -> pd.DataFrame:
        """Return ``contrasts`` among agents alike in a parameter of their utility."""
        return self.result("contrasts_by_parameter")

    def regression(self, *measures: str, on: Sequence[str] | None = None) -> pd.DataFrame:
        """Regress measures of agents on parameters and keys.

        ``measures`` are columns of ``agents``, by default the mean loss and the regrets that were
        kept; ``on`` names parameters and keys, by default all that differ. UserError if a name is
        unknown, or if statsmodels, of the extra ``stats``, is needed and not installed.
        """
        if not measures and on is None:
            return self.result("regression")
        agents = self.agents_if_any()
        for name in measures:
            if name not in agents:
                raise UserError(f"regression of '{name}': {closest(name, map(str, agents))}")
        measured_columns = [name for name in measures or parameters.MEASURED if name in agents]
        return parameters.regression_table(
            agents, self.parameters(), measured_columns, on=on, controls=self.rules.controls
        )

    def gains(self) -> pd.DataFrame:
        """Return what each branch did to each agent."""
        return self.result("gains")

    def sensitivity(self) -> pd.DataFrame:
        """Return how strongly each sampled key moves a measure."""
        if self.sample is None:
            raise UserError(f"{self.path}: nothing was sampled; give the study file a [sample]")
        return self.result("sensitivity")

    def calibration(self, targets: Mapping[str, float] | None = None) -> pd.DataFrame:
        """Return the keys that give what was observed.

        ``targets`` are measures with their values, by default those of the study file.
        """
        sample = self.sample
        if sample is not None and targets is not None:
            sample = sample.model_copy(update={"targets": dict(targets)})
        if sample is None or not sample.is_latin_hypercube or not sample.targets:
            expected = "a [sample] of method 'latin-hypercube' with targets"
            raise UserError(f"{self.path}: nothing to calibrate; give the study file {expected}")
        if targets is None:
            return self.result("calibration")
        return calibration_table(self.cohorts(), self.parameters(), sample)

    def windows(self) -> pd.DataFrame:
        """Return regret over windows of rounds; no rows without windows."""
        return self.result("windows")

    def impulse_response(self) -> pd.DataFrame:
        """Return what agents did around an impulse, with it and without; no rows without one."""
        return self.result("impulse_response")

    def result(self, name: str) -> pd.DataFrame:
        """Return a table of ``STUDY_TABLES`` as it was written, or computed from today's runs."""
        written = self._written(name)
        return STUDY_TABLES[name].of(self) if written is None else written

    def has_result(self, name: str) -> bool:
        """Whether the study has a table of ``STUDY_TABLES``, written or to be computed."""
        if name not in STUDY_TABLES:
            return False
        return STUDY_TABLES[name].available(self) or self._written(name) is not None

    def results(self) -> dict[str, pd.DataFrame]:
        """Return by name every table of ``STUDY_TABLES`` that the study has."""
        return {name: self.result(name) for name in STUDY_TABLES if self.has_result(name)}

    def export(self, folder: str | Path) -> list[Path]:
        """Write every table of the study into a folder, as CSV and as LaTeX; return the files."""
        tables = {"parameters": self.parameters(), "failures": self.failures()}
        return export(tables | self.results(), expanded(folder))

    def latex(
        self, table: str | pd.DataFrame, *, where: str | None = None, caption: str | None = None
    ) -> str:
        """Return a table as LaTeX for a paper: seven columns at most, a caption and notes.

        ``table`` is the name of one, or one of one's own; ``where`` is a condition on its rows, as
        in ``"measure == 'mean_loss'"`` (of ``DataFrame.query``).
        """
        name = table if isinstance(table, str) else "study"
        rows = self.named_table(table) if isinstance(table, str) else table
        return latex_table(name, rows if where is None else rows.query(where), caption=caption)

    def named_table(self, name: str) -> pd.DataFrame:
        """Return a table of the study by its name; UserError if there is none."""
        if not self.has_result(name):
            raise UserError(f"{self.path} has no table '{name}'; {closest(name, self.results())}")
        return self.result(name)

    def _written(self, name: str) -> pd.DataFrame | None:
        """Return a table as it was written, None if it is not of the runs that are there now."""
        try:
            runs = pq.read_table(self.path / "cohorts.parquet", columns=["run"])["run"]
            if set(runs.to_pylist()) != set(self.runs()):
                return None
            table = pd.read_parquet(self.path / f"{name}.parquet")
        except (OSError, ValueError, LookupError):  # it is damaged or not there
            return None
        has_all_columns = STUDY_TABLES[name].columns.keys() <= set(table)  # as this version has
        return table if has_all_columns else None


def load_study(path: str | Path) -> Study:
    """Open a study directory."""
    return Study(path)
