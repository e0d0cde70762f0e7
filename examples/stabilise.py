"""Does a public forecast stabilise prices?

Twenty traders buy one of three baskets. What is bought in a round yields less in the same round, by
much or by little; nobody, half or all of them follow the forecast, and the others learn by
themselves. The traders are the same in all three cases: two cohorts of ten, whose response is
switched. What is measured is by how much outcomes move from one round to the next.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from shown import averages, bars, below, finish, said, sheet

from regretless import load

ROUNDS, SEEDS = 150, range(4)
IMPACTS = (0.2, 0.8)
HALVES = ("followers", "learners")  # the two cohorts of the scenario, here ten traders each
FOLLOWING = {"nobody": 0, "half": 1, "all": 2}  # how many of the two follow the forecast


def swing(listen: str, impact: float, seed: int) -> float:
    """Mean movement of an outcome from round to round."""
    settings = {"market.impact": impact, "market.feedback": "same-round"}
    for place, cohort in enumerate(HALVES):
        follows = place < FOLLOWING[listen]
        settings[f"cohort.{cohort}.count"] = 10
        settings[f"cohort.{cohort}.response"] = "best-response" if follows else "hedge"
    model = load("crowding", rounds=ROUNDS, **settings).build(seed=seed)
    model.run()
    return float(np.abs(model.rounds_frame().filter(regex=r"^y_\d").diff()).mean().mean())


rows = [
    {"impact": impact, "listen": name, "seed": seed, "swing": swing(name, impact, seed)}
    for impact in IMPACTS
    for name in FOLLOWING
    for seed in SEEDS
]
means = averages(pd.DataFrame(rows), ["impact", "listen"], "swing")
strong = means[means["impact"] == IMPACTS[-1]].set_index("listen")
everybody, nobody = strong.loc["all"], strong.loc["nobody"]
answer = (
    f"{below(everybody, nobody)}: with an impact of {IMPACTS[-1]} outcomes move by "
    f"{said(everybody)} a round where all follow the forecast, and by {said(nobody)} where nobody "
    "does."
)
figure, axes = sheet("The more listen to one broadcast, the more it moves", "movement a round")
bars(axes, means, "listen", "impact")
axes.set_xlabel("how strongly what is bought moves the outcome")
axes.legend(title="who listens", frameon=False)
finish("stabilise", means, figure, answer)
