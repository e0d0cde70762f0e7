r"""An endogenous market: what agents buy moves prices, and prices move what goods yield.

An action spends a budget on the d goods. Its demand for good g is read off the loss itself,

    gain_ag  = max(0, l(a, y with y_g = 0) - l(a, y with y_g = 1)),   the other coordinates at 1/2,
    share_ag = gain_ag / max_b sum_h gain_bh,

so that an agent's most exposed action spends the whole budget of 1, an action that gains half as
much from all goods together spends half of it, and one that gains from none stays out. (Were every
action to spend the whole budget, one whose loss hardly depends on any good would move prices as
much as a full position.) For linear and separable losses the shares are proportional to what the
goods are worth to the action; for other forms they are a reading at the middle of the cube.

Demand is the mean over the agents who are present, and the price follows it (tatonnement with
smoothing, Walras; Nerlove 1958):

    D_g(t)   = mean over agents of share of the action played in round t,   sum_g D_g <= 1
    p_g(t+1) = (1 - adjustment) p_g(t) + adjustment D_g(t),                 p_g(0) = 1/d
    y_g(t)   = clip(fundamental_g(t) - impact (price_g - 1/d), 0, 1).

Prices are shares of the agents' total budget, from 0 to 1; 1/d is what equal shares come to and
has no effect. With impact > 0 crowded goods yield less (congestion), with impact < 0 more
(momentum). If everybody spends the whole budget the shifts add up to 0 over the goods.

    feedback     price_g     known before the round     guarantee
    lagged       p_g(t)      yes                        the theorem's: regret holds outcomes fixed
    same-round   p_g(t+1)    no: it answers the draw    none

In the lagged market moving the drawn outcome is the same as moving the law that was sealed. In the
same-round market the outcome depends on actions of the round, hence on the forecast's draw.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Remembering
from regretless.market.core.errors import UserError, closest
from regretless.market.game.crowding import Tally
from regretless.market.game.information import sight_of
from regretless.market.game.protocols import Adversary, Cohort
from regretless.market.losses import Loss
from regretless.market.records import Decision

FEEDBACKS = ("lagged", "same-round")
LEAST = 1e-9  # gains of losses in [0, 1] below this are rounding errors
ROUNDING = 1e-12  # an outcome beyond [0, 1] by less was not clipped
UNPROMISED = "no promise, since the outcome answers actions of the same round"
PLANNERS = frozenset({"play", "losses", "draw"})  # sights of those who count on their outcome


def exposure(loss: Loss) -> Array:
    """Return the share of its agent's budget that each action spends on each good.

    Parameters
    ----------
    loss : Loss
        Of stack shape (...), over d goods.

    Returns
    -------
    array (..., A, d)
        In [0, 1]; over the goods they sum to at most 1, and to 1 for the most exposed action.
    """
    goods = loss.outcomes
    ends = np.full((2, goods, goods), 0.5)
    ends[0, np.arange(goods), np.arange(goods)] = 0.0
    ends[1, np.arange(goods), np.arange(goods)] = 1.0
    at = loss.losses(ends.reshape(2 * goods, goods))
    gain = np.moveaxis(at[:goods] - at[goods:], 0, -1)
    gain = np.where(gain > LEAST, gain, 0.0)
    budget = gain.sum(-1).max(-1)[..., None, None]
    return np.asarray(np.divide(gain, budget, out=np.zeros(gain.shape), where=budget > 0))


@dataclass(frozen=True, eq=False)
class Clearing:
    """How a market cleared in one round.

    Parameters
    ----------
    fundamental : array (d,)
        The outcome before the market moved it.
    demand : array (d,)
        Share of the present agents' budgets that went to each good.
    price : array (d,)
        What moved the outcome.
    outcome : array (d,)
        In [0, 1].
    """

    fundamental: Array
    demand: Array
    price: Array
    outcome: Array

    def columns(self) -> dict[str, Array]:
        """Return what the ``rounds`` table says of it: one number per good and column."""
        parts = {"fundamental": self.fundamental, "demand": self.demand, "price": self.price}
        return {f"{name}_{i}": v[None] for name, part in parts.items() for i, v in enumerate(part)}


class Market(Remembering):
    """Prices, and how they move outcomes.

    Parameters
    ----------
    cohorts : sequence of Cohort
        Whose actions are demand.
    feedback : "lagged" or "same-round"
        Whether earlier rounds' demand moves an outcome, or this round's too.
    impact : float
        In [-1, 1]: by how much a good's yield falls as its price rises by 1.
    adjustment : float
        In (0, 1]: weight of the newest demand in the price; 1 for no memory.

    Raises
    ------
    UserError
        If a parameter leaves its range or the cohorts' losses are over different goods.
    """

    REMEMBERED = ("price", "rounds", "clipped", "tally")

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        *,
        feedback: str = "lagged",
        impact: float = 0.4,
        adjustment: float = 0.5,
    ) -> None:
        if feedback not in FEEDBACKS:
            raise UserError(f"market.feedback '{feedback}'; {closest(feedback, FEEDBACKS)}")
        if not -1 <= impact <= 1:
            raise UserError(f"market.impact = {impact}; give a number in [-1, 1]")
        if not 0 < adjustment <= 1:
            raise UserError(f"market.adjustment = {adjustment}; give a number in (0, 1]")
        goods = {cohort.loss.outcomes for cohort in cohorts}
        if len(goods) != 1:
            raise UserError(f"market: losses over {sorted(goods)} goods; give all the same number")
        self.feedback, self.impact, self.adjustment = feedback, impact, adjustment
        self.goods = goods.pop()
        self.price = np.full(self.goods, 1 / self.goods)
        self.rounds = self.clipped = 0
        self.last: Clearing | None = None
        self.tally = Tally(self.goods)
        self._cohorts = tuple(cohorts)
        self._shares = [exposure(cohort.loss) for cohort in cohorts]

    @property
    def answers_at_once(self) -> bool:
        """Whether an outcome depends on the actions of its own round; then nothing is promised."""
        return self.feedback == "same-round"

    @property
    def clipped_share(self) -> float:
        """Share of the rounds in which [0, 1] cut some good's yield; 0 before the first."""
        return self.clipped / max(self.rounds, 1)

    def demand(self, decisions: Sequence[Decision | None]) -> Array:
        """Return the mean share of their budgets that agents spend on each good (d,).

        Parameters
        ----------
        decisions : sequence of Decision or None
            One per cohort. Whoever is absent (None, or action -1) does not count; zeros if all are.
        """
        total, agents = np.zeros(self.goods), 0
        for cohort, shares, decision in zip(self._cohorts, self._shares, decisions, strict=True):
            if decision is not None:
                here = decision.actions >= 0
                total += shares[cohort.row_of[here], decision.actions[here]].sum(0)
                agents += int(here.sum())
        return total / max(agents, 1)

    def clear(self, fundamental: Array, decisions: Sequence[Decision | None]) -> Array:
        """Let a round's demand move the price, and the price the outcome.

        Parameters
        ----------
        fundamental : array (d,)
            Drawn from the law that the adversary sealed.
        decisions : as in ``demand``

        Returns
        -------
        array (d,)
            The outcome, in [0, 1].
        """
        demand = self.demand(decisions)
        settled = (1 - self.adjustment) * self.price + self.adjustment * demand
        price = settled if self.answers_at_once else self.price
        moved = fundamental - self.impact * (price - 1 / self.goods)
        outcome = np.clip(moved, 0.0, 1.0) + 0.0  # one zero, not two
        self.clipped += int(bool((np.abs(moved - outcome) > ROUNDING).any()))
        self.rounds += 1
        self.price = settled
        self.tally.add(demand)
        self.last = Clearing(fundamental, demand, price, outcome)
        return outcome

    def described(self) -> dict[str, Any]:
        """Describe the market and what demand did in it so far, for a manifest."""
        return {
            "feedback": self.feedback,
            "impact": self.impact,
            "adjustment": self.adjustment,
            "reference": 1 / self.goods,
            "clipped_share": self.clipped_share,
            **self.tally.means(),
        }


def check_leader(adversary: Adversary) -> None:
    """Raise UserError for an adversary that plans as if the outcome it chooses were to happen."""
    planned = sorted(sight_of(adversary) & PLANNERS)
    if planned:
        raise UserError(
            f"market: the adversary sees {', '.join(planned)} and plans with outcomes that the "
            "market would move; choose one that does not, or drop [market]"
        )
