"""The figure of `reproduce crowding`: concentration, churn and loss, a group of bars per market."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#56B4E9", "#E69F00", "#999999")
PANELS = {
    "concentration": "concentration of demand",
    "churn": "share of budgets that moved a round",
    "mean_loss": "mean loss",
}


def crowding_figure(table: pd.DataFrame) -> Figure:
    """Draw every cell's mean as a bar and every run as a dot.

    Parameters
    ----------
    table : DataFrame
        As ``crowding.measure`` returns it.
    """
    figure = Figure(figsize=(14.0, 4.0), layout="constrained")
    axes = figure.subplots(1, len(PANELS))
    for axis, (column, title) in zip(axes, PANELS.items(), strict=True):
        _panel(axis, table, column)
        axis.set_title(title, fontsize=10)
        axis.grid(axis="y", alpha=0.3)
    for name, style in (("even", ":"), ("ceiling", "--")):
        axes[0].axhline(table[name].mean(), ls=style, color="#333333", lw=1)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9)
    return figure


def _panel(axis: Axes, table: pd.DataFrame, column: str) -> None:
    markets, listeners = table["market"].unique(), table["listener"].unique()
    width = 0.8 / len(listeners)
    for place, (listener, colour) in enumerate(zip(listeners, COLOURS, strict=True)):
        at = np.arange(len(markets)) + (place - (len(listeners) - 1) / 2) * width
        own = table[table["listener"] == listener].groupby("market", sort=False)[column]
        axis.bar(at, own.mean()[markets], width, color=colour, label=listener)
        for x, market in zip(at, markets, strict=True):
            values = own.get_group(market).to_numpy(dtype=np.float64)
            axis.plot(np.full(len(values), x), values, ".", ms=3, color="#333333")
    axis.set_xticks(range(len(markets)), [m.replace(" ", "\n") for m in markets], fontsize=7.5)
