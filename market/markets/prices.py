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
    y_g(t)   = clip(fundamental_g(t) - impact (price_g - 1/d), 0, 1),

with the price of before the round where feedback is lagged, else that of after it
(``market.markets.settling``).

Prices are shares of the agents' total budget, from 0 to 1; 1/d is what equal shares come to and
has no effect. With impact > 0 crowded goods yield less (congestion), with impact < 0 more
(momentum). If everybody spends the whole budget the shifts add up to 0 over the goods.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.game.markets import Decisions, at_ends
from regretless.market.game.protocols import Cohort
from regretless.market.losses import Loss
from regretless.market.markets.crowding import Tally
from regretless.market.markets.settling import Settling

LEAST = 1e-9  # gains of losses in [0, 1] below this are rounding errors


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
    low, high = at_ends(loss)
    gain = low - high
    gain = np.where(gain > LEAST, gain, 0.0)
    budget = gain.sum(-1).max(-1)[..., None, None]
    return np.asarray(np.divide(gain, budget, out=np.zeros(gain.shape), where=budget > 0))


@register.market("prices")
class Prices(Settling):
    """Prices, and how they move outcomes.

    Parameters
    ----------
    cohorts, rng, feedback, adjustment : as in ``Settling``
        Their actions are demand, their prices the level.
    impact : float
        In [-1, 1]: by how much a good's yield falls as its price rises by 1.

    Raises
    ------
    UserError
        If a parameter leaves its range or the cohorts' losses are over different goods.
    """

    REMEMBERED = ("tally",)
    weighs = True

    def __init__(
        self,
        cohorts: Sequence[Cohort],
        rng: np.random.Generator,
        *,
        feedback: str = "lagged",
        impact: float = 0.4,
        adjustment: float = 0.5,
    ) -> None:
        if not -1 <= impact <= 1:
            raise UserError(f"market.impact = {impact}; give a number in [-1, 1]")
        start = np.ones(cohorts[0].loss.outcomes)
        start /= len(start)
        shares = [exposure(cohort.loss) for cohort in cohorts]
        rules: Any = {"feedback": feedback, "adjustment": adjustment, "tables": shares}
        super().__init__(cohorts, rng, start=start, **rules)
        self.impact, self.tally = impact, Tally(self.goods)

    def aggregate(self, decisions: Decisions) -> Array:
        """Return how many agents are there, and the budgets that they spend on each good."""
        return self.spent(decisions)

    def answer(self, fundamental: Array, load: Array) -> Array:
        """Let a round's demand move the price, and the price the outcome."""
        agents, *spent = load.sum(0)
        demand = np.array(spent) / max(agents, 1)
        price = self.settle(demand)
        outcome = self.kept(fundamental - self.impact * (price - 1 / self.goods))
        self.tally.add(demand)
        self.last = {"fundamental": fundamental, "demand": demand, "price": price}
        return outcome

    def sway(self, place: int) -> Array:
        """Return what an agent's budget does to yields (K, d)."""
        return self.swayed(self.tables[place], abs(self.impact) / self.agents)

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

    def told(self) -> str:
        """Sum up what demand did, in one line."""
        kind = "congestion" if self.impact > 0 else "momentum" if self.impact else "no effect"
        means = self.tally.means()
        return (
            f"Market: {self.feedback} {kind} ({self.impact:g}), concentration of demand "
            f"{means['concentration']:.2f} (evenly spread {1 / self.goods:.2f}), "
            f"{means['churn']:.0%} of all budgets changed goods a round, "
            f"{self.clipped_share:.1%} of outcomes clipped"
        )
