"""Any adversary, kept to a part of the cube: outcomes outside are drawn back to the border."""

from collections.abc import Sequence

import numpy as np

from regretless.market.core.arrays import Array
from regretless.market.core.checkpoint import Remembering
from regretless.market.game.information import sight_of
from regretless.market.game.protocols import Adversary, Follower, Payoff
from regretless.market.losses.spaces import Box
from regretless.market.records import Announcement, Context, History, Observation, OutcomeLaw


class Confined(Remembering, Adversary):
    """Plays another adversary's outcomes, moved into a space.

    It sees what the other one declares, and an adversary with a support chooses within the space.

    Parameters
    ----------
    adversary : Adversary
        Chooses in the whole cube.
    space : Box or Polytope
        Where the outcomes may lie, mapped onto the cube.
    payoff : Payoff, optional
        What an adversary is taken to earn that has no payoff of its own.
    support : array (m, d), optional
        What one is taken to choose among that has no support of its own.
    """

    REMEMBERED = ("adversary",)

    def __init__(
        self,
        adversary: Adversary,
        space: Box,
        *,
        payoff: Payoff | None = None,
        support: Array | None = None,
    ) -> None:
        self.adversary, self.space, self._support = adversary, space, support
        self.outcomes = adversary.outcomes
        self.sees = sight_of(adversary)
        self.payoff = payoff if adversary.payoff is None else adversary.payoff
        if adversary.support is not None:
            adversary.support = space.confined(adversary.support)

    @property
    def support(self) -> Array | None:  # type: ignore[override]
        """The outcomes that the adversary chooses among, where there is such a list."""
        own = self.adversary.support
        return self._support if own is None else own

    @property
    def observes_play(self) -> bool:
        """Whether the adversary is told, or paid by, what agents do."""
        return self.payoff is not None or self.adversary.observes_play

    @property
    def innermost(self) -> Adversary:
        """The adversary that is kept to the space."""
        return self.adversary.innermost

    def learn(self, payoff: float, observation: Observation) -> None:
        """Let the adversary learn."""
        self.adversary.learn(payoff, observation)

    def meet(self, followers: Sequence[Follower]) -> None:
        """Introduce the followers to an adversary that declares to see losses."""
        self.adversary.meet(followers)

    def context(self, history: History) -> Context:
        """Return the adversary's context."""
        return self.adversary.context(history)

    def commit(self, context: Context, history: History, announced: Announcement) -> OutcomeLaw:
        """Seal the adversary's law with every outcome moved into the space."""
        law = self.adversary.commit(context, history, announced)
        return OutcomeLaw(self._moved(law.points), law.weights)

    def _moved(self, points: Array) -> Array:
        """Move points (m, d) into the space; those of the support are there, to the last bit."""
        inside = np.zeros(len(points), dtype=bool)
        if self.support is not None:
            inside = (points[:, None] == self.support).all(2).any(1)
        return np.where(inside[:, None], points, self.space.confined(points))
