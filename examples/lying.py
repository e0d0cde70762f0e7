"""Is it worth lying to the forecaster?

Beside ten honest agents five report the opposite of their tastes, or others and act on them, in a
market where what is crowded yields less a round later. Each run has a twin with the same seed in
which all tell the truth, and the gain is the difference in loss.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from scipy import stats
from shown import averages, bars, finish, said, sheet

from regretless import load, scenarios

MARKET = Path(scenarios.__file__).parent / "studies/catalogue/scenarios/reports.toml"
ROUNDS, SEEDS, LIARS = 300, range(5), 5
OPPOSITE = [[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]
TURNED = [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]
LIES = {
    "the opposite, acts on the truth": {"reports": {"weights": OPPOSITE}},
    "the baskets in turn, acts on it": {"reports": {"weights": TURNED}, "acts_on": "report"},
}


def losses(seed: int, lie: dict[str, object]) -> pd.Series:
    """Mean loss of liars and of outsiders."""
    keys = {"cohort.liars.count": LIARS} | {f"cohort.liars.{key}": lie[key] for key in lie}
    model = load(str(MARKET), rounds=ROUNDS, **keys).build(seed=seed)
    model.run()
    return model.agents_frame().groupby("cohort")["mean_loss"].mean()


rows = []
for seed in SEEDS:
    honest = losses(seed, {})
    for name, lie in LIES.items():
        gain = honest - losses(seed, lie)
        rows += [{"lie": name, "who": who, "gain": gained} for who, gained in gain.items()]
runs = pd.DataFrame(rows)
means = averages(runs, ["lie", "who"], "gain")
own = means[means["who"] == "liars"]
chance = [  # that no gain is there and one as large is seen
    stats.ttest_1samp(gains["gain"], 0.0, alternative="greater").pvalue
    for _, gains in runs[runs["who"] == "liars"].groupby("lie", sort=False)
]
pays = sum(value < 0.05 / len(chance) for value in chance)  # as many are tried
best = own.loc[own["mean"].idxmax()]
answer = (
    f"{'Sometimes' if pays else 'Not here'}: {pays} of {len(own)} false reports by {LIARS} of "
    f"{LIARS + 10} agents gain significantly (5 % for both together). The larger gain, of "
    f"'{best['lie']}', is {said(best, 4)} per round."
)
figure, axes = sheet(
    "Gain from a false report, paired with the true one", "gain in average loss per round"
)
bars(axes, means, "lie", "who")
axes.axhline(0, color="black", linewidth=0.8)
axes.legend(frameon=False)
finish("lying", means, figure, answer)
