"""Who survives in a market that pays by results?

Forty bettors begin equally rich and bet shares of their wealth on rain; what one wins another
loses. Ten follow the forecast, ten learn by themselves (Hedge), ten bet by past frequencies, and
ten by discounted frequencies, in which older rounds count less. The odds are constant, or they
drift. Discounted frequencies are a learner of this example's own, registered under a name.

    python examples/survival.py figures

prints which shares of all wealth the groups own after 400 rounds. All shares are in
figures/survival.csv and figures/survival.png.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from helpers.estimates import answer_whether_below, estimate_means, find_estimate
from helpers.output import draw_bars, new_figure, publish

from regretless import load, register
from regretless.agents.learners import TotalLearner
from regretless.scenarios.config import files

ROUNDS = 400
SEEDS = range(8)
RAIN: dict[str, object] = {"outcomes": 1, "concentration": 0.01, "extreme": True}  # nearly 0 or 1
ODDS: dict[str, dict[str, object]] = {
    "drift": {"kind": "drifting", "step": 0.05, **RAIN},
    "stay": {"kind": "iid", "mean": 0.7, **RAIN},
}


@register.learner("discounted-frequencies")
class DiscountedFrequencies(TotalLearner):
    """Plays what was best so far, where a round counts 5 % less than the next one."""

    name = "discounted-frequencies"

    def step(self, losses: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return the next mixed strategies of K learners (K, A), given their losses (K, A)."""
        self.total = 0.95 * self.total + losses
        best_actions = self.total.argmin(axis=1)
        return np.eye(losses.shape[1])[best_actions]


followers, learners, frequencies = files.read(files.find("betting"))["cohort"]
discounted = {**frequencies, "name": "discounted", "response": "discounted-frequencies"}
COHORTS = [followers, learners, frequencies, discounted]


def shares_of_wealth(odds: str, seed: int) -> pd.Series:
    """Play the market and return the share of all wealth that each cohort owns at the end."""
    scenario = load("betting", rounds=ROUNDS, adversary=ODDS[odds], cohort=COHORTS)
    model = scenario.build(seed=seed)
    model.run()
    wealth = model.accounts_frame().query("round == round.max()")
    wealth = wealth.merge(model.agents_frame()[["agent", "cohort"]], on="agent")
    wealth_of_cohort = wealth.groupby("cohort", sort=False)["cash"].sum()
    return wealth_of_cohort / wealth_of_cohort.sum()


runs = []
for odds in ODDS:
    for seed in SEEDS:
        for cohort, share in shares_of_wealth(odds, seed).items():
            runs.append({"odds": odds, "seed": seed, "who": cohort, "share": share})
means = estimate_means(pd.DataFrame(runs), ["odds", "who"], "share", within=(0.0, 1.0))

followers_drift = find_estimate(means, odds="drift", who="followers")
discounted_drift = find_estimate(means, odds="drift", who="discounted")
followers_stay = find_estimate(means, odds="stay", who="followers")
frequencies_stay = find_estimate(means, odds="stay", who="frequencies")
answer = (
    f"Where odds drift, discounted frequencies end with {discounted_drift:.3f} of all wealth, "
    f"followers with {followers_drift:.3f}. Where they are constant, are followers ahead of past "
    f"frequencies? {answer_whether_below(frequencies_stay, followers_stay)}: "
    f"{followers_stay:.3f} against {frequencies_stay:.3f}."
)

figure, axes = new_figure(
    "Share of all wealth after 400 rounds, by betting rule", measured="share of wealth"
)
draw_bars(axes, means, place="odds", colour="who")
axes.axhline(1 / len(COHORTS), color="black", linewidth=0.8, linestyle=":")
axes.set_xlabel("odds (dotted: initial share of each group)")
axes.legend(frameon=False)
publish("survival", answer=answer, table=means, figure=figure)
