"""The page of a study: what was varied, what failed, effects, the value of a forecast, settings.

All numbers come from the runs, also where the study was interrupted, and the same runs give the
same bytes. The page says first what changes welfare most, then who regrets least and most. Changes
of several cohorts and keys are ranked by their size over the mean ``loss_scale`` of the cohort. A
change whose interval contains 0 is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from regretless.market.core.errors import UserError
from regretless.market.logs.comparisons import EVERYBODY
from regretless.scenarios.report.figures import drawn
from regretless.scenarios.report.page import Part, charts, legible, notes, report, written_by
from regretless.scenarios.report.study_figures import SHOWN, VALUE, StudyData, setting_names
from regretless.scenarios.report.theme import short
from regretless.scenarios.studies.analysis.contrasts import equivalent, unit_notes
from regretless.scenarios.studies.analysis.measures import (
    MEASURES,
    WITHIN,
    Ends,
    keys_of,
    own_measures,
)
from regretless.scenarios.studies.analysis.parameters import CONSTANT
from regretless.scenarios.studies.results import Study
from regretless.scenarios.terminal import decimals

DECISION, SWAP = "decision_swap_regret_worst", "swap_regret_worst"
REGRETS = {DECISION: "Decision swap regret", SWAP: "Swap regret"}
CHANGES = ("gain", "welfare_mean")  # the first that a study has
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

DESIGN = ["key", "chosen", "values"]
CALIBRATION = ["key", "estimate", "95 % interval", "range", "runs that counted"]
COLOURS = (
    "Where settings are many, colours run from dark, the first in the table of all settings, to "
    "light."
)
HOW = (
    "Means over seeds, with half the width of the 95 % interval. Click on a head to sort by it; a "
    "run's number leads to its folder."
)
TESTED = (
    "Simultaneous intervals (max-t) and adjusted p-values (Holm) hold for all rows of the table at "
    "once."
)
FITTED = "Least squares over agents, errors clustered by seed."


def text(path: Path) -> str:
    """Return the page of a study; UserError if it cannot be read or no run is complete."""
    with legible(path, what="its tables", cure="play it again"):
        data = StudyData(Study(path))
        study, parameters, done = data.study, data.of("parameters"), len(data.study.runs())
        if not done:
            raise UserError(f"{path} holds no complete run; play the study again with --resume")
        file, failures = study.record["study"]["file"], study.failures()
        rows = failures.to_dict("records")
        failed = [f"run {r['run']}: {r['kind']}: {' '.join(str(r['error']).split())}" for r in rows]
        seeds, description = len(file["seeds"]), file.get("description")
        beside = notes([f"Description of the study: {description}" if description else ""])
        lines = headline(data.of("cohorts"), setting_names(parameters), data.of("contrasts"))
        return report(
            str(study.record["name"]),
            dict(_sections(data)),
            facts=f"{len(parameters):,} runs: {_many(len(parameters) // seeds, 'setting')}, "
            f"{_many(seeds, 'seed')} each. {done:,} done, {len(failures):,} failed, "
            f"{len(parameters) - done - len(failures):,} missing. "
            f"Base scenario: {file['scenario']}.",
            sentences=lines if data.listed else (),
            beside=beside + ([("head", "Failures"), ("bullets", failed)] if failed else []),
            footer=written_by(study.record),
        )


def _sections(data: StudyData) -> Iterator[tuple[str, list[Part]]]:
    study, parameters = data.study, data.of("parameters")
    figures, keys, tested = drawn("study", data), keys_of(parameters), tables(data)
    design = "table", DESIGN, list(_varied(study.record["study"]["file"], parameters)), 3
    yield "Design", [design, *notes([LARGE] if data.curves is None else [])]
    for name in SECTIONS:
        own = charts(figures, name)
        if name == "Regret" and own:
            named = f"Settings are named by {', '.join(keys)}. " if keys else ""
            own = [("note", named + COLOURS), *own]
        if name == "Value of the forecast" and own:
            own.append(_value(data.of("value")))
        if own := own + tested.get(name, []):
            yield name, own
    if targets := {} if study.sample is None else study.sample.targets or {}:
        observed = ", ".join(f"{name} = {value:.5g}" for name, value in targets.items())
        table = "table", CALIBRATION, list(_calibration(study))
        yield "Calibration", [("note", f"Observed: {observed}."), table]
    if data.listed:
        yield "All settings", [("note", HOW), _settings(data)]


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count > 1)}"


def _varied(file: dict[str, Any], parameters: pd.DataFrame) -> Iterator[list[str]]:
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
    seeds = list(parameters["seed"].unique())
    few = seeds if len(seeds) <= MOST else [*seeds[:3], "...", seeds[-1]]
    for key, how, values in (*rows, ("seed", "repeated", few)):
        texts = (", ".join(map(str, v)) if isinstance(v, list) else str(v) for v in values)
        yield [key, how, ", ".join(texts)]


def _calibration(study: Study) -> Iterator[list[str]]:
    for row in study.calibration().to_dict("records"):
        estimate = "no run near" if np.isnan(row["estimate"]) else f"{row['estimate']:.3g}"
        ends, prior = (_ends(row[f"{of}low"], row[f"{of}high"], ".3g") for of in ("", "prior_"))
        yield [str(row["key"]), estimate, ends, prior, str(row["runs"])]


def _value(table: pd.DataFrame) -> Part:
    keys, rows = keys_of(table, beside=VALUE), []
    at = decimals(table[["mean", "low", "high"]].to_numpy().ravel() if len(table) else [], 3)
    for row in table.to_dict("records"):
        ends = _ends(row["low"], row["high"], f".{at}f")
        words = [row["cohort"], *(row[key] for key in keys), row["baseline"]]
        rows.append([*map(str, words), str(row["pairs"]), f"{row['mean']:.{at}f}", ends])
    headers = ["cohort", *keys, "against", "pairs", "difference", "95 % interval"]
    return "table", headers, rows, len(headers) - 3, True


def _settings(data: StudyData) -> Part:
    """Return the table of all settings, each with its runs and which are complete."""
    study, parameters, cohorts = data.study, data.of("parameters"), data.of("cohorts")
    keys, done = keys_of(parameters), set(study.runs())
    known = [column for column in COLUMNS if cohorts[column].notna().any()]
    if cohorts[DECISION].notna().all():
        known = [column for column in known if column != SWAP]  # which it tells nearly as well
    own = own_measures(cohorts)
    groups = parameters.groupby(keys, sort=False) if keys else [((), parameters)]
    words, links, found = [], list[Markup](), []
    for values, runs in groups:
        these = cohorts[cohorts["run"].isin(runs["run"])]
        for name in these["cohort"].unique() if len(these) else ["-"]:
            mine = these[these["cohort"] == name]
            words.append([str(v) for v in (*values, name)])
            links.append(Markup(" ").join(_link(run, there=run in done) for run in runs["run"]))
            found.append([_reach(mine[column].dropna(), study.ends) for column in (*known, *own)])
    columns = [_alike(list(column)) for column in zip(*found, strict=True)]
    parts = zip(words, zip(*columns, strict=True), links, strict=True)
    rows = [[*setting, *cells, link] for setting, cells, link in parts]
    headers = [*keys, "cohort", *(COLUMNS[column] for column in known), *own, "runs"]
    return "table", headers, rows, len(keys) + 1, True


def _link(run: int, *, there: bool) -> Markup:
    """Write a run's number, which leads to its folder if it is complete."""
    text = '<a href="runs/run={:04d}/">{}</a>' if there else "<del>{1}</del>"
    return Markup(text).format(run, run)  # noqa: S704 - of our own


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


def tables(data: StudyData) -> dict[str, list[Part]]:
    """Return tables of tests, empty without rows, by the section under which they stand."""
    what, other = ["key", "value", "against"], ["other_key", "other_value", "other_against"]
    parts = ["cohort", "parameter", "range"]
    return {
        "Effects": compared(data.of("contrasts"), [*what, "cohort"]),
        "Interactions": compared(data.of("interactions"), [*what, *other, "cohort"]),
        "By parameter": compared(data.of("contrasts_by_parameter"), [*what, *parts]),
        "Regression": regressed(data.of("regression")),
    }


def compared(table: pd.DataFrame, words: Sequence[str]) -> list[Part]:
    """Write differences with their intervals, the adjusted p-value, and equivalence, if any is."""
    listed = table["measure"].isin(SHOWN) | ~table["measure"].isin(MEASURES)
    shown, words, rows = table[listed & table["mean"].notna()], [*words, "measure"], []
    for row in shown.head(MOST_ROWS).to_dict("records"):
        alike = shown[shown["measure"] == row["measure"]][["mean", "low", "high"]]
        digits = f".{decimals(alike.to_numpy().ravel(), 3)}f"
        mean = f"{row['mean']:{digits}}"
        pairs = [_ends(row[f"{of}low"], row[f"{of}high"], digits) for of in ("", "simultaneous_")]
        p = "" if np.isnan(row["p_adjusted"]) else f"{row['p_adjusted']:.3f}"
        cells = [*(str(row[word]) for word in words), str(row["seeds"]), mean, *pairs, p]
        rows.append([*cells, equivalent(row)])
    headers = [*(word.replace("_", " ") for word in words), "seeds", "change", "95 % interval"]
    headers += ["simultaneous interval", "adjusted p", "equivalence"]
    wide = len(headers) - (not any(row[-1] for row in rows))
    cut = "table", headers[:wide], [row[:wide] for row in rows], len(words), True
    return _under(TESTED, cut, len(shown)) if rows else []


def _under(note: str, table: Part, count: int) -> list[Part]:
    """Put a note above a table, with how many of its rows are left out."""
    more = f" {count - MOST_ROWS} more rows are in the files." if count > MOST_ROWS else ""
    return [("note", note + more), table]


def regressed(table: pd.DataFrame) -> list[Part]:
    """Write coefficients with their intervals."""
    rows = []
    for row in table[table["term"] != CONSTANT].head(MOST_ROWS).to_dict("records"):
        found = [row["coefficient"], row["low"], row["high"]]  # in units of its own
        digits = f".{decimals(found, 3)}f"
        ends = _ends(row["low"], row["high"], digits)
        p = "" if np.isnan(row["p"]) else f"{row['p']:.3f}"
        words = [str(row[name]) for name in ("cohort", "measure", "term")]
        rows.append([*words, f"{row['coefficient']:{digits}}", ends, p, str(row["clusters"])])
    headers = ["cohort", "measure", "term", "coefficient", "95 % interval", "p", "clusters"]
    return _under(FITTED, ("table", headers, rows, 3, True), len(table)) if rows else []


def _ends(low: float, high: float, digits: str) -> str:
    return "-" if np.isnan(low) else f"{low:{digits}} to {high:{digits}}"


def headline(
    cohorts: pd.DataFrame, settings: pd.Series[str], contrasts: pd.DataFrame
) -> Iterator[str]:
    """Give the sentences that a study's numbers allow; ``settings`` names each run's setting."""
    yield from _change(contrasts, cohorts.groupby("cohort")["loss_scale"].mean())
    yield from unit_notes(contrasts)
    yield from _regrets(cohorts, settings)


def _change(contrasts: pd.DataFrame, scale: pd.Series[float]) -> Iterator[str]:
    """Say what changed welfare most, and for whom; ``scale`` is the unit of each cohort."""
    measure = next((name for name in CHANGES if (contrasts["measure"] == name).any()), None)
    if measure is None:
        return
    own = contrasts[(contrasts["measure"] == measure) & (contrasts["cohort"] != EVERYBODY)]
    sure = own[(own["low"] > 0) | (own["high"] < 0)]
    if own["low"].isna().all():
        return
    if sure.empty:
        yield "No change of welfare found: every 95 % interval contains 0."
        return
    unit = sure["cohort"].map(scale.where(scale > 0, 1.0))
    row = sure.iloc[int((sure["mean"] / unit).abs().argmax())]
    value, against = (short(row[name], 60) for name in ("value", "against"))
    changed = f"{row['key']} = {value} in place of {against}"
    what = f"{row['cohort']}, " + (f"branch '{value}'" if row["key"] == "branch" else changed)
    ends = f"95 % interval {row['low']:.3g} to {row['high']:.3g}"
    first = "Change" if len(own) == 1 else f"Largest of {len(own)} changes"
    how = "" if len(own) == 1 else ", relative to the range of each cohort's losses"
    yield (
        f"{first} of welfare (mean utility per round{how}): {what}, {row['mean']:+.3g} "
        f"in the utility's own units ({ends})."
    )


def _regrets(cohorts: pd.DataFrame, settings: pd.Series[str]) -> Iterator[str]:
    """Say under which settings the worst agents regret least and most, means over seeds."""
    column = DECISION if cohorts[DECISION].notna().any() else SWAP
    parts = [cohorts["cohort"], cohorts["run"].map(settings)]
    varied = [part for part in parts if len(part.unique()) > 1]
    if not varied:
        return
    names = varied[0] if len(varied) == 1 else varied[0] + " under " + varied[1]
    groups = cohorts[[column, "mean_loss"]].groupby(names.to_numpy(), sort=False)
    means = groups.mean().dropna(subset=column)
    if len(means) < 2:
        return
    ranked = means.sort_values(column, kind="stable")
    least, most = (
        f"{ranked.index[i]} ({row[column]:.3g}, mean loss {row['mean_loss']:.3g})"
        for i, row in zip((0, -1), ranked.iloc[[0, -1]].to_dict("records"), strict=True)
    )
    yield f"{REGRETS[column]}, worst agent, mean over seeds: least {least}, greatest {most}."
