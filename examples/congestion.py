"""Do private recommendations cure congestion?

Three goods are as good as each other, and one that is crowded yields less in the same round. All
agents respond to one forecast, which is a distribution over predictions. Either one prediction is
drawn for everybody, or each agent draws one for itself.

    python examples/congestion.py figures

prints the average loss per round and the worst agent's swap regret with either kind of draw, for 40
agents. Those of 10 agents are in figures/congestion.csv, the losses in figures/congestion.png.
"""

from __future__ import annotations

import pandas as pd
from helpers.estimates import answer_whether_below, estimate_means, find_estimate
from helpers.output import draw_bars, new_figure, publish

from regretless import load

ROUNDS = 200
SEEDS = range(4)
FEW_AGENTS = 10
MANY_AGENTS = 40
RESPONSES = {"one for all": "best-response", "a draw each": "private"}


def loss_and_regret(response: str, count: int, seed: int) -> dict[str, float]:
    """Play the market; return the mean loss and the largest swap regret of its agents."""
    settings = {"cohort.followers.response": response, "cohort.followers.count": count}
    model = load("own-draws", rounds=ROUNDS, **settings).build(seed=seed)
    model.run()
    agents = model.agents_frame()
    return {"loss": agents["mean_loss"].mean(), "regret": agents["swap_regret"].max()}


runs = []
for count in (FEW_AGENTS, MANY_AGENTS):
    for draw, response in RESPONSES.items():
        for seed in SEEDS:
            measured = loss_and_regret(response, count, seed)
            runs.append({"agents": count, "draw": draw, "seed": seed, **measured})
losses = estimate_means(pd.DataFrame(runs), ["agents", "draw"], "loss")
regrets = estimate_means(pd.DataFrame(runs), ["agents", "draw"], "regret")

common_loss = find_estimate(losses, agents=MANY_AGENTS, draw="one for all")
private_loss = find_estimate(losses, agents=MANY_AGENTS, draw="a draw each")
common_regret = find_estimate(regrets, agents=MANY_AGENTS, draw="one for all")
private_regret = find_estimate(regrets, agents=MANY_AGENTS, draw="a draw each")
answer = (
    f"{answer_whether_below(private_loss, common_loss)}: {MANY_AGENTS} agents lose "
    f"{common_loss:.3f} per round if all hear one draw, {private_loss:.3f} with a draw each. "
    f"Worst swap regrets: {common_regret:.3f} and {private_regret:.3f}."
)

figure, axes = new_figure(
    "Average loss with one draw for all, and with a draw each", measured="average loss per round"
)
draw_bars(axes, losses, place="agents", colour="draw")
axes.set_xlabel("agents")
axes.set_ylim(0, 0.8)
axes.legend(frameon=False, ncols=2)
table = pd.concat([losses.assign(measure="loss"), regrets.assign(measure="regret")])
table = table[["measure", "agents", "draw", "mean", "low", "high"]]
publish("congestion", answer=answer, table=table, figure=figure)
