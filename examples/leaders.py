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
ours = WHO["followers"]
turned, against = (of.loc["trains, then turns", who] for who in (ours, WHO["hedge"]))
answer = (
    f"It stops a leader that trains its followers: surplus {said(against)} against a learner "
    f"without external regret, {said(turned)} against followers. It does not stop one that "
    f"commits: surplus {said(of.loc['commits', ours])}, so it gets its commitment value, though "
    f"followers have a swap regret of {said(regret.loc['commits', ours], 4)}."
)
figure, axes = sheet("Leader surplus, by leader and by who responds", "surplus per round")
bars(axes, means, "agents", "leader")
axes.axhline(0, color="black", linewidth=0.8)
axes.set_xlabel("what the leader does")
axes.legend(frameon=False)
table = pd.concat({"surplus": of, "swap regret": regret}, names=["measure"]).reset_index()
finish("leaders", table, figure, answer)
