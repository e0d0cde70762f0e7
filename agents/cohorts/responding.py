"""Agents who respond to a forecast: the common draw or their own, at once or with delay.

The assembly of a scenario makes a ``RespondingCohort`` for every cohort with a response rule
(``agents.responses``), or a ``PrivateCohort`` where each agent draws a prediction of its own. The
round calls ``decide``; an adversary that sees the play calls ``strategy`` before the draw.

**Rows.** Agents with equal losses who hear the same forecast choose alike, so a cohort of N agents
keeps K rows, one per distinct loss, and ``row_of`` says which row an agent belongs to. With a
``multiplicity`` agents are not listed one by one: it says how many agents each row stands for.
Where such agents draw their actions, one action is drawn for each row, that of the agent that the
tables list, and the actions of the others by one multinomial distribution.

**Delay.** Rows at one distance from the forecaster form a ``DelayGroup`` and hear the same forecast
(``market.game.network``). A group that no prediction has reached yet expects the linear form of its
losses at the running mean of s(y).

**Private draws.** Agents who each draw a prediction of their own from the round's mixture act
differently, so that each has a row of its own and is charged for what it did.

Shapes: N agents, K rows, A actions, n statistics s(y) of an outcome y of d coordinates.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Self

import numpy as np

from regretless.agents.cohorts.parts import (
    make_part,
    rows_for_same_rounding,
    same_losses,
    select_rows,
)
from regretless.agents.responses import Response
from regretless.market.best_response import ResponseTable, best_response, expected_losses
from regretless.market.core.arrays import Array, Indices, Mask, draw_rows
from regretless.market.core.checkpoint import Checkpointable
from regretless.market.game.network import DelayedForecasts
from regretless.market.game.protocols import Cohort
from regretless.market.losses import Loss
from regretless.market.numerics.storage import in_layout, narrowed_to_32_bits
from regretless.market.records import Context, Decision, Forecast, Mixture, Policy
from regretless.market.regret.ledger import Ledger


@dataclass(frozen=True, eq=False)
class DelayGroup:
    """Rows of a cohort that hear the same forecast; the fields are those of ``RespondingCohort``.

    A group has P of the cohort's K rows. Where rows respond as a representative does,
    ``coefficients`` are those of all R representatives, else of the P rows.
    """

    distance: int  # from the forecaster
    rows: Indices | slice  # (P,), the group's rows among the cohort's
    loss: Loss  # a stack of P
    coefficients: tuple[Array, Array]  # offset (P, A) and weights (P, A, n), or (R, A), (R, A, n)
    representative_of: Indices | None = None  # (P,), the representative of each row
    by_proxy: Mask | None = None  # (P,)

    def rows_at_distance(self, distance: int, rows: Indices) -> "DelayGroup":
        """Return those rows of a group of all rows that are at one distance."""
        offset, weights = self.coefficients
        if self.representative_of is None:
            offset = offset[rows]
            weights = weights[rows]
        return DelayGroup(
            distance=distance,
            rows=rows,
            loss=self.loss[rows],
            coefficients=(offset, weights),
            representative_of=select_rows(self.representative_of, rows),
            by_proxy=select_rows(self.by_proxy, rows),
        )

    def expected_from_mean(self, mean: Array) -> Array:
        """Return the losses (P, A) expected where only the mean (n,) of s(y) is known."""
        losses = expected_losses(*self.coefficients, mean)
        if self.representative_of is None:
            return losses
        return losses[self.representative_of]

    def expected(self, response: Response, forecast: Forecast) -> Array:
        """Return the losses (P, A) that the rows expect on hearing a forecast."""
        predicted = response.predicted(forecast, self.loss, self.coefficients)
        if self.representative_of is not None:
            predicted = predicted[self.representative_of]
        if self.by_proxy is not None:
            expected_by_proxy = expected_losses(*self.coefficients, forecast.statistics)
            predicted = np.where(self.by_proxy[:, None], expected_by_proxy, predicted)
        return predicted


class Evaluated:
    """An attribute of a ``LazyDecision``, which is evaluated when one of them is first read.

    From then on the decision itself holds the value, and reading it takes no call.
    """

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, decision: Any, owner: type | None = None) -> Any:
        if decision is None:  # it was read from the class
            return self
        decision.evaluate()
        return vars(decision)[self.name]


class LazyDecision(Decision):
    """A pure decision that is evaluated when it is first read, or charged.

    An agent whose loss is linear in the outcome has one table of weights for what it expects and
    for what it loses. Where nobody reads the expectation before the losses are charged, both are
    computed in one pass over that table, which is larger than the processor's caches.

    Parameters
    ----------
    table : ResponseTable
        Of the K rows.
    statistics : array (n,)
        The prediction to which they respond.
    row_of : int array (N,)
        The row of each agent.
    """

    _table: ResponseTable
    _statistics: Array
    _row_of: Indices

    strategy = None
    present = None
    counts = None
    predicted = Evaluated()
    choices = Evaluated()
    actions = Evaluated()

    def __init__(self, table: ResponseTable, statistics: Array, row_of: Indices) -> None:
        # The base is a frozen record with an initialiser of its own, which would ask for the
        # actions at once.
        self.__dict__.update(_table=table, _statistics=statistics, _row_of=row_of)

    def evaluate(self) -> None:
        """Work out what the rows expect and choose, and what the agents do."""
        self._keep(*self._table.respond(self._statistics))

    def _keep(self, expected: Array, choices: Indices) -> None:
        """Keep the expected losses (K, A), the choices (K,), and the actions that follow (N,)."""
        actions = choices[self._row_of]
        self.__dict__.update(predicted=expected, choices=choices, actions=actions)

    def changed(self, **changes: Any) -> Decision:
        evaluated = Decision(None, self.actions, self.predicted, choices=self.choices)
        return replace(evaluated, **changes)

    def losses(self, loss: Loss, outcome: Array) -> Array:
        table = self._table
        if not table.has_losses:
            return loss.losses(outcome)
        if "choices" in self.__dict__:
            return table.realise(outcome)
        expected, choices, realised = table.respond_and_realise(self._statistics, outcome)
        self._keep(expected, choices)
        return realised


@dataclass(eq=False)
class RespondingCohort(Cohort, Checkpointable):
    """Agents of one loss form with distinct losses, one number of actions and one response rule."""

    REMEMBERED = ("ledger", "rng")
    foreseeable = True
    unguided = ""

    name: str
    utility: str
    block: int  # the block of the broadcast that it hears
    loss: Loss  # a stack of K
    row_of: Indices  # the row of each agent (N,); with a multiplicity the rows themselves (K,)
    # Offset (K, A) and weights (K, A, n) of each loss in the block's basis; with
    # ``representative_of`` those of R representatives, (R, A) and (R, A, n).
    coefficients: tuple[Array, Array]
    response: Response
    ledger: Ledger
    rng: np.random.Generator  # draws the actions of agents who randomise
    policies: tuple[Policy, ...] = ()
    representative_of: Indices | None = None  # (K,), the representative whose choice a row plays
    by_proxy: Mask | None = None  # (K,), rows that respond to coefficients, whatever their rule
    distance: Indices | None = None  # (K,) from the forecaster; None where all hear at once
    relay: DelayedForecasts | None = None  # passes forecasts on to those who do not hear at once
    acts_on: Loss | None = None  # what rows respond by, if not ``loss``: the losses they reported
    multiplicity: Indices | None = None  # (K,), how many agents a row stands for, at least 1
    expects_own: bool = True  # whether coefficients are of ``loss`` itself
    # What agents expect to lose (K, A) at an outcome (d,), in a market with losses of its own.
    market_losses: Callable[[Array], Array] | None = field(default=None, init=False)
    delay_groups: tuple[DelayGroup, ...] = field(default=(), init=False)
    kind: str = field(default="follower", init=False)

    def __post_init__(self) -> None:
        if self.multiplicity is not None:
            rows = np.arange(self.ledger.shape[0])
            if not np.array_equal(self.row_of, rows) or self.multiplicity.shape != rows.shape:
                raise ValueError("multiplicity is of each row; let row_of list the rows")
            self.multiplicity.flags.writeable = False  # adversaries are shown them
        response_loss = self.loss if self.acts_on is None else self.acts_on
        offset, weights = self.coefficients
        all_rows = DelayGroup(
            distance=0,
            rows=slice(None),
            loss=response_loss,
            coefficients=(offset, narrowed_to_32_bits(weights)),
            representative_of=self.representative_of,
            by_proxy=self.by_proxy,
        )
        self.delay_groups = (all_rows,)
        if self.distance is not None:
            hops_of_group, self._group_of_row = np.unique(self.distance, return_inverse=True)
            self.delay_groups = tuple(
                all_rows.rows_at_distance(int(hops), np.flatnonzero(self.distance == hops))
                for hops in hops_of_group
            )
        self._response_table = self._make_response_table(all_rows)

    def _make_response_table(self, all_rows: DelayGroup) -> ResponseTable | None:
        """Return the table by which rows best-respond to the predictions that they hear.

        None where some choose by another row's losses, or by two tables.
        """
        if self.representative_of is not None or self.by_proxy is not None:
            return None
        offset, weights = all_rows.coefficients
        # Whether one table of weights says what every row expects and what it loses.
        expects_own_losses = self.acts_on is None or self.acts_on is self.loss
        if expects_own_losses and self.loss.linear_weights is self.coefficients[1]:
            return ResponseTable(offset, weights, loss_offset=self.loss.offset)
        return ResponseTable(offset, weights)

    @property
    def rule(self) -> str:
        return self.response.name

    @property
    def hears_ensemble(self) -> bool:
        return self.response.hears_ensemble

    def gap(self) -> float:
        return self.response.gap(self.loss.actions)

    def fixed_parts(self) -> tuple[object, ...]:
        return (
            self.loss,
            self.ledger,
            self.row_of,
            self.policies,
            self.coefficients,
            self.representative_of,
            self.by_proxy,
            self.delay_groups,
            self._response_table,
            self.multiplicity,
        )

    @property
    def has_memory(self) -> bool:
        return not self.response.built_in  # a rule of the user's own may have one

    def rows_of_every_part(self) -> Indices:
        return rows_for_same_rounding(self.loss, self.distance)

    def part(self, rows: Indices, agents: slice) -> Self:
        part = make_part(self, self.rng, rows, agents)
        acts_on: Loss | None = part.loss
        if self.acts_on is None:
            acts_on = None
        elif self.acts_on is not self.loss:
            acts_on = same_losses(self.name, self.acts_on, rows)
        offset, weights = self.coefficients
        if self.representative_of is None:
            offset = offset[rows]
            loss_weights = part.loss.linear_weights
            if self.loss.linear_weights is weights and loss_weights is not None:
                # The full cohort expects by the very table of its losses; so does the part.
                weights = loss_weights
            else:
                weights = in_layout(weights[rows])
        return replace(
            self,
            loss=part.loss,
            row_of=part.row_of,
            ledger=part.ledger,
            rng=part.rng,
            acts_on=acts_on,
            coefficients=(offset, weights),
            representative_of=select_rows(self.representative_of, rows),
            by_proxy=select_rows(self.by_proxy, rows),
            distance=select_rows(self.distance, rows),
        )

    @property
    def _best_responses(self) -> ResponseTable | None:
        """The table by which rows best-respond to predictions; None if they do something else."""
        response = self.response
        if self.market_losses is None and response.at_prediction and response.pure:
            return self._response_table
        return None

    def decide(self, forecast: Forecast, context: Context) -> Decision:
        table = self._best_responses
        if table is None:
            return self._respond(self._predicted(forecast))
        if self.distance is None:
            return LazyDecision(table, forecast.statistics, self.row_of)
        predictions = self._predictions_heard(forecast)
        return self._best_respond(table, predictions, self._group_of_row)

    def _best_respond(
        self, table: ResponseTable, predictions: Array, prediction_of_row: Indices
    ) -> Decision:
        """Return best responses of rows to predictions (m, n), of which each hears one (K,)."""
        predicted, choices = table.respond_to_points(predictions, prediction_of_row)
        return Decision(None, choices[self.row_of], predicted, choices=choices)

    @staticmethod
    def _forecast_heard_by(
        group: DelayGroup, forecast: Forecast, relay: DelayedForecasts
    ) -> Forecast | None:
        """Return what a group hears as a forecast is broadcast; None if none has come this far."""
        if group.distance == 0:  # who never hears one has a negative distance
            return forecast
        return relay.forecast_heard_at(group.distance)

    def _predictions_heard(self, forecast: Forecast) -> Array:
        """Return the prediction (n,) that each delay group hears, stacked, as this is broadcast."""
        relay: Any = self.relay
        predictions = []
        for group in self.delay_groups:
            heard_forecast = self._forecast_heard_by(group, forecast, relay)
            if heard_forecast is None:
                predictions.append(relay.mean)
            else:
                predictions.append(heard_forecast.statistics)
        return np.array(predictions)

    def strategy(self, mixture: Mixture, context: Context) -> Array:
        table = self._best_responses
        if table is not None and self.distance is None:
            return table.respond_to_mixture(mixture.points, mixture.weights)
        expected_strategy = np.zeros(self.loss.offset.shape)
        for atom, weight in enumerate(mixture.weights):
            predicted = self._predicted(Forecast(mixture, atom))
            expected_strategy = expected_strategy + weight * self.response.play(predicted)
        return expected_strategy

    def _respond(self, predicted: Array) -> Decision:
        """Return the decision of rows that expect the losses ``predicted`` (K, A)."""
        if self.response.pure:
            choices = best_response(predicted)
            return Decision(None, choices[self.row_of], predicted, choices=choices)
        strategy = self.response.play(predicted)
        actions = self._draw_actions(strategy)
        if self.multiplicity is None:
            return Decision(strategy, actions, predicted)
        # The seed is drawn whether or not anybody asks for the counts, so that asking moves no
        # later draw.
        seed = self.rng.bit_generator.random_raw()
        counts = cache(partial(self._draw_counts, strategy, actions, seed))
        return Decision(strategy, actions, predicted, counts=counts)

    def _draw_actions(self, strategy: Array) -> Indices:
        """Draw an action of each agent (N,) from its row's mixed strategy (K, A).

        The pure play of a hard rule needs no draw. A smooth rule draws even where every row is
        sure: where agents are shared out over workers, a worker does not know whether the rows of
        the others are as sure, and all must use up equally many random numbers.
        """
        is_hard_rule = not math.isfinite(self.response.lipschitz)
        if is_hard_rule and (strategy == 1.0).any(1).all():
            return np.asarray(strategy.argmax(1)[self.row_of])
        return draw_rows(strategy, self.rng.random(len(self.row_of)), self.row_of)

    def _draw_counts(self, strategy: Array, actions: Indices, seed: int) -> Array:
        """Draw how many agents of each row play each action (K, A).

        ``actions`` (K,) is what the listed agent of each row plays; the others draw from the row's
        mixed ``strategy`` (K, A).
        """
        n_others = np.asarray(self.multiplicity) - 1
        draws_of_others = np.random.default_rng(seed).multinomial(n_others, strategy)
        counts = draws_of_others.astype(np.float64)
        counts[np.arange(len(counts)), actions] += 1
        return counts

    def _predicted(self, forecast: Forecast) -> Array:
        """Return the losses (K, A) that the rows expect when this forecast is broadcast."""
        if self.relay is None:  # everybody hears the forecast at once
            if self.market_losses is not None:
                return self._predicted_in_market(forecast, self.market_losses)
            return self.delay_groups[0].expected(self.response, forecast)
        predicted = np.empty(self.ledger.shape)
        for group in self.delay_groups:
            heard_forecast = self._forecast_heard_by(group, forecast, self.relay)
            if self.market_losses is not None:
                if heard_forecast is None:
                    heard_forecast = self.relay.running_mean_forecast()
                # what every row would expect had it heard this forecast
                predicted_by_all = self._predicted_in_market(heard_forecast, self.market_losses)
                predicted[group.rows] = predicted_by_all[group.rows]
            elif heard_forecast is None:
                predicted[group.rows] = group.expected_from_mean(self.relay.mean)
            else:
                predicted[group.rows] = group.expected(self.response, heard_forecast)
        return predicted

    def _predicted_in_market(
        self, forecast: Forecast, market_losses: Callable[[Array], Array]
    ) -> Array:
        """Return the losses (K, A) that rows expect in a market with losses of its own.

        These are the market's losses at the label forecast; for who hears the ensemble, their mean
        over the ensemble's outcomes.
        """
        if self.hears_ensemble and forecast.ensemble is not None:
            ensemble = forecast.ensemble
            losses_at_outcomes = np.array([market_losses(outcome) for outcome in ensemble.outcomes])
            return np.asarray(np.tensordot(ensemble.weights, losses_at_outcomes, axes=1))
        if forecast.label is None:
            raise ValueError("this forecast has no label")
        return market_losses(forecast.label)


@dataclass(eq=False)
class PrivateCohort(RespondingCohort):
    """A cohort whose rows hear draws of their own, by one number of ``rng`` per row and round."""

    private = True

    def decide(self, forecast: Forecast, context: Context) -> Decision:
        mixture = forecast.mixture
        uniforms = self.rng.random(len(self.loss))
        same_distribution = np.zeros(len(uniforms), dtype=np.intp)
        atom_of_row = draw_rows(mixture.weights[None], uniforms, same_distribution)
        table = self._best_responses
        if table is not None and self.distance is None:
            return self._best_respond(table, mixture.points, atom_of_row)
        predicted = np.empty(self.loss.offset.shape)
        for atom in np.unique(atom_of_row):
            hears_atom = atom_of_row == atom
            predicted_by_all = self._predicted(Forecast(mixture, int(atom)))
            predicted[hears_atom] = predicted_by_all[hears_atom]
        return self._respond(predicted)
