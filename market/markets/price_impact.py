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

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.compiled import compiled
from regretless.market.game.market import at_ends, check_key, columns_before_clearing
from regretless.market.game.protocols import Cohort
from regretless.market.losses import Loss
from regretless.market.markets.aggregate import Settling, cut_and_add, follow

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


@compiled(nogil=True)
def _concentration_and_churn(demand: Array, last_demand: Array) -> tuple[float, float]:
    """Return a round's concentration, NaN for no demand, and its churn, NaN at first (compiled).

    With x the demand and x' that of the round before, arrays (d,), they are
    sum_g (x_g / sum_h x_h)^2 and sum_g |x_g - x'_g| / 2.
    """
    total = 0.0
    for units in demand:
        total += units
    concentration_of_round = np.nan
    if total > 0:
        concentration_of_round = 0.0
        for units in demand:
            concentration_of_round += (units / total) ** 2
    moved = 0.0
    for g in range(len(demand)):
        moved += abs(demand[g] - last_demand[g])
    return concentration_of_round, moved / 2


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
        concentration_of_round, churn_of_round = _concentration_and_churn(demand, self._last_demand)
        if not math.isnan(concentration_of_round):
            self._concentration_sum += concentration_of_round
            self._concentration_rounds += 1
        if not math.isnan(churn_of_round):
            self._churn_sum += churn_of_round
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


def yield_at_rest(fundamental: Any, price: Any, impact: float, reference: float) -> Any:
    """Return y_g, not yet cut, at a price that rests: numbers, or arrays of them."""
    return fundamental - impact * (price - reference)


_yield_at_rest = compiled(nogil=True)(yield_at_rest)  # of numbers, for the kernel


@compiled(nogil=True)
def _answer_demand(
    sums: Array,
    price: Array,
    adjustment: float,
    answers_at_once: bool,  # noqa: FBT001
    impact: float,
    outcome: Array,
    demand: Array,
    new_price: Array,
    n_outcomes: int,
    mean: Array,
    squares: Array,
) -> bool:
    """Let prices follow the demand of a round, and write the outcome (compiled).

    demand_g = sum_g / agents, and y_g is that of ``yield_at_rest`` at the price that ``follow``
    returns, cut to [0, 1].

    Parameters
    ----------
    sums : array (2, 1 + d)
        Agents, and what they spend on each good, as ``Settling.aggregate`` returns them.
    price : array (d,)
        Before the round.
    adjustment, answers_at_once, impact
        Of the market.
    outcome : array (d,)
        The fundamental, which becomes the outcome in place.
    demand, new_price : array (d,)
        Written: the mean share of a budget that is spent on each good, and the price after it.
    n_outcomes, mean, squares
        Of ``Moments``: how many there are with this one; the others (d,) are updated in place.

    Returns
    -------
    bool
        Whether [0, 1] cut the outcome.
    """
    n_goods = len(outcome)
    n_agents = max(sums[0, 0] + sums[1, 0], 1.0)
    for g in range(n_goods):
        demand[g] = (sums[0, 1 + g] + sums[1, 1 + g]) / n_agents
    settled = follow(price, demand, adjustment, answers_at_once, new_price)
    for g in range(n_goods):
        outcome[g] = _yield_at_rest(outcome[g], settled[g], impact, 1 / n_goods)
    return cut_and_add(outcome, n_outcomes, mean, squares)


@register.market("prices")
class Prices(Settling):
    """Prices; ``impact`` is by how much a good's yield falls as its price rises by 1."""

    REMEMBERED = ("tally",)
    answers_by_kernel = True
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
        self.impact = float(impact)
        self.tally = Tally(self.goods)
        self.last = columns_before_clearing(
            fundamental=self.goods, demand=self.goods, price=self.goods
        )

    def answer(self, fundamental: Array, load: Array) -> Array:
        outcome = self.begin_outcome(fundamental)
        demand = np.empty(self.goods)
        price_before = self.level
        price_after = np.empty(self.goods)
        self.clipped += _answer_demand(
            load,
            price_before,
            self.adjustment,
            self.answers_at_once,
            self.impact,
            outcome,
            demand,
            price_after,
            self.outcomes.count,
            self.outcomes.mean,
            self.outcomes.squares,
        )
        self.level = price_after
        self.tally.add(demand)
        price = price_after if self.answers_at_once else price_before
        self.last = {"fundamental": fundamental, "demand": demand, "price": price}
        return outcome

    def rest(self, fundamental: Array, level: Array) -> Array:
        return np.asarray(yield_at_rest(fundamental, level, self.impact, 1 / self.goods))

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
