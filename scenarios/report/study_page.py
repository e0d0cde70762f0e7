"""The page of a study: what was varied, what failed, effects, the value of a forecast, settings.

All numbers come from the tables that the study wrote, or from its runs where it was interrupted
before it wrote them, and the same runs give the same bytes. The page says first what changes
welfare most, then who regrets least and most. Changes of several cohorts and keys are ranked by
their size over the mean ``loss_scale`` of the cohort. A change whose interval contains 0 is none.

Figures show means with 95 % intervals over seeds. Regret over time is the mean over a cohort's
logged agents at a round, each run being one repetition. Logs are read run by run, and not at all
where they are larger than ``MAX_LOG_BYTES``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup

from regretless.market.core.errors import UserError
from regretless.scenarios.report.figures import draw_figures
from regretless.scenarios.report.page import (
    Part,
    charts,
    legible,
    notes,
    page,
    table_part,
    written_by,
)
from regretless.scenarios.report.study_data import COLUMNS_BESIDE_KEYS, StudyData
from regretless.scenarios.report.study_figures import AXIS_NAMES
from regretless.scenarios.report.study_sentences import (
    DECISION_SWAP_REGRET,
    NEGLIGIBLE,
    SWAP_REGRET,
    sentences,
)
from regretless.scenarios.studies.analysis.contrasts import equivalent
from regretless.scenarios.studies.analysis.measures import (
    MEASURES,
    WITHIN,
    IntervalRule,
    keys_of,
    own_measures,
)
from regretless.scenarios.studies.analysis.parameters import CONSTANT
from regretless.scenarios.studies.results import Study
from regretless.scenarios.terminal import decimals

COLUMN_TITLES = {  # of the table of settings
    "mean_loss": "average loss",
    "decision_swap_regret_mean": "decision swap regret, mean",
    DECISION_SWAP_REGRET: "decision swap regret, worst",
    SWAP_REGRET: "swap regret, worst",
    "exploitability_worst": "exploitability, worst",
    "welfare_mean": "welfare, own units",
    "welfare_gini": "Gini",
    "first_correction": "first correction (round, where there was one)",
    "trusted": "trusted (share of agents)",
}
MAX_TABLE_ROWS = 200  # of a table of tests
MAX_LISTED_SEEDS = 40  # that are listed one by one
PAIR = ["key", "value", "against"]
OTHER_PAIR = ["other_key", "other_value", "other_against"]
SECTIONS: dict[str, tuple[str, list[str]]] = {  # the table of tests of each, and what names a row
    "Effects": ("contrasts", [*PAIR, "cohort"]),
    "Interactions": ("interactions", [*PAIR, *OTHER_PAIR, "cohort"]),
    "By parameter": ("contrasts_by_parameter", [*PAIR, "cohort", "parameter", "range"]),
    "Regression": ("regression", []),
    "Sensitivity": ("", []),
    "Value of the forecast": ("", []),
    "Regret": ("", []),
    "Impulse": ("", []),
}
LINK_OF_MISSING_RUN = "<del>{1}</del>"
LINK_OF_RUN = '<a href="runs/run={:04d}/">{}</a>'
NOT_DRAWN = "Regret over time is not drawn: the regret logs are too large to be read for a page."

DESIGN_HEADERS = ["key", "chosen", "values"]
CALIBRATION_HEADERS = ["key", "estimate", "95 % interval", "range", "runs that counted"]
NO_COHORT = "-"  # of a setting that has no complete run
ABOUT_COLOURS = """\
Where settings are many, colours run from dark, the first in the table of all settings, to light."""
ABOUT_SETTINGS = """\
Means over seeds, with half the width of the 95 % interval. Click on a head to sort by it; a \
run's number leads to its folder. Of agents who are counted as trusted the bound given the \
variation is the regret itself."""
ABOUT_TESTS = """\
Simultaneous intervals (max-t; below 40 seeds Bonferroni's, by Student's t) and adjusted p-values \
(Holm) hold for all rows of the table at once. Intervals end where a measure cannot go further."""
ABOUT_REGRESSION = "Least squares over agents, errors clustered by seed."


def text(path: Path) -> str:
    """Return the page of a study; UserError if it cannot be read or no run is complete."""
    with legible(path, what="its tables", cure="play it again"):
        data = StudyData(Study(path))
        study = data.study
        if not study.runs():
            raise UserError(f"{path} holds no complete run; play the study again with --resume")
        description = study.record["study"]["file"].get("description")
        introduction = notes([f"Description of the study: {description}" if description else ""])
        failures = []
        for row in study.failures().to_dict("records"):
            error = " ".join(str(row["error"]).split())
            failures.append(f"run {row['run']}: {row['kind']}: {error}")
        if failures:
            introduction += [Part("head", "Failures"), Part("bullets", failures)]
        return page(
            "report.html",
            name=str(study.record["name"]),
            sections=dict(_sections(data)),
            facts=_facts(data, n_failed=len(failures)),
            sentences=list(sentences(data)) if data.lists_settings else (),
            beside=introduction,
            footer=written_by(study.record),
        )


def _facts(data: StudyData, *, n_failed: int) -> str:
    """Say how many runs and settings there are, and what became of them."""
    file = data.study.record["study"]["file"]
    n_runs = len(data.table("parameters"))
    n_done = len(data.study.runs())
    n_seeds = len(file["seeds"])
    return (
        f"{n_runs:,} runs: {_plural(n_runs // n_seeds, 'setting')}, "
        f"{_plural(n_seeds, 'seed')} each. {n_done:,} done, {n_failed:,} failed, "
        f"{n_runs - n_done - n_failed:,} missing. "
        f"Base scenario: {file['scenario']}."
    )


def _plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count > 1)}"


def _sections(data: StudyData) -> Iterator[tuple[str, list[Part]]]:
    """Yield each section of the page that has something in it, with its parts."""
    study = data.study
    parameters = data.table("parameters")
    figures = draw_figures("study", data)
    keys = keys_of(parameters)
    design_rows = _design_rows(study.record["study"]["file"], parameters)
    design = table_part(DESIGN_HEADERS, design_rows, n_text_columns=3)
    yield "Design", [design, *notes([NOT_DRAWN] if data.curves is None else [])]
    for name, (table, row_keys) in SECTIONS.items():
        parts = charts(figures, name)
        if name == "Regret" and parts:
            named = f"Settings are named by {', '.join(keys)}. " if keys else ""
            parts.insert(0, Part("note", named + ABOUT_COLOURS))
        if name == "Value of the forecast" and parts:
            parts.append(_table_of_value(data.table("value")))
        if table == "regression":
            if study.has_result(table):  # it needs an extra
                parts += _parts_on_regression(data.table(table))
        elif table:
            parts += _parts_on_tests(data.table(table), row_keys)
        if parts:
            yield name, parts
    if study.sample is not None and study.sample.targets:
        yield "Calibration", _parts_on_calibration(data, study.sample.targets)
    if data.lists_settings:
        yield "All settings", [Part("note", ABOUT_SETTINGS), _table_of_settings(data)]


def _parts_on_calibration(data: StudyData, targets: Mapping[str, float]) -> list[Part]:
    """Return what was observed, and the table of the values that give it."""
    observed = ", ".join(f"{name} = {value:.5g}" for name, value in targets.items())
    rows = []
    for row in data.table("calibration").to_dict("records"):
        estimate = "no run near" if np.isnan(row["estimate"]) else f"{row['estimate']:.3g}"
        interval_ends = _interval_text(row["low"], row["high"], ".3g")
        prior_ends = _interval_text(row["prior_low"], row["prior_high"], ".3g")
        rows.append([str(row["key"]), estimate, interval_ends, prior_ends, str(row["runs"])])
    return [Part("note", f"Observed: {observed}."), table_part(CALIBRATION_HEADERS, rows)]


def _design_rows(file: dict[str, Any], parameters: pd.DataFrame) -> list[list[str]]:
    """Return of each key, branch and the seeds how they are chosen, and their values."""
    choices: list[tuple[str, str, Sequence[Any]]] = []
    ranges = (file.get("sample") or {}).get("keys", {})
    for key in keys_of(parameters):
        if key in ranges:
            choices.append((key, "sampled", ["from {low} to {high}".format(**ranges[key])]))
        else:
            choices.append((key, "varied", list(parameters[key].unique())))
    fixed = dict(file["set"])
    for key in ("rounds", "log_every"):
        if file.get(key) is not None:
            fixed[key] = file[key]
    choices += [(key, "fixed", [value]) for key, value in fixed.items()]
    branch = file.get("branch")
    if branch:
        choices.append(("branch", f"from round {branch['at']}", list(branch["changes"])))
    seeds = list(parameters["seed"].unique())
    if len(seeds) > MAX_LISTED_SEEDS:
        seeds = [*seeds[:3], "...", seeds[-1]]
    choices.append(("seed", "repeated", seeds))
    return [[key, choice, ", ".join(map(_value_text, values))] for key, choice, values in choices]


def _value_text(value: Any) -> str:
    """Write a value of a key."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _table_of_value(table: pd.DataFrame) -> Part:
    """Return the table of the value of the forecast."""
    keys = keys_of(table, beside=COLUMNS_BESIDE_KEYS["value"])
    digits = _number_format(table)
    rows = []
    for row in table.to_dict("records"):
        texts = [row["cohort"], *(row[key] for key in keys), row["baseline"], row["pairs"]]
        interval = _interval_text(row["low"], row["high"], digits)
        rows.append([*map(str, texts), f"{row['mean']:{digits}}", interval])
    headers = ["cohort", *keys, "against", "pairs", "difference", "95 % interval"]
    n_text_columns = len(headers) - 3  # all but the last three
    return table_part(headers, rows, n_text_columns=n_text_columns, is_sortable=True)


def _table_of_settings(data: StudyData) -> Part:
    """Return the table of all settings, each with its runs and which are complete."""
    study = data.study
    parameters = data.table("parameters")
    cohorts = data.table("cohorts")
    keys = keys_of(parameters)
    complete_runs = set(study.runs())
    measured = [column for column in COLUMN_TITLES if cohorts[column].notna().any()]
    if cohorts[DECISION_SWAP_REGRET].notna().all():
        measured = [column for column in measured if column != SWAP_REGRET]  # which it tells nearly
    columns = [*measured, *own_measures(cohorts)]
    names_of_rows: list[list[str]] = []  # the values of the keys, and the cohort
    links_of_rows: list[str] = []
    estimates_of_rows: list[list[Estimate]] = []
    for values, runs in _runs_by_setting(parameters, keys):
        cohorts_of_runs = cohorts[cohorts["run"].isin(runs["run"])]
        links = [_link_of_run(run, is_complete=run in complete_runs) for run in runs["run"]]
        cohort_names = list(cohorts_of_runs["cohort"].unique()) or [NO_COHORT]
        for name in cohort_names:
            sample = cohorts_of_runs[cohorts_of_runs["cohort"] == name]
            names_of_rows.append([*map(str, values), str(name)])
            links_of_rows.append(Markup(" ").join(links))
            estimates_of_rows.append(
                [_estimate(sample[column].dropna(), study.interval_rule) for column in columns]
            )
    texts_of_rows: list[list[str]] = [[] for _ in names_of_rows]
    for estimates_of_column in zip(*estimates_of_rows, strict=True):
        n_decimals = _decimals_of_column(estimates_of_column)
        for texts, estimate in zip(texts_of_rows, estimates_of_column, strict=True):
            texts.append(_estimate_text(estimate, n_decimals))
    rows = []
    for names, texts, links_of_row in zip(names_of_rows, texts_of_rows, links_of_rows, strict=True):
        rows.append([*names, *texts, links_of_row])
    headers = [*keys, "cohort", *(COLUMN_TITLES.get(column, column) for column in columns), "runs"]
    return table_part(headers, rows, n_text_columns=len(keys) + 1, is_sortable=True)


def _runs_by_setting(
    parameters: pd.DataFrame, keys: list[str]
) -> Iterator[tuple[Any, pd.DataFrame]]:
    """Yield the values of the keys of each setting, and its runs: all of them without a key."""
    if keys:
        yield from parameters.groupby(keys, sort=False)
    else:
        yield (), parameters


def _link_of_run(run: int, *, is_complete: bool) -> Markup:
    """Return the number of a run, which leads to its folder if the run is complete."""
    template = LINK_OF_RUN if is_complete else LINK_OF_MISSING_RUN
    return Markup(template).format(run, run)  # noqa: S704 - a number


class Estimate(NamedTuple):
    """A mean over seeds and half the width of its interval; each is NaN where there is none."""

    mean: float
    half_width: float


def _decimals_of_column(estimates: Sequence[Estimate]) -> int:
    """Return decimals for the estimates of a column: two digits of the median half width."""
    half_widths = [
        estimate.half_width for estimate in estimates if not np.isnan(estimate.half_width)
    ]
    if half_widths:
        return decimals([float(np.median(half_widths))], 2)
    return decimals([estimate.mean for estimate in estimates], 3)


def _estimate(values: pd.Series[float], interval_rule: IntervalRule) -> Estimate:
    """Return the mean of values with its interval, unless that has no width."""
    mean, low, high = interval_rule(values.tolist(), WITHIN.get(str(values.name)))
    half_width = (high - low) / 2
    has_width = half_width > abs(mean) * NEGLIGIBLE
    return Estimate(mean, half_width if has_width else np.nan)


def _estimate_text(estimate: Estimate, n_decimals: int) -> str:
    if np.isnan(estimate.mean):
        return "-"
    mean = f"{estimate.mean:.{n_decimals}f}"
    if np.isnan(estimate.half_width):
        return mean
    return f"{mean} ± {estimate.half_width:.{n_decimals}f}"


def _parts_on_tests(table: pd.DataFrame, row_keys: Sequence[str]) -> list[Part]:
    """Write differences with their intervals, the adjusted p-value, and equivalence, if any is."""
    is_listed = table["measure"].isin(AXIS_NAMES) | ~table["measure"].isin(MEASURES)
    listed = table[is_listed & table["mean"].notna()]
    text_columns = [*row_keys, "measure"]
    rows = []
    for row in listed.head(MAX_TABLE_ROWS).to_dict("records"):
        digits = _number_format(listed[listed["measure"] == row["measure"]])
        rows.append(
            [
                *(str(row[column]) for column in (*text_columns, "seeds")),
                f"{row['mean']:{digits}}",
                _interval_text(row["low"], row["high"], digits),
                _interval_text(row["simultaneous_low"], row["simultaneous_high"], digits),
                _p_text(row["p_adjusted"]),
                equivalent(row),
            ]
        )
    if not rows:
        return []
    headers = [column.replace("_", " ") for column in text_columns]
    headers += ["seeds", "change", "95 % interval", "simultaneous interval", "adjusted p"]
    headers.append("equivalence")
    has_equivalence = any(row[-1] for row in rows)
    if not has_equivalence:
        headers = headers[:-1]
        rows = [row[:-1] for row in rows]
    table_of_tests = table_part(headers, rows, n_text_columns=len(text_columns), is_sortable=True)
    return _with_note(ABOUT_TESTS, table_of_tests, len(listed))


def _parts_on_regression(table: pd.DataFrame) -> list[Part]:
    """Write coefficients, each in units of its own, with their intervals."""
    rows = []
    for row in table[table["term"] != CONSTANT].head(MAX_TABLE_ROWS).to_dict("records"):
        digits = f".{decimals([row['coefficient'], row['low'], row['high']], 3)}f"
        rows.append(
            [
                *(str(row[column]) for column in ("cohort", "measure", "term")),
                f"{row['coefficient']:{digits}}",
                _interval_text(row["low"], row["high"], digits),
                _p_text(row["p"]),
                str(row["clusters"]),
            ]
        )
    if not rows:
        return []
    headers = ["cohort", "measure", "term", "coefficient", "95 % interval", "p", "clusters"]
    coefficients = table_part(headers, rows, n_text_columns=3, is_sortable=True)
    return _with_note(ABOUT_REGRESSION, coefficients, len(table))


def _with_note(note: str, table: Part, count: int) -> list[Part]:
    """Put a note above a table, with how many of its rows are left out."""
    more = (
        f" {count - MAX_TABLE_ROWS} more rows are in the files." if count > MAX_TABLE_ROWS else ""
    )
    return [Part("note", note + more), table]


def _number_format(table: pd.DataFrame) -> str:
    """Return the format of means and intervals that are written alike."""
    return f".{decimals(table[['mean', 'low', 'high']].to_numpy().ravel(), 3)}f"


def _interval_text(low: float, high: float, digits: str) -> str:
    return "-" if np.isnan(low) else f"{low:{digits}} to {high:{digits}}"


def _p_text(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.3f}"
