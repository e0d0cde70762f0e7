"""The figure of `reproduce anchoring`: regret against the dead zone, a panel per stream."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#D55E00", "#0072B2")


def anchoring_figure(curve: pd.DataFrame) -> Figure:
    """Draw every base's curve, the base alone (dotted) and the plain forecaster (grey).

    Parameters
    ----------
    curve : DataFrame
        As ``anchoring.curve`` returns it.
    """
    streams = curve["stream"].unique()
    figure = Figure(figsize=(2.8 * len(streams), 3.4), layout="constrained")
    axes = figure.subplots(1, len(streams), sharey=True, squeeze=False)[0]
    for axis, stream in zip(axes, streams, strict=True):
        _panel(axis, curve[curve["stream"] == stream])
        axis.set(title=stream, xlabel="dead zone z", yscale="log")
        axis.grid(axis="y", alpha=0.3)
    axes[0].set_ylabel("worst agent's swap regret")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=8)
    return figure


def _panel(axis: Axes, rows: pd.DataFrame) -> None:
    axis.axhline(rows["plain"].iloc[0], color="#999999", label="no base")
    for (base, own), colour in zip(rows.groupby("base", sort=False), COLOURS, strict=True):
        axis.plot(own["zone"], own["regret"], "o-", color=colour, label=f"anchored at {base}")
        axis.axhline(own["alone"].iloc[0], ls=":", color=colour, label=f"{base} alone")
        axis.plot(own["zone"], own["wanted"], "_", color=colour, label=f"wanted, {base}")
