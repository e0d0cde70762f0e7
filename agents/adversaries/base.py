"""What all adversaries share: no context unless they have one, and a stream of their own.

    @register.adversary("stubborn")
    class Stubborn(Adversary):
        def commit(self, context, history, announced):
            return OutcomeLaw.pure(np.ones(self.outcomes))

``announced`` holds the mixture of every block (``announced.mean_label`` is its mean outcome), and
never the draw, which does not exist yet. What else it wants to see it declares in ``sees``
(``market.game.information``). Parameters are keyword arguments of ``__init__``; one called
``rounds`` is the length of the run unless the file gives another. An adversary that is to be
resumed also offers ``state()`` and ``restore(state)``. One with a motive has a ``payoff`` and a
``support`` (``agents.adversaries.strategic``).
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from regretless.agents.adversaries.payoffs import Payoff
from regretless.market.core.arrays import Array
from regretless.market.core.errors import UserError
from regretless.market.game.information import USUAL, Follower
from regretless.market.records import Announcement, Context, History, OutcomeLaw


class Adversary:
    """Base of the adversaries: subclass it and write ``commit``.

    Parameters
    ----------
    outcomes : int
        Coordinates of an outcome, d.
    rng : numpy Generator
        The adversary's own stream; unrelated to the referee's.

    Attributes
    ----------
    sees : frozenset of str
        What it declares to see, out of ``market.game.information.SIGHTS``.
    minds_market : bool
        Whether it plans with what a market makes of outcomes (``announced.moved``); else one that
        plans has no place in a market.
    payoff : Payoff or None
        What it is paid; None for one without a motive.
    support : array (m, d) or None
        The outcomes that it chooses among, where it has a payoff.
    """

    sees: ClassVar[frozenset[str]] = USUAL
    minds_market: ClassVar[bool] = False
    payoff: Payoff | None = None
    support: Array | None = None

    def __init__(self, outcomes: int, rng: np.random.Generator) -> None:
        self.outcomes, self.rng = outcomes, rng

    def context(self, history: History) -> Context:
        """Return an empty context."""
        return Context()

    def meet(self, followers: Sequence[Follower]) -> None:
        """Be told once whom it plays against, if it declares that it sees losses."""

    def commit(self, context: Context, history: History, announced: Announcement) -> OutcomeLaw:
        """Seal the law of this round's outcome."""
        wanted = "commit(context, history, announced)"
        raise UserError(f"class {type(self).__name__} has no {wanted}; write it")
