"""The figure of `reproduce omniprediction`: loss above the best of C against the examples."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

COLOURS = {
    "one omnipredictor": "#0072B2",
    "one omnipredictor, trained C": "#56B4E9",
    "one model per loss": "#000000",
    "mean, boosted": "#D55E00",
    "mean, linear": "#E69F00",
    "quantiles, linear": "#009E73",
}


def omniprediction_figure(table: pd.DataFrame) -> Figure:
    """Draw the mean over seeds of every method, one panel per task and loss.

    Parameters
    ----------
    table : DataFrame
        As ``omniprediction.measure`` returns it.
    """
    tasks, losses = table["task"].unique(), table["loss"].unique()
    figure = Figure(figsize=(3.2 * len(losses), 2.8 * len(tasks)), layout="constrained")
    axes = figure.subplots(len(tasks), len(losses), squeeze=False, sharex="row")
    for row, task in zip(axes, tasks, strict=True):
        for axis, loss in zip(row, losses, strict=True):
            chosen = table[(table["task"] == task) & (table["loss"] == loss)]
            for method, runs in chosen.groupby("method", sort=False):
                means = runs.groupby("examples")["excess"].mean()
                axis.plot(means.index, means, "o-", ms=3, color=COLOURS[str(method)], label=method)
            axis.axhline(0.0, color="#7F7F7F", lw=0.8)
            axis.set(title=f"{task}, {loss}", xscale="log")
            axis.set_xticks(sizes := sorted(chosen["examples"].unique()), map(str, sizes))
            axis.minorticks_off()
            axis.grid(alpha=0.3)
        row[0].set_ylabel("loss above the best of C")
    for axis in axes[-1]:
        axis.set_xlabel("examples m")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncol=3)
    return figure
