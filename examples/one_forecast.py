"""Does one forecast for all types protect them better than a learner or a forecast for each?

A seller who cannot tell three types of buyer apart opens offer after offer, free at first and at
the full price for ever after (Braverman, Mao, Schneider and Weinberg 2018). The best posted price
earns 0.25. Buyers are learners, one per type, without external or without swap regret; or they
follow one forecast that is made for all types, or a forecast for each type (the control).

    python examples/one_forecast.py figures

prints the seller's revenue per round, and how much buyers would gain by playing as another type
does (mimic regret). Their swap regrets are in figures/one_forecast.csv, too, the revenues in
figures/one_forecast.png.
"""

from __future__ import annotations

import pandas as pd
from helpers.output import COLOURS, new_figure, publish

from paper.exploitation.instances import staggered

ROUNDS = 1000
POSTED_PRICE_REVENUE = 0.25
HEDGE = "Hedge"
SWAP_LEARNERS = "swap regret matching"
ONE_FORECAST = "followers of the forecast"
FORECAST_EACH = "followers, a forecast each"
LABELS = {
    HEDGE: "a learner each,\nno external regret",
    SWAP_LEARNERS: "a learner each,\nno swap regret",
    ONE_FORECAST: "one forecast\nfor all",
    FORECAST_EACH: "a forecast\neach",
}

rows = []
for buyers in LABELS:
    rows += staggered(ROUNDS, buyers)
table = pd.DataFrame(rows)
measures = table.pivot_table(index="agents", columns="quantity", values="measured")
revenue = measures["revenue"]
mimic_regret = measures["mimic regret"]
answer = (
    f"A forecast does, shared or not: the seller earns {revenue[ONE_FORECAST]:.3f} per round from "
    f"followers of one forecast, {revenue[FORECAST_EACH]:.3f} with a forecast for each type, and "
    f"{revenue[SWAP_LEARNERS]:.3f} from learners without swap regret (posted price: "
    f"{POSTED_PRICE_REVENUE}), whose mimic regret is {mimic_regret[SWAP_LEARNERS]:.3f}; that of "
    f"followers is {mimic_regret[ONE_FORECAST]:.4f} and {mimic_regret[FORECAST_EACH]:.4f}."
)

figure, axes = new_figure(
    "A seller's revenue from four kinds of buyers", measured="revenue per round"
)
axes.bar(list(LABELS.values()), revenue[list(LABELS)], 0.6, color=COLOURS[: len(LABELS)])
axes.axhline(POSTED_PRICE_REVENUE, color="black", linewidth=0.8, linestyle=":")
axes.text(3.4, POSTED_PRICE_REVENUE + 0.005, "best posted price", ha="right")
publish("one_forecast", answer=answer, table=table, figure=figure)
