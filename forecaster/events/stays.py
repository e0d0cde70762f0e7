"""Bounds on the regret of agents that come and go: what is known at both ends of a stay.

A stay is the rounds [s, e) in which an agent takes part. With G(a, c) what its action a gains over
a comparator c and M(a, c) the margins by which a was promised to be better, the regret is G - M:

    regret of the stay   =  sum_a max_c [ G_e(a, c) - M_e(a, c) - (G_s(a, c) - M_s(a, c)) ]
                        <=  sum_a max_c [ X_e(a, c) - M_e(a, c) - (G_s(a, c) - M_s(a, c)) ].

G_s - M_s is known at entry; far below zero, it may be regained within the stay. X_e bounds G_e, and
is known at exit (docs/theory.md, 12 and 17). Nothing that happens later is read: what others gain
or lose after e says nothing about the stay.

A ``StayRecord`` keeps G_s - M_s and the sum of the bound at e for the losses of one group, before
one forecaster, which calls ``note`` after every round.
"""

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from regretless.forecaster.events.base import EventSet
from regretless.forecaster.events.loss_table import ProtectedLosses
from regretless.forecaster.guarantees.regret_bound import RegretBound
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Checkpointable


class StayRecord(Checkpointable):
    """What is known of the stays of some agents, each with one of a group's losses.

    Parameters
    ----------
    events : EventSet
        What keeps the gains of the group's losses.
    group : ProtectedLosses
        The losses through which the agents are served.
    losses : ndarray
        The place (k,) of each agent's loss in the group.
    entered, left : ndarray
        The forecaster's rounds (k,) before which each agent enters and leaves. An agent whose
        ``left`` is not above ``entered`` takes part in none of them.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("regret_at_entry", "bound_at_exit")

    def __init__(
        self,
        events: EventSet,
        group: ProtectedLosses,
        losses: Indices,
        *,
        entered: Indices,
        left: Indices,
    ) -> None:
        self.events = events
        self.group = group
        self.losses = losses
        self.entered = entered
        self.left = left
        self.bound_at_exit: Array = np.zeros(len(losses))
        # (k, A, C), all zero where an agent was there from the start; (0, A, C) where all were
        first_losses = losses if (entered > 0).any() else losses[:0]
        self.regret_at_entry: Array = np.zeros_like(events.gained(group, first_losses))

    def note(self, time: int, known_bound: Callable[[], RegretBound]) -> None:
        """Keep what is known of who enters or leaves after so many rounds of the forecaster.

        ``known_bound`` returns the bound on the events' gains at this moment.
        """
        entering = np.flatnonzero((self.entered == time) & (time < self.left))
        if time > 0 and len(entering):
            losses = self.losses[entering]
            self.regret_at_entry[entering] = self.events.regretted(self.group, losses)
        leaving = np.flatnonzero((self.left == time) & (self.entered < time))
        if len(leaving):
            self.bound_at_exit[leaving] = self._bound_now(leaving, known_bound())

    def bound(self, time: int, known_bound: Callable[[], RegretBound]) -> Array:
        """Bound the sum of expected decision swap regret of every agent's stay so far (k,)."""
        bounds = self.bound_at_exit.copy()
        present = np.flatnonzero((self.entered < time) & (time < self.left))
        if len(present):
            bounds[present] = self._bound_now(present, known_bound())
        return bounds

    def _bound_now(self, agents: Indices, bound: RegretBound) -> Array:
        """Bound the regret of the stays of some agents, as if they left now."""
        at_entry = np.zeros((1, 1, 1))
        if len(self.regret_at_entry):
            at_entry = self.regret_at_entry[agents]
        return self.events.over_stay(bound, self.group, self.losses[agents], at_entry)
