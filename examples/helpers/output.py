"""What an example leaves: an answer on the screen, and a table and a figure in a folder.

Every example is started as ``python examples/NAME.py [FOLDER]``; without a name the folder is the
one that it is started in.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import pandas as pd

mpl.use("Agg")  # draws into files and opens no window
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#00796b", "#c2571a", "#5e548e", "#8a8d91", "#c9a227", "#3f88c5")
WIDTH_OF_PLACE = 0.8  # of the bars at one place together, where places are 1 apart
WIDTH_OF_BARS = 0.72  # the rest of it is left between them


def new_figure(title: str, measured: str) -> tuple[Figure, Axes]:
    """Make a figure with one panel; ``measured`` is the label of its vertical axis."""
    figure, axes = plt.subplots(figsize=(6.4, 3.8))
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_ylabel(measured)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def draw_bars(axes: Axes, means: pd.DataFrame, *, place: str, colour: str) -> None:
    """Draw the means of a table as bars, with their intervals.

    ``place`` and ``colour`` are two key columns: the values of the first lie along the horizontal
    axis, and each value of the second has a bar at every place, in a colour of its own.
    """
    places = list(means[place].unique())
    groups = list(means[colour].unique())
    for index, group in enumerate(groups):
        rows = means[means[colour] == group].set_index(place).reindex(places)
        shift = (index - (len(groups) - 1) / 2) * WIDTH_OF_PLACE / len(groups)
        positions = [position + shift for position in range(len(places))]
        axes.bar(
            positions,
            rows["mean"],
            WIDTH_OF_BARS / len(groups),
            color=COLOURS[index % len(COLOURS)],
            label=str(group),
        )
        lengths = [rows["mean"] - rows["low"], rows["high"] - rows["mean"]]
        axes.errorbar(positions, rows["mean"], yerr=lengths, fmt="none", ecolor="black", capsize=3)
    axes.set_xticks(range(len(places)), [str(name) for name in places])


def publish(name: str, *, answer: str, table: pd.DataFrame, figure: Figure) -> None:
    """Print the answer, and write ``name.csv`` and ``name.png`` into the folder that was given."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / f"{name}.csv", index=False)
    figure.savefig(folder / f"{name}.png", dpi=120, bbox_inches="tight")
    plt.close(figure)
    print(answer)
