"""When agents are there: entry and exit.

An agent is there in the rounds t with ``entered <= t < left`` (rounds count from 0). Before and
after it does not decide (its action is -1), is not charged and learns nothing, and its measures are
over its own rounds alone. A ``Round`` holds None in place of a cohort of which nobody is there; a
``Decision`` says in ``present`` which rows of a cohort were, where some were not. Nobody else
notices: a cohort neither draws from another's random stream nor changes what is predicted.
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

    def some(self, number: int) -> Mask | None:
        """Say which rows take part in a round (K,); None where all do."""
        if self.throughout and self.entered.item() <= number < self.left.item():
            return None  # asked many times a round, where a look ahead plays whole games
        rows = np.asarray((self.entered <= number) & (number < self.left))
        return None if rows.all() else rows

    def spent(self, rounds: int) -> Indices | int:
        """Return how many of the first rounds each row was there (K,), one number for all alike."""
        spent = np.clip(rounds, self.entered, self.left) - self.entered
        return int(spent) if self.throughout else np.asarray(spent)

    def turn(self, place: int, turns: int) -> "Attendance":
        """Return the stay in the rounds of one of several who take turns, counted by its own."""
        ends = self.entered, self.left
        return Attendance(*(np.maximum(-((place - end) // turns), 0) for end in ends))

    def span(self, rows: int) -> "Attendance":
        """Return the same with a round for each of so many rows."""
        return Attendance(*(np.broadcast_to(end, rows) for end in (self.entered, self.left)))

    def of(self, rows: Indices) -> "Attendance":
        """Return when some of the rows are there."""
        return self if self.throughout else Attendance(self.entered[rows], self.left[rows])

    def watch(self) -> Indices:
        """Return rows of whom one is there whenever anybody is; None where everybody always is."""
        rows, now = list[int](), 0
        while not self.throughout and (later := self.left > np.maximum(now, self.entered)).any():
            now = max(now, int(self.entered[later].min()))
            rows.append(int(np.where(self.entered <= now, self.left, -1).argmax()))
            now = int(self.left[rows[-1]])
        return np.array(rows, dtype=np.intp)


ALWAYS = Attendance()


def drawn_stays(
    rng: np.random.Generator,
    agents: int,
    *,
    window: tuple[int, int],
    rates: tuple[float | None, float | None],
) -> Attendance:
    """Draw when each of N agents enters and leaves: one visit, of geometric times.

    In every round from the first of the ``window`` an agent who has not come yet enters with the
    probability ``rates[0]``, and one who has played it leaves with the probability ``rates[1]``;
    None for everybody at once at the end of the window in question. Who would enter too late has
    entered and left at the end of the window.
    """
    (first, last), (entry, leave) = window, rates
    wait: ArrayLike = 0 if entry is None else rng.geometric(entry, agents) - 1
    entered = np.minimum(np.broadcast_to(first + np.asarray(wait), agents), last).astype(np.intp)
    stay: ArrayLike = last if leave is None else rng.geometric(leave, agents)
    return Attendance(entered, np.minimum(entered + stay, last).astype(np.intp))
