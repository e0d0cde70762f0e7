"""The page of a study: what was varied, what failed, effects, the value of a forecast, settings.

All numbers come from the runs by way of ``Study``, also where the study was interrupted. The page
is a function of them and of the study file: it tells no times, so the same runs give the same
bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from regretless.market.core.errors import UserError
from regretless.scenarios.digits import decimals
from regretless.scenarios.report.figures import Drawn, drawn
from regretless.scenarios.report.headline import DECISION, SWAP, headline
from regretless.scenarios.report.page import page
from regretless.scenarios.report.study_data import VALUE, StudyData, keys_of, setting_names
from regretless.scenarios.report.study_figures import SHOWN
from regretless.scenarios.studies.analysis.families import equivalent
from regretless.scenarios.studies.analysis.measures import MEASURES, WITHIN, Ends, own_measures
from regretless.scenarios.studies.analysis.regression import CONSTANT
from regretless.scenarios.studies.results import Study

COLUMNS = {  # of the table of settings
    "mean_loss": "average loss",
    "decision_swap_regret_mean": "decision swap regret, mean",
    DECISION: "decision swap regret, worst",
    SWAP: "swap regret, worst",
    "exploitability_worst": "exploitability, worst",
    "welfare_mean": "welfare, own units",
    "welfare_gini": "Gini",
}
MOST_ROWS = 200  # of a table of tests
MOST = 40  # seeds that are listed one by one
NEGLIGIBLE = 1e-9  # a reach of rounding errors alone
SECTIONS = (
    *("Effects", "Interactions", "By parameter", "Regression"),
    *("Sensitivity", "Value of the forecast", "Regret"),
)
LARGE = "Regret over time is not drawn: the regret logs are too large to be read for a page."

Shown = dict[str, Any]  # heads and rows, how many columns are words, and what was left out


def text(path: Path) -> str:
    """Return the page of a study directory.

    Raises
    ------
    UserError
        If its tables cannot be read, or no run is complete.
    """
    try:
        return _text_of(StudyData(Study(path)))
    except UserError:
        raise
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: its tables cannot be read: {reason}; play it again") from error


def _text_of(data: StudyData) -> str:
    study = data.study
    if not study.runs():
        raise UserError(f"{study.path} holds no complete run; play the study again with --resume")
    file, names = study.record["study"]["file"], setting_names(data.parameters)
    figures, sections = drawn("study", data), dict[str, list[Drawn]]()
    sections["Design"] = []
    tested = tables(data)
    for name in SECTIONS:
        own = [one for one in figures.values() if one.kind.section == name]
        if own or name in tested:
            sections[name] = own
    if study.sample is not None and study.sample.targets:
        sections["Calibration"] = []
    if data.listed:
        sections["All settings"] = []
    version = study.record.get("versions", {}).get("regretless", "")
    keys = keys_of(data.parameters)
    return page(
        "study.html",
        name=str(study.record["name"]),
        facts=_facts(study, data.parameters),
        sentences=list(headline(data.cohorts, names, data.contrasts)) if data.listed else [],
        description=file.get("description") or "",
        sections=sections,
        varied=list(_varied(file, data.parameters)),
        failures=list(_failures(study)),
        value={"heads": ["cohort", *keys_of(data.value, beside=VALUE), "against", "pairs",
                         "difference", "95 % interval"], "rows": list(_value(data))},
        tables=tested,
        named=f"Settings are named by {', '.join(keys)}." if keys else "",
        large=LARGE if data.curves is None else "",
        targets=_targets(study),
        calibration=list(_calibration(study)) if "Calibration" in sections else [],
        settings=_settings(data),
        footer=f"Written by regretless {version}".strip() + ".",
    )  # fmt: skip


def _facts(study: Study, parameters: pd.DataFrame) -> str:
    done, failed = len(study.runs()), len(study.failures())
    seeds = len(study.record["study"]["file"]["seeds"])
    each, settings = f"{seeds:,} seed{'s' * (seeds > 1)}", len(parameters) // seeds
    return (
        f"{len(parameters):,} runs: {settings:,} setting{'s' * (settings > 1)}, {each} each. "
        f"{done:,} done, {failed:,} failed, {len(parameters) - done - failed:,} missing. "
        f"Base scenario: {study.record['study']['file']['scenario']}."
    )


def _varied(file: dict[str, Any], parameters: pd.DataFrame) -> Iterator[list[str]]:
    """Yield each key, how it was chosen, and its values."""
    rows: list[tuple[str, str, Any]]
    ranges = (file.get("sample") or {}).get("keys", {})
    rows = [
        (key, "sampled", [f"from {ranges[key]['low']} to {ranges[key]['high']}"])
        if key in ranges
        else (key, "varied", parameters[key].unique())
        for key in keys_of(parameters)
    ]
    rows += [(key, "fixed", [value]) for key, value in file["set"].items()]
    rows += [(k, "fixed", [file[k]]) for k in ("rounds", "log_every") if file.get(k) is not None]
    if branch := file.get("branch"):
        rows.append(("branch", f"from round {branch['at']}", list(branch["changes"])))
    rows.append(("seed", "repeated", _few(parameters["seed"].unique())))
    for key, how, values in rows:
        yield [key, how, ", ".join(map(_text, values))]


def _text(value: Any) -> str:
    """Write a value, of a list its members."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _few(values: Any) -> list[Any]:
    """Return values to be listed, of many the first and the last."""
    return list(values) if len(values) <= MOST else [*values[:3], "...", values[-1]]


def _failures(study: Study) -> Iterator[str]:
    """Yield a line per run that failed."""
    for row in study.failures().to_dict("records"):
        yield f"run {row['run']}: {row['kind']}: {' '.join(str(row['error']).split())}"


def _targets(study: Study) -> str:
    targets = {} if study.sample is None else study.sample.targets or {}
    return ", ".join(f"{name} = {value:.5g}" for name, value in targets.items())


def _calibration(study: Study) -> Iterator[list[str]]:
    """Yield the estimate of each sampled key and the range that was searched."""
    for row in study.calibration().to_dict("records"):
        near = not np.isnan(row["estimate"])
        ends = f"{row['low']:.3g} to {row['high']:.3g}" if near else "-"
        told = f"{row['estimate']:.3g}" if near else "no run near"
        prior = f"{row['prior_low']:.3g} to {row['prior_high']:.3g}"
        yield [str(row["key"]), told, ends, prior, str(row["runs"])]


def _value(data: StudyData) -> Iterator[list[str]]:
    """Yield what Decision-Swap is worth, by cohort, setting and baseline."""
    keys, numbers = keys_of(data.value, beside=VALUE), ["mean", "low", "high"]
    at = decimals(data.value[numbers].to_numpy().ravel() if len(data.value) else [], 3)
    for row in data.value.to_dict("records"):
        ends = "-" if np.isnan(row["low"]) else f"{row['low']:.{at}f} to {row['high']:.{at}f}"
        words = [row["cohort"], *(row[key] for key in keys), row["baseline"]]
        yield [*map(str, words), str(row["pairs"]), f"{row['mean']:.{at}f}", ends]


def _settings(data: StudyData) -> dict[str, Any]:
    """Return heads and rows of all settings, each with its runs and which of them are complete."""
    study, parameters, cohorts = data.study, data.parameters, data.cohorts
    keys, done = keys_of(parameters), set(study.runs())
    known = [column for column in COLUMNS if cohorts[column].notna().any()]
    if cohorts[DECISION].notna().all():
        known = [column for column in known if column != SWAP]  # which it tells nearly as well
    own = own_measures(cohorts)
    groups = parameters.groupby(keys, sort=False) if keys else [((), parameters)]
    words, found = [], []
    for values, runs in groups if data.listed else ():
        these = cohorts[cohorts["run"].isin(runs["run"])]
        for name in these["cohort"].unique() if len(these) else ["-"]:
            mine = these[these["cohort"] == name]
            words.append(([str(v) for v in (*values, name)], [(r, r in done) for r in runs["run"]]))
            found.append([_reach(mine[column].dropna(), study.ends) for column in (*known, *own)])
    columns = [_alike(list(column)) for column in zip(*found, strict=True)]
    rows = [
        {"cells": [*told, *cells], "runs": runs}
        for (told, runs), cells in zip(words, zip(*columns, strict=True), strict=True)
    ]
    heads = [*keys, "cohort", *(COLUMNS[column] for column in known), *own, "runs"]
    return {"heads": heads, "rows": rows, "left": len(keys) + 1}


def _reach(values: pd.Series[float], ends: Ends) -> tuple[float, float]:
    """Return a mean and half the width of its interval; NaN where there is none."""
    mean, low, high = ends(values.tolist(), WITHIN.get(str(values.name)))
    half = (high - low) / 2
    return mean, half if half > abs(mean) * NEGLIGIBLE else np.nan


def _alike(column: list[tuple[float, float]]) -> list[str]:
    """Write means and halves of a column with the same decimals, two digits of the median half."""
    halves = [half for _, half in column if not np.isnan(half)]
    at = decimals([np.median(halves)], 2) if halves else decimals([m for m, _ in column], 3)
    return [
        "-" if np.isnan(mean) else f"{mean:.{at}f}" + ("" if np.isnan(h) else f" ± {h:.{at}f}")
        for mean, h in column
    ]


def tables(data: StudyData) -> dict[str, Shown]:
    """Return the tables that have rows, by the section of the page under which they stand."""
    makers: dict[str, Callable[[], Shown]] = {
        "Effects": lambda: compared(data.contrasts, ["key", "value", "against"]),
        "Interactions": lambda: compared(
            data.interactions,
            ["key", "value", "against", "other_key", "other_value", "other_against"],
        ),
        "By parameter": lambda: compared(
            data.by_parameter, ["key", "value", "against"], ["cohort", "parameter", "range"]
        ),
        "Regression": lambda: regressed(data.regression),
    }
    made = {name: make() for name, make in makers.items()}
    return {name: table for name, table in made.items() if table["rows"]}


def compared(table: pd.DataFrame, what: Sequence[str], whose: Sequence[str] = ("cohort",)) -> Shown:
    """Write differences with their intervals, the adjusted p-value, and equivalence."""
    told = table["measure"].isin(SHOWN) | ~table["measure"].isin(MEASURES)
    shown = table[told & table["mean"].notna()]
    words = [*what, *whose, "measure"]
    numbers = ["mean", "low", "high", "simultaneous_low", "simultaneous_high"]
    rows = []
    for row in shown.head(MOST_ROWS).to_dict("records"):
        alike = shown[shown["measure"] == row["measure"]][["mean", "low", "high"]]
        at = decimals(alike.to_numpy().ravel(), 3)
        mean, *ends = (f"{row[name]:.{at}f}" for name in numbers)
        pairs = [_ends(row[n], *ends[i : i + 2]) for n, i in (("low", 0), (numbers[3], 2))]
        p = "" if np.isnan(row["p_adjusted"]) else f"{row['p_adjusted']:.3f}"
        cells = [*(str(row[word]) for word in words), str(row["seeds"]), mean, *pairs, p]
        rows.append([*cells, equivalent(row)])
    heads = [*(word.replace("_", " ") for word in words), "seeds", "change", "95 % interval"]
    heads += ["simultaneous interval", "adjusted p", "equivalence"]
    return _without_empty(heads, rows) | {
        "left": len(words),
        "more": max(len(shown) - MOST_ROWS, 0),
    }


def _ends(known: float, low: str, high: str) -> str:
    return "-" if np.isnan(known) else f"{low} to {high}"


def regressed(table: pd.DataFrame) -> Shown:
    """Write coefficients with their intervals."""
    rows = []
    for row in table[table["term"] != CONSTANT].head(MOST_ROWS).to_dict("records"):
        ends = _ends(row["low"], f"{row['low']:.3g}", f"{row['high']:.3g}")
        p = "" if np.isnan(row["p"]) else f"{row['p']:.3f}"
        words = [str(row[name]) for name in ("cohort", "measure", "term")]
        rows.append([*words, f"{row['coefficient']:.3g}", ends, p, str(row["clusters"])])
    heads = ["cohort", "measure", "term", "coefficient", "95 % interval", "p", "clusters"]
    return {"heads": heads, "rows": rows, "left": 3, "more": max(len(table) - MOST_ROWS, 0)}


def _without_empty(heads: list[str], rows: list[list[str]]) -> Shown:
    """Drop the last column where no row has anything in it."""
    kept = len(heads) - (not any(row[-1] for row in rows))
    return {"heads": heads[:kept], "rows": [row[:kept] for row in rows]}
