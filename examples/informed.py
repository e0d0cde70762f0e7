"""What does a market maker regret against informed traders?

A unit is worth 0 or 1, and some of ten traders know which. Two makers choose their spreads: both
learn without swap regret, both learn by Hedge, or, as a control, both keep 1/8. As another control
nobody is informed. What a maker loses to the informed is read off the trades. Its swap regret says
how much more it would have earned with the best other quote in place of each of its own, all
others' orders held fixed, and the table ``swaps`` says which quote that is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from shown import averages, bars, finish, said, sheet

from regretless import load, register
from regretless.agents import ScriptedCrowd
from regretless.scenarios.config.files import find, read

ROUNDS, SEEDS, INFORMED = 500, range(5), (0, 4)
MEASURES = "lost to the informed", "swap regret", "best single quote", "its spread"
RULES = {"no swap regret": "swap-regret-matching", "Hedge": "hedge", "keep 1/8": "kept-quote"}
MAKERS, INSIDERS, NOISE = read(find("adverse-selection"))["cohort"]


@register.agent("kept-quote")
class KeptQuote(ScriptedCrowd):
    """Quotes a spread of 1/8 in every round."""

    def act_many(self, forecasts: Any, contexts: Any) -> np.ndarray:
        """Return the second of the spreads 1/16, 2/16, ... (N,)."""
        return np.ones(len(self.loss), dtype=int)


def lost(model: Any) -> float:
    """Return what a maker loses to the informed per round."""
    cohort = model.agents_frame().set_index("agent")["cohort"]
    trades = model.trades_frame().merge(model.rounds_frame()[["round", "fundamental_0"]])
    gain = trades["quantity"] * (trades["fundamental_0"] - trades["price"])  # the buyer's
    buys, sells = (trades[side].map(cohort) == "informed" for side in ("buyer", "seller"))
    return float(gain[buys].sum() - gain[sells].sum()) / model.rounds / 2


def measured(rule: str, informed: int, seed: int) -> dict[str, float]:
    """Return a maker's loss to the informed, swap regret, and the part of the best single swap."""
    cohorts = [MAKERS | {"response": RULES[rule]}, NOISE | {"count": 10 - informed}]
    cohorts += [INSIDERS | {"count": informed}] if informed else []
    late = {own["name"]: 1.0 for own in cohorts[1:]}
    keys = {"cohort": cohorts, "market.latency": late}
    model = load("adverse-selection", rounds=ROUNDS, **keys).build(seed=seed, log_every=10**6)
    model.run()
    own = model.agents_frame().query("cohort == 'makers'").set_index("agent")
    swaps = model.swaps_frame().query("agent in @own.index").set_index("agent")
    part = swaps["contribution"] * own["loss_scale"]  # in units of utility
    by = part.groupby(swaps["best_replacement"]).sum() / len(own)
    regret = (own["swap_regret"] * own["loss_scale"]).mean()
    spread = (by.idxmax() + 1) / 16
    return dict(zip(MEASURES, (lost(model), regret, by.max(), spread), strict=True))


rows = [
    {"makers": rule, "informed": informed, "measure": name, "value": value}
    for rule in RULES
    for informed in INFORMED
    for seed in SEEDS
    for name, value in measured(rule, informed, seed).items()
]
means = averages(pd.DataFrame(rows), ["makers", "informed", "measure"], "value")
of = means.set_index(["makers", "informed", "measure"]).sort_index()


def told(measure: str) -> str:
    """Say a measure of makers who meet four informed traders, by how they choose."""
    own = [said(of.loc[rule, 4].loc[measure], 2) for rule in RULES]
    return f"{own[0]}, {own[1]} and {own[2]}"


lose, regret, best, _ = map(told, MEASURES)
quiet = of.loc["no swap regret", 0].loc["swap regret"]
answer = (
    "With four informed traders of ten, makers without swap regret, with Hedge, and at 1/8 lose "
    f"{lose} per round to them. Their swap regrets are {regret}; a fixed spread would have saved "
    f"{best}. Where nobody is informed, the first have a swap regret of {said(quiet, 2)}."
)
figure, axes = sheet("Makers, with four informed traders of ten", "per maker and round")
shown = means[(means["informed"] == 4) & (means["measure"] != "its spread")]
bars(axes, shown, "measure", "makers")
axes.legend(frameon=False, fontsize=8)
finish("informed", means, figure, answer)
