"""One forecast for many utilities, or a learner for each?

A seller who cannot tell three types of buyer apart opens offer after offer, free at first and at
the full price for ever after (Braverman, Mao, Schneider and Weinberg 2018). The best posted price
earns 0.25. Buyers are learners, one per type, without external or without swap regret, or follow
one forecast that is made for all types together.
"""

from __future__ import annotations

import pandas as pd
from shown import COLOURS, finish, sheet

from paper.exploitation.instances import staggered

ROUNDS, POSTED = 1000, 0.25
WHO = {
    "Hedge": "a learner each,\nno external regret",
    "swap regret matching": "a learner each,\nno swap regret",
    "followers of the forecast": "one forecast\nfor all",
}
table = pd.DataFrame([row for who in WHO for row in staggered(ROUNDS, who)])
of = table.pivot_table(index="agents", columns="quantity", values="measured").loc[list(WHO)]
swap, ours = of.loc["swap regret matching"], of.loc["followers of the forecast"]
answer = (
    f"One forecast: the seller earns {ours['revenue']:.3f} a round from its followers and "
    f"{swap['revenue']:.3f} from learners without swap regret, where the best posted price earns "
    f"{POSTED}, though these learners regret only {swap['swap regret']:.4f}. What they would have "
    f"gained by imitating another type, {swap['mimic regret']:.3f}, is {ours['mimic regret']:.4f} "
    "for followers. Nothing here is random: there is no interval."
)
figure, axes = sheet("A learner per type pays; one forecast for all does not", "revenue a round")
axes.bar(list(WHO.values()), of["revenue"], 0.6, color=COLOURS[: len(WHO)])
axes.axhline(POSTED, color="black", linewidth=0.8, linestyle=":")
axes.text(2.4, POSTED + 0.005, "best posted price", ha="right")
finish("one_forecast", table, figure, answer)
