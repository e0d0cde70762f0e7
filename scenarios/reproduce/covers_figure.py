"""The figure of `reproduce covers`: regret against radius, for the worst and the mean agent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

LEAST = 1e-4  # the logarithmic axis starts here; smaller radii are drawn on it
STYLES = {"cluster": ("#0072B2", "o"), "snap": ("#D55E00", "s")}
MEASURES = {"swap_regret": "worst agent", "mean_swap_regret": "mean agent"}


def covers_figure(table: pd.DataFrame) -> Figure:
    """Draw every run, lines through the means, and what twice the radius would allow.

    Parameters
    ----------
    table : DataFrame
        As ``covers.measure`` returns it.
    """
    figure = Figure(figsize=(9.0, 4.4), layout="constrained")
    axes = figure.subplots(1, len(MEASURES), sharey=True)
    for axis, (measure, title) in zip(axes, MEASURES.items(), strict=True):
        _panel(axis, table, measure)
        axis.set(title=title, xscale="log", xlabel="greatest radius of the cover")
        axis.grid(alpha=0.3)
    top = max(float(table[measure].max()) for measure in MEASURES)
    axes[0].set_ylim(0.0, 1.1 * top)  # twice the radius may leave the panel
    axes[0].set_ylabel("swap regret per round")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncol=3)
    return figure


def _panel(axis: Axes, table: pd.DataFrame, measure: str) -> None:
    """Draw one measure of all covers."""
    shown = table.assign(radius=table["radius"].clip(lower=LEAST))
    kinds = shown["cover"].str.split().str[0]
    for (kind, play), rows in shown[kinds.isin(list(STYLES))].groupby([kinds, "play"], sort=False):
        colour, marker = STYLES[str(kind)]
        face = colour if play == "representative" else "white"
        line = "-" if play == "representative" else "--"
        means = rows.groupby("cover")[["radius", measure]].mean().sort_values("radius")
        axis.plot(rows["radius"], rows[measure], marker, color=colour, ms=3, alpha=0.35)
        style: dict[str, Any] = {"marker": marker, "color": colour, "mfc": face}
        axis.plot(means["radius"], means[measure], line, label=f"{kind}, plays {play}", **style)
    alone = float(shown.loc[kinds == "none", measure].mean())
    radii = np.geomspace(shown["radius"].min(), shown["radius"].max(), 50)
    axis.axhline(alone, color="#000000", lw=1, label="no cover")
    axis.plot(radii, alone + 2 * radii, ":", color="#7F7F7F", label="no cover, plus two radii")
