"""Does regret that is certified to be small stop a leader?

In one game a leader commits to a mixed strategy. In the other a leader trains its followers: it
plays one action for half of the rounds and then another. The surplus is the leader's payoff minus
its commitment value, which is the most that it gets by committing while the agent best-responds.
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
    "It stops a leader that trains its followers, not one that commits. The surplus of a leader "
    f"that trains is {said(of.loc[('trains, then turns', learner)])} against a learner without "
    f"external regret and {said(of.loc[('trains, then turns', ours)])} against followers of the "
    f"forecast. A leader that commits has a surplus of {said(of.loc[('commits', ours)])} against "
    "followers, so it gets its commitment value, though their swap regret is "
    f"{said(regret.loc[('commits', ours)], 4)}."
)
figure, axes = sheet("Leader surplus, by leader and by who responds", "surplus per round")
bars(axes, means, "agents", "leader")
axes.axhline(0, color="black", linewidth=0.8)
axes.set_xlabel("what the leader does")
axes.legend(frameon=False)
table = pd.concat({"surplus": of, "swap regret": regret}, names=["measure"]).reset_index()
finish("leaders", table, figure, answer)
