"""Does regret that is certified to be small stop a leader?

In one game a maker commits to its standard; in the other a leader trains its followers, by playing
one thing for half of the time and then another. What each takes from an agent is set against its
commitment value: what it gets by committing to the best law from somebody who responds to it.
"""

from __future__ import annotations

import pandas as pd
from shown import averages, bars, finish, said, sheet

from regretless import load

SEEDS = range(2)
GAMES = {
    "commits": ("setting-a-standard", 250),
    "trains, then turns": ("beating-mean-based-learners", 600),
}
WHO = {
    "followers": "follow the forecast",
    "hedge": "no external regret",
    "blum-mansour": "no swap regret",
}


def taken(game: str, rounds: int, seed: int) -> pd.DataFrame:
    """Return surplus over the commitment value, and swap regret, of each kind of agent."""
    model = load(game, rounds=rounds).build(seed=seed)
    model.run()
    agents = model.agents_frame().groupby("cohort")[["leader_surplus", "swap_regret"]].mean()
    return agents.loc[list(WHO)].rename(index=WHO).rename_axis("agents").reset_index()


runs = pd.concat(
    taken(game, rounds, seed).assign(leader=name)
    for name, (game, rounds) in GAMES.items()
    for seed in SEEDS
)
means = averages(runs, ["leader", "agents"], "leader_surplus")
regret = averages(runs, ["leader", "agents"], "swap_regret").set_index(["leader", "agents"])
of = means.set_index(["leader", "agents"])
ours, learner = WHO["followers"], WHO["hedge"]
answer = (
    "It stops one that trains, not one that commits. Beyond its commitment value a leader that "
    f"trains takes {said(of.loc[('trains, then turns', learner)])} from a learner without external "
    f"regret and {said(of.loc[('trains, then turns', ours)])} from followers of the forecast. One "
    f"that commits gets that value from followers, {said(of.loc[('commits', ours)])} beyond it, "
    f"though they regret no more than {said(regret.loc[('commits', ours)], 4)}."
)
figure, axes = sheet(
    "Beyond its commitment value a leader gets nothing from followers", "surplus a round"
)
bars(axes, means, "agents", "leader")
axes.axhline(0, color="black", linewidth=0.8)
axes.set_xlabel("what the leader does")
axes.legend(frameon=False)
table = pd.concat({"surplus": of, "swap regret": regret}, names=["measure"]).reset_index()
finish("leaders", table, figure, answer)
