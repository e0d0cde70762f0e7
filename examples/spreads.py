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

from typing import Any

import pandas as pd
from helpers.estimates import answer_whether_below, estimate_means, find_estimate
from helpers.forecast_traders import describe_cohorts
from helpers.output import draw_bars, new_figure, publish

from regretless import load

ROUNDS = 500
SEEDS = range(5)
SEASON = {"period": 60.0, "amplitude": 0.35}
VALUE = {"kind": "cyclic", "outcomes": ["value"], "concentration": 15.0, **SEASON}
SMOOTHING = {"kind": "exponential-smoothing", "rate": 0.5}
FORECAST = {"kind": "decision-swap", "reference": SMOOTHING}
NOBODY = {"makers_hear": False, "needy_hear": False}
ALL = {"makers_hear": True, "needy_hear": True}
CASES: dict[str, tuple[dict[str, Any], dict[str, bool]]] = {  # a forecaster, and who hears it
    "nobody": (FORECAST, NOBODY),
    "makers": (FORECAST, {"makers_hear": True, "needy_hear": False}),
    "the six": (FORECAST, {"makers_hear": False, "needy_hear": True}),
    "all": (FORECAST, ALL),
    "all, last value": ({"kind": "last-value"}, ALL),
    "all, no model": ({"kind": "calibration"}, ALL),
}


def mean_spread(name: str, seed: int) -> float:
    """Play the market and return the mean spread of the second half of the rounds."""
    forecaster, who_hears = CASES[name]
    settings = {
        "forecaster": forecaster,
        "cohort": describe_cohorts(**who_hears),
        "adversary": VALUE,
        "market.ticks": 64,
        "market.latency": {"informed": 1.0, "needy": 1.0},  # makers arrive first
    }
    model = load("adverse-selection", rounds=ROUNDS, **settings).build(seed=seed)
    model.run()
    quotes = model.quotes_frame().query("round >= @ROUNDS / 2")
    return float((quotes["ask"] - quotes["bid"]).mean())


runs = []
for name in CASES:
    for seed in SEEDS:
        spread = mean_spread(name, seed)
        runs.append({"hear": name, "spread": spread})
means = estimate_means(pd.DataFrame(runs), ["hear"], "spread")

nobody, makers, needy, everybody, last_value, calibrated = (
    find_estimate(means, hear=name) for name in CASES
)
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
