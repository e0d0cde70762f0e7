"""What the figures and the page of a study are drawn from, and names of its settings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from regretless.scenarios.studies.analysis.measures import REGRETS
from regretless.scenarios.studies.curves import setting_curves
from regretless.scenarios.studies.results import Study

VALUE = ("cohort", "baseline", "pairs", "mean", "low", "high")
WINDOW = ("cohort", "first", "last", "measure", "seeds", "mean", "low", "high")


@dataclass(frozen=True, eq=False)
class StudyData:
    """What the figures of a study are drawn from, each table computed once."""

    study: Study

    @cached_property
    def listed(self) -> bool:
        """Whether settings are listed: a line or a row for each sampled point shows nothing."""
        return self.study.sample is None

    @cached_property
    def parameters(self) -> pd.DataFrame:
        """The runs and the values of their keys."""
        return self.study.parameters()

    @cached_property
    def cohorts(self) -> pd.DataFrame:
        """The measures of each run and cohort."""
        return self.study.cohorts()

    @cached_property
    def contrasts(self) -> pd.DataFrame:
        """What each value changes."""
        return self.study.contrasts()

    @cached_property
    def interactions(self) -> pd.DataFrame:
        """How the contrasts of a key depend on another."""
        return self.study.interactions()

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """Means at each pair of values of two keys."""
        return self.study.pair_effects()

    @cached_property
    def by_parameter(self) -> pd.DataFrame:
        """The contrasts among agents alike in a parameter."""
        return self.study.contrasts_by_parameter()

    @cached_property
    def regression(self) -> pd.DataFrame:
        """Regrets of agents on parameters and keys."""
        return self.study.regression()

    @cached_property
    def sensitivity(self) -> pd.DataFrame | None:
        """How strongly each sampled key moves a measure; None where none was sampled."""
        found = None if self.listed else self.study.sensitivity()
        return None if found is None else found.rename(columns={"runs": "seeds"})

    @cached_property
    def value(self) -> pd.DataFrame:
        """Welfare with Decision-Swap minus welfare with another forecaster."""
        return self.study.value()

    @property
    def value_names(self) -> pd.Series[str]:
        """Setting of each row of ``value``."""
        return setting_names(self.value, beside=VALUE)

    @cached_property
    def curves(self) -> pd.DataFrame | None:
        """Regret over time by setting; None where the logs are too large."""
        if not self.listed:
            return pd.DataFrame()
        return setting_curves(self.study, setting_names(self.parameters))

    @cached_property
    def windows(self) -> pd.DataFrame:
        """Mean regret by window and setting, of the finest regret that was kept."""
        found = self.study.windows() if self.listed and self.study.has_windows else pd.DataFrame()
        for measure in (f"{regret}_mean" for regret in reversed(REGRETS)) if len(found) else ():
            if (found["measure"] == measure).any():
                shown = found[found["measure"] == measure]
                return shown.assign(setting=setting_names(shown, beside=WINDOW))
        return pd.DataFrame()


def keys_of(frame: pd.DataFrame, *, beside: tuple[str, ...] = ("run", "seed")) -> list[str]:
    """Return the columns of a parameters table that are keys."""
    return [str(key) for key in frame if key not in beside]


def setting_names(frame: pd.DataFrame, *, beside: tuple[str, ...] = ("run", "seed")) -> pd.Series:
    """Name the setting of each row by the values of its keys."""
    keys = keys_of(frame, beside=beside)
    rows = frame[keys].astype(str).agg(", ".join, axis=1) if keys else "the scenario as it is"
    names = pd.Series("" if frame.empty else rows, index=frame.index, dtype="str")
    return names.set_axis(frame["run"]) if "run" in frame else names
