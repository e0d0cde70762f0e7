"""What all examples do alike: repeat with other seeds, say a number with its interval, show it.

An example is started as ``python examples/NAME.py [FOLDER]``. It prints its answer and leaves a
table and a figure in the folder, the present one without a name.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd

from regretless.scenarios.studies.analysis import measures as analysis

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for ``paper``, which is not installed
mpl.use("Agg")  # no window
from matplotlib import pyplot as plt

COLOURS = ("#00796b", "#c2571a", "#5e548e", "#8a8d91", "#c9a227", "#3f88c5")


def averages(
    table: pd.DataFrame, keys: list[str], value: str, within: tuple[float, float] | None = None
) -> pd.DataFrame:
    """Average over what is not a key: mean with the ends of its 95 % Student interval.

    ``within`` is the range of what is measured, (0, 1) of a share: an interval that would leave it
    is taken on the logit scale.
    """
    groups = table.groupby(keys, sort=False)[value]
    found = groups.apply(lambda sample: analysis.interval(sample.to_numpy(), within))
    return pd.DataFrame(
        found.tolist(), index=found.index, columns=["mean", "low", "high"]
    ).reset_index()


def said(row: Any, digits: int = 3) -> str:
    """Write a mean with its interval."""
    return f"{row['mean']:.{digits}f} ({row['low']:.{digits}f} to {row['high']:.{digits}f})"


def below(less: Any, more: Any) -> str:
    """Say whether one mean is below another: "Yes" or "No" where their intervals are apart."""
    if less["high"] < more["low"]:
        return "Yes"
    return "No" if more["high"] < less["low"] else "No difference found"


def bars(axes: Any, table: pd.DataFrame, group: str, place: str) -> None:
    """Draw means with their intervals: a colour for each of a group, side by side at each place."""
    places, groups = list(dict.fromkeys(table[place])), list(dict.fromkeys(table[group]))
    for number, name in enumerate(groups):
        own = table[table[group] == name].set_index(place).reindex(places)
        left = [
            at + (number - (len(groups) - 1) / 2) * 0.8 / len(groups) for at in range(len(places))
        ]
        reach = [own["mean"] - own["low"], own["high"] - own["mean"]]
        colour = COLOURS[number % len(COLOURS)]
        axes.bar(left, own["mean"], 0.72 / len(groups), color=colour, label=str(name))
        axes.errorbar(left, own["mean"], yerr=reach, fmt="none", ecolor="black", capsize=3)
    axes.set_xticks(range(len(places)), [str(name) for name in places])


def finish(name: str, table: pd.DataFrame, figure: Any, answer: str) -> None:
    """Print the answer, and write the table and the figure."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / f"{name}.csv", index=False)
    figure.savefig(folder / f"{name}.png", dpi=120, bbox_inches="tight")
    plt.close(figure)
    print(answer)


def sheet(title: str, label: str) -> tuple[Any, Any]:
    """Make a figure with one panel: its title is the finding, its label what is measured."""
    figure, axes = plt.subplots(figsize=(6.4, 3.8))
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_ylabel(label)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes
