"""Interactive figures of a study: effects, one measure at a time, and regret over time by setting.

Zoom by dragging, show and hide by clicking in the legend, and read numbers by pointing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from regretless.scenarios.report.figures import PALETTE, spans_decades
from regretless.scenarios.report.interactive import figure_of, plain, scale, scale_menu
from regretless.scenarios.report.study_figures import SHOWN, setting_colours, shift, value_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

MOST_KEYS = 6  # panels side by side


def effects(table: pd.DataFrame) -> go.Figure:
    """Return a panel per key, a mark per value and cohort; a menu chooses the measure."""
    own = table[table["measure"].isin(SHOWN)].dropna(subset="mean")
    keys = list(own["key"].unique())[:MOST_KEYS]
    measures = [name for name in SHOWN if (own["measure"] == name).any()]
    traces = list(_marks(own, keys, measures))
    layout: dict[str, Any] = {"updatemenus": [_menu(traces, measures)]}
    for place, key in enumerate(keys):
        values = list(own.loc[own["key"] == key, "value"].unique())
        layout[f"xaxis{place + 1}"] = {
            "domain": [(place + 0.06) / len(keys), (place + 0.96) / len(keys)],
            "anchor": "y",
            "title": plain(key),
            "tickvals": list(range(len(values))),
            "ticktext": [plain(value_text(value)) for value in values],
            "range": [-0.5, len(values) - 0.5],
        }
    margin = {"l": 70, "r": 20, "t": 110, "b": 60}  # below, long values push the names of keys
    legend = {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"}
    made = figure_of(traces, height=480, margin=margin, legend=legend, **layout)
    return made.update_yaxes(title=_words(measures[0]))


def _marks(table: pd.DataFrame, keys: list[str], measures: list[str]) -> Iterator[go.Scatter]:
    cohorts = list(table["cohort"].unique())
    colours = {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(cohorts)}
    for measure in measures:
        for place, key in enumerate(keys):
            part = table[(table["measure"] == measure) & (table["key"] == key)]
            values = list(table.loc[table["key"] == key, "value"].unique())
            for i, cohort in enumerate(cohorts):
                points = part[part["cohort"] == cohort]
                at = [values.index(v) + shift(i, len(cohorts)) / 2 for v in points["value"]]
                yield go.Scatter(
                    x=at,
                    y=points["mean"].to_numpy(),
                    error_y=_reach(points),
                    text=[f"{plain(key)} = {plain(value_text(v))}" for v in points["value"]],
                    customdata=points[["low", "high", "seeds"]].to_numpy(dtype=np.float64),
                    xaxis=f"x{place + 1}",
                    name=plain(cohort),
                    legendgroup=str(i),
                    showlegend=place == 0,
                    visible=measure == measures[0],
                    meta=measure,
                    mode="markers",
                    marker={"color": colours[cohort], "size": 9},
                    hovertemplate="%{text}<br>mean %{y:.5g}<br>95 % interval %{customdata[0]:.5g}"
                    " to %{customdata[1]:.5g}<br>%{customdata[2]} seeds"
                    "<extra>%{fullData.name}</extra>",
                )


def _reach(points: pd.DataFrame) -> dict[str, Any]:
    up = np.nan_to_num((points["high"] - points["mean"]).to_numpy())
    return {"type": "data", "array": up, "thickness": 1.5, "width": 4}


def _menu(traces: Sequence[go.Scatter], measures: list[str]) -> dict[str, Any]:
    """Return the menu that shows the traces of one measure and names it on the axis."""
    buttons = [
        {
            "label": _words(measure),
            "method": "update",
            "args": [
                {"visible": [trace.meta == measure for trace in traces]},
                {"yaxis.title.text": _words(measure)},
            ],
        }
        for measure in measures
    ]
    place = {"x": 0, "xanchor": "left", "y": 1.18, "yanchor": "bottom"}
    return {"buttons": buttons, "direction": "down", "showactive": True} | place


def _words(measure: str) -> str:
    return SHOWN[measure].replace("\n", " ")


def curves(table: pd.DataFrame) -> go.Figure:
    """Return a panel per cohort, a line per setting with its interval when pointed at."""
    cohorts = list(table["cohort"].unique())
    colours = setting_colours(list(table["setting"].unique()))
    logarithmic = spans_decades(table["mean"])
    height, traces, layout = 1 / len(cohorts), [], dict[str, Any]()
    for place, cohort in enumerate(cohorts):
        ends = [1 - (place + 0.86) * height, 1 - place * height]
        axis = {"domain": ends, "title": f"{plain(value_text(cohort))}:<br>regret per round"}
        layout[f"yaxis{place + 1}"] = axis | scale(logarithmic=logarithmic)
        for i, (setting, colour) in enumerate(colours.items()):
            line = table[(table["cohort"] == cohort) & (table["setting"] == setting)]
            if len(line):
                trace = _curve(line, name=plain(setting), color=colour)
                shown = {"legendgroup": str(i), "showlegend": place == 0}
                traces.append(trace.update(yaxis=f"y{place + 1}", **shown))
    layout["xaxis"] = {"title": "round", "anchor": f"y{len(cohorts)}"}
    layout["updatemenus"] = [scale_menu(len(cohorts), logarithmic=logarithmic)]
    side = {"orientation": "v", "x": 1.01, "y": 1, "yanchor": "top"}
    return figure_of(traces, height=160 + 240 * len(cohorts), legend=side, **layout)


def _curve(line: pd.DataFrame, *, name: str, color: str) -> go.Scatter:
    return go.Scatter(
        x=line["round"].to_numpy(),
        y=line["mean"].to_numpy(),
        customdata=line[["low", "high"]].to_numpy(),
        name=name,
        mode="lines",
        line={"color": color, "width": 2},
        hovertemplate="round %{x}: %{y:.5f}<br>95 % interval %{customdata[0]:.5f} to "
        "%{customdata[1]:.5f}<extra>%{fullData.name}</extra>",
    )
