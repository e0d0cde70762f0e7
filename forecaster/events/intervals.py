r"""Events of intervals: no bias over any stretch of rounds, and not only from the start.

Beside the events of the whole run there are copies of them that know the rounds of one interval
alone: for every power of two m from ``SHORTEST`` on the intervals [i m, (i + 1) m), i >= 1
(geometric covering intervals: Daniely, Gonen and Shalev-Shwartz 2015). Outside its interval a copy
sleeps. It is an expert like any other, but for a prior share q = m / T: the shares of a length add
up to 1 at most, those of all to 1 + levels per event of the run. The proofs of ``weights`` go
through with q Phi in place of Phi, so that with N (1 + levels) in place of N and for the adaptive
weights

    |B| <= sqrt(3 n(E) (Lambda + ln(T / m)))

in every interval of length m, n(E) the event's occupancy there, and with Lambda alone in every
stretch from round 0: the price there is the logarithm of a logarithm.

**Any stretch** of rounds is made of at most two such intervals of each length, so that with R(m)
the bound on the regret summed over m rounds

    regret over first..last  <=  sum over its intervals of R(m)  +  2 (SHORTEST - 1),

which is of the order of the root of its length, however long the run. A round takes log2 T times
the weights.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from regretless.forecaster.events.base import Event, EventSet
from regretless.forecaster.events.bounds import BiasBound
from regretless.forecaster.events.protected import LossGroup, Played
from regretless.forecaster.events.weights import Band, Moment, Weights
from regretless.forecaster.trust import Limit
from regretless.market.core.arrays import Array, Indices

SHORTEST = 32  # rounds of an interval; what is promised of fewer says nothing


class Intervals(EventSet):
    """The events of an instance, of the whole run and of intervals.

    Parameters
    ----------
    make : callable
        Makes the events of a run; called once for each length of intervals beside.
    rounds : int
        T, the number of rounds of the run.

    Attributes
    ----------
    whole : EventSet
        Of the whole run.
    levels : list of EventSet
        One for each length, of the interval that is open.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("whole", "levels", "_time", "_begun", "_ended")

    def __init__(self, make: Callable[[], EventSet], *, rounds: int) -> None:
        self.whole = whole = make()
        self.rows, self.rule = whole.rows, whole.rule
        self.crossed, self.joinable, self.beyond = whole.crossed, whole.joinable, whole.beyond
        self.run, self._ended = rounds, 0.0
        self._time = self._begun = 0  # rounds charged, and those when intervals were begun last
        self.lengths = tuple(2**k for k in range(5, 64) if SHORTEST <= 2**k < rounds)
        self.levels = [make() for _ in self.lengths]
        self.experts = whole.experts * (1 + len(self.levels))

    def active(self, x: Any, told: Indices | None = None) -> list[tuple[EventSet, float, Any]]:
        """Return the active events of the whole and of open intervals, each with its share.

        Until an interval's length has been played its first one is the run itself.
        """
        self._begin()
        opened = [
            (level, length / self.run, level.active(x, told))
            for length, level in zip(self.lengths, self.levels, strict=True)
            if self._time >= length
        ]
        return [(self.whole, 1.0, self.whole.active(x, told)), *opened]

    def top(self, active: list[tuple[EventSet, float, Any]], moment: Moment) -> float:
        """Return the greatest exponent of the whole and of open intervals."""
        return max(part.top(own, moment) for part, _, own in active)

    def weigh(
        self,
        active: list[tuple[EventSet, float, Any]],
        moment: Moment,
        weights: Weights,
        share: float = 1.0,
    ) -> None:
        """Add the weights of the whole and of open intervals."""
        for part, own_share, own in active:
            part.weigh(own, moment, weights, share * own_share)

    def charge(self, active: list[tuple[EventSet, float, Any]], played: Played) -> None:
        """Add a round to the gains."""
        for part, _, own in active:
            part.charge(own, played)
        self._time += 1

    def _begin(self) -> None:
        """Begin anew with the copies whose intervals are over, when the next round is asked for."""
        for length, level in zip(self.lengths, self.levels, strict=True):
            if self._begun != self._time and self._time % length == 0:
                self._ended += level.spent() * length / self.run
                level.reset()
        self._begun = self._time

    def begin(self) -> None:
        """Tell the whole and all levels."""
        for part in (self.whole, *self.levels):
            part.begin()

    def exceeds(self, active: list[tuple[EventSet, float, Any]], limit: Limit) -> bool:
        """Whether it has cost the whole or an open interval too much."""
        return any(part.exceeds(own, limit) for part, _, own in active)

    def spent(self) -> float:
        """Return the sum of ln(1 + C) over all experts by their shares, those of the past too."""
        return (
            self.whole.spent()
            + self._shared([level.spent() for level in self.levels])
            + (self._ended)
        )

    def potential(self, band: Band) -> float:
        """Bound the sum of all experts' potentials by their shares; those to come have 1 each."""
        alive = self._shared([level.potential(band) for level in self.levels])
        return self.whole.potential(band) + alive + self.whole.experts * len(self.levels)

    def _shared(self, sums: Sequence[float]) -> float:
        pairs = zip(self.lengths, sums, strict=True)
        return sum(total * length / self.run for length, total in pairs)

    def bound(self, **stand: Any) -> BiasBound:
        """Return the bound on the gains of the whole run."""
        return self.whole.bound(**stand)

    def from_variation(self, bound: BiasBound, group: LossGroup) -> Array:
        """Return what the gains of the whole run say."""
        return self.whole.from_variation(bound, group)

    def of_anybody(self, **stand: Any) -> BiasBound | None:
        """Return what the gains of the whole run say of losses that are not listed."""
        return self.whole.of_anybody(**stand)

    def anybody_from_variation(self, bound: BiasBound, group: LossGroup) -> Array:
        """Return what they say by their variations."""
        return self.whole.anybody_from_variation(bound, group)

    def table(self) -> Iterator[Event]:
        """Yield the events of the whole run."""
        return self.whole.table()

    def reset(self) -> None:
        """Begin anew."""
        self._time, self._begun, self._ended = 0, 0, 0.0
        for part in (self.whole, *self.levels):
            part.reset()


def covering(first: int, end: int, lengths: Sequence[int]) -> Iterator[int]:
    """Yield the lengths of intervals that make up the rounds first..end-1; 1 for single rounds."""
    at = first
    while at < end:
        fitting = [m for m in lengths if at >= m and at % m == 0 and at + m <= end]
        length = max(fitting, default=1)
        yield length
        at += length
