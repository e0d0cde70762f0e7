"""The figure of `reproduce bases`: measured error against size, one line per basis."""

from __future__ import annotations

from functools import partial
from itertools import cycle
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from regretless.scenarios.reproduce.figures import panelled, split

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
    others = table.loc[table["role"] == "alternative", "basis"].unique()
    styles = dict(zip(others, zip(cycle(COLOURS), cycle(MARKERS), strict=False), strict=False))
    groups = []
    for kind, rows in split(table.assign(kind=table["family"].str.split(",").str[0]), "kind"):
        chosen = rows[rows["d"] == rows["d"].mode()[0]]
        told = " (rounding alone)" if (chosen["error_measured"] < ROUNDING).all() else ""
        groups.append((f"{kind}, d = {chosen['d'].iloc[0]}{told}", chosen))
    draw = partial(_panel, styles=styles)
    size, label = (3.9, 3.8), "measured error"
    return panelled(groups, draw, size=size, across=3, ylabel=label, sharey=False)


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
    axis.set(xscale="log", yscale="log")
    axis.set_xlabel("functions, n", fontsize=8)
    axis.tick_params(labelsize=8)
    axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.margins(x=0.1, y=0.12)
    axis.legend(fontsize=7, ncol=2, loc="upper center", bbox_to_anchor=(0.5, -0.17), frameon=False)
