"""When agents take part: entry and exit.

An agent is there in the rounds t with ``entered <= t < left`` (rounds count from 0). Before and
after, it does not decide (its action is -1), is not charged and learns nothing, and its measures
are over its own rounds alone. A ``Round`` holds None in place of a cohort of which nobody is
there; a ``Decision`` says in ``present`` which rows of a cohort were, where some were not. Nobody
else notices: a cohort neither draws from another's random stream nor changes what is predicted.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from regretless.market.core.arrays import Indices, Mask

FOREVER = int(np.iinfo(np.intp).max)


@dataclass(frozen=True, eq=False)
class Attendance:
    """When a cohort's rows are there: throughout, unless the rounds say otherwise.

    A row is there from the round ``entered`` on (the run's last for one that never is) until before
    ``left``, not below it: int arrays (K,), or () for all.
    """

    entered: Indices = field(default_factory=lambda: np.array(0))
    left: Indices = field(default_factory=lambda: np.array(FOREVER))

    @property
    def throughout(self) -> bool:
        """Whether all rows are there in all rounds."""
        return not self.entered.ndim

    def present_rows(self, round_index: int) -> Mask | None:
        """Return which rows take part in a round (K,); None where all do."""
        if self.throughout and self.entered.item() <= round_index < self.left.item():
            return None  # asked many times a round, where a look ahead plays whole games
        present = np.asarray((self.entered <= round_index) & (round_index < self.left))
        return None if present.all() else present

    def spent(self, rounds: int) -> Indices | int:
        """Return how many of the first rounds each row was there (K,), one number for all alike."""
        spent = np.clip(rounds, self.entered, self.left) - self.entered
        return int(spent) if self.throughout else np.asarray(spent)

    def turn(self, turn: int, turns: int) -> "Attendance":
        """Return the stay counted in the rounds of one of several who take turns.

        It has the rounds ``turn``, ``turn + turns``, ..., which are its rounds 0, 1, ....
        """
        return Attendance(
            entered=_own_rounds_before(self.entered, turn, turns),
            left=_own_rounds_before(self.left, turn, turns),
        )

    def span(self, rows: int) -> "Attendance":
        """Return the same stay with its rounds spelled out for each of so many rows."""
        return Attendance(
            entered=np.broadcast_to(self.entered, rows), left=np.broadcast_to(self.left, rows)
        )

    def of(self, rows: Indices) -> "Attendance":
        """Return when some of the rows are there."""
        if self.throughout:
            return self
        return Attendance(self.entered[rows], self.left[rows])

    def watch(self) -> Indices:
        """Return rows of which one is there whenever any row is; empty where all always are.

        Greedily: of the rows that are there, the one that leaves last, until all have left.
        """
        watched: list[int] = []
        round_index = 0
        while not self.throughout:
            is_there_later = self.left > np.maximum(round_index, self.entered)
            if not is_there_later.any():
                break
            round_index = max(round_index, int(self.entered[is_there_later].min()))
            left_of_present = np.where(self.entered <= round_index, self.left, -1)
            watched.append(int(left_of_present.argmax()))
            round_index = int(self.left[watched[-1]])
        return np.array(watched, dtype=np.intp)


def _own_rounds_before(boundary: Indices, turn: int, turns: int) -> Indices:
    """Return how many of the rounds ``turn``, ``turn + turns``, ... come before a round (K,)."""
    rounded_up = -((turn - boundary) // turns)  # (boundary - turn) / turns
    return np.maximum(rounded_up, 0)


ALWAYS = Attendance()


def drawn_stays(
    rng: np.random.Generator,
    agents: int,
    *,
    window: tuple[int, int],
    rates: tuple[float | None, float | None],
) -> Attendance:
    """Draw when each of N agents enters and leaves: one visit, of geometric times.

    Parameters
    ----------
    rng : numpy Generator
        Draws the times of entry, then the lengths of the stays.
    agents : int
        N.
    window : (first, last)
        Rounds; an agent who would enter too late has entered and left at ``last``.
    rates : (entry, exit)
        Probabilities per round: that an agent who has not come yet enters, from ``first`` on, and
        that one who has played a round leaves. None for everybody at once at that end of the
        window.
    """
    first, last = window
    entry_rate, exit_rate = rates
    waiting_rounds: ArrayLike = 0
    if entry_rate is not None:
        waiting_rounds = rng.geometric(entry_rate, agents) - 1
    first_rounds = np.broadcast_to(first + np.asarray(waiting_rounds), agents)
    entered = np.minimum(first_rounds, last).astype(np.intp)
    played_rounds: ArrayLike = last
    if exit_rate is not None:
        played_rounds = rng.geometric(exit_rate, agents)
    return Attendance(entered, np.minimum(entered + played_rounds, last).astype(np.intp))
