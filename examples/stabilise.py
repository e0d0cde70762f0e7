"""Does a public forecast stabilise prices?

Twenty traders buy one of three baskets. What is bought in a round yields less in the same round, by
much or by little. Nobody, half or all of them follow the forecast, and the others learn by
themselves (Hedge). Controls: all follow the last value or exponential smoothing, or nobody follows
a forecast and all play the action that was best so far. The traders are the same in all cases: two
cohorts of ten, whose response is switched. Measured is how much outcomes move from one round to the
next.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from shown import averages, bars, below, finish, said, sheet

from regretless import load

ROUNDS, SEEDS = 150, range(4)
IMPACTS = (0.2, 0.8)
HALVES = ("followers", "learners")  # the two cohorts of the scenario, here ten traders each
FOLLOW, LEARN, BEST = "best-response", "hedge", "follow-the-leader"
CASES = {  # the response of both cohorts, and the forecast
    "nobody": ((LEARN, LEARN), "decision-swap"),
    "half": ((FOLLOW, LEARN), "decision-swap"),
    "all": ((FOLLOW, FOLLOW), "decision-swap"),
    "all, last value": ((FOLLOW, FOLLOW), "last-value"),
    "all, smoothing": ((FOLLOW, FOLLOW), "exponential-smoothing"),
    "nobody, best so far": ((BEST, BEST), "decision-swap"),
}


def swing(case: str, impact: float, seed: int) -> float:
    """Mean movement of an outcome from round to round."""
    responses, forecast = CASES[case]
    settings = {"market.impact": impact, "market.feedback": "same-round"}
    settings |= {"forecaster": {"kind": forecast}}
    for cohort, response in zip(HALVES, responses, strict=True):
        settings |= {f"cohort.{cohort}.count": 10, f"cohort.{cohort}.response": response}
    model = load("crowding", rounds=ROUNDS, **settings).build(seed=seed)
    model.run()
    return float(np.abs(model.rounds_frame().filter(regex=r"^y_\d").diff()).mean().mean())


rows = [
    {"impact": impact, "listen": name, "seed": seed, "swing": swing(name, impact, seed)}
    for impact in IMPACTS
    for name in CASES
    for seed in SEEDS
]
means = averages(pd.DataFrame(rows), ["impact", "listen"], "swing")
strong = means[means["impact"] == IMPACTS[-1]].set_index("listen")
everybody, nobody, best = (strong.loc[case] for case in ("all", "nobody", "nobody, best so far"))
answer = (
    f"With an impact of {IMPACTS[-1]} outcomes move per round by {said(everybody)} where all "
    f"follow the forecast, {said(nobody)} where all learn by Hedge, {said(best)} where all play "
    f"what was best so far. Calmer than Hedge? {below(everybody, nobody)}. Than the best so far? "
    f"{below(everybody, best)}."
)
figure, axes = sheet("Movement of outcomes, by who follows which forecast", "movement per round")
bars(axes, means, "listen", "impact")
axes.set_xlabel("price impact of demand")
axes.legend(title="who follows the forecast", frameon=False, fontsize=8)
finish("stabilise", means, figure, answer)
