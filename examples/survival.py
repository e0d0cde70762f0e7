"""Who survives in a market that pays by results?

Thirty bettors begin equally rich and bet shares of their wealth on rain; what one wins another
loses. Ten follow the forecast, ten learn by themselves (Hedge), ten bet by past frequencies. The
odds are always the same, or they drift.
"""

from __future__ import annotations

import pandas as pd
from shown import averages, bars, below, finish, said, sheet

from regretless import load

ROUNDS, SEEDS = 400, range(5)
ODDS = {
    "drift": {
        "kind": "drifting",
        "outcomes": 1,
        "step": 0.05,
        "concentration": 0.01,
        "extreme": True,
    },
    "stay": {"kind": "iid", "outcomes": 1, "mean": 0.7, "concentration": 0.01, "extreme": True},
}


def shares(odds: str, seed: int) -> pd.Series:
    """Shares of all wealth at the end, by cohort."""
    model = load("betting", rounds=ROUNDS, adversary=ODDS[odds]).build(seed=seed)
    model.run()
    wealth = model.accounts_frame().query("round == round.max()")
    owned = wealth.merge(model.agents_frame()[["agent", "cohort"]], on="agent")
    total = owned.groupby("cohort", sort=False)["cash"].sum()
    return total / total.sum()


rows = [
    {"odds": odds, "seed": seed, "who": who, "share": share}
    for odds in ODDS
    for seed in SEEDS
    for who, share in shares(odds, seed).items()
]
means = averages(pd.DataFrame(rows), ["odds", "who"], "share", within=(0.0, 1.0))
own = means.set_index(["odds", "who"])
steady, past = own.loc[("stay", "followers")], own.loc[("stay", "frequencies")]
answer = (
    "Who loses least by the logarithmic score. Followers of the forecast end with "
    f"{said(own.loc[('drift', 'followers')])} of all wealth where the odds drift. Are they ahead "
    f"of past frequencies where the odds stay? {below(past, steady)}: {said(steady)} against "
    f"{said(past)}."
)
figure, axes = sheet(
    "Where the odds drift, wealth goes to followers of the forecast", "share of wealth"
)
bars(axes, means, "who", "odds")
axes.axhline(1 / 3, color="black", linewidth=0.8, linestyle=":")
axes.set_xlabel("the odds (dotted: what each group began with)")
axes.legend(frameon=False)
finish("survival", means, figure, answer)
