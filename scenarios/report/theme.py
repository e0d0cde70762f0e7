"""One theme for every figure: colours for light and dark, axes, panels, legends.

Figures are drawn in the light colours; on a dark page its script replaces each by its partner in
``DARK`` (``page.js``). Text is escaped, since Plotly reads some HTML in it.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs
from plotly.subplots import make_subplots

from regretless.scenarios.table_files import calendar

# Okabe and Ito's palette, told apart with any common colour vision, and two of Tol's.
BLUE = "#0072B2"
VERMILLION = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
OTHER_COLOURS = ("#E69F00", "#56B4E9", "#000000", "#F0E442", "#882255", "#999933")
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, *OTHER_COLOURS)
INK = "#333333"  # of text and axes
FAINT = "#8a8a8a"
GRID = "#e6e6e6"
PAPER = "#ffffff"
DARK = {  # the partner of each colour on a dark page
    INK: "#dededc",
    FAINT: "#9c9c9a",
    GRID: "#383836",
    PAPER: "#1f1f1e",
    BLUE: "#4ea9e0",
    VERMILLION: "#f08a4b",
    GREEN: "#35c49b",
    "#000000": "#f4f4f2",
    "#882255": "#d0628f",
    "#b0b0b0": "#7c7c7a",
    "#c9c9c9": "#4a4a48",
}
LEGEND_ONLY = "legendonly"  # Plotly's word: a curve is drawn on a click on its name
SMALLEST_LOGARITHMIC = 1e-5  # smaller values, and zero, are drawn on the edge of the axis
TICK_EXPONENTS = range(-5, 4)  # of 10, on a logarithmic axis, from SMALLEST_LOGARITHMIC upwards
TICK_DECIMALS = 5  # that the smallest of these ticks takes
MIN_DECADES = 1.7  # of a logarithmic axis, below which 2 and 5 times a decade are named too
EDGE_PIXELS = 96  # above and below the panels: margins, the name of the axis, one line of legend
GAP_PIXELS = 46  # between panels
SLOT_PIXELS = 26  # of a row with a name beside the axis
LEGEND_LINE_PIXELS = 20
TITLE_LETTERS = 46  # in a line above a panel, which a phone has room for
FOLD_LETTERS = 14  # in a line below an axis
EARLY = 0.1  # of the rounds, in which means so far jump: they are not drawn
WHISKER: dict[str, Any] = {"type": "data", "thickness": 1.5, "width": 4, "color": INK}
LAYOUT: dict[str, Any] = {
    "template": "none",
    "margin": {"l": 60, "r": 12, "t": 30, "b": 24},
    "font": {"family": "system-ui, sans-serif", "size": 12, "color": INK},
    "legend": {"orientation": "h", "x": 0, "yref": "container", "y": 0, "yanchor": "bottom"},
    "hovermode": "closest",
    "hoverlabel": {"namelength": -1},
    "paper_bgcolor": PAPER,
    "plot_bgcolor": PAPER,
}
AXIS: dict[str, Any] = {
    "gridcolor": GRID,
    "zeroline": False,
    "automargin": True,
    "title": {"standoff": 8, "font": {"size": 12}},
    "exponentformat": "none",
    "ticks": "outside",  # which keeps the numbers of both axes apart where they meet
    "ticklen": 4,
    "tickcolor": GRID,
}
PROGRAM = Path(__file__).with_name("page.js").read_text(encoding="utf-8")
START = PROGRAM.replace("{DARK}", json.dumps({light.lower(): dark for light, dark in DARK.items()}))


def scripts() -> tuple[str, ...]:
    """Return the scripts of a page: plotly.js, and what draws charts and sorts tables."""
    return get_plotlyjs(), START


def plain(text: Any) -> str:
    """Write a user's text so that Plotly shows it as it is, not as HTML or mathematics."""
    return escape(str(text), quote=False).replace("$", "&#36;")


def shorten(text: Any, max_letters: int = 28) -> str:
    """Fit a user's text into a legend or beside an axis."""
    return plain(_cut(str(text), max_letters))


def fold(text: str) -> str:
    """Fold a name below an axis into lines."""
    return "<br>".join(textwrap.wrap(text, FOLD_LETTERS, break_long_words=False))


def heading(text: Any) -> str:
    """Fit a user's text above a panel, in two lines if it is long."""
    lines = textwrap.wrap(_cut(str(text), 2 * TITLE_LETTERS), TITLE_LETTERS)
    return "<br>".join(map(plain, lines[:2]))


def _cut(text: str, max_letters: int) -> str:
    """Shorten a text between words, or within a word that is longer than all there is room for."""
    single_spaced = " ".join(text.split())
    if len(single_spaced) <= max_letters:
        return single_spaced
    cut_between_words = textwrap.shorten(single_spaced, max_letters, placeholder="...")
    if len(cut_between_words) > max_letters // 2:
        return cut_between_words
    return f"{single_spaced[: max_letters - 3]}..."


def assign_colours(names: Iterable[Any]) -> dict[Any, str]:
    """Give each name a colour of the palette, in their order."""
    return {name: PALETTE[index % len(PALETTE)] for index, name in enumerate(names)}


def make_panels(
    titles: Sequence[str] = ("",), *, pixels_per_panel: int = 150, **subplot_options: Any
) -> go.Figure:
    """Make a chart of empty panels, one above the other, of so many pixels each on average.

    ``subplot_options`` are of Plotly's ``make_subplots``, in place of the defaults here.
    """
    n_panels = len(titles)
    inner_pixels = n_panels * pixels_per_panel + (n_panels - 1) * GAP_PIXELS
    default_options = {"shared_xaxes": True, "vertical_spacing": GAP_PIXELS / inner_pixels}
    all_options = default_options | subplot_options
    chart = make_subplots(n_panels, subplot_titles=tuple(titles), **all_options)
    for title, axis in zip(chart.layout.annotations, chart.select_xaxes(), strict=False):
        title.update(x=axis.domain[0], xanchor="left", align="left", font_size=13)
    chart.update_layout(LAYOUT, height=inner_pixels + EDGE_PIXELS)
    return chart.update_xaxes(AXIS).update_yaxes(AXIS)


def draw_panels(
    panels: Mapping[Any, Iterable[Any]],
    *,
    pixels_per_panel: int = 150,
    x: str = "round",
    y: str | Sequence[str] = "",
    log: bool = False,
    legend: bool | None = None,
    **subplot_options: Any,
) -> go.Figure:
    """Draw a chart of panels, one above the other.

    Parameters
    ----------
    panels : mapping
        The marks of each panel (Plotly traces), by what stands above it.
    x, y : str
        The name of the horizontal axis, and of the vertical ones; ``y`` may be a name for each.
    log : bool
        Whether the vertical axes are logarithmic.
    legend : bool or None
        Whether there is a legend, which has each name once; by default if there are several names.
    """
    marks_of_panel = {title: list(marks) for title, marks in panels.items()}
    titles = [heading(title) for title in marks_of_panel]
    chart = make_panels(titles, pixels_per_panel=pixels_per_panel, **subplot_options)
    if log:
        drawn_values = []
        for marks in marks_of_panel.values():
            drawn_values += [mark.y for mark in marks if mark.visible != LEGEND_ONLY]
        make_logarithmic(chart, drawn_values)
    names_in_legend: set[str] = set()
    for row, marks in enumerate(marks_of_panel.values(), start=1):
        for mark in marks:
            if log:
                _raise_to_edge(mark)
            is_new = mark.showlegend is not False and mark.name not in names_in_legend
            mark.update(legendgroup=mark.name, showlegend=is_new)
            chart.add_trace(mark, row=row, col=1)
            names_in_legend.add(mark.name)
        axis_name = y if isinstance(y, str) else y[row - 1]
        chart.update_yaxes(title_text=axis_name, row=row, col=1)
    grow_with_legend(chart, n_entries=0 if legend is False else len(names_in_legend))
    chart.update_layout(showlegend=legend)
    return chart.update_xaxes(title_text=x, row=len(marks_of_panel))


def _raise_to_edge(mark: Any) -> None:
    """Draw small or negative values at the edge of a logarithmic axis, in place.

    What the pointer says stays the value itself.
    """
    values = np.asarray(mark.y, dtype=np.float64)
    hover = mark.hovertemplate.replace("%{y", "%{customdata")
    mark.update(y=np.maximum(values, SMALLEST_LOGARITHMIC), customdata=values, hovertemplate=hover)


def make_slotted_panels(
    names_of_panel: Mapping[Any, Sequence[str]], *, marks_per_slot: int = 1
) -> go.Figure:
    """Make a panel per title, with a row (a slot) for each of its names, from the top.

    The names are shown as they are, and each slot has room for so many marks.
    """
    slot_counts = [len(names) for names in names_of_panel.values()]
    slot_pixels = max(SLOT_PIXELS, 12 * marks_per_slot)
    mean_count = sum(slot_counts) // len(slot_counts)
    pixels_per_panel = max(slot_pixels * (mean_count + 1), 3 * SLOT_PIXELS)
    chart = make_panels(
        [heading(title) for title in names_of_panel],
        pixels_per_panel=pixels_per_panel,
        row_heights=slot_counts,
        shared_xaxes="all",
    )
    for row, names in enumerate(names_of_panel.values(), start=1):
        chart.update_yaxes(
            tickvals=list(range(len(names))),
            range=[len(names) - 0.5, -0.5],
            ticktext=names,
            row=row,
            col=1,
        )
    return chart


def line(x: object, y: Any, name: str, **style: Any) -> go.Scatter:
    """Return a curve over rounds that tells its values; ``style`` is its line's."""
    return go.Scatter(
        x=np.asarray(x),
        y=np.asarray(y, dtype=np.float64),
        name=name,
        mode="lines",
        line=style,
        hovertemplate="round %{x}: %{y:.5g}",
    )


def dots(x: Any, y: Any, hover: str, **style: Any) -> go.Scatter:
    """Return marks that tell what ``hover`` says."""
    return go.Scatter(x=x, y=y, mode="markers", hovertemplate=hover, **style)


@dataclass(frozen=True, eq=False)
class NamesOfRounds:
    """What rounds are called in the data.

    Attributes
    ----------
    names : Series
        By round.
    column : str
        The name of their column.
    order : str or None
        "day first" or "month first" where the scenario says how dates are written.
    """

    names: pd.Series[Any]
    column: str
    order: str | None = None


def show_dates(chart: go.Figure, rounds_in_data: NamesOfRounds) -> None:
    """Put the dates of rounds in place of their numbers on horizontal axes, in place.

    Names that are no dates, or can be read in two ways, leave the chart as it is.
    """
    day_of_round = calendar(rounds_in_data.names, rounds_in_data.order)  # NaT where it is no date
    are_in_order = not day_of_round.isna().any() and day_of_round.is_monotonic_increasing
    if not are_in_order or len(day_of_round) < 2:
        return
    first_round, last_round = day_of_round.index[[0, -1]]
    for trace in chart.data:
        # Marks may lie before or after all rounds that have a date.
        rounds = np.clip(np.asarray(trace.x), first_round, last_round).astype(int)
        stamps = day_of_round.reindex(rounds).dt.strftime("%Y-%m-%dT%H:%M:%S")
        trace.update(x=stamps.to_numpy(), hovertemplate=trace.hovertemplate.replace("round ", ""))
    time_format = " %H:%M" if (day_of_round.dt.hour > 0).any() else ""
    for axis in chart.select_xaxes():
        axis.update(type="date", hoverformat=f"%-d %b %Y{time_format}")
        if axis.title.text:
            axis.title.text = axis.title.text.replace("round", plain(rounds_in_data.column), 1)


def nested_width(position: int, count: int) -> float:
    """Return the width of one of several lines: where they coincide, each shows in the last."""
    return 2 + 3 * (1 - (position + 1) / count)


def draw_zero_line(chart: go.Figure, **where: Any) -> go.Figure:
    """Draw the line of zero, in all panels or in those of ``row`` and ``col``."""
    return chart.add_hline(0, line={"color": INK, "width": 1}, **where)


def spans_decades(means: pd.Series[float]) -> bool:
    """Say whether a curve is mostly positive, and there spans more than a factor of twenty."""
    positive = means[means > 0]
    return len(positive) > 0.5 * len(means) and bool(positive.max() > 20 * positive.min())


def make_logarithmic(chart: go.Figure, values: Iterable[Any]) -> None:
    """Make all vertical axes logarithmic, in place, with numbers where the values lie."""
    all_values = np.concatenate([np.asarray(array, dtype=np.float64) for array in values])
    finite_values = all_values[np.isfinite(all_values)]
    exponents = np.log10(np.maximum(finite_values, SMALLEST_LOGARITHMIC))
    decades = exponents.max() - exponents.min()
    factors = (1, 2, 5) if decades < MIN_DECADES else (1,)
    ticks = [factor * 10.0**power for power in TICK_EXPONENTS for factor in factors]
    names = [f"{tick:.{TICK_DECIMALS}f}".rstrip("0").rstrip(".") for tick in ticks]
    chart.update_yaxes(type="log", tickvals=ticks, ticktext=names)


def grow_with_legend(chart: go.Figure, n_entries: int) -> None:
    """Let a chart grow with its legend, in place of shrinking its panels."""
    chart.layout.height += LEGEND_LINE_PIXELS * (n_entries // 3)
