"""Leaders who answer the announced play: myopic ones, one that looks ahead, one that cheats.

**Myopic**: the outcome that pays most against the law of play that everybody is announced to follow
this round, averaged over all agents; in a market, by what the market will make of it.

**Looking ahead.** For each outcome of the support, forecaster and population play H rounds in which
that outcome happens every time (``market.game.lookahead``), on copies with fresh random streams;
the outcome whose H rounds pay most is the one of this round. Next round it thinks again. It costs m
H rounds of forecasting and responding per round, m the size of the support, and m copies of the
forecaster's and the learners' memory.

**Seeing the draw.** The rule that the adversary commits before the forecast is drawn is what makes
a mixture of predictions safe. ``DrawSeer`` breaks it: it picks what pays most against the very
actions that the drawn forecast induces. In matching pennies it wins every round. It exists to show
that the rule is needed; nothing is guaranteed in its presence.
"""

from typing import Any, ClassVar

import numpy as np

from regretless.agents.adversaries.leader import Strategic, whole
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.records import Announcement, Context, History, OutcomeLaw


@register.adversary("myopic")
class Myopic(Strategic):
    """Best outcome of its support against the announced play.

    Parameters
    ----------
    outcomes : int
    rng : numpy Generator
        Unused.
    **motive : weights, offset, support, grid
        As in ``Strategic``.
    """

    minds_market: ClassVar[bool] = True

    def commit(self, context: Context, history: History, announced: Announcement) -> OutcomeLaw:
        """Seal the best outcome, the first of several."""
        worth = self.worth(announced.play, announced.moved(self.support))
        return OutcomeLaw.pure(self.best(worth))


@register.adversary("look-ahead")
class LookAhead(Strategic):
    """Best first step of a constant plan, by rollout.

    Parameters
    ----------
    rng : numpy Generator
        Seeds the copies; all plans of a round meet the same draws.
    horizon : int
        Rounds of a plan, H; with 1 it is myopic.
    **motive : weights, offset, support, grid
        As in ``Strategic``.
    """

    REMEMBERED = ("rng",)

    def __init__(
        self, outcomes: int, rng: np.random.Generator, *, horizon: int = 5, **motive: Any
    ) -> None:
        super().__init__(outcomes, rng, **motive)
        self.horizon = whole("horizon", horizon, least=1)

    def commit(self, context: Context, history: History, announced: Announcement) -> OutcomeLaw:
        """Seal the outcome whose plan pays most, the first of several."""
        return OutcomeLaw.pure(self.best(self.plans(announced)))

    def plans(self, announced: Announcement) -> Array:
        """Return the payoff per agent and round (m,) of doing the same for H rounds."""
        seed = int(self.rng.integers(2**63))
        plans = np.empty(len(self.support))
        for i, outcome in enumerate(self.support):
            laws = announced.rollout(outcome, self.horizon, seed=seed)
            plans[i] = np.mean([self.worth(play)[i] for play in laws])
        return plans


@register.adversary("draw-seer")
class DrawSeer(Strategic):
    """Best outcome of its support against the actions that the drawn forecast induces.

    Parameters
    ----------
    outcomes : int
    rng : numpy Generator
        Unused.
    **motive : weights, offset, support, grid
        As in ``Strategic``.
    """

    sees = Strategic.sees | {"draw"}

    def commit(self, context: Context, history: History, announced: Announcement) -> OutcomeLaw:
        """Seal the best outcome, the first of several."""
        return OutcomeLaw.pure(self.best(self.worth(announced.induced)))
