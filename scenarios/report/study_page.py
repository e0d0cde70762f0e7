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
from regretless.scenarios.report.figures import draw_figures, figure
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
from regretless.scenarios.studies.results import Study
from regretless.scenarios.studies.study_runs import run_table
from regretless.scenarios.terminal import decimals

COLUMNS_BESIDE_KEYS = {  # of tables that have a column per key
    "value": ("cohort", "baseline", "pairs", "mean", "low", "high"),
    "windows": ("cohort", "first", "last", "measure", "seeds", "mean", "low", "high"),
}


@dataclass(frozen=True, eq=False)
class StudyData:
    """What the figures of a study are drawn from, each table read once."""

    study: Study
    _made: dict[str, pd.DataFrame] = field(default_factory=dict)

    @cached_property
    def listed(self) -> bool:
        """Whether settings are listed: a line or a row for each sampled point shows nothing."""
        return self.study.sample is None

    def of(self, name: str) -> pd.DataFrame:
        """Return a table of the study, by the name of the method that returns it."""
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
        if not self.listed or not self.study.has_windows:
            return pd.DataFrame()
        table = self.of("windows")
        for regret in reversed(REGRETS):
            rows = table[table["measure"] == f"{regret}_mean"]
            if len(rows):
                names = setting_names(rows, beside=COLUMNS_BESIDE_KEYS["windows"])
                return rows.assign(setting=names)
        return pd.DataFrame()


def setting_names(frame: pd.DataFrame, *, beside: tuple[str, ...] = ("run", "seed")) -> pd.Series:
    """Name the setting of each row by the values of its keys."""
    keys = keys_of(frame, beside=beside)
    words: Any = "the scenario as it is"
    if frame.empty:
        words = ""
    elif keys:
        words = frame[keys].astype(str).agg(", ".join, axis=1)
    names = pd.Series(words, index=frame.index, dtype="str")
    return names.set_axis(frame["run"]) if "run" in frame else names


MAX_LOG_BYTES = 400_000_000  # of all regret logs, that are read for a page
MIN_POINTS = 20  # of a curve
MAX_POINTS = 120
MAX_POINTS_OF_ALL_SETTINGS = 12_000  # so that a page of many stays small
CURVES = ["setting", "cohort", "round", "seeds", "mean", "low", "high"]


def setting_curves(study: Study, settings: pd.Series[str]) -> pd.DataFrame | None:
    """Average the regret logs of a study: ``CURVES``, a row per setting, cohort and round.

    ``settings`` names each run's setting, by run. None where the logs are too large.
    """
    homes = study.homes()
    n_bytes = 0
    for home in homes.values():
        log = home / "regret_log.parquet"
        n_bytes += log.stat().st_size if log.exists() else 0
    if n_bytes > MAX_LOG_BYTES:
        return None
    n_settings = max(settings.nunique(), 1)
    n_points = int(np.clip(MAX_POINTS_OF_ALL_SETTINGS // n_settings, MIN_POINTS, MAX_POINTS))
    parts = []
    for run, home in homes.items():
        curve = regret_curves(log_parts(home), run_table(home, "agents"))
        if len(curve):
            rounds = thinned(curve.index.unique("round").to_numpy(), n_points)
            is_shown = curve.index.isin(rounds, level="round")
            mean = curve["mean"][is_shown].dropna().reset_index()
            parts.append(mean.assign(setting=settings[run]))
    if not parts or max(part["round"].nunique() for part in parts) < 2:
        return pd.DataFrame(columns=CURVES)
    groups = pd.concat(parts).groupby(["setting", "cohort", "round"], sort=False)["mean"]
    rows = [[*place, len(means), *interval(means.to_numpy())] for place, means in groups]
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
MAX_PANELS = 12  # of interactions
MAX_LEGEND = 16  # settings that a legend can hold
MAX_TICKS = 8  # of the axis of windows
MAX_LETTERS = 90  # of a setting in a legend or beside a pointer
INTERVAL = "<br>95 % interval %{customdata[0]:.5g} to %{customdata[1]:.5g}"


def setting_colours(labels: Sequence[str]) -> dict[str, str]:
    """Give each setting its colour: told apart where there are few, else a scale in their order."""
    if len(labels) < len(theme.PALETTE):
        return theme.assign_colours(labels)
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
    part = table["cohort"] + ", " + table["parameter"] + " " + table["range"]
    return marked(table.assign(cohort=part))


@figure("study")
def interactions(data: StudyData) -> go.Figure | None:
    """Draw means by two keys, a panel per pair and cohort; None with fewer than two keys."""
    table = data.of("pair_effects").query("measure in @SHOWN").dropna(subset="mean")
    drawn_measures = set(table["measure"])
    measures = {name: words for name, words in SHOWN.items() if name in drawn_measures}
    groups = list(table.groupby(["key", "other_key", "cohort"], sort=False))[:MAX_PANELS]
    if not groups:
        return None
    first_measure = next(iter(measures))
    titles = []
    for (key, other_key, cohort), _ in groups:
        titles.append(theme.heading(f"{cohort}: {key} by {other_key}"))
    chart = theme.make_panels(titles, pixels_per_panel=230)
    in_legend: set[tuple[Any, str]] = set()
    for row, ((_, other_key, _), panel) in enumerate(groups, start=1):
        chart.update_yaxes(title_text=measures[first_measure], row=row, col=1)
        slot_of = {value: place for place, value in enumerate(panel["value"].unique())}
        chart.update_xaxes(
            tickvals=list(slot_of.values()),
            ticktext=[theme.fold(theme.shorten(value, 30)) for value in slot_of],
            range=[-0.5, len(slot_of) - 0.5],
            row=row,
            col=1,
        )
        colour_of = setting_colours(list(panel["other_value"].unique()))
        for (measure, other_value), line in panel.groupby(["measure", "other_value"], sort=False):
            short_key = str(other_key).rpartition(".")[2]
            name = theme.shorten(f"{short_key} = {other_value}", MAX_LETTERS)
            curve = go.Scatter(
                x=line["value"].map(slot_of).to_numpy(),
                y=line["mean"].to_numpy(),
                name=name,
                line={"color": colour_of[str(other_value)]},
                error_y=_reach(line),
                customdata=line[["low", "high"]].to_numpy(),
                meta=measure,
                visible=measure == first_measure,
                legendgroup=name,
                showlegend=(measure, name) not in in_legend,
                hovertemplate="mean %{y:.5g}" + INTERVAL,
            )
            chart.add_trace(curve, row=row, col=1)
            in_legend.add((measure, name))
    _menu(chart, measures, [axis.plotly_name for axis in chart.select_yaxes()])
    theme.grow_with_legend(chart, len(in_legend) // len(measures))
    return chart


def _menu(chart: go.Figure, measures: Mapping[str, str], axes: Sequence[str]) -> None:
    """Put a menu of measures above a chart: it shows the marks of one, and names it on the axes."""
    buttons = []
    for measure, words in measures.items():
        shown = {"visible": [mark.meta == measure for mark in chart.data]}
        titles = {f"{axis}.title.text": words for axis in axes}
        buttons.append({"label": words, "method": "update", "args": [shown, titles]})
    over = 26 + theme.LEGEND_LINE_PIXELS  # a panel's title may have two lines
    place = {"x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom", "pad": {"b": over}}
    menu = {"buttons": buttons, **place, "direction": "down"}
    chart.update_layout(updatemenus=[menu], margin_t=80 + theme.LEGEND_LINE_PIXELS)
    chart.layout.height += 44 + theme.LEGEND_LINE_PIXELS


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
    names = [name for name in table["measure"].unique() if name not in (*MEASURES, *SHOWN)]
    titles = {name: name for name in names} | SHOWN
    rows = table[table["measure"].isin(titles)].dropna(subset="mean")
    drawn_measures = [name for name in titles if (rows["measure"] == name).any()]
    if not drawn_measures:
        return None
    extent = rows[["mean", "low", "high"]].abs().max(axis=1).groupby(rows["measure"]).max()
    drawn_measures.sort(key=lambda name: bool(extent[name] <= NEGLIGIBLE))
    first_measure = drawn_measures[0]
    slots = {key: list(own[slot].unique()) for key, own in rows.groupby(panel, sort=False)}
    ticks = {key: [theme.shorten(name, 40) for name in values] for key, values in slots.items()}
    colour_of = theme.assign_colours(rows[label].unique())
    places = list(colour_of)
    chart = theme.make_slotted_panels(ticks, marks_per_slot=len(colour_of))
    in_legend: set[tuple[Any, Any]] = set()
    hover = "%{text}<br>mean %{x:.5g}" + INTERVAL + "<br>%{customdata[2]} seeds"
    for row, (key, values) in enumerate(slots.items(), start=1):
        groups = rows[rows[panel] == key].groupby(["measure", label], sort=False)
        for (measure, name), points in groups:
            at = np.array([values.index(value) for value in points[slot]])
            at = at + _shift(places.index(name), len(places))
            marks = theme.dots(points["mean"].to_numpy(), at, hover, error_x=_reach(points))
            marks.update(
                text=[theme.shorten(value, MAX_LETTERS) for value in points[slot]],
                customdata=points[["low", "high", "seeds"]].to_numpy(dtype=np.float64),
                name=theme.shorten(name, 40),
                legendgroup=name,
                meta=measure,
                visible=measure == first_measure,
                showlegend=(measure, name) not in in_legend,
                marker={"color": colour_of[name], "size": 8},
            )
            chart.add_trace(marks, row=row, col=1)
            in_legend.add((measure, name))
        chart.add_vline(0, line={"color": theme.INK, "width": 1}, row=row, col=1)
    axis = chart.get_subplot(len(slots), 1).xaxis.update(title_text=titles[first_measure])
    if len(drawn_measures) > 1:
        measures = {name: titles[name] for name in drawn_measures}
        _menu(chart, measures, [axis.plotly_name])
    return chart


@figure("study")
def value(data: StudyData) -> go.Figure | None:
    """Draw the value of the forecast; None without a baseline."""
    values = data.of("value")
    table = values.assign(measure="difference of welfare, own units")
    table["setting"] = setting_names(values, beside=COLUMNS_BESIDE_KEYS["value"])
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

    n_settings = table["setting"].nunique()

    def line(rows: pd.DataFrame, place: int, colour: str) -> go.Scatter:
        width = min(theme.nested_width(place, n_settings), 3.0)
        drawn_mean = rows["mean"].clip(lower=theme.SMALLEST_LOGARITHMIC)
        curve = theme.line(rows["round"], drawn_mean, "", color=colour, width=width)
        return curve.update(
            text=rows["mean"].map("{:.5g}".format),
            hovertemplate="round %{x}: %{text}" + INTERVAL,
        )

    chart = _by_setting(table, line, pixels_per_panel=240)
    if theme.spans_decades(table["mean"]):
        theme.make_logarithmic(chart, [table["mean"]])
    return chart


@figure("study")
def windows(data: StudyData) -> go.Figure | None:
    """Draw regret by window; None where no windows were kept."""
    table = data.windows
    if table.empty:
        return None
    n_settings = table["setting"].nunique()
    spans = sorted(set(zip(table["first"], table["last"], strict=True)))

    def dots(rows: pd.DataFrame, place: int, colour: str) -> go.Scatter:
        own_spans = list(zip(rows["first"], rows["last"], strict=True))
        x = [spans.index(span) + _shift(place, n_settings) for span in own_spans]
        hover = "%{text}: %{y:.5g}" + INTERVAL
        marks = theme.dots(x, rows["mean"].to_numpy(), hover, error_y=_reach(rows))
        return marks.update(
            text=[f"rounds {first} to {last}" for first, last in own_spans],
            marker={"color": colour, "size": 7},
        )

    chart = _by_setting(table, dots, pixels_per_panel=200, x="rounds of the window")
    theme.draw_zero_line(chart)
    step = -(-len(spans) // MAX_TICKS)
    named_places = list(range(0, len(spans), step))
    names = ["{} to {}".format(*spans[place]) for place in named_places]
    return chart.update_xaxes(tickvals=named_places, ticktext=names)


def _by_setting(
    table: pd.DataFrame, draw: Callable[[pd.DataFrame, int, str], go.Scatter], **layout: Any
) -> go.Figure:
    """Draw the rows of each setting in a panel per cohort; too many for a legend have none."""
    colour_of = setting_colours(list(table["setting"].unique()))
    places = list(colour_of)
    panels: dict[Any, list[go.Scatter]] = {cohort: [] for cohort in table["cohort"].unique()}
    for (cohort, setting), rows in table.groupby(["cohort", "setting"], sort=False):
        mark = draw(rows, places.index(str(setting)), colour_of[str(setting)])
        mark.update(
            name=theme.shorten(setting, MAX_LETTERS), customdata=rows[["low", "high"]].to_numpy()
        )
        panels[cohort].append(mark)
    has_legend = len(places) <= MAX_LEGEND
    return theme.draw_panels(panels, y="regret per round", legend=has_legend, **layout)


DECISION = "decision_swap_regret_worst"
SWAP = "swap_regret_worst"
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
MAX_ROWS = 200  # of a table of tests
MAX_SEEDS = 40  # that are listed one by one
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
        study = data.study
        if not study.runs():
            raise UserError(f"{path} holds no complete run; play the study again with --resume")
        description = study.record["study"]["file"].get("description")
        beside = notes([f"Description of the study: {description}" if description else ""])
        failures = []
        for row in study.failures().to_dict("records"):
            error = " ".join(str(row["error"]).split())
            failures.append(f"run {row['run']}: {row['kind']}: {error}")
        if failures:
            beside += [("head", "Failures"), ("bullets", failures)]
        return page(
            "report.html",
            name=str(study.record["name"]),
            sections=dict(_sections(data)),
            facts=_facts(data, n_failed=len(failures)),
            sentences=list(_sentences(data)) if data.listed else (),
            beside=beside,
            footer=written_by(study.record),
        )


def _facts(data: StudyData, *, n_failed: int) -> str:
    """Say how many runs and settings there are, and what became of them."""
    file = data.study.record["study"]["file"]
    n_runs = len(data.of("parameters"))
    n_done = len(data.study.runs())
    n_seeds = len(file["seeds"])
    return (
        f"{n_runs:,} runs: {_many(n_runs // n_seeds, 'setting')}, "
        f"{_many(n_seeds, 'seed')} each. {n_done:,} done, {n_failed:,} failed, "
        f"{n_runs - n_done - n_failed:,} missing. "
        f"Base scenario: {file['scenario']}."
    )


def _sentences(data: StudyData) -> Iterator[str]:
    """Say what changes welfare most, which keys change a unit, and who regrets least and most."""
    contrasts = data.of("contrasts")
    cohorts = data.of("cohorts")
    yield from _change(contrasts, cohorts.groupby("cohort")["loss_scale"].mean())
    yield from unit_notes(contrasts)
    yield from _regrets(cohorts, setting_names(data.of("parameters")))


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count > 1)}"


def _sections(data: StudyData) -> Iterator[tuple[str, list[Part]]]:
    """Yield each section of the page that has something in it, with its parts."""
    study = data.study
    parameters = data.of("parameters")
    figures = draw_figures("study", data)
    keys = keys_of(parameters)
    design = ("table", DESIGN, _design_rows(study.record["study"]["file"], parameters), 3)
    yield "Design", [design, *notes([LARGE] if data.curves is None else [])]
    for name, (table, words) in SECTIONS.items():
        parts = charts(figures, name)
        if name == "Regret" and parts:
            named = f"Settings are named by {', '.join(keys)}. " if keys else ""
            parts.insert(0, ("note", named + COLOURS))
        if name == "Value of the forecast" and parts:
            parts.append(_value(data.of("value")))
        if table == "regression":
            if study.has_result(table):  # it needs an extra
                parts += _regressed(data.of(table))
        elif table:
            parts += _compared(data.of(table), words)
        if parts:
            yield name, parts
    if study.sample is not None and study.sample.targets:
        yield "Calibration", _calibration(data, study.sample.targets)
    if data.listed:
        yield "All settings", [("note", HOW), _settings(data)]


def _calibration(data: StudyData, targets: Mapping[str, float]) -> list[Part]:
    """Return what was observed, and the table of the values that give it."""
    observed = ", ".join(f"{name} = {value:.5g}" for name, value in targets.items())
    rows = []
    for row in data.of("calibration").to_dict("records"):
        estimate = "no run near" if np.isnan(row["estimate"]) else f"{row['estimate']:.3g}"
        interval_ends = _ends(row["low"], row["high"], ".3g")
        prior_ends = _ends(row["prior_low"], row["prior_high"], ".3g")
        rows.append([str(row["key"]), estimate, interval_ends, prior_ends, str(row["runs"])])
    return [("note", f"Observed: {observed}."), ("table", CALIBRATION, rows)]


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
    if len(seeds) > MAX_SEEDS:
        seeds = [*seeds[:3], "...", seeds[-1]]
    choices.append(("seed", "repeated", seeds))
    return [[key, how, ", ".join(map(_value_text, values))] for key, how, values in choices]


def _value_text(value: Any) -> str:
    """Write a value of a key."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _value(table: pd.DataFrame) -> Part:
    """Return the table of the value of the forecast."""
    keys = keys_of(table, beside=COLUMNS_BESIDE_KEYS["value"])
    digits = _digits(table)
    rows = []
    for row in table.to_dict("records"):
        words = [row["cohort"], *(row[key] for key in keys), row["baseline"], row["pairs"]]
        ends = _ends(row["low"], row["high"], digits)
        rows.append([*map(str, words), f"{row['mean']:{digits}}", ends])
    headers = ["cohort", *keys, "against", "pairs", "difference", "95 % interval"]
    return "table", headers, rows, len(headers) - 3, True


def _settings(data: StudyData) -> Part:
    """Return the table of all settings, each with its runs and which are complete."""
    study = data.study
    parameters = data.of("parameters")
    cohorts = data.of("cohorts")
    keys = keys_of(parameters)
    complete_runs = set(study.runs())
    measured = [column for column in COLUMNS if cohorts[column].notna().any()]
    if cohorts[DECISION].notna().all():
        measured = [column for column in measured if column != SWAP]  # which it tells nearly
    columns = [*measured, *own_measures(cohorts)]
    rows: list[list[str]] = []
    figures: list[list[tuple[float, float]]] = []
    for values, runs in parameters.groupby(keys, sort=False) if keys else [((), parameters)]:
        own_cohorts = cohorts[cohorts["run"].isin(runs["run"])]
        # a run's number leads to its folder if it is complete
        links = [Markup(LINKS[run in complete_runs]).format(run, run) for run in runs["run"]]  # noqa: S704
        for name in own_cohorts["cohort"].unique() if len(own_cohorts) else ["-"]:
            sample = own_cohorts[own_cohorts["cohort"] == name]
            rows.append([*map(str, (*values, name)), Markup(" ").join(links)])
            figures.append(
                [_mean_and_half(sample[column].dropna(), study.ends) for column in columns]
            )
    for column_figures in zip(*figures, strict=True):
        n_decimals = _decimals_of_column(column_figures)
        for row, (mean, half) in zip(rows, column_figures, strict=True):
            text = f"{mean:.{n_decimals}f}"
            if not np.isnan(half):
                text += f" ± {half:.{n_decimals}f}"
            row.insert(-1, "-" if np.isnan(mean) else text)
    headers = [*keys, "cohort", *(COLUMNS.get(column, column) for column in columns), "runs"]
    return "table", headers, rows, len(keys) + 1, True


def _decimals_of_column(figures: Sequence[tuple[float, float]]) -> int:
    """Return decimals for means and halves of a column: two digits of the median half."""
    halves = [half for _, half in figures if not np.isnan(half)]
    if halves:
        return decimals([float(np.median(halves))], 2)
    return decimals([mean for mean, _ in figures], 3)


def _mean_and_half(values: pd.Series[float], ends: Ends) -> tuple[float, float]:
    """Return a mean and half the width of its interval; NaN where there is none."""
    mean, low, high = ends(values.tolist(), WITHIN.get(str(values.name)))
    half = (high - low) / 2
    return mean, half if half > abs(mean) * NEGLIGIBLE else np.nan


def _compared(table: pd.DataFrame, words: Sequence[str]) -> list[Part]:
    """Write differences with their intervals, the adjusted p-value, and equivalence, if any is."""
    is_listed = table["measure"].isin(SHOWN) | ~table["measure"].isin(MEASURES)
    listed = table[is_listed & table["mean"].notna()]
    word_columns = [*words, "measure"]
    rows = []
    for row in listed.head(MAX_ROWS).to_dict("records"):
        digits = _digits(listed[listed["measure"] == row["measure"]])
        rows.append(
            [
                *(str(row[word]) for word in (*word_columns, "seeds")),
                f"{row['mean']:{digits}}",
                _ends(row["low"], row["high"], digits),
                _ends(row["simultaneous_low"], row["simultaneous_high"], digits),
                _p(row["p_adjusted"]),
                equivalent(row),
            ]
        )
    if not rows:
        return []
    headers = [word.replace("_", " ") for word in word_columns]
    headers += ["seeds", "change", "95 % interval", "simultaneous interval", "adjusted p"]
    headers.append("equivalence")
    has_equivalence = any(row[-1] for row in rows)
    if not has_equivalence:
        headers = headers[:-1]
        rows = [row[:-1] for row in rows]
    return _under(TESTED, ("table", headers, rows, len(word_columns), True), len(listed))


def _regressed(table: pd.DataFrame) -> list[Part]:
    """Write coefficients, each in units of its own, with their intervals."""
    rows = []
    for row in table[table["term"] != CONSTANT].head(MAX_ROWS).to_dict("records"):
        digits = f".{decimals([row['coefficient'], row['low'], row['high']], 3)}f"
        words = [str(row[name]) for name in ("cohort", "measure", "term")]
        ends = _ends(row["low"], row["high"], digits)
        rows.append(
            [*words, f"{row['coefficient']:{digits}}", ends, _p(row["p"]), str(row["clusters"])]
        )
    if not rows:
        return []
    headers = ["cohort", "measure", "term", "coefficient", "95 % interval", "p", "clusters"]
    return _under(FITTED, ("table", headers, rows, 3, True), len(table))


def _under(note: str, table: Part, count: int) -> list[Part]:
    """Put a note above a table, with how many of its rows are left out."""
    more = f" {count - MAX_ROWS} more rows are in the files." if count > MAX_ROWS else ""
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
    is_of_cohort = contrasts["cohort"] != EVERYBODY
    changes = contrasts[(contrasts["measure"] == measure) & is_of_cohort]
    if changes["low"].isna().all():
        return
    sure = changes[(changes["low"] > 0) | (changes["high"] < 0)]
    if sure.empty:
        yield "No change of welfare found: every 95 % interval contains 0."
        return
    unit = sure["cohort"].map(scale.where(scale > 0, 1.0))
    sizes = (sure["mean"] / unit).abs()
    largest = sure[sizes >= sizes.max() * (1 - NEGLIGIBLE)]  # several where changes tie
    described = ", and as large ".join(map(_described_change, largest.to_dict("records")))
    if len(changes) == 1:
        yield f"Change of welfare (mean utility per round): {described}."
        return
    yield (
        f"Largest of {len(changes)} changes of welfare (mean utility per round, "
        f"relative to the range of each cohort's losses): {described}."
    )


def _described_change(contrast: dict[str, Any]) -> str:
    """Say whose welfare a setting changed, in place of which, by how much and how surely."""
    value = theme.shorten(contrast["value"], 60)
    setting = f"{contrast['key']} = {value} in place of {theme.shorten(contrast['against'], 60)}"
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
