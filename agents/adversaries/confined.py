"""Any adversary, kept to a part of the cube: outcomes outside are drawn back to the border."""

from __future__ import annotations

from typing import Any

from market.history import History
from market.records import Announcement, Context, OutcomeLaw
from market.roles import Adversary, Resumable
from market.spaces import Box


class Confined:
    """Plays another adversary's outcomes, moved into a space.

    Parameters
    ----------
    adversary : Adversary
        Chooses in the whole cube.
    space : Box or Polytope
        Where the outcomes may lie, mapped onto the cube.
    """

    def __init__(self, adversary: Adversary, space: Box) -> None:
        self.adversary, self.space = adversary, space
        self.outcomes = adversary.outcomes

    @property
    def resumable(self) -> bool:
        """Whether the adversary offers ``state`` and ``restore``."""
        return isinstance(self.adversary, Resumable)

    def context(self, history: History) -> Context:
        """Return the adversary's context."""
        return self.adversary.context(history)

    def commit(self, context: Context, history: History, announced: Announcement) -> OutcomeLaw:
        """Seal the adversary's law with every outcome moved into the space."""
        law = self.adversary.commit(context, history, announced)
        return OutcomeLaw(self.space.confined(law.points), law.weights)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint needs."""
        return self.adversary.state() if isinstance(self.adversary, Resumable) else {}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint."""
        if isinstance(self.adversary, Resumable):
            self.adversary.restore(state)
