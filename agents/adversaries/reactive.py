r"""Adversaries that answer the announced play: leaders, and one that maximises regret.

**Myopic**: the outcome that pays most against the mixed strategies that everybody is announced to
follow this round, averaged over all agents; in a market, by what the market will make of it.

**Looking ahead.** For each outcome of the support, forecaster and population play H rounds in which
that outcome happens every time (``market.game.lookahead``), on copies with fresh random streams;
the outcome whose H rounds pay most is the one of this round. Next round it thinks again. It costs m
H rounds of forecasting and responding per round, m the size of the support, and m copies of the
forecaster's and the learners' memory.

**Seeing the draw.** The rule that the adversary commits before the forecast is drawn is what makes
a mixture of predictions safe. ``DrawSeer`` breaks it: it picks what pays most against the very
actions that the drawn forecast induces. In matching pennies it wins every round. It exists to show
that the rule is needed; nothing is guaranteed in its presence.

**Maximising regret.** Every outcome is the one that makes somebody regret most. The adversary
counts what each follower's expected swap regret would be after the round, at the announced
mixed strategies q, for every outcome y of its support,

    R_k(y) = sum_a max_b [ G_k[a, b] + q_k(a) (l_k(a, y) - l_k(b, y)) ],    G the sums so far,

and commits to the outcome at which the worst follower's R_k is the greatest: greedy on the very
quantity that the theorem bounds. With ``agent`` it looks at one row of the first cohort alone. No
bound is known to be met by any opponent; this one says how much of a bound is slack against greed.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from regretless.agents.adversaries.leader import Leader
from regretless.agents.parameters import check_int
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.game.protocols import Follower
from regretless.market.records import AdversaryView, Context, History, OutcomeDistribution


@register.adversary("myopic")
class Myopic(Leader):
    """Best outcome of its support against the announced play.

    Its keywords (weights, offset, support, grid) are those of ``Leader``.
    """

    minds_market: ClassVar[bool] = True

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        """Commit to the best outcome, the first of several."""
        worth = self.worth(announced.play, announced.moved(self.support))
        return OutcomeDistribution.pure(self.best(worth))


@register.adversary("look-ahead")
class LookAhead(Leader):
    """Best first step of a constant plan, by rollout.

    Parameters
    ----------
    rng : numpy Generator
        Seeds the copies; all plans of a round meet the same draws.
    horizon : int
        Rounds of a plan, H; with 1 it is myopic.
    **motive : weights, offset, support, grid
        As in ``Leader``.
    """

    REMEMBERED = ("rng",)

    def __init__(
        self, outcomes: int, rng: np.random.Generator, *, horizon: int = 5, **motive: Any
    ) -> None:
        super().__init__(outcomes, rng, **motive)
        self.horizon = check_int("horizon", horizon, least=1)

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        """Commit to the outcome whose plan pays most, the first of several."""
        return OutcomeDistribution.pure(self.best(self.plans(announced)))

    def plans(self, announced: AdversaryView) -> Array:
        """Return the payoff per agent and round (m,) of doing the same for H rounds."""
        seed = int(self.rng.integers(2**63))
        plans = np.empty(len(self.support))
        for i, outcome in enumerate(self.support):
            strategies = announced.rollout(outcome, self.horizon, seed=seed)
            plans[i] = np.mean([self.worth(play)[i] for play in strategies])
        return plans


@register.adversary("draw-seer")
class DrawSeer(Leader):
    """Best outcome of its support against the actions that the drawn forecast induces.

    Its keywords (weights, offset, support, grid) are those of ``Leader``.
    """

    sees = Leader.sees | {"draw"}

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        """Commit to the best outcome, the first of several."""
        return OutcomeDistribution.pure(self.best(self.worth(announced.induced)))


@register.adversary("regret-maximiser")
class RegretMaximiser(Leader):
    """Chooses the outcome after which the worst follower has the most swap regret.

    Parameters
    ----------
    agent : int, optional
        The row of the first cohort whose regret it raises, from 0; without it whoever's is worst.
    **choices : support, grid
        As in ``Leader``.
    """

    REMEMBERED = ("_gaps",)

    def __init__(
        self, outcomes: int, rng: np.random.Generator, *, agent: int | None = None, **choices: Any
    ) -> None:
        super().__init__(outcomes, rng, **choices)
        self.agent = None if agent is None else check_int("agent", agent, least=0)
        self._gaps: list[Array] = []

    def meet(self, followers: Sequence[Follower]) -> None:
        """Begin to count; UserError if there is no such agent to aim at."""
        super().meet(followers)
        rows = len(followers[0].loss)
        if self.agent is not None and self.agent >= rows:
            there = f"the first cohort has {rows} different agents"
            raise UserError(f"adversary.agent = {self.agent}: {there}, from 0; choose one of them")
        sizes = [(len(who.loss), who.loss.actions) for who in followers]
        self._gaps = [np.zeros((rows, count, count)) for rows, count in sizes]

    def commit(
        self, context: Context, history: History, announced: AdversaryView
    ) -> OutcomeDistribution:
        """Commit to the outcome that makes the worst regret greatest, the first of several."""
        added = [self._added(place, strategy) for place, strategy in enumerate(announced.play)]
        regrets = [
            (gaps + more).max(-1).sum(-1) for gaps, more in zip(self._gaps, added, strict=True)
        ]
        aim = regrets[0][:, [self.agent]] if self.agent is not None else np.hstack(regrets)
        outcome = self.best(aim.max(1))
        chosen = int((self.support == outcome).all(1).argmax())
        self._gaps = [gaps + more[chosen] for gaps, more in zip(self._gaps, added, strict=True)]
        return OutcomeDistribution.pure(outcome)

    def _added(self, place: int, strategy: Array | None) -> Array:
        """Return what each outcome would add to a cohort's sums (m, K, A, A)."""
        losses = self._values[place]
        if strategy is None:
            return np.zeros((*losses.shape, losses.shape[-1]))
        return np.asarray(strategy[..., None] * (losses[..., None] - losses[:, :, None]))
