"""The figure of `reproduce unseen`: the worst agent's regret against gamma, setting by setting."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

COLOURS = {"named": "#000000", "covered": "#0072B2", "unseen": "#D55E00"}


def unseen_figure(table: pd.DataFrame) -> Figure:
    """Draw every run and the means over seeds, one panel per setting.

    Parameters
    ----------
    table : DataFrame
        As ``unseen.measure`` returns it.
    """
    settings = table["setting"].unique()
    figure = Figure(figsize=(2.8 * len(settings), 3.4), layout="constrained")
    axes = figure.subplots(1, len(settings), sharey=True, squeeze=False)[0]
    for axis, setting in zip(axes, settings, strict=True):
        chosen = table[(table["setting"] == setting) & (table["agents"] > 0)]
        for group, runs in chosen.groupby("group", sort=False):
            colour, means = COLOURS[str(group)], runs.groupby("gamma")["worst"].mean()
            axis.plot(runs["gamma"], runs["worst"], "o", ms=3, alpha=0.35, color=colour)
            axis.plot(means.index, means, "s-", ms=4, color=colour, label=group)
        first = chosen.iloc[0]
        axis.set(
            title=f"{setting}\nn = {first['size']}, lambda = {first['lipschitz']:.3g}",
            xlabel="gamma",
        )
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("worst agent's swap regret")
    handles = {
        label: handle
        for axis in axes
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncol=3)
    return figure
