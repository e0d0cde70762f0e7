"""Who pays for latency?

News moves what a unit is worth while quotes rest. Three snipers are as fast as two market makers;
as controls, they are slower, or all orders of a round trade in one batch. Four noise traders come
last. Each run has a twin of the same seed in which the snipers are slower. What a cohort pays for
the snipers' speed is the difference in what its agents earn, and the difference in their personal
swap regret, both in units of utility.

    python examples/latency.py figures

prints what makers, noise traders and snipers pay, and whether their regret shows it. All of it is
in figures/latency.csv, fast snipers are in figures/latency.png.
"""

from __future__ import annotations

import pandas as pd
from helpers.estimates import estimate_means, find_estimate
from helpers.output import draw_bars, new_figure, publish

from regretless import load

ROUNDS = 800
SEEDS = range(6)
ONLY_LAST_ROUND = 10**6  # rounds between two entries of the regret log, more than are played
SLOWER: dict[str, object] = {"market.latency": {"snipers": 0.5, "noise": 1.0}}
CASES: dict[str, dict[str, object]] = {
    "as fast": {},  # as the scenario has it
    "in a batch": {"market.matching": "batch"},
}


def losses_and_regrets(settings: dict[str, object], seed: int) -> pd.DataFrame:
    """Play the market; return the loss and the swap regret of an agent per round, by cohort."""
    scenario = load("sniping", rounds=ROUNDS, **settings)
    model = scenario.build(seed=seed, log_every=ONLY_LAST_ROUND)
    model.run()
    agents = model.agents_frame()  # measures there are normalised into [0, 1]
    agents["loss"] = agents["loss_offset"] + agents["loss_scale"] * agents["mean_loss"]
    agents["swap regret"] = agents["loss_scale"] * agents["swap_regret"]
    return agents.groupby("cohort")[["loss", "swap regret"]].mean()


runs = []
for seed in SEEDS:
    with_slower_snipers = losses_and_regrets(SLOWER, seed)
    for case, settings in CASES.items():
        paid = losses_and_regrets(settings, seed) - with_slower_snipers
        paid = paid.rename_axis("who").reset_index()
        paid = paid.melt("who", var_name="measure", value_name="paid")
        runs.append(paid.assign(case=case))
means = estimate_means(pd.concat(runs), ["case", "who", "measure"], "paid")

maker_pays = find_estimate(means, case="as fast", who="makers", measure="loss")
noise_trader_pays = find_estimate(means, case="as fast", who="noise", measure="loss")
sniper_pays = find_estimate(means, case="as fast", who="snipers", measure="loss")
maker_regret = find_estimate(means, case="as fast", who="makers", measure="swap regret")
noise_trader_regret = find_estimate(means, case="as fast", who="noise", measure="swap regret")
noise_trader_pays_in_batch = find_estimate(means, case="in a batch", who="noise", measure="loss")
answer = (
    f"Makers and noise traders. Fast snipers cost a maker {maker_pays:.4f} per round and a noise "
    f"trader {noise_trader_pays:.4f}; a sniper pays {sniper_pays:.4f}. Personal swap regret grows "
    f"by {maker_regret:.4f} and {noise_trader_regret:.4f}: it shows all that noise traders pay, "
    f"little of what makers pay. In batches a noise trader pays {noise_trader_pays_in_batch:.4f}."
)

figure, axes = new_figure("What the speed of snipers costs an agent", measured="per round")
draw_bars(axes, means[means["case"] == "as fast"], place="who", colour="measure")
axes.axhline(0, color="black", linewidth=0.8)
axes.legend(frameon=False)
publish("latency", answer=answer, table=means, figure=figure)
