"""Interactive figures: Plotly's script once in a page, each figure beside it as plain data.

A card holds a drawing, which paper and browsers without scripts show, and a box with the figure's
data. A short script hands the data to plotly.js, and only when that has drawn does the drawing give
way. The data are no program: text in them is escaped twice, once so that Plotly, which reads some
HTML in text, shows it as it is, and once so that it cannot end its ``<script>`` element.
"""

from __future__ import annotations

from html import escape
from typing import Any

import plotly.graph_objects as go
from plotly.io import to_json
from plotly.offline import get_plotlyjs

from regretless.scenarios.report.figures import FAINT, INK

GRID = "#e6e6e6"
SCALES: dict[str, dict[str, Any]] = {
    "linear": {"type": "linear", "dtick": None, "tickformat": ""},
    "logarithmic": {"type": "log", "dtick": "D2", "tickformat": "~g"},
}
START = """
"use strict";
for (const data of document.querySelectorAll("script.figure")) {
  const box = document.getElementById(data.dataset.box);
  const figure = JSON.parse(data.textContent);
  box.hidden = box.closest("figure").hidden = false;
  const buttons = [["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]];
  const config = { displaylogo: false, responsive: true, modeBarButtons: buttons,
    showSendToCloud: false, plotlyServerURL: "" };
  Plotly.newPlot(box, figure.data, figure.layout, config)
    .then(() => box.parentNode.classList.add("drawn"));
}
"""
SORT = """
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("thead th").forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
      const text = (row) => row.cells[column].textContent.trim();
      const number = (row) => parseFloat(text(row).replaceAll(",", ""));
      const rows = [...body.rows];
      const known = rows.filter((row) => text(row) !== "-");
      const numeric = known.every((row) => !Number.isNaN(number(row)));
      known.sort((a, b) => sign * (numeric ? number(a) - number(b)
        : text(a).localeCompare(text(b))));
      body.append(...known, ...rows.filter((row) => text(row) === "-"));
    });
  });
}
"""


def scripts() -> tuple[str, ...]:
    """Return the scripts of a page with figures and sortable tables: plotly.js and our own."""
    return get_plotlyjs(), START, SORT


def plain(text: Any) -> str:
    """Write a user's text so that Plotly shows it as it is, not as HTML or mathematics."""
    return escape(str(text), quote=False).replace("$", "&#36;")


def figure_of(traces: list[Any], *, height: int, **layout: Any) -> go.Figure:
    """Make a figure in the house's style.

    Parameters
    ----------
    traces : list of Plotly traces
    height : int
        Pixels.
    **layout
        Of ``plotly.graph_objects.Layout``, which refuses what it does not know.
    """
    base: dict[str, Any] = {
        "template": "none",
        "height": height,
        "margin": {"l": 75, "r": 20, "t": 45, "b": 60},
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
        "legend": {"orientation": "h", "x": 0, "y": -0.2, "yanchor": "top"},
        "hovermode": "closest",
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
    }
    made = go.Figure(traces, base | layout)
    made.update_xaxes(gridcolor=GRID, zeroline=False, automargin=True, title_standoff=10)
    made.update_yaxes(gridcolor=GRID, zerolinecolor=FAINT, automargin=True, title_standoff=12)
    return made


def scale_menu(axes: int = 1, *, logarithmic: bool) -> dict[str, Any]:
    """Return the two buttons that choose the scale of a figure's first vertical axes."""
    buttons = []
    for word, scale in SCALES.items():
        names = (f"yaxis{place + 1}" if place else "yaxis" for place in range(axes))
        change = {f"{name}.{key}": value for name in names for key, value in scale.items()}
        buttons.append({"label": word, "method": "relayout", "args": [change]})
    place = {"x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}
    style = {"type": "buttons", "direction": "right", "pad": {"r": 0, "t": 0, "b": 0, "l": 0}}
    return {"buttons": buttons, "active": int(logarithmic)} | place | style


def scale(*, logarithmic: bool) -> dict[str, Any]:
    """Return the settings of an axis that agree with ``scale_menu``."""
    return SCALES["logarithmic" if logarithmic else "linear"]


def box(figure: go.Figure, name: str) -> str:
    """Write a figure's box and data as HTML.

    Parameters
    ----------
    figure : plotly.graph_objects.Figure
    name : str
        Unique within the page.
    """
    data = to_json(figure, engine="json").replace("<", "\\u003c").replace(">", "\\u003e")
    return (
        f'<div class="live" id="live-{name}" hidden></div>\n'
        f'<script type="application/json" class="figure" data-box="live-{name}">{data}</script>'
    )
