"""What does a market maker regret against informed traders?

A unit is worth 0 or 1, and some of ten traders know which. Two makers choose their spreads: both
learn without swap regret, both learn by Hedge, or, as a control, both keep 1/8. As another control
nobody is informed. The informed trade with makers alone, so that makers lose what these earn. A
maker's swap regret says how much more it would have earned with the best other quote in place of
each of its own, all others' orders held fixed; the table ``swaps`` says which quote that is.

    python examples/informed.py figures

prints for the three kinds of makers, per maker and round, what they lose to the informed, their
swap regret, and what the best fixed spread would have saved. All of it is in figures/informed.csv,
four informed traders are in figures/informed.png.
"""

from __future__ import annotations

from itertools import product

import pandas as pd
from helpers.estimates import estimate_means, find_estimate
from helpers.output import draw_bars, new_figure, publish

from regretless import load
from regretless.scenarios.config import files

ROUNDS = 500
SEEDS = range(5)
TRADERS = 10  # informed or not
INFORMED = 4
MAKERS, INFORMED_TRADERS, NOISE_TRADERS = files.read(files.find("adverse-selection"))["cohort"]
RULES = {
    "no swap regret": {"response": "swap-regret-matching"},
    "Hedge": {"response": "hedge"},
    "keep 1/8": {"response": "always", "settings": {"action": 1}},  # 1/16, 2/16, ...
}


def measure_makers(rule: str, informed: int, seed: int) -> dict[str, float]:
    """Play the market and return the measures of a maker, per round and in units of utility."""
    cohorts = [MAKERS | RULES[rule], NOISE_TRADERS | {"count": TRADERS - informed}]
    if informed:
        cohorts.append(INFORMED_TRADERS | {"count": informed})
    latency = {cohort["name"]: 1.0 for cohort in cohorts[1:]}  # makers arrive first
    settings = {"cohort": cohorts, "market.latency": latency}
    model = load("adverse-selection", rounds=ROUNDS, **settings).build(seed=seed)
    model.run()
    agents = model.agents_frame().set_index("agent")
    makers = agents[agents["cohort"] == "makers"]
    earned = -(agents["loss_offset"] + agents["loss_scale"] * agents["mean_loss"])
    swaps = model.swaps_frame().query("agent in @makers.index").set_index("agent")
    contribution = swaps["contribution"] * makers["loss_scale"]
    saved_by_quote = contribution.groupby(swaps["best_replacement"]).sum() / len(makers)
    return {
        "lost to the informed": earned[agents["cohort"] == "informed"].sum() / len(makers),
        "swap regret": (makers["swap_regret"] * makers["loss_scale"]).mean(),
        "best single quote": saved_by_quote.max(),
    }


runs = []
for rule, informed, seed in product(RULES, (0, INFORMED), SEEDS):
    runs.append({"makers": rule, "informed": informed, **measure_makers(rule, informed, seed)})
measures = pd.DataFrame(runs).melt(["makers", "informed"], var_name="measure")
means = estimate_means(measures, ["makers", "informed", "measure"], "value")


def by_rule(measure: str) -> str:
    """Write a measure of makers who meet four informed traders, for the three rules."""
    of_measure = means[(means["measure"] == measure) & (means["informed"] == INFORMED)]
    first, second, third = (f"{find_estimate(of_measure, makers=rule):.2f}" for rule in RULES)
    return f"{first}, {second} and {third}"


uninformed_regret = find_estimate(means, makers="no swap regret", informed=0, measure="swap regret")
answer = (
    "With four informed traders of ten, makers without swap regret, with Hedge, and at 1/8 lose "
    f"{by_rule('lost to the informed')} per round to them. Their swap regrets are "
    f"{by_rule('swap regret')}; a fixed spread would have saved {by_rule('best single quote')}. "
    f"Where nobody is informed, the first have a swap regret of {uninformed_regret:.2f}."
)

figure, axes = new_figure(
    "Makers, with four informed traders of ten", measured="per maker and round"
)
drawn = means[means["informed"] == INFORMED]
draw_bars(axes, drawn, place="makers", colour="measure")
axes.legend(frameon=False, fontsize=8)
publish("informed", answer=answer, table=means, figure=figure)
