"""Figures of a study: effects, interactions, the value of a forecast, regret over time.

Figures show means with 95 % intervals over seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from regretless.scenarios.report import theme
from regretless.scenarios.report.figures import figure
from regretless.scenarios.report.study_data import COLUMNS_BESIDE_KEYS, StudyData, setting_names
from regretless.scenarios.report.study_sentences import NEGLIGIBLE
from regretless.scenarios.studies.analysis.measures import (
    DISTANCES,
    INDEX,
    MEASURES,
)

AXIS_NAMES = {  # measures of the effects, with their units, in the order of the menu
    INDEX: "index: 0 at the worst Nash equilibrium, 1 at the optimum",
    "gain": "gain in utility per round, own units",
    "loss_gain": "gain in average loss per round, in [0, 1]",
    "decision_swap_regret_worst": "decision swap regret per round, worst",
    "decision_swap_regret_mean": "decision swap regret per round, mean",
    "mean_loss": "average loss per round, in [0, 1]",
    "welfare_mean": "welfare: mean utility per round, own units",
    "welfare_gini": "Gini of welfare",
    "exploitability_worst": "exploitability, worst",
    DISTANCES[0]: "distance of play from correlated equilibria, total variation",
    DISTANCES[1]: "distance of play from coarse correlated equilibria, total variation",
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
    return draw_marks(data.table("contrasts"))


@figure("study")
def by_parameter(data: StudyData) -> go.Figure | None:
    """Draw contrasts by key and range of a parameter; None without any."""
    table = data.table("contrasts_by_parameter")
    part = table["cohort"] + ", " + table["parameter"] + " " + table["range"]
    return draw_marks(table.assign(cohort=part))


@figure("study")
def interactions(data: StudyData) -> go.Figure | None:
    """Draw means by two keys, a panel per pair and cohort; None with fewer than two keys."""
    table = data.table("pair_effects").query("measure in @AXIS_NAMES").dropna(subset="mean")
    drawn_measures = set(table["measure"])
    measures = {name: title for name, title in AXIS_NAMES.items() if name in drawn_measures}
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
        slot_of = {value: slot for slot, value in enumerate(panel["value"].unique())}
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
                error_y=_whiskers(line),
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
    for measure, title in measures.items():
        visibility = {"visible": [mark.meta == measure for mark in chart.data]}
        axis_titles = {f"{axis}.title.text": title for axis in axes}
        buttons.append({"label": title, "method": "update", "args": [visibility, axis_titles]})
    pixels_below = 26 + theme.LEGEND_LINE_PIXELS  # a panel's title may have two lines
    menu = {
        "buttons": buttons,
        "x": 1,
        "xanchor": "right",
        "y": 1,
        "yanchor": "bottom",
        "pad": {"b": pixels_below},
        "direction": "down",
    }
    chart.update_layout(updatemenus=[menu], margin_t=80 + theme.LEGEND_LINE_PIXELS)
    chart.layout.height += 44 + theme.LEGEND_LINE_PIXELS


@figure("study")
def sensitivity(data: StudyData) -> go.Figure | None:
    """Draw the sensitivities of a sampled study; None of any other."""
    if data.lists_settings:
        return None
    return draw_marks(data.table("sensitivity").rename(columns={"runs": "seeds"}))


def draw_marks(
    table: pd.DataFrame, *, panel: str = "key", slot: str = "value", label: str = "cohort"
) -> go.Figure | None:
    """Draw a panel per key; a menu chooses the measure. None without any.

    One's own measures come first, then the index between Nash and optimum where it was measured.

    What no setting changes, by construction or by chance, comes last in the menu.
    """
    names = [name for name in table["measure"].unique() if name not in (*MEASURES, *AXIS_NAMES)]
    titles = {name: name for name in names} | AXIS_NAMES
    rows = table[table["measure"].isin(titles)].dropna(subset="mean")
    drawn_measures = [name for name in titles if (rows["measure"] == name).any()]
    if not drawn_measures:
        return None
    extent = rows[["mean", "low", "high"]].abs().max(axis=1).groupby(rows["measure"]).max()
    drawn_measures.sort(key=lambda name: bool(extent[name] <= NEGLIGIBLE))
    first_measure = drawn_measures[0]
    slots = {key: list(group[slot].unique()) for key, group in rows.groupby(panel, sort=False)}
    ticks = {key: [theme.shorten(name, 40) for name in values] for key, values in slots.items()}
    colour_of = theme.assign_colours(rows[label].unique())
    labels = list(colour_of)
    chart = theme.make_slotted_panels(ticks, marks_per_slot=len(colour_of))
    in_legend: set[tuple[Any, Any]] = set()
    hover = "%{text}<br>mean %{x:.5g}" + INTERVAL + "<br>%{customdata[2]} seeds"
    for row, (key, values) in enumerate(slots.items(), start=1):
        groups = rows[rows[panel] == key].groupby(["measure", label], sort=False)
        for (measure, name), points in groups:
            slot_numbers = np.array([values.index(value) for value in points[slot]])
            heights = slot_numbers + _shift(labels.index(name), len(labels))
            marks = theme.dots(points["mean"].to_numpy(), heights, hover, error_x=_whiskers(points))
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
    values = data.table("value")
    table = values.assign(measure="difference of welfare, own units")
    table["setting"] = setting_names(values, beside=COLUMNS_BESIDE_KEYS["value"])
    table["against"] = "against " + table["baseline"].astype(str)
    named = table.rename(columns={"pairs": "seeds"})
    return draw_marks(named, panel="cohort", slot="setting", label="against")


def _shift(index: int, count: int) -> float:
    """Set marks side by side within a slot of width 1."""
    return 0.6 * ((index + 0.5) / count - 0.5)


def _whiskers(points: pd.DataFrame) -> dict[str, Any]:
    """Return whiskers from low to high, which are not symmetric near the ends of a range."""
    above = points["high"] - points["mean"]
    below = points["mean"] - points["low"]
    return {
        "symmetric": False,
        "array": np.nan_to_num(above),
        "arrayminus": np.nan_to_num(below),
        **theme.WHISKER,
    }


@figure("study")
def curves(data: StudyData) -> go.Figure | None:
    """Draw regret over time; None where the logs have none or are too large."""
    table = data.curves
    if table is None or table.empty:
        return None

    n_settings = table["setting"].nunique()

    def line(rows: pd.DataFrame, index: int, colour: str) -> go.Scatter:
        width = min(theme.nested_width(index, n_settings), 3.0)
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

    def dots(rows: pd.DataFrame, index: int, colour: str) -> go.Scatter:
        own_spans = list(zip(rows["first"], rows["last"], strict=True))
        x = [spans.index(span) + _shift(index, n_settings) for span in own_spans]
        hover = "%{text}: %{y:.5g}" + INTERVAL
        marks = theme.dots(x, rows["mean"].to_numpy(), hover, error_y=_whiskers(rows))
        return marks.update(
            text=[f"rounds {first} to {last}" for first, last in own_spans],
            marker={"color": colour, "size": 7},
        )

    chart = _by_setting(table, dots, pixels_per_panel=200, x="rounds of the window")
    theme.draw_zero_line(chart)
    step = -(-len(spans) // MAX_TICKS)
    named_spans = list(range(0, len(spans), step))
    names = ["{} to {}".format(*spans[index]) for index in named_spans]
    return chart.update_xaxes(tickvals=named_spans, ticktext=names)


@figure("study")
def impulse(data: StudyData) -> go.Figure | None:
    """Draw mean actions around an impulse, a panel per agent; None where there is none."""
    table = data.impulse
    if table.empty:
        return None
    colour_of = setting_colours(list(table["setting"].unique()))
    panels: dict[Any, list[go.Scatter]] = {}
    for (cohort, agent), rows in table.groupby(["cohort", "agent"], sort=False):
        curves = []
        for (setting, measure), path in rows.groupby(["setting", "measure"], sort=False):
            is_changed = measure == "action"
            name = theme.shorten(setting, MAX_LETTERS)
            curve = theme.line(
                path["offset"],
                path["mean"],
                name if is_changed else f"{name}, without it",
                color=colour_of[str(setting)],
                dash="solid" if is_changed else "dot",
            )
            if is_changed:
                curve.update(mode="lines+markers", error_y=_whiskers(path))
            curves.append(curve)
        panels[f"{cohort}, agent {agent}"] = curves
    n_settings = len(colour_of)
    return theme.draw_panels(
        panels,
        pixels_per_panel=220,
        y="action",
        x="rounds since the impulse",
        legend=n_settings <= MAX_LEGEND,
    )


def _by_setting(
    table: pd.DataFrame, draw: Callable[[pd.DataFrame, int, str], go.Scatter], **layout: Any
) -> go.Figure:
    """Draw the rows of each setting in a panel per cohort; too many for a legend have none."""
    colour_of = setting_colours(list(table["setting"].unique()))
    settings = list(colour_of)
    panels: dict[Any, list[go.Scatter]] = {cohort: [] for cohort in table["cohort"].unique()}
    for (cohort, setting), rows in table.groupby(["cohort", "setting"], sort=False):
        mark = draw(rows, settings.index(str(setting)), colour_of[str(setting)])
        mark.update(
            name=theme.shorten(setting, MAX_LETTERS), customdata=rows[["low", "high"]].to_numpy()
        )
        panels[cohort].append(mark)
    has_legend = len(settings) <= MAX_LEGEND
    return theme.draw_panels(panels, y="regret per round", legend=has_legend, **layout)
