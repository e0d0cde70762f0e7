"""What ``study`` prints at its end: how many runs are complete, failures, and the answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from regretless.scenarios.studies.analysis.contrasts import unit_notes
from regretless.scenarios.studies.analysis.families import GAINS, equivalent
from regretless.scenarios.studies.analysis.measures import MEASURES
from regretless.scenarios.studies.results import Study
from regretless.scenarios.terminal import console, decimals, print_plainly, table

TOLD = ("mean_loss", "gain", "welfare_mean")  # beside a study's own measures
KNOWN = {*MEASURES, *GAINS}
MOST = 12  # lines of an answer
SMALL = 0.001  # p-value below which only that is said


def print_summary(study: Study) -> None:
    """Print where the tables are, what failed, and last the answers: the change of each measure."""
    screen, record = console(), study.record
    done = f"{record['complete']} of {record['runs']} runs complete, {record['failed']} failed"
    screen.print(f"Study: {study.path} ({done})", soft_wrap=True)
    for failure in study.failures().head(3).to_dict("records"):
        screen.print(f"Run {failure['run']} failed: {failure['kind']}: {failure['error']}")
    if record["failed"]:
        screen.print("All failures: failures.parquet; --resume tries them again.")
    for answer in ANSWERS:
        answer.show(study, screen)


@dataclass(frozen=True)
class PrintedTable:
    """A table of a study that is printed at its end.

    Parameters
    ----------
    table : str
        Its name; it need not be there.
    figure : str
        Heading of its figures, which stand with their intervals.
    what : callable
        Says of a row what changed.
    """

    table: str
    title: str
    figure: str
    what: Callable[[dict[Any, Any]], str]

    def show(self, study: Study, screen: Console) -> None:
        """Print the rows of the measures that answer something, the first of many."""
        path = study.path / f"{self.table}.parquet"
        found = pd.read_parquet(path) if path.exists() else pd.DataFrame()
        if "measure" in found:
            own = ~found["measure"].isin(KNOWN)
            found = found[found["measure"].isin(TOLD) | own]
        beside = [name for name in ("cohort", "measure") if name in found]
        if "cohort" in found and len(found["cohort"].unique()) == 1:
            beside.remove("cohort")
        if found.empty:
            return
        before, shown, rows = "", found.head(MOST), []
        for row, figures in zip(shown.to_dict("records"), _figures(shown), strict=True):
            what = self.what(row)
            words = ["" if what == before else what, *(str(row[name]) for name in beside)]
            before = what
            rows.append([*words, *figures, _adjusted(row)])
        headers = [self.title, *beside, self.figure, "95 % interval", "p,\nadjusted"]
        print_plainly(
            screen, table(headers, rows, width=screen.width, words=range(1 + len(beside)))
        )
        if len(found) > MOST:
            screen.print(f"{len(found) - MOST} more, and all other measures: {path.name}")
        for row in shown.to_dict("records") if "p_equivalence" in shown else ():
            if told := equivalent(row):
                what = self.what(row).replace("\n", " ")
                screen.print(f"{what}: {row['measure']} of {row['cohort']} is {told}.")
        if "same_scale" in found:
            for note in unit_notes(found):
                screen.print(note)


def _adjusted(row: dict[Any, Any]) -> str:
    """Write the p-value, adjusted for all rows of the table."""
    p = row.get("p_adjusted", np.nan)
    if np.isnan(p):
        return ""
    return f"{p:.3f}" if p >= SMALL else f"<{SMALL}"


def _figures(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Write each row's figure and interval, with equal decimals for what has one unit."""
    unit = [name for name in ("cohort", "measure") if name in rows] or ["key"]
    columns = [name for name in ("mean", "estimate", "low", "high") if name in rows]
    groups = rows.groupby(unit, sort=False)[columns]
    places = groups.transform(lambda own: float(np.nanmax([0.0, *own.abs()])))
    found = []
    for values, largest in zip(rows[columns].to_numpy(), places.to_numpy(), strict=True):
        at = decimals(largest, 3)
        figure, low, high = (f"{value:.{at}f}" for value in values)
        ends = "-" if np.isnan(values[1]) else f"{low} to {high}"
        found.append(("no run near" if np.isnan(values[0]) else figure, ends))
    return found


ANSWERS = (
    PrintedTable(
        "contrasts",
        "Change, by pairs of runs\nwith the same seed",
        "change",
        lambda row: (
            str(row["value"])
            if row["key"] == "branch"
            else f"{row['key']} = {row['value']},\nnot {row['against']}"
        ),
    ),
    PrintedTable(
        "sensitivity",
        "Sensitivity to the keys\nthat were sampled",
        "index",
        lambda row: f"{row['key']},\n{row['value']}",
    ),
    PrintedTable(
        "calibration",
        "Values that give the\nobserved measures",
        "estimate",
        lambda row: str(row["key"]),
    ),
)
