"""What the terminal shows when a study is over: what failed, and last the answers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from regretless.scenarios.studies.analysis import MEASURES
from regretless.scenarios.studies.contrasts import GAINS
from regretless.scenarios.studies.results import Study

TOLD = ("mean_loss", "gain", "welfare_mean")  # beside a study's own measures
KNOWN = {*MEASURES, *GAINS}
MOST = 12  # lines of an answer


def print_summary(study: Study) -> None:
    """Print where the tables are, what failed, and last the answer: what each key changed."""
    console, record = Console(markup=False, highlight=False), study.record
    done = f"{record['complete']} of {record['runs']} runs complete, {record['failed']} failed"
    console.print(f"Study: {study.path} ({done})", soft_wrap=True)
    for failure in study.failures().head(3).to_dict("records"):
        console.print(f"Run {failure['run']} failed: {failure['kind']}: {failure['error']}")
    if record["failed"]:
        console.print("All failures: failures.parquet; --resume tries them again.")
    for answer in ANSWERS:
        answer.show(study, console)


@dataclass(frozen=True)
class Told:
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

    def show(self, study: Study, console: Console) -> None:
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
        table = Table(box=box.SIMPLE_HEAD, title_justify="left", title=self.title)
        for name in ("what", *beside):
            table.add_column(name)
        for name in (self.figure, "95 % interval"):
            table.add_column(name, justify="right", no_wrap=True)
        before = ""
        for row in found.head(MOST).to_dict("records"):
            ends = "-" if np.isnan(row["low"]) else f"{row['low']:.3g} to {row['high']:.3g}"
            figure = row["mean" if "mean" in row else "estimate"]
            what = self.what(row)
            words = ["" if what == before else what, *(row[name] for name in beside)]
            before = what
            table.add_row(*words, "no run near" if np.isnan(figure) else f"{figure:.3g}", ends)
        console.print(table)
        if len(found) > MOST:
            console.print(f"{len(found) - MOST} more, and all other measures: {path.name}")


def _changed(row: dict[Any, Any]) -> str:
    value, other = (row[name].strip('"') for name in ("value", "against"))
    return value if row["key"] == "branch" else f"{row['key']} = {value},\nnot {other}"


ANSWERS = (
    Told("contrasts", "What it changes, by pairs of runs with the same seed", "change", _changed),
    Told(
        "sensitivity",
        "What moves the measures, by the keys that were sampled",
        "index",
        lambda row: f"{row['key']},\n{row['value']}",
    ),
    Told(
        "calibration",
        "The values that give what was observed",
        "estimate",
        lambda row: str(row["key"]),
    ),
)
