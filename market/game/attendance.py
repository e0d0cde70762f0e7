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

    def present_rows(self, round_index: int) -> Mask | None:
        """Say which rows take part in a round (K,); None where all do."""
        if self.throughout and self.entered.item() <= round_index < self.left.item():
            return None  # asked many times a round, where a look ahead plays whole games
        present = np.asarray((self.entered <= round_index) & (round_index < self.left))
        return None if present.all() else present

    def spent(self, rounds: int) -> Indices | int:
        """Return how many of the first rounds each row was there (K,), one number for all alike."""
        spent = np.clip(rounds, self.entered, self.left) - self.entered
        return int(spent) if self.throughout else np.asarray(spent)

    def turn(self, turn: int, turns: int) -> "Attendance":
        """Return the stay in the rounds of one of several who take turns, counted by its own."""
        boundaries = self.entered, self.left
        return Attendance(
            *(np.maximum(-((turn - boundary) // turns), 0) for boundary in boundaries)
        )

    def span(self, rows: int) -> "Attendance":
        """Return the same with a round for each of so many rows."""
        return Attendance(
            *(np.broadcast_to(boundary, rows) for boundary in (self.entered, self.left))
        )

    def of(self, rows: Indices) -> "Attendance":
        """Return when some of the rows are there."""
        return self if self.throughout else Attendance(self.entered[rows], self.left[rows])

    def watch(self) -> Indices:
        """Return rows of whom one is there whenever anybody is; None where everybody always is."""
        watched, round_index = list[int](), 0
        while (
            not self.throughout
            and (is_later := self.left > np.maximum(round_index, self.entered)).any()
        ):
            round_index = max(round_index, int(self.entered[is_later].min()))
            watched.append(int(np.where(self.entered <= round_index, self.left, -1).argmax()))
            round_index = int(self.left[watched[-1]])
        return np.array(watched, dtype=np.intp)


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
    (first, last), (entry_rate, exit_rate) = window, rates
    waiting_rounds: ArrayLike = 0 if entry_rate is None else rng.geometric(entry_rate, agents) - 1
    entered = np.minimum(np.broadcast_to(first + np.asarray(waiting_rounds), agents), last).astype(
        np.intp
    )
    played_rounds: ArrayLike = last if exit_rate is None else rng.geometric(exit_rate, agents)
    return Attendance(entered, np.minimum(entered + played_rounds, last).astype(np.intp))
