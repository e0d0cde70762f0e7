"""Who pays for latency?

News moves what a unit is worth while quotes rest. Three snipers are as fast as two market makers;
as controls, they are slower, or all orders of a round trade in one batch. Four noise traders come
last. Each run has a twin of the same seed in which the snipers are slower. What a cohort pays for
the snipers' speed is the difference in what its agents earn, and the difference in their personal
swap regret, both in units of utility.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from shown import averages, bars, finish, said, sheet

from regretless import load

ROUNDS, SEEDS = 800, range(6)
SLOWER: dict[str, Any] = {"market.latency": {"snipers": 0.5, "noise": 1.0}}
CASES: dict[str, dict[str, Any]] = {"as fast": {}, "in a batch": {"market.matching": "batch"}}


def measured(keys: dict[str, Any], seed: int) -> pd.DataFrame:
    """Return what agents of each cohort lose, and their swap regret, per round."""
    model = load("sniping", rounds=ROUNDS, **keys).build(seed=seed, log_every=10**6)
    model.run()
    agents = model.agents_frame()
    agents["loss"] = agents["loss_offset"] + agents["loss_scale"] * agents["mean_loss"]
    agents["swap regret"] = agents["loss_scale"] * agents["swap_regret"]
    return agents.groupby("cohort")[["loss", "swap regret"]].mean()


rows = []
for seed in SEEDS:
    slower = measured(SLOWER, seed)
    for case, keys in CASES.items():
        paid = (measured(keys, seed) - slower).rename_axis("who").reset_index()
        paid = paid.melt("who", var_name="measure", value_name="paid")
        rows.append(paid.assign(case=case))
means = averages(pd.concat(rows), ["case", "who", "measure"], "paid")
of = means.set_index(["case", "who", "measure"]).T
fast, batch = of["as fast"], of["in a batch"]
answer = (
    f"Makers and noise traders. Fast snipers cost a maker {said(fast['makers', 'loss'], 4)} per "
    f"round and a noise trader {said(fast['noise', 'loss'], 4)}; a sniper pays "
    f"{said(fast['snipers', 'loss'], 4)}. Personal swap regret grows by "
    f"{said(fast['makers', 'swap regret'], 4)} and {said(fast['noise', 'swap regret'], 4)}: it "
    "shows all that noise traders pay, little of what makers pay. In batches a noise trader pays "
    f"{said(batch['noise', 'loss'], 4)}."
)
figure, axes = sheet("What the speed of snipers costs an agent", "per round")
bars(axes, means[means["case"] == "as fast"], "measure", "who")
axes.axhline(0, color="black", linewidth=0.8)
axes.legend(frameon=False)
finish("latency", means, figure, answer)
