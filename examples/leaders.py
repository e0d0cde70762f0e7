"""Does regret that is certified to be small stop a leader?

In two games a leader commits to a strategy. In the first it is a single action. In the second it is
a mixture that leaves the agents indifferent, so that they err while they learn it: the leader plays
it exactly, and with a margin for the length of the run. In the third game a leader trains its
followers: it plays one action for half of the rounds and then another. The surplus is the leader's
payoff minus its commitment value, which is the most that it gets by committing while the agent
best-responds.

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

MIXED_GAME = {"game.file": "conitzer-sandholm.csv"}
COMMITS = "an action"
COMMITS_EXACTLY = "exact mixture"
COMMITS_WITH_MARGIN = "with a margin"
TRAINS = "turns halfway"
SCENARIOS = {
    COMMITS: ("setting-a-standard", {"rounds": 250}),
    COMMITS_EXACTLY: ("setting-a-standard", MIXED_GAME | {"rounds": 400, "adversary.margin": 0}),
    COMMITS_WITH_MARGIN: ("setting-a-standard", MIXED_GAME | {"rounds": 400}),
    TRAINS: ("beating-mean-based-learners", {"rounds": 600}),
}
# The number of seeds; nothing is drawn where a leader commits to an action, or turns.
N_SEEDS = {COMMITS: 2, COMMITS_EXACTLY: 8, COMMITS_WITH_MARGIN: 8, TRAINS: 2}
FOLLOWERS = "follow the forecast"
HEDGE = "no external regret"
DESCRIPTIONS = {"followers": FOLLOWERS, "hedge": HEDGE, "blum-mansour": "no swap regret"}


def surplus_and_regret(leader: str, seed: int) -> pd.DataFrame:
    """Play a game; return the leader's surplus over each kind of agents, and their swap regret."""
    name, changes = SCENARIOS[leader]
    model = load(name, **changes).build(seed=seed)
    model.run()
    table = model.agents_frame()
    table["agents"] = table["cohort"].map(DESCRIPTIONS)
    by_kind = table.groupby("agents", sort=False)[["leader_surplus", "swap_regret"]]
    return by_kind.mean().reset_index()


tables = []
for leader, n_seeds in N_SEEDS.items():
    for seed in range(n_seeds):
        measured = surplus_and_regret(leader, seed)
        tables.append(measured.assign(leader=leader))
runs = pd.concat(tables)
surplus = estimate_means(runs, ["leader", "agents"], "leader_surplus")
regret = estimate_means(runs, ["leader", "agents"], "swap_regret")

over_hedge = find_estimate(surplus, leader=TRAINS, agents=HEDGE)
over_followers = find_estimate(surplus, leader=TRAINS, agents=FOLLOWERS)
by_commitment = find_estimate(surplus, leader=COMMITS, agents=FOLLOWERS)
by_exact_mixture = find_estimate(surplus, leader=COMMITS_EXACTLY, agents=FOLLOWERS)
by_margin = find_estimate(surplus, leader=COMMITS_WITH_MARGIN, agents=FOLLOWERS)
regret_of_followers = find_estimate(regret, leader=COMMITS, agents=FOLLOWERS)
answer = (
    f"It stops a leader that trains its followers: surplus {over_hedge:.3f} against a learner "
    f"without external regret, {over_followers:.3f} against followers. It does not stop one that "
    f"commits to an action: surplus {by_commitment:.3f}, so it gets its commitment value, though "
    f"followers have a swap regret of {regret_of_followers:.4f}. One that has to mix for its value "
    f"of 3.5 has a surplus of {by_exact_mixture:.3f} with the optimum, which leaves followers "
    f"indifferent, and {by_margin:.3f} with a margin for the length of the run."
)

figure, axes = new_figure(
    "Leader surplus, by leader and by who responds", measured="surplus per round"
)
draw_bars(axes, surplus, place="leader", colour="agents")
axes.axhline(0, color="black", linewidth=0.8)
axes.set_xlabel("what the leader commits to, or that it trains and turns")
axes.legend(frameon=False)
table = pd.concat([surplus.assign(measure="surplus"), regret.assign(measure="swap regret")])
publish("leaders", answer=answer, table=table, figure=figure)
