"""How tables of ``python -m paper`` are drawn and written: panels with lines or dots, and files.

A table's module calls ``draw_panels`` with its groups of rows and with a function that fills one
panel, such as ``draw_lines`` or ``draw_dots``. ``write_files`` writes all at once.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter

BLUE = "#0072B2"
VERMILION = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
SKY = "#56B4E9"
ORANGE = "#E69F00"
BLACK = "#000000"
GREY = "#999999"
COLOURS = (BLUE, VERMILION, GREEN, PURPLE, SKY, ORANGE, BLACK, GREY)
PIXELS_PER_INCH = 150  # of the sizes that tables give
LABEL_SCALE = (
    1.4  # how much larger labels, lines and dots are, so that a page on a telephone is read
)
MIN_DRAWN = 1e-5  # where logarithmic axes start; smaller regrets are drawn there

Groups = Sequence[tuple[str, pd.DataFrame]]


def split(table: pd.DataFrame, by: str) -> Groups:
    """Return the rows of each value of a column, in the table's order."""
    return [(str(name), rows) for name, rows in table.groupby(by, sort=False)]


def draw_panels(
    groups: Groups,
    draw: Callable[[Axes, pd.DataFrame], None],
    *,
    size: tuple[float, float],
    panels_per_row: int = 2,
    xlabel: str = "",
    ylabel: str = "",
    sharex: bool = False,
    sharey: bool = True,
    legend: int = 0,
) -> Figure:
    """Let ``draw`` fill a panel for each group, and return the figure.

    Parameters
    ----------
    groups : sequence of (str, DataFrame)
        Titles of the panels, and the rows that ``draw`` is called with.
    draw : function of a panel's axes and its rows
    size : pair of float
        Width and height of a panel, in inches.
    panels_per_row : int
        Two can be read on a telephone, too.
    xlabel : str
        Below all panels.
    ylabel : str
        Beside all panels.
    sharex, sharey : bool
        Whether all panels have the same horizontal axis, and the same vertical one.
    legend : int
        Columns of the legend below, which explains all panels; 0 for none.
    """
    columns = min(panels_per_row, len(groups))
    rows = math.ceil(len(groups) / columns)
    width, height = size
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, sharex=sharex, sharey=sharey, squeeze=False)
    for axis, (title, frame) in zip(axes.flat, groups, strict=False):
        draw(axis, frame)
        axis.set_title(title, fontsize=10)
        axis.grid(alpha=0.3)
        if axis.get_yscale() == "log":  # numbers in place of powers
            axis.yaxis.set_major_formatter(FormatStrFormatter("%g"))
            axis.yaxis.set_minor_formatter(NullFormatter())
    for axis in axes.flat[len(groups) :]:
        axis.remove()
    figure.supxlabel(xlabel, size=10)
    figure.supylabel(ylabel, size=10)
    if legend:
        handle_of_label: dict[str, Any] = {}
        for axis in figure.axes:
            handles, labels = axis.get_legend_handles_labels()
            for handle, label in zip(handles, labels, strict=True):
                handle_of_label.setdefault(label, handle)
        figure.legend(
            list(handle_of_label.values()),
            list(handle_of_label),
            loc="outside lower center",
            ncols=legend,
            fontsize=9,
        )
    return figure


def draw_lines(
    axis: Axes, runs: pd.DataFrame, x: str, y: str, *, by: str, style: str = "o-"
) -> None:
    """Draw the means of column ``y`` at each ``x`` as a line, for each value of ``by``."""
    groups = runs.groupby(by, sort=False)
    for (name, rows), colour in zip(groups, cycle(COLOURS), strict=False):
        means = rows.groupby(x)[y].mean()
        axis.plot(means.index, means, style, ms=4, color=colour, label=str(name))


def draw_dots(axis: Axes, runs: pd.DataFrame, by: str, x: str, blue: Sequence[str] = ()) -> None:
    """Draw a row of dots, with a bar at their mean, for each value of ``by``, on a log axis.

    The first value is at the top. ``blue`` are the values whose dots are blue; those of others are
    grey.
    """
    names = list(runs[by].unique())
    for position, name in enumerate(names):
        values = runs.loc[runs[by] == name, x].clip(lower=MIN_DRAWN).to_numpy(dtype=np.float64)
        colour = BLUE if name in blue else GREY
        axis.plot(values, np.full(len(values), position), "o", ms=4, alpha=0.5, color=colour)
        ends = [position - 0.3, position + 0.3]
        axis.plot([values.mean(), values.mean()], ends, lw=2, color=colour)
    axis.set(xscale="log", ylim=(len(names) - 0.5, -0.5))
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.xaxis.set_major_locator(LogLocator(base=100))  # every second power: labels have room
    axis.xaxis.set_major_formatter(FormatStrFormatter("%g"))
    axis.xaxis.set_minor_formatter(NullFormatter())


def write_files(out: Path, contents: Mapping[str, pd.DataFrame | Figure]) -> list[Path]:
    """Write frames as CSV and figures as PNG into a folder, by name, never half a file.

    A figure has as many pixels as its size in inches says at ``PIXELS_PER_INCH``. It is laid out
    on a smaller sheet with more pixels per inch, which enlarges what is drawn in points.
    """
    out.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        draft = out / f".draft-{name}"
        if isinstance(content, pd.DataFrame):
            content.to_csv(draft, index=False)
        else:
            width, height = content.get_size_inches()
            content.set_size_inches(width / LABEL_SCALE, height / LABEL_SCALE)
            content.savefig(draft, dpi=PIXELS_PER_INCH * LABEL_SCALE, format="png")
            content.set_size_inches(width, height)
        draft.replace(out / name)
    return [out / name for name in contents]
