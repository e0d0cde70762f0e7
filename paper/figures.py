"""What all tables share in being drawn and written: panels, lines, dots; files at once."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, NullFormatter

BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
SKY, ORANGE, BLACK, GREY = "#56B4E9", "#E69F00", "#000000", "#999999"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE, BLACK, GREY)
LEAST = 1e-5  # logarithmic axes start here; smaller regrets are drawn on it

Groups = Sequence[tuple[str, pd.DataFrame]]


def split(table: pd.DataFrame, by: str) -> Groups:
    """Return the rows of each value of a column, in the table's order."""
    return [(str(name), rows) for name, rows in table.groupby(by, sort=False)]


def panelled(
    groups: Groups,
    draw: Callable[[Axes, pd.DataFrame], None],
    *,
    size: tuple[float, float],
    across: int = 2,
    ylabel: str = "",
    sharey: bool = True,
    legend: int = 0,
) -> Figure:
    """Let ``draw`` fill a panel for each group.

    Parameters
    ----------
    size : pair of float
        Of a panel, in inches.
    across : int
        Panels in a row; two can be read on a telephone, too.
    legend : int
        Columns of the legend below, which explains all panels; 0 for none.
    """
    columns = min(across, len(groups))
    rows = math.ceil(len(groups) / columns)
    figure = Figure(figsize=(size[0] * columns, size[1] * rows), layout="constrained")
    axes = figure.subplots(rows, columns, sharey=sharey, squeeze=False)
    for axis, (title, frame) in zip(axes.flat, groups, strict=False):
        draw(axis, frame)
        axis.set_title(title, fontsize=10)
        axis.grid(alpha=0.3)
        if axis.get_yscale() == "log":  # numbers in place of powers
            axis.yaxis.set_major_formatter(FormatStrFormatter("%g"))
            axis.yaxis.set_minor_formatter(NullFormatter())
    for axis in axes.flat[len(groups) :]:
        axis.remove()
    figure.supylabel(ylabel, size=10)
    if legend:
        explained: dict[str, Any] = {}
        for axis in figure.axes:
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
                explained.setdefault(label, handle)
        handles, labels = list(explained.values()), list(explained)
        figure.legend(handles, labels, loc="outside lower center", ncols=legend, fontsize=9)
    return figure


def lines(axis: Axes, runs: pd.DataFrame, x: str, y: str, *, by: str, style: str = "o-") -> None:
    """Draw the means over seeds as a line, for each value of ``by``."""
    for (name, own), colour in zip(runs.groupby(by, sort=False), cycle(COLOURS), strict=False):
        means = own.groupby(x)[y].mean()
        axis.plot(means.index, means, style, ms=4, color=colour, label=str(name))


def columns(axis: Axes, runs: pd.DataFrame, by: str, y: str, blue: Sequence[str] = ()) -> None:
    """Draw a column of dots, with a bar at their mean, for each value of ``by``, on a log axis."""
    names = list(runs[by].unique())
    for place, name in enumerate(names):
        values = runs.loc[runs[by] == name, y].clip(lower=LEAST).to_numpy(dtype=np.float64)
        colour = BLUE if name in blue else GREY
        axis.plot(np.full(len(values), place), values, "o", ms=4, alpha=0.5, color=colour)
        axis.plot([place - 0.3, place + 0.3], [values.mean()] * 2, lw=2, color=colour)
    axis.set(yscale="log")
    axis.set_xticks(range(len(names)), names, rotation=45, ha="right", fontsize=8)


def written(out: Path, contents: Mapping[str, pd.DataFrame | Figure]) -> list[Path]:
    """Write frames as CSV and figures as PNG into a folder, by name, never half a file."""
    out.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        draft = out / f".draft-{name}"
        if isinstance(content, pd.DataFrame):
            content.to_csv(draft, index=False)
        else:
            content.savefig(draft, dpi=150, format="png")
        draft.replace(out / name)
    return [out / name for name in contents]
