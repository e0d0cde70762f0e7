"""The figure of `reproduce rates`: regret and what is promised against T, a panel per family."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from regretless.scenarios.reproduce.figures import COLOURS, GREY, LEAST, lines, panelled, split

LINES = {"bound": "--", "bound_from_bias": ":"}


def rates_figure(table: pd.DataFrame) -> Figure:
    """Draw every run as dots, means over seeds as lines, and T^(-1/2) through the first mean.

    Parameters
    ----------
    table : DataFrame
        As ``rates.measure`` returns it.
    """
    colours = dict(zip(table["stream"].unique(), COLOURS, strict=False))
    draw = partial(_panel, colours=colours)
    label = "worst agent's decision swap regret"
    figure = panelled(split(table, "family"), draw, size=(3.2, 3.2), across=4, ylabel=label)
    figure.legend(handles=_legend(colours), loc="outside lower center", ncol=4, fontsize=9)
    return figure


def _panel(axis: Axes, rows: pd.DataFrame, colours: dict[str, str]) -> None:
    """Draw one family."""
    shown = rows.assign(regret=rows["decision_swap_regret"].clip(lower=LEAST))
    lines(axis, shown, "rounds", "regret", by="stream", styles=colours)
    for stream, runs in rows.groupby("stream", sort=False):
        colour = colours[str(stream)]
        means = runs.groupby("rounds").mean(numeric_only=True)
        if rows["floor"].max() > 0:
            axis.plot(means["linear_regret"].clip(lower=LEAST), "x", color=colour, ms=5)
        for measure, line in LINES.items():
            axis.plot(means[measure], line, color=colour, lw=1.2)
    if rows["floor"].max() > 0:
        axis.axhline(float(rows["floor"].mean()), color=GREY, lw=1.2, ls="-.")
    rounds = np.unique(rows["rounds"])
    start = rows.loc[rows["rounds"] == rounds[0], "decision_swap_regret"].mean()
    falling = max(float(start), LEAST) * np.sqrt(rounds[0] / rounds)
    axis.plot(rounds, falling, color="#000000", lw=0.7)
    axis.set(xscale="log", yscale="log", xlabel="rounds, T")
    axis.set_xticks(rounds[::-2], [f"{T:g}" for T in rounds[::-2]])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.tick_params(labelsize=8)


def _legend(colours: dict[str, str]) -> list[Line2D]:
    """Return what explains all panels."""
    entries = [Line2D([], [], color=c, marker="o", ms=4, label=s) for s, c in colours.items()]
    grey = "#444444"
    return [
        *entries,
        Line2D([], [], color=grey, ls="--", label="bound, a priori"),
        Line2D([], [], color=grey, ls=":", label="bound from the biases"),
        Line2D([], [], color=grey, ls="", marker="x", label="linear part"),
        Line2D([], [], color=GREY, ls="-.", label="2 delta"),
        Line2D([], [], color="#000000", lw=0.7, label="slope -1/2"),
    ]
