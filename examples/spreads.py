"""Does a public forecast narrow spreads when everybody hears it?

What a unit is worth follows a noisy season. Two market makers quote around what they expect it to
be and learn their spread (regret matching). Four informed traders know the value; six others have
to buy or to sell, and pay up to 0.15 more than they expect the unit to be worth. Who hears the
forecast expects what it says, who does not expects 1/2. Controls: nobody hears it, makers or the
six alone do, and all hear the last value (not corrected for bias) or a calibrated forecast
without a model, which says less. Makers and the six are agents of this example's own
(helpers/forecast_traders.py).

    python examples/spreads.py figures

prints the mean spread between bid and ask by who hears which forecast. The same numbers are in
figures/spreads.csv and figures/spreads.png.
"""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd
from helpers.estimates import answer_whether_below, estimate_means, find_estimate
from helpers.forecast_traders import describe_cohorts
from helpers.output import draw_bars, new_figure, publish

from regretless import load

ROUNDS = 500
SEEDS = range(5)
ONLY_LAST_ROUND = 10**6  # rounds between two entries of the regret log, more than are played
VALUE = {
    "kind": "cyclic",
    "outcomes": ["value"],
    "period": 60.0,
    "amplitude": 0.35,
    "concentration": 15.0,
}
DECISION_SWAP: dict[str, object] = {
    "kind": "decision-swap",
    "reference": {"kind": "exponential-smoothing", "rate": 0.5},
}
LAST_VALUE: dict[str, object] = {"kind": "last-value"}
CALIBRATED: dict[str, object] = {"kind": "calibration"}


class Case(NamedTuple):
    """A forecaster, and who hears it."""

    forecaster: dict[str, object]
    makers_hear: bool
    needy_hear: bool


CASES = {
    "nobody": Case(DECISION_SWAP, makers_hear=False, needy_hear=False),
    "makers": Case(DECISION_SWAP, makers_hear=True, needy_hear=False),
    "the six": Case(DECISION_SWAP, makers_hear=False, needy_hear=True),
    "all": Case(DECISION_SWAP, makers_hear=True, needy_hear=True),
    "all, last value": Case(LAST_VALUE, makers_hear=True, needy_hear=True),
    "all, no model": Case(CALIBRATED, makers_hear=True, needy_hear=True),
}


def mean_spread(case: Case, seed: int) -> float:
    """Play the market and return the mean spread of the second half of the rounds."""
    settings = {
        "forecaster": case.forecaster,
        "cohort": describe_cohorts(makers_hear=case.makers_hear, needy_hear=case.needy_hear),
        "adversary": VALUE,
        "market.ticks": 64,
        "market.latency": {"informed": 1.0, "needy": 1.0},  # makers arrive first
    }
    scenario = load("adverse-selection", rounds=ROUNDS, **settings)
    model = scenario.build(seed=seed, log_every=ONLY_LAST_ROUND)
    model.run()
    quotes = model.quotes_frame().query("round >= @ROUNDS / 2")
    return float((quotes["ask"] - quotes["bid"]).mean())


runs = []
for name, case in CASES.items():
    for seed in SEEDS:
        spread = mean_spread(case, seed)
        runs.append({"hear": name, "seed": seed, "spread": spread})
means = estimate_means(pd.DataFrame(runs), ["hear"], "spread")

nobody = find_estimate(means, hear="nobody")
makers = find_estimate(means, hear="makers")
needy = find_estimate(means, hear="the six")
everybody = find_estimate(means, hear="all")
last_value = find_estimate(means, hear="all, last value")
calibrated = find_estimate(means, hear="all, no model")
answer = (
    f"Is the spread below that where nobody hears the forecast, {nobody:.3f}? Where all "
    f"hear it: {answer_whether_below(everybody, nobody)}, {everybody:.3f}; makers alone: "
    f"{answer_whether_below(makers, nobody)}, {makers:.3f}; the six alone: "
    f"{answer_whether_below(needy, nobody)}, {needy:.3f}. Below that with the last "
    f"value? {answer_whether_below(everybody, last_value)}, {last_value:.3f}. With a "
    f"calibrated forecast it is {calibrated:.3f}."
)

figure, axes = new_figure("Spread, by who hears which forecast", measured="mean spread")
draw_bars(axes, means.assign(what="spread"), place="hear", colour="what")
axes.tick_params(axis="x", labelsize=8)
publish("spreads", answer=answer, table=means, figure=figure)
