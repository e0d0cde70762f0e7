"""The figure of `reproduce bases`: measured error against size, one line per basis."""

from __future__ import annotations

import math
from itertools import cycle
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

COLUMNS = 3
ROUNDING = 1e-9  # errors below it are those of floating point
LEAST = 1e-3  # where exact bases are drawn beside others
PAPER, DEFAULT = ("#D55E00", "o"), ("#0072B2", "s")
COLOURS = ["#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7F7F7F", "#000000"]
MARKERS = ["^", "D", "v", "P", "X", "<", ">"]


def bases_figure(table: pd.DataFrame) -> Figure:
    """Draw a panel for each kind of family, at the number of outcomes with most rows.

    Parameters
    ----------
    table : DataFrame
        As ``bases.measure`` returns it.
    """
    kinds = table["family"].str.split(",").str[0]
    panels = [
        rows[rows["d"] == rows["d"].mode()[0]] for _, rows in table.groupby(kinds, sort=False)
    ]
    others = table.loc[table["role"] == "alternative", "basis"].unique()
    styles = dict(zip(others, zip(cycle(COLOURS), cycle(MARKERS), strict=False), strict=False))
    across = min(COLUMNS, len(panels))
    down = math.ceil(len(panels) / across)
    figure = Figure(figsize=(3.9 * across, 3.7 * down + 0.4), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for axis, rows in zip(axes, panels, strict=False):
        _panel(axis, rows, styles)
    for axis in axes[len(panels) :]:
        axis.remove()
    figure.supylabel("measured error", size=11)
    return figure


def _panel(axis: Axes, rows: pd.DataFrame, styles: dict[str, tuple[str, str]]) -> None:
    """Draw the bases of one kind of family."""
    exact = rows["error_measured"] < ROUNDING
    floor = 0.0 if exact.all() else LEAST
    for name, line in rows.groupby("basis", sort=False):
        role = line["role"].iloc[0]
        colour, marker = {"paper": PAPER, "default": DEFAULT}.get(role) or styles[str(name)]
        label = name if role == "alternative" else f"{name} ({role})"
        errors = line.sort_values("n")["error_measured"].clip(lower=floor)
        style: dict[str, Any] = {"marker": marker, "color": colour, "ms": 5, "alpha": 0.85}
        axis.plot(line["n"].sort_values(), errors, label=label, **style)
    for n in rows.loc[exact, "n"] if floor else []:
        axis.annotate("exact", (n, floor), (0, 6), textcoords="offset points", ha="center", size=7)
    kind = rows["family"].iloc[0].split(",")[0]
    told = " (rounding alone)" if exact.all() else ""
    axis.set_title(f"{kind}, d = {rows['d'].iloc[0]}{told}", fontsize=10)
    axis.set(xscale="log", yscale="log")
    axis.set_xlabel("functions, n", fontsize=8)
    axis.tick_params(labelsize=8)
    axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.margins(x=0.1, y=0.12)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=7, ncol=2, loc="upper center", bbox_to_anchor=(0.5, -0.17), frameon=False)
