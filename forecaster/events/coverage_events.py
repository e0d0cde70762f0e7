r"""Signed events of announced quantiles: whether as many outcomes lie below them as forecast.

In a round a quantile of level q is announced as theta_a, a the best response of its pinball loss
(``events.quantile_grid``). With p the forecast of the indicators s_j = 1[y <= theta_j], two biases
say how far off the forecast was there,

    at       p_a - s_a                     below    p_(a - 1) - s_(a - 1),

and as p_a >= q > p_(a - 1), whatever p is,

    #{y <= theta_a}  >=  q n - (sum of at),        #{y <= theta_(a - 1)}  <=  q n - (sum of below),

over any n rounds (docs/theory.md, 19). The events are **all** rounds, so that coverage is bounded
whatever the number of values, and the rounds in which each **value** is announced. Both signs are
experts. Of the lowest value nothing lies below, and of the highest everything is at most that: they
have no bias there.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from regretless.forecaster.events.base import EventSet, EventSums, WeightedEvents
from regretless.forecaster.events.loss_table import LossTable, Played, ProtectedLosses
from regretless.forecaster.events.quantile_grid import QuantileGrid
from regretless.forecaster.guarantees.draws import drawn
from regretless.forecaster.guarantees.regret_bound import RegretBound
from regretless.forecaster.switch_test import SwitchTest
from regretless.forecaster.weights import AdaptiveWeights, Moment, WeightRule
from regretless.market.core.arrays import Array, Indices

AT = 0  # index of the biases of "outcome is at most the announced value"
BELOW = 1  # and of "at most the value before it"
GREATEST_STEP = 2.0  # by which what was drawn and its expectation differ at most
NO_REGRET = "events of coverage say nothing of regrets; add them to events of losses"


@dataclass(eq=False)
class WeightedCoverage(WeightedEvents):
    """Signed biases of coverage: they pull rows of pinball losses along single indicators."""

    events: "CoverageEvents" = field(kw_only=True)

    def add_to(self, signed_weights: Array, weights: Array) -> None:
        self.events.add_to_rows(signed_weights, weights)


class CoverageEvents(EventSet):
    """The signed coverage of every announced quantile, over all rounds and by announced value.

    Parameters
    ----------
    rows : LossTable
        Of all losses that are protected.
    group : ProtectedLosses
        The pinball losses among them (``QuantileGrid.protected``).
    grid : QuantileGrid
        Their levels and values.
    first_indicators : int array (K,)
        Where among all statistics the indicators of each loss's outcome begin.
    rule : WeightRule, optional
        The one that weighs all events; adaptive by default.
    """

    REMEMBERED: ClassVar[tuple[str, ...]] = ("arrays", "_moments_of_draws")

    def __init__(
        self,
        rows: LossTable,
        group: ProtectedLosses,
        grid: QuantileGrid,
        *,
        first_indicators: Indices,
        rule: WeightRule | None = None,
    ) -> None:
        self.rows = rows
        self.group = group
        self.grid = grid
        self.rule = rule or AdaptiveWeights()
        self._rows_of_group = rows.slice(group)
        self._losses_of_group = rows.losses(group)
        self._first_indicators = np.asarray(first_indicators)
        # The table's entry of each loss and indicator (K, m): the value theta_i has the bias "at"
        # in its own row and the column of s_i, and the next one, theta_(i + 1), "below" there.
        value_index = np.arange(grid.steps)
        first_rows = self._rows_of_group.start + np.arange(grid.n_losses) * grid.n_values
        self._rows_at = first_rows[:, np.newaxis] + value_index
        self._columns = self._first_indicators[:, np.newaxis] + value_index
        # By loss, at or below, and event: all rounds first, then each value.
        self.shape = grid.events_shape
        n_events = math.prod(self.shape)
        self.experts = 2 * n_events
        gain, variation, squares, occupancy, predicted = np.zeros((5, n_events))
        self.views = [EventSums(slice(None), gain, variation, squares, occupancy, predicted)]
        # Of draws: the second moments of biases in rounds with several predictions, and the most
        # that what was drawn may differ from its expectation.
        self._moments_of_draws = np.zeros((2, *self.shape))

    def active(self, x: object, suggestions: Indices | None = None) -> None:
        """Return nothing: no event depends on the context."""

    def weigh(self, active: None, moment: Moment) -> Iterator[WeightedEvents]:
        (view,) = self.views
        weights = self.rule.weigh(view.gain, view.variation, moment, both_signs=True)
        yield WeightedCoverage(weights, view.prior, events=self)

    def add_to_rows(self, signed_weights: Array, weights: Array) -> None:
        """Add the weights of all events to the game's table (R, n), in place."""
        by_event = weights.reshape(self.shape)
        of_values = by_event[:, :, 1:] + by_event[:, :, :1]
        signed_weights[self._rows_at, self._columns] += of_values[:, AT, :-1]
        signed_weights[self._rows_at + 1, self._columns] += of_values[:, BELOW, 1:]

    def charge(self, active: None, played: Played) -> None:
        (view,) = self.views
        points, mass, statistics = played.distribution
        chance = played.play_chance[self._rows_of_group].reshape(self.grid.n_losses, -1)
        bias_of_round = self._by_event(
            played.bias[self._rows_at, self._columns], played.bias[self._rows_at + 1, self._columns]
        )
        gain = bias_of_round.ravel()
        view.gain[:] += gain
        view.variation[:] += gain**2 if self.rule.squared else np.abs(gain)
        view.squares[:] += gain**2
        occupancy = np.concatenate([chance.sum(1, keepdims=True), chance], axis=1)
        view.occupancy[:] += np.repeat(occupancy[:, np.newaxis], 2, axis=1).ravel()
        indicators = statistics[self._columns]  # (K, m)
        expected_at = chance[:, :-1] * indicators
        expected_below = chance[:, 1:] * indicators
        promised = bias_of_round + self._by_event(expected_at, expected_below)
        promised[:, AT, -1] += chance[:, -1]  # everything is at most the highest value
        promised[:, AT, 0] += chance[:, -1]
        view.predicted[:] += promised.ravel()
        if len(mass) > 1:
            self._add_draw(points, mass, statistics, occupancy)

    def _add_draw(self, points: Array, mass: Array, statistics: Array, occupancy: Array) -> None:
        """Add what is not certain of a round in which one of several predictions is drawn."""
        announced = self.rows.best_responses(points)[self._losses_of_group]  # (K, m)
        moments = np.zeros(self.shape)
        every_loss = np.arange(self.grid.n_losses)
        for j, weight in enumerate(mass):
            value = announced[:, j]
            for kind, indicator in ((AT, value), (BELOW, value - 1)):
                has_bias = (indicator >= 0) & (indicator < self.grid.steps)
                column = self._first_indicators + np.clip(indicator, 0, self.grid.steps - 1)
                bias = np.where(has_bias, points[j, column] - statistics[column], 0.0)
                moments[:, kind, 0] += weight * bias**2
                moments[every_loss, kind, 1 + value] += weight * bias**2
        self._moments_of_draws[0] += moments
        can_happen = occupancy[:, np.newaxis] > 0
        self._moments_of_draws[1] += np.where(can_happen, GREATEST_STEP, 0.0)

    def _by_event(self, at: Array, below: Array) -> Array:
        """Put what is known of each indicator (K, m) in the place of its events (K, 2, m + 2)."""
        by_event = np.zeros(self.shape)
        by_event[:, AT, 1:-1] = at
        by_event[:, BELOW, 2:] = below
        by_event[:, :, 0] = by_event[:, :, 1:].sum(2)
        return by_event

    def exceeds(self, active: None, switch_test: SwitchTest, *, hint: bool = False) -> bool:
        (view,) = self.views
        return switch_test.rejects(np.abs(view.gain), view.squares, hint=hint)

    def deviation(self, bound: RegretBound) -> Array:
        """Bound the absolute sums of all biases so far (K, 2, m + 2), in expectation over draws.

        The events are all rounds first, then each value. ``bound`` is that of this set
        (``EventSet.bound``). While a reference is trusted it is what the switch test lets pass.
        """
        (view,) = self.views
        greatest = bound.bias_at(view.variation)
        if bound.inputs.trusted and bound.inputs.switch_test is not None:
            greatest = np.minimum(greatest, bound.inputs.switch_test.most(view.squares))
        return np.asarray(greatest).reshape(self.shape)

    @property
    def moments_of_draws(self) -> Array:
        """V and what is sure (2, K, 2, m + 2) of the martingales of ``guarantees.draws``."""
        return self._moments_of_draws

    def gained(self, group: ProtectedLosses, losses: Indices) -> Array:
        raise TypeError(NO_REGRET)

    def most_gained(self, bound: RegretBound, group: ProtectedLosses, losses: Indices) -> Array:
        raise TypeError(NO_REGRET)

    def margins(self, group: ProtectedLosses, losses: Indices) -> Array:
        raise TypeError(NO_REGRET)


def deviation_of_draws(moments: Array) -> Array:
    """Bound what draws add to all sums of biases (K, 2, m + 2), with probability 1 - ``RISK``.

    ``moments`` (2, K, 2, m + 2) are the sums of ``moments_of_draws`` over all slots. The bound
    holds for all events in all rounds at once.
    """
    n_martingales = 2 * math.prod(moments.shape[1:])  # one for either sign
    return drawn(moments, math.log(n_martingales), GREATEST_STEP)
