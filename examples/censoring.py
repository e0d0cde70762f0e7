"""What does censoring do to a newsvendor's forecast?

Ten shops stock up before they know demand, which is uniform; a unit short costs three times as much
as one left over, so that the best level is 0.75. They forecast from demand, or from sales alone:
a shop that is sold out does not see the demand that it missed.

    python examples/censoring.py figures

prints what shops of either kind stock in the second half of the rounds, what they earn, and their
regret at what they saw. The numbers are in figures/censoring.csv, the stock by round in
figures/censoring.png.
"""

from __future__ import annotations

import pandas as pd
from helpers.estimates import estimate_means, find_estimate
from helpers.output import COLOURS, new_figure, publish

from regretless import MarketModel, load

ROUNDS = 300
SEEDS = range(12)
BEST_LEVEL = 0.75
SMOOTHED_OVER = 20  # rounds, in the figure


def play(seen: str, seed: int) -> MarketModel:
    """Play the shops' market, where they see "demand" or "sales"."""
    settings = {"market.seen": seen}
    model = load("shops", rounds=ROUNDS, **settings).build(seed=seed)
    model.run()
    return model


def earned_per_round(model: MarketModel) -> float:
    """Return what a shop has earned per round, on average over shops."""
    cash = model.accounts_frame().groupby("round")["cash"].mean()
    return float(cash.iloc[-1] - cash.iloc[0]) / (ROUNDS - 1)


levels = []
rows = []
for seen in ("demand", "sales"):
    for seed in SEEDS:
        model = play(seen, seed)
        level = model.rounds_frame()["level_0"]
        levels.append(level.to_frame().assign(seen=seen))
        measures = {
            "level": level.iloc[ROUNDS // 2 :].mean(),
            "regret": model.agents_frame()["swap_regret"].max(),
            "earned": earned_per_round(model),
        }
        rows.append({"seen": seen, **measures})
runs = pd.DataFrame(rows).melt("seen", var_name="measure")
means = estimate_means(runs, ["measure", "seen"], "value")

level_by_sales = find_estimate(means, measure="level", seen="sales")
level_by_demand = find_estimate(means, measure="level", seen="demand")
earned_by_sales = find_estimate(means, measure="earned", seen="sales")
earned_by_demand = find_estimate(means, measure="earned", seen="demand")
regret_by_sales = find_estimate(means, measure="regret", seen="sales")
regret_by_demand = find_estimate(means, measure="regret", seen="demand")
answer = (
    f"Shops that see sales only stock {level_by_sales:.3f} of the range, where {BEST_LEVEL} is "
    f"best, and earn {earned_by_sales:.3f} per round; shops that see demand "
    f"{level_by_demand:.3f} and {earned_by_demand:.3f}. Regret on what they saw does not show the "
    f"harm: at worst {regret_by_sales:.4f} with sales, {regret_by_demand:.4f} with demand."
)

figure, axes = new_figure(
    "Stock of shops that see demand, and of shops that see sales",
    measured="stock, share of the range",
)
for colour, (what, level) in zip(COLOURS, pd.concat(levels).groupby("seen"), strict=False):
    mean_level = level["level_0"].groupby(level.index).mean()  # by round
    smooth_level = mean_level.rolling(SMOOTHED_OVER, min_periods=1).mean()
    axes.plot(smooth_level, color=colour, label=f"sees {what}")
axes.axhline(BEST_LEVEL, color="black", linewidth=0.8, linestyle=":", label="best")
axes.set_xlabel("round (mean of the last 20 rounds)")
axes.set_ylim(0, 1)
axes.legend(frameon=False)
publish("censoring", answer=answer, table=means, figure=figure)
