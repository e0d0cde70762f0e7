"""The figure of `reproduce streams`: one panel per stream, one dot per seed."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

LEAST = 1e-5  # the logarithmic axis starts here; smaller regrets are drawn on it


def streams_figure(table: pd.DataFrame) -> Figure:
    """Draw the worst agent's swap regret of every run, the mean over seeds as a bar.

    Parameters
    ----------
    table : DataFrame
        As ``streams.measure`` returns it.
    """
    streams, forecasts = table["stream"].unique(), table["forecast"].unique()
    figure = Figure(figsize=(3.0 * len(streams), 3.6), layout="constrained")
    axes = figure.subplots(1, len(streams), sharey=True, squeeze=False)[0]
    for axis, stream in zip(axes, streams, strict=True):
        for place, forecast in enumerate(forecasts):
            chosen = (table["stream"] == stream) & (table["forecast"] == forecast)
            values = np.maximum(table.loc[chosen, "swap_regret"].to_numpy(dtype=np.float64), LEAST)
            colour = "#0072B2" if forecast.startswith("decision-swap") else "#999999"
            axis.plot(np.full(len(values), place), values, "o", ms=4, alpha=0.5, color=colour)
            axis.plot([place - 0.3, place + 0.3], [values.mean()] * 2, lw=2, color=colour)
        axis.set(title=stream, yscale="log", xticks=range(len(forecasts)))
        axis.set_xticklabels(forecasts, rotation=45, ha="right", fontsize=8)
        axis.grid(axis="y", alpha=0.3)
    axes[0].set_ylabel("worst agent's swap regret")
    return figure
