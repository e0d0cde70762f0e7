r"""Events of intervals: no bias over any stretch of rounds, and not only from the start.

Beside the events of the whole run there are copies of them that know the rounds of one interval
alone: for every power of two m from ``SHORTEST`` on the intervals [i m, (i + 1) m), i >= 1
(geometric covering intervals: Daniely, Gonen and Shalev-Shwartz 2015). Outside its interval a copy
sleeps. It is an expert like any other, but for a prior share q = m / T: the shares of a length add
up to 1 at most, those of all to 1 + levels per event of the run. The proof of ``bounds`` goes
through with q Phi in place of Phi, so that with N (1 + levels) in place of N

    |B| <= sqrt(3 n(E) (Lambda + ln(T / m)))

in every interval of length m, n(E) the event's occupancy there, and with Lambda alone in every
stretch from round 0: the price there is the logarithm of a logarithm.

**Any stretch** of rounds is made of at most two such intervals of each length, so that with R(m)
the bound on the regret summed over m rounds

    regret over first..last  <=  sum over its intervals of R(m)  +  2 (SHORTEST - 1),

which is of the order of the root of its length, however long the run. A round takes log2 T times
the weights.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from regretless.forecaster.events.coordinate import Events, Happening
from regretless.forecaster.events.protected import LossGroup
from regretless.market.core.arrays import Array

SHORTEST = 32  # rounds of an interval; what is promised of fewer says nothing


class IntervalEvents(Events):
    """The events of an instance, of the whole run and of intervals.

    Parameters
    ----------
    groups : sequence of LossGroup
        All over the same basis.
    rounds : int
        T, the number of rounds of the run.

    Attributes
    ----------
    levels : list of Events
        One for each length, of the interval that is open.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("levels", "_time", "_ended")

    def __init__(self, groups: Sequence[LossGroup], *, rounds: int) -> None:
        super().__init__(groups)
        self.rounds, self._time, self._ended = rounds, 0, 0.0
        self.lengths = [2**k for k in range(5, 64) if SHORTEST <= 2**k < rounds]
        self.levels = [Events(groups) for _ in self.lengths]
        self._each = self.experts
        self.experts *= 1 + len(self.levels)

    def awake(self, x: Any, points: Array | None = None) -> Happening:
        """Return the events that can happen given the context, copies of open intervals among them.

        Until an interval's length has been played its first one is the run itself.
        """
        happening = super().awake(x, points)
        for length, level in zip(self.lengths, self.levels, strict=True):
            if self._time >= length:
                share = length / self.rounds
                happening.views.extend(replace(v, share=share) for v in level.awake(x).views)
        return happening

    def charge(self, awake: Happening, *mixture: Array, squared: bool = False) -> None:
        """Add a round to the biases, and begin anew with every interval that ends."""
        super().charge(awake, *mixture, squared=squared)
        self._time += 1
        for length, level in zip(self.lengths, self.levels, strict=True):
            if self._time % length == 0:
                self._ended += self._spent_by(level, length)
                for array in level.arrays.values():
                    array[...] = 0.0

    def spent(self) -> float:
        """Return the mean of ln(1 + C) over all experts by their shares, those of the past too."""
        alive = sum(
            self._spent_by(level, length)
            for length, level in zip(self.lengths, self.levels, strict=True)
        )
        return float(super().spent() + (alive + self._ended) / self.experts)

    def _spent_by(self, level: Events, length: int) -> float:
        return float(level.spent() * self._each * length / self.rounds)


def covering(first: int, end: int, lengths: Sequence[int]) -> Iterator[int]:
    """Yield the lengths of intervals that make up the rounds first..end-1; 1 for single rounds."""
    at = first
    while at < end:
        fitting = [m for m in lengths if at >= m and at % m == 0 and at + m <= end]
        length = max(fitting, default=1)
        yield length
        at += length
