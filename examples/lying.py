"""Is it worth lying to the forecaster?

Beside ten honest agents five report the opposite of their tastes, or others and act on them, in a
market where what is crowded yields less a round later. Each run has a twin with the same seed in
which all tell the truth, and the gain is the difference in loss.

    python examples/lying.py figures

prints how many of the two false reports gain significantly, and the larger gain. The gains of liars
and of the others are in figures/lying.csv and figures/lying.png.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from helpers.estimates import Estimate, estimate_means
from helpers.output import draw_bars, new_figure, publish
from scipy import stats

from regretless import load, scenarios

MARKET = Path(scenarios.__file__).parent / "studies/catalogue/scenarios/reports.toml"
ROUNDS = 300
SEEDS = range(5)
LIARS = 5
HONEST = 10
SIGNIFICANCE = 0.05  # of both reports together (Bonferroni)
OPPOSITE = [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]  # weights of three tastes
IN_TURN = [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]
TRUTH: dict[str, object] = {}
LIES: dict[str, dict[str, object]] = {
    "the opposite, acts on the truth": {"cohort.liars.reports": {"weights": OPPOSITE}},
    "the baskets in turn, acts on it": {
        "cohort.liars.reports": {"weights": IN_TURN},
        "cohort.liars.acts_on": "report",
    },
}


def mean_losses(report: dict[str, object], seed: int) -> pd.Series:
    """Play the market; return the mean loss by cohort, of liars and of the others."""
    settings = {"cohort.liars.count": LIARS, **report}
    model = load(str(MARKET), rounds=ROUNDS, **settings).build(seed=seed)
    model.run()
    return model.agents_frame().groupby("cohort")["mean_loss"].mean()


runs = []
for seed in SEEDS:
    honest_losses = mean_losses(TRUTH, seed)
    for name, report in LIES.items():
        gains = honest_losses - mean_losses(report, seed)
        for cohort, gain in gains.items():
            runs.append({"lie": name, "who": cohort, "gain": gain})
table_of_runs = pd.DataFrame(runs)
means = estimate_means(table_of_runs, ["lie", "who"], "gain")

runs_of_liars = table_of_runs[table_of_runs["who"] == "liars"]
significant = 0
for _, gains in runs_of_liars.groupby("lie", sort=False)["gain"]:
    test = stats.ttest_1samp(gains, 0.0, alternative="greater")
    significant += int(test.pvalue < SIGNIFICANCE / len(LIES))
means_of_liars = means[means["who"] == "liars"]
best = means_of_liars.nlargest(1, "mean").iloc[0]
largest_gain = Estimate(best["mean"], best["low"], best["high"])
answer = (
    f"{'Sometimes' if significant else 'Not here'}: {significant} of {len(LIES)} false reports by "
    f"{LIARS} of {LIARS + HONEST} agents gain significantly (5 % for both together). The larger "
    f"gain, of '{best['lie']}', is {largest_gain:.4f} per round."
)

figure, axes = new_figure(
    "Gain from a false report, paired with the true one", measured="gain in average loss per round"
)
draw_bars(axes, means, place="who", colour="lie")
axes.axhline(0, color="black", linewidth=0.8)
_, top = axes.get_ylim()
axes.set_ylim(top=1.3 * top)  # room for the legend above the intervals
axes.legend(frameon=False)
publish("lying", answer=answer, table=means, figure=figure)
