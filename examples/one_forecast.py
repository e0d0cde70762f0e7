"""Does one forecast for all types protect them better than a learner or a forecast for each?

A seller who cannot tell three types of buyer apart opens offer after offer, free at first and at
the full price for ever after (Braverman, Mao, Schneider and Weinberg 2018). The best posted price
earns 0.25. Buyers are learners, one per type, without external or without swap regret; or they
follow one forecast that is made for all types, or a forecast for each type (the control).
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
    "followers, a forecast each": "a forecast\neach",
}
table = pd.DataFrame([row for who in WHO for row in staggered(ROUNDS, who)])
of = table.pivot_table(index="agents", columns="quantity", values="measured").loc[list(WHO)]
swap, ours, apart = (of.loc[who] for who in list(WHO)[1:])
answer = (
    f"A forecast does, shared or not: the seller earns {ours['revenue']:.3f} per round from "
    f"followers of one forecast, {apart['revenue']:.3f} with a forecast for each type, and "
    f"{swap['revenue']:.3f} from learners without swap regret (posted price: {POSTED}), whose "
    f"mimic regret is {swap['mimic regret']:.3f}; that of followers is "
    f"{ours['mimic regret']:.4f} and {apart['mimic regret']:.4f}."
)
figure, axes = sheet("A seller's revenue from four kinds of buyers", "revenue per round")
axes.bar(list(WHO.values()), of["revenue"], 0.6, color=COLOURS[: len(WHO)])
axes.axhline(POSTED, color="black", linewidth=0.8, linestyle=":")
axes.text(3.4, POSTED + 0.005, "best posted price", ha="right")
finish("one_forecast", table, figure, answer)
