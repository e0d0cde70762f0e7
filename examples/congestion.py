"""Do private recommendations cure congestion?

Three goods are as good as each other, and one that is crowded yields less in the same round. All
agents respond to one forecast, which is a distribution over predictions. Either one prediction is
drawn for everybody, or each agent draws one for itself.
"""

from __future__ import annotations

import pandas as pd
from shown import averages, bars, below, finish, said, sheet

from regretless import load

ROUNDS, SEEDS, CROWDS = 200, range(4), (10, 40)
DRAWS = {"one for all": "best-response", "a draw each": "private"}


def played(response: str, count: int, seed: int) -> dict[str, float]:
    """Mean loss, and the worst agent's swap regret."""
    settings = {"cohort.followers.response": response, "cohort.followers.count": count}
    model = load("own-draws", rounds=ROUNDS, **settings).build(seed=seed)
    model.run()
    agents = model.agents_frame()
    return {"loss": agents["mean_loss"].mean(), "regret": agents["swap_regret"].max()}


rows = [
    {"agents": count, "draw": draw, "seed": seed} | played(response, count, seed)
    for count in CROWDS
    for draw, response in DRAWS.items()
    for seed in SEEDS
]
loss, regret = (
    averages(pd.DataFrame(rows), ["agents", "draw"], name) for name in ("loss", "regret")
)
most = (CROWDS[-1], "one for all"), (CROWDS[-1], "a draw each")
common, private = (loss.set_index(["agents", "draw"]).loc[key] for key in most)
herd, alone = (regret.set_index(["agents", "draw"]).loc[key] for key in most)
answer = (
    f"{below(private, common)}: {CROWDS[-1]} agents lose {said(common)} per round if all hear one "
    f"draw, {said(private)} with a draw each. Worst swap regrets: {said(herd)} and {said(alone)}."
)
figure, axes = sheet(
    "Average loss with one draw for all, and with a draw each", "average loss per round"
)
bars(axes, loss, "draw", "agents")
axes.set_xlabel("agents")
axes.set_ylim(0, 0.8)
axes.legend(frameon=False, ncols=2)
table = pd.concat(
    {"loss": loss.set_index(["agents", "draw"]), "regret": regret.set_index(["agents", "draw"])}
)
finish("congestion", table.rename_axis(["measure", "agents", "draw"]).reset_index(), figure, answer)
