"""Draw how outcomes of nature are spread: the beta density by mean and concentration.

    python -m benchmarks.concentration [FILE.png]

Without a file the figure is the one on the page about adversaries.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from scipy.stats import beta

mpl.use("Agg")  # no window
from matplotlib import pyplot as plt

FIGURE = Path(__file__).parent.parent / "docs/figures/concentration.png"
CONCENTRATIONS = {100: "#1b4965", 20: "#00796b", 2: "#8a8d91", 0.5: "#c2571a", 0.05: "#5e548e"}
MEANS = (0.5, 0.3)
HIGHEST = 9.5  # density that is shown


def draw(file: Path) -> None:
    """Write the figure: a panel for each mean, a line for each concentration."""
    outcomes = np.linspace(0.001, 0.999, 999)
    figure, panels = plt.subplots(1, len(MEANS), figsize=(9, 3.4), sharey=True)
    for axes, mean in zip(panels, MEANS, strict=True):
        for c, colour in CONCENTRATIONS.items():
            density = beta(c * mean, c * (1 - mean)).pdf(outcomes)
            axes.plot(outcomes, density, color=colour, label=f"concentration {c:g}")
        axes.set(title=f"mean {mean}", xlabel="outcome", xlim=(0, 1), ylim=(0, HIGHEST))
    panels[0].set_ylabel("density")
    panels[1].legend(frameon=False, loc="upper right")
    figure.savefig(file, dpi=120, bbox_inches="tight")


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else FIGURE)
