"""What is conditioned on: ``EventSet``, the seam between a forecaster and its events.

A set is made with the rule that weighs it, and keeps the gains and variations that this rule
wants. Sets add up: ``a + b`` is one game for both. ``Intervals`` wraps any of them.

    VectorEvents    ``biases``       decision and cross events of all coordinates: the paper's
    GainEvents      ``gains``        gains of listed losses against actions, policies and models
    CellEvents      ``universal``    dyadic cells of one number
    CoverageEvents  ``coverage``     outcomes below announced quantiles
    Together        here             the sum of sets
    Intervals       here             copies that know the rounds of one interval alone

**Intervals**: beside the events of the whole run there are copies of them that know the rounds of
one interval alone, for every power of two m from ``MIN_INTERVAL`` on the intervals
[i m, (i + 1) m), i >= 1 (geometric covering intervals: Daniely, Gonen and Shalev-Shwartz 2015): an
expert with a prior share q = m / T (docs/theory.md, 11). Any stretch of rounds is made of at most
two intervals of each length and 2 (MIN_INTERVAL - 1) single rounds.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from regretless.forecaster.events.loss_table import LossTable, Played, ProtectedLosses
from regretless.forecaster.guarantees.coordinate_bound import CoordinateBound
from regretless.forecaster.guarantees.regret_bound import RegretBound
from regretless.forecaster.reference import Band
from regretless.forecaster.switch_test import SwitchTest
from regretless.forecaster.weights import BoundInputs, ExpertWeights, Moment, WeightRule
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.core.delegated import Delegated
from regretless.market.losses.basis import Hull
from regretless.market.numerics.greatest import sums_of_greatest
from regretless.market.records import Event

ROUNDING = 1e-9  # of a sum of gains and margins over all rounds
NO_SUMS: Array = np.empty(0)  # stands for sums that were not copied


class EventSums(NamedTuple):
    """Running sums of experts, or views of those that can happen in a round.

    R stands for the rows of the game's table to which the experts belong, n for coordinates; other
    axes may come first. Scalar events have one axis in place of both.
    """

    rows: slice  # of the game's table to which their weights are added
    gain: Array  # (..., R, n) biases of coordinates, or gains of scalar events
    variation: Array  # the same, C as the rule wants it
    squares: Array  # the same, V
    occupancy: Array  # (..., R)
    predicted: Array  # (..., R, n) predictions, times the chance of the event; (R, 0) for gains
    prior: float = 1.0  # of each expert, beside 1 for others
    both_signs: bool = True  # whether a gain of either sign is an expert
    against_models: Array | float = 0.0  # 1 where the models' band is added to the others'

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array, Array]:
        """Gains, variations, squares, occupancies and sums of predictions."""
        return self.gain, self.variation, self.squares, self.occupancy, self.predicted

    def at(self, *index: int) -> "EventSums":
        """Return the views at an index of the first axes."""
        return EventSums(
            self.rows,
            self.gain[index],
            self.variation[index],
            self.squares[index],
            self.occupancy[index],
            self.predicted[index],
            self.prior,
        )

    def excerpt(self) -> "EventSums":
        """Return a copy without gains and squares, on which bounds do not depend."""
        return EventSums(
            self.rows,
            NO_SUMS,
            self.variation.copy(),
            NO_SUMS,
            self.occupancy.copy(),
            self.predicted.copy(),
            self.prior,
            self.both_signs,
            self.against_models,
        )

    def gain_in_band(self, band: Band) -> Array:
        """Return what the weights see of all gains, but for the common band."""
        if self.both_signs or not band.extra_factor_of_models:
            return self.gain
        models_band = band.extra_factor_of_models * self.against_models * np.sqrt(self.variation)
        return np.asarray(self.gain - models_band)


@dataclass(eq=False)
class WeightedEvents(ABC):
    """Events that can happen in a round, with their weights up to the common normalisation."""

    weights: ExpertWeights
    prior: float = 1.0  # of each expert, beside 1 for others

    @abstractmethod
    def add_to(self, signed_weights: Array, weights: Array) -> None:
        """Add the events' weights to the game's table of signed weights (R, n), in place.

        ``weights`` have the shape of the events' gains.
        """


@dataclass(eq=False)
class WeightedCoordinates(WeightedEvents):
    """Events whose experts are the coordinates of a prediction: weights are rows of the table."""

    rows: slice = field(kw_only=True)  # of the game's table

    def add_to(self, signed_weights: Array, weights: Array) -> None:
        signed_weights[self.rows] += weights


class EventSet(Checkpointable, ABC):
    """Events on which predictions shall have no bias, with what they have gained so far."""

    REMEMBERED: ClassVar[tuple[str, ...]] = ("arrays",)
    IN_PLACE = True
    views: Sequence[EventSums] = ()  # of all experts
    rows: LossTable  # the protected losses, all over the same basis, with R (loss, action) pairs
    rule: WeightRule
    experts: int  # N, how many gains are weighed
    crossed: bool = False  # whether it bounds contextual swap regret
    joinable: bool = False  # whether it promises anything to agents that come later
    counts_regret: bool = False  # whether gains are regrets while a reference is trusted
    lengths: tuple[int, ...] = ()  # of the intervals over which it bounds regret
    planned_rounds: int = 0  # the rounds of the run, which set the intervals' shares
    charges_broadcast_predictions: bool = (
        False  # whether it charges what was broadcast, beside expectations
    )
    cell_rows: int = 0  # rows of the game's table for dyadic cells, after those of the losses
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
    def weigh(self, active: Any, moment: Moment) -> Iterator[WeightedEvents]:
        """Yield active events in parts, each with its weights up to the common normalisation."""

    def table_of(self, active: Any, moment: Moment) -> Array:
        """Return the round's game H (R + cell rows, n): the signed weights of active events.

        ``active`` is what ``active`` returned. All weights are taken relative to the greatest
        exponent and divided by their sum, so that the weights of all experts add up to 1.
        """
        parts = list(self.weigh(active, moment))
        largest_exponent = max([part.weights.largest_exponent for part in parts])
        signed_weights = np.zeros((self.rows.shape[0] + self.cell_rows, self.rows.size))
        total_weight = 0.0
        # Coordinates are rows of the table, which is divided as a whole; scalar events, of which
        # there are as many as gains, are divided before they are turned into coordinates.
        weights_of_scalar_events = []
        for part in parts:
            weights, weight_of_part = part.weights.relative_to(largest_exponent, part.prior)
            total_weight += weight_of_part
            if isinstance(part, WeightedCoordinates):
                part.add_to(signed_weights, weights)
            else:
                weights_of_scalar_events.append((part, weights))
        if total_weight == 0.0:  # nothing is weighed: the table is zero
            total_weight = 1.0
        signed_weights /= total_weight
        for part, weights in weights_of_scalar_events:
            part.add_to(signed_weights, weights / total_weight)
        return signed_weights

    @abstractmethod
    def charge(self, active: Any, played: Played) -> None:
        """Add a round to the gains, in expectation over the mixture."""

    @property
    def alarms(self) -> int:
        """Count what can reject a reference, in units of equal parts of the switch test's alpha."""
        return self.experts

    @abstractmethod
    def exceeds(self, active: Any, switch_test: SwitchTest, *, hint: bool = False) -> bool:
        """Whether a reference cost some event more than it may; with ``hint``, than nothing."""

    def sum_of_log_variations(self) -> float:
        """Return the sum of ln(1 + C) over all experts by their shares."""
        total = 0.0
        for sums in self.views:
            signs = 2 if sums.both_signs else 1
            total += signs * sums.prior * np.log1p(sums.variation).sum()
        return float(total)

    def log_potential(self, band: Band) -> float:
        """Return the logarithm of the sum of all experts' potentials by their shares."""
        log_potentials = list[Array]()
        for sums in self.views:
            gain = sums.gain_in_band(band)
            gains_of_signs = (gain, -gain) if sums.both_signs else (gain,)
            for gain_of_sign in gains_of_signs:
                is_weighed = np.isfinite(gain_of_sign)
                potentials = self.rule.potentials(
                    gain_of_sign[is_weighed], sums.variation[is_weighed], band.factor
                )
                log_potentials.append(math.log(sums.prior) + potentials)
        return float(np.logaddexp.reduce(np.concatenate(log_potentials)))

    def bound(self, inputs: BoundInputs, hull: Hull) -> RegretBound:
        """Return the bound on the events' gains and on regret through them.

        ``hull`` says where predictions lie.
        """
        return CoordinateBound(self.rule, inputs, hull=hull)

    def from_variation(self, bound: RegretBound, group: ProtectedLosses) -> Array:
        """Bound the sum of expected decision swap regret of a group's losses (K,) so far."""
        every_loss = np.arange(len(group.weights))
        return self.over_stay(bound, group, every_loss, regret_at_entry=np.zeros((1, 1, 1)))

    @abstractmethod
    def gained(self, group: ProtectedLosses, losses: Indices) -> Array:
        """Return what actions have gained over comparators so far (k, A, C).

        Of k of a group's losses by their places in it, in units of the loss; 0 for an action over
        itself.
        """

    @abstractmethod
    def most_gained(self, bound: RegretBound, group: ProtectedLosses, losses: Indices) -> Array:
        """Bound the same from above by the theorem (k, A, C); while trusted, by what it is."""

    @abstractmethod
    def margins(self, group: ProtectedLosses, losses: Indices) -> Array:
        """Return by how much the gains so far exceed the regrets (k, A, C).

        That is by how much predictions promised the played action to be better than the comparator;
        0 where what was charged is the regret, while a reference is trusted.
        """

    def regretted(self, group: ProtectedLosses, losses: Indices) -> Array:
        """Return what actions have cost beyond comparators so far, expected over draws (k, A, C).

        It is what they gained less the margins, 0 for an action beside itself.
        """
        return self.gained(group, losses) - self.margins(group, losses)

    def over_stay(
        self, bound: RegretBound, group: ProtectedLosses, losses: Indices, regret_at_entry: Array
    ) -> Array:
        """Bound the sum of expected decision swap regret of k stays that end now (k,).

        ``regret_at_entry`` (k, A, C) is what ``regretted`` returned when each stay began.
        """
        regret_at_most = self.most_gained(bound, group, losses) - self.margins(group, losses)
        return sums_of_greatest(regret_at_most - regret_at_entry) + ROUNDING

    def to_models(self, bound: RegretBound, group: ProtectedLosses) -> Array | None:
        """Bound the sum of expected regret of a group's losses to each model so far (K, M).

        None where no model is a comparator.
        """
        return None

    def realised(self, bound: RegretBound, group: ProtectedLosses) -> Array | None:
        """Bound decision swap regret so far of who acts on what was broadcast.

        None if only expectations are known.
        """
        return None

    def excerpt(self, *, games_have_begun: bool) -> "EventSet | None":
        """Return a copy of the sums that bounds on regret so far are worked out from, as they are.

        It answers ``from_variation`` and ``realised``, and ``sum_of_log_variations`` once the games
        have begun, as no reference is trusted. Nothing is added to it. None where no such copy is
        made: of a user's own set nobody knows what it adds up.
        """
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


ActiveOfSets = list[tuple[EventSet, Any]]  # event sets, each with its active events


class Together(EventSet):
    """The sum of event sets over the same losses and rule: one game keeps all potentials down.

    The first one says what is promised to listed losses and what the tables show; all experts
    count.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("parts",)

    def __init__(self, parts: Sequence[EventSet]) -> None:
        self.parts = list(parts)
        self.first = parts[0]
        self.rows = self.first.rows
        self.rule = self.first.rule
        self.experts = sum(part.experts for part in parts)
        self.crossed = self.first.crossed
        self.joinable = self.first.joinable
        self.counts_regret = self.first.counts_regret
        self.cell_rows = max(part.cell_rows for part in parts)

    def active(self, x: object, suggestions: Indices | None = None) -> ActiveOfSets:
        return [(part, part.active(x, suggestions)) for part in self.parts]

    def weigh(self, active: ActiveOfSets, moment: Moment) -> Iterator[WeightedEvents]:
        for part, active_events in active:
            for weighted in part.weigh(active_events, moment):
                yield replace(weighted, prior=weighted.prior * part.prior)

    def charge(self, active: ActiveOfSets, played: Played) -> None:
        for part, active_events in active:
            part.charge(active_events, played)

    @property
    def alarms(self) -> int:
        return sum(part.alarms for part in self.parts)

    def exceeds(self, active: ActiveOfSets, switch_test: SwitchTest, *, hint: bool = False) -> bool:
        return any(part.exceeds(events, switch_test, hint=hint) for part, events in active)

    def sum_of_log_variations(self) -> float:
        return sum(part.prior * part.sum_of_log_variations() for part in self.parts)

    def log_potential(self, band: Band) -> float:
        log_potentials = [math.log(part.prior) + part.log_potential(band) for part in self.parts]
        return float(np.logaddexp.reduce(log_potentials))

    def to_models(self, bound: RegretBound, group: ProtectedLosses) -> Array | None:
        for part in self.parts:
            regret = part.to_models(bound, group)
            if regret is not None:
                return regret
        return None

    def bound(self, inputs: BoundInputs, hull: Hull) -> RegretBound:
        return self.first.bound(inputs, hull)

    @property
    def others(self) -> EventSet | None:
        for part in self.parts:
            if part.others is not None:
                return part.others
        return None

    def excerpt(self, *, games_have_begun: bool) -> "EventSet | None":
        parts = []
        for part in self.parts:
            excerpt_of_part = part.excerpt(games_have_begun=games_have_begun)
            if excerpt_of_part is None:
                return None
            parts.append(excerpt_of_part)
        excerpt = copy(self)
        excerpt.parts = parts
        excerpt.first = parts[0]
        return excerpt

    from_variation = Delegated("first")
    gained = Delegated("first")
    most_gained = Delegated("first")
    margins = Delegated("first")
    over_stay = Delegated("first")
    table = Delegated("first")


MIN_INTERVAL = 32  # rounds of an interval; what is promised of fewer says nothing


class Intervals(Together):
    """The events of a run of so many ``rounds`` and of its intervals.

    ``make`` makes the events, of the run and of every interval. The shares of intervals are those
    of a run that ends after ``rounds``: bounds of a longer one are NaN.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("_time", "_ended")

    def __init__(self, make: Callable[[], EventSet], *, rounds: int) -> None:
        lengths = []
        length = MIN_INTERVAL
        while length < rounds:
            lengths.append(length)
            length *= 2
        self.lengths = tuple(lengths)  # rounds of the intervals of every scale
        self.planned_rounds = rounds
        self._make_events = make
        self._time = 0  # rounds so far
        self._ended = 0.0  # what intervals that are over add to ``sum_of_log_variations``
        super().__init__([make(), *map(self._events_of_interval, self.lengths)])

    def _events_of_interval(self, length: int) -> EventSet:
        """Make the events of an interval of so many rounds."""
        events = self._make_events()
        events.prior = length / self.planned_rounds
        return events

    def active(self, x: object, suggestions: Indices | None = None) -> ActiveOfSets:
        """Return the active events of the whole and of open intervals."""
        count = 1 + sum(self._time >= length for length in self.lengths)
        return [(part, part.active(x, suggestions)) for part in self.parts[:count]]

    def charge(self, active: ActiveOfSets, played: Played) -> None:
        super().charge(active, played)
        self._time += 1
        for part_index, length in enumerate(self.lengths, start=1):
            if self._time % length == 0:  # the interval is over
                ended_part = self.parts[part_index]
                self._ended += ended_part.sum_of_log_variations() * ended_part.prior
                self.parts[part_index] = self._events_of_interval(length)

    @property
    def alarms(self) -> int:
        """Those of the whole run and of every interval that it will have, each by its own."""
        intervals = sum(
            max(math.ceil(self.planned_rounds / length) - 1, 0) for length in self.lengths
        )
        return self.first.alarms * (1 + intervals)

    def bound(self, inputs: BoundInputs, hull: Hull) -> RegretBound:
        return replace(self.first.bound(inputs, hull), max_rounds=self.planned_rounds)

    def sum_of_log_variations(self) -> float:
        return super().sum_of_log_variations() + self._ended

    def log_potential(self, band: Band) -> float:
        """Bound the logarithm of all potentials' sum by their shares; those to come have 1 each."""
        log_potential = super().log_potential(band)
        later_experts = self.first.experts * len(self.lengths)
        if not later_experts:
            return log_potential
        return float(np.logaddexp(log_potential, math.log(later_experts)))


def covering(first: int, end: int, lengths: Sequence[int]) -> Iterator[int]:
    """Yield the lengths of intervals that make up the rounds first..end-1; 1 for single rounds."""
    start = first
    while start < end:
        longest = 1
        for length in lengths:
            begins_here = start >= length and start % length == 0
            if begins_here and start + length <= end:
                longest = max(longest, length)
        yield longest
        start += longest
