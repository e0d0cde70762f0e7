"""Draw how outcomes of nature are spread: the beta density by mean and concentration.

    python -m paper.concentration

draws the figure on the page about adversaries.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import beta

FIGURE = Path(__file__).parent.parent / "docs/figures/concentration.png"
CONCENTRATIONS = {100: "#1b4965", 20: "#00796b", 2: "#8a8d91", 0.5: "#c2571a", 0.05: "#5e548e"}

if __name__ == "__main__":
    outcomes, figure = np.linspace(0.001, 0.999, 999), Figure(figsize=(9, 3.4))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, mean in zip(panels, (0.5, 0.3), strict=True):
        for c, colour in CONCENTRATIONS.items():
            density = beta(c * mean, c * (1 - mean)).pdf(outcomes)
            axes.plot(outcomes, density, color=colour, label=f"concentration {c:g}")
        axes.set(title=f"mean {mean}", xlabel="outcome", xlim=(0, 1), ylim=(0, 9.5))
    panels[0].set_ylabel("density")
    panels[1].legend(frameon=False, loc="upper right")
    figure.savefig(FIGURE, dpi=120, bbox_inches="tight")
