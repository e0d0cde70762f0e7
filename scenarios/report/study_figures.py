"""Figures of a study, drawn from its tables: means with 95 % intervals over seeds.

    effects      per key: a mark per value against the first and cohort, one measure at a time
    values       per cohort: what Decision-Swap is worth against each baseline, by setting
    curves       per cohort: regret over time, a line per setting
    windows      per cohort: regret window by window, a mark per setting

An interval that one seed alone cannot give is left out: its mean stands as a bare dot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from regretless.scenarios.report import charts
from regretless.scenarios.studies.analysis import MEASURES

SHOWN = {  # measures of the effects, with their units
    "gain": "better off by, own units",
    "loss_gain": "better off by, of losses in [0, 1]",
    "decision_swap_regret_worst": "decision swap regret, worst",
    "decision_swap_regret_mean": "decision swap regret, mean",
    "mean_loss": "mean loss",
    "welfare_mean": "welfare, own units",
    "welfare_gini": "Gini of welfare",
    "exploitability_worst": "exploitability, worst",
}
NAMED = 16  # settings that a legend can hold
WIDE = 90  # letters where a pointer or a legend tells a setting
INTERVAL = "<br>95 % interval %{customdata[0]:.5g} to %{customdata[1]:.5g}"


def value_text(value: Any, width: int = 28) -> str:
    """Write a value of a key so that it fits beside an axis."""
    return charts.short(value, width)


def setting_colours(labels: Sequence[str]) -> dict[str, str]:
    """Give each setting its colour: told apart where there are few, else a scale in their order."""
    if len(labels) < len(charts.PALETTE):
        return charts.colours(labels)
    scale = sample_colorscale("Viridis", list(np.linspace(0, 0.85, len(labels))))
    return dict(zip(labels, scale, strict=True))


def effects(table: pd.DataFrame) -> go.Figure | None:
    """Draw a panel per key; a menu chooses the measure, one's own first. None without any."""
    found = table["measure"].unique()
    shown = {name: name for name in found if name not in (*MEASURES, *SHOWN)} | SHOWN
    own = table[table["measure"].isin(shown)].dropna(subset="mean")
    measures = [name for name in shown if (own["measure"] == name).any()]
    if not measures:
        return None
    slots = {key: list(rows["value"].unique()) for key, rows in own.groupby("key", sort=False)}
    shades = charts.colours(own["cohort"].unique())
    words = {key: [value_text(name, 40) for name in told] for key, told in slots.items()}
    figure = charts.slotted(words, marks=len(shades))
    for row, (key, values) in enumerate(slots.items(), 1):
        for measure in measures:
            for i, (cohort, colour) in enumerate(shades.items()):
                chosen = (own["key"] == key) & (own["cohort"] == cohort)
                points = own[chosen & (own["measure"] == measure)]
                at = [values.index(v) + _shift(i, len(shades)) for v in points["value"]]
                marks = _marks(points, at, points["value"], cohort, colour)
                marks.update(meta=measure, visible=measure == measures[0])
                figure.add_trace(marks.update(showlegend=row == 1), row=row, col=1)
        figure.add_vline(0, line={"color": charts.INK, "width": 1}, row=row, col=1)
    axis = figure.get_subplot(len(slots), 1).xaxis.update(title_text=shown[measures[0]]).plotly_name
    buttons = [_button(figure, measure, shown[measure], axis) for measure in measures]
    charts.choose(figure, buttons, direction="down")
    return figure


def _button(figure: go.Figure, measure: str, words: str, axis: str) -> dict[str, Any]:
    """Return the entry that shows the marks of one measure and names it on the axis."""
    shown = {"visible": [mark.meta == measure for mark in figure.data]}
    named = {f"{axis}.title.text": words}
    return {"label": words, "method": "update", "args": [shown, named]}


def values(table: pd.DataFrame, labels: pd.Series[str]) -> go.Figure:
    """Draw the value of the forecast; ``labels`` names each row's setting of the other keys."""
    shades = charts.colours(table["baseline"].unique())
    cohorts = dict(iter(table.groupby("cohort", sort=False)))
    slots = {name: list(labels[own.index].unique()) for name, own in cohorts.items()}
    words = {name: list(map(value_text, told)) for name, told in slots.items()}
    figure = charts.slotted(words, marks=len(shades))
    for row, (cohort, own) in enumerate(cohorts.items(), 1):
        for i, (baseline, colour) in enumerate(shades.items()):
            points = own[own["baseline"] == baseline]
            names = labels[points.index]
            at = [slots[cohort].index(name) + _shift(i, len(shades)) for name in names]
            marks = _marks(points, at, names, f"against {baseline}", colour)
            figure.add_trace(marks.update(showlegend=row == 1), row=row, col=1)
        figure.add_vline(0, line={"color": charts.INK, "width": 1}, row=row, col=1)
    title = "Decision-Swap earns more by"
    return figure.update_xaxes(title_text=title, row=len(slots))


def _shift(place: int, count: int) -> float:
    """Set marks side by side within a slot of width 1."""
    return 0.6 * ((place + 0.5) / count - 0.5)


def _marks(
    points: pd.DataFrame, at: Sequence[float], names: Iterable[Any], label: str, colour: str
) -> go.Scatter:
    """Draw means and intervals at the given places of a vertical axis, each with its name."""
    known = [column for column in ("low", "high", "seeds", "pairs") if column in points]
    return go.Scatter(
        x=points["mean"].to_numpy(),
        y=at,
        error_x=_reach(points),
        text=[value_text(name, WIDE) for name in names],
        customdata=points[known].to_numpy(dtype=np.float64),
        name=charts.short(label, 40),
        legendgroup=label,
        mode="markers",
        marker={"color": colour, "size": 8},
        hovertemplate="%{text}<br>mean %{x:.5g}" + INTERVAL + "<br>%{customdata[2]} " + known[-1],
    )


def _reach(points: pd.DataFrame) -> dict[str, Any]:
    reach = np.nan_to_num((points["high"] - points["mean"]).to_numpy())
    return {"type": "data", "array": reach, "thickness": 1.5, "width": 4}


def curves(table: pd.DataFrame) -> go.Figure:
    """Draw regret over time; ``table`` is ``studies.curves.setting_curves``."""
    figure = _by_cohort(table, each=240)
    settings = table["setting"].nunique()
    for row, place, colour, own, style in _settings(table):
        width = min(charts.nested(place, settings), 3.0)
        curve = charts.line(
            own["round"], own["mean"].clip(lower=charts.LEAST), "", color=colour, width=width
        )
        curve.update(style, text=own["mean"].map("{:.5g}".format))
        curve.update(hovertemplate="round %{x}: %{text}" + INTERVAL)
        figure.add_trace(curve, row=row, col=1)
    charts.choose_scale(figure, logarithmic=charts.spans_decades(table["mean"]))
    return figure.update_xaxes(title_text="round", row=table["cohort"].nunique())


def windows(table: pd.DataFrame) -> go.Figure:
    """Draw one measure of ``analysis.windows_table``, with the column ``setting``."""
    figure, count = _by_cohort(table, each=200), table["setting"].nunique()
    spans = sorted({(row["first"], row["last"]) for row in table.to_dict("records")})
    for row, place, colour, own, style in _settings(table):
        places = [spans.index(span) for span in zip(own["first"], own["last"], strict=True)]
        marks = go.Scatter(
            x=[at + _shift(place, count) for at in places],
            y=own["mean"].to_numpy(),
            error_y=_reach(own),
            text=["rounds {} to {}".format(*spans[at]) for at in places],
            mode="markers",
            marker={"color": colour, "size": 7},
            hovertemplate="%{text}: %{y:.5g}" + INTERVAL,
        )
        figure.add_trace(marks.update(style), row=row, col=1)
    charts.zero(figure)
    shown = range(0, len(spans), -(-len(spans) // 8))
    names = ["{} to {}".format(*spans[i]) for i in shown]
    figure.update_xaxes(tickvals=list(shown), ticktext=names)
    return figure.update_xaxes(title_text="rounds of the window", row=table["cohort"].nunique())


def _by_cohort(table: pd.DataFrame, each: int) -> go.Figure:
    """Make a panel per cohort; settings that are too many for a legend have none."""
    cohorts = table["cohort"].unique()
    figure = charts.panels(list(map(charts.heading, cohorts)), rows=len(cohorts), each=each)
    figure.update_layout(showlegend=table["setting"].nunique() <= NAMED)
    return figure.update_yaxes(title_text="regret per round")


def _settings(
    table: pd.DataFrame,
) -> Iterator[tuple[int, int, str, pd.DataFrame, dict[str, Any]]]:
    """Yield a cohort's row, a setting's place, its colour, part of the table, name and interval."""
    shades, seen = setting_colours(list(table["setting"].unique())), set[str]()
    for row, (_, cohort) in enumerate(table.groupby("cohort", sort=False), 1):
        for place, (setting, colour) in enumerate(shades.items()):
            own = cohort[cohort["setting"] == setting]
            if len(own):
                style = {
                    "name": charts.short(setting, WIDE),
                    "customdata": own[["low", "high"]].to_numpy(),
                }
                shown = {"legendgroup": setting, "showlegend": setting not in seen}
                seen.add(setting)
                yield row, place, colour, own, style | shown
