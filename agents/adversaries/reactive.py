r"""Adversaries that answer the announced play: leaders, and one that maximises regret.

They commit in every round, in sight of the mixed strategies that followers would play
(``announced.play``); ``agents.adversaries.leader`` says what an outcome is worth to them.

Shapes: m outcomes of the support, K rows and A actions of a cohort.

Looking ahead
-------------
For each outcome of the support, forecaster and population play H rounds in which that outcome
happens every time (``market.game.lookahead``), on copies with fresh random streams; the outcome
whose H rounds pay most is the one of this round. It costs m H rounds of forecasting and responding
per round, and m copies of the forecaster's and the learners' memory.

Seeing the draw
---------------
The rule that the adversary commits before the forecast is drawn is what makes a mixture of
predictions safe. ``DrawSeer`` breaks it, and in matching pennies wins every round. It exists to
show that the rule is needed; nothing is guaranteed in its presence.

Maximising regret
-----------------
Every outcome is the one that makes somebody regret most. The adversary counts what each follower's
expected swap regret would be after the round, at the announced mixed strategies q, for every
outcome y of its support,

    R_k(y) = sum_a max_b [ G_k[a, b] + q_k(a) (l_k(a, y) - l_k(b, y)) ],    G the sums so far,

and commits to the outcome at which the worst follower's R_k is the greatest: greedy on the very
quantity that the theorem bounds. No bound is known to be met by any opponent; this one says how
much of a bound is slack against greed. G is ``_regret_sums`` in the code, l ``_payoff_tables``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regretless.agents.adversaries.leader import Leader, Pure
from regretless.agents.parameters import check_int
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.game.protocols import Follower
from regretless.market.records import AdversaryView, History


@register.adversary("myopic")
class Myopic(Pure, Leader):
    """Best outcome of its support against the announced play, the first of several.

    In a market, by what the market will make of it.
    """

    minds_market = True

    def outcome(self, history: History, announced: AdversaryView) -> Array:
        return self.best(self.worth(announced.play, announced.moved(self.support)))


@register.adversary("look-ahead")
@dataclass(eq=False, repr=False, kw_only=True)
class LookAhead(Pure, Leader):
    """Best first step of a constant plan of ``horizon`` rounds, by rollout; with 1 it is myopic.

    ``rng`` seeds the copies; all plans of a round meet the same draws.
    """

    REMEMBERED = ("rng",)
    horizon: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_int("horizon", self.horizon, least=1)

    def outcome(self, history: History, announced: AdversaryView) -> Array:
        return self.best(self.plans(announced))

    def plans(self, announced: AdversaryView) -> Array:
        """Return the payoff per agent and round (m,) of doing the same for H rounds.

        All plans of a round meet the same random draws.
        """
        seed = int(self.rng.integers(2**63))
        payoffs = np.empty(len(self.support))
        for i, outcome in enumerate(self.support):
            strategies = announced.rollout(outcome, self.horizon, seed=seed)
            payoffs[i] = np.mean([self.worth(play)[i] for play in strategies])
        return payoffs


@register.adversary("draw-seer")
class DrawSeer(Pure, Leader):
    """Best outcome of its support against the actions that the drawn forecast induces."""

    sees = Leader.sees | {"draw"}

    def outcome(self, history: History, announced: AdversaryView) -> Array:
        return self.best(self.worth(announced.induced))


@register.adversary("regret-maximiser")
@dataclass(eq=False, repr=False, kw_only=True)
class RegretMaximiser(Pure, Leader):
    """Chooses the outcome after which the worst follower has the most swap regret.

    With ``agent`` it is the regret of this row of the first cohort, from 0.
    """

    REMEMBERED = ("_regret_sums",)
    agent: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.agent is not None:
            check_int("agent", self.agent, least=0)
        self._regret_sums: list[Array] = []  # (K, A, A) of each cohort

    def meet(self, followers: Sequence[Follower]) -> None:
        """Begin to count; UserError if there is no such agent to aim at."""
        super().meet(followers)
        n_rows = len(followers[0].loss)
        if self.agent is not None and self.agent >= n_rows:
            raise UserError(
                f"adversary.agent = {self.agent}: the first cohort has {n_rows} different "
                "agents, from 0; choose one of them"
            )
        self._regret_sums = []
        for follower in followers:
            n_actions = follower.loss.actions
            self._regret_sums.append(np.zeros((*follower.loss.offset.shape, n_actions)))

    def outcome(self, history: History, announced: AdversaryView) -> Array:
        sums_after = []  # (m, K, A, A) of each cohort
        for regret_sums, losses, announced_play in zip(
            self._regret_sums, self._payoff_tables, announced.play, strict=True
        ):
            strategy = announced_play
            if strategy is None:  # nobody is there, or play cannot be foreseen
                strategy = np.zeros(regret_sums.shape[:2])
            loss_differences = losses[..., None] - losses[:, :, None]
            sums_after.append(regret_sums + strategy[..., None] * loss_differences)
        swap_regrets = [sums.max(-1).sum(-1) for sums in sums_after]  # (m, K) of each cohort
        if self.agent is not None:
            aimed_at = swap_regrets[0][:, [self.agent]]
        else:
            aimed_at = np.hstack(swap_regrets)
        outcome = self.best(aimed_at.max(1))
        chosen = int((self.support == outcome).all(1).argmax())
        self._regret_sums = [sums[chosen] for sums in sums_after]
        return outcome
