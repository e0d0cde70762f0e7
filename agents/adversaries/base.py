"""What all adversaries share: no context unless they have one, and a stream of their own.

    @register.adversary("stubborn")
    class Stubborn(Adversary):
        def commit(self, context, history, announced):
            return OutcomeLaw.pure(np.ones(self.outcomes))

``announced`` holds the mixture of every block (``announced.mean_label`` is its mean outcome), and
never the draw, which does not exist yet. Parameters are keyword arguments of ``__init__``. An
adversary that is to be resumed also offers ``state()`` and ``restore(state)``.
"""

from __future__ import annotations

import numpy as np

from market.history import History
from market.records import Announcement, Context, OutcomeLaw


class Adversary:
    """Base of the adversaries: subclass it and write ``commit``.

    Parameters
    ----------
    outcomes : int
        Coordinates of an outcome, d.
    rng : numpy Generator
        The adversary's own stream; unrelated to the referee's.
    """

    def __init__(self, outcomes: int, rng: np.random.Generator) -> None:
        self.outcomes, self.rng = outcomes, rng

    def context(self, history: History) -> Context:
        """Return an empty context."""
        return Context()

    def commit(self, context: Context, history: History, announced: Announcement) -> OutcomeLaw:
        """Seal the law of this round's outcome."""
        raise NotImplementedError
