"""A study directory, read back as data frames."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from regretless.market.core.errors import UserError, closest
from regretless.market.core.paths import expanded
from regretless.market.logs.counted import with_counts
from regretless.scenarios.studies.analysis import contrasts as tests
from regretless.scenarios.studies.analysis import measures as analysis
from regretless.scenarios.studies.analysis import parameters as people
from regretless.scenarios.studies.directory import TABLES, StudyDirectory
from regretless.scenarios.studies.sampling import SampleSpec, calibration_table, sensitivity_table
from regretless.scenarios.table_files import export


def run_table(home: Path, name: str) -> pd.DataFrame:
    """Read a table of a study's run; UserError if it is damaged or gone."""
    try:
        return pd.read_parquet(home / f"{name}.parquet", partitioning=None)
    except (OSError, ValueError) as error:  # Arrow's own are either
        reason = f"{home}: its table '{name}' is damaged or gone"
        raise UserError(f"{reason}; remove that folder, then continue with --resume") from error


class Study:
    """What a study has found so far; ``docs/columns.md`` lists the tables' columns.

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
        self.path = expanded(path)
        record = StudyDirectory.record_in(self.path)
        if record is None:
            raise UserError(f"{self.path} is not a study directory: give one with a study.json")
        self.record: dict[str, Any] = record
        self._file: dict[str, Any] = record["study"]["file"]

    def runs(self) -> list[int]:
        """Return the runs that are complete, in order."""
        return list(self.homes())

    def homes(self) -> dict[int, Path]:
        """Return the folder of each complete run, in order."""
        homes = {int(h.name.partition("=")[2]): h for h in self.path.glob("runs/run=*")}
        return dict(sorted(homes.items()))

    def parameters(self) -> pd.DataFrame:
        """One row per run: ``run``, ``seed`` and the keys that vary."""
        return pd.read_parquet(self.path / "parameters.parquet")

    def failures(self) -> pd.DataFrame:
        """One row per run that failed: ``run``, ``kind``, ``error``, ``traceback``."""
        return pd.read_parquet(self.path / "failures.parquet")

    def table(self, name: str) -> pd.DataFrame:
        """Return a table of all complete runs, such as ``"regret_log"``, with ``run`` in front.

        ``parameters()`` can be merged on ``run``. UserError if no run has that table.
        """
        parts = dict(self._each(name))
        if not parts:
            raise UserError(f"no run in {self.path} has a table '{name}'; check the name")
        for run, part in parts.items():
            part.insert(0, "run", run)
        return pd.concat(parts.values(), ignore_index=True)

    def _each(self, name: str) -> Iterator[tuple[int, pd.DataFrame]]:
        for run, home in self.homes().items():
            if (home / f"{name}.parquet").exists():
                yield run, run_table(home, name)

    def agents(self) -> pd.DataFrame:
        """Return the agents of all complete runs."""
        return self.table("agents")

    def results(self) -> dict[str, pd.DataFrame]:
        """Return by name every table that is computed from the runs."""
        sample = self.sample
        wanted = {"gains": self.has_branches, "windows": self.has_windows}
        wanted |= {
            "sensitivity": sample is not None,
            "calibration": bool(sample and sample.targets),
        }
        return {name: getattr(self, name)() for name in TABLES[2:] if wanted.get(name, True)}

    def export(self, folder: str | Path) -> list[Path]:
        """Write every table of the study into a folder, as CSV and as LaTeX; return the files."""
        own = {"parameters": self.parameters(), "failures": self.failures()}
        return export(own | self.results(), expanded(folder))

    def cohorts(self) -> pd.DataFrame:
        """One row per run and cohort, with the user's own measures."""
        parts = []
        for run, home in self.homes().items():
            agents = run_table(home, "agents")
            parts.append(analysis.cohorts_of(agents, run))
            if (home / "measures.parquet").exists():
                own = analysis.own_of(run_table(home, "measures"), agents)
                parts[-1] = parts[-1].merge(own, "left", "cohort", suffixes=("", " (own)"))
        if not parts:
            return pd.DataFrame(columns=analysis.COHORTS).astype({"run": "int64", "cohort": "str"})
        return pd.concat(parts, ignore_index=True)

    @cached_property
    def measures(self) -> pd.DataFrame:
        """``cohorts`` with rows for everybody, and for the whole market."""
        everybody = analysis.with_everybody(self.cohorts())
        return analysis.with_market(everybody, self._each("rounds"))

    def value(self) -> pd.DataFrame:
        """Value of the forecast, in the utility's own units."""
        return analysis.value_table(self.cohorts(), self.parameters(), self.ends)

    def effects(self) -> pd.DataFrame:
        """Means for each value of each key."""
        return analysis.effects_table(self.measures, self._levels(), self.ends, self.within)

    def pair_effects(self) -> pd.DataFrame:
        """Means for each values of two keys."""
        found = self.measures, self._levels(), self.ends, self.within
        return analysis.effects_table(*found, pairs=True)

    def contrasts(self) -> pd.DataFrame:
        """Return what each key and branch changes."""
        found = self.table("branches") if self.has_branches else None
        return tests.contrasts_table(self.measures, self._levels(), found, rules=self.rules)

    def interactions(self) -> pd.DataFrame:
        """How the contrasts of a key depend on another."""
        return tests.interactions_table(self.measures, self._levels(), rules=self.rules)

    def effects_by_parameter(self) -> pd.DataFrame:
        """``effects`` among agents alike in a parameter of their utility."""
        return people.named(
            analysis.effects_table(self._parted, self._levels(), self.ends, self.within)
        )

    def contrasts_by_parameter(self) -> pd.DataFrame:
        """``contrasts`` among agents alike in a parameter of their utility."""
        return people.named(tests.contrasts_table(self._parted, self._levels(), rules=self.rules))

    @cached_property
    def _parted(self) -> pd.DataFrame:
        return people.parted(self._people())

    def _people(self) -> pd.DataFrame:
        return self.agents() if self.runs() else pd.DataFrame(columns=["cohort", "run"])

    def regression(self, *measures: str, on: Sequence[str] | None = None) -> pd.DataFrame:
        """Regress measures of agents on parameters and keys.

        ``measures`` are columns of ``agents``, by default the mean loss and the regrets that were
        kept; ``on`` names parameters and keys, by default all that differ.
        """
        agents, controls = self._people(), self.rules.controls
        for name in measures:
            if name not in agents:
                raise UserError(f"regression of '{name}': {closest(name, map(str, agents))}")
        known = [name for name in measures or people.MEASURED if name in agents]
        return people.regression_table(agents, self.parameters(), known, on=on, controls=controls)

    def gains(self) -> pd.DataFrame:
        """Return what each branch did to each agent."""
        return tests.gains_table(self.table("branches"), self.parameters(), ends=self.ends)

    def sensitivity(self) -> pd.DataFrame:
        """How strongly each sampled key moves a measure."""
        if self.sample is None:
            raise UserError(f"{self.path}: nothing was sampled; give the study file a [sample]")
        return sensitivity_table(self.cohorts(), self.parameters(), self.sample)

    def calibration(self, targets: Mapping[str, float] | None = None) -> pd.DataFrame:
        """Keys that give what was observed.

        ``targets`` are measures with their values, by default those of the study file.
        """
        sample = self.sample
        if sample is not None and targets is not None:
            sample = sample.model_copy(update={"targets": dict(targets)})
        if sample is None or not sample.own_seeds or not sample.targets:
            wanted = "a [sample] of method 'latin-hypercube' with targets"
            raise UserError(f"{self.path}: nothing to calibrate; give the study file {wanted}")
        return calibration_table(self.cohorts(), self.parameters(), sample)

    def windows(self) -> pd.DataFrame:
        """Regret over windows of rounds; empty without windows."""
        parts = [pd.DataFrame(columns=["run", *analysis.WINDOW, *analysis.LOSSES])]
        homes = self.homes()
        for run, own in self._each("windows"):
            agents = run_table(homes[run], "agents")
            cohort = own["agent"].map(agents.set_index("agent")["cohort"])
            rows = with_counts(own.assign(cohort=cohort), agents)
            parts.append(analysis.losses_of(rows, analysis.WINDOW).reset_index().assign(run=run))
        found = pd.concat(parts[1:] or parts, ignore_index=True).astype({"run": "int64"})
        return analysis.windows_table(found, self.parameters(), self.ends)

    @property
    def has_branches(self) -> bool:
        """Whether the study has branches, and runs that took them."""
        return bool(self._file.get("branch") and self.runs())

    @property
    def has_windows(self) -> bool:
        """Whether the study's runs take regret over windows of rounds."""
        return any(key.partition(".")[0] == "windows" for key in self._keys())

    @property
    def sample(self) -> SampleSpec | None:
        """What was sampled from ranges; None where values were listed."""
        sample = self._file.get("sample")
        return None if sample is None else SampleSpec.model_validate(sample)

    @property
    def rules(self) -> tests.Rules:
        """How differences are tested: controls and margins are the study file's."""
        keys = self._levels()
        control = tests.controls_of(self._file.get("control"), {str(k): keys[k] for k in keys})
        return tests.Rules(self.ends, self.within, control, self._file.get("margin"))

    @property
    def ends(self) -> analysis.Ends:
        """How means over seeds get their intervals: seeds may be replicates of one history."""
        replicated = "data.bootstrap" in self._keys()
        return analysis.replicates if replicated else analysis.interval

    @property
    def within(self) -> dict[str, analysis.Range]:
        """The ranges of measures that have one, those of the user's own as registered."""
        own = self.record.get("within", {})
        return analysis.WITHIN | {name: (low, high) for name, (low, high) in own.items()}

    def _levels(self) -> pd.DataFrame:
        """Return the parameters without keys that were sampled: none has a value twice."""
        known = self.parameters()
        return known if self.sample is None else known[["run", "seed"]]

    def _keys(self) -> set[str]:
        """Return the dotted keys of the base scenario's tables and of the study."""
        base, grid = self.record["study"]["base"], self._file["grid"]
        found = {f"{k}.{key}" for k, own in base.items() if isinstance(own, dict) for key in own}
        labelled = [values for values in grid.values() if isinstance(values, dict)]
        labels = [keys for values in labelled for keys in values.values()]
        return found.union(self._file["set"], grid, *self._file["list"], *labels)


def load_study(path: str | Path) -> Study:
    """Open a study directory."""
    return Study(path)
