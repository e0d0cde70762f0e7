"""One theme for every figure: colours for light and dark, axes, panels, legends.

Figures are drawn in the light colours; on a dark page its script replaces each by its partner in
``DARK`` (``page.js``). Text is escaped, since Plotly reads some HTML in it.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
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
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
MORE = ("#E69F00", "#56B4E9", "#000000", "#F0E442", "#882255", "#999933")
PALETTE = (BLUE, VERMILLION, GREEN, PURPLE, *MORE)
INK, FAINT, GRID, PAPER = "#333333", "#8a8a8a", "#e6e6e6", "#ffffff"
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
LEAST = 1e-5  # logarithmic axes end here: what is smaller, or zero, is drawn on their edge
EDGE = 96  # pixels above and below the panels: margins, the name of the axis, one line of legend
GAP = 46  # pixels between panels
NARROW = 1.7  # decades of a logarithmic axis, below which 2 and 5 times a decade are named too
TITLE = 46  # letters in a line above a panel, which a phone has room for
FOLD = 14  # letters in a line below an axis
EARLY = 0.1  # of the rounds, in which means so far jump: they are not drawn
SLOT = 26  # pixels of a row with a name beside the axis
LINE = 20  # pixels of a line of a legend
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


def short(text: Any, width: int = 28) -> str:
    """Fit a user's text into a legend or beside an axis."""
    return plain(_cut(str(text), width))


def folded(text: str) -> str:
    """Fold a name below an axis into lines."""
    return "<br>".join(textwrap.wrap(text, FOLD, break_long_words=False))


def heading(text: Any) -> str:
    """Fit a user's text above a panel, in two lines if it is long."""
    return "<br>".join(map(plain, textwrap.wrap(_cut(str(text), 2 * TITLE), TITLE)[:2]))


def _cut(text: str, width: int) -> str:
    """Shorten a text between words, or within a word that is longer than all there is room for."""
    words = " ".join(text.split())
    if len(words) <= width:
        return words
    found = textwrap.shorten(words, width, placeholder="...")
    return found if len(found) > width // 2 else f"{words[: width - 3]}..."


def colours(names: Iterable[Any]) -> dict[Any, str]:
    """Give each name a colour of the palette."""
    return {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(names)}


def panels(titles: Sequence[str] = ("",), *, each: int = 150, **grid: Any) -> go.Figure:
    """Make a chart of panels, one above the other, of so many pixels each on average."""
    inner = len(titles) * each + (len(titles) - 1) * GAP
    grid = {"shared_xaxes": True, "vertical_spacing": GAP / inner} | grid
    made = make_subplots(len(titles), subplot_titles=tuple(titles), **grid)
    for title, axis in zip(made.layout.annotations, made.select_xaxes(), strict=False):
        title.update(x=axis.domain[0], xanchor="left", align="left", font_size=13)
    made.update_layout(LAYOUT, height=inner + EDGE)
    return made.update_xaxes(AXIS).update_yaxes(AXIS)


def stacked(
    parts: Mapping[Any, Iterable[Any]],
    *,
    each: int = 150,
    x: str = "round",
    y: str | Sequence[str] = "",
    log: bool = False,
    legend: bool | None = None,
    **grid: Any,
) -> go.Figure:
    """Draw the marks of each panel, by what stands above it; the legend has each name once.

    ``y`` names the vertical axes, or each; the legend is by default of several names.
    """
    held, seen = {name: list(marks) for name, marks in parts.items()}, set[str]()
    made = panels(list(map(heading, held)), each=each, **grid)
    if log:
        curves = [curve for marks in held.values() for curve in marks]
        logarithmic(made, [curve.y for curve in curves if curve.visible != LEGEND_ONLY])
    for row, marks in enumerate(held.values(), 1):
        for mark in marks:
            if log:  # what is never negative is raised to the edge of the axis, and tells truly
                values = np.asarray(mark.y, dtype=np.float64)
                said = mark.hovertemplate.replace("%{y", "%{customdata")
                mark.update(y=np.maximum(values, LEAST), customdata=values, hovertemplate=said)
            shown = mark.showlegend is not False and mark.name not in seen
            made.add_trace(mark.update(legendgroup=mark.name, showlegend=shown), row=row, col=1)
            seen.add(mark.name)
        made.update_yaxes(title_text=y if isinstance(y, str) else y[row - 1], row=row, col=1)
    grow(made, 0 if legend is False else len(seen))
    return made.update_layout(showlegend=legend).update_xaxes(title_text=x, row=len(held))


def slotted(slots: Mapping[Any, Sequence[str]], *, marks: int = 1) -> go.Figure:
    """Make a panel per name, with a row of so many marks for each plain text, from the top."""
    counts, slot = [len(names) for names in slots.values()], max(SLOT, 12 * marks)
    each = max(slot * (sum(counts) // len(counts) + 1), 3 * SLOT)
    made = panels(list(map(heading, slots)), each=each, row_heights=counts, shared_xaxes="all")
    for row, names in enumerate(slots.values(), 1):
        style = {"tickvals": list(range(len(names))), "range": [len(names) - 0.5, -0.5]}
        made.update_yaxes(**style, ticktext=names, row=row, col=1)
    return made


def line(x: object, y: Any, name: str, **style: Any) -> go.Scatter:
    """Return a curve over rounds that tells its values; ``style`` is its line's."""
    values = {"x": np.asarray(x), "y": np.asarray(y, dtype=np.float64)}
    hover = "round %{x}: %{y:.5g}"
    return go.Scatter(**values, name=name, mode="lines", line=style, hovertemplate=hover)


def dots(x: Any, y: Any, hover: str, **style: Any) -> go.Scatter:
    """Return marks that tell what ``hover`` says."""
    return go.Scatter(x=x, y=y, mode="markers", hovertemplate=hover, **style)


def dated(figure: go.Figure, names: pd.Series[Any], word: str) -> None:
    """Put the names of rounds, indexed by round, in place of their numbers on horizontal axes.

    Dates become an axis of time; other names stay with the pointer.
    """
    days = calendar(names)
    if days.isna().any() or not days.is_monotonic_increasing or len(days) < 2:
        return
    first, last = days.index[[0, -1]]
    for trace in figure.data:
        rounds = np.clip(np.asarray(trace.x), first, last).astype(int)
        stamps = days.reindex(rounds).dt.strftime("%Y-%m-%dT%H:%M:%S")
        trace.update(x=stamps.to_numpy(), hovertemplate=trace.hovertemplate.replace("round ", ""))
    time = " %H:%M" if (days.dt.hour > 0).any() else ""
    for axis in figure.select_xaxes():
        axis.update(type="date", hoverformat=f"%-d %b %Y{time}")
        axis.title.text = axis.title.text and axis.title.text.replace("round", plain(word), 1)


def nested(place: int, count: int) -> float:
    """Return the width of one of several lines: where they coincide, each shows in the last."""
    return 2 + 3 * (1 - (place + 1) / count)


def zero(figure: go.Figure, **where: Any) -> go.Figure:
    """Draw the line of zero."""
    return figure.add_hline(0, line={"color": INK, "width": 1}, **where)


def spans_decades(means: pd.Series[float]) -> bool:
    """Say whether a curve is mostly positive, and there spans more than a factor of twenty."""
    positive = means[means > 0]
    return len(positive) > 0.5 * len(means) and bool(positive.max() > 20 * positive.min())


def logarithmic(figure: go.Figure, values: Iterable[Any]) -> None:
    """Make all vertical axes logarithmic, with numbers where the values lie."""
    known = np.concatenate([np.asarray(own, dtype=np.float64) for own in values])
    known = np.log10(np.maximum(known[np.isfinite(known)], LEAST))
    factors = (1, 2, 5) if known.max() - known.min() < NARROW else (1,)
    ticks = [factor * 10.0**power for power in range(-5, 4) for factor in factors]
    words = [f"{tick:.5f}".rstrip("0").rstrip(".") for tick in ticks]
    figure.update_yaxes(type="log", tickvals=ticks, ticktext=words)


def grow(figure: go.Figure, entries: int) -> None:
    """Let a figure grow with its legend, in place of shrinking its panels."""
    figure.layout.height += LINE * (entries // 3)
