"""Figures of a study, drawn from its tables: means with 95 % intervals over seeds.

    effects      per key: a row per cohort, a column per measure, a line per value of the key
    values       per cohort: what Decision-Swap is worth against each baseline, by setting
    curves       per cohort: regret over time, a line per setting
    windows      per cohort: regret window by window, a mark per setting

An interval that one seed alone cannot give is left out: its mean stands as a bare dot.
"""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from regretless.scenarios.report.figures import (
    BLUE,
    DEPTH,
    FAINT,
    INK,
    PALETTE,
    WIDTH,
    scale_regret,
    short_name,
    spans_decades,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

SHOWN = {  # measures of the effects, with their units
    "decision_swap_regret_worst": "decision swap regret,\nworst agent",
    "decision_swap_regret_mean": "decision swap regret,\nmean of agents",
    "welfare_mean": "welfare per round,\nown units",
    "welfare_gini": "Gini coefficient\nof welfare",
    "exploitability_worst": "exploitability,\nworst agent",
}
NAMED = 16  # settings that a legend can hold


def value_text(value: Any) -> str:
    """Write a value of a key, JSON text or not, so that it fits beside an axis."""
    text = str(value)
    if isinstance(value, str) and value.startswith('"'):
        text = str(json.loads(value))
    return textwrap.shorten(text, 26, placeholder="...") or "..."


def setting_colours(labels: Sequence[str]) -> dict[str, str]:
    """Give each setting its colour: told apart where there are few, else a scale in their order."""
    if len(labels) <= len(PALETTE) - 1:
        return dict(zip(labels, PALETTE, strict=False))
    scale = mpl.colormaps["viridis"](np.linspace(0, 0.85, len(labels)))
    return {label: mpl.colors.to_hex(c) for label, c in zip(labels, scale, strict=True)}


def effects(table: pd.DataFrame, key: str) -> Figure | None:
    """Draw the effect of one key; None where none of the measures is known."""
    own = table[(table["key"] == key) & table["measure"].isin(SHOWN)].dropna(subset="mean")
    if own.empty:
        return None
    cohorts, values = own["cohort"].unique(), list(own["value"].unique())
    measures = [name for name in SHOWN if (own["measure"] == name).any()]
    rows = len(cohorts)
    figure = Figure(figsize=(WIDTH, 1.1 + rows * (0.55 + 0.3 * len(values))))
    grid = figure.subplots(rows, len(measures), sharey=True, squeeze=False)
    for cohort, line in zip(cohorts, grid, strict=True):
        for measure, axes in zip(measures, line, strict=True):
            points = own[(own["cohort"] == cohort) & (own["measure"] == measure)]
            places = [values.index(value) for value in points["value"]]
            whiskers(axes, points, places, BLUE, across=True)
            axes.set_ylim(len(values) - 0.5, -0.5)
            axes.xaxis.set_major_locator(MaxNLocator(2))
            axes.tick_params(axis="x", labelsize=9)
            if _constant(points):  # an axis of its own choice would be far too fine
                axes.set_xticks(points["mean"].head(1))
        line[0].set_yticks(range(len(values)), list(map(value_text, values)))
        line[0].set_title(short_name(cohort))
    for measure, axes in zip(measures, grid[-1], strict=True):
        axes.set_xlabel(SHOWN[measure], fontsize=9)
    return figure


def _constant(points: pd.DataFrame) -> bool:
    values = points[["mean", "low", "high"]].to_numpy()
    return len(values) > 0 and bool(np.nanmin(values) == np.nanmax(values))


def whiskers(
    axes: Axes, points: pd.DataFrame, places: Sequence[float], colour: str, *, across: bool
) -> None:
    """Draw means and intervals, lying (``across``) or standing at the given places."""
    mean = points["mean"].to_numpy()
    reach = np.nan_to_num(np.abs(points[["low", "high"]].to_numpy() - mean[:, None]).T)
    style: dict[str, Any] = {"color": colour, "linestyle": "", "marker": "o", "markersize": 5}
    style |= {"elinewidth": 1.5, "capsize": 2.5}
    if across:
        axes.errorbar(mean, places, xerr=reach, **style)
    else:
        axes.errorbar(places, mean, yerr=reach, **style)


def values(table: pd.DataFrame, labels: pd.Series[str]) -> Figure:
    """Draw the value of the forecast; ``labels`` names each row's setting of the other keys."""
    baselines = table["baseline"].unique()
    colours = setting_colours(list(baselines))
    cohorts = table["cohort"].unique()
    heights = [0.3 + 0.32 * labels[table["cohort"] == name].nunique() for name in cohorts]
    figure = Figure(figsize=(WIDTH, 1.2 + sum(heights) + 0.4 * len(cohorts)))
    grid = figure.subplots(len(cohorts), 1, squeeze=False, height_ratios=heights)[:, 0]
    for name, axes in zip(cohorts, grid, strict=True):
        own = table[table["cohort"] == name]
        lines = list(labels[own.index].unique())
        for i, baseline in enumerate(baselines):
            points = own[own["baseline"] == baseline]
            places = [lines.index(labels[row]) + shift(i, len(baselines)) for row in points.index]
            whiskers(axes, points, places, colours[baseline], across=True)
        axes.axvline(0, color=INK, linewidth=1)
        axes.set_yticks(range(len(lines)), [value_text(line) for line in lines])
        axes.set_ylim(len(lines) - 0.5, -0.5)
        axes.set_title(short_name(name))
    grid[-1].set_xlabel(
        "Decision-Swap's welfare less the baseline's, per agent and round, own units"
    )
    legend(figure, {f"against {name}": colour for name, colour in colours.items()})
    return figure


def shift(place: int, count: int) -> float:
    """Set marks side by side within a slot of width 1."""
    return 0.6 * ((place + 0.5) / count - 0.5)


def legend(figure: Figure, colours: Mapping[str, str]) -> None:
    """Name the colours above the figure, if they are few enough."""
    lines = [Line2D([], [], color=colour, linewidth=2.5) for colour in colours.values()]
    if len(lines) <= NAMED:
        columns = 3 if max(map(len, colours), default=0) < 34 else 2
        words = [short_name(name) for name in colours]
        figure.legend(lines, words, loc="outside upper left", ncols=columns)


def curves(table: pd.DataFrame) -> Figure:
    """Draw regret over time; ``table`` is ``study_curves.setting_curves``."""
    cohorts, colours = table["cohort"].unique(), setting_colours(list(table["setting"].unique()))
    logarithmic = spans_decades(table["mean"])
    least = float(table["mean"].max()) / DEPTH if logarithmic else -np.inf
    figure = Figure(figsize=(WIDTH, 1.4 + 2.3 * len(cohorts)))
    grid = figure.subplots(len(cohorts), 1, sharex=True, squeeze=False)[:, 0]
    for name, axes in zip(cohorts, grid, strict=True):
        own = table[table["cohort"] == name]
        for setting, line in own.groupby("setting", sort=False):
            colour, low = colours[setting], line["low"].clip(lower=least)
            axes.plot(line["round"], line["mean"], color=colour, linewidth=1.6)
            axes.fill_between(line["round"], low, line["high"], color=colour, alpha=0.12)
        axes.set(title=short_name(name), ylabel="regret per round")
        if logarithmic:
            scale_regret(axes, table["mean"])
            axes.set_ylim(*_decades(own["mean"], least))
        else:
            axes.axhline(0, color=FAINT, linewidth=1)
            axes.set_ylim(*_span(own["mean"]))
    grid[-1].set_xlabel("round")
    legend(figure, colours)
    return figure


def _span(means: pd.Series[float]) -> tuple[float, float]:
    """Choose the ends of an axis by the means: an interval of few seeds may go beyond."""
    low, high = min(float(means.min()), 0.0), max(float(means.max()), 1e-6)
    return low - 0.15 * (high - low), high + 0.25 * (high - low)


def _decades(means: pd.Series[float], least: float) -> tuple[float, float]:
    """Choose the ends of a logarithmic axis likewise."""
    return max(float(means[means > 0].min()) / 2, least), 2 * float(means.max())


def windows(table: pd.DataFrame) -> Figure:
    """Draw one measure of ``windows.windows_table``, with the column ``setting``."""
    cohorts, colours = table["cohort"].unique(), setting_colours(list(table["setting"].unique()))
    spans = sorted({(row["first"], row["last"]) for row in table.to_dict("records")})
    figure = Figure(figsize=(WIDTH, 1.4 + 2.3 * len(cohorts)))
    grid = figure.subplots(len(cohorts), 1, sharex=True, squeeze=False)[:, 0]
    for name, axes in zip(cohorts, grid, strict=True):
        for i, (setting, colour) in enumerate(colours.items()):
            own = table[(table["cohort"] == name) & (table["setting"] == setting)]
            at = [spans.index(span) for span in zip(own["first"], own["last"], strict=True)]
            places = [place + shift(i, len(colours)) for place in at]
            whiskers(axes, own, places, colour, across=False)
        axes.axhline(0, color=INK, linewidth=1)
        axes.set(title=short_name(name), ylabel="regret per round")
    shown = range(0, len(spans), -(-len(spans) // 10))
    grid[-1].set_xticks(list(shown), ["{} to {}".format(*spans[i]) for i in shown])
    grid[-1].set_xlabel("rounds of the window")
    legend(figure, colours)
    return figure
