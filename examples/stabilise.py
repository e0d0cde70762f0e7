"""Does a public forecast stabilise prices?

Twenty traders buy one of three baskets. What is bought in a round yields less in the same round, by
much or by little. Nobody, half or all of them follow the forecast, and the others learn by
themselves (Hedge). Controls: all follow the last value or exponential smoothing, or nobody follows
a forecast and all play the action that was best so far. The traders are the same in all cases: two
cohorts of ten, whose response is switched.

    python examples/stabilise.py figures

prints how much outcomes move from one round to the next in these cases, and whether they move less
where all follow the forecast. All cases are in figures/stabilise.csv and figures/stabilise.png.
"""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from helpers.estimates import answer_whether_below, estimate_means, find_estimate
from helpers.output import draw_bars, new_figure, publish

from regretless import load

ROUNDS = 150
SEEDS = range(4)
WEAK_IMPACT = 0.2  # of demand on what a basket yields
STRONG_IMPACT = 0.8


class Case(NamedTuple):
    """How the two cohorts of ten traders respond, and who forecasts."""

    responses: tuple[str, str]
    forecaster: str


CASES = {
    "nobody": Case(("hedge", "hedge"), "decision-swap"),
    "half": Case(("best-response", "hedge"), "decision-swap"),
    "all": Case(("best-response", "best-response"), "decision-swap"),
    "all, last value": Case(("best-response", "best-response"), "last-value"),
    "all, smoothing": Case(("best-response", "best-response"), "exponential-smoothing"),
    "nobody, best so far": Case(("follow-the-leader", "follow-the-leader"), "decision-swap"),
}


def movement_per_round(case: Case, impact: float, seed: int) -> float:
    """Play the market and return how much an outcome moves from round to round, on average."""
    settings = {
        "market.impact": impact,
        "market.feedback": "same-round",
        "forecaster": {"kind": case.forecaster},
        "cohort.followers.count": 10,
        "cohort.followers.response": case.responses[0],
        "cohort.learners.count": 10,
        "cohort.learners.response": case.responses[1],
    }
    model = load("crowding", rounds=ROUNDS, **settings).build(seed=seed)
    model.run()
    outcomes = model.rounds_frame().filter(regex=r"^y_\d")
    return float(np.abs(outcomes.diff()).mean().mean())


runs = []
for impact, name, seed in product((WEAK_IMPACT, STRONG_IMPACT), CASES, SEEDS):
    movement = movement_per_round(CASES[name], impact, seed)
    runs.append({"impact": impact, "listen": name, "seed": seed, "swing": movement})
means = estimate_means(pd.DataFrame(runs), ["impact", "listen"], "swing")

all_follow = find_estimate(means, impact=STRONG_IMPACT, listen="all")
all_hedge = find_estimate(means, impact=STRONG_IMPACT, listen="nobody")
all_best_so_far = find_estimate(means, impact=STRONG_IMPACT, listen="nobody, best so far")
answer = (
    f"With an impact of {STRONG_IMPACT} outcomes move per round by {all_follow:.3f} where all "
    f"follow the forecast, {all_hedge:.3f} where all learn by Hedge, {all_best_so_far:.3f} where "
    f"all play what was best so far. Calmer than Hedge? "
    f"{answer_whether_below(all_follow, all_hedge)}. Than the best so far? "
    f"{answer_whether_below(all_follow, all_best_so_far)}."
)

figure, axes = new_figure(
    "Movement of outcomes, by who follows which forecast", measured="movement per round"
)
draw_bars(axes, means, place="impact", colour="listen")
axes.set_xlabel("price impact of demand")
axes.legend(title="who follows the forecast", frameon=False, fontsize=8)
publish("stabilise", answer=answer, table=means, figure=figure)
