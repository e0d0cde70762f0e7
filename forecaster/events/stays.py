"""Bounds on the regret of agents that come and go: what is known at both ends of a stay.

A stay is the rounds [s, e) in which an agent takes part. With G(a, c) what its action a gains over
a comparator c and M(a, c) the margins by which a was promised to be better, the regret is G - M:

    regret of the stay   =  sum_a max_c [ G_e(a, c) - M_e(a, c) - (G_s(a, c) - M_s(a, c)) ]
                        <=  sum_a max_c [ X_e(a, c) - M_e(a, c) - (G_s(a, c) - M_s(a, c)) ].

G_s - M_s is known at entry; far below zero, it may be regained within the stay. X_e bounds G_e, and
is known at exit (docs/theory.md, 12 and 17). Nothing that happens later is read: what others gain
or lose after e says nothing about the stay.

A window of rounds that is declared beforehand is a stay of everybody (``WindowRecord``).

A ``StayRecord`` keeps G_s - M_s and the sum of the bound at e for the losses of one group, before
one forecaster, which calls ``note`` after every round.
"""

from collections.abc import Callable, Sequence
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
        regret_at_entry = np.zeros((1, 1, 1))
        if len(self.regret_at_entry):
            regret_at_entry = self.regret_at_entry[agents]
        return self.events.over_stay(bound, self.group, self.losses[agents], regret_at_entry)


class WindowRecord(Checkpointable):
    """What is known of windows of rounds that were declared beforehand, for a group's losses.

    A window is a stay of all agents. Windows do not overlap, so that what was known at the start is
    kept of one at a time, and the bound of the last one that has ended.

    Parameters
    ----------
    events : EventSet
        What keeps the gains of the group's losses.
    group : ProtectedLosses
        The losses through which the agents are served.
    spans : sequence of (int, int)
        The forecaster's rounds before which each window begins and ends, in order; equal where it
        has none of the window's rounds.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = (
        *("regret_at_start", "bound_at_end", "_window_index", "_ended_window"),
    )

    def __init__(
        self, events: EventSet, group: ProtectedLosses, spans: Sequence[tuple[int, int]]
    ) -> None:
        self.events = events
        self.group = group
        self.spans = tuple(spans)
        self.bound_at_end: Array = np.zeros(len(group.offset))
        self.regret_at_start: Array = np.zeros((1, 1, 1))  # (K, A, C) once a window begins later
        self._window_index = 0  # of the window that is open, or else of the next one
        self._ended_window = -1

    def note(self, time: int, known_bound: Callable[[], RegretBound]) -> None:
        """Keep what is known of the window that begins or ends after so many rounds."""
        every_loss = np.arange(len(self.group.offset))
        while self._window_index < len(self.spans):
            start, end = self.spans[self._window_index]
            if start < end and end == time:
                self.bound_at_end = self.events.over_stay(
                    known_bound(), self.group, every_loss, self.regret_at_start
                )
                self._ended_window = self._window_index
            if start < end and end > time:
                if start == time:
                    self.regret_at_start = self.events.regretted(self.group, every_loss)
                return
            self._window_index += 1

    def bound(self, window_index: int) -> Array | None:
        """Bound the sum of expected decision swap regret of the group's losses over a window (K,).

        None if it is not the last one that has ended.
        """
        start, end = self.spans[window_index]
        if start == end:
            return np.zeros(len(self.group.offset))
        return self.bound_at_end if self._ended_window == window_index else None
