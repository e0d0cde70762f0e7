"""Does regret that is certified to be small stop a leader?

In one game a leader commits to a mixed strategy. In the other a leader trains its followers: it
plays one action for half of the rounds and then another. The surplus is the leader's payoff minus
its commitment value, which is the most that it gets by committing while the agent best-responds.

    python examples/leaders.py figures

prints the leader's surplus over agents who follow the forecast, and over learners. The surplus and
the swap regret of three kinds of agents are in figures/leaders.csv, the surplus in
figures/leaders.png.
"""

from __future__ import annotations

import pandas as pd
from helpers.estimates import estimate_means, find_estimate
from helpers.output import draw_bars, new_figure, publish

from regretless import load

SEEDS = range(2)
SCENARIOS = {"commits": "setting-a-standard", "trains, then turns": "beating-mean-based-learners"}
ROUNDS = {"commits": 250, "trains, then turns": 600}
FOLLOWERS = "follow the forecast"
HEDGE = "no external regret"
DESCRIPTIONS = {"followers": FOLLOWERS, "hedge": HEDGE, "blum-mansour": "no swap regret"}


def surplus_and_regret(leader: str, seed: int) -> pd.DataFrame:
    """Play a game; return the leader's surplus over each kind of agents, and their swap regret."""
    model = load(SCENARIOS[leader], rounds=ROUNDS[leader]).build(seed=seed)
    model.run()
    by_cohort = model.agents_frame().groupby("cohort")[["leader_surplus", "swap_regret"]].mean()
    by_cohort = by_cohort.loc[list(DESCRIPTIONS)].rename(index=DESCRIPTIONS)
    return by_cohort.rename_axis("agents").reset_index()


tables = []
for leader in SCENARIOS:
    for seed in SEEDS:
        measured = surplus_and_regret(leader, seed)
        tables.append(measured.assign(leader=leader))
runs = pd.concat(tables)
surplus = estimate_means(runs, ["leader", "agents"], "leader_surplus")
regret = estimate_means(runs, ["leader", "agents"], "swap_regret")

over_hedge = find_estimate(surplus, leader="trains, then turns", agents=HEDGE)
over_followers = find_estimate(surplus, leader="trains, then turns", agents=FOLLOWERS)
by_commitment = find_estimate(surplus, leader="commits", agents=FOLLOWERS)
regret_of_followers = find_estimate(regret, leader="commits", agents=FOLLOWERS)
answer = (
    f"It stops a leader that trains its followers: surplus {over_hedge:.3f} against a learner "
    f"without external regret, {over_followers:.3f} against followers. It does not stop one that "
    f"commits: surplus {by_commitment:.3f}, so it gets its commitment value, though followers have "
    f"a swap regret of {regret_of_followers:.4f}."
)

figure, axes = new_figure(
    "Leader surplus, by leader and by who responds", measured="surplus per round"
)
draw_bars(axes, surplus, place="leader", colour="agents")
axes.axhline(0, color="black", linewidth=0.8)
axes.set_xlabel("what the leader does")
axes.legend(frameon=False)
table = pd.concat([surplus.assign(measure="surplus"), regret.assign(measure="swap regret")])
table = table[["measure", "leader", "agents", "mean", "low", "high"]]
publish("leaders", answer=answer, table=table, figure=figure)
