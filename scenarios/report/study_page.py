"""The page of a study: what was varied, what failed, effects, the value of a forecast, settings.

All numbers come from the runs by way of ``Study``, also where the study was interrupted. The page
is a function of them and of the study file: it tells no times, so the same runs give the same
bytes.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from regretless.market.core.errors import UserError
from regretless.scenarios.report import study_figures
from regretless.scenarios.report.charts import card, scripts
from regretless.scenarios.report.headline import DECISION, SWAP, headline
from regretless.scenarios.report.html import cell, page, save, table
from regretless.scenarios.studies.analysis import REGRETS, WITHIN, Ends
from regretless.scenarios.studies.curves import setting_curves
from regretless.scenarios.studies.results import Study

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COLUMNS = {  # of the table of settings
    "mean_loss": "mean loss",
    "decision_swap_regret_mean": "decision swap regret, mean",
    DECISION: "decision swap regret, worst",
    SWAP: "swap regret, worst",
    "exploitability_worst": "exploitability, worst",
    "welfare_mean": "welfare, own units",
    "welfare_gini": "Gini",
}
MOST = 40  # seeds that are listed one by one
NEGLIGIBLE = 1e-9  # a reach of rounding errors alone
CAPTIONS = {
    "effects": (
        "Effects, a row per value of each key against its first (see the table above), and per "
        "branch against its trunk, the run itself: mean differences of runs with the same seed, "
        "averaged over all other keys, and 95 % intervals over seeds. An interval across the line "
        "leaves open whether there is any. The menu chooses the measure, also for paper."
    ),
    "sensitivity": (
        "How strongly each sampled key moves a measure, with 95 % intervals: rank correlations "
        "from -1 to 1, or Sobol's indices, the share of the measure's variance that it explains "
        "alone (first order) and with all that it does together with others (total order)."
    ),
    "value": (
        "Value of the forecast: welfare with Decision-Swap less that with another forecaster on "
        "the same seeds, mean and 95 % interval over seeds, in the utility's own units. Right of "
        "the line Decision-Swap earns more; an interval across it leaves that open.{keys}"
    ),
    "curves": (
        "Regret over time by setting, mean over agents and seeds with the 95 % interval over seeds "
        "(told when pointed at): decision swap regret per round so far, swap regret "
        "where that was not kept.{keys}"
    ),
    "windows": (
        "Regret by window of rounds, each taken alone, mean over agents: means and 95 % intervals "
        "over seeds, a mark per setting. {measure} per round of the window.{keys}"
    ),
}


def write_study_report(path: Path, target: Path) -> Path:
    """Write the page of a study directory.

    Raises
    ------
    UserError
        If it is not a study directory, its tables cannot be read, or no run is complete.
    """
    try:
        study = Study(path)
        body = "\n".join(_sections(study))
    except UserError:
        raise
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: its tables cannot be read: {reason}; play it again") from error
    return save(page(str(study.record["name"]), body, scripts()), target)


def _sections(study: Study) -> Iterator[str]:
    if not study.runs():
        raise UserError(f"{study.path} holds no complete run; play the study again with --resume")
    file, parameters = study.record["study"]["file"], study.parameters()
    cohorts = study.cohorts()
    yield f"<h1>{escape(str(study.record['name']))}</h1>"
    listed = study.sample is None
    contrasts = study.contrasts()
    if listed:
        for sentence in headline(cohorts, setting_names(parameters), contrasts):
            yield f'<p class="claim">{escape(sentence)}</p>'
    yield f'<p class="note">{escape(_facts(study, parameters))}</p>'
    if file.get("claim"):
        yield f'<p class="note">Its file says: {escape(file["claim"])}</p>'
    yield "<h2>What was varied</h2>"
    yield _varied(file, parameters)
    yield from _failures(study)
    yield from _effects(contrasts)
    yield from _sampled(study)
    yield from _value(study.value())
    if listed:  # a line or a row for each sampled point would show nothing
        yield from _curves(study, parameters)
        yield from _windows(study)
        yield "<h2>All settings</h2>"
        yield _settings(study, cohorts, parameters)
    version = study.record.get("versions", {}).get("regretless", "")
    yield f"<footer>{escape(f'Written by regretless {version}'.strip())}.</footer>"


def keys_of(frame: pd.DataFrame, *, beside: tuple[str, ...] = ("run", "seed")) -> list[str]:
    """Return the columns of a parameters table that are keys."""
    return [str(key) for key in frame if key not in beside]


def setting_names(frame: pd.DataFrame, *, beside: tuple[str, ...] = ("run", "seed")) -> pd.Series:
    """Name the setting of each row by the values of its keys."""
    keys = keys_of(frame, beside=beside)
    rows = frame[keys].astype(str).agg(", ".join, axis=1) if keys else "the scenario as it is"
    names = pd.Series(rows, index=frame.index, dtype="str")
    return names.set_axis(frame["run"]) if "run" in frame else names


def _named_by(keys: list[str]) -> str:
    """Say what the names of settings are made of."""
    return f" Settings are named by {', '.join(keys)}." if keys else ""


def _coloured(settings: pd.Series[str]) -> str:
    """Say what the colours mean where settings are too many for a legend."""
    words = " Colours run from dark, the first in the table of all settings, to light."
    return words if settings.nunique() > study_figures.NAMED else ""


def _facts(study: Study, parameters: pd.DataFrame) -> str:
    done, failed = len(study.runs()), len(study.failures())
    seeds = len(study.record["study"]["file"]["seeds"])
    each, settings = f"{seeds:,} seed{'s' * (seeds > 1)}", len(parameters) // seeds
    return (
        f"{len(parameters):,} runs: {settings:,} setting{'s' * (settings > 1)}, {each} each. "
        f"{done:,} done, {failed:,} failed, {len(parameters) - done - failed:,} missing. "
        f"Base scenario: {study.record['study']['file']['scenario']}."
    )


def _varied(file: dict[str, Any], parameters: pd.DataFrame) -> str:
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
    lines = []
    for key, how, values in rows:
        cells = (key, how, ", ".join(map(_text, values)))
        lines.append(f"<tr>{''.join(cell(text, left=True) for text in cells)}</tr>")
    return table(["key", "", "values"], lines, left=3)


def _text(value: Any) -> str:
    """Write a value, of a list its members."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _few(values: Any) -> list[Any]:
    """Return values to be listed, of many the first and the last."""
    return list(values) if len(values) <= MOST else [*values[:3], "...", values[-1]]


def _failures(study: Study) -> Iterator[str]:
    failures = study.failures()
    if failures.empty:
        return
    yield "<h2>Failures</h2>"
    lines = failures["kind"] + ": " + failures["error"].str.split().str.join(" ")
    pairs = zip(failures["run"], lines, strict=True)
    items = (f"<li>run {run}: {escape(line)}</li>" for run, line in pairs)
    yield f'<ul class="note">{"".join(items)}</ul>'


def _effects(contrasts: pd.DataFrame) -> Iterator[str]:
    figure = study_figures.effects(contrasts)
    if figure is not None:
        yield "<h2>Effects</h2>"
        yield card(figure, "effects", CAPTIONS["effects"])


def _sampled(study: Study) -> Iterator[str]:
    if study.sample is None:
        return
    found = study.sensitivity().rename(columns={"runs": "seeds"})
    if (figure := study_figures.effects(found)) is not None:
        yield "<h2>What moves the measures</h2>"
        yield card(figure, "sensitivity", CAPTIONS["sensitivity"])
    if study.sample.targets:
        yield "<h2>The values that give what was observed</h2>"
        asked = ", ".join(f"{name} = {value:.5g}" for name, value in study.sample.targets.items())
        yield f'<p class="note">Observed: {escape(asked)}.</p>'
        rows = []
        for row in study.calibration().to_dict("records"):
            near = not np.isnan(row["estimate"])
            ends = f"{row['low']:.3g} to {row['high']:.3g}" if near else "-"
            told = f"{row['estimate']:.3g}" if near else "no run near"
            prior = f"{row['prior_low']:.3g} to {row['prior_high']:.3g}"
            cells = [cell(row["key"], left=True), *map(cell, (told, ends, prior, row["runs"]))]
            rows.append(f"<tr>{''.join(cells)}</tr>")
        head = ["key", "estimate", "95 % interval", "range", "runs that counted"]
        yield table(head, rows, left=1)


def _value(value: pd.DataFrame) -> Iterator[str]:
    if value.empty or value["mean"].isna().all():
        return
    yield "<h2>The value of a forecast</h2>"
    beside = ("cohort", "baseline", "pairs", "mean", "low", "high")
    names, keys = setting_names(value, beside=beside), keys_of(value, beside=beside)
    caption = CAPTIONS["value"].format(keys=_named_by(keys))
    yield card(study_figures.values(value, names), "value", caption)
    head = ["cohort", *keys, "against", "pairs", "Decision-Swap earns more by", "95 % interval"]
    rows = []
    for row in value.to_dict("records"):
        ends = "-" if np.isnan(row["low"]) else f"{row['low']:.3g} to {row['high']:.3g}"
        words = [row["cohort"], *(row[key] for key in keys), row["baseline"]]
        numbers = [row["pairs"], _number(row["mean"]), ends]
        cells = [cell(word, left=True) for word in words] + [cell(number) for number in numbers]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    yield table(head, rows, left=2 + len(keys), sortable=True)


def _curves(study: Study, parameters: pd.DataFrame) -> Iterator[str]:
    found, keys = setting_curves(study, setting_names(parameters)), keys_of(parameters)
    if found is not None and found.empty:
        return
    yield "<h2>Regret over time</h2>"
    if found is None:
        yield '<p class="note">Not drawn: the regret logs are too large to be read for a page.</p>'
    else:
        caption = CAPTIONS["curves"].format(keys=_named_by(keys) + _coloured(found["setting"]))
        yield card(study_figures.curves(found), "curves", caption)


def _windows(study: Study) -> Iterator[str]:
    found = study.windows() if study.has_windows else pd.DataFrame(columns=["measure"])
    measures = (f"{regret}_mean" for regret in reversed(REGRETS))
    measure = next((name for name in measures if (found["measure"] == name).any()), None)
    if measure is None:
        return
    shown = found[found["measure"] == measure]
    beside = ("cohort", "first", "last", "measure", "seeds", "mean", "low", "high")
    shown = shown.assign(setting=setting_names(shown, beside=beside))
    keys = _named_by(keys_of(found, beside=beside)) + _coloured(shown["setting"])
    word = measure.removesuffix("_mean").replace("_", " ").capitalize()
    yield "<h2>Regret by window</h2>"
    caption = CAPTIONS["windows"].format(measure=word, keys=keys)
    yield card(study_figures.windows(shown), "windows", caption)


def _settings(study: Study, cohorts: pd.DataFrame, parameters: pd.DataFrame) -> str:
    keys, done = keys_of(parameters), set(study.runs())
    known = [column for column in COLUMNS if cohorts[column].notna().any()]
    if cohorts[DECISION].notna().all():
        known = [column for column in known if column != SWAP]  # which it tells nearly as well
    groups = parameters.groupby(keys, sort=False) if keys else [((), parameters)]
    rows = []
    for words, runs in groups:
        found = cohorts[cohorts["run"].isin(runs["run"])]
        for name in found["cohort"].unique() if len(found) else ["-"]:
            own = found[found["cohort"] == name]
            cells = [cell(word, left=True) for word in (*words, name)]
            cells += [cell(_with_reach(own[column].dropna(), study.ends)) for column in known]
            rows.append(f"<tr>{''.join(cells)}{_links(runs['run'], done)}</tr>")
    head = [*keys, "cohort", *(COLUMNS[column] for column in known), "runs"]
    note = (
        "Means over seeds, with half the width of the 95 % interval. Click on a head to sort by "
        "it; a run's number leads to its folder."
    )
    listing = table(head, rows, left=len(keys) + 1, sortable=True)
    return f'<p class="note">{escape(note)}</p>\n{listing}'


def _with_reach(values: pd.Series[float], ends: Ends) -> str:
    """Write a mean and half the width of its interval, this to two digits, that as far as it."""
    mean, low, high = ends(values.tolist(), WITHIN.get(str(values.name)))
    half = (high - low) / 2
    if not half > abs(mean) * NEGLIGIBLE:  # nor where there is no interval
        return _number(mean)
    places = max(1 - int(np.floor(np.log10(half))), 0)
    return f"{mean:.{places}f} ± {half:.{places}f}"


def _number(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:.3g}"


def _links(runs: pd.Series[int], done: set[int]) -> str:
    """Link the runs' folders; a run that is not complete is its bare number."""
    links = (
        f'<a href="runs/run={run:04d}/">{run}</a>' if run in done else f"<del>{run}</del>"
        for run in runs
    )
    return f'<td class="t runs">{" ".join(links)}</td>'
