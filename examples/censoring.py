"""What does censoring do to a newsvendor's forecast?

Ten shops stock up before they know demand, which is uniform; a unit short costs three times as much
as one left over, so that the best level is 0.75. They forecast from demand, or from sales alone:
a shop that is sold out does not see the demand that it missed.
"""

from __future__ import annotations

import pandas as pd
from shown import COLOURS, averages, finish, said, sheet

from regretless import load

ROUNDS, SEEDS, BEST = 300, range(12), 0.75


def season(seen: str, seed: int) -> tuple[pd.DataFrame, float, float]:
    """Return the rounds, the worst regret at what was seen, and what a shop earned in a round."""
    model = load("shops", rounds=ROUNDS, **{"market.seen": seen}).build(seed=seed)
    model.run()
    cash = model.accounts_frame().groupby("round")["cash"].mean()
    earned = (cash.iloc[-1] - cash.iloc[0]) / (ROUNDS - 1)
    return model.rounds_frame(), float(model.agents_frame()["swap_regret"].max()), float(earned)


levels, rows = [], []
for seen in ("demand", "sales"):
    for seed in SEEDS:
        log, regret, earned = season(seen, seed)
        levels.append(log[["round", "level_0"]].assign(seen=seen))
        late = log["level_0"].iloc[ROUNDS // 2 :].mean()
        rows.append({"seen": seen, "seed": seed, "level": late, "regret": regret, "earned": earned})
runs = pd.DataFrame(rows)
level, regret, earned = (
    averages(runs, ["seen"], name).set_index("seen") for name in ("level", "regret", "earned")
)
answer = (
    f"Shops that see sales only stock {said(level.loc['sales'])} of the range, where {BEST} is "
    f"best, and earn {said(earned.loc['sales'])} per round; shops that see demand "
    f"{said(level.loc['demand'])} and {said(earned.loc['demand'])}. Regret on what they saw does "
    f"not show the harm: at worst {said(regret.loc['sales'], 4)} with sales, "
    f"{said(regret.loc['demand'], 4)} with demand."
)
figure, axes = sheet(
    "Stock of shops that see demand, and of shops that see sales", "stock, share of the range"
)
for colour, (seen, log) in zip(COLOURS, pd.concat(levels).groupby("seen"), strict=False):
    smooth = log.groupby("round")["level_0"].mean().rolling(20, min_periods=1).mean()
    axes.plot(smooth, color=colour, label=f"sees {seen}")
axes.axhline(BEST, color="black", linewidth=0.8, linestyle=":", label="best")
axes.set_xlabel("round (mean of the last 20 rounds)")
axes.set_ylim(0, 1)
axes.legend(frameon=False)
table = pd.concat({"level": level, "regret": regret, "earned": earned}, names=["measure"])
finish("censoring", table.reset_index(), figure, answer)
