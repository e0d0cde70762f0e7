"""The table `concentration`: how outcomes of nature are spread.

An outcome that an adversary draws from nature has a beta distribution; the table has its density by
mean and concentration, and the figure a panel for each mean.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import beta

from paper import figures
from paper.harness import Row, Table

CONCENTRATIONS = (100, 20, 2, 0.5, 0.05)
OUTCOMES = np.linspace(0.001, 0.999, 999)


def densities(mean: float) -> Iterator[Row]:
    """Return the densities of a mean."""
    for concentration in CONCENTRATIONS:
        distribution = beta(concentration * mean, concentration * (1 - mean))
        for outcome in OUTCOMES:
            yield {
                "mean": mean,
                "concentration": concentration,
                "outcome": outcome,
                "density": distribution.pdf(outcome),
            }


def figure_of(table: pd.DataFrame) -> dict[str, Figure]:
    """Draw a panel for each mean."""

    def draw(axis: Axes, rows: pd.DataFrame) -> None:
        figures.draw_lines(axis, rows, "outcome", "density", by="concentration", style="-")
        axis.set(xlabel="outcome", xlim=(0, 1), ylim=(0, 9.5))

    labels = "concentration " + table["concentration"].map("{:g}".format)
    groups = [
        (f"mean {mean}", rows)
        for mean, rows in figures.split(table.assign(concentration=labels), "mean")
    ]
    figure = figures.draw_panels(groups, draw, size=(3.4, 3.2), ylabel="density", legend=2)
    return {"concentration.png": figure}


TABLES = {
    "concentration": Table(
        densities, ["mean", "concentration"], lambda: (0.5, 0.3), attachments=figure_of
    )
}
