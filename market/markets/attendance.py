r"""How many do the same: the outcome is the share of agents who play each action but the first.

    share_g = (agents who play action g + 1) / (agents who are there)
    y_g     = always_g + (1 - sum_h always_h) share_g + noise (fundamental_g - 1/2), cut to [0, 1]

with ``always_g`` the share of a crowd that is not modelled and always plays it.
``market.markets.settling`` says which share counts: the smoothed level of before the round, or of
after it.

El Farol (Arthur 1994; the minority game of Challet and Zhang 1997). Action 1 is to go, worth 1 - y
against 1 - c for staying: nobody regrets where mean attendance is at the capacity c. If N agents
draw whether to go, each by itself, attendance has the deviation sqrt(c (1 - c) / N); if all follow
one draw, sqrt(c (1 - c)).

A bank run (Diamond and Dybvig 1983). Action 1 is to withdraw, the impatient always do; with utility
``depositor`` everybody's patience and everybody's run are both equilibria, and y at the start
decides between them, or what is forecast of it.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.game.markets import Decisions
from regretless.market.game.protocols import Cohort
from regretless.market.markets.settling import Settling


@register.market("attendance")
class AttendanceMarket(Settling):
    """The share of agents who play each action but the first.

    Parameters
    ----------
    cohorts, rng, feedback, adjustment : as in ``Settling``
        Their loads are the shares.
    always : float, or list of d
        Shares of the whole crowd that always play the actions; they sum to less than 1.
    noise : float
        How far the fundamental moves the outcome, from its least to its greatest value.
    start : float, or list of d
        Shares before the first round.

    Raises
    ------
    UserError
        If agents have another number of actions than outcomes and 1, or shares are none.
    """

    weighs = True
    meant: ClassVar[Mapping[str, str]] = {"share": "share of these agents"}

    def __init__(  # noqa: PLR0913 - keyword-only from the third
        self,
        cohorts: Sequence[Cohort],
        rng: np.random.Generator,
        *,
        always: float | list[float] = 0.0,
        noise: float = 0.0,
        start: float | list[float] = 0.0,
        feedback: str = "same-round",
        adjustment: float = 1.0,
    ) -> None:
        d = cohorts[0].loss.outcomes
        shares = [np.broadcast_to(np.asarray(s, np.float64), d).copy() for s in (always, start)]
        for name, share in zip(("always", "start"), shares, strict=True):
            if (share < 0).any() or share.sum() > 1:
                raise UserError(f"market.{name} = {share.tolist()}; give shares of one crowd")
        for cohort in cohorts:
            if cohort.loss.actions != d + 1:
                raise UserError(f"cohort.{cohort.name}.actions; give {d + 1}, outcomes and one")
        super().__init__(cohorts, rng, start=shares[1], feedback=feedback, adjustment=adjustment)
        self.always, self.noise = shares[0], noise

    def aggregate(self, decisions: Decisions) -> Array:
        """Count heads per action (d + 1,)."""
        counts = np.zeros(self.goods + 1)
        for played in self.taken(decisions):
            counts += played.per_action(len(counts))
        return counts

    def answer(self, fundamental: Array, load: Array) -> Array:
        """Let the crowd be as large as it is."""
        share = load[1:] / max(load.sum(), 1)
        settled, shift = self.settle(share), self.noise * (fundamental - 0.5)
        self.last = {"fundamental": fundamental, "share": share}
        return self.kept(self.always + (1 - self.always.sum()) * settled + shift)

    def sway(self, place: int) -> Array:
        """Return what a head adds to the shares (K, d)."""
        rows, modelled = len(self.cohorts[place].loss), 1 - self.always.sum()
        return np.full((rows, self.goods), self.adjustment * modelled / self.agents)

    def told(self) -> str:
        """Sum up the first outcome's mean and deviation."""
        mean, spread = self.outcomes.mean[0], self.outcomes.deviation()[0]
        return f"Market: {mean:.1%} of the agents take part on average, give or take {spread:.1%}"
