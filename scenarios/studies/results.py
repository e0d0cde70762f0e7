"""A study directory, read back as data frames."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from regretless.market.core.errors import UserError, closest
from regretless.scenarios.frames import export
from regretless.scenarios.studies.analysis import measures as analysis
from regretless.scenarios.studies.analysis.contrasts import (
    Rules,
    contrasts_table,
    controls_of,
    gains_table,
    interactions_table,
)
from regretless.scenarios.studies.analysis.measures import market_of, with_market
from regretless.scenarios.studies.analysis.parameters import (
    MEASURED,
    named,
    parted,
    regression_table,
)
from regretless.scenarios.studies.directory import TABLES, read_record
from regretless.scenarios.studies.sampling import SampleSpec, calibration_table, sensitivity_table


def run_table(home: Path, name: str) -> pd.DataFrame:
    """Read a table of a study's run; UserError if it is damaged or gone."""
    try:
        return pd.read_parquet(home / f"{name}.parquet", partitioning=None)
    except (OSError, ValueError) as error:  # Arrow's own are either
        reason = f"{home}: its table '{name}' is damaged or gone"
        raise UserError(f"{reason}; remove that folder, then continue with --resume") from error


class Study:
    """What a study has found so far.

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
        self.path = Path(path)
        record = read_record(self.path)
        if record is None:
            raise UserError(f"{self.path} is not a study directory: give one with a study.json")
        self.record: dict[str, Any] = record

    def runs(self) -> list[int]:
        """Return the runs that are complete, in order."""
        return list(self.homes())

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
        lacking = {
            "gains": not self.has_branches,
            "sensitivity": self.sample is None,
            "calibration": self.sample is None or not self.sample.targets,
            "windows": not self.has_windows,
        }
        names = (name for name in TABLES[2:] if not lacking.get(name))
        return {name: getattr(self, name)() for name in names}

    def export(self, folder: str | Path) -> list[Path]:
        """Write every table of the study into a folder, as CSV and as LaTeX; return the files."""
        own = {"parameters": self.parameters(), "failures": self.failures()}
        return export(own | self.results(), Path(folder))

    def cohorts(self) -> pd.DataFrame:
        """One row per run and cohort; see ``analysis.cohorts_of`` and ``analysis.own_of``."""
        parts = [_cohorts(home, run) for run, home in self.homes().items()]
        if not parts:
            return pd.DataFrame(columns=analysis.COHORTS).astype({"run": "int64", "cohort": "str"})
        return pd.concat(parts, ignore_index=True)

    def value(self) -> pd.DataFrame:
        """Value of the forecast, in the utility's own units; see ``analysis.value_table``."""
        return analysis.value_table(self.cohorts(), self.parameters(), self.ends)

    @cached_property
    def measures(self) -> pd.DataFrame:
        """``cohorts`` with rows for everybody, and for the whole market (``market_of``)."""
        parts = [market_of(rounds, run) for run, rounds in self._each("rounds")]
        cohorts = analysis.with_everybody(self.cohorts())
        return with_market(cohorts, pd.concat(parts, ignore_index=True)) if parts else cohorts

    def effects(self) -> pd.DataFrame:
        """Means for each value of each key; see ``analysis.effects_table``."""
        return analysis.effects_table(self.measures, self._levels(), self.ends, self.within)

    def contrasts(self) -> pd.DataFrame:
        """Return what each key and branch changes; see ``contrasts.contrasts_table``."""
        found = self.table("branches") if self.has_branches else None
        return contrasts_table(self.measures, self._levels(), found, rules=self.rules)

    def interactions(self) -> pd.DataFrame:
        """How the contrasts of a key depend on another; see ``contrasts.interactions_table``."""
        return interactions_table(self.measures, self._levels(), rules=self.rules)

    def pair_effects(self) -> pd.DataFrame:
        """Means for each values of two keys; see ``analysis.effects_table``."""
        found = self.measures, self._levels(), self.ends, self.within
        return analysis.effects_table(*found, pairs=True)

    def effects_by_parameter(self) -> pd.DataFrame:
        """``effects`` among agents alike in a parameter of their utility (``parted``)."""
        found = self._levels(), self.ends, self.within
        return named(analysis.effects_table(self._parted, *found))

    def contrasts_by_parameter(self) -> pd.DataFrame:
        """``contrasts`` among agents alike in a parameter of their utility (``parted``)."""
        return named(contrasts_table(self._parted, self._levels(), rules=self.rules))

    @cached_property
    def _parted(self) -> pd.DataFrame:
        return parted(self.agents() if self.runs() else pd.DataFrame(columns=["cohort"]))

    def regression(self, *measures: str, on: Sequence[str] | None = None) -> pd.DataFrame:
        """Regress measures of agents on parameters and keys; see ``regression_table``.

        ``measures`` are columns of ``agents``, by default the mean loss and the regrets that were
        kept; ``on`` names parameters and keys, by default all that differ.
        """
        agents = self.agents() if self.runs() else pd.DataFrame(columns=["cohort", "run"])
        for name in measures:
            if name not in agents:
                raise UserError(f"regression of '{name}': {closest(name, map(str, agents))}")
        known = [name for name in measures or MEASURED if name in agents]
        controls = self.rules.controls
        return regression_table(agents, self.parameters(), known, on=on, controls=controls)

    @property
    def rules(self) -> Rules:
        """How differences are tested: controls and margins are the study file's."""
        file, keys = self.record["study"]["file"], self._levels()
        control = controls_of(file.get("control"), {str(k): keys[k] for k in keys})
        return Rules(self.ends, self.within, control, file.get("margin"))

    @property
    def has_branches(self) -> bool:
        """Whether the study has branches, and runs that took them."""
        return bool(self.record["study"]["file"].get("branch") and self.runs())

    def gains(self) -> pd.DataFrame:
        """Return what each branch did to each agent; see ``contrasts.gains_table``."""
        return gains_table(self.table("branches"), self.parameters(), ends=self.ends)

    @property
    def sample(self) -> SampleSpec | None:
        """What was sampled from ranges; None where values were listed."""
        sample = self.record["study"]["file"].get("sample")
        return None if sample is None else SampleSpec.model_validate(sample)

    def _levels(self) -> pd.DataFrame:
        """Return the parameters without keys that were sampled: none has a value twice."""
        known = self.parameters()
        return known if self.sample is None else known[["run", "seed"]]

    def sensitivity(self) -> pd.DataFrame:
        """How strongly each sampled key moves a measure; see ``sampling.sensitivity_table``."""
        if self.sample is None:
            raise UserError(f"{self.path}: nothing was sampled; give the study file a [sample]")
        return sensitivity_table(self.cohorts(), self.parameters(), self.sample)

    def calibration(self, targets: Mapping[str, float] | None = None) -> pd.DataFrame:
        """Keys that give what was observed; see ``sampling.calibration_table``.

        ``targets`` are measures with their values, by default those of the study file.
        """
        sample = self.sample
        if sample is not None and targets is not None:
            sample = sample.model_copy(update={"targets": dict(targets)})
        if sample is None or not sample.own_seeds or not sample.targets:
            wanted = "a [sample] of method 'latin-hypercube' with targets"
            raise UserError(f"{self.path}: nothing to calibrate; give the study file {wanted}")
        return calibration_table(self.cohorts(), self.parameters(), sample)

    @property
    def has_windows(self) -> bool:
        """Whether the study's runs take regret over windows of rounds."""
        return any(key.partition(".")[0] == "windows" for key in self._keys())

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

    def _keys(self) -> set[str]:
        """Return the dotted keys of the base scenario's tables and of the study."""
        base, file = self.record["study"]["base"], self.record["study"]["file"]
        found = {
            f"{name}.{key}" for name, own in base.items() if isinstance(own, dict) for key in own
        }
        labels = [
            table
            for values in file["grid"].values()
            if isinstance(values, dict)
            for table in values.values()
        ]
        tables = file["set"], file["grid"], *file["list"], *labels
        return found.union(*tables)

    def windows(self) -> pd.DataFrame:
        """Regret over windows of rounds; see ``analysis.windows_table``. Empty without windows."""
        parts = [pd.DataFrame(columns=["run", *analysis.WINDOW, *analysis.LOSSES])]
        homes = self.homes()
        for run, own in self._each("windows"):
            agents = run_table(homes[run], "agents")
            parts.append(analysis.windows_of(own, agents).assign(run=run))
        found = pd.concat(parts[1:] or parts, ignore_index=True).astype({"run": "int64"})
        return analysis.windows_table(found, self.parameters(), self.ends)

    def homes(self) -> dict[int, Path]:
        """Return the folder of each complete run, in order."""
        homes = {int(h.name.partition("=")[2]): h for h in self.path.glob("runs/run=*")}
        return dict(sorted(homes.items()))


def _cohorts(home: Path, run: int) -> pd.DataFrame:
    agents = run_table(home, "agents")
    table = analysis.cohorts_of(agents, run)
    if not (home / "measures.parquet").exists():
        return table
    own = analysis.own_of(run_table(home, "measures"), agents)
    merged = table.merge(own, on="cohort", how="left", sort=False, suffixes=("", " (own)"))
    return pd.DataFrame(merged)


def load_study(path: str | Path) -> Study:
    """Open a study directory."""
    return Study(path)
