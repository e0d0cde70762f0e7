"""What ``study`` prints at its end: how many runs are complete, failures, and the answers."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from regretless.scenarios.studies.analysis.contrasts import GAINS, equivalent, unit_notes
from regretless.scenarios.studies.analysis.measures import MARKET, MEASURES
from regretless.scenarios.studies.results import Study
from regretless.scenarios.terminal import console, decimals, print_plainly

TOLD = ("mean_loss", "decision_swap_regret_worst", "gain", "welfare_mean")  # beside own measures
MOST = 12  # lines of an answer
COMPARED = ("key", "value", "against", "measure")
SMALL = 0.001  # p-value below which only that is said
What = Callable[[dict[Any, Any]], str]
ADJUSTED = "Intervals hold one by one, adjusted p (Holm) for all rows of that table at once."


def print_summary(study: Study) -> None:
    """Print where the tables are, what failed, and last the answers: the change of each measure."""
    screen, record = console(), study.record
    complete, runs, failed = (record[key] for key in ("complete", "runs", "failed"))
    done = f"{complete:,} of {runs:,} runs complete, {failed:,} failed"
    screen.print(f"Study: {study.path} ({done})", soft_wrap=True)
    for failure in study.failures().head(3).to_dict("records"):
        screen.print(f"Run {failure['run']} failed: {failure['kind']}: {failure['error']}")
    if record["failed"]:
        screen.print("All failures: failures.parquet; --resume tries them again.")
    for answer in ANSWERS:
        _show(study, screen, *answer)


def _show(
    study: Study, screen: Console, table: str, title: str, figure: str, what: What, *beside: str
) -> None:
    """Print the rows of a table, if it is there, that answer something: the first of many."""
    path = study.path / f"{table}.parquet"
    found = pd.read_parquet(path) if path.exists() else pd.DataFrame()
    rest, shown = "Table", found
    if "measure" in found:  # what is known of every study comes first: each change has a line
        found = _answering(found)
        shown = found.iloc[np.argsort(~found["measure"].isin(TOLD), kind="stable")]
        left = f"{len(found) - MOST:,} more rows and all" if len(found) > MOST else "All"
        rest = f"{left} other measures"
    if found.empty:
        return
    shown = shown.head(MOST).sort_index()
    rows = shown.to_dict("records")
    several = "cohort" in found and len(found["cohort"].unique()) > 1
    text = [name for name in beside if name in found and (several or name != "cohort")]
    cells = shown[text].astype(str).reset_index(drop=True)
    cells[[figure, "95 % interval"]] = _figures(shown)
    p_values = [row.get("p_adjusted", np.nan) for row in rows]
    cells["adjusted p"] = [f"{p:.3f}" if p >= SMALL else f"<{SMALL}" for p in p_values]
    cells.loc[np.isnan(p_values), "adjusted p"] = ""
    print(title, file=screen.file)
    for line in _lines(cells, list(map(what, rows)), words=len(text)):
        print(line, file=screen.file)
    screen.print(f"{rest}: {path}", soft_wrap=True)
    if "p_adjusted" in found:
        print_plainly(screen, ADJUSTED)
    for row in rows if "p_equivalence" in found else ():
        if equal := equivalent(row):
            said = f"{what(row)}: {row['measure']} of {row['cohort']} is {equal}."
            print_plainly(screen, said)
    for note in unit_notes(found) if "same_scale" in found else ():
        print_plainly(screen, note)


def _answering(found: pd.DataFrame) -> pd.DataFrame:
    """Keep what answers something, once what is a number of the whole market."""
    own = ~found["measure"].isin([*MEASURES, *GAINS])
    found = found[found["measure"].isin(TOLD) | own]
    alike = [name for name in (*COMPARED, "mean", "low", "high") if name in found]
    shared = own & found.duplicated(alike, keep=False)
    found = found.assign(cohort=found["cohort"].mask(shared, MARKET))
    return found.drop_duplicates(["cohort", *alike])


def _lines(cells: pd.DataFrame, headings: list[str], *, words: int) -> Iterator[str]:
    """Lay rows out under headings, each of which is written once; text is on the left.

    Where there is no text beside them, headings are the first column.
    """
    cells = cells.loc[:, (cells != "").any()]
    if not words:
        cells.insert(0, "", headings)
    for place in range(max(words, 1)):
        column = [cells.columns[place], *cells.iloc[:, place]]
        name, *own = (text.ljust(max(map(len, column))) for text in column)
        cells = cells.drop(columns=column[0])
        cells.insert(place, name, own)
    head, *rows = cells.to_string(index=False).splitlines()
    yield f"  {head}"
    before = None
    for heading, row in zip(headings, rows, strict=True):
        if words and heading != before:
            yield heading
        before = heading
        yield f"  {row}"


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


def _change(row: dict[Any, Any]) -> str:
    if row["key"] == "branch":
        return str(row["value"])
    return f"{row['key']} = {row['value']}, not {row['against']}"


# By table its title, the heading of its figures, which stand with their intervals, what says of a
# row what changed, and the columns that stand before the figures.
MEASURED = "cohort", "measure"
PAIRS = "Change, by pairs of runs with the same seed"
SENSITIVITY = "Sensitivity to the keys that were sampled"
CALIBRATION = "Values that give the observed measures"
ANSWERS: tuple[tuple[str, str, str, What, *tuple[str, ...]], ...] = (
    ("contrasts", PAIRS, "change", _change, *MEASURED),
    ("sensitivity", SENSITIVITY, "index", "{measure} of {cohort}, {value}".format_map, "key"),
    ("calibration", CALIBRATION, "estimate", "{key}".format_map),
)
