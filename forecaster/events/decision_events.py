"""Decision and cross events: what predictions are unbiased on, and the biases so far.

For each protected loss (row of coefficients r(a) in the predicted basis) and action a,

    decision event      E(x, p) = [BR(p) = a]            or the quantal weight q(a, p)
    cross event         E(x, p) = [BR(p) = a, c(x) = b]  for each policy c, suggestion b

(paper, definitions of decision and decision cross calibration, and their smooth versions). The
bias of an event is B = sum_t E_{p ~ mixture_t}[ E(x_t, p) (p - s_t) ], a vector in R^n; its
occupancy is n_T(E) = sum_t E[E(x_t, p)].

Given x a policy suggests exactly one b, so of a group's cross biases ``(policies, suggestions,
rows, n)`` one slice per policy is active in a round, and the game sees a single table (rows, n).
"""

from collections.abc import Iterator, Sequence
from copy import copy

import numpy as np

from regretless.forecaster.events.base import (
    EventSet,
    EventSums,
    WeightedCoordinates,
    WeightedEvents,
)
from regretless.forecaster.events.loss_table import LossTable, Played, ProtectedLosses
from regretless.forecaster.guarantees.regret_bound import RegretBound
from regretless.forecaster.switch_test import SwitchTest
from regretless.forecaster.weights import AdaptiveWeights, Moment, WeightRule
from regretless.market.core.arrays import Array, Indices
from regretless.market.core.compiled import compiled
from regretless.market.core.own_code import is_ours
from regretless.market.numerics.pairwise_sum import pairwise_sum
from regretless.market.records import Event, Policy, suggestions_to_all


def new_sums(rows: slice, size: int, *axes: int, prior: float = 1.0) -> EventSums:
    """Make sums that begin at 0, for rows of the game's table and so many coordinates."""
    shape = *axes, rows.stop - rows.start
    bias, variation, squares, predicted = np.zeros((4, *shape, size))
    return EventSums(rows, bias, variation, squares, np.zeros(shape), predicted, prior)


@compiled()
def add_round(
    bias: Array,
    variation: Array,
    squares: Array,
    occupancy: Array,
    predicted: Array,
    bias_of_round: Array,
    occupancy_of_round: Array,
    first_row: int,
    statistics: Array,
    squared: bool,  # noqa: FBT001
) -> None:
    """Add a round to running sums (compiled).

    Parameters
    ----------
    bias, variation, squares : array (rows, n)
        Running sums of events; changed in place.
    occupancy : array (rows,)
        Sum of the chances of each event; changed in place.
    predicted : array (rows, n)
        Sums of predictions, times the chance of the event; changed in place.
    bias_of_round : array (R, n)
        What the round adds to the bias of each row of the game's table.
    occupancy_of_round : array (R,)
        The chance of each row in the round; one of chance 0 has no bias.
    first_row : int
        The row of the game's table that the first of the events has.
    statistics : array (n,)
        s(y): the event's predictions are its bias and this, times its chance.
    squared : bool
        Whether variations add up squares, and not sizes.
    """
    for r in range(occupancy.shape[0]):
        row = first_row + r
        chance = occupancy_of_round[row]
        if chance > 0.0:
            occupancy[r] += chance
            for i in range(bias_of_round.shape[1]):
                gain = bias_of_round[row, i]
                bias[r, i] += gain
                variation[r, i] += gain**2 if squared else abs(gain)
                squares[r, i] += gain**2
                predicted[r, i] += gain + chance * statistics[i]


class VectorEvents(EventSet):
    """The decision and cross events of all coordinates, and their accumulated biases.

    Groups are all over the same basis; the rule is adaptive by default. There are N = 2 n |E|
    experts, one per event, coordinate and sign; |E| is the sum over rows of 1 + policies x
    suggestions.
    """

    crossed = joinable = True

    def __init__(self, groups: Sequence[ProtectedLosses], rule: WeightRule | None = None) -> None:
        self.rows = LossTable(groups)
        self.rule = rule or AdaptiveWeights()
        self.views = [new_sums(slice(0, self.rows.shape[0]), self.size)]
        # The policies of each group that has any, with its cross events and its number of actions.
        self._policies: list[tuple[EventSums, Sequence[Policy], int]] = []
        for group in self.groups:
            n_policies = len(group.policies)
            n_actions = group.offset.shape[1]
            cross_events = new_sums(self.rows.slice(group), self.size, n_policies, n_actions)
            self.views.append(cross_events)
            if n_policies:
                self._policies.append((cross_events, group.policies, n_actions))
        self.experts = 2 * sum(view.gain.size for view in self.views)

    def active(self, x: object, suggestions: Indices | None = None) -> list[EventSums]:
        """Return the events that can happen: all decision events, and one slice per policy."""
        active_events = [self.views[0]]
        for events_of_group, policies, n_actions in self._policies:
            suggested = suggestions_to_all(policies, x, n_actions)
            for policy_index, suggestion in enumerate(suggested.tolist()):
                active_events.append(events_of_group.at(policy_index, suggestion))
        return active_events

    def weigh(self, active: list[EventSums], moment: Moment) -> Iterator[WeightedEvents]:
        for view in active:
            weights = self.rule.weigh(view.gain, view.variation, moment, both_signs=True)
            yield WeightedCoordinates(weights, view.prior, rows=view.rows)

    def table_of(self, active: list[EventSums], moment: Moment) -> Array:
        if len(active) > 1 or self.cell_rows:
            return super().table_of(active, moment)
        # There is an expert of either sign for every entry of the table: the weights are the table.
        (decision_events,) = active
        return self.rule.normalised(decision_events.gain, decision_events.variation, moment)

    def charge(self, active: list[EventSums], played: Played) -> None:
        _points, _mass, statistics = played.distribution
        bias_of_round = played.bias
        play_chance = played.play_chance
        squared = self.rule.squared
        for view in active:
            add_round(
                view.gain,
                view.variation,
                view.squares,
                view.occupancy,
                view.predicted,
                bias_of_round,
                play_chance,
                view.rows.start,
                statistics,
                squared,
            )

    def exceeds(
        self, active: list[EventSums], switch_test: SwitchTest, *, hint: bool = False
    ) -> bool:
        return any(
            switch_test.rejects(np.abs(view.gain), view.squares, hint=hint) for view in active
        )

    def excerpt(self, *, games_have_begun: bool) -> EventSet | None:
        if not is_ours(type(self)):
            return None
        excerpt = copy(self)
        excerpt.views = [view.excerpt() for view in self.views]
        return excerpt

    def gained(self, group: ProtectedLosses, losses: Indices) -> Array:
        """Return <r(c) - r(a), B_a>, and for a policy the sum over what it suggests (k, A, C)."""
        coefficients = group.weights[losses]  # (k, A, n)
        return _value_gaps(coefficients, *self._of_losses(group, losses, "gain"))

    def margins(self, group: ProtectedLosses, losses: Indices) -> Array:
        """Return the sums of l(c, p) - l(a, p) over predictions at which a was played (k, A, C)."""
        coefficients = group.weights[losses]  # (k, A, n)
        of_predictions = _value_gaps(coefficients, *self._of_losses(group, losses, "predicted"))
        offsets = group.offset[losses][:, :, None]  # (k, A, 1), coefficients of a constant 1
        occupancies = self._of_losses(group, losses, "occupancy")
        return of_predictions + _value_gaps(offsets, *occupancies)

    def most_gained(self, bound: RegretBound, group: ProtectedLosses, losses: Indices) -> Array:
        """Bound it by sum_i |r(c) - r(a)|_i |B_{a,i}|, and likewise what policies suggest."""
        coefficients = group.weights[losses]  # (k, A, n)
        decision_variations, cross_variations = self._of_losses(group, losses, "variation")
        greatest_bias = bound.bias_at(decision_variations)
        every_action = np.arange(coefficients.shape[1])
        greatest_gains = [_greatest_gains(coefficients, greatest_bias, every_action)]
        for variation_by_suggestion in cross_variations:  # (suggestions, k, A, n)
            gains_by_suggestion = []
            for suggestion, variation in zip(every_action, variation_by_suggestion, strict=True):
                greatest_bias = bound.bias_at(variation)
                gains = _greatest_gains(coefficients, greatest_bias, every_action[[suggestion]])
                gains_by_suggestion.append(gains)
            greatest_gains.append(np.sum(gains_by_suggestion, axis=0))
        return np.concatenate(greatest_gains, axis=2)

    def _of_losses(self, group: ProtectedLosses, losses: Indices, name: str) -> tuple[Array, Array]:
        """Return one of the accumulators, by the name of a ``EventSums``'s field, of k losses.

        Of decision events (k, A, n), and of cross events (policies, suggestions, k, A, n); n is 1
        for occupancies.
        """
        shape = (*group.offset.shape, -1)  # (K, A, n)
        decision_events, *cross_events = self.views
        cross_events_of_group = cross_events[self.rows.group_index(group)]
        decision_sums = getattr(decision_events, name)[self.rows.slice(group)].reshape(shape)
        cross_sums = getattr(cross_events_of_group, name)
        n_numbers = decision_sums.shape[2]
        cross_sums = cross_sums.reshape(*cross_sums.shape[:2], *group.offset.shape, n_numbers)
        return decision_sums[losses], cross_sums[:, :, losses]

    def table(self) -> Iterator[Event]:
        loss_of = np.repeat(np.arange(len(self.rows.start) - 1), np.diff(self.rows.start))
        action_of = np.arange(len(loss_of)) - self.rows.start[loss_of]
        for view in self.views:
            # a view's axis of rows is its last; cross events have policy and suggestion before it
            for index in np.ndindex(view.occupancy.shape):
                row = view.rows.start + index[-1]
                policy, suggestion = index[:-1] or (None, None)
                yield Event(
                    loss=int(loss_of[row]),
                    action=int(action_of[row]),
                    policy=policy,
                    suggestion=suggestion,
                    occupancy=float(view.occupancy[index]),
                    bias=view.gain[index],
                )


def _greatest_gains(coefficients: Array, greatest_bias: Array, comparators: Indices) -> Array:
    """Return sum_i |r(c) - r(a)|_i |B_{a,i}| of every loss, action and comparator c (k, A, m).

    ``coefficients`` r and ``greatest_bias`` |B| are (k, A, n), ``comparators`` m actions (m,).
    """
    gains = np.empty((*coefficients.shape[:2], len(comparators)))
    _write_greatest_gains(coefficients, greatest_bias, comparators, gains)
    return gains


@compiled()
def _write_greatest_gains(
    coefficients: Array, greatest_bias: Array, comparators: Indices, gains: Array
) -> None:
    """Write what ``_greatest_gains`` returns into ``gains`` (k, A, m) (compiled)."""
    n_losses, n_actions, n_coordinates = coefficients.shape
    parts = np.empty(n_coordinates)  # of one gain
    for k in range(n_losses):
        for a in range(n_actions):
            for j in range(len(comparators)):
                c = comparators[j]
                for i in range(n_coordinates):
                    gap = abs(coefficients[k, a, i] - coefficients[k, c, i])
                    parts[i] = gap * greatest_bias[k, a, i]
                gains[k, a, j] = pairwise_sum(parts)


def _value_gaps(coefficients: Array, of_decisions: Array, of_suggestions: Array) -> Array:
    """Return by how much comparators' coefficients value sums higher than the played action's do.

    Parameters
    ----------
    coefficients : array (k, A, n)
        Those of k losses.
    of_decisions : array (k, A, n)
        What was added up while each action was played.
    of_suggestions : array (policies, suggestions, k, A, n)
        The same while a policy suggested an action.

    Returns
    -------
    array (k, A, A + policies)
    """
    value = of_decisions @ coefficients.swapaxes(1, 2)  # (k, A, A): played action, comparator
    value_of_played_itself = value.diagonal(axis1=1, axis2=2)  # (k, A)
    gaps = [value - value_of_played_itself[:, :, np.newaxis]]
    for sums in of_suggestions:  # (suggestions, k, A, n)
        value_of_suggested = np.einsum("bkan,kbn->ka", sums, coefficients)
        value_of_played = np.einsum("bkan,kan->ka", sums, coefficients)
        gaps.append((value_of_suggested - value_of_played)[:, :, None])
    return np.concatenate(gaps, axis=2)
