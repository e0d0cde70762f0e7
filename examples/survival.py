"""Who survives in a market that pays by results?

Forty bettors begin equally rich and bet shares of their wealth on rain; what one wins another
loses. Ten follow the forecast, ten learn by themselves (Hedge), ten bet by past frequencies, and
ten by discounted frequencies, in which older rounds count less. The odds are constant, or they
drift.
"""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
from shown import averages, bars, below, finish, said, sheet

from regretless import load, register
from regretless.agents.learners import TotalLearner
from regretless.scenarios.config import files

ROUNDS, SEEDS = 400, range(8)
ODDS = {
    "drift": {
        "kind": "drifting",
        "outcomes": 1,
        "step": 0.05,
        "concentration": 0.01,
        "extreme": True,
    },
    "stay": {"kind": "iid", "outcomes": 1, "mean": 0.7, "concentration": 0.01, "extreme": True},
}


@register.learner("discounted-frequencies")
class Discounted(TotalLearner):
    """Plays what was best so far, where a round counts 5 % less than the next one."""

    name = "discounted-frequencies"

    def step(self, losses: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return the next mixed strategies (K, A)."""
        self.total = 0.95 * self.total + losses
        return np.eye(losses.shape[1])[self.total.argmin(1)]


COHORTS = files.read(files.find("betting"))["cohort"]
COHORTS.append(
    copy.deepcopy(COHORTS[-1]) | {"name": "discounted", "response": "discounted-frequencies"}
)


def shares(odds: str, seed: int) -> pd.Series:
    """Shares of all wealth at the end, by cohort."""
    model = load("betting", rounds=ROUNDS, adversary=ODDS[odds], cohort=COHORTS).build(seed=seed)
    model.run()
    wealth = model.accounts_frame().query("round == round.max()")
    owned = wealth.merge(model.agents_frame()[["agent", "cohort"]], on="agent")
    total = owned.groupby("cohort", sort=False)["cash"].sum()
    return total / total.sum()


rows = [
    {"odds": odds, "seed": seed, "who": who, "share": share}
    for odds in ODDS
    for seed in SEEDS
    for who, share in shares(odds, seed).items()
]
means = averages(pd.DataFrame(rows), ["odds", "who"], "share", within=(0.0, 1.0))
own = means.set_index(["odds", "who"])
moving, recent, steady, past = (
    own.loc[key]
    for key in (
        ("drift", "followers"),
        ("drift", "discounted"),
        ("stay", "followers"),
        ("stay", "frequencies"),
    )
)
answer = (
    f"Where odds drift, discounted frequencies end with {said(recent)} of all wealth, followers "
    f"with {said(moving)}. Where they are constant, are followers ahead of past frequencies? "
    f"{below(past, steady)}: {said(steady)} against {said(past)}."
)
figure, axes = sheet("Share of all wealth after 400 rounds, by betting rule", "share of wealth")
bars(axes, means, "who", "odds")
axes.axhline(1 / 4, color="black", linewidth=0.8, linestyle=":")
axes.set_xlabel("odds (dotted: initial share of each group)")
axes.legend(frameon=False)
finish("survival", means, figure, answer)
