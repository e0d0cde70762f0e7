"""What does a market maker regret against informed traders?

A unit is worth 0 or 1, and some of ten traders know which. Two makers choose their spreads: both
learn without swap regret, both learn by Hedge, or, as a control, both keep 1/8. As another control
nobody is informed. What a maker loses to the informed is read off the trades. Its swap regret says
how much more it would have earned with the best other quote in place of each of its own, all
others' orders held fixed, and the table ``swaps`` says which quote that is.

    python examples/informed.py figures

prints for the three kinds of makers, per maker and round, what they lose to the informed, their
swap regret, and what the best fixed spread would have saved. All of it is in figures/informed.csv,
four informed traders are in figures/informed.png.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from helpers.estimates import estimate_means, find_estimate
from helpers.output import draw_bars, new_figure, publish

from regretless import MarketModel, load, register
from regretless.agents import ScriptedCrowd
from regretless.agents.cohorts.scripted_agents import HeardForecasts
from regretless.market.records import Context
from regretless.scenarios.config import files

ROUNDS = 500
SEEDS = range(5)
TRADERS = 10  # informed or not
INFORMED = 4
SPREAD_UNIT = 1 / 16  # action k of a maker is the spread (k + 1) / 16
ONLY_LAST_ROUND = 10**6  # rounds between two entries of the regret log, more than are played
RESPONSES = {"no swap regret": "swap-regret-matching", "Hedge": "hedge", "keep 1/8": "kept-quote"}
MAKERS, INFORMED_TRADERS, NOISE_TRADERS = files.read(files.find("adverse-selection"))["cohort"]


@register.agent("kept-quote")
class KeptQuote(ScriptedCrowd):
    """Quotes a spread of 1/8 in every round."""

    def act_many(self, forecasts: HeardForecasts, contexts: Context) -> np.ndarray:
        """Return action 1 for each of N agents (N,), the second of the spreads 1/16, 2/16, ..."""
        return np.ones(len(self.loss), dtype=int)


def loss_to_informed(model: MarketModel) -> float:
    """Return what one of the two makers loses to the informed per round."""
    cohort_of_agent = model.agents_frame().set_index("agent")["cohort"]
    values = model.rounds_frame()[["round", "fundamental_0"]]
    trades = model.trades_frame().merge(values)
    gain_of_buyer = trades["quantity"] * (trades["fundamental_0"] - trades["price"])
    informed_buys = trades["buyer"].map(cohort_of_agent) == "informed"
    informed_sells = trades["seller"].map(cohort_of_agent) == "informed"
    total = gain_of_buyer[informed_buys].sum() - gain_of_buyer[informed_sells].sum()
    return float(total) / model.rounds / 2


def measure_makers(rule: str, informed: int, seed: int) -> dict[str, float]:
    """Play the market and return the measures of a maker, per round and in units of utility."""
    noise_traders = {**NOISE_TRADERS, "count": TRADERS - informed}
    cohorts = [{**MAKERS, "response": RESPONSES[rule]}, noise_traders]
    if informed:
        cohorts.append({**INFORMED_TRADERS, "count": informed})
    settings = {
        "cohort": cohorts,
        "market.latency": {cohort["name"]: 1.0 for cohort in cohorts[1:]},  # makers arrive first
    }
    scenario = load("adverse-selection", rounds=ROUNDS, **settings)
    model = scenario.build(seed=seed, log_every=ONLY_LAST_ROUND)
    model.run()
    makers = model.agents_frame().query("cohort == 'makers'").set_index("agent")
    swaps = model.swaps_frame().query("agent in @makers.index").set_index("agent")
    contribution = swaps["contribution"] * makers["loss_scale"]
    saved_by_quote = contribution.groupby(swaps["best_replacement"]).sum() / len(makers)
    return {
        "lost to the informed": loss_to_informed(model),
        "swap regret": (makers["swap_regret"] * makers["loss_scale"]).mean(),
        "best single quote": saved_by_quote.max(),
        "its spread": (saved_by_quote.idxmax() + 1) * SPREAD_UNIT,
    }


runs = []
for rule in RESPONSES:
    for informed in (0, INFORMED):
        for seed in SEEDS:
            for measure, value in measure_makers(rule, informed, seed).items():
                run = {"makers": rule, "informed": informed, "measure": measure, "value": value}
                runs.append(run)
means = estimate_means(pd.DataFrame(runs), ["makers", "informed", "measure"], "value")


def by_rule(measure: str) -> str:
    """Write a measure of makers who meet four informed traders, for the three rules."""
    estimates = []
    for rule in RESPONSES:
        estimate = find_estimate(means, makers=rule, informed=INFORMED, measure=measure)
        estimates.append(f"{estimate:.2f}")
    return f"{estimates[0]}, {estimates[1]} and {estimates[2]}"


uninformed_regret = find_estimate(means, makers="no swap regret", informed=0, measure="swap regret")
answer = (
    "With four informed traders of ten, makers without swap regret, with Hedge, and at 1/8 lose "
    f"{by_rule('lost to the informed')} per round to them. Their swap regrets are "
    f"{by_rule('swap regret')}; a fixed spread would have saved {by_rule('best single quote')}. "
    "Where nobody is informed, the first have a swap regret of "
    f"{uninformed_regret:.2f}."
)

figure, axes = new_figure(
    "Makers, with four informed traders of ten", measured="per maker and round"
)
drawn = means[(means["informed"] == INFORMED) & (means["measure"] != "its spread")]
draw_bars(axes, drawn, place="makers", colour="measure")
axes.legend(frameon=False, fontsize=8)
publish("informed", answer=answer, table=means, figure=figure)
