r"""An opponent of the guarantee itself: every outcome is the one that makes somebody regret most.

It counts what each follower's expected swap regret would be after the round, at the announced laws
of play q, for every outcome y of its support,

    R_k(y) = sum_a max_b [ G_k[a, b] + q_k(a) (l_k(a, y) - l_k(b, y)) ],    G the sums so far,

and seals the outcome at which the worst follower's R_k is the greatest: greedy on the very quantity
that the theorem bounds. With ``agent`` it looks at one row of the first cohort alone. No bound is
known to be met by any opponent; this one says how much of a bound is slack against greed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regretless.agents.adversaries.leader import Strategic, whole
from regretless.market import register
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.game.protocols import Follower
from regretless.market.records import Announcement, Context, History, OutcomeLaw


@register.adversary("regret-maximiser")
class RegretMaximiser(Strategic):
    """Chooses the outcome after which the worst follower has the most swap regret.

    Parameters
    ----------
    outcomes : int
    rng : numpy Generator
        Unused.
    agent : int, optional
        The row of the first cohort whose regret it raises, from 0; without it whoever's is worst.
    **choices : support, grid
        As in ``Strategic``.
    """

    REMEMBERED = ("_gaps",)

    def __init__(
        self, outcomes: int, rng: np.random.Generator, *, agent: int | None = None, **choices: Any
    ) -> None:
        super().__init__(outcomes, rng, **choices)
        self.agent = None if agent is None else whole("agent", agent, least=0)
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

    def commit(self, context: Context, history: History, announced: Announcement) -> OutcomeLaw:
        """Seal the outcome that makes the worst regret greatest, the first of several."""
        added = [self._added(place, law) for place, law in enumerate(announced.play)]
        regrets = [
            (gaps + more).max(-1).sum(-1) for gaps, more in zip(self._gaps, added, strict=True)
        ]
        aim = regrets[0][:, [self.agent]] if self.agent is not None else np.hstack(regrets)
        outcome = self.best(aim.max(1))
        chosen = int((self.support == outcome).all(1).argmax())
        self._gaps = [gaps + more[chosen] for gaps, more in zip(self._gaps, added, strict=True)]
        return OutcomeLaw.pure(outcome)

    def _added(self, place: int, law: Array | None) -> Array:
        """Return what each outcome would add to a cohort's sums (m, K, A, A)."""
        losses = self._values[place]
        if law is None:
            return np.zeros((*losses.shape, losses.shape[-1]))
        return np.asarray(law[..., None] * (losses[..., None] - losses[:, :, None]))
