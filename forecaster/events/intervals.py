"""Events of intervals: no bias over any stretch of rounds, and not only from the start.

Beside the events of the whole run there are copies of them that know the rounds of one interval
alone: for every power of two m from ``SHORTEST`` on the intervals [i m, (i + 1) m), i >= 1
(geometric covering intervals: Daniely, Gonen and Shalev-Shwartz 2015). A copy is an expert like any
other within its interval, but for a prior share q = m / T: the shares of a length add up to 1 at
most. The proofs of ``weights`` go through with q Phi in place of Phi, so that with N (1 + levels)
in place of N and for the adaptive weights

    |B| <= sqrt(3 n(E) (Lambda + ln(T / m)))

in every interval of length m, n(E) the event's occupancy there, and with Lambda alone in every
stretch from round 0: the price there is the logarithm of a logarithm.

**Any stretch** of rounds is made of at most two such intervals of each length, so that with R(m)
the bound on the regret summed over m rounds

    regret over first..last  <=  sum over its intervals of R(m)  +  2 (SHORTEST - 1),

which is of the order of the root of its length, however long the run. A round takes log2 T times
the weights.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from regretless.forecaster.events.base import EventSet, Shared, Together
from regretless.forecaster.events.protected import Played
from regretless.forecaster.events.weights import Band
from regretless.market.core.arrays import Indices

SHORTEST = 32  # rounds of an interval; what is promised of fewer says nothing


class Intervals(Together):
    """The events of a run of so many ``rounds`` and of its intervals.

    ``make`` makes the events; it is called once for the run, and once for each length of intervals.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_time", "_begun", "_ended")

    def __init__(self, make: Callable[[], EventSet], *, rounds: int) -> None:
        lengths = tuple(2**k for k in range(5, 64) if SHORTEST <= 2**k < rounds)
        super().__init__([make(), *(make() for _ in lengths)])
        self.lengths, self.run, self.others = lengths, rounds, self.first
        self._time, self._begun, self._ended = 0, 0, 0.0

    @property
    def levels(self) -> list[tuple[int, float, EventSet]]:
        """The lengths of intervals, their shares, and the events of the one that is open."""
        pairs = zip(self.lengths, self.parts[1:], strict=True)
        return [(length, length / self.run, part) for length, part in pairs]

    def active(self, x: Any, suggestions: Indices | None = None) -> Shared:
        """Return the active events of the whole and of open intervals, each with its share."""
        for length, share, level in self.levels:  # begin anew where an interval is over
            if self._begun != self._time and self._time % length == 0:
                self._ended += level.spent() * share
                level.reset()
        self._begun = self._time
        levels = [(level, share) for length, share, level in self.levels if self._time >= length]
        return [(part, q, part.active(x, suggestions)) for part, q in [(self.first, 1.0), *levels]]

    def charge(self, active: Shared, played: Played) -> None:
        super().charge(active, played)
        self._time += 1

    def spent(self) -> float:
        """Return the sum of ln(1 + C) over all experts by their shares, those of the past too."""
        alive = sum(level.spent() * share for _, share, level in self.levels)
        return self.first.spent() + alive + self._ended

    def log_potential(self, band: Band) -> float:
        """Bound the logarithm of all potentials' sum by their shares; those to come have 1 each."""
        alive = [math.log(share) + level.log_potential(band) for _, share, level in self.levels]
        later = [math.log(self.first.experts * len(alive))] if alive else []
        return float(np.logaddexp.reduce([self.first.log_potential(band), *alive, *later]))

    def reset(self) -> None:
        self._time, self._begun, self._ended = 0, 0, 0.0
        super().reset()


def covering(first: int, end: int, lengths: Sequence[int]) -> Iterator[int]:
    """Yield the lengths of intervals that make up the rounds first..end-1; 1 for single rounds."""
    at = first
    while at < end:
        fitting = [m for m in lengths if at >= m and at % m == 0 and at + m <= end]
        length = max(fitting, default=1)
        yield length
        at += length
