"""Agents who respond to a forecast: the common draw or their own, at once or with delay.

Agents with equal losses who hear the same forecast choose alike, so a cohort of N agents keeps K
rows, one per distinct loss, and ``row_of`` says which row an agent belongs to. With
``multiplicity`` agents are not listed: it says how many each row stands for. Where they draw, one
action is drawn for each row, that of the agent in the tables, and those of the others by one
multinomial distribution.

A group of rows at one distance from the forecaster that no prediction has reached expects the
linear form of its losses at the running mean of s(y) (``market.game.network``).

Agents who each draw a prediction of their own from the round's mixture act differently, so that
each has a row of its own and is charged what it did.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any, Self

import numpy as np

from regretless.agents.cohorts import parts
from regretless.agents.responses import Response
from regretless.market.best_response import best_response, expected_and_realised, expected_losses
from regretless.market.core.arrays import Array, Indices, Mask, draw_rows
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.game.network import DelayedForecasts
from regretless.market.game.protocols import Cohort
from regretless.market.losses import Loss
from regretless.market.numerics.storage import narrowed
from regretless.market.records import Context, Decision, Forecast, Mixture, Policy
from regretless.market.regret.ledger import Ledger


@dataclass(frozen=True, eq=False)
class DelayGroup:
    """Rows of a cohort that hear the same; fields as in ``RespondingCohort``, of these rows."""

    distance: int
    rows: Indices | slice  # (P,), their places among the cohort's
    loss: Loss
    coefficients: tuple[Array, Array]  # of all representatives where there are some
    representative_of: Indices | None = None
    by_proxy: Mask | None = None

    def rows_at_distance(self, distance: int, rows: Indices) -> "DelayGroup":
        """Return some of the rows, at one distance."""
        coefficients = self.coefficients
        if self.representative_of is None:
            coefficients = coefficients[0][rows], coefficients[1][rows]
        selected = (
            parts.select_rows(table, rows) for table in (self.representative_of, self.by_proxy)
        )
        return DelayGroup(distance, rows, self.loss[rows], coefficients, *selected)

    def expected_from_mean(self, mean: Array) -> Array:
        """Return the losses (P, A) expected where the mean of s(y) is all that is known."""
        table = expected_losses(*self.coefficients, mean)
        return table if self.representative_of is None else table[self.representative_of]

    def expected(self, response: Response, forecast: Forecast) -> Array:
        """Return the losses (P, A) that the rows expect on hearing a forecast."""
        predicted = response.predicted(forecast, self.loss, self.coefficients)
        if self.representative_of is not None:
            predicted = predicted[self.representative_of]
        if self.by_proxy is not None:
            expected_by_proxy = expected_losses(*self.coefficients, forecast.statistics)
            predicted = np.where(self.by_proxy[:, None], expected_by_proxy, predicted)
        return predicted


class LazyDecision(Decision):
    """A pure decision that is evaluated when it is first read, or charged.

    Who is linear in the outcome has one table of weights for what it expects and for what it loses:
    where nobody reads the decision before it is charged, both are computed in one pass.
    """

    coefficients: tuple[Array, Array]
    statistics: Array  # (d,), the prediction that is heard
    row_of: Indices

    def __init__(
        self, coefficients: tuple[Array, Array], statistics: Array, row_of: Indices
    ) -> None:
        fields = {"coefficients": coefficients, "statistics": statistics, "row_of": row_of}
        vars(self).update(strategy=None, present=None, counts=None, **fields)

    @cached_property
    def predicted(self) -> Array:
        """The losses (K, A) that each row expects."""
        return expected_losses(*self.coefficients, self.statistics)

    @cached_property
    def choices(self) -> Indices:
        """The best response (K,) to them."""
        return best_response(self.predicted)

    @cached_property
    def actions(self) -> Indices:
        """The action of each agent (N,)."""
        return self.choices[self.row_of]

    def changed(self, **changes: Any) -> Decision:
        evaluated = Decision(None, self.actions, self.predicted, choices=self.choices)
        return replace(evaluated, **changes)

    def losses(self, loss: Loss, outcome: Array) -> Array:
        if "predicted" in vars(self):
            return loss.losses(outcome)
        offset, weights = self.coefficients
        vars(self)["predicted"], losses = expected_and_realised(
            (offset, loss.offset), weights, point=self.statistics, outcome=outcome
        )
        return losses


@dataclass(eq=False)
class RespondingCohort(Cohort, Checkpointable):
    """Agents of one loss form with distinct losses, one number of actions and one response rule."""

    REMEMBERED = ("ledger", "rng")
    foreseeable = True
    unguided = ""

    name: str
    utility: str
    block: int
    loss: Loss
    row_of: Indices  # of agents (N,), or of rows (K,) with a multiplicity
    coefficients: tuple[Array, Array]  # of each loss in the block's basis, or representative
    response: Response
    ledger: Ledger
    rng: np.random.Generator  # draws the actions of agents who randomise
    policies: tuple[Policy, ...] = ()
    representative_of: Indices | None = None  # (K,), whose best response a row plays
    by_proxy: Mask | None = None  # (K,), rows that respond to coefficients, whatever their rule
    distance: Indices | None = None
    relay: DelayedForecasts | None = None  # for those who do not hear at once
    acts_on: Loss | None = None  # what rows respond by, if not ``loss``: what they reported
    multiplicity: Indices | None = None  # (K,), at least 1
    expects_own: bool = True  # whether coefficients are of ``loss`` itself
    market_losses: Callable[[Array], Array] | None = field(default=None, init=False)
    delay_groups: tuple[DelayGroup, ...] = field(default=(), init=False)
    kind: str = field(default="follower", init=False)

    def __post_init__(self) -> None:
        if self.multiplicity is not None:
            rows = np.arange(len(self.ledger.count))
            if not np.array_equal(self.row_of, rows) or self.multiplicity.shape != rows.shape:
                raise ValueError("multiplicity is of each row; let row_of list the rows")
            self.multiplicity.flags.writeable = False  # adversaries are shown them
        response_loss = self.loss if self.acts_on is None else self.acts_on
        offset, weights = self.coefficients
        read_coefficients = offset, narrowed(weights)
        all_rows = DelayGroup(
            0, slice(None), response_loss, read_coefficients, self.representative_of, self.by_proxy
        )
        self.delay_groups = (all_rows,)
        if (distances := self.distance) is not None:
            self.delay_groups = tuple(
                all_rows.rows_at_distance(int(distance), np.flatnonzero(distances == distance))
                for distance in np.unique(distances)
            )
        hears_alike = (
            self.representative_of is None and self.by_proxy is None and self.distance is None
        )
        is_one_table = response_loss is self.loss and response_loss.linear_weights is weights
        self._expects_by_loss_table = (
            hears_alike and is_one_table
        )  # for what is expected and what is lost

    @property
    def rule(self) -> str:
        return self.response.name

    @property
    def hears_ensemble(self) -> bool:
        return self.response.hears_ensemble

    def fixed_parts(self) -> tuple[object, ...]:
        shared_arrays = self.loss, self.ledger, self.row_of, self.policies, self.coefficients
        return (
            *shared_arrays,
            self.representative_of,
            self.by_proxy,
            self.delay_groups,
            self.multiplicity,
        )

    def company(self) -> Indices:
        return parts.rows_for_same_rounding(self.loss, self.distance)

    def part(self, rows: Indices, agents: slice) -> Self:
        shared_fields = parts.common(self, rows, agents)
        return replace(self, **shared_fields, **parts.heard(self, shared_fields["loss"], rows))

    def decide(self, forecast: Forecast, context: Context) -> Decision:
        can_be_lazy = self._expects_by_loss_table and self.market_losses is None
        if can_be_lazy and self.response.pure and self.response.at_prediction:
            return LazyDecision(self.delay_groups[0].coefficients, forecast.statistics, self.row_of)
        return self._decide_from(self._predicted(forecast))

    def _decide_from(self, predicted: Array) -> Decision:
        if self.response.pure:
            choices = best_response(predicted)
            return Decision(None, choices[self.row_of], predicted, choices=choices)
        strategy = self.response.play(predicted)
        actions = self._draw_actions(strategy)
        if self.multiplicity is None:
            return Decision(strategy, actions, predicted)
        seed = self.rng.bit_generator.random_raw()  # whether or not anybody asks for counts
        counts = cache(partial(self._draw_counts, strategy, actions, seed))
        return Decision(strategy, actions, predicted, counts=counts)

    def strategy(self, mixture: Mixture, context: Context) -> Array:
        weighted_strategies = (
            weight * self.response.play(self._predicted(Forecast(mixture, atom_index)))
            for atom_index, weight in enumerate(mixture.weights)
        )
        return sum(weighted_strategies, np.zeros(self.loss.offset.shape))

    def _predicted(self, forecast: Forecast) -> Array:
        """Losses (K, A) that the rows expect."""
        if self.relay is None and self.market_losses is not None:
            return self._predicted_in_market(forecast, self.market_losses)
        if self.relay is None:
            return self.delay_groups[0].expected(self.response, forecast)
        predicted = np.empty(self.ledger.count.shape)
        for group in self.delay_groups:
            heard_forecast = forecast if group.distance == 0 else self.relay.heard(group.distance)
            if self.market_losses is not None:
                stand_in = self.relay.stand_in() if heard_forecast is None else heard_forecast
                predicted_by_all = self._predicted_in_market(stand_in, self.market_losses)
                predicted[group.rows] = predicted_by_all[group.rows]
            elif heard_forecast is None:
                predicted[group.rows] = group.expected_from_mean(self.relay.mean)
            else:
                predicted[group.rows] = group.expected(self.response, heard_forecast)
        return predicted

    def _predicted_in_market(
        self, forecast: Forecast, market_losses: Callable[[Array], Array]
    ) -> Array:
        """Losses (K, A) that a market with losses of its own lets the rows expect."""
        if self.hears_ensemble and forecast.ensemble is not None:
            ensemble = forecast.ensemble
            losses_at_outcomes = np.array([market_losses(outcome) for outcome in ensemble.outcomes])
            return np.asarray(np.tensordot(ensemble.weights, losses_at_outcomes, axes=1))
        if forecast.label is None:
            raise ValueError("this forecast has no label")
        return market_losses(forecast.label)

    def gap(self) -> float:
        return self.response.gap(self.loss.actions)

    def _draw_actions(self, strategy: Array) -> Indices:
        """Draw one action per agent; a hard rule's pure play needs no draw.

        A smooth rule's does: whether others are as sure is not known where agents are shared out.
        """
        if not math.isfinite(self.response.lipschitz) and (strategy == 1.0).any(1).all():
            return np.asarray(strategy.argmax(1)[self.row_of])
        return draw_rows(strategy, self.rng.random(len(self.row_of)), self.row_of)

    def _draw_counts(self, strategy: Array, actions: Indices, seed: int) -> Array:
        """Draw how many of each row play each action (K, A), given what one of them plays."""
        draws_of_others = np.random.default_rng(seed).multinomial(
            np.asarray(self.multiplicity) - 1, strategy
        )
        counts = draws_of_others.astype(np.float64)
        counts.ravel()[np.arange(0, counts.size, counts.shape[1]) + actions] += 1
        return counts


@dataclass(eq=False)
class PrivateCohort(RespondingCohort):
    """A cohort whose rows hear draws of their own, by one number of ``rng`` per row and round."""

    private = True

    def decide(self, forecast: Forecast, context: Context) -> Decision:
        uniforms, mixture = self.rng.random(len(self.loss)), forecast.mixture
        atom_of_row = draw_rows(
            mixture.weights[None], uniforms, np.zeros(len(uniforms), dtype=np.intp)
        )
        predicted = np.empty(self.loss.offset.shape)
        for atom_index in np.unique(atom_of_row):
            rows = atom_of_row == atom_index
            predicted[rows] = self._predicted(Forecast(mixture, int(atom_index)))[rows]
        return self._decide_from(predicted)
