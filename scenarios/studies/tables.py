"""The tables of a study: one entry each, with its columns and how it is computed from the runs.

``conduct`` computes and writes what a study has of them; the page, the LaTeX and ``load_study``
read what was written. A table is added here, in ``docs/columns.md``, and as a method of ``Study``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pandas as pd

from regretless.market.logs.counted import with_counts
from regretless.scenarios.studies import sampling
from regretless.scenarios.studies.analysis import contrasts, measures, parameters
from regretless.scenarios.studies.study_runs import StudyRuns, run_table


def always(_: StudyRuns) -> bool:
    """Every study has this table."""
    return True


@dataclass(frozen=True)
class StudyTable:
    """A table of a study, the file ``NAME.parquet``.

    Attributes
    ----------
    name : str
        Its name, also that of the method of ``Study`` that returns it.
    columns : mapping
        The columns that it always has, with their types, rows or no rows. A study's keys and
        measures of one's own may stand beside them.
    compute : callable
        The rows, from the runs that are complete.
    available : callable
        Whether a study has this table, and it can be computed here.
    """

    name: str
    columns: Mapping[str, str]
    compute: Callable[[StudyRuns], pd.DataFrame]
    available: Callable[[StudyRuns], bool] = always

    def of(self, runs: StudyRuns) -> pd.DataFrame:
        """Return the table of these runs; without rows its columns have their types, too."""
        return self.compute(runs).astype(dict(self.columns))


def _value(runs: StudyRuns) -> pd.DataFrame:
    return measures.value_table(runs.cohort_rows, runs.parameters(), runs.interval_rule)


def _effects(runs: StudyRuns) -> pd.DataFrame:
    return measures.effects_table(
        runs.compared_rows, runs.levels(), runs.interval_rule, runs.within
    )


def _pair_effects(runs: StudyRuns) -> pd.DataFrame:
    return measures.effects_table(
        runs.compared_rows, runs.levels(), runs.interval_rule, runs.within, pairs=True
    )


def _contrasts(runs: StudyRuns) -> pd.DataFrame:
    branches = runs.table("branches") if runs.has_branches else None
    return contrasts.contrasts_table(runs.compared_rows, runs.levels(), branches, rules=runs.rules)


def _interactions(runs: StudyRuns) -> pd.DataFrame:
    return contrasts.interactions_table(runs.compared_rows, runs.levels(), rules=runs.rules)


def _effects_by_parameter(runs: StudyRuns) -> pd.DataFrame:
    rows = runs.rows_by_parameter
    return parameters.named(
        measures.effects_table(rows, runs.levels(), runs.interval_rule, runs.within)
    )


def _contrasts_by_parameter(runs: StudyRuns) -> pd.DataFrame:
    rows = runs.rows_by_parameter
    return parameters.named(contrasts.contrasts_table(rows, runs.levels(), rules=runs.rules))


def _regression(runs: StudyRuns) -> pd.DataFrame:
    agents = runs.agents_if_any()
    measured_columns = [name for name in parameters.MEASURED if name in agents]
    return parameters.regression_table(
        agents, runs.parameters(), measured_columns, controls=runs.rules.controls
    )


def _gains(runs: StudyRuns) -> pd.DataFrame:
    return contrasts.gains_table(
        runs.table("branches"), runs.parameters(), interval_rule=runs.interval_rule
    )


def _sensitivity(runs: StudyRuns) -> pd.DataFrame:
    return sampling.sensitivity_table(runs.cohort_rows, runs.parameters(), sample_of(runs))


def _calibration(runs: StudyRuns) -> pd.DataFrame:
    return sampling.calibration_table(runs.cohort_rows, runs.parameters(), sample_of(runs))


def _windows(runs: StudyRuns) -> pd.DataFrame:
    """Return the losses of each cohort in declared windows, over the seeds."""
    folders = runs.folders()
    # The first part has no rows: it gives the columns their types where no run has windows.
    parts = [measures.typed_table([], measures.WINDOW_LOSSES_TYPES)]
    for run, windows in runs.tables_by_run("windows"):
        agents = run_table(folders[run], "agents")
        cohort = windows["agent"].map(agents.set_index("agent")["cohort"])
        rows = with_counts(windows.assign(cohort=cohort), agents)
        losses = measures.losses_of(rows, measures.WINDOW).reset_index()
        parts.append(losses.assign(run=run))
    has_rows = len(parts) > 1
    together = pd.concat(parts[1:] if has_rows else parts, ignore_index=True)
    return measures.windows_table(together, runs.parameters(), runs.interval_rule)


def _impulse(runs: StudyRuns) -> pd.DataFrame:
    columns = {"run": "int64", "action": "float64", "action_without": "float64"}
    columns |= {"loss": "float64", "loss_without": "float64"}
    columns |= {"offset": "int64", "cohort": "str", "agent": "int64"}
    parts = [measures.typed_table([], columns)]
    for run, impulse in runs.tables_by_run("impulse"):
        parts.append(impulse.assign(run=run))
    together = pd.concat(parts[1:] if len(parts) > 1 else parts, ignore_index=True)
    return measures.impulse_table(together, runs.parameters(), runs.interval_rule)


def sample_of(runs: StudyRuns) -> sampling.SampleSpec:
    """Return what a study sampled; ValueError if it sampled nothing."""
    if runs.sample is None:
        raise ValueError(f"{runs.path}: nothing was sampled")
    return runs.sample


def _has_branches(runs: StudyRuns) -> bool:
    return runs.has_branches


def _has_windows(runs: StudyRuns) -> bool:
    return runs.has_windows


def _has_impulse(runs: StudyRuns) -> bool:
    return runs.has_impulse


def _is_sampled(runs: StudyRuns) -> bool:
    return runs.sample is not None


def _has_targets(runs: StudyRuns) -> bool:
    return runs.sample is not None and bool(runs.sample.targets)


def _can_regress(_: StudyRuns) -> bool:
    return parameters.is_statsmodels_installed()


_LISTED = (
    StudyTable("cohorts", measures.COHORT_TYPES, lambda runs: runs.cohort_rows),
    StudyTable("value", measures.VALUE_TYPES, _value),
    StudyTable("effects", measures.EFFECTS, _effects),
    StudyTable("contrasts", contrasts.CONTRAST | contrasts.TESTED_MEAN, _contrasts),
    StudyTable("interactions", contrasts.INTERACTION | contrasts.TESTED_MEAN, _interactions),
    StudyTable("pair_effects", measures.PAIR_EFFECTS, _pair_effects),
    StudyTable("effects_by_parameter", parameters.EFFECTS_BY_PARAMETER, _effects_by_parameter),
    StudyTable(
        "contrasts_by_parameter", parameters.CONTRASTS_BY_PARAMETER, _contrasts_by_parameter
    ),
    StudyTable("regression", parameters.REGRESSION, _regression, _can_regress),
    StudyTable("gains", contrasts.GAINS_OF_AGENTS, _gains, _has_branches),
    StudyTable("sensitivity", sampling.SENSITIVITY, _sensitivity, _is_sampled),
    StudyTable("calibration", sampling.CALIBRATION, _calibration, _has_targets),
    StudyTable("windows", measures.WINDOW_TYPES, _windows, _has_windows),
    StudyTable("impulse_response", measures.IMPULSE_TYPES, _impulse, _has_impulse),
)
STUDY_TABLES = {table.name: table for table in _LISTED}
