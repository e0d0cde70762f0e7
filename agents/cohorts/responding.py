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

    def at(self, hops: int, rows: Indices) -> "DelayGroup":
        """Return some of the rows, at one distance."""
        own = self.coefficients
        if self.representative_of is None:
            own = own[0][rows], own[1][rows]
        served = (parts.some(table, rows) for table in (self.representative_of, self.by_proxy))
        return DelayGroup(hops, rows, self.loss[rows], own, *served)

    def from_mean(self, mean: Array) -> Array:
        """Return the losses (P, A) expected where the mean of s(y) is all that is known."""
        table = expected_losses(*self.coefficients, mean)
        return table if self.representative_of is None else table[self.representative_of]

    def expected(self, response: Response, forecast: Forecast) -> Array:
        """Return the losses (P, A) that the rows expect on hearing a forecast."""
        predicted = response.predicted(forecast, self.loss, self.coefficients)
        if self.representative_of is not None:
            predicted = predicted[self.representative_of]
        if self.by_proxy is not None:
            proxies = expected_losses(*self.coefficients, forecast.statistics)
            predicted = np.where(self.by_proxy[:, None], proxies, predicted)
        return predicted


class Unread(Decision):
    """A pure decision that is evaluated when it is first read, or charged.

    Who is linear in the outcome has one table of weights for what it expects and for what it loses:
    where nobody reads the decision before it is charged, both are computed in one pass.
    """

    coefficients: tuple[Array, Array]
    point: Array  # (d,), the prediction that is heard
    row_of: Indices

    def __init__(self, coefficients: tuple[Array, Array], point: Array, row_of: Indices) -> None:
        parts = {"coefficients": coefficients, "point": point, "row_of": row_of}
        vars(self).update(strategy=None, present=None, counts=None, **parts)

    @cached_property
    def predicted(self) -> Array:
        """The losses (K, A) that each row expects."""
        return expected_losses(*self.coefficients, self.point)

    @cached_property
    def choices(self) -> Indices:
        """The best response (K,) to them."""
        return best_response(self.predicted)

    @cached_property
    def actions(self) -> Indices:
        """The action of each agent (N,)."""
        return self.choices[self.row_of]

    def changed(self, **parts: Any) -> Decision:
        spelled = Decision(None, self.actions, self.predicted, choices=self.choices)
        return replace(spelled, **parts)

    def losses(self, loss: Loss, outcome: Array) -> Array:
        if "predicted" in vars(self):
            return loss.losses(outcome)
        offset, weights = self.coefficients
        vars(self)["predicted"], losses = expected_and_realised(
            (offset, loss.offset), weights, point=self.point, outcome=outcome
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
    groups: tuple[DelayGroup, ...] = field(default=(), init=False)
    kind: str = field(default="follower", init=False)

    def __post_init__(self) -> None:
        if self.multiplicity is not None:
            rows = np.arange(len(self.ledger.count))
            if not np.array_equal(self.row_of, rows) or self.multiplicity.shape != rows.shape:
                raise ValueError("multiplicity is of each row; let row_of list the rows")
            self.multiplicity.flags.writeable = False  # adversaries are shown them
        own = self.loss if self.acts_on is None else self.acts_on
        offset, weights = self.coefficients
        read = offset, narrowed(weights)
        whole = DelayGroup(0, slice(None), own, read, self.representative_of, self.by_proxy)
        self.groups = (whole,)
        if (hops := self.distance) is not None:
            self.groups = tuple(
                whole.at(int(h), np.flatnonzero(hops == h)) for h in np.unique(hops)
            )
        plain = self.representative_of is None and self.by_proxy is None and self.distance is None
        shared = own is self.loss and own.linear_weights is weights
        self._one_table = plain and shared  # for what is expected and what is lost

    @property
    def rule(self) -> str:
        return self.response.name

    @property
    def hears_ensemble(self) -> bool:
        return self.response.hears_ensemble

    def fixed_parts(self) -> tuple[object, ...]:
        own = self.loss, self.ledger, self.row_of, self.policies, self.coefficients
        return (*own, self.representative_of, self.by_proxy, self.groups, self.multiplicity)

    def company(self) -> Indices:
        return parts.company(self.loss, self.distance)

    def part(self, rows: Indices, agents: slice) -> Self:
        own = parts.common(self, rows, agents)
        return replace(self, **own, **parts.heard(self, own["loss"], rows))

    def decide(self, forecast: Forecast, context: Context) -> Decision:
        of_utility = self._one_table and self.market_losses is None
        if of_utility and self.response.pure and self.response.at_prediction:
            return Unread(self.groups[0].coefficients, forecast.statistics, self.row_of)
        return self._decision(self._predicted(forecast))

    def _decision(self, predicted: Array) -> Decision:
        if self.response.pure:
            choices = best_response(predicted)
            return Decision(None, choices[self.row_of], predicted, choices=choices)
        play = self.response.play(predicted)
        actions = self._draw(play)
        if self.multiplicity is None:
            return Decision(play, actions, predicted)
        seed = self.rng.bit_generator.random_raw()  # whether or not anybody asks for counts
        counts = cache(partial(self._counts, play, actions, seed))
        return Decision(play, actions, predicted, counts=counts)

    def strategy(self, mixture: Mixture, context: Context) -> Array:
        plays = (
            weight * self.response.play(self._predicted(Forecast(mixture, atom)))
            for atom, weight in enumerate(mixture.weights)
        )
        return sum(plays, np.zeros(self.loss.offset.shape))

    def _predicted(self, forecast: Forecast) -> Array:
        """Losses (K, A) that the rows expect."""
        if self.relay is None and self.market_losses is not None:
            return self._predicted_in_market(forecast, self.market_losses)
        if self.relay is None:
            return self.groups[0].expected(self.response, forecast)
        table = np.empty(self.ledger.count.shape)
        for group in self.groups:
            heard = forecast if group.distance == 0 else self.relay.heard(group.distance)
            if self.market_losses is not None:
                latest = self.relay.stand_in() if heard is None else heard
                expected = self._predicted_in_market(latest, self.market_losses)
                table[group.rows] = expected[group.rows]
            elif heard is None:
                table[group.rows] = group.from_mean(self.relay.mean)
            else:
                table[group.rows] = group.expected(self.response, heard)
        return table

    def _predicted_in_market(
        self, forecast: Forecast, market_losses: Callable[[Array], Array]
    ) -> Array:
        """Losses (K, A) that a market with losses of its own lets the rows expect."""
        if self.hears_ensemble and forecast.ensemble is not None:
            ensemble = forecast.ensemble
            tables = np.array([market_losses(outcome) for outcome in ensemble.outcomes])
            return np.asarray(np.tensordot(ensemble.weights, tables, axes=1))
        if forecast.label is None:
            raise ValueError("this forecast has no label")
        return market_losses(forecast.label)

    def gap(self) -> float:
        return self.response.gap(self.loss.actions)

    def _draw(self, play: Array) -> Indices:
        """Draw one action per agent; a hard rule's pure play needs no draw.

        A smooth rule's does: whether others are as sure is not known where agents are shared out.
        """
        if not math.isfinite(self.response.lipschitz) and (play == 1.0).any(1).all():
            return np.asarray(play.argmax(1)[self.row_of])
        return draw_rows(play, self.rng.random(len(self.row_of)), self.row_of)

    def _counts(self, play: Array, actions: Indices, seed: int) -> Array:
        """Draw how many of each row play each action (K, A), given what one of them plays."""
        drawn = np.random.default_rng(seed).multinomial(np.asarray(self.multiplicity) - 1, play)
        counts = drawn.astype(np.float64)
        counts.ravel()[np.arange(0, counts.size, counts.shape[1]) + actions] += 1
        return counts


@dataclass(eq=False)
class PrivateCohort(RespondingCohort):
    """A cohort whose rows hear draws of their own, by one number of ``rng`` per row and round."""

    private = True

    def decide(self, forecast: Forecast, context: Context) -> Decision:
        uniforms, mixture = self.rng.random(len(self.loss)), forecast.mixture
        drawn = draw_rows(mixture.weights[None], uniforms, np.zeros(len(uniforms), dtype=np.intp))
        table = np.empty(self.loss.offset.shape)
        for atom in np.unique(drawn):
            rows = drawn == atom
            table[rows] = self._predicted(Forecast(mixture, int(atom)))[rows]
        return self._decision(table)
