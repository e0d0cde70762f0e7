r"""Prices that move with demand, and what demand and the forecast did to each other.

Scenario files choose the market by the kind ``prices``; reports call ``crowding`` on the tables of
a run.

**The market** is that of docs/markets.md. What an action demands is read off the loss itself,

    gain_ag  = max(0, l(a, y with y_g = 0) - l(a, y with y_g = 1)),   the other coordinates at 1/2,
    share_ag = gain_ag / max_b sum_h gain_bh,

for linear and separable losses in proportion to what the goods are worth to the action; for other
forms it is a reading at the middle of the cube. The price follows mean demand (tatonnement with
smoothing, Walras; Nerlove 1958) as ``market.markets.aggregate`` says, from 1/d on,

    y_g(t) = clip(fundamental_g(t) - impact (price_g - 1/d), 0, 1),

so that crowded goods yield less with impact > 0 (congestion), more with impact < 0 (momentum).

**Crowding**, what agents' demand and the forecast did to each other, is read from the logs of a
run:

    concentration  sum_g (D_g / sum_h D_h)^2, the Herfindahl index of a round's demand D: 1/d where
                   it is spread evenly over d goods, 1 where all of it goes to one
    churn          1/2 sum_g |D_g(t) - D_g(t-1)|: the share of all budgets that moved from one good
                   to another since the round before; large in cobweb cycles (Ezekiel 1938)
    miss           mean over the goods of |label_g - y_g|: the drawn label forecast's distance to
                   the outcome
    miss_before    the same distance to the fundamental, the outcome before the market moved it
    confirmed      miss_before - miss: by how much the market brought the outcome nearer to what had
                   been said. Above 0 the forecast fulfilled itself, below 0 it defeated itself
                   (Merton 1948; "performative" in Perdomo et al. 2020)

Where several blocks are broadcast their drawn labels are averaged; without labels the last three
are NaN. ``Tally`` keeps the means of the first two while a run goes on.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.game.market import at_ends, check_key, columns_before_clearing
from regretless.market.game.protocols import Cohort
from regretless.market.losses import Loss
from regretless.market.markets.aggregate import Settling

MEASURES = ("concentration", "churn", "miss", "miss_before", "confirmed")
SMALLEST_GAIN = 1e-9  # gains of losses in [0, 1] below this are rounding errors


def concentration(demand: ArrayLike) -> Array:
    """Compute the Herfindahl index of each round's demand (T, d): (T,), NaN for none."""
    table = np.asarray(demand, dtype=np.float64)
    total = table.sum(1, keepdims=True)
    shares = np.divide(table, total, out=np.full(table.shape, np.nan), where=total > 0)
    return np.asarray((shares**2).sum(1))


def churn(demand: ArrayLike) -> Array:
    """Compute the share of all budgets that changed goods, by demand (T, d): (T,), NaN at first."""
    table = np.asarray(demand, dtype=np.float64)
    return np.asarray(np.abs(np.diff(table, axis=0, prepend=np.nan)).sum(1) / 2)


class Tally(Checkpointable):
    """Running means of concentration and churn over d goods, in bounded memory."""

    REMEMBERED = (
        *("_last_demand", "_concentration_sum", "_concentration_rounds"),
        *("_churn_sum", "_churn_rounds"),
    )

    def __init__(self, goods: int) -> None:
        self._last_demand = np.full(goods, np.nan)  # (d,), of the round before
        # The sum of each measure, and the rounds that have one: no demand has no concentration, and
        # the first demand has not changed.
        self._concentration_sum = 0.0
        self._concentration_rounds = 0
        self._churn_sum = 0.0
        self._churn_rounds = 0

    def add(self, demand: Array) -> None:
        """Add a round's demand (d,)."""
        total = demand.sum()
        if total > 0:
            shares = demand / total
            self._concentration_sum += float((shares**2).sum())
            self._concentration_rounds += 1
        changed_share = np.abs(demand - self._last_demand).sum() / 2
        if not np.isnan(changed_share):
            self._churn_sum += float(changed_share)
            self._churn_rounds += 1
        self._last_demand = demand

    def means(self) -> dict[str, float]:
        """Return ``concentration`` and ``churn``; 0 where no round had one."""
        return {
            "concentration": self._concentration_sum / max(self._concentration_rounds, 1),
            "churn": self._churn_sum / max(self._churn_rounds, 1),
        }


def crowding(rounds: pd.DataFrame, forecasts: pd.DataFrame) -> pd.DataFrame:
    """Measure every round of a run's tables, in order: ``round`` and ``MEASURES``.

    ``rounds`` and ``forecasts`` are the run's tables of these names. ValueError if the run had no
    market.
    """
    demand = columns(rounds, "demand")
    if not demand.shape[1]:
        raise ValueError("the rounds have no demand; give the tables of a run with a market")
    label = drawn_labels(forecasts, len(rounds), demand.shape[1])
    miss = np.abs(label - columns(rounds, "y")).mean(1)
    miss_before = np.abs(label - columns(rounds, "fundamental")).mean(1)
    measures = {
        "round": rounds["round"].to_numpy(),
        "concentration": concentration(demand),
        "churn": churn(demand),
        "miss": miss,
        "miss_before": miss_before,
        "confirmed": miss_before - miss,
    }
    return pd.DataFrame(measures)


def columns(table: pd.DataFrame, name: str) -> Array:
    """Return the columns ``name_0``, ``name_1`` and so on of a table as an array (rows, count)."""
    return table.filter(regex=rf"^{name}_\d+$").to_numpy(dtype=np.float64)


def drawn_labels(forecasts: pd.DataFrame, rounds: int, goods: int) -> Array:
    """Return the label forecast that was broadcast each round (T, d), mean over the blocks."""
    drawn = forecasts[forecasts["drawn"].astype(bool)]
    labels = columns(drawn, "label")
    if not labels.shape[1]:
        return np.full((rounds, goods), np.nan)
    return np.asarray(labels.reshape(rounds, -1, goods).mean(1))


def exposure(loss: Loss) -> Array:
    """Return the share of its agent's budget that each action spends on each good (..., A, d).

    Over the goods they sum to at most 1, and to 1 for the most exposed action.
    """
    low, high = at_ends(loss)
    gain = np.where(low - high > SMALLEST_GAIN, low - high, 0.0)
    budget = gain.sum(-1).max(-1)[..., None, None]
    return np.asarray(np.divide(gain, budget, out=np.zeros(gain.shape), where=budget > 0))


@register.market("prices")
class Prices(Settling):
    """Prices; ``impact`` is by how much a good's yield falls as its price rises by 1."""

    REMEMBERED = ("tally",)
    supports_multiplicity = True

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        rng: np.random.Generator,
        *,
        feedback: str = "lagged",
        impact: float = 0.4,
        adjustment: float = 0.5,
    ) -> None:
        check_key("impact", impact, -1 <= impact <= 1, "a number in [-1, 1]")
        n_goods = cohorts[0].loss.outcomes
        super().__init__(
            cohorts,
            rng,
            start=np.full(n_goods, 1 / n_goods),
            feedback=feedback,
            adjustment=adjustment,
            loads_of_actions=[exposure(cohort.loss) for cohort in cohorts],
        )
        self.impact = impact
        self.tally = Tally(self.goods)
        self.last = columns_before_clearing(
            fundamental=self.goods, demand=self.goods, price=self.goods
        )

    def answer(self, fundamental: Array, load: Array) -> Array:
        agents, *spent = load.sum(0)
        demand = np.array(spent) / max(agents, 1)
        price = self.settle(demand)
        outcome = self.within_cube(self.rest(fundamental, price))
        self.tally.add(demand)
        self.last = {"fundamental": fundamental, "demand": demand, "price": price}
        return outcome

    def rest(self, fundamental: Array, level: Array) -> Array:
        return np.asarray(fundamental - self.impact * (level - 1 / self.goods))

    def price_impact(self, cohort_index: int) -> Array:
        return self.impact_of_one_agent(
            self.loads_of_actions[cohort_index],
            outcome_per_load=abs(self.impact) / self.agents,
        )

    def described(self) -> dict[str, Any]:
        return {
            "feedback": self.feedback,
            "impact": self.impact,
            "adjustment": self.adjustment,
            "reference": 1 / self.goods,
            "clipped_share": self.clipped_share,
            **self.tally.means(),
        }

    def summary(self) -> str:
        kind = "no effect"
        if self.impact > 0:
            kind = "congestion"
        elif self.impact < 0:
            kind = "momentum"
        figures = self.described()
        return (
            f"Market: {self.feedback} {kind} ({self.impact:g}), concentration of demand "
            f"{figures['concentration']:.2f} (evenly spread {figures['reference']:.2f}), "
            f"{100 * figures['churn']:.0f} % of all budgets change goods per round, "
            f"{100 * figures['clipped_share']:.1f} % of outcomes clipped"
        )
