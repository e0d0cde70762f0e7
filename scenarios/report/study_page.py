"""The page of a study: what was varied, what failed, effects, the value of a forecast, settings.

All numbers come from the runs, also where the study was interrupted, and the same runs give the
same bytes. The page says first what changes welfare most, then who regrets least and most. Changes
of several cohorts and keys are ranked by their size over the mean ``loss_scale`` of the cohort. A
change whose interval contains 0 is none.

Figures show means with 95 % intervals over seeds. Regret over time is the mean over a cohort's
logged agents at a round, each run being one repetition. Logs are read run by run, and not at all
where they are larger than ``MOST_BYTES``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from markupsafe import Markup
from plotly.colors import sample_colorscale

from regretless.market.core.errors import UserError
from regretless.market.logs.alternatives import EVERYBODY
from regretless.scenarios.logs.reading import log_parts, regret_curves, thinned
from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import drawn, figure
from regretless.scenarios.report.page import Part, charts, legible, notes, page, written_by
from regretless.scenarios.studies.analysis.contrasts import equivalent, unit_notes
from regretless.scenarios.studies.analysis.measures import (
    MEASURES,
    REGRETS,
    WITHIN,
    Ends,
    interval,
    keys_of,
    own_measures,
)
from regretless.scenarios.studies.analysis.parameters import CONSTANT
from regretless.scenarios.studies.results import Study, run_table
from regretless.scenarios.terminal import decimals

VALUE = ("cohort", "baseline", "pairs", "mean", "low", "high")
WINDOW = ("cohort", "first", "last", "measure", "seeds", "mean", "low", "high")


@dataclass(frozen=True, eq=False)
class StudyData:
    """What the figures of a study are drawn from, each table computed once."""

    study: Study
    _made: dict[str, pd.DataFrame] = field(default_factory=dict)

    @cached_property
    def listed(self) -> bool:
        """Whether settings are listed: a line or a row for each sampled point shows nothing."""
        return self.study.sample is None

    def of(self, name: str) -> pd.DataFrame:
        """Return a table of the study, by the name of the method that makes it."""
        if name not in self._made:
            self._made[name] = getattr(self.study, name)()
        return self._made[name]

    @cached_property
    def curves(self) -> pd.DataFrame | None:
        """Regret over time by setting; None where the logs are too large."""
        if not self.listed:
            return pd.DataFrame()
        return setting_curves(self.study, setting_names(self.of("parameters")))

    @cached_property
    def windows(self) -> pd.DataFrame:
        """Mean regret by window and setting, of the finest regret that was kept."""
        found = self.study.windows() if self.listed and self.study.has_windows else pd.DataFrame()
        for measure in (f"{regret}_mean" for regret in reversed(REGRETS)) if len(found) else ():
            if (found["measure"] == measure).any():
                shown = found[found["measure"] == measure]
                return shown.assign(setting=setting_names(shown, beside=WINDOW))
        return pd.DataFrame()


def setting_names(frame: pd.DataFrame, *, beside: tuple[str, ...] = ("run", "seed")) -> pd.Series:
    """Name the setting of each row by the values of its keys."""
    keys = keys_of(frame, beside=beside)
    rows = frame[keys].astype(str).agg(", ".join, axis=1) if keys else "the scenario as it is"
    names = pd.Series("" if frame.empty else rows, index=frame.index, dtype="str")
    return names.set_axis(frame["run"]) if "run" in frame else names


MOST_BYTES = 400_000_000
FEWEST, POINTS = 20, 120  # of a curve
TOGETHER = 12_000  # points of all settings, so that a page of many stays small
CURVES = ["setting", "cohort", "round", "seeds", "mean", "low", "high"]


def setting_curves(study: Study, settings: pd.Series[str]) -> pd.DataFrame | None:
    """Average the regret logs of a study: ``CURVES``, a row per setting, cohort and round.

    ``settings`` names each run's setting, by run. None where the logs are too large.
    """
    homes = study.homes()
    logs = (home / "regret_log.parquet" for home in homes.values())
    if sum(log.stat().st_size for log in logs if log.exists()) > MOST_BYTES:
        return None
    points = int(np.clip(TOGETHER // max(settings.nunique(), 1), FEWEST, POINTS))
    parts = []
    for run, home in homes.items():
        curve = regret_curves(log_parts(home), run_table(home, "agents"))
        if len(curve):
            rounds = thinned(curve.index.unique("round").to_numpy(), points)
            mean = curve["mean"][curve.index.isin(rounds, level="round")].dropna().reset_index()
            parts.append(mean.assign(setting=settings[run]))
    if not parts or max(part["round"].nunique() for part in parts) < 2:
        return pd.DataFrame(columns=CURVES)
    groups = pd.concat(parts).groupby(["setting", "cohort", "round"], sort=False)["mean"]
    rows = [[*place, len(own), *interval(own.to_numpy())] for place, own in groups]
    return pd.DataFrame(rows, columns=CURVES)


SHOWN = {  # measures of the effects, with their units
    "gain": "gain in utility per round, own units",
    "loss_gain": "gain in average loss per round, in [0, 1]",
    "decision_swap_regret_worst": "decision swap regret per round, worst",
    "decision_swap_regret_mean": "decision swap regret per round, mean",
    "mean_loss": "average loss per round, in [0, 1]",
    "welfare_mean": "welfare: mean utility per round, own units",
    "welfare_gini": "Gini of welfare",
    "exploitability_worst": "exploitability, worst",
}
MOST_PAIRS = 12  # panels of interactions
NAMED = 16  # settings that a legend can hold
WIDE = 90  # letters where a pointer or a legend tells a setting
INTERVAL = "<br>95 % interval %{customdata[0]:.5g} to %{customdata[1]:.5g}"


def setting_colours(labels: Sequence[str]) -> dict[str, str]:
    """Give each setting its colour: told apart where there are few, else a scale in their order."""
    if len(labels) < len(theme.PALETTE):
        return theme.colours(labels)
    scale = sample_colorscale("Viridis", list(np.linspace(0, 0.85, len(labels))))
    return dict(zip(labels, scale, strict=True))


@figure("study")
def effects(data: StudyData) -> go.Figure | None:
    """Draw contrasts by key; None without any."""
    return marked(data.of("contrasts"))


@figure("study")
def by_parameter(data: StudyData) -> go.Figure | None:
    """Draw contrasts by key and range of a parameter; None without any."""
    table = data.of("contrasts_by_parameter")
    words = [table[name] for name in ("cohort", "parameter", "range")]
    return marked(table.assign(cohort=words[0] + ", " + words[1] + " " + words[2]))


@figure("study")
def interactions(data: StudyData) -> go.Figure | None:
    """Draw means by two keys, a panel per pair and cohort; None with fewer than two keys."""
    table = data.of("pair_effects").query("measure in @SHOWN").dropna(subset="mean")
    measures = {name: words for name, words in SHOWN.items() if (table["measure"] == name).any()}
    groups = list(table.groupby(["key", "other_key", "cohort"], sort=False))[:MOST_PAIRS]
    if not groups:
        return None
    seen, (first, title) = set[Any](), next(iter(measures.items()))
    names = [f"{cohort}: {key} by {other}" for (key, other, cohort), _ in groups]
    made = theme.panels(list(map(theme.heading, names)), each=230)
    for row, ((_, other, _), own) in enumerate(groups, 1):
        made.update_yaxes(title_text=title, row=row, col=1)
        slots = {value: i for i, value in enumerate(own["value"].unique())}
        shades = setting_colours(list(own["other_value"].unique()))
        style = {"tickvals": list(slots.values()), "range": [-0.5, len(slots) - 0.5]}
        words = [theme.folded(theme.short(value, 30)) for value in slots]
        made.update_xaxes(**style, ticktext=words, row=row, col=1)
        for (measure, value), line in own.groupby(["measure", "other_value"], sort=False):
            name = theme.short(f"{str(other).rpartition('.')[2]} = {value}", WIDE)
            x, y = line["value"].map(slots).to_numpy(), line["mean"].to_numpy()
            curve = go.Scatter(x=x, y=y, name=name, line={"color": shades[str(value)]})
            curve.update(error_y=_reach(line), customdata=line[["low", "high"]].to_numpy())
            curve.update(meta=measure, visible=measure == first, legendgroup=name)
            curve.update(showlegend=(measure, name) not in seen)
            curve.hovertemplate = "mean %{y:.5g}" + INTERVAL
            made.add_trace(curve, row=row, col=1)
            seen.add((measure, name))
    _menu(made, measures, [axis.plotly_name for axis in made.select_yaxes()])
    theme.grow(made, len(seen) // len(measures))
    return made


def _menu(made: go.Figure, measures: Mapping[str, str], axes: Sequence[str]) -> None:
    """Put a menu of measures above a chart: it shows the marks of one, and names it on the axes."""
    buttons = []
    for measure, words in measures.items():
        shown = {"visible": [mark.meta == measure for mark in made.data]}
        titles = {f"{axis}.title.text": words for axis in axes}
        buttons.append({"label": words, "method": "update", "args": [shown, titles]})
    over = 26 + theme.LINE  # a panel's title may have two lines
    place = {"x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom", "pad": {"b": over}}
    menu = {"buttons": buttons, **place, "direction": "down"}
    made.update_layout(updatemenus=[menu], margin_t=80 + theme.LINE)
    made.layout.height += 44 + theme.LINE


@figure("study")
def sensitivity(data: StudyData) -> go.Figure | None:
    """Draw the sensitivities of a sampled study; None of any other."""
    if data.listed:
        return None
    return marked(data.of("sensitivity").rename(columns={"runs": "seeds"}))


def marked(
    table: pd.DataFrame, *, panel: str = "key", slot: str = "value", label: str = "cohort"
) -> go.Figure | None:
    """Draw a panel per key; a menu chooses the measure, one's own first. None without any.

    What no setting changes, by construction or by chance, comes last in the menu.
    """
    found = table["measure"].unique()
    shown = {name: name for name in found if name not in (*MEASURES, *SHOWN)} | SHOWN
    own = table[table["measure"].isin(shown)].dropna(subset="mean")
    present = [name for name in shown if (own["measure"] == name).any()]
    if not present:
        return None
    greatest = own[["mean", "low", "high"]].abs().max(axis=1).groupby(own["measure"]).max()
    ordered = sorted(present, key=lambda name: bool(greatest[name] <= NEGLIGIBLE))
    measures = {name: shown[name] for name in ordered}
    first, x = next(iter(measures.items()))
    slots = {key: list(rows[slot].unique()) for key, rows in own.groupby(panel, sort=False)}
    shades, seen = theme.colours(own[label].unique()), set[Any]()
    words = {key: [theme.short(name, 40) for name in values] for key, values in slots.items()}
    made = theme.slotted(words, marks=len(shades))
    for row, (key, values) in enumerate(slots.items(), 1):
        groups = own[own[panel] == key].groupby(["measure", label], sort=False)
        for (measure, name), points in groups:
            at = np.array([values.index(value) for value in points[slot]])
            at = at + _shift(list(shades).index(name), len(shades))
            hover = "%{text}<br>mean %{x:.5g}" + INTERVAL + "<br>%{customdata[2]} seeds"
            marks = theme.dots(points["mean"].to_numpy(), at, hover, error_x=_reach(points))
            marks.text = [theme.short(value, WIDE) for value in points[slot]]
            marks.customdata = points[["low", "high", "seeds"]].to_numpy(dtype=np.float64)
            marks.update(name=theme.short(name, 40), legendgroup=name, meta=measure)
            marks.update(visible=measure == first, showlegend=(measure, name) not in seen)
            made.add_trace(marks.update(marker={"color": shades[name], "size": 8}), row=row, col=1)
            seen.add((measure, name))
        made.add_vline(0, line={"color": theme.INK, "width": 1}, row=row, col=1)
    axis = made.get_subplot(len(slots), 1).xaxis.update(title_text=x).plotly_name
    if len(measures) > 1:
        _menu(made, measures, [axis])
    return made


@figure("study")
def value(data: StudyData) -> go.Figure | None:
    """Draw the value of the forecast; None without a baseline."""
    table = data.of("value").assign(measure="difference of welfare, own units")
    table["setting"] = setting_names(data.of("value"), beside=VALUE)
    table["against"] = "against " + table["baseline"].astype(str)
    named = table.rename(columns={"pairs": "seeds"})
    return marked(named, panel="cohort", slot="setting", label="against")


def _shift(place: int, count: int) -> float:
    """Set marks side by side within a slot of width 1."""
    return 0.6 * ((place + 0.5) / count - 0.5)


def _reach(points: pd.DataFrame) -> dict[str, Any]:
    """Whiskers from low to high, which are not symmetric near the ends of a range."""
    above, below = points["high"] - points["mean"], points["mean"] - points["low"]
    ends = {"array": np.nan_to_num(above), "arrayminus": np.nan_to_num(below)}
    return {"symmetric": False, **ends, **theme.WHISKER}


@figure("study")
def curves(data: StudyData) -> go.Figure | None:
    """Draw regret over time; None where the logs have none or are too large."""
    table = data.curves
    if table is None or table.empty:
        return None

    def line(own: pd.DataFrame, place: int, colour: str) -> go.Scatter:
        style = {"color": colour, "width": min(theme.nested(place, settings), 3.0)}
        curve = theme.line(own["round"], own["mean"].clip(lower=theme.LEAST), "", **style)
        text = {"text": own["mean"].map("{:.5g}".format)}
        return curve.update(text, hovertemplate="round %{x}: %{text}" + INTERVAL)

    settings = table["setting"].nunique()
    made = _by_setting(table, line, each=240)
    if theme.spans_decades(table["mean"]):
        theme.logarithmic(made, [table["mean"]])
    return made


@figure("study")
def windows(data: StudyData) -> go.Figure | None:
    """Draw regret by window; None where no windows were kept."""
    table = data.windows
    if table.empty:
        return None
    count = table["setting"].nunique()
    spans = sorted({(row["first"], row["last"]) for row in table.to_dict("records")})

    def dots(own: pd.DataFrame, place: int, colour: str) -> go.Scatter:
        places = [spans.index(span) for span in zip(own["first"], own["last"], strict=True)]
        x, y = [at + _shift(place, count) for at in places], own["mean"].to_numpy()
        marks = theme.dots(x, y, "%{text}: %{y:.5g}" + INTERVAL, error_y=_reach(own))
        marks.text = ["rounds {} to {}".format(*spans[at]) for at in places]
        return marks.update(marker={"color": colour, "size": 7})

    made = _by_setting(table, dots, each=200, x="rounds of the window")
    theme.zero(made)
    shown = range(0, len(spans), -(-len(spans) // 8))
    names = ["{} to {}".format(*spans[i]) for i in shown]
    return made.update_xaxes(tickvals=list(shown), ticktext=names)


def _by_setting(
    table: pd.DataFrame, draw: Callable[[pd.DataFrame, int, str], go.Scatter], **layout: Any
) -> go.Figure:
    """Draw the rows of each setting in a panel per cohort; too many for a legend have none."""
    shades = setting_colours(list(table["setting"].unique()))
    panels: dict[Any, list[go.Scatter]] = {cohort: [] for cohort in table["cohort"].unique()}
    for (cohort, setting), own in table.groupby(["cohort", "setting"], sort=False):
        mark = draw(own, list(shades).index(str(setting)), shades[str(setting)])
        label = {"name": theme.short(setting, WIDE), "customdata": own[["low", "high"]].to_numpy()}
        panels[cohort].append(mark.update(label))
    legend = len(shades) <= NAMED
    return theme.stacked(panels, y="regret per round", legend=legend, **layout)


DECISION, SWAP = "decision_swap_regret_worst", "swap_regret_worst"
WORST = {DECISION: "Decision swap regret", SWAP: "Swap regret"}
GAINS = ("gain", "welfare_mean")  # the first that a study has
COLUMNS = {  # of the table of settings
    "mean_loss": "average loss",
    "decision_swap_regret_mean": "decision swap regret, mean",
    DECISION: "decision swap regret, worst",
    SWAP: "swap regret, worst",
    "exploitability_worst": "exploitability, worst",
    "welfare_mean": "welfare, own units",
    "welfare_gini": "Gini",
    "first_correction": "first correction (round, where there was one)",
    "trusted": "trusted (share of agents)",
}
MOST_ROWS = 200  # of a table of tests
MOST = 40  # seeds that are listed one by one
NEGLIGIBLE = 1e-9  # a reach of rounding errors alone
PAIR = ["key", "value", "against"]
SECTIONS: dict[str, tuple[str, list[str]]] = {  # the table of tests of each, and what names a row
    "Effects": ("contrasts", [*PAIR, "cohort"]),
    "Interactions": ("interactions", [*PAIR, *(f"other_{word}" for word in PAIR), "cohort"]),
    "By parameter": ("contrasts_by_parameter", [*PAIR, "cohort", "parameter", "range"]),
    "Regression": ("regression", []),
    "Sensitivity": ("", []),
    "Value of the forecast": ("", []),
    "Regret": ("", []),
}
LINKS = ["<del>{1}</del>", '<a href="runs/run={:04d}/">{}</a>']
LARGE = "Regret over time is not drawn: the regret logs are too large to be read for a page."

DESIGN = ["key", "chosen", "values"]
CALIBRATION = ["key", "estimate", "95 % interval", "range", "runs that counted"]
COLOURS = """\
Where settings are many, colours run from dark, the first in the table of all settings, to light."""
HOW = """\
Means over seeds, with half the width of the 95 % interval. Click on a head to sort by it; a \
run's number leads to its folder. Of agents who are counted as trusted the bound given the \
variation is the regret itself."""
TESTED = """\
Simultaneous intervals (max-t; below 40 seeds Bonferroni's, by Student's t) and adjusted p-values \
(Holm) hold for all rows of the table at once. Intervals end where a measure cannot go further."""
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
        contrasts, cohorts = data.of("contrasts"), data.of("cohorts")
        lines = (
            *_change(contrasts, cohorts.groupby("cohort")["loss_scale"].mean()),
            *unit_notes(contrasts),
            *_regrets(cohorts, setting_names(parameters)),
        )
        return page(
            "report.html",
            name=str(study.record["name"]),
            sections=dict(_sections(data)),
            facts=f"{len(parameters):,} runs: {_many(len(parameters) // seeds, 'setting')}, "
            f"{_many(seeds, 'seed')} each. {done:,} done, {len(failures):,} failed, "
            f"{len(parameters) - done - len(failures):,} missing. "
            f"Base scenario: {file['scenario']}.",
            sentences=lines if data.listed else (),
            beside=beside + ([("head", "Failures"), ("bullets", failed)] if failed else []),
            footer=written_by(study.record),
        )


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count > 1)}"


def _sections(data: StudyData) -> Iterator[tuple[str, list[Part]]]:
    study, parameters = data.study, data.of("parameters")
    figures, keys = drawn("study", data), keys_of(parameters)
    design = "table", DESIGN, list(_varied(study.record["study"]["file"], parameters)), 3
    yield "Design", [design, *notes([LARGE] if data.curves is None else [])]
    for name, (table, words) in SECTIONS.items():
        own = charts(figures, name)
        if name == "Regret" and own:
            named = f"Settings are named by {', '.join(keys)}. " if keys else ""
            own = [("note", named + COLOURS), *own]
        if name == "Value of the forecast" and own:
            own.append(_value(data.of("value")))
        if table:
            own += (_compared if words else _regressed)(data.of(table), words)
        if own:
            yield name, own
    if targets := {} if study.sample is None else study.sample.targets or {}:
        observed = ", ".join(f"{name} = {value:.5g}" for name, value in targets.items())
        rows = []
        for row in study.calibration().to_dict("records"):
            estimate = "no run near" if np.isnan(row["estimate"]) else f"{row['estimate']:.3g}"
            ends = [_ends(row[f"{of}low"], row[f"{of}high"], ".3g") for of in ("", "prior_")]
            rows.append([str(row["key"]), estimate, *ends, str(row["runs"])])
        yield "Calibration", [("note", f"Observed: {observed}."), ("table", CALIBRATION, rows)]
    if data.listed:
        yield "All settings", [("note", HOW), _settings(data)]


def _varied(file: dict[str, Any], parameters: pd.DataFrame) -> Iterator[list[str]]:
    rows = list[tuple[str, str, Any]]()
    ranges = (file.get("sample") or {}).get("keys", {})
    for key in keys_of(parameters):
        rows.append((key, "varied", parameters[key].unique()))
        if key in ranges:
            ends = "from {low} to {high}".format(**ranges[key])
            rows[-1] = key, "sampled", [ends]
    rows += [(key, "fixed", [value]) for key, value in file["set"].items()]
    rows += [(k, "fixed", [file[k]]) for k in ("rounds", "log_every") if file.get(k) is not None]
    if branch := file.get("branch"):
        rows.append(("branch", f"from round {branch['at']}", list(branch["changes"])))
    seeds = list(parameters["seed"].unique())
    few = seeds if len(seeds) <= MOST else [*seeds[:3], "...", seeds[-1]]
    for key, how, values in (*rows, ("seed", "repeated", few)):
        texts = (", ".join(map(str, v)) if isinstance(v, list) else str(v) for v in values)
        yield [key, how, ", ".join(texts)]


def _value(table: pd.DataFrame) -> Part:
    keys, rows = keys_of(table, beside=VALUE), []
    digits = _digits(table)
    for row in table.to_dict("records"):
        words = [row["cohort"], *(row[key] for key in keys), row["baseline"], row["pairs"]]
        ends = _ends(row["low"], row["high"], digits)
        rows.append([*map(str, words), f"{row['mean']:{digits}}", ends])
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
    rows, found = list[list[str]](), list[list[tuple[float, float]]]()
    for values, runs in parameters.groupby(keys, sort=False) if keys else [((), parameters)]:
        these = cohorts[cohorts["run"].isin(runs["run"])]
        # a run's number leads to its folder if it is complete
        links = [Markup(LINKS[run in done]).format(run, run) for run in runs["run"]]  # noqa: S704
        for name in these["cohort"].unique() if len(these) else ["-"]:
            mine = these[these["cohort"] == name]
            rows.append([*map(str, (*values, name)), Markup(" ").join(links)])
            found.append(
                [_mean_and_half(mine[column].dropna(), study.ends) for column in (*known, *own)]
            )
    for column in zip(*found, strict=True):  # with equal decimals, two digits of the median half
        halves = [half for _, half in column if not np.isnan(half)]
        at = decimals([np.median(halves)], 2) if halves else decimals([m for m, _ in column], 3)
        for row, (mean, half) in zip(rows, column, strict=True):
            text = f"{mean:.{at}f}" + ("" if np.isnan(half) else f" ± {half:.{at}f}")
            row.insert(-1, "-" if np.isnan(mean) else text)
    headers = [*keys, "cohort", *(COLUMNS[column] for column in known), *own, "runs"]
    return "table", headers, rows, len(keys) + 1, True


def _mean_and_half(values: pd.Series[float], ends: Ends) -> tuple[float, float]:
    """Return a mean and half the width of its interval; NaN where there is none."""
    mean, low, high = ends(values.tolist(), WITHIN.get(str(values.name)))
    half = (high - low) / 2
    return mean, half if half > abs(mean) * NEGLIGIBLE else np.nan


def _compared(table: pd.DataFrame, words: Sequence[str]) -> list[Part]:
    """Write differences with their intervals, the adjusted p-value, and equivalence, if any is."""
    listed = table["measure"].isin(SHOWN) | ~table["measure"].isin(MEASURES)
    shown, words, rows = table[listed & table["mean"].notna()], [*words, "measure"], []
    for row in shown.head(MOST_ROWS).to_dict("records"):
        digits = _digits(shown[shown["measure"] == row["measure"]])
        pairs = [_ends(row[f"{of}low"], row[f"{of}high"], digits) for of in ("", "simultaneous_")]
        cells = [*(str(row[word]) for word in (*words, "seeds")), f"{row['mean']:{digits}}"]
        rows.append([*cells, *pairs, _p(row["p_adjusted"]), equivalent(row)])
    headers = [*(word.replace("_", " ") for word in words), "seeds", "change", "95 % interval"]
    headers += ["simultaneous interval", "adjusted p", "equivalence"]
    wide = len(headers) - (not any(row[-1] for row in rows))
    cut = "table", headers[:wide], [row[:wide] for row in rows], len(words), True
    return _under(TESTED, cut, len(shown)) if rows else []


def _regressed(table: pd.DataFrame, _: Sequence[str]) -> list[Part]:
    """Write coefficients, each in units of its own, with their intervals."""
    rows = []
    for row in table[table["term"] != CONSTANT].head(MOST_ROWS).to_dict("records"):
        digits = f".{decimals([row['coefficient'], row['low'], row['high']], 3)}f"
        found = f"{row['coefficient']:{digits}}", _ends(row["low"], row["high"], digits)
        words = [str(row[name]) for name in ("cohort", "measure", "term")]
        rows.append([*words, *found, _p(row["p"]), str(row["clusters"])])
    headers = ["cohort", "measure", "term", "coefficient", "95 % interval", "p", "clusters"]
    return _under(FITTED, ("table", headers, rows, 3, True), len(table)) if rows else []


def _under(note: str, table: Part, count: int) -> list[Part]:
    """Put a note above a table, with how many of its rows are left out."""
    more = f" {count - MOST_ROWS} more rows are in the files." if count > MOST_ROWS else ""
    return [("note", note + more), table]


def _digits(table: pd.DataFrame) -> str:
    """Return the format of means and intervals that are written alike."""
    return f".{decimals(table[['mean', 'low', 'high']].to_numpy().ravel(), 3)}f"


def _ends(low: float, high: float, digits: str) -> str:
    return "-" if np.isnan(low) else f"{low:{digits}} to {high:{digits}}"


def _p(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.3f}"


def _change(contrasts: pd.DataFrame, scale: pd.Series[float]) -> Iterator[str]:
    """Say what changed welfare most, and for whom; ``scale`` is the unit of each cohort."""
    measure = next((name for name in GAINS if (contrasts["measure"] == name).any()), None)
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
    sizes = (sure["mean"] / unit).abs()
    largest = sure[sizes >= sizes.max() * (1 - NEGLIGIBLE)]  # several where changes tie
    changes = ", and as large ".join(map(_described_change, largest.to_dict("records")))
    first = "Change" if len(own) == 1 else f"Largest of {len(own)} changes"
    how = "" if len(own) == 1 else ", relative to the range of each cohort's losses"
    yield f"{first} of welfare (mean utility per round{how}): {changes}."


def _described_change(contrast: dict[str, Any]) -> str:
    """Say whose welfare a setting changed, in place of which, by how much and how surely."""
    value = theme.short(contrast["value"], 60)
    setting = f"{contrast['key']} = {value} in place of {theme.short(contrast['against'], 60)}"
    if contrast["key"] == "branch":
        setting = f"branch '{value}'"
    interval_ends = f"95 % interval {contrast['low']:.3g} to {contrast['high']:.3g}"
    change = f"{contrast['mean']:+.3g} in the utility's own units ({interval_ends})"
    return f"{contrast['cohort']}, {setting}, {change}"


def _regrets(cohorts: pd.DataFrame, settings: pd.Series[str]) -> Iterator[str]:
    """Say under which settings the worst agents regret least and most, means over seeds."""
    column = DECISION if cohorts[DECISION].notna().any() else SWAP
    parts = [cohorts["cohort"], cohorts["run"].map(settings)]
    varied = [part for part in parts if len(part.unique()) > 1]
    if not varied:
        return
    names = varied[0] if len(varied) == 1 else varied[0] + " under " + varied[1]
    means = cohorts[[column, "mean_loss"]].groupby(names.to_numpy(), sort=False).mean()
    ranked = means.dropna(subset=column).sort_values(column, kind="stable")
    if len(ranked) < 2:
        return
    regrets = ranked[column]
    if regrets.iloc[-1] - regrets.iloc[0] <= NEGLIGIBLE:
        yield f"{WORST[column]}, worst agent, mean over seeds: {regrets.iloc[0]:.3g} everywhere."
        return
    least = ranked[regrets <= regrets.iloc[0] + NEGLIGIBLE]
    greatest = ranked[regrets >= regrets.iloc[-1] - NEGLIGIBLE]
    yield (
        f"{WORST[column]}, worst agent, mean over seeds: least {_places(least)}, "
        f"greatest {_places(greatest)}."
    )


def _places(tied: pd.DataFrame) -> str:
    """Name who has a regret, where several tie the first of them and how many more there are."""
    regret, loss = tied.iloc[0]
    others = f" and {len(tied) - 1} more" if len(tied) > 1 else ""
    return f"{tied.index[0]}{others} ({regret:.3g}, mean loss {loss:.3g})"
