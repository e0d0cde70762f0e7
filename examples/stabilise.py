"""Does a public forecast stabilise prices?

Twenty traders buy one of three baskets. What is bought in a round yields less in the same round, by
much or by little; nobody, half or all of them follow the forecast, and the others learn by
themselves. What is measured is by how much outcomes move from one round to the next.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from shown import averages, bars, below, finish, said, sheet

from regretless import load

TRADERS, ROUNDS, SEEDS = 20, 150, range(4)
IMPACTS = (0.2, 0.8)


def swing(share: float, impact: float, seed: int) -> float:
    """Mean movement of an outcome from round to round."""
    settings = {"market.impact": impact, "market.feedback": "same-round"}
    followers = round(share * TRADERS)
    counts = {"cohort.followers.count": followers, "cohort.learners.count": TRADERS - followers}
    model = load("crowding", rounds=ROUNDS, **settings, **counts).build(seed=seed)
    model.run()
    return float(np.abs(model.rounds_frame().filter(regex=r"^y_\d").diff()).mean().mean())


rows = [
    {"impact": impact, "listen": name, "seed": seed, "swing": swing(share, impact, seed)}
    for impact in IMPACTS
    for name, share in (("nobody", 0.0), ("half", 0.5), ("all", 1.0))
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
