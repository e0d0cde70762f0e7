"""What is conditioned on: ``EventSet``, the seam between a forecaster and its events.

A set is made with the rule that weighs it, and keeps the gains and variations that this rule
wants. Sets add up: ``a + b`` is one game for both. ``Intervals`` wraps any of them.

    VectorEvents    ``biases``       decision and cross events of all coordinates: the paper's
    GainEvents      ``gains``        gains of listed losses against actions, policies and models
    CellEvents      ``universal``    dyadic cells of one number
    Together        here             the sum of sets
    Intervals       here             copies that know the rounds of one interval alone

**Intervals**: beside the events of the whole run there are copies of them that know the rounds of
one interval alone, for every power of two m from ``SHORTEST`` on the intervals [i m, (i + 1) m),
i >= 1 (geometric covering intervals: Daniely, Gonen and Shalev-Shwartz 2015): an expert with a
prior share q = m / T (docs/theory.md, 11). Any stretch of rounds is made of at most two intervals
of each length and 2 (SHORTEST - 1) single rounds.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from regretless.forecaster.events.bounds import BiasBound
from regretless.forecaster.events.loss_table import LossTable, Played, ProtectedLosses
from regretless.forecaster.events.weights import Moment, WeightRule, Weights
from regretless.forecaster.reference import Band
from regretless.forecaster.switch_test import SwitchTest
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.delegated import Delegated
from regretless.market.records import Event


class View(NamedTuple):
    """Accumulators of experts, or views of those that can happen in a round."""

    rows: slice  # of the game's table to which their weights are added
    gain: Array  # (..., rows, n) biases of coordinates, or gains of scalar events
    variation: Array  # the same, C as the rule wants it
    squares: Array
    occupancy: Array  # (..., rows)
    share: float = 1.0  # of each in the prior, beside 1 for others
    both: bool = True  # whether a gain of either sign is an expert
    wide: Array | float = 0.0  # 1 where the models' band is added to the others'

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """All of them."""
        return self[1:5]

    def at(self, *place: int) -> "View":
        """Return those at a place of the first axes."""
        gain, variation, squares, occupancy = (array[place] for array in self.arrays)
        return View(self.rows, gain, variation, squares, occupancy, self.share)

    def counted(self, band: Band) -> Array:
        """Return what the weights see of all gains, but for the common band."""
        if self.both or not band.models:
            return self.gain
        return np.asarray(self.gain - band.models * self.wide * np.sqrt(self.variation))


class EventSet(Checkpointable, ABC):
    """Events on which predictions shall have no bias, with what they have gained so far."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("arrays",)
    IN_PLACE = True
    views: Sequence[View] = ()  # all experts
    rows: LossTable  # the protected losses, all over the same basis, with R (loss, action) pairs
    rule: WeightRule
    experts: int  # N, how many gains are weighed
    crossed: bool = False  # whether it bounds contextual swap regret
    joinable: bool = False  # whether it promises anything to agents that come later
    lengths: tuple[int, ...] = ()  # of the intervals over which it bounds regret
    run: int = 0  # the rounds of the run, which set the intervals' shares
    drawn: bool = False  # whether it charges the prediction that was broadcast, beside expectations
    beyond: int = 0  # lines of the game's table that follow those of the losses
    prior: float = 1.0  # of each expert, beside 1 for those of other sets

    groups = Delegated("rows")
    size = Delegated("rows")  # number of basis functions, n

    @property
    def arrays(self) -> list[tuple[Array, ...]]:
        """All accumulators."""
        return [view.arrays for view in self.views]

    @abstractmethod
    def active(self, x: object, suggestions: Indices | None = None) -> Any:
        """Return the events that can happen in a round, given the context.

        ``suggestions`` (losses, M) is what each model suggests to each loss. ValueError if a policy
        suggests an action that its group does not have.
        """

    @abstractmethod
    def weigh(self, active: Any, moment: Moment) -> Iterator[Weights]:
        """Yield active events in parts, ready to be weighed."""

    def table_of(self, active: Any, moment: Moment) -> Array:
        """Return H (R + beyond, n), the signed weights of active events, which add up to 1."""
        parts = list(self.weigh(active, moment))
        top = max(part.top for part in parts)
        found = [(part, *part.weights(top, part.share)) for part in parts]
        scale = sum(total for *_, total in found) or 1.0
        table = np.zeros((self.rows.shape[0] + self.beyond, self.size))
        for part, weights, _ in found:
            if part.fold is None:
                table[part.rows] += weights
        table /= scale
        for part, weights, _ in found:
            if part.fold is not None:
                folded = part.fold(weights / scale)
                table[: len(folded)] += folded
        return table

    @abstractmethod
    def charge(self, active: Any, played: Played) -> None:
        """Add a round to the gains, in expectation over the mixture."""

    @property
    def alarms(self) -> int:
        """Count what can reject a reference, in units of equal parts of the switch test's alpha."""
        return self.experts

    @abstractmethod
    def exceeds(self, active: Any, trust: SwitchTest, *, hint: bool = False) -> bool:
        """Whether a reference cost some event more than it may; with ``hint``, than nothing."""

    def spent(self) -> float:
        """Return the sum of ln(1 + C) over all experts by their shares."""
        parts = ((1 + own.both) * own.share * np.log1p(own.variation).sum() for own in self.views)
        return float(sum(parts))

    def log_potential(self, band: Band) -> float:
        """Return the logarithm of the sum of all experts' potentials by their shares."""
        each = list[Array]()
        for own in self.views:
            gain = own.counted(band)
            for side in (gain, -gain) if own.both else (gain,):
                known = side[np.isfinite(side)], own.variation[np.isfinite(side)]
                each.append(math.log(own.share) + self.rule.potentials(*known, band.zone))
        return float(np.logaddexp.reduce(np.concatenate(each)))

    def bound(self, stand: BiasBound) -> BiasBound:
        """Return the bound on all gains where a bound on biases stands so."""
        return stand

    @abstractmethod
    def from_variation(self, bound: BiasBound, group: ProtectedLosses) -> Array:
        """Bound the sum of expected decision swap regret of a group's losses (K,) so far."""

    @abstractmethod
    def least_gained(self, group: ProtectedLosses, losses: Indices) -> Array:
        """Return what actions have gained over comparators so far, or less (k, A, C).

        Of k of a group's losses by their places in it, in units of the loss; 0 for an action over
        itself.
        """

    @abstractmethod
    def most_gained(self, bound: BiasBound, group: ProtectedLosses, losses: Indices) -> Array:
        """Bound the same from above by the theorem (k, A, C); while trusted, by what it is."""

    def over_stay(
        self, bound: BiasBound, group: ProtectedLosses, losses: Indices, at_entry: Array
    ) -> Array:
        """Bound the sum of expected decision swap regret of k stays that end now (k,).

        ``at_entry`` (k, A, C) is what ``least_gained`` returned when each stay began.
        """
        gained = self.most_gained(bound, group, losses) - at_entry
        return np.asarray(np.maximum(gained, 0.0).max(2).sum(1))

    def realised(self, bound: BiasBound, group: ProtectedLosses) -> Array | None:
        """Bound the same of who acts on what was broadcast; None if only expectations are known."""
        return None

    @property
    def others(self) -> "EventSet | None":
        """What promises something to losses that are not listed; None where nothing does."""
        return None

    def table(self) -> Iterator[Event]:
        """Yield every event: loss, action, policy, suggestion, occupancy, bias."""
        return iter(())

    def __add__(self, other: "EventSet") -> "Together":
        return Together([self, other])


Shared = list[tuple[EventSet, Any]]  # sets with their active events


class Together(EventSet):
    """The sum of event sets over the same losses and rule: one game keeps all potentials down.

    The first one says what is promised to listed losses and what the tables show; all experts
    count.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("parts",)

    def __init__(self, parts: Sequence[EventSet]) -> None:
        self.parts, self.first = list(parts), parts[0]
        self.rows, self.rule = self.first.rows, self.first.rule
        self.experts = sum(part.experts for part in parts)
        self.crossed, self.joinable = self.first.crossed, self.first.joinable
        self.beyond = max(part.beyond for part in parts)

    def active(self, x: object, suggestions: Indices | None = None) -> Shared:
        return [(part, part.active(x, suggestions)) for part in self.parts]

    def weigh(self, active: Shared, moment: Moment) -> Iterator[Weights]:
        for part, own in active:
            for found in part.weigh(own, moment):
                yield found._replace(share=found.share * part.prior)

    def charge(self, active: Shared, played: Played) -> None:
        for part, own in active:
            part.charge(own, played)

    @property
    def alarms(self) -> int:
        return sum(part.alarms for part in self.parts)

    def exceeds(self, active: Shared, trust: SwitchTest, *, hint: bool = False) -> bool:
        return any(part.exceeds(own, trust, hint=hint) for part, own in active)

    def spent(self) -> float:
        return sum(part.prior * part.spent() for part in self.parts)

    def log_potential(self, band: Band) -> float:
        own = [math.log(part.prior) + part.log_potential(band) for part in self.parts]
        return float(np.logaddexp.reduce(own))

    @property
    def others(self) -> EventSet | None:
        return next((part.others for part in self.parts if part.others), None)

    bound = Delegated("first")
    from_variation = Delegated("first")
    least_gained = Delegated("first")
    most_gained = Delegated("first")
    over_stay = Delegated("first")
    table = Delegated("first")


SHORTEST = 32  # rounds of an interval; what is promised of fewer says nothing


class Intervals(Together):
    """The events of a run of so many ``rounds`` and of its intervals.

    ``make`` makes the events, of the run and of every interval.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_time", "_ended")

    def __init__(self, make: Callable[[], EventSet], *, rounds: int) -> None:
        self.lengths = tuple(2**k for k in range(5, 64) if SHORTEST <= 2**k < rounds)
        self.run, self._make, self._time, self._ended = rounds, make, 0, 0.0
        super().__init__([make(), *map(self._made, self.lengths)])

    def _made(self, length: int) -> EventSet:
        """Make the events of an interval."""
        made = self._make()
        made.prior = length / self.run
        return made

    def active(self, x: object, suggestions: Indices | None = None) -> Shared:
        """Return the active events of the whole and of open intervals."""
        count = 1 + sum(self._time >= length for length in self.lengths)
        return [(part, part.active(x, suggestions)) for part in self.parts[:count]]

    def charge(self, active: Shared, played: Played) -> None:
        super().charge(active, played)
        self._time += 1
        for i, length in enumerate(self.lengths, start=1):
            if self._time % length == 0:  # the interval is over
                self._ended += self.parts[i].spent() * self.parts[i].prior
                self.parts[i] = self._made(length)

    @property
    def alarms(self) -> int:
        """Those of the whole run and of every interval that it will have, each by its own."""
        intervals = sum(max(math.ceil(self.run / length) - 1, 0) for length in self.lengths)
        return self.first.alarms * (1 + intervals)

    def spent(self) -> float:
        return super().spent() + self._ended

    def log_potential(self, band: Band) -> float:
        """Bound the logarithm of all potentials' sum by their shares; those to come have 1 each."""
        own, later = super().log_potential(band), self.first.experts * len(self.lengths)
        return float(np.logaddexp(own, math.log(later))) if later else own


def covering(first: int, end: int, lengths: Sequence[int]) -> Iterator[int]:
    """Yield the lengths of intervals that make up the rounds first..end-1; 1 for single rounds."""
    at = first
    while at < end:
        fitting = [m for m in lengths if at >= m and at % m == 0 and at + m <= end]
        length = max(fitting, default=1)
        yield length
        at += length
