"""What ``study`` prints at its end: how many runs are complete, failures, and the answers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console

from regretless.market.regret.inference import CONFIDENCE_LEVEL
from regretless.scenarios.studies.analysis.contrasts import GAINS, equivalent, unit_notes
from regretless.scenarios.studies.analysis.measures import MARKET, MEASURES
from regretless.scenarios.studies.results import Study
from regretless.scenarios.terminal import console, decimals, print_plainly

# Measures that are printed beside those of one's own.
PRINTED_MEASURES = ("mean_loss", "decision_swap_regret_worst", "gain", "welfare_mean")
MAX_ROWS = 12  # that are printed of an answer
MAX_FAILURES = 3  # that are printed
COMPARED = ("key", "value", "against", "measure")
MIN_PRINTED_P_VALUE = 0.001  # below it only that is said
ADJUSTED = "Intervals hold one by one, adjusted p (Holm) for all rows of that table at once."
TableRow = dict[Any, Any]


@dataclass(frozen=True)
class PrintedAnswer:
    """How a table of a study is printed.

    Attributes
    ----------
    table : str
        Its name.
    title : str
        The line above it.
    figure : str
        The heading of its figures, which stand with their intervals.
    describe : callable
        What a row is about; it stands once above all rows that are about the same.
    columns : sequence of str
        Columns of the table that stand before the figures.
    """

    table: str
    title: str
    figure: str
    describe: Callable[[TableRow], str]
    columns: Sequence[str] = ()


def _describe_change(row: TableRow) -> str:
    if row["key"] == "branch":
        return str(row["value"])
    return f"{row['key']} = {row['value']}, not {row['against']}"


ANSWERS = (
    PrintedAnswer(
        table="contrasts",
        title="Change, by pairs of runs with the same seed",
        figure="change",
        describe=_describe_change,
        columns=("cohort", "measure"),
    ),
    PrintedAnswer(
        table="sensitivity",
        title="Sensitivity to the keys that were sampled",
        figure="index",
        describe="{measure} of {cohort}, {value}".format_map,
        columns=("key",),
    ),
    PrintedAnswer(
        table="calibration",
        title="Values that give the observed measures",
        figure="estimate",
        describe="{key}".format_map,
    ),
)


def print_summary(study: Study) -> None:
    """Print where the tables are, what failed, and last the answers: the change of each measure."""
    screen = console()
    record = study.record
    counts = (
        f"{record['complete']:,} of {record['runs']:,} runs complete, {record['failed']:,} failed"
    )
    screen.print(f"Study: {study.path} ({counts})", soft_wrap=True)
    for failure in study.failures().head(MAX_FAILURES).to_dict("records"):
        screen.print(f"Run {failure['run']} failed: {failure['kind']}: {failure['error']}")
    if record["failed"]:
        screen.print("All failures: failures.parquet; --resume tries them again.")
    for answer in ANSWERS:
        if study.has_result(answer.table):
            _print_answer(study, answer, screen)


def _print_answer(study: Study, answer: PrintedAnswer, screen: Console) -> None:
    """Print the rows of a table that answer something, the first of many, and where all are."""
    table = study.result(answer.table)
    all_rows = "Table"
    in_order = table
    if "measure" in table:  # what is known of every study comes first: each change has a line
        table = _answering_rows(table)
        is_other = ~table["measure"].isin(PRINTED_MEASURES)
        in_order = table.iloc[np.argsort(is_other, kind="stable")]
        all_rows = "All other measures"
        if len(table) > MAX_ROWS:
            all_rows = f"{len(table) - MAX_ROWS:,} more rows and all other measures"
    if table.empty:
        return
    printed = in_order.head(MAX_ROWS).sort_index()
    rows = printed.to_dict("records")
    headings = [answer.describe(row) for row in rows]
    columns = [name for name in answer.columns if name in table]
    if "cohort" in columns and table["cohort"].nunique() < 2:
        columns.remove("cohort")
    cells = printed[columns].astype(str).reset_index(drop=True)
    cells[[answer.figure, "95 % interval"]] = _written_figures(printed)
    cells["adjusted p"] = [_written_p_value(row.get("p_adjusted", np.nan)) for row in rows]
    if "seeds" in printed:
        n_planned = len(study.record["study"]["file"]["seeds"])
        cells["seeds"] = [_written_count(row["seeds"], n_planned) for row in rows]
    print(answer.title, file=screen.file)
    for line in _lines(cells, headings, n_text_columns=len(columns)):
        print(line, file=screen.file)
    screen.print(f"{all_rows}: {study.path / answer.table}.parquet", soft_wrap=True)
    if "p_adjusted" in table:
        print_plainly(screen, ADJUSTED)
    if "p_equivalence" in table:
        for heading, row in zip(headings, rows, strict=True):
            equivalence = equivalent(row)
            if equivalence:
                measure = f"{row['measure']} of {row['cohort']}"
                print_plainly(screen, f"{heading}: {measure} is {equivalence}.")
    if "same_scale" in table:
        for note in unit_notes(table):
            print_plainly(screen, note)
        for note in sign_notes(study.result("contrasts_by_parameter"), printed):
            print_plainly(screen, note)


def _written_count(n_seeds: int, n_planned: int) -> str:
    """Write on how many seeds a figure rests where those are not all; else nothing."""
    return f"{n_seeds} of {n_planned}" if n_seeds < n_planned else ""


def sign_notes(by_parameter: pd.DataFrame, contrasts: pd.DataFrame) -> Iterator[str]:
    """Say of each contrast which pools parts of a cohort that change in opposite directions.

    Parameters
    ----------
    by_parameter : DataFrame
        The table ``contrasts_by_parameter``. A part counts where its adjusted p is small enough.
    contrasts : DataFrame
        The rows of ``contrasts`` that the notes are about.
    """
    is_certain = by_parameter["p_adjusted"] <= 1 - CONFIDENCE_LEVEL
    is_up = by_parameter["mean"] > 0
    certain = by_parameter.assign(direction=np.where(is_up, "rises", "falls"))[is_certain]
    pooled = pd.MultiIndex.from_frame(contrasts[[*COMPARED, "cohort"]])
    for names, parts in certain.groupby([*COMPARED, "cohort", "parameter"], sort=False):
        *compared, cohort, parameter = map(str, names)
        key, value, against, measure = compared
        if (key, value, against, measure, cohort) not in pooled:
            continue
        ranges = parts.groupby("direction")["range"].agg(" and ".join)
        if len(ranges) < 2:
            continue
        heading = _describe_change({"key": key, "value": value, "against": against})
        yield (
            f"{heading}: {measure} of {cohort} rises at {parameter} {ranges['rises']} and falls at "
            f"{ranges['falls']}; their mean hides it (contrasts_by_parameter)."
        )


def _answering_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that answer something, once what is a number of the whole market."""
    is_own = ~table["measure"].isin([*MEASURES, *GAINS])
    table = table[table["measure"].isin(PRINTED_MEASURES) | is_own]
    same_columns = [name for name in (*COMPARED, "mean", "low", "high") if name in table]
    is_shared = is_own & table.duplicated(same_columns, keep=False)
    table = table.assign(cohort=table["cohort"].mask(is_shared, MARKET))
    return table.drop_duplicates(["cohort", *same_columns])


def _lines(cells: pd.DataFrame, headings: Sequence[str], *, n_text_columns: int) -> Iterator[str]:
    """Lay rows out under headings, each of which is written once; text is on the left.

    Where there is no text beside them, headings are the first column.
    """
    cells = cells.loc[:, (cells != "").any()]
    if n_text_columns == 0:
        cells.insert(0, "", headings)
    for column_index in range(max(n_text_columns, 1)):
        column = [cells.columns[column_index], *cells.iloc[:, column_index]]
        width = max(len(text) for text in column)
        name, *padded = [text.ljust(width) for text in column]
        cells = cells.drop(columns=column[0])
        cells.insert(column_index, name, padded)
    head, *rows = cells.to_string(index=False).splitlines()
    yield f"  {head}"
    last_heading = None
    for heading, row in zip(headings, rows, strict=True):
        if n_text_columns > 0 and heading != last_heading:
            yield heading
        last_heading = heading
        yield f"  {row}"


def _written_figures(rows: pd.DataFrame) -> list[tuple[str, str]]:
    """Write each row's figure and interval, with equal decimals for what has one unit."""
    unit_columns = [name for name in ("cohort", "measure") if name in rows] or ["key"]
    columns = [name for name in ("mean", "estimate", "low", "high") if name in rows]
    greatest = rows[columns].abs().max(axis=1).fillna(0.0)  # of each row, of what is no NaN
    units = [rows[name] for name in unit_columns]
    greatest_of_unit = greatest.groupby(units, sort=False).transform("max")
    written = []
    for values, unit in zip(rows[columns].to_numpy(), greatest_of_unit, strict=True):
        n_decimals = decimals([unit], 3)
        figure, low, high = (f"{value:.{n_decimals}f}" for value in values)
        has_figure, has_interval, _ = ~np.isnan(values)
        written.append(
            (figure if has_figure else "no run near", f"{low} to {high}" if has_interval else "-")
        )
    return written


def _written_p_value(p_value: float) -> str:
    """Write an adjusted p-value; nothing where there is none."""
    if np.isnan(p_value):
        return ""
    if p_value < MIN_PRINTED_P_VALUE:
        return f"<{MIN_PRINTED_P_VALUE}"
    return f"{p_value:.3f}"
